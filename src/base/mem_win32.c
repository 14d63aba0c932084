// Large pages need a right on Windows that users do not have, so a table is plain memory here; and
// what the C library has no call for (memmem, qsort_r) is written out.
#include "base/mem.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

void *mem_alloc_table(size_t count, size_t size_bytes)
{
	return mem_alloc(count, size_bytes);
}

void *mem_raw_table(size_t count, size_t size_bytes)
{
	return mem_resize(NULL, count, size_bytes);
}

void *mem_map(size_t size_bytes)
{
	void *ptr = VirtualAlloc(NULL, size_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);

	if (!ptr)
		mem_none(1, size_bytes);
	return ptr;
}

void mem_unmap(void *ptr, size_t size_bytes)
{
	(void)size_bytes;
	if (ptr)
		VirtualFree(ptr, 0, MEM_RELEASE);
}

// Reserved addresses cost nothing; pages are committed as they are needed. There is no call that
// moves pages, so a larger area is copied.
void mem_area_grow(struct mem_area *area, size_t size_bytes)
{
	enum { SPARE = 4, PAGE = 1 << 12 };
	// Up to the next page of 4 KiB.
	size_t size = (size_bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	struct mem_area old = *area;

	if (size_bytes <= area->size)
		return;
	if (size_bytes > SIZE_MAX / 2 / SPARE)
		mem_none(1, size_bytes);
	// For example 1 MiB wanted of none: 4 MiB of addresses are reserved and 1 MiB is committed;
	// up to 4 MiB it grows without a copy.
	if (size > area->reserved) {
		area->reserved = size * SPARE;
		area->at = VirtualAlloc(NULL, area->reserved, MEM_RESERVE, PAGE_READWRITE);
	}
	if (!area->at || !VirtualAlloc(area->at, size, MEM_COMMIT, PAGE_READWRITE))
		mem_none(1, size_bytes);
	area->size = size;
	// Only an area that outgrew its reservation has moved.
	if (area->at == old.at || !old.at)
		return;
	memcpy(area->at, old.at, old.size);
	VirtualFree(old.at, 0, MEM_RELEASE);
}

void mem_area_fini(struct mem_area *area)
{
	if (area->at)
		VirtualFree(area->at, 0, MEM_RELEASE);
	*area = (struct mem_area){ 0 };
}

void mem_give_back_early(void)
{
	// The heap of Windows gives large blocks back by itself.
}

void mem_share(void)
{
	// It is one for all threads.
}

const void *mem_search(const void *bytes, size_t size, const void *what, size_t what_size)
{
	const char *at = bytes, *end = at + size;

	if (what_size == 0)
		return bytes;
	while ((size_t)(end - at) >= what_size) {
		// Only where the rest is long enough to hold all of it: a match cannot begin later.
		at = memchr(at, *(const char *)what, (size_t)(end - at) - what_size + 1);
		if (!at)
			return NULL;
		if (memcmp(at, what, what_size) == 0)
			return at;
		at++;
	}
	return NULL;
}

struct order {
	mem_compare *compare;
	void *context;
};

// The context comes first here.
static int compare_two(void *opaque, const void *a, const void *b)
{
	const struct order *order = opaque;

	return order->compare(a, b, order->context);
}

void mem_sort(void *items, size_t count, size_t size_bytes, mem_compare *compare, void *context)
{
	struct order order = { compare, context };

	qsort_s(items, count, size_bytes, compare_two, &order);
}

uint64_t mem_of_machine(void)
{
	MEMORYSTATUSEX status = { .dwLength = sizeof status };

	return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0;
}
