// late: the recorder in a process that runs already, brought in by the launcher (wire/attach.h).
//
// What differs: the library is the last of the linker's list and not before all others, so nothing
// is interposed; what is behind the hooks of the allocator is entered (enter_linux.h), and calls on
// virtual memory are seen where they are made (patch_linux.h), as ever. Other threads run, so no
// code is changed here: what is to be written is listed, and the launcher writes it while they
// are stopped. The session's name does not come from the environment, which the program may have
// overwritten.
//
// When the recording is over, all variables and pages are made what they were at the beginning, so
// that the next one finds a recorder that was just loaded.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether it is such a process.
HIDDEN bool late_is(void);

// The name of the session that the launcher brought; NULL: none, nothing is to be recorded.
HIDDEN const char *late_session(void);

// Whether it begins now: then hooks record nothing until the launcher has written all of the code.
// A thread may have been in one since an earlier recording.
HIDDEN bool late_waits(void);

// Change code of the program: at once, or (late, as it begins) when the launcher does. At most
// ATTACH_PATCH_BYTES. False: it cannot be.
HIDDEN bool late_write(uint8_t *at, const uint8_t *bytes, size_t length);

// Many places will be changed now, few pages of code: they stay writable until `many` is false.
HIDDEN void late_write_many(bool many);

// Code of our own making is here, to which what is patched leads; or (`gone`) no more.
HIDDEN void late_pages(const void *start, size_t bytes, bool gone);
