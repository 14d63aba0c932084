// library_posix: dlopen. A handle is given out as it is.
#include "os/library.h"

#include "base/mem.h"

#include <dlfcn.h>

struct library *library_open(const char *name, struct str *why)
{
	// RTLD_NOW: what it lacks fails here, with a message, and not in the middle of work.
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		// It names the file and says what is wrong with it.
		str_add(why, dlerror());
	return handle;
}

void library_name(const char *name, struct str *file)
{
	str_format(file, "lib%s.so", name);
}

void *library_find(struct library *library, const char *name)
{
	ASSERT(library != NULL);
	return dlsym(library, name);
}
