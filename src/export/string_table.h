// string_table: texts by number, each once, from 0 in the order in which they were first asked for.
//
// For example "main", "", "main" get 0, 1 and 0: a format with a table of texts writes each once,
// and numbers elsewhere. Nothing is removed. One thread.
#pragma once

#include "base/index_set.h"

// `= { 0 }` is an empty one.
struct string_table {
	char **texts; // owned
	size_t count, capacity;
	struct index_set numbers; // private
};

// NULL is taken for "".
uint32_t string_table_add(struct string_table *table, const char *text);
// Texts and their numbers are gone.
void string_table_fini(struct string_table *table); // accepts { 0 }
