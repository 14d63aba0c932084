// tidemark pins: pages that a few small blocks keep from going back.
//
// For example a page of 4 KiB with one live block of 48 bytes on it is pinned (48 is at most
// --max-live, 1K): 4 KiB cannot go back because of 48 bytes. With two blocks of different stacks
// on it, each of the two has the page among those that it is on.
#include "cli/query_options.h"

#include "base/mem.h"
#include "report/find/pins.h"

enum { ROWS_DEFAULT = 10, LIVE_DEFAULT = 1024, OPTION_MAX_LIVE = 1 };

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_AT("exit (each process just before its end), 12.5s, 50%, -5s, peak, "
			     "peak+1ms, mark:NAME"),
	{ OPTION_MAX_LIVE, 0, "max-live", "SIZE",
	  "a page with at most so much on it is pinned (1K)" },
	QUERY_OPTIONS_ROW_ROWS("show N stacks (0: all)"),
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	PRINT_OPTIONS_ROWS_SHEET("pins.json"),
	{ 0 },
};

// `live_max` is in bytes of a page of 4 KiB.
struct request {
	struct query_options options;
	struct pins_options pins;
};

static bool answer(const void *context, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct request *request = context;
	struct paper paper = query_options_paper(&request->options, sink);
	struct pins pins;

	ASSERT(request->pins.live_max > 0 && request->pins.live_max < SPACE_PAGE);
	// The blocks of the moment are sorted onto their pages there.
	if (!pins_init(&pins, asked, &request->pins, err))
		return false;
	if (request->options.print.form) {
		struct sheet sheet = query_options_sheet(&cmd_pins, &request->options, asked, sink);

		pins_rows(&pins, &sheet);
	} else if (request->options.print.json) {
		pins_write_json(&pins, sink);
	} else {
		pins_write_text(&pins, &paper);
	}
	pins_fini(&pins);
	return true;
}

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	enum print_options_taken taken = query_options_take(args, &request->options, id);
	uint64_t *live_max = &request->pins.live_max;

	// A page with 4,096 bytes on it is full: with that much allowed every page would be pinned.
	if (taken != PRINT_OPTIONS_NOT_MINE)
		return taken == PRINT_OPTIONS_TAKEN;
	if (id != OPTION_MAX_LIVE || !args_bytes(args, live_max))
		return false;
	return (*live_max > 0 && *live_max < SPACE_PAGE) ||
	       args_mistake(args, "--max-live is at least 1 and less than a page of 4K");
}

static int run(int argc, char **argv)
{
	struct request request = { .options = { .rows_max = ROWS_DEFAULT },
				   .pins = { .live_max = LIVE_DEFAULT } };
	struct query_context_options context;
	struct args args;
	int id;

	args_init(&args, &cmd_pins, argc, argv);
	while ((id = args_next(&args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(&args, &request, id))
			break;
	if (id == ARGS_END && query_options_check(&args, &request.options)) {
		request.pins.rows_max = request.options.rows_max;
		request.pins.all_frames = request.options.all_frames;
		context = query_options_context(&cmd_pins, &request.options, &pins_rules);
		args.exit_code = query_options_print(&cmd_pins, &request.options, &context, answer,
						     &request);
	}
	query_options_fini(&request.options);
	return args.exit_code;
}

const struct command cmd_pins = {
	.name = "pins",
	.brief = "say which small blocks keep whole pages from going back",
	.usage = "FILE [options]",
	.text = "Pages of the heap with only a few small blocks on them cannot go back to the\n"
		"system. By the stack that allocated those: how much could go back without\n"
		"them, the pages that they are on, and their bytes there. Ask when the program\n"
		"should be small: at its end, or in a valley after the peak. What has no block\n"
		"on it at all could go back now (malloc_trim).\n",
	.examples = "  tidemark pins app.tide                       at exit\n"
		    "  tidemark pins app.tide --at mark:idle -n 0\n"
		    "  tidemark pins app.tide --max-live 256        pinned by less\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
