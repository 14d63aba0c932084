// few_maps: a thread's first blocks, while the process has room for one mapping more.
//
// Cuts a mapping into pages until the kernel refuses more mappings, then puts two back together. A
// thread that has waited for that takes and gives back 1000 blocks of 7961 bytes. Prints by how
// many pages the process's addresses grew meanwhile.
#include "guest.h"

#include <pthread.h>
#include <semaphore.h>

enum { BLOCKS = 1000, PAGE = 4096, PAGES = 1 << 18 };

static sem_t go;

static void *pairs(void *)
{
	sem_wait(&go);
	for (int i = 0; i < BLOCKS; i++) {
		void *volatile block = malloc(7961);

		free(block);
	}
	return NULL;
}

static long pages_of_addresses(void)
{
	char text[64] = { 0 };
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	guest_check(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0, "statm");
	close(fd);
	return atol(text);
}

int main(void)
{
	char *pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = pages + PAGE;
	pthread_t thread;
	long before;

	guest_check(pages != MAP_FAILED, "mmap");
	sem_init(&go, 0, 0);
	guest_check(pthread_create(&thread, NULL, pairs, NULL) == 0, "pthread_create");
	while (at < pages + (size_t)PAGES * PAGE && mprotect(at, PAGE, PROT_READ) == 0)
		at += 2 * PAGE;
	guest_check(mprotect(at - 2 * PAGE, PAGE, PROT_NONE) == 0, "mprotect");
	before = pages_of_addresses();
	sem_post(&go);
	pthread_join(thread, NULL);
	printf("%ld\n", pages_of_addresses() - before);
	return 0;
}
