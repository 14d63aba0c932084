// selection: the allocations that the words of the command line select; one set of words for all
// commands.
//
//     selection_words_add, selection_words_check    from the command line, before a trace is open
//     selection_init                                names become ids, expressions become filters
//       selection.query                             for engines that take a query
//       selection_read                              for those that read events one by one
//     selection_fini
//
// What the words mean is in engine/query.h (process, thread, layer, sizes, lifetimes, impact),
// report/ask/frame_filter.h (frame, not-frame, module), report/ask/row_filter.h (row, not-row) and
// engine/moment.h (from, to).
//
// All find the window first (selection_window). Whoever is about a window does the rest itself. Who
// counts from events calls selection_read: there --from and --to select the allocations made in
// that time, and --impact those of them that were that to the time between.
#pragma once

#include "engine/moment.h"
#include "engine/query.h"
#include "engine/replay/event_bitmap.h"
#include "engine/window.h"
#include "report/ask/row_filter.h"

// In the order in which words are taken: frames before rows.
enum selection_kind {
	SELECTION_PROCESS,
	SELECTION_THREAD,
	SELECTION_LAYER,
	SELECTION_HEAP,
	SELECTION_SIZE,
	SELECTION_LIFETIME,
	SELECTION_IMPACT,
	SELECTION_MODULE,
	SELECTION_FRAME,
	SELECTION_NOT_FRAME,
	SELECTION_ROW,
	SELECTION_NOT_ROW,
	SELECTION_FROM, // the last one given counts
	SELECTION_TO,
	SELECTION_KINDS,
};

#define SELECTION_BIT(kind) (1u << SELECTION_##kind)

// What each is called: "process" …, as in --process.
extern const char *const selection_names[SELECTION_KINDS];

// Words as they were given. `= { 0 }` is none.
struct selection_words {
	struct selection_list {
		const char **words; // owned; the texts are borrowed
		size_t count, capacity;
	} lists[SELECTION_KINDS];
};

// `word` is borrowed as long as the words live.
void selection_words_add(struct selection_words *words, enum selection_kind kind, const char *word);
void selection_words_fini(struct selection_words *words);

// Words of their own for a second window: those of `from`, but --from and --to where these are not
// NULL. Borrows what `from` borrows.
void selection_words_with_window(struct selection_words *words, const struct selection_words *from,
				 const char *window_from, const char *window_to);

// The last word of a kind; NULL: none.
const char *selection_words_get(const struct selection_words *words, enum selection_kind kind);

// What can be checked without a trace: is each word written as what it should be? ERR_USAGE.
bool selection_words_check(const struct selection_words *words, struct err *err);

// What the words select in one trace. `query` is borrowed by those who ask, and dies with this.
struct selection {
	struct query query;
	struct frame_filter *filter;
	struct row_filter *rows;             // NULL: none were asked for
	struct names *names;                 // borrowed
	const struct selection_words *words; // borrowed
	struct reader *reader;               // borrowed
	struct moment_edge window[2];        // after selection_window
	struct event_bitmap *event_bitmap;   // only where lifetimes or impacts ask for them
	bool within;                         // only what begins in the window
};

// `reader` must have been scanned; `names` is asked for what frames are called. Both are borrowed.
// ERR_USAGE: a word names nothing in the trace.
bool selection_init(struct selection *selection, const struct selection_words *words,
		    struct reader *reader, struct names *names, struct err *err);
void selection_fini(struct selection *selection); // accepts { 0 }

// Find --from and --to (moment_find_window). Before the two below.
bool selection_window(struct selection *selection, moment_peak *peak, void *context,
		      struct err *err);

// Make the query whole for one who counts allocations from events: sets query.event where size,
// window, lifetime, heap or impact narrow it. Reads the trace once where it must, and rewinds it.
bool selection_read(struct selection *selection, const struct window_options *options,
		    struct err *err);

// The same for one who shows single events: reads the trace once, and rewinds it. --from and --to
// say only what impacts are about.
bool selection_read_events(struct selection *selection, const struct window_options *options,
			   struct err *err);

// Whether the event begins or ends a selected allocation, or is a call that failed or that is on
// virtual memory and is itself as was asked for. After selection_read_events.
bool selection_has_event(const struct selection *selection, const struct trace_event *event);
