// walk_win32: walks of the address space, region by region, for what no hook has seen: what the
// system maps by itself (images, stacks of threads), and what was there before us.
//
//     walk_first           the baseline: all that there is
//     walk_begin, _end     around each call on virtual memory of the program's
//     walk_now_and_then    a second after the last one; later, where walks are expensive: they
//                          take a hundredth of the time at most
//     walk_soon            an allocation has failed, or changed more than the call says; then a
//                          tenth
//     walk_last            the process ends
//
// A walk tells the collector what differs from the one before (LANE_VM_BASELINE). It takes some
// milliseconds where there are thousands of regions, and another thread may map something
// meanwhile: then the walk is not to be believed, and says so.
#pragma once

#include "recorder/lane.h"
#include "recorder/nt_win32.h"

enum { WALK_PATH_MAX = 520 };

// Room for what the system says of a file, and for what we make of it.
struct walk_file {
	struct nt_text text;
	uint16_t units[WALK_PATH_MAX];
	char path[2 * WALK_PATH_MAX];
};

// The lane is busy, and stays so.
HIDDEN void walk_first(struct lane *lane);

// The path of the file that is mapped at `at`, an image or a view; NULL: none is. Is in `room`.
HIDDEN const char *walk_file(uintptr_t at, struct walk_file *room);

// What Windows' PAGE_… lets do, as PROT_…: 1 read, 2 write, 4 execute. Guards and caching do not
// count.
HIDDEN uint32_t walk_access(uint32_t page);

// When the next walk is due, on clock_now.
HIDDEN extern _Atomic uint64_t walk_next_ns;

HIDDEN void walk_begin(void);
// After the call's record.
HIDDEN void walk_end(void);

// The thread is in no call of its own, and its lane is not busy.
HIDDEN void walk_now(uint64_t now_ns);
HIDDEN void walk_soon(void);
HIDDEN void walk_last(void);

static inline void walk_now_and_then(void)
{
	uint64_t now_ns = clock_now();

	if (unlikely(now_ns >= __atomic_load_n(&walk_next_ns, __ATOMIC_RELAXED)))
		walk_now(now_ns);
}
