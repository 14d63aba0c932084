// Every legal use of the calls on virtual memory, one after the other, each in its own function.
// At its end it walks its address space with VirtualQuery and says of each allocation of its own
//
//     vm: NAME START BYTES RESERVED COMMITTED
//
// in hexadecimal: what must be known of [START, START + BYTES). NAME is the function that made it.
// A call that this system does not have is "vm: NAME no"; what failed, "vm: failed NAME".
// "vm: elsewhere N" is the number of calls for another process.
#include "include/tidemark.h"
#include "ntcalls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ENTRIES_MAX = 64,
};

#define OWN __attribute__((noinline))

static struct {
	const char *name;
	char *at;
	size_t bytes;
} entries[ENTRIES_MAX];
static int entries_count;
static unsigned elsewhere;

static void *keep(const char *name, void *at, size_t bytes)
{
	entries[entries_count].name = name;
	entries[entries_count].at = at;
	entries[entries_count++].bytes = bytes;
	if (!at)
		printf("vm: %s no\n", name);
	return at;
}

#define KEEP(at, bytes) keep(__func__, at, bytes)

// ---- Private memory ----

static OWN void commit_alone(void)
{
	char *at = VirtualAlloc(NULL, 40 * PAGE, MEM_COMMIT, PAGE_READWRITE);

	KEEP(at, 40 * PAGE);
}

static OWN void commit_odd(void)
{
	KEEP(VirtualAlloc(NULL, 5000, MEM_COMMIT | MEM_TOP_DOWN, PAGE_READWRITE), 2 * PAGE);
}

static OWN void commit_by_nt(void)
{
	void *at = NULL;
	SIZE_T bytes = 3 * PAGE - 1;

	if (nt_allocate(GetCurrentProcess(), &at, 0, &bytes, MEM_COMMIT, PAGE_READWRITE) < 0)
		at = NULL;
	KEEP(at, 3 * PAGE);
}

static OWN void commit_unreadable(void)
{
	KEEP(VirtualAlloc(NULL, 7 * PAGE, MEM_COMMIT | MEM_RESERVE, PAGE_NOACCESS), 7 * PAGE);
}

static OWN void commit_read_only(void)
{
	KEEP(VirtualAlloc(NULL, 9 * PAGE, MEM_COMMIT, PAGE_READONLY), 9 * PAGE);
}

static OWN void commit_parts(void)
{
	char *at = KEEP(VirtualAlloc(NULL, 64 * PAGE, MEM_RESERVE, PAGE_NOACCESS), 64 * PAGE);

	VirtualAlloc(at + PAGE + 17, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE); // three pages
	VirtualAlloc(at + 10 * PAGE, 5 * PAGE, MEM_COMMIT, PAGE_NOACCESS);
	VirtualAlloc(at + 12 * PAGE, PAGE, MEM_COMMIT, PAGE_READWRITE); // again
}

static OWN void write_watch(void)
{
	KEEP(VirtualAlloc(NULL, 6 * PAGE, MEM_RESERVE | MEM_COMMIT | MEM_WRITE_WATCH,
			  PAGE_READWRITE),
	     6 * PAGE);
}

static OWN void low_address(void)
{
	void *at = NULL;
	SIZE_T bytes = 2 * PAGE;

	if (nt_allocate(GetCurrentProcess(), &at, 2, &bytes, MEM_RESERVE | MEM_COMMIT,
			PAGE_READWRITE) < 0)
		at = NULL;
	KEEP(at, 2 * PAGE);
}

static OWN void protect_parts(void)
{
	char *at = VirtualAlloc(NULL, 16 * PAGE, MEM_COMMIT, PAGE_READWRITE);
	DWORD old;

	KEEP(at, 16 * PAGE);
	VirtualProtect(at + PAGE, PAGE, PAGE_NOACCESS, &old);
	VirtualProtect(at + 2 * PAGE + 5, PAGE, PAGE_READONLY, &old); // two pages
	VirtualProtect(at + 8 * PAGE, PAGE, PAGE_EXECUTE_READ, &old);
	VirtualProtect(at + PAGE, PAGE, PAGE_READWRITE | PAGE_GUARD, &old);
	VirtualProtect(at + 9 * PAGE, PAGE, PAGE_NOACCESS, &old);
}

static OWN void unused_again(void)
{
	char *at = VirtualAlloc(NULL, 8 * PAGE, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);

	KEEP(at, 8 * PAGE);
	memset(at, 1, 8 * PAGE);
	VirtualAlloc(at, 4 * PAGE, MEM_RESET, PAGE_READWRITE);
	if (!VirtualAlloc(at, 4 * PAGE, UNDO, PAGE_READWRITE))
		printf("vm: reset_undo no\n");
}

// ---- Giving back ----

static OWN void decommit_part(void)
{
	char *at = VirtualAlloc(NULL, 32 * PAGE, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);

	KEEP(at, 32 * PAGE);
	VirtualFree(at + PAGE + 100, PAGE, MEM_DECOMMIT); // of two pages
	VirtualFree(at + 20 * PAGE, 4 * PAGE, MEM_DECOMMIT);
	VirtualFree(at + 21 * PAGE, PAGE, MEM_DECOMMIT); // nothing more
}

static OWN void decommit_all(void)
{
	char *at = VirtualAlloc(NULL, 5 * PAGE, MEM_COMMIT, PAGE_READWRITE);

	KEEP(at, 5 * PAGE);
	VirtualFree(at, 0, MEM_DECOMMIT);
}

static OWN void release_all(void)
{
	char *at = VirtualAlloc(NULL, SLOT, MEM_COMMIT, PAGE_READWRITE);

	KEEP(at, SLOT);
	VirtualFree(at + PAGE, 0, MEM_RELEASE); // not its beginning: fails
	VirtualFree(at, 0, MEM_RELEASE);
	VirtualFree(at, 0, MEM_RELEASE); // nothing is there
}

static OWN void release_part(void)
{
	char *at = VirtualAlloc(NULL, 3 * SLOT, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
	void *middle = at + SLOT;
	SIZE_T bytes = SLOT;

	KEEP(at, 3 * SLOT);
	if (nt_free(GetCurrentProcess(), &middle, &bytes, MEM_RELEASE) < 0)
		printf("vm: %s no\n", __func__);
}

// ---- Placeholders ----

static OWN char *placeholder(const char *name, size_t bytes)
{
	void *at = NULL;
	SIZE_T size = bytes;

	if (!nt_allocate_ex ||
	    nt_allocate_ex(GetCurrentProcess(), &at, &size, MEM_RESERVE | PLACEHOLDER,
			   PAGE_NOACCESS, NULL, 0) < 0)
		at = NULL;
	return keep(name, at, bytes);
}

static OWN void *replace(void *at, SIZE_T bytes)
{
	if (nt_allocate_ex(GetCurrentProcess(), &at, &bytes, MEM_RESERVE | MEM_COMMIT | REPLACE,
			   PAGE_READWRITE, NULL, 0) < 0) {
		printf("vm: failed replace\n");
		return NULL;
	}
	return at;
}

static OWN void split(char *at, SIZE_T bytes, ULONG how)
{
	void *start = at;

	if (nt_free(GetCurrentProcess(), &start, &bytes, MEM_RELEASE | how) < 0)
		printf("vm: failed split %lu\n", how);
}

static OWN void placeholder_plain(void)
{
	placeholder(__func__, 5 * SLOT);
}

static OWN void placeholder_split(void)
{
	char *at = placeholder(__func__, 4 * SLOT);

	if (!at)
		return;
	split(at + SLOT, SLOT, PRESERVE);
	replace(at + SLOT, SLOT);
	split(at, SLOT, 0); // the first part goes
}

static OWN void placeholder_back(void)
{
	char *at = placeholder(__func__, 2 * SLOT);

	if (!at)
		return;
	replace(at, 2 * SLOT);
	split(at, 2 * SLOT, PRESERVE);
}

static OWN void placeholder_whole(void)
{
	char *at = placeholder(__func__, 3 * SLOT);

	if (!at)
		return;
	split(at, SLOT, PRESERVE);
	split(at, 3 * SLOT, COALESCE);
	replace(at, 3 * SLOT);
}

// ---- Sections ----

static HANDLE section(ULONG bytes, ULONG kind)
{
	return CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE | kind, 0, bytes,
				  NULL);
}

static OWN void view_plain(void)
{
	HANDLE handle = section(4 * SLOT, SEC_COMMIT);

	KEEP(MapViewOfFile(handle, FILE_MAP_WRITE, 0, SLOT, 2 * SLOT), 2 * SLOT);
	CloseHandle(handle);
}

static OWN void view_reserved(void)
{
	HANDLE handle = section(4 * SLOT, SEC_RESERVE);
	char *at = MapViewOfFile(handle, FILE_MAP_WRITE, 0, 0, 0);

	KEEP(at, 4 * SLOT);
	VirtualAlloc(at + SLOT, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE);
}

static OWN void view_gone(void)
{
	HANDLE handle = section(2 * SLOT, SEC_COMMIT);
	char *at = MapViewOfFile(handle, FILE_MAP_WRITE, 0, 0, 0);

	KEEP(at, 2 * SLOT);
	nt_unmap(GetCurrentProcess(), at + SLOT); // any address of it
}

static OWN void view_by_nt(void)
{
	HANDLE handle = section(2 * SLOT, SEC_COMMIT);
	SIZE_T bytes = 0;
	void *at = NULL;

	nt_map(handle, GetCurrentProcess(), &at, 0, 0, NULL, &bytes, 2, MEM_TOP_DOWN,
	       PAGE_READWRITE);
	KEEP(at, 2 * SLOT);
}

static OWN void view_in_placeholder(void)
{
	HANDLE handle = section(2 * SLOT, SEC_COMMIT);
	char *at = placeholder(__func__, 2 * SLOT);
	void *view = at;
	SIZE_T bytes = 2 * SLOT;

	if (!at || !nt_map_ex || !nt_unmap_ex)
		return;
	if (nt_map_ex(handle, GetCurrentProcess(), &view, NULL, &bytes, REPLACE, PAGE_READWRITE,
		      NULL, 0) < 0) {
		printf("vm: failed view\n");
		return;
	}
	if (nt_unmap_ex(GetCurrentProcess(), view, PRESERVE) < 0)
		printf("vm: failed view\n");
}

// ---- Handles ----

static OWN void own_handle(void)
{
	HANDLE self = OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId());
	char *at = VirtualAllocEx(self, NULL, 11 * PAGE, MEM_COMMIT, PAGE_READWRITE);

	KEEP(at, 11 * PAGE);
	VirtualFreeEx(self, at, PAGE, MEM_DECOMMIT);
	CloseHandle(self);
}

static OWN void another(char *own)
{
	STARTUPINFOA startup = { .cb = sizeof startup };
	PROCESS_INFORMATION child;
	char command[MAX_PATH + 16];
	void *at;

	snprintf(command, sizeof command, "\"%s\" child", own);
	if (!CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &child)) {
		printf("vm: another no\n");
		return;
	}
	at = VirtualAllocEx(child.hProcess, NULL, 100 * SLOT, MEM_COMMIT | MEM_RESERVE,
			    PAGE_READWRITE);
	elsewhere += at != NULL;
	elsewhere += VirtualFreeEx(child.hProcess, at, SLOT, MEM_DECOMMIT) != 0;
	TerminateProcess(child.hProcess, 3);
	WaitForSingleObject(child.hProcess, INFINITE);
}

// ---- What must fail, and change nothing ----

static OWN void refused(void)
{
	void *at = VirtualAlloc(NULL, 2 * SLOT, MEM_RESERVE, PAGE_NOACCESS);
	void *none = (void *)(ULONG_PTR)0x10;
	SIZE_T bytes = PAGE;
	DWORD old;

	KEEP(at, 2 * SLOT);
	VirtualAlloc(at, SLOT, MEM_RESERVE, PAGE_NOACCESS); // taken already
	VirtualAlloc(NULL, 0, MEM_COMMIT, PAGE_READWRITE);
	VirtualAlloc(NULL, PAGE, MEM_COMMIT, 0);
	VirtualProtect(at, PAGE, PAGE_READWRITE, &old); // not committed
	nt_unmap(GetCurrentProcess(), at);              // no view
	nt_unmap(GetCurrentProcess(), NULL);
	nt_allocate(GetCurrentProcess(), NULL, 0, &bytes, MEM_COMMIT, PAGE_READWRITE);
	nt_allocate(GetCurrentProcess(), &none, 0, (SIZE_T *)(ULONG_PTR)0x20, MEM_COMMIT,
		    PAGE_READWRITE);
	nt_free(GetCurrentProcess(), (void **)(ULONG_PTR)0x30, &bytes, MEM_RELEASE);
	nt_free((HANDLE)(ULONG_PTR)0x7770, &at, &bytes, MEM_RELEASE); // nobody's handle
}

// ---- The walk ----

static void tell(const char *name, char *start, size_t bytes)
{
	size_t reserved = 0, committed = 0;
	MEMORY_BASIC_INFORMATION region;

	for (char *at = start; at < start + bytes && VirtualQuery(at, &region, sizeof region);) {
		char *end = (char *)region.BaseAddress + region.RegionSize;
		size_t part = (size_t)((end < start + bytes ? end : start + bytes) - at);

		reserved += region.State != MEM_FREE ? part : 0;
		committed += region.State == MEM_COMMIT ? part : 0;
		at += part;
	}
	printf("vm: %s %llx %llx %llx %llx\n", name, (unsigned long long)(size_t)start,
	       (unsigned long long)bytes, (unsigned long long)reserved,
	       (unsigned long long)committed);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		Sleep(60000);
		return 0;
	}
	nt_find_all();
	commit_alone();
	commit_odd();
	commit_by_nt();
	commit_unreadable();
	commit_read_only();
	commit_parts();
	write_watch();
	low_address();
	protect_parts();
	unused_again();
	decommit_part();
	decommit_all();
	release_all();
	release_part();
	placeholder_plain();
	placeholder_split();
	placeholder_back();
	placeholder_whole();
	view_plain();
	view_reserved();
	view_gone();
	view_by_nt();
	view_in_placeholder();
	own_handle();
	another(argv[0]);
	refused();
	// Here all is known by the calls alone: the recorder walks when a second has passed.
	tidemark_mark("done");
	for (int i = 0; i < entries_count; i++)
		if (entries[i].at)
			tell(entries[i].name, entries[i].at, entries[i].bytes);
	printf("vm: elsewhere %u\n", elsewhere);
	fflush(stdout);
	return 0;
}
