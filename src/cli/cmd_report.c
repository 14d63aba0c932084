// tidemark report: what a person wants to know first.
#include "cli/args.h"

#include "base/mem.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROWS_DEFAULT = 10, WIDTH_DEFAULT = 100, WIDTH_LEAST = 80, WIDTH_MOST = 120 };

enum {
	OPTION_ROWS = 1,
	OPTION_MIN_BYTES,
	OPTION_ALL_FRAMES,
	OPTION_PROCESS,
	OPTION_THREAD,
	OPTION_FRAME,
	OPTION_NOT_FRAME,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_COLOR,
	OPTION_PROGRESS,
	OPTION_SYMBOLS,
	OPTION_DEBUGINFOD,
	OPTION_MANGLED,
};

static const struct option_row options[] = {
	{ OPTION_ROWS, 'n', "rows", "N", "show the N heaviest sites of each kind (10; 0: all)" },
	{ OPTION_MIN_BYTES, 0, "min-bytes", "SIZE",
	  "leave out sites of fewer bytes (64K, 1.5MiB)" },
	{ OPTION_ALL_FRAMES, 'a', "all-frames", NULL,
	  "show allocator wrappers and every frame of a stack" },
	{ OPTION_JSON, 0, "json", NULL, "write JSON (docs/schema/report.json), stacks whole" },
	{ OPTION_CSV, 0, "csv", NULL, "write the sites as one table" },
	{ OPTION_COLOR, 0, "color", "WHEN", "auto, always or never" },
	{ OPTION_PROGRESS, 0, "progress", "HOW", "auto, none, plain or bar, on stderr" },
	{ OPTION_SYMBOLS, 0, "symbols", "DIRS", "look for symbols here first (':' between)" },
	{ OPTION_DEBUGINFOD, 0, "debuginfod", NULL, "fetch missing symbols ($DEBUGINFOD_URLS)" },
	{ OPTION_MANGLED, 0, "mangled", NULL, "leave C++ and Rust names as they are" },
	{ 0 },
};

static const struct option_row filters[] = {
	{ OPTION_PROCESS, 0, "process", "WHICH",
	  "a pid, a position in the list, or an executable's name" },
	{ OPTION_THREAD, 0, "thread", "WHICH", "allocations by this thread: a tid, or a name" },
	{ OPTION_FRAME, 0, "frame", "REGEX", "allocations through a function that matches" },
	{ OPTION_NOT_FRAME, 0, "not-frame", "REGEX", "allocations through none that matches" },
	{ 0 },
};

// Words of one option that may be given several times, NULL-terminated.
struct words {
	const char **words;
	size_t count, capacity;
};

struct request {
	const char *path;
	const struct report_format *format;
	struct report_options report;
	struct words processes, threads, frames, not_frames;
	int color; // index in color_words
};

static const char *const color_words[] = { "auto", "always", "never", NULL };
static const char *const progress_words[] = { "auto", "none", "plain", "bar", NULL };

static void words_add(struct words *words, const char *word)
{
	words->words =
		mem_grow(words->words, &words->capacity, words->count + 2, sizeof *words->words);
	words->words[words->count++] = word;
	words->words[words->count] = NULL;
}

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	int index;

	switch (id) {
	case ARGS_OPERAND:
		return args_operand(args, &request->path);
	case OPTION_ROWS:
		return args_count(args, &request->report.rows_max);
	case OPTION_MIN_BYTES:
		return args_bytes(args, &request->report.bytes_min);
	case OPTION_ALL_FRAMES:
		request->report.all_frames = true;
		return true;
	case OPTION_PROCESS:
		words_add(&request->processes, args->value);
		return true;
	case OPTION_THREAD:
		words_add(&request->threads, args->value);
		return true;
	case OPTION_FRAME:
		words_add(&request->frames, args->value);
		return true;
	case OPTION_NOT_FRAME:
		words_add(&request->not_frames, args->value);
		return true;
	case OPTION_JSON:
	case OPTION_CSV:
		request->format = id == OPTION_JSON ? &report_json : &report_csv;
		return true;
	case OPTION_COLOR:
		return args_word(args, color_words, &request->color);
	case OPTION_PROGRESS:
		if (!args_word(args, progress_words, &index))
			return false;
		request->report.progress = (enum progress_mode)index;
		return true;
	case OPTION_SYMBOLS:
		request->report.symbols.path = args->value;
		return true;
	case OPTION_DEBUGINFOD:
		request->report.symbols.debuginfod = true;
		return true;
	case OPTION_MANGLED:
		request->report.symbols.mangled = true;
		return true;
	}
	return false;
}

// Columns of the terminal, within what a line can be read in.
static unsigned terminal_width(void)
{
	struct winsize size;
	unsigned width = WIDTH_DEFAULT;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		width = size.ws_col;
	if (width < WIDTH_LEAST)
		width = WIDTH_LEAST;
	return width > WIDTH_MOST ? WIDTH_MOST : width;
}

static bool wants_colour(int color)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (color != 0)
		return color == 1;
	return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term &&
	       strcmp(term, "dumb") != 0;
}

static int print(struct request *request)
{
	struct err err = { 0 };
	struct sink sink = sink_to_file(stdout);
	struct reader *reader = reader_open(request->path, &err);
	struct report *report = NULL;
	int code = EXIT_ANSWERED;

	if (reader)
		report = report_new(reader, &request->report, request->format, &err);
	if (!report) {
		reader_close(reader);
		return args_fail(&cmd_report, &err);
	}
	request->format->write(report, &sink);
	if (!sink_ok(&sink, &err))
		code = args_fail(&cmd_report, &err);
	// For people the warnings stand in the report; programs get them beside it.
	for (size_t i = 0; request->format != &report_text && i < report->warnings_count; i++)
		args_warn(&cmd_report, "%s", report->warnings[i]);
	report_free(report);
	reader_close(reader);
	return code;
}

static int run(int argc, char **argv)
{
	struct request request = {
		.format = &report_text,
		.report = { .rows_max = ROWS_DEFAULT },
	};
	struct args args;
	int code;
	int id;

	args_init(&args, &cmd_report, argc, argv);
	while ((id = args_next(&args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(&args, &request, id))
			return args.exit_code;
	if (!args_need(&args, request.path, "a trace FILE"))
		return args.exit_code;
	request.report.processes = request.processes.words;
	request.report.threads = request.threads.words;
	request.report.frames = request.frames.words;
	request.report.not_frames = request.not_frames.words;
	request.report.width = terminal_width();
	request.report.colour = wants_colour(request.color);
	code = print(&request);
	mem_free(request.processes.words);
	mem_free(request.threads.words);
	mem_free(request.frames.words);
	mem_free(request.not_frames.words);
	return code;
}

const struct command cmd_report = {
	.name = "report",
	.brief = "say where a recorded program's memory went",
	.usage = "FILE [options]",
	.text = "What ran, how much it allocated, the peak and when, what was live at exit, what\n"
		"was temporary (freed by the same thread before its next allocation); then, for\n"
		"each, the sites that explain it, with their stacks. Functions that allocate for\n"
		"somebody else (operator new, g_malloc, xmalloc, strdup ...) are folded away, so\n"
		"that the first line of a stack is the program's own code. A site that was shown\n"
		"before is only referred to (see #3).\n",
	.examples =
		"  tidemark report app.tide                      the ten heaviest of each kind\n"
		"  tidemark report app.tide -n 0 --min-bytes 1M  all of a megabyte or more\n"
		"  tidemark report app.tide --frame '^parse_'    allocated while parsing\n"
		"  tidemark report app.tide --json | jq .heap    for programs\n",
	.notes = "Environment:\n"
		 "  NO_COLOR         no colour unless --color=always\n"
		 "  DEBUGINFOD_URLS  servers that --debuginfod asks\n",
	.options = options,
	.shared = filters,
	.shared_title = "Filters (given twice: either; two kinds: both)",
	.run = run,
};
