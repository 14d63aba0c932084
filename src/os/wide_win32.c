// For example a path of 300 characters, C:/a/…/b.tide: slashes become backslashes, it is made whole
// (GetFullPathNameW), and \\?\ comes in front, which lets Windows take up to 32,767 characters. 12
// characters are kept free below MAX_PATH (260): a folder must leave room for a short name in it.
#include "os/wide_win32.h"

#include "base/mem.h"

#include <string.h>
#include <wchar.h>
#include <windows.h>

uint16_t *wide_new(const char *text)
{
	// Asked twice: for the number of units, its end included, and for the units.
	int count = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
	uint16_t *wide = mem_alloc((size_t)count + 1, sizeof *wide);

	MultiByteToWideChar(CP_UTF8, 0, text, -1, (wchar_t *)wide, count);
	return wide;
}

// Longer paths need the prefix \\?\, which takes no '/' and no relative path: so it is made whole
// first.
uint16_t *wide_new_path(const char *path)
{
	uint16_t *wide = wide_new(path), *whole;
	DWORD count;

	for (uint16_t *at = wide; *at; at++)
		if (*at == '/')
			*at = '\\';
	// Devices and short paths are taken as they are.
	if (wcslen((wchar_t *)wide) < MAX_PATH - 12 || wide[0] == '\\')
		return wide;
	count = GetFullPathNameW((wchar_t *)wide, 0, NULL, NULL);
	whole = mem_alloc((size_t)count + 8, sizeof *whole);
	memcpy(whole, L"\\\\?\\", 4 * sizeof *whole);
	GetFullPathNameW((wchar_t *)wide, count, (wchar_t *)whole + 4, NULL);
	mem_free(wide);
	return whole;
}

void wide_add(struct str *out, const uint16_t *units, size_t count)
{
	int size;
	char *text;

	if (count == 0)
		return;
	// A unit of 16 bits is at most three bytes of UTF-8; two that make one character are four.
	size = WideCharToMultiByte(CP_UTF8, 0, (const wchar_t *)units, (int)count, NULL, 0, NULL,
				   NULL);
	text = mem_alloc((size_t)size + 1, 1);
	WideCharToMultiByte(CP_UTF8, 0, (const wchar_t *)units, (int)count, text, size, NULL, NULL);
	str_add_bytes(out, text, (size_t)size);
	mem_free(text);
}
