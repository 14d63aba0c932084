// Four threads map, fill and unmap memory, and the process ends in the midst of it: of the calls
// that they are in then, nobody can say whether they were made.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, BYTES = 8 << 20, LASTS_US = 200000 };

static void *work(void *unused)
{
	for (;;) {
		void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (at != MAP_FAILED)
			munmap(at, BYTES);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, NULL);
	usleep(LASTS_US);
	_exit(0);
}
