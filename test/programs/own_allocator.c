// own_allocator: calls an allocator that nobody exports, under whatever names it has (OWN), and one
// call of the C library's. Built by test/guest/hidden.py as a program and as a plug-in.
//
// By each function blocks of sizes of their own: 1000 of 7801 bytes, one each of 7802, 7803, 7808,
// 7903 and 70903; all are freed. The C library's malloc: one of 7811.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OWN

void *OWN(malloc)(size_t size);
void *OWN(calloc)(size_t count, size_t size);
void *OWN(realloc)(void *ptr, size_t size);
void *OWN(memalign)(size_t alignment, size_t size);
void OWN(free)(void *ptr);

void own_work(void);
void own_work(void)
{
	void *ptr;

	for (int i = 0; i < 1000; i++)
		OWN(free)(OWN(malloc)(7801));
	OWN(free)(OWN(calloc)(1, 7802));
	ptr = OWN(realloc)(OWN(malloc)(7803), 7903);
	OWN(free)(OWN(realloc)(ptr, 70903));
	OWN(free)(OWN(memalign)(64, 7808));
}

#endif

#ifdef OWN_MAIN

#ifndef OWN
// own_allocator HOW TIMES PATH: HOW is dlopen, dlmopen or there (it is loaded already).
static void own_work_of(char **argv)
{
	void *library = RTLD_DEFAULT;
	void (*work)(void);

	if (strcmp(argv[1], "there") != 0)
		library = strcmp(argv[1], "dlmopen") == 0 ? dlmopen(LM_ID_NEWLM, argv[3], RTLD_NOW)
							  : dlopen(argv[3], RTLD_NOW);
	if (!library && strcmp(argv[1], "there") != 0) {
		fprintf(stderr, "%s\n", dlerror());
		exit(98);
	}
	*(void **)&work = dlsym(library, "own_work");
	work();
	if (library != RTLD_DEFAULT)
		dlclose(library);
}
#endif

static void *volatile block;

int main(int argc, char **argv)
{
#ifdef OWN
	(void)argc;
	(void)argv;
	own_work();
#else
	for (int i = 0; argc > 2 && i < atoi(argv[2]); i++)
		own_work_of(argv);
#endif
#ifndef OWN_ALONE
	block = malloc(7811);
	free(block);
#endif
	return 0;
}

#endif
