// python: the frames of a Python program, read from the interpreter's memory.
//
// The interpreter of CPython runs Python's functions in one C function, the evaluator: which of
// them called which is in a list of its own frames. In each process where the interpreter is
// found (codemap meets a module that defines _PyRuntime), and where its version is known and its
// layout is what is expected (python_layout.h), each event with a stack comes in its lane after an
// edit of the list of Python frames (LANE_EXTRA_PYTHON), if that has changed. The collector puts
// both stacks together.
//
//     _PyRuntime -> the thread state that has the GIL -> innermost frame -> previous …
//
// Nothing of the interpreter is called. A thread's frames change only in the thread itself, so that
// they may be read at any time there. Its state is the one that the interpreter keeps for it in its
// own block (pthread_setspecific), with the GIL and without; another thread's is not touched, as it
// may be freed in that moment. Of more than 4,096 frames the outer ones are missing
// (LANE_PYTHON_CUT).
// A frame is numbered as others are (codemap_frame): by the number of its code object, and
// the line. A code object's names are reported when it is first seen (NOTE_CODE). All code objects
// are freed through us (the type's tp_dealloc is ours): after one was, no frame is taken to be what
// it was, and the words that describe its code object are looked at again.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct scope_object;

#if defined(__x86_64__) && !defined(KERNEL_NT)

// Python frames are read, from the first module that is a known interpreter on. Never false again.
HIDDEN extern bool python_on;

// A module was found: is it the interpreter? Under code_lock; `eh_header` may be NULL. The first
// that is known counts; what is not known is noted for the report (NOTE_LANGUAGE).
HIDDEN void python_meet(const struct scope_object *object, uint32_t module,
			const uint8_t *eh_header);

// Whether the code is the evaluator's.
HIDDEN bool python_is_evaluator(uintptr_t pc);

// Whether the thread's frames are those that its lane says; needs no lane. False: they may not be.
// Of the calling thread.
HIDDEN bool python_is_same(void);

// In a lane that was entered, before an event with a stack: put what has changed, and publish it.
// It may wait for room.
HIDDEN void python_write(struct lane *lane);

// The recording ends, and the program goes on: nothing of the interpreter's leads to us.
HIDDEN void python_leave(void);

#else

#define python_on false

static inline void python_leave(void)
{
}

static inline void python_meet(const struct scope_object *object, uint32_t module,
			       const uint8_t *eh_header)
{
	(void)object, (void)module, (void)eh_header;
}

static inline bool python_is_evaluator(uintptr_t pc)
{
	(void)pc;
	return false;
}

static inline bool python_is_same(void)
{
	return true;
}

static inline void python_write(struct lane *lane)
{
	(void)lane;
}

#endif
