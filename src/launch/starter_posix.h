// starter: a child that is ready to become the program, and waits for the word.
//
// It is forked before anything else is done, so it has the signal mask, dispositions, descriptors
// and limits that we were given; and it has its process id before the trace gets its name. It adds
// nothing: what it holds of ours closes at exec.
#pragma once

#include "base/err.h"

#include <sys/types.h>

struct starter {
	pid_t pid;
	int go_fd;    // private: a byte in it starts the program, its end cancels
	int error_fd; // private: an errno comes out of it, or its end after a successful exec
	bool bare;    // the program was started in `bare_environment`
};

// Fork a child that will execute `path` with `argv` and `environment`, or, where these are too long
// (E2BIG), in `bare_environment`, if that is not NULL. Borrowed until the program has started.
bool starter_fork(struct starter *starter, const char *path, char *const *argv,
		  char *const *environment, char *const *bare_environment, struct err *err);

// Start the program. 0, or the errno with which exec failed; the child is then gone. `meanwhile`
// (NULL: nothing) is called when it has been given the word.
int starter_go(struct starter *starter, void (*meanwhile)(void *context), void *context);

// Never start it. Accepts { 0 } and one that was started.
void starter_cancel(struct starter *starter);
