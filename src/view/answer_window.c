// Windows as tables and as trees: what tidemark window --json writes.
//
// For example "by=stack&n=50&details=0&from=1s": a table of the stacks, the 50 heaviest of those
// that there are, without peaks and lifetimes, which need the steps of the window to be gone
// through. A page may ask so while a window is dragged, and with details when it is let go.
#include "view/answer.h"

#include "report/table/table.h"
#include "report/table/tree.h"

// What a table and a tree have in common.
struct request {
	struct query_context_options context;
	struct table_options table;
};

static bool take_common(struct answer *answer, struct request *request, struct err *err)
{
	struct params *params = &answer->params;
	const char *sort;

	request->context = answer_options(answer, &query_context_window_rules);
	if (!params_take(params, "sort", &sort, err) ||
	    !params_take_flag(params, "exit-frees", &request->context.exit_frees, err) ||
	    !params_take_flag(params, "all-frames", &request->table.all_frames, err) ||
	    !params_take_filters(params, 0, &answer->words, err))
		return false;
	return !sort || table_parse_sort(sort, &request->table, err) || err_wrap(err, "sort");
}

// The question, when nothing is left of the parameters.
static bool open_context(struct answer *answer, struct request *request,
			 struct query_context *asked, struct err *err)
{
	if (!params_check_taken(&answer->params, err))
		return false;
	request->context.by_heap = keys_has(&request->table.keys, KEYS_HEAP);
	// Heap and virtual memory in one table only where each row says which it is: they never add
	// up.
	if (keys_has(&request->table.keys, KEYS_LAYER))
		request->context.layers = WINDOW_HEAP | WINDOW_VM;
	return query_context_open(asked, &request->context, err);
}

enum { DETAILS_NONE, DETAILS_ALL, DETAILS_PEAKS };

// `details`: 0 is sums alone, which take milliseconds, 1 also peaks and lifetimes, "peaks" peaks
// alone.
bool answer_window(struct answer *answer, struct err *err)
{
	static const char *const kinds[] = { "0", "1", "peaks", NULL };
	struct request request = { .table = { .labels = LABELS_EXACT } };
	struct table_options *options = &request.table;
	struct query_context asked;
	struct table *table;
	const char *by;
	int details = DETAILS_ALL;
	bool good;

	if (!params_take(&answer->params, "by", &by, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &options->rows_max, err) ||
	    !params_take_bytes(&answer->params, "min-bytes", &options->bytes_min, err) ||
	    !params_take_word(&answer->params, "details", kinds, &details, err) ||
	    !take_common(answer, &request, err))
		return false;
	options->details = details != DETAILS_NONE;
	options->peaks_only = details == DETAILS_PEAKS &&
			      !(options->sorted && table_column_lifetimes(options->sort));
	if (!keys_parse(by ? by : "impact,stack", &options->keys, err))
		return err_wrap(err, "by");
	if (!open_context(answer, &request, &asked, err))
		return false;
	table = query_context_check_layers(&asked, keys_has(&options->keys, KEYS_LAYER), err)
			? table_new(&asked, options, err)
			: NULL;
	good = table != NULL;
	if (table) {
		table_json(table, answer->sink);
		good = table_written(table, err);
	}
	table_free(table);
	query_context_close(&asked);
	return good;
}

// At most `nodes` of the heaviest: a page cannot draw more, and the rest is counted.
bool answer_window_tree(struct answer *answer, struct err *err)
{
	static const char *const kinds[] = { "callers", "leaf", "flat", "butterfly", NULL };
	struct request request = { .table = { .labels = LABELS_EXACT } };
	uint64_t nodes_max = ANSWER_NODES_MAX;
	const char *function;
	struct query_context asked;
	struct tree *tree;
	int kind = TREE_CALLERS;

	if (!params_take_word(&answer->params, "kind", kinds, &kind, err) ||
	    !params_take(&answer->params, "function", &function, err) ||
	    !params_take_number(&answer->params, "nodes", 1, ANSWER_NODES_MAX, &nodes_max, err) ||
	    !take_common(answer, &request, err))
		return false;
	if ((kind == TREE_BUTTERFLY) != (function != NULL))
		return err_set(err, ERR_USAGE, "'function' belongs to the kind butterfly");
	if (request.table.sorted && table_column_details(request.table.sort))
		return err_set(
			err, ERR_USAGE,
			"a tree has the columns impacting, size, count, allocated and freed");
	if (!keys_parse("stack", &request.table.keys, err) ||
	    !open_context(answer, &request, &asked, err))
		return false;
	tree = query_context_check_layers(&asked, false, err)
		       ? tree_new(&asked, &request.table, (enum tree_kind)kind, function, err)
		       : NULL;
	if (tree) {
		tree_limit(tree, nodes_max);
		tree_json(tree, answer->sink);
	}
	tree_free(tree);
	query_context_close(&asked);
	return tree != NULL;
}
