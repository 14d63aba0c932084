// loader: brings the recorder into a statically linked program, at its start. By ptrace.
//
//     loader_seize       a process that is about to exec such a program shall stop then
//     loader_enter       it did: the recorder is mapped and started, and the process let go
//
// Nobody loads a library into such a program, and nobody would give it thread-local variables. So
// its own C library is made to: before it runs, the program headers that the kernel points it to
// are replaced by a copy whose PT_TLS is longer. What is more comes first, and is the recorder's;
// the program's own variables are where its code expects them, at the end. From that header the C
// library sets up the main thread and all others, and clears and copies what is in there, as for
// variables of the program.
//
//     Example: the program has 0x58 bytes of them, aligned to 8: they are at the thread pointer
//     - 0x58. The recorder has 0x58 too, aligned to 16 with the whole: PT_TLS becomes 0xb0 bytes,
//     which begin at the thread pointer - 0xb0; the first 0x58 are the recorder's.
//
// The program runs until its C library has set that up, which it does before anybody allocates;
// then the recorder is called (wire/attach.h, ATTACH_ENTER), and the process goes on untraced.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct collect_enter;

// Thread `tid` of a process is to stop when it execs. False: that may not be.
bool loader_seize(pid_t tid, struct err *err);

// Wait until it has come so far: it stops in the new image. False: it has ended, or `cancel_fd` (if
// it is not -1) is at its end or has something to read while nothing was executed; then it goes on.
// `pid` is its process.
bool loader_wait(pid_t tid, pid_t pid, int cancel_fd);

// Bring in `library`, and let the process go on. False: it goes on without, `err` says why.
bool loader_enter(pid_t pid, const char *library, struct err *err);

// For programs that recorded ones execute (collect.h).
extern const struct collect_enter loader_children;

// It goes on without.
void loader_leave(pid_t pid);
