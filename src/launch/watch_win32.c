// A program of 32 bits looks at another view of the registry than one of 64 (WOW6432Node); for this
// key both show the same on most systems, but not all: so each is written, read and removed.
//
// For example `tidemark watch app.exe -o C:\t\%e.%p.tide` writes, as the value Debugger of the key
// app.exe,
//
//     "C:\bin\tidemark.exe" watched "C:\t\%e.%p.tide"
//
// A value that has no such words is another debugger's, and is not touched.
#include "launch/watch_win32.h"

#include "base/str.h"
#include "os/wide_win32.h"

#include <string.h>
#include <windows.h>

enum { TEXT_MAX = 4096 };

static const char place[] =
	"Software\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options";
static const char infix[] = "\" watched \"";

static const REGSAM views[] = { KEY_WOW64_64KEY, KEY_WOW64_32KEY };

static bool refused(LSTATUS status, const char *what, struct err *err)
{
	if (status == ERROR_ACCESS_DENIED)
		return err_set(err, ERR_IO, "%s: this needs an administrator", what);
	return err_set(err, ERR_IO, "%s (error %ld)", what, (long)status);
}

static bool check_name(const char *name, struct err *err)
{
	// The key is the name of a file without folders, so one name watches all programs of that
	// name.
	size_t length = strlen(name);

	if (length > 4 && length < MAX_PATH && !strpbrk(name, "\\/:*?\"<>|") &&
	    _stricmp(name + length - 4, ".exe") == 0)
		return true;
	return err_set(err, ERR_USAGE,
		       "%s: the name of an image is that of its file alone, as in editor.exe",
		       name);
}

static bool widen(const char *text, wchar_t *wide, int room)
{
	return MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, room) > 0;
}

static LSTATUS open_key(const char *name, REGSAM access, bool create, HKEY *opened)
{
	struct str key = { 0 };
	wchar_t path[TEXT_MAX];
	LSTATUS status = ERROR_INVALID_NAME;

	str_format(&key, "%s\\%s", place, name);
	if (widen(str_get(&key), path, TEXT_MAX))
		status = create ? RegCreateKeyExW(HKEY_LOCAL_MACHINE, path, 0, NULL, 0, access,
						  NULL, opened, NULL)
				: RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, access, opened);
	str_fini(&key);
	return status;
}

// The debugger of an image in a view. False: it has none.
static bool debugger_of(const char *name, REGSAM view, struct str *text)
{
	wchar_t units[TEXT_MAX];
	// Room for an end is kept back: a value of the registry need not have one.
	DWORD size = sizeof units - sizeof *units, type = 0;
	LSTATUS status;
	HKEY opened;

	str_clear(text);
	if (open_key(name, KEY_QUERY_VALUE | view, false, &opened) != ERROR_SUCCESS)
		return false;
	memset(units, 0, sizeof units);
	status = RegQueryValueExW(opened, L"Debugger", NULL, &type, (BYTE *)units, &size);
	RegCloseKey(opened);
	if (status != ERROR_SUCCESS || type != REG_SZ)
		return false;
	wide_add(text, (const uint16_t *)units, wcslen(units));
	return true;
}

// What our command writes to, or NULL: it is not ours.
static const char *pattern_in(struct str *debugger)
{
	char *pattern = strstr(debugger->text, infix);
	char *end;

	// Both have to be there: the words that we write and our name.
	if (!pattern || !strstr(debugger->text, "tidemark"))
		return NULL;
	pattern += strlen(infix);
	end = strrchr(pattern, '"');
	if (end)
		*end = 0;
	return pattern;
}

// The whole path: the process that starts the program is somewhere else.
static bool make_command(const char *pattern, struct str *command, struct err *err)
{
	static wchar_t own[TEXT_MAX], wanted[TEXT_MAX], whole[TEXT_MAX];
	DWORD length = GetModuleFileNameW(NULL, own, TEXT_MAX);

	if (!pattern)
		pattern = "tidemark.%e.%p.%n.tide";
	if (length == 0 || length >= TEXT_MAX)
		return err_set(err, ERR_IO, "our own path is too long");
	length = widen(pattern, wanted, TEXT_MAX) ? GetFullPathNameW(wanted, TEXT_MAX, whole, NULL)
						  : 0;
	if (length == 0 || length >= TEXT_MAX || wcschr(whole, '"'))
		return err_set(err, ERR_USAGE, "%s: not a file's name", pattern);
	str_add(command, "\"");
	wide_add(command, (const uint16_t *)own, wcslen(own));
	str_add(command, infix);
	wide_add(command, (const uint16_t *)whole, wcslen(whole));
	str_add(command, "\"");
	if (command->length < TEXT_MAX)
		return true;
	return err_set(err, ERR_USAGE, "%s: the path is too long", pattern);
}

static LSTATUS write_debugger(const char *name, REGSAM view, const struct str *command)
{
	wchar_t units[TEXT_MAX];
	LSTATUS status;
	HKEY opened;

	if (!widen(str_get(command), units, TEXT_MAX))
		return ERROR_INVALID_DATA;
	status = open_key(name, KEY_SET_VALUE | view, true, &opened);
	if (status != ERROR_SUCCESS)
		return status;
	status = RegSetValueExW(opened, L"Debugger", 0, REG_SZ, (const BYTE *)units,
				(DWORD)((wcslen(units) + 1) * sizeof *units));
	RegCloseKey(opened);
	return status;
}

// Both views are looked at before one is written, so that another's debugger in the second leaves
// the first as it was.
bool watch_on(const char *name, const char *pattern, struct err *err)
{
	struct str command = { 0 }, found = { 0 };
	bool good = check_name(name, err);

	for (size_t i = 0; good && i < 2; i++)
		if (debugger_of(name, views[i], &found) && !pattern_in(&found))
			good = err_set(err, ERR_IO, "%s has another debugger already: %s", name,
				       str_get(&found));
	good = good && make_command(pattern, &command, err);
	for (size_t i = 0; good && i < 2; i++) {
		LSTATUS status = write_debugger(name, views[i], &command);

		good = status == ERROR_SUCCESS || refused(status, "cannot write the registry", err);
	}
	STR_FINI(&command, &found);
	return good;
}

// Take our value away, and the key if nothing else is in it: others keep their settings for the
// image there.
static LSTATUS remove_debugger(const char *name, REGSAM view)
{
	DWORD keys = 0, values = 0;
	wchar_t units[MAX_PATH];
	LSTATUS status;
	HKEY opened;

	status = open_key(name, KEY_SET_VALUE | KEY_QUERY_VALUE | view, false, &opened);
	if (status != ERROR_SUCCESS)
		return status;
	status = RegDeleteValueW(opened, L"Debugger");
	RegQueryInfoKeyW(opened, NULL, NULL, NULL, &keys, NULL, NULL, &values, NULL, NULL, NULL,
			 NULL);
	RegCloseKey(opened);
	// What else is under the key is somebody's: it stays, and so does the key.
	if (status != ERROR_SUCCESS || keys > 0 || values > 0 || !widen(name, units, MAX_PATH))
		return status;
	status =
		RegOpenKeyExA(HKEY_LOCAL_MACHINE, place, 0, KEY_ENUMERATE_SUB_KEYS | view, &opened);
	if (status == ERROR_SUCCESS) {
		status = RegDeleteKeyExW(opened, units, view, 0);
		RegCloseKey(opened);
	}
	return status;
}

bool watch_off(const char *name, struct err *err)
{
	struct str found = { 0 };
	bool watched = false, good = check_name(name, err);

	for (size_t i = 0; good && i < 2; i++) {
		LSTATUS status;

		if (!debugger_of(name, views[i], &found) || !pattern_in(&found))
			continue;
		watched = true;
		status = remove_debugger(name, views[i]);
		good = status == ERROR_SUCCESS || refused(status, "cannot write the registry", err);
	}
	str_fini(&found);
	if (good && !watched)
		return err_set(err, ERR_USAGE, "%s is not watched", name);
	return good;
}

// Of the view for 64 bits alone, as watch_on writes both.
void watch_list(void (*show)(void *context, const char *name, const char *pattern), void *context)
{
	struct str name = { 0 }, found = { 0 };
	wchar_t units[MAX_PATH];
	HKEY opened;

	if (RegOpenKeyExA(HKEY_LOCAL_MACHINE, place, 0, KEY_ENUMERATE_SUB_KEYS | views[0],
			  &opened) != ERROR_SUCCESS)
		return;
	for (DWORD i = 0;; i++) {
		DWORD length = MAX_PATH;
		const char *pattern;

		if (RegEnumKeyExW(opened, i, units, &length, NULL, NULL, NULL, NULL) !=
		    ERROR_SUCCESS)
			break;
		str_clear(&name);
		wide_add(&name, (const uint16_t *)units, length);
		pattern = debugger_of(str_get(&name), views[0], &found) ? pattern_in(&found) : NULL;
		if (pattern)
			show(context, str_get(&name), pattern);
	}
	RegCloseKey(opened);
	STR_FINI(&name, &found);
}
