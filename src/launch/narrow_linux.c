// Calls are known by pairs of numbers. Where i386 has a second one for times of 64 bits, both are
// the same to us.
//
// For example a process of 32 bits waits in futex: orig_rax is 240, or 422 in newer libraries, and
// narrow_call says SYS_futex (202) for both. To have it call mmap, 192 (mmap2) is put into eax with
// the file's offset in pages: 8,192 bytes are 2.
#include "launch/narrow_linux.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

enum {
	NARROW_CODE = 0x23, // the selector of such code
	NARROW_WIDE_CODE = 0x33,
	NARROW_PAGE = 4096,
	NARROW_ERRORS = 4095,
	// struct sigcontext of i386
	NARROW_CONTEXT_SP = 28,
	NARROW_CONTEXT_AT = 56,
	NARROW_CONTEXT_SELECTOR = 60,
	// What lies before it, behind the return address: a number; or that, two pointers, a
	// siginfo_t and the head of a struct ucontext.
	NARROW_FRAME = 4,
	NARROW_FRAME_INFO = 12 + 128 + 20,
};

static const struct {
	uint16_t narrow, wide;
} narrow_calls[] = {
	{ 3, SYS_read },
	{ 4, SYS_write },
	{ 6, SYS_close },
	{ 7, SYS_wait4 }, // waitpid
	{ 29, SYS_pause },
	{ 45, SYS_brk },
	{ 72, SYS_rt_sigsuspend },
	{ 82, SYS_select },
	{ 91, SYS_munmap },
	{ 114, SYS_wait4 },
	{ 120, SYS_clone },
	{ 125, SYS_mprotect },
	{ 142, SYS_select },
	{ 143, SYS_flock },
	{ 162, SYS_nanosleep },
	{ 163, SYS_mremap },
	{ 168, SYS_poll },
	{ 177, SYS_rt_sigtimedwait },
	{ 179, SYS_rt_sigsuspend },
	{ 192, SYS_mmap }, // mmap2, by pages
	{ 219, SYS_madvise },
	{ 240, SYS_futex },
	{ 256, SYS_epoll_wait },
	{ 267, SYS_clock_nanosleep },
	{ 284, SYS_waitid },
	{ 295, SYS_openat },
	{ 308, SYS_pselect6 },
	{ 309, SYS_ppoll },
	{ 319, SYS_epoll_pwait },
	{ 337, SYS_recvmmsg },
	{ 362, SYS_connect },
	{ 364, SYS_accept4 },
	{ 369, SYS_sendto },
	{ 370, SYS_sendmsg },
	{ 371, SYS_recvfrom },
	{ 372, SYS_recvmsg },
	{ 407, SYS_clock_nanosleep },
	{ 413, SYS_pselect6 },
	{ 414, SYS_ppoll },
	{ 417, SYS_recvmmsg },
	{ 421, SYS_rt_sigtimedwait },
	{ 422, SYS_futex },
};

enum {
	NARROW_CALLS = sizeof(narrow_calls) / sizeof(*narrow_calls),
	NARROW_RESTART = 0,      // restart_syscall
	NARROW_SOCKETCALL = 102, // connect, accept, send… of old
};

bool narrow_is(const struct user_regs_struct *registers)
{
	return registers->cs == NARROW_CODE;
}

bool narrow_is_selector(uint16_t selector)
{
	return selector == NARROW_CODE || selector == NARROW_WIDE_CODE;
}

// A thread that was stopped and goes on (SIGSTOP, a tracer, a machine that slept) is in
// restart_syscall, which goes on with a call that waits for a time: nanosleep, clock_nanosleep,
// poll or futex. Its arguments are that call's. The others' second one is a small number or an
// address.
static uint64_t narrow_restarted(const struct user_regs_struct *registers)
{
	return narrow_second(registers) == (FUTEX_WAIT | FUTEX_PRIVATE_FLAG) ? SYS_futex
									     : SYS_nanosleep;
}

// socketcall is one number for accept, send, recv and others, and which of them is in the program's
// memory: it is taken for one that waits.
uint64_t narrow_call(const struct user_regs_struct *registers)
{
	// Of 32 bits also in a 64-bit thread, whose "no call" is -1.
	int32_t number = (int32_t)registers->orig_rax;

	if (number < 0)
		return NARROW_NO_CALL;
	if (number == (narrow_is(registers) ? NARROW_RESTART : SYS_restart_syscall))
		return narrow_restarted(registers);
	if (!narrow_is(registers))
		return registers->orig_rax;
	if (number == NARROW_SOCKETCALL)
		return SYS_recvmsg;
	for (size_t i = 0; i < NARROW_CALLS; i++)
		if (narrow_calls[i].narrow == number)
			return narrow_calls[i].wide;
	return NARROW_OTHER_CALL;
}

uint64_t narrow_second(const struct user_regs_struct *registers)
{
	return narrow_is(registers) ? (uint32_t)registers->rcx : registers->rsi;
}

uint64_t narrow_thread_pointer(const struct user_regs_struct *registers)
{
	return narrow_is(registers) ? registers->gs_base : registers->fs_base;
}

static void narrow_ask_wide(struct user_regs_struct *registers, uint64_t number,
			    const uint64_t arguments[6])
{
	registers->rax = number;
	registers->rdi = arguments[0];
	registers->rsi = arguments[1];
	registers->rdx = arguments[2];
	registers->r10 = arguments[3];
	registers->r8 = arguments[4];
	registers->r9 = arguments[5];
}

// i386 has its arguments in ebx, ecx, edx, esi, edi and ebp. Of several numbers the first of the
// table is taken: futex is 240. So calls whose first one takes other arguments (wait4: waitpid;
// select) are only for narrow_call, and not to be asked for.
bool narrow_ask(struct user_regs_struct *registers, uint64_t number, const uint64_t arguments[6])
{
	size_t i = 0;

	if (!narrow_is(registers)) {
		narrow_ask_wide(registers, number, arguments);
		return true;
	}
	while (i < NARROW_CALLS && narrow_calls[i].wide != number)
		i++;
	if (i == NARROW_CALLS)
		return false;
	registers->rax = narrow_calls[i].narrow;
	registers->rbx = (uint32_t)arguments[0];
	registers->rcx = (uint32_t)arguments[1];
	registers->rdx = (uint32_t)arguments[2];
	registers->rsi = (uint32_t)arguments[3];
	registers->rdi = (uint32_t)arguments[4];
	registers->rbp = number == SYS_mmap ? arguments[5] / NARROW_PAGE : (uint32_t)arguments[5];
	return true;
}

int64_t narrow_answer(const struct user_regs_struct *registers)
{
	uint32_t answer = (uint32_t)registers->rax;

	if (!narrow_is(registers))
		return (int64_t)registers->rax;
	// The last 4,095 numbers are errors, as the kernel has it: 0xfffffff4 is -12 (ENOMEM), and
	// 0xf7000000 is an address, which as a signed number would look like an error.
	return answer >= (uint32_t)-NARROW_ERRORS ? (int32_t)answer : (int64_t)answer;
}

const struct narrow_restorer *narrow_restorer(bool narrow, size_t number)
{
	// mov $SYS_rt_sigreturn, %rax; syscall
	static const struct narrow_restorer wide = {
		{ 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 },
		9,
		offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]),
		offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]),
		offsetof(ucontext_t, uc_mcontext.gregs[REG_CSGSFS]),
	};
	// mov $rt_sigreturn, %eax; int $0x80, and pop %eax; mov $sigreturn, %eax; int $0x80
	static const struct narrow_restorer narrows[] = {
		{ { 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80 },
		  7,
		  NARROW_FRAME_INFO + NARROW_CONTEXT_SP,
		  NARROW_FRAME_INFO + NARROW_CONTEXT_AT,
		  NARROW_FRAME_INFO + NARROW_CONTEXT_SELECTOR },
		{ { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 },
		  8,
		  NARROW_FRAME + NARROW_CONTEXT_SP,
		  NARROW_FRAME + NARROW_CONTEXT_AT,
		  NARROW_FRAME + NARROW_CONTEXT_SELECTOR },
	};

	// A signal handler returns into these bytes; the debugger finds what was interrupted at
	// these distances from the stack pointer. i386 has two, one for each kind of frame.
	if (!narrow)
		return number == 0 ? &wide : NULL;
	return number < 2 ? &narrows[number] : NULL;
}
