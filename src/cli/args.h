// args: takes a command's words apart by its option rows.
//
//     struct wish wish = { 0 };
//     struct args args;
//     int id;
//
//     args_init(&args, &cmd_report, argc, argv);
//     args.into = &wish;                 for rows such as ARGS_FLAG(wish, force)
//     args.operand = &wish.path;
//     while ((id = args_next(&args)) != ARGS_END)
//             if (id != OPTION_WORD || !args_word(&args, words, &wish.word))
//                     return args.exit_code;
//
// Options are -x, -xVALUE, -x VALUE, -xyz (letters without arguments), --name, --name=VALUE,
// --name VALUE, and a unique beginning of a long name. They may be after operands; `--` ends
// them. -h and --help print the command's help and give ARGS_EXIT with exit code 0. A mistake
// prints one line on stderr (with the nearest option) and gives ARGS_EXIT with EXIT_USAGE.
#pragma once

#include "base/err.h"
#include "cli/command.h"

#include <stdint.h>
#include <stdio.h>

enum {
	ARGS_END = 0,
	ARGS_OPERAND = -1, // `value` is a word that is no option
	ARGS_EXIT = -2,    // help was printed, or a mistake was printed: return `exit_code`
};

// On the stack of the command that runs. It owns nothing: words, rows and values are argv's and the
// command's. A value stays as long as argv does, which is until the program ends, but for those of
// a file, which end with its `struct config`.
struct args {
	const struct command *command; // borrowed
	const struct option_row *row;  // the last option
	const char *value;             // the last option's argument, or the operand; else NULL
	// what to return after ARGS_EXIT; EXIT_ANSWERED until a mistake
	int exit_code;

	// Set after args_init. Options whose rows say which member they set, set it in `into`. The
	// one operand that there may be is put into *operand; a second is a mistake.
	void *into;
	const char **operand;

	// Set after args_init to stop at the first operand, which is then not consumed: the words
	// from `at` on belong to someone else. args_next returns ARGS_END there.
	bool stops_at_operand;

	int argc;
	char **argv;
	int at;              // the next word
	const char *cluster; // private: the rest of -xyz
	bool operands_only;  // private: `--` was seen
};

void args_init(struct args *args, const struct command *command, int argc, char **argv);

// The first `count` words of `argv` come from a file: mistakes in them name their places. Borrowed.
void args_from_file(char **argv, char *const *places, int count);

// All rows of a command, one after the other: own, shared, --help. NULL after the last.
const struct option_row *args_row(const struct command *command, int number);

// The id of the next option, or one of the ARGS_ values above.
int args_next(struct args *args);

// The last option's value as a number, a size ("64K", "1.5MiB"), or one of the words in `words`
// (NULL-terminated; its index). False: the mistake was printed, return args->exit_code.
bool args_count(struct args *args, uint64_t *count);
bool args_bytes(struct args *args, uint64_t *bytes);
bool args_days(struct args *args, unsigned *days); // "90d"
bool args_word(struct args *args, const char *const *words, int *index);

// The same for each ARGS_OPERAND, where `operand` was not set. And afterwards: none is a mistake
// too (`what` names it: "a trace FILE").
bool args_operand(struct args *args, const char **operand);
bool args_need(struct args *args, const char *operand, const char *what);

// Print "tidemark NAME: …", and where to read more. Sets exit_code to EXIT_USAGE, always false.
bool args_mistake(struct args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The command's help: usage, text, options, examples, exit codes, notes.
void args_help(const struct command *command, FILE *file);

// Print "tidemark NAME: text of err" on stderr and return the exit code of its kind.
int args_fail(const struct command *command, const struct err *err);

// Whether the command is to be run once more: it failed by a damaged index before it answered
// anything, which args_fail has said. True once.
bool args_take_again(void);

// Print "tidemark NAME: warning: …" on stderr.
void args_warn(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
