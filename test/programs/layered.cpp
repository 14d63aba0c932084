// layered: calls each function of an allocator whose functions call each other (layered_library).
//
//     layered family     one block of each size from 7701 on, by another function each, all freed.
//                        Prints how many.
//     layered handler    a new_handler takes and gives back a block of 7731 each time it is called,
//                        and gives up the third time: so operator new throws. The same by nothrow
//                        new. Prints how often it was called.
//     layered signal     handlers of signals that come in the midst of malloc make a pair of 7741
//                        each, one of them on a stack of its own. Prints how many.
//     layered left       malloc is left by longjmp out of a callback, and operator new by an
//                        exception, 100 times each. After each of them a block of 7751 is taken and
//                        given back, by calloc, from deeper in the stack than malloc was. Prints
//                        how many.
//     layered switched   malloc is left by swapcontext, in another context pairs of 7761 are made,
//                        and it is gone back to. Prints how many.
#include <malloc.h>
#include <new>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

// Of a size that nobody has.
#define TOO_MUCH (SIZE_MAX / 2 + 1)

extern "C" void (*layered_callback)(void);

static volatile int called;
static jmp_buf before;
static ucontext_t home, away;

static void *volatile kept;

static void say(int number)
{
	char text[16];

	write(1, text, (size_t)snprintf(text, sizeof(text), "%d\n", number));
}

static void pair(size_t size)
{
	kept = malloc(size);
	free(kept);
}

static void run_family(void)
{
	void *block;
	int size = 7701, count = 0;

#define ONE(take, give)          \
	do {                     \
		kept = take;     \
		block = kept;    \
		give;            \
		size++, count++; \
	} while (0)
	ONE(malloc(size), free(block));
	ONE(calloc(1, size), free(block));
	ONE(realloc(NULL, size), free(block));
	ONE(reallocarray(NULL, 1, size), free(block));
	ONE(memalign(64, size), free(block));
	ONE(aligned_alloc(64, size), free(block));
	ONE((posix_memalign(&block, 64, size), block), free(block));
	ONE(valloc(size), free(block));
	ONE(pvalloc(size), free(block));
	ONE(operator new(size), operator delete(block));
	ONE(operator new[](size), operator delete[](block));
	ONE(operator new(size, std::nothrow), operator delete(block, std::nothrow));
	ONE(operator new(size, (std::align_val_t)64), operator delete(block, (std::align_val_t)64));
	ONE(operator new(size), operator delete(block, (size_t)size));
	ONE(malloc(size), block = realloc(block, size + 50); free(block));
	say(count);
}

static void on_no_memory(void)
{
	free(malloc(7731));
	if (++called % 3 == 0)
		std::set_new_handler(NULL);
}

static void run_handler(void)
{
	std::set_new_handler(on_no_memory);
	try {
		kept = operator new(TOO_MUCH);
	} catch (const std::bad_alloc &) {
		called += 100;
	}
	std::set_new_handler(on_no_memory);
	called -= 100;
	kept = operator new(TOO_MUCH, std::nothrow);
	free(malloc(7732));
	say(called);
}

static void on_signal(int)
{
	void (*callback)(void) = layered_callback;

	layered_callback = NULL;
	pair(7741);
	layered_callback = callback;
	called++;
}

static void signal_once(void)
{
	layered_callback = NULL;
	raise(SIGUSR1);
	raise(SIGUSR2);
}

static void run_signal(void)
{
	static char stack[1 << 16];
	stack_t other = {};
	struct sigaction action = {};

	other.ss_sp = stack;
	other.ss_size = sizeof(stack);
	sigaltstack(&other, NULL);
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	for (int i = 0; i < 100; i++) {
		layered_callback = signal_once;
		free(malloc(7742));
	}
	say(called);
}

static void leave(void)
{
	layered_callback = NULL;
	longjmp(before, 1);
}

__attribute__((noinline)) static void go_down(int depth)
{
	volatile char room[100];

	room[0] = 1;
	if (depth > 0) {
		go_down(depth - 1);
		return;
	}
	kept = calloc(1, 7751);
	free(kept);
	called += room[0];
}

static void run_left(void)
{
	for (volatile int i = 0; i < 100; i++) {
		if (setjmp(before) == 0) {
			layered_callback = leave;
			kept = malloc(7752);
		}
		go_down(i);
	}
	for (int i = 0; i < 100; i++) {
		try {
			kept = operator new(TOO_MUCH);
		} catch (const std::bad_alloc &) {
		}
		go_down(i);
	}
	say(called);
}

static void run_away(void)
{
	for (;;) {
		kept = calloc(1, 7761);
		free(kept);
		called++;
		swapcontext(&away, &home);
	}
}

static void go_away(void)
{
	layered_callback = NULL;
	swapcontext(&home, &away);
}

static void run_switched(void)
{
	static char stack[1 << 16];

	getcontext(&away);
	away.uc_stack.ss_sp = stack;
	away.uc_stack.ss_size = sizeof(stack);
	makecontext(&away, run_away, 0);
	for (int i = 0; i < 100; i++) {
		layered_callback = go_away;
		kept = i % 2 ? realloc(malloc(7762), 7763) : calloc(1, 7763);
		free(kept);
	}
	say(called);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = { { "family", run_family },
		     { "handler", run_handler },
		     { "signal", run_signal },
		     { "left", run_left },
		     { "switched", run_switched } };

	for (const auto &way : ways) {
		if (argc > 1 && strcmp(way.name, argv[1]) == 0)
			way.run();
	}
	return 0;
}
