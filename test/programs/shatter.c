// Breaks a whole address space of 4 GiB up with single pages until a large mapping fails. Built for
// 32 bits. What must be said about it: the pages are by place_shard, one at the beginning of every
// 128 MiB that was free there; reserve_board, which asks for 256 MiB, got them before and gets none
// now (mark "shattered"). At the mark "walked" the program's own walk of /proc/self/maps gives, in
// one line: free bytes, holes, the largest of them, the bytes of all ranges but the stack and the
// kernel's own, and how many shards there are. Without the shards the largest hole is the number in
// the second line, which is from before the first of them.
#include "include/tidemark.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, STEP = 128 << 20, BOARD = 256 << 20, SHARDS = 32 };

static char maps[1 << 18];

// What one line of figures says.
struct walk {
	unsigned long long at, open_bytes, holes, largest, all;
};

static void *place_shard(unsigned i)
{
	return mmap((void *)(i * (unsigned long)STEP), PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void *reserve_board(void)
{
	return mmap(NULL, BOARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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

static void hole(struct walk *walk, unsigned long long end)
{
	unsigned long long bytes = end - walk->at;

	if (end <= walk->at)
		return;
	walk->open_bytes += bytes;
	walk->holes++;
	walk->largest = bytes > walk->largest ? bytes : walk->largest;
}

// Nothing in here maps or unmaps.
static struct walk walk_maps(void)
{
	struct walk walk = { 0 };

	read_maps();
	for (char *line = maps; line && *line; line = strchr(line, '\n'), line += line != NULL) {
		unsigned long long start, end;
		char *newline = strchr(line, '\n');

		if (sscanf(line, "%llx-%llx", &start, &end) != 2)
			continue;
		if (newline)
			*newline = 0;
		if (!strstr(line, "[stack]") && !strstr(line, "[v"))
			walk.all += end - start;
		if (newline)
			*newline = '\n';
		hole(&walk, start);
		walk.at = end;
	}
	hole(&walk, 1ull << 32);
	return walk;
}

int main(void)
{
	void *board = reserve_board();
	struct walk before, after;
	unsigned shards = 0;
	char text[256];

	if (board == MAP_FAILED) // there is room at first
		return 1;
	munmap(board, BOARD);
	before = walk_maps();
	for (unsigned i = 1; i < SHARDS; i++)
		shards += place_shard(i) != MAP_FAILED;
	tidemark_mark("shattered");
	if (reserve_board() != MAP_FAILED)
		return 2;
	after = walk_maps();
	tidemark_mark("walked");
	sprintf(text, "%llu %llu %llu %llu %u\n%llu\n", after.open_bytes, after.holes,
		after.largest, after.all, shards, before.largest);
	return write(1, text, strlen(text)) > 0 ? 0 : 3;
}
