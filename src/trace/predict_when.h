// predict_when: whether the next block of events has its addresses predicted.
//
// To predict costs an event 4 to 10 nanoseconds more in the writer, by how much else is in the
// caches, and 3 in each reader. So it is done where addresses are expensive, where it is seen to
// help, and where events come so slowly that it takes at most PREDICT_WHEN_PERCENT of a processor's
// time. A block in which it did not help is followed by ever more that do without; now and then a
// block does without, so that what it saves is known.
//
// The first blocks do without: their trace is small in any case, and tables that are touched for it
// for the first time, some 2 MB, cost a short recording more than all their events.
//
// What is decided follows from the events alone, their times included.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	PREDICT_WHEN_COST_NS = 12,
	PREDICT_WHEN_PERCENT = 5,
	PREDICT_WHEN_EVENTS_MIN = 8192, // in a block that says something
	PREDICT_WHEN_BEFORE = 4,        // blocks of a recording that are without
	PREDICT_WHEN_BLOCKS_MAX = 32,   // in a row
	PREDICT_WHEN_WAIT_MAX = 63,     // blocks

	// Bytes of an event, in parts of PREDICT_WHEN_ONE: expensive where it is not done; and so
	// cheap where it is, that the block may be cheap without.
	PREDICT_WHEN_ONE = 256,
	PREDICT_WHEN_EXPENSIVE = PREDICT_WHEN_ONE * 3 / 2,
	PREDICT_WHEN_CHEAP = PREDICT_WHEN_ONE / 3,
};

// { 0 } before the first block, whose addresses are not predicted.
struct predict_when {
	bool on;        // of the block that is being filled
	uint32_t plain; // bytes of an event in the last block without, by PREDICT_WHEN_ONE
	// Blocks in a row that were predicted, up to PREDICT_WHEN_BLOCKS_MAX; then one does
	// without.
	uint32_t blocks;
	uint32_t before; // the first of the recording, up to PREDICT_WHEN_BEFORE
	// Blocks still to do without, and how many that was at the last failure: it doubles from 1
	// to 63.
	uint32_t wait, waits;
};

// A block was written: so many events, bytes, and nanoseconds in which events came
// (columns_encoder.busy_ns: where the program waits for a processor, there is none to spare).
// Returns when->on for the next.
bool predict_when(struct predict_when *when, uint32_t events, uint64_t bytes, uint64_t busy_ns);
