// What must be said about it: its own table, printed at the end, a line for each heap, thread and
// size: "heaps: HEAP TID SIZE ALLOCS FREES", all of them decimal but the heap. Three heaps, four
// threads, eight sizes; blocks of one heap are freed by the thread that made them. And a line for
// each heap, with the flags that it was made with and how many calls had none and
// HEAP_ZERO_MEMORY: "heaps: flags HEAP MADE NONE ZERO".
#include <stdio.h>
#include <windows.h>

enum { HEAPS = 3, THREADS = 4, SIZES = 8, ROUNDS = 400 };

static const unsigned sizes[SIZES] = { 8, 24, 100, 512, 4000, 20000, 70000, 600000 };
static const DWORD made[HEAPS] = { 0, HEAP_GENERATE_EXCEPTIONS, HEAP_CREATE_ENABLE_EXECUTE };
static HANDLE heaps[HEAPS];

struct worker {
	DWORD tid;
	unsigned allocs[HEAPS][SIZES], frees[HEAPS][SIZES], zeroed[HEAPS][2];
};

static struct worker workers[THREADS];

static DWORD WINAPI work(void *argument)
{
	struct worker *worker = argument;
	unsigned state = 1 + (unsigned)(worker - workers);

	worker->tid = GetCurrentThreadId();
	for (int i = 0; i < ROUNDS; i++) {
		unsigned heap, size, zero;
		void *block;

		state = state * 1664525 + 1013904223;
		heap = (state >> 8) % HEAPS;
		// Small ones more often than large ones.
		size = (state >> 16) % SIZES & (state >> 24) % SIZES;
		zero = state >> 20 & 1;
		block = HeapAlloc(heaps[heap], zero ? HEAP_ZERO_MEMORY : 0, sizes[size]);
		worker->zeroed[heap][zero] += block != NULL;
		worker->allocs[heap][size] += block != NULL;
		if (state >> 31 && HeapFree(heaps[heap], 0, block))
			worker->frees[heap][size]++;
	}
	return 0;
}

int main(void)
{
	HANDLE threads[THREADS];

	for (int i = 0; i < HEAPS; i++)
		heaps[i] = HeapCreate(made[i], 0, 0);
	for (int i = 0; i < THREADS; i++)
		threads[i] = CreateThread(NULL, 0, work, &workers[i], 0, NULL);
	WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
	for (int heap = 0; heap < HEAPS; heap++)
		for (int i = 0; i < THREADS; i++)
			for (int size = 0; size < SIZES; size++)
				printf("heaps: %llx %lu %u %u %u\n",
				       (unsigned long long)(size_t)heaps[heap],
				       (unsigned long)workers[i].tid, sizes[size],
				       workers[i].allocs[heap][size], workers[i].frees[heap][size]);
	for (int heap = 0; heap < HEAPS; heap++) {
		unsigned calls[2] = { 0 };

		for (int i = 0; i < THREADS; i++)
			for (int zero = 0; zero < 2; zero++)
				calls[zero] += workers[i].zeroed[heap][zero];
		printf("heaps: flags %llx %lu %u %u\n", (unsigned long long)(size_t)heaps[heap],
		       (unsigned long)made[heap], calls[0], calls[1]);
	}
	return 0;
}
