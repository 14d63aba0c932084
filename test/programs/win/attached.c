// Waits until somebody records it, and works then. What must be said about it:
//
//     100 blocks of 32 bytes from before are freed: frees of nothing known
//     5,000 blocks of 48 bytes on a heap H, every second one freed, between the marks "work.begin"
//     and "work.end"
//
// Its first words are "attached: pid PID", its last "attached: heap H". With the argument `hooked`,
// somebody else has put a jump in front of RtlFreeHeap before; with `odd`, what is no instruction
// stands at the beginning of NtUnmapViewOfSectionEx, which nobody calls; with `forbids`, memory
// cannot become code, as under Arbitrary Code Guard: it works when a recorder has been loaded,
// unrecorded. With `unhooks` RtlAllocateHeap gets its own code back when somebody records it, and
// with `unhooks-all` so does every function by which that could be noticed.
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

typedef LONG NTAPI protect_type(HANDLE process, void **at, SIZE_T *size, ULONG protection,
				ULONG *old);

static protect_type *protect_really;

// What a process is told whose policy forbids dynamic code.
static LONG NTAPI protect_but_code(HANDLE process, void **at, SIZE_T *size, ULONG protection,
				   ULONG *old)
{
	MEMORY_BASIC_INFORMATION region;

	if ((protection & 0xf0) &&
	    (!VirtualQuery(*at, &region, sizeof(region)) || region.Type != MEM_IMAGE ||
	     (protection & (PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY))))
		return (LONG)0xc0000604;
	return protect_really(process, at, size, protection, old);
}

static void forbid_code(void)
{
	enum { STUB = 40, FAR_AT = 64 };
	unsigned char *function = (unsigned char *)(void *)GetProcAddress(GetModuleHandleA("ntdll"),
									  "NtProtectVirtualMemory");
	unsigned char *page = page_near(function);
	void *target = (void *)protect_but_code;
	DWORD old;

	memcpy(page, function, STUB); // a system call, which is one anywhere
	protect_really = (protect_type *)(void *)page;
	memcpy(page + FAR_AT, "\x48\xb8", 2); // mov rax, target; jmp rax
	memcpy(page + FAR_AT + 2, &target, sizeof(target));
	memcpy(page + FAR_AT + 2 + sizeof(target), "\xff\xe0", 2);
	VirtualProtect(function, JUMP, PAGE_EXECUTE_READWRITE, &old);
	put_jump(function, sizeof(void *) == 8 ? page + FAR_AT : (unsigned char *)target);
}

enum { KEPT_BYTES = 8 };

static struct {
	unsigned char *function, bytes[KEPT_BYTES];
} kept[8];
static int kept_count;

static void keep(const char *name)
{
	kept[kept_count].function =
		(unsigned char *)(void *)GetProcAddress(GetModuleHandleA("ntdll"), name);
	memcpy(kept[kept_count].bytes, kept[kept_count].function, KEPT_BYTES);
	kept_count++;
}

static void keep_all(int all)
{
	keep("RtlAllocateHeap");
	if (!all)
		return;
	keep("RtlFreeHeap");
	keep("NtProtectVirtualMemory");
	keep("NtTerminateProcess");
}

static void put_back(void)
{
	DWORD old[8];

	for (int i = 0; i < kept_count; i++)
		VirtualProtect(kept[i].function, KEPT_BYTES, PAGE_EXECUTE_READWRITE, &old[i]);
	for (int i = 0; i < kept_count; i++)
		memcpy(kept[i].function, kept[i].bytes, KEPT_BYTES);
	for (int i = 0; i < kept_count; i++)
		VirtualProtect(kept[i].function, KEPT_BYTES, PAGE_EXECUTE_READ, &old[i]);
}

static int is_refused(void)
{
	return protect_really &&
	       GetModuleHandleA(sizeof(void *) == 8 ? "tidemark64" : "tidemark32");
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
	if (argc > 1 && strcmp(argv[1], "forbids") == 0)
		forbid_code();
	if (argc > 1 && strncmp(argv[1], "unhooks", 7) == 0)
		keep_all(strcmp(argv[1], "unhooks-all") == 0);
	printf("attached: pid %lu\n", (unsigned long)GetCurrentProcessId());
	fflush(stdout);
	while (!tidemark_recorded() && !is_refused())
		Sleep(10);
	put_back();
	for (int i = 0; i < BEFORE; i++)
		HeapFree(heap, 0, before[i]);
	work(heap);
	// Who attached looks whether the recorder is there: after the end that cannot be seen.
	Sleep(1000);
	printf("attached: heap %llx\n", (unsigned long long)(size_t)heap);
	return 0;
}
