// A row is a line, its cells have tabs between, and a tab in a cell is written as \t. For example,
// with two columns, "main\t30\nf\\tg\t12\n" is "main", 30 and "f", a tab, "g", 12. Cells are ended
// in place: an answer of a million rows is one text and a list of places in it.
#include "sql/answer_rows.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A cell ends at a tab or a line end; what stands for these in it is put back in place. Where it
// ends.
static char *take_cell(char *at)
{
	static const char escapes[] = "tnrbf0", means[] = "\t\n\r\b\f";
	char *out = at;

	for (; *at && *at != '\t' && *at != '\n'; at++) {
		const char *escape;

		// A backslash at the end of the text stands for itself.
		if (*at != '\\' || !at[1]) {
			*out++ = *at;
			continue;
		}
		at++;
		escape = strchr(escapes, *at);
		*out++ = !escape ? *at : *escape == '0' ? ' ' : means[escape - escapes];
	}
	// A cell got shorter by what was put back: it ends where its last character is.
	if (out < at)
		*out = '\0';
	return at;
}

bool answer_rows_take(struct answer_rows *cells, struct str *text, size_t columns, struct err *err)
{
	size_t capacity = 0, count = 0, length = text->length;
	char *at;

	ASSERT(columns > 0);
	*cells = (struct answer_rows){ .text = str_take(text), .columns = columns };
	for (at = cells->text; at && *at;) {
		char *end, how;

		*MEM_ADD(cells->cells, count, capacity) = at;
		end = take_cell(at);
		how = *end;
		*end = '\0';
		// A line ends where the last column does, and nowhere else.
		// The third cell of two columns is the first of the next row: after it a tab has to
		// come.
		if (how != (count % columns ? '\t' : '\n'))
			break;
		at = end + 1;
	}
	cells->rows = count / columns;
	if (!cells->text || (at == cells->text + length && count % columns == 0))
		return true;
	answer_rows_fini(cells);
	return err_set(err, ERR_IO, "the database's answer makes no sense");
}

void answer_rows_fini(struct answer_rows *cells)
{
	MEM_FREE(cells->text, cells->cells);
	*cells = (struct answer_rows){ 0 };
}

const char *answer_rows_text(const struct answer_rows *cells, size_t row, size_t column)
{
	ASSERT(row < cells->rows);
	ASSERT(column < cells->columns);
	return cells->cells[row * cells->columns + column];
}

// ClickHouse writes nan and inf for means of nothing: they are 0 here.
double answer_rows_real(const struct answer_rows *cells, size_t row, size_t column)
{
	double value = strtod(answer_rows_text(cells, row, column), NULL);

	return isfinite(value) ? value : 0;
}

uint64_t answer_rows_u64(const struct answer_rows *cells, size_t row, size_t column)
{
	return strtoull(answer_rows_text(cells, row, column), NULL, 10);
}
