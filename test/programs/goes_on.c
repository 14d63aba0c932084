// goes_on OPERATIONS PAUSE_US [threads|forks|alone [GATE]]: a server that goes on and on. Each
// operation gives up one of 4,096 blocks, by free or realloc, and takes another; now and then it
// maps, protects and unmaps. After every 500 it naps. What it does does not depend on time or
// addresses. Its end:
//
//     live BLOCKS BYTES
//
// of the 4,096 and one more of 123,457 bytes, which it has from its beginning.
//
// With three quarters done each server says "waits" and takes and gives up a block, every 5 ms,
// until there is a file GATE: somebody else decides how long it runs. What it has then is the same
// however long that was.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 4096, MAPS = 64, PAGE = 4096, NAP_EVERY = 500 };

struct server {
	unsigned long random;
	void *blocks[SLOTS];
	size_t sizes[SLOTS];
	char *maps[MAPS];
	size_t map_sizes[MAPS];
};

static unsigned long operations;
static unsigned pause_us;
static const char *gate;

static unsigned long next(struct server *server)
{
	server->random ^= server->random << 13;
	server->random ^= server->random >> 7;
	server->random ^= server->random << 17;
	return server->random >> 16;
}

__attribute__((noinline)) static void *take(size_t size)
{
	return malloc(size);
}

__attribute__((noinline)) static void *take_clean(size_t size)
{
	return calloc(1, size);
}

static void change_block(struct server *server)
{
	unsigned long n = next(server) % SLOTS;
	size_t size = next(server) % 700 + 1;

	if (server->blocks[n] && next(server) % 4 == 0) {
		server->blocks[n] = realloc(server->blocks[n], size);
	} else {
		free(server->blocks[n]);
		server->blocks[n] = next(server) % 2 ? take(size) : take_clean(size);
	}
	server->sizes[n] = size;
}

// A mapping in a slot grows by a part that is protected, is moved, cut in the middle, or replaced.
static void change_map(struct server *server)
{
	unsigned long n = next(server) % MAPS;
	size_t pages = next(server) % 30 + 4;
	char *map = server->maps[n];

	if (!map) {
		map = mmap(NULL, pages * PAGE,
			   next(server) % 2 ? PROT_NONE : PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		server->maps[n] = map;
		server->map_sizes[n] = pages * PAGE;
		return;
	}
	switch (next(server) % 6) {
	case 0:
		mprotect(map + PAGE, PAGE, PROT_READ | PROT_WRITE);
		break;
	case 1:
		mprotect(map, 2 * PAGE, next(server) % 2 ? PROT_READ : PROT_NONE);
		break;
	case 2:
		map = mremap(map, server->map_sizes[n], pages * PAGE, MREMAP_MAYMOVE);
		if (map != MAP_FAILED) { // of one that is protected in parts it fails
			server->maps[n] = map;
			server->map_sizes[n] = pages * PAGE;
		}
		break;
	case 3:
		madvise(map, server->map_sizes[n], MADV_DONTNEED);
		break;
	case 4:
		mmap(map + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 5:
		munmap(map, server->map_sizes[n]);
		server->maps[n] = NULL;
		break;
	}
}

static void wait_at_gate(void)
{
	write(1, "waits\n", 6);
	do {
		free(take(100));
		usleep(5000);
	} while (access(gate, F_OK) != 0);
}

static void *serve(void *argument)
{
	struct server *server = argument;

	for (unsigned long i = 1; i <= operations; i++) {
		if (gate && i == operations / 4 * 3)
			wait_at_gate();
		change_block(server);
		if (i % 100 == 0)
			change_map(server);
		if (i % NAP_EVERY == 0 && pause_us)
			usleep(pause_us);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[3] : "";
	struct server *servers = mmap(NULL, 2 * sizeof *servers, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long count = 1, bytes = 123457;
	char *old = malloc(123457);
	pthread_t thread;

	operations = strtoul(argv[1], NULL, 10);
	pause_us = (unsigned)strtoul(argv[2], NULL, 10);
	gate = argc > 4 ? argv[4] : NULL;
	servers[0].random = 88172645463325252;
	servers[1].random = 12345678910111213;
	if (strcmp(how, "threads") == 0)
		pthread_create(&thread, NULL, serve, &servers[1]);
	if (strcmp(how, "forks") == 0 && fork() == 0) {
		serve(&servers[0]);
		_exit(old[0] != 0);
	}
	serve(&servers[0]);
	if (strcmp(how, "threads") == 0)
		pthread_join(thread, NULL);
	if (strcmp(how, "forks") == 0)
		wait(NULL);
	for (int i = 0; i < 2 * SLOTS; i++) {
		count += servers[i / SLOTS].blocks[i % SLOTS] != NULL;
		bytes += servers[i / SLOTS].sizes[i % SLOTS];
	}
	dprintf(1, "live %lu %lu\n", count, bytes);
	_exit(0);
}
