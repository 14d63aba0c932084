// follower: another tidemark that sends the trace somewhere while it is written (record --push).
//
//     follower_open     after the trace is there
//       follower_wait     once it is whole
//
// It is a process of its own, which looks at the file now and then: what it does, and how long it
// waits for a server, is no matter of the recording's.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct follower {
	pid_t pid; // 0: none
	int fd;    // readable when it has ended
};

// Run ourselves with these words (ended by NULL) and the path. `quiet`: it is not to say how much
// it sent.
bool follower_open(struct follower *follower, const char *const *words, const char *path,
		   bool quiet, struct err *err);

// Wait for its end; a signal to us, by signal_fd, ends it. Does nothing where there is none. False:
// it did not get to its end, and has said why.
bool follower_wait(struct follower *follower, int signal_fd, void (*tell)(const char *line));
