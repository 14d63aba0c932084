// odd_stacks: allocates where stacks are not what they usually are.
//
//     odd_stacks HOW
//
// signal      a handler allocates, 200,000 ns timer on the main thread, until 500 ran: 7601 bytes
// altstack    the same on a signal stack of its own: 7602
// longjmp     jumps out of three frames after allocating, 1,000 times: 7603
// coroutine   two contexts take turns, 1,000 times: 7604 and 7605
// small       20 threads with stacks of 16 KiB: 7606, 100 pairs each
// own_stack   a coroutine on a stack that was malloced, freed and malloced again: 7607
// fenced      the page after a stack, to which its walk comes, is made a guard page: 7609
// shrunk      frames on two stacks in the heap, then on the lower one, the other given back: 7608
// Prints how many blocks of those sizes it took.
#include "guest.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile int handled;
static volatile size_t handled_size;

static void handler(int number)
{
	(void)number;
	free(malloc(handled_size));
	handled++;
}

// A handler that allocates is safe only while the thread is not in malloc itself: the loop asks
// for the signal between calls of its own, and spins so that the timer also hits other code.
static void run_signal(int on_own_stack)
{
	static char own_stack[65536];
	stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };
	struct sigaction action = { .sa_handler = handler,
				    .sa_flags = on_own_stack ? SA_ONSTACK : 0 };
	struct itimerval timer = { { 0, 200 }, { 0, 200 } };

	handled_size = on_own_stack ? 7602 : 7601;
	guest_check(sigaltstack(&stack, NULL) == 0, "sigaltstack");
	guest_check(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
	for (int i = 0; i < 250; i++) {
		raise(SIGALRM);
		guest_pair(7690);
	}
	setitimer(ITIMER_REAL, &timer, NULL);
	while (handled < 500)
		for (volatile int spin = 0; spin < 1000; spin++)
			;
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_REAL, &timer, NULL);
	signal(SIGALRM, SIG_IGN);
	guest_say("%d\n", handled);
}

static jmp_buf home;

static void jump_out(int depth)
{
	volatile int here = depth;

	guest_pair(7603);
	if (here == 0)
		longjmp(home, 1);
	jump_out(depth - 1);
}

static void run_longjmp(void)
{
	volatile int count = 0;

	while (count < 1000) {
		if (setjmp(home) == 0)
			jump_out(2);
		guest_pair(7603);
		count++;
	}
	guest_say("%d\n", count * 4);
}

static ucontext_t main_context, contexts[2];

static void turn(int which)
{
	for (int i = 0; i < 1000; i++) {
		void *volatile ptr = malloc(7604 + (size_t)which);

		swapcontext(&contexts[which], &contexts[!which]);
		free(ptr);
	}
}

static void run_coroutine(void)
{
	static char stacks[2][65536];

	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
		contexts[i].uc_link = &main_context;
		makecontext(&contexts[i], (void (*)(void))turn, 1, i);
	}
	swapcontext(&main_context, &contexts[0]); // until the first of them ends
	swapcontext(&main_context, &contexts[1]);
	guest_say("%d\n", 2000);
}

static void once(void)
{
	guest_pair(7607);
}

static void run_own_stack(void)
{
	for (int i = 0; i < 200; i++) {
		size_t size = 32768 + 4096 * (size_t)(i % 3);
		char *stack = i % 2 ? malloc(size)
				    : mmap(NULL, size, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		getcontext(&contexts[0]);
		contexts[0].uc_stack.ss_sp = stack;
		contexts[0].uc_stack.ss_size = size;
		contexts[0].uc_link = &main_context;
		makecontext(&contexts[0], once, 0);
		swapcontext(&main_context, &contexts[0]);
		if (i % 2)
			free(stack);
		else
			munmap(stack, size);
	}
	guest_say("%d\n", 200);
}

#ifdef __x86_64__
// Calls `call` on the stack below `top`; whoever walks from there comes back to the one before.
void on_stack(char *top, void (*call)(void));

__asm__(".text\n"
	".type on_stack, @function\n"
	"on_stack:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"mov %rdi, %rsp\n"
	"call *%rsi\n"
	"leave\n"
	".cfi_def_cfa %rsp, 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size on_stack, . - on_stack\n");

enum { STACK_BYTES = 65536 };

static char *lower_top;

static void lower(int depth)
{
	volatile int here = depth;

	if (here == 0)
		guest_pair(7608);
	else
		lower(here - 1);
	here++;
}

static void on_lower(void)
{
	lower(4);
}

static void on_upper(void)
{
	on_stack(lower_top, on_lower);
	__asm__ volatile(""); // no jump: it is to have a frame
}

// Goes on in `call`, which never returns, on an empty stack.
void begin_stack(char *top, void (*call)(void));

__asm__(".text\n"
	".type begin_stack, @function\n"
	"begin_stack:\n"
	".cfi_startproc\n"
	"mov %rdi, %rsp\n"
	"jmp *%rsi\n"
	".cfi_endproc\n"
	".size begin_stack, . - begin_stack\n");

enum { FENCE_BYTES = 4096, ADVICE_GUARD = 102, ADVICE_NO_GUARD = 103 }; // MADV_GUARD_INSTALL

static char *fence;
static int fenced_by_advice;

static int fence_off(void)
{
	return fenced_by_advice ? madvise(fence, FENCE_BYTES, ADVICE_GUARD)
				: mprotect(fence, FENCE_BYTES, PROT_NONE);
}

static int fence_open(void)
{
	return fenced_by_advice ? madvise(fence, FENCE_BYTES, ADVICE_NO_GUARD)
				: mprotect(fence, FENCE_BYTES, PROT_READ | PROT_WRITE);
}

static void on_fenced(void)
{
	int done;

	guest_pair(7609);
	done = fence_off();
	guest_pair(7609);
	guest_check(done == 0 && fence_open() == 0, "fence");
	longjmp(home, 1);
}

// A stack whose first function finds no return address on it, as the next one of a pool is made.
static void run_fenced(void)
{
	char *stack = mmap(NULL, STACK_BYTES + FENCE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile int count = 0;

	fence = stack + STACK_BYTES;
	for (volatile int i = 0; i < 20; i++) {
		fenced_by_advice = i % 2;
		if (fenced_by_advice && fence_off() != 0) // an old kernel
			continue;
		fence_open();
		if (setjmp(home) == 0)
			begin_stack(stack + STACK_BYTES, on_fenced);
		count++;
	}
	guest_say("%d\n", count * 2);
}

static void run_shrunk(void)
{
	guest_pair(7690); // the heap begins
	lower_top = (char *)sbrk(2 * STACK_BYTES) + STACK_BYTES;
	lower_top -= (uintptr_t)lower_top % 16;
	for (int i = 0; i < 100; i++)
		on_stack(lower_top + STACK_BYTES - 16, on_upper);
	guest_check(sbrk(-STACK_BYTES) != (void *)-1, "sbrk");
	for (int i = 0; i < 100; i++)
		on_upper();
	guest_say("%d\n", 200);
}
#endif

static void *small(void *argument)
{
	(void)argument;
	for (int i = 0; i < 100; i++)
		guest_pair(7606);
	return NULL;
}

static void run_small(void)
{
	pthread_t threads[20];
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	guest_check(pthread_attr_setstacksize(&attributes, 16384) == 0, "16 KiB");
	for (int i = 0; i < 20; i++)
		guest_check(pthread_create(&threads[i], &attributes, small, NULL) == 0, "thread");
	for (int i = 0; i < 20; i++)
		pthread_join(threads[i], NULL);
	guest_say("%d\n", 2000);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (strcmp(how, "signal") == 0)
		run_signal(0);
	else if (strcmp(how, "altstack") == 0)
		run_signal(1);
	else if (strcmp(how, "longjmp") == 0)
		run_longjmp();
	else if (strcmp(how, "coroutine") == 0)
		run_coroutine();
	else if (strcmp(how, "small") == 0)
		run_small();
	else if (strcmp(how, "own_stack") == 0)
		run_own_stack();
#ifdef __x86_64__
	else if (strcmp(how, "fenced") == 0)
		run_fenced();
	else if (strcmp(how, "shrunk") == 0)
		run_shrunk();
#endif
	else
		guest_check(0, "unknown way");
	return 0;
}
