// query_write: what the answers to all questions about a window have in common, for people, for
// programs and for tables.
#pragma once

#include "base/json.h"
#include "report/ask/query_context.h"
#include "report/table/stack_text.h"

// "./app --serve / 3.2 s, 1,234 events, process 42", the warnings, the window where it is not the
// whole, whether filters leave something out, and an empty line.
void query_write_headline(const struct query_context *asked, struct paper *paper);

// The symbols that could not be used.
void query_write_symbol_notes(const struct query_context *asked, struct paper *paper);

// The stacks of a page, after figures of `indent` columns; which process, where there are several.
struct stack_text query_write_stacks(const struct query_context *asked, struct paper *paper,
				     unsigned indent, unsigned callers_max, bool all_frames);

// What a page ends with: which symbols could not be used, and what to do for better names. Ends
// `stacks`.
void query_write_last(const struct query_context *asked, struct stack_text *stacks);

// "warnings": […].
void query_write_warnings(const struct query_context *asked, struct json *json);

// What is said of symbols by several questions, each note once; the list is the caller's to free.
size_t query_write_notes(const struct query_context *const *asked, size_t count,
			 const char ***notes);

// "symbol_notes": which symbols could not be used; and the end of the answer. They come last, since
// files are only opened for what is named. Of a comparison those of each side.
void query_write_end(const struct query_context *asked, struct json *json);
// Of several runs, each note once.
void query_write_end_of_several(const struct query_context *const *asked, size_t count,
				struct json *json);
void query_write_end_of_two(const struct query_context *before, const struct query_context *after,
			    struct json *json);

// "trace": {…}, "from_ns", "to_ns", "layer".
void query_write_trace(const struct query_context *asked, struct json *json);

// "trace" alone, under a name of its own.
void query_write_trace_as(const struct query_context *asked, struct json *json, const char *key);

// "process", "process_id", "exe", "stack_complete", "user_frame", "stack" of one place.
void query_write_place(const struct query_context *asked, struct json *json, process_id process,
		       stack_id stack);

// "user_frame" and "stack" alone.
void query_write_stack(const struct query_context *asked, struct json *json, stack_id stack);
