// in_turn: threads that allocate and free a large block, one after the other, never two at once.
//
//     in_turn THREADS
//
// Beside a block of the same size that lives from the beginning to the end, one such block at most
// lives at any moment. So the true peak of live bytes is two blocks, and what little libc takes.
#include "guest.h"

#include <pthread.h>

enum { BLOCK_BYTES = 16 << 20, ROUNDS = 3000, THREADS_MAX = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long turn, threads_count;

static void *work(void *argument)
{
	long mine = (long)argument;

	for (int i = 0; i < ROUNDS; i++) {
		void *block;

		pthread_mutex_lock(&lock);
		while (turn != mine)
			pthread_cond_wait(&turned, &lock);
		block = malloc(BLOCK_BYTES);
		guest_check(block != NULL, "malloc");
		free(block);
		turn = (turn + 1) % threads_count;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	void *base = malloc(BLOCK_BYTES);

	guest_check(argc == 2, "in_turn THREADS");
	threads_count = atol(argv[1]);
	guest_check(threads_count > 0 && threads_count <= THREADS_MAX, "too many threads");
	for (long i = 0; i < threads_count; i++)
		guest_check(pthread_create(&threads[i], NULL, work, (void *)i) == 0,
			    "pthread_create");
	for (long i = 0; i < threads_count; i++)
		pthread_join(threads[i], NULL);
	free(base);
	return 0;
}
