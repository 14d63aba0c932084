// hook: what all hooks do with the call that they are in front of: enter the lane, put the event,
// leave.
//
// An allocation is recorded after the real call, a free before it.
//
// The order matters where threads share an address: a free is recorded while the block is still
// this thread's, an allocation when it is this thread's already. So of two events on one address
// the one that came first is also published first (docs/notes/0001-order-without-clocks.md).
//
// For example malloc: HOOK_FRAME is taken in the hook, the real malloc is called, and
// hook_allocated puts the event: LANE_MALLOC with the result, or LANE_FAILED with the size alone
// where there is none. errno is what the real call left.
#pragma once

#include "recorder/client.h"
#include "recorder/event.h"
#include "recorder/hook_python_linux.h"
#include "recorder/inside_linux.h"
#include "recorder/language_heap.h"
#include "recorder/python.h"
#include "recorder/sample.h"
#include "recorder/usdt_linux.h"

#ifdef __x86_64__
#define HOOK_REGISTER // r9
#endif

// Where the walk of the stack begins: to be taken in the hook itself.
#define HOOK_FRAME ((const uintptr_t *)__builtin_frame_address(0))

// The hooks are compiled twice: by symbol, as what other objects find by name, and (HOOK_ENTERED,
// hook_entered_linux.c) as what patched entries of other allocators jump to. The latter ones know
// the real function of each call: the jump puts it (HOOK_REGISTER) where a sixth argument would be,
// since none of these functions has six. On i386, where arguments are on the stack, there is one
// real function for each hook.
#ifdef HOOK_ENTERED
// HOOK_NAME is the hook's own name, HOOK_SHOWN whether others find it, and HOOK_ENTRY declares the
// `entry` of the hook that it is used in; those of patched entries are found by their section.
#define HOOK_NAME(symbol) HOOK_JOIN(entered_, symbol)
#define HOOK_JOIN(before, behind) HOOK_JOIN_NOW(before, behind)
#define HOOK_JOIN_NOW(before, behind) before##behind
#define HOOK_SHOWN HIDDEN
#define HOOK_ENTRY(symbol) HOOK_ENTRY_OF(#symbol, (void *)HOOK_NAME(symbol))
#define HOOK_ENTRY_OF(name, hook)      \
	static struct hook_entry entry \
		__attribute__((section("entered"), used)) = { name, NULL, hook }
#else
#define HOOK_NAME(symbol) symbol
#define HOOK_SHOWN EXPORT
#define HOOK_ENTRY(symbol) static struct hook_entry entry = { #symbol, NULL, NULL }
#endif

#if defined(HOOK_ENTERED) && defined(HOOK_REGISTER)
// HOOK_ARGUMENTS makes a hook's list of parameters, up to five, of which the unused ones are filled
// up, so that hook_real is the sixth. HOOK_TAKES_REAL and HOOK_GIVES_REAL pass it on to a function
// that the hook is split into.
#define HOOK_TAKES_REAL , void *hook_real
#define HOOK_GIVES_REAL , hook_real
#define HOOK_ARGUMENTS(...) (__VA_ARGS__, HOOK_PADS(__VA_ARGS__, 0, 1, 2, 3, 4, ) void *hook_real)
#define HOOK_PADS(a, b, c, d, e, count, ...) HOOK_PAD_##count
#define HOOK_PAD_0
#define HOOK_PAD_1 HOOK_PAD(1)
#define HOOK_PAD_2 HOOK_PAD_1 HOOK_PAD(2)
#define HOOK_PAD_3 HOOK_PAD_2 HOOK_PAD(3)
#define HOOK_PAD_4 HOOK_PAD_3 HOOK_PAD(4)
#define HOOK_PAD(number) long hook_pad_##number __attribute__((unused)),
#else
#define HOOK_TAKES_REAL
#define HOOK_GIVES_REAL
#define HOOK_ARGUMENTS(...) (__VA_ARGS__)
#endif

// count * size, or what can only fail.
//
// SIZE_MAX is what no allocator can give, so that it fails as the product would.
static inline size_t hook_product(size_t count, size_t size)
{
	size_t product;

	return __builtin_mul_overflow(count, size, &product) ? SIZE_MAX : product;
}

// Begins a hook: its declaration, which the compiler wants, and its head.
#define HOOK_DEFINES(result, symbol, parameters) \
	HOOK_SHOWN result HOOK_NAME(symbol)      \
	HOOK_ARGUMENTS parameters;               \
	HOOK_SHOWN result HOOK_NAME(symbol)      \
	HOOK_ARGUMENTS parameters

// The real function of a name, for one hook. Its alignment is its size, so that those of the
// section `entered` are an array.
struct hook_entry {
	const char *name; // as programs call it
	void *function;   // where there is but one
	void *hook;       // of a patched entry: what it leads to; NULL: nothing, it is called
} __attribute__((aligned(4 * sizeof(void *))));

// log2 of an alignment, as events have it; 0 for none.
static inline uint8_t hook_log2(size_t alignment)
{
	return alignment ? (uint8_t)(63 - __builtin_clzll(alignment)) : 0;
}

// Record an allocation of `type`, after the real call, with fields `more` (EVENT_ALIGN, or 0)
// besides address, size and stack. Address 0: it failed, which is recorded as LANE_FAILED.
static inline __attribute__((always_inline)) void hook_allocated(uint32_t type, uint32_t more,
								 const struct event_call *call)
{
	uint32_t fields = EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK | more;

	if (unlikely(client_state) &&
	    language_heap_otherwise(type, fields, call->address, call->size, call->align_log2,
				    call->frame))
		return;
	if (unlikely(!call->address))
		event_record(LANE_FAILED, EVENT_SIZE | EVENT_STACK, 0, call->size, 0, call->frame);
	else if (more || (unlikely(client_state) && python_on && !python_is_same()))
		event_record(type, fields, call->address, call->size, call->align_log2,
			     call->frame);
	else if (unlikely(!event_quick(type, fields, call->address, call->size, call->frame)))
		event_changed(type, call->address, call->size, call->frame);
}

// Whether the block that call->address begins, a sample by its size, is one from here on. False: it
// is not recorded, as there is no room to remember it. Who watches (usdt_linux.h) hears of it.
static inline bool hook_keeps(const struct event_call *call)
{
	if (!sample_keep(call->address))
		return false;
	if (unlikely(usdt_is_watched()))
		usdt_alloc(call->address, call->size, sample_way.points * sample_mean);
	return true;
}

// An allocation that was hit (sample.h), drawn at that distance (sample_way.drawn, of then).
static inline __attribute__((always_inline)) void
hook_hit(uint32_t drawn, uint32_t type, uint32_t more, const struct event_call *call)
{
	uint32_t fields = EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK | more;
	uint64_t began = sample_time(&sample_way);

	if (likely(!drawn))
		hook_allocated(type, more, call);
	else if (likely(!client_state) ||
		 !language_heap_otherwise(type, fields, call->address, call->size, call->align_log2,
					  call->frame))
		event_sample(drawn, type, fields, call);
	sample_timed(began, drawn);
}

// The same where it has to be seen first whether the allocation is one of the samples.
static inline __attribute__((always_inline)) void
hook_allocated_maybe(uint32_t type, uint32_t more, const struct event_call *call)
{
	if (likely(!sample_mean) || !call->address)
		hook_allocated(type, more, call);
	else if (!sample_passes(&sample_way, call->size) && hook_keeps(call))
		hook_hit(sample_way.drawn, type, more, call);
}

// Record that the block at call->address, which is not 0, is about to be freed: before the real
// call.
static inline __attribute__((always_inline)) void hook_freed(const struct event_call *call)
{
	struct lane *lane = lane_get_mine();

	if (unlikely(lane->of_languages) && language_heap_frees(call->address, call->frame))
		return;
	if (unlikely(lane->free_stacks) ||
	    unlikely(!event_quick(LANE_FREE, EVENT_ADDRESS, call->address, 0, NULL)))
		event_record(LANE_FREE, EVENT_ADDRESS, call->address, 0, 0, call->frame);
}

// The program gives the block `ptr` (which may be NULL) to an allocator's function, whose hook's
// frame it is: recorded, unless its beginning was not.
static __attribute__((noinline, unused)) void hook_gives(void *ptr, const uintptr_t *frame)
{
	struct event_call call = { (uintptr_t)ptr, 0, 0, frame };

	if (ptr && !inside_gives(ptr) && !(sample_mean && sample_passed(call.address)))
		hook_freed(&call);
}

// The rest of a hook that returns nothing: `call` frees `ptr`. Where the call is an allocator's own
// (inside_linux.h) nothing is recorded.
#define HOOK_GIVES_PTR(call)                              \
	{                                                 \
		struct inside before = { 0 };             \
                                                          \
		if (inside_begins(&before, HOOK_FRAME)) { \
			inside_gives(ptr);                \
			call;                             \
			return;                           \
		}                                         \
		hook_gives(ptr, HOOK_FRAME);              \
		call;                                     \
		inside_ends(&before, NULL);               \
	}

// What makes `ptr` another block of that size, or the same one; NULL: it failed.
typedef void *(*hook_resizes)(void *ptr, size_t size, void *more);

// A realloc by that function, with what it is given besides, of a block of that heap (enum
// lane_language_heap, or 0). Recorded on both sides. Returns what `resize` does.
HIDDEN void *hook_resize(uint64_t heap, void *ptr, size_t size, const uintptr_t *frame,
			 hook_resizes resize, void *more);
