// What of this program's memory is reachable at its end. Blocks are told apart by their sizes:
//
//     1001   a global has its address                              reachable
//     1002   a reachable block has it                              reachable
//     1003   a global has an address inside of it                  inside
//     1004   a reachable block has an address inside of it         inside
//     1005   the block of 1004 has its address                     inside
//     1006   nothing has it                                        unreachable
//     1007   the block of 1006 has it                              held
//     1008, 1009   they have each other's                          one unreachable, the other held
//     1010   a thread's own variable has it (of a thread that runs)    reachable
//     1011   the stack of that thread has it                       reachable
//     1012   the stack of a thread that has ended had it           unreachable
//     1013   memory from mmap has it                               reachable
//     1014   a freed block has it                                  unreachable
//     1015   a local variable of main has it                       reachable
//     1016   pthread_setspecific has it                            reachable
//     1017   a global has its address, xored                       unreachable
//
// With an argument it says "ready" before it ends, and for each line that it is given loses a block
// of 70,002 bytes and says "done".
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Not static: what nobody reads is not written either.
void **global;
char *inside;
uintptr_t hidden;
void **mapped;
__thread void *own;
static pthread_barrier_t ready;
static pthread_key_t key;

static __attribute__((noinline)) void *block(size_t size)
{
	return memset(malloc(size), 0, size);
}

static __attribute__((noinline)) void lose(void)
{
	void **lost = block(1006), **first = block(1008), **second = block(1009), **freed;

	lost[0] = block(1007);
	first[0] = second;
	second[0] = first;
	freed = block(64);
	freed[5] = block(1014);
	free(freed);
	hidden = (uintptr_t)block(1017) ^ UINTPTR_MAX;
}

static void *ends(void *unused)
{
	void *volatile local = block(1012);

	(void)unused;
	return local == NULL ? local : NULL;
}

static void *runs(void *unused)
{
	void *volatile local = block(1011);

	(void)unused;
	own = block(1010);
	pthread_setspecific(key, block(1016));
	pthread_barrier_wait(&ready);
	pause();
	return local;
}

// Where the stack was, nothing is left.
static __attribute__((noinline)) void wipe(void)
{
	volatile char room[16384];

	for (size_t i = 0; i < sizeof room; i++)
		room[i] = 0;
}

static __attribute__((noinline)) void lose_more(void)
{
	block(70002);
}

static void go_on(void)
{
	char line;

	if (write(1, "ready\n", 6) != 6)
		return;
	while (read(0, &line, 1) == 1) {
		if (line != '\n')
			continue;
		lose_more();
		wipe();
		if (write(1, "done\n", 5) != 5)
			return;
	}
}

int main(int argc, char **arguments)
{
	void *volatile local = block(1015);
	pthread_t thread;
	void **held;

	global = block(1001);
	global[0] = block(1002);
	inside = (char *)block(1003) + 500;
	held = block(1004);
	held[2] = block(1005);
	global[1] = held + 10;
	mapped = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mapped[7] = block(1013);
	held = NULL;
	lose();
	pthread_key_create(&key, NULL);
	pthread_barrier_init(&ready, NULL, 2);
	pthread_create(&thread, NULL, ends, NULL);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, runs, NULL);
	pthread_barrier_wait(&ready);
	wipe();
	if (argc > 1)
		go_on();
	(void)arguments;
	exit(local == NULL);
}
