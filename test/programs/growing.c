// Runs for about two seconds, in steps of 1.2 ms, and
//   * forgets 200 bytes in each step, through leak_session: it grows to the end;
//   * keeps the first 400 different things it is asked for, through cache_look_up: asked in an
//     order that meets them all within a third of the time, it levels off at 400 blocks of 512;
//   * fills a batch of 10 blocks of 4,096 bytes and empties it again, through fill_batch: it does
//     not grow;
//   * every 250 steps works on a buffer of 8 MiB for some milliseconds, through with_buffer: equal
//     buffers of one site, one at a time.
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 1600, CACHE = 400, BATCH = 10, BUFFER = 8 << 20, STEP_NS = 1200000 };

static void *cache[CACHE];
static void *batch[BATCH];
static int batch_count;
static void **kept;

__attribute__((noinline)) static void leak_session(int step)
{
	kept[step] = malloc(200);
}

__attribute__((noinline)) static void cache_look_up(int step)
{
	int key = (int)((unsigned)step * 7919u % CACHE);

	if (!cache[key])
		cache[key] = malloc(512);
}

__attribute__((noinline)) static void fill_batch(void)
{
	if (batch_count == BATCH) {
		while (batch_count)
			free(batch[--batch_count]);
	}
	batch[batch_count++] = malloc(4096);
}

static void pass_time(long milliseconds)
{
	struct timespec time = { 0, milliseconds * 1000000 };

	nanosleep(&time, NULL);
}

// Steps are due at fixed times: who was held up catches up, so that the rate stays what it is.
static void wait_until_due(struct timespec *due)
{
	due->tv_nsec += STEP_NS;
	if (due->tv_nsec >= 1000000000) {
		due->tv_nsec -= 1000000000;
		due->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
}

__attribute__((noinline)) static void with_buffer(void)
{
	char *buffer = malloc(BUFFER);

	memset(buffer, 1, 4096);
	pass_time(5);
	free(buffer);
}

int main(void)
{
	struct timespec due;

	clock_gettime(CLOCK_MONOTONIC, &due);
	kept = calloc(STEPS, sizeof *kept);
	for (int step = 0; step < STEPS; step++) {
		leak_session(step);
		cache_look_up(step);
		fill_batch();
		if (step % 250 == 200)
			with_buffer();
		wait_until_due(&due);
	}
	return 0;
}
