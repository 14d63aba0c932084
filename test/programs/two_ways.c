// two_ways: goes 1 to 16 frames down from one of two calls in one function, 40,000 times by chance,
// and takes and frees 7608 bytes there. Nothing depends on rbp, so that what the recorder keeps of
// inner frames is found again. Prints how many blocks it took.
#include "guest.h"

enum { ROUNDS = 40000 };

static __attribute__((noinline)) void go_down(unsigned depth)
{
	if (depth > 1)
		go_down(depth - 1);
	else
		guest_pair(7608);
	__asm__ volatile("" : : : "memory");
}

// The frames of both ways are at the same places; only the return address to here differs.
static __attribute__((noinline)) void go_one_way(int way, unsigned depth)
{
	if (way) {
		go_down(depth);
		__asm__ volatile("# one way" : : : "memory");
	} else {
		go_down(depth);
		__asm__ volatile("# the other way" : : : "memory");
	}
}

int main(void)
{
	static const unsigned depths[] = { 1, 4, 8, 9, 12, 16 };
	unsigned chance = 1;

	for (int i = 0; i < ROUNDS; i++) {
		chance = chance * 1103515245 + 12345;
		go_one_way(chance >> 30 & 1, depths[(chance >> 16) % 6]);
	}
	guest_say("%d\n", ROUNDS);
	return 0;
}
