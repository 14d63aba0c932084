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
// here. Children are sorted as a table's rows are.
#ifndef REPORT_TREE_H
#define REPORT_TREE_H

#include "base/map.h"
#include "report/table.h"

enum tree_kind { TREE_CALLERS, TREE_LEAF, TREE_FLAT, TREE_BUTTERFLY };

struct tree_node {
	const struct symbol *symbol;                    // the first that was met; NULL: no stack
	bool lines_differ;                              // more than one line of its file
	uint32_t function;                              // label of what it is called
	uint32_t parent, depth;                         // parent: TABLE_NONE for a root
	uint32_t children, children_count, shown_count; // in tree->order
	struct table_row row;                           // sums of all stacks that pass (inclusive)
	struct table_row self;                          // of those that end here
};

struct tree {
	struct table *table; // the window's rows by stack; owned
	enum tree_kind kind;
	struct tree_node *nodes; // nodes[0] holds everything and is no function
	size_t nodes_count, nodes_capacity;
	uint32_t *order;
	uint32_t callers, callees; // of a butterfly: the node that is the function, in each tree
	struct map children;       // private
	uint64_t left_out;         // nodes, by tree_limit
	double share_min;          // nodes of a smaller part of the total are not shown
};

// `options` are a table's; its keys must be `stack` alone, its columns sums. `function`: the
// butterfly's, by its name, with or without parameters. NULL also where no stack passes it
// (ERR_USAGE, with the nearest).
struct tree *tree_new(struct question *question, const struct table_options *options,
		      enum tree_kind kind, const char *function, struct err *err);
void tree_free(struct tree *tree); // NULL is allowed

// Show at most `nodes_max` nodes: those of the largest figures in the column that is sorted by,
// each with all above it.
void tree_limit(struct tree *tree, uint64_t nodes_max);

static inline struct tree_node *tree_child(const struct tree *tree, const struct tree_node *node,
					   uint32_t i)
{
	return &tree->nodes[tree->order[node->children + i]];
}

// "callers", "leaf", "flat", "butterfly".
const char *tree_word(enum tree_kind kind);

struct tree_format {
	const char *name;
	void (*write)(struct tree *tree, struct sink *sink);
};

extern const struct tree_format tree_text;
extern const struct tree_format tree_json;
extern const struct tree_format tree_csv;

#endif
