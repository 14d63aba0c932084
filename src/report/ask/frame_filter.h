// frame_filter: which stacks pass through functions, and modules, of certain names.
//
// POSIX extended regular expressions over demangled function names, inlined ones included, and
// over the paths of modules. A stack passes if any of its functions matches one of the wanted
// expressions (or none is wanted), none matches an unwanted one, and any of its frames is in a
// module that was asked for (or none was). Each frame is named and matched once and
// each stack walked once, so the price does not grow with the number of events.
#pragma once

#include "base/err.h"
#include "report/ask/names.h"

#include <stdbool.h>

struct frame_filter;

// `names` and `reader` are borrowed.
struct frame_filter *frame_filter_new(const struct reader *reader, struct names *names);
void frame_filter_free(struct frame_filter *filter); // NULL is allowed

enum frame_filter_kind { FRAME_FILTER_WANTED, FRAME_FILTER_UNWANTED, FRAME_FILTER_MODULE };

// ERR_USAGE, with the reason, if `expression` is none. It is borrowed.
bool frame_filter_add(struct frame_filter *filter, const char *expression,
		      enum frame_filter_kind kind, struct err *err);

// After all stacks were asked for: the next wanted expression that matched nothing in any of them;
// NULL: there is none more.
const char *frame_filter_unmet(struct frame_filter *filter, enum frame_filter_kind *kind);

// How many frames of the stacks that were asked for have no function's name; *frames: of so many.
size_t frame_filter_nameless(const struct frame_filter *filter, size_t *frames);

// How many of them are in a function of which only the last part of the name is known, if an
// expression asks for more ("^ns::"): it may miss them.
size_t frame_filter_bare(const struct frame_filter *filter);

// Whether allocations with this stack count. A query's `stack`; the context is the filter.
bool frame_filter_passes(void *filter, stack_id stack);
