// What must be said about it: what it tells through tidemark.h stands where it told it.
//
//     blocks of 7601 bytes before each of 100 marks "between", of 7602 behind it, one each
//     a phase "work" with ten blocks of 7603 bytes; the thread that does it is called "worker 3"
//     a pool "nodes": 64 blocks of 24 bytes, half of them freed, one resized, then a reset
//     a pause: 50 blocks of 7604 bytes, not recorded; 20 of 7605 from before are freed in it
//     a thread that gives its name to the system: "described", with one block of 7606
//
// With the argument `sample`, 200,000 blocks of 100 bytes instead, each second one freed at once,
// the others resized to 50 and freed at the end; its last words: "made N bytes B".
#define _WIN32_WINNT 0x0a00
#include "include/tidemark.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

enum { MARKS = 100, BLOCKS = 10, NODES = 64, HIDDEN = 50, KEPT = 20, MANY = 200000, SMALL = 100 };

static HANDLE heap;

static DWORD WINAPI work(void *unused)
{
	(void)unused;
	tidemark_name_thread("worker 3");
	tidemark_phase_begin("work");
	for (int i = 0; i < BLOCKS; i++)
		HeapAlloc(heap, 0, 7603);
	tidemark_phase_end("work");
	return 0;
}

static DWORD WINAPI be_described(void *unused)
{
	typedef HRESULT WINAPI describe(HANDLE thread, PCWSTR text);
	describe *set = (describe *)(void *)GetProcAddress(GetModuleHandleA("kernel32"),
							   "SetThreadDescription");

	(void)unused;
	if (set)
		set(GetCurrentThread(), L"described");
	HeapAlloc(heap, 0, 7606);
	return 0;
}

static void run(LPTHREAD_START_ROUTINE routine)
{
	HANDLE thread = CreateThread(NULL, 0, routine, NULL, 0, NULL);

	WaitForSingleObject(thread, INFINITE);
	CloseHandle(thread);
}

static void use_pool(void)
{
	static char nodes[2 * NODES][64];
	tidemark_pool pool = tidemark_pool_create("nodes");

	for (int i = 0; i < NODES; i++)
		tidemark_pool_alloc(pool, nodes[i], 24);
	for (int i = 0; i < NODES; i += 2)
		tidemark_pool_free(pool, nodes[i]);
	tidemark_pool_realloc(pool, nodes[1], nodes[NODES], 48);
	tidemark_mark("pooled");
	tidemark_pool_reset(pool);
	tidemark_mark("reset");
	tidemark_pool_destroy(pool);
}

static void pause_a_while(void)
{
	void *kept[KEPT], *hidden[HIDDEN];

	for (int i = 0; i < KEPT; i++)
		kept[i] = HeapAlloc(heap, 0, 7605);
	tidemark_pause();
	for (int i = 0; i < HIDDEN; i++)
		hidden[i] = HeapAlloc(heap, 0, 7604);
	for (int i = 0; i < KEPT; i++)
		HeapFree(heap, 0, kept[i]);
	tidemark_resume();
	HeapFree(heap, 0, hidden[0]);
}

static int sample(void)
{
	static void *kept[MANY / 2];
	long long made = 0, bytes = 0;

	for (int i = 0; i < MANY; i++) {
		void *block = HeapAlloc(heap, 0, SMALL);

		made += block != NULL;
		bytes += block ? SMALL : 0;
		if (i % 2)
			HeapFree(heap, 0, block);
		else
			kept[i / 2] = HeapReAlloc(heap, 0, block, SMALL / 2);
	}
	tidemark_mark("full");
	for (int i = 0; i < MANY / 2; i++)
		HeapFree(heap, 0, kept[i]);
	printf("made %lld bytes %lld\n", made, bytes);
	return 0;
}

int main(int argc, char **argv)
{
	if (!tidemark_recorded())
		return 3;
	heap = HeapCreate(0, 0, 0);
	if (argc > 1 && strcmp(argv[1], "sample") == 0)
		return sample();
	for (int i = 0; i < MARKS; i++) {
		HeapAlloc(heap, 0, 7601);
		tidemark_mark("between");
		HeapAlloc(heap, 0, 7602);
	}
	run(work);
	run(be_described);
	use_pool();
	pause_a_while();
	return 0;
}
