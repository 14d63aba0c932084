/* Allocates 100,000 bytes and frees them, and loses as many blocks as it is told. */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	void *volatile kept = malloc(100000);

	memset(kept, 1, 100000);
	free(kept);
	for (int i = 0; argc > 1 && i < atoi(argv[1]); i++)
		kept = malloc(1000);
	kept = NULL;
	return 0;
}
