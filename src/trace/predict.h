// predict: where the next block of memory begins or ends, as far as earlier calls of the same
// block of events tell (docs/format.md, section 6.5).
//
// Allocators reuse what was freed last, cut blocks off a rest one after the other, and programs
// free in the order of allocation. So most addresses need no address: a *way* says which rule
// holds. Blocks that begin in a block of events, and blocks that end in it, are numbered from 0,
// each row by itself; blocks that ended wait in lists by size, the last one first, to be begun
// again. Where no rule holds, a number of either row may; else the way is PREDICT_FAR, and the
// address is there as a difference.
//
// The side that writes chooses among the ways that are right (predict_row); the side that reads
// follows the codes that it is given (trace/predict_follow.h) and searches for nothing. Both keep
// the same state, and a reader's is right whichever of the ways was chosen.
//
// Memory: 25 bytes for each event that a block of events may have, 32 KB, and for a writer 512 KB;
// for a reader 4 bytes an event more.
// One thread.
#pragma once

#include "trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PREDICT_SLOTS = 256,      // of threads
	PREDICT_ROWS = 16,        // of lists: of a thread is that of its id's remainder
	PREDICT_CLASSES = 256,    // of sizes, each of which has a list
	PREDICT_RESTS = 4,        // places after blocks that are remembered of a thread
	PREDICT_DEPTHS = 8,       // of a list that have ways
	PREDICT_STEP_MAX = 65536, // and no further
};

// Ways. Numbers are part of the format. These two are of any block:
enum {
	PREDICT_FAR = 1,      // its difference is written
	PREDICT_NUMBERED = 3, // its number is written
};

// Of a block that ends:
enum predict_ending {
	PREDICT_LATEST = 0, // the one that the thread began last
	PREDICT_NEXT = 2,   // the one begun after the one that the thread ended last
	PREDICT_STEP = 4,   // a step after the thread's last address, and nothing known of it
	PREDICT_ENDINGS = 5,
};

// Of one that begins:
enum predict_beginning {
	PREDICT_TOP = 0,      // where the last of its size ended that is left
	PREDICT_IN_PLACE = 2, // of a realloc: where the old one ends
	PREDICT_BEHIND = 4,   // and the next three: at a rest
	PREDICT_DEEPER = PREDICT_BEHIND + PREDICT_RESTS, // the second of its size, and so on
	PREDICT_BEGINNINGS = PREDICT_DEEPER + PREDICT_DEPTHS - 1,
};

// What is known of a thread.
struct predict_slot {
	uint64_t rest[PREDICT_RESTS]; // after blocks that no list predicted, the last first
	uint64_t step;                // the last short difference to a block that ended
	uint32_t latest;              // the number of the one begun last, plus one; 0: none
	uint32_t next;                // the number after that of the one ended last
	uint32_t take;                // the number after that of the one taken last
};

// A block that ended.
struct predict_place {
	uint64_t address;
	uint32_t older;     // in its list: the one that ended before, plus one; 0: none
	uint32_t left : 1;  // is it no longer in a list? Then it stays there until it is met.
	uint32_t spot : 31; // the reader's, of the address (trace/spots.h)
};

// What began and ended in this block of events. Who tells or follows many has a copy at hand.
// Numbers in `lists` and `older` are plus one, so that cleared memory is an empty list.
struct predict_blocks {
	uint32_t begun_count, ended_count;
	uint64_t *begun;      // where they began
	uint8_t *begun_class; // of their sizes
	uint32_t *begun_spot; // the reader's, as predict_place.spot; NULL for a writer
	struct predict_place *ended;
	uint32_t *lists; // of each row and class: the last one's number, plus one
};

// `turn` is written into each entry of the table and rises with each block of events, so that what
// is of an earlier block is not found: clearing 512 KB for each block would cost more than all its
// events. `wide` makes keys that equal nothing.
struct predict {
	uint32_t room; // for so many of either
	struct predict_blocks blocks;
	uint64_t *table;     // of a writer: address to number
	uint64_t turn, wide; // of the table
	uint32_t lists[PREDICT_ROWS * PREDICT_CLASSES];
	struct predict_slot slots[PREDICT_SLOTS];
};

// A way, and how far the number is that PREDICT_NUMBERED has; else 0.
struct predict_told {
	uint8_t way;
	uint32_t distance;
};

void predict_free(struct predict *predict); // NULL is allowed

// Begin a block of at most `events` events. `old` is of the block before, or NULL; returns what
// takes its place. `writes`: predict_row will be called, not predict_follow_….
struct predict *predict_renew(struct predict *old, uint32_t events, bool writes);

// Do addresses of this kind of event have ways? It begins a block, or ends one, or does both.
static inline bool predict_knows(uint8_t kind)
{
	return kind >= TRACE_MALLOC && kind <= TRACE_REALLOC_ALLOC;
}

static inline bool predict_ends(uint8_t kind)
{
	return kind == TRACE_FREE || kind == TRACE_REALLOC_FREE;
}

// ---- To write --------------------------------------------------------------------------------

enum {
	PREDICT_EVENTS_MAX = 128, // in a row
	PREDICT_ROOM_MAX = 65536, // events in a block of a writer
};

// Events of one thread, of kinds that predict_knows. What not all of them have is without
// gaps.
struct predict_row {
	uint32_t count, thread;
	const uint8_t *kind;
	const uint64_t *address;
	const uint64_t *old_address; // of TRACE_REALLOC
	const uint64_t *size;        // of those that begin a block
};

// Their ways, and what these need: numbers, and addresses that no way tells, as differences to the
// address of the event before.
struct predict_answer {
	uint32_t begun, moved; // so many sizes and old addresses were there
	uint32_t ways, numbers, far, old_far;
	uint8_t way[2 * PREDICT_EVENTS_MAX];         // of a realloc two: where it ends, and begins
	uint64_t number[2 * PREDICT_EVENTS_MAX + 1]; // in zigzag; the last one does not count
	uint64_t far_from[PREDICT_EVENTS_MAX];
	uint64_t old_far_from[PREDICT_EVENTS_MAX]; // of a realloc: where the old block ends
};

// `previous` is the address of the event before the first.
void predict_row(struct predict *predict, const struct predict_row *row, uint64_t previous,
		 struct predict_answer *answer);
