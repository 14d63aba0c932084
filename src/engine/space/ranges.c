// An AVL tree whose nodes sum up what is below them.
//
// Each node has the bytes, the holes and the largest hole of its subtree, made from those of its
// children and the gaps beside its own range (sum_up). For example, three ranges of a page each:
//
//                     [0x4000, 0x5000)    low 0x1000, high 0xa000, 0x3000 bytes, 2 holes,
//                      /            \      the largest 0x4000 at 0x5000
//     [0x1000, 0x2000)               [0x9000, 0xa000)
//
// The gap on the left is 0x2000, that on the right 0x4000; neither child has one of its own. A
// question about holes in a part of the space takes whole subtrees where it can, so it costs O(log
// n). A change sums up the nodes from where it was up to the root, and turns those that lean.
#include "engine/space/ranges.h"

#include "base/mem.h"

#include <string.h>

struct ranges_node {
	struct range range;
	uint32_t left, right; // 0: none. Of a spare node, `left` is the next spare
	int height;
	uint64_t low, high;  // of the subtree
	uint64_t bytes;      // in its ranges
	uint64_t holes;      // between them
	uint64_t largest;    // of the holes
	uint64_t largest_at; // where it begins
};

void ranges_fini(struct ranges *ranges)
{
	mem_free(ranges->nodes);
	*ranges = (struct ranges){ 0 };
}

// Nodes know each other by number, so a copy of the array is a copy of the tree.
void ranges_copy(struct ranges *ranges, const struct ranges *from)
{
	ASSERT(ranges->used == 0);
	ranges_fini(ranges);
	if (from->used == 0)
		return;
	ranges->nodes = mem_grow(NULL, &ranges->capacity, from->count, sizeof *ranges->nodes);
	memcpy(ranges->nodes, from->nodes, from->count * sizeof *ranges->nodes);
	ranges->count = from->count;
	ranges->root = from->root;
	ranges->spare = from->spare;
	ranges->used = from->used;
}

// The first range that ends after the address, or the last that does not. One way down: where the
// node's range ends after the address, it may be the first such one, but one to the left may be
// too; else it may be the last that does not, and one to the right may be too.
static struct range *nearest(const struct ranges *ranges, uint64_t address, bool after)
{
	struct range *best = NULL;
	uint32_t at = ranges->root;

	while (at) {
		struct ranges_node *node = &ranges->nodes[at];
		bool ends_after = node->range.end > address;

		if (ends_after == after)
			best = &node->range;
		at = ends_after ? node->left : node->right;
	}
	return best;
}

struct range *ranges_from(const struct ranges *ranges, uint64_t address)
{
	return nearest(ranges, address, true);
}

struct range *ranges_find(const struct ranges *ranges, uint64_t address)
{
	struct range *range = ranges_from(ranges, address);

	return range && range->start <= address ? range : NULL;
}

struct range *ranges_before(const struct ranges *ranges, uint64_t address)
{
	return nearest(ranges, address, false);
}

// The first of equal holes stays the largest: the lowest address is told.
static void add_hole(struct ranges_node *node, uint64_t from, uint64_t to)
{
	if (to <= from)
		return;
	node->holes++;
	if (to - from > node->largest) {
		node->largest = to - from;
		node->largest_at = from;
	}
}

static void add_below(struct ranges_node *node, const struct ranges_node *below)
{
	node->bytes += below->bytes;
	node->holes += below->holes;
	if (below->largest > node->largest) {
		node->largest = below->largest;
		node->largest_at = below->largest_at;
	}
}

// Sum up a node whose children are summed up.
static void sum_up(const struct ranges *ranges, uint32_t at)
{
	struct ranges_node *node = &ranges->nodes[at];
	const struct ranges_node *left = &ranges->nodes[node->left];
	const struct ranges_node *right = &ranges->nodes[node->right];

	node->height = 1 + (left->height > right->height ? left->height : right->height);
	node->low = node->range.start;
	node->high = node->range.end;
	node->bytes = node->range.end - node->range.start;
	node->holes = node->largest = node->largest_at = 0;
	if (node->left) {
		add_below(node, left);
		add_hole(node, left->high, node->range.start);
		node->low = left->low;
	}
	if (node->right) {
		add_hole(node, node->range.end, right->low);
		add_below(node, right);
		node->high = right->high;
	}
}

// The left child comes up and the node becomes its right child; what was between them changes
// sides. The lower one of the two is summed up first, for the upper one has it in its sum.
static uint32_t turn_right(const struct ranges *ranges, uint32_t at)
{
	uint32_t up = ranges->nodes[at].left;

	ASSERT(ranges->nodes[at].left);
	ranges->nodes[at].left = ranges->nodes[up].right;
	ranges->nodes[up].right = at;
	sum_up(ranges, at);
	sum_up(ranges, up);
	return up;
}

static uint32_t turn_left(const struct ranges *ranges, uint32_t at)
{
	uint32_t up = ranges->nodes[at].right;

	ASSERT(ranges->nodes[at].right);
	ranges->nodes[at].right = ranges->nodes[up].left;
	ranges->nodes[up].left = at;
	sum_up(ranges, at);
	sum_up(ranges, up);
	return up;
}

// How much higher the left side of a node is.
static int leaning(const struct ranges *ranges, uint32_t at)
{
	const struct ranges_node *node = &ranges->nodes[at];

	return ranges->nodes[node->left].height - ranges->nodes[node->right].height;
}

// Balance a node whose sides differ by at most two, and sum it up. Returns who stands there now.
static uint32_t settle(const struct ranges *ranges, uint32_t at)
{
	struct ranges_node *node = &ranges->nodes[at];

	if (leaning(ranges, at) > 1) {
		if (leaning(ranges, node->left) < 0)
			node->left = turn_left(ranges, node->left);
		return turn_right(ranges, at);
	}
	if (leaning(ranges, at) < -1) {
		if (leaning(ranges, node->right) > 0)
			node->right = turn_right(ranges, node->right);
		return turn_left(ranges, at);
	}
	sum_up(ranges, at);
	return at;
}

// Node 0 is none, so a place of 0 can say that there is no child.
static uint32_t new_node(struct ranges *ranges, const struct range *range)
{
	uint32_t at = ranges->spare;

	if (at) {
		ranges->spare = ranges->nodes[at].left;
	} else {
		size_t need = ranges->count ? ranges->count + 1 : 2;

		ASSERT(need < UINT32_MAX);
		MEM_ROOM(ranges->nodes, ranges->capacity, need);
		if (ranges->count == 0)
			ranges->nodes[0] = (struct ranges_node){ 0 };
		at = (uint32_t)need - 1;
		ranges->count = need;
	}
	ranges->nodes[at] = (struct ranges_node){ .range = *range };
	sum_up(ranges, at);
	return at;
}

// The tree is balanced, so that this is never deeper than 1.45 log2 of its size.
static uint32_t insert_below(const struct ranges *ranges, uint32_t at, uint32_t added)
{
	struct ranges_node *node = &ranges->nodes[at];

	if (!at)
		return added;
	if (ranges->nodes[added].range.start < node->range.start)
		node->left = insert_below(ranges, node->left, added);
	else
		node->right = insert_below(ranges, node->right, added);
	return settle(ranges, at);
}

void ranges_insert(struct ranges *ranges, const struct range *range)
{
	uint32_t added = new_node(ranges, range);

	ASSERT(range->start < range->end);
	ranges->root = insert_below(ranges, ranges->root, added);
	ranges->used++;
}

// Take the lowest node out of a subtree. Returns what is left of it.
static uint32_t take_lowest(const struct ranges *ranges, uint32_t at, uint32_t *lowest)
{
	struct ranges_node *node = &ranges->nodes[at];

	if (!node->left) {
		*lowest = at;
		return node->right;
	}
	node->left = take_lowest(ranges, node->left, lowest);
	return settle(ranges, at);
}

// A node with two children gives its place to the lowest node on its right, which takes over both
// sides.
static uint32_t remove_below(const struct ranges *ranges, uint32_t at, uint64_t start,
			     uint32_t *removed)
{
	struct ranges_node *node = &ranges->nodes[at];
	uint32_t lowest;

	ASSERT(at);
	if (start < node->range.start) {
		node->left = remove_below(ranges, node->left, start, removed);
	} else if (start > node->range.start) {
		node->right = remove_below(ranges, node->right, start, removed);
	} else {
		*removed = at;
		if (!node->left)
			return node->right;
		if (!node->right)
			return node->left;
		node->right = take_lowest(ranges, node->right, &lowest);
		ranges->nodes[lowest].left = node->left;
		ranges->nodes[lowest].right = node->right;
		at = lowest;
	}
	return settle(ranges, at);
}

void ranges_remove(struct ranges *ranges, uint64_t start)
{
	uint32_t removed = 0;

	ranges->root = remove_below(ranges, ranges->root, start, &removed);
	ranges->nodes[removed].left = ranges->spare;
	ranges->spare = removed;
	ranges->used--;
}

// The upper part's offset moves on: of a file mapped at 0x1000 with offset 0, cut at 0x3000, it has
// offset 0x2000.
void ranges_cut(struct ranges *ranges, uint64_t at)
{
	const struct range *found = ranges_find(ranges, at);
	struct range low, high;

	if (!found || found->start == at)
		return;
	low = high = *found;
	low.end = high.start = at;
	high.offset += at - low.start;
	ranges_remove(ranges, low.start);
	ranges_insert(ranges, &low);
	ranges_insert(ranges, &high);
}

// Whether two ranges that touch are pieces of one mapping with nothing between them that differs,
// so that joining them undoes a cut. Of a file the second must go on in it where the first ends.
static bool alike(const struct range *low, const struct range *high)
{
	return low->end == high->start && low->number == high->number &&
	       low->commit == high->commit && low->protection == high->protection &&
	       low->file == high->file && low->flags == high->flags && low->stack == high->stack &&
	       low->thread == high->thread && low->owner == high->owner &&
	       low->inherited == high->inherited && low->baseline == high->baseline &&
	       low->time_ns == high->time_ns &&
	       (!low->file || low->offset + (low->end - low->start) == high->offset);
}

// Two ranges that touch and are alike in everything become one: what mprotect had cut is whole
// again.
bool ranges_join(struct ranges *ranges, uint64_t at)
{
	const struct range *high = ranges_find(ranges, at);
	const struct range *low = ranges_before(ranges, at);
	struct range whole;
	uint64_t second;

	if (!high || !low || high->start != at || !alike(low, high))
		return false;
	whole = *low;
	whole.end = high->end;
	second = high->start;
	ranges_remove(ranges, whole.start);
	ranges_remove(ranges, second);
	ranges_insert(ranges, &whole);
	return true;
}

// What was passed so far on the way up through a part of the address space.
struct passage {
	uint64_t low, high;
	uint64_t at; // free from here to the next range
	uint64_t mapped;
	struct ranges_holes holes;
};

static void pass_hole(struct passage *passage, uint64_t from, uint64_t to)
{
	if (to <= from)
		return;
	passage->holes.count++;
	if (to - from > passage->holes.largest) {
		passage->holes.largest = to - from;
		passage->holes.largest_at = from;
	}
}

static void pass_range(struct passage *passage, const struct range *range)
{
	uint64_t from = range->start > passage->low ? range->start : passage->low;
	uint64_t to = range->end < passage->high ? range->end : passage->high;

	if (from >= to)
		return;
	pass_hole(passage, passage->at, from);
	passage->mapped += to - from;
	passage->at = to;
}

// Of a subtree that is inside of the part as a whole: its sums, and the hole before it.
static void pass_whole(struct passage *passage, const struct ranges_node *node)
{
	pass_hole(passage, passage->at, node->low);
	passage->holes.count += node->holes;
	if (node->largest > passage->holes.largest) {
		passage->holes.largest = node->largest;
		passage->holes.largest_at = node->largest_at;
	}
	passage->mapped += node->bytes;
	passage->at = node->high;
}

// From the left to the right, so that `at` only rises. Only subtrees that an edge of the part goes
// through are gone into.
static void pass_below(const struct ranges *ranges, uint32_t at, struct passage *passage)
{
	const struct ranges_node *node = &ranges->nodes[at];

	if (!at || node->high <= passage->low || node->low >= passage->high)
		return;
	if (node->low >= passage->low && node->high <= passage->high) {
		pass_whole(passage, node);
		return;
	}
	pass_below(ranges, node->left, passage);
	pass_range(passage, &node->range);
	pass_below(ranges, node->right, passage);
}

// A hole that reaches over an edge of the part counts as far as it is inside.
struct ranges_holes ranges_holes(const struct ranges *ranges, uint64_t low, uint64_t high)
{
	struct passage passage = { .low = low, .high = high, .at = low };

	if (low >= high)
		return passage.holes;
	if (ranges->root)
		pass_below(ranges, ranges->root, &passage);
	pass_hole(&passage, passage.at, high);
	passage.holes.bytes = high - low - passage.mapped;
	return passage.holes;
}

uint64_t ranges_bytes(const struct ranges *ranges)
{
	return ranges && ranges->root ? ranges->nodes[ranges->root].bytes : 0;
}
