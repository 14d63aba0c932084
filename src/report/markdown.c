#include "report/markdown.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_SHOWN = 5 };

enum kind { TEXT, STACK, BYTES, RATE, COUNT, TIME, HIDDEN };

struct column {
	const char *name;
	enum kind kind;
	bool signed_change;
};

struct grid {
	char *text;   // of all cells, a NUL behind each; owned
	char **cells; // row by row, the heading first; owned
	size_t cells_count, cells_capacity;
	size_t width; // cells of a row
	struct column *columns;
	size_t section; // column; SIZE_MAX: there is none
};

// ---- reading the values ----

static void add_cell(struct grid *grid, char *cell)
{
	grid->cells = mem_grow(grid->cells, &grid->cells_capacity, grid->cells_count + 1,
			       sizeof *grid->cells);
	grid->cells[grid->cells_count++] = cell;
}

// Take one cell from `at`, and write it to `*out`, without quotes. Returns what is behind it.
static const char *take_cell(const char *at, char **out)
{
	bool quoted = *at == '"';

	for (at += quoted; *at; at++) {
		if (quoted && *at == '"') {
			quoted = at[1] == '"';
			at++;
			if (!quoted)
				break;
		} else if (!quoted && (*at == ',' || *at == '\r' || *at == '\n')) {
			break;
		}
		*(*out)++ = *at;
	}
	*(*out)++ = '\0';
	return at;
}

static void read_cells(struct grid *grid, const char *csv)
{
	char *out = grid->text = mem_alloc(strlen(csv) + 2, 1);

	while (*csv) {
		add_cell(grid, out);
		csv = take_cell(csv, &out);
		if (*csv == ',') {
			csv++;
			continue;
		}
		if (grid->width == 0)
			grid->width = grid->cells_count;
		csv += strspn(csv, "\r\n");
	}
}

// ---- columns ----

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

static enum kind kind_of(const char *name)
{
	static const char *const bytes[] = { "size",   "impacting_size", "allocated", "freed",
					     "height", "peak_size",      "committed", NULL };
	static const char *const counts[] = { "orphan_frees", "standard_error", NULL };
	size_t length = strlen(name);

	if (strcmp(name, "stack") == 0)
		return STACK;
	if (strstr(name, "_per_s"))
		return RATE;
	if (length > 3 && strcmp(name + length - 3, "_ns") == 0)
		return TIME;
	if (strstr(name, "bytes") || is_one_of(name, bytes))
		return BYTES;
	return strstr(name, "count") || is_one_of(name, counts) ? COUNT : TEXT;
}

static size_t find_column(const struct grid *grid, const char *name)
{
	for (size_t i = 0; i < grid->width; i++)
		if (strcmp(grid->cells[i], name) == 0)
			return i;
	return SIZE_MAX;
}

static bool has_figures(const struct grid *grid, size_t column)
{
	for (size_t i = grid->width + column; i < grid->cells_count; i += grid->width)
		if (*grid->cells[i] && strcmp(grid->cells[i], "0") != 0)
			return true;
	return false;
}

static bool is_for_programs(const struct grid *grid, const char *name)
{
	static const char *const always[] = { "section",  "rank",    "process_id",
					      "first_ns", "last_ns", "lifetime_p99_ns",
					      NULL };
	static const char *const of_stacks[] = { "exe",    "function", "file", "line",
						 "module", "offset",   NULL };

	return is_one_of(name, always) ||
	       (find_column(grid, "stack") != SIZE_MAX && is_one_of(name, of_stacks));
}

// What has another column "NAME_before" is a change.
static bool is_change(const struct grid *grid, const char *name)
{
	struct str before = { 0 };
	bool found;

	str_format(&before, "%s_before", name);
	found = strcmp(name, "impacting_size") == 0 ||
		find_column(grid, str_get(&before)) != SIZE_MAX;
	str_fini(&before);
	return found;
}

static void choose_columns(struct grid *grid)
{
	grid->columns = mem_alloc(grid->width + 1, sizeof *grid->columns);
	grid->section = find_column(grid, "section");
	for (size_t i = 0; i < grid->width; i++) {
		struct column *column = &grid->columns[i];

		column->name = grid->cells[i];
		column->kind = kind_of(column->name);
		column->signed_change = is_change(grid, column->name);
		if (is_for_programs(grid, column->name) || !has_figures(grid, i))
			column->kind = HIDDEN;
	}
}

// ---- writing ----

// Text in which nothing is Markdown's or HTML's.
static void write_text(struct sink *sink, const char *text, size_t length)
{
	for (size_t i = 0; i < length && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '<')
			sink_text(sink, "&lt;");
		else if (c == '>')
			sink_text(sink, "&gt;");
		else if (c == '&')
			sink_text(sink, "&amp;");
		else if (c < ' ' || c == 0x7f)
			sink_text(sink, "?");
		else if (strchr("\\`*_[]|~#@", c))
			sink_format(sink, "\\%c", c);
		else
			sink_write(sink, &c, 1);
	}
}

// The innermost functions, a line each.
static void write_stack(struct sink *sink, const char *stack)
{
	size_t more = 0;

	for (size_t i = 0; *stack; i++) {
		const char *end = strstr(stack, " < ");
		size_t length = end ? (size_t)(end - stack) : strlen(stack);

		if (i < FRAMES_SHOWN) {
			sink_text(sink, i ? "<br>" : "");
			write_text(sink, stack, length);
		} else {
			more++;
		}
		stack += length + (end ? strlen(" < ") : 0);
	}
	if (more)
		sink_format(sink, "<br>… %zu more", more);
}

static void write_figure(struct sink *sink, const struct column *column, const char *cell)
{
	bool negative = *cell == '-';
	uint64_t value = strtoull(cell + negative, NULL, 10);
	char text[28];

	if (negative)
		sink_text(sink, "−");
	else if (column->signed_change && value)
		sink_text(sink, "+");
	if (column->kind == COUNT)
		sink_text(sink, str_count(value, text));
	else if (column->kind == TIME)
		sink_text(sink, str_duration(value, text));
	else
		sink_text(sink, str_bytes(value, text));
	if (column->kind == RATE)
		sink_text(sink, "/s");
}

static void write_cell(struct sink *sink, const struct column *column, const char *cell)
{
	if (column->kind == STACK)
		write_stack(sink, cell);
	else if (column->kind == TEXT)
		write_text(sink, cell, SIZE_MAX);
	else if (*cell)
		write_figure(sink, column, cell);
}

// "lifetime_median_ns" is "lifetime median": its cells have their unit.
static void write_name(struct sink *sink, const struct column *column)
{
	size_t length = strlen(column->name);

	if (column->kind == TIME)
		length -= strlen("_ns");
	if (column->kind == RATE)
		length = (size_t)(strstr(column->name, "_bytes_per_s") - column->name);
	for (size_t i = 0; i < length; i++)
		sink_write(sink, column->name[i] == '_' ? " " : &column->name[i], 1);
}

static void write_heading(const struct grid *grid, struct sink *sink)
{
	sink_text(sink, "|");
	for (size_t i = 0; i < grid->width; i++) {
		if (grid->columns[i].kind == HIDDEN)
			continue;
		sink_text(sink, " ");
		write_name(sink, &grid->columns[i]);
		sink_text(sink, " |");
	}
	sink_text(sink, "\n|");
	for (size_t i = 0; i < grid->width; i++)
		if (grid->columns[i].kind != HIDDEN)
			sink_text(sink, grid->columns[i].kind > STACK ? " ---: |" : " :--- |");
	sink_text(sink, "\n");
}

static void write_rows(const struct grid *grid, struct sink *sink)
{
	const char *section = NULL;

	for (size_t row = grid->width; row + grid->width <= grid->cells_count; row += grid->width) {
		char **cells = &grid->cells[row];
		const char *here = grid->section == SIZE_MAX ? "" : cells[grid->section];

		if (!section || strcmp(section, here) != 0) {
			if (*here)
				sink_text(sink, section ? "\n#### " : "#### ");
			for (const char *at = here; *at; at++)
				sink_write(sink, *at == '_' ? " " : at, 1);
			sink_text(sink, *here ? "\n\n" : "");
			write_heading(grid, sink);
			section = here;
		}
		sink_text(sink, "|");
		for (size_t i = 0; i < grid->width; i++) {
			if (grid->columns[i].kind == HIDDEN)
				continue;
			sink_text(sink, " ");
			write_cell(sink, &grid->columns[i], cells[i]);
			sink_text(sink, " |");
		}
		sink_text(sink, "\n");
	}
	if (!section)
		sink_text(sink, "No rows.\n");
}

// ---- the whole ----

static void write_side(const struct markdown_page *page, int side, struct sink *sink)
{
	const struct query_context *asked = page->sides[side];
	const char *command = reader_info(asked->reader)->command;

	sink_text(sink, page->sides[1] ? side ? "**B** " : "**A** " : "");
	write_text(sink, names_file(page->names[side]), SIZE_MAX);
	sink_text(sink, *command ? ": " : "");
	write_text(sink, command, SIZE_MAX);
	if (asked->from_given || asked->to_given) {
		char *window = query_context_describe(asked);

		sink_text(sink, "; ");
		write_text(sink, window, SIZE_MAX);
		mem_free(window);
	}
	if (query_narrows(&asked->selection.query))
		sink_text(sink, "; only the selected allocations (filters)");
	sink_text(sink, "\n\n");
	for (size_t i = 0; i < asked->warnings_count; i++) {
		sink_text(sink, "> **Warning:** ");
		write_text(sink, asked->warnings[i], SIZE_MAX);
		sink_text(sink, "\n\n");
	}
}

static void write_left_out(const struct markdown_page *page, struct sink *sink)
{
	uint64_t rows = 0;
	char count[28];

	for (int side = 0; side < 2 && page->sides[side]; side++)
		rows += page->sides[side]->rows_left_out;
	if (rows)
		sink_format(sink, "\n*%s more row%s left out (`-n 0` shows all).*\n",
			    str_count(rows, count), rows == 1 ? " is" : "s are");
}

void markdown_write(const struct markdown_page *page, const char *csv, struct sink *sink)
{
	struct grid grid = { 0 };

	sink_format(sink, "### tidemark %s\n\n", page->command);
	for (int side = 0; side < 2 && page->sides[side]; side++)
		write_side(page, side, sink);
	read_cells(&grid, csv);
	choose_columns(&grid);
	write_rows(&grid, sink);
	write_left_out(page, sink);
	mem_free(grid.columns);
	mem_free(grid.cells);
	mem_free(grid.text);
}
