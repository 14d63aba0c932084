// exercise2 for Windows: see test/programs/exercise2.c, which it repeats call by call, with
// VirtualAlloc for the large buffers and operator new for the small ones. The same figures must be
// said about it:
//
//     heap     1,200 blocks, 130,000 bytes, none freed
//     memory   12 commits, 125,829,120 bytes, all released (EX2_PARTIAL=1: the first one in halves,
//              the first half decommitted)
//
// It takes 36 s times EX2_SCALE (1). At its end it says the handle of the heap that operator new
// takes from, and its process id: "exercise2: heap <hex> pid <decimal>".
#include "include/tidemark.h"

#include <malloc.h>
#include <new>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define APART __attribute__((noinline))

enum {
	MIB = 1 << 20,
	BUFFER_BYTES = 10 * MIB,
	PAGE_BYTES = 4096,
	STARTUP_BLOCKS = 175,
	STARTUP_BYTES = 504,
	STARTUP_LAST_BYTES = 840,
	OPERATIONS = 10,
	STEPS = 1024,
	STEP_BYTES = 40,
	STEP_US = 31250,
	SPIKE_US = 100000,
	REST_US = 1000000,
	GROWTH_BEFORE = OPERATIONS / 2,
	LAST4_BEFORE = OPERATIONS - 4,
	HEAP10S_AFTER = 352,
	HEAP10S_UNTIL = 671,
};

static double scale = 1;
static LARGE_INTEGER frequency;
static LONGLONG deadline;
static void *volatile leaked;

// Wait until `us` after the deadline before.
static void rest(double us)
{
	LARGE_INTEGER now;

	deadline += (LONGLONG)(us * scale * (double)frequency.QuadPart / 1e6);
	for (;;) {
		QueryPerformanceCounter(&now);
		if (now.QuadPart >= deadline)
			return;
		Sleep((DWORD)((deadline - now.QuadPart) * 1000 / frequency.QuadPart));
	}
}

APART static char *commit10()
{
	char *at =
		(char *)VirtualAlloc(NULL, BUFFER_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);

	if (!at)
		ExitProcess(1);
	for (size_t i = 0; i < BUFFER_BYTES; i += PAGE_BYTES)
		at[i] = 1;
	return at;
}

APART static void release(void *at)
{
	VirtualFree(at, 0, MEM_RELEASE);
}

APART static void Startup()
{
	for (int i = 0; i < STARTUP_BLOCKS; i++)
		leaked = operator new(STARTUP_BYTES);
	leaked = operator new(STARTUP_LAST_BYTES);
}

APART static void InnerLoopOperation()
{
	leaked = operator new(STEP_BYTES);
}

APART static void ManipulateTemporaryBuffer()
{
	char *buffer = commit10();

	rest(SPIKE_US);
	release(buffer);
}

APART static void Operation1(int operation)
{
	int last = STEPS * (operation + 1) / OPERATIONS;

	ManipulateTemporaryBuffer();
	for (int step = STEPS * operation / OPERATIONS + 1; step <= last; step++) {
		rest(STEP_US);
		InnerLoopOperation();
		if (step == HEAP10S_AFTER)
			tidemark_mark("ex2.heap10s.begin");
		if (step == HEAP10S_UNTIL)
			tidemark_mark("ex2.heap10s.end");
	}
}

APART static void grow(char **buffer)
{
	tidemark_phase_begin("ex2.growth");
	rest(REST_US / 2);
	*buffer = commit10();
	rest(REST_US / 2);
	tidemark_phase_end("ex2.growth");
}

int main()
{
	const char *text = getenv("EX2_SCALE");
	char *first, *second = NULL;
	LARGE_INTEGER now;

	scale = text ? strtod(text, NULL) : 1;
	QueryPerformanceFrequency(&frequency);
	QueryPerformanceCounter(&now);
	deadline = now.QuadPart;
	Startup();
	first = commit10();
	rest(REST_US);
	for (int operation = 0; operation < OPERATIONS; operation++) {
		if (operation == GROWTH_BEFORE)
			grow(&second);
		if (operation == LAST4_BEFORE)
			tidemark_phase_begin("ex2.last4");
		Operation1(operation);
	}
	tidemark_phase_end("ex2.last4");
	if (getenv("EX2_PARTIAL")) {
		VirtualFree(first, BUFFER_BYTES / 2, MEM_DECOMMIT);
		tidemark_mark("ex2.shelf");
	}
	rest(REST_US);
	release(first);
	release(second);
	printf("exercise2: heap %llx pid %lu\n", (unsigned long long)(size_t)_get_heap_handle(),
	       (unsigned long)GetCurrentProcessId());
	return 0;
}
