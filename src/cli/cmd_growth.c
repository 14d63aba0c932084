// tidemark growth: the sites that keep more and more, apart from caches and start-up.
//
// What counts is the lowest level of a site in each of 60 buckets of time (report/find/growth.h): a
// buffer of 1 GiB that comes and goes in each of them leaves the floor where it was, and one block
// of 64 bytes a second that stays raises it.
#include "cli/query_options.h"

#include "report/find/growth.h"

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_ROWS("show N sites of each kind (10; 0: all)"),
	QUERY_OPTIONS_ROW_MIN_BYTES("the least growth (64K, 1.5MiB; 1 KiB)"),
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	QUERY_OPTIONS_ROW_MEMORY("for building and asking the index (256M)"),
	PRINT_OPTIONS_ROWS_SHEET("growth.json"),
	{ 0 },
};

static bool answer(const void *request, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct query_options *options = request;
	const struct growth_options chosen = {
		.grown_min = options->bytes_min,
		.rows_max = options->rows_max,
		.keep = true,
	};
	struct growth growth;
	const struct growth_page page = {
		.asked = asked,
		.growth = &growth,
		.all_frames = options->all_frames,
		.colour = print_options_colour(&options->print),
		.width = print_options_width(),
	};

	// The whole of the answer is found before a word is written: it cannot fail in the middle.
	if (!growth_find(&growth, asked, &chosen, err))
		return false;
	if (options->print.form) {
		struct sheet sheet = query_options_sheet(&cmd_growth, options, asked, sink);

		growth_rows(&page, TREND_GROWS, TREND_VERDICTS, &sheet);
	} else {
		(options->print.json ? growth_json : growth_text)(&page, sink);
	}
	growth_fini(&growth);
	return true;
}

static int run(int argc, char **argv)
{
	return query_options_run(&cmd_growth, argc, argv, &query_context_findings_rules, answer);
}

const struct command cmd_growth = {
	.name = "growth",
	.brief = "say which sites keep more and more, and which only look like it",
	.usage = "FILE [options]",
	.text = "The sites whose live bytes grow and do not come back: how fast, how steadily,\n"
		"and how long until the next gigabyte. Told apart from sites that grew and\n"
		"levelled off (caches, pools), that took one or two steps, and that began to\n"
		"grow only lately. What comes and goes does not count: in each sixtieth of the\n"
		"time only the lowest level does. The first tenth and the last twentieth of a\n"
		"process are left out, unless --from and --to say when to look.\n",
	.examples =
		"  tidemark growth app.tide                     what leaks, how fast\n"
		"  tidemark growth app.tide --from 1min -n 0    all sites, after a minute\n"
		"  tidemark growth app.tide --min-bytes 1M      that grew by a megabyte or more\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
