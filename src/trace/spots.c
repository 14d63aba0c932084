// A slot is one word, so that eight are in a line of the cache: for example the third address that
// is met, 0x7f12345678a0, is in the slot 0x7f12345678a00002. All slots are cleared with each block
// of events, half a nanosecond an event; a number of the block in each would take as long to
// compare.
#include "trace/spots.h"

#include <string.h>

enum { BITS_MIN = 12, BITS_MAX = 17 };

_Static_assert((SPOTS_MAX >> (64 - SPOTS_ADDRESS_BITS)) == 1, "a spot fits beside its address");
_Static_assert(SPOTS_MAX < (1 << BITS_MAX) / 4 * 3, "at the largest there is always a free slot");

void spots_fini(struct spots *spots)
{
	mem_free(spots->slots);
	map_fini(&spots->wide);
	*spots = (struct spots){ 0 };
}

static void resize(struct spots *spots, unsigned bits)
{
	ASSERT(bits >= BITS_MIN && bits <= BITS_MAX);
	if (bits > spots->room) {
		mem_free(spots->slots);
		spots->slots = mem_alloc((size_t)1 << bits, sizeof *spots->slots);
		spots->room = bits;
	}
	spots->bits = bits;
}

// As many slots as the last block would have liked: twice its spots, or more.
void spots_begin(struct spots *spots)
{
	unsigned bits = BITS_MIN;

	while (bits < BITS_MAX && (UINT32_C(1) << bits) / 2 < spots->count)
		bits++;
	resize(spots, bits);
	memset(spots->slots, 0, sizeof *spots->slots << bits);
	spots->count = 0;
	if (spots->wide.count > 0)
		map_clear(&spots->wide);
}

// Twice as many slots; each key in the first free one from its home on.
static void grow(struct spots *spots)
{
	size_t count = (size_t)1 << spots->bits;
	uint64_t *old = mem_alloc(count, sizeof *old);
	size_t mask = 2 * count - 1;

	memcpy(old, spots->slots, count * sizeof *old);
	resize(spots, spots->bits + 1);
	memset(spots->slots, 0, 2 * count * sizeof *old);
	for (size_t i = 0; i < count; i++) {
		size_t at = spots_home(spots, old[i] >> (64 - SPOTS_ADDRESS_BITS));

		if (old[i] == 0)
			continue;
		while (spots->slots[at] != 0)
			at = (at + 1) & mask;
		spots->slots[at] = old[i];
	}
	mem_free(old);
}

uint32_t spots_add(struct spots *spots, uint64_t address, size_t at)
{
	if (spots->count == SPOTS_MAX)
		return SPOTS_NONE;
	if ((spots->count + 1) > (UINT32_C(1) << spots->bits) / 4 * 3) {
		grow(spots);
		return spots_of(spots, address);
	}
	ASSERT(spots->slots[at] == 0);
	spots->slots[at] = address << (64 - SPOTS_ADDRESS_BITS) | spots->count;
	return spots->count++;
}

uint32_t spots_of_wide(struct spots *spots, uint64_t address)
{
	uint64_t *spot = map_find(&spots->wide, address);

	if (!spot && spots->count == SPOTS_MAX)
		return SPOTS_NONE;
	if (!spot) {
		spot = map_put(&spots->wide, address, NULL);
		*spot = spots->count++;
	}
	return (uint32_t)*spot;
}
