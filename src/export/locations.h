// locations: the code addresses that stacks pass, the functions there and their texts, each
// numbered once: the tables that formats with numbered frames are made of.
//
// A location is one frame of the trace: one address in one module, with one line for each
// function that was inlined there, innermost first. A function is a name in a file and a module.
// Numbers count from 0 in the order in which they were first asked for. One thread.
//
// For example frame 7 is `copy` inlined into `parse`: one location with two lines, of two
// functions. Another place in `parse` is another location, with a line of the same function.
#pragma once

#include "base/map.h"
#include "export/string_table.h"
#include "report/ask/names.h"

struct location_function {
	uint32_t name, file, module; // in `strings`
	bool known;                  // it has a name of its own; else name is "libx.so+0x12"
};

struct location_line {
	uint32_t function;
	uint32_t line; // 0: not known
};

// Its lines are next to each other, the innermost function first.
struct location {
	frame_id frame;
	uint32_t lines_first, lines_count; // in `lines`
};

// The text of some callers is kept (locations_fold).
enum { LOCATIONS_FOLDS = 1 << 12, LOCATIONS_FOLD_MAX = 1 << 12 };
struct locations_fold {
	stack_id stack; // 0: none
	struct str text;
};

struct locations {
	const struct reader *reader; // borrowed
	struct names *names;         // borrowed
	bool scoped;                 // functions of templates are without their return type
	process_id process;          // whose addresses are shown (stack_levels_frame)
	struct string_table strings;
	struct location *list;
	struct location_line *lines;
	struct location_function *functions;
	size_t count, lines_count, functions_count;
	size_t capacity, lines_capacity, functions_capacity; // private
	struct map numbers;                                  // private: of frames
	struct locations_fold *folds;      // private: by the last digits of stacks
	struct str fold;                   // private: a stack being folded
	uint32_t *path;                    // private: its callers
	size_t path_capacity;              // private
	struct index_set function_numbers; // private
};

// `= { .reader = …, .names = … }` is an empty one; `scoped` is the caller's, too.
// The trace and the names stay.
void locations_fini(struct locations *locations);

// The number of a frame's location.
// The same number each time. Lists may move: keep numbers, not pointers.
uint32_t locations_add(struct locations *locations, frame_id frame);

// Whether the innermost frame of a stack is in no export: the recorder's own, if it has a caller.
bool locations_leave_out(const struct reader *reader, const struct trace_stack *node);

// The locations of a stack, innermost first, in `*numbers` (grown with mem_grow; the caller's).
// Returns how many: 0 for stack 0. Without frames that are left out.
size_t locations_of_stack(struct locations *locations, stack_id stack, uint32_t **numbers,
			  size_t *capacity);

// "outermost;…;innermost" of a stack, or "(no stack)"; and one name of such a line, after a
// semicolon where there is text already. A semicolon in a name becomes a colon. Append.
void locations_fold(struct locations *locations, stack_id stack, struct str *line);
void locations_fold_name(struct str *line, const char *name);
