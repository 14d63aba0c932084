// pauses: allocates now and then, and says when that was.
//
//     pauses
//
// 40 times: a rest of 3 ms, then one block of 7801 bytes; then 40 times: a rest, a burst of 2,000
// pairs of 7802 bytes, a rest, and one block of 7803 bytes. For each block of 7801 and 7803 bytes
// it prints a line: the size, and CLOCK_MONOTONIC before and after the call, in nanoseconds.
#include "guest.h"

#include <stdio.h>
#include <time.h>

enum { ROUNDS = 40, PAIRS = 2000 };

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static char text[2 * ROUNDS * 64];
static size_t length;

static void one(int size)
{
	long long before, after;

	usleep(3000);
	before = now();
	guest_keep((size_t)size);
	after = now();
	length += (size_t)snprintf(text + length, sizeof text - length, "%d %lld %lld\n", size,
				   before, after);
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++)
		one(7801);
	for (int i = 0; i < ROUNDS; i++) {
		usleep(3000);
		for (int k = 0; k < PAIRS; k++)
			guest_pair(7802);
		one(7803);
	}
	return write(STDOUT_FILENO, text, length) == (ssize_t)length ? 0 : 1;
}
