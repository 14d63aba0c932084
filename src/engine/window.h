// window: what happened to memory between any two places of a trace.
//
//     window_open                    builds the index where there is none (see window_options)
//       window_edge_at, _marks       places: from times, from marks
//       window_ask                   rows: four classes of allocations by any grouping
//       window_detail                peaks, times and lifetimes of some of those rows
//       window_walk, window_fetch    single allocations
//       window_timeline, _series     levels over time (window_series.h)
//     window_close
//
// Places. All that happens in a trace is numbered from 1, in its order: these are *steps*. A
// realloc is two (an end, a beginning); whatever concerns no block is one that does nothing. An
// *edge* is between steps: edge e is before step e, and a window [from, to) holds the steps
// from <= step < to. So windows that touch add up, and a coarse clock harms nothing.
// window_edge_at(T) is the edge after the last step whose time is <= T: in time a window is
// (from, to], and a tick is never split. A mark's edge is exact in the order of steps. The baseline
// (what was there when the recording began) has step 0: WINDOW_START is after it.
//
// Allocations. One lifetime each, begun by one step and ended by one or by none:
//
//     AIFI  begun in the window, ended in it            transient
//     AIFO  begun in the window, not ended in it        impacting, +size
//     AOFI  begun before the window, ended in it        impacting, -size
//     AOFO  begun before the window, not ended in it    persistent
//
// so that AIFO - AOFI = what lives at `to` - what lives at `from`, in each row. A realloc ends one
// lifetime and begins another; one that failed changes nothing, whether or not its halves are apart
// in the trace (TRACE_REALLOC_UNDO). An allocation where a block already lives ends that one
// (WINDOW_END_LOST). Blocks that a forked process inherited, and their ends,
// are in nobody's figures.
//
// When a process exits or execs, its blocks leave the *level*: timelines and peaks. The classes
// take them for outstanding still, unless `exit_frees`.
//
// Layers never add up: WINDOW_HEAP are blocks of malloc and of heaps, in bytes asked for;
// WINDOW_VM are bytes committed. An allocation of the VM layer is one piece of a range: a range
// that is released in two parts was two allocations from its beginning on (space.h).
//
// A *cell* is all allocations alike in process, thread, heap, owner, stack and size; a *site* is
// the same without the size. Filters and groupings are functions of a cell, asked once for each
// and never again for each allocation. Costs follow cells, sites and the blocks that outlive the
// window, not the steps in it, except where a function says "by scan".
//
// One thread at a time. The engine knows no names.
#pragma once

#include "base/err.h"
#include "base/progress.h"
#include "engine/replay/heap.h"
#include "trace/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Kinds of memory, as bits of a set.
enum window_layer { WINDOW_HEAP = 1, WINDOW_VM = 2 };

#define WINDOW_START UINT64_C(1) // the edge before the first step
#define WINDOW_NEVER UINT64_MAX  // the step of an end that did not come
#define WINDOW_SKIP UINT32_MAX   // the group of what the query leaves out

// What allocations of one kind have in common.
struct window_cell {
	process_id process;
	thread_id thread; // that allocated; of orphan frees, that freed
	stack_id stack;   // of the allocation; 0: none
	heap_id heap;     // 0: malloc's, or VM
	uint8_t layer;    // enum window_layer, one bit
	uint8_t owner;    // VM: enum space_owner (space.h)
	bool orphans;     // not allocations but frees of addresses where nothing was known to live;
			  // these have no stack
	uint64_t size;    // bytes; 0 where a query that asked by site must not look
};

// What an allocation is to a window, as described above: Allocated Inside or Outside of it, Freed
// Inside or Outside.
enum window_type { WINDOW_AIFI, WINDOW_AIFO, WINDOW_AOFI, WINDOW_AOFO, WINDOW_TYPES };

// How an allocation ended.
enum window_end {
	WINDOW_END_NEVER,
	WINDOW_END_FREE,    // by a call
	WINDOW_END_REALLOC, // by a realloc, which began another (given by window_fetch only)
	WINDOW_END_LOST,    // unseen: its address was given out again (given by window_fetch only)
	WINDOW_END_DESTROY, // its heap was destroyed or reset
	WINDOW_END_EXIT,    // its process exited: see exit_frees
	WINDOW_END_EXEC,    // the same, exec
};

struct window_options {
	const char *index_path; // NULL: beside the trace, in the user's cache directory, temporary
	uint64_t memory_bytes;  // for building and asking. Too little: ERR_LIMIT. 0: 256 MiB, or
				// what its stacks and kinds of allocations need, up to a quarter of
				// what the machine has
	bool keep;              // tables of one question for the next, see window_ask
	bool rebuild;           // whatever index there is
	bool existing;          // one that is there, or none: window_open builds nothing
	bool always;            // of a small trace too, which needs none
	bool plain; // no index: all lifetimes in memory, every answer by going through them. For
		    // small traces and for tests, where it is what the index must agree with.
		    // More than memory_bytes of them: ERR_LIMIT
	enum progress_mode progress;
	// Asked now and then while building (NULL: no): true stops, with ERR_STOPPED "interrupted".
	bool (*stop)(void *context);
	// Given what the user should know before long work: temporary disk needed, an index that
	// belongs to another trace (NULL: nobody).
	void (*say)(void *context, const char *text);
	void *context;
};

// What is given, or what is meant where nothing is.
uint64_t window_memory_of(const struct window_options *options);

// Opens the index of the trace that `reader` reads from `trace_path`, and builds it first where
// it is missing, unfinished, stale or damaged. `reader` is borrowed until window_close, and is
// moved: rewound, scanned, read. NULL on failure, and where options->existing has nothing to open:
// then *err says nothing that anybody needs to hear.
struct window *window_open(const char *trace_path, struct reader *reader,
			   const struct window_options *options, struct err *err);
void window_close(struct window *window); // NULL is allowed

// Whether window_open has no index to build, as far as a look at its beginning tells: it is there,
// or the trace needs none. The reader has its heads scanned, and is good for nothing else.
bool window_is_ready(const char *trace_path, struct reader *reader,
		     const struct window_options *options);

// The same once more, for another thread and with a reader of its own: what was built or opened is
// shared. `window` is borrowed: close it last.
struct window *window_share(const struct window *window, struct reader *reader);

// From now on a question keeps no more than so much that grows with the trace; 0: what the window
// was opened with. What does not fit is found in more passes, or is ERR_LIMIT.
void window_memory(struct window *window, uint64_t memory_bytes);

// With window_options.keep: so many of those that share the window are asked, and so many others
// are not. Large tables, used and kept, may take all that the latter may, and three eighths of what
// the former may.
void window_tables(struct window *window, unsigned asked, unsigned idle);

// Large tables that a question keeps for the next one are freed: something else needs the memory.
void window_drop_tables(struct window *window);

// From now on long questions ask `stop` now and then, perhaps from threads of their own: true ends
// them, with ERR_STOPPED. NULL: nobody is asked.
void window_stop(struct window *window, bool (*stop)(void *context), void *context);

// Build the index of a trace that is still being written, behind its writer, and finish it with
// the trace. `more` (of options->context) is asked wherever the trace ends so far: it waits a
// while, and returns false once nothing will be added any more. Stopped by `stop`, what is done is
// kept, and window_open goes on from there.
bool window_follow(const char *trace_path, const struct window_options *options,
		   bool (*more)(void *context), struct err *err);

// The whole trace at a glance.
struct window_facts {
	uint64_t steps_end;   // the edge after the last step
	uint64_t duration_ns; // time of the trace's last item
	uint64_t calls;       // recorded memory calls (trace_kind_is_call)
	uint64_t orphans, inherited, lost;
	uint64_t cells, sites;
	unsigned layers;            // that the trace has any of
	bool threads_folded;        // more threads than cells tell apart: questions by thread scan
	uint64_t index_bytes;       // on disk; 0: none
	uint64_t memory_bytes;      // that there is for questions, see window_options
	struct heap_amount peak[3]; // by layer's bit: the highest level in bytes, count of then
	uint64_t peak_edge[3];      // the edge after the step that first reached it
};
const struct window_facts *window_facts(const struct window *window);

// A file for what does not fit in memory: beside the index where that can be, else where the system
// has its temporary files. The caller closes it (spill.h).
struct spill;
bool window_spill(const struct window *window, struct spill *spill, size_t buffer_bytes,
		  struct err *err);

// Edges. The time of an edge is that of the last step before it (0: none).
uint64_t window_edge_at(struct window *window, uint64_t time_ns);
uint64_t window_edge_time(struct window *window, uint64_t edge);

// Whether the steps before and after an edge are of one event, as the end and the beginning of a
// realloc are: the level at that edge was never there. Cheap where edges rise from call to call.
bool window_edge_splits(struct window *window, uint64_t edge);

struct window_mark {
	const char *name;
	process_id process;
	thread_id thread;
	uint64_t time_ns;
	uint64_t edge;
};

// In the trace's order. The array belongs to `window`.
const struct window_mark *window_marks(const struct window *window, size_t *count);

struct window_query {
	uint64_t from, to;       // edges; from == to: only what lives there, as AOFO
	uint64_t from_ns, to_ns; // where buckets begin and end (window_series.h); both 0: the
				 // edges' own times
	unsigned layers;         // set of enum window_layer; 0: WINDOW_HEAP
	bool exit_frees;         // the end of a process ends its blocks
	bool by_size;            // `group` looks at the size. Without, it is asked once per site
	bool by_size_alone;      // `group` looks at the size and at `orphans`, and at nothing else
	uint64_t size_min;       // by_size: of smaller ones `group` says WINDOW_SKIP; most are not
				 // asked about then
	bool by_thread;          // `group` looks at the thread
	bool nearest;            // estimates are rounded to the nearest, for who adds up rows; else
				 // down, so that rows below one are never more than it is
	bool as_it_is;           // samples are not weighed, as they are not in series
	bool peaks_only;         // window_detail: lifetimes are not wanted; they cost most
	bool lifetimes_only;     // window_detail: all else may be 0
	bool edges_only;         // window_ask: what lives at each edge and what began, and not what
				 // lived all through, which costs most: AIFO + AOFO, AOFI + AOFO,
				 // AIFI + AIFO and the impact are right, and a type by itself may
				 // be anything that adds up to them
	bool freed_known;        // window_detail: `lifetimes` have what was freed, see there
	unsigned walk_types;     // window_walk: set of enum window_type, as bits, that are wanted.
				 // Others may be given too; without AIFI it costs what lives at the
				 // edges. 0: all
	bool undated;            // window_walk: nobody looks at begin_ns and end_ns; they may be 0
	// window_walk: asked now and then, where all that is still to be given began in the window,
	// at a step or later, and was not ended by a call: true ends the walk. NULL: nobody is
	// asked.
	bool (*enough)(void *context, uint64_t step);
	// window_walk, by_size_alone: of what began in the window in this group so many are enough,
	// the first ones; UINT64_MAX: all are wanted. Others may be given too. NULL: the same.
	uint64_t (*first)(void *context, uint32_t group);
	// by_size: of sizes in none of these ranges `group` says WINDOW_SKIP, and of all others the
	// same, so that most are not asked about. Count 0: it may say of each what it will.
	const struct query_range *sizes; // borrowed
	size_t sizes_count;
	// Only allocations that lived at least, at most, so long: until they ended, or else their
	// process, or else the trace. Both 0: all, and orphans too. By scan.
	uint64_t lifetime_min_ns, lifetime_max_ns;
	// The group of a cell, or WINDOW_SKIP. Groups are numbered from 0 without gaps, so it may
	// give out numbers as it is asked. It must give the same answer whenever it is asked again.
	// NULL: one group.
	uint32_t (*group)(void *context, const struct window_cell *cell);
	void *context; // borrowed
};

static inline bool window_by_lifetime(const struct window_query *query)
{
	return query->lifetime_min_ns || query->lifetime_max_ns;
}

// Whether a lifetime is in the question.
static inline bool window_has_lifetime(const struct window_query *query, uint64_t lifetime_ns)
{
	return !window_by_lifetime(query) ||
	       (lifetime_ns >= query->lifetime_min_ns && lifetime_ns <= query->lifetime_max_ns);
}

// One group of a window.
struct window_row {
	struct heap_amount type[WINDOW_TYPES];
};

// Where figures are estimates: the variances of the row's bytes. Those of sums add up, and the
// square root is the standard error.
struct window_spread {
	double type[WINDOW_TYPES];
};

// What few groups have anything of.
struct window_rest {
	struct heap_amount by_exit;    // of processes that exited in the window, then alive;
	struct heap_amount by_exec;    // exec'ed; in the classes only if exit_frees
	struct heap_amount by_destroy; // ended with their heap, of AIFI and AOFI
	uint64_t orphans;
};

// Sums that everybody shows.
static inline struct heap_amount window_sum(struct heap_amount a, struct heap_amount b)
{
	return (struct heap_amount){ a.count + b.count, a.bytes + b.bytes };
}

static inline struct heap_amount window_less(struct heap_amount a, struct heap_amount b)
{
	return (struct heap_amount){ a.count - b.count, a.bytes - b.bytes };
}

static inline void window_add(struct heap_amount *sum, struct heap_amount amount)
{
	*sum = window_sum(*sum, amount);
}

static inline void window_add_row(struct window_row *sum, const struct window_row *row)
{
	for (int i = 0; i < WINDOW_TYPES; i++)
		window_add(&sum->type[i], row->type[i]);
}

static inline void window_less_row(struct window_row *sum, const struct window_row *row)
{
	for (int i = 0; i < WINDOW_TYPES; i++)
		sum->type[i] = window_less(sum->type[i], row->type[i]);
}

// Leave only a set of types, as bits; 0: all.
static inline void window_keep_types(struct window_row *row, unsigned types)
{
	for (int i = 0; types && i < WINDOW_TYPES; i++)
		if (!(types >> i & 1))
			row->type[i] = (struct heap_amount){ 0 };
}

static inline void window_add_rest(struct window_rest *sum, const struct window_rest *rest)
{
	window_add(&sum->by_exit, rest->by_exit);
	window_add(&sum->by_exec, rest->by_exec);
	window_add(&sum->by_destroy, rest->by_destroy);
	sum->orphans += rest->orphans;
}

static inline struct heap_amount window_allocated(const struct window_row *row)
{
	return window_sum(row->type[WINDOW_AIFI], row->type[WINDOW_AIFO]);
}

static inline struct heap_amount window_freed(const struct window_row *row)
{
	return window_sum(row->type[WINDOW_AIFI], row->type[WINDOW_AOFI]);
}

// All that lived for some part of the window: Count and Size.
static inline struct heap_amount window_present(const struct window_row *row)
{
	return window_sum(window_allocated(row),
			  window_sum(row->type[WINDOW_AOFI], row->type[WINDOW_AOFO]));
}

// Whether a group has nothing in the window, not even frees of nothing known.
static inline bool window_is_empty(const struct window_row *row, const struct window_rest *rest)
{
	return window_present(row).count == 0 && rest->orphans == 0;
}

static inline int64_t window_impact(const struct window_row *row)
{
	return (int64_t)(row->type[WINDOW_AIFO].bytes - row->type[WINDOW_AOFI].bytes);
}

struct window_result {
	struct window_row *rows;   // by group; groups that nobody is in are all 0
	struct window_rest *rests; // the same, of the first rests_count groups; others are all 0
	struct window_spread *spreads; // by group; NULL: all of it is exact
	uint32_t rows_count;           // highest group given + 1
	uint32_t rests_count;
	struct window_row total;
	struct window_rest total_rest;
	struct window_spread total_spread;
	// Private: where rows go back to, and for how many they have room at least. Who gives a
	// result other rows sets both to 0.
	struct index_tables *home;
	size_t room;
};

// For so many rows there is room.
static inline size_t window_room(const struct window_result *result)
{
	return result->room > result->rows_count ? result->room : result->rows_count;
}

static inline struct window_rest window_rest_of(const struct window_result *result, uint32_t group)
{
	return group < result->rests_count ? result->rests[group] : (struct window_rest){ 0 };
}

// Answers the query. The caller calls window_result_fini. False: the index cannot be read. Of a
// sampled recording it estimates the whole, unless the query says as_it_is. With
// window_options.keep large tables are kept for the next question, and so are the rows: in all up
// to three eighths of its memory (see window_tables), until a question needs much else.
bool window_ask(struct window *window, const struct window_query *query,
		struct window_result *result, struct err *err);
// Before the window is closed.
void window_result_fini(struct window_result *result);

// For the engines: the group's rest, new (all 0) or known, of rests with room for *capacity. Valid
// until the next call.
struct window_rest *window_result_make_rest(struct window_result *result, size_t *capacity,
					    uint32_t group);

// More about a row: what needs its single steps. Cheap for rows of few steps, at worst a scan of
// the window for all asked rows together.
struct window_detail {
	uint32_t group;              // set by the caller; WINDOW_SKIP: all groups together
	uint8_t types;               // the same: bits of enum window_type; 0: all (see below)
	uint64_t peak_bytes;         // the highest level in the window, its edges included
	uint64_t peak_count;         // the number of blocks when that was first reached
	uint64_t most_count;         // the highest number of blocks, whenever that was
	uint64_t peak_edge;          // the edge after the step that first reached peak_bytes
	uint64_t first_ns, last_ns;  // of the first and last allocation in the window; 0: none
	uint64_t lifetimes;          // allocations that a call ended in the window (AIFI, AOFI);
	uint64_t lifetime_median_ns; // of those; of n the one at (n - 1) / 2 in rising order
	uint64_t lifetime_p99_ns;    // at (n - 1) * 99 / 100
};

// Fills in all but `group` and `types` of each. The query must be the one that was asked. All
// groups together may be asked for once, as the last, and not where only peaks are. With
// lifetimes_only a row may be of some types: a group may be asked for once for each of several sets
// of types, which have none in common. With freed_known `lifetimes` are how many window_ask said
// were freed: the engine need not ask that again.
bool window_detail(struct window *window, const struct window_query *query,
		   struct window_detail *details, size_t count, struct err *err);

// One allocation.
struct window_allocation {
	struct window_cell cell;
	uint32_t group;
	uint64_t begin, end;       // steps; end: WINDOW_NEVER
	uint64_t begin_ns, end_ns; // end_ns: the trace's end, if it did not end
	uint8_t end_kind;          // enum window_end; EXIT and EXEC in either mode
	// What only window_fetch knows.
	uint64_t address;
	thread_id begin_thread, end_thread; // end_thread: TRACE_NONE, if no call ended it
	stack_id end_stack;
	bool reallocated; // a realloc began it
};

// The single allocations of a window (those that are in its rows), in no particular order, by
// scan. `each` returns false to stop. With from == to: what lives there.
bool window_walk(struct window *window, const struct window_query *query,
		 bool (*each)(void *context, const struct window_allocation *allocation),
		 void *context, struct err *err);

// Allocations of one group and size. Of what calls ended, how long it lived: `none` for 0 ns,
// `count` others for ns[i], rising. The rest of one group and size may be given apart from it.
struct window_lived {
	uint32_t group;
	uint64_t size;  // bytes, of each
	uint64_t never; // that no call ended
	uint64_t none;
	const uint64_t *ns;
	size_t count;
};

// All allocations of the whole trace, without going through its steps (but at the first such
// question). `each` may be called by two threads at once, each with a `part` of its own, 0 or 1.
// *known is false where nothing knows them (other windows, other layers than the heap, a filter of
// lifetimes, no index): then what was given counts for nothing. False: whoever asked wants no
// answer any more.
enum { WINDOW_LIVED_PARTS = 2 };
bool window_lived(struct window *window, const struct window_query *query,
		  void (*each)(void *context, unsigned part, const struct window_lived *lived),
		  void *context, bool *known, struct err *err);

// Fill in what the trace itself knows of the given allocations. Reads the trace around each, so
// ask for those that are shown.
bool window_fetch(struct window *window, struct window_allocation *allocations, size_t count,
		  struct err *err);
