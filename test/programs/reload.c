// reload: closes a library and opens another at the same address, and calls both 3,000 times.
//
//     reload FIRST SECOND
//
// The libraries differ in one name alone: each keeps blocks of 7401 bytes through a function of
// its own. Three rounds. Prints at how many of the changes the second came to lie where the first
// had been. Each call belongs to the library whose code it is.
#include "guest.h"

#include <dlfcn.h>

static uintptr_t use(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void *(*work)(size_t);
	uintptr_t at;

	guest_check(library != NULL, "dlopen");
	*(void **)&work = dlsym(library, "plugin_work");
	guest_check(work != NULL, "dlsym");
	for (int i = 0; i < 1000; i++)
		guest_check(work(7401) != NULL, "plugin");
	at = (uintptr_t)work;
	guest_check(dlclose(library) == 0, "dlclose");
	return at;
}

int main(int argc, char **argv)
{
	int same = 0;

	guest_check(argc == 3, "needs two libraries");
	for (int i = 0; i < 3; i++)
		same += use(argv[1]) == use(argv[2]);
	guest_say("%d\n", same);
	return 0;
}
