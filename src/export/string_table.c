// A text is copied when it comes first, and found again by its hash (index_set.h): of a million
// frames in ten thousand functions ten thousand texts are kept.
#include "export/string_table.h"

#include "base/mem.h"

#include <string.h>

static bool is_text(const void *context, uint32_t position, const void *key)
{
	const struct string_table *table = context;

	ASSERT(position < table->count);
	return strcmp(table->texts[position], key) == 0;
}

uint32_t string_table_add(struct string_table *table, const char *text)
{
	const char *wanted = text ? text : "";
	uint32_t number = index_set_put(&table->numbers, index_set_hash_text(wanted), is_text,
					table, wanted, (uint32_t)table->count);

	ASSERT(number <= table->count);
	if (number == table->count) {
		*MEM_ADD(table->texts, table->count, table->capacity) = mem_copy_text(wanted);
	}
	return number;
}

void string_table_fini(struct string_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		mem_free(table->texts[i]);
	mem_free(table->texts);
	index_set_fini(&table->numbers);
	*table = (struct string_table){ 0 };
}
