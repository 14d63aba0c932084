// A legacy name is a C++ name, made of the parts of the path and a hash, so that linkers and
// debuggers of the time could read it. For example _ZN4core3fmt5write17h0123456789abcdefE:
//
//     4core 3fmt 5write 17h0123456789abcdef E      length and text of each part, and the end
//     core::fmt::write                             without the hash
//
// What looks so and has no hash is C++. So it is read twice: first whether it is one, then to be
// written.
#include "symbols/rust.h"

#include "base/mem.h"
#include "symbols/rust_text.h"
#include "symbols/rust_v0.h"

#include <string.h>

enum { LEGACY_NAME_MAX = 64 * 1024, HASH_LENGTH = 17 };

// One identifier with its length before it, at text[*at]. False at the end or if it is broken.
static bool next_part(const char *text, size_t length, size_t *at, const char **part,
		      size_t *part_length)
{
	size_t number = 0;

	ASSERT(*at <= length);
	if (*at == length || text[*at] < '1' || text[*at] > '9')
		return false;
	// A number above the length is already too large: reading stops before it can overflow.
	while (*at < length && text[*at] >= '0' && text[*at] <= '9' && number <= length)
		number = number * 10 + (size_t)(text[(*at)++] - '0');
	if (number > length - *at)
		return false;
	*part = text + *at;
	*part_length = number;
	*at += number;
	return true;
}

// "h" and 16 hexadecimal digits. A C++ class could have such a name by chance; a hash has at
// least five different digits.
// (Of 16 random digits fewer than five are different in one of 2.4 million hashes.)
static bool is_hash(const char *part, size_t length)
{
	unsigned seen = 0;

	if (length != HASH_LENGTH || part[0] != 'h')
		return false;
	for (size_t i = 1; i < length; i++) {
		if (part[i] >= '0' && part[i] <= '9')
			seen |= 1u << (part[i] - '0');
		else if (part[i] >= 'a' && part[i] <= 'f')
			seen |= 1u << (part[i] - 'a' + 10);
		else
			return false;
	}
	return __builtin_popcount(seen) >= 5;
}

// Where the name ends: at its last E, which nothing or a suffix (".llvm.123") follows.
static bool find_end(const char *text, size_t *length)
{
	size_t at = strlen(text);
	bool suffix = true;

	for (; at > 0; at--) {
		if (suffix && text[at - 1] == 'E') {
			*length = at - 1;
			return true;
		}
		suffix = text[at - 1] == '.';
	}
	return false;
}

// In the first pass nothing is written, since only the last part shows whether it is a Rust name.
// All but that part are written in the second.
static char *demangle_legacy(const char *text)
{
	struct str out = { 0 };
	const char *part = NULL;
	size_t length, part_length = 0, at = 0, parts = 0;

	if (strlen(text) > LEGACY_NAME_MAX || !find_end(text, &length))
		return NULL;
	while (at < length) {
		if (!next_part(text, length, &at, &part, &part_length))
			return NULL;
		for (size_t i = 0; i < part_length; i++)
			if (part[i] <= ' ' || part[i] > '~')
				return NULL;
		parts++;
	}
	if (parts < 2 || !is_hash(part, part_length))
		return NULL;
	at = 0;
	for (size_t i = 0; i + 1 < parts && next_part(text, length, &at, &part, &part_length);
	     i++) {
		if (i > 0)
			str_add(&out, "::");
		rust_text_add_legacy(&out, part, part_length);
	}
	return str_take(&out);
}

char *rust_demangle(const char *name)
{
	if (strncmp(name, "_ZN", 3) == 0)
		return demangle_legacy(name + 3);
	if (strncmp(name, "_R", 2) == 0)
		return rust_v0_demangle(name + 2);
	return NULL;
}
