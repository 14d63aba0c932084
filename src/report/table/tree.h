// tree: a window's stacks as a person needs them.
//
//     TREE_CALLERS    from the root: who called whom
//     TREE_LEAF       inverted: the function that allocated first, its callers below it
//     TREE_FLAT       each function once: what it allocated itself, and what all below it did
//     TREE_BUTTERFLY  one function: its callers above, what it called below
//
// A node is a function; calls from several of its lines are one node. Inlined functions are nodes.
// The functions in which every thread begins and allocator wrappers are left out, unless all
// frames are wanted. Where a stack passes a function more than once, it counts once in that
// function's inclusive figures, and a butterfly takes the outermost.
//
// Figures are sums over the stacks that pass a node, so only the columns that are sums have a place
// here. Children are sorted as a table's rows are; of equals, by what they are called.
//
//     tree_new         asks the engine
//       tree_limit     if there may be too many nodes for who reads it
//       tree_text (or tree_json, tree_rows)
//     tree_free
//
// Nodes are not kept but made where one walks by (tree_walk), from the stacks that pass them, of
// which each is in one place at a time. So a tree costs memory by the window's stacks, not by its
// nodes.
#pragma once

#include "report/table/table.h"
#include "report/table/trie.h"

enum tree_kind { TREE_CALLERS, TREE_LEAF, TREE_FLAT, TREE_BUTTERFLY };

enum tree_side { TREE_WHOLE, TREE_SIDE_CALLERS, TREE_SIDE_CALLEES };

// What a visitor is given. Valid during the call.
struct tree_node {
	const struct symbol *symbol; // of its calls the first by file and line; NULL: no stack
	bool lines_differ;           // more than one line of its file
	uint8_t side;                // enum tree_side
	uint32_t depth;              // 0: everything, which is no function
	uint32_t children_count, shown_count;
	struct window_row row;  // sums of all stacks that pass (inclusive)
	struct window_row self; // of those that end here
};

// Private: a stack's place in the tree (tree_walk.c).
struct tree_step {
	uint32_t function; // (functions.h)
	uint32_t stack, origin;
	uint32_t line : 30;
	uint32_t again : 1; // the function is counted already
	uint32_t alone : 1; // only what ends here, not what passes
};

// Private but for `share_min` and `runs`, which who shows it may set.
struct tree {
	struct table_options options; // without keys
	struct table *table;          // of no rows but the total; owned
	enum tree_kind kind;
	const char *function;     // of a butterfly; borrowed
	struct trie trie;         // the window's stacks
	struct tree_step *pivots; // where they pass that function
	size_t pivots_count;
	double share_min; // nodes of a smaller part of the total are not shown
	bool runs;        // what is one branch with its node is shown with it, however little
	bool limited;     // only these are shown, each with all above it, in the order of a walk:
	struct tree_node *kept;
	size_t kept_count, kept_capacity;
	uint64_t left_out; // nodes, by tree_limit
};

// `options` are a table's; its keys are not looked at, its columns are sums. `function`: the
// butterfly's, by its name, with or without parameters; borrowed. NULL also where no stack passes
// it (ERR_USAGE, with the nearest).
struct tree *tree_new(struct query_context *asked, const struct table_options *options,
		      enum tree_kind kind, const char *function, struct err *err);
void tree_free(struct tree *tree); // NULL is allowed

// Show at most `nodes_max` nodes: those of the largest figures in the column that is sorted by,
// each with all above it.
void tree_limit(struct tree *tree, uint64_t nodes_max);

// Every node that is shown, the whole first; a node before those below it, and these before what
// is beside it. `rest`: what is below the node and not shown.
typedef void tree_visit(void *context, const struct tree_node *node, const struct window_row *rest);
void tree_walk(struct tree *tree, tree_visit *visit, void *context);

// Private: every place at which stacks pass the butterfly's function, outermost (in tree_walk.c).
void tree_find_pivots(struct tree *tree);

// Whether what is below the node is one branch with it: its only child, and it allocated nothing
// itself.
static inline bool tree_runs_on(const struct tree_node *node)
{
	return node->children_count == 1 && window_present(&node->self).count == 0;
}

// A row's figure as a weight: how large, up or down.
uint64_t tree_weight(const struct window_row *row, enum table_column column);

// "callers", "leaf", "flat", "butterfly".
const char *tree_word(enum tree_kind kind);

// For people; as JSON (docs/schema/window-tree.json); the nodes as rows.
void tree_text(struct tree *tree, struct sink *sink);
void tree_json(struct tree *tree, struct sink *sink);
void tree_rows(struct tree *tree, struct sheet *sheet);
