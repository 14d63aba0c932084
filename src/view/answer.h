// answer: the questions, one function each. viewer.c has the table of them.
//
// Each takes its parameters, asks the floors below, and writes the answer to `sink`. False with
// *err set, or with answer_refuse: what is written by then is forgotten.
//
// For example "/api/histogram?from=1s&exit-frees=1": the table gives answer_sizes_histogram, which
// takes exit-frees by itself, from with all other filters, and then nothing may be left.
#pragma once

#include "report/ask/moment_view.h"
#include "view/params.h"
#include "view/viewer.h"

enum {
	// Of `n`: where it is not given, and the most. 0 asks for the most.
	ANSWER_ROWS_DEFAULT = 200,
	ANSWER_ROWS_MAX = 10000,
	ANSWER_NODES_MAX = 10000,
	// A longer answer is refused: a page could not bear it.
	ANSWER_BYTES_MAX = 64 << 20,
	ANSWER_BUCKETS_DEFAULT = 800,
	ANSWER_BUCKETS_MAX = 4096,
};

// One question while it is being answered. All but the words are borrowed.
struct answer {
	struct viewer *viewer;
	struct query_queue *query_queue; // whose turn it is
	struct params params;            // what was asked with; each is taken once
	struct selection_words words;    // the filters; owned by the asker
	struct sink *sink;               // the answer, as JSON
	struct viewer_reply *reply;      // for a refusal, and for text that is no JSON
};

// The thread has its turn at the queue, so the trace is its own meanwhile.
typedef bool answer_function(struct answer *answer, struct err *err);

// About windows.
answer_function answer_window, answer_window_tree;

// Levels over time: the timeline, of the second trace too; the largest free block.
answer_function answer_levels_timeline, answer_levels_curve;

// How large, how long.
answer_function answer_sizes_histogram, answer_sizes_life;

// What stands out.
answer_function answer_findings_growth, answer_findings_transients, answer_findings_peaks,
	answer_findings_diff, answer_findings_all;

// Moments.
answer_function answer_moments_map, answer_moments_active, answer_moments_reconcile;

// About the trace itself, and the program's text.
answer_function answer_trace_info, answer_trace_view, answer_trace_marks, answer_trace_progress,
	answer_source;

// Refuse for a reason that is no error, in a sentence for the user. Always false, for the caller to
// return.
bool answer_refuse(struct answer *answer, enum refusal refusal, struct err *err, const char *text);

// The rows to show: `n`, up to ANSWER_ROWS_MAX; `rows_default` where it is not given. False: it is
// no such number.
bool answer_rows(struct answer *answer, uint64_t rows_default, uint64_t *rows, struct err *err);

// How to open what is asked about at the queue, with the filters that were taken.
struct query_context_options answer_options(const struct answer *answer,
					    const struct query_context_rules *rules);

// Take all filters and check that nothing is left, then open it.
bool answer_ask(struct answer *answer, const struct query_context_rules *rules,
		struct query_context *asked, struct err *err);
