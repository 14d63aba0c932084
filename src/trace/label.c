// For example "version=1.2\nhost=web1\n" gives version and 1.2, then host and web1. A value may
// have '=' in it: the first one of a line divides. Labels come from the user or from a file, so
// what is no label is left out and no error.
#include "trace/label.h"

#include <ctype.h>
#include <string.h>

// Lines without a name before the "=" are passed over.
bool label_next(const char **text, struct label *label)
{
	while (*text && **text) {
		const char *line = *text;
		size_t length = strcspn(line, "\n");
		const char *sign = memchr(line, '=', length);

		*text = line + length + (line[length] == '\n');
		if (!sign || sign == line)
			continue;
		*label = (struct label){
			.name = line,
			.value = sign + 1,
			.name_length = (size_t)(sign - line),
			.value_length = length - (size_t)(sign - line) - 1,
		};
		return true;
	}
	return false;
}

bool label_find(const char *text, const char *name, size_t length, struct label *label)
{
	struct label one;

	while (label_next(&text, &one)) {
		if (one.name_length != length || memcmp(one.name, name, length) != 0)
			continue;
		if (label)
			*label = one;
		return true;
	}
	return false;
}

// Names are what reports can print and compare without quoting.
const char *label_wrong(const char *word)
{
	const char *sign = strchr(word, '=');

	if (!sign || sign == word)
		return "NAME=VALUE expected";
	if (sign - word > LABEL_NAME_MAX || strlen(sign + 1) > LABEL_VALUE_MAX)
		return "a name has at most 64 bytes, a value 256";
	for (const char *at = word; at < sign; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
			return "a name is letters, digits, '-', '_' and '.'";
	for (const char *at = sign; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return "a value is one line of text";
	return NULL;
}
