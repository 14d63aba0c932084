// hook_named: allocators by names of their own: jemalloc's mallocx and the like, tcmalloc's tc_…,
// mimalloc's mi_…, oneTBB's scalable_…, rpmalloc's, and glibc's __libc_malloc. To add one:
// docs/howto/add-a-hook.md.
//
// A program that looks whether there is such a function finds ours in any case; where no library
// has it, it does by malloc and its family what it would do, and is recorded there.
//
// What such a function calls itself is its own business (inside_linux.h). What frees a block may be
// any of them.
//
// Left out are mimalloc's mi_realpath, which needs the C library's, and mi_dupenv_s, mi_wdupenv_s,
// mi_wcsdup and mi_reallocarr: names of Windows and NetBSD, which programs of Linux do not call.
// mi_heap_recalloc_aligned_at has six arguments, so that it is recorded by its name alone and not
// where it is linked in (hook_linux.h).
#include "recorder/hook_linux.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum { HOOK_MALLOCX_ALIGN = 0x3f, HOOK_MALLOCX_ZERO = 0x40, HOOK_PAGE = 4096 };

#ifndef HOOK_ENTERED
// Ours, by which the functions go that no library has.
void *malloc(size_t size);
void free(void *ptr);
void *calloc(size_t count, size_t size);
void *realloc(void *ptr, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size);

static const char hook_named_nobody; // it is not defined

// It is looked for once, at the first call. The library that has the function has an allocator, so
// what that calls itself is passed on from here on.
static COLD void *hook_named_find(struct hook_entry *entry)
{
	struct scope_object *object = NULL;
	void *function = scope_next(entry->name, &object);

	if (function)
		inside_add_allocator(object);
	else
		function = (void *)(uintptr_t)&hook_named_nobody;
	__atomic_store_n(&entry->function, function, __ATOMIC_RELEASE);
	return function;
}

static inline void *hook_named_get(struct hook_entry *entry)
{
	void *function = __atomic_load_n(&entry->function, __ATOMIC_ACQUIRE);

	if (unlikely(!function))
		function = hook_named_find(entry);
	return function == &hook_named_nobody ? NULL : function;
}

#define HOOK_BEHIND(entry) hook_named_get(&(entry))
// What it does where no library has it.
#define HOOK_UNLESS(function, instead) \
	if (!(function))               \
	return instead
#elif defined(HOOK_REGISTER)
#define HOOK_BEHIND(entry) hook_real
#define HOOK_UNLESS(function, instead)
#else
#define HOOK_BEHIND(entry) (entry).function
#define HOOK_UNLESS(function, instead)
#endif

// A failure has a size and no address. What got nothing for nothing is neither.
static __attribute__((noinline)) void hook_named_took(const struct event_call *call)
{
	if (!call->address && !call->size)
		return;
	if (call->align_log2)
		hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, call);
	else
		hook_allocated_maybe(LANE_MALLOC, 0, call);
}

#define HOOK_PRODUCT hook_product(count, size)

// It returns a block of `bytes`. `instead` is what it does where no library has it.
#define HOOK_TAKES(symbol, bytes, alignment, parameters, arguments, instead)         \
	HOOK_DEFINES(void *, symbol, parameters)                                     \
	{                                                                            \
		HOOK_ENTRY(symbol);                                                  \
		struct inside before = { 0 };                                        \
		struct event_call call = { 0, 0, hook_log2(alignment), HOOK_FRAME }; \
		void *(*function)parameters;                                         \
		void *ptr;                                                           \
                                                                                     \
		*(void **)&function = HOOK_BEHIND(entry);                            \
		HOOK_UNLESS(function, instead);                                      \
		if (inside_begins(&before, HOOK_FRAME))                              \
			return inside_got(&before, function arguments);              \
		ptr = function arguments;                                            \
		inside_ends(&before, ptr);                                           \
		call.address = (uintptr_t)ptr;                                       \
		call.size = (bytes);                                                 \
		hook_named_took(&call);                                              \
		return ptr;                                                          \
	}

// The same through a pointer, with an error.
#define HOOK_PUTS(symbol)                                                               \
	HOOK_DEFINES(int, symbol, (void **out, size_t alignment, size_t size))          \
	{                                                                               \
		HOOK_ENTRY(symbol);                                                     \
		struct inside before = { 0 };                                           \
		struct event_call call = { 0, size, hook_log2(alignment), HOOK_FRAME }; \
		int (*function)(void **, size_t, size_t);                               \
		int error;                                                              \
                                                                                        \
		*(void **)&function = HOOK_BEHIND(entry);                               \
		HOOK_UNLESS(function, posix_memalign(out, alignment, size));            \
		if (inside_begins(&before, HOOK_FRAME)) {                               \
			error = function(out, alignment, size);                         \
			inside_got(&before, error ? NULL : *out);                       \
			return error;                                                   \
		}                                                                       \
		error = function(out, alignment, size);                                 \
		inside_ends(&before, error ? NULL : *out);                              \
		call.address = error ? 0 : (uintptr_t)*out;                             \
		hook_named_took(&call);                                                 \
		return error;                                                           \
	}

// It frees `ptr`.
#define HOOK_GIVES(symbol, parameters, arguments)         \
	HOOK_DEFINES(void, symbol, parameters)            \
	{                                                 \
		HOOK_ENTRY(symbol);                       \
		void(*function) parameters;               \
                                                          \
		*(void **)&function = HOOK_BEHIND(entry); \
		HOOK_UNLESS(function, free(ptr));         \
		HOOK_GIVES_PTR(function arguments)        \
	}

// A call on a block that exists already, as words: more of them than a function takes do no harm.
struct hook_named_call {
	void *function;
	uintptr_t words[6];
};

static uintptr_t hook_named_do(const struct hook_named_call *call)
{
	uintptr_t (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

	*(void **)&function = call->function;
	return function(call->words[0], call->words[1], call->words[2], call->words[3],
			call->words[4], call->words[5]);
}

static void *hook_named_resize(void *, size_t, void *more)
{
	return (void *)hook_named_do(more);
}

// It makes `bytes` of `ptr`, maybe elsewhere. Of NULL it makes a new block.
//
// Six words are passed on, whatever the function takes: on x86-64 they are registers, on i386 words
// of our stack, and a function does not look at those that it has no argument for.
static __attribute__((noinline)) void *hook_named_again(struct hook_named_call *call, void *ptr,
							size_t bytes, const uintptr_t *frame)
{
	struct inside before = { 0 };
	struct event_call event = { 0, bytes, 0, frame };
	void *result;

	if (inside_begins(&before, frame)) {
		inside_gives(ptr);
		return inside_got(&before, (void *)hook_named_do(call));
	}
	if (ptr) {
		result = hook_resize(0, ptr, bytes, frame, hook_named_resize, call);
		inside_ends(&before, result);
		return result;
	}
	result = (void *)hook_named_do(call);
	inside_ends(&before, result);
	event.address = (uintptr_t)result;
	hook_named_took(&event);
	return result;
}

#define HOOK_RESIZES(symbol, bytes, parameters, arguments, instead)                              \
	HOOK_DEFINES(void *, symbol, parameters)                                                 \
	{                                                                                        \
		HOOK_ENTRY(symbol);                                                              \
		struct hook_named_call call = { HOOK_BEHIND(entry), { HOOK_UNPACK arguments } }; \
                                                                                                 \
		HOOK_UNLESS(call.function, instead);                                             \
		return hook_named_again(&call, ptr, bytes, HOOK_FRAME);                          \
	}
#define HOOK_UNPACK(...) __VA_ARGS__
#define HOOK_PTR (uintptr_t) ptr

// ---- jemalloc -------------------------------------------------------------------------------

// The lower six bits of the flags are the logarithm of the alignment; 0: none was asked for.
static inline size_t hook_mallocx_alignment(int flags)
{
	return flags & HOOK_MALLOCX_ALIGN ? (size_t)1 << (flags & HOOK_MALLOCX_ALIGN) : 0;
}

#ifndef HOOK_ENTERED
// What mallocx would do, by functions that there are. Alignment 0 is what malloc gives, and calloc
// is used for all of it, so that MALLOCX_ZERO needs nothing more.
static void *hook_no_mallocx(size_t size, int flags)
{
	size_t alignment = hook_mallocx_alignment(flags);
	void *ptr = alignment ? memalign(alignment, size) : calloc(1, size);

	if (ptr && alignment && (flags & HOOK_MALLOCX_ZERO))
		memset(ptr, 0, size);
	return ptr;
}

// An offset into the block that is aligned, in place of its beginning, nothing here can give.
static void *hook_no_aligned_at(size_t size, size_t alignment, size_t offset, int flags)
{
	return alignment && offset % alignment
		       ? NULL
		       : hook_no_mallocx(size, hook_log2(alignment) | flags);
}

static void *hook_no_strndup(const char *text, size_t most)
{
	size_t length = 0;
	char *ptr;

	while (text && length < most && text[length])
		length++;
	ptr = text ? malloc(length + 1) : NULL;
	if (ptr) {
		memcpy(ptr, text, length);
		ptr[length] = 0;
	}
	return ptr;
}
#endif

// In place, to `size` at least. Returns the size that it has then; smaller: it could not be.
struct hook_xallocx {
	struct hook_named_call call;
	size_t had;
};

// The block stays where it is, so that success is the block itself; NULL is a realloc that failed.
static void *hook_xallocx_resize(void *ptr, size_t size, void *more)
{
	struct hook_xallocx *x = more;

	x->had = hook_named_do(&x->call);
	return x->had >= size ? ptr : NULL;
}

#define HOOK_XALLOCX(symbol)                                                            \
	HOOK_DEFINES(size_t, symbol, (void *ptr, size_t size, size_t extra, int flags)) \
	{                                                                               \
		HOOK_ENTRY(symbol);                                                     \
		struct inside before = { 0 };                                           \
		struct hook_xallocx x = { .call = { HOOK_BEHIND(entry),                 \
						    { (uintptr_t)ptr, size, extra,      \
						      (uintptr_t)flags } } };           \
                                                                                        \
		HOOK_UNLESS(x.call.function, 0);                                        \
		if (inside_begins(&before, HOOK_FRAME))                                 \
			return hook_named_do(&x.call);                                  \
		hook_resize(0, ptr, size, HOOK_FRAME, hook_xallocx_resize, &x);         \
		inside_ends(&before, NULL);                                             \
		return x.had;                                                           \
	}

#define HOOK_JEMALLOC(prefix)                                                                      \
	HOOK_TAKES(prefix##mallocx, size, hook_mallocx_alignment(flags), (size_t size, int flags), \
		   (size, flags), hook_no_mallocx(size, flags))                                    \
	HOOK_RESIZES(prefix##rallocx, size, (void *ptr, size_t size, int flags),                   \
		     (HOOK_PTR, size, (uintptr_t)flags), realloc(ptr, size))                       \
	HOOK_XALLOCX(prefix##xallocx)                                                              \
	HOOK_GIVES(prefix##dallocx, (void *ptr, int flags), (ptr, flags))                          \
	HOOK_GIVES(prefix##sdallocx, (void *ptr, size_t size, int flags), (ptr, size, flags))

HOOK_JEMALLOC()
HOOK_JEMALLOC(je_)

// ---- The C library's family, under other names ----------------------------------------------

#define HOOK_FAMILY(prefix)                                                                   \
	HOOK_TAKES(prefix##malloc, size, 0, (size_t size), (size), malloc(size))              \
	HOOK_TAKES(prefix##calloc, hook_product(count, size), 0, (size_t count, size_t size), \
		   (count, size), calloc(count, size))                                        \
	HOOK_RESIZES(prefix##realloc, size, (void *ptr, size_t size), (HOOK_PTR, size),       \
		     realloc(ptr, size))                                                      \
	HOOK_GIVES(prefix##free, (void *ptr), (ptr))                                          \
	HOOK_TAKES(prefix##memalign, size, alignment, (size_t alignment, size_t size),        \
		   (alignment, size), memalign(alignment, size))                              \
	HOOK_TAKES(prefix##valloc, size, HOOK_PAGE, (size_t size), (size),                    \
		   memalign(HOOK_PAGE, size))                                                 \
	HOOK_TAKES(prefix##pvalloc, size, HOOK_PAGE, (size_t size), (size),                   \
		   memalign(HOOK_PAGE, size))
#define HOOK_ALIGNED_ALLOC(symbol)                                                              \
	HOOK_TAKES(symbol, size, alignment, (size_t alignment, size_t size), (alignment, size), \
		   memalign(alignment, size))

HOOK_FAMILY(__libc_)
HOOK_FAMILY(je_)
HOOK_FAMILY(tc_)
HOOK_FAMILY(mi_)
HOOK_PUTS(je_posix_memalign)
HOOK_PUTS(tc_posix_memalign)
HOOK_PUTS(mi_posix_memalign)
HOOK_PUTS(__posix_memalign)
HOOK_ALIGNED_ALLOC(je_aligned_alloc)
HOOK_ALIGNED_ALLOC(mi_aligned_alloc)
HOOK_GIVES(__libc_cfree, (void *ptr), (ptr))
HOOK_GIVES(tc_cfree, (void *ptr), (ptr))
HOOK_GIVES(mi_cfree, (void *ptr), (ptr))

// ---- tcmalloc -------------------------------------------------------------------------------

#define HOOK_TC_NEW(symbol)                                                                        \
	HOOK_TAKES(symbol, size, 0, (size_t size), (size), malloc(size))                           \
	HOOK_TAKES(symbol##_nothrow, size, 0, (size_t size, const void *nothrow), (size, nothrow), \
		   malloc(size))                                                                   \
	HOOK_TAKES(symbol##_aligned, size, alignment, (size_t size, size_t alignment),             \
		   (size, alignment), memalign(alignment, size))                                   \
	HOOK_TAKES(symbol##_aligned_nothrow, size, alignment,                                      \
		   (size_t size, size_t alignment, const void *nothrow),                           \
		   (size, alignment, nothrow), memalign(alignment, size))
#define HOOK_TC_DELETE(symbol)                                                                   \
	HOOK_GIVES(symbol, (void *ptr), (ptr))                                                   \
	HOOK_GIVES(symbol##_nothrow, (void *ptr, const void *nothrow), (ptr, nothrow))           \
	HOOK_GIVES(symbol##_sized, (void *ptr, size_t size), (ptr, size))                        \
	HOOK_GIVES(symbol##_aligned, (void *ptr, size_t alignment), (ptr, alignment))            \
	HOOK_GIVES(symbol##_sized_aligned, (void *ptr, size_t size, size_t alignment),           \
		   (ptr, size, alignment))                                                       \
	HOOK_GIVES(symbol##_aligned_nothrow, (void *ptr, size_t alignment, const void *nothrow), \
		   (ptr, alignment, nothrow))

HOOK_TAKES(tc_malloc_skip_new_handler, size, 0, (size_t size), (size), malloc(size))
HOOK_GIVES(tc_free_sized, (void *ptr, size_t size), (ptr, size))
HOOK_TC_NEW(tc_new)
HOOK_TC_NEW(tc_newarray)
HOOK_TC_DELETE(tc_delete)
HOOK_TC_DELETE(tc_deletearray)

// ---- oneTBB's -------------------------------------------------------------------------------

HOOK_TAKES(scalable_malloc, size, 0, (size_t size), (size), malloc(size))
HOOK_TAKES(scalable_calloc, HOOK_PRODUCT, 0, (size_t count, size_t size), (count, size),
	   calloc(count, size))
HOOK_RESIZES(scalable_realloc, size, (void *ptr, size_t size), (HOOK_PTR, size), realloc(ptr, size))
HOOK_GIVES(scalable_free, (void *ptr), (ptr))
HOOK_PUTS(scalable_posix_memalign)
HOOK_TAKES(scalable_aligned_malloc, size, alignment, (size_t size, size_t alignment),
	   (size, alignment), memalign(alignment, size))
HOOK_RESIZES(scalable_aligned_realloc, size, (void *ptr, size_t size, size_t alignment),
	     (HOOK_PTR, size, alignment), realloc(ptr, size))
HOOK_GIVES(scalable_aligned_free, (void *ptr), (ptr))

// ---- rpmalloc -------------------------------------------------------------------------------

// Left out are its heaps (rpmalloc_heap_alloc …), which it has only where it is built with them.
HOOK_TAKES(rpmalloc, size, 0, (size_t size), (size), malloc(size))
HOOK_TAKES(rpzalloc, size, 0, (size_t size), (size), calloc(1, size))
HOOK_TAKES(rpcalloc, HOOK_PRODUCT, 0, (size_t count, size_t size), (count, size),
	   calloc(count, size))
HOOK_RESIZES(rprealloc, size, (void *ptr, size_t size), (HOOK_PTR, size), realloc(ptr, size))
HOOK_RESIZES(rpaligned_realloc, size,
	     (void *ptr, size_t alignment, size_t size, size_t had, unsigned flags),
	     (HOOK_PTR, alignment, size, had, flags), realloc(ptr, size))
HOOK_GIVES(rpfree, (void *ptr), (ptr))
HOOK_ALIGNED_ALLOC(rpaligned_alloc)
HOOK_ALIGNED_ALLOC(rpmemalign)
HOOK_TAKES(rpaligned_zalloc, size, alignment, (size_t alignment, size_t size), (alignment, size),
	   hook_no_mallocx(size, hook_log2(alignment) | HOOK_MALLOCX_ZERO))
HOOK_TAKES(rpaligned_calloc, HOOK_PRODUCT, alignment, (size_t alignment, size_t count, size_t size),
	   (alignment, count, size),
	   hook_no_mallocx(HOOK_PRODUCT, hook_log2(alignment) | HOOK_MALLOCX_ZERO))
HOOK_PUTS(rpposix_memalign)

// ---- mimalloc: most functions once for the thread's heap, and once for one that is named -------

#define HOOK_MI_TAKES(name, bytes, alignment, parameters, arguments, instead)                      \
	HOOK_TAKES(mi_##name, bytes, alignment, (HOOK_UNPACK parameters), (HOOK_UNPACK arguments), \
		   instead)                                                                        \
	HOOK_TAKES(mi_heap_##name, bytes, alignment, (void *heap, HOOK_UNPACK parameters),         \
		   (heap, HOOK_UNPACK arguments), instead)
#define HOOK_MI_RESIZES(name, bytes, parameters, arguments)                                      \
	HOOK_RESIZES(mi_##name, bytes, (HOOK_UNPACK parameters), arguments, realloc(ptr, bytes)) \
	HOOK_RESIZES(mi_heap_##name, bytes, (void *heap, HOOK_UNPACK parameters),                \
		     ((uintptr_t)heap, HOOK_UNPACK arguments), realloc(ptr, bytes))
#define HOOK_TEXT (ptr ? text_length(ptr) + 1 : 0)

HOOK_MI_TAKES(zalloc, size, 0, (size_t size), (size), calloc(1, size))
HOOK_MI_TAKES(malloc_small, size, 0, (size_t size), (size), malloc(size))
HOOK_TAKES(mi_zalloc_small, size, 0, (size_t size), (size), calloc(1, size))
HOOK_MI_TAKES(mallocn, HOOK_PRODUCT, 0, (size_t count, size_t size), (count, size),
	      malloc(HOOK_PRODUCT))
HOOK_MI_TAKES(malloc_aligned, size, alignment, (size_t size, size_t alignment), (size, alignment),
	      memalign(alignment, size))
HOOK_MI_TAKES(zalloc_aligned, size, alignment, (size_t size, size_t alignment), (size, alignment),
	      hook_no_mallocx(size, hook_log2(alignment) | HOOK_MALLOCX_ZERO))
HOOK_MI_TAKES(calloc_aligned, HOOK_PRODUCT, alignment,
	      (size_t count, size_t size, size_t alignment), (count, size, alignment),
	      hook_no_mallocx(HOOK_PRODUCT, hook_log2(alignment) | HOOK_MALLOCX_ZERO))
HOOK_MI_TAKES(malloc_aligned_at, size, alignment, (size_t size, size_t alignment, size_t offset),
	      (size, alignment, offset), hook_no_aligned_at(size, alignment, offset, 0))
HOOK_MI_TAKES(zalloc_aligned_at, size, alignment, (size_t size, size_t alignment, size_t offset),
	      (size, alignment, offset),
	      hook_no_aligned_at(size, alignment, offset, HOOK_MALLOCX_ZERO))
HOOK_MI_TAKES(calloc_aligned_at, HOOK_PRODUCT, alignment,
	      (size_t count, size_t size, size_t alignment, size_t offset),
	      (count, size, alignment, offset),
	      hook_no_aligned_at(HOOK_PRODUCT, alignment, offset, HOOK_MALLOCX_ZERO))
HOOK_MI_TAKES(strdup, HOOK_TEXT, 0, (const char *text), (text), hook_no_strndup(text, SIZE_MAX))
HOOK_MI_TAKES(strndup, HOOK_TEXT, 0, (const char *text, size_t most), (text, most),
	      hook_no_strndup(text, most))
HOOK_TAKES(mi_mbsdup, HOOK_TEXT, 0, (const char *text), (text), hook_no_strndup(text, SIZE_MAX))
HOOK_TAKES(mi_heap_alloc_new, size, 0, (void *heap, size_t size), (heap, size), malloc(size))
HOOK_TAKES(mi_heap_alloc_new_n, HOOK_PRODUCT, 0, (void *heap, size_t count, size_t size),
	   (heap, count, size), malloc(HOOK_PRODUCT))
HOOK_TAKES(mi_heap_malloc, size, 0, (void *heap, size_t size), (heap, size), malloc(size))
HOOK_TAKES(mi_heap_calloc, HOOK_PRODUCT, 0, (void *heap, size_t count, size_t size),
	   (heap, count, size), calloc(count, size))
HOOK_RESIZES(mi_heap_realloc, size, (void *heap, void *ptr, size_t size),
	     ((uintptr_t)heap, HOOK_PTR, size), realloc(ptr, size))
HOOK_MI_RESIZES(reallocn, HOOK_PRODUCT, (void *ptr, size_t count, size_t size),
		(HOOK_PTR, count, size))
HOOK_MI_RESIZES(reallocf, size, (void *ptr, size_t size), (HOOK_PTR, size))
HOOK_MI_RESIZES(rezalloc, size, (void *ptr, size_t size), (HOOK_PTR, size))
HOOK_MI_RESIZES(recalloc, HOOK_PRODUCT, (void *ptr, size_t count, size_t size),
		(HOOK_PTR, count, size))
HOOK_MI_RESIZES(realloc_aligned, size, (void *ptr, size_t size, size_t alignment),
		(HOOK_PTR, size, alignment))
HOOK_MI_RESIZES(realloc_aligned_at, size, (void *ptr, size_t size, size_t alignment, size_t offset),
		(HOOK_PTR, size, alignment, offset))
HOOK_MI_RESIZES(rezalloc_aligned, size, (void *ptr, size_t size, size_t alignment),
		(HOOK_PTR, size, alignment))
HOOK_MI_RESIZES(rezalloc_aligned_at, size,
		(void *ptr, size_t size, size_t alignment, size_t offset),
		(HOOK_PTR, size, alignment, offset))
HOOK_MI_RESIZES(recalloc_aligned, HOOK_PRODUCT,
		(void *ptr, size_t count, size_t size, size_t alignment),
		(HOOK_PTR, count, size, alignment))
#define HOOK_RECALLOC_AT(symbol)                                                              \
	HOOK_RESIZES(symbol, HOOK_PRODUCT,                                                    \
		     (void *ptr, size_t count, size_t size, size_t alignment, size_t offset), \
		     (HOOK_PTR, count, size, alignment, offset), realloc(ptr, HOOK_PRODUCT))
HOOK_RECALLOC_AT(mi_recalloc_aligned_at)
HOOK_RECALLOC_AT(mi_aligned_offset_recalloc)
#if !defined(HOOK_ENTERED) || !defined(HOOK_REGISTER)
HOOK_RESIZES(mi_heap_recalloc_aligned_at, HOOK_PRODUCT,
	     (void *heap, void *ptr, size_t count, size_t size, size_t alignment, size_t offset),
	     ((uintptr_t)heap, HOOK_PTR, count, size, alignment, offset),
	     realloc(ptr, HOOK_PRODUCT))
#endif
HOOK_RESIZES(mi_aligned_recalloc, HOOK_PRODUCT,
	     (void *ptr, size_t count, size_t size, size_t alignment),
	     (HOOK_PTR, count, size, alignment), realloc(ptr, HOOK_PRODUCT))
// In place or not at all, which is a realloc that failed.
HOOK_RESIZES(mi_expand, size, (void *ptr, size_t size), (HOOK_PTR, size), NULL)
HOOK_RESIZES(mi__expand, size, (void *ptr, size_t size), (HOOK_PTR, size), NULL)
HOOK_RESIZES(mi_reallocarray, HOOK_PRODUCT, (void *ptr, size_t count, size_t size),
	     (HOOK_PTR, count, size), realloc(ptr, HOOK_PRODUCT))
HOOK_RESIZES(mi_new_realloc, size, (void *ptr, size_t size), (HOOK_PTR, size), realloc(ptr, size))
HOOK_RESIZES(mi_new_reallocn, HOOK_PRODUCT, (void *ptr, size_t count, size_t size),
	     (HOOK_PTR, count, size), realloc(ptr, HOOK_PRODUCT))
HOOK_TAKES(mi_new, size, 0, (size_t size), (size), malloc(size))
HOOK_TAKES(mi_new_nothrow, size, 0, (size_t size), (size), malloc(size))
HOOK_TAKES(mi_new_n, HOOK_PRODUCT, 0, (size_t count, size_t size), (count, size),
	   malloc(HOOK_PRODUCT))
HOOK_TAKES(mi_new_aligned, size, alignment, (size_t size, size_t alignment), (size, alignment),
	   memalign(alignment, size))
HOOK_TAKES(mi_new_aligned_nothrow, size, alignment, (size_t size, size_t alignment),
	   (size, alignment), memalign(alignment, size))
HOOK_GIVES(mi_free_size, (void *ptr, size_t size), (ptr, size))
HOOK_GIVES(mi_free_size_aligned, (void *ptr, size_t size, size_t alignment), (ptr, size, alignment))
HOOK_GIVES(mi_free_aligned, (void *ptr, size_t alignment), (ptr, alignment))

// Of mi_heap_visit_blocks: an area's beginning has no block.
static bool hook_mi_block_ends(const void *, const void *, void *block, size_t, void *frame)
{
	hook_gives(block, frame);
	return true;
}

// Called, not entered.
#ifdef HOOK_ENTERED
static struct hook_entry hook_mi_visit
	__attribute__((section("entered"), used)) = { "mi_heap_visit_blocks", NULL, NULL };
#define HOOK_VISIT hook_mi_visit.function
#else
static struct hook_entry hook_mi_visit = { "mi_heap_visit_blocks", NULL, NULL };
#define HOOK_VISIT hook_named_get(&hook_mi_visit)
#endif

// It frees what is left in the heap.
HOOK_DEFINES(void, mi_heap_destroy, (void *heap))
{
	HOOK_ENTRY(mi_heap_destroy);
	struct inside before = { 0 };
	void (*destroy)(void *);
	bool (*each)(const void *, bool,
		     bool (*)(const void *, const void *, void *, size_t, void *), void *);

	*(void **)&destroy = HOOK_BEHIND(entry);
	*(void **)&each = HOOK_VISIT;
	if (!destroy)
		return;
	if (inside_begins(&before, HOOK_FRAME)) {
		destroy(heap);
		return;
	}
	if (each)
		each(heap, true, hook_mi_block_ends, (void *)(uintptr_t)HOOK_FRAME);
	destroy(heap);
	inside_ends(&before, NULL);
}

// ---- Of an allocator that is entered ------------------------------------------------------------

#ifdef HOOK_ENTERED

// The C library's family that hook_malloc_linux.c leads to free and realloc.
HOOK_GIVES(cfree, (void *ptr), (ptr))
HOOK_GIVES(free_sized, (void *ptr, size_t size), (ptr, size))
HOOK_GIVES(free_aligned_sized, (void *ptr, size_t alignment, size_t size), (ptr, alignment, size))
HOOK_RESIZES(reallocarray, HOOK_PRODUCT, (void *ptr, size_t count, size_t size),
	     (HOOK_PTR, count, size), NULL)

// mozjemalloc: the first argument is the arena.
HOOK_TAKES(moz_arena_malloc, size, 0, (size_t arena, size_t size), (arena, size), NULL)
HOOK_TAKES(moz_arena_calloc, hook_product(count, size), 0,
	   (size_t arena, size_t count, size_t size), (arena, count, size), NULL)
HOOK_RESIZES(moz_arena_realloc, size, (size_t arena, void *ptr, size_t size),
	     (arena, HOOK_PTR, size), NULL)
HOOK_GIVES(moz_arena_free, (size_t arena, void *ptr), (arena, ptr))
HOOK_TAKES(moz_arena_memalign, size, alignment, (size_t arena, size_t alignment, size_t size),
	   (arena, alignment, size), NULL)

#endif
