// moment_view: a trace as it was at one moment: what a query context about a moment is asked.
//
//     query_context_open     the trace, its names, the filters, the moment
//       moment_view_read         what was there: from the index, or the trace up to the moment
//         asked.present              blocks and mappings (engine/replay/present.h)
//         moment_view_choose         for questions about one process: which
//         moment_view_write_…        what all answers have in common
//     query_context_close
//
// The moment is one of moment.h, or "exit": each process as it was just before its end, and those
// that ran on as they were when the recording ended.
#pragma once

#include "base/json.h"
#include "engine/replay/plateau.h"
#include "report/ask/query_context.h"
#include "report/table/paper.h"

// What is written as a moment at all, "exit" included: ERR_USAGE if not.
bool moment_view_check(const char *at, struct err *err);

// Find what is there. `more` (NULL: nothing) gives what else the engine is to do; its query, moment
// and progress are set here. Where there is an index, it is asked (index_moment.h); none is built
// for this: one pass over the trace, as far as the moment, costs less.
void moment_view_read(struct query_context *asked, const struct present_options *more);

// The same at another moment, which `options` has, for the caller to free.
struct present *moment_view_find(struct query_context *asked,
				 const struct present_options *options);

// All calls on virtual memory of the trace, for options->before and options->after.
void moment_view_calls(struct query_context *asked, const struct present_options *options,
		       const char *what);

// The plateau of a process that ends before an event. The reader is moved.
void moment_view_plateau(struct query_context *asked, process_id process, uint64_t number,
			 struct plateau *plateau);

// Move the reader to before the event of a number: not far, where there is an index; else (false)
// to the beginning.
bool moment_view_go(struct query_context *asked, uint64_t number);

// Warn of what the address space was given and could not believe.
void moment_view_warn_of_space(struct query_context *asked);

// The same for those who have no moment: only that calls were not seen.
void moment_view_warn_of_calls(struct query_context *asked);

// For answers about free memory: warn that in a sampled recording it is not.
void moment_view_warn_of_samples(struct query_context *asked);

// The process that a question about one is about: the one that the filters leave; of several the
// one with the most mapped at the moment, with a warning that says so. ERR_USAGE: nothing is
// mapped in any, because none of them was recorded so.
bool moment_view_choose(struct query_context *asked, process_id *process, struct err *err);

// At exit an image that was left by exec has had its end long ago: its process went on without
// anything of it. Is it one of those, and are not all that are selected?
bool moment_view_passes_over(const struct query_context *asked, process_id process);

// The moment in words: "at 1.2 s", "at the mark 'loaded', 1.2 s", "at exit",
// "at the end", "at the cut" (query_context_last).
void moment_view_describe(const struct query_context *asked, struct str *text);

// "at_ns": of the moment, or of the trace's end.
uint64_t moment_view_time(const struct query_context *asked);

// "./app --serve / at 1.2 s, process 42", the warnings, and an empty line. `process`: TRACE_NONE
// if the answer is about all.
void moment_view_write_headline(const struct query_context *asked, struct paper *paper,
				process_id process);

// "user_frame": N, "stack": […], innermost first.
void moment_view_write_stack(const struct query_context *asked, struct json *json, stack_id stack);
