// chosen: what the filters leave of a trace, for commands that write its events into a file.
//
//     chosen_open
//       chosen_write      into the output
//     chosen_close        also where chosen_open failed
#ifndef CLI_CHOSEN_H
#define CLI_CHOSEN_H

#include "base/sink.h"
#include "cli/args.h"
#include "report/selection.h"

struct chosen {
	// The command line. The caller takes care of `words`.
	const char *path, *output; // NULL: the standard output
	bool force;                // replace the output
	struct selection_words words;
	// Of chosen_open.
	struct reader *reader; // scanned; it can be read once more
	struct symbols *symbols;
	struct names *names;
	struct selection selection;
	struct moment_edge window[2];
};

// Open the trace, and find its window and what the filters mean in it.
bool chosen_open(struct chosen *chosen, struct err *err);

typedef bool chosen_write_function(void *context, struct sink *sink, struct err *err);

// Let `write` write to the output. A file appears whole, or not at all.
bool chosen_write(const struct chosen *chosen, chosen_write_function *write, void *context,
		  struct err *err);

// Accepts what chosen_open has refused. `good`: it was written; warn of a trace that is not whole.
void chosen_close(struct chosen *chosen, const struct command *command, bool good);

#endif
