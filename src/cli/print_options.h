// print_options: the options that say how an answer is shown and where names come from, the same
// for all commands that answer questions. PRINT_OPTIONS_ROWS is in the command's own table of
// options.
//
// For example a command that has PRINT_OPTIONS_ROWS in its table hands each id that is not its own
// to print_options_take: "--color never" is taken there.
#pragma once

#include "base/progress.h"
#include "cli/args.h"
#include "report/table/sheet.h"
#include "symbols/symbols.h"

// Ids of the rows, from 2,000 on.
enum print_options_option {
	PRINT_OPTIONS_JSON = 2000,
	PRINT_OPTIONS_COLOR,
	PRINT_OPTIONS_PROGRESS,
	PRINT_OPTIONS_SYMBOLS,
	PRINT_OPTIONS_DEBUGINFOD,
	PRINT_OPTIONS_MANGLED,
	PRINT_OPTIONS_FOLD,
	PRINT_OPTIONS_FORMS, // one for each of SHEET_FORMS, in their order
};

// Rows of a table of options. `schema` is the name of the answer's schema, as it is in its
// "schema".
#define PRINT_OPTIONS_ROW_JSON(schema)                                                     \
	{                                                                                  \
		PRINT_OPTIONS_JSON, 0, "json", NULL, "write JSON (docs/schema/" schema ")" \
	}
#define PRINT_OPTIONS_NUMBER(word, id, help) PRINT_OPTIONS_##id,
// Numbers of the forms' rows, one after the other, in the order of SHEET_FORMS.
enum {
	PRINT_OPTIONS_BEFORE = PRINT_OPTIONS_FORMS - 1,
	SHEET_FORMS(PRINT_OPTIONS_NUMBER) PRINT_OPTIONS_END
};
#undef PRINT_OPTIONS_NUMBER
#define PRINT_OPTIONS_ROW_FORM(word, id, help) { PRINT_OPTIONS_##id, 0, #word, NULL, help },
#define PRINT_OPTIONS_ROW_PROGRESS                            \
	{                                                     \
		PRINT_OPTIONS_PROGRESS, 0, "progress", "HOW", \
			"auto, none, plain or bar, on stderr" \
	}
// Where names come from.
#define PRINT_OPTIONS_ROWS_SYMBOLS                                       \
	{ PRINT_OPTIONS_SYMBOLS, 0, "symbols", "DIRS",                   \
	  "look for symbols here first (':' between, on Windows ';')" }, \
		{ PRINT_OPTIONS_DEBUGINFOD, 0, "debuginfod", NULL,       \
		  "fetch missing symbols ($DEBUGINFOD_URLS)" },          \
		{ PRINT_OPTIONS_FOLD, 0, "fold", "PATTERN",              \
		  "functions that only pass memory on ('*')" },          \
	{                                                                \
		PRINT_OPTIONS_MANGLED, 0, "mangled", NULL,               \
			"leave C++, Rust and D names as they are"        \
	}
#define PRINT_OPTIONS_ROWS                                                    \
	{ PRINT_OPTIONS_COLOR, 0, "color", "WHEN", "auto, always or never" }, \
		PRINT_OPTIONS_ROW_PROGRESS, PRINT_OPTIONS_ROWS_SYMBOLS

// Of a command that writes rows.
#define PRINT_OPTIONS_ROWS_SHEET(schema) \
	PRINT_OPTIONS_ROW_JSON(schema), SHEET_FORMS(PRINT_OPTIONS_ROW_FORM) PRINT_OPTIONS_ROWS

// `= { 0 }` is what holds without options.
struct print_options {
	bool json;                     // one document; `form` is NULL then
	const struct sheet_form *form; // of rows alone; NULL: text, or JSON
	int color;                     // 0: auto, 1: always, 2: never
	enum progress_mode progress;
	// its path is borrowed from the command line
	struct symbols_options symbols;
};

// What became of an option.
enum print_options_taken { PRINT_OPTIONS_NOT_MINE, PRINT_OPTIONS_TAKEN, PRINT_OPTIONS_MISTAKE };

// Take the option that args_next has just given, if it is one of these: two forms of an answer are
// a mistake. PRINT_OPTIONS_MISTAKE: it was printed, return args->exit_code.
enum print_options_taken print_options_take(struct args *args, struct print_options *print, int id);

// Columns of the terminal on stdout, within what a line can be read in (80 to 120; 100 if it is
// none).
unsigned print_options_width(void);

// Whether to write colours to stdout: where nothing was asked for, only to a terminal that has
// them, and not with NO_COLOR in the environment.
bool print_options_colour(const struct print_options *print);
