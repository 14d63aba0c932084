// Pieces go round in a ring. With eight places, and four that wake: the maker waits when it is
// eight ahead, the taker when there is nothing, and either wakes the other when four are there, so
// that not each piece costs a wake-up. What fails ends both: what was made before it is still
// taken.
#include "os/relay.h"

#include "base/mem.h"
#include "os/worker.h"

struct run {
	const struct relay *relay;
	uint64_t to;
	struct worker worker;
	uint64_t made, taken; // numbers: the next ones
	bool ended, failed;   // no more will be made
	bool enough;          // no more are wanted; what cannot be made then is no failure
	struct err err;
};

static bool make(struct run *run, uint64_t number)
{
	const struct relay *relay = run->relay;

	return relay->make(relay->make_context, number, (unsigned)(number % relay->places),
			   &run->err);
}

static bool take(const struct run *run, uint64_t number)
{
	const struct relay *relay = run->relay;

	return relay->take(relay->take_context, number, (unsigned)(number % relay->places));
}

// The maker's thread. The two are never in one place of the ring: the lock guards the counts alone.
static void *make_all(void *context)
{
	struct run *run = context;
	const struct relay *relay = run->relay;

	pthread_mutex_lock(&run->worker.lock);
	while (!run->failed && run->made < run->to && !run->worker.over) {
		bool good;

		if (run->made - run->taken >= relay->places) {
			pthread_cond_wait(&run->worker.changed, &run->worker.lock);
			continue;
		}
		pthread_mutex_unlock(&run->worker.lock);
		good = make(run, run->made);
		pthread_mutex_lock(&run->worker.lock);
		run->made += good;
		run->failed = !good;
		if (run->made - run->taken == relay->wake)
			pthread_cond_signal(&run->worker.changed);
	}
	run->ended = true;
	pthread_cond_signal(&run->worker.changed);
	pthread_mutex_unlock(&run->worker.lock);
	return NULL;
}

// The caller's thread. `ended` with nothing left to take is the end, good or bad: what was made
// before a failure is taken first, and the caller learns of the failure after that.
static void take_all(struct run *run)
{
	const struct relay *relay = run->relay;

	pthread_mutex_lock(&run->worker.lock);
	while (!run->enough && run->taken < run->to) {
		if (run->taken == run->made) {
			if (run->ended)
				break;
			pthread_cond_wait(&run->worker.changed, &run->worker.lock);
			continue;
		}
		pthread_mutex_unlock(&run->worker.lock);
		run->enough = !take(run, run->taken);
		pthread_mutex_lock(&run->worker.lock);
		run->taken++;
		if (run->made - run->taken == relay->places - relay->wake)
			pthread_cond_signal(&run->worker.changed);
	}
	pthread_mutex_unlock(&run->worker.lock);
}

static void run_alone(struct run *run)
{
	while (!run->enough && !run->failed && run->made < run->to) {
		run->failed = !make(run, run->made);
		run->enough = !run->failed && !take(run, run->made);
		run->made++;
	}
}

// Of one piece nothing can be made while another is taken, so no thread is started.
bool relay_run(const struct relay *relay, uint64_t from, uint64_t to, struct err *err)
{
	struct run run = { .relay = relay, .to = to, .made = from, .taken = from };

	ASSERT(relay->make && relay->take);
	ASSERT(from <= to && relay->places >= 1);
	if (to - from < 2 || relay->places == 1) {
		run_alone(&run);
	} else {
		ASSERT(relay->wake >= 1 && relay->wake < relay->places);
		worker_start(&run.worker, make_all, &run);
		if (run.worker.thread)
			take_all(&run);
		else
			run_alone(&run);
		worker_end(&run.worker);
	}
	if (!run.failed || run.enough)
		return true;
	*err = run.err;
	return false;
}
