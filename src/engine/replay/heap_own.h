// heap_own: what the parts of the heap share: heap.c, which finds blocks, heap_tally.h, which
// counts, heap_beside.c, which does that in another thread, heap_hold.c, which waits for the other
// halves of reallocs, and heap_read.c, which reads.
//
// The fast path is here: a block is found in the table of its heap, its figures go to its site,
// and nothing is allocated unless a table grows.
//
// What is written for each event by the one thread is not in a line of the cache that the other
// reads for each: HEAP_APART bytes are between.
#pragma once

#include "base/map.h"
#include "engine/replay/blocks.h"
#include "engine/replay/bound.h"
#include "engine/replay/heap.h"

enum {
	SITE_UNSEEN = 0,              // in stack_site: no site of this stack yet
	SITE_UNSELECTED = UINT32_MAX, // in stack_site: the query leaves this stack out
	SITE_NONE = UINT32_MAX,       // in a block: nobody counts it
	HEAP_APART = 64,
};

// What a counted block does.
enum heap_what {
	HEAP_BEGAN,
	HEAP_MOVED,      // it began, by a realloc
	HEAP_WAS_BEFORE, // it begins, and is no allocation
	HEAP_ENDED,
	HEAP_TEMPORARY, // it ended, before its thread allocated again
	HEAP_LOST,      // it ended, which was not seen
};

// One that began or ended, for who counts.
struct heap_change {
	uint64_t size;
	uint64_t time_ns, number; // of the event
	uint32_t site;            // not SITE_NONE
	thread_id thread;         // whose call it was
	enum heap_what what;
};

// Of a thread, for who counts.
struct heap_thread_level {
	process_id process;
	struct bound_thread bound;
};

struct heap_process_state {
	struct heap_counts counts; // but for what ended unknown and what failed
	struct bound_thread exit;  // its exit moves the level like a thread of its own
	char apart[HEAP_APART];
	struct blocks blocks;
	struct blocks *heaps; // of heaps that have a handle, by heap id
	size_t heaps_count, heaps_capacity;
	struct map inherited; // addresses of inherited blocks that were freed
	bool forked;
	bool selected;
	char apart_from_next[HEAP_APART];
};

// The first half of a realloc whose second half may still come.
struct pending {
	bool active;
	bool temporary;
	bool known; // `block` was alive; else the free was counted as inherited or as orphan
	bool inherited;
	uint64_t address, size;
	struct block block;
};

struct heap_thread_state {
	process_id process;
	bool selected;
	bool allocated;          // `last_address` is set
	uint64_t last_address;   // of its latest allocation
	struct pending *pending; // owned; NULL until the first half of a realloc comes alone
	bool waits;              // of its realloc, which is heap.held[held], the end is not known
	size_t held;
};

// An event that is not counted yet, for it came while a realloc was at work, or a process's end.
struct heap_held {
	struct trace_event event; // of an end, the time alone
	bool undone;              // it is the first half of a realloc that failed
	bool ends;
	process_id process; // which ends
};

struct heap {
	const struct query *query; // borrowed; NULL: everything
	uint64_t unjudged_frees;
	uint64_t events, events_selected, duration_ns; // so far; of `totals` in the end

	struct heap_process_state *processes;
	size_t processes_count, processes_capacity;
	struct heap_thread_state *threads;
	struct heap_thread_level *levels; // of each
	size_t threads_count, threads_capacity, levels_capacity;

	// sites[0] is unused. stack_site[s] is the site of stack s in the process that first used
	// it; in other processes (forked ones share stacks with their parent) it is in sites_else,
	// keyed by process << 32 | stack. site_process has each site's process, as the site itself.
	struct heap_site *sites; // in `table`
	struct mem_area table;
	size_t sites_count, sites_capacity;
	process_id *site_process;
	size_t site_process_capacity;
	uint32_t *stack_site;
	size_t stack_site_capacity;
	struct map sites_else;

	uint64_t before_end;             // events of a smaller number begin what was before
	bool estimated;                  // some are samples: amounts are in units until the end
	uint64_t mean_bytes;             // of all samples; 0: as their stacks say,
	const struct reader *by_stack;   // of this one; borrowed
	struct heap_variance *variances; // of the sites, too, then
	size_t variances_capacity;

	struct heap_held *held; // in their order
	size_t held_count, held_capacity, held_waiting;

	struct heap_beside *beside; // owned; NULL: nobody counts beside us
	bool apart;                 // changes go there now, by
	struct heap_beside_piece *piece;
	uint64_t apart_from; // after so many events they go there again

	char apart_before[HEAP_APART];
	struct heap_totals totals;
	struct heap_amount level; // alive now, all processes
	struct bound bound;
	uint64_t peak_epoch; // counts new peaks
	char apart_behind[HEAP_APART];

	bool finished;
	void (*on_vm)(void *context, const struct trace_event *event);
	void *on_vm_context;
};

// What a site's figures are in will be asked for soon.
static inline void heap_expect_site(const struct heap *heap, uint32_t site)
{
	enum { NEAR_PEAK = 16 }; // the level, by a part of so many

	mem_expect(&heap->sites[site]);
	// While the level is near its peak, so does what lived at the peak change.
	if (heap->level.bytes >= heap->totals.counts.peak.bytes / NEAR_PEAK * (NEAR_PEAK - 1))
		mem_expect(&heap->sites[site].at_peak);
}

// A row of calls on malloc's heap, of one thread that is known and at one time; and where the block
// of each may be.
void heap_add_run(struct heap *heap, const struct trace_event *events, uint32_t count,
		  const struct blocks_hint *hints);

// Count one event. `undone`: it is the first half of a realloc that will fail, so nothing happens.
void heap_count_event(struct heap *heap, const struct trace_event *event, bool undone);

// The process has ended.
void heap_end_process(struct heap *heap, process_id process, uint64_t time_ns);

// The same, in its order among what is held.
void heap_hold_end(struct heap *heap, process_id process, uint64_t time_ns);

// Count what is held. What is still waited for counts as if it did not fail.
void heap_hold_no_more(struct heap *heap);
