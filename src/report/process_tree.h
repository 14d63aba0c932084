// process_tree: the processes of a trace in the order of a family tree.
//
// Parents are before their children, children in the order they came. A process whose parent is
// not in the trace, or makes no sense, is a root.
//
//     process_tree_init
//       for each of nodes[0 .. count - 1]: process_tree_lines, then its name
//     process_tree_fini
#pragma once

#include "base/str.h"
#include "trace/reader.h"

struct process_tree_node {
	process_id process;
	process_id parent; // TRACE_NONE for a root
	unsigned depth;    // 0 for a root
	bool last;         // no younger sibling
};

struct process_tree {
	struct process_tree_node *nodes; // owned; in the order of printing
	size_t count;
};

// One walk, without recursion, however deep forks go.
void process_tree_init(struct process_tree *tree, const struct reader *reader);
void process_tree_fini(struct process_tree *tree);

// The lines that lead to node `index`: "│  ├─ ". Deep trees are cut: "… ├─ ". Appends; nothing for
// a root.
void process_tree_lines(const struct process_tree *tree, size_t index, struct str *out);
