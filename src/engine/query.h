// query: which allocations a question is about.
//
// `struct query q = { 0 };` asks about all of them. Words given more than once for the same thing
// widen it (two processes: either), different things narrow it (a process and a thread: both).
// A selected allocation takes its free with it: whatever ends the block, its end is counted where
// its beginning was.
//
// Ranges are written A..B (both belong to it), A.., ..B, <B, <=B, >A, >=A, or one value: 32..64,
// ..1K, >1M; for times <1ms, 10us..1s.
//
// Ids are known once the trace's definitions are read, so call reader_scan before query_add_*.
#pragma once

#include "base/err.h"
#include "trace/reader.h"

#include <stdbool.h>

// Kinds of memory, as bits of a set. They never add up.
enum query_layer { QUERY_HEAP = 1 << 0, QUERY_VM = 1 << 1 };

// What an allocation is to a window: begun inside it or before, ended inside it or not. As bits.
enum query_type {
	QUERY_AIFI = 1 << 0, // transient
	QUERY_AIFO = 1 << 1, // impacting
	QUERY_AOFI = 1 << 2, // impacting
	QUERY_AOFO = 1 << 3, // persistent
};

// The bit of an owner in `owners`: 0 is for blocks of heaps, so enum space_owner counts from 1.
#define QUERY_OWNER(owner) ((owner) + 1)

// Numbers from `least` to `most`, both included.
struct query_range {
	uint64_t least, most;
};

struct query {
	bool *processes; // owned, by process id; NULL: every process
	uint32_t processes_count;
	bool *threads; // owned, by thread id; NULL: every thread
	uint32_t threads_count;
	bool *heaps; // owned, by heap id (0: malloc's); NULL: every heap
	uint32_t heaps_count;
	bool heaps_dropped; // heaps says only which not: virtual memory passes too
	bool owners_given;
	uint32_t owners;           // if so: bits 1 << QUERY_OWNER(enum space_owner), and bit 0 for
				   // blocks of heaps. Only whoever has cells looks (window.h)
	unsigned layers;           // set of enum query_layer; 0: not said
	unsigned types;            // set of enum query_type; 0: all
	struct query_range *sizes; // owned; requested bytes are in one of them; NULL: any size
	size_t sizes_count, sizes_capacity;
	struct query_range lifetime_ns; // if lifetime_given
	bool lifetime_given;

	// Whether the allocation that this event begins counts, by its size, its place in the
	// trace, or what will become of it; also asked for calls that failed. NULL: it does. Set by
	// whoever knows (report/ask/selection.h); the answer must never change.
	bool (*event)(void *context, const struct trace_event *event);
	void *event_context; // borrowed

	// Whether an allocation with this stack counts (0: it has none). NULL: every stack does.
	// The engine knows no names, so whoever does sets it. The answer must never change.
	bool (*stack)(void *context, stack_id stack);
	void *context; // borrowed
};

// No query (NULL) has all.
static inline bool query_has_event(const struct query *query, const struct trace_event *event)
{
	return !query || !query->event || query->event(query->event_context, event);
}

static inline bool query_has_stack(const struct query *query, stack_id stack)
{
	return !query || !query->stack || query->stack(query->context, stack);
}

void query_fini(struct query *query);

// Add the processes that `word` names: a pid; "#3", a position in the list of processes (or the
// number alone, where no pid is that); an executable or the program as it was called (argv[0]), by
// its whole path or its last part. ERR_USAGE if there is none, with those that there are.
bool query_add_process(struct query *query, const struct reader *reader, const char *word,
		       struct err *err);

// Add the threads that `word` names: a tid, or a name. ERR_USAGE if there is none.
bool query_add_thread(struct query *query, const struct reader *reader, const char *word,
		      struct err *err);

// Add the heaps that `word` names: "malloc", a pool's name, a handle ("0x1f0000"). ERR_USAGE if
// there is none.
bool query_add_heap(struct query *query, const struct reader *reader, const char *word,
		    struct err *err);

// Leave out the processes, threads, heaps or sizes that the word names, whatever else is asked for:
// call these after all query_add_*.
bool query_drop_process(struct query *query, const struct reader *reader, const char *word,
			struct err *err);
bool query_drop_thread(struct query *query, const struct reader *reader, const char *word,
		       struct err *err);
bool query_drop_heap(struct query *query, const struct reader *reader, const char *word,
		     struct err *err);
bool query_drop_size(struct query *query, const char *word, struct err *err);

// Add, or leave out, an owner of virtual memory: "program", "library" …, "heap" (blocks of heaps).
bool query_add_owner(struct query *query, const char *word, struct err *err);
bool query_drop_owner(struct query *query, const char *word, struct err *err);

// Add a layer ("heap", "vm"), a class ("impacting", "transient", "persistent", "AIFI" …), a range
// of sizes (K, M, G), a range of lifetimes (ns, us, ms, s, min; only one can be given). ERR_USAGE
// if the word is none, with what would be.
bool query_add_layer(struct query *query, const char *word, struct err *err);
bool query_add_impact(struct query *query, const char *word, struct err *err);
bool query_add_size(struct query *query, const char *word, struct err *err);
bool query_add_lifetime(struct query *query, const char *word, struct err *err);

// Whether an allocation of so many bytes, of such a lifetime, is selected.
bool query_has_size(const struct query *query, uint64_t size);
bool query_has_lifetime(const struct query *query, uint64_t lifetime_ns);

// Whether the process, thread, or heap is selected.
bool query_has_process(const struct query *query, process_id process);
bool query_has_heap(const struct query *query, heap_id heap);
bool query_has_thread(const struct query *query, thread_id thread);

// Whether allocations of that owner pass: of a heap's block `heap` is true.
bool query_has_owner(const struct query *query, bool heap, unsigned owner);

// Whether it leaves anything out.
bool query_narrows(const struct query *query);
