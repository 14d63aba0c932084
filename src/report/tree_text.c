// Trees of stacks for people: figures on the left, the tree on the right. A run of functions of
// which each is the only one below the other, and allocated nothing itself, is one branch: its
// first line has the figures, the others stand below it.
#include "report/tree.h"

#include "base/mem.h"
#include "report/lines.h"
#include "report/paper.h"

#include <string.h>

enum { NAME_COLUMNS_MIN = 48, WIDTH_MIN = 80, RUN_LINES_MAX = 12, DEPTH_SHOWN = 24 };

struct page {
	struct tree *tree;
	struct paper paper;
	struct lines lines;
	unsigned figures_columns;
	struct str branches; // the lines that lead to the present node
};

static void write_figures(struct page *page, const struct table_row *row)
{
	const struct table_options *options = page->tree->table->options;

	for (size_t i = 0; i < options->columns_count; i++)
		table_write_figure(&page->paper, row, options->columns[i], i == 0);
}

static void write_no_figures(struct page *page)
{
	for (unsigned i = 0; i < page->figures_columns; i++)
		sink_text(page->paper.sink, " ");
}

static void write_name(struct page *page, const struct tree_node *node, enum paper_style style,
		       unsigned indent)
{
	struct symbol symbol;

	if (!node->symbol) {
		paper_text(&page->paper, style,
			   node->parent == TABLE_NONE ? "total\n" : "(no stack)\n");
		return;
	}
	symbol = *node->symbol;
	page->lines.indent = indent;
	lines_write_function(&page->lines, &symbol, style, !node->lines_differ);
}

// The only child of a node that allocated nothing itself.
static const struct tree_node *only_child(const struct tree *tree, const struct tree_node *node)
{
	if (node->children_count != 1 || node->self.sums.type[WINDOW_AIFI].count ||
	    node->self.sums.type[WINDOW_AIFO].count || node->self.sums.type[WINDOW_AOFI].count ||
	    node->self.sums.type[WINDOW_AOFO].count)
		return NULL;
	return tree_child(tree, node, 0);
}

static unsigned branches_columns(const struct page *page)
{
	unsigned columns = 0;

	for (const char *at = str_get(&page->branches); *at; at++)
		columns += (*at & 0xc0) != 0x80;
	return columns;
}

// A node and the run below it, after `glyph`; gives the run's last node, whose children follow.
static const struct tree_node *write_run(struct page *page, const struct tree_node *node,
					 const char *glyph, const char *below)
{
	unsigned indent = page->figures_columns + branches_columns(page) + (*glyph ? 2 : 0);
	const struct tree_node *next;
	unsigned lines = 1, left_out = 0;

	write_figures(page, &node->row);
	sink_text(page->paper.sink, "   ");
	paper_text(&page->paper, PAPER_DIM, str_get(&page->branches));
	paper_text(&page->paper, PAPER_DIM, glyph);
	write_name(page, node, PAPER_BOLD, indent);
	for (; (next = only_child(page->tree, node)); node = next) {
		const struct tree_node *after = only_child(page->tree, next);

		// Of a long run the beginning and the end; one line alone is not left out.
		if (!page->tree->table->options->all_frames && ++lines > RUN_LINES_MAX && after &&
		    (left_out || only_child(page->tree, after))) {
			left_out++;
			continue;
		}
		if (left_out) {
			write_no_figures(page);
			paper_text(&page->paper, PAPER_DIM, str_get(&page->branches));
			paper_format(&page->paper, PAPER_DIM, "%s… %u more\n", below, left_out);
			left_out = 0;
		}
		write_no_figures(page);
		paper_text(&page->paper, PAPER_DIM, str_get(&page->branches));
		paper_text(&page->paper, PAPER_DIM, below);
		write_name(page, next, PAPER_PLAIN, indent);
	}
	return node;
}

static void write_rest(struct page *page, const struct tree_node *node)
{
	struct table_row rest = { 0 };
	uint32_t left_out = node->children_count - node->shown_count;
	char count[28];

	if (left_out == 0)
		return;
	for (uint32_t i = node->shown_count; i < node->children_count; i++) {
		const struct window_row *sums = &tree_child(page->tree, node, i)->row.sums;

		for (int t = 0; t < WINDOW_TYPES; t++) {
			rest.sums.type[t].count += sums->type[t].count;
			rest.sums.type[t].bytes += sums->type[t].bytes;
		}
	}
	write_figures(page, &rest);
	sink_text(page->paper.sink, "   ");
	paper_text(&page->paper, PAPER_DIM, str_get(&page->branches));
	paper_format(&page->paper, PAPER_DIM, "└ %s more (-n 0 shows all)\n",
		     str_count(left_out, count));
}

// One step of the way through the tree.
struct way {
	const struct tree_node *node; // the last of its run
	uint32_t next;                // child to come
	size_t branches;              // length of page->branches below it
};

static void cut(struct str *text, size_t length)
{
	if (text->text)
		text->text[length] = '\0';
	text->length = length;
}

// `node` stands written already; all that is below it.
static void write_below(struct page *page, const struct tree_node *node)
{
	struct way *ways = NULL;
	size_t count = 1, capacity = 0;

	ways = mem_grow(ways, &capacity, 64, sizeof *ways);
	ways[0] = (struct way){ .node = node, .branches = page->branches.length };
	while (count > 0) {
		struct way *way = &ways[count - 1];
		bool last, deep;

		cut(&page->branches, way->branches);
		if (way->next == way->node->shown_count) {
			write_rest(page, way->node);
			count--;
			continue;
		}
		node = tree_child(page->tree, way->node, way->next++);
		last = way->next == way->node->shown_count &&
		       way->node->shown_count == way->node->children_count;
		deep = count >= DEPTH_SHOWN;
		node = write_run(page, node, last ? "└ " : "├ ", last ? "  " : "│ ");
		ways = mem_grow(ways, &capacity, count + 1, sizeof *ways);
		ways[count++] = (struct way){ .node = node };
		// What is very deep is not moved further to the right.
		if (!deep)
			str_add(&page->branches, last ? "  " : "│ ");
		ways[count - 1].branches = page->branches.length;
	}
	mem_free(ways);
}

static void write_heads(struct page *page)
{
	const struct table_options *options = page->tree->table->options;

	for (size_t i = 0; i < options->columns_count; i++)
		table_write_head(&page->paper, options->columns[i]);
}

static void write_butterfly(struct page *page)
{
	const struct tree *tree = page->tree;
	const struct tree_node *callers = &tree->nodes[tree->callers];
	const struct tree_node *callees = &tree->nodes[tree->callees];

	write_heads(page);
	paper_text(&page->paper, PAPER_DIM, "   CALLERS\n");
	write_figures(page, &callers->row);
	sink_text(page->paper.sink, "   ");
	write_name(page, callers, PAPER_BOLD, page->figures_columns);
	write_below(page, callers);
	sink_text(page->paper.sink, "\n");
	write_heads(page);
	paper_text(&page->paper, PAPER_DIM, "   CALLEES\n");
	write_figures(page, &callees->row);
	sink_text(page->paper.sink, "   ");
	write_name(page, callees, PAPER_BOLD, page->figures_columns);
	write_below(page, callees);
}

static void write_flat(struct page *page)
{
	const struct tree *tree = page->tree;
	const struct tree_node *all = &tree->nodes[0];
	unsigned half = page->figures_columns - 3;
	char count[28];

	paper_field(&page->paper, PAPER_DIM, "SELF", half, true);
	paper_field(&page->paper, PAPER_DIM, "WITH ALL IT CALLED", half, true);
	sink_text(page->paper.sink, "\n");
	write_heads(page);
	write_heads(page);
	sink_text(page->paper.sink, "\n");
	page->figures_columns += half;
	for (uint32_t i = 0; i < all->shown_count; i++) {
		const struct tree_node *node = tree_child(tree, all, i);

		write_figures(page, &node->self);
		write_figures(page, &node->row);
		sink_text(page->paper.sink, "   ");
		write_name(page, node, PAPER_BOLD, page->figures_columns);
	}
	if (all->shown_count < all->children_count) {
		for (unsigned i = 0; i < page->figures_columns; i++)
			sink_text(page->paper.sink, " ");
		paper_format(&page->paper, PAPER_DIM, "%s more (-n 0 shows all)\n",
			     str_count(all->children_count - all->shown_count, count));
	}
}

static void write(struct tree *tree, struct sink *sink)
{
	const struct table_options *options = tree->table->options;
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
	switch (tree->kind) {
	case TREE_FLAT:
		page.paper.width += page.figures_columns - 3;
		write_flat(&page);
		break;
	case TREE_BUTTERFLY:
		write_butterfly(&page);
		break;
	default:
		write_heads(&page);
		sink_text(sink, "\n");
		write_figures(&page, &tree->nodes[0].row);
		sink_text(sink, "   ");
		write_name(&page, &tree->nodes[0], PAPER_BOLD, page.figures_columns);
		write_below(&page, &tree->nodes[0]);
		break;
	}
	sink_text(sink, "\n");
	notes_count = symbols_notes(tree->table->question->symbols, &notes);
	lines_write_notes(&page.lines, notes, notes_count);
	str_fini(&page.branches);
}

const struct tree_format tree_text = {
	.name = "text",
	.write = write,
};
