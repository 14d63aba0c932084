// An old name of Rust's has its signs written between dollars, and "::" as two dots. For example
//
//     _$LT$impl$u20$core..Clone$GT$    <impl core::Clone>
//
// where LT and GT are signs with names, u20 is a character by its number, and the underscore is
// there only because no identifier may begin with a dollar. What is between dollars and is no such
// sign is left as it is, to the end.
#include "symbols/rust_text.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

// Surrogates (d800 to dfff) are no characters; they exist only within UTF-16.
bool rust_text_add_char(struct str *out, uint32_t code)
{
	char bytes[UTF8_BYTES_MAX];

	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return false;
	str_add_bytes(out, bytes, (size_t)(utf8_put(bytes, code) - bytes));
	return true;
}

// The character between two dollars: "LT" or "u7e". 0 if it is none.
static uint32_t read_escape(const char *text, size_t length)
{
	static const struct {
		const char *name;
		char value;
	} names[] = {
		{ "SP", '@' }, { "BP", '*' }, { "RF", '&' }, { "LT", '<' },
		{ "GT", '>' }, { "LP", '(' }, { "RP", ')' }, { "C", ',' },
	};
	uint32_t code = 0;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i].name) == length && memcmp(names[i].name, text, length) == 0)
			return (uint32_t)names[i].value;
	if (length < 2 || length > 7 || text[0] != 'u')
		return 0;
	for (size_t i = 1; i < length; i++) {
		char c = text[i];

		if (c >= '0' && c <= '9')
			code = code * 16 + (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			code = code * 16 + (uint32_t)(c - 'a') + 10;
		else
			return 0;
	}
	return code >= 0x20 && code != 0x7f ? code : 0;
}

void rust_text_add_legacy(struct str *out, const char *text, size_t length)
{
	size_t at = 0;

	// An identifier may not begin with a dollar; an underscore was put before it.
	if (length >= 2 && text[0] == '_' && text[1] == '$')
		at = 1;
	while (at < length) {
		const char *dollar;
		uint32_t code;

		if (text[at] == '.' && at + 1 < length && text[at + 1] == '.') {
			str_add(out, "::");
			at += 2;
			continue;
		}
		if (text[at] != '$') {
			str_add_char(out, text[at++]);
			continue;
		}
		dollar = memchr(text + at + 1, '$', length - at - 1);
		code = dollar ? read_escape(text + at + 1, (size_t)(dollar - text) - at - 1) : 0;
		if (code == 0 || !rust_text_add_char(out, code)) {
			// Not one that we know: the rest stands as it is.
			str_add_bytes(out, text + at, length - at);
			return;
		}
		at = (size_t)(dollar - text) + 1;
	}
}

// Punycode (RFC 3492) writes a word as its ASCII letters and then, for each other letter, how far
// to go on: through all places of the word so far, and at its end to the next code. One number says
// place and letter both: for a word of n letters, the step d goes n places to each code.
//
// For example gdel_5qa: "gdel", and the digits 5 q a (31, 16, 0) are 31 + 16 * 35 = 591. With the
// new letter there are 5 places, so the code is 0x80 + 591 / 5 = 0xf6 (ö), at place 591 % 5 = 1:
// gödel.
enum { PUNYCODE_MAX = 256 }; // characters of one identifier

// How the digits' thresholds follow the size of steps (RFC 3492, 6.1): small steps take few digits.
static uint64_t adapt(uint64_t delta, uint64_t count, bool first)
{
	uint64_t steps = 0;

	delta /= first ? 700 : 2;
	delta += delta / count;
	while (delta > (36 - 1) * 26 / 2) {
		delta /= 36 - 1;
		steps += 36;
	}
	return steps + 36 * delta / (delta + 38);
}

static bool read_digit(char c, uint64_t *digit)
{
	if (c >= 'a' && c <= 'z')
		*digit = (uint64_t)(c - 'a');
	else if (c >= '0' && c <= '9')
		*digit = (uint64_t)(c - '0') + 26;
	else
		return false;
	return true;
}

// One number of variable length at text[*at], as RFC 3492 section 3.3 has it.
static bool read_delta(const char *text, size_t length, size_t *at, uint64_t bias, uint64_t *delta)
{
	uint64_t weight = 1;

	*delta = 0;
	for (uint64_t base = 36;; base += 36) {
		uint64_t threshold = base <= bias ? 1 : base - bias >= 26 ? 26 : base - bias;
		uint64_t digit;

		if (*at == length || !read_digit(text[(*at)++], &digit))
			return false;
		*delta += digit * weight;
		if (*delta > UINT32_MAX)
			return false;
		if (digit < threshold)
			return true;
		weight *= 36 - threshold;
		if (weight > UINT32_MAX)
			return false;
	}
}

// Letters of ASCII come before the last underscore; without one there are none.
bool rust_text_add_punycode(struct str *out, const char *text, size_t length)
{
	uint32_t chars[PUNYCODE_MAX];
	uint64_t code = 0x80, bias = 72, position = 0;
	const char *delimiter = str_find_last(text, '_', length);
	size_t plain = delimiter ? (size_t)(delimiter - text) : 0;
	size_t at = delimiter ? plain + 1 : 0;
	size_t count = 0;

	if (plain > PUNYCODE_MAX || at == length)
		return false;
	for (; count < plain; count++)
		chars[count] = (uint8_t)text[count];
	for (bool first = true; at < length; first = false) {
		uint64_t delta;

		if (count == PUNYCODE_MAX || !read_delta(text, length, &at, bias, &delta))
			return false;
		position += delta;
		count++;
		bias = adapt(delta, count, first);
		code += position / count;
		position %= count;
		ASSERT(count <= PUNYCODE_MAX && position < count);
		if (code > 0x10ffff)
			return false;
		memmove(&chars[position + 1], &chars[position],
			(count - 1 - position) * sizeof *chars);
		chars[position++] = (uint32_t)code;
	}
	for (size_t i = 0; i < count; i++)
		if (!rust_text_add_char(out, chars[i]))
			return false;
	return true;
}
