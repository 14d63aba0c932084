// index_scan: goes through the steps of a window with the group of each.
//
// What sums cannot tell, and what asks for arbitrary groups, is found by going through all steps
// of the window: a few nanoseconds a step. Ends of processes take the level of their blocks down,
// at their steps.
#pragma once

#include "engine/index/index_ask.h"

// A step of a group, or what the end of a process does to it.
struct index_scan_step {
	uint64_t step;
	uint64_t time_ns;
	struct heap_amount amount; // one allocation; of exits, all that the group loses
	uint32_t group;            // below groups_count
	bool up;                   // a block begins; else it ends, or an exit takes what is left
	bool exit;
	bool last; // of its step: only then is a level one that was
};

// Steps of a block, one after the other, that have one time.
struct index_scan_run {
	uint64_t step;       // the first one
	const uint32_t *ops; // cell << 1 | ends, also of cells that are in no group
	uint32_t count;
	uint32_t ahead; // for so many of them the cell of INDEX_SCAN_AHEAD steps later is worth
			// fetching (index_scan_expect)
	uint64_t time_ns;
};
enum { INDEX_SCAN_AHEAD = 32 };

// What to go through, and what to do with each step. `visit` gets steps in their order, and ends of
// processes at their steps, in between.
struct index_scan {
	struct index *index;
	struct index_groups *groups;
	uint64_t from, to;
	uint32_t groups_count;    // higher groups are left out
	const uint32_t *wanted;   // by group: 0: left out; NULL: all are wanted
	bool single_exits;        // what an exit ends is counted one kind of allocation at a time
	bool all;                 // of all cells, as group 0: `groups` is not asked
	uint32_t *of_cell;        // private: the group of each cell; see index_scan_prepare
	bool found;               // private: some cell is in a group
	struct index_block *kept; // NULL, or where the last block is kept for the next scan
	uint64_t kept_number;     // + 1; 0: none is kept
	void *context;
	bool (*visit)(void *context, const struct index_scan_step *step); // false stops
	// NULL, or what is shown steps from blocks in place of `visit`. Not with `all`.
	void (*visit_run)(void *context, const struct index_scan *scan,
			  const struct index_scan_run *run);
};

// The group of a cell, or WINDOW_SKIP; for visit_run.
static inline uint32_t index_scan_group(const struct index_scan *scan, uint32_t cell)
{
	return scan->of_cell[cell];
}

// That, and the cell's size, will be asked for soon: begin to fetch them from memory.
static inline void index_scan_expect(const struct index_scan *scan, uint32_t cell)
{
	mem_expect(&scan->of_cell[cell]);
	cells_expect(&scan->index->cells, cell);
}

// Ask for the groups of all cells, once. Then parts of the window may be gone through by threads
// of their own, each with a copy of the scan (from, to, context), which call index_scan.
void index_scan_prepare(struct index_scan *scan);
// Not of the copies that threads have; `kept` and `groups` stay the caller's.
void index_scan_fini(struct index_scan *scan);

// Goes through the window; prepares it, if that was not done. False: the index cannot be read.
bool index_scan(struct index_scan *scan, struct err *err);

// The level of each group below `groups_count` at an edge, after exits. The caller frees it
// (mem_free). NULL: the index cannot be read.
struct heap_amount *index_scan_levels(struct index *index, const struct window_query *query,
				      uint64_t edge, size_t groups_count, struct err *err);

// The same of a scan that is prepared, by the numbers in `wanted`: that of number n is added to
// levels[n - 1].
bool index_scan_wanted_levels(const struct index_scan *scan, uint64_t edge,
			      struct heap_amount *levels, struct err *err);
