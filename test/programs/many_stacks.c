// many_stacks: 131,072 distinct stacks at depth 40; prints its own peak of memory.
//
// A stack's number chooses at each of the inner 17 levels whether `left` or `right` is called, so
// all of them differ; 21 frames of `lead_in` and main stand in front. Each stack takes one block of
// 24 bytes and frees it. Prints the peak of resident memory in KiB (VmHWM) on a line of its own.
#include "guest.h"

enum { LEVELS = 17, LEAD_IN = 20 };

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

	if (level == LEVELS)
		return touch();
	result = bits >> level & 1 ? left(bits, level + 1) : right(bits, level + 1);
	return result;
}

__attribute__((noinline)) static int right(uint32_t bits, int level)
{
	volatile int result;

	if (level == LEVELS)
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

static long peak_kib(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t got = read(fd, text, sizeof(text) - 1);
	char *at;

	guest_check(fd >= 0 && got > 0, "/proc/self/status");
	close(fd);
	text[got] = '\0';
	at = strstr(text, "VmHWM:");
	guest_check(at != NULL, "VmHWM");
	return strtol(at + 6, NULL, 10);
}

int main(void)
{
	for (uint32_t bits = 0; bits < 1u << LEVELS; bits++)
		lead_in(bits, LEAD_IN);
	guest_say("%ld\n", peak_kib());
	return 0;
}
