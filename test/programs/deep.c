// deep: stacks of a known depth from two callers that differ only at the root.
//
//     deep DEPTH
//
// from_left and from_right each descend DEPTH frames of `descend` and keep 10 and 20 blocks of
// 7501 bytes: the stack is whole, and the callers stay apart.
#include "guest.h"

__attribute__((noinline)) static int descend(int depth, int blocks)
{
	volatile int result;

	if (depth > 1) {
		result = descend(depth - 1, blocks) + 1;
		return result;
	}
	for (int i = 0; i < blocks; i++)
		guest_keep(7501);
	return 1;
}

__attribute__((noinline)) static int from_left(int depth)
{
	volatile int result = descend(depth, 10);

	return result;
}

__attribute__((noinline)) static int from_right(int depth)
{
	volatile int result = descend(depth, 20);

	return result;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 100;

	guest_check(from_left(depth) == depth && from_right(depth) == depth, "depth");
	return 0;
}
