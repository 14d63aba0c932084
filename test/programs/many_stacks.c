// many_stacks: 131,072 distinct stacks at depth 40; prints its own peak of memory.
//
//     many_stacks [LEVELS]
//
// A stack's number chooses at each of the inner 17 levels (LEVELS) whether `left` or `right` is
// called, so all of them differ; 21 frames of `lead_in` and main stand in front. Each stack takes
// one block of 24 bytes and frees it. Prints the peak of resident memory in KiB (VmHWM) on a line
// of its own.
#include "guest.h"

enum { LEAD_IN = 20 };

static int levels = 17;

static int left(uint32_t bits, int level);
static int right(uint32_t bits, int level);

__attribute__((noinline)) static int touch(void)
{
	void *volatile ptr = malloc(24);

	free(ptr);
	return 1;
}

__attribute__((noinline)) static int left(uint32_t bits, int level)
{
	volatile int result;

	if (level == levels)
		return touch();
	result = bits >> level & 1 ? left(bits, level + 1) : right(bits, level + 1);
	return result;
}

__attribute__((noinline)) static int right(uint32_t bits, int level)
{
	volatile int result;

	if (level == levels)
		return touch();
	result = bits >> level & 1 ? left(bits, level + 1) : right(bits, level + 1);
	return result;
}

__attribute__((noinline)) static int lead_in(uint32_t bits, int frames)
{
	volatile int result;

	result = frames == 0 ? left(bits, 0) : lead_in(bits, frames - 1);
	return result;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		levels = atoi(argv[1]);
	for (uint32_t bits = 0; bits < 1u << levels; bits++)
		lead_in(bits, LEAD_IN);
	guest_say("%ld\n", guest_peak_kib());
	return 0;
}
