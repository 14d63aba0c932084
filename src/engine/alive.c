#include "engine/alive.h"

#include "base/mem.h"

enum { CAPACITY_MIN = 16, LARGE = 1 << 12 };

void alive_fini(struct alive *alive)
{
	for (unsigned i = 0; i < ALIVE_TABLES; i++)
		mem_free(alive->tables[i].slots);
	*alive = (struct alive){ 0 };
}

static size_t home(const struct alive_table *table, uint64_t key)
{
	return alive_home(alive_hash(key), table->capacity);
}

static size_t behind(const struct alive_table *table, size_t at)
{
	return at + 1 == table->capacity ? 0 : at + 1;
}

// Slots from one to another, going up and around.
static size_t distance(const struct alive_table *table, size_t from, size_t to)
{
	return to >= from ? to - from : to + table->capacity - from;
}

// Where the key is, or would be put. There is a free slot.
static struct alive_slot *probe(const struct alive_table *table, uint64_t key)
{
	size_t i = home(table, key);

	while (table->slots[i].key != key && table->slots[i].key != 0)
		i = behind(table, i);
	return &table->slots[i];
}

struct alive_slot *alive_find(struct alive_table *table, uint64_t key)
{
	struct alive_slot *slot;

	if (table->count == 0)
		return NULL;
	slot = probe(table, key);
	return slot->key == key ? slot : NULL;
}

bool alive_is_full(const struct alive_table *table)
{
	return (table->count + 1) * 4 > table->capacity * 3;
}

void alive_reserve(struct alive_table *table, size_t count)
{
	mem_free(table->slots);
	*table = (struct alive_table){ .capacity = count + count / 2 + CAPACITY_MIN };
	table->slots = mem_alloc_table(table->capacity, sizeof *table->slots);
}

static void grow(struct alive_table *table)
{
	struct alive_table bigger = { .capacity = table->capacity, .count = table->count };

	// What is free in a large table is memory that others want.
	bigger.capacity += bigger.capacity < LARGE ? bigger.capacity : bigger.capacity / 8;
	if (bigger.capacity == 0)
		bigger.capacity = CAPACITY_MIN;
	bigger.slots = mem_alloc_table(bigger.capacity, sizeof *bigger.slots);
	for (size_t from = 0; from < table->capacity; from++) {
		const struct alive_slot *slot = &table->slots[from];

		if (slot->key)
			*probe(&bigger, slot->key) = *slot;
	}
	mem_free(table->slots);
	*table = bigger;
}

struct alive_slot *alive_put(struct alive_table *table, uint64_t key, bool *added)
{
	struct alive_slot *slot = table->capacity ? probe(table, key) : NULL;

	*added = !slot || slot->key == 0;
	if (!*added)
		return slot;
	if (alive_is_full(table)) {
		grow(table);
		slot = probe(table, key);
	}
	*slot = (struct alive_slot){ .key = key };
	table->count++;
	return slot;
}

void alive_remove(struct alive_table *table, struct alive_slot *slot)
{
	size_t hole = (size_t)(slot - table->slots);

	// Move up what would not be found any more, so that no gap lies before it.
	for (size_t i = behind(table, hole); table->slots[i].key != 0; i = behind(table, i)) {
		size_t wants = home(table, table->slots[i].key);

		if (distance(table, wants, i) >= distance(table, hole, i)) {
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
		__builtin_prefetch(&table->slots[alive_home(hash, table->capacity)], 1);
}

uint64_t alive_bytes(const struct alive *alive)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < ALIVE_TABLES; i++)
		bytes += alive->tables[i].capacity * sizeof(struct alive_slot);
	return bytes;
}
