// tick: the clock page, and the thread that writes it.
//
// Guests read the time from memory instead of asking the kernel. The thread does nothing else, so
// that the time does not stand still while a block is compressed; it measures how long its ticks
// really are, and the trace says so.
#ifndef COLLECT_TICK_H
#define COLLECT_TICK_H

#include "base/err.h"
#include "wire/segment.h"

#include <pthread.h>

enum { TICK_BUCKETS = 4096 };

struct tick {
	struct segment_clock *clock; // NULL: not open
	int fd;                      // the clock page's file, to be given to guests
	uint64_t period_ns;
	pthread_t thread;
	_Atomic bool stopping; // the recording is over: write SEGMENT_CLOCK_STOP
	_Atomic bool quitting;
	uint32_t lengths[TICK_BUCKETS]; // ticks of that many microseconds; the thread's
	uint64_t worst_ns;              // the thread's
};

bool tick_open(struct tick *tick, uint64_t period_ns, struct err *err);
void tick_close(struct tick *tick); // accepts { 0 }

// Nanoseconds since the recording began, exactly.
uint64_t tick_now(const struct tick *tick);

// Tell all guests to record no more. Returns when they can see it.
void tick_stop(struct tick *tick);

// The thread ends; the page stays as it is. For the figures below.
void tick_join(struct tick *tick);
uint64_t tick_median_ns(const struct tick *tick);
uint64_t tick_worst_ns(const struct tick *tick);

// The bell of the clock page: ring it, read it, sleep until it is not `seen` any more, or for
// `timeout_ns`.
void tick_ring(struct tick *tick);
uint32_t tick_bell(const struct tick *tick);
void tick_sleep(struct tick *tick, uint32_t seen, uint64_t timeout_ns);

#endif
