// tidemark active: what is allocated at one moment, block by block.
#include "cli/at.h"

#include "report/active.h"

enum { ROWS_DEFAULT = 20 };

static const struct option_row options[] = {
	AT_ROW_MOMENT,
	AT_ROW_ROWS("largest blocks and mappings"),
	AT_ROW_MIN_BYTES("blocks and mappings"),
	AT_ROW_ALL_FRAMES,
	LOOK_ROW_JSON("active.json"),
	LOOK_ROW_CSV,
	LOOK_ROWS,
	{ 0 },
};

static int print(const struct at *at)
{
	const struct active_options wanted = {
		.rows_max = at->rows_max,
		.bytes_min = at->bytes_min,
		.all_frames = at->all_frames,
	};
	struct sink sink = sink_to_file(stdout);
	struct paper paper = at_paper(at, &sink);
	struct err err = { 0 };
	struct active active;
	struct sight sight;
	int code = EXIT_ANSWERED;

	if (!at_open(at, &sight, &err))
		return args_fail(&cmd_active, &err);
	sight_read(&sight, NULL);
	sight_warn_of_space(&sight);
	active_init(&active, &sight, &wanted);
	if (at->look.json)
		active_write_json(&active, &sink);
	else if (at->look.csv)
		active_write_csv(&active, &sink);
	else
		active_write_text(&active, &paper);
	if (!sink_ok(&sink, &err))
		code = args_fail(&cmd_active, &err);
	if (at->look.json || at->look.csv)
		at_warn(&cmd_active, &sight);
	active_fini(&active);
	sight_close(&sight);
	return code;
}

static int run(int argc, char **argv)
{
	struct at at = { 0 };
	struct args args;
	int id;

	args_init(&args, &cmd_active, argc, argv);
	while ((id = args_next(&args)) != ARGS_END)
		if (id == ARGS_EXIT || at_take(&args, &at, id) != LOOK_TAKEN)
			break;
	if (id == ARGS_END && at_check(&args, &at)) {
		// For people a page, for programs everything.
		if (!at.rows_given && !at.look.json && !at.look.csv)
			at.rows_max = ROWS_DEFAULT;
		args.exit_code = print(&at);
	}
	at_fini(&at);
	return args.exit_code;
}

const struct command cmd_active = {
	.name = "active",
	.brief = "list what is allocated at a moment: blocks and mappings",
	.usage = "FILE [options]",
	.text = "Each block of the heap and each mapping that exists at a moment, the largest\n"
		"first: size, age, address, whose memory it is, and the stack that asked for it.\n"
		"Mappings that malloc made for its blocks are left out, so that nothing is listed\n"
		"twice; --layer vm lists mappings alone, and all of them.\n",
	.examples = "  tidemark active app.tide                     at exit: what was never freed\n"
		    "  tidemark active app.tide --at peak -n 0      all that lived at the peak\n"
		    "  tidemark active app.tide --at 12.5s --layer vm --min-bytes 1M\n"
		    "  tidemark active app.tide --json | jq '.rows[] | select(.age_ns > 1e9)'\n",
	.options = options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
