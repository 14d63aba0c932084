// For example, with one key of many,
//
//     "exe": "/home/me/secret/app"              "exe": "path-3fa09c11"
//     "command": "/home/me/secret/app --user x" "command": "***"
//     "file": "/home/me/secret/parse.c"         "file": "path-77d2e0b5.c"
//     "name": "main"                            "name": "main"
//
// In sentences paths are found by their looks, those of Windows by how they begin or end.
// The document is read as text, by its quotes and brackets: it is our own JSON, so no reader of any
// JSON is needed.
#include "view/scrub.h"

#include "os/random.h"

#include <inttypes.h>
#include <string.h>

enum { ENDING_MAX = 8, DEPTH_MAX = 64 };

bool scrub_init(struct scrub *scrub, struct err *err)
{
	return random_bytes(scrub->key, sizeof scrub->key, err);
}

// ---- SipHash-2-4 (Aumasson and Bernstein) ----

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t turned(uint64_t value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static void sip_round(struct sip *v)
{
	v->a += v->b;
	v->c += v->d;
	v->b = turned(v->b, 13) ^ v->a;
	v->d = turned(v->d, 16) ^ v->c;
	v->a = turned(v->a, 32);
	v->c += v->b;
	v->a += v->d;
	v->b = turned(v->b, 17) ^ v->c;
	v->d = turned(v->d, 21) ^ v->a;
	v->c = turned(v->c, 32);
}

// A hash with a key: of one without, a reader could find a path by trying likely ones.
static uint64_t hash_of(const struct scrub *scrub, const char *text, size_t length)
{
	struct sip v = {
		scrub->key[0] ^ UINT64_C(0x736f6d6570736575),
		scrub->key[1] ^ UINT64_C(0x646f72616e646f6d),
		scrub->key[0] ^ UINT64_C(0x6c7967656e657261),
		scrub->key[1] ^ UINT64_C(0x7465646279746573),
	};

	for (size_t at = 0; at <= length; at += 8) {
		uint64_t word = 0;
		size_t left = length - at < 8 ? length - at : 8;

		memcpy(&word, text + at, left);
		if (left < 8)
			// The last word has the length in its highest byte, so that texts which
			// differ by zeros at their end differ.
			word |= (uint64_t)length << 56;
		v.d ^= word;
		sip_round(&v);
		sip_round(&v);
		v.a ^= word;
	}
	v.c ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&v);
	return v.a ^ v.b ^ v.c ^ v.d;
}

// ---- paths ----

static bool is_letter(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Where the ending begins: ".c", ".so.1", ".tide" say of which kind a file is; a number alone, as
// in "v1.2", does not. `length`: there is none.
static size_t ending_of(const char *path, size_t length)
{
	size_t start = length, best = length;

	// Backwards, and at most ENDING_MAX: what is longer is a name, and a name is what is to be
	// hidden.
	while (start > 0 && path[start - 1] != '/' && length - start < ENDING_MAX) {
		char c = path[--start];

		if (c == '.' && start > 0 && path[start - 1] != '/' && start + 1 < length &&
		    !(path[start + 1] >= '0' && path[start + 1] <= '9'))
			best = start;
		if (c != '.' && !is_letter(c) && c != '+')
			break;
	}
	return best;
}

void scrub_path(const struct scrub *scrub, const char *path, size_t length, struct str *out)
{
	size_t ending = ending_of(path, length);

	if (length == 0)
		return;
	str_format(out, "path-%08" PRIx32, (uint32_t)hash_of(scrub, path, length));
	str_add_bytes(out, path + ending, length - ending);
}

// A path as JSON has it, with two backslashes for each: it gets the name that it has elsewhere.
static void scrub_escaped(const struct scrub *scrub, const char *path, size_t length,
			  struct str *out)
{
	struct str plain = { 0 };

	for (size_t i = 0; i < length; i++) {
		if (path[i] == '\\' && i + 1 < length && path[i + 1] == '\\')
			i++;
		str_add_char(&plain, path[i]);
	}
	scrub_path(scrub, str_get(&plain), plain.length, out);
	str_fini(&plain);
}

// ---- documents ----

// What is done with the strings of a key.
static const struct rule {
	const char *key;
	bool whole; // a path, whatever is in it; else an argument
} rules[] = {
	{ "exe", true },   { "file", true },     { "module", true },         { "directory", true },
	{ "path", true },  { "diff", true },     { "command", false },       { "host", false },
	{ "args", false }, { "options", false }, { "process_title", false },
};

static const struct rule *rule_of(const char *key, size_t length)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (strlen(rules[i].key) == length && memcmp(rules[i].key, key, length) == 0)
			return &rules[i];
	return NULL;
}

// Not part of a path in a sentence. A backslash begins an escape.
static bool ends_word(char c)
{
	return c == ' ' || c == ',' || c == ';' || c == '\'' || c == '"' || c == '(' || c == ')' ||
	       c == '\\' || c == '<' || c == '>' || c == '{' || c == '}' || c == ':' || c == '`';
}

// The bytes of a backslash between folders, of which there are two in JSON; 0: it is no such one,
// but an escape, or the end.
static size_t separator(const char *text, size_t length)
{
	if (length < 2 || text[0] != '\\' || text[1] == '"')
		return 0;
	return text[1] == '\\' ? 2 : 1;
}

// "C:\", "\\server", "\Device": from here on backslashes are between folders. Before that they may
// be those of names, "App\Models\run".
static bool begins_on_windows(const char *word, size_t length)
{
	if (length > 2 && is_letter(word[0]) && word[1] == ':')
		return word[2] == '/' || separator(word + 2, length - 2) > 0;
	return length > 2 && word[0] == '\\' && word[1] == '\\';
}

static size_t word_end(const char *text, size_t at, size_t length, bool windows)
{
	size_t end = at;

	if (windows && begins_on_windows(text + at, length - at) && text[at] != '\\')
		end += 2;
	while (end < length) {
		size_t size = windows ? separator(text + end, length - end) : 0;

		if (size == 0 && ends_word(text[end]))
			break;
		end += size > 0 ? size : 1;
	}
	return end;
}

// "src\parse.c", "..\tool": it has a backslash that is no escape of JSON's, and a file's ending or
// such a beginning. A name as "App\Models\run" has neither.
static bool is_relative_on_windows(const char *word, size_t end)
{
	bool found = false;

	for (size_t i = 0; i + 1 < end && !found; i++)
		found = word[i] == '\\' && !memchr("nrtbfu/\"", word[i + 1], 8);
	return found && (word[0] == '.' || ending_of(word, end) < end);
}

static bool is_path(const char *word, size_t length, bool windows)
{
	for (size_t i = 0; i + 1 < length; i++)
		if ((word[i] == '/' || (windows && word[i] == '\\')) &&
		    (is_letter(word[i + 1]) || word[i + 1] == '.' || word[i + 1] == '_'))
			return true;
	return false;
}

// "libfoo.so.1+0x1f": a function that has no name is called after its file.
static size_t file_in_front(const char *word, size_t length)
{
	for (size_t i = 1; i + 3 < length; i++)
		if (memcmp(word + i, "+0x", 3) == 0)
			return i;
	return 0;
}

// What follows a backslash in JSON stays as it is.
static size_t add_escape(const char *text, size_t length, struct str *out)
{
	size_t size = *text == 'u' && length >= 5 ? 5 : 1;

	str_add_bytes(out, text, size);
	return size;
}

// Words end where no path goes on; what is between them stays.
void scrub_words(const struct scrub *scrub, const char *text, size_t length, struct str *out)
{
	bool windows = false;
	size_t at = 0;

	while (at < length) {
		size_t end, file;
		bool relative;

		// What follows a blank may be the rest of a path: "C:\Program Files\x".
		windows |= begins_on_windows(text + at, length - at);
		end = word_end(text, at, length, true);
		relative = is_relative_on_windows(text + at, end - at);
		if (!relative && !windows)
			end = word_end(text, at, length, false);
		file = file_in_front(text + at, end - at);
		if (is_path(text + at, end - at, windows || relative)) {
			scrub_escaped(scrub, text + at, end - at, out);
		} else {
			scrub_path(scrub, text + at, file, out);
			str_add_bytes(out, text + at + file, end - at - file);
		}
		at = end;
		if (at < length)
			str_add_char(out, text[at++]);
		if (at < length && text[at - 1] == '\\')
			at += add_escape(text + at, length - at, out);
	}
}

// The string that begins behind the quote at `at`: where it ends.
static size_t string_end(const char *json, size_t at, size_t length)
{
	while (at < length && json[at] != '"')
		at += json[at] == '\\' ? 2 : 1;
	return at < length ? at : length;
}

// One string, between its quotes; `rule` is that of its key.
static void scrub_string(const struct scrub *scrub, const struct rule *rule, const char *text,
			 size_t length, struct str *out)
{
	if (rule && rule->whole)
		scrub_escaped(scrub, text, length, out);
	else if (rule)
		str_add(out, "***");
	else
		scrub_words(scrub, text, length, out);
}

// Keys stay; an object's keys have rules of their own, a list's strings that of its key.
void scrub_json(const struct scrub *scrub, const char *json, size_t length, struct str *out)
{
	const struct rule *outer[DEPTH_MAX] = { NULL };
	const struct rule *rule =
		NULL; // of the key that was last; an array's holds for its strings
	size_t depth = 0;

	for (size_t at = 0; at < length; at++) {
		char c = json[at];

		if (c == '"') {
			const char *text = json + at + 1;
			size_t end = string_end(json, at + 1, length);
			// Our JSON has no blank before the colon.
			bool is_key = end + 1 < length && json[end + 1] == ':';

			str_add_char(out, '"');
			if (is_key)
				str_add_bytes(out, text, end - at - 1);
			else
				scrub_string(scrub, rule, text, end - at - 1, out);
			if (is_key)
				rule = rule_of(text, end - at - 1);
			str_add_char(out, '"');
			at = end;
			continue;
		}
		if ((c == '[' || c == '{') && depth < DEPTH_MAX) {
			outer[depth++] = rule;
			rule = c == '[' ? rule : NULL;
		} else if ((c == ']' || c == '}') && depth > 0) {
			rule = outer[--depth];
		}
		str_add_char(out, c);
	}
}
