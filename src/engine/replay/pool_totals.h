// pool_totals: what the pools that a program named through tidemark.h add up to.
//
//     pool_totals_new
//       pool_totals_add      each call on a pool, in the trace's order
//     pool_totals_get        by heap_id; those that are no pools have all 0
//     pool_totals_free
//
// Blocks of a pool are inside of memory that was allocated otherwise, so they are in no figure of
// malloc's. What a forked child finds in its copy of a pool is not known: frees of it are unknown
// ones. Memory as lives.h says.
#pragma once

#include "engine/replay/heap.h"
#include "trace/reader.h"

struct pool_totals;

struct pool_total {
	struct heap_amount allocated;
	struct heap_amount live; // in the end
	struct heap_amount peak; // count: of the moment of the highest bytes
	uint64_t peak_ns;
	uint64_t frees;         // of single blocks that were known
	uint64_t unknown_frees; // of addresses where nothing was known to live
	uint64_t resets;        // of the whole pool, and its end
	bool used;              // any of these was seen
};

// The reader is borrowed, and must know processes and threads before their events are added.
struct pool_totals *pool_totals_new(const struct reader *reader);
void pool_totals_free(struct pool_totals *totals); // NULL is allowed

// One of trace_kind_is_pool.
void pool_totals_add(struct pool_totals *totals, const struct trace_event *event);

// Borrowed until the next call.
const struct pool_total *pool_totals_get(const struct pool_totals *totals, heap_id heap);

// What is known of a pool from elsewhere, instead of its calls.
void pool_totals_set(struct pool_totals *totals, heap_id heap, const struct pool_total *total);
