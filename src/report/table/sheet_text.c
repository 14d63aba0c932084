// The rows of a sheet on a terminal. For example, with columns of 12, 11 and 10 and a gap of 3, in
// front of stacks that are indented by 36:
//
//            grown       live    blocks
//        +62.7 KiB   71.3 KiB     1,825   leak  leak.c:10  #1
//                                         main  app.c:80
//
// Figures are at the right end of that indent, whatever is left of it.
#include "report/table/sheet.h"

#include "base/mem.h"

#include <stdlib.h>

// One line of titles, as wide as the figures; without the blanks after the last.
static void write_titles(struct sheet *sheet, size_t line, const char *who)
{
	struct str *text = &sheet->text;
	size_t length;

	str_clear(text);
	str_format(text, "%*s", (int)sheet->margin, "");
	for (size_t i = 0; i < sheet->count; i++) {
		const struct sheet_look *look = &sheet->columns[i].look;
		const char *title = look->titles[line] ? look->titles[line] : "";

		if (look->width < 0)
			str_format(text, "  %-*s", -look->width - 2, title);
		else
			str_format(text, "%*s", look->width, title);
	}
	str_format(text, "%*s%s", (int)sheet->gap, "", who ? who : "");
	for (length = text->length; length > 0 && str_get(text)[length - 1] == ' ';)
		length--;
	if (length > 0)
		paper_format(sheet->stacks->paper, PAPER_DIM, "%.*s\n", (int)length, str_get(text));
}

static void begin(struct sheet *sheet)
{
	unsigned used = sheet->gap;

	for (size_t i = 0; i < sheet->count; i++)
		used += (unsigned)abs(sheet->columns[i].look.width);
	ASSERT(used <= sheet->stacks->indent);
	sheet->margin = sheet->stacks->indent - used;
	write_titles(sheet, 0, sheet->who);
	write_titles(sheet, 1, NULL);
}

static void row(struct sheet *sheet, const void *of)
{
	struct paper *paper = sheet->stacks->paper;

	if (sheet->above)
		sheet->above(sheet, of);
	paper_field(paper, PAPER_PLAIN, "", sheet->margin, true);
	for (size_t i = 0; i < sheet->count; i++) {
		const struct sheet_column *column = &sheet->columns[i];
		struct sheet_cell cell = sheet_get(sheet, of, column);

		str_clear(&sheet->text);
		if (column->kind < SHEET_BYTES)
			sheet_add_plain(column, &cell, &sheet->text);
		else if (cell.unknown && column->absent)
			str_add(&sheet->text, column->absent);
		else
			sheet_add_figure(column, &cell, "−", &sheet->text);
		if (column->look.width < 0)
			sink_text(paper->sink, "  ");
		paper_field(paper, column->look.style, str_get(&sheet->text),
			    (unsigned)(column->look.width < 0 ? -column->look.width - 2
							      : column->look.width),
			    column->look.width > 0);
	}
	paper_field(paper, PAPER_PLAIN, "", sheet->gap, true);
	if (!sheet->instead) {
		stack_text_write(sheet->stacks, sheet->site.process, sheet->site.stack);
		return;
	}
	paper_foreign(paper, sheet->instead_style, sheet->instead,
		      paper->width - sheet->stacks->indent);
	sink_text(paper->sink, "\n");
}

static const struct sheet_form in_text = {
	.name = "text", .looks = true, .begin = begin, .row = row
};

struct sheet sheet_in_text(struct stack_text *stacks, unsigned gap)
{
	ASSERT(stacks->paper);
	return (struct sheet){
		.form = &in_text, .sink = stacks->paper->sink, .stacks = stacks, .gap = gap
	};
}
