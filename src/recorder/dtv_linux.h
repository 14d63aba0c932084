// dtv: where our thread-local variables are in a process of musl's that loaded us while it ran.
//
// musl's dlopen gives each thread that is a copy of the variables, wherever there is memory, and
// enters it in the thread's table (DTV); threads to come have theirs from the beginning. So the
// recorder is built once more for such processes (libtidemark-musl.so), with a look into that
// table in place of one distance from the thread pointer. Elsewhere that distance is all there is.
#ifndef RECORDER_DTV_LINUX_H
#define RECORDER_DTV_LINUX_H

#include "recorder/kernel.h"

#ifdef RECORDER_DTV

// The number of ours in that table, and how far behind its entry `variable` is. 0: we are not in
// it (musl before 1.1.22 has it filled by each thread later).
HIDDEN uint32_t dtv_find(const void *variable, int64_t *distance);

// Whether each thread has our variables.
static inline bool dtv_has(const void *variable)
{
	int64_t distance;

	return dtv_find(variable, &distance) != 0;
}

#else

// Here a variable is as far from the thread pointer in each thread, and no table says where.
// Returns 0.
static inline uint32_t dtv_find(const void *variable, int64_t *distance)
{
	*distance = (intptr_t)((uintptr_t)variable - kernel_thread_block());
	return 0;
}

static inline bool dtv_has(const void *variable)
{
	(void)variable;
	return true;
}

#endif

#endif
