// at: what the commands about one moment have in common on the command line: a trace, a moment,
// filters, how many rows, of what size, and how they are shown.
#ifndef CLI_AT_H
#define CLI_AT_H

#include "cli/args.h"
#include "cli/filters.h"
#include "cli/look.h"
#include "report/sight.h"

enum { AT_MOMENT = 3500, AT_ROWS, AT_MIN_BYTES, AT_ALL_FRAMES };

#define AT_ROW_MOMENT                                                                      \
	{                                                                                  \
		AT_MOMENT, 0, "at", "WHEN",                                                \
			"exit (each process just before its end), 12.5s, 50%, -5s, peak, " \
			"peak+1ms, mark:NAME"                                              \
	}
#define AT_ROW_ROWS(what)                                             \
	{                                                             \
		AT_ROWS, 'n', "rows", "N", "show N " what " (0: all)" \
	}
#define AT_ROW_MIN_BYTES(what)                                                            \
	{                                                                                 \
		AT_MIN_BYTES, 0, "min-bytes", "SIZE", "leave out " what " of fewer bytes" \
	}
#define AT_ROW_ALL_FRAMES                                                    \
	{                                                                    \
		AT_ALL_FRAMES, 'a', "all-frames", NULL,                      \
			"show allocator wrappers and every frame of a stack" \
	}

struct at {
	const char *path;
	const char *moment; // NULL: not given
	bool of_mappings;   // the command's: a peak is that of committed memory
	struct selection_words words;
	struct look look;
	uint64_t rows_max;
	uint64_t bytes_min;
	bool rows_given;
	bool all_frames;
};

void at_fini(struct at *at); // accepts { 0 }

// Take an option, a filter or the operand. LOOK_NOT_MINE: the command's own.
enum look_taken at_take(struct args *args, struct at *at, int id);

// After the last option: is all there, and does it make sense by itself? False: the mistake was
// told, return args->exit_code.
bool at_check(struct args *args, const struct at *at);

// Open the trace.
bool at_open(const struct at *at, struct sight *sight, struct err *err);

// A paper for stdout.
struct paper at_paper(const struct at *at, struct sink *sink);

// For people the warnings stand in the answer; programs get them beside it.
void at_warn(const struct command *command, const struct sight *sight);

#endif
