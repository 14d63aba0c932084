#include "engine/cells.h"

#include "base/mem.h"

#include <string.h>

enum { SEGMENT = 1 << CELLS_SEGMENT_LOG2, SLOTS_MIN = 1 << 10 };

void cells_init(struct cells *cells)
{
	*cells = (struct cells){ 0 };
	cells->sites = mem_alloc(CELLS_SEGMENTS, sizeof *cells->sites);
	cells->cells = mem_alloc(CELLS_SEGMENTS, sizeof *cells->cells);
	cells->sites[0] = mem_alloc(SEGMENT, sizeof **cells->sites);
	cells->cells[0] = mem_alloc(SEGMENT, sizeof **cells->cells);
	cells->sites_count = cells->cells_count = 1;
	cells->site_slots_count = cells->cell_slots_count = SLOTS_MIN;
	cells->site_slots = mem_alloc(SLOTS_MIN, sizeof *cells->site_slots);
	cells->cell_slots = mem_alloc(SLOTS_MIN, sizeof *cells->cell_slots);
}

void cells_drop(struct cells *cells)
{
	mem_free(cells->first_of_stack);
	mem_free(cells->site_slots);
	mem_free(cells->cell_slots);
	cells->first_of_stack = cells->site_slots = cells->cell_slots = NULL;
	cells->stacks_capacity = cells->site_slots_count = cells->cell_slots_count = 0;
}

void cells_fini(struct cells *cells)
{
	cells_drop(cells);
	for (size_t i = 0; cells->sites && i < CELLS_SEGMENTS; i++) {
		mem_free(cells->sites[i]);
		mem_free(cells->cells[i]);
	}
	mem_free(cells->sites);
	mem_free(cells->cells);
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

static void put_slot(uint32_t *slots, size_t count, uint64_t hash, uint32_t id)
{
	size_t at = hash & (count - 1);

	while (slots[at])
		at = (at + 1) & (count - 1);
	slots[at] = id;
}

static void grow_site_slots(struct cells *cells)
{
	mem_free(cells->site_slots);
	cells->site_slots_count *= 2;
	cells->site_slots = mem_alloc(cells->site_slots_count, sizeof *cells->site_slots);
	for (uint32_t id = 1; id < cells->sites_count; id++)
		put_slot(cells->site_slots, cells->site_slots_count,
			 hash_site(cells_site(cells, id)), id);
}

static void grow_cell_slots(struct cells *cells)
{
	mem_free(cells->cell_slots);
	cells->cell_slots_count *= 2;
	cells->cell_slots = mem_alloc(cells->cell_slots_count, sizeof *cells->cell_slots);
	for (uint32_t id = 1; id < cells->cells_count; id++) {
		const struct cells_cell *cell = cells_cell(cells, id);

		put_slot(cells->cell_slots, cells->cell_slots_count,
			 hash_cell(cell->site, cell->size), id);
	}
}

static uint32_t *first_of(struct cells *cells, stack_id stack)
{
	if (stack >= cells->stacks_capacity) {
		size_t before = cells->stacks_capacity;

		cells->first_of_stack = mem_grow(cells->first_of_stack, &cells->stacks_capacity,
						 stack + (size_t)1, sizeof *cells->first_of_stack);
		memset(cells->first_of_stack + before, 0,
		       (cells->stacks_capacity - before) * sizeof *cells->first_of_stack);
	}
	return &cells->first_of_stack[stack];
}

uint32_t cells_add_site(struct cells *cells, const struct cells_site *site)
{
	uint32_t *first = first_of(cells, site->stack);
	uint32_t id;
	size_t at;

	if (*first && same_site(cells_site(cells, *first), site))
		return *first;
	if (cells->sites_count * (uint64_t)3 >= cells->site_slots_count * (uint64_t)2)
		grow_site_slots(cells);
	at = hash_site(site) & (cells->site_slots_count - 1);
	while (cells->site_slots[at]) {
		id = cells->site_slots[at];
		if (same_site(cells_site(cells, id), site))
			return id;
		at = (at + 1) & (cells->site_slots_count - 1);
	}
	if (cells->sites_count >= CELLS_MAX)
		return 0;
	id = cells->sites_count++;
	if (!cells->sites[id >> CELLS_SEGMENT_LOG2])
		cells->sites[id >> CELLS_SEGMENT_LOG2] = mem_alloc(SEGMENT, sizeof **cells->sites);
	*cells_site(cells, id) = *site;
	cells->site_slots[at] = id;
	if (!*first)
		*first = id;
	return id;
}

uint32_t cells_add_cell(struct cells *cells, uint32_t site, uint64_t size)
{
	struct cells_site *entry = cells_site(cells, site);
	uint32_t id = entry->last;
	size_t at;

	if (id && cells_cell(cells, id)->size == size)
		return id;
	if (cells->cells_count * (uint64_t)3 >= cells->cell_slots_count * (uint64_t)2)
		grow_cell_slots(cells);
	at = hash_cell(site, size) & (cells->cell_slots_count - 1);
	while (cells->cell_slots[at]) {
		const struct cells_cell *cell = cells_cell(cells, cells->cell_slots[at]);

		if (cell->site == site && cell->size == size) {
			entry->last = cells->cell_slots[at];
			return entry->last;
		}
		at = (at + 1) & (cells->cell_slots_count - 1);
	}
	if (cells->cells_count >= CELLS_MAX)
		return 0;
	id = cells->cells_count++;
	if (!cells->cells[id >> CELLS_SEGMENT_LOG2])
		cells->cells[id >> CELLS_SEGMENT_LOG2] = mem_alloc(SEGMENT, sizeof **cells->cells);
	*cells_cell(cells, id) = (struct cells_cell){ .size = size, .site = site };
	cells->cell_slots[at] = id;
	entry->last = id;
	return id;
}

void cells_expect_stack(const struct cells *cells, stack_id stack)
{
	if (stack < cells->stacks_capacity)
		__builtin_prefetch(&cells->first_of_stack[stack]);
}

static uint32_t first_site(const struct cells *cells, stack_id stack)
{
	return stack < cells->stacks_capacity ? cells->first_of_stack[stack] : 0;
}

void cells_expect_site(const struct cells *cells, stack_id stack)
{
	__builtin_prefetch(cells_site(cells, first_site(cells, stack)));
}

void cells_expect_slot(const struct cells *cells, stack_id stack, uint64_t size)
{
	uint32_t site = first_site(cells, stack);

	__builtin_prefetch(cells_cell(cells, cells_site(cells, site)->last));
	__builtin_prefetch(
		&cells->cell_slots[hash_cell(site, size) & (cells->cell_slots_count - 1)]);
}

void cells_expect_cell(const struct cells *cells, stack_id stack, uint64_t size)
{
	uint32_t site = first_site(cells, stack);

	__builtin_prefetch(cells_cell(
		cells, cells->cell_slots[hash_cell(site, size) & (cells->cell_slots_count - 1)]));
}

void cells_load_site(struct cells *cells, uint32_t id, const struct cells_site *site)
{
	if (!cells->sites[id >> CELLS_SEGMENT_LOG2])
		cells->sites[id >> CELLS_SEGMENT_LOG2] = mem_alloc(SEGMENT, sizeof **cells->sites);
	*cells_site(cells, id) = *site;
	cells->sites_count = id + 1;
}

void cells_load_cell(struct cells *cells, uint32_t id, const struct cells_cell *cell)
{
	if (!cells->cells[id >> CELLS_SEGMENT_LOG2])
		cells->cells[id >> CELLS_SEGMENT_LOG2] = mem_alloc(SEGMENT, sizeof **cells->cells);
	*cells_cell(cells, id) = *cell;
	cells->cells_count = id + 1;
}

uint64_t cells_bytes(const struct cells *cells)
{
	return cells->sites_count * (uint64_t)sizeof(struct cells_site) +
	       cells->cells_count * (uint64_t)sizeof(struct cells_cell) +
	       (cells->site_slots_count + cells->cell_slots_count + cells->stacks_capacity) *
		       (uint64_t)sizeof(uint32_t);
}
