// tidemark pins: pages that a few small blocks keep from going back.
#include "cli/at.h"

#include "report/pins.h"

enum { ROWS_DEFAULT = 10, LIVE_DEFAULT = 1024, OPTION_MAX_LIVE = 1 };

static const struct option_row options[] = {
	AT_ROW_MOMENT,
	{ OPTION_MAX_LIVE, 0, "max-live", "SIZE",
	  "a page with at most so much on it is pinned (1K)" },
	AT_ROW_ROWS("stacks"),
	AT_ROW_ALL_FRAMES,
	LOOK_ROW_JSON("pins.json"),
	LOOK_ROWS,
	{ 0 },
};

static int print(const struct at *at, const struct pins_options *wanted)
{
	struct sink sink = sink_to_file(stdout);
	struct paper paper = at_paper(at, &sink);
	struct err err = { 0 };
	struct sight sight;
	struct pins pins;
	int code = EXIT_ANSWERED;

	if (!at_open(at, &sight, &err))
		return args_fail(&cmd_pins, &err);
	if (!pins_init(&pins, &sight, wanted, &err)) {
		code = args_fail(&cmd_pins, &err);
	} else {
		if (at->look.json)
			pins_write_json(&pins, &sink);
		else
			pins_write_text(&pins, &paper);
		if (!sink_ok(&sink, &err))
			code = args_fail(&cmd_pins, &err);
		if (at->look.json)
			at_warn(&cmd_pins, &sight);
		pins_fini(&pins);
	}
	sight_close(&sight);
	return code;
}

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct at *at, struct pins_options *wanted, int id)
{
	enum look_taken taken = at_take(args, at, id);

	if (taken != LOOK_NOT_MINE)
		return taken == LOOK_TAKEN;
	if (id != OPTION_MAX_LIVE || !args_bytes(args, &wanted->live_max))
		return false;
	return (wanted->live_max > 0 && wanted->live_max < SPACE_PAGE) ||
	       args_mistake(args, "--max-live is less than a page of 4K");
}

static int run(int argc, char **argv)
{
	struct pins_options wanted = { .live_max = LIVE_DEFAULT };
	struct at at = { .rows_max = ROWS_DEFAULT };
	struct args args;
	int id;

	args_init(&args, &cmd_pins, argc, argv);
	while ((id = args_next(&args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(&args, &at, &wanted, id))
			break;
	if (id == ARGS_END && at_check(&args, &at)) {
		wanted.rows_max = at.rows_max;
		wanted.all_frames = at.all_frames;
		args.exit_code = print(&at, &wanted);
	}
	at_fini(&at);
	return args.exit_code;
}

const struct command cmd_pins = {
	.name = "pins",
	.brief = "say which small blocks keep whole pages from going back",
	.usage = "FILE [options]",
	.text = "Pages of the heap on which only a few small blocks lie cannot go back to the\n"
		"system. By the stack that allocated those: how much could go back without\n"
		"them, the pages that they are on, and their bytes there. Ask when the program\n"
		"should be small: at its end, or in a valley after the peak. What has no block\n"
		"on it at all could go back now (malloc_trim).\n",
	.examples = "  tidemark pins app.tide                       at exit\n"
		    "  tidemark pins app.tide --at mark:idle -n 0\n"
		    "  tidemark pins app.tide --max-live 256        pinned by less\n",
	.options = options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
