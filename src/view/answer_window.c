// Windows as tables and as trees: what tidemark window --json writes.
#include "view/answer.h"

#include "report/table.h"
#include "report/tree.h"

// What a table and a tree have in common.
struct asked {
	struct question_options question;
	struct table_options table;
};

static bool take_common(struct answer *answer, struct asked *asked, struct err *err)
{
	struct params *params = &answer->params;
	const char *sort;

	asked->question.words = &answer->words;
	asked->question.opened = &answer->desk->opened;
	asked->question.memory_bytes = answer->desk->window_options.memory_bytes;
	if (!params_take(params, "sort", &sort, err) ||
	    !params_take_flag(params, "exit-frees", &asked->question.exit_frees, err) ||
	    !params_take_flag(params, "all-frames", &asked->table.all_frames, err) ||
	    !params_take_filters(params, 0, &answer->words, err))
		return false;
	return !sort || table_parse_sort(sort, &asked->table, err) || err_wrap(err, "sort");
}

// The question, when nothing is left of the parameters.
static bool open_question(struct answer *answer, struct asked *asked, struct question *question,
			  struct err *err)
{
	if (!params_check_taken(&answer->params, err))
		return false;
	if (keys_has(&asked->table.keys, KEYS_LAYER))
		asked->question.layers_all = WINDOW_HEAP | WINDOW_VM;
	return question_open(question, answer->desk->opened.path, &asked->question, err);
}

enum { DETAILS_NONE, DETAILS_ALL, DETAILS_PEAKS };

bool answer_window(struct answer *answer, struct err *err)
{
	static const char *const kinds[] = { "0", "1", "peaks", NULL };
	struct asked asked = { .table = { .labels = LABELS_EXACT } };
	struct table_options *options = &asked.table;
	struct question question;
	struct table *table;
	const char *by;
	int details = DETAILS_ALL;

	if (!params_take(&answer->params, "by", &by, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &options->rows_max, err) ||
	    !params_take_bytes(&answer->params, "min-bytes", &options->bytes_min, err) ||
	    !params_take_word(&answer->params, "details", kinds, &details, err) ||
	    !take_common(answer, &asked, err))
		return false;
	options->details = details != DETAILS_NONE;
	options->peaks_only = details == DETAILS_PEAKS &&
			      !(options->sorted && table_column_lifetimes(options->sort));
	if (!keys_parse(by ? by : "impact,stack", &options->keys, err))
		return err_wrap(err, "by");
	if (!open_question(answer, &asked, &question, err))
		return false;
	table = question_check_layers(&question, keys_has(&options->keys, KEYS_LAYER), err)
			? table_new(&question, options, err)
			: NULL;
	if (table)
		table_json.write(table, answer->sink);
	table_free(table);
	question_close(&question);
	return table != NULL;
}

bool answer_window_tree(struct answer *answer, struct err *err)
{
	static const char *const kinds[] = { "callers", "leaf", "flat", "butterfly", NULL };
	struct asked asked = { .table = { .labels = LABELS_EXACT } };
	uint64_t nodes_max = ANSWER_NODES_MAX;
	const char *function;
	struct question question;
	struct tree *tree;
	int kind = TREE_CALLERS;

	if (!params_take_word(&answer->params, "kind", kinds, &kind, err) ||
	    !params_take(&answer->params, "function", &function, err) ||
	    !params_take_number(&answer->params, "nodes", 1, ANSWER_NODES_MAX, &nodes_max, err) ||
	    !take_common(answer, &asked, err))
		return false;
	if ((kind == TREE_BUTTERFLY) != (function != NULL))
		return err_set(err, ERR_USAGE, "'function' belongs to the kind butterfly");
	if (asked.table.sorted && table_column_details(asked.table.sort))
		return err_set(
			err, ERR_USAGE,
			"a tree has the columns impacting, size, count, allocated and freed");
	if (!keys_parse("stack", &asked.table.keys, err) ||
	    !open_question(answer, &asked, &question, err))
		return false;
	tree = question_check_layers(&question, false, err)
		       ? tree_new(&question, &asked.table, (enum tree_kind)kind, function, err)
		       : NULL;
	if (tree) {
		tree_limit(tree, nodes_max);
		tree_json.write(tree, answer->sink);
	}
	tree_free(tree);
	question_close(&question);
	return tree != NULL;
}
