// The driver is a process of its own, and what it has to do goes through memory that both have:
// chunks of records, filled here and emptied there, each counted by one of two semaphores. Who
// waits for an empty chunk looks ten times a second whether the driver has ended, or is to be
// stopped, because a driver that was killed empties nothing any more.
#include "replay/replay_run.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RING_FD = 10, PATIENCE_NS = 100000000 };

// One run of the driver, from this side.
struct playing {
	const struct replay_run_options *options;
	struct replay_ring *ring;
	int file;
	pid_t pid; // 0: not started, or ended
	int status;
	bool gone; // it ended before the last call
	unsigned chunk, filled;
	bool has_chunk;
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// ---- the environment ----

// Of "NAME=VALUE" both: whether they are of one name. NULL is of none.
static bool is_name(const char *entry, const char *setting)
{
	size_t length = setting ? strcspn(setting, "=") : 0;

	return length && strncmp(entry, setting, length) == 0 && entry[length] == '=';
}

// Ours, so that what the user has set reaches the allocator, but for what is preloaded and what the
// setting says. The caller frees it (free_environment).
static char **make_environment(const struct replay_run_options *options)
{
	size_t count = 0, used = 0;
	char **made;

	while (environ[count])
		count++;
	made = mem_alloc(count + 3, sizeof *made);
	for (size_t i = 0; i < count; i++)
		if (!is_name(environ[i], "LD_PRELOAD=") && !is_name(environ[i], options->setting))
			made[used++] = mem_copy_text(environ[i]);
	if (options->library) {
		struct str entry = { 0 };

		str_format(&entry, "LD_PRELOAD=%s", options->library);
		made[used++] = str_take(&entry);
	}
	if (options->setting)
		made[used++] = mem_copy_text(options->setting);
	ASSERT(used < count + 3); // NULL is last
	return made;
}

static void free_environment(char **made)
{
	for (size_t i = 0; made[i]; i++)
		mem_free(made[i]);
	mem_free(made);
}

// ---- the driver ----

// The file has room for 2^31 slots and takes memory only for those that are used.
static bool make_ring(struct playing *playing, struct err *err)
{
	uint64_t bytes = REPLAY_RING_SLOTS_AT + REPLAY_RING_SLOTS * sizeof(struct replay_ring_slot);

	playing->file = memfd_create("tidemark-replay", MFD_CLOEXEC);
	if (playing->file < 0 || ftruncate(playing->file, (off_t)bytes) != 0)
		return err_errno(err, errno, "cannot have memory to share with the driver");
	playing->ring = mmap(NULL, sizeof *playing->ring, PROT_READ | PROT_WRITE, MAP_SHARED,
			     playing->file, 0);
	if (playing->ring == MAP_FAILED) {
		playing->ring = NULL;
		return err_errno(err, errno, "cannot map what is shared with the driver");
	}
	playing->ring->touch = playing->options->touch;
	playing->ring->dry = playing->options->dry;
	sem_init(&playing->ring->full, 1, 0);
	sem_init(&playing->ring->empty, 1, REPLAY_RING_CHUNKS);
	return true;
}

// The ring's file is number 10 in the driver, which is told so by its argument.
static bool start(struct playing *playing, struct err *err)
{
	char number[12];
	char *words[] = { (char *)playing->options->driver, number, NULL };
	char **environment = make_environment(playing->options);
	posix_spawn_file_actions_t actions;
	int error;

	snprintf(number, sizeof number, "%d", RING_FD);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, playing->file, RING_FD);
	error = posix_spawn(&playing->pid, playing->options->driver, &actions, NULL, words,
			    environment);
	posix_spawn_file_actions_destroy(&actions);
	free_environment(environment);
	if (error)
		playing->pid = 0;
	return !error || err_errno(err, error, "cannot start %s", playing->options->driver);
}

// Whether the driver ended.
static bool has_ended(struct playing *playing, int flags)
{
	if (playing->pid && waitpid(playing->pid, &playing->status, flags) == playing->pid)
		playing->pid = 0;
	return !playing->pid;
}

// False: the driver has ended, or the user stopped it.
static bool take_chunk(struct playing *playing)
{
	struct timespec until;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PATIENCE_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (sem_timedwait(&playing->ring->empty, &until) == 0)
			break;
		if (has_ended(playing, WNOHANG))
			playing->gone = true;
		if (playing->gone || (playing->options->stopped && playing->options->stopped(NULL)))
			return false;
	}
	playing->has_chunk = true;
	playing->filled = 0;
	return true;
}

// A chunk is handed over when it is full, or at the last record.
static bool put(void *context, const struct replay_ring_record *record)
{
	struct playing *playing = context;

	if (!playing->has_chunk && !take_chunk(playing))
		return false;
	ASSERT(playing->filled < REPLAY_RING_RECORDS);
	playing->ring->records[playing->chunk % REPLAY_RING_CHUNKS][playing->filled++] = *record;
	if (playing->filled < REPLAY_RING_RECORDS && record->op != REPLAY_RING_END)
		return true;
	playing->has_chunk = false;
	playing->chunk++;
	sem_post(&playing->ring->full);
	return true;
}

// ---- the answer ----

// Why the driver did not finish, as its parent sees it: by a signal, mostly of the allocator, or by
// its own exit.
static bool tell_end(const struct playing *playing, struct err *err)
{
	uint64_t events = playing->ring->events;
	const char *what = playing->options->library ? playing->options->library : "glibc";

	if (WIFSIGNALED(playing->status))
		return err_set(err, ERR_IO, "%s: the driver ended by signal %d after %llu calls",
			       what, WTERMSIG(playing->status), (unsigned long long)events);
	return err_set(err, ERR_IO, "%s: the driver ended with %d after %llu calls", what,
		       WEXITSTATUS(playing->status), (unsigned long long)events);
}

// Where malloc really is, as the driver found by the loader's own look-up: of a library that it
// cannot preload the loader only says so on stderr, and goes on without it.
static bool check_library(const struct playing *playing, struct err *err)
{
	const char *library = playing->ring->library;
	bool own = strncmp(str_last_part(library), "libc.so", 7) == 0;

	if (own == !playing->options->library)
		return true;
	return own ? err_set(err, ERR_IO, "%s was not loaded, or has no malloc",
			     playing->options->library)
		   : err_set(err, ERR_IO, "malloc is %s's and not the C library's", library);
}

// What the driver has counted, before what is shared with it is unmapped.
static void copy(const struct playing *playing, struct replay_run *run)
{
	const struct replay_ring *ring = playing->ring;

	run->events = ring->events;
	run->failed = ring->failed;
	run->cpu_ns = ring->cpu_ns;
	run->minor_faults = ring->minor_faults;
	run->interrupted = ring->interrupted;
	run->major_faults = ring->major_faults;
	memcpy(run->library, ring->library, sizeof run->library);
	memcpy(run->samples, ring->samples, sizeof run->samples);
	memcpy(run->classes, ring->classes, sizeof run->classes);
}

// Three ends: the plan was stopped by the user; the driver ended before it had all; it had all and
// says that it is done.
static bool play(struct playing *playing, struct replay_plan *plan, struct err *err)
{
	bool whole = replay_plan_read(plan, put, playing, playing->options->progress);

	if (!whole && !playing->gone)
		return err_set(err, ERR_STOPPED, "stopped");
	if (whole)
		has_ended(playing, 0);
	return (whole && playing->ring->done) || tell_end(playing, err);
}

// A driver that still runs is killed, whatever went wrong.
bool replay_run_play(struct replay_plan *plan, const struct replay_run_options *options,
		     struct replay_run *run, struct err *err)
{
	struct playing playing = { .options = options, .file = -1 };
	uint64_t began_ns = now();
	bool good = make_ring(&playing, err) && start(&playing, err) && play(&playing, plan, err) &&
		    check_library(&playing, err);

	if (good)
		copy(&playing, run);
	run->took_ns = now() - began_ns;
	if (playing.pid) {
		kill(playing.pid, SIGKILL);
		has_ended(&playing, 0);
	}
	if (playing.ring)
		munmap(playing.ring, sizeof *playing.ring);
	if (playing.file >= 0)
		close(playing.file);
	return good;
}
