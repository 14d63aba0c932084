// index_stripes: the figures of all sites of an index, found by one thread and taken by another.
//
// Figures are found in the order of sites, a stripe of INDEX_STRIPE sites at a time, in a thread
// beside the caller's, some stripes ahead of it. Where there is no thread, the caller's finds them.
#pragma once

#include "base/err.h"
#include "engine/window.h"

#include <stdbool.h>
#include <stdint.h>

enum { INDEX_STRIPE = 1 << 10 };

// What a window has of one site, or of one cell.
struct index_figures {
	struct heap_amount begun;    // in the window; of orphans, how many there are
	struct heap_amount from, to; // alive at its edges
	struct heap_amount stay;     // alive at `from` and not ended before `to`
};

static inline void index_figures_add(struct index_figures *sum, const struct index_figures *more)
{
	window_add(&sum->begun, more->begun);
	window_add(&sum->from, more->from);
	window_add(&sum->to, more->to);
	window_add(&sum->stay, more->stay);
}

struct index_stripes {
	// The figures of sites first .. first + count - 1, called for stripes that follow each
	// other, in one thread, which may be another than the caller's. `count` is INDEX_STRIPE but
	// for the last. False: it cannot be done, and is not called again.
	bool (*find)(void *context, uint32_t first, uint32_t count, struct index_figures *figures,
		     struct err *err);
	// In the caller's thread, in the same order.
	void (*take)(void *context, uint32_t first, uint32_t count,
		     const struct index_figures *figures);
	void *find_context, *take_context; // borrowed
};

// All sites from 0 to `end` - 1. False if `find` is. All that was found before that is taken. Of
// one stripe, or where no thread can be made, both are called in turn.
bool index_stripes_run(const struct index_stripes *stripes, uint32_t end, struct err *err);
