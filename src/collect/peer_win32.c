// What the collector asks of another process, by its handle. A pid alone says nothing once the
// process has ended, since Windows gives it out again soon; a waiter for an end therefore
// keeps a handle, where Linux has a pidfd. The words of a command line are one text in the
// process, which is parted as its own C runtime does; the table of words and their texts are one
// allocation here, so that one mem_free frees all: for 2 words of 3 letters in UTF-8, 16 bytes of
// pointers, then 4 + 4 of text.
#include "collect/peer.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/wide_win32.h"

#include <string.h>
#include <windows.h>

#include <psapi.h>
#include <shellapi.h>
#include <winternl.h>

enum {
	ASK_COMMAND_LINE = 60, // of NtQueryInformationProcess, since Windows 8.1
	COMMAND_BYTES_MAX = 65536 + sizeof(UNICODE_STRING),
	HEADERS_BYTES = 4096,
};

static HANDLE open_process(uint32_t pid)
{
	return OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
}

int peer_pidfd(int, uint32_t pid)
{
	HANDLE process = OpenProcess(SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);

	return process ? (int)(intptr_t)process : -1;
}

bool peer_ended(int pidfd)
{
	return WaitForSingleObject((HANDLE)(intptr_t)pidfd, 0) == WAIT_OBJECT_0;
}

bool peer_shut_out(uint32_t pid)
{
	(void)pid;
	return false;
}

bool peer_held(uint32_t pid)
{
	(void)pid;
	return false;
}

void peer_close(int pidfd)
{
	if (pidfd > 0)
		CloseHandle((HANDLE)(intptr_t)pidfd);
}

uint32_t peer_parent(uint32_t pid)
{
	PROCESS_BASIC_INFORMATION information = { 0 };
	HANDLE process = open_process(pid);

	if (process == NULL)
		return 0;
	NtQueryInformationProcess(process, ProcessBasicInformation, &information,
				  sizeof information, NULL);
	CloseHandle(process);
	return (uint32_t)information.InheritedFromUniqueProcessId;
}

// As one allocation: the table, then the texts.
static char **join(wchar_t *const *words, int count)
{
	struct str text = { 0 };
	char **args, *at;

	for (int i = 0; i < count; i++) {
		wide_add(&text, (const uint16_t *)words[i], wcslen(words[i]));
		str_add_char(&text, 0);
	}
	args = mem_alloc((size_t)count * sizeof *args + text.length + 1, 1);
	at = (char *)(args + count);
	if (text.length > 0)
		memcpy(at, text.text, text.length);
	for (int i = 0; i < count; i++) {
		args[i] = at;
		at += strlen(at) + 1;
	}
	str_fini(&text);
	return args;
}

// No process comes without being invited, so none is looked for.
uint32_t peer_find(const struct peer_wanted *)
{
	return 0;
}

bool peer_has_mapped(const struct peer_wanted *, int)
{
	return true;
}

char **peer_args(uint32_t pid, uint32_t *count)
{
	HANDLE process = open_process(pid);
	UNICODE_STRING *line = mem_alloc(1, COMMAND_BYTES_MAX + sizeof(wchar_t));
	wchar_t **words = NULL;
	char **args;
	int found = 0;

	if (process &&
	    NtQueryInformationProcess(process, (PROCESSINFOCLASS)ASK_COMMAND_LINE, line,
				      COMMAND_BYTES_MAX, NULL) == 0 &&
	    line->Length > 0) {
		line->Buffer[line->Length / sizeof(wchar_t)] = 0;
		words = CommandLineToArgvW(line->Buffer, &found);
	}
	if (process)
		CloseHandle(process);
	*count = words ? (uint32_t)found : 0;
	args = join(words, words ? found : 0);
	LocalFree(words);
	mem_free(line);
	return args;
}

bool peer_exit(int pidfd, uint32_t, enum trace_exit *exit, uint32_t *value)
{
	HANDLE process = (HANDLE)(intptr_t)pidfd;
	DWORD code;

	if (pidfd <= 0 || WaitForSingleObject(process, 0) != WAIT_OBJECT_0 ||
	    !GetExitCodeProcess(process, &code))
		return false;
	*exit = TRACE_EXIT_CODE;
	*value = code;
	return true;
}

void peer_decode(int status, enum trace_exit *exit, uint32_t *value)
{
	*exit = TRACE_EXIT_CODE;
	*value = (uint32_t)status;
}

uint64_t peer_resident(uint32_t pid)
{
	PROCESS_MEMORY_COUNTERS counters = { 0 };
	HANDLE process = open_process(pid);

	if (process == NULL)
		return 0;
	if (!GetProcessMemoryInfo(process, &counters, sizeof counters))
		counters.WorkingSetSize = 0;
	CloseHandle(process);
	return counters.WorkingSetSize;
}

// Budgets and the space of addresses are asked of Linux alone: 0 says that it is not known.
uint64_t peer_used_ns(uint32_t)
{
	return 0;
}

bool peer_pages(uint32_t pid, struct peer_pages *pages)
{
	PROCESS_MEMORY_COUNTERS counters = { 0 };
	HANDLE process = open_process(pid);
	bool good = process && GetProcessMemoryInfo(process, &counters, sizeof counters);

	if (process)
		CloseHandle(process);
	// Windows does not tell which of them had to wait for a disk.
	*pages = (struct peer_pages){ .rss = counters.WorkingSetSize,
				      .minor_faults = counters.PageFaultCount };
	return good;
}

uint64_t peer_proportional(uint32_t, struct peer_kinds *kinds)
{
	*kinds = (struct peer_kinds){ 0 };
	return 0; // Windows does not count that
}

bool peer_thread_lives(uint32_t pid, uint32_t tid)
{
	(void)pid, (void)tid;
	return true; // it is not asked for
}

// Of Windows 10 and later; asked for by name, as older systems do not have the function. Cut to 15
// bytes.
bool peer_thread_name(uint32_t, uint32_t tid, char name[16])
{
	typedef HRESULT WINAPI describe(HANDLE thread, PWSTR * text);
	describe *get = (describe *)(void *)GetProcAddress(GetModuleHandleW(L"kernel32"),
							   "GetThreadDescription");
	HANDLE thread;
	struct str text = { 0 };
	wchar_t *wide = NULL;

	thread = get ? OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, tid) : NULL;
	if (thread == NULL)
		return false;
	if (get(thread, &wide) >= 0 && wide) {
		wide_add(&text, (const uint16_t *)wide, wcslen(wide));
		LocalFree(wide);
	}
	CloseHandle(thread);
	memset(name, 0, 16);
	if (text.length > 0)
		memcpy(name, text.text, text.length < 15 ? text.length : 15);
	str_fini(&text);
	return name[0] != 0;
}

// What is known of a PE file without its path: its size in memory, and when it was linked.
// What is known of a PE file without its path: its size in memory, and when it was linked, which
// its headers have and symbol servers ask for.
static void read_headers(const char *path, uint64_t *size, uint64_t *mtime_ns)
{
	uint8_t headers[HEADERS_BYTES] = { 0 };
	IMAGE_DOS_HEADER dos;
	IMAGE_NT_HEADERS32 nt; // SizeOfImage has the same place in both sizes
	int fd = file_open(path, FILE_READ);
	size_t at;

	if (fd < 0)
		return;
	file_read_at(fd, headers, sizeof headers, 0);
	file_close(fd);
	memcpy(&dos, headers, sizeof dos);
	at = (size_t)(uint32_t)dos.e_lfanew;
	if (dos.e_magic != IMAGE_DOS_SIGNATURE || at > sizeof headers - sizeof nt)
		return;
	memcpy(&nt, headers + at, sizeof nt);
	if (nt.Signature != IMAGE_NT_SIGNATURE)
		return;
	*size = nt.OptionalHeader.SizeOfImage;
	*mtime_ns = (uint64_t)nt.FileHeader.TimeDateStamp * 1000000000;
}

static bool is_narrow(uint32_t pid)
{
	HANDLE process = open_process(pid);
	BOOL narrow = FALSE;

	if (process == NULL)
		return false;
	narrow = IsWow64Process(process, &narrow) && narrow;
	CloseHandle(process);
	return narrow;
}

// What a program of 32 bits opens by this path: its system32 is the folder of its size. False: by
// another program's eyes it is the same.
static bool redirect(const char *path, struct str *other)
{
	static const char folder[] = "\\system32\\";
	char windows[3 * MAX_PATH];
	wchar_t wide[MAX_PATH];
	size_t length;

	if (!GetSystemWindowsDirectoryW(wide, MAX_PATH) ||
	    !WideCharToMultiByte(CP_UTF8, 0, wide, -1, windows, sizeof windows, NULL, NULL))
		return false;
	length = strlen(windows);
	if (_strnicmp(path, windows, length) != 0 ||
	    _strnicmp(path + length, folder, sizeof folder - 1) != 0)
		return false;
	str_format(other, "%s\\syswow64\\%s", windows, path + length + sizeof folder - 1);
	return true;
}

// A program of 32 bits sees other system files by the same path: its own are read first.
void peer_file(uint32_t pid, const char *path, struct str *seen, uint64_t *size, uint64_t *mtime_ns)
{
	struct str other = { 0 };

	str_add(seen, path);
	*size = *mtime_ns = 0;
	if (redirect(path, &other) && is_narrow(pid))
		read_headers(other.text, size, mtime_ns);
	if (*size == 0)
		read_headers(path, size, mtime_ns);
	str_fini(&other);
}

bool peer_space(uint32_t, int, int, uint32_t, struct peer_space *space)
{
	*space = (struct peer_space){ 0 };
	return true;
}

uint64_t peer_killed(const struct peer_space *)
{
	return 0;
}
