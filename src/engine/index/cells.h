// cells: what allocations have in common, each kind of them known by a number.
//
// A *site* is process, thread, stack and heap; a *cell* is a site and a size. Numbers are dense,
// in order of first sight; 0 of either is none. Real programs have one or two cells to a stack.
//
// Entries never move, so one thread may add while another reads those it knows of. Adding
// needs dictionaries (cells_drop frees them); reading does not. 8 bytes a cell and 24 a site,
// and about 6 more of each while adding.
//
// For example, a program with 12,000 stacks, one process and 8 threads may have 30,000 sites, as
// most stacks are one thread's, and 75,000 cells, as most allocate two or three sizes. 24 bytes a
// site and 8 a cell are 1.3 MB: small enough to be in memory whatever the length of the
// recording.
#pragma once

#include "base/map.h"
#include "base/mem.h"
#include "engine/window.h"

#include <stdatomic.h>

// What a site is known by. `process` to `heap` are the trace's ids; of orphans (frees of addresses
// where nothing was known to live) `thread` is the one that freed, and there is no stack.
struct cells_site {
	process_id process;
	thread_id thread;
	stack_id stack;
	heap_id heap;
	uint32_t last;   // private: the cell that was asked for last; of loaded ones, the first
	uint8_t orphans; // 1: of frees, not of allocations
};

// Made from a packed one by cells_cell, not kept as this. `size` is in bytes, as asked for.
struct cells_cell {
	uint64_t size;
	uint32_t site;
};

enum {
	CELLS_SEGMENT_LOG2 = 20, // large enough for large pages
	CELLS_SEGMENTS = 1 << 8, // 2^28 entries at most
	CELLS_MAX = 1 << 28,
	CELLS_SITE_BITS = 28, // of a packed cell, the lowest; above is its size
	CELLS_SIZE_BITS = 35, // larger sizes are in a table of their own, their place here
};

struct cells {
	struct cells_site **sites; // segments; use cells_site and cells_cell
	uint64_t **cells;          // packed
	uint64_t **large;          // sizes of CELLS_SIZE_BITS and more
	uint32_t large_count;
	uint32_t sites_count, cells_count; // with the unused 0
	bool large_pages;                  // for them: may take some MiB more
	atomic_bool mixed;                 // sites are of several processes
	bool orphans;                      // of loaded ones: some site is of frees
	uint32_t highest, firsts;          // while loading: site of a cell; sites met in order
	struct cells_kept *kept;           // of loaded ones; see cells_order

	// Dictionaries, while adding.
	uint32_t *first_of_stack; // by stack: the site that was added first; 0: none
	size_t stacks_capacity;
	// Open addressing: 28 bits of number, four of hash; 0: free. At most three quarters are
	// not.
	uint32_t *site_slots, *cell_slots;
	size_t site_slots_count, cell_slots_count;
};

// `large_pages`: segments are asked for as large tables are (mem_alloc_table).
void cells_init(struct cells *cells, bool large_pages);
// Accepts { 0 }.
void cells_fini(struct cells *cells);

// Forget the dictionaries: nothing will be added.
void cells_drop(struct cells *cells);

// The number of a site or cell; new ones are added. 0: there are CELLS_MAX of them. `last` of
// `site` is 0. Constant time, most often one comparison: the first site of a stack and the last
// cell of a site are tried before the dictionaries.
uint32_t cells_add_site(struct cells *cells, const struct cells_site *site);
uint32_t cells_add_cell(struct cells *cells, uint32_t site, uint64_t size);

// A cell of this stack and size will be asked for: begin to fetch what that takes from memory. Call
// each for a few dozen allocations, then the next; worth it once tables are larger than caches.
void cells_expect_stack(const struct cells *cells, stack_id stack);
void cells_expect_site(const struct cells *cells, stack_id stack);
void cells_expect_slot(const struct cells *cells, stack_id stack, uint64_t size);
void cells_expect_cell(const struct cells *cells, stack_id stack, uint64_t size);

// The cells of each site, one site after the other: those of site s are in the places first[s] to
// first[s + 1] - 1, rising. A place has the cell's number and its size: packed as a cell is, with
// the number where that has the site. 8 bytes a cell, 4 a site.
struct cells_order {
	uint64_t *cells; // use cells_id_at, cells_size_at
	uint32_t *first;
};
// Made when it is first asked for, by any thread, and kept until cells_fini. The cells are loaded.
const struct cells_order *cells_order(const struct cells *cells);

// Put one that was added before, in the order of numbers, from 0 on; and once all are there, note
// each site's first cell. Then nothing is added.
void cells_load_site(struct cells *cells, uint32_t id, const struct cells_site *site);
void cells_load_cell(struct cells *cells, uint32_t id, const struct cells_cell *cell);
void cells_loaded(struct cells *cells);

// Bytes of memory used. Segments count by what is in use of them; sizes of 32 GiB and more do not
// count.
uint64_t cells_bytes(const struct cells *cells);

// By number; which must be there. The pointer is good until cells_fini.
static inline struct cells_site *cells_site(const struct cells *cells, uint32_t id)
{
	return &cells->sites[id >> CELLS_SEGMENT_LOG2][id & ((1 << CELLS_SEGMENT_LOG2) - 1)];
}

static inline uint64_t *cells_packed(const struct cells *cells, uint32_t id)
{
	return &cells->cells[id >> CELLS_SEGMENT_LOG2][id & ((1 << CELLS_SEGMENT_LOG2) - 1)];
}

static inline uint32_t cells_packed_number(uint64_t packed)
{
	return (uint32_t)packed & ((1u << CELLS_SITE_BITS) - 1);
}

static inline uint64_t cells_packed_size(const struct cells *cells, uint64_t packed)
{
	uint64_t size = packed >> CELLS_SITE_BITS;
	uint32_t at = (uint32_t)size;

	return size >> CELLS_SIZE_BITS ? cells->large[at >> CELLS_SEGMENT_LOG2]
						     [at & ((1 << CELLS_SEGMENT_LOG2) - 1)]
				       : size;
}

static inline struct cells_cell cells_cell(const struct cells *cells, uint32_t id)
{
	uint64_t packed = *cells_packed(cells, id);

	return (struct cells_cell){ .size = cells_packed_size(cells, packed),
				    .site = cells_packed_number(packed) };
}

// The cell at a place of the order.
static inline uint32_t cells_id_at(const struct cells_order *order, uint32_t place)
{
	return cells_packed_number(order->cells[place]);
}

static inline uint64_t cells_size_at(const struct cells *cells, const struct cells_order *order,
				     uint32_t place)
{
	return cells_packed_size(cells, order->cells[place]);
}

// The size of a site's first cell, where all were loaded and none added.
static inline uint64_t cells_first_size(const struct cells *cells, uint32_t site)
{
	return cells_cell(cells, cells_site(cells, site)->last).size;
}

// Whether a site is of frees, where all were loaded. Mostly none is, and then it is not looked at:
// sites are far apart in memory.
static inline bool cells_of_orphans(const struct cells *cells, uint32_t site)
{
	return cells->orphans && cells_site(cells, site)->orphans;
}

// Whether all that is known to whoever asks is of one process: that of the first site.
static inline bool cells_of_one_process(const struct cells *cells)
{
	return !atomic_load_explicit(&cells->mixed, memory_order_relaxed);
}

// Begin to fetch it from memory.
static inline void cells_expect(const struct cells *cells, uint32_t id)
{
	mem_expect(cells_packed(cells, id));
}
