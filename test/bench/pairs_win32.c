// pairs: HeapAlloc and HeapFree below DEPTH frames, PAIRS times; its last words are what that took:
// "pairs: N cpu NS wall NS" (nanoseconds, of the loop alone).
//
//     pairs DEPTH PAIRS [HEAPS]     in turn of so many heaps (1)
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

enum { HEAPS_MAX = 64, BYTES = 48 };

static HANDLE heaps[HEAPS_MAX];
static long pairs, heaps_count;

static __attribute__((noinline)) void pair(long i)
{
	HANDLE heap = heaps[i % heaps_count];
	void *volatile block = HeapAlloc(heap, 0, BYTES);

	HeapFree(heap, 0, block);
}

static __attribute__((noinline)) int descend(int depth)
{
	if (depth > 0)
		return descend(depth - 1) + 1;
	for (long i = 0; i < pairs; i++)
		pair(i);
	return 0;
}

static long long cpu_ns(void)
{
	FILETIME begun, ended, kernel, user;

	GetThreadTimes(GetCurrentThread(), &begun, &ended, &kernel, &user);
	return (((long long)(kernel.dwHighDateTime + user.dwHighDateTime) << 32) +
		(long long)kernel.dwLowDateTime + (long long)user.dwLowDateTime) *
	       100;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 15;
	LARGE_INTEGER begin, end, frequency;
	long long cpu;

	pairs = argc > 2 ? atol(argv[2]) : 1000000;
	heaps_count = argc > 3 ? atol(argv[3]) : 1;
	if (depth < 3 || pairs < 1 || heaps_count < 1 || heaps_count > HEAPS_MAX)
		return 2;
	for (long i = 0; i < heaps_count; i++)
		heaps[i] = HeapCreate(0, 0, 0);
	QueryPerformanceFrequency(&frequency);
	QueryPerformanceCounter(&begin);
	cpu = cpu_ns();
	depth = descend(depth - 3); // main, descend's last, pair
	cpu = cpu_ns() - cpu;
	QueryPerformanceCounter(&end);
	printf("pairs: %ld cpu %lld wall %lld\n", pairs, cpu,
	       (long long)((double)(end.QuadPart - begin.QuadPart) * 1e9 /
			   (double)frequency.QuadPart));
	return depth < 0;
}
