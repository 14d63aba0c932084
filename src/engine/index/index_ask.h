// index_ask: the questions of window.h, of the heap layer, answered from an index.
//
// They take queries as window.h has them, for the layer of heaps. Sums come from snapshots and
// spanning lifetimes (index_ask); single allocations from the steps (index_walk); levels by going
// through the steps with the group of each cell (the rest).
#pragma once

#include "engine/index/index_read.h"
#include "engine/query.h"
#include "engine/window_series.h"

struct index_first; // index_sizes.h

// Which group each cell is in, asked once for each cell, or site.
struct index_groups {
	struct index *index;              // borrowed
	const struct window_query *query; // borrowed
	bool by_cell;                     // groups differ by size: they are asked for by cell
	uint32_t *of;                     // by cell or by site; see index_group
	// Sizes that are asked for, by rising size: see index_groups_blocks. None: not known.
	struct index_first *sizes;
	size_t sizes_count;
};

// Whether allocations of a size are in the question, as far as its ranges say.
static inline bool index_has_size(const struct window_query *query, uint64_t size)
{
	bool has = query->sizes_count == 0;

	for (size_t i = 0; i < query->sizes_count; i++)
		has |= size >= query->sizes[i].least && size <= query->sizes[i].most;
	return has;
}

// Not asked yet; no group of a query may be so high. WINDOW_SKIP is the number after it.
enum { INDEX_GROUP_UNKNOWN = UINT32_MAX - 1 };

// Borrows both. Nothing is asked here: a cell that is never met costs nothing but its place.
void index_groups_init(struct index_groups *groups, struct index *index,
		       const struct window_query *query);
void index_groups_fini(struct index_groups *groups);
// Asks the query; index_group below does only where it must.
uint32_t index_group_slow(struct index_groups *groups, uint32_t cell, uint32_t site);

// The group of a step's cell; WINDOW_SKIP: it is not in the question.
static inline uint32_t index_group(struct index_groups *groups, uint32_t cell)
{
	struct cells_cell one = cells_cell(&groups->index->cells, cell);
	uint32_t group = groups->of[groups->by_cell ? cell : one.site];

	if (!index_has_size(groups->query, one.size))
		return WINDOW_SKIP;
	return group != INDEX_GROUP_UNKNOWN ? group : index_group_slow(groups, cell, one.site);
}

// The same of a site, where the query does not ask by size.
static inline uint32_t index_group_of_site(struct index_groups *groups, uint32_t site)
{
	uint32_t group = groups->of[site];

	return group != INDEX_GROUP_UNKNOWN ? group : index_group_slow(groups, 0, site);
}

// Asks the query, and keeps nothing. The size matters if the query asks by size.
uint32_t index_group_ask(const struct index *index, const struct window_query *query, uint32_t site,
			 uint64_t size);

// Whether all that there is, but for frees of what is not known, is in one group.
bool index_is_all(struct index *index, const struct window_query *query, uint32_t group);

// Which blocks of the window have steps of what the query asks for, from that of its first step on;
// *marks NULL: look at all. It is found by postings, where those are few, and by sizes:
// of a query by size groups->sizes are then known, if they are few. The caller frees *marks.
bool index_groups_blocks(struct index_groups *groups, uint8_t **marks, struct err *err);

// Which way is cheaper: in a short window what ends in it is looked at, and taken from what lived
// at its beginning; of a long one, what spans it.
static inline bool index_is_short(const struct index *index, const struct window_query *query)
{
	return query->to - query->from <= index->shape.short_steps;
}

// What a query is asked about a cell, and whether what ended at a step ended with its heap.
struct window_cell index_cell(const struct index *index, uint32_t cell);
bool index_destroyed(const struct index *index, uint64_t step);

// Adds to the rows that are there.
bool index_ask(struct index *index, const struct window_query *query, struct window_result *result,
	       struct err *err);

// As window_walk. `*stopped` (NULL: nobody asks): `each` has ended it.
bool index_walk(struct index *index, struct index_clock *clock, const struct window_query *query,
		bool (*each)(void *context, const struct window_allocation *allocation),
		void *context, bool *stopped, struct err *err);

// The lifetimes of a window as a list: for what asks of it again and again, and for questions by
// lifetime, which none of those below answers but index_walk and index_lifetimes. More than there
// is room for: ERR_LIMIT.
bool index_collect(struct index *index, struct index_clock *clock, const struct window_query *query,
		   struct plain *plain, struct err *err);

// As window_detail.
bool index_detail(struct index *index, struct index_clock *clock, const struct window_query *query,
		  struct window_detail *details, size_t count, struct err *err);

// The query's from_ns and to_ns are set. Three of those with `to` have one form, for a table of
// them. Without to->window, the level between the two steps of a realloc counts as any other.
bool index_timeline(struct index *index, const struct window_query *query,
		    const struct window_sums *to, struct err *err);
// What window_detail tells of all there is, without lifetimes: from levels.
bool index_peak_of_all(struct index *index, struct index_clock *clock,
		       const struct window_query *query, struct window_detail *detail,
		       struct err *err);
bool index_series(struct index *index, struct index_clock *clock, const struct window_query *query,
		  const struct window_sums *to, struct err *err);
bool index_flows(struct index *index, struct index_clock *clock, const struct window_query *query,
		 const struct window_sums *to, struct err *err);
bool index_changes(struct index *index, const struct window_query *query,
		   bool (*each)(void *context, const struct window_change *change), void *context,
		   struct err *err);
bool index_curve(struct index *index, const struct window_query *query,
		 bool (*whole)(void *context, const struct window_stretch *stretch),
		 bool (*each)(void *context, const struct window_change *change), void *context,
		 struct err *err);
bool index_lifetimes(struct index *index, struct index_clock *clock,
		     const struct window_query *query, const struct window_sums *to,
		     struct err *err);

// Peaks, first and last allocation by postings, of those groups that have few sites and steps
// enough to be merged; done[i] says of which details that was so. state_of[group] is the number of
// a group's detail + 1, for groups below groups_count; others are not asked for.
bool index_peaks(struct index *index, struct index_clock *clock, const struct window_query *query,
		 struct window_detail *details, size_t count, const uint32_t *state_of,
		 size_t groups_count, bool *done, struct err *err);
