// import_csv: events as comma-separated values with a header: what home-made loggers write.
//
// For example
//
//     time_ns,op,address,size,thread,stack
//     0,malloc,0x5010,24,1,"main;make"
//     900,free,0x5010,,1,
//
// has a block of 24 bytes by main, which called make, for 900 ns. What the columns mean is in
// rows.h.
#include "base/mem.h"
#include "import/import_formats.h"
#include "import/rows.h"

#include <string.h>

enum { FIELDS_MAX = 64 };

// The separator of a header is the one of these that it has most of.
static char find_separator(const char *line, size_t length)
{
	static const char separators[] = ",;\t";
	size_t counts[3] = { 0 };
	unsigned best = 0;

	for (size_t i = 0; i < length; i++)
		for (unsigned j = 0; j < 3; j++)
			counts[j] += line[i] == separators[j];
	for (unsigned j = 1; j < 3; j++)
		if (counts[j] > counts[best])
			best = j;
	return separators[best];
}

// Take a line apart, in place. SIZE_MAX: a quote is not closed.
// A field in quotes may have separators in it, and "" there is one quote. Fields are NUL-terminated
// in place: what is taken out of quotes is moved to the left. A quote that is not closed may be a
// line end within a field, which is not read.
static size_t split(char *line, char separator, char *fields[], size_t fields_max)
{
	size_t count = 0;

	for (char *at = line;;) {
		char *out = at, end;

		while (*at == ' ')
			at++;
		if (count < fields_max)
			fields[count++] = *at == '"' ? out : at;
		if (*at == '"') {
			for (at++; *at && (*at != '"' || at[1] == '"'); at++) {
				at += *at == '"';
				*out++ = *at;
			}
			if (!*at)
				return SIZE_MAX;
			for (at++; *at && *at != separator; at++)
				;
		} else {
			while (*at && *at != separator)
				at++;
			for (out = at; out > fields[count - 1] && out[-1] == ' '; out--)
				;
		}
		end = *at;
		*out = '\0';
		if (!end)
			return count;
		at++;
	}
}

// A mark of UTF-8 at the beginning says nothing.
static char *skip_mark(char *text)
{
	return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

static bool is_blank(const char *line)
{
	return line[strspn(line, " \t")] == '\0' || *line == '#';
}

// The first line that is no comment has to name an op, and an address or a size.
static bool is_csv(const char *head, size_t length)
{
	char *copy = mem_copy_bytes(head, length), *rest = skip_mark(copy), *line;
	char *fields[FIELDS_MAX];
	bool has[ROWS_COLUMNS + 1] = { false };
	size_t count = 0;

	do {
		line = rest;
		rest += strcspn(rest, "\r\n");
		if (*rest)
			*rest++ = '\0';
	} while (is_blank(line) && *rest);
	count = split(line, find_separator(line, strlen(line)), fields, FIELDS_MAX);
	for (size_t i = 0; i < count && count != SIZE_MAX; i++)
		has[rows_find_column(fields[i])] = true;
	mem_free(copy);
	return has[ROWS_OP] && (has[ROWS_ADDRESS] || has[ROWS_SIZE]);
}

// `columns` says of each field of a row what it holds; 0 fields: the header was not read yet.
struct table {
	struct rows rows;
	char separator;
	enum rows_column columns[FIELDS_MAX];
	size_t count;
};

static bool read_header(struct table *table, char *line, struct err *err)
{
	char *names[FIELDS_MAX];

	table->separator = find_separator(line, strlen(line));
	table->count = split(line, table->separator, names, FIELDS_MAX);
	if (table->count == SIZE_MAX)
		return err_set(err, ERR_FORMAT, "a quote is not closed");
	ASSERT(table->count > 0 && table->count <= FIELDS_MAX);
	for (size_t i = 0; i < table->count; i++)
		table->columns[i] = rows_add_column(&table->rows, names[i]);
	return rows_begin(&table->rows, err);
}

// A row with another number of fields than the header is refused: a field with a separator that was
// not quoted would move all others.
static bool read_row(struct table *table, char *line, struct err *err)
{
	const char *fields[ROWS_COLUMNS + 1] = { NULL };
	char *values[FIELDS_MAX];
	size_t count = split(line, table->separator, values, FIELDS_MAX);

	if (count == SIZE_MAX)
		return err_set(err, ERR_FORMAT,
			       "a quote is not closed (line ends within fields are not read)");
	ASSERT(count <= FIELDS_MAX);
	if (count != table->count)
		return err_set(err, ERR_FORMAT, "it has %zu fields, and the header has %zu", count,
			       table->count);
	for (size_t i = 0; i < count; i++)
		fields[table->columns[i]] = values[i];
	return rows_take(&table->rows, fields, err);
}

static bool read_csv(struct import_work *work, struct err *err)
{
	struct table table = { .rows = { .intake = work->intake } };
	bool ok = true;
	char *line;
	size_t length;

	while (ok && import_line(work, &line, &length)) {
		line = skip_mark(line);
		if (is_blank(line))
			continue;
		ok = table.count ? read_row(&table, line, err) : read_header(&table, line, err);
	}
	rows_remark(&table.rows, work->remarks);
	return ok || import_was_cut(work, err);
}

const struct import_format import_csv = { .name = "csv", .is = is_csv, .read = read_csv };
