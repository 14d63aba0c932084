// What tidemark findings says of how memory is laid out, and of what only looks like it.
//
//     seeded      small blocks between large ones that are freed; a heap whose blocks are freed but
//                 for the last; a thousand reservations of a page; in 32 bits the address space in
//                 pieces of a MiB, every other one free, and a block that is larger than these
//     alike       the same blocks, and all live; reservations of whole 64 KiB; a block that is
//                 larger than all that is free
//
// Then it says on how many pages its small blocks are, and how many are committed where the blocks
// of its heaps are, and sleeps, since a program that frees and ends at once is blamed for nothing.
#include <stdio.h>
#include <string.h>
#include <windows.h>

enum {
	PAIRS = 3000,
	LARGE = 4000,
	SMALL = 40,
	HEADER = 8,
	RESERVATIONS = 1000,
	PAGE = 4096,
	SLOT = 65536,
	PIECE = 1 << 20,
	PIECES = 4096,
	TOO_LARGE = 64 << 20,
	PLACES = 64,
};

static char *large[PAIRS], *small[PAIRS];
static void *pieces[PIECES];

static __attribute__((noinline)) void *take_small(HANDLE heap)
{
	return HeapAlloc(heap, 0, SMALL);
}

static __attribute__((noinline)) void *take_large(HANDLE heap)
{
	return HeapAlloc(heap, 0, LARGE);
}

static __attribute__((noinline)) void *reserve(size_t bytes)
{
	return VirtualAlloc(NULL, bytes, MEM_RESERVE, PAGE_NOACCESS);
}

static __attribute__((noinline)) void *take_too_much(size_t bytes)
{
	return HeapAlloc(GetProcessHeap(), 0, bytes);
}

static void run(int seeded)
{
	HANDLE first = HeapCreate(0, 0, 0), second = HeapCreate(0, 0, 0);

	for (int i = 0; i < PAIRS; i++) {
		large[i] = take_large(first);
		if (seeded)
			small[i] = take_small(first);
	}
	for (int i = 0; i < PAIRS; i++)
		if (seeded)
			HeapFree(first, 0, large[i]);
		else
			small[i] = take_small(first);
	for (int i = 0; i < PAIRS; i++)
		large[i] = take_large(second);
	for (int i = 0; seeded && i < PAIRS - 1; i++)
		HeapFree(second, 0, large[i]);
	for (int i = 0; i < RESERVATIONS; i++)
		reserve(seeded ? PAGE : SLOT);
}

// In 32 bits, where addresses end. What was free is free again then.
static void run_out(int seeded)
{
	int count = 0;

	if (sizeof(void *) == 8)
		return;
	while (seeded && count < PIECES && (pieces[count] = reserve(PIECE)))
		count++;
	for (int i = 0; i < count; i += 2)
		VirtualFree(pieces[i], 0, MEM_RELEASE);
	if (take_too_much(seeded ? TOO_LARGE : 0x7f000000))
		printf("layout: it did not fail\n");
	for (int i = 1; i < count; i += 2)
		VirtualFree(pieces[i], 0, MEM_RELEASE);
}

// They lie by rising addresses but for a few, which is no matter for a count of pages.
static size_t pages_of_small(void)
{
	static char *pages[2 * PAIRS];
	size_t count = 0;

	for (int i = 0; i < PAIRS; i++) {
		size_t begin = (size_t)small[i] - HEADER, end = (size_t)small[i] + SMALL - 1;

		for (size_t page = begin / PAGE; page <= end / PAGE; page++) {
			size_t at = 0;

			while (at < count && pages[at] != (char *)page)
				at++;
			if (at == count)
				pages[count++] = (char *)page;
		}
	}
	return count;
}

static size_t committed_of(char *place)
{
	MEMORY_BASIC_INFORMATION region;
	size_t bytes = 0;

	for (char *at = place;
	     VirtualQuery(at, &region, sizeof(region)) && region.AllocationBase == place;
	     at += region.RegionSize)
		bytes += region.State == MEM_COMMIT ? region.RegionSize : 0;
	return bytes;
}

static size_t pages_of_heaps(void)
{
	static HANDLE heaps[PLACES];
	static void *places[PLACES];
	DWORD heaps_count = GetProcessHeaps(PLACES, heaps);
	size_t count = 0, bytes = 0;

	for (DWORD i = 0; i < heaps_count; i++) {
		PROCESS_HEAP_ENTRY entry = { 0 };
		MEMORY_BASIC_INFORMATION region;

		while (HeapWalk(heaps[i], &entry)) {
			size_t at = 0;

			if (!(entry.wFlags & PROCESS_HEAP_ENTRY_BUSY) ||
			    !VirtualQuery(entry.lpData, &region, sizeof(region)))
				continue;
			while (at < count && places[at] != region.AllocationBase)
				at++;
			if (at == count && count < PLACES)
				places[count++] = region.AllocationBase;
		}
	}
	for (size_t i = 0; i < count; i++)
		bytes += committed_of(places[i]);
	return bytes / PAGE;
}

int main(int argc, char **argv)
{
	int seeded = argc > 1 && strcmp(argv[1], "seeded") == 0;
	size_t pages, committed;

	run(seeded);
	run_out(seeded);
	pages = pages_of_small();
	committed = pages_of_heaps();
	printf("layout: small blocks are on %u pages, heaps have %u\n", (unsigned)pages,
	       (unsigned)committed);
	fflush(stdout);
	Sleep(10500);
	return 0;
}
