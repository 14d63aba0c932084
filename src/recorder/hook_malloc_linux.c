// hook_malloc_linux: malloc and its family, by symbol.
//
// Each hook calls the real function and records the call. An allocation is recorded after the real
// call, a free before it: in the other order another thread could be given the same address in
// between, and the trace would show two owners. realloc is recorded on both sides.
//
// Built with frame pointers: the walk of the stack starts at a hook's own frame. What a real
// function calls itself is passed on (inside_linux.h).
#include "recorder/hook_linux.h"
#include "recorder/python.h"
#include "recorder/real_linux.h"

#define HOOK HOOK_SHOWN

// What is behind a hook.
#ifndef HOOK_ENTERED
#define HOOK_REAL(name) real.name
#elif defined(HOOK_REGISTER)
#define HOOK_REAL(name) ((__typeof__(real.name))hook_real)
#else
#define HOOK_REAL(name) ((__typeof__(real.name))hook_entered_##name.function)
#endif

// The C library's declarations are not for us: these are the same.
void *malloc HOOK_ARGUMENTS(size_t size);
void free HOOK_ARGUMENTS(void *ptr);
void *calloc HOOK_ARGUMENTS(size_t count, size_t size);
void *realloc HOOK_ARGUMENTS(void *ptr, size_t size);
int posix_memalign HOOK_ARGUMENTS(void **out, size_t alignment, size_t size);
void *aligned_alloc HOOK_ARGUMENTS(size_t alignment, size_t size);
void *memalign HOOK_ARGUMENTS(size_t alignment, size_t size);
void *valloc HOOK_ARGUMENTS(size_t size);
void *pvalloc HOOK_ARGUMENTS(size_t size);
#ifndef HOOK_ENTERED
void cfree(void *ptr);
void free_sized(void *ptr, size_t size);
void free_aligned_sized(void *ptr, size_t alignment, size_t size);
void *reallocarray(void *ptr, size_t count, size_t size);
#endif

// A sample, or the first call of all.
//
// With sampling most calls pass by two compares; this is for those that are drawn. `drawn` is the
// mean distance of samples then, as a power of two; 0: every call is recorded.
static COLD void *hook_malloc_sampled(size_t size, const uintptr_t *frame HOOK_TAKES_REAL)
{
	uint32_t drawn = sample_way.drawn;
	void *ptr = HOOK_REAL(malloc)(size);
	struct event_call call = { (uintptr_t)ptr, size, 0, frame };

	if (likely(ptr)) {
		if (hook_keeps(&call))
			hook_hit(drawn, LANE_MALLOC, 0, &call);
	} else if (size) {
		hook_allocated(LANE_MALLOC, 0, &call);
	}
	return ptr;
}

// There is an allocator that may call other hooks.
//
// inside_begins: are we within a call of that allocator already? Then this one is not the
// program's, and only its result is noted.
static __attribute__((noinline)) void *hook_malloc_watched(size_t size,
							   const uintptr_t *frame HOOK_TAKES_REAL)
{
	struct inside before = { 0 };
	struct event_call call = { 0, size, 0, frame };
	void *ptr;

	if (inside_begins(&before, frame))
		return inside_got(&before, HOOK_REAL(malloc)(size));
	ptr = HOOK_REAL(malloc)(size);
	inside_ends(&before, ptr);
	call.address = (uintptr_t)ptr;
	if (likely(ptr || size))
		hook_allocated_maybe(LANE_MALLOC, 0, &call);
	return ptr;
}

// It returned NULL, or what the program says of itself is to be looked at.
static __attribute__((noinline)) void *hook_malloc_otherwise(void *ptr, size_t size,
							     const uintptr_t *frame)
{
	struct event_call call = { (uintptr_t)ptr, size, 0, frame };

	if (likely(ptr || size))
		hook_allocated(LANE_MALLOC, 0, &call);
	return ptr;
}

// What is no sample must cost next to nothing.
static __attribute__((noinline)) void *hook_malloc_seldom(size_t size,
							  const uintptr_t *frame HOOK_TAKES_REAL)
{
	if (unlikely(sample_seldom.watched))
		return hook_malloc_watched(size, frame HOOK_GIVES_REAL);
	if (INSIDE_OWN(frame) || likely(sample_passes(&sample_way, size)))
		return HOOK_REAL(malloc)(size);
	return hook_malloc_sampled(size, frame HOOK_GIVES_REAL);
}

// What nearly all calls do is here and in free, and each other way ends them with a jump: so few
// registers are saved.
HOOK void *malloc HOOK_ARGUMENTS(size_t size)
{
	void *ptr;

	if (unlikely(sample_seldom.any))
		return hook_malloc_seldom(size, HOOK_FRAME HOOK_GIVES_REAL);
	if (INSIDE_OWN(HOOK_FRAME))
		return HOOK_REAL(malloc)(size);
	ptr = HOOK_REAL(malloc)(size);
	if (unlikely(!ptr) || unlikely(client_state))
		return hook_malloc_otherwise(ptr, size, HOOK_FRAME);
	if (unlikely(!event_quick(LANE_MALLOC, EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK,
				  (uintptr_t)ptr, size, HOOK_FRAME)))
		return (void *)(uintptr_t)event_changed(LANE_MALLOC, (uintptr_t)ptr, size,
							HOOK_FRAME);
	return ptr;
}

// `free` of a block is recorded before the block can be another thread's.
static inline __attribute__((always_inline)) void hook_free(void *ptr,
							    const uintptr_t *frame HOOK_TAKES_REAL)
{
	struct event_call call = { (uintptr_t)ptr, 0, 0, frame };

	if (unlikely(!ptr))
		return;
	hook_freed(&call);
	HOOK_REAL(free)(ptr);
}

// Not recorded: what libc frees for itself, what an allocator's own function gave out, what is
// called by another hook's function, and, with sampling, what was no sample.
static __attribute__((noinline)) void hook_free_watched(void *ptr,
							const uintptr_t *frame HOOK_TAKES_REAL)
{
	struct inside before = { 0 };
	bool nested = inside_begins(&before, frame);

	if (inside_from_libc(frame) || inside_gives(ptr) || (nested && !before.helps) ||
	    (sample_mean && sample_passed((uintptr_t)ptr)))
		HOOK_REAL(free)(ptr);
	else
		hook_free(ptr, frame HOOK_GIVES_REAL);
	if (!nested)
		inside_ends(&before, NULL);
}

// A block that was recorded, or the first call of all.
static COLD void hook_free_sampled(void *ptr, const uintptr_t *frame HOOK_TAKES_REAL)
{
	struct event_call call = { (uintptr_t)ptr, 0, 0, frame };
	uint64_t began = sample_time(&sample_way);

	if (likely(ptr))
		hook_freed(&call);
	sample_timed(began, false);
	HOOK_REAL(free)(ptr);
}

static __attribute__((noinline)) void hook_free_seldom(void *ptr,
						       const uintptr_t *frame HOOK_TAKES_REAL)
{
	if (unlikely(sample_seldom.watched))
		hook_free_watched(ptr, frame HOOK_GIVES_REAL);
	else if (INSIDE_OWN(frame) || likely(sample_passed((uintptr_t)ptr)))
		HOOK_REAL(free)(ptr);
	else
		hook_free_sampled(ptr, frame HOOK_GIVES_REAL);
}

// Frees have stacks, or there are heaps of a language; or there is no block.
static __attribute__((noinline)) void hook_free_otherwise(void *ptr,
							  const uintptr_t *frame HOOK_TAKES_REAL)
{
	hook_free(ptr, frame HOOK_GIVES_REAL);
}

// The event is not for the short way.
static __attribute__((noinline)) void hook_free_put(void *ptr,
						    const uintptr_t *frame HOOK_TAKES_REAL)
{
	event_record(LANE_FREE, EVENT_ADDRESS, (uintptr_t)ptr, 0, 0, frame);
	HOOK_REAL(free)(ptr);
}

HOOK void free HOOK_ARGUMENTS(void *ptr)
{
	if (unlikely(sample_seldom.any))
		hook_free_seldom(ptr, HOOK_FRAME HOOK_GIVES_REAL);
	else if (INSIDE_OWN(HOOK_FRAME))
		HOOK_REAL(free)(ptr);
	else if (unlikely(!ptr) || unlikely(lane_get_mine()->frees_seldom))
		hook_free_otherwise(ptr, HOOK_FRAME HOOK_GIVES_REAL);
	else if (unlikely(!event_quick(LANE_FREE, EVENT_ADDRESS, (uintptr_t)ptr, 0, NULL)))
		hook_free_put(ptr, HOOK_FRAME HOOK_GIVES_REAL);
	else
		HOOK_REAL(free)(ptr);
}

#ifndef HOOK_ENTERED
// What the C library does by the free that is found by its name: the executable's, if it has one,
// whose blocks these are. That is recorded as any call of it.
static inline __attribute__((always_inline)) void hook_free_found(void *ptr)
{
	real_find();
	if (unlikely(real.free_before != NULL))
		real.free_before(ptr);
	else
		free(ptr);
}

HOOK void cfree(void *ptr)
{
	hook_free_found(ptr);
}

// C23. The real ones, where there are any, do what free does.
HOOK void free_sized(void *ptr, size_t)
{
	hook_free_found(ptr);
}

HOOK void free_aligned_sized(void *ptr, size_t, size_t)
{
	hook_free_found(ptr);
}
#endif

HOOK void *calloc HOOK_ARGUMENTS(size_t count, size_t size)
{
	struct inside before = { 0 };
	struct event_call call = { 0, hook_product(count, size), 0, HOOK_FRAME };
	void *ptr;

	if (inside_begins(&before, HOOK_FRAME))
		return inside_got(&before, HOOK_REAL(calloc)(count, size));
	ptr = HOOK_REAL(calloc)(count, size);
	inside_ends(&before, ptr);
	call.address = (uintptr_t)ptr;
	if (likely(ptr || call.size))
		hook_allocated_maybe(LANE_CALLOC, 0, &call);
	return ptr;
}

// A realloc of a block that was not recorded: what comes of it may be.
static COLD void *hook_realloc_passed(uint64_t heap, void *ptr, size_t size, const uintptr_t *frame,
				      hook_resizes resize, void *more)
{
	struct event_call call = { 0, size, 0, frame };
	void *result = resize(ptr, size, more);

	call.address = (uintptr_t)result;
	if (unlikely(heap))
		language_heap_made(heap, LANE_MALLOC, &call);
	else if (result || size)
		hook_allocated_maybe(LANE_MALLOC, 0, &call);
	return result;
}

// The block `ptr` is given up, and what comes of it is recorded as the other half. The lane stays
// busy in between, so that a signal handler's events do not come between the halves.
//
// In the lane, realloc(0x5000, 200) that moves is `REALLOC_FREE 0x5000` before the call and
// `REALLOC_ALLOC 0x7000 200` after it. If it fails, `REALLOC_UNDO 0x5000` says that the first did
// not happen. If size is 0 and the block was freed, the first half is all there is.
static inline __attribute__((always_inline)) void *
hook_realloc_block(uint64_t heap, void *ptr, size_t size, const uintptr_t *frame,
		   hook_resizes resize, void *more)
{
	struct event_call call = { (uintptr_t)ptr, 0, 0, frame };
	struct lane *lane;
	uint8_t *start, *at;
	void *result;

	if (unlikely(client_state & CLIENT_LANGUAGE_HEAPS) && language_heap_backs((uintptr_t)ptr))
		return resize(ptr, size, more);
	if (inside_gives(ptr) || (unlikely(sample_mean) && sample_passed(call.address)))
		return hook_realloc_passed(heap, ptr, size, frame, resize, more);
	lane = lane_enter();
	if (unlikely(!lane))
		return resize(ptr, size, more);
	if (unlikely(client_state)) {
		language_heap_turn(lane, heap);
		if (python_on)
			python_write(lane);
	}
	start = lane_at(lane, lane->head);
	at = event_put(lane, start, LANE_REALLOC_FREE, EVENT_ADDRESS, &call);
	if (unlikely(!at)) {
		lane_leave(lane, start, start);
		return resize(ptr, size, more);
	}
	lane_publish(lane, start, at);
	// The second half needs room as well, which is made before the real call: after it nothing
	// may wait, as the block is the program's again.
	if (unlikely(lane->head + LANE_ROOM > lane->open_limit)) {
		lane->limit = lane->open_limit;
		if (lane_enter_slow(lane) != lane) // the recording has ended
			return resize(ptr, size, more);
		lane->limit = 0;
	}
	lane->between = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	result = resize(ptr, size, more);
	lane->between = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(lane->exact))
		clock_set_exact(lane);
	start = lane_at(lane, lane->head);
	call.size = size;
	call.address = result ? (uintptr_t)result : call.address;
	if (unlikely(sample_mean) && result &&
	    (sample_passes(&sample_way, size) || !hook_keeps(&call))) {
		at = start; // it reads as if the block had been freed, which for samples is right
	} else if (likely(result && !(client_state & CLIENT_PAUSED))) {
		bool goes_on = likely(!sample_mean) || likely(!sample_way.drawn) ||
			       event_put_sample(lane, sample_way.drawn);

		start = lane_at(lane, lane->head);
		at = likely(goes_on)
			     ? event_put(lane, start, LANE_REALLOC_ALLOC,
					 EVENT_ADDRESS | EVENT_SIZE | event_stack(lane, frame),
					 &call)
			     : start;
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

#ifndef HOOK_ENTERED
void *hook_resize(uint64_t heap, void *ptr, size_t size, const uintptr_t *frame,
		  hook_resizes resize, void *more)
{
	return hook_realloc_block(heap, ptr, size, frame, resize, more);
}
#endif

#if defined(HOOK_ENTERED) && defined(HOOK_REGISTER)
#define HOOK_MORE hook_real

static inline __attribute__((always_inline)) void *hook_real_realloc(void *ptr, size_t size,
								     void *hook_real)
{
	return HOOK_REAL(realloc)(ptr, size);
}
#else
#define HOOK_MORE NULL

static inline __attribute__((always_inline)) void *hook_real_realloc(void *ptr, size_t size, void *)
{
	return HOOK_REAL(realloc)(ptr, size);
}
#endif

// realloc(NULL, n) is malloc(n), and is recorded so.
static inline __attribute__((always_inline)) void *
hook_realloc(void *ptr, size_t size, const uintptr_t *frame HOOK_TAKES_REAL)
{
	struct inside before = { 0 };
	struct event_call call = { 0, size, 0, frame };
	void *result;

	if (inside_begins(&before, frame)) {
		if (ptr && !inside_gives(ptr) && before.helps)
			return hook_realloc_block(0, ptr, size, frame, hook_real_realloc,
						  HOOK_MORE);
		return inside_got(&before, HOOK_REAL(realloc)(ptr, size));
	}
	if (likely(ptr)) {
		result = hook_realloc_block(0, ptr, size, frame, hook_real_realloc, HOOK_MORE);
		inside_ends(&before, result);
		return result;
	}
	result = HOOK_REAL(realloc)(NULL, size);
	inside_ends(&before, result);
	call.address = (uintptr_t)result;
	if (likely(result || size))
		hook_allocated_maybe(LANE_MALLOC, 0, &call);
	return result;
}

HOOK void *realloc HOOK_ARGUMENTS(void *ptr, size_t size)
{
	return hook_realloc(ptr, size, HOOK_FRAME HOOK_GIVES_REAL);
}

#ifndef HOOK_ENTERED
// The real one calls realloc by name: that is ours here, or the executable's, if it has one, whose
// blocks these are; that is recorded as any call of it. Too much for a product, and it fails, with
// errno: ours sets it, and what others do of SIZE_MAX nothing says.
HOOK void *reallocarray(void *ptr, size_t count, size_t size)
{
	size_t product = hook_product(count, size);

	real_find();
	if (likely(!real.realloc_before))
		return hook_realloc(ptr, product, HOOK_FRAME);
	if (product != SIZE_MAX)
		return real.realloc_before(ptr, product);
	if (real.errno_location)
		*real.errno_location() = 12; // ENOMEM
	return NULL;
}
#endif

static COLD int hook_posix_memalign_nested(const struct inside *before, void **out,
					   size_t alignment, size_t size HOOK_TAKES_REAL)
{
	int error = HOOK_REAL(posix_memalign)(out, alignment, size);

	if (!error)
		inside_got(before, *out);
	return error;
}

// A failure leaves `*out` as it was: it may be anything, and is no block. One of size 0 is not
// recorded.
HOOK int posix_memalign HOOK_ARGUMENTS(void **out, size_t alignment, size_t size)
{
	struct inside before = { 0 };
	struct event_call call = { 0, size, hook_log2(alignment), HOOK_FRAME };
	int error;

	if (inside_begins(&before, HOOK_FRAME))
		return hook_posix_memalign_nested(&before, out, alignment, size HOOK_GIVES_REAL);
	error = HOOK_REAL(posix_memalign)(out, alignment, size);
	inside_ends(&before, error ? NULL : *out);
	call.address = error ? 0 : (uintptr_t)*out;
	if (call.address || (error && size))
		hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, &call);
	return error;
}

enum { HOOK_PAGE_LOG2 = 12 };

// What has an alignment and returns its block; `got` is the call that it passes on.
#define HOOK_ALIGNED(name, bytes, align_log2, parameters, got)                  \
	HOOK void *name HOOK_ARGUMENTS parameters                               \
	{                                                                       \
		struct inside before = { 0 };                                   \
		struct event_call call = { 0, bytes, align_log2, HOOK_FRAME };  \
		void *ptr;                                                      \
                                                                                \
		if (inside_begins(&before, HOOK_FRAME))                         \
			return inside_got(&before, got);                        \
		ptr = got;                                                      \
		inside_ends(&before, ptr);                                      \
		call.address = (uintptr_t)ptr;                                  \
		if (ptr || size)                                                \
			hook_allocated_maybe(LANE_ALIGNED, EVENT_ALIGN, &call); \
		return ptr;                                                     \
	}

HOOK_ALIGNED(aligned_alloc, event_new_size(alignment, size), hook_log2(alignment),
	     (size_t alignment, size_t size), HOOK_REAL(aligned_alloc)(alignment, size))
HOOK_ALIGNED(memalign, size, hook_log2(alignment), (size_t alignment, size_t size),
	     HOOK_REAL(memalign)(alignment, size))
HOOK_ALIGNED(valloc, size, HOOK_PAGE_LOG2, (size_t size), HOOK_REAL(valloc)(size))
HOOK_ALIGNED(pvalloc, size, HOOK_PAGE_LOG2, (size_t size), HOOK_REAL(pvalloc)(size))
