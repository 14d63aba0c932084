// attacher: brings the recorder into a process that runs, and takes it out again. By ptrace.
//
//     attacher_begin     load the library, join the session, write the hooks
//       …                the process is recorded
//     attacher_end       the code as it was, the recorder's memory given back
//
// The library is loaded by the program's own dynamic linker: dlopen, called by one of the program's
// threads where it cannot be inside an allocator or the linker (attacher_is_safe); only so does it
// have thread-local variables in all threads that are and will be. Only that thread waits
// meanwhile. All threads are stopped for what has to be done at once: a few hundred bytes of code
// are written. A thread inside of them is stepped out first.
//
// The end is the same backwards; the library stays loaded, because a thread may yet return into it.
#pragma once

#include "base/err.h"
#include "launch/glibc_heap_linux.h"

#include <stdint.h>
#include <sys/types.h>

struct attacher_figures {
	uint64_t stop_ns;    // how long all threads stood, at most
	uint64_t walk_ns;    // of stop_ns: what it took to read what was allocated before
	uint64_t load_ns;    // how long the one thread was ours
	uint32_t threads;    // that were stopped
	uint32_t functions;  // of the allocator that are entered
	uint32_t places;     // where code was changed
	uint32_t kept;       // where it could not be
	uint64_t session_at; // in the recorder: from its entry on, where the session's name is
};

// `library`: its path; `session`: the name of the collector's socket. `before`: what the process
// had allocated when its calls began to be recorded; NULL: that is not wanted. `hold` is called
// before the first call can be recorded. False: the process is as it was.
bool attacher_begin(pid_t pid, const char *library, const char *session, struct glibc_heap *before,
		    bool (*hold)(void *context, struct err *err), void *context,
		    struct attacher_figures *figures, struct err *err);

// Take it out of the process and of those that it has forked: all that know this session. False:
// `err` says what was left. A process that has ended is no failure.
bool attacher_end(pid_t pid, const char *session, struct attacher_figures *figures,
		  struct err *err);

// It is not taken out: what `err` says, with what that means and what can be done. False.
bool attacher_stays(pid_t pid, struct err *err);
