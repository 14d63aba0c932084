/* Allocates twice where it says that it does not, in two ways, and a lot elsewhere. */
#include "tidemark.h"

#include <pthread.h>
#include <stdlib.h>

static void *volatile kept;

static void *elsewhere(void *unused)
{
	for (int i = 0; i < 1000; i++)
		free(kept = malloc(10));
	return unused;
}

static int early(int way)
{
	TIDEMARK_EXPECT_NO_ALLOC
	{
		if (way == 1)
			return 1;
		if (way == 2)
			break;
		free(malloc((size_t)way));
	}
	return 0;
}

int main(void)
{
	pthread_t thread;

	free(kept = malloc(1));
	TIDEMARK_EXPECT_NO_ALLOC
	{
		kept = NULL;
	}
	pthread_create(&thread, NULL, elsewhere, NULL);
	early(1);
	free(kept = malloc(2));
	early(2);
	free(kept = malloc(3));
	early(100);
	TIDEMARK_EXPECT_NO_ALLOC
	free(kept = realloc(malloc(200), 300));
	pthread_join(thread, NULL);
	return 0;
}
