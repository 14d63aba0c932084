// library_win32: LoadLibrary. A handle is given out as it is.
#include "os/library.h"

#include "base/mem.h"
#include "os/wide_win32.h"

#include <windows.h>

struct library *library_open(const char *name, struct str *why)
{
	uint16_t *wide = wide_new(name);
	HMODULE handle = LoadLibraryW((const wchar_t *)wide);

	if (!handle)
		str_format(why, "%s: error %lu", name, GetLastError());
	mem_free(wide);
	return (struct library *)handle;
}

void library_name(const char *name, struct str *file)
{
	str_format(file, "%s.dll", name);
}

void *library_find(struct library *library, const char *name)
{
	FARPROC found = GetProcAddress((HMODULE)library, name);
	// By memcpy: C has no cast from a pointer to a function to one to an object.
	void *address;

	memcpy(&address, &found, sizeof address);
	return address;
}
