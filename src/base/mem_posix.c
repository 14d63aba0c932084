#include "base/mem.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

void *mem_map(size_t size_bytes)
{
	void *ptr =
		mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ptr == MAP_FAILED)
		mem_none(1, size_bytes);
	madvise(ptr, size_bytes, MADV_HUGEPAGE); // refused by some kernels: then without
	return ptr;
}

void mem_unmap(void *ptr, size_t size_bytes)
{
	if (ptr)
		munmap(ptr, size_bytes);
}

void mem_give_back_early(void)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 18);
}

const void *mem_search(const void *bytes, size_t size, const void *what, size_t what_size)
{
	return memmem(bytes, size, what, what_size);
}

void mem_sort(void *items, size_t count, size_t size_bytes, mem_compare *compare, void *context)
{
	qsort_r(items, count, size_bytes, compare, context);
}
