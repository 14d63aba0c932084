// A style begins and ends within one line, so that no pager carries it into the next. It is left
// out where there is no colour; the text is the same. For example paper_text(paper, PAPER_WARNING,
// "a\nb\n") on a terminal is ESC[33m a ESC[0m, a line's end, and the same for b.
#include "report/table/paper.h"

#include "base/mem.h"
#include "report/ask/cxxname.h"

#include <string.h>

static const char *const starts[] = {
	[PAPER_PLAIN] = "",
	[PAPER_BOLD] = "\033[1m",
	[PAPER_DIM] = "\033[2m",
	[PAPER_WARNING] = "\033[33m",
};
_Static_assert(sizeof starts / sizeof *starts == PAPER_WARNING + 1, "a start for each style");

void paper_text(struct paper *paper, enum paper_style style, const char *text)
{
	bool styled = paper->colour && style != PAPER_PLAIN;
	size_t length;

	ASSERT(style <= PAPER_WARNING);
	ASSERT(text);
	for (; *text; text += length) {
		length = strcspn(text, "\n");
		if (length > 0 && styled)
			sink_text(paper->sink, starts[style]);
		sink_write(paper->sink, text, length);
		if (length > 0 && styled)
			sink_text(paper->sink, "\033[0m");
		if (text[length] == '\n') {
			sink_text(paper->sink, "\n");
			length++;
		}
	}
}

void paper_format(struct paper *paper, enum paper_style style, const char *format, ...)
{
	struct str text = { 0 };
	va_list args;

	ASSERT(style <= PAPER_WARNING && format);
	va_start(args, format);
	str_vformat(&text, format, args);
	va_end(args);
	paper_text(paper, style, str_get(&text));
	str_fini(&text);
}

static void pad(struct paper *paper, size_t used, unsigned columns)
{
	for (; used < columns; used++)
		sink_text(paper->sink, " ");
}

// A field is measured in characters, not bytes: "…" is one column, and three bytes.
void paper_field(struct paper *paper, enum paper_style style, const char *text, unsigned columns,
		 bool right)
{
	ASSERT(text);
	if (right)
		pad(paper, cxxname_columns(text), columns);
	paper_text(paper, style, text);
	if (!right)
		pad(paper, cxxname_columns(text), columns);
}

// A word that is longer than a line is not broken. Bytes are counted, so that a line with much that
// is not ASCII is shorter than it could be.
void paper_paragraph(struct paper *paper, enum paper_style style, const char *label,
		     const char *text)
{
	size_t indent = cxxname_columns(label) + 2;
	size_t columns = indent;
	struct str line = { 0 };

	ASSERT(label && text);
	str_format(&line, "%s: ", label);
	while (*text) {
		size_t length = strcspn(text, " ");

		if (columns > indent && columns + 1 + length > paper->width) {
			str_add_char(&line, '\n');
			for (size_t i = 0; i < indent; i++)
				str_add_char(&line, ' ');
			columns = indent;
		} else if (columns > indent) {
			str_add_char(&line, ' ');
			columns++;
		}
		str_add_plain(&line, text, length);
		columns += length;
		text += length;
		text += strspn(text, " ");
	}
	paper_text(paper, style, str_get(&line));
	sink_text(paper->sink, "\n");
	str_fini(&line);
}

// A character is a byte that begins one, and those that continue it; the last column is the mark
// that something was cut.
void paper_foreign(struct paper *paper, enum paper_style style, const char *text, unsigned columns)
{
	struct str safe = { 0 };
	size_t used = 0;
	size_t at = 0;

	ASSERT(style <= PAPER_WARNING && text);
	while (text[at]) {
		size_t length = 1;

		while ((text[at + length] & 0xc0) == 0x80)
			length++;
		if (used + 1 == columns && text[at + length]) {
			str_add(&safe, "…");
			break;
		}
		str_add_plain(&safe, text + at, length);
		at += length;
		used++;
	}
	paper_text(paper, style, str_get(&safe));
	str_fini(&safe);
}

void paper_more(struct paper *paper, uint64_t count)
{
	if (count > 0)
		paper_format(paper, PAPER_DIM, "  … %s more (-n 0 shows all)\n", STR_COUNT(count));
}
