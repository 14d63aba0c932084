#include "launch/program.h"

#include <windows.h>

enum { PATHS_MAX = 32768 };

// As CreateProcess looks for one: the program's folder, the current one, the system's, then PATH.
// A name without an ending may be one of those that cmd.exe tries, too: npm is npm.cmd.
enum program_found program_find(const char *name, const char *, struct str *path, struct err *err)
{
	static wchar_t wanted[PATHS_MAX], found[PATHS_MAX]; // the launcher's only thread
	static char bytes[3 * PATHS_MAX];
	static const wchar_t *const endings[] = { L".exe", L".com", L".bat", L".cmd" };
	DWORD attributes, length = 0;

	str_clear(path);
	if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, -1, wanted, PATHS_MAX)) {
		err_set(err, ERR_USAGE, "%s: not a program's name", name);
		return PROGRAM_MISSING;
	}
	for (size_t i = 0; length == 0 && i < sizeof endings / sizeof *endings; i++)
		length = SearchPathW(NULL, wanted, endings[i], PATHS_MAX, found, NULL);
	if (length == 0 || length >= PATHS_MAX) {
		err_set(err, ERR_USAGE, "%s: no such program", name);
		return PROGRAM_MISSING;
	}
	if (!WideCharToMultiByte(CP_UTF8, 0, found, -1, bytes, sizeof bytes, NULL, NULL)) {
		err_set(err, ERR_USAGE, "%s: the path is too long", name);
		return PROGRAM_MISSING;
	}
	str_add(path, bytes);
	attributes = GetFileAttributesW(found);
	if (attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_DIRECTORY))
		return PROGRAM_FOUND;
	err_set(err, ERR_USAGE, "%s: cannot be executed", name);
	return PROGRAM_REFUSED;
}
