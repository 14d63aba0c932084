// A window's table for people: figures on the left, what they are about on the right, nested.
//
// For example, of test/golden/window.family.txt:
//
//        IMPACTING       SIZE      COUNT
//                0    1.4 MiB         13   total
//                0    1.1 MiB          2   cc1 102 (image 2)
//                0    1.1 MiB          2     transient
//
// A row's name is moved two columns to the right for each level that it is below the first one.
// Columns are as wide as their heading and their widest figure.
#include "report/table/table.h"

#include "base/mem.h"
#include "report/ask/cxxname.h"
#include "report/table/lines.h"
#include "report/table/paper.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	NEST_COLUMNS = 2,
	NAME_COLUMNS_MIN = 43,
	ENDING_COLUMNS_MAX = 200,
	WIDTH_MIN = 80,
	ERROR_WIDTH = 8, // " ±12.3%"
	COLUMN_WIDTH_MIN = 11
};

// A page in the making.
struct page {
	struct table *table;
	struct paper paper;
	struct lines lines;
	unsigned figures_columns; // in front of a name
	bool estimated;           // figures of bytes have errors
};

// ---- above the table ----

// What lived at the window's beginning: it ended in it, or after it.
static uint64_t live_before(const struct window_row *row, uint64_t *count)
{
	*count = row->type[WINDOW_AOFI].count + row->type[WINDOW_AOFO].count;
	return row->type[WINDOW_AOFI].bytes + row->type[WINDOW_AOFO].bytes;
}

static uint64_t live_after(const struct window_row *row, uint64_t *count)
{
	*count = row->type[WINDOW_AIFO].count + row->type[WINDOW_AOFO].count;
	return row->type[WINDOW_AIFO].bytes + row->type[WINDOW_AOFO].bytes;
}

static void write_label(struct paper *paper, const char *label)
{
	paper_format(paper, PAPER_PLAIN, "%-9s", label);
}

// "heap     10.0 MiB in 2 blocks before, 20.0 MiB in 3 blocks after"
static void write_levels(const struct table *table, struct paper *paper)
{
	const struct query_context *asked = table->asked;
	const struct window_row *total = &table->rows[0].sums;
	const char *things = asked->layers == WINDOW_VM ? "piece" : "block";
	char before[16], after[16];
	uint64_t first, last;

	if (asked->layers == (WINDOW_HEAP | WINDOW_VM))
		return;
	str_bytes(live_before(total, &first), before);
	str_bytes(live_after(total, &last), after);
	write_label(paper, asked->layers == WINDOW_VM ? "vm" : "heap");
	paper_format(paper, PAPER_PLAIN, "%s in %s %s%s before, %s in %s %s%s after", before,
		     STR_COUNT(first), things, paper_plural(first), after, STR_COUNT(last), things,
		     paper_plural(last));
	sink_text(paper->sink, "\n");
}

// The same above a table and above a tree.
void table_write_top(const struct table *table, struct paper *paper)
{
	struct query_context *asked = table->asked;
	const struct trace_info *info = reader_info(asked->reader);
	const struct query *query = &asked->selection.query;
	char *window = query_context_describe(asked);

	paper_foreign(paper, PAPER_BOLD, *info->command ? info->command : "(no command)",
		      paper->width);
	sink_text(paper->sink, "\n");
	write_label(paper, "window");
	paper_foreign(paper, PAPER_PLAIN, window, ENDING_COLUMNS_MAX);
	sink_text(paper->sink, "\n");
	write_levels(table, paper);
	mem_free(window);
	for (size_t i = 0; i < asked->warnings_count; i++)
		paper_paragraph(paper, PAPER_WARNING, "warning", asked->warnings[i]);
	if (query_narrows(query))
		paper_paragraph(paper, PAPER_PLAIN, "filtered",
				"the figures are those of the selected allocations only");
	sink_text(paper->sink, "\n");
}

// ---- rows ----

// As wide as its heading and two blanks, at least eleven columns. One whose figures have a sign is
// one wider.
unsigned table_column_width(enum table_column column)
{
	size_t least =
		COLUMN_WIDTH_MIN + (table_column_sheet(column)->flags & SHEET_SIGNED ? 1 : 0);
	size_t title = strlen(table_column_word(column)) + 2;

	return (unsigned)(title > least ? title : least);
}

// "peak-count" is PEAK COUNT.
void table_write_head(struct paper *paper, enum table_column column)
{
	struct str title = { 0 };

	for (const char *at = table_column_word(column); *at; at++)
		str_add_char(&title, *at == '-' ? ' ' : (char)toupper((unsigned char)*at));
	paper_field(paper, PAPER_DIM, str_get(&title), table_column_width(column), true);
	str_fini(&title);
}

// Only sums of bytes are estimated; a peak is of the samples themselves.
static bool has_error(const struct page *page, enum table_column column)
{
	return page->estimated && (column == TABLE_IMPACTING || column == TABLE_SIZE ||
				   column == TABLE_ALLOCATED || column == TABLE_FREED);
}

static bool write_figure_head(struct page *page, enum table_column column)
{
	table_write_head(&page->paper, column);
	return has_error(page, column);
}

static void write_heads(struct page *page)
{
	const struct table_options *options = page->table->options;

	for (size_t i = 0; i < options->columns_count; i++)
		if (write_figure_head(page, options->columns[i]))
			paper_field(&page->paper, PAPER_DIM, "±", ERROR_WIDTH, true);
	sink_text(page->paper.sink, "\n");
}

// A row of frees of nothing known has a count and no bytes: it is left blank there, not 0. A change
// of nothing is "0", without a sign and a unit.
static void format_figure(const struct table_row *row, enum table_column column, struct str *text)
{
	const struct sheet_column *sheet = table_column_sheet(column);
	struct sheet_cell cell = table_cell(row, column);

	if (cell.unknown || (row->orphans && sheet->kind == SHEET_BYTES))
		return;
	if (sheet->flags & SHEET_SIGNED && cell.i64 == 0)
		str_add(text, "0");
	else
		sheet_add_figure(sheet, &cell, "-", text);
}

void table_write_figure(struct paper *paper, const struct table_row *row, enum table_column column,
			bool first)
{
	struct str text = { 0 };

	format_figure(row, column, &text);
	paper_field(paper, first ? PAPER_BOLD : PAPER_PLAIN, str_get(&text),
		    table_column_width(column), true);
	str_fini(&text);
}

// "±1.2%" of the figure, or in bytes where that says nothing. Nothing behind an exact one.
static void write_error(struct page *page, const struct table_row *row, enum table_column column)
{
	double figure = fabs((double)table_figure(row, column));
	uint64_t error = table_error(row, column);
	char text[24] = "", bytes[16];

	if (error > 0 && (double)error < figure * 10)
		snprintf(text, sizeof text, "±%.1f%%", (double)error / figure * 100);
	else if (error > 0)
		snprintf(text, sizeof text, "±%s", str_bytes(error, bytes));
	paper_field(&page->paper, PAPER_DIM, text, ERROR_WIDTH, true);
}

static bool has_both_layers(const struct page *page)
{
	return page->table->asked->layers == (WINDOW_HEAP | WINDOW_VM);
}

// Layers never add up: a row above those of the layers has no figures of its own.
static bool adds_layers(const struct page *page, const struct table_row *row)
{
	const struct keys *keys = &page->table->options->keys;

	for (size_t i = 0; i < row->depth; i++)
		if (keys->list[i] == KEYS_LAYER)
			return false;
	return has_both_layers(page);
}

// The figures in front of a name.
static void write_figures(struct page *page, const struct table_row *row)
{
	const struct table_options *options = page->table->options;
	bool blank = adds_layers(page, row);

	for (size_t i = 0; i < options->columns_count; i++) {
		if (blank)
			paper_field(&page->paper, PAPER_PLAIN, "",
				    table_column_width(options->columns[i]), true);
		else
			table_write_figure(&page->paper, row, options->columns[i], i == 0);
		if (has_error(page, options->columns[i]))
			write_error(page, row, options->columns[i]);
	}
	sink_text(page->paper.sink, "   ");
}

// The total and the first level are at one column.
static unsigned indent_of(const struct page *page, unsigned depth)
{
	return page->figures_columns + (depth > 0 ? depth - 1 : 0) * NEST_COLUMNS;
}

static void write_nest(struct page *page, unsigned depth)
{
	for (unsigned i = page->figures_columns; i < indent_of(page, depth); i++)
		sink_text(page->paper.sink, " ");
}

static void write_stack(struct page *page, const struct table_row *row, stack_id id)
{
	struct names_stack stack = names_stack(page->table->asked->names, id);
	size_t first = page->table->options->all_frames ? 0 : stack.user;

	page->lines.indent = indent_of(page, row->depth);
	if (stack.count == 0) {
		paper_text(&page->paper, PAPER_DIM, "(no stack)\n");
		return;
	}
	lines_write(&page->lines, stack.lines[first].symbol, PAPER_BOLD, "");
	lines_write_callers(&page->lines, &stack, first);
}

// A free by a call, and a block that lives on, are in its name already ("for 1.2 s", "never
// freed").
static const char *ending_of(const struct window_allocation *allocation)
{
	switch (allocation->end_kind) {
	case WINDOW_END_REALLOC:
		return ", until a realloc";
	case WINDOW_END_LOST:
		return ", its free was not seen";
	case WINDOW_END_DESTROY:
		return ", until its heap was reset";
	case WINDOW_END_EXIT:
		return ", until its process exited";
	case WINDOW_END_EXEC:
		return ", until its process called exec";
	default:
		return "";
	}
}

// A function's name is shortened by its parts, a line's folders but the last are left out, and
// other texts are cut at the end.
static void write_name(struct page *page, const struct table_row *row)
{
	const struct table *table = page->table;
	unsigned room = page->paper.width > indent_of(page, row->depth) + 20
				? page->paper.width - indent_of(page, row->depth)
				: 20;
	struct str text = { 0 };
	struct str brief = { 0 };

	table_describe(table, row, &text);
	if (row->depth > 0 && table_key(table, row) == KEYS_FUNCTION) {
		cxxname_shorten(str_get(&text), room, &brief);
		paper_text(&page->paper, PAPER_BOLD, str_get(&brief));
	} else {
		bool line = row->depth > 0 && table_key(table, row) == KEYS_LINE;

		paper_foreign(&page->paper, PAPER_BOLD,
			      line ? lines_last_two(str_get(&text)) : str_get(&text), room);
	}
	STR_FINI(&text, &brief);
}

// A single allocation, with its stack below.
static void write_allocation(struct page *page, const struct table_row *row)
{
	const struct window_allocation *allocation = &page->table->allocations[row->value];

	write_name(page, row);
	paper_text(&page->paper, PAPER_PLAIN, ending_of(allocation));
	if (allocation->reallocated)
		paper_text(&page->paper, PAPER_PLAIN, ", by realloc");
	sink_text(page->paper.sink, "\n");
	page->lines.indent = indent_of(page, row->depth);
	lines_write_indent(&page->lines);
	write_stack(page, row, allocation->cell.stack);
}

static void write_row(struct page *page, const struct table_row *row)
{
	write_figures(page, row);
	write_nest(page, row->depth);
	if (row->orphans) {
		paper_text(&page->paper, PAPER_PLAIN,
			   "frees of addresses where nothing was known to live\n");
	} else if (row->depth > 0 && table_key(page->table, row) == KEYS_STACK) {
		write_stack(page, row, table_stack(page->table, row));
	} else if (row->depth > 0 && table_key(page->table, row) == KEYS_LIFETIME) {
		write_allocation(page, row);
	} else {
		write_name(page, row);
		sink_text(page->paper.sink, "\n");
	}
}

static void less_spread(struct window_spread *sum, const struct window_spread *spread)
{
	for (int type = 0; type < WINDOW_TYPES; type++)
		sum->type[type] = fmax(0, sum->type[type] - spread->type[type]);
}

// The sums of what was left out below a row: dropped, or not shown. Its spread is what is left of
// the row's when the shown children's are taken away: variances add up.
static void write_rest(struct page *page, const struct table_row *row)
{
	const struct table *table = page->table;
	uint64_t left_out = row->children_count - row->shown_count;
	struct table_row rest = { .depth = row->depth + 1 };

	ASSERT(row->shown_count <= row->children_count);
	left_out += table_dropped(table, row, &rest.sums);
	if (left_out == 0)
		return;
	for (uint32_t i = row->shown_count; i < row->children_count; i++)
		window_add_row(&rest.sums, &table_child(table, row, i)->sums);
	rest.spread = row->spread;
	for (uint32_t i = 0; i < row->shown_count; i++)
		less_spread(&rest.spread, &table_child(table, row, i)->spread);
	if (row->below) {
		struct window_spread shown = table_spill_spread(table);

		less_spread(&rest.spread, &shown);
	}
	write_figures(page, &rest);
	write_nest(page, rest.depth);
	paper_format(&page->paper, PAPER_DIM, "%s more%s\n", STR_COUNT(left_out),
		     table->options->bytes_min ? "" : " (-n 0 shows all)");
}

// A row and all below it, in order. The depth is that of the keys, so this ends.
static void write_tree(struct page *page, const struct table_row *row)
{
	uint32_t at[KEYS_COUNT + 1] = { 0 };
	const struct table_row *path[KEYS_COUNT + 1] = { row }, *leaf;
	size_t depth = 0;

	if (row->depth > 0 || !adds_layers(page, row))
		write_row(page, row);
	for (;;) {
		const struct table_row *parent = path[depth];

		while (parent->below && (leaf = table_spill_next(page->table, parent)))
			write_row(page, leaf);
		if (at[depth] < parent->shown_count) {
			ASSERT(depth < KEYS_COUNT);
			path[depth + 1] = table_child(page->table, parent, at[depth]++);
			write_row(page, path[++depth]);
			at[depth] = 0;
			continue;
		}
		write_rest(page, parent);
		if (depth-- == 0)
			return;
	}
}

// ---- below it ----

static void write_amount_note(struct page *page, struct heap_amount amount, const char *of,
			      const char *label, const char *meaning)
{
	struct str text = { 0 };

	if (amount.count == 0)
		return;
	str_format(&text, "%s in %s block%s%s %s", STR_BYTES(amount.bytes), STR_COUNT(amount.count),
		   paper_plural(amount.count), of, meaning);
	paper_paragraph(&page->paper, PAPER_DIM, label, str_get(&text));
	str_fini(&text);
}

// How much ended with its process or its heap. `of`: whose blocks these are.
static void write_ends(struct page *page, const struct window_rest *rest, const char *of)
{
	bool frees = page->table->asked->options.exit_frees;
	const char *outstanding = "lived when their process ended and count as outstanding still "
				  "(--exit-frees counts them as freed)";

	write_amount_note(page, rest->by_exit, of, "exit",
			  frees ? "were freed by the exit of their process" : outstanding);
	write_amount_note(page, rest->by_exec, of, "exec",
			  frees ? "were freed by their process calling exec" : outstanding);
	write_amount_note(page, rest->by_destroy, of, "heaps",
			  "were freed by the reset or end of their heap");
}

// What the figures above do not say: how much ended with its process, and what was left out.
static void write_bottom(struct page *page)
{
	const struct table *table = page->table;
	const char *const *notes;
	size_t notes_count = symbols_notes(table->asked->symbols, &notes);

	sink_text(page->paper.sink, "\n");
	if (has_both_layers(page)) {
		write_ends(page, &table->ends[0], " of the heap");
		write_ends(page, &table->ends[1], " of virtual memory");
	} else {
		write_ends(page, &table->rows[0].rest, "");
	}
	if (table->details_left_out)
		paper_paragraph(&page->paper, PAPER_DIM, "left out",
				"peaks and times of rows of one impact or type: the window's "
				"allocations do not fit in memory (raise --memory)");
	lines_write_notes(&page->lines, notes, notes_count);
}

// The width of the figures is known before the first line: that of the columns, of an error beside
// those that have one, and three blanks before the name.
void table_text(struct table *table, struct sink *sink)
{
	const struct table_options *options = table->options;
	struct page page = {
		.table = table,
		.paper = { .sink = sink,
			   .colour = options->colour,
			   .width = options->width < WIDTH_MIN ? WIDTH_MIN : options->width },
		.lines = { .all_frames = options->all_frames },
		.figures_columns = 3,
	};

	page.lines.paper = &page.paper;
	page.estimated = table_error(&table->rows[0], TABLE_SIZE) > 0;
	for (size_t i = 0; i < options->columns_count; i++)
		page.figures_columns += table_column_width(options->columns[i]) +
					(has_error(&page, options->columns[i]) ? ERROR_WIDTH : 0);
	// Who asks for many columns has room for them, or scrolls.
	if (page.paper.width < page.figures_columns + NAME_COLUMNS_MIN)
		page.paper.width = page.figures_columns + NAME_COLUMNS_MIN;
	table_write_top(table, &page.paper);
	write_heads(&page);
	write_tree(&page, &table->rows[0]);
	write_bottom(&page);
}
