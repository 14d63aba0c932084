// rss_snapshots: snapshots of the memory of traced processes: who asks for them, what they may
// cost, and where they are in the order.
//
// A guest asks before it gives much memory back while its resident memory is higher than at the
// last snapshot, and at its end (wire/segment.h, look_state); it waits meanwhile, and its lane says
// between which of its events it did. The collector itself takes one where resident memory has
// grown by half and nothing was given back; its place is between two passes.
//
// All of a recording together take at most a hundredth of its time (SEGMENT_RSS_EXACT: as much as
// they take), counted from the asking to the answer; half of that is for those that nobody asked
// for, and for children. What one will take is predicted from resident memory and from what others
// took. Where there is no time for one with smaps, it is taken without (proc_memory.h); where there
// is none for that either, it is missed, which is counted. The end of the program itself is looked
// at for a millisecond even so.
#pragma once

#include "collect/process_list.h"
#include "collect/reachability.h"

struct rss_snapshots {
	struct process_list *process_list; // borrowed
	const struct tick *tick;
	bool exact;
	struct reachability *reachability; // borrowed
	uint64_t after_ns;                 // as guests are to know it (look_after_ns of the clock)
	uint64_t spent_ns;
	uint64_t cost_permille
		[2]; // what they took, of what was predicted, in per mille: by pages, by smaps
};

void rss_snapshots_init(struct rss_snapshots *looks, struct process_list *process_list,
			const struct tick *tick, bool exact);

// An image has its place. A child that stays small is looked at when it ends, if at all: there may
// be thousands.
void rss_snapshots_welcome(struct image *image, bool child);

// Answer those that wait for a snapshot.
void rss_snapshots_serve(struct rss_snapshots *looks);

// After a pass: resident memory was sampled. Take what has grown; settle what was taken before.
void rss_snapshots_pass(struct rss_snapshots *looks);

// The guest's record of the beginning or end of its wait has its place now.
void rss_snapshots_begin(struct image *image);
void rss_snapshots_end(struct image *image);

// No more events of the image will come: tell its snapshot, if one is open, and its highest
// resident memory.
void rss_snapshots_finish(struct image *image);

// So many events are not in the trace any more: snapshots that are open are of smaller numbers.
void rss_snapshots_moved(struct rss_snapshots *looks, uint64_t left_out);
