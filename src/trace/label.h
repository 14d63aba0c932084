// label: what the user said of a run: its version, its host, anything (record --label NAME=VALUE).
//
// Labels are a text, a line "NAME=VALUE" each. What is no such line is stepped over.
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum { LABEL_NAME_MAX = 64, LABEL_VALUE_MAX = 256 };

struct label {
	const char *name, *value; // borrowed from the text; neither ends with a NUL
	size_t name_length, value_length;
};

// The next one, and *text is what follows it. NULL is a text without any.
bool label_next(const char **text, struct label *label);

// The first one of this name, into `label` if that is not NULL. False: there is none, and `label`
// is as it was.
bool label_find(const char *text, const char *name, size_t length, struct label *label);

// Append the labels of several texts, with all values that each has, each once: "host=web1, web2,
// none", where a text without it has the value "none". Those that have no room are "…". True: there
// is one whose values differ.
bool label_join(const char *const *texts, size_t count, struct str *labels);

// Whether "NAME=VALUE" can be one: a name of letters, digits, '-', '_' and '.', a value without
// line ends. NULL: it can. Else what is wrong.
const char *label_wrong(const char *word);
