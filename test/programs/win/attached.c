// Waits until somebody records it, and works then. What must be said about it:
//
//     100 blocks of 32 bytes from before are freed: frees of nothing known
//     5,000 blocks of 48 bytes on a heap H, every second one freed, between the marks "work.begin"
//     and "work.end"
//
// Its first words are "attached: pid PID", its last "attached: heap H". With the argument `hooked`,
// somebody else has put a jump in front of RtlFreeHeap before; with `odd`, what is no instruction
// stands at the beginning of NtUnmapViewOfSectionEx, which nobody calls.
#include "include/tidemark.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

enum { BEFORE = 100, BLOCKS = 5000, JUMP = 5, STOLEN = sizeof(void *) == 8 ? 8 : 5 };

// A page that a jump from `place` reaches.
static unsigned char *page_near(const unsigned char *place)
{
	for (ptrdiff_t distance = 1 << 20; distance < 1 << 30; distance += 1 << 16)
		for (int sign = -1; sign <= 1; sign += 2) {
			size_t wanted = ((size_t)place + (size_t)(sign * distance)) &
					~(size_t)65535;
			void *at = VirtualAlloc((void *)wanted, 4096, MEM_RESERVE | MEM_COMMIT,
						PAGE_EXECUTE_READWRITE);

			if (at)
				return at;
		}
	return NULL;
}

static void put_jump(unsigned char *at, const unsigned char *to)
{
	int distance = (int)(to - (at + JUMP));

	*at = 0xe9;
	memcpy(at + 1, &distance, 4);
}

static void hook_as_others_do(void)
{
	unsigned char *function =
		(unsigned char *)(void *)GetProcAddress(GetModuleHandleA("ntdll"), "RtlFreeHeap");
	unsigned char *stub = page_near(function);
	DWORD old;

	// Its first instructions mean the same anywhere.
	memcpy(stub, function, STOLEN);
	put_jump(stub + STOLEN, function + STOLEN);
	VirtualProtect(function, STOLEN, PAGE_EXECUTE_READWRITE, &old);
	put_jump(function, stub);
	VirtualProtect(function, STOLEN, old, &old);
}

static void spoil_function(void)
{
	unsigned char *function = (unsigned char *)(void *)GetProcAddress(GetModuleHandleA("ntdll"),
									  "NtUnmapViewOfSectionEx");
	DWORD old;

	VirtualProtect(function, 2, PAGE_EXECUTE_READWRITE, &old);
	memcpy(function, "\x0f\x0a", 2);
	VirtualProtect(function, 2, old, &old);
}

static __attribute__((noinline)) void work(HANDLE heap)
{
	tidemark_phase_begin("work");
	for (int i = 0; i < BLOCKS; i++) {
		void *block = HeapAlloc(heap, 0, 48);

		if (i % 2)
			HeapFree(heap, 0, block);
	}
	tidemark_phase_end("work");
}

int main(int argc, char **argv)
{
	void *before[BEFORE];
	HANDLE heap = HeapCreate(0, 0, 0);

	for (int i = 0; i < BEFORE; i++)
		before[i] = HeapAlloc(heap, 0, 32);
	if (argc > 1 && strcmp(argv[1], "hooked") == 0)
		hook_as_others_do();
	if (argc > 1 && strcmp(argv[1], "odd") == 0)
		spoil_function();
	printf("attached: pid %lu\n", (unsigned long)GetCurrentProcessId());
	fflush(stdout);
	while (!tidemark_recorded())
		Sleep(10);
	for (int i = 0; i < BEFORE; i++)
		HeapFree(heap, 0, before[i]);
	work(heap);
	printf("attached: heap %llx\n", (unsigned long long)(size_t)heap);
	return 0;
}
