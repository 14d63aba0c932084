// tidemark report: what a person wants to know first.
//
// All of it comes from report_new (report/report.h); this file only chooses between text, JSON and
// a sheet. For text, places that read the same are one row: two calls in one line of a function are
// two sites to a program, and one to a reader.
#include "cli/query_options.h"

#include "report/report.h"

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_ROWS("show the N heaviest sites of each kind (10; 0: all)"),
	QUERY_OPTIONS_ROW_MIN_BYTES("leave out sites of fewer bytes (64K, 1.5MiB)"),
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	PRINT_OPTIONS_ROWS_SHEET("report.json"),
	{ 0 },
};

// Programs get each place by itself; for people places that read the same are one row.
static bool answer(const void *request, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct query_options *options = request;
	const struct print_options *print = &options->print;
	const struct report_options wanted = {
		.bytes_min = options->bytes_min,
		.rows_max = options->rows_max,
		.all_frames = options->all_frames,
		.colour = print_options_colour(&options->print),
		.width = print_options_width(),
	};
	struct report *report = report_new(
		asked, &wanted, print->json || print->form ? SITES_EXACT : SITES_AS_SHOWN, err);

	// `err` says why; nothing was written yet.
	if (!report)
		return false;
	if (print->form) {
		struct sheet sheet = query_options_sheet(&cmd_report, options, asked, sink);

		report_rows(report, 0, SITES_QUESTIONS_COUNT, &sheet);
	} else {
		(print->json ? report_json : report_text)(report, sink);
	}
	report_free(report);
	return true;
}

static int run(int argc, char **argv)
{
	return query_options_run(&cmd_report, argc, argv, &report_rules, answer);
}

const struct command cmd_report = {
	.name = "report",
	.brief = "say where a recorded program's memory went",
	.usage = "FILE [options]",
	.text = "What ran, how much it allocated, the peak and when, what was live at exit, what\n"
		"was temporary (freed by the same thread before its next allocation); then, for\n"
		"each, the sites that explain it, with their stacks. Functions that allocate for\n"
		"somebody else (operator new, g_malloc, xmalloc, strdup ...) are folded away, so\n"
		"that the first line of a stack is the program's own code; so is the native code\n"
		"of node and other runtimes of JavaScript below a function of a script (record\n"
		"--jit). A site that was shown before is only referred to (see #3).\n",
	.examples =
		"  tidemark report app.tide                      the ten heaviest of each kind\n"
		"  tidemark report app.tide -n 0 --min-bytes 1M  all of a megabyte or more\n"
		"  tidemark report app.tide --frame '^parse_'    allocated while parsing\n"
		"  tidemark report app.tide --json | jq .heap    for programs\n",
	.notes = "Environment:\n"
		 "  NO_COLOR         no colour unless --color=always\n"
		 "  DEBUGINFOD_URLS  servers that --debuginfod asks\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
