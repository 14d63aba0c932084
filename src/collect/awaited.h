// awaited: processes that are about to be images of their own.
//
// A vfork child (posix_spawn's too) is its parent's thread until it execs, and a process of the
// recording from its hello on. In between lies the work of the dynamic linker, during which the
// parent, and with it all that is recorded, may have ended: the end is not believed as long as
// somebody is awaited.
#ifndef COLLECT_AWAITED_H
#define COLLECT_AWAITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct awaited_process {
	uint32_t pid; // as it sees itself
	int pidfd;    // -1: it is of another PID namespace
	char *path;   // what it is about to be
};

struct awaited {
	struct awaited_process *all;
	size_t count, capacity;
};

void awaited_fini(struct awaited *awaited); // accepts { 0 }

// Process `pid` is about to exec `path` (copied). `host_pid`: the same as we see it, 0 if that is
// not known. Nothing is done if it has ended.
void awaited_add(struct awaited *awaited, uint32_t pid, uint32_t host_pid, const char *path);

// It has said hello, or its exec has failed.
void awaited_drop(struct awaited *awaited, uint32_t pid);

// Forget those that have ended. Returns whether there are others.
bool awaited_any(struct awaited *awaited);

// Give one up: its path, to be freed with mem_free. NULL: there is none.
char *awaited_give_up(struct awaited *awaited);

#endif
