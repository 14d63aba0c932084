// ask: what the commands that list findings in a window have in common on the command line: a
// trace, filters, how many rows, of what size, and how they are shown.
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include "base/sink.h"
#include "cli/args.h"
#include "cli/filters.h"
#include "cli/look.h"
#include "report/inquiry.h"

enum { ASK_ROWS = 3000, ASK_MIN_BYTES, ASK_ALL_FRAMES, ASK_MEMORY, ASK_ROWS_DEFAULT = 10 };

#define ASK_ROW_ROWS(what)                                                 \
	{                                                                  \
		ASK_ROWS, 'n', "rows", "N", "show N " what " (10; 0: all)" \
	}
#define ASK_ROW_ALL_FRAMES                                                   \
	{                                                                    \
		ASK_ALL_FRAMES, 'a', "all-frames", NULL,                     \
			"show allocator wrappers and every frame of a stack" \
	}

#define ASK_ROW_MEMORY                                                                        \
	{                                                                                     \
		ASK_MEMORY, 'm', "memory", "SIZE", "for building and asking the index (256M)" \
	}

struct ask {
	const char *path;
	struct selection_words words;
	struct look look;
	uint64_t rows_max;
	uint64_t bytes_min;    // 0: not given
	uint64_t memory_bytes; // 0: the engine's default
	bool all_frames;
};

// Take an option or a filter (no operand). LOOK_NOT_MINE: the command's own, or an operand.
enum look_taken ask_take(struct args *args, struct ask *ask, int id);

// Take all words of a command that has no options but these, and one trace. False: return
// args->exit_code.
bool ask_take_all(struct args *args, struct ask *ask);

// Open the trace of `path`. Ctrl-C ends the building of an index in good order.
bool ask_open(const struct ask *ask, const char *path, const struct selection_words *words,
	      struct inquiry *inquiry, struct err *err);

// A whole command: takes its words, opens the trace, answers to the standard output, warns.
// `answer` writes to the sink; false with *err: nothing was written.
int ask_run(const struct command *command, int argc, char **argv,
	    bool (*answer)(const struct ask *ask, struct inquiry *inquiry, struct sink *sink,
			   struct err *err));

// Tell the warnings beside the answer, as programs get them; for people they stand in it. `trace`
// names the one of several that they are about, or is NULL.
void ask_warn(const struct command *command, const struct inquiry *inquiry, const char *trace);

#endif
