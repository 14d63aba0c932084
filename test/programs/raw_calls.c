// A program that makes its memory calls itself, with system-call instructions of its own, as Go and
// other runtimes do: from several threads, from a handler, with all signals blocked, on a small
// stack with another for signals, in a forked child, in a child that shares its memory.
//
//     raw_calls [ROUNDS]
//
// What must be said with --strict-vm: of each call the number and the bytes that it prints, one
// line a call: NAME COUNT BYTES, in the first process. Without it, nothing of them.
#include "guest.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

enum { PAGE = 4096, THREADS = 4 };

static unsigned rounds = 50;
static _Atomic unsigned long counts[5], sums[5];
static const char *const names[5] = { "mmap", "munmap", "mprotect", "madvise", "mremap" };
static volatile int handled;

static long raw(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static void tally(int which, unsigned long bytes)
{
	counts[which]++;
	sums[which] += bytes;
}

static void churn(unsigned pages)
{
	long size = (long)pages * PAGE;
	long at = raw(SYS_mmap, 0, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	guest_check(at > 0, "mmap");
	tally(0, (unsigned long)size);
	guest_check(raw(SYS_mprotect, at, size, PROT_READ | PROT_WRITE, 0, 0, 0) == 0, "mprotect");
	tally(2, (unsigned long)size);
	memset((void *)at, 1, (size_t)size);
	guest_check(raw(SYS_madvise, at, size, MADV_DONTNEED, 0, 0, 0) == 0, "madvise");
	tally(3, (unsigned long)size);
	at = raw(SYS_mremap, at, size, size + 3 * PAGE, MREMAP_MAYMOVE, 0, 0);
	guest_check(at > 0, "mremap");
	tally(4, (unsigned long)size + 3 * PAGE);
	guest_check(raw(SYS_munmap, at + 1, PAGE, 0, 0, 0, 0) == -EINVAL, "munmap of nonsense");
	tally(1, 0);
	guest_check(raw(SYS_munmap, at, size + 3 * PAGE, 0, 0, 0, 0) == 0, "munmap");
	tally(1, (unsigned long)size + 3 * PAGE);
}

static void *work(void *argument)
{
	for (unsigned i = 0; i < rounds; i++)
		churn(1 + (i + (unsigned)(uintptr_t)argument) % 13);
	free(malloc(100));
	return NULL;
}

static void handle(int number)
{
	(void)number;
	churn(2);
	handled++;
}

// Signals blocked by libc's function, and by a call of our own; both are there as they were set.
static void check_signals(void)
{
	struct sigaction action = { .sa_handler = handle };
	uint64_t all = ~0ul, old = 0;
	sigset_t set, seen;

	sigfillset(&action.sa_mask);
	guest_check(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
	raise(SIGUSR1);
	guest_check(handled == 1, "a handler");
	sigfillset(&set);
	guest_check(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0, "pthread_sigmask");
	churn(3);
	guest_check(raw(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&old, 8, 0, 0) == 0 &&
			    (old & 1ul << (SIGUSR2 - 1)),
		    "rt_sigprocmask");
	churn(4);
	kill(getpid(), SIGUSR1);
	guest_check(handled == 1, "a signal that is blocked");
	sigemptyset(&set);
	all = 0;
	guest_check(raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8, 0, 0) == 0,
		    "rt_sigprocmask back");
	guest_check(handled == 2, "a signal that is blocked no more");
	pthread_sigmask(SIG_BLOCK, NULL, &seen);
	guest_check(!sigismember(&seen, SIGUSR1), "the mask as it was set");
}

static void on_small_stack(void)
{
	churn(9);
}

// A stack for signals, set and asked for by calls of our own, as Go does in each thread: what is
// called on a stack of two kilobytes, where no signal finds room, is called all the same.
static void check_signal_stack(void)
{
	enum { SIGNAL_BYTES = 64 << 10, SMALL_BYTES = 2048 };
	stack_t stack = { .ss_flags = 77, .ss_size = SIGNAL_BYTES }, old = { .ss_flags = 77 };
	static ucontext_t here, there;
	char *small =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tally(0, 2 * PAGE);
	guest_check(small != MAP_FAILED && mprotect(small, PAGE, PROT_NONE) == 0, "a small stack");
	tally(2, PAGE);
	guest_check(raw(SYS_sigaltstack, 0, (long)&old, 0, 0, 0, 0) == 0 &&
			    old.ss_flags == SS_DISABLE,
		    "no stack for signals at first");
	stack.ss_sp = malloc(SIGNAL_BYTES);
	guest_check(raw(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0) == -EINVAL, "nonsense");
	stack.ss_flags = 0;
	stack.ss_size = 100;
	guest_check(raw(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0) == -ENOMEM, "too small");
	stack.ss_size = SIGNAL_BYTES;
	guest_check(raw(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0) == 0, "sigaltstack");
	guest_check(raw(SYS_sigaltstack, 0, (long)&old, 0, 0, 0, 0) == 0 && old.ss_flags == 0 &&
			    old.ss_sp == stack.ss_sp && old.ss_size == SIGNAL_BYTES,
		    "the stack as it was set");
	getcontext(&there);
	there.uc_stack.ss_sp = small + PAGE;
	there.uc_stack.ss_size = SMALL_BYTES;
	there.uc_link = &here;
	makecontext(&there, on_small_stack, 0);
	guest_check(swapcontext(&here, &there) == 0, "swapcontext");
	stack.ss_flags = SS_DISABLE;
	guest_check(raw(SYS_sigaltstack, (long)&stack, (long)&old, 0, 0, 0, 0) == 0 &&
			    old.ss_flags == 0 &&
			    raw(SYS_sigaltstack, 0, (long)&old, 0, 0, 0, 0) == 0 &&
			    old.ss_flags == SS_DISABLE,
		    "none again");
	free(stack.ss_sp);
}

// A child that shares our memory, and does nothing but end.
static long short_child(long number, long flags, void *stack)
{
	long child;

	__asm__ volatile("syscall\n\t"
			 "test %%rax,%%rax\n\t"
			 "jnz 1f\n\t"
			 "mov $60,%%eax\n\t"
			 "mov $5,%%edi\n\t"
			 "syscall\n"
			 "1:"
			 : "=a"(child), "+D"(flags), "+S"(stack)
			 : "a"(number), "d"(0)
			 : "rcx", "r11", "memory");
	return child;
}

// A thread of our own making; its end is its only call.
static void check_thread(void)
{
	static _Alignas(16) char stack[PAGE];
	long thread = short_child(SYS_clone,
				  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
				  stack + sizeof stack);

	guest_check(thread > 0, "a thread");
	while (raw(SYS_tgkill, getpid(), thread, 0, 0, 0, 0) == 0)
		sched_yield();
	churn(10);
}

static void check_children(void)
{
	long child = raw(SYS_fork, 0, 0, 0, 0, 0, 0);
	_Alignas(16) static char stack[PAGE];
	int status = 0;

	guest_check(child >= 0, "fork");
	if (child == 0) {
		churn(5);
		raw(SYS_exit_group, 3, 0, 0, 0, 0, 0);
	}
	guest_check(raw(SYS_wait4, child, (long)&status, 0, 0, 0, 0) == child &&
			    WEXITSTATUS(status) == 3,
		    "the child's end");
	child = fork();
	if (child == 0) {
		churn(6);
		_exit(4);
	}
	guest_check(waitpid((pid_t)child, &status, 0) == child && WEXITSTATUS(status) == 4,
		    "libc's child's end");
	churn(7);
	for (int i = 0; i < 2; i++) {
		child = i ? short_child(SYS_clone, CLONE_VM | SIGCHLD, stack + sizeof stack)
			  : short_child(SYS_vfork, 0, NULL);
		guest_check(child > 0 &&
				    raw(SYS_wait4, child, (long)&status, 0, 0, 0, 0) == child &&
				    WEXITSTATUS(status) == 5,
			    "the end of a child that shares our memory");
		churn(8);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char text[512];
	int length = 0;

	if (argc > 1)
		rounds = (unsigned)atoi(argv[1]);
	for (int i = 0; i < THREADS; i++)
		guest_check(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i) == 0,
			    "pthread_create");
	work((void *)5);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (rounds < 1000) {
		check_signals();
		check_signal_stack();
		check_children();
		check_thread();
	}
	for (int i = 0; i < 5; i++)
		length += snprintf(text + length, sizeof text - (size_t)length, "%s %lu %lu\n",
				   names[i], counts[i], sums[i]);
	raw(SYS_write, 1, (long)text, length, 0, 0, 0);
	return 0;
}
