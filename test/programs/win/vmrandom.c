// Calls on virtual memory in random order, legal ones and others, by the number that it is given:
//
//     vmrandom SEED STEPS
//
// Then it walks its address space by VirtualQuery and says of each region
//
//     region START END KIND       r reserved, c committed, in hexadecimal
//     mine START END KIND         of the allocations that were made here
//     calls NAME N                how many calls of a sort did what was asked
//
// The mark `calls` stands before the walk, behind which nothing is taken or given back.
#include "include/tidemark.h"
#include "ntcalls.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	OWN_MAX = 64,
	SECTIONS = 8,
	FIRST_OF_FILE = 4, // of them
	REGIONS_MAX = 16384,
	OUTPUT_BYTES = 1 << 20,
};

typedef NTSTATUS NTAPI extend_fn(HANDLE, LARGE_INTEGER *);

static extend_fn *nt_extend;

static struct own {
	char *at;
	size_t bytes;
	char kind; // p private memory, v a section's view, f a file's
} own[OWN_MAX];
static unsigned own_count;
static HANDLE sections[SECTIONS];
static unsigned long long state;
static MEMORY_BASIC_INFORMATION regions[REGIONS_MAX];
static char output[OUTPUT_BYTES];

static unsigned roll(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % below;
}

static ULONG some_access(void)
{
	static const ULONG access[] = { PAGE_READWRITE,
					PAGE_READWRITE,
					PAGE_READONLY,
					PAGE_NOACCESS,
					PAGE_EXECUTE_READ,
					PAGE_EXECUTE_READWRITE,
					PAGE_EXECUTE,
					PAGE_READWRITE | PAGE_GUARD,
					PAGE_READWRITE | PAGE_NOCACHE };

	return access[roll(sizeof access / sizeof *access)];
}

static void keep(void *at, size_t bytes, char kind)
{
	if (at && own_count < OWN_MAX)
		own[own_count++] = (struct own){ at, bytes, kind };
}

// Bytes, of whole pages or not.
static size_t some_bytes(void)
{
	size_t bytes = (1 + roll(60)) * (size_t)PAGE;

	return roll(3) ? bytes : bytes - roll(PAGE - 1);
}

static struct own *some(void)
{
	return &own[roll(own_count)];
}

static char *some_place(const struct own *in, size_t *bytes)
{
	size_t pages = (in->bytes + PAGE - 1) / PAGE, first = roll((unsigned)pages);

	*bytes = (1 + roll((unsigned)(pages - first))) * (size_t)PAGE;
	if (!roll(8))
		*bytes += 3 * PAGE; // perhaps past its end
	if (!roll(3))
		*bytes -= roll(PAGE - 1);
	return in->at + first * PAGE + (roll(3) ? 0 : roll(PAGE));
}

// ---- The calls: true if what was asked was done ----

static bool take(void)
{
	static const ULONG kinds[] = { MEM_RESERVE, MEM_COMMIT, MEM_RESERVE | MEM_COMMIT };
	ULONG kind = kinds[roll(3)] | (roll(4) ? 0 : MEM_TOP_DOWN) |
		     (roll(9) ? 0 : MEM_WRITE_WATCH);
	size_t bytes = some_bytes();
	void *at = VirtualAlloc(NULL, bytes, kind, some_access());

	keep(at, bytes, 'p');
	return at;
}

// Where something was, or is, or beside it.
static bool take_at(void)
{
	char *hint = some()->at + (size_t)roll(9) * SLOT + roll(2) * (size_t)roll(SLOT);
	size_t bytes = some_bytes();
	char *at =
		VirtualAlloc(hint, bytes, MEM_RESERVE | (roll(2) ? MEM_COMMIT : 0), some_access());

	keep(at, bytes + (at ? (size_t)(hint - at) : 0), 'p');
	return at;
}

static bool take_by_nt(void)
{
	void *at = NULL;
	SIZE_T bytes = some_bytes();

	if (nt_allocate_ex && roll(2)
		    ? nt_allocate_ex(GetCurrentProcess(), &at, &bytes, MEM_RESERVE | MEM_COMMIT,
				     some_access(), NULL, 0) < 0
		    : nt_allocate(GetCurrentProcess(), &at, roll(3), &bytes, MEM_COMMIT,
				  some_access()) < 0)
		return false;
	keep(at, bytes, 'p');
	return true;
}

static bool take_special(void)
{
	static const ULONG kinds[] = { MEM_RESERVE | MEM_PHYSICAL,
				       MEM_COMMIT | MEM_RESERVE | MEM_LARGE_PAGES };
	size_t bytes = roll(2) ? some_bytes() : 2 << 20;
	void *at = VirtualAlloc(NULL, bytes, kinds[roll(2)], PAGE_READWRITE);

	keep(at, bytes, 'p');
	return at;
}

static bool commit(void)
{
	size_t bytes;
	char *at = some_place(some(), &bytes);

	return VirtualAlloc(at, bytes, MEM_COMMIT, some_access());
}

static bool decommit(void)
{
	size_t bytes;
	struct own *of = some();
	char *at = some_place(of, &bytes);

	return roll(9) ? VirtualFree(at, bytes, MEM_DECOMMIT)
		       : VirtualFree(of->at, 0, MEM_DECOMMIT);
}

static bool protect(void)
{
	size_t bytes;
	DWORD old;
	char *at = some_place(some(), &bytes);

	return VirtualProtect(at, bytes, some_access(), &old);
}

static bool reset(void)
{
	size_t bytes;
	char *at = some_place(some(), &bytes);

	return VirtualAlloc(at, bytes, roll(2) ? MEM_RESET : UNDO, PAGE_READWRITE);
}

static bool give_back(void)
{
	struct own *which = some();

	if (!roll(6))
		return VirtualFree(which->at + PAGE, 0, MEM_RELEASE);
	if (!(which->kind != 'p'
		      ? nt_unmap(GetCurrentProcess(), which->at + roll((unsigned)which->bytes)) >= 0
		      : VirtualFree(which->at, 0, MEM_RELEASE)))
		return false;
	*which = own[--own_count];
	return true;
}

static bool give_part_back(void)
{
	size_t bytes;
	void *at = some_place(some(), &bytes);
	SIZE_T given = bytes;

	return nt_free(GetCurrentProcess(), &at, &given, MEM_RELEASE | (roll(3) ? 0 : PRESERVE)) >=
	       0;
}

static bool placeholder(void)
{
	void *at = NULL;
	SIZE_T bytes = (1 + roll(4)) * (SIZE_T)SLOT;

	if (!nt_allocate_ex ||
	    nt_allocate_ex(GetCurrentProcess(), &at, &bytes, MEM_RESERVE | PLACEHOLDER,
			   PAGE_NOACCESS, NULL, 0) < 0)
		return false;
	keep(at, bytes, 'p');
	return true;
}

static bool in_placeholder(void)
{
	struct own *of = some();
	void *at = of->at;
	SIZE_T bytes = roll(2) ? of->bytes : SLOT;

	switch (roll(3)) {
	case 0:
		return nt_allocate_ex && nt_allocate_ex(GetCurrentProcess(), &at, &bytes,
							MEM_RESERVE | MEM_COMMIT | REPLACE,
							PAGE_READWRITE, NULL, 0) >= 0;
	case 1:
		return nt_map_ex && nt_map_ex(sections[roll(SECTIONS)], GetCurrentProcess(), &at,
					      NULL, &bytes, REPLACE, PAGE_READWRITE, NULL, 0) >= 0;
	default:
		if (!nt_unmap_ex || of->kind == 'p' ||
		    nt_unmap_ex(GetCurrentProcess(), at, PRESERVE) < 0)
			return false;
		*of = own[--own_count]; // a placeholder, or nothing in Wine
		return true;
	}
}

static bool view(void)
{
	LARGE_INTEGER offset = { .QuadPart = roll(3) * (long long)SLOT };
	SIZE_T bytes = roll(2) ? 0 : some_bytes();
	unsigned which = roll(SECTIONS);
	void *at = NULL;

	if (nt_map(sections[which], GetCurrentProcess(), &at, 0, 0, &offset, &bytes, 1 + roll(2),
		   roll(3) ? 0 : MEM_TOP_DOWN,
		   roll(2)   ? PAGE_READWRITE
		   : roll(2) ? PAGE_READONLY
			     : PAGE_WRITECOPY) < 0)
		return false;
	keep(at, bytes, which < FIRST_OF_FILE ? 'v' : 'f');
	return true;
}

static bool extend(void)
{
	LARGE_INTEGER bytes = { .QuadPart = 20 * SLOT };

	return nt_extend && nt_extend(sections[roll(SECTIONS)], &bytes) >= 0;
}

static bool library(void)
{
	HMODULE module = LoadLibraryA(roll(2) ? "version.dll" : "imm32.dll");

	if (roll(2))
		FreeLibrary(module);
	return module;
}

static const struct kind {
	const char *name;
	bool (*call)(void);
	unsigned weight;
} kinds[] = {
	{ "take", take, 6 },
	{ "take_at", take_at, 4 },
	{ "take_by_nt", take_by_nt, 2 },
	{ "take_special", take_special, 1 },
	{ "commit", commit, 12 },
	{ "decommit", decommit, 6 },
	{ "protect", protect, 6 },
	{ "reset", reset, 2 },
	{ "give_back", give_back, 8 },
	{ "give_part_back", give_part_back, 1 },
	{ "placeholder", placeholder, 2 },
	{ "in_placeholder", in_placeholder, 3 },
	{ "view", view, 4 },
	{ "extend", extend, 1 },
	{ "library", library, 1 },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static unsigned done[KINDS];

static void step(void)
{
	unsigned weights = 0, chosen;

	for (int i = 0; i < KINDS; i++)
		weights += kinds[i].weight;
	chosen = roll(weights);
	for (int i = 0; i < KINDS; i++) {
		if (chosen < kinds[i].weight) {
			done[i] += own_count < 4 ? take() : kinds[i].call();
			return;
		}
		chosen -= kinds[i].weight;
	}
}

static void begin(void)
{
	static const ULONG how[SECTIONS] = { SEC_COMMIT, SEC_RESERVE, SEC_RESERVE, SEC_COMMIT };
	HANDLE file = CreateFileA("random.bin", GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE, 0,
				  NULL, CREATE_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, NULL);

	nt_find_all();
	nt_extend = NT_FIND(extend_fn, "NtExtendSection");
	for (int i = 0; i < SECTIONS; i++)
		sections[i] = CreateFileMappingA(i < FIRST_OF_FILE ? INVALID_HANDLE_VALUE : file,
						 NULL, PAGE_READWRITE | how[i], 0,
						 (4 + (DWORD)i) * SLOT, NULL);
}

static unsigned look(void)
{
	unsigned count = 0;

	for (char *at = NULL;
	     count < REGIONS_MAX && VirtualQuery(at, &regions[count], sizeof *regions);) {
		at = (char *)regions[count].BaseAddress + regions[count].RegionSize;
		count += regions[count].State != MEM_FREE;
	}
	return count;
}

int main(int argc, char **argv)
{
	unsigned count;

	setvbuf(stdout, output, _IOFBF, sizeof output);
	state = 0x9e3779b97f4a7c15ull * (argc > 1 ? strtoull(argv[1], NULL, 10) + 1 : 1);
	begin();
	for (int i = argc > 2 ? atoi(argv[2]) : 1000; i > 0; i--)
		step();
	tidemark_mark("calls");
	count = look();
	for (unsigned i = 0; i < count; i++)
		printf("region %llx %llx %c\n", (unsigned long long)(size_t)regions[i].BaseAddress,
		       (unsigned long long)((size_t)regions[i].BaseAddress + regions[i].RegionSize),
		       regions[i].State == MEM_COMMIT ? 'c' : 'r');
	for (unsigned i = 0; i < own_count; i++)
		printf("mine %llx %llx %c\n", (unsigned long long)(size_t)own[i].at,
		       (unsigned long long)((size_t)own[i].at + own[i].bytes), own[i].kind);
	for (int i = 0; i < KINDS; i++)
		printf("calls %s %u\n", kinds[i].name, done[i]);
	fflush(stdout);
	TerminateProcess(GetCurrentProcess(), 0);
	return 1;
}
