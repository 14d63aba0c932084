// Stripes go round in a ring of eight: stripe 9 is found in the place where stripe 1 was, once
// that has been taken. The finder waits when it is eight ahead, the taker when there is nothing,
// and either wakes the other when four are there, so that not each stripe costs a wake-up. What
// fails ends both: what was found before it is still taken.
#include "engine/index/index_stripes.h"

#include "base/mem.h"
#include "os/thread.h"

#include <pthread.h>

// Who waits is woken when half of the stripes are found, or taken: not for each.
enum { AHEAD = 8 };

struct run {
	const struct index_stripes *stripes;
	uint32_t end;
	struct index_figures *figures; // AHEAD stripes
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t found, taken; // stripes
	bool over, failed;     // no more will be found
	struct err err;
};

static uint32_t first_of(uint32_t stripe)
{
	return stripe * INDEX_STRIPE;
}

static uint32_t count_of(const struct run *run, uint32_t stripe)
{
	uint32_t left = run->end - first_of(stripe);

	return left < INDEX_STRIPE ? left : INDEX_STRIPE;
}

// The finder and the taker are never in one place of the ring: the lock guards the counts alone.
static struct index_figures *figures_of(const struct run *run, uint32_t stripe)
{
	return run->figures + (size_t)(stripe % AHEAD) * INDEX_STRIPE;
}

static bool find(struct run *run, uint32_t stripe)
{
	return run->stripes->find(run->stripes->find_context, first_of(stripe),
				  count_of(run, stripe), figures_of(run, stripe), &run->err);
}

static void take(const struct run *run, uint32_t stripe)
{
	run->stripes->take(run->stripes->take_context, first_of(stripe), count_of(run, stripe),
			   figures_of(run, stripe));
}

// The finder's thread. Nothing stops it before the end, or before `find` fails: what it finds is
// always taken, and the caller waits for it.
static void *find_all(void *context)
{
	struct run *run = context;
	bool good = true;

	pthread_mutex_lock(&run->lock);
	for (uint32_t stripe = 0; good && first_of(stripe) < run->end; stripe++) {
		while (stripe - run->taken >= AHEAD)
			pthread_cond_wait(&run->changed, &run->lock);
		pthread_mutex_unlock(&run->lock);
		good = find(run, stripe);
		pthread_mutex_lock(&run->lock);
		run->found += good;
		run->failed = !good;
		if (run->found - run->taken == AHEAD / 2)
			pthread_cond_signal(&run->changed);
	}
	run->over = true;
	pthread_cond_signal(&run->changed);
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

// The caller's thread. `over` with nothing left to take is the end, good or bad: what was found
// before a failure is taken first, and the caller learns of the failure after that.
static void take_all(struct run *run)
{
	pthread_mutex_lock(&run->lock);
	for (uint32_t stripe = 0; first_of(stripe) < run->end; stripe++) {
		while (stripe == run->found && !run->over)
			pthread_cond_wait(&run->changed, &run->lock);
		if (stripe == run->found)
			break;
		pthread_mutex_unlock(&run->lock);
		take(run, stripe);
		pthread_mutex_lock(&run->lock);
		run->taken++;
		if (run->found - run->taken == AHEAD / 2)
			pthread_cond_signal(&run->changed);
	}
	pthread_mutex_unlock(&run->lock);
}

// With one stripe, or without a thread: one after the other.
static void run_alone(struct run *run)
{
	for (uint32_t stripe = 0; first_of(stripe) < run->end; stripe++) {
		run->failed = !find(run, stripe);
		if (run->failed)
			return;
		take(run, stripe);
	}
}

// Of one stripe nothing can be found while another is taken, so no thread is started.
bool index_stripes_run(const struct index_stripes *stripes, uint32_t end, struct err *err)
{
	struct run run = { .stripes = stripes, .end = end };
	struct thread *thread = NULL;

	ASSERT(stripes->find && stripes->take);
	run.figures = mem_resize(NULL, (size_t)AHEAD * INDEX_STRIPE, sizeof *run.figures);
	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.changed, NULL);
	if (first_of(1) < end)
		thread = thread_start(find_all, &run);
	if (thread)
		take_all(&run);
	else
		run_alone(&run);
	thread_join(thread);
	pthread_mutex_destroy(&run.lock);
	pthread_cond_destroy(&run.changed);
	mem_free(run.figures);
	if (run.failed)
		*err = run.err;
	return !run.failed;
}
