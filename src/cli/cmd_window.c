// tidemark window: what was allocated between two moments and stayed, came and went, or was there
// all along.
#include "cli/query_options.h"

#include "base/mem.h"
#include "os/file.h"
#include "report/table/table.h"
#include "report/table/tree.h"

#include <string.h>

enum { ROWS_DEFAULT = 10 };

enum {
	OPTION_COLUMNS = 1,
	OPTION_TREE,
	OPTION_FLAT,
	OPTION_BUTTERFLY,
};

// Words are borrowed from the command line; `table` is made of them by complete().
struct request {
	struct query_options options;
	const char *by, *sort, *columns, *tags_path;
	struct table_options table;
	bool exit_frees;
	bool has_tree; // instead of a table
	enum tree_kind tree;
	const char *function; // of a butterfly
};

static const struct option_row rows[] = {
	{ ARGS_TEXT(request, by), 'b', "by", "KEYS",
	  "group by process, layer, heap, thread, owner, module, function, line, stack, tag, "
	  "impact, type, size, mark, lifetime: any, with commas, in any order (impact,stack)" },
	{ OPTION_TREE, 't', "tree", "WHICH",
	  "callers (from the root) or leaf (from the function that allocated), instead of rows" },
	{ OPTION_FLAT, 0, "flat", NULL,
	  "each function: what it allocated itself, and with all that it called" },
	{ OPTION_BUTTERFLY, 0, "butterfly", "FUNCTION",
	  "a function's callers, and what it called" },
	{ ARGS_TEXT(request, sort), 's', "sort", "COLUMN",
	  "the heaviest first by this column (impacting)" },
	QUERY_OPTIONS_ROW_ROWS("show N rows in each group (10; JSON and CSV all; 0: all)"),
	{ OPTION_COLUMNS, 'c', "columns", "LIST",
	  "figures to show (impacting,size,count,peak), or all; --columns help: what there is" },
	QUERY_OPTIONS_ROW_MIN_BYTES("leave out rows of fewer bytes (64K, 1.5MiB)"),
	{ ARGS_FLAG(request, exit_frees), 0, "exit-frees", NULL,
	  "the end of a process frees its blocks, instead of leaving them outstanding" },
	{ ARGS_TEXT(request, tags_path), 0, "tags", "FILE", "stack tags (XML) for the key tag" },
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	QUERY_OPTIONS_ROW_MEMORY("for the index and single allocations (256M)"),
	PRINT_OPTIONS_ROWS_SHEET("window.json"),
	{ 0 },
};

static const char *const tree_words[] = { "callers", "leaf", NULL };

static bool take_tree(struct args *args, struct request *request, enum tree_kind kind)
{
	ASSERT(kind <= TREE_BUTTERFLY);
	if (request->has_tree)
		return args_mistake(args, "--tree, --flat and --butterfly: only one of them");
	request->has_tree = true;
	request->tree = kind;
	return true;
}

// What there is to choose from, and nothing else.
// It is `--columns help` and not an option of its own: who is in doubt about the word is at that
// option already. False ends the command as a mistake does, with EXIT_ANSWERED.
static bool say_columns(struct args *args)
{
	struct sink sink = sink_to_file(stdout);

	table_write_columns(&sink);
	args->exit_code = EXIT_ANSWERED;
	return false;
}

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	int index;

	switch (id) {
	case OPTION_TREE:
		if (!args_word(args, tree_words, &index))
			return false;
		return take_tree(args, request, index == 0 ? TREE_CALLERS : TREE_LEAF);
	case OPTION_FLAT:
		return take_tree(args, request, TREE_FLAT);
	case OPTION_BUTTERFLY:
		request->function = args->value;
		return take_tree(args, request, TREE_BUTTERFLY);
	case OPTION_COLUMNS:
		request->columns = args->value;
		return strcmp(args->value, "help") != 0 || say_columns(args);
	}
	return query_options_take(args, &request->options, id) == PRINT_OPTIONS_TAKEN;
}

// Whether rows are of one impact or type each.
static bool typed(const struct keys *keys)
{
	return keys_has(keys, KEYS_IMPACT) || keys_has(keys, KEYS_TYPE);
}

// What was not said. Peaks of rows of one impact cost a look at every allocation, so they are not
// shown unless asked for.
static bool complete(struct request *request, struct err *err)
{
	struct table_options *table = &request->table;
	// Three kinds of answer: text for a terminal (`text`), a page of Markdown (`form->page`),
	// and forms for programs. People get ten rows and names that may join places; programs get
	// every row and exact names.
	const struct sheet_form *form = request->options.print.form;
	bool text = !form && !request->options.print.json;
	const char *by = request->has_tree ? "stack" : "impact,stack";

	if (request->has_tree && form && form->page)
		return err_set(err, ERR_USAGE, "--markdown is for rows, not for trees");
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
	table->rows_max = request->options.rows_max;
	if (!request->options.rows_given)
		table->rows_max = text || (form && form->page) ? ROWS_DEFAULT : 0;
	table->bytes_min = request->options.bytes_min;
	table->all_frames = request->options.all_frames;
	table->labels = text ? LABELS_AS_SHOWN : LABELS_EXACT;
	table->details = !text && !request->has_tree;
	// A single step of a trace is looked up only for columns that need one (`details`).
	// Programs get those always, for their columns are fixed; text only those that were chosen.
	// Lifetimes cost the most of them, so where neither a column nor the order asks for one
	// they are left out and peaks stay; and the other way round.
	table->peaks_only = text && !(table->sorted && table_column_lifetimes(table->sort));
	table->lifetimes_only = text && !(table->sorted && table_column_details(table->sort) &&
					  !table_column_lifetimes(table->sort));
	for (size_t i = 0; i < table->columns_count; i++) {
		table->details |= table_column_details(table->columns[i]);
		table->peaks_only &= !table_column_lifetimes(table->columns[i]);
		table->lifetimes_only &= !table_column_details(table->columns[i]) ||
					 table_column_lifetimes(table->columns[i]);
	}
	table->lifetimes_only &= !table->peaks_only;
	if (request->has_tree && table->details)
		return err_set(err, ERR_USAGE,
			       "a tree has no columns of peaks, times or lifetimes");
	table->width = print_options_width();
	table->colour = print_options_colour(&request->options.print);
	return true;
}

// Owned by the caller; the text is not needed any more.
static struct tags *open_tags(const char *path, struct err *err)
{
	struct file_view view = { 0 };
	struct tags *tags;

	if (!file_view_open(&view, path, err)) {
		err_wrap(err, "cannot read %s", path);
		return NULL;
	}
	// Tags keep their own copy of the names that they need: the file's view may end here.
	tags = tags_read((const char *)view.bytes, view.size, err);
	if (!tags)
		err_wrap(err, "%s", path);
	file_view_close(&view);
	return tags;
}

static bool write_table(const struct request *request, struct query_context *asked,
			struct sink *sink, struct err *err)
{
	const struct print_options *print = &request->options.print;
	struct table *table = table_new(asked, &request->table, err);
	bool good;

	ASSERT(!request->has_tree);
	if (!table)
		return false;
	if (print->form) {
		struct sheet sheet =
			query_options_sheet(&cmd_window, &request->options, asked, sink);

		table_rows(table, &sheet);
	} else {
		(print->json ? table_json : table_text)(table, sink);
	}
	good = table_written(table, err);
	table_free(table);
	return good;
}

static bool write_tree(const struct request *request, struct query_context *asked,
		       struct sink *sink, struct err *err)
{
	const struct print_options *print = &request->options.print;
	struct tree *tree = tree_new(asked, &request->table, request->tree, request->function, err);

	ASSERT(request->has_tree && request->tree <= TREE_BUTTERFLY);
	if (!tree)
		return false;
	if (print->form) {
		struct sheet sheet =
			query_options_sheet(&cmd_window, &request->options, asked, sink);

		tree_rows(tree, &sheet);
	} else {
		(print->json ? tree_json : tree_text)(tree, sink);
	}
	tree_free(tree);
	return true;
}

static bool answer(const void *context, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct request *request = context;
	bool by_layer = keys_has(&request->table.keys, KEYS_LAYER);

	// Heap and virtual memory never add up, so a question that has both is refused unless rows
	// keep them apart by the key `layer`.
	return query_context_check_layers(asked, by_layer, err) &&
	       query_context_warn_of_ended(asked, true, err) &&
	       (request->has_tree ? write_tree(request, asked, sink, err)
				  : write_table(request, asked, sink, err));
}

// Keys that split by layer or heap need both layers, or heaps apart, from the beginning: they are
// asked of the index when it is opened.
static int print(const struct request *request)
{
	struct query_context_options context =
		query_options_context(&cmd_window, &request->options, &query_context_window_rules);

	ASSERT(request->table.columns_count > 0);
	context.exit_frees = request->exit_frees;
	context.by_heap = keys_has(&request->table.keys, KEYS_HEAP);
	// Layers never add up: both are asked about only where each has rows of its own.
	if (keys_has(&request->table.keys, KEYS_LAYER))
		context.layers = WINDOW_HEAP | WINDOW_VM;
	return query_options_print(&cmd_window, &request->options, &context, answer, request);
}

// Tags are borrowed by the table until it is printed.
static int take_all(struct args *args, struct request *request)
{
	struct err err = { 0 };
	struct tags *tags = NULL;
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(args, request, id))
			return args->exit_code;
	if (!query_options_check(args, &request->options))
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
	args->exit_code = print(request);
	tags_free(tags);
	return args->exit_code;
}

static int run(int argc, char **argv)
{
	struct request request = { 0 };
	struct args args;
	int code;

	args_init(&args, &cmd_window, argc, argv);
	args.into = &request;
	code = take_all(&args, &request);
	query_options_fini(&request.options);
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
		"  tidemark window app.tide --from peak --to peak --exit-frees   live at the peak\n"
		"  tidemark window app.tide --by size,lifetime --size 10M  single allocations\n",
	.notes = "Environment:\n"
		 "  NO_COLOR         no colour unless --color=always\n"
		 "  DEBUGINFOD_URLS  servers that --debuginfod asks\n"
		 "  TIDEMARK_INDEX   always: build an index of a small trace too; never: of none\n"
		 "  TIDEMARK_CACHE   for indexes that cannot be beside their traces (8G)\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
