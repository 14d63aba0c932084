// Tables of regions, in pieces of memory.
//
// A region is 64 KiB of addresses. For example, blocks at 0x7f1200041230 and 0x7f1200041260: both
// are in region 0x7f120004, and their places in it are 0x1230 and 0x1260. In a table of 16 slots a
// place's home is its number of 16 bytes, and that number's 64th part, modulo 16: 0x123 + 4 is 7,
// and 0x126 + 4 is 10. What is side by side in the program is side by side here. The 64th part
// keeps blocks apart that are 1 KiB or 4 KiB from each other, which would all have one home.
//
// A table that is seven eighths full (roomy: five) grows, one of which an eighth is used shrinks.
// It doubles, or where memory matters grows by steps: from 1,024 slots to 1,280, 1,536 and 2,048,
// so that a region with a block in each 64 bytes does not pay for two slots each. Tables that are
// given back are kept by size, chained through their own first bytes, for the next region that
// needs one of that size, or a smaller one: then they are cut.
#include "engine/replay/blocks.h"

#include "base/mem.h"
#include "base/radix.h"

#include <string.h>

_Static_assert(sizeof(struct block) == 16, "what the header promises of memory");

enum {
	REGION_BITS = 16, // of an address, within its region
	GRANULE_BITS = 4, // blocks are 16 bytes apart at least in nearly every allocator
	GRANULES = 1 << (REGION_BITS - GRANULE_BITS),
	FOLD = 6, // granules so far apart have homes side by side, see home_of
	DIRECTORY_MIN = 16,
	SLOTS_MIN = 4,
	STEPS_MIN = 16, // from this capacity on there are steps between powers of two
	SLOTS_KEPT = 8, // tables up to here stay with a region that is empty
	SPARSE = 8,     // fewer blocks than a slot in so many: the table shrinks
	FULL = 7,       // more blocks than so many of FULL_OF slots: it grows
	FULL_ROOMY = 5,
	ROOMY_MAX = 1 << 20, // blocks, up to which memory is no matter; then not until half as many
	WHOLE_MAX = 3 << 20, // the same, up to which tables double: steps take a fifth more time
	FULL_OF = 8,
	SIZE_BITS = 64 - REGION_BITS,
	CAPACITY_MAX = 2 << REGION_BITS,
	PIECE_SLOTS_MIN = 64,
	PIECE_SLOTS_MAX = 1 << 19,  // 8 MiB
	MAPPED_SLOTS_MIN = 1 << 16, // from here on with large pages
	PAGE_SLOTS = 4096 / sizeof(struct block),
};

// A table of the most capacity, for a region with a block at each address, has a size of its own.
_Static_assert(CAPACITY_MAX < PIECE_SLOTS_MAX, "a piece has room for any table");

_Static_assert(REGION_BITS == 16, "as blocks_small and blocks_size have it");

#define REGION_MASK ((UINT64_C(1) << REGION_BITS) - 1)
#define SIZE_HUGE (UINT64_C(1) << (SIZE_BITS - 1)) // with the place in `huge`

struct blocks_region {
	uint64_t key; // the addresses' upper bits, plus 1; 0: a free place of the directory
	struct block *slots;
	uint32_t count;
	uint32_t capacity; // a power of two, three or five times one, or 0
};

// A piece of memory that tables are cut from; its head takes as much room as some slots.
struct blocks_piece {
	struct blocks_piece *before;
	size_t slots;
};

static void give_back(struct blocks_piece *piece)
{
	if (piece->slots >= MAPPED_SLOTS_MIN)
		mem_unmap(piece, piece->slots * sizeof(struct block));
	else
		mem_free(piece);
}

void blocks_fini(struct blocks *blocks)
{
	while (blocks->pieces) {
		struct blocks_piece *piece = blocks->pieces;

		blocks->pieces = piece->before;
		give_back(piece);
	}
	MEM_FREE(blocks->regions, blocks->huge);
	*blocks = (struct blocks){ 0 };
}

// ---- Tables ----

// Each piece is twice as large as the one before, up to a limit.
static void add_piece(struct blocks *blocks)
{
	enum {
		HEAD = (sizeof(struct blocks_piece) + sizeof(struct block) - 1) /
		       sizeof(struct block)
	};
	struct blocks_piece *piece;
	size_t slots = PIECE_SLOTS_MIN;

	if (blocks->pieces)
		slots = blocks->pieces->slots * 2;
	if (slots > PIECE_SLOTS_MAX)
		slots = PIECE_SLOTS_MAX;
	piece = slots >= MAPPED_SLOTS_MIN ? mem_map(slots * sizeof(struct block))
					  : mem_alloc(slots, sizeof(struct block));
	*piece = (struct blocks_piece){ blocks->pieces, slots };
	blocks->pieces = piece;
	blocks->fresh = (struct block *)piece + HEAD;
	blocks->fresh_slots = slots - HEAD;
	blocks->slots += slots;
}

// The largest capacity that a table may have, of at most so many slots: 4, 8, and 4, 5 or 6 times a
// power of two from 16 on.
static size_t capacity_within(size_t slots)
{
	unsigned part = 61 - (unsigned)__builtin_clzll(slots);
	size_t parts = slots >> part;

	ASSERT(slots >= SLOTS_MIN);
	if (slots < STEPS_MIN)
		return (size_t)4 << part;
	return (parts < 6 ? parts : 6) << part;
}

// The next one. In steps: not twice as large, or the next power of two.
static size_t capacity_after(size_t capacity, bool steps)
{
	unsigned part;

	if (capacity == 0)
		return SLOTS_MIN;
	part = 61 - (unsigned)__builtin_clzll(capacity);
	if (!steps || capacity < STEPS_MIN || capacity >> part == 6)
		return (size_t)8 << part;
	return capacity + ((size_t)1 << part);
}

// The number of a capacity, from 0.
static unsigned class_of(size_t capacity)
{
	unsigned part = 61 - (unsigned)__builtin_clzll(capacity), class;

	ASSERT(capacity == capacity_within(capacity));
	class = capacity < STEPS_MIN ? part : 3 * part - 4 + ((unsigned)(capacity >> part) - 4);
	ASSERT(class < BLOCKS_CLASSES);
	return class;
}

// The first bytes of a free table lead to the next one.
static void free_table(struct blocks *blocks, struct block *table, size_t capacity)
{
	if (capacity == 0)
		return;
	memcpy(table, &blocks->spare[class_of(capacity)], sizeof table);
	blocks->spare[class_of(capacity)] = table;
}

// Slots in a row that are no table: as few tables as they make.
static void free_slots(struct blocks *blocks, struct block *slots, size_t count)
{
	while (count >= SLOTS_MIN) {
		size_t capacity = capacity_within(count);

		free_table(blocks, slots, capacity);
		slots += capacity;
		count -= capacity;
	}
}

// One that was given back, or the first part of a larger one, whose rest is given back.
static struct block *take_spare(struct blocks *blocks, size_t capacity)
{
	size_t size = capacity;
	struct block *table;

	while (size < CAPACITY_MAX && !blocks->spare[class_of(size)])
		size = capacity_after(size, true);
	table = blocks->spare[class_of(size)];
	if (!table)
		return NULL;
	memcpy(&blocks->spare[class_of(size)], table, sizeof table);
	free_slots(blocks, table + capacity, size - capacity);
	return table;
}

// All zeros: one that was given back is cleared, fresh memory is so already.
static struct block *new_table(struct blocks *blocks, size_t capacity)
{
	struct block *table = take_spare(blocks, capacity);

	if (table) {
		memset(table, 0, capacity * sizeof *table);
		return table;
	}
	while (blocks->fresh_slots < capacity) {
		// What is left of a piece is for small tables.
		free_slots(blocks, blocks->fresh, blocks->fresh_slots);
		add_piece(blocks);
	}
	table = blocks->fresh;
	blocks->fresh += capacity;
	blocks->fresh_slots -= capacity;
	// A page that is read before it is written to is faulted in twice.
	for (size_t i = 0; i < capacity; i += PAGE_SLOTS)
		table[i].owner = 0;
	return table;
}

// ---- The directory ----

static uint64_t key_of(uint64_t address)
{
	return (address >> REGION_BITS) + 1;
}

static size_t directory_home(const struct blocks *blocks, uint64_t key)
{
	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (blocks->capacity - 1);
}

// The region, or the free place where it belongs. There is a free place.
static inline struct blocks_region *probe_directory(const struct blocks *blocks, uint64_t key)
{
	size_t mask = blocks->capacity - 1;
	size_t i = directory_home(blocks, key);

	while (blocks->regions[i].key != key && blocks->regions[i].key != 0)
		i = (i + 1) & mask;
	return &blocks->regions[i];
}

// Forget regions that are empty, and double unless that alone made room enough.
static void renew_directory(struct blocks *blocks)
{
	struct blocks old = *blocks;
	size_t used = 0;

	ASSERT((blocks->capacity & (blocks->capacity - 1)) == 0);
	for (size_t i = 0; i < old.capacity; i++)
		used += old.regions[i].count > 0;
	if (blocks->capacity == 0)
		blocks->capacity = DIRECTORY_MIN;
	else if (used * 2 > old.capacity)
		blocks->capacity *= 2;
	blocks->regions = mem_alloc(blocks->capacity, sizeof *blocks->regions);
	blocks->used = used;
	for (size_t i = 0; i < old.capacity; i++) {
		if (old.regions[i].count > 0)
			*probe_directory(blocks, old.regions[i].key) = old.regions[i];
		else
			free_table(blocks, old.regions[i].slots, old.regions[i].capacity);
	}
	mem_free(old.regions);
}

// ---- The slots of a region ----

// Neighbours have homes side by side; what is a power of two apart, as large blocks are, does not
// share one.
static inline size_t home_of(uint64_t low, size_t capacity)
{
	size_t granule = (size_t)(low >> GRANULE_BITS), place, parts;
	unsigned part;

	if (capacity > GRANULES)
		return (size_t)(low * capacity >> REGION_BITS);
	place = granule + (granule >> FOLD) + (low & ((1 << GRANULE_BITS) - 1));
	if (!(capacity & (capacity - 1)))
		return place & (capacity - 1);
	// Modulo 3 or 5 parts, each a power of two: neither takes a division.
	part = (unsigned)__builtin_ctzll(capacity);
	parts = capacity >> part == 3 ? (place >> part) % 3 : (place >> part) % 5;
	return parts << part | (place & (((size_t)1 << part) - 1));
}

static inline size_t slot_after(size_t i, size_t capacity)
{
	return i + 1 == capacity ? 0 : i + 1;
}

// How many slots after `from`, in a row that begins again at its end.
static inline size_t slots_between(size_t from, size_t i, size_t capacity)
{
	return i >= from ? i - from : i + capacity - from;
}

// The slot of a block, or the free one where it belongs. There is a free one.
static inline struct block *probe(const struct blocks_region *region, uint64_t low)
{
	size_t i = home_of(low, region->capacity);

	while (region->slots[i].owner != 0 && (region->slots[i].word & REGION_MASK) != low)
		i = slot_after(i, region->capacity);
	return &region->slots[i];
}

// Larger or smaller.
static void resize(struct blocks *blocks, struct blocks_region *region, size_t capacity)
{
	struct blocks_region old = *region;

	ASSERT(capacity > region->count);
	region->slots = new_table(blocks, capacity);
	region->capacity = (uint32_t)capacity;
	for (size_t i = 0; i < old.capacity; i++)
		if (old.slots[i].owner != 0)
			*probe(region, old.slots[i].word & REGION_MASK) = old.slots[i];
	free_table(blocks, old.slots, old.capacity);
}

void blocks_expect_region(const struct blocks *blocks, uint64_t address)
{
	if (blocks->capacity > 0)
		mem_expect(&blocks->regions[directory_home(blocks, key_of(address))]);
}

struct blocks_hint blocks_expect(const struct blocks *blocks, uint64_t address)
{
	const struct blocks_region *region;

	if (blocks->capacity == 0)
		return BLOCKS_NO_HINT;
	region = probe_directory(blocks, key_of(address));
	if (region->capacity)
		mem_expect(&region->slots[home_of(address & REGION_MASK, region->capacity)]);
	return (struct blocks_hint){ (uint32_t)(region - blocks->regions) };
}

// The region of an address, or the free place where it belongs. There is a free place. A hint may
// be old: the directory may have been renewed since. So its region counts only if the key is the
// same.
static inline struct blocks_region *region_at(const struct blocks *blocks, uint64_t address,
					      struct blocks_hint hint)
{
	uint64_t key = key_of(address);

	if (hint.region < blocks->capacity && blocks->regions[hint.region].key == key)
		return &blocks->regions[hint.region];
	return probe_directory(blocks, key);
}

// The slot of a block that is alive, and its region; or NULL.
static inline struct block *find(const struct blocks *blocks, uint64_t address,
				 struct blocks_hint hint, struct blocks_region **region)
{
	struct block *slot;

	if (blocks->count == 0)
		return NULL;
	*region = region_at(blocks, address, hint);
	if ((*region)->count == 0)
		return NULL;
	slot = probe(*region, address & REGION_MASK);
	return slot->owner != 0 ? slot : NULL;
}

struct block *blocks_find(const struct blocks *blocks, uint64_t address)
{
	struct blocks_region *region;

	return find(blocks, address, BLOCKS_NO_HINT, &region);
}

// Whether a table of this capacity has room for one block more, where memory matters.
static bool fits(const struct blocks_region *region, size_t capacity)
{
	return (region->count + 1) * FULL_OF <= (uint32_t)capacity * FULL;
}

// Memory matters from here on: a table that is too large for what is in it becomes as small as that
// allows. Those that become free are for the regions to come.
static void tighten(struct blocks *blocks, bool steps)
{
	blocks->tight = true;
	blocks->stepped = steps;
	for (size_t i = 0; i < blocks->capacity; i++) {
		struct blocks_region *region = &blocks->regions[i];
		size_t capacity = SLOTS_KEPT;

		while (!fits(region, capacity))
			capacity = capacity_after(capacity, steps);
		if (capacity < region->capacity)
			resize(blocks, region, capacity);
	}
}

// The region of an address, with room for one more block. The directory is at most three quarters
// full. A region's table doubles from 4 slots on, at five eighths; where there are 1,048,576 blocks
// or more and the table is not roomy, at seven; and from three times as many on it grows by steps.
static struct blocks_region *make_room(struct blocks *blocks, uint64_t address,
				       struct blocks_hint hint)
{
	uint64_t key = key_of(address);
	struct blocks_region *region = blocks->capacity ? region_at(blocks, address, hint) : NULL;

	if (!region || region->key == 0) {
		if ((blocks->used + 1) * 4 > blocks->capacity * 3)
			renew_directory(blocks);
		region = probe_directory(blocks, key);
		*region = (struct blocks_region){ .key = key };
		blocks->used++;
	}
	if (!blocks->tight && !blocks->roomy && blocks->count == ROOMY_MAX)
		tighten(blocks, false);
	if (!blocks->stepped && !blocks->roomy && blocks->count == WHOLE_MAX)
		tighten(blocks, true);
	if ((region->count + 1) * FULL_OF >
	    region->capacity * (uint32_t)(blocks->tight ? FULL : FULL_ROOMY))
		resize(blocks, region, capacity_after(region->capacity, blocks->stepped));
	return region;
}

struct block *blocks_put_at(struct blocks *blocks, uint64_t address, struct blocks_hint hint,
			    bool *added)
{
	struct blocks_region *region = make_room(blocks, address, hint);
	struct block *slot = probe(region, address & REGION_MASK);

	*added = slot->owner == 0;
	if (*added) {
		slot->word = address & REGION_MASK;
		region->count++;
		blocks->count++;
	}
	return slot;
}

// The gap is closed by moving up what would not be found past it: slots follow their home in a row
// without free ones. For example homes 3, 3, 4 in slots 3, 4, 5: when slot 3 is freed, slot 4 moves
// to 3 (its home), then slot 5 to 4 (its home); a block in slot 6 with home 6 stays.
static void remove_slot(struct blocks *blocks, struct blocks_region *region, struct block *slot)
{
	size_t capacity = region->capacity;
	size_t gap = (size_t)(slot - region->slots);

	for (size_t i = slot_after(gap, capacity); region->slots[i].owner != 0;
	     i = slot_after(i, capacity)) {
		size_t wanted = home_of(region->slots[i].word & REGION_MASK, capacity);

		// It may move into the gap only if that is not before its home.
		if (slots_between(wanted, i, capacity) < slots_between(gap, i, capacity))
			continue;
		region->slots[gap] = region->slots[i];
		gap = i;
	}
	region->slots[gap].owner = 0;
	region->count--;
	if (region->capacity <= SLOTS_KEPT || region->count >= region->capacity / SPARSE)
		return;
	if (region->count > 0) {
		resize(blocks, region, capacity_within(capacity / 2));
		return;
	}
	free_table(blocks, region->slots, region->capacity);
	*region = (struct blocks_region){ .key = region->key };
}

bool blocks_take_at(struct blocks *blocks, uint64_t address, struct blocks_hint hint,
		    struct block *block)
{
	struct blocks_region *region;
	struct block *slot = find(blocks, address, hint, &region);

	if (!slot)
		return false;
	*block = *slot;
	remove_slot(blocks, region, slot);
	if (--blocks->count < ROOMY_MAX / 2)
		blocks->tight = false;
	if (blocks->count < WHOLE_MAX / 2)
		blocks->stepped = false;
	return true;
}

struct block *blocks_put(struct blocks *blocks, uint64_t address, bool *added)
{
	return blocks_put_at(blocks, address, BLOCKS_NO_HINT, added);
}

bool blocks_take(struct blocks *blocks, uint64_t address, struct block *block, uint64_t *size)
{
	if (!blocks_take_at(blocks, address, BLOCKS_NO_HINT, block))
		return false;
	*size = blocks_size(blocks, block);
	return true;
}

void blocks_set_size(struct blocks *blocks, struct block *block, uint64_t size)
{
	if (size >= SIZE_HUGE) {
		// No real block is so large: what an untrue trace says is kept as it is.
		MEM_ROOM(blocks->huge, blocks->huge_capacity, blocks->huge_count + 1);
		blocks->huge[blocks->huge_count] = size;
		size = SIZE_HUGE + blocks->huge_count++;
	}
	block->word = (block->word & REGION_MASK) | size << REGION_BITS;
}

// The regions that have blocks, by address; the value of each is its place in the directory. The
// caller frees it.
static struct radix_pair *list_regions(const struct blocks *blocks, size_t *count)
{
	struct radix_pair *list = mem_alloc(blocks->used + 1, sizeof *list), *scratch;

	*count = 0;
	for (size_t i = 0; i < blocks->capacity; i++)
		if (blocks->regions[i].count > 0)
			list[(*count)++] = (struct radix_pair){ blocks->regions[i].key, i };
	ASSERT(*count <= blocks->used);
	scratch = mem_alloc(*count + 1, sizeof *scratch);
	radix_sort_pairs(list, scratch, *count);
	mem_free(scratch);
	return list;
}

// The slots of a region that are used, each with where in the region its block begins above it:
// place << 32 | slot.
static void list_slots(const struct blocks_region *region, uint64_t *list)
{
	size_t count = 0;

	for (uint32_t i = 0; i < region->capacity; i++)
		if (region->slots[i].owner != 0)
			list[count++] = (region->slots[i].word & REGION_MASK) << 32 | i;
	ASSERT(count == region->count);
}

// Region by region, in the order of addresses if `sorted`: a region has few blocks, so that sorting
// them costs little at a time.
void blocks_each(const struct blocks *blocks, bool sorted,
		 void (*each)(void *context, const struct block *block, uint64_t address),
		 void *context)
{
	size_t count;
	struct radix_pair *regions = list_regions(blocks, &count);
	uint64_t *slots = NULL, *scratch = NULL;
	size_t slots_capacity = 0, scratch_capacity = 0;

	ASSERT(each);
	for (size_t i = 0; i < count; i++) {
		const struct blocks_region *region = &blocks->regions[regions[i].value];
		uint64_t base = (region->key - 1) << REGION_BITS;

		MEM_ROOM(slots, slots_capacity, region->count);
		MEM_ROOM(scratch, scratch_capacity, region->count);
		list_slots(region, slots);
		if (sorted)
			radix_sort(slots, scratch, region->count, 32);
		for (uint32_t j = 0; j < region->count; j++)
			each(context, &region->slots[(uint32_t)slots[j]], base | slots[j] >> 32);
	}
	MEM_FREE(regions, slots, scratch);
}

// In the order in which they are in memory, which is none.
const struct block *blocks_next(const struct blocks *blocks, struct blocks_cursor *cursor)
{
	for (; cursor->region < blocks->capacity; cursor->region++, cursor->slot = 0) {
		const struct blocks_region *region = &blocks->regions[cursor->region];

		while (cursor->slot < region->capacity) {
			const struct block *slot = &region->slots[cursor->slot++];

			if (slot->owner == 0)
				continue;
			cursor->address = (region->key - 1) << REGION_BITS |
					  (slot->word & REGION_MASK);
			return slot;
		}
	}
	return NULL;
}
