// two_frames: two_ways with frame pointers, below two frames of which one is larger the one way and
// the other one the other way. All further in lies at the same places both ways, and so do words
// that were left behind; only saved frame pointers tell which way it is. Prints how many blocks of
// 7609 bytes it took.
#include "guest.h"

#include <alloca.h>

enum { ROUNDS = 40000, SMALL_BYTES = 64, LARGE_BYTES = 192 };

static __attribute__((noinline)) void go_down(unsigned depth)
{
	if (depth > 1)
		go_down(depth - 1);
	else
		guest_pair(7609);
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) void go_inner(unsigned depth, size_t bytes)
{
	volatile char *room = alloca(bytes);

	room[0] = 0;
	go_down(depth);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static __attribute__((noinline)) void go_one_way(int way, unsigned depth)
{
	volatile char *room = alloca(way ? LARGE_BYTES : SMALL_BYTES);

	room[0] = 0;
	if (way) {
		go_inner(depth, SMALL_BYTES);
		__asm__ volatile("# one way" : : : "memory");
	} else {
		go_inner(depth, LARGE_BYTES);
		__asm__ volatile("# the other way" : : : "memory");
	}
	__asm__ volatile("" : : "r"(room) : "memory");
}

int main(void)
{
	static const unsigned depths[] = { 1, 4, 6, 8, 12, 16 };
	unsigned chance = 1;

	for (int i = 0; i < ROUNDS; i++) {
		chance = chance * 1103515245 + 12345;
		go_one_way(chance >> 30 & 1, depths[(chance >> 16) % 6]);
	}
	guest_say("%d\n", ROUNDS);
	return 0;
}
