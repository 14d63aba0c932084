// attach: what a recorder that is brought into a running process is given, and what it answers.
//
// The launcher stops a thread, loads the recorder's library there, and calls `tidemark_late_v1`
// with a `struct attach_call` in memory that it has mapped for that. ATTACH_START joins the session
// and prepares the hooks, but changes no code: it lists the bytes to be written, which the launcher
// does while all threads are stopped, and records nothing until the launcher has said so then.
// ATTACH_LIST, in that stop, has what is mapped written, for the program may make no call for long.
// ATTACH_ASK gives the list of bytes again. ATTACH_END ends the recording, of all its processes.
// ATTACH_STOP, when the code is as it was and no thread is in the recorder, unmaps what the
// recorder had and makes it as it was when it was loaded. All of them call nothing of the program's
// but, at the first start, what registers for fork.
//
// A statically linked program has no linker that could load a library: the launcher maps it there,
// before the program's first call of its allocator, and calls the same function with ATTACH_ENTER,
// which joins the session that the environment names, and changes code itself. One that runs
// already gets ATTACH_START, with `alone`.
//
// Freestanding, of fixed layout: included by the recorder and by the launcher.
#pragma once

#include <stdint.h>

enum {
	ATTACH_MAGIC = 0x54415454, // "TTAT"
	ATTACH_PATCHES_MAX = 512,  // of a process
	ATTACH_PATCH_BYTES = 8,    // of code, at most, that one patch changes
	ATTACH_PAGES_MAX = 40,
	ATTACH_SESSION_BYTES = 112, // of a session's name, with its NUL
};

// What is asked of the recorder.
enum attach_verb {
	ATTACH_START = 1, // join the session, list the patches
	ATTACH_ASK = 2,   // say once more what START said
	ATTACH_STOP = 3,  // give everything back
	ATTACH_ENTER = 4, // of a static program: join, and change code
	ATTACH_LIST = 5,  // write what is mapped: it records, and all threads are stopped
	ATTACH_END = 6,   // nothing more is recorded, by any process of the session
};

// What the launcher maps for a call, with the struct near its start: the stack of the call.
enum { ATTACH_STACK_BYTES = 512 << 10 };

// What it answers, with which of the verbs.
enum attach_status {
	ATTACH_DONE = 1,    // what was asked for was done
	ATTACH_RUNS = 2,    // START: it records already
	ATTACH_FAILED = 3,  // START, ENTER: `why` and `error` say why (enum segment_why, errno)
	ATTACH_BUSY = 4,    // STOP: a thread is inside of an event
	ATTACH_IDLE = 5,    // ASK, STOP, LIST, END: it does not record
	ATTACH_PRELOAD = 6, // it was there from the program's start
	ATTACH_OTHER = 7,   // it is another version's
	ATTACH_NO_ROOM = 8, // START: not every thread has its variables (dtv_linux.h)
};

// Bytes of the program's code, that are `before` and are to be `after`. The launcher writes them
// while all threads are stopped and none is inside of them.
struct attach_patch {
	uint64_t at;
	uint32_t length; // bytes that count of `before` and of `after`
	uint32_t reserved;
	uint8_t before[ATTACH_PATCH_BYTES];
	uint8_t after[ATTACH_PATCH_BYTES];
};

// Addresses in the process, [start, end).
struct attach_range {
	uint64_t start, end;
};

// One call, question and answer, in memory that the launcher has mapped in the process: all zero
// but for the magic, the version, the verb, and for START the session.
struct attach_call {
	uint32_t magic;
	uint32_t version;                   // SEGMENT_VERSION
	uint32_t verb;                      // enum attach_verb
	uint32_t status;                    // out: enum attach_status; the rest likewise
	char session[ATTACH_SESSION_BYTES]; // START: its name; ASK: out
	uint32_t why, error;                // of ATTACH_FAILED; 0: not known
	uint64_t patches;                   // where they are: struct attach_patch[patches_count]
	uint32_t patches_count;             // ATTACH_PATCHES_MAX + 1: there were more
	uint32_t pages_count;               // of `pages`
	struct attach_range text;           // the recorder's own code
	struct attach_range pages[ATTACH_PAGES_MAX]; // code that it has written
	// In each thread, so far from its thread pointer (lane_object: from that entry of its DTV):
	// its lane; `nobody`: it has none.
	int64_t lane_at;
	uint64_t nobody;
	uint64_t session_at; // where the session's name is: "" while there is none
	uint64_t waits_at;   // uint32_t; nothing is recorded until it is 0
	uint32_t entered;    // functions of the allocator that are entered
	uint32_t alone;      // START: the program is linked statically
	uint64_t lane_object;
};

_Static_assert(sizeof(struct attach_patch) == 32 && sizeof(struct attach_call) == 856,
	       "the same for programs of 32 bits");
