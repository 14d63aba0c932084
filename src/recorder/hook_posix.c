// hook_posix: malloc and its family, by symbol.
//
// Each hook calls the real function and records the call. An allocation is recorded after the real
// call, a free before it: in the other order another thread could be given the same address in
// between, and the trace would show two owners. realloc is recorded on both sides.
//
// Built with frame pointers: the walk of the stack starts at a hook's own frame.
#include "recorder/hook.h"
#include "recorder/real.h"

#define HOOK EXPORT

// The C library's declarations are not for us: these are the same.
void *malloc(size_t size);
void free(void *ptr);
void cfree(void *ptr);
void free_sized(void *ptr, size_t size);
void free_aligned_sized(void *ptr, size_t alignment, size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *ptr, size_t size);
void *reallocarray(void *ptr, size_t count, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size);
void *valloc(size_t size);
void *pvalloc(size_t size);

// A sample, or the first call of all.
static COLD void *hook_malloc_sampled(size_t size, const uintptr_t *frame)
{
	void *ptr = real.malloc(size);
	struct event_call call = { (uintptr_t)ptr, size, 0, frame };

	if ((ptr && sample_keep(call.address)) || (!ptr && size))
		hook_allocated(LANE_MALLOC, 0, &call);
	return ptr;
}

// What is no sample must cost next to nothing: so that is known before anything else.
HOOK void *malloc(size_t size)
{
	struct event_call call = { 0, size, 0, HOOK_FRAME };
	void *ptr;

	if (unlikely(sample_mean)) {
		if (likely(sample_passes(&sample_way, size)))
			return real.malloc(size);
		return hook_malloc_sampled(size, HOOK_FRAME);
	}
	ptr = real.malloc(size);
	call.address = (uintptr_t)ptr;
	if (likely(ptr || size))
		hook_allocated(LANE_MALLOC, 0, &call);
	return ptr;
}

static inline __attribute__((always_inline)) void hook_free(void *ptr, const uintptr_t *frame)
{
	struct event_call call = { (uintptr_t)ptr, 0, 0, frame };

	if (unlikely(!ptr))
		return;
	hook_freed(&call);
	real.free(ptr);
}

HOOK void free(void *ptr)
{
	if (unlikely(sample_mean) && likely(sample_passed((uintptr_t)ptr)))
		real.free(ptr);
	else
		hook_free(ptr, HOOK_FRAME);
}

HOOK void cfree(void *ptr)
{
	free(ptr);
}

// C23. The real ones, where there are any, do what free does.
HOOK void free_sized(void *ptr, size_t size)
{
	(void)size;
	free(ptr);
}

HOOK void free_aligned_sized(void *ptr, size_t alignment, size_t size)
{
	(void)alignment;
	(void)size;
	free(ptr);
}

// count * size, or what can only fail.
static inline size_t hook_product(size_t count, size_t size)
{
	size_t product;

	return __builtin_mul_overflow(count, size, &product) ? SIZE_MAX : product;
}

HOOK void *calloc(size_t count, size_t size)
{
	void *ptr = real.calloc(count, size);
	struct event_call call = { (uintptr_t)ptr, hook_product(count, size), 0, HOOK_FRAME };

	if (likely(ptr || call.size))
		hook_allocated_maybe(LANE_CALLOC, 0, &call);
	return ptr;
}

// A realloc of a block that was not sampled: what comes of it may be.
static COLD void *hook_realloc_passed(void *ptr, size_t size, const uintptr_t *frame)
{
	struct event_call call = { 0, size, 0, frame };
	void *result = real.realloc(ptr, size);

	call.address = (uintptr_t)result;
	if (result || size)
		hook_allocated_maybe(LANE_MALLOC, 0, &call);
	return result;
}

// The block `ptr` is given up, and what comes of it is recorded as the other half. The lane stays
// busy in between, so that a signal handler's events do not come between the halves.
static inline __attribute__((always_inline)) void *hook_realloc(void *ptr, size_t size,
								const uintptr_t *frame)
{
	struct event_call call = { (uintptr_t)ptr, 0, 0, frame };
	struct lane *lane;
	uint8_t *start, *at;
	void *result;

	if (unlikely(sample_mean) && sample_passed(call.address))
		return hook_realloc_passed(ptr, size, frame);
	lane = lane_enter();
	if (unlikely(!lane))
		return real.realloc(ptr, size);
	start = hook_start(lane);
	at = event_put(lane, start, LANE_REALLOC_FREE, EVENT_ADDRESS, &call);
	if (unlikely(!at)) {
		lane_leave(lane, start, start);
		return real.realloc(ptr, size);
	}
	lane_publish(lane, start, at);
	if (unlikely(lane->head + LANE_ROOM > lane->open_limit)) {
		lane->limit = lane->open_limit;
		if (lane_enter_slow(lane) != lane) // the recording has ended
			return real.realloc(ptr, size);
		lane->limit = 0;
	}
	lane->between = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	result = real.realloc(ptr, size);
	lane->between = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(lane->exact))
		clock_set_exact(lane);
	start = hook_start(lane);
	call.size = size;
	if (unlikely(sample_mean) && result &&
	    (sample_passes(&sample_way, size) || !sample_keep((uintptr_t)result))) {
		at = start; // it reads as if the block had been freed, which for samples is right
	} else if (likely(result && !client_paused)) {
		call.address = (uintptr_t)result;
		at = event_put(lane, start, LANE_REALLOC_ALLOC,
			       EVENT_ADDRESS | EVENT_SIZE | event_stack(lane, frame), &call);
	} else if (size && !result) {
		at = event_put(lane, start, LANE_REALLOC_UNDO, EVENT_ADDRESS | EVENT_SIZE, &call);
		if (unlikely(sample_mean))
			sample_keep(call.address);
	} else {
		at = start; // it freed the block, or allocations are not recorded now
	}
	lane_leave(lane, start, at ? at : start);
	return result;
}

HOOK void *realloc(void *ptr, size_t size)
{
	struct event_call call = { 0, size, 0, HOOK_FRAME };
	void *result;

	if (likely(ptr))
		return hook_realloc(ptr, size, HOOK_FRAME);
	result = real.realloc(NULL, size);
	call.address = (uintptr_t)result;
	if (likely(result || size))
		hook_allocated_maybe(LANE_MALLOC, 0, &call);
	return result;
}

// The real one may call realloc by name, which would come back to us: so it is realloc here.
HOOK void *reallocarray(void *ptr, size_t count, size_t size)
{
	size_t bytes = hook_product(count, size); // too many: the real one fails, with errno
	struct event_call call = { 0, bytes, 0, HOOK_FRAME };
	void *result;

	if (ptr)
		return hook_realloc(ptr, bytes, HOOK_FRAME);
	result = real.realloc(NULL, bytes);
	call.address = (uintptr_t)result;
	if (result || call.size)
		hook_allocated_maybe(LANE_MALLOC, 0, &call);
	return result;
}

HOOK int posix_memalign(void **out, size_t alignment, size_t size)
{
	int error = real.posix_memalign(out, alignment, size);
	struct event_call call = { error ? 0 : (uintptr_t)*out, size, hook_log2(alignment),
				   HOOK_FRAME };

	if (call.address || (error && size))
		hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, &call);
	return error;
}

HOOK void *aligned_alloc(size_t alignment, size_t size)
{
	void *ptr = real.aligned_alloc(alignment, size);
	struct event_call call = { (uintptr_t)ptr, event_new_size(alignment, size),
				   hook_log2(alignment), HOOK_FRAME };

	if (ptr || size)
		hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, &call);
	return ptr;
}

HOOK void *memalign(size_t alignment, size_t size)
{
	void *ptr = real.memalign(alignment, size);
	struct event_call call = { (uintptr_t)ptr, size, hook_log2(alignment), HOOK_FRAME };

	if (ptr || size)
		hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, &call);
	return ptr;
}

enum { HOOK_PAGE_LOG2 = 12 };

HOOK void *valloc(size_t size)
{
	void *ptr = real.valloc(size);
	struct event_call call = { (uintptr_t)ptr, size, HOOK_PAGE_LOG2, HOOK_FRAME };

	if (ptr || size)
		hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, &call);
	return ptr;
}

HOOK void *pvalloc(size_t size)
{
	void *ptr = real.pvalloc(size);
	struct event_call call = { (uintptr_t)ptr, size, HOOK_PAGE_LOG2, HOOK_FRAME };

	if (ptr || size)
		hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, &call);
	return ptr;
}
