// A limit takes two walks, since a tree is not kept. The first counts the nodes and finds the
// weight of the last one that may be shown; the second keeps nodes of that weight and more. A node
// weighs as much as the heaviest below it, so that what is shown has all above it. For example
// weights 10 (6 (5, 1), 4 (4)) and at most 3 nodes: sorted 6, 5, 4, 4, 1, so the least is 4, of
// which one may stay; kept are 6, 5 and the first 4.
#include "report/table/tree.h"

#include "base/mem.h"
#include "base/sort.h"

#include <stdlib.h>

const char *tree_word(enum tree_kind kind)
{
	static const char *const words[] = { "callers", "leaf", "flat", "butterfly" };

	ASSERT(kind <= TREE_BUTTERFLY);
	return words[kind];
}

// ---- not too many ----

// The nodes between the whole and the present one, and the largest weight of each and of all that
// was below it so far.
struct path {
	struct stop {
		uint64_t most;
		size_t kept; // its number in tree->kept
	} * stops;
	size_t count, capacity; // the present node's depth, + 1
};

static void path_push(struct path *path, uint64_t most, size_t kept)
{
	*MEM_ADD(path->stops, path->count, path->capacity) = (struct stop){ most, kept };
}

// Takes the last node off; its largest weight goes on to the node above it.
static struct stop path_pop(struct path *path)
{
	struct stop stop = path->stops[--path->count];

	if (path->count > 0 && stop.most > path->stops[path->count - 1].most)
		path->stops[path->count - 1].most = stop.most;
	return stop;
}

// The first look: the largest weights, and how many nodes there are.
struct proc_memory {
	enum table_column column;
	struct path path;
	uint64_t nodes; // but for the whole
	uint64_t *largest;
	size_t count, wanted, capacity;
};

SORT_ORDER(largest_first, uint64_t, SORT_BY(*other, *one))

static void keep_largest(struct proc_memory *proc_memory)
{
	qsort(proc_memory->largest, proc_memory->count, sizeof *proc_memory->largest,
	      largest_first);
	if (proc_memory->count > proc_memory->wanted)
		proc_memory->count = proc_memory->wanted;
}

// Nodes of at least this depth are over.
// The list of weights is cut to those wanted once it has twice as many.
static void end_counted(struct proc_memory *proc_memory, size_t depth)
{
	while (proc_memory->path.count > depth) {
		struct stop stop = path_pop(&proc_memory->path);

		if (proc_memory->path.count == 0)
			return;
		*MEM_ADD(proc_memory->largest, proc_memory->count, proc_memory->capacity) =
			stop.most;
		proc_memory->nodes++;
		if (proc_memory->count / 2 > proc_memory->wanted)
			keep_largest(proc_memory);
	}
}

static void count_node(void *context, const struct tree_node *node, const struct window_row *)
{
	struct proc_memory *proc_memory = context;

	end_counted(proc_memory, node->depth);
	path_push(&proc_memory->path, tree_weight(&node->row, proc_memory->column), 0);
}

// The second: nodes of at least that weight; of those that have just it, so many.
struct selecting {
	struct tree *tree;
	struct path path;
	uint64_t least, ties, ties_kept;
};

// A node that weighs too little goes with all below it, since these weigh no more: the list is cut
// back to where it was before the node.
static void end_selected(struct selecting *selecting, size_t depth)
{
	struct tree *tree = selecting->tree;

	while (selecting->path.count > depth) {
		struct stop stop = path_pop(&selecting->path);

		if (selecting->path.count == 0)
			return;
		// What is below is less too, and gone already.
		if (stop.most < selecting->least)
			tree->kept_count = stop.kept;
		if (stop.most != selecting->least)
			continue;
		// What is left below has the same weight: the last goes first.
		if (++selecting->ties_kept > selecting->ties) {
			selecting->ties_kept--;
			tree->kept_count--;
		}
	}
}

static void select_node(void *context, const struct tree_node *node, const struct window_row *)
{
	struct selecting *selecting = context;
	struct tree *tree = selecting->tree;

	end_selected(selecting, node->depth);
	path_push(&selecting->path, tree_weight(&node->row, tree->options.sort), tree->kept_count);
	*MEM_ADD(tree->kept, tree->kept_count, tree->kept_capacity) = *node;
}

// One more than nodes_max weights are kept: the first that is too many tells how many of its weight
// stay.
void tree_limit(struct tree *tree, uint64_t nodes_max)
{
	struct proc_memory proc_memory = { .column = tree->options.sort,
					   .wanted = (size_t)nodes_max + 1 };
	struct selecting selecting = { .tree = tree };

	tree_walk(tree, count_node, &proc_memory);
	end_counted(&proc_memory, 0);
	mem_free(proc_memory.path.stops);
	if (proc_memory.nodes > nodes_max) {
		keep_largest(&proc_memory);
		selecting.least = proc_memory.largest[nodes_max];
		for (size_t i = 0; i < nodes_max; i++)
			selecting.ties += proc_memory.largest[i] == selecting.least;
		tree_walk(tree, select_node, &selecting);
		end_selected(&selecting, 0);
		mem_free(selecting.path.stops);
		tree->limited = true;
		tree->left_out = proc_memory.nodes - (tree->kept_count - 1);
	}
	mem_free(proc_memory.largest);
}

// ---- all of it ----

// The function with the nearest name among those that the window's stacks pass.
static bool tell_nearest(const struct tree *tree, struct err *err)
{
	const struct functions *functions = tree->trie.functions;
	uint32_t count = functions_count(functions);
	const char **names = mem_alloc(count + (size_t)1, sizeof *names);
	size_t names_count = 0;
	const char *nearest;

	for (uint32_t i = FUNCTIONS_NONE + 1; i < count; i++)
		if (functions_symbol(functions, i)->function)
			names[names_count++] = functions_symbol(functions, i)->function;
	ASSERT(names_count <= count);
	nearest = str_nearest(tree->function, names);
	if (nearest)
		err_set(err, ERR_USAGE,
			"no allocation in the window passes '%s'; did you mean '%s'?",
			tree->function, nearest);
	else
		err_set(err, ERR_USAGE, "no allocation in the window passes '%s'", tree->function);
	mem_free(names);
	return false;
}

// A table without keys gives the total, and what is to be said above it.
static bool find(struct tree *tree, struct query_context *asked, struct err *err)
{
	tree->table = table_new(asked, &tree->options, err);
	if (!tree->table || !trie_init(&tree->trie, asked, tree->options.all_frames, err))
		return false;
	if (tree->kind == TREE_BUTTERFLY)
		tree_find_pivots(tree);
	return tree->kind != TREE_BUTTERFLY || tree->pivots_count > 0 || tell_nearest(tree, err);
}

// Half of a hundredth of the total is the least that is shown of a node, unless all are asked for.
struct tree *tree_new(struct query_context *asked, const struct table_options *options,
		      enum tree_kind kind, const char *function, struct err *err)
{
	struct tree *tree = mem_alloc(1, sizeof *tree);

	tree->kind = kind;
	tree->function = function;
	tree->share_min = 0.005;
	tree->options = *options;
	tree->options.keys = (struct keys){ 0 };
	if (find(tree, asked, err))
		return tree;
	tree_free(tree);
	return NULL;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	table_free(tree->table);
	trie_fini(&tree->trie);
	MEM_FREE(tree->pivots, tree->kept, tree);
}
