// layered_library: an allocator whose functions call each other by name, for the program layered.
//
// At the bottom are the C library's own. Every other function is made of those below it, and now
// and then of a function of libc that allocates. In the midst of
// malloc, `layered_callback` is called.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#define SHOWN __attribute__((visibility("default")))

extern "C" {
extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

SHOWN void (*layered_callback)(void);

// By way of libc, which allocates by name.
static void note(void)
{
	static bool noting;

	if (noting)
		return;
	noting = true;
	free(strdup("a note of the allocator's own, which nobody reads in the end"));
	noting = false;
}

SHOWN void *malloc(size_t size)
{
	void *block;

	if (layered_callback)
		layered_callback();
	note();
	block = __libc_malloc(size);
	return block;
}

SHOWN void free(void *block)
{
	__libc_free(block);
}

SHOWN void *calloc(size_t count, size_t size)
{
	void *block = malloc(count * size);

	return block ? memset(block, 0, count * size) : NULL;
}

SHOWN void *memalign(size_t alignment, size_t size)
{
	return __libc_memalign(alignment, size);
}

SHOWN int posix_memalign(void **out, size_t alignment, size_t size)
{
	*out = memalign(alignment, size);
	return *out ? 0 : ENOMEM;
}

SHOWN void *aligned_alloc(size_t alignment, size_t size)
{
	void *block;

	return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

SHOWN void *valloc(size_t size)
{
	return aligned_alloc(4096, size);
}

SHOWN void *pvalloc(size_t size)
{
	return valloc(size);
}

SHOWN void *realloc(void *old, size_t size)
{
	void *block = malloc(size);

	if (block && old) {
		void *copy = __libc_realloc(old, size);

		free(block);
		return copy;
	}
	return block;
}

SHOWN void *reallocarray(void *old, size_t count, size_t size)
{
	return realloc(old, count * size);
}
}

// Until there is memory, or no new_handler is left.
static void *take(size_t size)
{
	void *block;

	while ((block = malloc(size)) == NULL) {
		std::new_handler handler = std::get_new_handler();

		if (!handler)
			throw std::bad_alloc();
		handler();
	}
	return block;
}

SHOWN void *operator new(size_t size)
{
	return take(size);
}

SHOWN void *operator new[](size_t size)
{
	return operator new(size);
}

SHOWN void *operator new(size_t size, const std::nothrow_t &) noexcept
{
	try {
		return take(size);
	} catch (...) {
		return NULL;
	}
}

SHOWN void *operator new(size_t size, std::align_val_t alignment)
{
	void *block = aligned_alloc((size_t)alignment, size);

	if (!block)
		throw std::bad_alloc();
	return block;
}

SHOWN void operator delete(void *block) noexcept
{
	free(block);
}

SHOWN void operator delete[](void *block) noexcept
{
	operator delete(block);
}

SHOWN void operator delete(void *block, size_t) noexcept
{
	operator delete(block);
}

SHOWN void operator delete[](void *block, size_t) noexcept
{
	operator delete(block);
}

SHOWN void operator delete(void *block, std::align_val_t) noexcept
{
	operator delete(block);
}

SHOWN void operator delete(void *block, size_t, std::align_val_t) noexcept
{
	operator delete(block);
}
