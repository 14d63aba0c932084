// inside: which calls are an allocator's own.
//
// The allocator behind us may be a library whose functions call each other by name (jemalloc's
// delete calls free, a wrapper's calloc calls malloc, its first malloc calls dlsym, which calls
// calloc), and so come back to us. What a real function calls is its own business: a call counts
// once, as the outermost one. The C library's allocator calls nothing of ours; where it is the only
// one, nobody looks (sample_seldom.watched).
//
// So each thread knows the frame of the outermost hook that is in a real function. A hook that is
// entered below it is the allocator's own if all frames in between are of libraries that define
// malloc or its like, or of those that these need. It is the program's where one of them is not: a
// new_handler, a callback that the allocator was given, or a signal handler, which the walk of the
// stack sees. Where the stack is another one (sigaltstack, a coroutine), the walk does not get to
// the outer hook, and the call is the program's, too.
//
// What other libraries take on behalf of an allocator may be given back outside of it (an exception
// that it throws, a stream's buffer). Such blocks, a few, are remembered: their end is not recorded
// either. If there are more than that, they are recorded as the program's.
//
// Where the allocator is a part of the executable (enter_linux.h), what it calls itself and what
// the program does on its behalf (a new_handler) are not distinguished: both are the allocator's,
// and the blocks are remembered likewise.
//
// A call that was left by longjmp or by an exception is noticed at the next one: its frame is
// deeper than that one's, or its return address is not there any more.
#pragma once

#include "recorder/sample.h"
#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct scope_object;

// The hook that is in a real function. All zero: none is.
struct inside {
	uintptr_t frame;
	uintptr_t pc; // where it returns to
	bool helps;   // a nested call: it comes from a library that the allocator needs
	bool keeps;   // a nested call whose block may be given back outside
};

// There were more such libraries, or functions, than there is room for: what those call counts as
// the program's.
HIDDEN extern bool inside_full;

// The calling thread's.
HIDDEN extern __thread struct inside inside_mine;

// Whether it is the C library.
HIDDEN bool inside_is_libc(const struct scope_object *object);

// Where the program's own libc is entered (late_linux.h): the code of its malloc. It frees there
// what a thread that ends has kept for reuse, which for the program was freed before.
HIDDEN extern uintptr_t inside_libc_start, inside_libc_bytes;

static inline bool inside_from_libc(const uintptr_t *frame)
{
	return frame[1] - inside_libc_start < inside_libc_bytes;
}

// Look which libraries are allocators. Once, when the real functions are looked for.
HIDDEN void inside_find(void);

// One more of them, found by a name of its own. Nothing is done for the C library.
HIDDEN void inside_add_allocator(const struct scope_object *object);

// One more function, or several in a row, of inside_is_own.
HIDDEN void inside_add_code(uintptr_t start, uintptr_t bytes);

// The same of one that was entered, be it a C library in another namespace; and it is gone.
HIDDEN void inside_add_entered(const struct scope_object *object);
HIDDEN void inside_remove(const struct scope_object *object);

// The C library's malloc is entered beside what comes to it by name: what its own code calls there,
// and what our hooks do, is the allocator's. Nobody looks for more than that.
HIDDEN void inside_know_libc(const struct scope_object *object);

// Whether the hook with this frame was called by the real function that `before` is in. If `before`
// is not there any more, it is none from here on.
HIDDEN bool inside_is_nested(struct inside *before, const uintptr_t *frame);

// Of a static program whose C library's allocator is entered, and which has no other: all that
// calls the hooks from inside is known by address, without looking what goes on
// (sample_seldom.watched is false): functions of the allocator, and ours, in which one of them may
// end with a jump.
HIDDEN extern uintptr_t inside_own_start, inside_own_bytes, inside_ours_start, inside_ours_bytes;

// Whether this address, between the first and the last of these functions, is in one of them.
HIDDEN bool inside_is_own_code(uintptr_t pc);

static inline bool inside_is_own(const uintptr_t *frame)
{
	if (unlikely(frame[1] - inside_own_start < inside_own_bytes))
		return inside_is_own_code(frame[1]);
	return unlikely(frame[1] - inside_ours_start < inside_ours_bytes);
}

// For hooks that are found by name there is no such program.
#ifdef HOOK_ENTERED
#define INSIDE_OWN(frame) inside_is_own(frame)
#else
#define INSIDE_OWN(frame) false
#endif

// A call begins. True: it is the allocator's own, to be passed on and not recorded. Else `*before`,
// all zero at first, is for inside_ends.
static inline __attribute__((always_inline)) bool inside_begins(struct inside *before,
								const uintptr_t *frame)
{
	if (likely(!sample_seldom.watched))
		return INSIDE_OWN(frame);
	*before = inside_mine;
	if (unlikely(before->frame) && inside_is_nested(before, frame))
		return true;
	inside_mine = (struct inside){ (uintptr_t)frame, frame[1], false, false };
	return false;
}

// How many blocks are remembered.
HIDDEN extern _Atomic uint32_t inside_kept_count;

// Remember one more.
HIDDEN void inside_keep(uint64_t block);

// Forget it, if it is one of them (true).
HIDDEN bool inside_take_kept(uint64_t block);

// The block that a nested call returns, or NULL.
static inline void *inside_got(const struct inside *before, void *block)
{
	if (block && before->keeps)
		inside_keep((uintptr_t)block);
	return block;
}

// Whether the block is one of those whose end is not recorded. It is none from here on.
static inline bool inside_gives(const void *block)
{
	return unlikely(__atomic_load_n(&inside_kept_count, __ATOMIC_ACQUIRE)) && block &&
	       inside_take_kept((uintptr_t)block);
}

// The real function has returned the block, or NULL.
static inline __attribute__((always_inline)) void inside_ends(const struct inside *before,
							      const void *block)
{
	if (likely(!sample_seldom.watched))
		return;
	inside_mine = *before;
	inside_gives(block); // it was given back unseen, and is another one now
}
