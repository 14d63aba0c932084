// client: what a program tells us of itself through include/tidemark.h.
//
// The header finds `tidemark_client_v1`, a table of functions. They keep all of a guest's rules:
// they may be called from any thread at any time, allocate nothing, and leave errno alone.
//
// A mark and a pause are notes that name a place in the marking thread's lane, as forks do. An
// event of a pool is a record in the lane (LANE_EXTRA_POOL).
#pragma once

#include "recorder/kernel.h"
#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

// What is to be known before an allocation is recorded; a forked child inherits it.
enum client_state {
	// It is not recorded. Frees are: a block that was recorded must not seem to live on.
	CLIENT_PAUSED = 1,
	CLIENT_READS_FRAMES =
		2, // not in the short way: an interpreter's frames are read (python.h)
	CLIENT_LANGUAGE_HEAPS = 4, // the heaps of a language are recorded (language_heap.h)
};
HIDDEN extern uint32_t client_state;

// In a pause: false if there is none, or if it was ended from outside (`tidemark ctl`), and is over
// now.
HIDDEN bool client_stays_paused(void);

// CLIENT_READS_FRAMES, or CLIENT_LANGUAGE_HEAPS, from here on.
HIDDEN void client_read_frames(void);
HIDDEN void client_language_heaps(void);

// The image begins with a pause (SEGMENT_PAUSED).
HIDDEN void client_begin_paused(void);

// The functions themselves, as tidemark.h declares them. On Windows nothing is exported: see
// client_win32.c.
struct client_table;
#ifdef KERNEL_NT
#define CLIENT_VISIBLE
#else
#define CLIENT_VISIBLE EXPORT
#endif
extern const struct client_table tidemark_client_v1;

// The calling thread's name from here on.
HIDDEN void client_name_thread(const char *name);

// For the hello of a forked child: ids of pools below this one are its parent's.
HIDDEN uint32_t client_pools_count(void);

// This thread has waited for child `pid`, which has ended with that status of wait's: what the
// child did, and its end, come before what the thread does from here on.
HIDDEN void client_waited(uint32_t pid, uint32_t status);
