// Twenty threads that ask for memory in every way there is: arenas that grow and shrink, blocks
// that realloc moves with mremap, libraries opened and closed, threads that come and go, mappings
// of their own that are split, protected, moved, mapped over, advised and locked, and calls that
// fail. At the end the main thread, alone again, copies /proc/self/maps to the file named by MAPS
// (or nowhere) and leaves at once.
//
//     vm_churn [THREADS [ROUNDS]]
//
// What must be said: of each call as many, of as many bytes, as strace sees; and what the calls
// leave mapped is what the copy says.
#include "guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#ifdef __x86_64__
enum { MMAP = SYS_mmap };
#else
enum { MMAP = SYS_mmap2 };
#endif

enum { PAGE = 4096, THREADS_MAX = 64 };

static int rounds = 6;
static char folder[4000];

static void churn_mappings(unsigned seed)
{
	uint8_t *at = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *moved;

	guest_check(at != MAP_FAILED, "mmap");
	guest_check(mprotect(at, 32 * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	memset(at, 1, 32 * PAGE);
	guest_check(munmap(at + 4 * PAGE, 4 * PAGE) == 0, "munmap in the middle");
	guest_check(mmap(at + 16 * PAGE, 8 * PAGE, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + 16 * PAGE,
		    "mmap over what is there");
	madvise(at, 4 * PAGE, MADV_DONTNEED);
	posix_madvise(at, 4 * PAGE, POSIX_MADV_WILLNEED);
	mlock(at, PAGE);
	munlock(at, PAGE);
	mlock2(at, PAGE, 1);
	munlock(at, PAGE);
	pkey_mprotect(at, PAGE, PROT_READ, -1);
	// A hole is no mistake, but nonsense is. (The one just made may be somebody else's by now.)
	munmap((void *)(uintptr_t)(32 * PAGE), PAGE);
	errno = 0;
	guest_check(munmap(at + 1, PAGE) == -1 && errno == EINVAL, "munmap of nonsense");
	guest_check(mmap(NULL, -(size_t)(16 * PAGE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED &&
			    errno == ENOMEM,
		    "mmap of too much");
	guest_check(mprotect((void *)(uintptr_t)PAGE, PAGE, PROT_READ) == -1,
		    "mprotect of nothing");
	guest_check(mremap((void *)(uintptr_t)PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED,
		    "mremap of nothing");
	// Two bare system calls: libc's own function for them.
	moved = (uint8_t *)syscall(MMAP, NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	guest_check(moved != MAP_FAILED, "syscall");
	moved = mremap(moved, 3 * PAGE, (4 + seed % 5) * PAGE, MREMAP_MAYMOVE);
	guest_check(moved != MAP_FAILED, "mremap");
	moved[4 * PAGE - 1] = 1;
	guest_check(syscall(SYS_munmap, moved, (4 + seed % 5) * PAGE) == 0, "syscall of munmap");
	if (seed % 4) {
		munmap(at, 4 * PAGE);
		munmap(at + 8 * PAGE, 56 * PAGE);
	}
}

static void churn_heap(unsigned seed)
{
	void *blocks[40];
	char *large = malloc(200000 + seed % 1000 * 100);

	for (int i = 0; i < 40; i++)
		blocks[i] = guest_keep(3000 + (seed * 37 + (unsigned)i * 501) % 60000);
	for (int i = 1; i < 8; i++) {
		large = realloc(large, 200000 * (size_t)(i + 1) + seed % 977);
		guest_check(large != NULL, "realloc");
		large[200000 * i] = 1;
	}
	for (int i = 0; i < 40; i++)
		free(blocks[(i * 7) % 40]);
	free(large);
}

static void churn_library(unsigned seed)
{
	char path[4100];
	void *library;

	snprintf(path, sizeof path, "%s/libplugin_%c.so", folder, seed % 2 ? 'a' : 'b');
	library = dlopen(path, RTLD_NOW);
	guest_check(library != NULL, dlerror());
	dlclose(library);
}

static void churn_segment(void)
{
	int id = shmget(IPC_PRIVATE, 3 * PAGE, IPC_CREAT | 0600);
	char *at;

	if (id < 0)
		return;
	at = shmat(id, NULL, 0);
	guest_check(at != (char *)-1, "shmat");
	at[0] = 1;
	shmctl(id, IPC_RMID, NULL);
	guest_check(shmdt(at) == 0, "shmdt");
}

static void *short_life(void *argument)
{
	guest_pair(7000 + (size_t)(uintptr_t)argument % 900);
	return NULL;
}

static void *churn(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	for (int i = 0; i < rounds; i++) {
		pthread_t thread;

		seed = seed * 1103515245 + 12345;
		churn_mappings(seed >> 8);
		churn_heap(seed >> 8);
		churn_library(seed >> 8);
		if (i == 1)
			churn_segment();
		guest_check(pthread_create(&thread, NULL, short_life,
					   (void *)(uintptr_t)(seed >> 8)) == 0,
			    "pthread_create");
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void copy_maps(void)
{
	static char bytes[1 << 20];
	const char *path = getenv("MAPS");
	int in = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got;
	int out;

	while ((got = read(in, bytes + length, sizeof bytes - length)) > 0)
		length += (size_t)got;
	close(in);
	out = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
	if (out >= 0 && write(out, bytes, length) != (ssize_t)length)
		_exit(93);
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 20;
	char *slash;

	if (argc > 2)
		rounds = (int)strtol(argv[2], NULL, 10);
	guest_check(count > 0 && count <= THREADS_MAX, "1 to 64 threads");
	guest_check(readlink("/proc/self/exe", folder, sizeof folder - 1) > 0, "readlink");
	slash = strrchr(folder, '/');
	*slash = '\0';
	guest_check(sbrk(3 * PAGE) != (void *)-1, "sbrk");
	guest_check(sbrk(-PAGE) != (void *)-1, "sbrk down");
	for (long i = 0; i < count; i++)
		guest_check(pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(i + 1)) ==
				    0,
			    "pthread_create");
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	copy_maps();
}
