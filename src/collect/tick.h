// tick: the clock page.
//
// Guests take the time from memory, and the guests themselves keep it going: they read the
// processor's time stamp counter now and then, and raise the tick (wire/counter.h). The collector
// compares the counter with the system's clock whenever it wakes up, which also tells a guest after
// a pause that the tick is old. So an idle program costs nothing.
//
// Where the counter is not constant, or the system itself does not trust it, a thread writes the
// tick. It does nothing else, so that the time does not stop while a block is compressed.
//
// Whoever raises the tick counts how long it was, and the trace says so.
#pragma once

#include "base/err.h"
#include "collect/session.h"
#include "wire/segment.h"

#include <pthread.h>

// The clock of one recording. Guests and the collector share segment_clock; the rest is the
// collector's.
struct tick {
	struct session session;
	struct segment_clock *clock; // the session's; NULL: not open
	uint64_t period_ns;
	uint64_t first_count, first_ns; // what beats are compared with
	uint64_t later_count, later_ns; // and what they will be, once it is old enough
	uint64_t rate;                  // nanoseconds for each count, 32 bits after the point
	bool rate_settled;              // it comes from the base above
	pthread_t thread;               // only where the counter is of no use
	bool threaded;
	bool own_times;        // events have their own times, not the tick; the caller's
	_Atomic bool stopping; // the recording is over: the thread writes SEGMENT_CLOCK_STOP
	_Atomic bool quitting;
};

enum tick_source {
	TICK_ANY,    // the counter if it can be trusted, else a thread
	TICK_THREAD, // a thread
};

bool tick_open(struct tick *tick, uint64_t period_ns, enum tick_source source, struct err *err);
void tick_close(struct tick *tick); // accepts { 0 }

// Nanoseconds since the recording began, exactly.
uint64_t tick_now(const struct tick *tick);

// The time of what is recorded now: a tick behind at most, or exact, as events are. Whatever begins
// to be recorded from here on has no earlier one.
uint64_t tick_told(const struct tick *tick);

// A time of its own: all that was recorded has an earlier one, what is from here on a later one.
uint64_t tick_mark(const struct tick *tick);

// As tick_told, after the tick was raised to `now_ns` where guests raise it, too.
uint64_t tick_raise(const struct tick *tick, uint64_t now_ns);

// Tell all guests to record no more. Returns when they can see it.
void tick_stop(struct tick *tick);

// The tick stays as it is. For the figures below.
void tick_join(struct tick *tick);
uint64_t tick_median_ns(const struct tick *tick);
uint64_t tick_worst_ns(const struct tick *tick);

// The bell of the clock page: ring it, read it, sleep until it is not `seen` any more, or for
// `timeout_ns`. Before and after sleeping the guests learn what the counter means (a beat).
void tick_ring(struct tick *tick);
uint32_t tick_bell(const struct tick *tick);
void tick_sleep(struct tick *tick, uint32_t seen, uint64_t timeout_ns);
