// peak: asking the collector for a snapshot of this process's memory, and waiting for it.
//
// Resident memory falls only when memory is given back; so before a call that gives back much, the
// recorder asks the kernel for the highest resident memory so far. Where that has grown enough
// since the last snapshot, the peak may be now: the thread asks for a snapshot and waits until it
// is taken. It waits no longer than that, and not at all where snapshots have cost enough already
// (wire/segment.h, look_after_ns).
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum peak_reason { PEAK_RELEASE = 1, PEAK_EXIT = 2, PEAK_MARK = 5 };

// Once per image: what resident memory the kernel remembers from the image before.
HIDDEN void peak_start(void);

// Tell the collector the highest resident memory so far. 0: it was another image's.
HIDDEN uint64_t peak_tell(void);

// Is a snapshot due before memory is given back? At most one answer a tick; false in between.
HIDDEN bool peak_due(void);

// May another one be taken for this reason? At the end of the program itself the collector is
// asked in any case. False is counted.
HIDDEN bool peak_affordable(enum peak_reason reason);

// Ask, and wait until it is taken, or will not be.
HIDDEN void peak_wait(enum peak_reason reason);
