// An area that grows has more addresses than memory. For example, to 3 MiB: rounded up to 4 MiB by
// pages of 2 MiB, 16 MiB of addresses are reserved, of which the first 4 can be used. It grows to
// 16 MiB where it is; beyond that, other addresses are reserved, and the kernel moves the pages
// there (mremap), which copies nothing.
#include "base/mem.h"

#include "base/control_group.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Large pages (2 MiB): a table that is read all over would miss the processor's small table of
// pages at each look.
void *mem_alloc_table(size_t count, size_t size_bytes)
{
	enum { LEAST = 1 << 20, PAGE = 1 << 12 };
	void *table = mem_alloc(count, size_bytes);
	uintptr_t begin = (uintptr_t)table & ~(uintptr_t)(PAGE - 1);
	uintptr_t end = (uintptr_t)table + count * size_bytes;

	// So large a block has pages of its own, its head included.
	if (count * size_bytes >= LEAST)
		madvise((void *)begin, (end - begin + PAGE - 1) & ~(uintptr_t)(PAGE - 1),
			MADV_HUGEPAGE);
	return table;
}

// A table that begins within a large page, and ends in one, has up to 1,000 small pages there. What
// is asked for is whole large pages, but for a rest of less than half of one.
void *mem_raw_table(size_t count, size_t size_bytes)
{
	enum { LARGE = 1 << 21 };
	size_t size, rest;
	void *table = NULL;

	if (__builtin_mul_overflow(count, size_bytes, &size) || size > SIZE_MAX - LARGE)
		mem_none(count, size_bytes);
	rest = size % LARGE;
	if (rest >= LARGE / 2)
		size += LARGE - rest;
	if (posix_memalign(&table, LARGE, size ? size : 1))
		mem_none(count, size_bytes);
	madvise(table, size & ~(size_t)(LARGE - 1), MADV_HUGEPAGE);
	return table;
}

void *mem_map(size_t size_bytes)
{
	enum { LARGE = 2 << 20 };
	void *ptr =
		mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ptr == MAP_FAILED)
		mem_none(1, size_bytes);
	if (size_bytes >= LARGE) // refused by some kernels: then without
		madvise(ptr, size_bytes, MADV_HUGEPAGE);
	return ptr;
}

void mem_unmap(void *ptr, size_t size_bytes)
{
	if (ptr)
		munmap(ptr, size_bytes);
}

// Addresses for so many bytes, at a multiple of the large page, with nothing behind them.
// A large page more than is wanted is reserved, and what is before the first multiple and after the
// end is given back.
static uint8_t *reserve(size_t size_bytes)
{
	size_t more = size_bytes + MEM_AREA_SMALL, head;
	uint8_t *ptr =
		mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ASSERT(size_bytes % MEM_AREA_SMALL == 0);
	if (ptr == MAP_FAILED)
		mem_none(1, size_bytes);
	head = -(uintptr_t)ptr & (MEM_AREA_SMALL - 1);
	if (head)
		munmap(ptr, head);
	munmap(ptr + head + size_bytes, MEM_AREA_SMALL - head);
	return ptr + head;
}

// The pages change their addresses, and not their contents: the cost is that of their tables.
static void move_area(struct mem_area *area, size_t reserved)
{
	uint8_t *to = reserve(reserved);

	ASSERT(area->size <= area->reserved && reserved > area->reserved);
	if (area->size && mremap(area->at, area->size, area->size, MREMAP_MAYMOVE | MREMAP_FIXED,
				 to) == MAP_FAILED)
		mem_none(1, area->size);
	// What was moved is no longer there; the rest of the addresses are.
	if (area->reserved > area->size)
		munmap((uint8_t *)area->at + area->size, area->reserved - area->size);
	area->at = to;
	area->reserved = reserved;
}

// Four times what is asked for is reserved, so it moves once for each fourfold growth.
void mem_area_grow(struct mem_area *area, size_t size_bytes)
{
	enum { PAGE = 1 << 12, SPARE = 4 };
	size_t step = size_bytes > MEM_AREA_SMALL ? MEM_AREA_SMALL : PAGE, size;
	uint8_t *end;

	if (size_bytes <= area->size)
		return;
	if (size_bytes > SIZE_MAX / 2 / SPARE)
		mem_none(1, size_bytes);
	size = (size_bytes + step - 1) & ~(step - 1);
	if (size > area->reserved)
		move_area(area,
			  (size * SPARE + MEM_AREA_SMALL - 1) & ~(size_t)(MEM_AREA_SMALL - 1));
	ASSERT(size >= size_bytes && size <= area->reserved);
	end = (uint8_t *)area->at + area->size;
	if (mprotect(end, size - area->size, PROT_READ | PROT_WRITE))
		mem_none(1, size_bytes);
	area->size = size;
	if (size > MEM_AREA_SMALL) // refused by some kernels: then without
		madvise((uint8_t *)area->at + MEM_AREA_SMALL, size - MEM_AREA_SMALL, MADV_HUGEPAGE);
}

void mem_area_fini(struct mem_area *area)
{
	if (area->at)
		munmap(area->at, area->reserved);
	*area = (struct mem_area){ 0 };
}

// From 256 KiB on each block is a mapping of its own, which free() returns. Left alone, the C
// library raises that limit to the largest block that was freed.
void mem_give_back_early(void)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 18);
}

// Two arenas for all threads, instead of eight for each processor.
void mem_share(void)
{
	mem_give_back_early();
	mallopt(M_ARENA_MAX, 2);
}

const void *mem_search(const void *bytes, size_t size, const void *what, size_t what_size)
{
	return memmem(bytes, size, what, what_size);
}

void mem_sort(void *items, size_t count, size_t size_bytes, mem_compare *compare, void *context)
{
	if (count > 1)
		qsort_r(items, count, size_bytes, compare, context);
}

// Of the groups that we are in, whichever their hierarchy is.
uint64_t mem_of_machine(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0, limit;
	char list[CONTROL_GROUP_BYTES], group[CONTROL_GROUP_BYTES];

	control_group_list(0, list);
	for (size_t i = 0; i < CONTROL_GROUP_FORMS; i++) {
		control_group_find(&control_group_forms[i], list, group);
		limit = control_group_memory(&control_group_forms[i], group);
		if (limit && (bytes == 0 || limit < bytes))
			bytes = limit;
	}
	return bytes;
}
