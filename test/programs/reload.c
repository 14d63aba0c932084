// reload: closes a library and opens another at the same address, and calls both 3,000 times.
//
//     reload FIRST SECOND [ROUNDS]
//
// The libraries differ in one name alone: each keeps blocks of 7401 bytes through a function of
// its own. Three rounds, or ROUNDS of one call. Prints at how many of the changes the second came
// to lie where the first had been. Each call belongs to the library whose code it is.
#include "guest.h"

#include <dlfcn.h>

static uintptr_t use(const char *path, int calls)
{
	void *library = dlopen(path, RTLD_NOW);
	void *(*work)(size_t);
	uintptr_t at;

	guest_check(library != NULL, "dlopen");
	*(void **)&work = dlsym(library, "plugin_work");
	guest_check(work != NULL, "dlsym");
	for (int i = 0; i < calls; i++)
		guest_check(work(7401) != NULL, "plugin");
	at = (uintptr_t)work;
	guest_check(dlclose(library) == 0, "dlclose");
	return at;
}

int main(int argc, char **argv)
{
	int same = 0, rounds = argc > 3 ? atoi(argv[3]) : 3, calls = argc > 3 ? 1 : 1000;

	guest_check(argc >= 3, "needs two libraries");
	for (int i = 0; i < rounds; i++)
		same += use(argv[1], calls) == use(argv[2], calls);
	guest_say("%d\n", same);
	return 0;
}
