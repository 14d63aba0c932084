// thread: work beside our own.
//
// A thread takes no signal: those are for the one that we were started with.
#pragma once

struct thread;

// Begin `work` beside us. NULL: there is no thread to be had; the caller does it himself.
struct thread *thread_start(void *(*work)(void *context), void *context);

// Wait for its end. NULL is allowed.
void thread_join(struct thread *thread);

// How many threads of ours may run at once: what this process may run on, and no more than its
// control group is given (of version 2; a job's limit is not asked for).
unsigned thread_cores(void);
