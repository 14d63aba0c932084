// pending_exec: processes that are about to be images of their own.
//
// A vfork child (posix_spawn's too) is its parent's thread until it execs, and a process of the
// recording from its hello on. In between is the work of the dynamic linker, during which the
// parent, and with it all that is recorded, may have ended: the end is not believed as long as
// somebody is awaited. Who ends before is a program that was not recorded.
//
// A parent whose place in the order is not known yet is read late, and may speak of a child that
// has long said hello, and has even ended. So hellos are kept as long as somebody may be read who
// said hello before.
#pragma once

#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One that is awaited.
struct pending_exec_process {
	uint32_t pid; // as it sees itself
	int pidfd;    // -1: it is of another PID namespace
	bool gone;    // its pid was free again when its parent was read
	bool ended;   // seen to have ended, when there may have been a hello that is not known yet
	process_id parent;
	uint64_t since_ns; // when it was first looked at; 0: not yet
	char *line;        // to be said if it is lost: what it was about to be
};

// A hello that may be of one that is still to be spoken of.
struct pending_exec_hello {
	uint32_t pid;   // as it sees itself
	uint32_t image; // the door's number
};

struct pending_exec {
	struct pending_exec_process *all;
	size_t count, capacity;
	struct pending_exec_hello *hellos; // by image
	size_t hellos_count, hellos_capacity;
};

void pending_exec_fini(struct pending_exec *pending_exec); // accepts { 0 }

// Process `pid`, a child of `parent`, is about to exec; `line` (copied) is what to say of it if it
// is lost. `host_pid`: the same as we see it, 0 if that is not known. Not awaited if its hello is
// kept.
void pending_exec_add(struct pending_exec *pending_exec, process_id parent, uint32_t pid,
		      uint32_t host_pid, const char *line);

// Image `image` of process `pid` has said hello; it is kept until pending_exec_forget. Images come
// by their numbers.
void pending_exec_hear(struct pending_exec *pending_exec, uint32_t pid, uint32_t image);

// All images before `image` have been read: their hellos need not be kept.
void pending_exec_forget(struct pending_exec *pending_exec, uint32_t image);

// Its exec has failed.
void pending_exec_drop(struct pending_exec *pending_exec, uint32_t pid);

// Whether anybody is awaited.
bool pending_exec_any(const struct pending_exec *pending_exec);

// One that has ended without a hello: its line, to be freed with mem_free, and its parent. To be
// asked for once a pass, until it is NULL: in the pass where it is first found to have ended, its
// hello may be under way. `now_ns`: not 0.
char *pending_exec_next_lost(struct pending_exec *pending_exec, uint64_t now_ns,
			     process_id *parent);

// Forget those that were not looked at before `since_ns`. Returns their number.
uint64_t pending_exec_forget_late(struct pending_exec *pending_exec, uint64_t since_ns);

// Give one up: the same. NULL: there is none.
char *pending_exec_give_up(struct pending_exec *pending_exec, process_id *parent);
