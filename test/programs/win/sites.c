// Allocates 10 blocks of 3000 bytes and more at one site, through an inlined function, and keeps
// them. To be said of it: keep < via (inlined) < work < main.
#include <stdlib.h>

__attribute__((noinline)) static void *keep(size_t size)
{
	void *block = malloc(size);

	*(volatile char *)block = 1;
	return block;
}

static inline __attribute__((always_inline)) void *via(size_t size)
{
	return keep(3 * size);
}

__attribute__((noinline)) void work(void)
{
	for (size_t i = 0; i < 10; i++)
		*(volatile char *)via(1000 + i) = 2;
}

int main(void)
{
	work();
	return 0;
}
