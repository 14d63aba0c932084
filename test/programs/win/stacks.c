// What must be said about it: each allocation on its own heap has the stack that the system's own
// RtlCaptureStackBackTrace says, from the caller of `site` outwards. It prints, for each,
// `stack SIZE PC PC …`; SIZE tells which allocation it is. The innermost frame, in `site` itself,
// is left out: the two calls stand at different places. With an argument, two stacks that lead to
// no code: to a number, and to where nothing is.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { DEPTH_MAX = 62, ROUNDS = 60 };

static HANDLE heap;
static volatile LONG next_size = 10000;

__attribute__((noinline)) void site(void)
{
	void *frames[DEPTH_MAX];
	char line[DEPTH_MAX * 20 + 64];
	LONG size = InterlockedIncrement(&next_size);
	USHORT count = RtlCaptureStackBackTrace(1, DEPTH_MAX, frames, NULL);
	int at;

	HeapAlloc(heap, 0, (size_t)size);
	at = snprintf(line, sizeof(line), "stack %ld", (long)size);
	for (USHORT i = 0; i < count && frames[i]; i++)
		at += snprintf(line + at, sizeof(line) - (size_t)at, " %llx",
			       (unsigned long long)(size_t)frames[i]);
	puts(line);
}

void descend(int depth, unsigned state);
void misled(uintptr_t number);

// As Microsoft's compilers lay frames out (stacks.S): rbp is kept in the home space of the caller's
// frame, in its second place, in its first one, and by a function with a frame pointer.
void keeps_at_home(int depth, unsigned state);
void keeps_at_the_first_home(int depth, unsigned state);
void keeps_at_home_far(int depth, unsigned state);
void keeps_at_home_framed(int depth, unsigned state);
void keeps_in_a_part(int depth, unsigned state);
void interrupted_by_machine(int depth, unsigned state);

// Frames of a size that is known, with registers saved.
static __attribute__((noinline)) void plain(int depth, unsigned state)
{
	volatile char room[200];

	room[state % sizeof(room)] = 1;
	descend(depth, state);
	room[0] = 2;
}

// A frame whose size is known when it runs.
static __attribute__((noinline)) void growing(int depth, unsigned state)
{
	volatile char *room = __builtin_alloca(state % 5000 + 16);

	room[0] = 1;
	descend(depth, state);
	room[1] = 2;
}

// Through code of the C runtime that calls back.
static int compare(const void *a, const void *b)
{
	const int *words = a;

	(void)b;
	descend(words[1], (unsigned)words[2]);
	return 0;
}

static __attribute__((noinline)) void through_runtime(int depth, unsigned state)
{
	int words[2][3] = { { 0, depth, (int)state }, { 0, depth, (int)state } };

	qsort(words, 2, sizeof(words[0]), compare);
}

// Through an exception's handler, and the code that it has interrupted.
static __attribute__((noinline)) void interrupted(int depth, unsigned state)
{
#ifdef __clang__ // it makes no table for what has no frame, and then Wine says nothing of it
	volatile int after = 0;

	after = depth;
#endif
	__asm__ volatile("ud2" ::"c"(depth), "d"(state) : "memory");
}

static LONG CALLBACK handle(EXCEPTION_POINTERS *exception)
{
	CONTEXT *context = exception->ContextRecord;

	if (exception->ExceptionRecord->ExceptionCode != EXCEPTION_ILLEGAL_INSTRUCTION)
		return EXCEPTION_CONTINUE_SEARCH;
	descend((int)context->Rcx, (unsigned)context->Rdx);
	context->Rip += 2;
	return EXCEPTION_CONTINUE_EXECUTION;
}

void descend(int depth, unsigned state)
{
	if (depth <= 0) {
		site();
		return;
	}
	state = state * 1664525 + 1013904223;
	switch (state >> 20 & 15) {
	case 0:
		plain(depth - 1, state);
		break;
	case 1:
		growing(depth - 1, state);
		break;
	case 2:
		through_runtime(depth - 4, state);
		break;
	case 3:
	case 4:
		keeps_at_home(depth - 1, state);
		break;
	case 5:
	case 6:
		keeps_at_the_first_home(depth - 1, state);
		break;
	case 7:
		keeps_at_home_far(depth - 1, state);
		break;
	case 8:
		keeps_at_home_framed(depth - 1, state);
		break;
	case 9:
		keeps_in_a_part(depth - 1, state);
		break;
	case 10:
		interrupted(depth - 6, state);
		break;
	case 11:
		interrupted_by_machine(depth - 2, state);
		break;
	case 12:
	case 13:
		growing(depth - 1, state);
		break;
	default:
		descend(depth - 1, state);
		break;
	}
}

static DWORD WINAPI run(void *argument)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		descend((int)(i % 12), i * 7919 + (unsigned)(size_t)argument);
	return 0;
}

// Through code of the system that calls back.
static BOOL CALLBACK run_once(INIT_ONCE *once, void *parameter, void **context)
{
	(void)once;
	(void)context;
	run(parameter);
	return TRUE;
}

int main(int argc, char **argv)
{
	static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
	HANDLE thread;

	AddVectoredExceptionHandler(1, handle);
	heap = HeapCreate(0, 0, 0);
	printf("heap %llx\n", (unsigned long long)(size_t)heap);
	(void)argv;
	if (argc > 1) {
		misled(0x59);
		misled((uintptr_t)1 << 40);
		return 0;
	}
	run((void *)1);
	InitOnceExecuteOnce(&once, run_once, (void *)2, NULL);
	thread = CreateThread(NULL, 0, run, (void *)3, 0, NULL);
	WaitForSingleObject(thread, INFINITE);
	return 0;
}
