// tracer: a thread that traces another process's threads.
//
//     tracer_new
//       tracer_do …     what is to be done with the process is done by that thread
//     tracer_end        what it traces still goes on, or ends, as if it had never been traced
//
// A process that is killed while its threads are traced has not ended for anybody else until they
// were waited for, by who traces them, or until he ends. So he ends, and the kernel does the rest,
// wherever the process was killed. Nobody but these threads stops a process that may be killed.
#pragma once

#include <sys/types.h>

struct tracer;

// NULL: there is no thread to be had.
struct tracer *tracer_new(pid_t pid);

// Do it there. The caller waits, and sees to it that no thread that has ended is waited for.
void tracer_do(struct tracer *tracer, void (*work)(void *context), void *context);

// NULL is allowed.
void tracer_end(struct tracer *tracer);
