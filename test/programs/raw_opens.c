// raw_opens: opens and closes a library that makes its calls on virtual memory itself, while
// another thread opens and closes one that makes none.
//
//     raw_opens LIBRARY OTHER
//
// 40 times the library maps 77 pages, and unmaps them.
#include "guest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

enum { TIMES = 40, BYTES = 77 * 4096 };

static _Atomic int over;

static void *open_other(void *path)
{
	while (!over) {
		void *library = dlopen(path, RTLD_NOW);

		guest_check(library != NULL && dlclose(library) == 0, "the other library");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	guest_check(argc == 3, "needs two libraries");
	guest_check(pthread_create(&thread, NULL, open_other, argv[2]) == 0, "pthread_create");
	for (int i = 0; i < TIMES; i++) {
		void *library = dlopen(argv[1], RTLD_NOW);
		char *(*take)(size_t);
		long (*give)(void *, size_t);
		char *at;

		guest_check(library != NULL, "dlopen");
		*(void **)&take = dlsym(library, "raw_take");
		*(void **)&give = dlsym(library, "raw_give");
		at = take(BYTES);
		guest_check((unsigned long)at < -4096ul, "mmap of its own");
		at[0] = at[BYTES - 1] = 1;
		guest_check(give(at, BYTES) == 0, "munmap of its own");
		guest_check(dlclose(library) == 0, "dlclose");
	}
	over = 1;
	pthread_join(thread, NULL);
	return 0;
}
