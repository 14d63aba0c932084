// answer_rows: an answer of ClickHouse in the format TabSeparated, decoded.
//
// For example "main\t3\nf\t4\n" with two columns is two rows; a tab in a text comes
// as a backslash and a t, and is a tab again. Numbers stay texts until they are asked for.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

// Rows of so many columns each. Owns its texts.
struct answer_rows {
	char *text;
	char **cells; // row after row
	size_t rows, columns;
};

// Takes the text, which is empty afterwards. False: it has other columns than that.
bool answer_rows_take(struct answer_rows *cells, struct str *text, size_t columns, struct err *err);
void answer_rows_fini(struct answer_rows *cells); // accepts { 0 }

// Borrowed; a row or a column that there is not is a mistake of the caller.
const char *answer_rows_text(const struct answer_rows *cells, size_t row, size_t column);
double answer_rows_real(const struct answer_rows *cells, size_t row,
			size_t column); // 0: it is none
uint64_t answer_rows_u64(const struct answer_rows *cells, size_t row, size_t column);
