// unmaps: takes memory away that it does not know, as sandboxes and restorers of checkpoints do.
//
//     unmaps WAY [raw]
//
// Takes and gives back 1000 blocks of 7951 bytes; then goes through its mappings, and does WAY to
// all but those of its own file, libc, the linker, the kernel, and what is anonymous and lies next
// to one of these or holds its thread. WAY: unmap, protect, forget (madvise), dontfork, over (mmap
// over it), away (mremap of it), onto (mremap onto it); all: one munmap for all neighbours that are
// unknown; with `raw` by system-call instructions of its own. Then 1000 blocks of 7952 bytes, of
// 7953 in a thread, and of 7954 in a child. Prints how many of its calls failed.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 1000, TEXT_BYTES = 1 << 20, MAPPINGS_MAX = 4096, SPARE_BYTES = 1 << 16 };

static char text[TEXT_BYTES];

static struct mapping {
	uintptr_t start, end;
	int named, anonymous, known;
} mappings[MAPPINGS_MAX];
static int mappings_count, failed, raw;

static void *pairs(void *size)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *volatile block = malloc((size_t)size);

		free(block);
	}
	return NULL;
}

static int known_name(const char *name, const char *self)
{
	return strstr(name, "/libc.so") || strstr(name, "/libc-") || strstr(name, "/ld-") ||
	       strstr(name, self) || name[0] == '[';
}

static void look(const char *self)
{
	int fd = open("/proc/self/maps", O_RDONLY);
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
	size_t used = 0;
	ssize_t got;

	while ((got = read(fd, text + used, sizeof text - 1 - used)) > 0)
		used += (size_t)got;
	close(fd);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		struct mapping *mapping = &mappings[mappings_count++];
		int at = 0;

		sscanf(line, "%zx-%zx %*s %*s %*s %*s %n", &mapping->start, &mapping->end, &at);
		mapping->named = at && line[at] && known_name(line + at, self);
		mapping->anonymous = !at || !line[at];
		mapping->known = mapping->named ||
				 (mapping->start <= thread && thread < mapping->end);
	}
	// What is anonymous next to one of these is data of it.
	for (int i = 1; i + 1 < mappings_count; i++)
		if (mappings[i].anonymous)
			mappings[i].known |=
				(mappings[i - 1].named &&
				 mappings[i - 1].end == mappings[i].start) ||
				(mappings[i + 1].named && mappings[i + 1].start == mappings[i].end);
}

#ifdef __x86_64__
// A call of our own making, at a place of its own for each that is written down below.
static inline __attribute__((always_inline)) long own(long number, void *a, size_t b, long c,
						      long d, void *e, long f)
{
	register long r10 __asm__("r10") = d;
	register void *r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result = number;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return (unsigned long)result > -4096ul ? -1 : result;
}

static int act_raw(const char *way, char *at, size_t bytes)
{
	static void *spare;

	if (strcmp(way, "unmap") == 0)
		return (int)own(SYS_munmap, at, bytes, 0, 0, NULL, 0);
	if (strcmp(way, "protect") == 0)
		return (int)own(SYS_mprotect, at, bytes, PROT_NONE, 0, NULL, 0);
	if (strcmp(way, "forget") == 0)
		return (int)own(SYS_madvise, at, bytes, MADV_DONTNEED, 0, NULL, 0);
	if (strcmp(way, "dontfork") == 0)
		return (int)own(SYS_madvise, at, bytes, MADV_DONTFORK, 0, NULL, 0);
	if (strcmp(way, "over") == 0)
		return own(SYS_mmap, at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			   (void *)-1, 0) == -1
			       ? -1
			       : 0;
	if (strcmp(way, "away") == 0)
		return own(SYS_mremap, at, bytes, (long)(2 * bytes), MREMAP_MAYMOVE, NULL, 0) == -1
			       ? -1
			       : 0;
	if (!spare)
		spare = (void *)own(SYS_mmap, NULL, SPARE_BYTES, PROT_READ,
				    MAP_PRIVATE | MAP_ANONYMOUS, (void *)-1, 0);
	return own(SYS_mremap, spare, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, at, 0) == -1 ? -1
											      : 0;
}

#else
static int act_raw(const char *way, char *at, size_t bytes)
{
	(void)way, (void)at, (void)bytes;
	return -1;
}
#endif

// To who did not map it, memory of the recorder is not there: EFAULT, as the kernel would say.
static int away(char *at, size_t bytes)
{
	if (mremap(at, bytes, 2 * bytes, MREMAP_MAYMOVE) != MAP_FAILED)
		return 0;
	if (errno != EFAULT) {
		perror("mremap of what is not ours");
		exit(2);
	}
	return -1;
}

static int act(const char *way, char *at, size_t bytes)
{
	static char *spare;

	if (raw)
		return act_raw(way, at, bytes);
	if (strcmp(way, "unmap") == 0)
		return munmap(at, bytes);
	if (strcmp(way, "protect") == 0)
		return mprotect(at, bytes, PROT_NONE);
	if (strcmp(way, "forget") == 0)
		return madvise(at, bytes, MADV_DONTNEED);
	if (strcmp(way, "dontfork") == 0)
		return madvise(at, bytes, MADV_DONTFORK);
	if (strcmp(way, "over") == 0)
		return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
				       MAP_FAILED
			       ? -1
			       : 0;
	if (strcmp(way, "away") == 0)
		return away(at, bytes);
	if (!spare)
		spare = mmap(NULL, SPARE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mremap(spare, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED ? -1 : 0;
}

static void act_on_all(const char *way)
{
	int whole = strcmp(way, "all") == 0;

	for (int i = 0; i < mappings_count; i++) {
		struct mapping *mapping = &mappings[i];
		uintptr_t end = mapping->end;

		if (mapping->known)
			continue;
		while (whole && i + 1 < mappings_count && !mappings[i + 1].known)
			end = mappings[++i].end;
		if (act(whole ? "unmap" : way, (char *)mapping->start, end - mapping->start) != 0)
			failed++;
	}
}

int main(int argc, char **argv)
{
	const char *self = strrchr(argv[0], '/');
	pthread_t thread;
	pid_t child;
	int status;

	if (argc < 2 || !self)
		return 2;
	raw = argc > 2;
	pairs((void *)7951);
	look(self);
	act_on_all(argv[1]);
	pairs((void *)7952);
	if (pthread_create(&thread, NULL, pairs, (void *)7953) != 0)
		return 1;
	pthread_join(thread, NULL);
	child = fork();
	if (child == 0) {
		pairs((void *)7954);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		return 1;
	printf("%d\n", failed);
	return 0;
}
