#include "engine/alive.h"

#include "base/mem.h"

enum { CAPACITY_MIN = 16 };

void alive_fini(struct alive *alive)
{
	for (unsigned i = 0; i < ALIVE_TABLES; i++)
		mem_free(alive->tables[i].slots);
	*alive = (struct alive){ 0 };
}

static size_t home(const struct alive_table *table, uint64_t key)
{
	return (size_t)alive_hash(key) & (table->capacity - 1);
}

struct alive_slot *alive_find(struct alive_table *table, uint64_t key)
{
	size_t mask = table->capacity - 1;

	if (table->count == 0)
		return NULL;
	for (size_t i = home(table, key);; i = (i + 1) & mask) {
		if (table->slots[i].key == key)
			return &table->slots[i];
		if (table->slots[i].key == 0)
			return NULL;
	}
}

bool alive_is_full(const struct alive_table *table)
{
	return (table->count + 1) * 4 > table->capacity * 3;
}

static void grow(struct alive_table *table)
{
	struct alive_table bigger = { .capacity = table->capacity ? table->capacity * 2
								  : CAPACITY_MIN,
				      .count = table->count };

	bigger.slots = mem_alloc(bigger.capacity, sizeof *bigger.slots);
	for (size_t from = 0; from < table->capacity; from++) {
		size_t to;

		if (table->slots[from].key == 0)
			continue;
		to = home(&bigger, table->slots[from].key);
		while (bigger.slots[to].key != 0)
			to = (to + 1) & (bigger.capacity - 1);
		bigger.slots[to] = table->slots[from];
	}
	mem_free(table->slots);
	*table = bigger;
}

struct alive_slot *alive_put(struct alive_table *table, uint64_t key, bool *added)
{
	struct alive_slot *slot = alive_find(table, key);
	size_t at;

	*added = slot == NULL;
	if (slot)
		return slot;
	if (alive_is_full(table))
		grow(table);
	at = home(table, key);
	while (table->slots[at].key != 0)
		at = (at + 1) & (table->capacity - 1);
	table->slots[at] = (struct alive_slot){ .key = key };
	table->count++;
	return &table->slots[at];
}

void alive_remove(struct alive_table *table, struct alive_slot *slot)
{
	size_t mask = table->capacity - 1, hole = (size_t)(slot - table->slots);

	// Move up what would not be found any more, so that no gap lies before it.
	for (size_t i = (hole + 1) & mask; table->slots[i].key != 0; i = (i + 1) & mask) {
		size_t wants = home(table, table->slots[i].key);

		if (((i - wants) & mask) >= ((i - hole) & mask)) {
			table->slots[hole] = table->slots[i];
			hole = i;
		}
	}
	table->slots[hole].key = 0;
	table->count--;
}

void alive_expect(const struct alive *alive, uint64_t key)
{
	uint64_t hash = alive_hash(key);
	const struct alive_table *table = &alive->tables[alive_part(hash)];

	if (table->capacity)
		__builtin_prefetch(&table->slots[(size_t)hash & (table->capacity - 1)], 1);
}

uint64_t alive_bytes(const struct alive *alive)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < ALIVE_TABLES; i++)
		bytes += alive->tables[i].capacity * sizeof(struct alive_slot);
	return bytes;
}
