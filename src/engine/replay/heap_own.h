// heap_own: what the parts of the heap share: heap.c, which counts, heap_calls.c, which counts
// runs of calls, heap_hold.c, which waits for the other halves of reallocs, and heap_read.c, which
// reads.
//
// The fast path is here: a block is found in the table of its heap, its figures go to its site,
// and nothing is allocated unless a table grows.
#pragma once

#include "base/map.h"
#include "engine/replay/blocks.h"
#include "engine/replay/bound.h"
#include "engine/replay/heap.h"

enum {
	SITE_UNSEEN = 0,              // in stack_site: no site of this stack yet
	SITE_UNSELECTED = UINT32_MAX, // in stack_site: the query leaves this stack out
	SITE_NONE = UINT32_MAX,       // in a block: nobody counts it
};

// What is known of one process while the trace is read.
struct heap_process_state {
	struct heap_counts counts;
	struct blocks blocks;
	struct blocks *heaps; // of heaps that have a handle, by heap id
	size_t heaps_count, heaps_capacity;
	struct map inherited;     // addresses of inherited blocks that were freed
	struct bound_thread exit; // its exit moves the level like a thread of its own
	bool forked;
	bool selected;
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

// One thread. `selected` is the query's answer, asked once. `last_address` says which block its
// free would make temporary.
struct heap_thread_state {
	process_id process;
	bool selected;
	bool allocated;          // `last_address` is set
	uint64_t last_address;   // of its latest allocation
	struct pending *pending; // owned; NULL until the first half of a realloc comes alone
	bool waits;              // of its realloc, which is heap.held[held], the end is not known
	size_t held;
	struct bound_thread bound;
};

// What lives at an address that has a spot in the block of events that is being counted, so that no
// table is asked for it again. It is here from when it is first met, and in no table; with the
// block of events it goes to its table, if it lives. So of what lives shortly, tables know nothing.
// Nothing is near of estimates: they are sums of fractions, which differ by the order in the
// tables.
struct heap_near {
	uint64_t address;
	struct block block; // without an owner: none lives there
	process_id process; // whose; others find theirs in their own tables
	uint32_t turn;      // any but heap.near_turn: it is not here
};

// An event that is not counted yet, for it came while a realloc was at work, or a process's end.
struct heap_held {
	struct trace_event event; // of an end, the time alone
	bool undone;              // it is the first half of a realloc that failed
	bool ends;
	process_id process; // which ends
};

// All of it. Figures of the trace are in `totals`; what changes with each event and is asked at the
// end alone is beside them.
struct heap {
	const struct query *query; // borrowed; NULL: everything
	struct heap_totals totals;
	uint64_t unjudged_frees; // of blocks that are not known, so that no filter could judge them
	struct heap_amount level; // alive now, all processes
	struct bound bound;
	uint64_t peak_epoch; // counts new peaks

	struct heap_near *near; // by spot, the one that is none too; NULL: no event had one yet
	uint64_t near_block;    // of events, whose spots they are
	uint32_t near_turn;     // rises each time that all go to their tables
	uint32_t *met;          // the spots of those that are near
	uint32_t met_count;

	struct heap_process_state *processes;
	size_t processes_count, processes_capacity;
	struct heap_thread_state *threads;
	size_t threads_count, threads_capacity;

	// sites[0] is unused. stack_site[s] is the site of stack s in the process that first used
	// it; in other processes (forked ones share stacks with their parent) it is in sites_else,
	// keyed by process << 32 | stack.
	struct heap_site *sites; // in `table`
	struct mem_area table;
	size_t sites_count, sites_capacity;
	uint32_t *stack_site; // SITE_UNSEEN, SITE_UNSELECTED, or the site
	size_t stack_site_capacity;
	struct map sites_else;

	uint64_t before_end;             // events of a smaller number begin what was before
	bool estimated;                  // some are samples: amounts are in units until the end
	uint64_t mean_bytes;             // of all samples; 0: as their stacks say,
	const struct reader *by_stack;   // of this one; borrowed
	struct heap_variance *variances; // of the sites, too, then
	size_t variances_capacity;

	// In their order; held_waiting counts halves among them whose other ones are not known.
	struct heap_held *held;
	size_t held_count, held_capacity, held_waiting;

	bool finished;
	void (*on_vm)(void *context, const struct trace_event *event);
	void *on_vm_context;
};

static inline void heap_pass_time(struct heap *heap, uint64_t time_ns)
{
	if (time_ns > heap->totals.duration_ns)
		heap->totals.duration_ns = time_ns;
}

// Call before a site's live figures change: see "at the peak" in heap.h.
static inline void heap_settle_site(struct heap *heap, struct heap_site *site)
{
	if (site->peak_epoch == heap->peak_epoch)
		return;
	site->peak_epoch = heap->peak_epoch;
	site->at_peak = site->live;
	if (heap->variances)
		heap->variances[site - heap->sites].at_peak =
			heap->variances[site - heap->sites].live;
}

static inline void heap_raise_peak(struct heap_counts *counts, const struct heap_amount *level,
				   const struct trace_event *event)
{
	counts->peak = *level;
	counts->peak_ns = event->time_ns;
	counts->peak_number = event->number;
}

// All that is near goes to its table.
void heap_send_far(struct heap *heap);

// What comes has spots of this block of events, which is not 0.
void heap_near_of(struct heap *heap, uint64_t block);

// The spot, at which there is nothing yet, is of this process: what its table has there comes near.
void heap_bring_near(struct heap *heap, process_id process, uint32_t spot, uint64_t address,
		     struct blocks_hint hint);

static inline bool heap_is_near(const struct heap *heap, uint32_t spot)
{
	return heap->near[spot].turn == heap->near_turn;
}

// A row of calls on malloc's heap, of one thread that is known and at one time, with spots.
void heap_add_calls(struct heap *heap, const struct reader_calls *calls);

// The same as heap_add_event, with spots (NULL: none is known).
void heap_add_at(struct heap *heap, const struct trace_event *event,
		 const struct reader_spots *spots);

// Count one event. `undone`: it is the first half of a realloc that will fail, so nothing happens.
// `spots` is NULL where nothing is near.
void heap_count_event(struct heap *heap, const struct trace_event *event, bool undone,
		      const struct reader_spots *spots);

// The process has ended.
void heap_end_process(struct heap *heap, process_id process, uint64_t time_ns);

// The same, in its order among what is held.
void heap_hold_end(struct heap *heap, process_id process, uint64_t time_ns);

// Count what is held. What is still waited for counts as if it did not fail. At 65,536 held events,
// at the end, and wherever none is waited for.
void heap_hold_no_more(struct heap *heap);
