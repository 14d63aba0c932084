// window_alive: which events began what lives at a moment, from the index.
//
// So who follows blocks from a moment on (lives.h) need not follow what came before: of all earlier
// events only these say something of what may still end. For example:
//
//     0  malloc A     1  malloc B     2  free A     the moment     3  free B
//
// `number` is 3, and of the events 0, 1 and 2 only 1 is set.
//
// It costs what lives at the moment, and a bit for each event before it.
#pragma once

#include "engine/moment.h"
#include "engine/window.h"

// `= { 0 }` is of a moment before all events.
struct window_alive {
	uint64_t *bits;  // by number of an event; owned
	uint64_t number; // there are so many bits; of the events from it on, none that is before
			 // the moment began or ended a block
	uint64_t count;  // that are set
	uint64_t most;   // from the moment on no more of those lived at one time
};

// What is asked: `from` and `to` (NULL: the trace's beginning, its end).
struct window_alive_wish {
	const struct moment_edge *from, *to;
	bool ended;      // only of blocks that end before `to`
	bool exit_frees; // what a process left is gone with it
};

// False: there is no index that says it, of each event just what the trace says; or it is damaged.
bool window_alive_find(struct window_alive *alive, struct window *window,
		       const struct window_alive_wish *wish);
void window_alive_fini(struct window_alive *alive); // accepts { 0 }

static inline bool window_alive_has(const struct window_alive *alive, uint64_t number)
{
	return number < alive->number && alive->bits[number / 64] >> number % 64 & 1;
}

// The first from `number` on that is set, or the last before the moment, so that who goes from one
// to the next comes to the moment. UINT64_MAX: all are before `number`.
uint64_t window_alive_next(const struct window_alive *alive, uint64_t number);
