// sql_answer: SQL is made here, and what DuckDB answers is written as text. A question is put in
// parentheses after SELECT COLUMNS(*)::VARCHAR, so that DuckDB makes each value text in its own
// way, and no type of its needs to be known here. Names of files are quoted; the question is the
// user's own.
#include "sql/sql_answer.h"

#include "base/json.h"
#include "base/mem.h"
#include "export/rowset.h"

#include <ctype.h>
#include <string.h>

// ---- words of SQL ----

// A quote within is doubled: it's.parquet becomes 'it''s.parquet'.
static void add_quoted(struct str *sql, const char *text)
{
	str_add_char(sql, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			str_add_char(sql, '\'');
		str_add_char(sql, *text);
	}
	str_add_char(sql, '\'');
}

// The question in parentheses, on lines of its own, since it may end with a comment.
static void add_question(struct str *sql, const char *question)
{
	size_t length = strlen(question);

	// A semicolon would end the statement within the parentheses.
	while (length > 0 &&
	       (isspace((unsigned char)question[length - 1]) || question[length - 1] == ';'))
		length--;
	str_add(sql, "(\n");
	str_add_bytes(sql, question, length);
	str_add(sql, "\n)");
}

// ---- views ----

// Nothing is read by it yet: only what a question looks at is.
static bool make_view(struct duckdb *duckdb, enum rowset_table_id id, const char *const *folders,
		      size_t count, struct err *err)
{
	struct str sql = { 0 }, file = { 0 };
	bool good;

	ASSERT(id < ROWSET_TABLES && count > 0);
	// For example CREATE VIEW marks AS SELECT * FROM read_parquet(['a.rows/marks.parquet', …]).
	str_format(&sql, "CREATE VIEW %s AS SELECT * FROM read_parquet([", rowset_tables[id].name);
	for (size_t i = 0; i < count; i++) {
		str_clear(&file);
		str_format(&file, "%s/%s.parquet", folders[i], rowset_tables[id].name);
		str_add(&sql, i ? "," : "");
		add_quoted(&sql, file.text);
	}
	str_add(&sql, "])");
	good = duckdb_run(duckdb, sql.text, err);
	STR_FINI(&sql, &file);
	return good;
}

static void no_columns(void *, const char *const *, size_t)
{
}

static void take_text(void *context, const char *const *values, size_t count)
{
	if (count > 0 && values[0])
		str_add(context, values[0]);
}

// One recording in two folders would be counted twice in every sum.
static bool refuse_twice(struct duckdb *duckdb, struct err *err)
{
	struct str twice = { 0 };
	const struct duckdb_reader reader = { no_columns, take_text, &twice };
	bool good = duckdb_ask(duckdb,
			       "SELECT any_value(trace) FROM runs GROUP BY trace "
			       "HAVING count(*) > 1 LIMIT 1",
			       &reader, err);

	if (good && twice.length > 0)
		good = err_set(err, ERR_USAGE, "two of the files are one recording (%s)",
			       twice.text);
	str_fini(&twice);
	return good;
}

bool sql_answer_views(struct duckdb *duckdb, const char *const *folders, size_t count,
		      struct err *err)
{
	for (enum rowset_table_id id = 0; id < ROWSET_TABLES; id++)
		if (!make_view(duckdb, id, folders, count, err))
			return false;
	return refuse_twice(duckdb, err);
}

// ---- answers ----

struct answer {
	struct sink *sink;
	enum sql_answer_as as;
	struct str *names; // of columns
	size_t columns;
	char **cells; // of a table, which is kept until its widths are known; NULL: missing
	size_t cells_count, cells_capacity;
	struct json json;
};

// As RFC 4180: quotes only where a comma, a quote or a line break needs them, and a quote doubled.
static void csv_cell(struct sink *sink, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		sink_text(sink, text);
		return;
	}
	sink_text(sink, "\"");
	for (; *text; text++)
		sink_write(sink, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	sink_text(sink, "\"");
}

static void csv_line(struct sink *sink, const char *const *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		sink_text(sink, i ? "," : "");
		csv_cell(sink, values[i] ? values[i] : "");
	}
	sink_text(sink, "\n");
}

// Names are kept: JSON needs them in each row, a table needs their widths.
static void take_columns(void *context, const char *const *names, size_t count)
{
	struct answer *answer = context;

	ASSERT(!answer->names);
	answer->columns = count;
	answer->names = mem_alloc(count, sizeof *answer->names);
	for (size_t i = 0; i < count; i++)
		str_add(&answer->names[i], names[i]);
	if (answer->as == SQL_ANSWER_CSV)
		csv_line(answer->sink, names, count);
	if (answer->as == SQL_ANSWER_JSON)
		json_array_begin(&answer->json);
}

// Values are JSON already (to_json): numbers stay numbers, lists stay lists.
static void json_row(struct answer *answer, const char *const *values, size_t count)
{
	ASSERT(count == answer->columns);
	json_object_begin(&answer->json);
	for (size_t i = 0; i < count; i++) {
		json_key(&answer->json, str_get(&answer->names[i]));
		if (values[i])
			json_raw(&answer->json, values[i], strlen(values[i]));
		else
			json_null(&answer->json);
	}
	json_object_end(&answer->json);
}

// CSV and JSON are written as they come; the table waits until its last row, since any row may
// widen a column.
static void take_row(void *context, const char *const *values, size_t count)
{
	struct answer *answer = context;

	ASSERT(answer->names && count == answer->columns);
	switch (answer->as) {
	case SQL_ANSWER_CSV:
		csv_line(answer->sink, values, count);
		return;
	case SQL_ANSWER_JSON:
		json_row(answer, values, count);
		return;
	default:
		// Row after row: cell 7 of three columns is in row 2, column 1.
		MEM_ROOM(answer->cells, answer->cells_capacity, answer->cells_count + count);
		for (size_t i = 0; i < count; i++)
			answer->cells[answer->cells_count++] = values[i] ? mem_copy_text(values[i])
									 : NULL;
	}
}

// ---- a table for people ----

struct width {
	size_t characters;
	bool number; // all of the column: written to the right
};

// Of UTF-8: bytes that do not go on a character. Wide and combining ones count 1 as well.
static size_t characters_of(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += (*text & 0xc0) != 0x80;
	return count;
}

static bool is_number(const char *text)
{
	// Written by DuckDB, so what has only these letters is a number; "-" and "e" alone are no
	// values of it.
	return *text && !text[strspn(text, "0123456789.-+e")];
}

// A column of nothing but missing values counts as one of numbers, which shows only in its name.
static struct width width_of(const struct answer *answer, size_t column)
{
	struct width width = { characters_of(str_get(&answer->names[column])), true };

	ASSERT(column < answer->columns);
	for (size_t at = column; at < answer->cells_count; at += answer->columns) {
		const char *cell = answer->cells[at] ? answer->cells[at] : "";
		size_t characters = characters_of(cell);

		width.characters = characters > width.characters ? characters : width.characters;
		width.number = width.number && (!*cell || is_number(cell));
	}
	return width;
}

// Control characters would move the cursor.
static void put_cell(struct sink *sink, const char *text, struct width width, bool last)
{
	size_t characters = characters_of(text);
	// Bytes and characters differ: printf's own width would count bytes.
	int pad = (int)(width.characters - characters);

	ASSERT(characters <= width.characters);
	if (width.number)
		sink_format(sink, "%*s", pad, "");
	for (; *text; text++)
		sink_write(sink, (unsigned char)*text < ' ' || *text == 0x7f ? " " : text, 1);
	if (!width.number && !last)
		sink_format(sink, "%*s", pad, "");
	sink_text(sink, last ? "\n" : "  ");
}

// The names first, then rows. Two spaces between columns, none at the end of a line.
static void put_table(const struct answer *answer)
{
	struct width *widths = mem_alloc(answer->columns, sizeof *widths);

	ASSERT(answer->cells_count == 0 || answer->columns > 0);
	for (size_t i = 0; i < answer->columns; i++) {
		widths[i] = width_of(answer, i);
		put_cell(answer->sink, str_get(&answer->names[i]), widths[i],
			 i + 1 == answer->columns);
	}
	for (size_t at = 0; at < answer->cells_count; at++) {
		size_t i = at % answer->columns;

		put_cell(answer->sink, answer->cells[at] ? answer->cells[at] : "", widths[i],
			 i + 1 == answer->columns);
	}
	mem_free(widths);
}

// On an error the rows that came until then are in the sink already.
bool sql_answer_write(struct duckdb *duckdb, const char *question, enum sql_answer_as as,
		      struct sink *sink, struct err *err)
{
	struct answer answer = { .sink = sink, .as = as };
	const struct duckdb_reader reader = { take_columns, take_row, &answer };
	struct str sql = { 0 };
	bool good;

	// COLUMNS(*) applies the cast to each column, and leaves each its name.
	str_add(&sql, as == SQL_ANSWER_JSON ? "SELECT to_json(COLUMNS(*))::VARCHAR FROM "
					    : "SELECT COLUMNS(*)::VARCHAR FROM ");
	add_question(&sql, question);
	json_init(&answer.json, sink, true);
	good = duckdb_ask(duckdb, sql.text, &reader, err);
	if (good && as == SQL_ANSWER_JSON) {
		json_array_end(&answer.json);
		sink_text(sink, "\n");
	}
	if (good && as == SQL_ANSWER_TABLE)
		put_table(&answer);
	for (size_t i = 0; i < answer.cells_count; i++)
		mem_free(answer.cells[i]);
	for (size_t i = 0; i < answer.columns; i++)
		str_fini(&answer.names[i]);
	MEM_FREE(answer.cells, answer.names);
	str_fini(&sql);
	return good;
}

// DuckDB writes the file by itself, with the types of its own: nothing becomes text.
bool sql_answer_parquet(struct duckdb *duckdb, const char *question, const char *path,
			struct err *err)
{
	struct str sql = { 0 };
	bool good;

	str_add(&sql, "COPY ");
	add_question(&sql, question);
	str_add(&sql, " TO ");
	add_quoted(&sql, path);
	str_add(&sql, " (FORMAT parquet, COMPRESSION zstd)");
	good = duckdb_run(duckdb, sql.text, err);
	str_fini(&sql);
	return good;
}
