// hook_cxx: operator new and delete, counted once.
//
// The C++ library's operators call malloc and free by name, and so they are recorded there. An
// allocator library (jemalloc, mimalloc, tcmalloc) has operators that do not. Which of the two the
// next definition is, is told by its library: one that defines malloc as well is an allocator, and
// its operators are recorded here; any other's are jumped to, and leave no frame of ours behind.
#include "recorder/hook_linux.h"
#include "recorder/real_linux.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"

// How an operator is passed on: recorded, or not.
enum { HOOK_CALLS, HOOK_JUMPS, HOOK_RECORDS };

#ifndef HOOK_ENTERED
__thread struct event_new event_new;

// Of an operator's calls: whether they are recorded here.
static COLD void hook_find(struct hook_entry *entry, uint8_t *how, void *fallback)
{
	struct scope_object *object = NULL;
	void *function = static_is() ? static_operator(entry->name)
				     : scope_next(entry->name, &object);

	*how = object && scope_find(object, "malloc") ? HOOK_RECORDS
	       : static_is()                          ? HOOK_JUMPS
						      : HOOK_CALLS;
	__atomic_store_n(&entry->function, function ? function : fallback, __ATOMIC_RELEASE);
}

#endif

static void hook_new_done(void *ptr, size_t size, size_t alignment, const uintptr_t *frame)
{
	struct event_call call = { (uintptr_t)ptr, size, hook_log2(alignment), frame };

	if (alignment)
		hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, &call);
	else
		hook_allocated_maybe(LANE_MALLOC, 0, &call);
}

#ifndef HOOK_ENTERED
// The operator is not defined: a C program that asks for it all the same.
static void *hook_no_new(size_t size)
{
	return real.malloc(size);
}

static void hook_no_delete(void *ptr)
{
	real.free(ptr);
}

// What is behind the operator; and return where that counts itself.
#define HOOK_FIND(nobody)                                                  \
	static uint8_t how;                                                \
                                                                           \
	if (unlikely(!__atomic_load_n(&entry.function, __ATOMIC_ACQUIRE))) \
		hook_find(&entry, &how, (void *)(nobody));                 \
	*(void **)&function = entry.function
#define HOOK_UNLESS_RECORDED if (likely(how != HOOK_RECORDS))
#define HOOK_BY_JUMP unlikely(how == HOOK_JUMPS)
#else
#ifdef HOOK_REGISTER
#define HOOK_FIND(nobody) *(void **)&function = hook_real
#else
#define HOOK_FIND(nobody) *(void **)&function = entry.function
#endif
#define HOOK_UNLESS_RECORDED if (false)
#define HOOK_BY_JUMP false
#endif

// Passing on is a call: its frame says that the program asked by an operator, which for delete
// nothing else does (libstdc++'s jumps to free), and by which new with free is found. In a static
// program it is a jump, because an exception could not pass the frame; so nothing on the stack may
// be in the way of it, and what is needed for recording begins after it.
#define HOOK_CALLED __asm__ volatile("" ::: "memory")

#define HOOK_NEW_AS(symbol, alignment, parameters, arguments)                      \
	HOOK_DEFINES(void *, symbol, parameters)                                   \
	{                                                                          \
		HOOK_ENTRY(symbol);                                                \
		void *(*function)parameters;                                       \
                                                                                   \
		HOOK_FIND(hook_no_new);                                            \
		HOOK_UNLESS_RECORDED                                               \
		{                                                                  \
			if (alignment)                                             \
				event_new = (struct event_new){ size, alignment }; \
			if (HOOK_BY_JUMP)                                          \
				return function arguments;                         \
			void *passed = function arguments;                         \
			HOOK_CALLED;                                               \
			return passed;                                             \
		}                                                                  \
		{                                                                  \
			struct inside before = { 0 };                              \
			void *ptr;                                                 \
                                                                                   \
			if (inside_begins(&before, HOOK_FRAME))                    \
				return inside_got(&before, function arguments);    \
			ptr = function arguments;                                  \
			inside_ends(&before, ptr);                                 \
			hook_new_done(ptr, size, alignment, HOOK_FRAME);           \
			return ptr;                                                \
		}                                                                  \
	}

#define HOOK_DELETE_AS(symbol, parameters, arguments) \
	HOOK_DEFINES(void, symbol, parameters)        \
	{                                             \
		HOOK_ENTRY(symbol);                   \
		void(*function) parameters;           \
                                                      \
		HOOK_FIND(hook_no_delete);            \
		HOOK_UNLESS_RECORDED                  \
		{                                     \
			if (HOOK_BY_JUMP) {           \
				function arguments;   \
				return;               \
			}                             \
			function arguments;           \
			HOOK_CALLED;                  \
			return;                       \
		}                                     \
		HOOK_GIVES_PTR(function arguments)    \
	}

// The names are the Itanium C++ ABI's: n/d new/delete, w/a single/array, m or j size_t, then
// const std::nothrow_t& and std::align_val_t.
#ifdef __x86_64__
#define HOOK_SIZED(before, behind) before##m##behind
#else
#define HOOK_SIZED(before, behind) before##j##behind
#endif
#define HOOK_NEW(...) HOOK_NEW_AS(__VA_ARGS__)
#define HOOK_DELETE(...) HOOK_DELETE_AS(__VA_ARGS__)

HOOK_NEW(HOOK_SIZED(_Znw, ), 0, (size_t size), (size))
HOOK_NEW(HOOK_SIZED(_Zna, ), 0, (size_t size), (size))
HOOK_NEW(HOOK_SIZED(_Znw, RKSt9nothrow_t), 0, (size_t size, const void *nothrow), (size, nothrow))
HOOK_NEW(HOOK_SIZED(_Zna, RKSt9nothrow_t), 0, (size_t size, const void *nothrow), (size, nothrow))
HOOK_NEW(HOOK_SIZED(_Znw, St11align_val_t), alignment, (size_t size, size_t alignment),
	 (size, alignment))
HOOK_NEW(HOOK_SIZED(_Zna, St11align_val_t), alignment, (size_t size, size_t alignment),
	 (size, alignment))
HOOK_NEW(HOOK_SIZED(_Znw, St11align_val_tRKSt9nothrow_t), alignment,
	 (size_t size, size_t alignment, const void *nothrow), (size, alignment, nothrow))
HOOK_NEW(HOOK_SIZED(_Zna, St11align_val_tRKSt9nothrow_t), alignment,
	 (size_t size, size_t alignment, const void *nothrow), (size, alignment, nothrow))

HOOK_DELETE(_ZdlPv, (void *ptr), (ptr))
HOOK_DELETE(_ZdaPv, (void *ptr), (ptr))
HOOK_DELETE(HOOK_SIZED(_ZdlPv, ), (void *ptr, size_t size), (ptr, size))
HOOK_DELETE(HOOK_SIZED(_ZdaPv, ), (void *ptr, size_t size), (ptr, size))
HOOK_DELETE(_ZdlPvRKSt9nothrow_t, (void *ptr, const void *nothrow), (ptr, nothrow))
HOOK_DELETE(_ZdaPvRKSt9nothrow_t, (void *ptr, const void *nothrow), (ptr, nothrow))
HOOK_DELETE(_ZdlPvSt11align_val_t, (void *ptr, size_t alignment), (ptr, alignment))
HOOK_DELETE(_ZdaPvSt11align_val_t, (void *ptr, size_t alignment), (ptr, alignment))
HOOK_DELETE(HOOK_SIZED(_ZdlPv, St11align_val_t), (void *ptr, size_t size, size_t alignment),
	    (ptr, size, alignment))
HOOK_DELETE(HOOK_SIZED(_ZdaPv, St11align_val_t), (void *ptr, size_t size, size_t alignment),
	    (ptr, size, alignment))
HOOK_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *ptr, size_t alignment, const void *nothrow),
	    (ptr, alignment, nothrow))
HOOK_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *ptr, size_t alignment, const void *nothrow),
	    (ptr, alignment, nothrow))
