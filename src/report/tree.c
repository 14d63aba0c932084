#include "report/tree.h"

#include "base/mem.h"
#include "report/cxxname.h"
#include "report/wrappers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *tree_word(enum tree_kind kind)
{
	static const char *const words[] = { "callers", "leaf", "flat", "butterfly" };

	return words[kind];
}

// ---- nodes ----

static uint32_t add_node(struct tree *tree, uint32_t parent, const struct symbol *symbol,
			 uint32_t function)
{
	uint32_t index = (uint32_t)tree->nodes_count;

	ASSERT(tree->nodes_count < TABLE_NONE);
	tree->nodes = mem_grow(tree->nodes, &tree->nodes_capacity, tree->nodes_count + 1,
			       sizeof *tree->nodes);
	tree->nodes[tree->nodes_count++] = (struct tree_node){
		.symbol = symbol,
		.function = function,
		.parent = parent,
		.depth = parent == TABLE_NONE ? 0 : tree->nodes[parent].depth + 1,
	};
	return index;
}

// What a frame is called: equal for all calls of a function.
static uint32_t label(struct tree *tree, const struct symbol *symbol)
{
	struct str text = { 0 };
	uint32_t found;

	if (!symbol)
		str_add(&text, "(no stack)");
	else if (symbol->function)
		str_format(&text, "%s\n%s", symbol->function, symbol->module);
	else
		str_format(&text, "%s+0x%" PRIx64, symbol->module, symbol->offset);
	found = labels_text(tree->table->labels, str_get(&text));
	str_fini(&text);
	return found;
}

static uint32_t find_node(struct tree *tree, uint32_t parent, const struct symbol *symbol)
{
	uint32_t function = label(tree, symbol);
	bool added;
	uint64_t *index = map_put(&tree->children, (uint64_t)(parent + 1) << 32 | function, &added);
	struct tree_node *node;

	if (added) {
		*index = tree->nodes_count;
		return add_node(tree, parent, symbol, function);
	}
	node = &tree->nodes[*index];
	if (symbol && node->symbol && symbol->line != node->symbol->line)
		node->lines_differ = true;
	return (uint32_t)*index;
}

static void add_sums(struct table_row *row, const struct window_row *sums)
{
	window_add_row(&row->sums, sums);
}

// ---- stacks ----

// The part of a stack that is shown: lines[first..end), innermost first.
struct part {
	const struct names_line *lines;
	size_t first, end;
};

static struct part part_of(const struct tree *tree, const struct names_stack *stack)
{
	bool all = tree->table->options->all_frames;

	return (struct part){
		.lines = stack->lines,
		.first = all ? 0 : stack->user,
		.end = stack->count - (all ? 0 : stack->roots),
	};
}

// Follow lines[from..to) outwards below `node`; each counts. Gives the last.
static uint32_t follow_out(struct tree *tree, uint32_t node, const struct part *part, size_t from,
			   size_t to, const struct window_row *sums)
{
	for (size_t i = from; i < to; i++) {
		node = find_node(tree, node, part->lines[i].symbol);
		add_sums(&tree->nodes[node].row, sums);
	}
	return node;
}

// The same of lines[from..to) inwards, from the last to the first.
static uint32_t follow_in(struct tree *tree, uint32_t node, const struct part *part, size_t from,
			  size_t to, const struct window_row *sums)
{
	for (size_t i = to; i > from; i--) {
		node = find_node(tree, node, part->lines[i - 1].symbol);
		add_sums(&tree->nodes[node].row, sums);
	}
	return node;
}

static void add_callers(struct tree *tree, const struct part *part, const struct window_row *sums)
{
	uint32_t last = follow_in(tree, 0, part, part->first, part->end, sums);

	add_sums(&tree->nodes[last].self, sums);
}

static void add_leaf(struct tree *tree, const struct part *part, const struct window_row *sums)
{
	uint32_t leaf = find_node(tree, 0, part->lines[part->first].symbol);

	follow_out(tree, 0, part, part->first, part->end, sums);
	add_sums(&tree->nodes[leaf].self, sums);
}

static void add_flat(struct tree *tree, const struct part *part, const struct window_row *sums)
{
	uint32_t leaf = find_node(tree, 0, part->lines[part->first].symbol);

	add_sums(&tree->nodes[leaf].self, sums);
	for (size_t i = part->first; i < part->end; i++) {
		uint32_t node = find_node(tree, 0, part->lines[i].symbol);
		bool again = false;

		for (size_t j = part->first; j < i && !again; j++)
			again = find_node(tree, 0, part->lines[j].symbol) == node;
		if (!again)
			add_sums(&tree->nodes[node].row, sums);
	}
}

static bool is_called(const struct symbol *symbol, const char *function)
{
	const char *base;
	size_t length;

	if (!symbol->function)
		return false;
	base = cxxname_base(symbol->function, &length);
	return strcmp(symbol->function, function) == 0 ||
	       (strlen(function) == length && memcmp(base, function, length) == 0);
}

static void add_butterfly(struct tree *tree, const struct part *part, const struct window_row *sums,
			  const char *function)
{
	size_t pivot = part->end;
	uint32_t last;

	while (pivot > part->first && !is_called(part->lines[pivot - 1].symbol, function))
		pivot--;
	if (pivot-- == part->first)
		return;
	// Nodes 1 and 2 are the two roots; what they stand for is known with the first stack.
	tree->nodes[tree->callers].symbol = part->lines[pivot].symbol;
	tree->nodes[tree->callees].symbol = part->lines[pivot].symbol;
	add_sums(&tree->nodes[tree->callers].row, sums);
	add_sums(&tree->nodes[tree->callees].row, sums);
	follow_out(tree, tree->callers, part, pivot + 1, part->end, sums);
	last = follow_in(tree, tree->callees, part, part->first, pivot, sums);
	add_sums(&tree->nodes[last].self, sums);
}

static void add_stack(struct tree *tree, const struct table_row *row, const char *function)
{
	stack_id id = table_stack(tree->table, row);
	struct names_stack stack = names_stack(tree->table->question->names, id);
	struct part part = part_of(tree, &stack);

	if (part.first >= part.end) {
		uint32_t node;

		if (tree->kind == TREE_BUTTERFLY)
			return;
		node = find_node(tree, 0, NULL);
		add_sums(&tree->nodes[node].row, &row->sums);
		add_sums(&tree->nodes[node].self, &row->sums);
		return;
	}
	switch (tree->kind) {
	case TREE_CALLERS:
		add_callers(tree, &part, &row->sums);
		break;
	case TREE_LEAF:
		add_leaf(tree, &part, &row->sums);
		break;
	case TREE_FLAT:
		add_flat(tree, &part, &row->sums);
		break;
	case TREE_BUTTERFLY:
		add_butterfly(tree, &part, &row->sums, function);
		break;
	}
}

// ---- order ----

static int64_t weight(const struct tree_node *node, enum table_column column)
{
	int64_t figure = table_figure(&node->row, column);

	return figure < 0 ? -figure : figure;
}

static int compare_nodes(const void *a, const void *b, void *context)
{
	const struct tree *tree = context;
	const struct tree_node *left = &tree->nodes[*(const uint32_t *)a];
	const struct tree_node *right = &tree->nodes[*(const uint32_t *)b];
	const enum table_column columns[] = { tree->table->options->sort, TABLE_IMPACTING,
					      TABLE_SIZE, TABLE_COUNT };

	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		int64_t l = weight(left, columns[i]), r = weight(right, columns[i]);

		if (l != r)
			return l > r ? -1 : 1;
	}
	return left->function < right->function ? -1 : left->function > right->function;
}

static void lay_out(struct tree *tree)
{
	uint32_t at = 0;

	tree->order = mem_alloc(tree->nodes_count + 1, sizeof *tree->order);
	for (size_t i = 1; i < tree->nodes_count; i++)
		tree->nodes[tree->nodes[i].parent].children_count++;
	for (size_t i = 0; i < tree->nodes_count; i++) {
		tree->nodes[i].children = at;
		at += tree->nodes[i].children_count;
		tree->nodes[i].children_count = 0;
	}
	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		struct tree_node *parent = &tree->nodes[tree->nodes[i].parent];

		tree->order[parent->children + parent->children_count++] = i;
	}
}

// The part of the whole that a node is, in the column that is sorted by; of Size where that is 0.
static double share(const struct tree *tree, const struct tree_node *node)
{
	enum table_column column = tree->table->options->sort;
	int64_t whole = weight(&tree->nodes[0], column);

	if (column == TABLE_IMPACTING || whole == 0) {
		double of_impact = whole ? (double)weight(node, column) / (double)whole : 0;
		int64_t size = weight(&tree->nodes[0], TABLE_SIZE);
		double of_size = size ? (double)weight(node, TABLE_SIZE) / (double)size : 1;

		return of_impact > of_size ? of_impact : of_size;
	}
	return (double)weight(node, column) / (double)whole;
}

static void sort_nodes(struct tree *tree)
{
	uint64_t rows_max = tree->table->options->rows_max;

	for (size_t i = 0; i < tree->nodes_count; i++) {
		struct tree_node *node = &tree->nodes[i];
		uint32_t *children = tree->order + node->children;

		if (node->children_count > 1)
			mem_sort(children, node->children_count, sizeof *children, compare_nodes,
				 tree);
		node->shown_count = node->children_count;
		if (rows_max == 0)
			continue;
		if (node->shown_count > rows_max)
			node->shown_count = (uint32_t)rows_max;
		while (node->shown_count > 0 &&
		       share(tree, &tree->nodes[children[node->shown_count - 1]]) < tree->share_min)
			node->shown_count--;
	}
}

// ---- not too many ----

static int largest_first(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left > right ? -1 : left < right;
}

// Leave only those children that are kept, which go first.
static void keep_children(struct tree *tree, struct tree_node *node, const bool *kept)
{
	uint32_t *children = tree->order + node->children;
	uint32_t count = 0;

	for (uint32_t i = 0; i < node->shown_count; i++)
		if (kept[children[i]])
			children[count++] = children[i];
	node->shown_count = count;
	node->children_count = count;
}

void tree_limit(struct tree *tree, uint64_t nodes_max)
{
	size_t count = tree->nodes_count, ties = 0;
	uint64_t *most, *sorted; // of the node and all below it
	bool *kept;

	if (count - 1 <= nodes_max)
		return;
	most = mem_alloc(count, sizeof *most);
	sorted = mem_alloc(count, sizeof *sorted);
	kept = mem_alloc(count, sizeof *kept);
	// Children stand behind their parents.
	for (size_t i = count; i-- > 0;) {
		const struct tree_node *node = &tree->nodes[i];
		uint64_t own = (uint64_t)weight(node, tree->table->options->sort);

		most[i] = own > most[i] ? own : most[i];
		if (i > 0 && most[i] > most[node->parent])
			most[node->parent] = most[i];
	}
	for (size_t i = 1; i < count; i++)
		sorted[i - 1] = most[i];
	qsort(sorted, count - 1, sizeof *sorted, largest_first);
	for (size_t i = 0; i < nodes_max; i++)
		ties += sorted[i] == sorted[nodes_max];
	kept[0] = true;
	for (size_t i = 1; i < count; i++) {
		kept[i] = most[i] > sorted[nodes_max];
		if (most[i] != sorted[nodes_max] || ties == 0 || !kept[tree->nodes[i].parent])
			continue;
		kept[i] = true;
		ties--;
	}
	tree->left_out = 0;
	for (size_t i = 0; i < count; i++) {
		tree->left_out += !kept[i];
		keep_children(tree, &tree->nodes[i], kept);
	}
	mem_free(most);
	mem_free(sorted);
	mem_free(kept);
}

// ---- all of it ----

// The function with the nearest name among those of the window's stacks.
static bool tell_nearest(const struct tree *tree, const char *function, struct err *err)
{
	const struct table_row *total = &tree->table->rows[0];
	struct map seen = { 0 };
	const char **names = NULL;
	size_t count = 0, capacity = 0;
	const char *nearest;

	for (uint32_t r = 0; r < total->children_count; r++) {
		stack_id id = table_stack(tree->table, table_child(tree->table, total, r));
		struct names_stack stack = names_stack(tree->table->question->names, id);

		for (size_t i = 0; i < stack.count; i++) {
			const char *name = stack.lines[i].symbol->function;
			bool added;

			if (!name)
				continue;
			map_put(&seen, (uint64_t)(uintptr_t)name, &added);
			if (!added)
				continue;
			names = mem_grow(names, &capacity, count + 2, sizeof *names);
			names[count++] = name;
		}
	}
	if (names)
		names[count] = NULL;
	nearest = names ? str_nearest(function, names) : NULL;
	if (nearest)
		err_set(err, ERR_USAGE,
			"no allocation in the window passes '%s'; did you mean '%s'?", function,
			nearest);
	else
		err_set(err, ERR_USAGE, "no allocation in the window passes '%s'", function);
	mem_free(names);
	map_fini(&seen);
	return false;
}

static bool build(struct tree *tree, const char *function, struct err *err)
{
	const struct table_row *total = &tree->table->rows[0];

	add_node(tree, TABLE_NONE, NULL, 0);
	if (tree->kind == TREE_BUTTERFLY) {
		tree->callers = add_node(tree, 0, NULL, 0);
		tree->callees = add_node(tree, 0, NULL, 0);
	}
	for (uint32_t i = 0; i < total->children_count; i++) {
		const struct table_row *row = table_child(tree->table, total, i);

		if (!row->orphans)
			add_stack(tree, row, function);
	}
	tree->nodes[0].row.sums = total->sums;
	if (tree->kind == TREE_BUTTERFLY && !tree->nodes[tree->callers].symbol)
		return tell_nearest(tree, function, err);
	lay_out(tree);
	sort_nodes(tree);
	return true;
}

struct tree *tree_new(struct question *question, const struct table_options *options,
		      enum tree_kind kind, const char *function, struct err *err)
{
	struct tree *tree = mem_alloc(1, sizeof *tree);

	tree->kind = kind;
	tree->share_min = 0.005;
	tree->table = table_new(question, options, err);
	if (tree->table && build(tree, function, err))
		return tree;
	tree_free(tree);
	return NULL;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	table_free(tree->table);
	map_fini(&tree->children);
	mem_free(tree->nodes);
	mem_free(tree->order);
	mem_free(tree);
}
