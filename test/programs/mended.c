// Reads 300 requests, each of two fields, and answers them. Built as it was, it never frees the
// first field: 300 blocks of 64 bytes are left. Built with MENDED it frees it, has lines more in
// front, so that all line numbers differ, and a function that was not there before.
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 300 };

struct request {
	char *name, *body;
};

#ifdef MENDED
// This comment, and what follows, is here to move every line below it.
//
//
__attribute__((noinline)) static char *journal(void)
{
	return malloc(5000);
}
#endif

__attribute__((noinline)) static char *read_name(void)
{
	return malloc(64);
}

__attribute__((noinline)) static char *read_body(int number)
{
	return malloc(100 + (size_t)number);
}

__attribute__((noinline)) static void answer(int number)
{
	struct request request = { read_name(), read_body(number) };
	char *text = malloc(1000);

	memset(text, 0, 1000);
	free(text);
	free(request.body);
#ifdef MENDED
	free(request.name);
#endif
}

int main(void)
{
#ifdef MENDED
	char *pages = journal();

	pages[0] = 0;
#endif
	for (int number = 0; number < REQUESTS; number++)
		answer(number);
	return 0;
}
