// tracee: the threads of a process that runs, stopped for a moment (ptrace), and made to do things
// for us.
//
//     tracee_stop            all threads are stopped
//       tracee_call …        one of them calls a function, or the kernel, and is as it was
//       tracee_poke …        code is changed
//     tracee_release         they go on, and know nothing
//
// A stopped thread may be in a system call: the kernel begins that again when it goes on. While a
// thread calls something for us its signals are blocked, its registers are all kept (those for
// vectors, too), and it has a stack of ours; the others run, unless they were stopped.
#pragma once

#include "base/err.h"
#include "wire/attach.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct tracee_thread {
	pid_t tid;
	bool gone;  // it has ended meanwhile
	int signal; // that it is to get when it goes on
	struct user_regs_struct registers;
};

struct tracee {
	pid_t pid;
	uint64_t mask; // tracee_arrive: the signals that the thread had blocked
	struct tracee_thread *threads;
	size_t count, capacity;
	uint64_t began_ns; // when the first was asked to stop
	bool hurries;
	bool limited; // to stop all threads is given up when one does not come out of the kernel
	bool held;    // which was so
	bool left;    // when all were let go: one is traced still, and killed or in an exec
};

// Stop all threads, also those that are being born. False: none of them is to be stopped any more;
// one that could not be for as long as a second is so once it can, until who traces it ends.
bool tracee_stop(struct tracee *tracee, pid_t pid, struct err *err);

// One alone. False, with err->kind ERR_NONE: it has ended, or is about to be stopped otherwise.
bool tracee_stop_one(struct tracee *tracee, pid_t pid, pid_t tid, struct err *err);

// The others, too, where some are stopped; time counts again from here. False: none is stopped.
bool tracee_stop_others(struct tracee *tracee, struct err *err);

// All go on but one. Returns how long they were stopped.
uint64_t tracee_release_others(struct tracee *tracee, pid_t tid);

// All go on. Accepts { 0 }. Returns how long they stood, in nanoseconds.
uint64_t tracee_release(struct tracee *tracee);

// Wait until a thread that is traced has stopped; *status as of waitpid. False: it has ended, which
// is left to be waited for.
bool tracee_await(pid_t tid, int *status);

// One that is not its process's first has ended, or is not traced: nothing is left of it.
bool tracee_bury(pid_t tid);

// The ids of the process's threads: *count of them, to be freed. NULL: there is no such process.
pid_t *tracee_list(pid_t pid, size_t *count);

// Whether any of its threads has not ended. A process that was killed is listed, with its threads,
// until its parent waits for it.
bool tracee_lives(pid_t pid);

// A process that was seized and is in its exec comes to its first instruction, and gets no
// signal until it departs. False: it has ended, or something else has come between.
bool tracee_arrive(struct tracee *tracee, pid_t pid, struct err *err);

// It goes on, untraced. Accepts { 0 }.
void tracee_depart(struct tracee *tracee);

// Memory. False: not all of it is there.
bool tracee_read(pid_t pid, uint64_t at, void *bytes, size_t size);
bool tracee_write(pid_t pid, uint64_t at, const void *bytes, size_t size);

// Read up to `count` words, of 32 bits if `narrow`; fewer where not all are there. Returns how
// many.
size_t tracee_words(pid_t pid, uint64_t at, bool narrow, uint64_t *words, size_t count);

// Whether a signal handler was called on the thread's stack from *sp on, where the thread is at
// *at; it comes back to code in [start, end), which objects_restorers finds. *at and *sp are what
// it interrupted then.
bool tracee_interrupted(const struct tracee_thread *thread, uint64_t start, uint64_t end,
			uint64_t *at, uint64_t *sp);

// At most 8 bytes of code, which nobody may write otherwise.
bool tracee_poke(const struct tracee_thread *thread, uint64_t at, const void *bytes, size_t size);

// Threads go on, each until it comes to its place (0: it stays stopped), for `patience_ns` at most:
// then they are stopped wherever they are. By breakpoints of the processor's, which no other thread
// meets, and no child that one of them forks; where there is none to be had, it stays stopped.
void tracee_run_to(struct tracee *tracee, const uint64_t *places, uint64_t patience_ns);

// The same for the only thread of a program that begins, by a trap in its code.
void tracee_run_alone_to(struct tracee *tracee, uint64_t place, uint64_t patience_ns);

// Whether all threads that there are were stopped: one that ran to its place may have created more.
bool tracee_is_whole(struct tracee *tracee);

// The thread does one instruction.
bool tracee_step(struct tracee_thread *thread);

// What thread calls are made with: all that tracee_call keeps of it, and a stack of ours.
struct tracee_loan {
	struct tracee_thread *thread;
	uint64_t gate;  // a system-call instruction in the program's code
	uint64_t stack; // what was mapped for it, TRACEE_STACK_BYTES; 0: nothing yet
	uint64_t mask;
	uint8_t *vectors;
	size_t vectors_size;
};

enum {
	TRACEE_STACK_BYTES = ATTACH_STACK_BYTES,
	TRACEE_PARAMETERS_AT = 64
}; // from `stack` on, for callers

// Borrow a stopped thread. `gate` as above. False: it cannot be.
bool tracee_borrow(struct tracee_loan *loan, struct tracee_thread *thread, uint64_t gate,
		   struct err *err);

// The same without a stack, for tracee_ask alone: nothing is mapped in the process.
bool tracee_borrow_plainly(struct tracee_loan *loan, struct tracee_thread *thread, uint64_t gate,
			   struct err *err);

// Call a function with two arguments. False: it did not come back (the thread is as it was).
bool tracee_call(struct tracee_loan *loan, uint64_t function, uint64_t first, uint64_t second,
		 uint64_t *result);

// Ask the kernel: a call by its number for x86-64, whatever the class of the program. Its answer, a
// negative errno among them.
int64_t tracee_ask(struct tracee_loan *loan, uint64_t number, const uint64_t arguments[6]);

// Fork the process: *child, our tracee as well, has its memory as it is now, and is stopped before
// its first instruction. It ends when we do. Its parent gets no signal of that, and has to wait for
// it by __WALL. False: it cannot be.
bool tracee_fork(struct tracee_loan *loan, struct tracee_thread *child);

// The thread is as it was. Accepts { 0 }.
void tracee_give_back(struct tracee_loan *loan);
