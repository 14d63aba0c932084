// What comes before a value depends on what was written: nothing after a key, a comma if its
// object or array has something already. So that is kept for each depth (filled), and a
// caller names neither commas nor lines.
//
// For example { "a": [1, 2], "b": {} } is object_begin, key a, array_begin, u64, u64, array_end,
// key b, object_begin, object_end, object_end. At the 2 filled[2] is true, so a comma comes first;
// at the value of "b" after_key is true, and so nothing; {} was never filled, and closes on its
// line.
#include "base/json.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void json_init(struct json *json, struct sink *sink, bool pretty)
{
	ASSERT(sink != NULL);
	*json = (struct json){ .sink = sink, .pretty = pretty };
}

// Two spaces for each open level, and nothing in one line or within json_line_begin.
static void new_line(struct json *json)
{
	static const char line[] =
		"\n                                                              ";

	_Static_assert(sizeof line - 1 == 1 + 2 * (JSON_DEPTH_MAX - 1), "a line of each depth");
	if (!json->pretty || json->on_line)
		return;
	ASSERT(json->depth < JSON_DEPTH_MAX);
	sink_write(json->sink, line, 1 + 2 * (size_t)json->depth);
}

// What stands between the previous value and this one.
static void before_value(struct json *json)
{
	// A value after its key is part of the same entry: no comma, no line.
	if (json->after_key) {
		json->after_key = false;
		return;
	}
	if (json->filled[json->depth])
		sink_write(json->sink, ",", 1);
	json->filled[json->depth] = true;
	if (json->depth > 0)
		new_line(json);
}

// The depth is bounded by our own documents: no caller nests by its input.
static void begin(struct json *json, const char *bracket)
{
	before_value(json);
	sink_write(json->sink, bracket, 1);
	// `filled` has an entry for each depth.
	ASSERT(json->depth + 1 < JSON_DEPTH_MAX);
	json->depth++;
	json->filled[json->depth] = false;
}

// An empty object or array stays on its line: {} and [].
static void end(struct json *json, const char *bracket)
{
	bool filled = json->filled[json->depth];

	ASSERT(json->depth > 0 && !json->after_key);
	json->depth--;
	if (filled)
		new_line(json);
	sink_write(json->sink, bracket, 1);
}

void json_begin(struct json *json, struct sink *sink, bool pretty, const char *schema)
{
	json_init(json, sink, pretty);
	json_object_begin(json);
	json_kv_string(json, "schema", schema);
}

void json_end(struct json *json)
{
	ASSERT(json->depth == 1); // all that was begun in it is ended
	json_object_end(json);
	sink_text(json->sink, "\n");
}

void json_object_begin(struct json *json)
{
	begin(json, "{");
}

void json_object_end(struct json *json)
{
	end(json, "}");
}

void json_array_begin(struct json *json)
{
	begin(json, "[");
}

void json_array_end(struct json *json)
{
	end(json, "]");
}

static void write_escaped(struct json *json, unsigned char c)
{
	static const char plain[] = "\"\\\b\f\n\r\t";
	// At equal places: the sixth of `plain`, a carriage return, is \r by the sixth letter of
	// `letters`, r.
	static const char letters[] = "\"\\bfnrt";
	const char *found = strchr(plain, c);

	if (c && found)
		sink_format(json->sink, "\\%c", letters[found - plain]);
	else
		sink_format(json->sink, "\\u%04x", c);
}

// What needs no escape is written in stretches, not byte by byte. For example `a"b` is three writes
// between the quotes: a, \", b. A byte that is no UTF-8 is written as U+FFFD.
static void write_quoted(struct json *json, const char *bytes, size_t length)
{
	const unsigned char *text = (const unsigned char *)bytes;
	size_t from = 0; // not yet written from here on
	size_t at = 0;

	sink_write(json->sink, "\"", 1);
	while (at < length) {
		// 0: not the beginning of a character. Only characters of one byte need an escape,
		// so what follows such a byte is looked at again.
		size_t step = str_utf8_length(text + at, length - at);

		if (step > 0 && text[at] >= 0x20 && text[at] != '"' && text[at] != '\\') {
			at += step;
			continue;
		}
		sink_write(json->sink, bytes + from, at - from);
		if (step > 0)
			write_escaped(json, text[at]);
		else
			sink_text(json->sink, "\xef\xbf\xbd"); // U+FFFD
		from = ++at;
	}
	sink_write(json->sink, bytes + from, at - from);
	sink_write(json->sink, "\"", 1);
}

void json_line_begin(struct json *json)
{
	json->on_line++;
}

void json_line_end(struct json *json)
{
	ASSERT(json->on_line > 0);
	json->on_line--;
}

void json_key(struct json *json, const char *key)
{
	ASSERT(json->depth > 0 && !json->after_key);
	before_value(json);
	write_quoted(json, key, strlen(key));
	sink_text(json->sink, json->pretty && !json->on_line ? ": " : ":");
	json->after_key = true;
}

void json_string(struct json *json, const char *text)
{
	if (text)
		json_string_bytes(json, text, strlen(text));
	else
		json_null(json);
}

void json_string_bytes(struct json *json, const char *bytes, size_t length)
{
	before_value(json);
	write_quoted(json, bytes, length);
}

void json_u64(struct json *json, uint64_t value)
{
	before_value(json);
	sink_format(json->sink, "%" PRIu64, value);
}

void json_i64(struct json *json, int64_t value)
{
	before_value(json);
	sink_format(json->sink, "%" PRId64, value);
}

// 0.1 needs one digit, 1/3 needs 16: the first of 15, 16 and 17 that reads back as it was.
void json_double(struct json *json, double value)
{
	char text[40];

	if (!isfinite(value)) {
		json_null(json); // JSON has no word for it
		return;
	}
	// Any decimal number of 15 digits survives the way through a double and back; 17 name every
	// double.
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	before_value(json);
	sink_text(json->sink, text);
}

void json_bool(struct json *json, bool value)
{
	before_value(json);
	sink_text(json->sink, value ? "true" : "false");
}

void json_null(struct json *json)
{
	before_value(json);
	sink_text(json->sink, "null");
}

void json_hex(struct json *json, uint64_t value)
{
	before_value(json);
	sink_format(json->sink, "\"0x%" PRIx64 "\"", value);
}

// Line ends after the document go: this one's own layout decides.
void json_raw(struct json *json, const char *text, size_t length)
{
	before_value(json);
	// The document is taken as it is, and is not read: who gives it knows that it is JSON.
	while (length > 0 && text[length - 1] == '\n')
		length--;
	sink_write(json->sink, text, length);
}

void json_kv_u64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_kv_i64(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_i64(json, value);
}

void json_kv_hex(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_hex(json, value);
}

void json_kv_double(struct json *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value);
}

void json_kv_null(struct json *json, const char *key)
{
	json_key(json, key);
	json_null(json);
}

void json_kv_u64_if(struct json *json, const char *key, bool known, uint64_t value)
{
	json_key(json, key);
	if (known)
		json_u64(json, value);
	else
		json_null(json);
}

void json_kv_string(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

void json_kv_text(struct json *json, const char *key, const char *text)
{
	json_kv_string(json, key, text && *text ? text : NULL);
}

void json_kv_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}

void json_kv_array(struct json *json, const char *key)
{
	json_key(json, key);
	json_array_begin(json);
}

void json_kv_object(struct json *json, const char *key)
{
	json_key(json, key);
	json_object_begin(json);
}
