// relay: pieces of work that one thread makes and another takes, in the order of their numbers.
//
// A thread beside the caller's makes them, some ahead of the one that is taken. For example, with
// `places` 3: while piece 5 is taken from place 2, 6 and 7 may be made, into places 0 and 1. Where
// there is no thread, or one piece alone, the caller makes and takes in turn.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct relay {
	// Makes a piece into a place, which is number % places; in one thread, which may be another
	// than the caller's. False: it cannot be done, and is not called again.
	bool (*make)(void *context, uint64_t number, unsigned place, struct err *err);
	// In the caller's thread. False: no more are wanted.
	bool (*take)(void *context, uint64_t number, unsigned place);
	void *make_context, *take_context; // borrowed
	unsigned places;                   // 1: nothing is made ahead, and there is no thread
	// Who waits is woken when so many were made, or are free: 1, or more where a piece takes
	// about as long as waking does. Below `places`, where there are several.
	unsigned wake;
};

// Pieces from .. to - 1. False if `make` is: all that was made before that is taken.
bool relay_run(const struct relay *relay, uint64_t from, uint64_t to, struct err *err);
