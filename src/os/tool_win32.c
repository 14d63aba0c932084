#include "os/tool.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/wide_win32.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdatomic.h>
#include <windows.h>

#include <psapi.h>
#include <shellapi.h>

bool tool_find(const char *name)
{
	uint16_t *wide = wide_new(name);
	DWORD length = SearchPathW(NULL, (wchar_t *)wide, L".exe", 0, NULL, NULL);

	mem_free(wide);
	return length > 0;
}

// A word as CommandLineToArgvW takes it apart again: in quotes, with what stands before a quote
// doubled.
// For example a\"b becomes "a\\\"b": a backslash is doubled only where a quote follows it, or the
// word ends.
static void add_word(struct str *line, const char *word)
{
	size_t slashes = 0;

	ASSERT(word != NULL);
	if (line->length > 0)
		str_add_char(line, ' ');
	str_add_char(line, '"');
	for (; *word; word++) {
		slashes = *word == '\\' ? slashes + 1 : 0;
		if (*word == '"')
			str_add_char(line, '\\');
		str_add_char(line, *word);
		if (*word == '\\' && (word[1] == '"' || word[1] == 0))
			for (size_t i = 0; i < slashes; i++)
				str_add_char(line, '\\');
	}
	str_add_char(line, '"');
}

// NUL is inherited as input and output, and the pipe as stderr; without a window, though a console
// program would open one.
static bool start(const char *const *arguments, HANDLE said, PROCESS_INFORMATION *program)
{
	SECURITY_ATTRIBUTES inherited = { sizeof inherited, NULL, TRUE };
	STARTUPINFOW how = { .cb = sizeof how, .dwFlags = STARTF_USESTDHANDLES };
	struct str line = { 0 };
	uint16_t *wide;
	BOOL good;

	// Only handles that may be inherited, and only with bInheritHandles, reach the program.
	how.hStdInput = how.hStdOutput = CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE,
						     FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited,
						     OPEN_EXISTING, 0, NULL);
	how.hStdError = said;
	for (size_t i = 0; arguments[i]; i++)
		add_word(&line, arguments[i]);
	wide = wide_new(str_get(&line));
	good = CreateProcessW(NULL, (wchar_t *)wide, NULL, NULL, TRUE, CREATE_NO_WINDOW, NULL, NULL,
			      &how, program);
	mem_free(wide);
	str_fini(&line);
	CloseHandle(how.hStdInput);
	return good;
}

// As on POSIX: what it says is read to its end, and then its exit code is asked for.
enum tool_result tool_run(const char *const *arguments, struct str *said, struct err *err)
{
	SECURITY_ATTRIBUTES inherited = { sizeof inherited, NULL, TRUE };
	PROCESS_INFORMATION program;
	HANDLE hear, tell;
	struct err ignored;
	DWORD code = 0;
	int fd;

	ASSERT(arguments[0] != NULL);
	if (!CreatePipe(&hear, &tell, &inherited, 0)) {
		err_set(err, ERR_IO, "cannot run %s: there is no pipe", arguments[0]);
		return TOOL_FAILED;
	}
	// Our end must stay ours: a program that had it too would keep the pipe from ending.
	SetHandleInformation(hear, HANDLE_FLAG_INHERIT, 0);
	if (!start(arguments, tell, &program)) {
		code = GetLastError();
		CloseHandle(tell);
		CloseHandle(hear);
		err_set(err, ERR_IO, "cannot run %s: error %lu", arguments[0], code);
		return code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND ? TOOL_MISSING
										    : TOOL_FAILED;
	}
	// The last end to write is the program's from here on, so reading ends when it does.
	CloseHandle(tell);
	CloseHandle(program.hThread);
	fd = _open_osfhandle((intptr_t)hear, _O_BINARY);
	file_read_all(fd, said, &ignored);
	file_close(fd);
	WaitForSingleObject(program.hProcess, INFINITE);
	GetExitCodeProcess(program.hProcess, &code);
	CloseHandle(program.hProcess);
	if (code == 0)
		return TOOL_DONE;
	err_set(err, ERR_IO, "%s ended with exit code %lu", arguments[0], code);
	return TOOL_FAILED;
}

bool tool_opens(void)
{
	USEROBJECTFLAGS flags;

	// A service has a window station that is not shown on any screen.
	return GetUserObjectInformationW(GetProcessWindowStation(), UOI_FLAGS, &flags, sizeof flags,
					 NULL) &&
	       (flags.dwFlags & WSF_VISIBLE);
}

bool tool_open(const char *path, struct err *err)
{
	uint16_t *wide = wide_new(path);
	// Above 32 it is no error, by its description.
	intptr_t done =
		(intptr_t)ShellExecuteW(NULL, L"open", (wchar_t *)wide, NULL, NULL, SW_SHOWNORMAL);

	mem_free(wide);
	return done > 32 || err_set(err, ERR_IO, "cannot open %s: error %d", path, (int)done);
}

bool tool_folder(struct str *path, struct err *err)
{
	// Process ids are used again: where an old folder is in the way, making it fails, with its
	// name.
	static _Atomic unsigned serial;
	wchar_t folder[MAX_PATH + 2];
	DWORD count = GetTempPathW(MAX_PATH + 1, folder);

	wide_add(path, (const uint16_t *)folder, count);
	str_format(path, "tidemark-%u-%u", tool_own_pid(), atomic_fetch_add(&serial, 1));
	if (file_make_folder(str_get(path), true))
		return true;
	err_errno(err, errno, "cannot make %s", str_get(path));
	str_fini(path);
	return false;
}

void tool_folder_leave(struct str *path)
{
	if (path->length > 0)
		file_remove_folder(path->text);
	str_fini(path);
}

uint32_t tool_own_pid(void)
{
	return GetCurrentProcessId();
}

uint64_t tool_own_resident_max(void)
{
	PROCESS_MEMORY_COUNTERS counters;

	return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)
		       ? counters.PeakWorkingSetSize
		       : 0;
}

void tool_leave_preloaded(char **argv)
{
	(void)argv; // there is no such thing
}

// main has the words in the system's code page, which may lack letters of a name: so the line is
// split once more, in 16 bits.
char **tool_arguments(int *argc, char **argv)
{
	wchar_t **words = CommandLineToArgvW(GetCommandLineW(), argc);
	char **arguments;

	if (!words)
		return argv;
	arguments = mem_alloc((size_t)*argc + 1, sizeof *arguments);
	for (int i = 0; i < *argc; i++) {
		struct str text = { 0 };

		// Not given back: words of the command line live as long as the process.
		wide_add(&text, (const uint16_t *)words[i], wcslen(words[i]));
		arguments[i] = str_take(&text);
	}
	LocalFree(words);
	return arguments;
}
