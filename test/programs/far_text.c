// A program with more than two MiB of code in front of libc's, if that is linked statically. It
// begins itself again at addresses that are not random, as a debugger or setarch -R would: then its
// heap begins right behind it. Prints how many of 32 MiB it gets by sbrk, in one piece.
#include "guest.h"

#include <sys/personality.h>

__asm__(".text\n"
	".fill 2500000, 1, 0x90\n");

int main(int argc, char **argv)
{
	int how = personality(0xffffffff);
	char *start;
	int count = 0;

	if (!(how & ADDR_NO_RANDOMIZE)) {
		guest_check(argc == 1 && personality((unsigned)how | ADDR_NO_RANDOMIZE) != -1,
			    "personality");
		execv("/proc/self/exe", argv);
		return 1;
	}
	start = sbrk(0);
	while (count < 32 && sbrk(1 << 20) == start + ((size_t)count << 20))
		count++;
	guest_say("%d\n", count);
	return 0;
}
