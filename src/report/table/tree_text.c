// Trees of stacks for people: figures on the left, the tree on the right. A run of functions of
// which each is the only one below the other, and allocated nothing itself, is one branch: its
// first line has the figures, the others stand below it.
//
// For example
//
//     main
//     ├ parse
//     │ read_file          below parse alone: one run with it
//     │ ├ make_node
//     │ └ make_list
//     └ 2 more
//
// A run is written when its end is known, which is when the next node is not below its last one
// alone.
#include "report/table/tree.h"

#include "base/mem.h"
#include "report/table/lines.h"
#include "report/table/paper.h"

enum { NAME_COLUMNS_MIN = 43, WIDTH_MIN = 80, RUN_LINES_MAX = 12, DEPTH_SHOWN = 24 };

// A node that stands written, with children to come.
struct way {
	uint32_t depth, children_count, shown_count, written;
	struct window_row rest; // of the children that are not shown
	size_t branches;        // length of page->branches below it
};

// Functions that will stand in one branch, and how that hangs on the node above.
struct run {
	struct tree_node *nodes;
	size_t count, capacity;
	struct window_row rest; // of the last node
	bool head;              // of the whole tree, or of one of a butterfly
	bool last, deep;
};

struct page {
	struct tree *tree;
	struct paper paper;
	struct lines lines;
	unsigned figures_columns;
	struct str branches; // the lines that lead to the present node
	struct way *ways;    // to the present run
	size_t ways_count, ways_capacity;
	struct run run;
	uint32_t functions_left_out; // of a flat list
};

static void write_figures(struct page *page, const struct window_row *sums)
{
	const struct table_options *options = &page->tree->options;
	struct table_row row = { .sums = *sums };

	for (size_t i = 0; i < options->columns_count; i++)
		table_write_figure(&page->paper, &row, options->columns[i], i == 0);
}

static void write_no_figures(struct page *page)
{
	for (unsigned i = 0; i < page->figures_columns; i++)
		sink_text(page->paper.sink, " ");
}

// A copy of the symbol, as a node of several lines is shown without one.
static void write_name(struct page *page, const struct tree_node *node, enum paper_style style,
		       unsigned indent)
{
	struct symbol symbol;

	if (!node->symbol) {
		paper_text(&page->paper, style, node->depth == 0 ? "total\n" : "(no stack)\n");
		return;
	}
	symbol = *node->symbol;
	page->lines.indent = indent;
	lines_write_function(&page->lines, &symbol, style, !node->lines_differ);
}

// Bytes that begin a character: the lines of a tree take three bytes and one column each.
static unsigned branches_columns(const struct page *page)
{
	unsigned columns = 0;

	for (const char *at = str_get(&page->branches); *at; at++)
		columns += (*at & 0xc0) != 0x80;
	return columns;
}

static void write_branch(struct page *page, const char *below)
{
	write_no_figures(page);
	paper_text(&page->paper, PAPER_DIM, str_get(&page->branches));
	if (below)
		paper_text(&page->paper, PAPER_DIM, below);
}

// The run: its first line has the figures. Of a long one the beginning and the end are shown; one
// line alone is not left out.
static void write_run(struct page *page, const char *glyph, const char *below)
{
	unsigned indent = page->figures_columns + branches_columns(page) + (*glyph ? 2 : 0);
	const struct run *run = &page->run;
	bool all = page->tree->options.all_frames;
	size_t end = run->count - 1; // lines up to here may be left out

	ASSERT(run->count > 0);
	write_figures(page, &run->nodes[0].row);
	sink_text(page->paper.sink, "   ");
	paper_text(&page->paper, PAPER_DIM, str_get(&page->branches));
	paper_text(&page->paper, PAPER_DIM, glyph);
	write_name(page, &run->nodes[0], PAPER_BOLD, indent);
	for (size_t i = 1; i < run->count; i++) {
		if (!all && i == RUN_LINES_MAX && end > i + 1) {
			write_branch(page, NULL);
			paper_format(&page->paper, PAPER_DIM, "%s… %zu more\n", below, end - i);
			i = end;
		}
		write_branch(page, below);
		write_name(page, &run->nodes[i], PAPER_PLAIN, indent);
	}
}

// With --min-bytes it does not.
static const char *shows_all(const struct page *page)
{
	return page->tree->options.bytes_min ? "" : " (-n 0 shows all)";
}

static void write_rest(struct page *page, const struct way *way)
{
	ASSERT(way->shown_count <= way->children_count);
	if (way->children_count == way->shown_count)
		return;
	write_figures(page, &way->rest);
	sink_text(page->paper.sink, "   ");
	paper_text(&page->paper, PAPER_DIM, str_get(&page->branches));
	paper_format(&page->paper, PAPER_DIM, "└ %s more%s\n",
		     STR_COUNT(way->children_count - way->shown_count), shows_all(page));
}

static void cut(struct str *text, size_t length)
{
	if (text->text)
		text->text[length] = '\0';
	text->length = length;
}

// The run is whole: write it; its children are next.
static void end_run(struct page *page)
{
	struct run *run = &page->run;
	const struct tree_node *last;

	if (run->count == 0)
		return;
	last = &run->nodes[run->count - 1];
	if (run->head)
		write_run(page, "", "");
	else
		write_run(page, run->last ? "└ " : "├ ", run->last ? "  " : "│ ");
	// What is very deep is not moved further to the right.
	if (!run->head && !run->deep)
		str_add(&page->branches, run->last ? "  " : "│ ");
	*MEM_ADD(page->ways, page->ways_count, page->ways_capacity) =
		(struct way){ .depth = last->depth,
			      .children_count = last->children_count,
			      .shown_count = last->shown_count,
			      .rest = run->rest,
			      .branches = page->branches.length };
	run->count = 0;
}

// All below nodes of at least this depth is written.
static void end_ways(struct page *page, uint32_t depth)
{
	while (page->ways_count > 0 && page->ways[page->ways_count - 1].depth >= depth) {
		const struct way *way = &page->ways[--page->ways_count];

		cut(&page->branches, way->branches);
		write_rest(page, way);
	}
}

// The node above may have to be closed first: all ways of this depth and deeper are over. A run is
// the last below its node ("└") only if nothing was left out there: else "└ 2 more" is.
static void begin_run(struct page *page, const struct tree_node *node)
{
	struct run *run = &page->run;
	struct way *way;

	end_run(page);
	end_ways(page, node->depth);
	run->head = page->ways_count == 0;
	if (run->head)
		return;
	way = &page->ways[page->ways_count - 1];
	cut(&page->branches, way->branches);
	run->last = ++way->written == way->shown_count && way->shown_count == way->children_count;
	run->deep = page->ways_count >= DEPTH_SHOWN;
}

// A node of callers or leaf, or of a butterfly's sides.
static void take_node(struct page *page, const struct tree_node *node,
		      const struct window_row *rest)
{
	struct run *run = &page->run;

	// The head of a tree is in no run.
	if (run->count == 0 || run->head || !tree_runs_on(&run->nodes[run->count - 1]))
		begin_run(page, node);
	*MEM_ADD(run->nodes, run->count, run->capacity) = *node;
	run->rest = *rest;
}

static void end_tree(struct page *page)
{
	end_run(page);
	end_ways(page, 0);
}

static void write_heads(struct page *page)
{
	const struct table_options *options = &page->tree->options;

	for (size_t i = 0; i < options->columns_count; i++)
		table_write_head(&page->paper, options->columns[i]);
}

// The second side begins after an empty line and with headings of its own. Depth 1 is the function
// itself, in both.
static void take_side(struct page *page, const struct tree_node *node,
		      const struct window_row *rest)
{
	if (node->depth == 0)
		return;
	if (node->depth == 1) {
		bool callers = node->side == TREE_SIDE_CALLERS;

		end_tree(page);
		if (!callers)
			sink_text(page->paper.sink, "\n");
		write_heads(page);
		paper_text(&page->paper, PAPER_DIM, callers ? "   CALLERS\n" : "   CALLEES\n");
	}
	take_node(page, node, rest);
}

// Two groups of the same columns: what the function allocated itself, and with all that it called.
static void take_function(struct page *page, const struct tree_node *node)
{
	unsigned half = page->figures_columns - 3;

	ASSERT(page->figures_columns >= 3);
	if (node->depth > 0) {
		write_figures(page, &node->self);
		write_figures(page, &node->row);
		sink_text(page->paper.sink, "   ");
		write_name(page, node, PAPER_BOLD, page->figures_columns + half);
		return;
	}
	paper_field(&page->paper, PAPER_DIM, "SELF", half, true);
	paper_field(&page->paper, PAPER_DIM, "WITH ALL IT CALLED", half, true);
	sink_text(page->paper.sink, "\n");
	write_heads(page);
	write_heads(page);
	sink_text(page->paper.sink, "\n");
	page->functions_left_out = node->children_count - node->shown_count;
}

static void end_functions(struct page *page)
{
	unsigned columns = 2 * page->figures_columns - 3;

	if (page->functions_left_out == 0)
		return;
	for (unsigned i = 0; i < columns; i++)
		sink_text(page->paper.sink, " ");
	paper_format(&page->paper, PAPER_DIM, "%s more%s\n", STR_COUNT(page->functions_left_out),
		     shows_all(page));
}

static void take(void *context, const struct tree_node *node, const struct window_row *rest)
{
	struct page *page = context;

	switch (page->tree->kind) {
	case TREE_FLAT:
		take_function(page, node);
		break;
	case TREE_BUTTERFLY:
		take_side(page, node, rest);
		break;
	default:
		take_node(page, node, rest);
		break;
	}
}

// A page is as wide as the figures and 48 columns of names at least: who asks for many columns
// scrolls. A flat list has the figures twice, and headings of its own, as a butterfly has.
void tree_text(struct tree *tree, struct sink *sink)
{
	const struct table_options *options = &tree->options;
	struct page page = {
		.tree = tree,
		.paper = { .sink = sink,
			   .colour = options->colour,
			   .width = options->width < WIDTH_MIN ? WIDTH_MIN : options->width },
		.lines = { .all_frames = options->all_frames },
		.figures_columns = 3,
	};
	const char *const *notes;
	size_t notes_count;

	page.lines.paper = &page.paper;
	for (size_t i = 0; i < options->columns_count; i++)
		page.figures_columns += table_column_width(options->columns[i]);
	if (page.paper.width < page.figures_columns + NAME_COLUMNS_MIN)
		page.paper.width = page.figures_columns + NAME_COLUMNS_MIN;
	table_write_top(tree->table, &page.paper);
	if (tree->kind == TREE_FLAT) {
		page.paper.width += page.figures_columns - 3;
	} else if (tree->kind != TREE_BUTTERFLY) {
		write_heads(&page);
		sink_text(sink, "\n");
	}
	tree->runs = true;
	tree_walk(tree, take, &page);
	end_tree(&page);
	end_functions(&page);
	sink_text(sink, "\n");
	notes_count = symbols_notes(tree->table->asked->symbols, &notes);
	lines_write_notes(&page.lines, notes, notes_count);
	str_fini(&page.branches);
	MEM_FREE(page.ways, page.run.nodes);
}
