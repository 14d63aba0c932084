// plain: windows answered from a list of all lifetimes, each question by going through it.
//
// What window.h promises, said as directly as it can be: nothing is summed up beforehand, nothing
// is paired by anything but its definition. It answers for the layer of virtual memory, whose
// lifetimes are few, for traces opened `plain`, and in the tests it is what the index must agree
// with. 56 bytes a lifetime.
//
// Lifetimes are added in any order. One thread.
#pragma once

#include "engine/window.h"
#include "engine/window_series.h"

// A lifetime. It may have an end by a call or an exit of its process, never both; with neither it
// lives when the trace ends.
struct plain_life {
	uint64_t begin, end; // steps; end: WINDOW_NEVER if no call ended it
	uint64_t exit;       // the step of its process's end, or WINDOW_NEVER
	uint64_t begin_ns, end_ns, exit_ns;
	uint32_t cell;
	uint8_t end_kind;  // enum window_end: how a call ended it
	uint8_t exit_kind; // WINDOW_END_EXIT or _EXEC
};

// A free of an address where nothing was known to live; its cell has the thread that freed.
struct plain_orphan {
	uint64_t step;
	uint32_t cell;
};

// Lifetimes of one layer, with the cells that they are of.
struct plain {
	struct plain_life *lives;
	size_t lives_count, lives_capacity;
	struct plain_orphan *orphans;
	size_t orphans_count, orphans_capacity;
	struct window_cell *cells;
	size_t cells_count, cells_capacity;
	uint32_t *table; // private: cell + 1 by hash; 0: free
	size_t table_capacity;
	uint64_t duration_ns; // until when lives what nothing ends
};

// When each step happened, and which event it belongs to.
struct plain_steps {
	uint64_t *times_ns; // by step, from 0, the baseline's
	uint64_t *numbers;  // of the event; UINT64_MAX: it belongs to none
	size_t count, capacity;
	struct window_mark *marks; // names are owned
	size_t marks_count, marks_capacity;
	uint64_t inherited, lost;
	uint64_t calls; // trace_kind_is_call
};

// Both accept { 0 }.
void plain_fini(struct plain *plain);
void plain_steps_fini(struct plain_steps *steps);

// Read all of a trace, from its beginning: what its calls on heaps and on virtual memory make of
// lifetimes. `progress`
// is given the reader's position. False if `stop` (may be NULL) said so.
bool plain_build(struct plain *plain, struct plain *vm, struct plain_steps *steps,
		 struct reader *reader, struct progress *progress, bool (*stop)(void *context),
		 void *context);

// Memory that what is there takes, with what a question for levels takes beside (a list of changes,
// and to sort it).
uint64_t plain_bytes(const struct plain *plain, const struct plain_steps *steps);

// The number of a cell, new or known, from 0. Constant time.
uint32_t plain_cell(struct plain *plain, const struct window_cell *cell);

// Add a lifetime; the index of it. An orphan. `life->cell` is one that plain_cell gave. The index
// holds; a pointer to the lifetime does not, once another is added.
size_t plain_add(struct plain *plain, const struct plain_life *life);
void plain_add_orphan(struct plain *plain, uint64_t step, uint32_t cell);

// The questions of window.h and window_series.h. Those that take layers look at them. plain_ask
// adds to the rows that are there, so that several lists can answer one question. Each costs a walk
// of all lifetimes, and a call of query->group for each cell. plain_walk: false if `each` was; its
// allocations have no threads (TRACE_NONE).
void plain_ask(const struct plain *plain, const struct window_query *query,
	       struct window_result *result);
void plain_detail(const struct plain *plain, const struct window_query *query,
		  struct window_detail *details, size_t count);
bool plain_walk(const struct plain *plain, const struct window_query *query,
		bool (*each)(void *context, const struct window_allocation *allocation),
		void *context);
void plain_series(const struct plain *plain, const struct window_query *query,
		  const struct window_sums *to);
void plain_changes(const struct plain *plain, const struct window_query *query,
		   bool (*each)(void *context, const struct window_change *change), void *context);
void plain_flows(const struct plain *plain, const struct window_query *query,
		 const struct window_sums *to);
void plain_lifetimes(const struct plain *plain, const struct window_query *query,
		     const struct window_sums *to);

// The highest level of a layer in bytes, the count then, and the edge after the step that first
// reached it.
struct heap_amount plain_peak(const struct plain *plain, enum window_layer layer, uint64_t *edge);
