// Two dictionaries, and entries that never move.
//
// A cell is packed into one word: 28 bits of its site, 35 of its size. Site 5 and 64 bytes are 64
// << 28 | 5 = 0x400000005. A size of 2^35 bytes (32 GiB) or more is in a table of its own: the word
// has the size's place there, and bit 35 above the site's bits says so.
//
// A slot of a dictionary is 32 bits: the entry's number in the lower 28, and four bits of its hash
// above, so that of 16 slots that are not the one, 15 are passed over without looking at the entry.
//
// Most questions are asked again and again about one stack: first_of_stack has the site that a
// stack had last, and each site the cell that it had last. Only where both are others is a hash
// computed.
#include "engine/index/cells.h"

#include <pthread.h>

_Static_assert(sizeof(struct cells_site) == 24, "what the header promises of memory");
_Static_assert(CELLS_SEGMENTS == CELLS_MAX >> CELLS_SEGMENT_LOG2,
	       "a segment for each number there may be");
_Static_assert(CELLS_MAX == 1 << CELLS_SITE_BITS, "a packed cell has room for any site");

enum { SEGMENT = 1 << CELLS_SEGMENT_LOG2, SLOTS_MIN = 1 << 10 };

// The order of loaded cells, made when it is first asked for.
struct cells_kept {
	pthread_mutex_t lock;
	struct cells_order order;
};

static void *new_segment(const struct cells *cells, size_t size_bytes)
{
	return cells->large_pages ? mem_alloc_table(SEGMENT, size_bytes)
				  : mem_alloc(SEGMENT, size_bytes);
}

void cells_init(struct cells *cells, bool large_pages)
{
	*cells = (struct cells){ .large_pages = large_pages };
	cells->sites = mem_alloc(CELLS_SEGMENTS, sizeof *cells->sites);
	cells->cells = mem_alloc(CELLS_SEGMENTS, sizeof *cells->cells);
	cells->large = mem_alloc(CELLS_SEGMENTS, sizeof *cells->large);
	cells->sites[0] = new_segment(cells, sizeof **cells->sites);
	cells->cells[0] = new_segment(cells, sizeof **cells->cells);
	cells->sites_count = cells->cells_count = 1;
	cells->site_slots_count = cells->cell_slots_count = SLOTS_MIN;
	cells->site_slots = mem_alloc(SLOTS_MIN, sizeof *cells->site_slots);
	cells->cell_slots = mem_alloc(SLOTS_MIN, sizeof *cells->cell_slots);
}

void cells_drop(struct cells *cells)
{
	MEM_FREE(cells->first_of_stack, cells->site_slots, cells->cell_slots);
	cells->first_of_stack = cells->site_slots = cells->cell_slots = NULL;
	cells->stacks_capacity = cells->site_slots_count = cells->cell_slots_count = 0;
}

void cells_fini(struct cells *cells)
{
	cells_drop(cells);
	for (size_t i = 0; cells->sites && i < CELLS_SEGMENTS; i++) {
		MEM_FREE(cells->sites[i], cells->cells[i], cells->large[i]);
	}
	if (cells->kept) {
		pthread_mutex_destroy(&cells->kept->lock);
		MEM_FREE(cells->kept->order.cells, cells->kept->order.first, cells->kept);
	}
	MEM_FREE(cells->sites, cells->cells, cells->large);
	*cells = (struct cells){ 0 };
}

// A multiplication alone would leave the high bits of a stack out of the low bits of the result.
static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint64_t hash_site(const struct cells_site *site)
{
	uint64_t hash = mix(0, (uint64_t)site->process << 32 | site->thread);

	hash = mix(hash, (uint64_t)site->stack << 32 | site->heap);
	return mix(hash, site->orphans);
}

static uint64_t hash_cell(uint32_t site, uint64_t size)
{
	return mix(mix(0, size), site);
}

static bool same_site(const struct cells_site *a, const struct cells_site *b)
{
	return a->stack == b->stack && a->process == b->process && a->thread == b->thread &&
	       a->heap == b->heap && a->orphans == b->orphans;
}

// The slot of a hash among `count`. The upper half of a product, in place of a remainder: the
// table's size need not be a power of two, and nothing is divided. Hash 0x80000000 among 1,000
// slots is slot 500.
static size_t home(uint64_t hash, size_t count)
{
	return (hash & UINT32_MAX) * count >> 32;
}

static size_t behind(size_t at, size_t count)
{
	return at + 1 == count ? 0 : at + 1;
}

// A slot has the number of an entry and, above it, bits of its hash, so that an entry that is not
// the one is rarely looked at: it lies anywhere.
enum { SLOT_BITS = 28 };

static uint32_t slot_of(uint64_t hash, uint32_t id)
{
	return (uint32_t)(hash >> 60) << SLOT_BITS | id;
}

static uint32_t slot_id(uint32_t slot)
{
	return slot & ((1u << SLOT_BITS) - 1);
}

static bool slot_may_be(uint32_t slot, uint64_t hash)
{
	return slot >> SLOT_BITS == hash >> 60;
}

static void put_slot(uint32_t *slots, size_t count, uint64_t hash, uint32_t id)
{
	size_t at = home(hash, count);

	while (slots[at])
		at = behind(at, count);
	slots[at] = slot_of(hash, id);
}

// Three quarters full at most. Large tables grow in small steps: what is free in them is memory
// that others want.
static bool is_full(uint32_t count, size_t slots)
{
	return count * (uint64_t)4 >= slots * (uint64_t)3;
}

static size_t larger(size_t slots)
{
	enum { LARGE = 1 << 20 };

	return slots < LARGE ? slots * 2 : slots + slots / 4;
}

// Slots have four bits of the hash alone, so hashes are computed again from the entries.
static void grow_site_slots(struct cells *cells)
{
	mem_free(cells->site_slots);
	cells->site_slots_count = larger(cells->site_slots_count);
	cells->site_slots = mem_alloc_table(cells->site_slots_count, sizeof *cells->site_slots);
	for (uint32_t id = 1; id < cells->sites_count; id++)
		put_slot(cells->site_slots, cells->site_slots_count,
			 hash_site(cells_site(cells, id)), id);
}

static void grow_cell_slots(struct cells *cells)
{
	mem_free(cells->cell_slots);
	cells->cell_slots_count = larger(cells->cell_slots_count);
	cells->cell_slots = mem_alloc_table(cells->cell_slots_count, sizeof *cells->cell_slots);
	for (uint32_t id = 1; id < cells->cells_count; id++) {
		struct cells_cell cell = cells_cell(cells, id);

		put_slot(cells->cell_slots, cells->cell_slots_count,
			 hash_cell(cell.site, cell.size), id);
	}
}

static uint32_t *first_of(struct cells *cells, stack_id stack)
{
	if (stack < cells->stacks_capacity)
		return &cells->first_of_stack[stack];
	return MEM_REACH(cells->first_of_stack, cells->stacks_capacity, stack);
}

// Set once and never taken back, and read by another thread while this one adds
// (cells_of_one_process).
static void note_process(struct cells *cells, const struct cells_site *site)
{
	if (site->process != cells_site(cells, 1)->process)
		atomic_store_explicit(&cells->mixed, true, memory_order_relaxed);
}

// Most stacks have one site alone: the first one of a stack is looked at before the table is
// searched. 0: there are too many.
uint32_t cells_add_site(struct cells *cells, const struct cells_site *site)
{
	uint32_t *first = first_of(cells, site->stack);
	uint64_t hash;
	uint32_t id;
	size_t at;

	if (*first && same_site(cells_site(cells, *first), site))
		return *first;
	if (is_full(cells->sites_count, cells->site_slots_count))
		grow_site_slots(cells);
	hash = hash_site(site);
	at = home(hash, cells->site_slots_count);
	while (cells->site_slots[at]) {
		id = slot_id(cells->site_slots[at]);
		if (slot_may_be(cells->site_slots[at], hash) &&
		    same_site(cells_site(cells, id), site))
			return id;
		at = behind(at, cells->site_slots_count);
	}
	if (cells->sites_count >= CELLS_MAX)
		return 0;
	id = cells->sites_count++;
	if (!cells->sites[id >> CELLS_SEGMENT_LOG2])
		cells->sites[id >> CELLS_SEGMENT_LOG2] = new_segment(cells, sizeof **cells->sites);
	*cells_site(cells, id) = *site;
	note_process(cells, site);
	cells->site_slots[at] = slot_of(hash, id);
	if (!*first)
		*first = id;
	return id;
}

// Size and site in one word. A size that does not fit is in a list of large ones, and the word says
// its place there.
static void put_cell(struct cells *cells, uint32_t id, const struct cells_cell *cell)
{
	uint64_t size = cell->size;

	if (!cells->cells[id >> CELLS_SEGMENT_LOG2])
		cells->cells[id >> CELLS_SEGMENT_LOG2] = new_segment(cells, sizeof **cells->cells);
	if (size >> CELLS_SIZE_BITS) {
		uint32_t at = cells->large_count++;
		uint64_t **segment = &cells->large[at >> CELLS_SEGMENT_LOG2];

		if (!*segment)
			*segment = mem_alloc(SEGMENT, sizeof **segment);
		(*segment)[at & (SEGMENT - 1)] = size;
		size = UINT64_C(1) << CELLS_SIZE_BITS | at;
	}
	*cells_packed(cells, id) = size << CELLS_SITE_BITS | cell->site;
}

// 0: there are CELLS_MAX of them, and this one is counted with those that are not known.
uint32_t cells_add_cell(struct cells *cells, uint32_t site, uint64_t size)
{
	struct cells_site *entry = cells_site(cells, site);
	uint32_t id = entry->last;
	uint64_t hash;
	size_t at;

	ASSERT(site < cells->sites_count);
	if (id && cells_cell(cells, id).size == size)
		return id;
	if (is_full(cells->cells_count, cells->cell_slots_count))
		grow_cell_slots(cells);
	hash = hash_cell(site, size);
	at = home(hash, cells->cell_slots_count);
	for (; cells->cell_slots[at]; at = behind(at, cells->cell_slots_count)) {
		struct cells_cell cell;

		if (!slot_may_be(cells->cell_slots[at], hash))
			continue;
		id = slot_id(cells->cell_slots[at]);
		cell = cells_cell(cells, id);
		if (cell.site == site && cell.size == size) {
			entry->last = id;
			return id;
		}
	}
	if (cells->cells_count >= CELLS_MAX)
		return 0;
	id = cells->cells_count++;
	put_cell(cells, id, &(struct cells_cell){ .size = size, .site = site });
	cells->cell_slots[at] = slot_of(hash, id);
	entry->last = id;
	return id;
}

void cells_expect_stack(const struct cells *cells, stack_id stack)
{
	if (stack < cells->stacks_capacity)
		mem_expect(&cells->first_of_stack[stack]);
}

static uint32_t first_site(const struct cells *cells, stack_id stack)
{
	return stack < cells->stacks_capacity ? cells->first_of_stack[stack] : 0;
}

void cells_expect_site(const struct cells *cells, stack_id stack)
{
	mem_expect(cells_site(cells, first_site(cells, stack)));
}

void cells_expect_slot(const struct cells *cells, stack_id stack, uint64_t size)
{
	uint32_t site = first_site(cells, stack);

	cells_expect(cells, cells_site(cells, site)->last);
	mem_expect(&cells->cell_slots[home(hash_cell(site, size), cells->cell_slots_count)]);
}

void cells_expect_cell(const struct cells *cells, stack_id stack, uint64_t size)
{
	uint64_t hash = hash_cell(first_site(cells, stack), size);
	size_t at = home(hash, cells->cell_slots_count);

	while (cells->cell_slots[at] && !slot_may_be(cells->cell_slots[at], hash))
		at = behind(at, cells->cell_slots_count);
	cells_expect(cells, slot_id(cells->cell_slots[at]));
}

void cells_load_site(struct cells *cells, uint32_t id, const struct cells_site *site)
{
	ASSERT(id < CELLS_MAX);
	if (!cells->sites[id >> CELLS_SEGMENT_LOG2])
		cells->sites[id >> CELLS_SEGMENT_LOG2] = new_segment(cells, sizeof **cells->sites);
	*cells_site(cells, id) = *site;
	cells->sites_count = id + 1;
	cells->orphans |= site->orphans;
	if (id > 0)
		note_process(cells, site);
}

// A site was added when its first cell was, so where numbers of sites rise, that cell is the first.
void cells_load_cell(struct cells *cells, uint32_t id, const struct cells_cell *cell)
{
	ASSERT(id < CELLS_MAX);
	put_cell(cells, id, cell);
	cells->cells_count = id + 1;
	if (cell->site <= cells->highest)
		return;
	cells->highest = cell->site;
	cells->firsts++;
	cells_site(cells, cell->site)->last = id;
}

// Sites that were met in another order are looked for.
void cells_loaded(struct cells *cells)
{
	enum { AHEAD = 32 };

	for (uint32_t id = 0; cells->firsts + 1 < cells->sites_count && id < cells->cells_count;
	     id++) {
		struct cells_site *site = cells_site(cells, cells_cell(cells, id).site);

		if (id + AHEAD < cells->cells_count)
			mem_expect(cells_site(cells, cells_cell(cells, id + AHEAD).site));
		if (!site->last)
			site->last = id;
	}
	ASSERT(!cells->kept);
	cells->kept = mem_alloc(1, sizeof *cells->kept);
	pthread_mutex_init(&cells->kept->lock, NULL);
}

uint64_t cells_bytes(const struct cells *cells)
{
	return cells->sites_count * (uint64_t)sizeof(struct cells_site) +
	       cells->cells_count * (uint64_t)sizeof(uint64_t) +
	       (cells->site_slots_count + cells->cell_slots_count + cells->stacks_capacity) *
		       (uint64_t)sizeof(uint32_t);
}

// A counting sort. Say cells 1 and 3 are site 1's and cell 2 is site 2's; cell 0 is site 0's.
// `ends` is { 1, 2, 1 } when they are counted, { 0, 1, 3 } when it has the beginnings, and { 1,
// 3, 4 } when all were put: order->cells is { 0, 1, 3, 2 }, and order->first { 0, 1, 3, 4 }.
static void make_order(struct cells_order *order, const struct cells *cells)
{
	uint64_t number_mask = (UINT64_C(1) << CELLS_SITE_BITS) - 1;
	uint32_t *ends, before = 0;

	order->cells = mem_resize(NULL, cells->cells_count, sizeof *order->cells);
	order->first = mem_alloc(cells->sites_count + (size_t)1, sizeof *order->first);
	// Of each site first how many it has, then where they begin, and in the end where they end.
	ends = order->first + 1;
	for (uint32_t id = 0; id < cells->cells_count; id++)
		ends[cells_packed_number(*cells_packed(cells, id))]++;
	for (uint32_t site = 0; site < cells->sites_count; site++) {
		uint32_t count = ends[site];

		ends[site] = before;
		before += count;
	}
	for (uint32_t id = 0; id < cells->cells_count; id++) {
		uint64_t packed = *cells_packed(cells, id);

		order->cells[ends[cells_packed_number(packed)]++] = (packed & ~number_mask) | id;
	}
}

const struct cells_order *cells_order(const struct cells *cells)
{
	struct cells_kept *kept = cells->kept;

	ASSERT(kept);
	pthread_mutex_lock(&kept->lock);
	if (!kept->order.cells)
		make_order(&kept->order, cells);
	pthread_mutex_unlock(&kept->lock);
	return &kept->order;
}
