// clock: the time of an event.
//
// Normally a load from the session's clock page. With --clock=ns each event asks the kernel's vdso.
#ifndef RECORDER_CLOCK_H
#define RECORDER_CLOCK_H

#include "wire/compiler.h"

#include <stdint.h>

// The function that returns nanoseconds since the recording began, exact for each call; it makes a
// system call where the vdso has no clock.
HIDDEN uint64_t (*clock_exact(void))(void);

#endif
