// look: the options that say how an answer is shown and where names come from, the same for all
// commands that answer questions. LOOK_ROWS stands in the command's own table of options.
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include "base/progress.h"
#include "cli/args.h"
#include "symbols/symbols.h"

enum look_option {
	LOOK_JSON = 2000,
	LOOK_CSV,
	LOOK_COLOR,
	LOOK_PROGRESS,
	LOOK_SYMBOLS,
	LOOK_DEBUGINFOD,
	LOOK_MANGLED,
};

#define LOOK_ROW_JSON(schema)                                                     \
	{                                                                         \
		LOOK_JSON, 0, "json", NULL, "write JSON (docs/schema/" schema ")" \
	}
#define LOOK_ROW_CSV                                                                  \
	{                                                                             \
		LOOK_CSV, 0, "csv", NULL, "write one table of comma-separated values" \
	}
#define LOOK_ROW_PROGRESS                                                                  \
	{                                                                                  \
		LOOK_PROGRESS, 0, "progress", "HOW", "auto, none, plain or bar, on stderr" \
	}
// Where names come from.
#define LOOK_ROWS_SYMBOLS                                                                    \
	{ LOOK_SYMBOLS, 0, "symbols", "DIRS", "look for symbols here first (':' between)" }, \
		{ LOOK_DEBUGINFOD, 0, "debuginfod", NULL,                                    \
		  "fetch missing symbols ($DEBUGINFOD_URLS)" },                              \
	{                                                                                    \
		LOOK_MANGLED, 0, "mangled", NULL, "leave C++ and Rust names as they are"     \
	}
#define LOOK_ROWS                                                                       \
	{ LOOK_COLOR, 0, "color", "WHEN", "auto, always or never" }, LOOK_ROW_PROGRESS, \
		LOOK_ROWS_SYMBOLS

// `= { 0 }` is what holds without options.
struct look {
	bool json, csv;
	int color; // 0: auto, 1: always, 2: never
	enum progress_mode progress;
	struct symbols_options symbols;
};

enum look_taken { LOOK_NOT_MINE, LOOK_TAKEN, LOOK_MISTAKE };

// Take the option, if it is one of these. LOOK_MISTAKE: it was told, return args->exit_code.
enum look_taken look_take(struct args *args, struct look *look, int id);

// Columns of the terminal on stdout, within what a line can be read in (80 to 120; 100 if it is
// none).
unsigned look_width(void);

// Whether to write colours to stdout.
bool look_colour(const struct look *look);

#endif
