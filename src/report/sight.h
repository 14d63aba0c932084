// sight: a trace that was opened to be looked at as it was at one moment, with the words of the
// command line in force.
//
//     sight_open        the trace, its names, the filters, the moment
//       sight_read      replays the trace up to there
//         sight.present            blocks and mappings (engine/present.h)
//         sight_choose             for questions about one process: which
//         sight_write_…            what all answers have in common
//     sight_close
//
// The moment is one of moment.h, or "exit": each process as it was just before its end, and those
// that ran on as they were when the recording ended.
#ifndef REPORT_SIGHT_H
#define REPORT_SIGHT_H

#include "base/json.h"
#include "engine/present.h"
#include "report/opened.h"
#include "report/paper.h"
#include "report/selection.h"

struct sight_options {
	const char *path;                    // of the trace
	const struct selection_words *words; // borrowed until sight_close
	const char *at;                      // the moment; NULL: "exit"
	struct opened *opened;               // borrowed; NULL: `path` is opened
	bool of_mappings;                    // "peak" is that of committed memory, not of the heap
	struct symbols_options symbols;
	enum progress_mode progress;
};

struct sight {
	struct opened own; // private: unless it was opened already
	struct reader *reader;
	struct symbols *symbols;
	struct names *names;
	struct selection selection;
	struct sight_options options;
	struct moment_edge edge; // unless at_exit
	bool at_exit;
	struct present *present; // after sight_read
	bool complete;           // as far as it was read
	char **warnings;         // what a reader must know before believing the figures
	size_t warnings_count, warnings_capacity;
};

// What is written as a moment at all, "exit" included: ERR_USAGE if not.
bool sight_check(const char *at, struct err *err);

// False on a trace that cannot be read, on words that name nothing in it, on a moment that it does
// not have. `sight` needs no sight_close then.
bool sight_open(struct sight *sight, const struct sight_options *options, struct err *err);
void sight_close(struct sight *sight); // accepts { 0 }

// Replay up to the moment. `more` (NULL: nothing) gives what else the engine is to do; its query,
// moment and progress are set here.
void sight_read(struct sight *sight, const struct present_options *more);

// Add a warning.
void sight_warn(struct sight *sight, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Warn of what the address space was told that it could not believe.
void sight_warn_of_space(struct sight *sight);

// For answers about free memory: warn that in a sampled recording it is not.
void sight_warn_of_samples(struct sight *sight);

// The process that a question about one is about: the one that the filters leave; of several the
// one with the most mapped at the moment, with a warning that says so. ERR_USAGE: nothing is
// mapped in any, because none of them was recorded so.
bool sight_choose(struct sight *sight, process_id *process, struct err *err);

// At exit an image that was left by exec has had its end long ago: its process went on without
// anything of it. Is it one of those, and are not all that are selected?
bool sight_passes_over(const struct sight *sight, process_id process);

// The moment in words: "at 1.2 s", "at the mark 'loaded', 1.2 s", "at exit".
void sight_describe(const struct sight *sight, struct str *text);

// "at_ns": of the moment, or of the trace's end.
uint64_t sight_time(const struct sight *sight);

// "./app --serve / at 1.2 s, process 42", the warnings, and an empty line. `process`: TRACE_NONE
// if the answer is about all.
void sight_write_headline(const struct sight *sight, struct paper *paper, process_id process);

// "user_frame": N, "stack": […], innermost first.
void sight_write_stack(const struct sight *sight, struct json *json, stack_id stack);

// The function that a table shows for a stack: the innermost that is no wrapper. NULL: none.
const struct symbol *sight_function(const struct sight *sight, stack_id stack);

#endif
