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

static struct label value_in(const char *text, const struct label *wanted)
{
	struct label label = { .value = "none", .value_length = 4 };

	label_find(text, wanted->name, wanted->name_length, &label);
	return label;
}

// Whether one of the texts has that value of it.
static bool has_value(const char *const *texts, size_t count, const struct label *wanted,
		      const struct label *label)
{
	for (size_t i = 0; i < count; i++) {
		struct label other = value_in(texts[i], wanted);

		if (other.value_length == label->value_length &&
		    memcmp(other.value, label->value, label->value_length) == 0)
			return true;
	}
	return false;
}

static bool join_one(const char *const *texts, size_t count, const struct label *wanted,
		     struct str *labels)
{
	bool differ = false;
	size_t begin;

	str_format(labels, "%.*s=", (int)wanted->name_length, wanted->name);
	begin = labels->length;
	for (size_t i = 0; i < count; i++) {
		struct label label = value_in(texts[i], wanted);
		bool first = labels->length == begin;

		if (has_value(texts, i, wanted, &label))
			continue;
		differ |= !first;
		if (!first && labels->length - begin + label.value_length > LABEL_VALUE_MAX) {
			str_add(labels, ", …");
			break;
		}
		str_format(labels, "%s%.*s", first ? "" : ", ", (int)label.value_length,
			   label.value);
	}
	str_add_char(labels, '\n');
	return differ;
}

bool label_join(const char *const *texts, size_t count, struct str *labels)
{
	struct label label;
	bool differ = false;

	for (size_t i = 0; i < count; i++)
		for (const char *own = texts[i]; label_next(&own, &label);)
			if (!label_find(str_get(labels), label.name, label.name_length, NULL))
				differ |= join_one(texts, count, &label, labels);
	return differ;
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
