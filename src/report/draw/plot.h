// plot: what a picture of a kind is to show, as a chart.
//
//     live          bytes alive over time: each layer, or each value of a key. Of each bucket the
//                   highest level, so that a spike that is narrower than a line keeps its height
//     blocks        the same of their number
//     cumulative    bytes allocated since the window's beginning
//     rate          bytes allocated per second
//     rss           resident memory as it was sampled, beside what the heap has alive
//     faults        page faults per second, of those that read nothing and of those that read a
//                   file or swap, as they were sampled
//     sizes         how many allocations had which size; both axes logarithmic
//     lifetimes     how long allocations of which size lived: a heat map
//     largest-free  the largest hole of the address space; of each bucket the lowest
//     fragmentation what malloc has of the system, and what of it is live: the rest is free inside
//
// By a key there is a curve for each of its values that has most, and one for the rest of them.
// Bytes by themselves are of malloc's heap, as everywhere.
#pragma once

#include "report/ask/query_context.h"
#include "report/draw/chart.h"

enum plot_kind {
	PLOT_LIVE,
	PLOT_BLOCKS,
	PLOT_CUMULATIVE,
	PLOT_RATE,
	PLOT_RSS,
	PLOT_FAULTS,
	PLOT_SIZES,
	PLOT_LIFETIMES,
	PLOT_LARGEST_FREE,
	PLOT_FRAGMENTATION,
	PLOT_KINDS,
};

// What curves are of: each value of a key that has most has one.
enum plot_key {
	PLOT_BY_NOTHING,
	PLOT_BY_PROCESS,
	PLOT_BY_HEAP,
	PLOT_BY_THREAD,
	PLOT_BY_OWNER,
	PLOT_BY_MODULE,
	PLOT_BY_FUNCTION,
	PLOT_BY_STACK,
	PLOT_KEYS,
};

// As they are written, NULL after the last. The first key's word is "none".
extern const char *const plot_kind_words[PLOT_KINDS + 1];
extern const char *const plot_key_words[PLOT_KEYS + 1];

// What was asked for. `window` is the user's words, for the subtitle.
struct plot_options {
	enum plot_kind kind;
	enum plot_key key;
	size_t curves_max;  // by a key, besides the rest
	size_t buckets;     // of time
	bool layer_given;   // that layer alone, instead of all that there are
	const char *window; // how the window was asked for; NULL: it is the whole trace
};

// What a picture's question is about: pictures of whole processes refuse what selects allocations.
const struct query_context_rules *plot_rules(enum plot_kind kind);

// Fill the chart. ERR_USAGE: the kind makes no sense for this trace, this window or this key.
// chart_fini is the caller's, on failure too.
bool plot_make(struct chart *chart, struct query_context *asked, const struct plot_options *options,
	       struct err *err);
