// Programs at the edges of what the system lets them do. What must be said about one, whose name is
// its argument: of blocks of one size there are as many as it prints,
//
//     expect SIZE ALLOCATIONS FREES
//
//     overflow    a thread whose stack overflows, 16 times, each time somewhere else, by calls that
//                 allocate; it recovers, and goes on
//     hooked      functions that the recorder has hooked are hooked once more, by jumps as others
//                 write them: one whose hook allocates itself, inside of a heap that grows, and
//                 those that a realloc calls inside itself
//     refuses     a heap that is full at 1 MiB, and reallocs that may not move their block
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
	MEMORY_BASIC_INFORMATION stack = { 0 };
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

// The function begins with a jump to `mine` from now on. Returns where the jump that was there led,
// to the recorder's hook. NULL: there was none.
static void *hook(const char *name, void *mine)
{
	static uint8_t *page;
	static size_t used;
	uint8_t *function = (uint8_t *)GetProcAddress(GetModuleHandleA("ntdll"), name), *far_jump;
	int32_t distance;
	void *was;
	DWORD old;

	for (uint8_t *at = function - 0x10000; !page && at > function - 0x70000000; at -= 0x10000)
		page = VirtualAlloc((void *)((uintptr_t)at & ~(uintptr_t)0xffff), 4096,
				    MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
	if (!page || function[0] != 0xe9)
		return NULL;
	memcpy(&distance, function + 1, sizeof distance);
	was = (void *)((intptr_t)function + 5 + distance);
	far_jump = page + used;
	used += 16;
	far_jump[0] = 0xff; // jmp [rip + 0], and where to; of 32 bits it would be [0]
	far_jump[1] = 0x25;
	memset(far_jump + 2, 0, 4);
	memcpy(far_jump + 6, &mine, sizeof mine);
	if (sizeof(void *) == 4) {
		distance = (int32_t)((intptr_t)mine - (intptr_t)(far_jump + 5));
		far_jump[0] = 0xe9;
		memcpy(far_jump + 1, &distance, sizeof distance);
	}
	VirtualProtect(function, 8, PAGE_EXECUTE_READWRITE, &old);
	distance = (int32_t)((intptr_t)far_jump - (intptr_t)(function + 5));
	memcpy(function + 1, &distance, sizeof distance);
	VirtualProtect(function, 8, old, &old);
	return was;
}

static LONG(NTAPI *real_map)(HANDLE, void **, ULONG_PTR, SIZE_T *, ULONG, ULONG);
static void *(NTAPI *real_allocate)(void *, ULONG, SIZE_T);
static ULONG(NTAPI *real_free)(void *, ULONG, void *);
static long in_hook, noted;

static LONG NTAPI my_map(HANDLE process, void **at, ULONG_PTR bits, SIZE_T *bytes, ULONG type,
			 ULONG access)
{
	LONG status;

	if (in_hook++ == 0) {
		blocks(6601, 1, 0);
		noted++;
	}
	status = real_map(process, at, bits, bytes, type, access);
	in_hook--;
	return status;
}

static void *NTAPI my_allocate(void *of, ULONG flags, SIZE_T bytes)
{
	return real_allocate(of, flags, bytes);
}

static ULONG NTAPI my_free(void *of, ULONG flags, void *block)
{
	return real_free(of, flags, block);
}

static int hooked(void)
{
	HANDLE growing = HeapCreate(0, 0, 0);
	void *block = HeapAlloc(growing, 0, 7001);

	real_map = hook("NtAllocateVirtualMemory", my_map);
	if (!real_map)
		return 2;
	for (int i = 0; i < 500; i++)
		HeapAlloc(growing, 0, 60005);
	in_hook = 1; // nothing is noted from here on
	expect(60005, 500, 0);
	expect(6601, noted, noted);
	real_allocate = hook("RtlAllocateHeap", my_allocate);
	real_free = hook("RtlFreeHeap", my_free);
	for (int i = 0; i < 10; i++)
		block = HeapReAlloc(growing, 0, block, (SIZE_T)(6604 + 100000 * i));
	HeapFree(growing, 0, block);
	expect(7001, 1, 1);
	for (int i = 0; i < 10; i++)
		expect(6604 + 100000 * i, 1, 1);
	return noted ? 0 : 3;
}

static int refuses(void)
{
	HANDLE small = HeapCreate(0, 0, 1 << 20);
	void *block = HeapAlloc(heap, 0, 7101);
	long had = 0, refused = 0;

	for (int i = 0; i < 1000; i++)
		*(HeapAlloc(small, 0, 7102) ? &had : &refused) += 1;
	for (int i = 0; i < 10; i++)
		refused += !HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, 1 << 24);
	expect(7101, 1, 0);
	expect(7102, had, 0);
	printf("refused %ld\n", refused);
	return had && refused > 10 ? 0 : 4;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} edges[] = {
		{ "overflow", overflow },
		{ "hooked", hooked },
		{ "refuses", refuses },
	};

	heap = GetProcessHeap();
	for (size_t i = 0; argc > 1 && i < sizeof edges / sizeof *edges; i++)
		if (strcmp(argv[1], edges[i].name) == 0)
			return edges[i].run();
	return 99;
}
