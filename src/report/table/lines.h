// lines: the lines of a stack in each of the forms in which answers are written.
//
// For people: "function  file:line", shortened to what is left of the line after the figures; the
// callers below, without the functions in which every thread begins, at most a dozen. For
// programs: an array of objects in JSON, one field in CSV; always whole.
#pragma once

#include "base/json.h"
#include "engine/replay/heap.h"
#include "report/ask/names.h"
#include "report/table/paper.h"

enum { LINES_MODULES_MAX = 3 };

// Stacks on paper. Counts what it had no names for.
struct lines {
	struct paper *paper;              // borrowed
	unsigned indent;                  // columns in front of each line
	bool all_frames;                  // leave nothing out
	unsigned callers_max;             // lines below the first; 0: eleven
	uint64_t unnamed, unlined, count; // frames without function, without line, all
	bool windows;                     // some of them are of Windows' modules
	// The first modules of frames without function, and whether there are more. Borrowed.
	const char *modules[LINES_MODULES_MAX];
	bool more_modules;
};

// What is after the figures: one line, with `ending` and a newline.
void lines_write(struct lines *lines, const struct symbol *symbol, enum paper_style style,
		 const char *ending);

// The same of a function that stands for several of its lines: without `exact` its file is named
// and no line.
void lines_write_function(struct lines *lines, const struct symbol *symbol, enum paper_style style,
			  bool exact);

// The lines below the first, indented.
void lines_write_callers(struct lines *lines, const struct names_stack *stack, size_t first);

// The last two parts of a path are enough to know a file by: "/home/me/src/a.c" -> "src/a.c".
// Borrowed from `path`.
const char *lines_last_two(const char *path);

// Blanks up to the indent.
void lines_write_indent(struct lines *lines);

// What could not be named, and what would help. `notes` are those of the symbols.
void lines_write_notes(struct lines *lines, const char *const *notes, size_t notes_count);

// The array of a stack's frames.
void lines_json(struct json *json, const struct names_stack *stack);

// "stack_complete", "stack_deep", "user_frame" and "stack" of a site.
void lines_json_site(struct json *json, const struct names_stack *stack);

// A small object on one line of its own, in JSON that is not.
void lines_json_begin(struct json *json);
void lines_json_end(struct json *json);

// "key": {"count": …, "bytes": …}, on a line.
void lines_json_amount(struct json *json, const char *key, struct heap_amount amount);
