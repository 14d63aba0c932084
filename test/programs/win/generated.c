// What must be said about it: each allocation on its own heap has the stack that the system's own
// RtlCaptureStackBackTrace says, through code that this program generates at run time. It gives the
// system tables of that code in each way that there is: entries in order, entries that grow, and
// functions that are asked. Code is deleted, and other code with other frames comes to its place.
// It prints `stack SIZE PC PC …` for each, and `asked PC` for the start of code whose frames are
// said by a function that waits for a lock: the recorder does not call it: they are guesses.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum {
	DEPTH_MAX = 62,
	CODES = 8,         // pieces of code in an area
	CODE_BYTES = 64,   // of one
	INFOS_AT = 0x1000, // what says how they are unwound
	TABLE_AT = 0x1800,
	AREA_BYTES = 0x2000,
	ROUNDS = 3,
	PLACES = 0x10, // of the walk of a round
	CHURN = 3000,
};

typedef void target(void);
typedef void generated(target *next);

struct area {
	BYTE *at;
	RUNTIME_FUNCTION *table;
	generated *codes[CODES];
};

typedef DWORD(NTAPI *add_growing)(void **, RUNTIME_FUNCTION *, DWORD, DWORD, ULONG_PTR, ULONG_PTR);
typedef void(NTAPI *grow)(void *, DWORD);
typedef void(NTAPI *delete_growing)(void *);

static HANDLE heap;
static volatile LONG next_size = 10000;
static CRITICAL_SECTION lock;
static struct area areas[5];
static unsigned way, depth;

static __attribute__((noinline)) void site(void)
{
	void *frames[DEPTH_MAX];
	char line[DEPTH_MAX * 20 + 64];
	LONG size = InterlockedIncrement(&next_size);
	USHORT count = RtlCaptureStackBackTrace(1, DEPTH_MAX, frames, NULL);
	int at;

	HeapAlloc(heap, 0, (size_t)size);
	at = snprintf(line, sizeof(line), "stack %ld", (long)size);
	for (USHORT i = 0; i < count && frames[i]; i++)
		at += snprintf(line + at, sizeof(line) - (size_t)at, " %llx",
			       (unsigned long long)(size_t)frames[i]);
	puts(line);
}

// rbp leads nowhere in it: push rbp; push rbx; sub rsp,n; mov ebp,1; call rcx; add rsp,n; pop rbx;
// pop rbp; ret.
static void put_without_frame_pointer(BYTE *code, BYTE *info, DWORD bytes)
{
	static const BYTE begin[] = { 0x55, 0x53, 0x48, 0x81, 0xec };
	static const BYTE middle[] = { 0xbd, 1, 0, 0, 0, 0xff, 0xd1, 0x48, 0x81, 0xc4 };
	static const BYTE end[] = { 0x5b, 0x5d, 0xc3 };
	BYTE unwound[] = { 1, 9, 4, 0, 9, 1, 0, 0, 2, 3 << 4, 1, 5 << 4 };

	unwound[6] = (BYTE)(bytes / 8);
	unwound[7] = (BYTE)(bytes / 8 >> 8);
	memcpy(info, unwound, sizeof(unwound));
	memcpy(code, begin, sizeof(begin));
	memcpy(code + 5, &bytes, 4);
	memcpy(code + 9, middle, sizeof(middle));
	memcpy(code + 19, &bytes, 4);
	memcpy(code + 23, end, sizeof(end));
}

// As engines of scripts have it: push rbp; mov rbp,rsp; sub rsp,n; call rcx; leave; ret.
static void put_with_frame_pointer(BYTE *code, BYTE *info, DWORD bytes)
{
	static const BYTE begin[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec };
	static const BYTE end[] = { 0xff, 0xd1, 0xc9, 0xc3 };
	static const BYTE unwound[] = { 1, 4, 2, 5, 4, 3, 1, 5 << 4 };

	memcpy(info, unwound, sizeof(unwound));
	memcpy(code, begin, sizeof(begin));
	memcpy(code + 7, &bytes, 4);
	memcpy(code + 11, end, sizeof(end));
}

// Code, entries and unwind codes of an area; `framed`: with frame pointers.
static void fill(struct area *area, unsigned round, BOOL framed)
{
	memset(area->at, 0xcc, INFOS_AT);
	area->table = (RUNTIME_FUNCTION *)(area->at + TABLE_AT);
	for (DWORD i = 0; i < CODES; i++) {
		DWORD code = i * CODE_BYTES, info = INFOS_AT + i * 32;
		DWORD bytes = 48 + 16 * ((i * 5 + round * 3) % 11);

		if (framed)
			put_with_frame_pointer(area->at + code, area->at + info, bytes);
		else
			put_without_frame_pointer(area->at + code, area->at + info, bytes - 8);
		area->table[i].BeginAddress = code;
		area->table[i].EndAddress = code + CODE_BYTES;
		area->table[i].UnwindData = info;
		area->codes[i] = (generated *)(void *)(area->at + code);
	}
}

static void make(struct area *area)
{
	area->at = VirtualAlloc(NULL, AREA_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
	if (!area->at)
		exit(1);
}

// So simple that anybody may ask.
static __attribute__((noinline)) RUNTIME_FUNCTION *says(DWORD64 pc, void *context)
{
	const struct area *area = context;
	DWORD64 at = (pc - (DWORD64)area->at) / CODE_BYTES;

	return at < CODES ? &area->table[at] : NULL;
}

static __attribute__((noinline)) RUNTIME_FUNCTION *says_locked(DWORD64 pc, void *context)
{
	RUNTIME_FUNCTION *found;

	EnterCriticalSection(&lock);
	found = says(pc, context);
	LeaveCriticalSection(&lock);
	return found;
}

// Some frames of generated code, each with one of ours outside of it.
static __attribute__((noinline)) void descend(void)
{
	unsigned which = depth * 7 + way * 3;

	if (depth == 0) {
		site();
		return;
	}
	depth--;
	areas[way].codes[which % CODES](descend);
	depth++;
}

static void walk(void)
{
	for (depth = 0; depth < PLACES; depth++)
		descend();
	depth = 0;
}

// Tables that come and go while other threads walk.
static DWORD WINAPI churn(void *unused)
{
	struct area area;

	(void)unused;
	make(&area);
	for (unsigned i = 0; i < CHURN; i++) {
		fill(&area, i, FALSE);
		RtlAddFunctionTable(area.table, CODES, (DWORD64)area.at);
		free(malloc(16));
		area.codes[i % CODES]((target *)(void *)GetCurrentThreadId);
		RtlDeleteFunctionTable(area.table);
	}
	return 0;
}

int main(void)
{
	HMODULE ntdll = GetModuleHandleA("ntdll.dll");
	add_growing add = (add_growing)(void *)GetProcAddress(ntdll, "RtlAddGrowableFunctionTable");
	grow more = (grow)(void *)GetProcAddress(ntdll, "RtlGrowFunctionTable");
	delete_growing gone =
		(delete_growing)(void *)GetProcAddress(ntdll, "RtlDeleteGrowableFunctionTable");
	HANDLE thread;
	void *handle;

	heap = HeapCreate(0, 0, 0);
	printf("heap %llx\n", (unsigned long long)(size_t)heap);
	InitializeCriticalSection(&lock);
	for (unsigned i = 0; i < 5; i++)
		make(&areas[i]);
	thread = CreateThread(NULL, 0, churn, NULL, 0, NULL);
	for (unsigned round = 0; round < ROUNDS; round++) {
		way = 0;
		fill(&areas[0], round, round & 1);
		RtlAddFunctionTable(areas[0].table, CODES, (DWORD64)areas[0].at);
		walk();
		RtlDeleteFunctionTable(areas[0].table);

		way = 1;
		fill(&areas[1], round, round & 1);
		add(&handle, areas[1].table, CODES / 2, CODES, (ULONG_PTR)areas[1].at,
		    (ULONG_PTR)areas[1].at + INFOS_AT);
		more(handle, CODES);
		walk();
		gone(handle);

		way = 2;
		fill(&areas[2], round, round & 1);
		RtlInstallFunctionTableCallback((DWORD64)areas[2].at | 3, (DWORD64)areas[2].at,
						INFOS_AT, says, &areas[2], NULL);
		walk();
		// The same table, other code.
		VirtualProtect(areas[2].at, AREA_BYTES, PAGE_READWRITE, &(DWORD){ 0 });
		fill(&areas[2], round + 5, FALSE);
		VirtualProtect(areas[2].at, AREA_BYTES, PAGE_EXECUTE_READWRITE, &(DWORD){ 0 });
		walk();
		RtlDeleteFunctionTable((RUNTIME_FUNCTION *)((DWORD64)areas[2].at | 3));

		way = 3;
		if (!round)
			printf("asked %llx\n", (unsigned long long)(size_t)areas[3].at);
		fill(&areas[3], round, TRUE);
		RtlInstallFunctionTableCallback((DWORD64)areas[3].at | 3, (DWORD64)areas[3].at,
						INFOS_AT, says_locked, &areas[3], NULL);
		EnterCriticalSection(&lock); // by another thread it would be waited for
		walk();
		LeaveCriticalSection(&lock);
		RtlDeleteFunctionTable((RUNTIME_FUNCTION *)((DWORD64)areas[3].at | 3));
	}
	// A table that nobody deletes, whose memory is given back and taken again.
	way = 4;
	fill(&areas[4], 1, FALSE);
	RtlAddFunctionTable(areas[4].table, CODES, (DWORD64)areas[4].at);
	walk();
	WaitForSingleObject(thread, INFINITE);
	VirtualFree(areas[4].at, 0, MEM_RELEASE);
	return 0;
}
