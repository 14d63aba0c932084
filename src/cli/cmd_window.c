// tidemark window: what was allocated between two moments and stayed, came and went, or was there
// all along.
#include "cli/args.h"
#include "cli/filters.h"
#include "cli/interrupt.h"
#include "cli/look.h"

#include "os/file.h"
#include "report/table.h"
#include "report/tree.h"

enum { ROWS_DEFAULT = 10 };

enum {
	OPTION_BY = 1,
	OPTION_SORT,
	OPTION_ROWS,
	OPTION_COLUMNS,
	OPTION_MIN_BYTES,
	OPTION_ALL_FRAMES,
	OPTION_TAGS,
	OPTION_EXIT_FREES,
	OPTION_MEMORY,
	OPTION_TREE,
	OPTION_FLAT,
	OPTION_BUTTERFLY,
};

static const struct option_row options[] = {
	{ OPTION_BY, 'b', "by", "KEYS",
	  "group by process, layer, heap, thread, owner, module, function, stack, tag, impact, "
	  "type, size, mark, lifetime: any, with commas, in any order (impact,stack)" },
	{ OPTION_TREE, 't', "tree", "WHICH",
	  "callers (from the root) or leaf (from the function that allocated), instead of rows" },
	{ OPTION_FLAT, 0, "flat", NULL,
	  "each function: what it allocated itself, and with all that it called" },
	{ OPTION_BUTTERFLY, 0, "butterfly", "FUNCTION",
	  "a function's callers, and what it called" },
	{ OPTION_SORT, 's', "sort", "COLUMN", "the heaviest first by this column (impacting)" },
	{ OPTION_ROWS, 'n', "rows", "N",
	  "show N rows in each group (10; JSON and CSV all; 0: all)" },
	{ OPTION_COLUMNS, 'c', "columns", "LIST",
	  "impacting, size, count, allocated, freed, peak, peak-count, first, last, median, p99, "
	  "or all" },
	{ OPTION_MIN_BYTES, 0, "min-bytes", "SIZE", "leave out rows of fewer bytes (64K, 1.5MiB)" },
	{ OPTION_EXIT_FREES, 0, "exit-frees", NULL,
	  "the end of a process frees its blocks, instead of leaving them outstanding" },
	{ OPTION_TAGS, 0, "tags", "FILE", "stack tags (XML) for the key tag" },
	{ OPTION_ALL_FRAMES, 'a', "all-frames", NULL,
	  "show allocator wrappers and every frame of a stack" },
	{ OPTION_MEMORY, 'm', "memory", "SIZE", "for the index and single allocations (256M)" },
	LOOK_ROW_JSON("window.json"),
	LOOK_ROW_CSV,
	LOOK_ROWS,
	{ 0 },
};

struct request {
	const char *path;
	const char *by, *sort, *columns, *tags_path;
	const struct table_format *format;
	struct selection_words words;
	struct question_options question;
	struct table_options table;
	bool rows_given;
	bool has_tree; // instead of a table
	enum tree_kind tree;
	const char *function; // of a butterfly
	struct look look;
};

static const char *const tree_words[] = { "callers", "leaf", NULL };

static bool take_tree(struct args *args, struct request *request, enum tree_kind kind)
{
	if (request->has_tree)
		return args_mistake(args, "--tree, --flat and --butterfly: only one of them");
	request->has_tree = true;
	request->tree = kind;
	return true;
}

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	enum look_taken taken;
	int index;

	if (filters_take(args, &request->words, id))
		return true;
	taken = look_take(args, &request->look, id);
	if (taken != LOOK_NOT_MINE)
		return taken == LOOK_TAKEN;
	switch (id) {
	case ARGS_OPERAND:
		return args_operand(args, &request->path);
	case OPTION_TREE:
		if (!args_word(args, tree_words, &index))
			return false;
		return take_tree(args, request, index == 0 ? TREE_CALLERS : TREE_LEAF);
	case OPTION_FLAT:
		return take_tree(args, request, TREE_FLAT);
	case OPTION_BUTTERFLY:
		request->function = args->value;
		return take_tree(args, request, TREE_BUTTERFLY);
	case OPTION_BY:
		request->by = args->value;
		return true;
	case OPTION_SORT:
		request->sort = args->value;
		return true;
	case OPTION_COLUMNS:
		request->columns = args->value;
		return true;
	case OPTION_TAGS:
		request->tags_path = args->value;
		return true;
	case OPTION_ROWS:
		request->rows_given = true;
		return args_count(args, &request->table.rows_max);
	case OPTION_MIN_BYTES:
		return args_bytes(args, &request->table.bytes_min);
	case OPTION_MEMORY:
		return args_bytes(args, &request->question.memory_bytes);
	case OPTION_ALL_FRAMES:
		request->table.all_frames = true;
		return true;
	case OPTION_EXIT_FREES:
		request->question.exit_frees = true;
		return true;
	}
	return false;
}

static bool typed(const struct keys *keys)
{
	return keys_has(keys, KEYS_IMPACT) || keys_has(keys, KEYS_TYPE);
}

// What was not said. Peaks of rows of one impact cost a look at every allocation, so they are not
// shown unless asked for.
static bool complete(struct request *request, struct err *err)
{
	struct table_options *table = &request->table;
	bool text = request->format == &table_text;
	const char *by = request->has_tree ? "stack" : "impact,stack";

	if (request->has_tree && request->by)
		return err_set(err, ERR_USAGE,
			       "a tree has no keys: choose what is in it with filters");
	if (!keys_parse(request->by ? request->by : by, &table->keys, err))
		return err_wrap(err, "--by");
	if (request->sort && !table_parse_sort(request->sort, table, err))
		return err_wrap(err, "--sort");
	if (!table_parse_columns(request->columns ? request->columns
				 : typed(&table->keys) || request->has_tree
					 ? "impacting,size,count"
					 : "impacting,size,count,peak",
				 table, err))
		return err_wrap(err, "--columns");
	if (!request->rows_given)
		table->rows_max = text ? ROWS_DEFAULT : 0;
	table->labels = request->format->labels;
	table->details = !text && !request->has_tree;
	table->peaks_only = text && !(table->sorted && table_column_lifetimes(table->sort));
	for (size_t i = 0; i < table->columns_count; i++) {
		table->details |= table_column_details(table->columns[i]);
		table->peaks_only &= !table_column_lifetimes(table->columns[i]);
	}
	if (request->has_tree && table->details)
		return err_set(
			err, ERR_USAGE,
			"a tree has the columns impacting, size, count, allocated and freed");
	table->width = look_width();
	table->colour = look_colour(&request->look);
	return true;
}

static struct tags *open_tags(const char *path, struct err *err)
{
	struct file_view view = { 0 };
	struct tags *tags;

	if (!file_view_open(&view, path, err)) {
		err_wrap(err, "cannot read %s", path);
		return NULL;
	}
	tags = tags_read((const char *)view.bytes, view.size, err);
	if (!tags)
		err_wrap(err, "%s", path);
	file_view_close(&view);
	return tags;
}

static void say(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "tidemark window: %s\n", text);
}

static bool write_table(const struct request *request, struct question *question, struct err *err)
{
	struct sink sink = sink_to_file(stdout);
	struct table *table = table_new(question, &request->table, err);

	if (!table)
		return false;
	request->format->write(table, &sink);
	table_free(table);
	return sink_ok(&sink, err);
}

static bool write_tree(const struct request *request, struct question *question, struct err *err)
{
	const struct tree_format *format = request->look.json  ? &tree_json
					   : request->look.csv ? &tree_csv
							       : &tree_text;
	struct sink sink = sink_to_file(stdout);
	struct tree *tree =
		tree_new(question, &request->table, request->tree, request->function, err);

	if (!tree)
		return false;
	format->write(tree, &sink);
	tree_free(tree);
	return sink_ok(&sink, err);
}

static bool print(struct request *request, struct err *err)
{
	struct question question = { 0 };
	bool good;

	if (keys_has(&request->table.keys, KEYS_LAYER))
		request->question.layers_all = WINDOW_HEAP | WINDOW_VM;
	interrupt_watch();
	good = question_open(&question, request->path, &request->question, err);
	interrupt_leave();
	if (!good)
		return false;
	good = question_check_layers(&question, keys_has(&request->table.keys, KEYS_LAYER), err) &&
	       (request->has_tree ? write_tree(request, &question, err)
				  : write_table(request, &question, err));
	// For people the warnings stand in the answer; programs get them beside it.
	for (size_t i = 0; request->format != &table_text && i < question.warnings_count; i++)
		args_warn(&cmd_window, "%s", question.warnings[i]);
	question_close(&question);
	return good;
}

static int answer(struct args *args, struct request *request)
{
	struct err err = { 0 };
	struct tags *tags = NULL;
	bool good;
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(args, request, id))
			return args->exit_code;
	request->format = request->look.json  ? &table_json
			  : request->look.csv ? &table_csv
					      : &table_text;
	if (!args_need(args, request->path, "a trace FILE") ||
	    !filters_check(args, &request->words))
		return args->exit_code;
	if (!complete(request, &err)) {
		args_mistake(args, "%s", err.text);
		return args->exit_code;
	}
	if (request->tags_path) {
		tags = open_tags(request->tags_path, &err);
		if (!tags)
			return args_fail(&cmd_window, &err);
	}
	request->table.tags = tags;
	request->question.words = &request->words;
	request->question.symbols = request->look.symbols;
	request->question.progress = request->look.progress;
	request->question.stop = interrupt_came;
	request->question.say = say;
	good = print(request, &err);
	tags_free(tags);
	return good ? EXIT_ANSWERED : args_fail(&cmd_window, &err);
}

static int run(int argc, char **argv)
{
	struct request request = { 0 };
	struct args args;
	int code;

	args_init(&args, &cmd_window, argc, argv);
	code = answer(&args, &request);
	selection_words_fini(&request.words);
	return code;
}

const struct command cmd_window = {
	.name = "window",
	.brief = "say what changed between two moments: what stayed, what came and went",
	.usage = "FILE [--from TIME] [--to TIME] [--by KEYS] [options]",
	.text = "Of every allocation that lived for some part of the window, whether it is\n"
		"impacting (begun in it and still there at its end, or there before and freed in\n"
		"it), transient (begun and freed in it) or persistent (there before and after).\n"
		"IMPACTING is the bytes that a row grew by, from the beginning to the end;\n"
		"SIZE and COUNT are all that lived in it, what was there before included.\n",
	.examples =
		"  tidemark window app.tide --from 10s --to 14s            what made it grow\n"
		"  tidemark window app.tide --from mark:load --to mark:done -b function\n"
		"  tidemark window app.tide --impact transient --by stack -s count\n"
		"  tidemark window app.tide --by mark,impact               phase by phase\n"
		"  tidemark window app.tide --tree leaf --impact impacting\n"
		"  tidemark window app.tide --from peak --to peak --by stack    live at the peak\n"
		"  tidemark window app.tide --by size,lifetime --size 10M  single allocations\n",
	.notes = "Environment:\n"
		 "  NO_COLOR         no colour unless --color=always\n"
		 "  DEBUGINFOD_URLS  servers that --debuginfod asks\n"
		 "  TIDEMARK_INDEX   always: build an index of a small trace too; never: of none\n"
		 "  TIDEMARK_CACHE   for indexes that cannot lie beside their traces (8G)\n",
	.options = options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
