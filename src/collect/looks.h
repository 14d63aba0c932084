// looks: snapshots of the memory of traced processes: who asks for them, what they may cost, and
// where they stand in the order.
//
// A guest asks before it gives much memory back while its resident memory is higher than at the
// last snapshot, and at its end (wire/segment.h, look_state); it waits meanwhile, and its lane says
// between which of its events it did. The collector itself takes one where resident memory has
// grown by half and nothing was given back; its place is between two passes.
//
// All of a recording together take at most a hundredth of its time (SEGMENT_RSS_EXACT: as much as
// they take), counted from the asking to the answer; half of that is for those that nobody asked
// for, and for children. What one will take is foretold from resident memory and from what others
// took. Where there is no time for one with smaps, it is taken without (census.h); where there is
// none for that either, it is missed, which is counted. The end of the program itself is looked at
// for a millisecond even so.
#ifndef COLLECT_LOOKS_H
#define COLLECT_LOOKS_H

#include "collect/roster.h"

struct looks {
	struct roster *roster; // borrowed
	const struct tick *tick;
	bool exact;
	uint64_t spent_ns;
	uint64_t dear[2]; // what they took, of what was foretold, in per mille: by pages, by smaps
};

void looks_init(struct looks *looks, struct roster *roster, const struct tick *tick, bool exact);

// An image has its place. A child that stays small is looked at when it ends, if at all: there may
// be thousands.
void looks_welcome(struct image *image, bool child);

// Answer those that wait for a snapshot.
void looks_serve(struct looks *looks);

// After a pass: resident memory was sampled. Take what has grown; settle what was taken before.
void looks_pass(struct looks *looks);

// The guest's record of the beginning or end of its wait has its place now.
void looks_begin(struct image *image);
void looks_end(struct image *image);

// No more events of the image will come: tell its snapshot, if one is open, and its highest
// resident memory.
void looks_finish(struct image *image);

#endif
