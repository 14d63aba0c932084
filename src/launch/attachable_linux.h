// attachable: whether a process that runs can be attached to; and if not, why, and what to do.
//
// All that can be known without touching it. What is refused here is refused in one line that says
// the remedy, and nothing was changed.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

enum attachable {
	ATTACHABLE,
	ATTACHABLE_NOT_THERE, // no such process
	ATTACHABLE_NOT,       // it may not be, or cannot
};

// `library`: the path of the recorder's; it becomes that of the recorder for programs of 32 bits,
// or of musl's, if the process is one.
enum attachable attachable_look(pid_t pid, struct str *library, struct err *err);

// Its arguments, ended by NULL, and into `program` the path of its file. To be freed as an
// environment is (preload.h).
char **attachable_arguments(pid_t pid, struct str *program);

// Yama's rule (kernel.yama.ptrace_scope), and whether it is not for us (CAP_SYS_PTRACE).
int attachable_scope(void);
bool attachable_may_all(void);

// Whether one of its threads, if not all, is under a system-call filter (seccomp).
bool attachable_is_filtered(pid_t pid);

// Who traces that process or thread; 0: nobody.
pid_t attachable_tracer(pid_t pid);

// Wait until no thread is where the kernel lets none be stopped: in a vfork whose child still has
// its memory, or in a driver. Nothing is touched. After a second the user reads what is waited
// for (`tell` may be NULL). False after `limit_ms`, at an input on `wake_fd` (-1: none), and where
// another process traces one of them.
bool attachable_await(pid_t pid, unsigned limit_ms, int wake_fd, void (*tell)(const char *line),
		      struct err *err);

// Why the kernel refused with `number`, where it did so all the same. Always false.
bool attachable_refused(pid_t pid, int number, struct err *err);
