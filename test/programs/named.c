// named [LIBRARY]: the functions of jemalloc, tcmalloc, mimalloc, oneTBB, rpmalloc and glibc that
// have names of their own, as far as there are such: by each a block of a size of its own from 7801
// on, which is freed; 7900 and more is what some of them are made into. oneTBB's are those of the
// LIBRARY, which is opened, as libtbb does it. Prints how many.
#include "guest.h"

#include <dlfcn.h>

#define WEAK __attribute__((weak))

WEAK void *mallocx(size_t size, int flags);
WEAK void *rallocx(void *ptr, size_t size, int flags);
WEAK size_t xallocx(void *ptr, size_t size, size_t extra, int flags);
WEAK void dallocx(void *ptr, int flags);
WEAK void sdallocx(void *ptr, size_t size, int flags);
WEAK void *tc_malloc(size_t size);
WEAK void *tc_new_aligned(size_t size, size_t alignment);
WEAK int tc_posix_memalign(void **out, size_t alignment, size_t size);
WEAK void tc_free(void *ptr);
WEAK void tc_delete_sized(void *ptr, size_t size);
WEAK void *mi_malloc(size_t size);
WEAK void *mi_zalloc_aligned(size_t size, size_t alignment);
WEAK void *mi_recalloc(void *ptr, size_t count, size_t size);
WEAK void *mi_malloc_aligned_at(size_t size, size_t alignment, size_t offset);
WEAK void *mi_heap_recalloc_aligned_at(void *heap, void *ptr, size_t count, size_t size,
				       size_t alignment, size_t offset);
WEAK void *mi_expand(void *ptr, size_t size);
WEAK char *mi_strdup(const char *text);
WEAK void mi_free(void *ptr);
WEAK void *mi_heap_new(void);
WEAK void *mi_heap_malloc(void *heap, size_t size);
WEAK void mi_heap_destroy(void *heap);
WEAK void *scalable_malloc(size_t size);
WEAK void *scalable_aligned_realloc(void *ptr, size_t size, size_t alignment);
WEAK void scalable_aligned_free(void *ptr);
WEAK void *rpmalloc(size_t size);
WEAK void *rprealloc(void *ptr, size_t size);
WEAK void *rpaligned_zalloc(size_t alignment, size_t size);
WEAK void rpfree(void *ptr);
extern void *__libc_malloc(size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void *__libc_realloc(void *ptr, size_t size);
extern void __libc_free(void *ptr);

static void *volatile block;

static void check_zero(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		guest_check(bytes[i] == 0, "it is zero");
}

// By name, or of the library that was opened.
static void take_scalable(const char *library)
{
	void *(*take)(size_t) = scalable_malloc, *opened = NULL;
	void *(*again)(void *, size_t, size_t) = scalable_aligned_realloc;
	void (*give)(void *) = scalable_aligned_free;

	if (library) {
		opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		guest_check(opened != NULL, "dlopen");
		*(void **)&take = dlsym(opened, "scalable_malloc");
		*(void **)&again = dlsym(opened, "scalable_aligned_realloc");
		*(void **)&give = dlsym(opened, "scalable_aligned_free");
	}
	give(take(7817));
	block = again(take(7818), 7918, 64);
	guest_check((uintptr_t)block % 64 == 0 || !library, "aligned");
	give(block);
}

int main(int argc, char **argv)
{
	static char text[7812];
	void *out = NULL, *heap;

	block = mallocx(7801, 6 | 0x40);
	guest_check((uintptr_t)block % 64 == 0, "aligned");
	check_zero(block, 7801);
	dallocx(block, 0);
	block = rallocx(mallocx(7802, 0), 7902, 0);
	sdallocx(block, 7902, 0);
	block = mallocx(7803, 0);
	if (xallocx(block, 7000000, 0, 0) >= 7000000) // it never can be
		return 1;
	if (xallocx(block, 7903, 0, 0) < 7903)
		block = rallocx(block, 7903, 0);
	dallocx(block, 0);
	tc_free(tc_malloc(7804));
	tc_delete_sized(tc_new_aligned(7805, 64), 7805);
	guest_check(tc_posix_memalign(&out, 64, 7806) == 0, "tc_posix_memalign");
	free(out);
	mi_free(mi_malloc(7807));
	block = mi_zalloc_aligned(7808, 64);
	check_zero(block, 7808);
	free(block);
	mi_free(mi_recalloc(mi_malloc(7809), 2, 3955));
	memset(text, 'x', sizeof(text) - 1);
	free(mi_strdup(text));
	__libc_free(__libc_realloc(__libc_malloc(7810), 7911));
	__libc_free(__libc_memalign(64, 7811));
	heap = mi_heap_new ? mi_heap_new() : NULL;
	block = heap ? mi_heap_malloc(heap, 7813) : malloc(7813);
	if (heap)
		mi_heap_destroy(heap);
	else
		free(block);
	mi_free(mi_malloc_aligned_at(7814, 64, 0));
	heap = mi_heap_new ? mi_heap_new() : NULL;
	block = mi_heap_recalloc_aligned_at(heap, mi_malloc(7815), 2, 3957, 64, 0);
	mi_free(block);
	block = mi_malloc(7816);
	if (mi_expand(block, 7000000)) // it never can be
		return 1;
	mi_free(block);
	take_scalable(argc > 1 ? argv[1] : NULL);
	rpfree(rprealloc(rpmalloc(7819), 7919));
	block = rpaligned_zalloc(64, 7820);
	guest_check((uintptr_t)block % 64 == 0, "aligned");
	check_zero(block, 7820);
	rpfree(block);
	guest_say("%d\n", 20);
	return 0;
}
