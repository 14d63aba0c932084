// clock: the time of an event.
//
// Normally that is the session's tick (wire/segment.h, now_ns): one load. Nobody is woken to keep
// it going. The lanes do: after some bytes (`budget`) a lane finds its limit too low, takes the
// slow way in, and there reads the processor's counter and raises the tick if that is behind. The
// budget follows the lane's pace, so that such readings are some 16 us apart where events are
// dense, and come with every event where they are sparse. A lane that finds the tick changed reads
// too. So the time of an event is behind by a tick at most, but for the few events after a pause
// shorter than the collector's sleep, which raises the tick whenever it wakes up.
//
// The tick is one word that never falls, and it is loaded after the real malloc has returned or
// before the real free is called. So of two events on one address the later has no smaller time,
// whoever raised the tick (docs/notes/0001-order-without-clocks.md).
//
// What happens to a large block raises the tick by a nanosecond (clock_mark), by one exchange, and
// has that for its time, so that such events are in one order, whatever threads they are of. It
// would take a thousand million of them a second for the tick to get ahead of the time.
//
// With --clock=ns each event asks the kernel's vdso: the budget is always 0.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct lane;

// A lane's part of it.
struct clock {
	uint64_t read_ns; // its last reading
	uint32_t budget;  // bytes until the next
	bool by_counter;  // the processor's counter may be read
};

// Once per image: what can be read here.
HIDDEN void clock_start(void);

// The processor's counter may be read. The kernel's vdso reads it, too.
HIDDEN extern bool clock_counter_allowed;

// It must not be read any more, in no lane: the tick is what others make of it, and who needs the
// exact time asks the kernel. The caller holds lanes_lock.
HIDDEN void clock_forbid(void);

// For a new lane.
HIDDEN void clock_init(struct lane *lane, bool exact);

// The lane has used up its budget: read the time, set the next limit.
HIDDEN void clock_pass(struct lane *lane);

// With --clock=ns: the time of the next event, which does not enter the lane, is now.
HIDDEN void clock_set_exact(struct lane *lane);

// The tick is not what the lane saw last: the time now. SEGMENT_CLOCK_STOP: record no more.
HIDDEN uint64_t clock_turn(struct lane *lane);

// A time that no event before has, and that every later one exceeds or shares: a tick that is
// raised for it alone. SEGMENT_CLOCK_STOP: record no more.
HIDDEN uint64_t clock_mark(void);

// The time now, for what is no event of a lane.
HIDDEN uint64_t clock_now(void);

// Of the system: find what tells the time; whether the processor's counter may be read.
HIDDEN bool clock_find(void);

// The time now, exact, whatever it costs.
HIDDEN uint64_t clock_ask(void);
