// Walking through a tree of which no more is there than what is still to come.
//
// A *step* is a place of some stacks at one node. The steps of all nodes that are still to be
// visited stand in one list, and these nodes' *runs* of them in another, the next node last in
// both. A visit takes the last run away and puts in its place the runs of the children that are
// shown; so a stack is never in the lists twice, however deep the tree.
//
// For example stacks main < f < g and main < f < h. The list of steps begins with both stacks at
// main, in one run. The visit of main takes the run away and finds both at f: one child, one run of
// two steps. The visit of f finds one at g and one at h: two children, two runs. So there are never
// more than two steps, and a run for each node still to come.
#include "report/table/tree.h"

#include "base/mem.h"
#include "report/ask/cxxname.h"

#include <string.h>

enum direction { STAYS, INWARDS, OUTWARDS };

struct run {
	uint32_t begin, count; // of steps
	uint32_t depth;
};

// A child that may be shown.
struct choice {
	uint32_t begin, count; // of fresh steps
	uint32_t function;
	uint64_t weights[4]; // in the order of `columns`
};

struct steps {
	struct tree_step *list;
	size_t count, capacity;
};

struct walk {
	struct tree *tree;
	enum direction direction;
	enum tree_side side;
	enum table_column columns[4];
	uint64_t whole, whole_size; // weights: in the column that is sorted by; Size
	struct steps steps;         // to come
	struct run *runs;
	size_t runs_count, runs_capacity;
	struct steps fresh; // of the children of one node
	struct choice *choices;
	size_t choices_count, choices_capacity;
};

static void add_step(struct steps *steps, struct tree_step step)
{
	ASSERT(steps->count < UINT32_MAX);
	*MEM_ADD(steps->list, steps->count, steps->capacity) = step;
}

static struct trie_place place_of(const struct tree_step *step)
{
	return (struct trie_place){ .stack = step->stack, .line = step->line };
}

// ---- where stacks begin ----

// On the way through the trie, outermost first.
struct scan {
	struct tree *tree;
	struct steps *steps;
	uint32_t broken; // the stack at which the functions end in which threads begin; 0: not yet
	uint32_t broken_line;
	uint32_t *on_path; // by function: how often
	size_t on_path_count, on_path_capacity;
};

// By the whole name, or by the name without return type and parameters.
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

// Valid until the next call.
static uint32_t *on_path(struct scan *scan, uint32_t function)
{
	size_t count = scan->on_path_count;

	// Counts of functions that were not met yet are 0.
	if (function >= count) {
		scan->on_path_count = function + (size_t)1;
		MEM_ROOM(scan->on_path, scan->on_path_capacity, scan->on_path_count);
		memset(scan->on_path + count, 0,
		       (scan->on_path_count - count) * sizeof *scan->on_path);
	}
	return &scan->on_path[function];
}

// One line of a stack, behind the functions in which threads begin. False: what is further in is
// not looked at.
static bool take_line(struct scan *scan, struct tree_step step, bool ends)
{
	const struct trie *trie = &scan->tree->trie;

	ASSERT(scan->tree->kind != TREE_BUTTERFLY || scan->tree->function);
	switch (scan->tree->kind) {
	case TREE_CALLERS:
		add_step(scan->steps, step);
		return false;
	case TREE_FLAT:
		step.again = step.alone ? 0 : (*on_path(scan, step.function))++ > 0;
		add_step(scan->steps, step);
		return true;
	case TREE_BUTTERFLY:
		if (!is_called(functions_symbol(trie->functions, step.function),
			       scan->tree->function))
			return true;
		step.origin = (uint32_t)scan->steps->count;
		add_step(scan->steps, step);
		return step.alone;
	default:
		if (ends)
			add_step(scan->steps, step);
		return true;
	}
}

// The lines of a frame from the outermost on. Frames in which threads begin are passed over at the
// outer end alone: a start_thread further in is a function like others. False: what is below the
// stack is not looked at.
static bool enter(struct scan *scan, uint32_t stack)
{
	const struct trie *trie = &scan->tree->trie;
	uint32_t end_line = trie_end_line(trie, stack);
	size_t count;

	ASSERT(stack != 0);
	trie_lines(trie, stack, &count);
	for (size_t line = count; line-- > 0;) {
		struct trie_place place = { stack, (uint32_t)line };
		struct tree_step step = { .stack = stack,
					  .origin = stack,
					  .line = line & ~(3u << 30),
					  .function = trie_function(trie, place) };
		bool ends = trie->nodes[stack].ends && line == end_line;

		if (!trie_is_passed(trie, place))
			return true;
		if (!scan->broken && functions_begins(trie->functions, step.function)) {
			// Nothing is left of these but their end.
			step.alone = 1;
			if (ends)
				take_line(scan, step, true);
			continue;
		}
		if (!scan->broken) {
			scan->broken = stack;
			scan->broken_line = (uint32_t)line;
		}
		if (!take_line(scan, step, ends))
			return false;
	}
	return true;
}

// Undoes what enter has counted for a flat list: the stack and all below it are done.
static void leave(struct scan *scan, uint32_t stack)
{
	const struct trie *trie = &scan->tree->trie;
	size_t count;

	ASSERT(stack != 0);
	if (!scan->broken)
		return;
	trie_lines(trie, stack, &count);
	if (scan->broken == stack)
		count = scan->broken_line + (size_t)1;
	for (size_t line = count; line-- > 0 && scan->tree->kind == TREE_FLAT;) {
		struct trie_place place = { stack, (uint32_t)line };

		if (!trie_is_passed(trie, place))
			break;
		--*on_path(scan, trie_function(trie, place));
	}
	if (scan->broken == stack)
		scan->broken = 0;
}

// The places from which the tree grows. Goes through the trie without recursion: to the first
// child, else to the next sibling of the nearest caller that has one. What was allocated without a
// stack is a place too, but not of a butterfly, which is about one function.
static void find_places(struct tree *tree, struct steps *steps)
{
	const struct trie *trie = &tree->trie;
	struct scan scan = { .tree = tree, .steps = steps };
	uint32_t stack = trie->nodes[0].child;

	if (window_present(&trie->without).count && tree->kind != TREE_BUTTERFLY)
		add_step(steps, (struct tree_step){ .function = FUNCTIONS_NONE });
	while (stack) {
		if (enter(&scan, stack) && trie->nodes[stack].child) {
			stack = trie->nodes[stack].child;
			continue;
		}
		leave(&scan, stack);
		while (stack && !trie->nodes[stack].sibling) {
			stack = trie_caller(trie, stack);
			if (stack)
				leave(&scan, stack);
		}
		stack = trie->nodes[stack].sibling;
	}
	mem_free(scan.on_path);
}

void tree_find_pivots(struct tree *tree)
{
	struct steps steps = { 0 };

	find_places(tree, &steps);
	tree->pivots = steps.list;
	tree->pivots_count = steps.count;
}

// ---- from a node to those below it ----

// A step's line has 30 bits: the mask says so to the compiler.
static void add_place(struct walk *walk, struct tree_step step, struct trie_place place)
{
	step.stack = place.stack;
	step.line = place.line & ~(3u << 30);
	step.function = trie_function(&walk->tree->trie, place);
	add_step(&walk->fresh, step);
}

// The next line of the frame, or the outermost line of each stack below it.
static void go_in(struct walk *walk, const struct tree_step *step)
{
	const struct trie *trie = &walk->tree->trie;
	struct trie_place place = place_of(step);

	if (place.line > 0) {
		place.line--;
		if (trie_is_passed(trie, place))
			add_place(walk, *step, place);
		return;
	}
	for (uint32_t child = trie->nodes[place.stack].child; child;
	     child = trie->nodes[child].sibling) {
		size_t count;

		trie_lines(trie, child, &count);
		add_place(walk, *step, (struct trie_place){ child, (uint32_t)count - 1 });
	}
}

// Ends where all that is further out is where the thread began.
static void go_out(struct walk *walk, const struct tree_step *step)
{
	struct trie_place place = place_of(step);

	if (trie_outwards(&walk->tree->trie, &place) && !trie_begins(&walk->tree->trie, place))
		add_place(walk, *step, place);
}

// `fresh` gets the steps of all children together; choose sorts them by function.
static void advance(struct walk *walk, const struct run *run)
{
	ASSERT(run->begin + run->count <= walk->steps.count);
	walk->fresh.count = 0;
	for (uint32_t i = 0; i < run->count; i++) {
		struct tree_step step = walk->steps.list[run->begin + i];

		if (step.stack == 0 || step.alone || walk->direction == STAYS)
			continue;
		if (walk->direction == INWARDS)
			go_in(walk, &step);
		else
			go_out(walk, &step);
	}
}

// ---- figures ----

// What the step's stacks have. Outwards it is what has ended where the walk began, or passes the
// butterfly's function there, since not all that passes a caller has come this way.
static struct window_row passing(const struct walk *walk, const struct tree_step *step)
{
	const struct trie *trie = &walk->tree->trie;
	static const struct window_row none;

	if (walk->tree->kind == TREE_LEAF)
		return trie_ending(trie, step->origin);
	if (walk->direction == OUTWARDS)
		step = &walk->tree->pivots[step->origin];
	// A function that is on the way already has it counted.
	if (step->again)
		return none;
	return step->alone ? trie_ending(trie, step->stack) : trie_passing(trie, place_of(step));
}

// What was allocated by the node itself. Inverted, that is the first level alone.
static struct window_row ending(const struct walk *walk, const struct tree_step *step,
				uint32_t depth)
{
	const struct trie *trie = &walk->tree->trie;
	static const struct window_row none;

	if (walk->direction == OUTWARDS)
		return walk->tree->kind == TREE_LEAF && depth == 1 ? trie_ending(trie, step->origin)
								   : none;
	if (step->stack == 0 || step->line == trie_end_line(trie, step->stack))
		return trie_ending(trie, step->stack);
	return none;
}

// NULL comes first.
static int compare_texts(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? 1 : -1;
	return strcmp(a, b);
}

// The first of these stands for a node, so that it does not depend on the order of stacks. One
// whose file is known goes before one of which it is not.
static int compare_calls(const struct symbol *a, const struct symbol *b)
{
	int order = compare_texts(a->function, b->function);

	if (order == 0 && !a->file != !b->file)
		return a->file ? -1 : 1;
	if (order == 0)
		order = compare_texts(a->file, b->file);
	if (order == 0)
		order = (a->line > b->line) - (a->line < b->line);
	if (order == 0)
		order = (a->offset > b->offset) - (a->offset < b->offset);
	return order == 0 ? (int)a->inlined - (int)b->inlined : order;
}

// Of several lines of one function the node is shown with the first, and `lines_differ` says that
// there are more.
static void add_call(struct tree_node *node, const struct symbol *symbol)
{
	if (node->symbol == symbol)
		return;
	if (!node->symbol) {
		node->symbol = symbol;
		return;
	}
	node->lines_differ |= symbol->line != node->symbol->line;
	if (compare_calls(symbol, node->symbol) < 0)
		node->symbol = symbol;
}

// All steps of one function under the same parent are one node: what passes through it and what
// ends in it are the sums of theirs.
static struct tree_node make_node(const struct walk *walk, const struct run *run)
{
	struct tree_node node = { .depth = run->depth, .side = (uint8_t)walk->side };

	ASSERT(run->begin + run->count <= walk->steps.count);
	for (uint32_t i = 0; i < run->count; i++) {
		const struct tree_step *step = &walk->steps.list[run->begin + i];
		struct window_row row = passing(walk, step);
		struct window_row self = ending(walk, step, run->depth);

		window_add_row(&node.row, &row);
		window_add_row(&node.self, &self);
		if (step->stack)
			add_call(&node, trie_symbol(&walk->tree->trie, place_of(step)));
	}
	return node;
}

// By this children are ordered and left out. What shrank by 10 MiB matters as much as what grew by
// it.
uint64_t tree_weight(const struct window_row *row, enum table_column column)
{
	int64_t impact;

	switch (column) {
	case TABLE_IMPACTING:
		impact = window_impact(row);
		return impact < 0 ? -(uint64_t)impact : (uint64_t)impact;
	case TABLE_SIZE:
		return window_present(row).bytes;
	case TABLE_COUNT:
		return window_present(row).count;
	case TABLE_ALLOCATED:
		return window_allocated(row).bytes;
	case TABLE_FREED:
		return window_freed(row).bytes;
	default:
		return 0;
	}
}

// ---- which children, in which order ----

static int compare_steps(const void *a, const void *b, void *)
{
	const struct tree_step *left = a, *right = b;

	return left->function < right->function ? -1 : left->function > right->function;
}

// By the column that is sorted by, then impact, size and count, then by name.
static int compare_choices(const void *a, const void *b, void *context)
{
	const struct walk *walk = context;
	const struct choice *left = a, *right = b;

	for (size_t i = 0; i < sizeof left->weights / sizeof *left->weights; i++)
		if (left->weights[i] != right->weights[i])
			return left->weights[i] > right->weights[i] ? -1 : 1;
	return functions_compare(walk->tree->trie.functions, left->function, right->function);
}

static void sort_choices(struct walk *walk)
{
	if (walk->choices_count > 1)
		mem_sort(walk->choices, walk->choices_count, sizeof *walk->choices, compare_choices,
			 walk);
}

static struct window_row sum_of(const struct walk *walk, const struct choice *choice)
{
	struct window_row sum = { 0 };

	ASSERT(choice->begin + choice->count <= walk->fresh.count);
	for (uint32_t i = 0; i < choice->count; i++) {
		struct window_row row = passing(walk, &walk->fresh.list[choice->begin + i]);

		window_add_row(&sum, &row);
	}
	return sum;
}

// The part of the whole that a child is, in the column that is sorted by; of Size where that is 0.
static double share(const struct walk *walk, const struct choice *choice)
{
	enum { SORTED, SIZE = 2 };
	uint64_t weight = choice->weights[SORTED];
	double of_whole = walk->whole ? (double)weight / (double)walk->whole : 0;
	double of_size = 1;

	if (walk->columns[SORTED] != TABLE_IMPACTING && walk->whole != 0)
		return of_whole;
	if (walk->whole_size)
		of_size = (double)choice->weights[SIZE] / (double)walk->whole_size;
	return of_whole > of_size ? of_whole : of_size;
}

static void add_choice(struct walk *walk, struct choice choice, const struct window_row *row)
{
	enum { SPARE = 64 }; // that are not shown, before these are let go
	uint64_t rows_max = walk->tree->options.rows_max;

	for (size_t i = 0; i < sizeof choice.weights / sizeof *choice.weights; i++)
		choice.weights[i] = tree_weight(row, walk->columns[i]);
	*MEM_ADD(walk->choices, walk->choices_count, walk->choices_capacity) = choice;
	if (rows_max == 0 || walk->choices_count / 2 < rows_max + SPARE)
		return;
	// With 100 rows wanted, of 10,000 functions 328 at most are kept and sorted at a time, in
	// place of all.
	sort_choices(walk);
	walk->choices_count = rows_max;
}

// Whether what is below the node stands in one run with it, however little it is.
static bool is_run(const struct walk *walk, const struct tree_node *node)
{
	uint32_t heads = walk->side == TREE_WHOLE ? 0 : 1;

	return walk->tree->runs && node->depth > heads && tree_runs_on(node);
}

// Choose of the fresh steps what is shown below the node; *rest is of the others.
// Sorted by function the fresh steps of one child are side by side. `rest` begins as the sum of all
// and loses what is shown; without a limit all is shown, and it stays what it is: it is not looked
// at then.
static void choose(struct walk *walk, struct tree_node *node, struct window_row *rest)
{
	const struct tree_step *fresh = walk->fresh.list;
	uint64_t rows_max = walk->tree->options.rows_max;
	uint64_t bytes_min = walk->tree->options.bytes_min;
	size_t end;

	*rest = (struct window_row){ 0 };
	walk->choices_count = 0;
	if (walk->fresh.count > 1)
		mem_sort(walk->fresh.list, walk->fresh.count, sizeof *fresh, compare_steps, NULL);
	for (size_t begin = 0; begin < walk->fresh.count; begin = end) {
		struct choice choice = { .begin = (uint32_t)begin,
					 .function = fresh[begin].function };
		struct window_row row;

		for (end = begin; end < walk->fresh.count; end++)
			if (fresh[end].function != choice.function)
				break;
		choice.count = (uint32_t)(end - begin);
		row = sum_of(walk, &choice);
		window_add_row(rest, &row);
		node->children_count++;
		if (tree_weight(&row, TABLE_SIZE) >= bytes_min)
			add_choice(walk, choice, &row);
	}
	sort_choices(walk);
	if (rows_max && walk->choices_count > rows_max)
		walk->choices_count = rows_max;
	// From the end of the list only: a small one that comes before a larger one stays.
	while (rows_max && walk->choices_count > 0 && !is_run(walk, node) &&
	       share(walk, &walk->choices[walk->choices_count - 1]) < walk->tree->share_min)
		walk->choices_count--;
	node->shown_count = (uint32_t)walk->choices_count;
	for (size_t i = 0; i < walk->choices_count && (rows_max || bytes_min); i++) {
		struct window_row row = sum_of(walk, &walk->choices[i]);

		window_less_row(rest, &row);
	}
}

static void push_run(struct walk *walk, const struct tree_step *steps, uint32_t count,
		     uint32_t depth)
{
	ASSERT(steps || count == 0);
	*MEM_ADD(walk->runs, walk->runs_count, walk->runs_capacity) = (struct run){
		.begin = (uint32_t)walk->steps.count, .count = count, .depth = depth
	};
	for (uint32_t i = 0; i < count; i++)
		add_step(&walk->steps, steps[i]);
}

// What was chosen comes next, the first of it first.
static void push_choices(struct walk *walk, uint32_t depth)
{
	ASSERT(depth > 0);
	for (size_t i = walk->choices_count; i-- > 0;)
		push_run(walk, walk->fresh.list + walk->choices[i].begin, walk->choices[i].count,
			 depth);
}

static void visit_runs(struct walk *walk, tree_visit *visit, void *context)
{
	while (walk->runs_count > 0) {
		struct run run = walk->runs[--walk->runs_count];
		struct tree_node node = make_node(walk, &run);
		struct window_row rest;

		advance(walk, &run);
		// The run was the last one: its steps go, and make_node and advance have taken what
		// they need of them.
		walk->steps.count = run.begin;
		choose(walk, &node, &rest);
		visit(context, &node, &rest);
		push_choices(walk, run.depth + 1);
	}
}

// A flat list stays where its places are: no node has others below it.
static void visit_whole(struct walk *walk, tree_visit *visit, void *context)
{
	static const enum direction directions[] = {
		[TREE_CALLERS] = INWARDS, [TREE_LEAF] = OUTWARDS, [TREE_FLAT] = STAYS
	};
	struct tree_node node = { .row = walk->tree->table->rows[0].sums };
	struct window_row rest;

	ASSERT(walk->tree->table->rows);
	walk->direction = directions[walk->tree->kind];
	find_places(walk->tree, &walk->fresh);
	choose(walk, &node, &rest);
	visit(context, &node, &rest);
	push_choices(walk, 1);
	visit_runs(walk, visit, context);
}

// Twice from the same places: outwards to its callers, inwards to what it called.
static void visit_butterfly(struct walk *walk, tree_visit *visit, void *context)
{
	const struct tree *tree = walk->tree;
	struct tree_node node = { .row = tree->table->rows[0].sums,
				  .children_count = 2,
				  .shown_count = 2 };
	struct window_row rest = { 0 };

	ASSERT(tree->pivots || tree->pivots_count == 0);
	visit(context, &node, &rest);
	walk->direction = OUTWARDS;
	walk->side = TREE_SIDE_CALLERS;
	push_run(walk, tree->pivots, (uint32_t)tree->pivots_count, 1);
	visit_runs(walk, visit, context);
	walk->direction = INWARDS;
	walk->side = TREE_SIDE_CALLEES;
	push_run(walk, tree->pivots, (uint32_t)tree->pivots_count, 1);
	visit_runs(walk, visit, context);
}

static void visit_kept(const struct tree *tree, tree_visit *visit, void *context)
{
	static const struct window_row none;

	for (size_t i = 0; i < tree->kept_count; i++)
		visit(context, &tree->kept[i], &none);
}

// A tree that was limited is kept as a list (tree_limit), so there is nothing to walk through. What
// was left out is counted there as a whole, and no node has a rest.
void tree_walk(struct tree *tree, tree_visit *visit, void *context)
{
	const struct window_row *whole = &tree->table->rows[0].sums;
	struct walk walk = {
		.tree = tree,
		.columns = { tree->options.sort, TABLE_IMPACTING, TABLE_SIZE, TABLE_COUNT },
		.whole = tree_weight(whole, tree->options.sort),
		.whole_size = tree_weight(whole, TABLE_SIZE),
	};

	ASSERT(visit);
	if (tree->limited) {
		visit_kept(tree, visit, context);
		return;
	}
	if (tree->kind == TREE_BUTTERFLY)
		visit_butterfly(&walk, visit, context);
	else
		visit_whole(&walk, visit, context);
	MEM_FREE(walk.steps.list, walk.fresh.list, walk.runs, walk.choices);
}
