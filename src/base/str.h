// str: text that grows.
//
// `struct str s = { 0 };` is an empty string. `s.text` is always NUL-terminated once something
// was added, and may be NULL before. The owner calls str_fini.
//
// Memory doubles as it grows, so many small additions cost little. Where there is none the program
// ends (mem.h): nothing here fails but the parsing. One thread for each str.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
	char *text;
	size_t length;   // bytes, without the NUL
	size_t capacity; // bytes allocated
};

// Forget the text; str_clear keeps the memory for what comes. STR_FINI is for several.
void str_fini(struct str *str);
#define STR_FINI(...)                                      \
	str_fini_all((struct str *const[]){ __VA_ARGS__ }, \
		     sizeof((struct str *const[]){ __VA_ARGS__ }) / sizeof(struct str *))
void str_fini_all(struct str *const *list, size_t count);
void str_clear(struct str *str);

// Append text, bytes (a NUL among them is kept), one character, text as printf would.
void str_add(struct str *str, const char *text);
void str_add_bytes(struct str *str, const void *bytes, size_t length);
void str_add_char(struct str *str, char c);

// Append a text of which bytes that are not UTF-8 become U+FFFD each, for readers that refuse them:
// the three bytes "a\xff" "b" make five.
void str_add_utf8(struct str *str, const char *text, size_t length);

// How many bytes the control character at `at` takes, of a text that ends with NUL: 1 of ASCII, 2
// of those of Unicode that a terminal obeys too (U+0080 to U+009F). 0: it is none. NUL is one.
size_t str_control(const char *at);

// Append it as UTF-8 in one line: line breaks and tabs become blanks, other control characters '?'.
void str_add_plain(struct str *str, const char *text, size_t length);

// Length of the UTF-8 sequence at `at`, of at most `left` bytes, or 0 if what is there is not one
// (RFC 3629).
size_t str_utf8_length(const unsigned char *at, size_t left);

// Append a word, quoted where this system's shell would read it as anything else.
void str_add_shell(struct str *str, const char *word);

void str_add_digits(struct str *str, uint64_t value);                   // decimal; fast
void str_add_hex(struct str *str, const uint8_t *bytes, size_t length); // two digits a byte
void str_format(struct str *str, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_vformat(struct str *str, const char *format, va_list args);

// The text, never NULL. Borrowed until the next change.
const char *str_get(const struct str *str);

// The text; the caller owns it (mem_free). `str` is empty afterwards. Never NULL.
char *str_take(struct str *str);

// 1536 -> "1.5 KiB"; 0 -> "0 B". At most 16 bytes with the NUL.
const char *str_bytes(uint64_t bytes, char out[static 16]);

// 1234567 -> "1,234,567". At most 28 bytes with the NUL.
const char *str_count(uint64_t count, char out[static 28]);

// 1234567890 ns -> "1.235 s"; picks ns, us, ms, s, min. At most 24 bytes with the NUL.
const char *str_duration(uint64_t duration_ns, char out[static 24]);

// 15300000 ns -> "15.3ms", exactly and in one word, as --from takes it. At most 24 bytes with the
// NUL.
const char *str_time(uint64_t time_ns, char out[static 24]);

// The same, in memory of the block around the call.
#define STR_BYTES(bytes) str_bytes(bytes, (char[16]){ 0 })
#define STR_COUNT(count) str_count(count, (char[28]){ 0 })
#define STR_DURATION(duration_ns) str_duration(duration_ns, (char[24]){ 0 })
#define STR_TIME(time_ns) str_time(time_ns, (char[24]){ 0 })

// "12", "64K", "1.5MiB", "2G" -> bytes. False when it is not a size. Units are powers of 1,024, in
// upper or lower case; a fraction needs one, and has nine digits at most.
bool str_parse_bytes(const char *text, uint64_t *bytes);

// What a hexadecimal digit is worth, 0 to 15; -1: it is none.
int str_hex_digit(char c);

// A whole decimal number, nothing before or after it.
bool str_parse_count(const char *text, uint64_t *count);

// The entry of `words` (NULL-terminated) nearest to `word` by edit distance, or NULL if none is
// near enough to be worth suggesting: a third of its letters and one more may differ. A beginning
// is near. Words of more than 48 bytes are left out. Of two alike the first.
const char *str_nearest(const char *word, const char *const *words);

// The last place of `c` in the first `length` bytes of `text`; NULL: it is not there.
const char *str_find_last(const char *text, char c, size_t length);

// Is it a path as Windows writes it, with a drive's letter or a backslash in front?
bool str_is_windows_path(const char *path);

// What is after the last '/' of a path, or all of it. In one of Windows a '\\' is one too.
const char *str_last_part(const char *path);

// The same of a path that may be of either system wherever it begins: after the last of both, or
// after the colon of a drive.
const char *str_last_part_of_any(const char *path);

// What is after the last '.', or "".
const char *str_ending(const char *path);

bool str_ends_with(const char *text, const char *end); // "" ends all

// The date of a time since 1970, in UTC. False: there is none.
struct tm;
bool str_date(uint64_t unix_s, struct tm *date);
