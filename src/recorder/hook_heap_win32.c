// hook_heap_win32: the heaps of ntdll. malloc, new, GlobalAlloc and LocalAlloc of every runtime
// come through these five functions, static runtimes too.
//
// A free is recorded before it happens, an allocation behind it, a realloc on both sides.
#include "recorder/client.h"
#include "recorder/event.h"
#include "recorder/hook_win32.h"
#include "recorder/recording.h"
#include "recorder/text.h"
#include "recorder/vm_win32.h"
#include "recorder/walk_win32.h"

enum {
	HOOK_HEAP_BYTES = 12, // of a heap's handle and flags

	// Where the registers of interrupted code are, in what the system puts on the stack.
	HOOK_CONTEXT_ALIGNED = sizeof(void *) == 8 ? 16 : 4,
	HOOK_CONTEXT_BYTES = sizeof(void *) == 8 ? 1232 : 716,
	HOOK_CONTEXT_FLAGS = sizeof(void *) == 8 ? 48 : 0,
	HOOK_CONTEXT_CS = sizeof(void *) == 8 ? 56 : 188,
	HOOK_CONTEXT_SP = sizeof(void *) == 8 ? 152 : 196,
	HOOK_CONTEXT_KIND = sizeof(void *) == 8 ? 0x100000 : 0x10000, // of this processor
	HOOK_CONTEXT_SYSTEM = 0x7fff0000, // bits of the flags that name the kind, and more

	HOOK_FRAME_BYTES = 256, // below a hook's frame, to the return address of what it calls
};

// 18 bytes: three words of head, the handle in 8 and the flags in 4.
static uint8_t *hook_put_extra(uint8_t *at, uint16_t kind, uint64_t heap, uint32_t flags)
{
	const uint16_t extra[3] = { LANE_EXTRA, kind, HOOK_HEAP_BYTES };

	__builtin_memcpy(at, extra, sizeof(extra));
	event_store(at + sizeof(extra), heap);
	__builtin_memcpy(at + sizeof(extra) + 8, &flags, sizeof(flags));
	return at + sizeof(extra) + HOOK_HEAP_BYTES;
}

// From here on the lane's events are of another heap, or its calls have other flags.
//
// A heap that was named before goes by its number in the lane, in two bytes. 32 are remembered, by
// handle and flags; another one at the same place is named in full again.
static COLD void hook_put_heap(struct lane *lane, uint64_t heap, uint32_t flags)
{
	struct lane_heap *known;
	uint8_t *start;
	uint16_t head;

	lane = lane_enter();
	if (!lane)
		return;
	start = lane_at(lane, lane->head);
	lane->heap = heap;
	lane->heap_flags = flags;
	known = &lane->heaps[(heap >> 16 ^ heap >> 21 ^ flags) % LANE_HEAPS_KNOWN];
	if (likely(known->handle == heap && known->flags == flags)) {
		head = (uint16_t)(LANE_HEAP | known->number << LANE_HEAP_SHIFT);
		__builtin_memcpy(start, &head, sizeof(head));
		lane_leave(lane, start, start + sizeof(head));
		return;
	}
	if (lane->heaps_count < LANE_HEAPS_MAX)
		*known = (struct lane_heap){ heap, flags, ++lane->heaps_count };
	lane_leave(lane, start, hook_put_extra(start, LANE_EXTRA_HEAP, heap, flags));
}

// Of a call that allocates.
static inline void hook_set_call(struct lane *lane, const void *heap, uint32_t flags)
{
	if (unlikely(lane->heap != (uintptr_t)heap || lane->heap_flags != flags))
		hook_put_heap(lane, (uintptr_t)heap, flags);
}

// Of one that does not: the flags may stay as they are.
static inline void hook_set_heap(struct lane *lane, const void *heap)
{
	if (unlikely(lane->heap != (uintptr_t)heap))
		hook_put_heap(lane, (uintptr_t)heap, 0);
}

// What the thread was in did not come back: an exception left it, and it returned nothing. A
// realloc's block lives on; an allocation has failed.
static void hook_settle(struct lane *lane, const uintptr_t *frame)
{
	uintptr_t block = lane->reallocated;
	bool allocates = lane->inside & HOOK_ALLOCATES;

	lane->inside = 0;
	lane->reallocated = 0;
	if (block) {
		event_record(LANE_REALLOC_UNDO, EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK, block,
			     lane->asked, 0, frame);
		if (sample_mean)
			sample_keep(block);
		walk_soon();
	} else if (allocates && !client_state) {
		event_record(LANE_FAILED, EVENT_SIZE | EVENT_STACK, 0, lane->asked, 0, frame);
		walk_soon();
	}
}

static uint16_t hook_code_segment(void)
{
	uint16_t segment;

	__asm__("movw %%cs, %0" : "=r"(segment));
	return segment;
}

// Whether the registers of code that was interrupted between `low` and `high` are kept there.
//
// An exception puts a CONTEXT on the stack, below the interrupted frame. It is known by its flags,
// its code segment, and a stack pointer that lies above it: 1,232 bytes in 64 bits, 716 in 32.
static bool hook_finds_registers(uintptr_t low, uintptr_t high)
{
	const uintptr_t aligned = HOOK_CONTEXT_ALIGNED - 1;
	uint16_t segment = hook_code_segment();

	for (uintptr_t at = (low + aligned) & ~aligned; at + HOOK_CONTEXT_BYTES <= high;
	     at += HOOK_CONTEXT_ALIGNED) {
		const uint8_t *context = (const uint8_t *)at;
		uint32_t flags;
		uint16_t cs;
		uintptr_t sp;

		memcpy(&flags, context + HOOK_CONTEXT_FLAGS, sizeof(flags));
		memcpy(&cs, context + HOOK_CONTEXT_CS, sizeof(cs));
		memcpy(&sp, context + HOOK_CONTEXT_SP, sizeof(sp));
		if ((flags & HOOK_CONTEXT_SYSTEM) == HOOK_CONTEXT_KIND && cs == segment &&
		    sp > at && sp <= high)
			return true;
	}
	return false;
}

// A fiber of another stack is in no call that was begun here.
static bool hook_is_below(uintptr_t low, uintptr_t inside)
{
	const uintptr_t *block = (const void *)kernel_teb();

	return low < inside && inside < block[1] && low >= block[2];
}

// `interrupted`: whether an exception's registers are between here and the call. With them it is a
// handler of the call's, without them the call itself has called us.
bool hook_is_within(const struct lane *lane, const uintptr_t *frame, bool interrupted)
{
	uintptr_t inside = hook_inside(lane), low = (uintptr_t)frame;

	return hook_is_below(low, inside) && hook_finds_registers(low, inside) == interrupted;
}

// What an exception has left there may not be overwritten yet: the call's end is then only noticed
// later, by one whose frame is above.
bool hook_is_held(const struct lane *lane, const uintptr_t *frame)
{
	uintptr_t inside = hook_inside(lane), low = (uintptr_t)frame;

	if (!hook_is_below(low, inside))
		return false;
	if (inside - low > HOOK_FRAME_BYTES)
		low = inside - HOOK_FRAME_BYTES;
	for (const uintptr_t *at = (const void *)low; (uintptr_t)at < inside; at++)
		if (*at - patch_own.start < patch_own.bytes)
			return true;
	return false;
}

// Half of a realloc: the new block, or the end of the old one, which came to us by way of somebody
// else's hook.
static bool hook_is_half(const struct lane *lane, const uintptr_t *frame,
			 const struct hook_call *call)
{
	if (!lane->reallocated || (uintptr_t)call->heap != lane->heap)
		return false;
	return (call->kind == HOOK_ALLOCATES ? call->operand >= lane->asked
					     : call->operand == lane->reallocated) &&
	       hook_is_held(lane, frame);
}

// The handler has come to its end: the call that it interrupted is the current one again.
void hook_resume(struct lane *lane)
{
	const struct lane_call *call = &lane->interrupted[--lane->interrupted_count];

	lane->inside = call->inside;
	lane->reallocated = call->reallocated;
	lane->asked = call->asked;
}

static void hook_interrupt(struct lane *lane)
{
	lane->interrupted[lane->interrupted_count++] =
		(struct lane_call){ lane->inside, lane->reallocated, lane->asked };
	lane->inside = lane->reallocated = 0;
}

// What the thread was in: is it to go on, or was it left?
//
// Up to four interrupted calls are kept; a fifth one, and what was left by an exception, is
// settled.
static void hook_look_back(struct lane *lane, const uintptr_t *frame)
{
	while (lane->inside || lane->interrupted_count) {
		if (!lane->inside)
			hook_resume(lane);
		if (lane->interrupted_count < LANE_CALLS_MAX &&
		    (hook_is_within(lane, frame, true) || hook_is_held(lane, frame))) {
			hook_interrupt(lane);
			return;
		}
		hook_settle(lane, frame);
	}
}

// NULL: the call is nested in another one of the heap's own, and is passed on.
COLD struct lane *hook_enter_slow(struct lane *lane, const uintptr_t *frame,
				  const struct hook_call *call)
{
	if (hook_is_nested(lane, frame) || hook_is_half(lane, frame, call))
		return NULL;
	if (lane->ring) {
		hook_look_back(lane, frame);
		return lane;
	}
	lane = lane_enter(); // the thread's first
	if (lane)
		lane->limit = lane->open_limit;
	return lane;
}

// The order: is it recorded at all (paused, sampled), which heap, the short form of an event, the
// long one.
static inline __attribute__((always_inline)) void hook_allocated(struct lane *lane,
								 const void *heap, uint32_t flags,
								 uintptr_t block, size_t size,
								 const uintptr_t *frame)
{
	const uint32_t fields = EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK;

	if (unlikely(client_state) && client_stays_paused())
		return;
	if (unlikely(sample_mean) && block &&
	    (sample_passes(&lane->sample_way, size) || !sample_keep(block)))
		return;
	hook_set_call(lane, heap, flags);
	if (likely(block && event_quick(LANE_MALLOC, fields, block, size, frame)))
		return;
	if (block) {
		event_record(LANE_MALLOC, fields, block, size, 0, frame);
		walk_now_and_then();
	} else {
		event_record(LANE_FAILED, EVENT_SIZE | EVENT_STACK, 0, size, 0, frame);
		walk_soon();
	}
}

// malloc of every C runtime comes here. With HEAP_GENERATE_EXCEPTIONS it may leave by an exception,
// which hook_settle finds out later.
NT_CALL void *hook_RtlAllocateHeap(void *heap, uint32_t flags, size_t size)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane *lane = hook_enter(frame, (struct hook_call){ HOOK_ALLOCATES, heap, size });
	void *block;

	if (unlikely(!lane))
		return patch_real.RtlAllocateHeap(heap, flags, size);
	lane->asked = size;
	block = patch_real.RtlAllocateHeap(heap, flags, size);
	hook_leave(lane);
	hook_allocated(lane, heap, flags, (uintptr_t)block, size, frame);
	return block;
}

// The block, whose end was recorded, lives on: it is another heap's, or damaged, or is none.
//
// The low byte of RtlFreeHeap's result is 0 then.
static COLD void hook_not_freed(struct lane *lane, const void *heap, uintptr_t block,
				const uintptr_t *frame)
{
	hook_set_heap(lane, heap);
	event_record(LANE_REALLOC_UNDO, EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK, block, 0, 0,
		     frame);
	if (sample_mean)
		sample_keep(block);
}

// The end is recorded before the call, as another thread may be given the block after it. Whether
// the heap has taken it is known only then (hook_not_freed).
NT_CALL uint32_t hook_RtlFreeHeap(void *heap, uint32_t flags, void *block)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane *lane;
	uint32_t done;
	bool passed;

	if (unlikely(!block))
		return patch_real.RtlFreeHeap(heap, flags, block);
	lane = hook_enter(frame, (struct hook_call){ HOOK_OTHER, heap, (uintptr_t)block });
	passed = unlikely(sample_mean) && lane && sample_passed((uintptr_t)block);
	if (likely(lane) && likely(!passed)) {
		hook_set_heap(lane, heap);
		if (unlikely(lane->free_stacks) ||
		    unlikely(!event_quick(LANE_FREE, EVENT_ADDRESS, (uintptr_t)block, 0, NULL)))
			event_record(LANE_FREE, EVENT_ADDRESS, (uintptr_t)block, 0, 0, frame);
	}
	done = patch_real.RtlFreeHeap(heap, flags, block);
	if (unlikely(!lane))
		return done;
	hook_leave(lane);
	if (unlikely((uint8_t)done == 0) && !passed)
		hook_not_freed(lane, heap, (uintptr_t)block, frame);
	return done;
}

// The other half of a realloc that did not fail with an exception.
static void hook_reallocated(struct lane *lane, const void *heap, uint32_t flags, uintptr_t block,
			     uintptr_t result, size_t size, const uintptr_t *frame)
{
	const uint32_t fields = EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK;

	hook_set_call(lane, heap, flags);
	if (!result) {
		event_record(LANE_REALLOC_UNDO, fields, block, size, 0, frame);
		if (unlikely(sample_mean))
			sample_keep(block);
		walk_soon();
		return;
	}
	// Without it, it reads as if the block had been freed.
	if (unlikely(client_state) ||
	    (unlikely(sample_mean) &&
	     (sample_passes(&lane->sample_way, size) || !sample_keep(result))))
		return;
	event_record(LANE_REALLOC_ALLOC, fields, result, size, 0, frame);
}

// As on other systems the first half is recorded before the call. `reallocated` says which block
// that was, in case the call is left.
NT_CALL void *hook_RtlReAllocateHeap(void *heap, uint32_t flags, void *block, size_t size)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane *lane;
	bool passed;
	void *result;

	if (!block)
		return patch_real.RtlReAllocateHeap(heap, flags, block, size);
	lane = hook_enter(frame, (struct hook_call){ HOOK_OTHER });
	if (!lane)
		return patch_real.RtlReAllocateHeap(heap, flags, block, size);
	lane->asked = size;
	passed = unlikely(sample_mean) && sample_passed((uintptr_t)block);
	if (!passed) {
		hook_set_call(lane, heap, flags);
		event_record(LANE_REALLOC_FREE, EVENT_ADDRESS, (uintptr_t)block, 0, 0, frame);
		lane->reallocated = (uintptr_t)block;
	}
	result = patch_real.RtlReAllocateHeap(heap, flags, block, size);
	lane->reallocated = 0;
	hook_leave(lane);
	if (!passed)
		hook_reallocated(lane, heap, flags, (uintptr_t)block, (uintptr_t)result, size,
				 frame);
	else if (result)
		hook_allocated(lane, heap, flags, (uintptr_t)result, size, frame);
	return result;
}

// What it was made with.
static void hook_made(const void *heap, uint32_t flags)
{
	struct lane *lane = lane_enter();
	uint8_t *start;

	if (!lane)
		return;
	start = lane_at(lane, lane->head);
	lane_leave(lane, start, hook_put_extra(start, LANE_EXTRA_HEAP_NEW, (uintptr_t)heap, flags));
}

// The memory that a new heap takes is the allocator's.
NT_CALL void *hook_RtlCreateHeap(uint32_t flags, void *at, size_t reserve, size_t commit,
				 void *lock, void *definition)
{
	struct lane *lane = hook_enter(HOOK_FRAME, (struct hook_call){ HOOK_OTHER });
	void *heap = patch_real.RtlCreateHeap(flags, at, reserve, commit, lock, definition);

	if (lane)
		hook_leave(lane);
	if (lane && heap)
		hook_made(heap, flags);
	return heap;
}

NT_CALL void *hook_RtlDestroyHeap(void *heap)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane *lane = hook_enter(frame, (struct hook_call){ HOOK_OTHER });
	void *result;

	if (lane)
		vm_heap_gone(heap, frame);
	result = patch_real.RtlDestroyHeap(heap);
	if (lane)
		hook_leave(lane);
	return result;
}
