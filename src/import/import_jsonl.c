// import_jsonl: events as JSON, an object a line: what home-made loggers write.
//
// For example
//
//     {"time_ns": 900, "op": "free", "address": "0x5010", "stack": ["main", "stop"]}
//
// is a row of rows.h. An array is a stack, and its frames get ';' between them. Texts are unquoted
// in place: what they become is never longer than what was there.
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "import/import_formats.h"
#include "import/rows.h"

#include <ctype.h>
#include <string.h>

enum { KEYS_MAX = 24, KEY_BYTES = 24 };

struct objects {
	struct rows rows;
	// The keys of the line before, at their places, and what they hold: mostly the next has the
	// same.
	struct known_key {
		char name[KEY_BYTES];
		enum rows_column column;
	} keys[KEYS_MAX];
};

static char *skip_blank(char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

// Four hexadecimal digits; false: they are not there.
static bool take_code(const char *at, uint32_t *code)
{
	*code = 0;
	for (int i = 0; i < 4; i++) {
		int digit = str_hex_digit(at[i]);

		if (digit < 0)
			return false;
		*code = *code << 4 | (uint32_t)digit;
	}
	return true;
}

// What stands after a backslash. NULL: nothing that JSON knows. Two escapes that are a surrogate
// pair are one character; half of one is written as it is, and a NUL as U+FFFD.
static char *take_escape(char *at, char **out)
{
	static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	const char *letter = *at ? strchr(letters, *at) : NULL;
	uint32_t code, low;

	if (letter) {
		*(*out)++ = means[letter - letters];
		return at + 1;
	}
	if (*at != 'u' || !take_code(at + 1, &code))
		return NULL;
	at += 5;
	if (code == 0)
		code = 0xfffd; // a NUL would end what is kept of the text
	if (code >> 10 == 0x36 && at[0] == '\\' && at[1] == 'u' && take_code(at + 2, &low) &&
	    low >> 10 == 0x37) {
		code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
		at += 6;
	}
	// At most four bytes, of the six or twelve that the escape took.
	*out = utf8_put(*out, code);
	return at;
}

// A text, from its quote on, is moved to `*out`. NULL: it does not end. Behind its end otherwise.
static char *take_text(char *at, char **out)
{
	for (at++; *at != '"';) {
		if (!*at)
			return NULL;
		if (*at == '\\') {
			at = take_escape(at + 1, out);
			if (!at)
				return NULL;
		} else {
			*(*out)++ = *at++;
		}
	}
	return at + 1;
}

// A number, true, false or null.
static char *take_bare(char *at, char **out)
{
	char *begin = at;

	while (isalnum((unsigned char)*at) || *at == '.' || *at == '-' || *at == '+')
		*(*out)++ = *at++;
	return at > begin ? at : NULL;
}

static char *take_scalar(char *at, char **out)
{
	return *at == '"' ? take_text(at, out) : take_bare(at, out);
}

// An array, as text with ';' between its elements. A ';' within a frame becomes ':', or it would
// divide it.
static char *take_array(char *at, char **out)
{
	at = skip_blank(at + 1);
	while (*at && *at != ']') {
		char *begin = *out;

		at = take_scalar(at, out);
		if (!at)
			return NULL;
		for (char *c = begin; c < *out; c++)
			if (*c == ';')
				*c = ':';
		at = skip_blank(at);
		if (*at == ',') {
			*(*out)++ = ';';
			at = skip_blank(at + 1);
		} else if (*at != ']') {
			return NULL;
		}
	}
	return *at ? at + 1 : NULL;
}

// An object within: nothing of it is ours. By depth, without recursion; braces within texts do not
// count.
static char *skip_object(char *at)
{
	size_t depth = 0;
	char *ignored;

	do {
		if (!*at)
			return NULL;
		if (*at == '"') {
			ignored = at;
			at = take_text(at, &ignored);
			if (!at)
				return NULL;
			continue;
		}
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		at++;
	} while (depth > 0);
	return at;
}

// Lines of one writer have the same keys in the same order: one comparison for each, and no search.
static enum rows_column find_key(struct objects *objects, size_t position, const char *name)
{
	struct known_key *key = position < KEYS_MAX ? &objects->keys[position] : NULL;
	enum rows_column column;

	if (key && *name && strcmp(key->name, name) == 0)
		return key->column;
	column = rows_find_column(name);
	if (column != ROWS_IGNORED && !objects->rows.has[column])
		rows_add_column(&objects->rows, name);
	if (key && strlen(name) < KEY_BYTES) {
		strcpy(key->name, name);
		key->column = column;
	}
	return column;
}

// `"key": value`. The place after it; NULL: it is none. The value is ended by a NUL in place of
// what follows it. Where that is the object's own end, the NUL takes its place, and the caller's
// loop ends by it.
static char *take_member(struct objects *objects, size_t position, char *at, const char *fields[])
{
	char *name = at, *end = at, *value;
	enum rows_column column;
	bool null;

	if (*at != '"')
		return NULL;
	at = take_text(at, &end);
	at = at ? skip_blank(at) : NULL;
	if (!at || *at != ':')
		return NULL;
	*end = '\0';
	column = find_key(objects, position, name);
	at = skip_blank(at + 1);
	null = strncmp(at, "null", 4) == 0;
	value = end = at;
	at = *at == '{'   ? skip_object(at)
	     : *at == '[' ? take_array(at, &end)
			  : take_scalar(at, &end);
	if (!at)
		return NULL;
	ASSERT(end <= at);
	at = skip_blank(at);
	if (*at != ',' && *at != '}')
		return NULL;
	at += *at == ',' ? 1 : 0;
	if (*at == '}' && at == end) {
		// The number's end is the object's: no room for a NUL but its own.
		at[0] = '\0';
		fields[column] = null ? NULL : value;
		return at;
	}
	*end = '\0';
	fields[column] = null ? NULL : value;
	return at;
}

static bool read_object(struct objects *objects, char *line, struct err *err)
{
	const char *fields[ROWS_COLUMNS + 1] = { NULL };
	char *at = skip_blank(line);
	size_t position = 0;

	if (*at != '{')
		return err_set(err, ERR_FORMAT, "it is not a JSON object");
	at = skip_blank(at + 1);
	while (*at && *at != '}') {
		at = take_member(objects, position++, at, fields);
		if (!at)
			return err_set(err, ERR_FORMAT, "it is not a JSON object on one line");
		at = skip_blank(at);
	}
	return rows_take(&objects->rows, fields, err);
}

static bool is_jsonl(const char *head, size_t length)
{
	size_t at = 0;

	while (at < length && strchr(" \t\r\n", head[at]))
		at++;
	return at < length && head[at] == '{' &&
	       (mem_search(head, length, "\"op\"", 4) || mem_search(head, length, "\"event\"", 7));
}

// Which keys there are, as far as the beginning shows. The trace must say at its beginning what it
// lacks, and JSON has no header.
static void look_ahead(struct objects *objects, struct source *source)
{
	size_t length;
	const char *head = source_head(source, &length);
	char *copy = mem_copy_bytes(head, length), *end;

	for (char *at = strchr(copy, '"'); at; at = strchr(end + 1, '"')) {
		end = strchr(at + 1, '"');
		if (!end)
			break;
		*end = '\0';
		if (end[1] == ':' || end[1] == ' ')
			rows_add_column(&objects->rows, at + 1);
	}
	mem_free(copy);
	// A row that frees has no size.
	objects->rows.has[ROWS_SIZE] = true;
}

static bool read_jsonl(struct import_work *work, struct err *err)
{
	struct objects *objects = mem_alloc(1, sizeof *objects);
	bool ok;
	char *line;
	size_t length;

	objects->rows.intake = work->intake;
	look_ahead(objects, work->source);
	ok = rows_begin(&objects->rows, err);
	while (ok && import_line(work, &line, &length))
		if (*skip_blank(line))
			ok = read_object(objects, line, err);
	rows_remark(&objects->rows, work->remarks);
	mem_free(objects);
	return ok || import_was_cut(work, err);
}

const struct import_format import_jsonl = { .name = "jsonl", .is = is_jsonl, .read = read_jsonl };
