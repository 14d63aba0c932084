// window_source: what the parts of window share: where single steps come from.
#pragma once

#include "engine/window.h"

// The number of the event of a step; UINT64_MAX: none.
bool window_source_number(struct window *window, uint64_t step, uint64_t *number, struct err *err);

// What is allocated at one moment, and what calls on virtual memory there were (index_moment.h), if
// there is an index that says it. NULL, false: there is none, or it is damaged; the trace has it.
struct present;
struct present_options;
struct present *window_source_moment(struct window *window, const struct present_options *options);
bool window_source_calls(struct window *window, const struct present_options *options);

// The plateau of a process that ends before an event (plateau.h). False: as above.
struct plateau;
bool window_source_plateau(struct window *window, process_id process, uint64_t number,
			   struct plateau *plateau);

// Whether the index has each event as the trace has it, and there is no first half of a realloc
// that is undone.
bool window_source_is_exact(const struct window *window);

// The edge of a moment, and the number of the first event after it, of an index.
struct moment_edge;
bool window_source_edge(struct window *window, const struct moment_edge *moment, uint64_t *edge,
			uint64_t *number, struct err *err);

// The lives of all blocks, as index_lives.h gives them. False with *err: that did not go well, and
// what was given counts for nothing. *known is false where there is no index that says them.
struct lives_watcher;
struct progress;
bool window_source_lives(struct window *window, const struct lives_watcher *watcher,
			 void (*over)(void *context, process_id process), struct progress *progress,
			 bool *known, struct err *err);

// Move the reader to before the event of a number, not far. False: nobody knows how; it is where it
// was, or at the beginning.
bool window_source_go(struct window *window, uint64_t number);

// The one that window_open was given.
struct reader *window_source_reader(struct window *window);

// Where the index of a trace is: beside it, or in the user's cache directory where that cannot
// be written to (`cached`). The path is owned by the caller.
char *window_source_path(const char *trace_path, const uint8_t recording_id[16], bool *cached);

// Nobody else builds the index at `path`, which is made where it is missing and is for those who
// may read the trace, until window_source_unlock. Waits for who does, and says so. False: it cannot
// be made, or options->stop said so.
bool window_source_lock(const char *path, const char *trace_path,
			const struct window_options *options, int *lock, struct err *err);
void window_source_unlock(int lock);

// The index at `path` could not be made, as *err says: add where it was to be, how much it takes,
// and what does without it. What was written of it goes, unless it was stopped: then it can be gone
// on with. `share` is how much of the trace was read, per mille; 0: not known.
void window_source_fail(const char *path, unsigned share, struct err *err);

// What $TIDEMARK_INDEX says of when an index is made, for tests and for those who look for the
// difference: "always", also of small traces; "tiny", the same with blocks so small that every path
// is taken; "never", all lifetimes in memory, or an error where they do not fit.
enum window_source_wish {
	WINDOW_SOURCE_AUTO,
	WINDOW_SOURCE_ALWAYS,
	WINDOW_SOURCE_TINY,
	WINDOW_SOURCE_NEVER
};
bool window_source_wish(enum window_source_wish *wish, struct err *err);
