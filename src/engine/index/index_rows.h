// index_rows: the rows of an answer, from the figures of sites or cells.
//
//     index_rows_begin
//       index_rows_add     figures of one site or cell
//       index_rows_destroyed
//     index_rows_end
//
// What the end of a process does to the figures of its sites is seen to here.
#pragma once

#include "engine/index/index_ask.h"
#include "engine/index/index_stripes.h"

enum { INDEX_ROWS_BATCH = 32 };

// Figures on their way to their row.
struct index_rows_entry {
	uint32_t group;
	struct index_figures figures;
	struct window_rest rest;
};

struct index_rows {
	const struct index *index;        // borrowed
	const struct window_query *query; // borrowed
	struct window_result *result;     // borrowed
	size_t capacity, rests_capacity;  // of its rows
	struct index_rows_entry total;
	// Some at a time: rows are all over memory, and are fetched while the next groups are asked
	// for.
	struct index_rows_entry batch[INDEX_ROWS_BATCH];
	uint32_t count;
};

// `keys`: so many groups are likely.
void index_rows_begin(struct index_rows *rows, const struct index *index,
		      const struct window_query *query, struct window_result *result,
		      uint32_t keys);
// Of a site, and of a size where the query asks by size.
void index_rows_add(struct index_rows *rows, uint32_t site, uint64_t size,
		    const struct index_figures *figures);
void index_rows_end(struct index_rows *rows);

// A block of this size ended with its heap.
void index_rows_destroyed(struct index_rows *rows, uint32_t group, uint64_t size);
