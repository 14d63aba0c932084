// loop: pairs of malloc and free below DEPTH frames.
//
//     loop same DEPTH PAIRS      always the same stack
//     loop random DEPTH PAIRS    the inner four frames chosen at random for each pair
//
// All blocks have one size: heaptrack 1.4.0 runs out of memory where dozens of sizes come from
// thousands of stacks.
#include "descend.h"

struct loop {
	long pairs;
	uint64_t random;
};

static void loop_pair(void *context)
{
	void *ptr = malloc(48);

	descend_use(context);
	descend_use(ptr);
	free(ptr);
}

static void loop_same(void *context)
{
	struct loop *loop = context;

	for (; loop->pairs > 0; loop->pairs--)
		loop_pair(loop);
}

static void loop_random(void *context)
{
	struct loop *loop = context;

	for (; loop->pairs > 0; loop->pairs--)
		descend_go(4, descend_random(&loop->random), loop_pair, loop);
}

int main(int argc, char **argv)
{
	struct loop loop = { descend_number(argc, argv, 3, 1000000), 88172645463325252u };
	int depth = (int)descend_number(argc, argv, 2, 5);
	int random = argc > 1 && strcmp(argv[1], "random") == 0;

	// main, the work, and where there is chance its four frames and the pair are frames too.
	depth -= random ? 7 : 2;
	if (depth < 1)
		depth = 1;
	descend_go(depth, 0x3af5c1e68b7u, random ? loop_random : loop_same, &loop);
	return 0;
}
