// early_late: allocates before main and after it, wherever code can run.
//
//     early_late LIBRARY
//
// Blocks kept, ten each: in .preinit_array 7301 bytes, in a constructor 7302, in main 7303, in the
// init function of LIBRARY while it is opened 7304, in its function 7305, in its fini while it is
// closed 7306, in an atexit handler 7307, in a destructor 7308, in an IFUNC resolver none.
#include "guest.h"

#include <dlfcn.h>

static void keep(size_t size)
{
	for (int i = 0; i < 10; i++)
		guest_keep(size);
}

static void before_everything(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	keep(7301);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const preinit)(int, char **, char **) = before_everything;

__attribute__((constructor)) static void constructor(void)
{
	keep(7302);
}

static void at_exit(void)
{
	keep(7307);
}

__attribute__((destructor)) static void destructor(void)
{
	keep(7308);
}

int main(int argc, char **argv)
{
	void *library;
	void (*work)(void);

	atexit(at_exit);
	keep(7303);
	if (argc < 2)
		return 0;
	library = dlopen(argv[1], RTLD_NOW);
	guest_check(library != NULL, "dlopen");
	work = (void (*)(void))dlsym(library, "library_work");
	guest_check(work != NULL, "dlsym");
	work();
	guest_check(dlclose(library) == 0, "dlclose");
	return 0;
}
