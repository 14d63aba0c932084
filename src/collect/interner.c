#include "collect/interner.h"

#include "base/mem.h"
#include "wire/compiler.h"

#include <string.h>

enum { BITS_FIRST = 12 };

static void set_capacity(struct interner *interner, unsigned bits)
{
	interner->capacity = (size_t)1 << bits;
	interner->shift = 32 - bits;
	interner->slots = mem_map(interner->capacity * sizeof *interner->slots);
}

void interner_init(struct interner *interner, struct writer *writer)
{
	memset(interner, 0, sizeof *interner);
	interner->writer = writer;
	set_capacity(interner, BITS_FIRST);
}

void interner_fini(struct interner *interner)
{
	mem_unmap(interner->slots, interner->capacity * sizeof *interner->slots);
	memset(interner, 0, sizeof *interner);
}

// Twice the places.
static COLD void grow(struct interner *interner)
{
	struct interner_slot *old = interner->slots;
	size_t old_capacity = interner->capacity;
	size_t mask = old_capacity * 2 - 1;

	ASSERT(interner->shift > 1);
	set_capacity(interner, 32 - interner->shift + 1);
	for (size_t i = 0; i < old_capacity; i++) {
		size_t at = interner_place(interner, old[i].hash);

		if (old[i].id == 0)
			continue;
		while (interner->slots[at].id != 0)
			at = (at + 1) & mask;
		interner->slots[at] = old[i];
	}
	mem_unmap(old, old_capacity * sizeof *old);
}

static COLD stack_id add_new(struct interner *interner, size_t at, struct interner_slot slot,
			     stack_id parent, uint8_t flags)
{
	slot.id = writer_add_stack(interner->writer, parent, (frame_id)slot.key, flags);
	interner->slots[at] = slot;
	if (++interner->count > interner->capacity / 4 * 3)
		grow(interner);
	return slot.id;
}

stack_id interner_add(struct interner *interner, stack_id parent, const struct interner_push *push,
		      uint8_t flags)
{
	uint32_t callers = parent == 0 && flags != 0 ? UINT32_MAX - flags : parent;
	const struct interner_slot slot = {
		.key = (uint64_t)callers << 32 | push->frame,
		.hash = push->hash,
	};
	size_t mask = interner->capacity - 1;

	for (size_t at = interner_place(interner, slot.hash);; at = (at + 1) & mask) {
		const struct interner_slot *here = &interner->slots[at];

		if (here->key == slot.key && here->id != 0)
			return here->id;
		if (here->id == 0)
			return add_new(interner, at, slot, parent, flags);
	}
}

size_t interner_count(const struct interner *interner)
{
	return interner->count;
}
