// A sheet as a table of Markdown, for pull requests and wikis: a heading, what was asked, the
// warnings, the rows, and how many there are that it does not have. Columns are left out that are
// for programs alone, and those without any figure, so the rows are kept until the last one is
// there: each of their cells as it will be written.
#include "report/table/sheet.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum { FRAMES_SHOWN = 5 };

struct sheet_grid {
	struct str text; // of all cells, a NUL after each
	bool *used;      // by column: it has a figure
};

// ---- writing ----

// '<', '>' and '&' become entities, a sign of Markdown has a backslash before it: '@' too, which
// would call a user where the text is pasted. A byte that is no UTF-8 is U+FFFD. A zero ends the
// text, whatever the length says.
void sheet_write_markdown(struct sink *sink, const char *text, size_t length)
{
	size_t left = strnlen(text, length), step;

	for (size_t i = 0; i < left; i += step) {
		unsigned char c = (unsigned char)text[i];
		size_t whole = str_utf8_length((const unsigned char *)text + i, left - i);

		step = whole > 0 ? whole : 1;
		if (c != '"' && sink_entity(sink, text[i]))
			continue;
		if (c < ' ' || c == 0x7f)
			sink_text(sink, "?");
		else if (strchr("\\`*_[]|~#@", c))
			sink_format(sink, "\\%c", c);
		else if (whole > 0)
			sink_write(sink, text + i, whole);
		else
			sink_text(sink, "\xef\xbf\xbd"); // U+FFFD
	}
}

// The innermost functions, a line each.
// Cuts the plain form at " < ".
static void write_stack(struct sink *sink, const char *stack)
{
	size_t more = 0;

	for (size_t i = 0; *stack; i++) {
		const char *end = strstr(stack, " < ");
		size_t length = end ? (size_t)(end - stack) : strlen(stack);

		if (i < FRAMES_SHOWN) {
			sink_text(sink, i ? "<br>" : "");
			sheet_write_markdown(sink, stack, length);
		} else {
			more++;
		}
		stack += length + (end ? strlen(" < ") : 0);
	}
	if (more)
		sink_format(sink, "<br>… %zu more", more);
}

// Kinds before SHEET_BYTES are texts and plain numbers, others have units. A section's name is
// written plain here, since it is compared before it is shown.
static void write_cell(struct sink *sink, const struct sheet_column *column,
		       const struct sheet_cell *cell, const char *plain)
{
	if (column->flags & SHEET_HEADS)
		sink_text(sink, plain);
	else if (column->kind == SHEET_STACK)
		write_stack(sink, plain);
	else if (column->kind < SHEET_BYTES)
		sheet_write_markdown(sink, plain, SIZE_MAX);
	else if (!cell->unknown)
		sheet_add_figure(column, cell, "−", sink->str);
	else if (column->absent)
		sink_text(sink, column->absent);
}

// A column is used if any row has something in it that is not 0.
static void row(struct sheet *sheet, const void *of)
{
	struct sheet_grid *grid = sheet->grid;
	struct sink sink = sink_to_str(&grid->text);

	for (size_t i = 0; i < sheet->count; i++) {
		const struct sheet_column *column = &sheet->columns[i];
		struct sheet_cell cell = sheet_get(sheet, of, column);
		const char *plain;

		str_clear(&sheet->text);
		sheet_add_plain(column, &cell, &sheet->text);
		plain = str_get(&sheet->text);
		grid->used[i] |= *plain && strcmp(plain, "0") != 0;
		write_cell(&sink, column, &cell, plain);
		sink_write(&sink, "", 1);
	}
}

// ---- the table ----

static void write_words(struct sink *sink, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		sink_write(sink, name[i] == '_' ? " " : &name[i], 1);
}

// "lifetime_median_ns" is "lifetime median": its cells have their unit.
static void write_name(struct sink *sink, const struct sheet_column *column)
{
	size_t length = strlen(column->name);

	if (column->kind == SHEET_TIME)
		length -= strlen("_ns");
	if (column->kind == SHEET_RATE)
		length -= strlen("_bytes_per_s");
	write_words(sink, column->name, length);
}

static bool is_shown(const struct sheet *sheet, size_t column)
{
	ASSERT(column < sheet->count);
	return sheet->grid->used[column] &&
	       !(sheet->columns[column].flags & (SHEET_PROGRAMS | SHEET_HEADS));
}

// What has no unit is at the left; quantities are at the right, so that their digits are below each
// other.
static void write_heading(const struct sheet *sheet)
{
	sink_text(sheet->sink, "|");
	for (size_t i = 0; i < sheet->count; i++) {
		if (!is_shown(sheet, i))
			continue;
		sink_text(sheet->sink, " ");
		write_name(sheet->sink, &sheet->columns[i]);
		sink_text(sheet->sink, " |");
	}
	sink_text(sheet->sink, "\n|");
	for (size_t i = 0; i < sheet->count; i++)
		if (is_shown(sheet, i))
			sink_text(sheet->sink,
				  sheet->columns[i].kind < SHEET_BYTES ? " :--- |" : " ---: |");
	sink_text(sheet->sink, "\n");
}

// A table of its own, where rows of another section begin.
// `before`: that of the row before; NULL: there is none. Returns the present one. A sheet without
// such a column is one section without a name.
static const char *write_section(const struct sheet *sheet, const char *before, const char *cells)
{
	const char *section = cells;
	size_t i = 0;

	for (; i < sheet->count && !(sheet->columns[i].flags & SHEET_HEADS); i++)
		section += strlen(section) + 1;
	if (i == sheet->count)
		section = "";
	if (before && strcmp(before, section) == 0)
		return before;
	if (*section) {
		sink_text(sheet->sink, before ? "\n#### " : "#### ");
		write_words(sheet->sink, section, strlen(section));
		sink_text(sheet->sink, "\n\n");
	}
	write_heading(sheet);
	return section;
}

// Cells are texts with a zero at the end of each, `count` of them a row.
static void write_rows(const struct sheet *sheet)
{
	const char *cell = str_get(&sheet->grid->text);
	const char *end = cell + sheet->grid->text.length;
	const char *section = NULL;

	while (cell < end) {
		section = write_section(sheet, section, cell);
		sink_text(sheet->sink, "|");
		for (size_t i = 0; i < sheet->count; i++) {
			if (is_shown(sheet, i))
				sink_format(sheet->sink, " %s |", cell);
			cell += strlen(cell) + 1;
		}
		sink_text(sheet->sink, "\n");
	}
	if (!section)
		sink_text(sheet->sink, "No rows.\n");
}

// ---- the whole ----

// Of a comparison A and B; else the one trace that was asked.
static void write_side(const struct sheet_page *page, int side, struct sink *sink)
{
	const struct query_context *asked = page->sides[side];
	const char *command = reader_info(asked->reader)->command;

	sink_text(sink, page->sides[1] ? side ? "**B** " : "**A** " : "");
	sheet_write_markdown(sink, str_last_part(page->names[side]), SIZE_MAX);
	sink_text(sink, *command ? ": " : "");
	sheet_write_markdown(sink, command, SIZE_MAX);
	if (asked->from_given || asked->to_given) {
		char *window = query_context_describe(asked);

		sink_text(sink, "; ");
		sheet_write_markdown(sink, window, SIZE_MAX);
		mem_free(window);
	}
	if (query_narrows(&asked->selection.query))
		sink_text(sink, "; only the selected allocations (filters)");
	sink_text(sink, "\n\n");
	for (size_t i = 0; i < asked->warnings_count; i++) {
		sink_text(sink, "> **Warning:** ");
		sheet_write_markdown(sink, asked->warnings[i], SIZE_MAX);
		sink_text(sink, "\n\n");
	}
}

// After the rows, whose names were looked for.
static void write_symbol_notes(const struct sheet_page *page, int side, struct sink *sink)
{
	const char *const *notes;
	size_t count = symbols_notes(page->sides[side]->symbols, &notes);

	for (size_t i = 0; i < count; i++) {
		sink_text(sink, "\n> **Symbols:** ");
		sink_text(sink, page->sides[1] ? side ? "**B** " : "**A** " : "");
		sheet_write_markdown(sink, notes[i], SIZE_MAX);
		sink_text(sink, "\n");
	}
}

static void begin(struct sheet *sheet)
{
	sheet->grid = mem_alloc(1, sizeof *sheet->grid);
	sheet->grid->used = mem_alloc(sheet->count, sizeof *sheet->grid->used);
}

// All is written here: which columns are used is known only now.
static void end(struct sheet *sheet)
{
	const struct sheet_page *page = &sheet->page;

	sink_format(sheet->sink, "### tidemark %s\n\n", page->command);
	for (int side = 0; side < 2 && page->sides[side]; side++)
		write_side(page, side, sheet->sink);
	write_rows(sheet);
	if (sheet->left_out)
		sink_format(sheet->sink, "\n*%s more row%s left out (`-n 0` shows all).*\n",
			    STR_COUNT(sheet->left_out), sheet->left_out == 1 ? " is" : "s are");
	for (int side = 0; side < 2 && page->sides[side]; side++)
		write_symbol_notes(page, side, sheet->sink);
	mem_free(sheet->grid->used);
	str_fini(&sheet->grid->text);
	mem_free(sheet->grid);
}

const struct sheet_form sheet_markdown = {
	.name = "markdown",
	.flat = true,
	.page = true,
	.begin = begin,
	.row = row,
	.end = end,
};
