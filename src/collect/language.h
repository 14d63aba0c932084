// language: stacks of programs that an interpreter runs: native frames and the language's in one.
//
// A guest says beside each native stack which frames of the language there are (LANE_EXTRA_PYTHON).
// Both change for themselves, so both are interned for themselves, and each pair that comes is put
// together once: outermost first, the native frames, and in each evaluator
// (SEGMENT_FRAME_EVALUATOR) the frames of the language that it runs. The interpreter's own frames,
// which say how Python is implemented and nothing of the program, are left out unless they are
// asked for.
//
// What all images of a recording share. One thread.
#pragma once

#include "base/map.h"
#include "collect/interner.h"

#include <stddef.h>
#include <stdint.h>

enum language_frame_flag {
	LANGUAGE_INTERPRETER = 1 << 0, // a native frame of it
	LANGUAGE_EVALUATOR = 1 << 1,
	LANGUAGE_GENERATED = 1 << 2, // it is in no file
};

#define LANGUAGE_CUT UINT32_C(1) // the list in which nothing is, and outer frames are missing
#define LANGUAGE_ENTRY (UINT32_C(1) << 31) // the frame is the first in its evaluator

// A list of frames: the innermost, and the list of those outside of it.
struct language_node {
	uint32_t outer;
	uint32_t frame; // frame_id, with LANGUAGE_ENTRY; 0: of no function, it is not shown
};

enum { LANGUAGE_RECENT = 1024 }; // pairs that are found at once

struct language_pair {
	uint64_t key; // node << 32 | stack; 0: none
	stack_id merged;
};

// What a pair comes to.
struct language_base {
	uint64_t hash;  // interner_hash of its frames
	stack_id stack; // 0: no frame is left
	uint8_t flags;  // enum trace_stack_flag
	bool unsure;    // evaluators and groups differ in number, though neither was cut
};

// While a pair is put together: another one that is to be kept, when all but its innermost
// `inner_count` frames are.
struct language_kept {
	uint64_t key;
	size_t inner_count;
};

struct language {
	struct interner *interner; // borrowed
	bool native;               // the interpreter's frames stay
	uint8_t *flags;            // enum language_frame_flag, by frame_id
	size_t flags_count;
	struct language_node *nodes; // 0 is the empty list, and so is LANGUAGE_CUT
	size_t nodes_count, nodes_capacity;
	struct map nodes_by; // outer << 32 | frame -> node
	stack_id *alike;     // by native stack, the first that comes to the same; 0: not known yet
	size_t alike_capacity;
	struct map alike_by;          // that of the callers << 32 | the innermost frame -> stack
	struct map merged;            // node << 32 | stack -> stack; 0: no frame is left
	struct map unsure_pairs;      // node << 32 | native stack: those that `unsure` counts
	struct language_pair *recent; // LANGUAGE_RECENT by the key's hash; NULL
	struct map bases_by;          // node << 32 | stack that ends in an evaluator -> of `bases`
	struct language_base *bases;
	size_t bases_count, bases_capacity;
	frame_id *frames; // of the two stacks that are put together, innermost first
	uint32_t *own;
	frame_id *inner; // of what is put on top of them, innermost first
	struct language_kept *marks;
	size_t frames_capacity, own_capacity, inner_capacity, marks_capacity;
	uint64_t unsure; // pairs that do not fit each other
};

// `interner` is borrowed until language_fini. `native`: the interpreter's own frames stay in the
// stacks.
void language_init(struct language *language, struct interner *interner, bool native);
void language_fini(struct language *language); // accepts { 0 }

// What a frame of the trace is. `flags` is a set of enum language_frame_flag, which is added to
// what is known of the frame.
void language_mark(struct language *language, frame_id frame, uint8_t flags);

// The list `outer` and `frame` inside of it. 0 and LANGUAGE_CUT are the empty ones to begin with.
// Equal lists are one number.
uint32_t language_push(struct language *language, uint32_t outer, uint32_t frame);

// The stack for native stack `stack` and the list `node`, neither of which is empty. The first time
// that a pair comes both are walked, outwards to where what is left came before; from there on it
// is a look into a table. Where all frames are left out, it is `stack`.
stack_id language_merge(struct language *language, stack_id stack, uint32_t node);
