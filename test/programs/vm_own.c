// A program that calls each function of virtual memory a known number of times, and makes libc ask
// for memory of its own in between: an arena's heap and a stack for a thread, a large block, more
// of the main heap, a library. At the end it copies /proc/self/maps to the file named by MAPS, if
// any, and leaves by _exit.
//
//     vm_own [LIBRARY]
//
// What must be said, whether or not its libc may be changed: of its own calls the number and sum of
// bytes that it prints, one line a call: NAME COUNT BYTES. The copy of the map is what is mapped in
// the end.
#include "guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/shm.h>
#include <sys/syscall.h>

enum { PAGE = 4096, TIMES = 25 };

static struct {
	const char *name;
	unsigned long count, bytes;
} tallies[16];

static void tally(const char *name, unsigned long bytes)
{
	int i = 0;

	while (tallies[i].name && strcmp(tallies[i].name, name) != 0)
		i++;
	tallies[i].name = name;
	tallies[i].count++;
	tallies[i].bytes += bytes;
}

static void map_and_unmap(size_t pages)
{
	char *at = mmap(NULL, pages * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *moved;

	tally("mmap", pages * PAGE);
	guest_check(at != MAP_FAILED, "mmap");
	guest_check(mprotect(at, pages * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	tally("mprotect", pages * PAGE);
	guest_check(madvise(at, PAGE, MADV_DONTNEED) == 0, "madvise");
	tally("madvise", PAGE);
	guest_check(posix_madvise(at, PAGE, POSIX_MADV_WILLNEED) == 0, "posix_madvise");
	tally("madvise", PAGE);
	guest_check(mlock(at, PAGE) == 0 && munlock(at, PAGE) == 0, "mlock");
	tally("mlock", PAGE);
	tally("mlock", PAGE);
	moved = mremap(at, pages * PAGE, (pages + 7) * PAGE, MREMAP_MAYMOVE);
	guest_check(moved != MAP_FAILED, "mremap");
	tally("mremap", (pages + 7) * PAGE);
	errno = 0;
	guest_check(mmap(NULL, -(size_t)(16 * PAGE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED &&
			    errno == ENOMEM,
		    "mmap of too much");
	tally("mmap", 0);
	errno = 0;
	guest_check(munmap(moved + 1, PAGE) == -1 && errno == EINVAL, "munmap of nonsense");
	tally("munmap", 0);
	if (pages % 3) {
		guest_check(munmap(moved, (pages + 7) * PAGE) == 0, "munmap");
		tally("munmap", (pages + 7) * PAGE);
	}
}

// Segments in a row, each a mebibyte after the one before, and all detached at the end.
static void share(void)
{
	char *at[8];

	for (int i = 0; i < 8; i++) {
		int id = shmget(IPC_PRIVATE, 256 * PAGE, IPC_CREAT | 0600);

		if (id < 0)
			return;
		at[i] = shmat(id, NULL, 0);
		guest_check(at[i] != (char *)-1, "shmat");
		tally("shmat", 256 * PAGE);
		shmctl(id, IPC_RMID, NULL);
	}
	for (int i = 0; i < 8; i++) {
		guest_check(shmdt(at[i]) == 0, "shmdt");
		tally("shmdt", 256 * PAGE);
	}
}

#ifdef __GLIBC__
// Two ranges in one call, of ourselves; and one that is nobody's.
static void advise_process(void)
{
	char *at =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct {
		void *at;
		size_t size;
	} vectors[2] = { { at, 2 * PAGE }, { at + 8 * PAGE, 3 * PAGE } };
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	ssize_t (*advise)(int, const void *, size_t, int, unsigned) =
		(ssize_t(*)(int, const void *, size_t, int, unsigned))dlsym(RTLD_DEFAULT,
									    "process_madvise");

	tally("mmap", 64 * PAGE);
	if (fd < 0 || !advise)
		return;
	guest_check(advise(fd, vectors, 2, MADV_WILLNEED, 0) == 5 * PAGE, "process_madvise");
	tally("madvise", 2 * PAGE);
	tally("madvise", 3 * PAGE);
	guest_check(syscall(SYS_process_madvise, fd, vectors, 1, MADV_WILLNEED, 0) == 2 * PAGE,
		    "process_madvise as a system call");
	tally("madvise", 2 * PAGE);
	close(fd);
}

static void grow_heap(void)
{
	char *old = sbrk(0);

	tally("brk", 0);
	guest_check(sbrk(5 * PAGE) == old, "sbrk");
	tally("brk", 5 * PAGE);
	old[5 * PAGE - 1] = 1;
	guest_check(brk(old + 6 * PAGE) == 0 && sbrk(0) == old + 6 * PAGE, "brk");
	tally("brk", PAGE);
}
#endif

static void *live(void *argument)
{
	guest_pair(7000);
	map_and_unmap(5);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

#ifdef __GLIBC__
	grow_heap();
	advise_process();
#endif
	for (unsigned i = 0; i < TIMES; i++) {
		map_and_unmap(1 + i);
		free(malloc(300000 + i * 1000));
	}
	share();
	guest_check(pthread_create(&thread, NULL, live, NULL) == 0, "pthread_create");
	pthread_join(thread, NULL);
	if (argc > 1)
		guest_check(dlopen(argv[1], RTLD_NOW) != NULL, "dlopen");
	for (int i = 0; tallies[i].name; i++)
		printf("%s %lu %lu\n", tallies[i].name, tallies[i].count, tallies[i].bytes);
	fflush(stdout);
	if (getenv("MAPS"))
		guest_copy_maps(getenv("MAPS"));
	_exit(0);
}
