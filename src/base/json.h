// json: writes JSON (RFC 8259) to a sink, with commas and indentation in the right places.
//
// The order of calls mirrors the document. Inside an object every value is preceded by
// json_key. Bytes that are not UTF-8 are written as U+FFFD, so that any output parses.
//
// For example { "a": [1, 2] } is json_object_begin, json_key "a", json_array_begin, json_u64 1,
// json_u64 2, json_array_end, json_object_end. There is no memory of its own, and nothing here can
// fail: the sink keeps the first error (sink.h).
#pragma once

#include "base/sink.h"

// Our own documents nest less than that: how deep one is never depends on what is read.
enum { JSON_DEPTH_MAX = 32 };

// `depth` counts the objects and arrays that are open. Plain data: it is dropped without a call.
struct json {
	struct sink *sink; // borrowed
	int depth;
	bool pretty;                 // two spaces a level; false: one line
	unsigned on_line;            // json_line_begin that are not ended
	bool filled[JSON_DEPTH_MAX]; // this level has a value already
	bool after_key;
};

// A document of any form. `pretty`: for people, with lines and two blanks a level.
void json_init(struct json *json, struct sink *sink, bool pretty);

// Begin a document of our own: an object, whose first key is its schema. End it, and its line.
void json_begin(struct json *json, struct sink *sink, bool pretty, const char *schema);
void json_end(struct json *json);

// Values that hold others. A newline after the whole document is the caller's to write.
void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);

// What is written between the two is on one line. Nests.
void json_line_begin(struct json *json);
void json_line_end(struct json *json);

// Inside an object, before each value.
// Any text: it is escaped as strings are.
void json_key(struct json *json, const char *key);

// Values.
// Each is an item of the array that is open, or what the last key means.
void json_string(struct json *json, const char *text); // NULL is written as null
void json_string_bytes(struct json *json, const char *bytes, size_t length);
void json_u64(struct json *json, uint64_t value);
void json_i64(struct json *json, int64_t value);
// The fewest digits of 15, 16 and 17 that read back as the same number: 0.1 and not
// 0.10000000000000001.
void json_double(struct json *json, double value); // null where JSON has no word for it
void json_bool(struct json *json, bool value);
void json_null(struct json *json);
void json_hex(struct json *json, uint64_t value); // "0x1f"
// Line ends after it are left out.
void json_raw(struct json *json, const char *text, size_t length); // which is a document already

// A key and its value in one call.
void json_kv_u64(struct json *json, const char *key, uint64_t value);
void json_kv_i64(struct json *json, const char *key, int64_t value);
void json_kv_hex(struct json *json, const char *key, uint64_t value);
void json_kv_double(struct json *json, const char *key, double value);
void json_kv_null(struct json *json, const char *key);
// What is not known is null, so that a member is always there.
void json_kv_u64_if(struct json *json, const char *key, bool known, uint64_t value); // else null
void json_kv_string(struct json *json, const char *key, const char *text);
void json_kv_text(struct json *json, const char *key, const char *text); // null if empty, too
void json_kv_bool(struct json *json, const char *key, bool value);

// A key, and the beginning of what it is of.
void json_kv_array(struct json *json, const char *key);
void json_kv_object(struct json *json, const char *key);
