// invite_win32: brings the guest into a program on Windows (wire/invite.h).
//
// A program that has not run yet gets our DLL as the first of its imports: a new list of imports,
// with ours in front, is put after the image in memory, and the image's headers are made to point
// there. So the loader brings it in before every other DLL of the program, a C runtime included.
// The guest puts the headers back. Where that cannot be (no room, an image whose imports the loader
// does not read) the first thread loads the DLL before it runs the program, which is a little
// later. In a program that runs already a thread of ours loads it.
//
// All of it is done from here, by a 64-bit program, for programs of 64 and of 32 bits.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct invite_call {
	void *process;                  // with the right to do anything
	void *thread;                   // its first one, which has not run; NULL: it runs already
	void *session, *segment, *bell; // handles of ours: they are duplicated
	uint32_t image;
	uint32_t options;      // enum segment_option
	const char *directory; // where tidemark64.dll and tidemark32.dll are, UTF-8
};

// What became of an invitation.
struct invite_sent {
	bool first;  // no instruction of the program can run before the recorder is there
	uint64_t at; // where it is, in the program
};

// Invite the program. False: it cannot be recorded; it is as it was, but for a little memory.
bool invite_send(const struct invite_call *call, struct invite_sent *sent, struct err *err);

// Of a program that was invited by its imports and is about to run its first instruction: whether
// it will still load the recorder. Who started it may have written to its headers, or replaced its
// image. Then its first thread, or one of ours, is made to load it (*again), if that can be done.
// False: it is not recorded. `call` needs no more than process, thread and directory.
bool invite_renew(const struct invite_call *call, uint64_t invite_at, bool *again, struct err *err);

// Whether the program is of 32 bits.
bool invite_is_narrow(void *process);
