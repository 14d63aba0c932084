// Keeping a trace short takes a thread that reads it, and writes a new one of what is newest; the
// collector goes on meanwhile. For example, --max-size 100M:
//
//     75 MB        the thread begins, and aims at 25 MB of the newest events
//     WANTS_FLUSH  it is at the end of what is in the file: the collector flushes, it reads on
//     WANTS_HOLD   that took less than 50 ms, or 10 times are over: the collector is to hold
//     100 MB       were the thread not done by then, the collector would hold at once
//     DONE         the new file has the name; the collector writes on in it
//
// Where what lives takes more than 75 MB by itself, nothing is gained by beginning again at 75: it
// is tried anew with 50 MB more, and the user hears once that the file is larger than was asked
// for.
//
// Where the new file cannot be written (a full disk) the collector goes on in the old one, and it
// is tried anew after a while, until there is room. The user hears when it began and ended.
#include "launch/keeper_linux.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/replay/trim_newest.h"
#include "launch/keep_wishes.h"
#include "os/file.h"
#include "os/now.h"
#include "os/thread.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum {
	ROUND_NS = 50000000, // what is left is little if it was read in so long
	ROUNDS_MAX = 10,
	AGAIN_NS = 1000000000, // it is tried anew after so long at least,
	AGAIN_TIMES = 20,      // and so many times as long as the last try took
};

enum stage {
	IDLE,
	READING,
	WANTS_FLUSH,
	WANTS_HOLD,
	HELD,
	DONE,    // the new file has the name
	NOT_YET, // there is nothing to leave out
	FAILED,  // `err` says why
};

struct keeper {
	struct keep_wishes wishes;
	int output_fd; // the collector's
	// The collector's alone.
	uint64_t began_ns;   // where the file's window begins
	uint64_t high_bytes; // when it is to be cut
	uint64_t new_bytes;  // what it had when it was new: definitions, and what lived
	bool stopped_early;  // it has its size, and waits
	bool weigh;          // the file is new, and its size is not known yet
	bool large;          // what lives is as large as the file may be: that was said
	bool failing;        // the last try failed: that was said
	uint64_t again_ns;   // not before then
	uint32_t parts;      // files that were rotated away
	struct str said;
	// The thread's, until it has ended.
	struct thread *thread;
	uint64_t file_bytes, now_ns; // when it was begun
	bool rotates;
	char path[PATH_MAX];
	struct trim_newest newest;
	uint64_t round_ns;
	unsigned rounds;
	struct err err;
	// Both look at these.
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum stage stage;
	bool cancelled;
};

// The two threads hand each other `stage`, and who may touch what follows from it: in READING and
// HELD the thread works; in WANTS_… and from DONE on it is the collector's turn.
static enum stage stage_of(struct keeper *keeper)
{
	enum stage stage;

	pthread_mutex_lock(&keeper->lock);
	stage = keeper->stage;
	pthread_mutex_unlock(&keeper->lock);
	return stage;
}

static void go_to(struct keeper *keeper, enum stage stage)
{
	pthread_mutex_lock(&keeper->lock);
	keeper->stage = stage;
	pthread_cond_broadcast(&keeper->changed);
	pthread_mutex_unlock(&keeper->lock);
}

// ---- the thread ----

static bool stopped(void *context)
{
	struct keeper *keeper = context;
	bool cancelled;

	pthread_mutex_lock(&keeper->lock);
	cancelled = keeper->cancelled;
	pthread_mutex_unlock(&keeper->lock);
	return cancelled;
}

// At the end of what is in the file: have the collector write what it has. Where little came since
// the last time, it is to hold, and what is read then is the rest.
static bool more(void *context)
{
	struct keeper *keeper = context;
	uint64_t now_ns = now_steady_ns();
	// Rounds get shorter: what came while the first 75 MB were read is read in the second, and
	// so on. When one takes less than ROUND_NS the rest is so little that programs can be held
	// for it.
	bool last = now_ns - keeper->round_ns < ROUND_NS || ++keeper->rounds > ROUNDS_MAX;
	enum stage wanted = last ? WANTS_HOLD : WANTS_FLUSH;
	bool again;

	keeper->round_ns = now_ns;
	pthread_mutex_lock(&keeper->lock);
	again = keeper->stage != HELD && !keeper->cancelled;
	if (again)
		keeper->stage = wanted;
	while (again && keeper->stage == wanted && !keeper->cancelled)
		pthread_cond_wait(&keeper->changed, &keeper->lock);
	pthread_mutex_unlock(&keeper->lock);
	return again;
}

static void *work(void *context)
{
	struct keeper *keeper = context;
	const struct keep_wishes *wishes = &keeper->wishes;
	const struct trim_newest_options options = {
		.path = keeper->path,
		.file_bytes = keeper->file_bytes,
		.last = keeper->rotates,
		// The size may ask for it before anything is old.
		.old_ns = wishes->keep_ns && keeper->now_ns > wishes->keep_ns
				  ? keeper->now_ns - wishes->keep_ns
				  : 0,
		.most_bytes = wishes->max_bytes / 4,
		.more = more,
		.stopped = stopped,
		.context = keeper,
	};
	char link[32];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", keeper->output_fd);
	length = readlink(link, keeper->path, sizeof keeper->path - 1);
	keeper->path[length > 0 ? length : 0] = 0;
	keeper->round_ns = now_steady_ns();
	keeper->rounds = 0;
	keeper->err = (struct err){ 0 };
	// Cancelled before: what the collector wrote since was not read.
	if (trim_newest_write(&keeper->newest, &options, &keeper->err) &&
	    stage_of(keeper) == HELD &&
	    trim_newest_place(&keeper->newest, keeper->rotates ? &keeper->parts : NULL,
			      &keeper->err)) {
		go_to(keeper, DONE);
		return NULL;
	}
	trim_newest_close(&keeper->newest);
	go_to(keeper, keeper->err.kind ? FAILED : NOT_YET);
	return NULL;
}

// ---- the collector's thread ----

static void *begin(const void *wishes, int output_fd)
{
	struct keeper *keeper = mem_alloc(1, sizeof *keeper);

	keeper->wishes = *(const struct keep_wishes *)wishes;
	keeper->output_fd = output_fd;
	keeper->high_bytes = keeper->wishes.max_bytes / 4 * 3;
	pthread_mutex_init(&keeper->lock, NULL);
	pthread_cond_init(&keeper->changed, NULL);
	return keeper;
}

static enum collect_keep_wish say(struct keeper *keeper, const char *what, const char *why)
{
	str_clear(&keeper->said);
	str_format(&keeper->said, "%s: %s", what, why);
	return COLLECT_KEEP_SAY;
}

// With --keep 10m a trace is shortened when it has 20 minutes, of which 10 go.
static bool is_due(struct keeper *keeper, uint64_t trace_bytes, uint64_t now_ns)
{
	const struct keep_wishes *wishes = &keeper->wishes;
	uint64_t span_ns = now_ns - keeper->began_ns;

	if (now_ns < keeper->again_ns)
		return false;
	keeper->rotates =
		(wishes->rotate_bytes && trace_bytes >= keeper->new_bytes + wishes->rotate_bytes) ||
		(wishes->rotate_ns && span_ns >= wishes->rotate_ns);
	return keeper->rotates || (wishes->max_bytes && trace_bytes >= keeper->high_bytes) ||
	       (wishes->keep_ns && span_ns / 2 >= wishes->keep_ns);
}

static void end_thread(struct keeper *keeper)
{
	ASSERT(keeper->thread == NULL || keeper->cancelled || keeper->stage >= DONE);
	thread_join(keeper->thread);
	keeper->thread = NULL;
}

static enum collect_keep_wish try_again(struct keeper *keeper, uint64_t now_ns, const char *why)
{
	bool again = keeper->failing;

	end_thread(keeper);
	keeper->stage = IDLE;
	keeper->failing = true;
	// A try that reads much of a large file and fails costs as much each time: so the pause
	// grows with it, and tries take at most a twentieth of the time.
	keeper->again_ns = now_ns + AGAIN_NS + AGAIN_TIMES * (now_ns - keeper->now_ns);
	if (again)
		return COLLECT_KEEP_GO_ON;
	return say(keeper, "the trace is not kept short for now", why);
}

static enum collect_keep_wish start(struct keeper *keeper, uint64_t trace_bytes, uint64_t now_ns)
{
	ASSERT(keeper->thread == NULL && keeper->stage == IDLE);
	keeper->file_bytes = trace_bytes;
	keeper->now_ns = now_ns;
	keeper->stopped_early = false;
	keeper->stage = READING;
	keeper->thread = thread_start(work, keeper);
	if (keeper->thread)
		return COLLECT_KEEP_NOTHING;
	return try_again(keeper, now_ns, "no thread can be started");
}

// What was kept is no smaller than it should be: wait until there is more that can be left out.
static enum collect_keep_wish look_at_size(struct keeper *keeper, uint64_t trace_bytes)
{
	uint64_t max_bytes = keeper->wishes.max_bytes;

	ASSERT(keeper->stage == IDLE && keeper->weigh);
	if (keeper->failing) {
		keeper->failing = false;
		return say(keeper, "the trace is kept short again", "nothing of it is missing");
	}
	keeper->weigh = false;
	keeper->new_bytes = trace_bytes;
	keeper->high_bytes = max_bytes / 4 * 3;
	if (!max_bytes || trace_bytes <= keeper->high_bytes)
		return COLLECT_KEEP_NOTHING;
	keeper->high_bytes = trace_bytes + max_bytes / 2;
	if (keeper->large)
		return COLLECT_KEEP_NOTHING;
	keeper->large = true;
	return say(keeper, "the trace is larger than --max-size",
		   "what lives, and what it was allocated by, takes that much");
}

// It is the first block that is long, or large: look again when more has come after it.
static enum collect_keep_wish wait_for_more(struct keeper *keeper, uint64_t trace_bytes,
					    uint64_t now_ns)
{
	end_thread(keeper);
	keeper->stage = IDLE;
	keeper->began_ns = now_ns > keeper->wishes.keep_ns ? now_ns - keeper->wishes.keep_ns : 0;
	keeper->high_bytes = trace_bytes + keeper->wishes.max_bytes / 4;
	return COLLECT_KEEP_GO_ON;
}

// What the collector asks between two of its rounds: must it do something? It answers by flushed(),
// take() or taken(), or goes on.
static enum collect_keep_wish wish(void *context, uint64_t trace_bytes, uint64_t now_ns)
{
	struct keeper *keeper = context;

	switch (stage_of(keeper)) {
	case IDLE:
		if (keeper->weigh)
			return look_at_size(keeper, trace_bytes);
		return is_due(keeper, trace_bytes, now_ns) ? start(keeper, trace_bytes, now_ns)
							   : COLLECT_KEEP_NOTHING;
	case READING:
		if (!keeper->wishes.max_bytes || keeper->stopped_early ||
		    trace_bytes < keeper->high_bytes + keeper->wishes.max_bytes / 4)
			return COLLECT_KEEP_NOTHING;
		keeper->stopped_early = true;
		return COLLECT_KEEP_HOLD;
	case WANTS_FLUSH:
		return COLLECT_KEEP_FLUSH;
	case WANTS_HOLD:
		return COLLECT_KEEP_HOLD;
	case DONE:
		return COLLECT_KEEP_TAKE;
	case NOT_YET:
		return wait_for_more(keeper, trace_bytes, now_ns);
	case FAILED:
		return try_again(keeper, now_ns, keeper->err.text);
	case HELD:
		break;
	}
	return COLLECT_KEEP_NOTHING;
}

static void flushed(void *context)
{
	struct keeper *keeper = context;

	pthread_mutex_lock(&keeper->lock);
	if (keeper->stage == WANTS_FLUSH)
		keeper->stage = READING;
	else if (keeper->stage == WANTS_HOLD)
		keeper->stage = HELD;
	pthread_cond_broadcast(&keeper->changed);
	pthread_mutex_unlock(&keeper->lock);
}

static bool ends(void *context)
{
	const struct keeper *keeper = context;

	return keeper->rotates;
}

static struct writer *take(void *context)
{
	struct keeper *keeper = context;

	ASSERT(keeper->stage == DONE);
	end_thread(keeper);
	return trim_newest_take(&keeper->newest);
}

static void taken(void *context)
{
	struct keeper *keeper = context;

	ASSERT(keeper->thread == NULL && keeper->stage == DONE);
	trim_newest_close(&keeper->newest);
	keeper->began_ns = keeper->newest.from_ns;
	keeper->weigh = true;
	keeper->stage = IDLE;
}

static const char *text(void *context)
{
	const struct keeper *keeper = context;

	return str_get(&keeper->said);
}

static bool stop(void *context)
{
	struct keeper *keeper = context;

	pthread_mutex_lock(&keeper->lock);
	keeper->cancelled = true;
	pthread_cond_broadcast(&keeper->changed);
	pthread_mutex_unlock(&keeper->lock);
	end_thread(keeper);
	return keeper->stage == DONE;
}

static void end(void *context)
{
	struct keeper *keeper = context;

	ASSERT(keeper->thread == NULL);
	str_fini(&keeper->said);
	pthread_mutex_destroy(&keeper->lock);
	pthread_cond_destroy(&keeper->changed);
	mem_free(keeper);
}

const struct collect_keep keeper_calls = {
	.begin = begin,
	.wish = wish,
	.flushed = flushed,
	.ends = ends,
	.take = take,
	.taken = taken,
	.text = text,
	.stop = stop,
	.end = end,
};
