// command: one verb of the command line, as a row that knows its name, its help and its function.
//
// Each cmd_NAME.c defines one `const struct command cmd_NAME` and nothing else that is visible.
// main.c holds the table of them all, finds the row by its name and calls its `run` with what
// follows the verb. A command parses (args.h), calls the floors below, prints, and returns its
// exit code. `--help` is made from the row, so it cannot forget an option.
//
// For example, a command with one flag and one file is
//
//     struct wish { const char *path; bool all; };
//     static const struct option_row rows[] = {
//             { ARGS_FLAG(wish, all), 'a', "all", NULL, "show everything" },
//             { 0 },
//     };
//     const struct command cmd_x = { .name = "x", .brief = "...", .options = rows, .run = run };
//
// and run() does args_init, sets args.into and args.operand, and calls args_next until ARGS_END:
// "-a", "--all" and "--al" set `all`, a word sets `path`, a second word is a mistake.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One option. Tables of them end with an all-zero row. An option that does no more than set a
// member of a struct has, in place of an id, that member: { ARGS_TEXT(wish, output), 'o', "output"
// … is all that there is of it. `args->into` is the struct, and args_next does not return for it.
// A table of them is constant, and lives as long as the program.
struct option_row {
	int id;      // what args_next returns for it, from 1; a row may also be asked for itself
	char letter; // 'o' for -o; 0: none
	const char *name;     // "output" for --output
	const char *argument; // "FILE"; NULL: the option takes none
	const char *help;     // one line, lower case, no full stop
};

// An id that says what is set, and where: a member that is not of that type does not compile.
#define ARGS_SETS(kind, of, member, type)            \
	((kind) + (int)offsetof(struct of, member) + \
	 0 * (int)sizeof(_Generic(&((struct of *)0)->member, type * : 0)))
#define ARGS_FLAG(of, member) ARGS_SETS(ARGS_SETS_FLAG, of, member, bool)         // to true
#define ARGS_CLEAR(of, member) ARGS_SETS(ARGS_SETS_CLEAR, of, member, bool)       // to false
#define ARGS_TEXT(of, member) ARGS_SETS(ARGS_SETS_TEXT, of, member, const char *) // borrowed
// A number, or a size ("64K"); what is neither is a mistake, which args_next prints.
#define ARGS_COUNT(of, member) ARGS_SETS(ARGS_SETS_COUNT, of, member, uint64_t)
#define ARGS_BYTES(of, member) ARGS_SETS(ARGS_SETS_BYTES, of, member, uint64_t)
enum {
	ARGS_SETS_ONE = 1 << 20,             // ids from here on: the kind, and where the member is
	ARGS_SETS_FLAG = ARGS_SETS_ONE,      // a bool becomes true
	ARGS_SETS_CLEAR = ARGS_SETS_ONE * 2, // a bool becomes false
	ARGS_SETS_TEXT = ARGS_SETS_ONE * 3,  // a text, borrowed
	ARGS_SETS_COUNT = ARGS_SETS_ONE * 4, // a number
	ARGS_SETS_BYTES = ARGS_SETS_ONE * 5, // a size
};

// All texts are borrowed, and mostly constants.
struct command {
	const char *name;                 // "report"
	const char *brief;                // one line for the list of commands
	const char *usage;                // what follows `tidemark NAME`: "FILE [options]"
	const char *text;                 // a paragraph or two under the usage; NULL: none
	const char *examples;             // whole lines, two blanks in front; NULL: none
	const char *notes;                // further sections (environment, see also); NULL: none
	const struct option_row *options; // own options; NULL: none
	size_t options_stride;            // from one of them to the next; 0: they are an array
	const struct option_row *shared;  // rows shared between commands, such as the filters
	const char *shared_title;         // their heading in the help: "Filters"
	bool hidden;                      // not in the list of commands: we call it ourselves
	bool takes_places;                // its operands are databases, not traces in them (fleet)
	bool writes_operand;              // one of its operands may be the file that it makes (ctl)
	// Why this system has not an option of it ("--keep"), or NULL: then it is not in its help.
	const char *(*lacks)(const char *option); // NULL: all are had everywhere
	const char *codes;  // its exit codes, whole lines; NULL: those of record, or of all others
	bool keeps_signals; // main leaves signal dispositions as they were given (record)

	// argv[0] is the first word after the verb. Returns an exit code.
	int (*run)(int argc, char **argv);
};

// What tidemark's commands return. `record` returns the program's own code, or one of the last
// three; every other command one of the first five.
// Scripts rely on these numbers: they are in the manual and do not change.
enum exit_code {
	EXIT_ANSWERED = 0,         // also from a cut trace, with a warning
	EXIT_CHECK_FAILED = 1,     // a check said no
	EXIT_USAGE = 2,            // the command line asks for something we do not do
	EXIT_UNREADABLE = 3,       // unreadable trace, disk or memory
	EXIT_OVER_BUDGET = 4,      // a budget the user gave would be exceeded
	EXIT_NOT_RECORDED = 125,   // record itself failed
	EXIT_NOT_EXECUTABLE = 126, // the program is there but cannot be run
	EXIT_NOT_FOUND = 127,      // no such program
};

// Those of a system that is named are in no other system's program.
extern const struct command cmd_record;
extern const struct command cmd_report;
extern const struct command cmd_window;
extern const struct command cmd_transients;
extern const struct command cmd_trim;
extern const struct command cmd_growth;
extern const struct command cmd_findings;
extern const struct command cmd_check;
extern const struct command cmd_diff;
extern const struct command cmd_active;
extern const struct command cmd_map;
extern const struct command cmd_plot;
extern const struct command cmd_reconcile;
extern const struct command cmd_replay; // Linux
extern const struct command cmd_pins;
extern const struct command cmd_view;
extern const struct command cmd_info;
extern const struct command cmd_dump;
extern const struct command cmd_export;
extern const struct command cmd_import;
extern const struct command cmd_sql;
extern const struct command cmd_fleet;
extern const struct command cmd_push;
extern const struct command cmd_merge;
extern const struct command cmd_strip;
extern const struct command cmd_repair;
extern const struct command cmd_bundle;
extern const struct command cmd_symbols;
extern const struct command cmd_ctl;
extern const struct command cmd_top;   // Linux
extern const struct command cmd_bench; // Linux
extern const struct command cmd_attach;
extern const struct command cmd_watch;   // Windows
extern const struct command cmd_watched; // hidden, Windows: what a watched program is started by
extern const struct command cmd_collect; // hidden: a collector for LD_PRELOAD alone
