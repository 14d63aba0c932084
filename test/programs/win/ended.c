// Threads that are ended from outside, wherever they are in the recorder or in a heap; and then the
// program goes on. It is safe: each thread has a heap of its own, without a lock, and is ended only
// where it is in code of the recorder's DLL (the first argument) or in that of the heap, so that it
// holds nothing of the system's. The second argument: reservations of a page that are made before
// the last thread. With "ready" alone: how much of shared memory is mapped before a thread is made,
// while it waits to begin, and when it has ended.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum {
	ROUNDS = 30,
	BLOCKS = 50,
	THREADS = 100,
	TRIES = 200,
	HEAP_REACH = 0x2000,
	STACK = 40 << 20
};

static HANDLE shared;
static volatile LONG begun, over;

// So many functions, so that there are always some through which no walk has come yet.
#define SITE(n)                                                                   \
	static __attribute__((noinline)) void *site##n(HANDLE heap, unsigned way) \
	{                                                                         \
		void *block = HeapAlloc(heap, 0, 100 + (way & 63));               \
                                                                                  \
		begun = 1;                                                        \
		return block;                                                     \
	}
#define SITES(n) \
	SITE(n##0) SITE(n##1) SITE(n##2) SITE(n##3) SITE(n##4) SITE(n##5) SITE(n##6) SITE(n##7)
#define MORE(n) SITES(n##0) SITES(n##1) SITES(n##2) SITES(n##3) SITES(n##4) SITES(n##5)
MORE(1)
MORE(2)
MORE(3)
MORE(4)

#define NAME(n) site##n,
#define NAMES(n) \
	NAME(n##0) NAME(n##1) NAME(n##2) NAME(n##3) NAME(n##4) NAME(n##5) NAME(n##6) NAME(n##7)
#define MORE_NAMES(n) NAMES(n##0) NAMES(n##1) NAMES(n##2) NAMES(n##3) NAMES(n##4) NAMES(n##5)
typedef void *site(HANDLE heap, unsigned way);
// clang-format off
static site *const sites[] = { MORE_NAMES(1) MORE_NAMES(2) MORE_NAMES(3) MORE_NAMES(4) };
// clang-format on

static DWORD WINAPI work(void *heap)
{
	static unsigned turn;
	unsigned way = turn += 7;

	for (; !over; way++)
		HeapFree(heap, 0, sites[way % (sizeof(sites) / sizeof(*sites))](heap, way));
	return 0;
}

// Memory of the system's: reserved again and again at one place, so that a thread that is ended
// leaves at most that.
static __attribute__((noinline)) void reserve_by(void *place, unsigned way)
{
	if (!way) {
		begun = 1;
		if (VirtualAlloc(place, 1 << 16, MEM_RESERVE, PAGE_NOACCESS))
			VirtualFree(place, 0, MEM_RELEASE);
	} else if (way & 1) {
		reserve_by(place, way >> 1);
	} else {
		reserve_by((char *)place, way >> 1);
	}
	begun = 1;
}

static DWORD WINAPI reserve(void *place)
{
	for (unsigned way = 1; !over; way = way * 5 + 3)
		reserve_by(place, way & 0xfff);
	return 0;
}

static DWORD WINAPI take(void *number)
{
	for (int i = 0; i < BLOCKS; i++)
		if (!HeapAlloc(shared, 0, 1234))
			return 1;
	return number == NULL;
}

static DWORD WINAPI stay(void *said)
{
	*(void **)said = &said;
	begun = 1;
	Sleep(INFINITE);
	return 0;
}

static DWORD64 place_of(HANDLE thread)
{
	CONTEXT context = { .ContextFlags = CONTEXT_CONTROL };

	if (!GetThreadContext(thread, &context))
		return 0;
#ifdef _WIN64
	return context.Rip;
#else
	return context.Eip;
#endif
}

// End it where it is between `low` and `high`. False: it was never met there, and ended by itself.
static int end_within(HANDLE thread, DWORD64 low, DWORD64 high)
{
	int met = 0;

	while (!begun)
		SwitchToThread();
	for (int i = 0; i < TRIES && !met; i++) {
		if (SuspendThread(thread) == (DWORD)-1)
			break;
		met = place_of(thread) - low < high - low;
		if (!met)
			ResumeThread(thread);
		for (volatile int spin = rand() % 300; spin > 0; spin--)
			;
	}
	over = !met;
	if (met)
		TerminateThread(thread, 7);
	WaitForSingleObject(thread, INFINITE);
	CloseHandle(thread);
	over = 0;
	return met;
}

static int rounds(int count, LPTHREAD_START_ROUTINE start, DWORD64 low, DWORD64 high)
{
	int ended = 0;

	for (int i = 0; i < count; i++) {
		void *given = start == reserve ? (void *)((size_t)0x30000000 + ((size_t)i << 16))
					       : HeapCreate(HEAP_NO_SERIALIZE, 1 << 16, 0);

		begun = 0;
		ended += end_within(CreateThread(NULL, 0, start, given, 0, NULL), low, high);
	}
	return ended;
}

static DWORD WINAPI nothing(void *given)
{
	return given != NULL;
}

// What is a section's, in KiB.
static unsigned mapped(void)
{
	MEMORY_BASIC_INFORMATION region;
	size_t bytes = 0;

	for (char *at = NULL; VirtualQuery(at, &region, sizeof(region));
	     at = (char *)region.BaseAddress + region.RegionSize)
		bytes += region.State != MEM_FREE && region.Type == MEM_MAPPED ? region.RegionSize
									       : 0;
	return (unsigned)(bytes >> 10);
}

static int ready(void)
{
	HANDLE thread;

	for (int i = 0; i < 3; i++) {
		unsigned before = mapped(), made;

		thread = CreateThread(NULL, 0, nothing, NULL, CREATE_SUSPENDED, NULL);
		made = mapped();
		ResumeThread(thread);
		WaitForSingleObject(thread, INFINITE);
		printf("mapped %u %u %u\n", before, made, mapped());
	}
	return 0;
}

int main(int argc, char **argv)
{
	HMODULE recorder = argc > 1 ? GetModuleHandleA(argv[1]) : NULL;
	DWORD64 low = (size_t)recorder, high = low;
	DWORD64 heap = (size_t)GetProcAddress(GetModuleHandleA("ntdll.dll"), "RtlAllocateHeap");
	HANDLE threads[THREADS];
	void *stack = NULL;

	if (argc > 1 && !strcmp(argv[1], "ready"))
		return ready();
	shared = HeapCreate(0, 0, 0);
	if (recorder) {
		const IMAGE_DOS_HEADER *dos = (const void *)recorder;
		const IMAGE_NT_HEADERS *headers = (const void *)((char *)recorder + dos->e_lfanew);

		high = low + headers->OptionalHeader.SizeOfImage;
		printf("in the recorder: %d\n", rounds(ROUNDS, work, low, high));
		printf("in calls on memory: %d\n", rounds(ROUNDS, reserve, low, high));
	}
	printf("in the heap: %d\n", rounds(ROUNDS, work, heap - HEAP_REACH, heap + HEAP_REACH));
	for (int i = 0; i < THREADS; i++) {
		threads[i] = CreateThread(NULL, 0, take, threads, 0, NULL);
		WaitForSingleObject(threads[i], INFINITE);
	}
	for (int i = argc > 2 ? atoi(argv[2]) : 0; i > 0; i--)
		VirtualAlloc(NULL, 4096, MEM_RESERVE, PAGE_NOACCESS);
	begun = 0;
	CreateThread(NULL, STACK, stay, &stack, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
	while (!begun)
		SwitchToThread();
	Sleep(1500);
	HeapAlloc(shared, 0, 4321);
	printf("stack %p\n", stack);
	fflush(stdout);
	ExitProcess(3);
}
