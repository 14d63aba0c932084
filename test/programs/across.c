// across PROGRAM…: takes a block of 7700 + the number of words bytes, and becomes the first
// PROGRAM with the others as its words and with no environment at all. Without any it ends with 0.
//
// Built for 32 and for 64 bits: so a chain goes across the classes.
#include "guest.h"

int main(int argc, char **argv)
{
	char *const nothing[] = { NULL };

	guest_keep(7700 + (size_t)argc);
	if (argc == 1)
		return 0;
	execve(argv[1], argv + 1, nothing);
	return 98;
}
