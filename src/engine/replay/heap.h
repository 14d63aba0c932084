// heap: what a trace's calls add up to, for the whole trace, each process and each site.
//
// One pass over the events, in the trace's order. A *site* is one stack of one process. What is
// counted, and how:
//
//     allocations    lifetimes begun. A successful realloc is one, and a free, and a reallocation.
//     before         blocks that were there when their process was attached to, or when the window
//                    begins that a trace was trimmed to: no allocations, but they are in levels
//                    and peaks, and their ends are frees like others.
//     frees          lifetimes ended by a call. So before + allocations = frees + lost_frees +
//                    live_at_exit.
//     lost_frees     an allocation at an address that was still alive: its end was not seen.
//     inherited      frees, by a forked process, of a block that it did not allocate: its
//                    parent's. Each address counts once.
//     orphans        frees of an address where nothing is known to live.
//     failed         calls that returned no memory; they count nowhere else.
//     refused_frees  frees that a heap of Windows refused: the same.
//     temporary      blocks freed by the thread that allocated them, before its next allocation.
//     live_at_exit   blocks alive when their process exited, exec'ed, or the trace ended.
//     peak           the level is the bytes alive in all processes together; a process that exits
//                    or execs takes its blocks off it. The peak is where it first was highest.
//
// A realloc may be in two halves with other threads' calls between them. One that fails has ended
// nothing: its block counts in between as well.
//
// What each site held at the peak is known without a second pass: a site saves its figures on its
// first change after a new peak, and what has not changed since needs no saving.
//
// A recording that is sampled, at all times or at some, has some of the allocations only. Then
// counts and bytes are estimates of the whole, each block counting for all it stands for (weight.h;
// one that was recorded as all others were, for itself), and
// heap_variances says how far they may be off; reallocations and temporary blocks are not known
// (0), and failed calls, inherited and orphan frees are those that were seen.
//
// The engine is given processes and threads before the events that use them; heap_read does
// that from a reader. One thread.
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/progress.h"
#include "engine/query.h"
#include "trace/reader.h"

// So many blocks, of so many bytes.
// In a sampled recording in units of weight.h until heap_finish.
struct heap_amount {
	uint64_t count;
	uint64_t bytes;
};

struct heap_counts {
	struct heap_amount allocated; // allocations, allocated_bytes
	struct heap_amount before;    // there at the beginning; not in `allocated`
	uint64_t frees;
	uint64_t reallocations;
	uint64_t failed;
	uint64_t refused_frees;
	uint64_t inherited_frees;
	uint64_t orphan_frees;
	uint64_t lost_frees;
	struct heap_amount temporary;
	struct heap_amount live; // now; what is left of it at the end is in live_at_exit too
	struct heap_amount live_at_exit;
	struct heap_amount peak;
	uint64_t peak_ns;     // when
	uint64_t peak_number; // after which event
};

// The whole trace, or what the query selects of it.
struct heap_totals {
	struct heap_counts counts;
	uint64_t peak_low_bytes;  // the true peak is between these: see bound.h
	uint64_t peak_high_bytes; // for one thread both are the peak
	uint64_t events;          // calls on memory in the trace; a realloc is one
	uint64_t events_selected; // the same, of the selected processes and threads
	uint64_t events_lost;     // known to be missing
	uint64_t duration_ns;     // time of the last item
};

// What each call changes is in the first 64 bytes; a table of sites begins at a multiple of that.
struct heap_site {
	struct heap_amount live;
	struct heap_amount allocated; // not what was there before
	uint64_t largest_bytes;       // the largest single block
	uint64_t last_ns;             // of its last allocation
	uint64_t peak_epoch;          // private: which peak at_peak belongs to
	process_id process;
	stack_id stack;             // 0: the calls had none
	struct heap_amount at_peak; // of the whole trace; valid after heap_finish
	struct heap_amount temporary;
	struct heap_amount live_at_exit;
	uint64_t first_ns; // of its first allocation
	uint64_t unused;
};

// Of estimates from samples: their variances, of the bytes unless it says count. They add up; the
// square root of a sum is the standard error of the sum of the estimates.
struct heap_variance {
	double allocated, allocated_count;
	double live;
	double live_at_exit;
	double at_peak;
	uint64_t sample_bytes; // what its allocations were drawn by; 0: each is there
};

struct heap;

// `query` (NULL: everything) is borrowed until heap_free.
struct heap *heap_new(const struct query *query);
void heap_free(struct heap *heap); // NULL is allowed

// Define the next process or thread: ids count from 0. `forked`: a copy of another process.
void heap_add_process(struct heap *heap, bool forked);
void heap_add_thread(struct heap *heap, process_id process);

// The next item of the trace. An event of an unknown thread is ignored.
void heap_add_event(struct heap *heap, const struct trace_event *event);
void heap_add_note(struct heap *heap, const struct trace_note *note);

// The recording is sampled: with this mean distance, or (0) at times, as the stacks of this reader
// say (borrowed until heap_free; NULL: never). Before the first event; heap_read does it.
void heap_sampled(struct heap *heap, uint64_t mean_bytes, const struct reader *by_stack);

// Events of a smaller number begin what lived before the trace. The same.
void heap_trimmed(struct heap *heap, uint64_t number);

// Processes and threads that the reader has met since the last time.
void heap_learn(struct heap *heap, const struct reader *reader);

// While items still come, what they add up to so far: bytes and blocks that live, the peak, a
// process (NULL: it has none), the sites as heap_sites has them (`at_peak` is not known yet). Of
// the last two figures are to be given to heap_so_far.
struct heap_amount heap_level(const struct heap *heap);
void heap_peak_so_far(const struct heap *heap, uint64_t *bytes, uint64_t *time_ns);
struct heap_amount heap_so_far(const struct heap *heap, struct heap_amount amount);
const struct heap_counts *heap_process_so_far(const struct heap *heap, process_id process);
const struct heap_site *heap_sites_so_far(const struct heap *heap, size_t *count);

// No more items: settle what is still open. Must precede all questions below.
void heap_finish(struct heap *heap);

// What heap_read reads and the heap does not want, it shows: each call on virtual memory and on
// pools, in the trace's order, before the next note.
void heap_on_vm(struct heap *heap, void (*on_vm)(void *context, const struct trace_event *event),
		void *context);

// All of the above, from the reader's present position to its end. `on_note` (may be NULL) sees
// every note too: most say nothing about the heap, but something to a reader of the report.
void heap_read(struct heap *heap, struct reader *reader, struct progress *progress,
	       void (*on_note)(void *context, const struct trace_note *note), void *context);

// Of the whole trace at `path`: its frees alone. False: it cannot be read to its end.
bool heap_count_frees(const char *path, uint64_t *frees);

// The figures of a finished heap, as the functions below give them, and were kept somewhere.
struct heap_figures {
	struct heap_totals totals;
	struct heap_counts *processes;   // these three are owned, and NULL once they were given
	struct mem_area sites;           // struct heap_site: [0] is none; sites_count follow
	struct heap_variance *variances; // the same; NULL: the trace was not sampled
	size_t processes_count, sites_count;
};

// A heap that is finished and has these.
struct heap *heap_of_figures(struct heap_figures *figures);

// Of everything the query selects.
const struct heap_totals *heap_totals(const struct heap *heap);

// Whether the query says of frees of nothing known (inherited and orphan frees) if they count. It
// does not where it chooses by stack, size or fate: then they are in no other figure, and so many
// there are of its threads.
bool heap_judges_frees(const struct heap *heap);
uint64_t heap_unjudged_frees(const struct heap *heap);

// NULL if it has no such process. Peaks are the process's own.
const struct heap_counts *heap_process(const struct heap *heap, process_id process);

// Sites in order of their first allocation, from 0. The array belongs to `heap`.
const struct heap_site *heap_sites(const struct heap *heap, size_t *count);

// For who needs the sums alone from now on: there are no sites any more.
void heap_forget_sites(struct heap *heap);

// Of a sampled recording, those of the sites, in the same order; else NULL.
const struct heap_variance *heap_variances(const struct heap *heap);
