// string_table: texts by number, each once, from 0 in the order in which they were first asked for.
#pragma once

#include "base/index_set.h"

struct string_table {
	char **texts; // owned
	size_t count, capacity;
	struct index_set numbers; // private
};

// NULL is taken for "".
uint32_t string_table_add(struct string_table *table, const char *text);
void string_table_fini(struct string_table *table); // accepts { 0 }
