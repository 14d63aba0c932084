// tidemark diff: what changed between two traces, or two windows of one, stack by stack.
#include "cli/query_options.h"

#include "report/find/diff.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_DEFAULT = 10 };

enum { OPTION_SORT = 1, OPTION_WITH_FROM, OPTION_WITH_TO };

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_ROWS("show N stacks (10; 0: all)"),
	{ OPTION_SORT, 0, "sort", "FIGURE",
	  "rank by the change in live (default), peak, allocated, count or temporary" },
	QUERY_OPTIONS_ROW_MIN_BYTES("the least change (64K, 1.5MiB)"),
	{ OPTION_WITH_FROM, 0, "with-from", "TIME",
	  "where B's window begins, if not at --from; without B, the second window of A" },
	{ OPTION_WITH_TO, 0, "with-to", "TIME", "where B's window ends, if not at --to" },
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	QUERY_OPTIONS_ROW_MEMORY("for building and asking the index (256M)"),
	PRINT_OPTIONS_ROWS_SHEET("diff.json"),
	{ 0 },
};

struct request {
	struct query_options options; // `path` is A
	const char *with;             // B
	const struct selection_words *with_words;
	const char *with_from, *with_to;
	int order; // enum diff_order
};

static bool take(struct args *args, struct request *request, int id)
{
	switch (id) {
	case ARGS_OPERAND:
		if (!request->options.path)
			return args_operand(args, &request->options.path);
		return args_operand(args, &request->with);
	case OPTION_SORT:
		return args_word(args, diff_order_words, &request->order);
	case OPTION_WITH_FROM:
		request->with_from = args->value;
		return true;
	case OPTION_WITH_TO:
		request->with_to = args->value;
		return true;
	}
	return query_options_take(args, &request->options, id) != PRINT_OPTIONS_MISTAKE;
}

static const char *second_path(const struct request *request)
{
	return request->with ? request->with : request->options.path;
}

static bool open_side(void *context, int side, struct query_context *asked, struct err *err)
{
	const struct request *request = context;
	struct query_context_options options =
		query_options_context(&cmd_diff, &request->options, &query_context_findings_rules);

	if (side == 1) {
		options.path = second_path(request);
		options.words = request->with_words;
	}
	return query_options_open(&options, asked, err);
}

// So that its index is built while no other is open, and mistakes show before long work.
static bool try_second(struct request *request, struct err *err)
{
	struct reader *first = reader_open(request->options.path, err);
	struct query_context second = { 0 };
	bool ok = first != NULL;

	reader_close(first);
	ok = ok && open_side(request, 1, &second, err);
	query_context_close(&second);
	return ok;
}

static int compare(struct request *request, struct query_context *before,
		   struct query_context *after)
{
	const struct query_options *options = &request->options;
	const struct diff_options chosen = {
		.order = (enum diff_order)request->order,
		.rows_max = options->rows_max,
		.bytes_min = options->bytes_min,
		.memory_bytes = options->memory_bytes,
		.progress = options->print.progress,
		.open = open_side,
		.context = request,
	};
	struct diff_page page = {
		.sides = { before, after },
		.names = { options->path, second_path(request) },
		.all_frames = options->all_frames,
		.colour = print_options_colour(&options->print),
		.width = print_options_width(),
	};
	struct sink sink = sink_to_file(stdout);
	struct err err = { 0 };
	struct diff diff;

	if (!try_second(request, &err) || !diff_find(&diff, page.sides, &chosen, &err))
		return args_fail(&cmd_diff, &err);
	page.diff = &diff;
	if (options->print.form) {
		struct sheet sheet = query_options_sheet(&cmd_diff, options, before, &sink);

		sheet.page.sides[1] = after;
		sheet.page.names[1] = page.names[1];
		diff_rows(&page, &sheet);
	} else {
		(options->print.json ? diff_json : diff_text)(&page, &sink);
	}
	diff_fini(&diff);
	if (!sink_ok(&sink, &err))
		return args_fail(&cmd_diff, &err);
	for (int side = 0; query_options_warns(options) && side < 2; side++)
		query_options_warn(&cmd_diff, page.sides[side], page.names[side]);
	return EXIT_ANSWERED;
}

static int print(struct request *request)
{
	struct query_context before = { 0 }, after = { 0 };
	int code = compare(request, &before, &after);

	query_context_close(&before);
	query_context_close(&after);
	return code;
}

static int answer(struct args *args, struct request *request, struct selection_words *words)
{
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(args, request, id))
			return args->exit_code;
	if (!args_need(args, request->options.path, "two traces"))
		return args->exit_code;
	if (!request->with && !request->with_from && !request->with_to) {
		args_mistake(args, "needs a second trace, or a second window of the first "
				   "(--with-from, --with-to)");
		return args->exit_code;
	}
	selection_words_with_window(words, &request->options.words, request->with_from,
				    request->with_to);
	if (!filters_check(args, &request->options.words) || !filters_check(args, words))
		return args->exit_code;
	if (request->order == DIFF_BY_TEMPORARY &&
	    selection_words_get(&request->options.words, SELECTION_LAYER) &&
	    strcmp(selection_words_get(&request->options.words, SELECTION_LAYER), "vm") == 0) {
		args_mistake(args, "only the heap has temporary allocations");
		return args->exit_code;
	}
	request->with_words = words;
	return print(request);
}

static int run(int argc, char **argv)
{
	struct request request = { .options = { .rows_max = ROWS_DEFAULT } };
	struct selection_words words = { 0 };
	struct args args;
	int code;

	args_init(&args, &cmd_diff, argc, argv);
	code = answer(&args, &request, &words);
	query_options_fini(&request.options);
	selection_words_fini(&words);
	return code;
}

const struct command cmd_diff = {
	.name = "diff",
	.brief = "say what changed between two traces, or two windows of one",
	.usage = "A B [options]\n       tidemark diff A --from T --to T --with-from T --with-to T",
	.text = "What B holds, peaks at and allocates more than A, or less, in all and by stack.\n"
		"Stacks are matched by the names of their functions and modules, inlined ones\n"
		"included, not by addresses or lines: so the rows stay when lines move, when\n"
		"modules are loaded elsewhere, and when processes have other pids.\n",
	.examples = "  tidemark diff before.tide after.tide             after a fix\n"
		    "  tidemark diff a.tide b.tide --sort count -n 20   in calls\n"
		    "  tidemark diff app.tide --from 10s --to 20s --with-from 20s --with-to 30s\n"
		    "                                                   two windows of one trace\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
