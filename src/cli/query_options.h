// query_options: what the commands that answer questions about a trace take on the command line:
// the trace, the filters, a moment, how many rows and of what size, where the answer goes and how
// it is shown. A command lists the rows of options that it has, and takes them all in one place:
//
//     while ((id = args_next(&args)) != ARGS_END)
//             if (query_options_take(&args, &options, id) != PRINT_OPTIONS_TAKEN)
//                     …                       the command's own, or a mistake
//     query_options_check
//     query_options_open                      a query context (report/ask/query_context.h)
//     query_options_warn
#pragma once

#include "base/sink.h"
#include "cli/args.h"
#include "cli/filters.h"
#include "cli/print_options.h"
#include "report/ask/moment_view.h"

// Ids from 3,000 on: those of filters begin at 1,000, of print_options at 2,000, and a command's
// own at 1.
enum query_option {
	QUERY_OPTIONS_ROWS = 3000,
	QUERY_OPTIONS_MIN_BYTES,
	QUERY_OPTIONS_ALL_FRAMES,
	QUERY_OPTIONS_MEMORY,
	QUERY_OPTIONS_AT,
	QUERY_OPTIONS_OUTPUT,
	QUERY_OPTIONS_FORCE,
};

// Rows for a command's table of options; `what` is its line of the help.
#define QUERY_OPTIONS_ROW_ROWS(what)                       \
	{                                                  \
		QUERY_OPTIONS_ROWS, 'n', "rows", "N", what \
	}
#define QUERY_OPTIONS_ROW_MIN_BYTES(what)                             \
	{                                                             \
		QUERY_OPTIONS_MIN_BYTES, 0, "min-bytes", "SIZE", what \
	}
#define QUERY_OPTIONS_ROW_ALL_FRAMES                                         \
	{                                                                    \
		QUERY_OPTIONS_ALL_FRAMES, 'a', "all-frames", NULL,           \
			"show allocator wrappers and every frame of a stack" \
	}
#define QUERY_OPTIONS_ROW_MEMORY(what)                            \
	{                                                         \
		QUERY_OPTIONS_MEMORY, 'm', "memory", "SIZE", what \
	}
#define QUERY_OPTIONS_ROW_AT(what)                      \
	{                                               \
		QUERY_OPTIONS_AT, 0, "at", "WHEN", what \
	}

// `= { 0 }` is what holds without options.
struct query_options {
	const char *path; // the trace; NULL: not given yet
	// all texts are borrowed from the command line
	const char *at;     // NULL: not given
	const char *output; // a file; NULL: stdout
	bool force;         // replace the output
	struct selection_words words;
	struct print_options print;
	// 0: all; what holds without the option is set by the command before it parses
	uint64_t rows_max;
	uint64_t bytes_min;    // 0: not given
	uint64_t memory_bytes; // 0: the engine's default
	// the user said how many: else text may show fewer than JSON
	bool rows_given;
	bool all_frames; // as the trace has them: nothing is folded
};

void query_options_fini(struct query_options *options); // accepts { 0 }

// Take an option, a filter or the one operand. PRINT_OPTIONS_NOT_MINE: the command's own.
enum print_options_taken query_options_take(struct args *args, struct query_options *options,
					    int id);

// Take all words of a command that has no options but these. False: return args->exit_code.
bool query_options_take_all(struct args *args, struct query_options *options);

// After the last option: is all there, and does it make sense by itself? False: the mistake was
// printed, return args->exit_code.
bool query_options_check(struct args *args, const struct query_options *options);

// How to open what is asked, for commands that add to it. It borrows from `command`, `options` and
// `rules`, which must live until the question is closed.
struct query_context_options query_options_context(const struct command *command,
						   const struct query_options *options,
						   const struct query_context_rules *rules);

// Open it. Ctrl-C ends the building of an index in good order. False: *err says why, and nothing is
// to be closed. It takes minutes where a large trace has no index yet.
bool query_options_open(const struct query_context_options *context, struct query_context *asked,
			struct err *err);

// A paper for stdout, as wide as the terminal and in colour if it has any. It borrows the sink.
struct paper query_options_paper(const struct query_options *options, struct sink *sink);

// A sheet in the form that was asked for: options->print.form is not NULL. It borrows all that it
// is given.
struct sheet query_options_sheet(const struct command *command, const struct query_options *options,
				 const struct query_context *asked, struct sink *sink);

// Whether the answer does not have the warnings in it, as JSON and rows do not: then
// query_options_warn is to be called.
bool query_options_warns(const struct query_options *options);

// Tell the warnings on stderr, and which symbols could not be used. `trace` names the one of
// several that they are about, or is NULL.
void query_options_warn(const struct command *command, const struct query_context *asked,
			const char *trace);
// The two of it: what is known before names are looked for, and what is found out then.
void query_options_warn_before(const struct command *command, const struct query_context *asked,
			       const char *trace);
void query_options_warn_of_symbols(const struct command *command, const struct query_context *asked,
				   const char *trace);

// Open the trace, answer to the standard output, warn. `answer` writes to the sink; false with
// *err: nothing was written. `request` is for it: the command's own, or the options. For people the
// warnings are in the answer, programs get them beside it.
typedef bool query_options_answer(const void *request, struct query_context *asked,
				  struct sink *sink, struct err *err);
// Returns an exit code; the context is closed in any case.
int query_options_print(const struct command *command, const struct query_options *options,
			const struct query_context_options *context, query_options_answer *answer,
			const void *request);

// A whole command that has no options but these, which are the `request` of its answer. It shows
// ten rows where the user does not say how many. Returns an exit code.
int query_options_run(const struct command *command, int argc, char **argv,
		      const struct query_context_rules *rules, query_options_answer *answer);

// Whether the output can be written, as far as it can be known before the work. A file that is
// there is refused without `force`.
bool query_options_can_write(const struct query_options *options, struct err *err);

// Let `write` write to the output, or stdout. A file appears whole, or not at all.
typedef bool query_options_write_function(void *context, struct sink *sink, struct err *err);
// Let `write` write to the output, or stdout. A file appears whole, or not at all: with a failure
// what was there before stays.
bool query_options_write(const struct query_options *options, query_options_write_function *write,
			 void *context, struct err *err);
