// Programs at the edges of what the system lets them do. What must be said about one, whose name is
// its argument: of blocks of one size there are as many as it prints,
//
//     expect SIZE ALLOCATIONS FREES
//
//     overflow    a thread whose stack overflows, 16 times, each time somewhere else, by calls that
//                 allocate; it recovers, and goes on
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

enum { ROUNDS = 16, SHIFT = 40, LAST_BYTES = 48 << 10, DEEP_BYTES = 30202 };

static HANDLE heap;
static char *volatile frames;
static long made;       // in calls that overflow
static void *before[5]; // where to go on behind one: rbp, rip, rsp

static void expect(int size, long allocations, long frees)
{
	printf("expect %d %ld %ld\n", size, allocations, frees);
	fflush(stdout);
}

static void blocks(int size, int count, int kept)
{
	for (int i = 0; i < count; i++) {
		void *block = HeapAlloc(heap, 0, (SIZE_T)size);

		if (i >= kept)
			HeapFree(heap, 0, block);
	}
}

static __attribute__((noinline)) int deeper(int n)
{
	char frame[200];

	frames = frame; // so that it is there
	if (HeapAlloc(heap, 0, DEEP_BYTES))
		made++;
	return n < 1 << 30 ? deeper(n + 1) + frames[n & 1] : 0;
}

static LONG CALLBACK recover(EXCEPTION_POINTERS *exception)
{
	CONTEXT *context = exception->ContextRecord;

	if (exception->ExceptionRecord->ExceptionCode != EXCEPTION_STACK_OVERFLOW)
		return EXCEPTION_CONTINUE_SEARCH;
#ifdef _WIN64
	context->Rbp = (uintptr_t)before[0];
	context->Rip = (uintptr_t)before[1];
	context->Rsp = (uintptr_t)before[2];
#else
	context->Ebp = (uintptr_t)before[0];
	context->Eip = (uintptr_t)before[1];
	context->Esp = (uintptr_t)before[2];
#endif
	return EXCEPTION_CONTINUE_EXECUTION;
}

// All but the last of the stack is taken at once.
static __attribute__((noinline)) void overflow_once(int round)
{
	MEMORY_BASIC_INFORMATION stack;
	volatile char *taken;

	VirtualQuery(&stack, &stack, sizeof stack);
	taken = alloca((size_t)((char *)&stack - (char *)stack.AllocationBase) - LAST_BYTES +
		       (size_t)(SHIFT * round));
	taken[0] = 0;
	if (__builtin_setjmp(before) == 0)
		deeper(0);
}

static DWORD WINAPI overflow_thread(void *unused)
{
	(void)unused;
	for (volatile int round = 0; round < ROUNDS; round++) {
		overflow_once(round);
		if (!_resetstkoflw())
			return 1;
		blocks(6203, 10, 1);
	}
	return 0;
}

static int overflow(void)
{
	HANDLE thread;
	DWORD code;

	AddVectoredExceptionHandler(1, recover);
	thread = CreateThread(NULL, 0, overflow_thread, NULL, 0, NULL);
	WaitForSingleObject(thread, INFINITE);
	GetExitCodeThread(thread, &code);
	expect(DEEP_BYTES, made, 0);
	expect(6203, ROUNDS * 10, ROUNDS * 9);
	blocks(6204, 50, 5);
	expect(6204, 50, 45);
	return (int)code;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} edges[] = {
		{ "overflow", overflow },
	};

	heap = GetProcessHeap();
	for (size_t i = 0; argc > 1 && i < sizeof edges / sizeof *edges; i++)
		if (strcmp(argv[1], edges[i].name) == 0)
			return edges[i].run();
	return 99;
}
