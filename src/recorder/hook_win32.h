// hook_win32: what the hooks of ntdll's functions share.
//
// A thread that is inside a function of the heap keeps the frame of its outermost hook in its lane
// (lane->inside). What ntdll calls below that is the heap's own business: of heaps it is not
// recorded, of virtual memory it is recorded as the allocator's. An exception may leave a hook
// without coming back to it (HEAP_GENERATE_EXCEPTIONS). So a frame that is above the one that is
// kept says that the thread is out of it; and the call that was left so has failed. The stack that
// the failure is recorded with is that of the call that notices it. An exception's handler may also
// mend what was wrong (a page that was not to be touched) and let the heap go on: what it calls
// meanwhile is its own. That such a handler runs shows in the registers of what it interrupted,
// which the system has put on the stack between both.
//
// Somebody else may hook the same functions, before us or after us. What ntdll calls inside of a
// heap's function comes to us by way of that hook then, and is the heap's own business still; what
// the hook itself allocates is its own. That the outer call still runs shows in its return address,
// which is in our code, right below our frame.
//
// No hook calls the loader or a heap, waits for a lock of the system's, or touches the last error.
#pragma once

#include "recorder/lane.h"
#include "recorder/nt_win32.h"
#include "recorder/patch_win32.h"

// Where the walk of the stack begins: to be taken in the hook itself.
#define HOOK_FRAME ((const uintptr_t *)__builtin_frame_address(0))

// The hooks, by the names of what they are before.
#define HOOK_DECLARE(result, name, arguments) NT_CALL HIDDEN result hook_##name arguments;
NT_HOOKED(HOOK_DECLARE)
#undef HOOK_DECLARE

// What hook_enter gets of the call.
enum { HOOK_OTHER = 0, HOOK_ALLOCATES = 1, HOOK_OVER = 2 /* over one that is interrupted */ };

// `operand`: how much is allocated, or which block is freed.
struct hook_call {
	uintptr_t kind; // HOOK_ALLOCATES or HOOK_OTHER
	const void *heap;
	uintptr_t operand;
};

// The frame of the outermost hook of a heap; 0: the thread is in none.
static inline uintptr_t hook_inside(const struct lane *lane)
{
	return lane->inside & ~(uintptr_t)(HOOK_ALLOCATES | HOOK_OVER);
}

// Of a thread that is in one: whether the hook whose frame this is was called from there, by the
// handler of an exception if `interrupted`, else by the heap.
HIDDEN bool hook_is_within(const struct lane *lane, const uintptr_t *frame, bool interrupted);

// The hook whose frame this is was called by the heap itself, in a call that is recorded already.
static inline bool hook_is_nested(const struct lane *lane, const uintptr_t *frame)
{
	return unlikely(lane->inside != 0) && patch_from_ntdll(frame[1]) &&
	       hook_is_within(lane, frame, false);
}

// The call that the thread is in, if it is in one, has called the hook whose frame this is: by
// somebody's code, perhaps.
HIDDEN bool hook_is_held(const struct lane *lane, const uintptr_t *frame);

// Where the walk for an event begins: at the outermost hook. What a heap's function calls inside
// itself has the stack of that function's caller, so that no frame of ours is in it.
static inline const uintptr_t *hook_outermost(const struct lane *lane, const uintptr_t *frame)
{
	if (!hook_is_nested(lane, frame) && !hook_is_held(lane, frame))
		return frame;
	return (const uintptr_t *)hook_inside(lane);
}

// A call on a heap begins. Returns the thread's lane; NULL: nothing is recorded, also because the
// call is the heap's own.
HIDDEN struct lane *hook_enter_slow(struct lane *lane, const uintptr_t *frame,
				    const struct hook_call *what);

// A hook of a heap's function begins. NULL: only the real function is to be called. Else hook_leave
// has to follow.
static inline struct lane *hook_enter(const uintptr_t *frame, struct hook_call what)
{
	struct lane *lane = lane_get_mine();
	uintptr_t call = what.kind;

	kernel_need_stack(frame);
	if (unlikely(lane->inside != 0 || !lane->ring)) {
		lane = hook_enter_slow(lane, frame, &what);
		if (!lane)
			return NULL;
		call |= lane->interrupted_count ? HOOK_OVER : 0;
	}
	lane->inside = (uintptr_t)frame | call;
	return lane;
}

// Back to what was interrupted last.
HIDDEN void hook_resume(struct lane *lane);

// The call is over: the thread is in no heap, or in the one whose call was interrupted.
static inline void hook_leave(struct lane *lane)
{
	if (unlikely(lane->inside & HOOK_OVER))
		hook_resume(lane);
	else
		lane->inside = 0;
}
