// query_context: a trace that is open to be asked, and all that was said of the question: the
// filters, the window or the moment, the layers, and what must be known before the answer is
// believed. Every command and every question of the viewer begins with one.
//
//     query_context_open       the trace, what the filters name in it, and when
//       query_context_query      about windows: a query of the engine that groups as it is asked
//       moment_view_read         about moments: what was there (moment_view.h)
//       query_context_select     about events: which of them are selected
//       query_context_warn       what came up on the way; said once
//       query_context_leave      no more questions; what was found can still be written
//     query_context_close
//
// What a question is about, and which filters it can honour, are its rules: one for each kind of
// answer, beside the code that finds it, so that a command and the viewer cannot differ. A filter
// that cannot be honoured is refused, and one that names nothing in the trace.
//
// The peak, as a moment, is when the most bytes of what the filters select were live, in the layer
// that is asked about: by the index, in every question. The window's own words (--from, --to,
// --impact) do not move it.
//
// A query made here groups by one of a few ways. A *site* is one stack of one process; sites
// are numbered in the order in which they are met, and `places` holds which is which.
#pragma once

#include "base/index_set.h"
#include "engine/replay/present.h"
#include "engine/whole.h"
#include "engine/window_series.h"
#include "report/ask/opened.h"
#include "report/ask/selection.h"

enum query_context_about {
	QUERY_CONTEXT_WINDOW, // [from, to) of the index
	QUERY_CONTEXT_MOMENT, // options.at
	QUERY_CONTEXT_EVENTS, // the trace's events, read one by one
};

// Of one kind of answer.
struct query_context_rules {
	enum query_context_about about;
	unsigned layers;     // what no --layer means: set of enum query_layer; 0: the heap
	bool one_layer;      // heap or vm, not both
	unsigned refused;    // filters that cannot be honoured: set of SELECTION_BIT
	const char *refusal; // why, after "--frame "
	bool exit_frees;     // the end of a process ends its blocks
};

// Windows as tables and trees: all filters.
extern const struct query_context_rules query_context_window_rules;

// What is found in a window: no --impact, one layer.
extern const struct query_context_rules query_context_findings_rules;

// The events themselves: all filters.
extern const struct query_context_rules query_context_events_rules;

// What the caller wants to know; `= { 0 }` with rules, path and words is enough.
struct query_context_options {
	const struct query_context_rules *rules; // borrowed until query_context_close
	const char *path;                        // of the trace; the same
	const struct selection_words *words;     // the same
	struct opened *opened;                   // the same; NULL: `path` is opened
	struct symbols_options symbols;          // unless `opened`
	struct window_options window; // for the index; memory and progress for all that is read
	const char *at;               // a moment; NULL: "exit"
	unsigned layers;              // what no --layer means, if not what the rules say
	bool exit_frees;              // the same, if the rules do not say so
	bool by_heap;                 // rows distinguish heaps: those of pools are among them
	// Of a trace that is being written: true if more of it is there by now, and it is to be
	// opened again. Given window.context. NULL: it is taken as it is.
	bool (*await)(void *context, const char *path, const struct reader *reader);
};

// A site, as the query found it.
struct query_context_place {
	process_id process;
	stack_id stack; // 0: none
};

// Edges count steps of the trace, times are ns since the recording began, levels are bytes.
struct query_context {
	struct query_context_options options;
	struct opened own;     // private: unless it was opened already
	struct opened *opened; // that, or the caller's
	struct reader *reader; // these three are of `opened`
	struct symbols *symbols;
	struct names *names;
	struct selection selection;
	unsigned layers;      // that are asked about: set of enum window_layer
	uint64_t duration_ns; // of the whole trace
	uint64_t events;      // the same: recorded memory calls. Of questions about windows only

	// About windows.
	struct window *window; // of `opened`
	// `from` is never after `to`. WINDOW_START is before the first step, and steps_end after
	// the last.
	uint64_t from, to; // edges
	uint64_t from_ns, to_ns;
	bool from_given, to_given;
	struct query_context_place *places; // owned
	size_t places_count, places_capacity;
	uint32_t *first_places;   // private: by stack, place + 1 in the process first asked for
	process_id first_process; // private
	struct index_set place_numbers; // private: of the other processes

	// About moments.
	struct moment_edge edge; // unless at_exit
	bool at_exit;            // each process just before its end
	struct present *present; // after moment_view_read
	bool complete;           // as far as it was read

	uint64_t peak_edge; // private: of the peak that a word asked for
	bool pools_out;     // the trace has pools whose blocks are left out
	bool no_frees;      // it was imported, and there is no free in it
	char **warnings;    // what one must know before believing the figures, a line each
	size_t warnings_count, warnings_capacity;
};

// False on a trace that cannot be read, on words that name nothing in it, on filters that cannot be
// honoured, on a window or moment that it does not have. `asked` needs no query_context_close then.
bool query_context_open(struct query_context *asked, const struct query_context_options *options,
			struct err *err);
void query_context_close(struct query_context *asked); // accepts { 0 }

// Give back what only questions need: the index, unless it is somebody else's, and the places.
void query_context_leave(struct query_context *asked);

// Another line of warning, as printf would write it. What is said already is not said again.
void query_context_warn(struct query_context *asked, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

// Warn of what is known of a trace only once it has been read: again, after reading it.
void query_context_caution(struct query_context *asked, bool scaled);

// Warn where filters were given and none of `count` allocations passed them.
void query_context_matched(struct query_context *asked, uint64_t count);

// The same by the sums of a reading. An import without a single free has `no_frees` then.
void query_context_counted(struct query_context *asked, const struct heap_counts *counts);

// As query_context_matched, for whoever has not counted what is in the window.
bool query_context_match(struct query_context *asked, struct err *err);

// Make the selection whole for one who counts allocations from events (selection_read), or shows
// them (selection_read_events).
bool query_context_select(struct query_context *asked, struct err *err);
bool query_context_select_events(struct query_context *asked, struct err *err);

// What all of the trace adds up to, of what is selected (query_context_select comes first).
// `walks`: sites are asked for by whole_walk alone.
void query_context_whole(struct query_context *asked, struct whole *whole, bool walks,
			 void (*on_note)(void *context, const struct trace_note *note),
			 void *context);

// ---- windows ----

// How the allocations of a query are put into groups.
enum query_context_grouping { QUERY_CONTEXT_ALL, QUERY_CONTEXT_BY_PLACE };

// Everything the words select (but for --impact), in the window from edge to edge, without frees of
// nothing known. The caller may group in a way of its own by query_context_selects.
struct window_query query_context_query(struct query_context *asked,
					enum query_context_grouping grouping, uint64_t from,
					uint64_t to);

// Whether the words select the cell, as far as it can tell: not by lifetime, which is in the query,
// nor by impact. Frees of nothing known pass only where no filter asks for what they do not have.
bool query_context_selects(const struct query_context *asked, const struct window_cell *cell);

// Whether it selects all there is: no words narrow it, no pools are left out.
bool query_context_selects_all(const struct query_context *asked);

// Whether the words say of frees of nothing known if they count. Those that choose by stack, size,
// lifetime or impact do not: then none is selected.
bool query_context_judges_frees(const struct query_context *asked);

// ERR_USAGE: both layers are asked about, and nothing tells them apart (`by_layer`: a key does).
bool query_context_check_layers(const struct query_context *asked, bool by_layer, struct err *err);

// The number of a place.
uint32_t query_context_place(struct query_context *asked, process_id process, stack_id stack);

// The highest level between two edges, and the edge after the step that first reached it.
struct query_context_peak {
	uint64_t bytes, edge;
};
bool query_context_peak(struct query_context *asked, uint64_t from, uint64_t to,
			struct query_context_peak *peak, struct err *err);

// The level at an edge.
bool query_context_level(struct query_context *asked, uint64_t edge, struct heap_amount *level,
			 struct err *err);

// Warn of blocks that count as outstanding at an end of the window though their process had ended.
// Makes up to two questions of traces of several processes.
bool query_context_warn_of_ended(struct query_context *asked, bool begin, struct err *err);

// What the last moment of the selected processes is: their exit; the recording's end, where all of
// them still ran; the cut, where events are lacking.
enum query_last { QUERY_LAST_EXIT, QUERY_LAST_END, QUERY_LAST_CUT };
enum query_last query_context_last(const struct query_context *asked);

// "14.2 s to mark:load#2 (21.1 s)": the window as it was asked for. Owned by the caller.
char *query_context_describe(const struct query_context *asked);
