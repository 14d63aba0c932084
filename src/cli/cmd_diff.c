// tidemark diff: what changed between two traces, or two windows of one, stack by stack.
//
// Two lists of runs. `diff a.tide b.tide` is one of each; `diff a1 a2 --against b1 b2` two; `diff a
// --from 0 --to 10s --with-from 10s` is one trace on both sides, with another window for the
// second. All runs are tried once before the comparison (try_all), so that each index is built
// while no other is open.
#include "cli/query_options.h"

#include "base/mem.h"
#include "report/find/diff.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_DEFAULT = 10 };

enum { OPTION_SORT = 1, OPTION_AGAINST };

struct request {
	struct query_options options; // `path` is the first of A
	struct runs {
		const char **paths; // owned, the texts are borrowed
		size_t count, capacity;
	} runs[2];    // of A and B
	bool against; // what follows is of B
	const struct selection_words *with_words;
	const char *with_from, *with_to;
	int order; // enum diff_order
};

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_ROWS("show N stacks (10; 0: all)"),
	{ OPTION_SORT, 0, "sort", "FIGURE",
	  "rank by the change in live (default), peak, allocated, count or temporary" },
	QUERY_OPTIONS_ROW_MIN_BYTES("the least change (64K, 1.5MiB)"),
	{ OPTION_AGAINST, 0, "against", "B",
	  "this trace and all that follow are runs of the second side, those before of the first" },
	{ ARGS_TEXT(request, with_from), 0, "with-from", "TIME",
	  "where B's window begins, if not at --from; without B, the second window of A" },
	{ ARGS_TEXT(request, with_to), 0, "with-to", "TIME",
	  "where B's window ends, if not at --to" },
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	QUERY_OPTIONS_ROW_MEMORY("for building and asking the index (256M)"),
	PRINT_OPTIONS_ROWS_SHEET("diff.json"),
	{ 0 },
};

// Always true, as the other steps of taking an option are.
static bool add_run(struct request *request, int side, const char *path)
{
	struct runs *runs = &request->runs[side];

	ASSERT(side == 0 || side == 1);
	*MEM_ADD(runs->paths, runs->count, runs->capacity) = path;
	return true;
}

static bool take(struct args *args, struct request *request, int id)
{
	switch (id) {
	case OPTION_AGAINST:
		request->against = true;
		return add_run(request, 1, args->value);
	case ARGS_OPERAND:
		return add_run(request, request->against, args->value);
	case OPTION_SORT:
		return args_word(args, diff_order_words, &request->order);
	}
	return query_options_take(args, &request->options, id) != PRINT_OPTIONS_MISTAKE;
}

// What was said of traces, as runs of A and of B.
static bool settle(struct args *args, struct request *request)
{
	// Afterwards each side has one run at least. For example `diff a b` came as two runs of A:
	// the second moves over to B. `diff a --with-from 10s` puts the same path on both sides,
	// and the sides differ by their windows alone.
	struct runs *a = &request->runs[0];
	bool windows = request->with_from || request->with_to;

	if (a->count == 0)
		return args_need(args, NULL, "two traces");
	if (!request->against && a->count > 2)
		return args_mistake(args,
				    "%zu traces: where does the second side begin? (try: tidemark "
				    "diff a*.tide --against b*.tide)",
				    a->count);
	if (!request->against && a->count == 2)
		add_run(request, 1, a->paths[--a->count]);
	else if (!request->against && windows)
		add_run(request, 1, a->paths[0]);
	else if (!request->against)
		return args_mistake(args, "needs a second trace, or a second window of the first "
					  "(--with-from, --with-to)");
	request->options.path = a->paths[0];
	return true;
}

// As diff_options have it: diff opens a run when it is its turn, so that only one index is open at
// a time.
static bool open_side(void *context, int side, uint32_t run, struct query_context *asked,
		      struct err *err)
{
	const struct request *request = context;
	struct query_context_options options =
		query_options_context(&cmd_diff, &request->options, &query_context_findings_rules);

	ASSERT((side == 0 || side == 1) && run < request->runs[side].count);
	options.path = request->runs[side].paths[run];
	// Only the words differ between the two sides: symbols, memory and rules are those of both.
	if (side == 1)
		options.words = request->with_words;
	return query_options_open(&options, asked, err);
}

// A trace whose index is to be built is opened for that, while no other is open. False: it cannot
// be read.
static bool try_run(struct request *request, int side, uint32_t run, struct err *err)
{
	const struct query_context_options options =
		query_options_context(&cmd_diff, &request->options, &query_context_findings_rules);
	const char *path = request->runs[side].paths[run];
	struct query_context asked = { 0 };
	struct reader *reader = reader_open(path, err);
	// The first run of A is the one that diff_find opens first: its index may as well be built
	// then.
	bool ready = (side == 0 && run == 0) ||
		     (reader && window_is_ready(path, reader, &options.window));
	bool ok = reader != NULL;

	reader_close(reader);
	if (!ok || ready)
		return ok;
	ok = open_side(request, side, run, &asked, err);
	query_context_close(&asked);
	return ok;
}

// So that mistakes show before long work.
static bool try_all(struct request *request, struct err *err)
{
	bool ok = try_run(request, 0, 0, err);

	ASSERT(request->runs[0].count > 0 && request->runs[1].count > 0);
	for (int side = 1; ok && side >= 0; side--)
		for (uint32_t run = side == 0; ok && run < request->runs[side].count; run++)
			ok = try_run(request, side, run, err);
	return ok;
}

// The answer, and its exit code. Contexts that are open at the end are the caller's to close.
static int compare(struct request *request, const struct diff_side sides[static 2])
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
		.sides = { sides[0], sides[1] },
		.all_frames = options->all_frames,
		.colour = print_options_colour(&options->print),
		.width = print_options_width(),
	};
	struct sink sink = sink_to_file(stdout);
	struct err err = { 0 };
	struct diff diff;

	ASSERT(sides[0].count > 0 && sides[1].count > 0);
	if (!diff_enough_runs(sides, &err) || !try_all(request, &err) ||
	    !diff_find(&diff, sides, &chosen, &err))
		return args_fail(&cmd_diff, &err);
	page.diff = &diff;
	// A sheet is one table: its page names the first run of each side, and each row is of both.
	if (options->print.form) {
		struct sheet sheet = query_options_sheet(&cmd_diff, options, sides[0].runs, &sink);

		sheet.page.sides[1] = sides[1].runs;
		sheet.page.names[1] = sides[1].names[0];
		diff_rows(&page, &sheet);
	} else {
		(options->print.json ? diff_json : diff_text)(&page, &sink);
	}
	diff_fini(&diff);
	if (!sink_ok(&sink, &err))
		return args_fail(&cmd_diff, &err);
	for (int side = 0; query_options_warns(options) && side < 2; side++)
		query_options_warn(&cmd_diff, sides[side].runs, sides[side].names[0]);
	return EXIT_ANSWERED;
}

// Runs are zero until they are opened, and may be closed so: opening may end at any of them.
static int print(struct request *request)
{
	struct diff_side sides[2];
	int code;

	for (int side = 0; side < 2; side++)
		sides[side] = (struct diff_side){
			.runs = mem_alloc(request->runs[side].count, sizeof *sides[side].runs),
			.names = request->runs[side].paths,
			.count = (uint32_t)request->runs[side].count,
		};
	code = compare(request, sides);
	for (int side = 0; side < 2; side++) {
		for (uint32_t run = 0; run < sides[side].count; run++)
			query_context_close(&sides[side].runs[run]);
		mem_free(sides[side].runs);
	}
	return code;
}

static int answer(struct args *args, struct request *request, struct selection_words *words)
{
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(args, request, id))
			return args->exit_code;
	if (!settle(args, request))
		return args->exit_code;
	// The second side has the filters of the first, and a window of its own where one was
	// given.
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
	args.into = &request;
	code = answer(&args, &request, &words);
	query_options_fini(&request.options);
	selection_words_fini(&words);
	MEM_FREE(request.runs[0].paths, request.runs[1].paths);
	return code;
}

const struct command cmd_diff = {
	.name = "diff",
	.brief = "say what changed between two traces, or two windows of one",
	.usage = "A B [options]\n       tidemark diff A... --against B... [options]\n"
		 "       tidemark diff A --from T --to T --with-from T --with-to T",
	.text = "What B holds, peaks at and allocates more than A, or less, in all and by stack.\n"
		"Stacks are matched by the names of their functions and modules, inlined ones\n"
		"included, not by addresses or lines: so the rows stay when lines move, when\n"
		"modules are loaded elsewhere, and when processes have other pids. With several\n"
		"runs a side, a row is called changed only if it is by more than runs differ by.\n"
		"Where the program is built again in its place, record it with --bundle:\n"
		"its names are in the old file.\n",
	.examples = "  tidemark diff before.tide after.tide             after a fix\n"
		    "  tidemark diff a.tide b.tide --sort count -n 20   in calls\n"
		    "  tidemark diff old.*.tide --against new.*.tide    several runs a side\n"
		    "  tidemark diff app.tide --from 10s --to 20s --with-from 20s --with-to 30s\n"
		    "                                                   two windows of one trace\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
