// heap_tally: what a call changes of the figures, once it is known which block it is about.
//
// The tables of blocks belong to whoever goes through the events; levels, sites, peaks and bounds
// to whoever counts. Between the two goes a change, one for each block that begins or ends and is
// counted, in the order of the events. Both may be one thread, or two (heap_beside.h).
//
// Here and not in a source file, because it is once for every event there is.
#pragma once

#include "engine/replay/heap_own.h"
#include "engine/replay/weight.h"

// Some functions are compiled twice: for any event, and for `plain` ones of a recording that was
// not sampled, of a thread that is selected, where no single allocation is left out.
#define TWICE static inline __attribute__((always_inline))

// What a block of `size` stands for, at a site that is not SITE_NONE.
TWICE struct weight heap_tally_weigh(const struct heap *heap, uint32_t site, uint64_t size,
				     bool plain)
{
	if (plain || !heap->estimated)
		return (struct weight){ 1, size, 0, 0 };
	return weight_of(heap->variances[site].sample_bytes, size);
}

// Add it to an amount, or take it away.
TWICE void heap_tally_add(struct heap_amount *amount, const struct weight *weight)
{
	amount->count += weight->count;
	amount->bytes += weight->bytes;
}
TWICE void heap_tally_take(struct heap_amount *amount, const struct weight *weight)
{
	amount->count -= weight->count;
	amount->bytes -= weight->bytes;
}

// Call before a site's live figures change: see "at the peak" in heap.h.
TWICE void heap_tally_settle(struct heap *heap, struct heap_site *site, bool plain)
{
	if (site->peak_epoch == heap->peak_epoch)
		return;
	site->peak_epoch = heap->peak_epoch;
	site->at_peak = site->live;
	if (!plain && heap->variances)
		heap->variances[site - heap->sites].at_peak =
			heap->variances[site - heap->sites].live;
}

// The level is the highest so far.
TWICE void heap_tally_raise(struct heap_counts *counts, const struct heap_amount *level,
			    const struct heap_change *change)
{
	counts->peak = *level;
	counts->peak_ns = change->time_ns;
	counts->peak_number = change->number;
}

// A counted block begins to live, or lives again.
TWICE void heap_tally_begin(struct heap *heap, const struct heap_change *change,
			    const struct weight *weight, bool plain)
{
	struct heap_thread_level *thread = &heap->levels[change->thread];
	struct heap_counts *process = &heap->processes[thread->process].counts;
	struct heap_site *site = &heap->sites[change->site];

	heap_tally_settle(heap, site, plain);
	heap_tally_add(&site->live, weight);
	heap_tally_add(&process->live, weight);
	heap_tally_add(&heap->level, weight);
	if (!plain && heap->variances)
		heap->variances[change->site].live += weight->bytes_variance;
	bound_change(&heap->bound, &thread->bound, change->time_ns, (int64_t)weight->bytes);
	if (process->live.bytes > process->peak.bytes)
		heap_tally_raise(process, &process->live, change);
	if (heap->level.bytes > heap->totals.counts.peak.bytes) {
		heap_tally_raise(&heap->totals.counts, &heap->level, change);
		heap->peak_epoch++;
	}
}

// A counted block of `process` ceases to live; `bound` is whose call it was.
TWICE void heap_tally_end(struct heap *heap, struct heap_counts *process,
			  struct bound_thread *bound, const struct heap_change *change,
			  const struct weight *weight, bool plain)
{
	struct heap_site *site = &heap->sites[change->site];

	heap_tally_settle(heap, site, plain);
	heap_tally_take(&site->live, weight);
	heap_tally_take(&process->live, weight);
	heap_tally_take(&heap->level, weight);
	if (!plain && heap->variances)
		heap->variances[change->site].live -= weight->bytes_variance;
	bound_change(&heap->bound, bound, change->time_ns, (int64_t)(0 - weight->bytes));
}

// A block is allocated: it begins, and is no block of before.
TWICE void heap_tally_allocate(struct heap *heap, const struct heap_change *change,
			       const struct weight *weight, bool plain)
{
	struct heap_counts *counts = &heap->processes[heap->levels[change->thread].process].counts;
	struct heap_site *site = &heap->sites[change->site];

	heap_tally_add(&counts->allocated, weight);
	if (site->allocated.count == 0)
		site->first_ns = change->time_ns;
	site->last_ns = change->time_ns;
	if (change->size > site->largest_bytes)
		site->largest_bytes = change->size;
	heap_tally_add(&site->allocated, weight);
	if (!plain && heap->variances) {
		heap->variances[change->site].allocated += weight->bytes_variance;
		heap->variances[change->site].allocated_count += weight->count_variance;
	}
	if (change->what == HEAP_MOVED && !heap->estimated)
		counts->reallocations++;
	heap_tally_begin(heap, change, weight, plain);
}

// Count one.
TWICE void heap_tally_count(struct heap *heap, const struct heap_change *change, bool plain)
{
	struct heap_thread_level *thread = &heap->levels[change->thread];
	struct heap_counts *counts = &heap->processes[thread->process].counts;
	struct weight weight = heap_tally_weigh(heap, change->site, change->size, plain);

	switch (change->what) {
	case HEAP_BEGAN:
	case HEAP_MOVED:
		heap_tally_allocate(heap, change, &weight, plain);
		return;
	case HEAP_WAS_BEFORE:
		heap_tally_add(&counts->before, &weight);
		heap_tally_begin(heap, change, &weight, plain);
		return;
	case HEAP_TEMPORARY:
		heap_tally_add(&counts->temporary, &weight);
		heap_tally_add(&heap->sites[change->site].temporary, &weight);
		// It has ended, too.
		__attribute__((fallthrough));
	case HEAP_ENDED:
		counts->frees += weight.count;
		break;
	case HEAP_LOST:
		counts->lost_frees += weight.count;
		break;
	}
	heap_tally_end(heap, counts, &thread->bound, change, &weight, plain);
}
