// Threads are stopped by ptrace one by one, while those that still run may create others.
//
// For example, threads 10 and 11, of which 11 creates 12 just then. The first round reads
// /proc/PID/task, finds 10 and 11, and stops both; the second finds 12 and stops it; the third
// finds none that is new. Then all stand still: only a thread that runs could have created another.
// A program that creates them faster than they are found is looked at no more than 100 times.
//
// Nothing here waits without end for a thread that does not come to stand, since it may never: the
// first one of a process that is killed cannot be waited for before all others were, one that ends
// by itself not before its process does, and one whose process executes a program in another
// thread has another number then. So we look, more and more seldom, up to each millisecond. That a
// thread has ended is left to be waited for: who traces it ends (tracer_linux.h), or the process is
// his child.
#include "launch/tracee_linux.h"

#include "base/mem.h"
#include "collect/peer.h"
#include "launch/attachable_linux.h"
#include "launch/narrow_linux.h"
#include "os/now.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	TRACEE_VECTORS_BYTES = 16384,
	TRACEE_ROUNDS = 100,
	TRACEE_NAP_NS = 20000,
	TRACEE_NAP_FIRST_NS = 2000, // then twice as long,
	TRACEE_NAP_LAST_NS = 1000000,
	TRACEE_NAP_LONG_NS = 250000, // from here on: is it there at all?
	TRACEE_STRAY_NS = 100000000,
	TRACEE_HELD_NS = 1000000000, // who is in the kernel for so long may be so without end
	TRACEE_STACK_WORDS = 2048,   // that are looked at
};

pid_t *tracee_list(pid_t pid, size_t *count)
{
	size_t capacity = 0;
	pid_t *list = NULL;
	struct dirent *entry;
	char path[32];
	DIR *folder;

	*count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		MEM_ROOM(list, capacity, *count + 1);
		list[(*count)++] = atoi(entry->d_name);
	}
	if (folder)
		closedir(folder);
	ASSERT(*count <= capacity);
	return list;
}

static struct tracee_thread *tracee_find(struct tracee *tracee, pid_t tid)
{
	for (size_t i = 0; i < tracee->count; i++)
		if (tracee->threads[i].tid == tid)
			return &tracee->threads[i];
	return NULL;
}

enum tracee_report { TRACEE_NOTHING, TRACEE_STANDS, TRACEE_ENDED };

// What there is to be told of it, which is yet to be told. The kernel would tell of a stop, too, if
// only an end were asked for.
static enum tracee_report tracee_peek(pid_t tid)
{
	const int flags = WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL;
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)tid, &info, flags) != 0)
		return errno == EINTR ? TRACEE_NOTHING : TRACEE_ENDED;
	if (info.si_pid == 0)
		return TRACEE_NOTHING;
	return info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED ? TRACEE_STANDS
									  : TRACEE_ENDED;
}

// The same; a stop has been told then.
static enum tracee_report tracee_look(pid_t tid, int *status)
{
	siginfo_t info = { .si_pid = 0 };
	enum tracee_report report = tracee_peek(tid);

	if (report != TRACEE_STANDS)
		return report;
	if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL) != 0 || info.si_pid == 0)
		return TRACEE_NOTHING;        // it was killed just now
	*status = info.si_status << 8 | 0x7f; // as waitpid has it
	return TRACEE_STANDS;
}

// Whether anything would be told of it.
static bool tracee_is_traced(pid_t tid)
{
	siginfo_t info;

	return waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

bool tracee_bury(pid_t tid)
{
	siginfo_t info;

	return tracee_peek(tid) == TRACEE_ENDED &&
	       (waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | __WALL) == 0 ||
		errno == ECHILD);
}

// As /proc has it, 'Z' if it has ended. 0: it is not there.
static char tracee_state(pid_t tid)
{
	char text[64];
	const char *state = peer_stat((uint32_t)tid, 3, text, sizeof(text));

	return state ? *state : '\0';
}

static bool tracee_has_ended(char state)
{
	return state == 'Z' || state == 'X' || !state;
}

bool tracee_lives(pid_t pid)
{
	size_t count;
	pid_t *list = tracee_list(pid, &count);
	bool lives = false;

	for (size_t i = 0; i < count && !lives; i++)
		lives = !tracee_has_ended(tracee_state(list[i]));
	mem_free(list);
	return lives;
}

// TRACEE_NOTHING: for so long it did not come out of the kernel.
static enum tracee_report tracee_await_for(pid_t tid, int *status, uint64_t held_max_ns)
{
	uint64_t nap_ns = TRACEE_NAP_FIRST_NS, held_ns = 0;
	enum tracee_report report;

	// Only for a thread that is in an uninterruptible sleep ('D') is the time counted: others
	// come to stand as soon as they get a processor, however long that takes on a busy machine.
	while ((report = tracee_look(tid, status)) == TRACEE_NOTHING && held_ns <= held_max_ns) {
		char state = nap_ns < TRACEE_NAP_LONG_NS ? 'R' : tracee_state(tid);

		if (tracee_has_ended(state))
			return TRACEE_ENDED;
		held_ns = state == 'D' ? held_ns + nap_ns : 0;
		now_sleep(nap_ns);
		nap_ns = nap_ns < TRACEE_NAP_LAST_NS ? 2 * nap_ns : TRACEE_NAP_LAST_NS;
	}
	return report;
}

bool tracee_await(pid_t tid, int *status)
{
	return tracee_await_for(tid, status, UINT64_MAX) == TRACEE_STANDS;
}

// Wait until the thread stands. False: it has ended.
static bool tracee_wait(struct tracee_thread *thread, int *status)
{
	thread->gone = !tracee_await(thread->tid, status);
	return !thread->gone;
}

static bool tracee_is_ours(int status) // the stop that we have asked for
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

// One that we have seized and asked to stop has stopped. If a signal came first, it has stopped for
// that and not for us; we keep the signal, which the thread gets when it is released.
static bool tracee_stands(struct tracee *tracee, struct tracee_thread *thread)
{
	enum tracee_report report;
	int status = 0;

	ASSERT(!thread->gone);
	report = tracee_await_for(thread->tid, &status,
				  tracee->limited ? TRACEE_HELD_NS : UINT64_MAX);
	tracee->held |= report == TRACEE_NOTHING;
	thread->gone = report != TRACEE_STANDS;
	if (thread->gone)
		return false;
	if (!tracee_is_ours(status))
		thread->signal = WSTOPSIG(status); // came first: it is for the program
	if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &thread->registers) != 0)
		thread->gone = true;
	return !thread->gone;
}

// False: it may not be. A thread that has ended meanwhile is `gone`.
static bool tracee_seize(struct tracee *tracee, pid_t tid, struct err *err)
{
	struct tracee_thread *thread;

	thread = MEM_ADD(tracee->threads, tracee->count, tracee->capacity);
	*thread = (struct tracee_thread){ .tid = tid };
	// Not PTRACE_ATTACH: its SIGSTOP looks like one that is for the program.
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
		int number = errno;
		char state = tracee_state(tid);

		thread->gone = true;
		return number == ESRCH || tracee_has_ended(state) ||
		       attachable_refused(tracee->pid, number, err);
	}
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)
		thread->gone = true;
	return true;
}

bool tracee_stop_one(struct tracee *tracee, pid_t pid, pid_t tid, struct err *err)
{
	*err = (struct err){ .kind = ERR_NONE };
	*tracee = (struct tracee){ .pid = pid, .began_ns = now_steady_ns() };
	if (tracee_seize(tracee, tid, err) && !tracee->threads[0].gone &&
	    tracee_stands(tracee, &tracee->threads[0]) && !tracee->threads[0].signal)
		return true;
	tracee_release(tracee);
	return false;
}

// Those that were not seen before. False: it failed. *more: there were some.
static bool tracee_stop_new(struct tracee *tracee, bool *more, struct err *err)
{
	size_t first = tracee->count;
	size_t count;
	pid_t *list = tracee_list(tracee->pid, &count);
	bool ok = true;

	for (size_t i = 0; i < count && ok; i++)
		if (!tracee_find(tracee, list[i]))
			ok = tracee_seize(tracee, list[i], err);
	mem_free(list);
	*more = tracee->count > first;
	for (size_t i = first; i < tracee->count && !tracee->held; i++)
		if (!tracee->threads[i].gone)
			tracee_stands(tracee, &tracee->threads[i]);
	return ok &&
	       (!tracee->held || (attachable_await(tracee->pid, 0, -1, NULL, err) &&
				  err_set(err, ERR_IO, "process %d cannot be stopped (try: again)",
					  (int)tracee->pid)));
}

// While threads stand still they wait for us, and for our first thread, which says what is to be
// done: who may, comes before all others. Threads that we begin meanwhile do not.
// The policy of our first thread is changed once for all tracers (`hurrying` counts them), and set
// back by the last.
static void tracee_hurry(struct tracee *tracee, bool now)
{
	static const struct sched_param first = { .sched_priority = 1 };
	static struct sched_param own;
	static _Atomic unsigned hurrying;
	static int policy;

	if (now == tracee->hurries)
		return;
	tracee->hurries = now;
	if (now && atomic_fetch_add(&hurrying, 1) == 0) {
		policy = sched_getscheduler(getpid());
		sched_getparam(getpid(), &own);
	}
	if (now) {
		sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
		sched_setscheduler(getpid(), SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
		return;
	}
	sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &own);
	if (atomic_fetch_sub(&hurrying, 1) == 1)
		sched_setscheduler(getpid(), policy | SCHED_RESET_ON_FORK, &own);
}

// Threads that tracee_stop_one has stopped are on the list already, and are not asked again: to
// detach, one thread is stopped first and asks the recorder, then all.
bool tracee_stop_others(struct tracee *tracee, struct err *err)
{
	bool more = true;

	tracee_hurry(tracee, true);
	tracee->began_ns = now_steady_ns();
	for (int i = 0; i < TRACEE_ROUNDS && more; i++) {
		if (!tracee_stop_new(tracee, &more, err)) {
			tracee_release(tracee);
			return false;
		}
	}
	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone)
			return true;
	err_set(err, ERR_IO, "process %d has ended", (int)tracee->pid);
	tracee_release(tracee);
	return false;
}

bool tracee_stop(struct tracee *tracee, pid_t pid, struct err *err)
{
	*tracee = (struct tracee){ .pid = pid, .limited = true };
	return tracee_stop_others(tracee, err);
}

// They have not ended; `gone` keeps tracee_release away from them.
uint64_t tracee_release_others(struct tracee *tracee, pid_t tid)
{
	uint64_t stood_ns;

	for (size_t i = 0; i < tracee->count; i++) {
		struct tracee_thread *thread = &tracee->threads[i];

		if (thread->gone || thread->tid == tid)
			continue;
		ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)thread->signal);
		thread->gone = true;
	}
	stood_ns = now_steady_ns() - tracee->began_ns;
	tracee_hurry(tracee, false);
	return stood_ns;
}

// What cannot be detached was killed, or is in an exec: it may have ended by now, and is waited
// for. Not so the first thread, whose end is its process's and others' to wait for: of that one it
// is only seen whether it is ours still. `left` says that something is, which only the end of the
// thread that traces brings away.
uint64_t tracee_release(struct tracee *tracee)
{
	uint64_t stood_ns = now_steady_ns() - tracee->began_ns;
	bool left = false;

	for (size_t i = 0; i < tracee->count; i++) {
		const struct tracee_thread *thread = &tracee->threads[i];

		if (thread->gone ||
		    ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)thread->signal) != 0)
			left |= thread->tid != tracee->pid ? !tracee_bury(thread->tid)
							   : tracee_is_traced(thread->tid);
	}
	if (tracee->count > 0)
		stood_ns = now_steady_ns() - tracee->began_ns;
	tracee_hurry(tracee, false);
	mem_free(tracee->threads);
	*tracee = (struct tracee){ .left = left };
	return stood_ns;
}

bool tracee_read(pid_t pid, uint64_t at, void *bytes, size_t size)
{
	struct iovec here = { bytes, size };
	struct iovec there = { (void *)(uintptr_t)at, size };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

bool tracee_write(pid_t pid, uint64_t at, const void *bytes, size_t size)
{
	struct iovec here = { (void *)(uintptr_t)bytes, size };
	struct iovec there = { (void *)(uintptr_t)at, size };

	return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

// Half as many each time that the read fails, so less than what is there may be read, and never
// more.
size_t tracee_words(pid_t pid, uint64_t at, bool narrow, uint64_t *words, size_t count)
{
	size_t bytes = narrow_bytes(narrow);
	uint8_t *read = (uint8_t *)words;

	while (count > 0 && !tracee_read(pid, at, words, count * bytes))
		count /= 2;
	for (size_t i = count; narrow && i-- > 0;) { // the last first: they grow in place
		uint32_t word;

		memcpy(&word, read + i * sizeof(word), sizeof(word));
		words[i] = word;
	}
	return count;
}

bool tracee_poke(const struct tracee_thread *thread, uint64_t at, const void *bytes, size_t size)
{
	long word;

	ASSERT(size <= sizeof(word));
	errno = 0;
	// Eight bytes are read and written, of which `size` change. By ptrace and not by
	// process_vm_writev, which may not write to code.
	word = ptrace(PTRACE_PEEKTEXT, thread->tid, (void *)(uintptr_t)at, NULL);
	if (errno != 0)
		return false;
	memcpy(&word, bytes, size);
	return ptrace(PTRACE_POKETEXT, thread->tid, (void *)(uintptr_t)at, word) == 0;
}

// What a signal handler returns to, if `at` is `into` bytes into that.
static const struct narrow_restorer *tracee_restorer(pid_t pid, bool narrow, uint64_t at,
						     size_t into)
{
	const struct narrow_restorer *restorer;
	uint8_t code[sizeof(restorer->code)];

	for (size_t i = 0; (restorer = narrow_restorer(narrow, i)) != NULL; i++)
		if (into < restorer->size && tracee_read(pid, at - into, code, restorer->size) &&
		    memcmp(code, restorer->code, restorer->size) == 0)
			return restorer;
	return NULL;
}

// How many words below the stack pointer are to be looked at, too: one that is about to leave a
// handler has taken the address of that code, and maybe a number, from its stack.
static uint64_t tracee_taken(const struct tracee_thread *thread, bool narrow, uint64_t at)
{
	for (size_t into = 0; into < sizeof(((struct narrow_restorer *)NULL)->code); into++)
		if (tracee_restorer(thread->tid, narrow, at, into))
			return 2;
	return 0;
}

// Whether the kernel has put a frame behind that word, and not another function something over it:
// it has the selector of code there, which no handler changes.
static bool tracee_is_frame(pid_t pid, uint64_t frame, const struct narrow_restorer *restorer)
{
	uint16_t selector;

	return tracee_read(pid, frame + restorer->selector, &selector, sizeof(selector)) &&
	       narrow_is_selector(selector);
}

// The kernel calls a handler with a frame on the stack: the address that the handler returns to,
// and above that what was interrupted. Where the frame is depends on how deep the handler is in its
// calls, so words are looked at from the stack pointer on, as many as 2,048, until one is the
// address of code that does nothing but rt_sigreturn, with a frame behind it. A whole frame of a
// handler that came back is met where a function has not written to its local array yet.
bool tracee_interrupted(const struct tracee_thread *thread, uint64_t start, uint64_t end,
			uint64_t *at, uint64_t *sp)
{
	static uint64_t words[TRACEE_STACK_WORDS];
	bool narrow = narrow_is(&thread->registers);
	size_t bytes = narrow_bytes(narrow), count;
	uint64_t from = *sp & ~(uint64_t)(bytes - 1);

	// One comparison for start <= *at < end: what is below `start` becomes a large number.
	if (*at - start < end - start)
		from -= bytes * tracee_taken(thread, narrow, *at);
	count = tracee_words(thread->tid, from, narrow, words, TRACEE_STACK_WORDS);
	for (size_t i = 0; i < count; i++) {
		const struct narrow_restorer *restorer =
			words[i] - start < end - start
				? tracee_restorer(thread->tid, narrow, words[i], 0)
				: NULL;
		uint64_t frame = from + bytes * (i + 1);

		if (restorer && tracee_is_frame(thread->tid, frame, restorer))
			return tracee_words(thread->tid, frame + restorer->sp, narrow, sp, 1) &&
			       tracee_words(thread->tid, frame + restorer->at, narrow, at, 1);
	}
	return false;
}

static uint64_t tracee_mask(const struct tracee_thread *thread, const uint64_t *set)
{
	uint64_t mask = 0;

	ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof(mask), &mask);
	if (set)
		ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof(mask), set);
	return mask;
}

// All signals but those that an instruction raises, which would lose their handler.
static uint64_t tracee_no_signals(void)
{
	static const int raised[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS };
	uint64_t mask = ~(uint64_t)0;

	for (size_t i = 0; i < sizeof(raised) / sizeof(*raised); i++)
		mask &= ~((uint64_t)1 << (raised[i] - 1));
	return mask;
}

// Go on until `number` is raised. False: something else was, or it has ended.
static bool tracee_run(struct tracee_thread *thread, enum __ptrace_request how, int number)
{
	struct user_regs_struct *registers = &thread->registers;
	int status;

	for (;;) {
		if (ptrace(how, thread->tid, NULL, NULL) != 0 || !tracee_wait(thread, &status)) {
			thread->gone = true;
			return false;
		}
		if (!tracee_is_ours(status))
			break;
	}
	ptrace(PTRACE_GETREGS, thread->tid, NULL, registers);
	return WSTOPSIG(status) == number;
}

// It stands in the stop of its exec. With a request to stop pending it goes on, and stops before
// its first instruction.
bool tracee_arrive(struct tracee *tracee, pid_t pid, struct err *err)
{
	uint64_t none = tracee_no_signals();
	struct tracee_thread *thread;

	*tracee = (struct tracee){ .pid = pid, .began_ns = now_steady_ns() };
	tracee->threads = mem_grow(tracee->threads, &tracee->capacity, 1, sizeof(*thread));
	tracee->count = 1;
	thread = &tracee->threads[0];
	*thread = (struct tracee_thread){ .tid = pid };
	tracee->mask = tracee_mask(thread, &none);
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 &&
	    ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 && tracee_stands(tracee, thread))
		return true;
	return err_set(err, ERR_IO, "process %d has ended", (int)pid);
}

void tracee_depart(struct tracee *tracee)
{
	if (tracee->count > 0 && !tracee->threads[0].gone)
		tracee_mask(&tracee->threads[0], &tracee->mask);
	tracee_release(tracee);
}

bool tracee_step(struct tracee_thread *thread)
{
	uint64_t none = tracee_no_signals();
	uint64_t mask = tracee_mask(thread, &none);
	bool stepped = tracee_run(thread, PTRACE_SINGLESTEP, SIGTRAP);

	tracee_mask(thread, &mask);
	return stepped;
}

// A thread that goes to a place.
//
// For example threads 10 and 11 are in malloc, and 12 stands in a wait. 10 goes to 0x4011f0, where
// malloc was called in its stack, and 11 to 0x4013a0. 10 forks on its way: its child has no
// breakpoint, and neither has a thread that 11 creates. A trap in the code would be in the child's
// copy of it, and end the child, which is not traced.
struct tracee_walker {
	uint64_t place; // 0: it stays where it is
	uint64_t mask;  // of signals, that it had
	bool alone;     // by a trap
	uint8_t byte;   // that is there
	bool set;       // the trap is there instead, or the breakpoint is set
	bool runs;
};

// The thread's own, by the first of the processor's four registers for that: it is met before the
// instruction is executed. Place 0: none. The seventh says which of them hold: it is 0 while the
// first is changed, and 1 is the first alone, where an instruction is executed.
static bool tracee_set_breakpoint(pid_t tid, uint64_t place)
{
	const size_t at = offsetof(struct user, u_debugreg);
	const size_t control_at = at + 7 * sizeof(((struct user *)NULL)->u_debugreg[0]);

	return ptrace(PTRACE_POKEUSER, tid, (void *)control_at, NULL) == 0 &&
	       ptrace(PTRACE_POKEUSER, tid, (void *)at, (void *)(uintptr_t)place) == 0 &&
	       (!place || ptrace(PTRACE_POKEUSER, tid, (void *)control_at, (void *)1) == 0);
}

// What cannot be read is no place. The signals are blocked for as long as it goes: a handler would
// lead it elsewhere.
static void tracee_set_out(const struct tracee_thread *thread, struct tracee_walker *walker)
{
	static const uint8_t trap = 0xcc;
	uint64_t none = tracee_no_signals();

	ASSERT(!walker->set && !walker->runs);
	if (!walker->place || thread->gone ||
	    !tracee_read(thread->tid, walker->place, &walker->byte, 1))
		return;
	walker->mask = tracee_mask(thread, &none);
	walker->set = walker->runs = walker->alone
					     ? tracee_poke(thread, walker->place, &trap, 1)
					     : tracee_set_breakpoint(thread->tid, walker->place);
	if (!walker->set)
		tracee_mask(thread, &walker->mask);
}

// Whether a trap was met and is yet to be told: the stop that was asked for came before it.
static bool tracee_has_trap(pid_t tid)
{
	struct __ptrace_peeksiginfo_args from = { .off = 0, .flags = 0, .nr = 1 };
	siginfo_t pending;

	for (; ptrace(PTRACE_PEEKSIGINFO, tid, &from, &pending) == 1; from.off++)
		if (pending.si_signo == SIGTRAP)
			return true;
	return false;
}

// See whether it has come to its place. `wait`: it was told to stop, and will.
static void tracee_look_at(struct tracee_thread *thread, struct tracee_walker *walker, bool wait)
{
	struct user_regs_struct *registers = &thread->registers;
	enum tracee_report report;
	int status = 0;

	ASSERT(walker->runs);
	if (wait)
		report = tracee_await(thread->tid, &status) ? TRACEE_STANDS : TRACEE_ENDED;
	else
		report = tracee_look(thread->tid, &status);
	if (report == TRACEE_NOTHING)
		return;
	thread->gone = report == TRACEE_ENDED;
	if (!thread->gone && !wait && tracee_is_ours(status) &&
	    ptrace(PTRACE_CONT, thread->tid, NULL, NULL) == 0)
		return; // of an earlier stop
	// It was told to stop and has come to its place in the same moment: the signal is pending,
	// and would end the program. So it goes on once, to be stopped by that.
	if (!thread->gone && tracee_is_ours(status) && tracee_has_trap(thread->tid) &&
	    ptrace(PTRACE_CONT, thread->tid, NULL, NULL) == 0)
		tracee_wait(thread, &status);
	walker->runs = false;
	if (thread->gone || ptrace(PTRACE_GETREGS, thread->tid, NULL, registers) != 0)
		return;
	// A trap is executed: the thread is one byte after it, and goes back to what was there.
	if (walker->alone && WSTOPSIG(status) == SIGTRAP && !tracee_is_ours(status) &&
	    registers->rip == walker->place + 1) {
		registers->rip--;
		ptrace(PTRACE_SETREGS, thread->tid, NULL, registers);
	}
}

// They go on with their signals blocked. Those that have not come there when the time is over are
// asked to stop wherever they are. While they run they are looked at each 20 microseconds.
//
// All set out before the first goes on, so that none runs while others are being prepared; and all
// stand again before the first is made as it was.
static void tracee_walk(struct tracee *tracee, struct tracee_walker *walkers, uint64_t patience_ns)
{
	uint64_t end_ns = now_steady_ns() + patience_ns;
	bool running = true;

	for (size_t i = 0; i < tracee->count; i++)
		tracee_set_out(&tracee->threads[i], &walkers[i]);
	for (size_t i = 0; i < tracee->count; i++)
		if (walkers[i].runs)
			ptrace(PTRACE_CONT, tracee->threads[i].tid, NULL, NULL);
	while (running) {
		bool late = now_steady_ns() > end_ns;

		running = false;
		for (size_t i = 0; i < tracee->count; i++) {
			if (!walkers[i].runs)
				continue;
			if (late)
				ptrace(PTRACE_INTERRUPT, tracee->threads[i].tid, NULL, NULL);
			tracee_look_at(&tracee->threads[i], &walkers[i], late);
			running |= walkers[i].runs;
		}
		if (running && !late)
			now_sleep(TRACEE_NAP_NS);
	}
	for (size_t i = 0; i < tracee->count; i++) {
		const struct tracee_thread *thread = &tracee->threads[i];

		if (!walkers[i].set || thread->gone)
			continue;
		tracee_mask(thread, &walkers[i].mask);
		if (walkers[i].alone)
			tracee_poke(thread, walkers[i].place, &walkers[i].byte, 1);
		else
			tracee_set_breakpoint(thread->tid, 0);
	}
}

void tracee_run_to(struct tracee *tracee, const uint64_t *places, uint64_t patience_ns)
{
	struct tracee_walker *walkers = mem_alloc(tracee->count, sizeof(*walkers));

	for (size_t i = 0; i < tracee->count; i++)
		walkers[i].place = places[i];
	tracee_walk(tracee, walkers, patience_ns);
	mem_free(walkers);
}

// It has no other thread that could meet the trap, and has no child before it comes there. Where
// the processor's breakpoints are not to be had, as in some containers, it is recorded still.
void tracee_run_alone_to(struct tracee *tracee, uint64_t place, uint64_t patience_ns)
{
	struct tracee_walker walker = { .place = place, .alone = true };

	ASSERT(tracee->count == 1);
	tracee_walk(tracee, &walker, patience_ns);
}

// For example a thread was taken to be in malloc, by a word that was left on its stack, and was in
// pthread_create: its new thread would run while code is written.
bool tracee_is_whole(struct tracee *tracee)
{
	bool whole = true;
	size_t count;
	pid_t *list = tracee_list(tracee->pid, &count);

	for (size_t i = 0; i < count && whole; i++)
		whole = tracee_find(tracee, list[i]) != NULL;
	mem_free(list);
	return whole;
}

// What a function that is called may change: the general registers are in `thread` since it
// stopped, the others are read here as one block, whose size is the processor's (with AVX-512 some
// 2,700 bytes).
bool tracee_borrow_plainly(struct tracee_loan *loan, struct tracee_thread *thread, uint64_t gate,
			   struct err *err)
{
	uint64_t none = tracee_no_signals();
	struct iovec part;

	*loan = (struct tracee_loan){ .thread = thread, .gate = gate };
	loan->vectors = mem_alloc(1, TRACEE_VECTORS_BYTES);
	part = (struct iovec){ loan->vectors, TRACEE_VECTORS_BYTES };
	if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_X86_XSTATE, &part) != 0) {
		mem_free(loan->vectors);
		*loan = (struct tracee_loan){ 0 };
		return err_errno(err, errno, "cannot read the registers of thread %d", thread->tid);
	}
	loan->vectors_size = part.iov_len;
	loan->mask = tracee_mask(thread, &none);
	return true;
}

// A system call needs no stack, so the thread can make the one that maps its stack.
bool tracee_borrow(struct tracee_loan *loan, struct tracee_thread *thread, uint64_t gate,
		   struct err *err)
{
	const uint64_t arguments[6] = { 0,
					TRACEE_STACK_BYTES,
					PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS,
					UINT64_MAX,
					0 };
	int64_t stack;

	if (!tracee_borrow_plainly(loan, thread, gate, err))
		return false;
	stack = tracee_ask(loan, SYS_mmap, arguments);
	if (stack > 0 || stack < -4095) {
		loan->stack = (uint64_t)stack;
		return true;
	}
	tracee_give_back(loan);
	return err_errno(err, stack ? (int)-stack : ESRCH, "process %d: no memory for a stack",
			 (int)thread->tid);
}

// Put the registers in place that a call begins with, and go on.
static bool tracee_go(struct tracee_loan *loan, struct user_regs_struct *registers,
		      enum __ptrace_request how, int number)
{
	struct tracee_thread *thread = loan->thread;
	struct user_regs_struct kept = thread->registers;
	bool came_back = false;

	ASSERT(loan->thread != NULL && loan->vectors != NULL);
	// Where it is not -1, the kernel would take the thread for one in a system call, and set
	// its instruction back to begin that again. 0x400 is the direction flag, which functions
	// expect clear.
	registers->orig_rax = UINT64_MAX; // in no system call
	registers->eflags &= ~(uint64_t)0x400;
	if (!thread->gone && ptrace(PTRACE_SETREGS, thread->tid, NULL, registers) == 0)
		came_back = tracee_run(thread, how, number);
	*registers = thread->registers;
	thread->registers = kept;
	return came_back;
}

bool tracee_call(struct tracee_loan *loan, uint64_t function, uint64_t first, uint64_t second,
		 uint64_t *result)
{
	struct user_regs_struct registers = loan->thread->registers;
	bool narrow = narrow_is(&registers);
	// Nothing is at 0, to which it returns: a fault, which we see and the program does not. In
	// programs of 32 bits the arguments are behind that.
	const uint32_t narrows[3] = { 0, (uint32_t)first, (uint32_t)second };
	const uint64_t wide = 0;

	ASSERT(loan->stack != 0);
	registers.rip = function;
	registers.rdi = first;
	registers.rsi = second;
	registers.rax = 0;
	registers.rsp = loan->stack + TRACEE_STACK_BYTES - 64 - narrow_bytes(narrow);
	registers.rbp = 0;
	if (!tracee_write(loan->thread->tid, registers.rsp,
			  narrow ? (const void *)narrows : (const void *)&wide,
			  narrow ? sizeof(narrows) : sizeof(wide)) ||
	    !tracee_go(loan, &registers, PTRACE_CONT, SIGSEGV))
		return false;
	*result = narrow ? (uint32_t)registers.rax : registers.rax;
	return registers.rip == 0;
}

static struct user_regs_struct tracee_question(const struct tracee_loan *loan, uint64_t number,
					       const uint64_t arguments[6])
{
	struct user_regs_struct registers = loan->thread->registers;

	ASSERT(loan->gate != 0);
	registers.rip = loan->gate;
	if (!narrow_ask(&registers, number, arguments))
		registers.rax = UINT64_MAX; // which no kernel knows
	return registers;
}

int64_t tracee_ask(struct tracee_loan *loan, uint64_t number, const uint64_t arguments[6])
{
	struct user_regs_struct registers = tracee_question(loan, number, arguments);

	if (!tracee_go(loan, &registers, PTRACE_SINGLESTEP, SIGTRAP))
		return -ESRCH;
	return narrow_answer(&registers);
}

// The process was killed in its call. If it had made another one by then, which we cannot know any
// more, that one would run when we end.
static void tracee_end_strays(pid_t pid)
{
	uint64_t end_ns = now_steady_ns() + TRACEE_STRAY_NS;
	char path[64];

	while (now_steady_ns() < end_ns) {
		siginfo_t info = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | __WALL | __WNOTHREAD) != 0)
			return; // we trace none any more
		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)info.si_pid);
		if (info.si_pid != 0 && access(path, F_OK) != 0)
			kill(info.si_pid, SIGKILL);
		now_sleep(TRACEE_NAP_LAST_NS);
	}
}

bool tracee_fork(struct tracee_loan *loan, struct tracee_thread *child)
{
	static const uint64_t nothing[6];
	struct user_regs_struct registers = tracee_question(loan, SYS_clone, nothing);
	const struct user_regs_struct kept = loan->thread->registers;
	pid_t tid = loan->thread->tid;
	unsigned long message = 0;
	int status;

	*child = (struct tracee_thread){ .gone = true };
	if (ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)PTRACE_O_TRACECLONE) != 0)
		return false;
	// The first stop is where the child is there and the call is not over; or its failure.
	if (tracee_go(loan, &registers, PTRACE_SINGLESTEP, SIGTRAP) &&
	    (int64_t)registers.rax == -ENOSYS &&
	    ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) == 0 && message > 0) {
		child->tid = (pid_t)message;
		// The end of the call, with the registers as we had set them: they are put back
		// after it.
		tracee_run(loan->thread, PTRACE_SINGLESTEP, SIGTRAP);
		loan->thread->registers = kept;
	}
	ptrace(PTRACE_SETOPTIONS, tid, NULL, NULL);
	if (child->tid == 0 && loan->thread->gone)
		tracee_end_strays(tid);
	if (child->tid == 0 || !tracee_wait(child, &status))
		return false;
	ptrace(PTRACE_SETOPTIONS, child->tid, NULL, (void *)PTRACE_O_EXITKILL);
	return ptrace(PTRACE_GETREGS, child->tid, NULL, &child->registers) == 0;
}

// If the thread has ended meanwhile, its stack stays mapped: no thread of ours is left there to
// unmap it.
void tracee_give_back(struct tracee_loan *loan)
{
	const uint64_t arguments[6] = { loan->stack, TRACEE_STACK_BYTES, 0, 0, 0, 0 };
	struct iovec part = { loan->vectors, loan->vectors_size };
	struct tracee_thread *thread = loan->thread;

	if (!thread)
		return;
	ASSERT(loan->vectors != NULL && loan->vectors_size <= TRACEE_VECTORS_BYTES);
	if (loan->stack)
		tracee_ask(loan, SYS_munmap, arguments);
	if (!thread->gone) {
		ptrace(PTRACE_SETREGSET, thread->tid, (void *)NT_X86_XSTATE, &part);
		ptrace(PTRACE_SETREGS, thread->tid, NULL, &thread->registers);
		tracee_mask(thread, &loan->mask);
	}
	mem_free(loan->vectors);
	*loan = (struct tracee_loan){ 0 };
}
