// manifold: many distinct stacks, each of DEPTH frames.
//
//     manifold STACKS DEPTH ROUNDS
//
// The outer frames are always the same; the inner 21 are the bits of the stack's number, the lowest
// innermost: so neighbours differ in few frames, as the calls of a real program do.
#include "descend.h"

enum { MANIFOLD_BITS = 21 };

static void manifold_pair(void *context)
{
	void *ptr = malloc(48);

	descend_use(context);
	descend_use(ptr);
	free(ptr);
}

static void manifold_branch(void *context)
{
	uint64_t number = *(uint64_t *)context;
	uint64_t way = 0;

	for (int bit = 0; bit < MANIFOLD_BITS; bit++)
		way |= (number >> bit & 1) << 3 * (MANIFOLD_BITS - 1 - bit);
	descend_go(MANIFOLD_BITS, way, manifold_pair, context);
}

int main(int argc, char **argv)
{
	uint64_t stacks = (uint64_t)descend_number(argc, argv, 1, 131000);
	int outer = (int)descend_number(argc, argv, 2, 40) - MANIFOLD_BITS - 3;
	long rounds = descend_number(argc, argv, 3, 1);

	for (long round = 0; round < rounds; round++)
		for (uint64_t i = 0; i < stacks; i++)
			descend_go(outer, 0x3af5c1e68b7u, manifold_branch, &i);
	return 0;
}
