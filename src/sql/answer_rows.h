// answer_rows: an answer of ClickHouse in the format TabSeparated, decoded.
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

const char *answer_rows_text(const struct answer_rows *cells, size_t row, size_t column);
double answer_rows_real(const struct answer_rows *cells, size_t row,
			size_t column); // 0: it is none
uint64_t answer_rows_u64(const struct answer_rows *cells, size_t row, size_t column);
