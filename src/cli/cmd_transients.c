// tidemark transients: where the live level rises and falls back, and who made it.
#include "cli/ask.h"

#include "report/transients.h"

static const struct option_row options[] = {
	ASK_ROW_ROWS("spikes, and as many series"),
	{ ASK_MIN_BYTES, 0, "min-bytes", "SIZE",
	  "the least height of a spike (64K, 1.5MiB; a hundredth of the peak)" },
	ASK_ROW_ALL_FRAMES,
	ASK_ROW_MEMORY,
	LOOK_ROW_JSON("transients.json"),
	LOOK_ROW_CSV,
	LOOK_ROWS,
	{ 0 },
};

static bool answer(const struct ask *ask, struct inquiry *inquiry, struct sink *sink,
		   struct err *err)
{
	const struct spikes_options chosen = {
		.rise_min = ask->bytes_min,
		.rows_max = ask->rows_max,
	};
	transients_format *format = ask->look.json  ? transients_json
				    : ask->look.csv ? transients_csv
						    : transients_text;
	struct spikes spikes;
	const struct transients transients = {
		.inquiry = inquiry,
		.spikes = &spikes,
		.all_frames = ask->all_frames,
		.colour = look_colour(&ask->look),
		.width = look_width(),
	};

	if (!spikes_find(&spikes, inquiry, &chosen, err))
		return false;
	format(&transients, sink);
	spikes_fini(&spikes);
	return true;
}

static int run(int argc, char **argv)
{
	return ask_run(&cmd_transients, argc, argv, answer);
}

const struct command cmd_transients = {
	.name = "transients",
	.brief = "say where memory rises and falls back, and who makes the spikes",
	.usage = "FILE [options]",
	.text = "The spikes of the live level: how high above the level beside them, when, how\n"
		"long, and which sites held what made them. Spikes that stand on a plateau are\n"
		"measured from the plateau, and a plateau that comes and goes is told as well.\n"
		"Then the buffers that were allocated again and again, of one size, at one site,\n"
		"never two at a time: one that is kept would do.\n",
	.examples =
		"  tidemark transients app.tide                          the ten highest spikes\n"
		"  tidemark transients app.tide --from 10s --to 20s -n 0 all of ten seconds\n"
		"  tidemark transients app.tide --layer vm               of committed memory\n"
		"  tidemark transients app.tide --frame '^render'        of one part of it\n",
	.options = options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
