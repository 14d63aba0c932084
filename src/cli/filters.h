// filters: the options that choose allocations, the same for all commands that answer questions.
//
//     .shared = filters_rows,
//     .shared_title = filters_title,
//
//     while ((id = args_next(&args)) != ARGS_END) {
//             if (filters_take(&args, &words, id))
//                     continue;
//             …
//     }
//     if (!filters_check(&args, &words))
//             return args.exit_code;
//
// What they mean is the report's (report/ask/selection.h).
#pragma once

#include "cli/args.h"
#include "report/ask/selection.h"

enum { FILTERS_FIRST = 1000 }; // ids of the rows begin here

extern const struct option_row filters_rows[];
extern const char filters_title[];

// Take the option, if it is a filter. False: it is none.
bool filters_take(const struct args *args, struct selection_words *words, int id);

// Whether all words make sense by themselves. False: the mistake was printed, return
// args->exit_code.
bool filters_check(struct args *args, const struct selection_words *words);
