// index_read: single steps, times and counts out of an index.
//
// Everything that the questions of window.h are made of: blocks of steps, the time of a step,
// and (index_sums.c) the counts at an edge, and which lifetimes span a stretch of steps.
#pragma once

#include "engine/index/index.h"
#include "engine/index/index_bits.h"
#include "engine/index/index_events.h"

// How many of `each` bytes a question may keep, in a part of its memory that is 1 / `share`.
size_t index_room(const struct index *index, uint64_t share, size_t each);

// False, ERR_STOPPED: whoever asked does not want the answer any more.
bool index_go_on(const struct index *index, struct err *err);

// One block, decoded as far as was asked. `= { 0 }` is a valid one; keep it from load to load.
struct index_block {
	uint64_t first; // step
	uint32_t count;
	uint32_t *ops;    // cell << 1 | ends
	uint64_t *begins; // INDEX_LIVES: by step; of ends, where they began, 0: orphans
	// INDEX_ENDS: all but orphans, in two lists, each in the order of steps
	struct index_events_near *near; // of what began in the same stretch
	struct index_ended *far;        // of all else
	struct index_run *runs;         // INDEX_TIMES
	struct index_run *jumps;        // INDEX_JUMPS
	uint32_t near_count, far_count, runs_count, jumps_count;
	uint8_t *bytes; // private
	size_t ops_capacity, begins_capacity, near_capacity, far_capacity, runs_capacity,
		jumps_capacity, bytes_capacity;
};

// What of a block is wanted besides its words, as a set; each fills the members that name it.
enum { INDEX_LIVES = 1, INDEX_TIMES = 2, INDEX_JUMPS = 4, INDEX_ENDS = 8 };

void index_block_fini(struct index_block *block);

// Decode block `number`; every cell in it is one that the index has, every beginning is before its
// end. `number` is of a block that is there. What an earlier load left in members that are not
// asked for means nothing.
bool index_block_load(struct index *index, uint64_t number, unsigned what,
		      struct index_block *block, struct err *err);

// The words of `count` steps from `first` on, all of one block and there: `first`, `count`, `ops`.
bool index_block_part(struct index *index, uint64_t first, uint32_t count,
		      struct index_block *block, struct err *err);

// Its numbers of events alone: `first`, `count` and `jumps`.
bool index_block_jumps(struct index *index, uint64_t number, struct index_block *block,
		       struct err *err);

// The time of a step, kept for those that ask again nearby. `= { 0 }` is a valid clock.
struct index_clock {
	struct index_clock_block **blocks;
	size_t blocks_count;
	uint64_t bytes;                 // a sixteenth of the index's memory at most
	uint64_t first, steps, time_ns; // what was asked for last, and so many steps, have one time
};

void index_clock_fini(struct index_clock *clock);
// The time of a step; of those after the last, that of the last. A list of beginnings has many of
// one tick in a row: these are not looked up.
bool index_clock_find(struct index_clock *clock, struct index *index, uint64_t step,
		      uint64_t *time_ns, struct err *err);
static inline bool index_clock_time(struct index_clock *clock, struct index *index, uint64_t step,
				    uint64_t *time_ns, struct err *err)
{
	*time_ns = clock->time_ns;
	return step - clock->first < clock->steps ||
	       index_clock_find(clock, index, step, time_ns, err);
}

// The first step whose time is later.
bool index_clock_edge(struct index_clock *clock, struct index *index, uint64_t time_ns,
		      uint64_t *edge, struct err *err);

// Edges of times that rise from call to call. `= { 0 }` is a valid one.
struct index_edges {
	struct index_run *runs; // of block `number`
	size_t capacity;
	uint32_t count, at; // at: the first run that is later than the last time
	uint64_t number;
	uint64_t last_ns;
};

void index_edges_fini(struct index_edges *edges);

// As index_clock_edge, in constant time on average if times rise.
bool index_edges_next(struct index_edges *edges, struct index *index, uint64_t time_ns,
		      uint64_t *edge, struct err *err);

// The number of the event of a step; UINT64_MAX: none. `kept` has the numbers of the block that was
// asked for last: { 0 } before the first question, and the caller's to end.
bool index_number(struct index *index, struct index_block *kept, uint64_t step, uint64_t *number,
		  struct err *err);

// Counts at an edge, by cell: that of cell c is `stride` * c bytes from the first, as several of
// each cell may be kept together. All are 0 before. The snapshot nearest to the edge is read,
// and the steps between it and the edge are gone through, forwards or back. The count of cell 0
// stays 0.
bool index_counts(struct index *index, uint64_t edge, struct index_count *counts, size_t stride,
		  struct err *err);

// Sums of one site at the last snapshot that is not later than an edge, and that one's step.
// Without one *step is 0, and so is all.
bool index_site_sums(struct index *index, uint32_t site, uint64_t edge, struct bits_sums *sums,
		     uint64_t *step, struct err *err);

// Sums at an edge, by site: those of the nearest snapshot, and by how much they change on the way
// to the edge. Changes are found first, all over, into the caller's table of all sites; snapshots
// are read in the order of sites, some at a time, so that they take no memory.
struct index_shift {
	int32_t begun, alive, begun_bytes, alive_bytes;
};
struct index_shifts {
	const struct index_snapshot *snapshot; // borrowed; NULL: the beginning of all
	struct index_shift *near;              // borrowed; by site
	struct bits_sums *far;                 // added: bytes too large for those; NULL: none are
	uint32_t sites_count;
};
bool index_shifts_load(struct index_shifts *shifts, struct index *index, uint64_t edge,
		       struct index_shift *near, struct err *err);
void index_shifts_fini(struct index_shifts *shifts);

// Reads on from site 0. `shifts` is borrowed. NULL: the index is damaged.
struct index_sums *index_sums_new(struct index *index, const struct index_shifts *shifts,
				  struct err *err);
void index_sums_free(struct index_sums *sums); // NULL is allowed
// The sums of the next `count` sites, which must be there: a multiple of BITS_GROUP, but for the
// last.
bool index_sums_next(struct index_sums *sums, struct bits_sums *out, uint32_t count,
		     struct err *err);

// Visit what began before `from` and did not end before `to` (to >= from): of each, its cell, its
// beginning and end (WINDOW_NEVER). Those whose lifetime is shorter than 2^long_log2 steps are
// found by scan of as many steps after `to`, and only if there can be any. `visit` returns false to
// stop. What nothing ended comes last, by rising beginnings; now and then `enough` (if there is
// one) is asked before it goes on from a step, and returns true to stop.
struct index_visitor {
	void *context;
	bool (*visit)(void *context, uint32_t cell, uint64_t begin, uint64_t end);
	bool (*enough)(void *context, uint64_t step);
};
bool index_spanning(struct index *index, uint64_t from, uint64_t to,
		    const struct index_visitor *visitor, struct err *err);

// The same as counts by cell, each `stride` bytes from the next, that are added to; what nothing
// ends comes from its own sums.
bool index_spanning_counts(struct index *index, uint64_t from, uint64_t to, uint32_t *counts,
			   size_t stride, struct err *err);

// As index_spanning, of sums by site: the visitor is shown what no sums tell, `sums` is added to.
bool index_spanning_sums(struct index *index, uint64_t from, uint64_t to, struct heap_amount *sums,
			 const struct index_visitor *visitor, struct err *err);

// How many long lifetimes a block of a class has, which is there; and they: any cells, any steps.
uint32_t index_longs_in(const struct index *index, unsigned class, size_t block);
bool index_longs_read(struct index *index, unsigned class, size_t block, struct index_long *list,
		      struct err *err);

// Entries of a file of levels from one on, to the end of its block. Returns how many; 0: damage.
uint32_t index_levels_read(struct index *index, unsigned file, uint64_t first,
			   struct index_level list[PACK_GROUP], struct err *err);

// Sets *err; false.
bool index_levels_damaged(struct err *err);

// Entries of `never`, which are there: live_table_value(step, cell), rising; any cells.
bool index_never_read(struct index *index, uint64_t first, size_t count, uint64_t *values,
		      struct err *err);

// How many entries of `never` began before a step.
bool index_never_at(struct index *index, uint64_t before, uint64_t *entries, struct err *err);

// Visit what ended in [from, to), whenever it began. Orphans are not visited: their beginning is
// not known.
bool index_ending(struct index *index, uint64_t from, uint64_t to,
		  const struct index_visitor *visitor, struct err *err);

// The same of those blocks that are marked, from that of `from` on; NULL: of all.
bool index_ending_in(struct index *index, uint64_t from, uint64_t to, const uint8_t *marks,
		     const struct index_visitor *visitor, struct err *err);
