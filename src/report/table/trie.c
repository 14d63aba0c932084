// Sums by place, of which what passes a place is a difference.
//
// Rows are put into the order in which one walks the trie, a caller before all those that it
// called. Their sums are added up from the first to the last, once. For example, stacks main (10
// bytes of its own), main < f (20), main < f < g (30) and main < h (40):
//
//     row          0      1      2      3
//     ends at      main   f      g      h
//     its bytes    10     20     30     40
//     sums         0      10     30     60     100
//
// The sums are of the rows before. f and all that it calls are rows 1 and 2: 60 - 10 = 50 bytes. So
// each node needs the first of its rows and how many there are with those below, whatever is asked
// of it.
//
// A stack ends at the innermost function that is the program's own (names_user); rows whose stacks
// then end at one place are one row (merge_rows).
#include "report/table/trie.h"

#include "base/mem.h"

#include <string.h>

// While the engine is asked, and until rows stand in their order.
struct making {
	struct trie *trie;
	struct query_context *asked;
	uint32_t *row_of; // by stack: number + 1
	uint32_t *stacks; // by row
	size_t rows, capacity;
};

// One group for each stack that is met.
static uint32_t group(void *context, const struct window_cell *cell)
{
	struct making *making = context;
	uint32_t stack = cell->stack < making->trie->count ? cell->stack : 0;

	if (cell->orphans || !query_context_selects(making->asked, cell))
		return WINDOW_SKIP;
	if (!making->row_of[stack]) {
		*MEM_ADD(making->stacks, making->rows, making->capacity) = stack;
		making->row_of[stack] = (uint32_t)making->rows;
	}
	return making->row_of[stack] - 1;
}

// A caller has a lower number; one that has not, in a damaged trace, is none.
uint32_t trie_caller(const struct trie *trie, uint32_t stack)
{
	const struct trace_stack *node = reader_stack(trie->reader, stack);

	return node && node->parent < stack ? node->parent : 0;
}

const uint32_t *trie_lines(const struct trie *trie, uint32_t stack, size_t *count)
{
	const struct trace_stack *node = reader_stack(trie->reader, stack);

	return functions_at(trie->functions, node ? node->frame : 0, count);
}

// The first line that is no wrapper. False: all are.
static bool find_end_line(const struct trie *trie, uint32_t stack, uint32_t *line)
{
	size_t count;
	const uint32_t *lines = trie_lines(trie, stack, &count);

	for (*line = 0; *line < count; ++*line)
		if (!functions_wraps(trie->functions, lines[*line]))
			return true;
	*line = 0;
	return false;
}

uint32_t trie_end_line(const struct trie *trie, uint32_t stack)
{
	uint32_t line;

	find_end_line(trie, stack, &line);
	return line;
}

// Where a stack ends: without the wrappers, unless there is nothing else.
static uint32_t end_of(const struct trie *trie, uint32_t stack)
{
	uint32_t line;

	for (uint32_t at = stack; at; at = trie_caller(trie, at))
		if (find_end_line(trie, at, &line))
			return trie->plain ? at : names_user(trie->names, at);
	return stack;
}

// One row for each place at which stacks end, in `stacks` that place's.
// `rows` and `stacks` are written over from the front: `count` is never past the row that is read.
static void merge_rows(struct making *making, struct window_row *rows)
{
	struct trie *trie = making->trie;
	unsigned types = making->asked->selection.query.types;
	size_t count = 0;

	memset(making->row_of, 0, (trie->count + (size_t)1) * sizeof *making->row_of);
	for (size_t i = 0; i < making->rows; i++) {
		uint32_t stack = making->stacks[i];

		window_keep_types(&rows[i], types);
		if (window_present(&rows[i]).count == 0)
			continue;
		if (stack == 0) {
			window_add_row(&trie->without, &rows[i]);
			continue;
		}
		stack = end_of(trie, stack);
		if (making->row_of[stack]) {
			window_add_row(&rows[making->row_of[stack] - 1], &rows[i]);
			continue;
		}
		ASSERT(count <= i);
		rows[count] = rows[i];
		making->stacks[count++] = stack;
		making->row_of[stack] = (uint32_t)count;
	}
	making->rows = count;
}

// Callers have lower numbers than those that they called.
// Three passes by number: rows to their stacks, then sums of rows from the innermost to the
// outermost, which the numbers allow without recursion, then each stack's first row, outermost
// first.
static void link_nodes(struct making *making)
{
	struct trie *trie = making->trie;
	struct trie_node *nodes = trie->nodes;

	for (size_t i = 0; i < making->rows; i++) {
		nodes[making->stacks[i]].ends = 1;
		nodes[making->stacks[i]].passing = 1;
	}
	for (uint32_t i = trie->count; i-- > 1;) {
		struct trie_node *caller = &nodes[trie_caller(trie, i)];

		if (nodes[i].passing == 0)
			continue;
		nodes[i].sibling = caller->child;
		caller->child = i;
		caller->passing += nodes[i].passing;
	}
	for (uint32_t i = 0; i < trie->count; i++) {
		uint32_t row = nodes[i].row + nodes[i].ends;

		for (uint32_t child = nodes[i].child; child; child = nodes[child].sibling) {
			nodes[child].row = row & INT32_MAX;
			row += nodes[child].passing;
		}
	}
}

// Put each row where its stack wants it, and make them sums of those before.
// Each row is swapped to its place until the one that is here belongs here: each swap puts one
// right, so it takes as many steps as there are rows. Then sum i is that of all rows before i.
static void order_rows(struct making *making, struct window_row *rows)
{
	struct trie *trie = making->trie;
	struct window_row sum = { 0 };

	for (size_t i = 0; i < making->rows; i++) {
		uint32_t to;

		while ((to = trie->nodes[making->stacks[i]].row) != i) {
			struct window_row row = rows[to];
			uint32_t stack = making->stacks[to];

			rows[to] = rows[i];
			making->stacks[to] = making->stacks[i];
			rows[i] = row;
			making->stacks[i] = stack;
		}
	}
	trie->sums = mem_resize(rows, making->rows + 1, sizeof *rows);
	for (size_t i = 0; i < making->rows; i++) {
		struct window_row row = trie->sums[i];

		trie->sums[i] = sum;
		window_add_row(&sum, &row);
	}
	trie->sums[making->rows] = sum;
}

// One question gives the sums of each stack; then stacks are put in the order of the tree, so that
// all below a node is one stretch of rows, and its sums are the difference of two.
bool trie_init(struct trie *trie, struct query_context *asked, bool plain, struct err *err)
{
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	struct making making = { .trie = trie, .asked = asked };
	struct window_result result;
	bool good;

	*trie = (struct trie){ .reader = asked->reader,
			       .names = asked->names,
			       .plain = plain,
			       .count = reader_stacks_count(asked->reader) };
	if (trie->count == 0)
		trie->count = 1; // stack 0, which stands for none
	ASSERT(trie->count <= INT32_MAX);
	making.row_of = mem_alloc(trie->count + (size_t)1, sizeof *making.row_of);
	query.group = group;
	query.context = &making;
	good = window_ask(asked->window, &query, &result, err);
	if (good) {
		// Groups without members need no row.
		if (making.rows > result.rows_count)
			making.rows = result.rows_count;
		trie->functions = functions_new(asked->reader, asked->names, plain);
		trie->nodes = mem_alloc(trie->count, sizeof *trie->nodes);
		merge_rows(&making, result.rows);
		link_nodes(&making);
		order_rows(&making, result.rows);
		result.rows = NULL;
		window_result_fini(&result);
	}
	MEM_FREE(making.row_of, making.stacks);
	return good;
}

void trie_fini(struct trie *trie)
{
	functions_free(trie->functions);
	MEM_FREE(trie->nodes, trie->sums);
	*trie = (struct trie){ 0 };
}

uint32_t trie_function(const struct trie *trie, struct trie_place place)
{
	size_t count;
	const uint32_t *lines;

	if (place.stack == 0)
		return FUNCTIONS_NONE;
	lines = trie_lines(trie, place.stack, &count);
	return lines[place.line];
}

const struct symbol *trie_symbol(const struct trie *trie, struct trie_place place)
{
	const struct trace_stack *node = reader_stack(trie->reader, place.stack);
	size_t count;

	if (place.stack == 0)
		return NULL;
	return &names_find(trie->names, node ? node->frame : 0, &count)[place.line];
}

// Whether the stacks that end here pass the line.
// At its end line or further out: wrappers further in are not passed.
static bool ends_behind(const struct trie *trie, struct trie_place place)
{
	return trie->nodes[place.stack].ends && place.line >= trie_end_line(trie, place.stack);
}

// Any stack below it passes all lines; those that end here only some.
bool trie_is_passed(const struct trie *trie, struct trie_place place)
{
	const struct trie_node *node = &trie->nodes[place.stack];

	return node->passing > node->ends || ends_behind(trie, place);
}

// Of rows [from, to).
static struct window_row rows_between(const struct trie *trie, uint32_t from, uint32_t to)
{
	struct window_row sum = trie->sums[to];

	ASSERT(from <= to);
	window_less_row(&sum, &trie->sums[from]);
	return sum;
}

// What passes through a line of a node: all below it, and what ends in the node itself, if that is
// at the line or further out.
struct window_row trie_passing(const struct trie *trie, struct trie_place place)
{
	const struct trie_node *node = &trie->nodes[place.stack];
	uint32_t from = node->row;

	ASSERT(place.stack < trie->count);
	if (place.stack == 0)
		return trie->without;
	if (node->ends && !ends_behind(trie, place))
		from++;
	return rows_between(trie, from, node->row + node->passing);
}

struct window_row trie_ending(const struct trie *trie, uint32_t stack)
{
	const struct trie_node *node = &trie->nodes[stack];

	ASSERT(stack < trie->count);
	if (stack == 0)
		return trie->without;
	return rows_between(trie, node->row, node->row + node->ends);
}

// One line further out: the next function that is inlined here, or the caller's innermost one.
bool trie_outwards(const struct trie *trie, struct trie_place *place)
{
	size_t count;

	trie_lines(trie, place->stack, &count);
	if (place->line + 1 < count) {
		place->line++;
		return true;
	}
	*place = (struct trie_place){ .stack = trie_caller(trie, place->stack) };
	return place->stack != 0;
}

bool trie_begins(const struct trie *trie, struct trie_place place)
{
	do {
		if (!functions_begins(trie->functions, trie_function(trie, place)))
			return false;
	} while (trie_outwards(trie, &place));
	return true;
}
