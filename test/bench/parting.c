// parting: stacks that have little in common with the last one, pair of malloc and free by pair.
//
//     parting root DEPTH PAIRS           64 stacks that part near the root, at random
//     parting turns COUNT DEPTH ROUNDS   COUNT coroutines in turn, each with a stack of DEPTH
//                                        frames and three pairs at a time
#include "descend.h"

#include <ucontext.h>

enum { PARTING_STACK_BYTES = 32 << 10, PARTING_PAIRS = 3, PARTING_COUNT_MAX = 4096 };

static void parting_pair(void *context)
{
	void *ptr = malloc(48);

	descend_use(context);
	descend_use(ptr);
	free(ptr);
}

static void parting_root(int depth, long pairs)
{
	uint64_t random = 88172645463325252u;

	// main, this, and the pair are frames too.
	for (; pairs > 0; pairs--) {
		uint64_t way = 0x3af5c1e68b7u << 6 | (descend_random(&random) & 63);

		descend_go(depth - 3, way, parting_pair, NULL);
	}
}

static ucontext_t parting_main, parting_turns[PARTING_COUNT_MAX];
static long parting_rounds;
static int parting_depth;

static void parting_work(void *context)
{
	int number = *(int *)context;

	for (long round = 0; round < parting_rounds; round++) {
		for (int pair = 0; pair < PARTING_PAIRS; pair++)
			parting_pair(context);
		swapcontext(&parting_turns[number], &parting_main);
	}
}

static void parting_begin(int number)
{
	// This, the work and the pair are frames too.
	descend_go(parting_depth - 3, (uint64_t)number * 0x9e3779b97f4a7c15u, parting_work,
		   &number);
}

static void parting_coroutines(int count)
{
	for (int i = 0; i < count; i++) {
		getcontext(&parting_turns[i]);
		parting_turns[i].uc_stack.ss_sp = malloc(PARTING_STACK_BYTES);
		parting_turns[i].uc_stack.ss_size = PARTING_STACK_BYTES;
		parting_turns[i].uc_link = &parting_main;
		makecontext(&parting_turns[i], (void (*)(void))parting_begin, 1, i);
	}
	for (long round = 0; round < parting_rounds; round++)
		for (int i = 0; i < count; i++)
			swapcontext(&parting_main, &parting_turns[i]);
}

int main(int argc, char **argv)
{
	long count = descend_number(argc, argv, 2, 1000);

	if (argc > 1 && strcmp(argv[1], "turns") == 0) {
		parting_depth = (int)descend_number(argc, argv, 3, 30);
		parting_rounds = descend_number(argc, argv, 4, 1000);
		parting_coroutines(count < PARTING_COUNT_MAX ? (int)count : PARTING_COUNT_MAX);
	} else {
		parting_root((int)count, descend_number(argc, argv, 3, 1000000));
	}
	return 0;
}
