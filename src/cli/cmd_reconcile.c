// tidemark reconcile: resident memory, and who holds it.
//
// For example a snapshot says that 120 MiB are resident: 80 of live blocks, 9 of their headers and
// rounding, 14 that malloc keeps free, 12 of code and files, 3 of stacks, 2 of the recorder: 120.
// What is in none of the lines would be the last one, unexplained, and not left out.
#include "cli/query_options.h"

#include "report/find/rss_breakdown.h"

#include <string.h>

enum { ROWS_DEFAULT = 3 };

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_AT("peak (the default), exit, or a moment: the last snapshot before it"),
	QUERY_OPTIONS_ROW_ROWS("show N stacks of each line (0: all)"),
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	PRINT_OPTIONS_ROW_JSON("reconcile.json"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

static enum rss_breakdown_at which(const struct query_options *options)
{
	// The peak of resident memory, which is a snapshot's, and not that of live bytes.
	if (!options->at || strcmp(options->at, "peak") == 0)
		return RSS_BREAKDOWN_AT_PEAK;
	return strcmp(options->at, "exit") == 0 ? RSS_BREAKDOWN_AT_EXIT : RSS_BREAKDOWN_AT_MOMENT;
}

static bool answer(const void *request, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct query_options *options = request;
	struct paper paper = query_options_paper(options, sink);
	struct rss_breakdown rss_breakdown;

	if (!rss_breakdown_init(&rss_breakdown, asked, which(options), err))
		return false;
	if (options->print.json)
		rss_breakdown_write_json(&rss_breakdown, sink, options->rows_max);
	else
		rss_breakdown_write_text(&rss_breakdown, &paper, options->rows_max,
					 options->all_frames);
	rss_breakdown_fini(&rss_breakdown);
	return true;
}

static int run(int argc, char **argv)
{
	struct query_options options = { .rows_max = ROWS_DEFAULT };
	struct query_context_options context;
	struct args args;

	args_init(&args, &cmd_reconcile, argc, argv);
	if (query_options_take_all(&args, &options)) {
		context = query_options_context(&cmd_reconcile, &options, &rss_breakdown_rules);
		// The context must not look for a peak of live bytes: the snapshot says which
		// moment it is.
		if (which(&options) != RSS_BREAKDOWN_AT_MOMENT)
			context.at = NULL; // it is the snapshot's
		args.exit_code =
			query_options_print(&cmd_reconcile, &options, &context, answer, &options);
	}
	query_options_fini(&options);
	return args.exit_code;
}

const struct command cmd_reconcile = {
	.name = "reconcile",
	.brief = "divide resident memory up among those who hold it",
	.usage = "FILE [options]",
	.text = "Each resident byte of a process at a snapshot falls into one line: live heap\n"
		"blocks, their headers and rounding, what the allocator keeps free, stacks, code\n"
		"and files, the program's own mappings, tidemark itself, or unexplained. They add\n"
		"up to what the kernel says (smaps), and each comes with the stacks that explain\n"
		"it. Beside them: what is live and was never touched.\n",
	.examples = "  tidemark reconcile app.tide            at the peak of resident memory\n"
		    "  tidemark reconcile app.tide --at exit  just before the process ended\n"
		    "  tidemark reconcile app.tide --at 12s   at the last snapshot before that\n"
		    "  tidemark reconcile app.tide -n 0 --json\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
