// tidemark reconcile: resident memory, and who holds it.
#include "cli/at.h"

#include "report/balance.h"

#include <string.h>

enum { ROWS_DEFAULT = 3 };

static const struct option_row options[] = {
	{ AT_MOMENT, 0, "at", "WHEN", "peak (the default) or exit" },
	AT_ROW_ROWS("stacks of each line"),
	AT_ROW_ALL_FRAMES,
	LOOK_ROW_JSON("reconcile.json"),
	LOOK_ROWS,
	{ 0 },
};

static int print(struct at *at, bool peak)
{
	struct sink sink = sink_to_file(stdout);
	struct paper paper = at_paper(at, &sink);
	struct err err = { 0 };
	struct balance balance;
	struct sight sight;
	int code = EXIT_ANSWERED;

	at->moment = NULL; // it is the snapshot's
	if (!at_open(at, &sight, &err))
		return args_fail(&cmd_reconcile, &err);
	if (!balance_init(&balance, &sight, peak, &err)) {
		code = args_fail(&cmd_reconcile, &err);
	} else {
		if (at->look.json)
			balance_write_json(&balance, &sink, at->rows_max);
		else
			balance_write_text(&balance, &paper, at->rows_max, at->all_frames);
		if (!sink_ok(&sink, &err))
			code = args_fail(&cmd_reconcile, &err);
		if (at->look.json)
			at_warn(&cmd_reconcile, &sight);
		balance_fini(&balance);
	}
	sight_close(&sight);
	return code;
}

static int run(int argc, char **argv)
{
	struct at at = { .rows_max = ROWS_DEFAULT };
	struct args args;
	int id;

	args_init(&args, &cmd_reconcile, argc, argv);
	while ((id = args_next(&args)) != ARGS_END)
		if (id == ARGS_EXIT || at_take(&args, &at, id) != LOOK_TAKEN)
			break;
	if (id == ARGS_END && at_check(&args, &at)) {
		bool peak = !at.moment || strcmp(at.moment, "peak") == 0;

		if (!peak && strcmp(at.moment, "exit") != 0)
			args_mistake(&args, "--at is peak or exit: only there are snapshots");
		else
			args.exit_code = print(&at, peak);
	}
	at_fini(&at);
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
		    "  tidemark reconcile app.tide -n 0 --json\n",
	.options = options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
