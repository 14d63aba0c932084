// Processes are a list in the order in which they began, each with its parent. The tree is a walk
// of it from parents to children without recursion: `links` has the first child and the next
// sibling of each, and `above` the way down to the present node. For example the parents none, 0,
// 0, 1, none make
//
//     0
//     ├─ 1
//     │  └─ 3
//     └─ 2
//     4
//
// The lines of a node depend on which of its ancestors have a younger sibling, which
// process_tree_lines finds by going backwards through the list.
#include "report/process_tree.h"

#include "base/mem.h"

enum { DEPTH_DRAWN_MAX = 8 };

// Links between processes while the order is made.
struct links {
	process_id first_child, last_child, next_sibling;
};

// A parent is before its children in a trace. One that is not is damage and is not believed: so
// there can be no circle.
static process_id parent_of(const struct reader *reader, process_id id)
{
	process_id parent = reader_process(reader, id)->parent;

	return parent < id ? parent : TRACE_NONE;
}

// Node 0 of `links` is the root above all roots; process p is node p + 1.
static struct links *link_processes(const struct reader *reader, uint32_t count)
{
	struct links *links = mem_alloc(count + (size_t)1, sizeof *links);

	for (process_id id = 0; id < count; id++) {
		process_id parent = parent_of(reader, id);
		struct links *above = &links[parent == TRACE_NONE ? 0 : parent + 1];

		if (above->last_child)
			links[above->last_child].next_sibling = id + 1;
		else
			above->first_child = id + 1;
		above->last_child = id + 1;
	}
	return links;
}

// The processes in the order in which a tree of them is printed: each before its children. Without
// recursion, as a chain of forks may be as deep as there are processes.
void process_tree_init(struct process_tree *tree, const struct reader *reader)
{
	uint32_t count = reader_processes_count(reader);
	struct links *links = link_processes(reader, count);
	process_id *above = mem_alloc(count + (size_t)1, sizeof *above); // the way down to `node`
	unsigned depth = 0;
	process_id node = links[0].first_child;

	*tree = (struct process_tree){ .nodes = mem_alloc(count, sizeof *tree->nodes) };
	while (node) {
		ASSERT(node <= count && tree->count < count);
		tree->nodes[tree->count++] = (struct process_tree_node){
			.process = node - 1,
			.parent = parent_of(reader, node - 1),
			.depth = depth,
			.last = links[node].next_sibling == 0,
		};
		if (links[node].first_child) {
			above[depth++] = node;
			node = links[node].first_child;
			continue;
		}
		while (!links[node].next_sibling && depth > 0)
			node = above[--depth];
		node = links[node].next_sibling;
	}
	MEM_FREE(above, links);
}

void process_tree_fini(struct process_tree *tree)
{
	mem_free(tree->nodes);
	*tree = (struct process_tree){ 0 };
}

// Column k is of the ancestor k levels above the node: `open` says that a younger sibling of that
// one follows below.
void process_tree_lines(const struct process_tree *tree, size_t index, struct str *out)
{
	const struct process_tree_node *node = &tree->nodes[index];
	unsigned drawn = node->depth < DEPTH_DRAWN_MAX ? node->depth : DEPTH_DRAWN_MAX;
	bool open[DEPTH_DRAWN_MAX + 1] = { false }; // does the column go on below?
	unsigned depth = node->depth;

	ASSERT(index < tree->count);
	if (node->depth == 0)
		return;
	// Each ancestor is the nearest earlier node of a smaller depth.
	for (size_t i = index; depth > 1 && i-- > 0;) {
		if (tree->nodes[i].depth >= depth)
			continue;
		depth = tree->nodes[i].depth;
		if (depth > 0 && node->depth - depth < drawn)
			open[node->depth - depth] = !tree->nodes[i].last;
	}
	if (node->depth > drawn)
		str_add(out, "… ");
	for (unsigned column = drawn - 1; column > 0; column--)
		str_add(out, open[column] ? "│  " : "   ");
	str_add(out, node->last ? "└─ " : "├─ ");
}
