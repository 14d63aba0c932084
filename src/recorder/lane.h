// lane: one thread's stream of events, and the only door into the recorder.
//
// Guest rules (ARCHITECTURE.md, "Being a guest"): all of this runs inside somebody else's malloc.
// No allocation, no lock, no stdio, no abort, and errno is left as it was found.
//
// A lane is a ring in the segment (wire/lane_event.h) and a private part here: where the next
// event goes, what the last one looked like, and the last stack. A lane belongs to one thread at a
// time; when the thread is dead another one takes it over with all its decoding state. A thread
// that has none, whose lane is full, wiped by fork, or busy (a signal handler that allocates while
// the interrupted code was recording) finds `limit` too low and takes the slow way, which hands
// out a lane, waits for room, or, for the signal handler, opens a second lane of the same thread.
// So does one that has to look at the clock (clock.h).
//
// For example, a thread calls malloc: its lane is entered (busy is set, the tick is looked at),
// the event is appended at lane->head, and leaving publishes the new head for the collector. A
// signal handler that interrupts this and calls malloc finds the lane busy: it takes another one
// for what it does, and events of both have their own order. What can have neither is counted as
// dropped.
#pragma once

#include "recorder/capture.h"
#include "recorder/clock.h"
#include "recorder/recording.h"
#include "recorder/sample.h"

// Heaps of a lane that are found by a hash of their handle; one that another has taken the place of
// gets a new number when it is used again.
enum { LANE_HEAPS_KNOWN = 32 };

// A heap that has a number in the lane.
struct lane_heap {
	uint64_t handle; // 0: none
	uint32_t flags;  // of calls
	uint32_t number;
};

// Windows: a call on a heap that an exception has interrupted, while its handler runs: what the
// fields of the same name in struct lane were.
struct lane_call {
	uintptr_t inside, reallocated;
	size_t asked;
};

// Handlers that interrupt each other, of which the outer ones' calls are kept.
enum { LANE_CALLS_MAX = 4 };

// What a lane's own thread needs, beside the ring. No other thread looks at it while the thread
// lives, but for `tid`, by who searches for lanes of the dead (under lanes_lock). It is never given
// back. What hooks read before they know whether the thread has a lane comes first: of
// `lane_nobody_words` these are zero.
struct lane {
	uint64_t head;                // bytes written since the lane began
	uint64_t limit;               // for one event head must stay LANE_ROOM below; 0: busy
	uint64_t open_limit;          // what `limit` is while the lane is not busy
	uint8_t *ring;                // mapped twice, end to end
	uint64_t mask;                // ring size - 1
	uint64_t address;             // of the last event
	uint64_t time_ns;             // of the last event
	uint64_t id;                  // 1..
	struct lane_shared *shared;   // in the segment: what the collector looks at
	const _Atomic uint64_t *tick; // what time it is: the session's tick, or exact_ns
	uint64_t *owners;             // the process's ownership table (order.h)
	struct lane_check *verify;    // of SEGMENT_VERIFY, else NULL
	union {
		struct {
			bool free_stacks;  // SEGMENT_FREE_STACKS: frees have a stack too
			bool of_languages; // it has had events of heaps of a language
		};
		uint16_t frees_seldom; // either
	};
	bool between;                 // busy, but in the real realloc: its VM calls go here
	bool exact;                   // --clock=ns
	_Atomic uint64_t exact_ns;    // then, the time of the event in the making
	uint64_t room;                // limit but for the clock's sake
	struct clock clock;           // when it reads the processor's counter next
	uint64_t heap;                // whose blocks the events are of
	uint32_t heap_flags;          // Windows: and what calls that allocate are given
	uintptr_t inside;             // Windows: the outermost hook of a heap that is being called
	size_t asked;                 // Windows: by it, if it allocates
	struct sample_way sample_way; // Windows: to the next sample
	uintptr_t reallocated;        // Windows: a block whose realloc has not come back
	struct python_stack *python;  // NULL: nothing is known
	struct lane *inner;           // for events of a signal handler that interrupted this lane
	uint32_t tid;                 // who holds it; 0: that thread has ended
	uint32_t level;               // 0: a thread's first lane, 1: its inner one …
	uint32_t heaps_count;         // Windows: that were numbered
	struct lane_heap heaps[LANE_HEAPS_KNOWN];     // Windows: some of them
	struct lane_call interrupted[LANE_CALLS_MAX]; // Windows: the last is the innermost
	uint32_t interrupted_count;                   // Windows: calls on heaps that are to go on
	struct capture *asked_walk; // the stack of a call that may be nested (inside_linux.c)
	struct capture capture;     // the last stack, and what is known of earlier ones
};

// An edit that has a number: how many frames stay, how many are pushed, and those.
struct lane_check_edit {
	uint32_t keep, push;
	uint32_t ids[LANE_EDIT_FRAMES];
};

// A whole stack that has a number: its frames, outermost first.
struct lane_check_whole {
	uint32_t depth;
	uint32_t ids[LANE_WHOLE_FRAMES];
};

// What SEGMENT_VERIFY compares the lane's stack with.
struct lane_check {
	struct capture walked; // by a walk that uses nothing of what is known
	// What a reader makes of the edits.
	uint32_t depth;
	uint32_t ids[LANE_DEPTH_MAX];
	struct lane_check_edit numbered[LANE_EDITS];
	struct lane_check_whole wholes[CAPTURE_WHOLES];
};

enum {
	LANE_ROOM = 128,     // bytes that one event needs at most, without its stack
	LANE_AHEAD = 256,    // bytes: the part of the ring that is asked for early
	LANE_LEVELS_MAX = 4, // lanes of a thread that may be busy, before it begins again
};

// What a thread has before its first event: a struct lane's head, all zero. It stays so. Its limit
// is 0, so that whoever enters it takes the slow way.
HIDDEN extern uint64_t lane_nobody_words[32];
_Static_assert(offsetof(struct lane, inner) <= sizeof(lane_nobody_words),
	       "what hooks look at before they have a lane");

#ifdef KERNEL_NT

// The thread's own lane, or the one that is nobody's.
static inline struct lane *lane_get_mine(void)
{
	struct lane *lane = kernel_get_own();

	return likely(lane) ? lane : (struct lane *)(void *)lane_nobody_words;
}

// The calling thread's lane from here on, for events of its own and of signal handlers in it.
static inline void lane_set_mine(struct lane *lane)
{
	kernel_set_own(lane);
}

#else

// Initial-exec (meson.build): any other model may call malloc on first use.
HIDDEN extern __thread struct lane *lane_mine;

static inline struct lane *lane_get_mine(void)
{
	return lane_mine;
}

static inline void lane_set_mine(struct lane *lane)
{
	lane_mine = lane;
}

#endif

// The slow way in, for `lane`, which is the thread's own or nobody's: a lane that has room, or NULL
// when this event cannot be recorded, which is counted. It may read the clock, wait for the
// collector, or begin the recording.
HIDDEN struct lane *lane_enter_slow(struct lane *lane);

// Before a process is sealed (kernel.h): `spare` lanes for threads to come, as far as there is
// memory. `strict`: the processor's counter cannot be read either.
HIDDEN void lane_prepare(bool strict, uint32_t spare);

// Before the caller begins a thread: a lane is ready for it, if there is one more. What its first
// event would do else (a ring is mapped) is done here. It may be a dead thread's.
HIDDEN void lane_make_ready(void);

// In a forked child: the thread has no lane yet, whatever it had in its parent.
HIDDEN void lane_forget(void);

// For a busy lane: wait until `bytes` more than LANE_ROOM fit. False: they never will (the event is
// dropped).
HIDDEN bool lane_wait_room(struct lane *lane, uint64_t bytes);

// Enter the recorder. NULL means: do nothing. The lane is busy until lane_leave. What it returns is
// this thread's until then.
static inline struct lane *lane_enter(void)
{
	for (;;) {
		struct lane *lane = lane_get_mine();

		if (unlikely(lane->head + LANE_ROOM > lane->limit)) {
			lane = lane_enter_slow(lane);
			if (!lane)
				return NULL;
		}
		lane->limit = 0;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (likely(lane->head + LANE_ROOM <= lane->room))
			return lane;
		lane->limit = lane->open_limit; // a signal handler took the room in between
	}
}

// One more stack that is not proven to reach the root, for the report. Only the lane's own thread
// counts there.
static inline void lane_count_incomplete(struct lane *lane)
{
	_Atomic uint32_t *count = &lane->shared->stacks_incomplete;

	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

// Where the record at `head` goes, which is the lane's.
//
// The collector's processor has read the ring since it was last written, and so has its lines: who
// stores to one waits until it is had back, or until the processor has no room for more stores that
// wait. So a line some records ahead is asked for now, to be written (a plain prefetch is for
// reading: the store would wait all the same). What may be there instead, where the ring is mapped
// once, is not touched: no prefetch faults.
static inline __attribute__((always_inline)) uint8_t *lane_at(const struct lane *lane,
							      uint64_t head)
{
	uint8_t *start = lane->ring + (head & lane->mask);

	__asm__ volatile("prefetchw %0" : : "m"(start[LANE_AHEAD]));
	return start;
}

// Publish what was written from `start`, the lane's head, up to `at`: whole records only. From here
// on the collector may read them, also if the process is killed. The lane stays busy.
static inline void lane_publish(struct lane *lane, const uint8_t *start, const uint8_t *at)
{
	uint64_t head = lane->head + (uint64_t)(at - start);

	lane->head = head;
	__atomic_store_n(&lane->shared->head, head, __ATOMIC_RELEASE);
}

// Publish, and let others in. With `at` == `start` nothing is published.
static inline void lane_leave(struct lane *lane, const uint8_t *start, const uint8_t *at)
{
	lane_publish(lane, start, at);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lane->limit = lane->open_limit;
}
