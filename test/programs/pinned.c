// Small blocks that keep large pages: 4,000 times three pages' worth of memory and one block of 24
// bytes behind it, then all the large ones are freed. What must be said about it: at the mark
// "pinned" whole pages are free that malloc_trim gives back at once (mark "trimmed"), all others
// are kept by blocks of leave_pin, on which next to nothing lives; when those are freed too,
// malloc_trim gives back the rest (mark "unpinned"). The program prints its resident bytes before,
// between and after, as /proc/self/statm has them, in one line.
#include "include/tidemark.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 4000, LARGE = 12000, PIN = 24 };

static void *pins[ROUNDS];
static void *large[ROUNDS];

static long resident_bytes(void)
{
	char text[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY);
	long pages = 0;

	if (read(fd, text, sizeof text - 1) > 0)
		sscanf(text, "%*d %ld", &pages);
	close(fd);
	return pages * sysconf(_SC_PAGESIZE);
}

static void *take_large(void)
{
	return memset(malloc(LARGE), 1, LARGE);
}

static void *leave_pin(void)
{
	return memset(malloc(PIN), 2, PIN);
}

int main(void)
{
	long before, trimmed, after;

	for (int i = 0; i < ROUNDS; i++) {
		large[i] = take_large();
		pins[i] = leave_pin();
	}
	for (int i = 0; i < ROUNDS; i++)
		free(large[i]);
	before = resident_bytes();
	tidemark_mark("pinned");
	malloc_trim(0);
	trimmed = resident_bytes();
	tidemark_mark("trimmed");
	for (int i = 0; i < ROUNDS; i++)
		free(pins[i]);
	malloc_trim(0);
	after = resident_bytes();
	tidemark_mark("unpinned");
	printf("%ld %ld %ld\n", before, trimmed, after);
	return 0;
}
