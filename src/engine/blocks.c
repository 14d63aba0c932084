#include "engine/blocks.h"

#include "base/mem.h"

enum { CAPACITY_MIN = 64 };

void blocks_fini(struct blocks *blocks)
{
	mem_free(blocks->slots);
	*blocks = (struct blocks){ 0 };
}

// Blocks are 16 bytes apart at least in nearly every allocator, so the low bits say nothing; a
// multiplication spreads the rest and its high bits are the best ones.
static size_t home(const struct blocks *blocks, uint64_t address)
{
	uint64_t mixed = (address >> 4 ^ address << 60) * 0x9e3779b97f4a7c15u;

	return (size_t)(mixed >> 32) & (blocks->capacity - 1);
}

void blocks_expect(const struct blocks *blocks, uint64_t address)
{
	if (blocks->capacity)
		mem_expect(&blocks->slots[home(blocks, address)]);
}

struct block *blocks_find(const struct blocks *blocks, uint64_t address)
{
	size_t mask = blocks->capacity - 1;

	if (blocks->count == 0)
		return NULL;
	for (size_t i = home(blocks, address);; i = (i + 1) & mask) {
		struct block *slot = &blocks->slots[i];

		if (slot->owner == 0)
			return NULL;
		if (slot->address == address)
			return slot;
	}
}

static void grow(struct blocks *blocks)
{
	struct blocks bigger = { 0 };
	size_t mask;

	bigger.capacity = blocks->capacity == 0 ? CAPACITY_MIN : blocks->capacity * 2;
	bigger.slots = mem_alloc(bigger.capacity, sizeof *bigger.slots);
	bigger.count = blocks->count;
	mask = bigger.capacity - 1;
	for (size_t from = 0; from < blocks->capacity; from++) {
		size_t to;

		if (blocks->slots[from].owner == 0)
			continue;
		to = home(&bigger, blocks->slots[from].address);
		while (bigger.slots[to].owner != 0)
			to = (to + 1) & mask;
		bigger.slots[to] = blocks->slots[from];
	}
	mem_free(blocks->slots);
	*blocks = bigger;
}

struct block *blocks_put(struct blocks *blocks, uint64_t address, bool *added)
{
	size_t mask;

	if ((blocks->count + 1) * 4 > blocks->capacity * 3)
		grow(blocks);
	mask = blocks->capacity - 1;
	for (size_t i = home(blocks, address);; i = (i + 1) & mask) {
		struct block *slot = &blocks->slots[i];

		if (slot->owner != 0 && slot->address != address)
			continue;
		*added = slot->owner == 0;
		if (*added) {
			slot->address = address;
			blocks->count++;
		}
		return slot;
	}
}

void blocks_remove(struct blocks *blocks, struct block *block)
{
	size_t mask = blocks->capacity - 1;
	size_t gap = (size_t)(block - blocks->slots);

	ASSERT(gap < blocks->capacity && block->owner != 0);
	for (size_t i = (gap + 1) & mask; blocks->slots[i].owner != 0; i = (i + 1) & mask) {
		size_t wanted = home(blocks, blocks->slots[i].address);

		// It may move into the gap only if that is not before its home.
		if (((i - wanted) & mask) < ((i - gap) & mask))
			continue;
		blocks->slots[gap] = blocks->slots[i];
		gap = i;
	}
	blocks->slots[gap].owner = 0;
	blocks->count--;
}

const struct block *blocks_next(const struct blocks *blocks, size_t *at)
{
	while (*at < blocks->capacity) {
		const struct block *slot = &blocks->slots[(*at)++];

		if (slot->owner != 0)
			return slot;
	}
	return NULL;
}
