// session: the memory that all guests of a recording share with the collector, and its bell.
//
// On Linux the bell is a word of the clock page, on which one sleeps (a futex); on Windows it is
// an event beside it, and `fd` is a handle (they have 32 bits that count).
#pragma once

#include "base/err.h"
#include "wire/segment.h"

struct session {
	struct segment_clock *clock; // NULL: not open
	int fd;                      // of the memory, to be given to guests
	int bell;                    // Windows: the event's handle
};

// Zeroed memory.
bool session_open(struct session *session, struct err *err);
void session_close(struct session *session); // accepts { 0 }

// Wake who sleeps until the bell's word has changed.
void session_ring(const struct session *session);

// Sleep until it is not `seen` any more, or for `timeout_ns`.
void session_sleep(const struct session *session, uint32_t seen, uint64_t timeout_ns);

// Wake the guests that wait for this word of a segment.
void session_wake(_Atomic uint32_t *word);

// Does the system keep its own clock by the processor's counter?
bool session_counter_is_trusted(void);

// This thread writes ticks: wake it when it wants to be woken.
void session_be_punctual(void);
