// tidemark report: what a person wants to know first.
#include "cli/args.h"
#include "cli/filters.h"
#include "cli/look.h"

#include "report/report.h"

#include <stdio.h>

enum { ROWS_DEFAULT = 10 };

enum {
	OPTION_ROWS = 1,
	OPTION_MIN_BYTES,
	OPTION_ALL_FRAMES,
};

static const struct option_row options[] = {
	{ OPTION_ROWS, 'n', "rows", "N", "show the N heaviest sites of each kind (10; 0: all)" },
	{ OPTION_MIN_BYTES, 0, "min-bytes", "SIZE",
	  "leave out sites of fewer bytes (64K, 1.5MiB)" },
	{ OPTION_ALL_FRAMES, 'a', "all-frames", NULL,
	  "show allocator wrappers and every frame of a stack" },
	LOOK_ROW_JSON("report.json"),
	LOOK_ROW_CSV,
	LOOK_ROWS,
	{ 0 },
};

struct request {
	const char *path;
	const struct report_format *format;
	struct report_options report;
	struct look look;
};

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	enum look_taken taken;

	if (filters_take(args, &request->report.words, id))
		return true;
	taken = look_take(args, &request->look, id);
	if (taken != LOOK_NOT_MINE)
		return taken == LOOK_TAKEN;
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
	}
	return false;
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

static int answer(struct args *args, struct request *request)
{
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(args, request, id))
			return args->exit_code;
	if (!args_need(args, request->path, "a trace FILE") ||
	    !filters_check(args, &request->report.words))
		return args->exit_code;
	request->format = request->look.json  ? &report_json
			  : request->look.csv ? &report_csv
					      : &report_text;
	request->report.progress = request->look.progress;
	request->report.symbols = request->look.symbols;
	request->report.width = look_width();
	request->report.colour = look_colour(&request->look);
	return print(request);
}

static int run(int argc, char **argv)
{
	struct request request = { .report = { .rows_max = ROWS_DEFAULT } };
	struct args args;
	int code;

	args_init(&args, &cmd_report, argc, argv);
	code = answer(&args, &request);
	selection_words_fini(&request.report.words);
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
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
