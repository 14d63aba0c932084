// Breaks the gigabyte where MAP_32BIT looks (0x40000000 to 0x80000000) up with single pages until a
// large mapping fails for want of one hole. What must be said about it: 63 pages by place_shard are
// in the way of reserve_board, which asks for 64 MiB, gets none, and would have 1 GiB without them;
// after every second shard of the upper half is gone (mark "swept") it would get 32 MiB more.
// At the mark "walked" the program's own walk of /proc/self/maps gives, in one line: free bytes of
// that gigabyte, its holes, the largest of them, and the bytes of all ranges but the stack and the
// kernel's own.
#include "include/tidemark.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOW 0x40000000ul
#define HIGH 0x80000000ul

enum { PAGE = 4096, SHARDS = 63, STEP = 16 << 20, BOARD = 64 << 20 };

static char maps[1 << 18];

static void *place_shard(unsigned i)
{
	return mmap((void *)(LOW + (i + 1ul) * STEP), PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void *reserve_board(void)
{
	return mmap(NULL, BOARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		    -1, 0);
}

static void read_maps(void)
{
	int fd = open("/proc/self/maps", O_RDONLY);
	size_t length = 0;
	ssize_t got;

	while ((got = read(fd, maps + length, sizeof maps - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	maps[length] = 0;
}

// One line of figures; see above. Nothing in here maps or unmaps.
static void walk(char out[static 128])
{
	unsigned long at = LOW, open_bytes = 0, holes = 0, largest = 0, all = 0;

	read_maps();
	for (char *line = maps; line && *line; line = strchr(line, '\n'), line += line != NULL) {
		unsigned long start, end;
		char *newline = strchr(line, '\n');

		if (sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		if (newline)
			*newline = 0;
		if (!strstr(line, "[stack]") && !strstr(line, "[v"))
			all += end - start;
		if (newline)
			*newline = '\n';
		if (end <= LOW || start >= HIGH)
			continue;
		if (start > at) {
			open_bytes += start - at;
			largest = start - at > largest ? start - at : largest;
			holes++;
		}
		at = end;
	}
	if (at < HIGH) {
		open_bytes += HIGH - at;
		largest = HIGH - at > largest ? HIGH - at : largest;
		holes++;
	}
	sprintf(out, "%lu %lu %lu %lu\n", open_bytes, holes, largest, all);
}

int main(void)
{
	void *board = reserve_board();
	char text[128];

	if (board == MAP_FAILED) // there is room at first
		return 1;
	munmap(board, BOARD);
	for (unsigned i = 0; i < SHARDS; i++)
		if (place_shard(i) == MAP_FAILED)
			return 1;
	tidemark_mark("shattered");
	if (reserve_board() != MAP_FAILED)
		return 2;
	for (unsigned i = SHARDS / 2; i < SHARDS; i += 2)
		munmap((void *)(LOW + (i + 1ul) * STEP), PAGE);
	tidemark_mark("swept");
	walk(text);
	tidemark_mark("walked");
	return write(1, text, strlen(text)) > 0 ? 0 : 3;
}
