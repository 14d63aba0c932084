// For example, Go's runtime has a `syscall` instruction of its own at 0x40a010, with 9 (mmap) in
// rax. The kernel finds that kernel_gate of the thread is 1 and the address not in libc, and sends
// SIGSYS. The handler has the registers of the call: number 9, its six arguments, and 0x40a012 to
// go on at. It makes the call by vm_call, as a patched site of libc would, with the program's stack
// for the walk, and puts the result in the rax that the handler's return restores: to the program
// it looks like a system call that took two microseconds.
//
// While a call of ours is made the gate is 0, and so it is not dispatched itself.
#include "recorder/strict_linux.h"

#include "recorder/exec_linux.h"
#include "recorder/kernel.h"
#include "recorder/notes.h"
#include "recorder/patch_linux.h"
#include "recorder/recording.h"
#include "recorder/text.h"
#include "recorder/vm.h"

#include <asm/sigcontext.h>
#include <asm/siginfo.h>
#include <asm/signal.h>
#include <asm/ucontext.h>

enum {
	STRICT_PRCTL = 59, // PR_SET_SYSCALL_USER_DISPATCH
	STRICT_ON = 1,
	STRICT_DISPATCHED = 2, // SYS_USER_DISPATCH, in si_code
	STRICT_STUBS_MAX = 64,
	STRICT_RETURN_BYTES = 7, // of the mov in front of the system call
	STRICT_CLONE_VM = 0x100,
	STRICT_CLONE_THREAD = 0x10000,
	STRICT_SIG_SETMASK = 2,
	STRICT_SIGNAL_BYTES = 8,
	STRICT_SIGNALS = 65,
	STRICT_ENOMEM = 12,
	STRICT_SIGNAL_CODE_BYTES = 64, // of strict_signal, about
};

#define STRICT_BIT (UINT64_C(1) << (SIGSYS - 1))

// As the kernel has it.
struct strict_action {
	void (*handler)(int, siginfo_t *, void *);
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

static struct patch_code strict_libc; // whose calls are not dispatched
static uintptr_t strict_return;       // libc's rt_sigreturn: the mov, then the call
static struct strict_action strict_theirs[STRICT_SIGNALS]; // what the program wants to be called
// Pages of code, one for each place that makes such a call, by the address behind it.
static uint8_t *strict_stubs;
static struct strict_place {
	uintptr_t back;
	bool clones;
} strict_places[STRICT_STUBS_MAX];
static _Atomic int strict_lock;

// ---- Signals --------------------------------------------------------------------------------

// What cannot be asked any more is believed.
static bool strict_can_read(uintptr_t page)
{
	return kernel_sealed || kernel_can_read(page);
}

// rt_sigprocmask, without SIGSYS.
//
// Where SIGSYS is blocked the kernel would end the process at the next call that is dispatched.
static long strict_mask(const long words[6])
{
	uint64_t set = 0;
	const uint64_t *given = (const uint64_t *)words[1];

	if (!given || words[3] != STRICT_SIGNAL_BYTES)
		return kernel_pass(__NR_rt_sigprocmask, words[0], words[1], words[2], words[3]);
	if (!strict_can_read((uintptr_t)given))
		return -KERNEL_EFAULT;
	set = *given & ~STRICT_BIT;
	return kernel_pass(__NR_rt_sigprocmask, words[0], &set, words[2], words[3]);
}

// In front of each handler of the program: a signal may arrive while the gate is open for a call
// of ours, and what the handler calls is to be dispatched all the same.
//
// The gate is a byte of the thread: 0 while a call of ours is being made. A handler that comes just
// then runs with 1, and leaves 0 behind it.
static void strict_signal(int number, siginfo_t *info, void *context)
{
	uint8_t gate = kernel_gate;

	kernel_gate = kernel_gate_home;
	strict_theirs[number].handler(number, info, context);
	kernel_gate = gate;
}

bool strict_calls_handler(uintptr_t pc)
{
	return pc - (uintptr_t)strict_signal < STRICT_SIGNAL_CODE_BYTES;
}

static bool strict_is_function(const struct strict_action *action)
{
	return (uintptr_t)action->handler > 1; // neither SIG_DFL nor SIG_IGN
}

// Tell the program what it had set, not what we made of it.
static long strict_answer(struct strict_action *out, struct strict_action old,
			  const struct strict_action *theirs)
{
	if (old.handler == strict_signal) {
		old.handler = theirs->handler;
		old.mask = theirs->mask;
	}
	if (out && !strict_can_read((uintptr_t)out))
		return -KERNEL_EFAULT;
	if (out)
		*out = old;
	return 0;
}

// rt_sigaction: ours stays for SIGSYS, and no handler runs with it blocked.
//
// What the program has set is kept in strict_theirs and given back when it asks; the kernel has
// strict_signal in its place.
static long strict_act(const long words[6])
{
	const struct strict_action *given = (const struct strict_action *)words[1];
	struct strict_action *out = (struct strict_action *)words[2];
	struct strict_action action = { 0 }, old, last;
	uint64_t number = (uint64_t)words[0];
	long result;

	if (number == 0 || number >= STRICT_SIGNALS || words[3] != STRICT_SIGNAL_BYTES ||
	    (given && !strict_can_read((uintptr_t)given)))
		return kernel_pass(__NR_rt_sigaction, words[0], words[1], words[2], words[3]);
	last = strict_theirs[number];
	if (given)
		action = strict_theirs[number] = *given;
	if (number == SIGSYS)
		return strict_answer(out, last, &last);
	if (given && strict_is_function(given))
		action.handler = strict_signal;
	action.mask = given ? action.mask & ~STRICT_BIT : 0;
	result = kernel_pass(__NR_rt_sigaction, number, given ? &action : NULL, &old,
			     STRICT_SIGNAL_BYTES);
	return kernel_failed(result) ? result : strict_answer(out, old, &last);
}

bool strict_wants(uint32_t number)
{
	return number == __NR_rt_sigprocmask || number == __NR_rt_sigaction ||
	       number == __NR_set_robust_list;
}

// A thread's dispatch is its own state, and is not inherited: each thread turns it on for itself.
long strict_call(const long words[6], long number)
{
	long result;

	if (number == __NR_rt_sigprocmask)
		return strict_mask(words);
	if (number == __NR_rt_sigaction)
		return strict_act(words);
	// The first call of every thread that libc makes.
	result = kernel_call6(number, words[0], words[1], words[2], words[3], words[4], words[5]);
	strict_thread();
	return result;
}

// A SIGSYS that is none of ours: as if we were not there.
static void strict_pass_on(int number, siginfo_t *info, void *context)
{
	struct strict_action action = { 0 };

	if (strict_is_function(&strict_theirs[SIGSYS])) {
		strict_theirs[SIGSYS].handler(number, info, context);
	} else if (!strict_theirs[SIGSYS].handler) {
		kernel_pass(__NR_rt_sigaction, SIGSYS, &action, 0, STRICT_SIGNAL_BYTES);
		kernel_pass(__NR_tgkill, kernel_process_id(), kernel_thread_id(), SIGSYS);
	}
}

// ---- Calls that cannot be made inside of a handler ----------------------------------------------

// Code that makes the system call in place, behind which the caller is dispatched again; if it
// clones, its child runs on undispatched. NULL: there is no room.
//
// One page for each place, as its code has the way back in it. For example, at 0x40a012: syscall,
// test and jz if it clones, movb $1,%fs:gate, jmp *0(%rip), and 0x40a012.
static const uint8_t *strict_stub(uintptr_t back, bool clones)
{
	static const uint8_t enter[] = { 0x0f, 0x05 }; // syscall
	static const uint8_t child[] = {
		0x48, 0x85, 0xc0, // test %rax,%rax
		0x74, 0x09,       // jz over the next
	};
	static const uint8_t again[] = { 0x64, 0xc6, 0x04, 0x25 };       // movb $1,%fs:gate
	static const uint8_t leave[] = { 0x01, 0xff, 0x25, 0, 0, 0, 0 }; // jmp *behind(%rip)
	uintptr_t thread;
	int32_t gate;
	uint8_t *page, *at;
	long made;

	__asm__("mov %%fs:0,%0" : "=r"(thread));
	gate = (int32_t)((uintptr_t)&kernel_gate - thread);
	for (int i = 0; i < STRICT_STUBS_MAX; i++) {
		struct strict_place *place = &strict_places[i];

		if (place->back == back && place->clones == clones)
			return strict_stubs + (size_t)i * KERNEL_PAGE;
		if (place->back)
			continue;
		page = strict_stubs + (size_t)i * KERNEL_PAGE;
		made = kernel_pass(__NR_mprotect, page, KERNEL_PAGE,
				   KERNEL_PROT_READ | KERNEL_PROT_WRITE);
		if (kernel_failed(made))
			return NULL;
		at = page;
		memcpy(at, enter, sizeof(enter));
		at += sizeof(enter);
		if (clones) {
			memcpy(at, child, sizeof(child));
			at += sizeof(child);
		}
		memcpy(at, again, sizeof(again));
		at += sizeof(again);
		memcpy(at, &gate, 4);
		at += 4;
		memcpy(at, leave, sizeof(leave));
		at += sizeof(leave);
		memcpy(at, &back, 8);
		made = kernel_pass(__NR_mprotect, page, KERNEL_PAGE,
				   KERNEL_PROT_READ | KERNEL_PROT_EXEC);
		if (kernel_failed(made))
			return NULL;
		*place = (struct strict_place){ back, clones };
		return page;
	}
	return NULL;
}

// Two kinds of call are made where they were. A child that shares the memory may begin on another
// stack. And a stack for signals cannot be changed by a handler that may stand on it.
//
// The handler's return goes to the stub: the registers are the program's, the gate is open, and the
// stub closes it.
static bool strict_in_place(struct sigcontext *registers, long number)
{
	const uint8_t *stub;

	while (__atomic_exchange_n(&strict_lock, 1, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	stub = strict_stub(registers->rip, number != __NR_sigaltstack);
	__atomic_store_n(&strict_lock, 0, __ATOMIC_RELEASE);
	if (!stub)
		return false;
	registers->rip = (uintptr_t)stub;
	registers->rax = (uint64_t)number;
	kernel_gate = 0;
	return true;
}

// Of a call that clones: the flags. 0: it is none that shares memory.
static uint64_t strict_sharing(long number, const long words[6])
{
	uint64_t flags = 0;

	if (number == __NR_vfork)
		flags = STRICT_CLONE_VM;
	else if (number == __NR_clone)
		flags = (uint64_t)words[0];
	else if (number == __NR_clone3 && strict_can_read((uintptr_t)words[0]))
		flags = *(const uint64_t *)words[0];
	return flags & STRICT_CLONE_VM ? flags : 0;
}

// A thread that the program makes itself may have a thread pointer of its own making, without ours
// behind it: it is left alone, and that is said once a process.
static void strict_tell_thread(void)
{
	static _Atomic uint32_t told;
	uint32_t pid = kernel_process_id();

	if (__atomic_exchange_n(&told, pid, __ATOMIC_RELAXED) != pid)
		notes_calls(NOTE_CALLS_DISPATCHED, "but not in threads that it makes itself");
}

// ---- Dispatch -----------------------------------------------------------------------------------

// The handler's return would undo it: it is done to what that returns to, too.
//
// The kernel restores uc_sigmask when the handler returns, so the new mask is read into it.
static long strict_mask_there(const long words[6], struct ucontext *context)
{
	long result = strict_mask(words);

	kernel_pass(__NR_rt_sigprocmask, STRICT_SIG_SETMASK, 0, &context->uc_sigmask,
		    STRICT_SIGNAL_BYTES);
	return result;
}

// Make the call. Registers that it was made with are those of `context`.
//
// The call's own stack is what `ask` has: a walk begins at the program's instruction, not in the
// handler.
static long strict_make(long number, const long words[6], struct ucontext *context)
{
	struct sigcontext *registers = &context->uc_mcontext;
	struct vm_ask ask = {
		.top = (uintptr_t *)registers->rsp,
		.rbp = registers->rbp,
		.back = registers->rip,
	};
	long result;

	switch (number) {
	case __NR_rt_sigprocmask:
		return strict_mask_there(words, context);
	case __NR_sigaltstack: // and there is no room for one more place that makes it
		return -STRICT_ENOMEM;
	case __NR_rt_sigaction:
		return strict_act(words);
	case __NR_execve:
	case __NR_execveat:
		return exec_call(number, words);
	case __NR_exit_group:
		vm_end();
		break;
	default:
		break;
	}
	if (number >= 0 && number < PATCH_NUMBERS && vm_is_call((uint32_t)number)) {
		memcpy(ask.words, words, sizeof(ask.words));
		return vm_call(&ask, number);
	}
	result = kernel_call6(number, words[0], words[1], words[2], words[3], words[4], words[5]);
	if (result == 0 && (number == __NR_fork || number == __NR_clone || number == __NR_clone3))
		strict_thread(); // a child of its own memory
	return result;
}

// si_code says whether the kernel dispatched a call or somebody sent SIGSYS. rt_sigreturn has to be
// made with the stack as the program left it, so it goes to libc's own.
static void strict_handle(int signal, siginfo_t *info, void *opaque)
{
	struct ucontext *context = opaque;
	struct sigcontext *registers = &context->uc_mcontext;
	const long words[6] = { (long)registers->rdi, (long)registers->rsi, (long)registers->rdx,
				(long)registers->r10, (long)registers->r8,  (long)registers->r9 };
	long number = info->si_syscall;
	uint64_t sharing;

	if (info->si_code != STRICT_DISPATCHED) {
		strict_pass_on(signal, info, opaque);
		return;
	}
	if (number == __NR_rt_sigreturn) {
		registers->rip = strict_return + STRICT_RETURN_BYTES;
		registers->rax = __NR_rt_sigreturn;
		return;
	}
	sharing = strict_sharing(number, words);
	if (sharing & STRICT_CLONE_THREAD)
		strict_tell_thread();
	if ((number == __NR_sigaltstack || sharing) && strict_in_place(registers, number))
		return;
	registers->rax = (uint64_t)strict_make(number, words, context);
}

// ---- Start --------------------------------------------------------------------------------------

// Turn dispatch on for this thread: every call from outside of libc's code, while the gate is 1. It
// does nothing where strict_start did not come so far.
void strict_thread(void)
{
	uint64_t none = STRICT_BIT;

	if (!strict_return)
		return;
	kernel_pass(__NR_rt_sigprocmask, 1 /* SIG_UNBLOCK */, &none, 0, STRICT_SIGNAL_BYTES);
	if (kernel_failed(kernel_pass(__NR_prctl, STRICT_PRCTL, STRICT_ON, strict_libc.start,
				      strict_libc.end - strict_libc.start, &kernel_gate)))
		return;
	kernel_gate_home = 1;
	kernel_gate = 1;
}

// mov $15,%rax; syscall: where libc's handlers return.
static uintptr_t strict_find_return(void)
{
	static const uint8_t pattern[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	const uint8_t *end = (const uint8_t *)strict_libc.end - sizeof(pattern);

	for (const uint8_t *at = (const uint8_t *)strict_libc.start; at < end; at++)
		if (at[0] == pattern[0] && memcmp(at, pattern, sizeof(pattern)) == 0)
			return (uintptr_t)at;
	return 0;
}

// SA_NODEFER: the handler itself may come to a dispatched call. SA_ONSTACK: Go's threads have small
// stacks, and a large one for signals.
bool strict_start(void)
{
	struct strict_action action = {
		.handler = strict_handle,
		.flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTORER,
	};

	strict_libc = patch_libc();
	if (!strict_libc.start)
		return false;
	strict_return = strict_find_return();
	strict_stubs = recording_pages(STRICT_STUBS_MAX * KERNEL_PAGE, false);
	memcpy(&action.restorer, &strict_return, sizeof(action.restorer));
	if (!strict_return || !strict_stubs ||
	    kernel_failed(kernel_pass(__NR_rt_sigaction, SIGSYS, &action, &strict_theirs[SIGSYS],
				      STRICT_SIGNAL_BYTES))) {
		strict_return = 0;
		return false;
	}
	strict_thread();
	if (!kernel_gate_home)
		strict_return = 0;
	return kernel_gate_home;
}
