#include "base/mem.h"

#include <sys/mman.h>

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
