// row_filter: only the allocations that are in certain rows of a table.
//
// A row is written as its key and what it is called: function:NAME and module:PATH, of the first
// function of a stack that is no allocator wrapper, as tables name it; stack:ID, all stacks that
// are equal to that of the trace in every frame. An allocation passes if it is in any of the rows
// that were asked for (or none was), and in none of those to leave out. Each stack is looked at
// once.
//
// Rows by what is no stack's, such as a size, are the query's (selection.c).
#pragma once

#include "report/ask/frame_filter.h"
#include "report/ask/names.h"

struct row_filter;

// Whether `word` is written as a row: ERR_USAGE if not, with what would be.
bool row_filter_check(const char *word, struct err *err);

// `reader` and `names` are borrowed.
struct row_filter *row_filter_new(const struct reader *reader, struct names *names);
void row_filter_free(struct row_filter *filter); // NULL is allowed

// `out`: to leave out. ERR_USAGE also where the trace has no such stack.
bool row_filter_add(struct row_filter *filter, const char *word, bool out, struct err *err);

// What stacks have to pass besides. Borrowed; NULL: nothing.
void row_filter_and(struct row_filter *filter, struct frame_filter *frames);

// Whether allocations with this stack count. A query's `stack`; the context is the filter.
bool row_filter_passes(void *filter, stack_id stack);
