// tidemark transients: where the live level rises and falls back, and who made it.
//
// For example a level of 40 MiB that rises to 100 MiB within a second and falls back to 40: a spike
// of 60 MiB, with the sites that held what was above 40 at its top. What is a spike, and how its
// height is measured beside others, is in report/find/spikes.h.
#include "cli/query_options.h"

#include "report/find/transients.h"

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_ROWS("show N spikes, and as many series (10; 0: all)"),
	QUERY_OPTIONS_ROW_MIN_BYTES(
		"the least height of a spike (64K, 1.5MiB; a hundredth of the peak)"),
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	QUERY_OPTIONS_ROW_MEMORY("for building and asking the index (256M)"),
	PRINT_OPTIONS_ROWS_SHEET("transients.json"),
	{ 0 },
};

static bool answer(const void *request, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct query_options *options = request;
	const struct spikes_options chosen = {
		.rise_min = options->bytes_min,
		.rows_max = options->rows_max,
	};
	// The page borrows the spikes, which are found below, and adds how wide it may be.
	struct spikes spikes;
	const struct transients transients = {
		.asked = asked,
		.spikes = &spikes,
		.all_frames = options->all_frames,
		.colour = print_options_colour(&options->print),
		.width = print_options_width(),
	};

	// All is found before a word is written: an answer does not end in the middle.
	if (!spikes_find(&spikes, asked, &chosen, err))
		return false;
	if (options->print.form) {
		struct sheet sheet = query_options_sheet(&cmd_transients, options, asked, sink);

		transients_rows(&transients, &sheet);
	} else {
		(options->print.json ? transients_json : transients_text)(&transients, sink);
	}
	spikes_fini(&spikes);
	return true;
}

static int run(int argc, char **argv)
{
	return query_options_run(&cmd_transients, argc, argv, &query_context_findings_rules,
				 answer);
}

const struct command cmd_transients = {
	.name = "transients",
	.brief = "say where memory rises and falls back, and who makes the spikes",
	.usage = "FILE [options]",
	.text = "The spikes of the live level: how high above the level beside them, when, how\n"
		"long, and which sites held what made them. Spikes on a plateau are\n"
		"measured from the plateau, and a plateau that comes and goes is reported too.\n"
		"Then the buffers that were allocated again and again, of one size, at one site,\n"
		"never two at a time: one that is kept would do.\n",
	.examples =
		"  tidemark transients app.tide                          the ten highest spikes\n"
		"  tidemark transients app.tide --from 10s --to 20s -n 0 all of ten seconds\n"
		"  tidemark transients app.tide --layer vm               of committed memory\n"
		"  tidemark transients app.tide --frame '^render'        of one part of it\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
