// What must be said about it: everything that it does on its own heap H (`exact: heap H allocs A
// frees F reallocs R failed N bytes B`, its last words, or in shared memory where it has none),
// however it ends. Its argument says how:
//
//     return exit terminate fault abort loop      one thread, then that end; loop ends never
//     unborn      starts itself suspended, and ends that before it has run
//     outside     starts itself with `loop`, and ends that a little later from outside
//     destroy     the heap, with what lives in it
//     threads     8 threads, blocks freed by others than their makers
//     raise       HEAP_GENERATE_EXCEPTIONS, thrown ten times, also out of a realloc
//     mended      pages of blocks are guarded when the heap touches them; the exception's handler
//                 uses a heap of its own meanwhile ("exact: mender H N")
//     closes      all handles that it does not know, then `threads`
//     wrong       each block is given to another heap as well, whose HeapFree fails: it lives on
//     damaged     the words before a block are overwritten, so that HeapFree fails, and put back
//     heaps       three heaps in turn, the counts being those of the first
//     attach      40 threads that end before the next begins, each with a hundred blocks
//
// With a second argument, a file: the counts are written there while it runs, for who kills it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

struct counts {
	volatile LONG64 allocs, frees, reallocs, failed, bytes;
	volatile LONG64 heap;
};

static struct counts *counts;
static HANDLE heap;

enum { THREADS = 8, ROUNDS = 5000, SHELVES = 1024, KEEP = 7 };

static void *take(size_t size)
{
	void *block = HeapAlloc(heap, 0, size);

	if (block) {
		InterlockedIncrement64(&counts->allocs);
		InterlockedAdd64(&counts->bytes, (LONG64)size);
	} else {
		InterlockedIncrement64(&counts->failed);
	}
	return block;
}

static void give(void *block)
{
	InterlockedIncrement64(&counts->frees);
	HeapFree(heap, 0, block);
}

static void *change(void *block, size_t size)
{
	void *result = HeapReAlloc(heap, 0, block, size);

	if (result) {
		InterlockedIncrement64(&counts->reallocs);
		InterlockedAdd64(&counts->bytes, (LONG64)size);
	} else {
		InterlockedIncrement64(&counts->failed);
	}
	return result ? result : block;
}

static __attribute__((noinline)) void work(int rounds)
{
	void *kept[KEEP] = { 0 };

	for (int i = 0; i < rounds; i++) {
		void *block = take((size_t)(i % 500) + 1);

		if (i % 2)
			block = change(block, (size_t)(i % 900) + 1);
		if (kept[i % KEEP])
			give(kept[i % KEEP]);
		kept[i % KEEP] = block;
	}
}

// Blocks go over shelves from thread to thread.
static void *volatile shelves[SHELVES];

static DWORD WINAPI run_thread(void *argument)
{
	unsigned state = 12345 + (unsigned)(size_t)argument;

	for (int i = 0; i < ROUNDS; i++) {
		void *block = take(state % 300 + 1);

		state = state * 1664525 + 1013904223;
		if (state & 0x1000)
			block = change(block, state % 700 + 1);
		block = InterlockedExchangePointer((void *volatile *)&shelves[state >> 16 & 1023],
						   block);
		if (block)
			give(block);
	}
	return 0;
}

static void run_threads(void)
{
	HANDLE threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		threads[i] = CreateThread(NULL, 0, run_thread, (void *)i, 0, NULL);
	WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
}

enum { HEAP_MOST = 256 << 10, TOO_MUCH = 1 << 20 };

static volatile LONG thrown;

#ifdef __x86_64__
static CONTEXT landing;
#else
static void *landing[5];
#endif

// Go on where landing was taken, as the compilers' handlers do in the end.
static LONG CALLBACK land(EXCEPTION_POINTERS *pointers)
{
	if (pointers->ExceptionRecord->ExceptionCode != STATUS_NO_MEMORY &&
	    pointers->ExceptionRecord->ExceptionCode != STATUS_ACCESS_VIOLATION)
		return EXCEPTION_CONTINUE_SEARCH;
#ifdef __x86_64__
	*pointers->ContextRecord = landing;
	return EXCEPTION_CONTINUE_EXECUTION;
#else
	__builtin_longjmp(landing, 1);
#endif
}

// Out of memory, as an exception that leaves the heap's function and our hook behind.
static __attribute__((noinline)) void raise_once(void *block)
{
	volatile size_t size = TOO_MUCH;
	volatile int landed = 0;

#ifdef __x86_64__
	RtlCaptureContext(&landing);
#else
	if (__builtin_setjmp(landing))
		landed = 1;
#endif
	if (landed) {
		thrown++;
		return;
	}
	landed = sizeof(void *) == 8;
	if (block)
		HeapReAlloc(heap, HEAP_GENERATE_EXCEPTIONS, block, size);
	else
		HeapAlloc(heap, HEAP_GENERATE_EXCEPTIONS, size);
}

static void run_raise(void)
{
	void *handler = AddVectoredExceptionHandler(1, land);

	for (int i = 0; i < 10; i++) {
		void *block = take(100);

		raise_once(NULL);
		raise_once(block);
		block = change(block, 200);
		give(block);
	}
	RemoveVectoredExceptionHandler(handler);
}

// As programs do that were started by careless ones.
static void run_closes(void)
{
	HANDLE out = GetStdHandle(STD_OUTPUT_HANDLE), errors = GetStdHandle(STD_ERROR_HANDLE);

	for (size_t number = 4; number < 0x1000; number += 4)
		if ((HANDLE)number != out && (HANDLE)number != errors)
			CloseHandle((HANDLE)number);
	run_threads();
}

static HANDLE mender;
static volatile LONG mended;

static LONG CALLBACK mend(EXCEPTION_POINTERS *pointers)
{
	if (pointers->ExceptionRecord->ExceptionCode != STATUS_GUARD_PAGE_VIOLATION)
		return EXCEPTION_CONTINUE_SEARCH;
	HeapFree(mender, 0, HeapAlloc(mender, 0, 33));
	mended++;
	return EXCEPTION_CONTINUE_EXECUTION;
}

static void guard(void *at)
{
	DWORD old;

	VirtualProtect(at, 1, PAGE_READWRITE | PAGE_GUARD, &old);
}

static void run_mended(void)
{
	enum { LARGE = 10000 };
	void *handler = AddVectoredExceptionHandler(1, mend);

	mender = HeapCreate(0, 0, 0);
	for (int i = 0; i < 20; i++) {
		char *block = take(LARGE);

		give(block);
		guard(block);
		guard(block + LARGE - 1);
		block = take(LARGE);
		guard(block);
		block = change(block, LARGE + 8);
		guard(block);
		give(block);
	}
	RemoveVectoredExceptionHandler(handler);
	printf("exact: mender %llx %ld\n", (unsigned long long)(size_t)mender, (long)mended);
}

// A HeapFree that fails frees nothing.
static void run_wrong(void)
{
	HANDLE other = HeapCreate(0, 0, 0);

	for (int i = 0; i < 100; i++) {
		void *block = take(100);

		if (HeapFree(other, 0, block))
			ExitProcess(97);
		if (i % 2)
			give(block);
	}
}

// Where HeapFree looks the block's header through, it finds that it is none. `failed` counts these.
static void run_damaged(void)
{
	enum { HEADER = 16 };
	char header[HEADER];

	for (int i = 0; i < 300; i++) {
		char *block = take(100);
		volatile char *before = block - HEADER;

		for (int j = 0; j < HEADER; j++) {
			header[j] = before[j];
			before[j] = 0;
		}
		if (HeapFree(heap, 0, block))
			ExitProcess(96);
		InterlockedIncrement64(&counts->failed);
		for (int j = 0; j < HEADER; j++)
			before[j] = header[j];
		if (i % 3 == 0)
			give(block);
	}
}

static void run_heaps(void)
{
	HANDLE others[2] = { HeapCreate(0, 0, 0), HeapCreate(0, 0, 0) };

	for (int i = 0; i < 3000; i++) {
		void *block = take((size_t)(i % 300) + 1);
		void *more[2];

		for (int j = 0; j < 2; j++)
			more[j] = HeapAlloc(others[j], 0, 16);
		give(block);
		for (int j = 0; j < 2; j++)
			HeapFree(others[j], 0, more[j]);
	}
}

static DWORD WINAPI run_short_thread(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100; i++)
		give(take((size_t)i + 1));
	return 0;
}

static void run_attach(void)
{
	for (int i = 0; i < 40; i++) {
		HANDLE thread = CreateThread(NULL, 0, run_short_thread, NULL, 0, NULL);

		WaitForSingleObject(thread, INFINITE);
		CloseHandle(thread);
	}
}

static void say(void)
{
	printf("exact: heap %llx allocs %lld frees %lld reallocs %lld failed %lld bytes %lld "
	       "thrown %ld\n",
	       (unsigned long long)(size_t)heap, (long long)counts->allocs,
	       (long long)counts->frees, (long long)counts->reallocs, (long long)counts->failed,
	       (long long)counts->bytes, (long)thrown);
	fflush(stdout);
}

// Where who kills us finds the counts.
static struct counts *share(const char *path)
{
	HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, NULL,
				  CREATE_ALWAYS, 0, NULL);
	HANDLE section =
		CreateFileMappingA(file, NULL, PAGE_READWRITE, 0, sizeof(struct counts), NULL);

	return MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, 0);
}

// What nobody handles ends us without a debugger.
static LONG WINAPI fall(EXCEPTION_POINTERS *pointers)
{
	(void)pointers;
	return EXCEPTION_EXECUTE_HANDLER;
}

static int end_unborn(const char *own_name)
{
	STARTUPINFOA startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION other;
	char line[2000];
	DWORD code = 0;

	snprintf(line, sizeof(line), "\"%s\" return", own_name);
	if (!CreateProcessA(NULL, line, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup,
			    &other))
		return 98;
	TerminateProcess(other.hProcess, 9);
	WaitForSingleObject(other.hProcess, INFINITE);
	GetExitCodeProcess(other.hProcess, &code);
	return (int)code;
}

// How many it has made; 0: it has not begun.
static LONG64 allocs_of(const char *path)
{
	HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
				  OPEN_EXISTING, 0, NULL);
	LONG64 allocs = 0;
	DWORD bytes;

	if (file == INVALID_HANDLE_VALUE)
		return 0;
	if (!ReadFile(file, &allocs, sizeof(allocs), &bytes, NULL) || bytes < sizeof(allocs))
		allocs = 0;
	CloseHandle(file);
	return allocs;
}

static int end_another(const char *own_name, const char *path)
{
	STARTUPINFOA startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION other;
	char line[2000];

	snprintf(line, sizeof(line), "\"%s\" loop \"%s\"", own_name, path);
	if (!CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &other))
		return 98;
	while (allocs_of(path) < ROUNDS)
		Sleep(10);
	TerminateProcess(other.hProcess, 9);
	WaitForSingleObject(other.hProcess, INFINITE);
	return 0;
}

int main(int argc, char **argv)
{
	static struct counts own;
	const char *how = argc > 1 ? argv[1] : "return";

	SetUnhandledExceptionFilter(fall);
	if (strcmp(how, "outside") == 0)
		return end_another(argv[0], argv[2]);
	if (strcmp(how, "unborn") == 0)
		return end_unborn(argv[0]);
	counts = argc > 2 ? share(argv[2]) : &own;
	if (!counts)
		return 99;
	heap = HeapCreate(0, 0, strcmp(how, "raise") == 0 ? HEAP_MOST : 0);
	counts->heap = (LONG64)(size_t)heap;
	if (strcmp(how, "threads") == 0)
		run_threads();
	else if (strcmp(how, "raise") == 0)
		run_raise();
	else if (strcmp(how, "closes") == 0)
		run_closes();
	else if (strcmp(how, "mended") == 0)
		run_mended();
	else if (strcmp(how, "wrong") == 0)
		run_wrong();
	else if (strcmp(how, "damaged") == 0)
		run_damaged();
	else if (strcmp(how, "heaps") == 0)
		run_heaps();
	else if (strcmp(how, "attach") == 0)
		run_attach();
	else
		work(2000);
	say();
	if (strcmp(how, "destroy") == 0)
		HeapDestroy(heap);
	if (strcmp(how, "exit") == 0)
		ExitProcess(7);
	if (strcmp(how, "terminate") == 0)
		TerminateProcess(GetCurrentProcess(), 8);
	if (strcmp(how, "fault") == 0)
		*(volatile int *)16 = 1;
	if (strcmp(how, "abort") == 0)
		abort();
	while (strcmp(how, "loop") == 0)
		work(100);
	return 0;
}
