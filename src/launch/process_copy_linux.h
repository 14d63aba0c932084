// process_copy: a copy of a stopped process, which can go on while the copy's memory is read.
//
//     process_copy_prepare      while it runs: what of it a forked process would not have
//     tracee_stop
//       process_copy_make       the copy has all memory as it is now
//     tracee_release            the process goes on
//       process_copy_amend …    memory that was read of the copy is as it was in the process
//     process_copy_end          nothing of it is left
//
// One of the process's threads makes the copy, by clone, as fork would: the kernel copies tables
// of pages, and pages only when they are written to. The copy never runs but to close the files
// that it would keep open. It is no child that wait, SIGCHLD or a fork handler would show to the
// program (exit signal 0), and the zombie that it leaves is taken away by the process itself.
// Memory that is shared with others is not copied: it is read as it is when it is read.
#pragma once

#include "launch/tracee_linux.h"

// Memory that is empty in a forked process, as the program wished (MADV_WIPEONFORK).
struct process_copy_part {
	uint64_t start, end;
	uint8_t *bytes; // what was there when the copy was made
};

struct process_copy {
	pid_t pid;                       // 0: there is none
	pid_t of;                        // 0: not prepared, or it has what cannot be copied
	struct process_copy_part *parts; // by address
	size_t parts_count, parts_capacity;
};

// What of it has to be kept apart.
void process_copy_prepare(struct process_copy *copy, pid_t pid);

// Copy it, now that all its threads are stopped. False, and nothing has happened: it cannot be
// copied. So with 32 bits, under a system-call filter, with memory that forked processes do not
// have (MADV_DONTFORK) or much that is empty there, if it is the first of its namespace (whose end
// would be the copy's, too), and where there is no room.
bool process_copy_make(struct process_copy *copy, struct tracee *tracee);

// `bytes` are of the copy, from `start` to `end`.
void process_copy_amend(const struct process_copy *copy, uint64_t start, uint64_t end,
			uint8_t *bytes);

// Accepts { 0 }. In the thread that made it.
void process_copy_end(struct process_copy *copy);
