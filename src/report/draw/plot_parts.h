// plot_parts: what the parts of plot share among themselves.
//
// Groups are the values of the key that have most (by what they reach, or by what they allocated),
// numbered from 0 by weight, and one more for all others.
#pragma once

#include "report/draw/plot.h"
#include "report/draw/plot_keys.h"

// An example: 40 functions, of which 7 get a curve: `count` is 7, `values` 40, and group 7 is that
// of the 33 others.
struct plot_groups {
	struct plot_keys keys;
	uint32_t count;       // groups of their own; `count` itself is the others'
	size_t values;        // of the key, in all
	uint32_t *order;      // owned: value by group
	uint32_t *ranks;      // owned: group by value
	uint32_t ranks_count; // values that were known when groups were made
};

// The groups of the window that `asked` is of; owned by the caller even if it fails
// (plot_groups_fini). `groups` is { 0 }. Levels are weighed by the most that they reach, of the 200
// values that most passed through; all else by what passed through.
bool plot_groups_find(struct plot_groups *groups, struct query_context *asked,
		      const struct plot_options *options, struct err *err);
void plot_groups_fini(struct plot_groups *groups); // accepts { 0 }

// How many curves that makes, and what each is called (`out` may be used for it).
size_t plot_groups_curves(const struct plot_groups *groups);
// Valid as long as the groups, or as `out`.
const char *plot_groups_name(const struct plot_groups *groups, size_t curve, char out[static 40]);

// The last of those curves, if it is the others', is drawn as such.
void plot_groups_mark_rest(const struct plot_groups *groups, struct chart *chart);

// The words' window and filters; grouped by `group` (NULL: all in one), whose context are groups.
// The query borrows both.
struct window_query plot_query(struct query_context *asked, struct plot_groups *groups,
			       uint32_t (*group)(void *, const struct window_cell *));

// Grouped into the groups.
struct window_query plot_groups_query(struct plot_groups *groups);

// Kinds of pictures: fill the chart. ERR_USAGE: there is nothing to draw, by a sentence that says
// what is not there.
bool plot_time_live(struct chart *chart, struct query_context *asked,
		    const struct plot_options *options, struct err *err);
bool plot_time_flow(struct chart *chart, struct query_context *asked,
		    const struct plot_options *options, struct err *err);
bool plot_time_rss(struct chart *chart, struct query_context *asked,
		   const struct plot_options *options, struct err *err);
bool plot_time_faults(struct chart *chart, struct query_context *asked,
		      const struct plot_options *options, struct err *err);
bool plot_time_holes(struct chart *chart, struct query_context *asked,
		     const struct plot_options *options, struct err *err);
bool plot_time_heaps(struct chart *chart, struct query_context *asked,
		     const struct plot_options *options, struct err *err);
bool plot_sizes(struct chart *chart, struct query_context *asked,
		const struct plot_options *options, struct err *err);
bool plot_lifetimes(struct chart *chart, struct query_context *asked,
		    const struct plot_options *options, struct err *err);
