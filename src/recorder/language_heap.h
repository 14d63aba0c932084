// language_heap: heaps of a language's own (enum lane_language_heap), in a process in which they
// are recorded (SEGMENT_LANGUAGE_HEAPS).
//
// The language's allocator is asked to call a hook of ours, which calls what was there before. A
// block is one of the language's heap from then on, of malloc's layer, and its events are those of
// malloc's with the heap's handle in the lane (LANE_HEAP). What the language's allocator calls
// itself meanwhile, in the same thread, is its own business, if it is the block's *backing*: a
// large object is a block of malloc's, which the allocator gets and gives back within the call. Of
// two such calls one is recorded, that of the language's heap, where the block is seen.
//
//     PyObject_Malloc(100)    pyobject +100
//     PyObject_Malloc(600)    pyobject +600       its malloc(600) returns the same block
//     PyObject_Malloc(16)     pyobject  +16       a new arena: its malloc for the list of them
//                             malloc  +4096       is no block of the heap's, and counts as ever
//
// Which of both a nested malloc is, is known when the outer call returns: until then it is held.
//
//     language_heap_begins
//       the real function
//     language_heap_allocated
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct event_call;
struct lane;
struct scope_object;

#ifndef KERNEL_NT

// The call of a language's allocator that the thread is in. All zero: none.
struct language_heap_call {
	uint64_t heap;   // enum lane_language_heap
	uintptr_t block; // that it gives up
	uintptr_t held;  // a block that malloc has returned in it, not recorded yet
	uint64_t held_size;
	const uintptr_t *frame; // of the hook
};
HIDDEN extern __thread struct language_heap_call language_heap_mine;

// The hooks that call a language's allocator are together, so that mappings that it makes for
// itself are not taken for malloc's.
#define LANGUAGE_HEAP_HOOK __attribute__((section("language_hooks")))
HIDDEN extern const char __start_language_hooks[], __stop_language_hooks[];

// Whether a hook of a language's heap is to be put there: it was asked for.
HIDDEN bool language_heap_wanted(void);

// A call begins, which may end with `block` given up (0: none). False: it is within another one,
// and is passed on.
HIDDEN bool language_heap_begins(uint64_t heap, uintptr_t block, const uintptr_t *frame);

// It has ended; `result` is the block that it returns, or 0.
HIDDEN void language_heap_ends(uintptr_t result);

// The same of an allocation, which is recorded: `type` is a lane's.
HIDDEN void language_heap_allocated(uint32_t type, uintptr_t result, uint64_t size);

// An allocation outside of such a call: what comes of a realloc, the other half of which was none.
HIDDEN void language_heap_made(uint64_t heap, uint32_t type, const struct event_call *call);

// A free is about to begin: record it.
HIDDEN void language_heap_freed(uint64_t heap, uintptr_t block, const uintptr_t *frame);

// Of a call on malloc's heap, in a process that has heaps of a language: true if it was recorded,
// or is held, or if it is not to be recorded.
HIDDEN bool language_heap_takes(uint32_t type, uint32_t fields, const struct event_call *call);

// What is to be known before an allocation is recorded (client_state). True: it is done, or is not
// to be. By value, so that nothing of a hook's is in memory.
HIDDEN bool language_heap_otherwise(uint32_t type, uint32_t fields, uint64_t address, uint64_t size,
				    uint8_t align_log2, const uintptr_t *frame);

// In a lane that has events of a language's heaps: true if the free is recorded, or is not to be.
HIDDEN bool language_heap_frees(uint64_t address, const uintptr_t *frame);

// Whether the thread is in a call that gives up the block that free or realloc was given: it is
// the one that the call was given, or begins with a debugging allocator's header before that.
HIDDEN bool language_heap_backs(uintptr_t block);

// In a lane that was entered: its next events are of this heap (0: malloc's).
HIDDEN void language_heap_turn(struct lane *lane, uint64_t heap);

// An object was loaded, or the recording begins: has it an allocator of a language?
HIDDEN void language_heap_meet(const struct scope_object *object);

#endif
