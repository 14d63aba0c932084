// guest: what the programs in this folder share. Header only.
//
// The programs are recorded by test/guest, which compares what the trace says with what they say
// themselves. They must not disturb their own figures: they speak through write(2), never through
// stdio, and count in memory that was not allocated.
//
// A program's own blocks have sizes that nobody else asks for: 7000 and more, below 8000. So a
// test finds them among the calls that libc makes on the program's behalf.
#pragma once

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A size that nobody has, and one whose square no size can say.
#define GUEST_TOO_MUCH (SIZE_MAX / 2 + 1)
#define GUEST_ROOT ((size_t)1 << (4 * sizeof(size_t)))

// In the file named by COUNTERS, so that they outlive the program. One cache line each.
struct guest_counters {
	struct {
		_Alignas(64) volatile uint64_t allocations; // calls that returned a block
		volatile uint64_t frees;                    // calls that returned
		volatile uint64_t bytes;
	} thread[64];
};

// The shared counters, or private ones where no file is named.
static inline struct guest_counters *guest_counters(void)
{
	const char *path = getenv("COUNTERS");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
	void *at;

	if (fd >= 0 && ftruncate(fd, sizeof(struct guest_counters)) != 0)
		_exit(90);
	at = mmap(NULL, sizeof(struct guest_counters), PROT_READ | PROT_WRITE,
		  fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		_exit(91);
	return at;
}

// printf to standard output without stdio's buffers. vsnprintf to memory allocates nothing for
// the plain conversions that are used here.
__attribute__((format(printf, 1, 2))) static inline void guest_say(const char *format, ...)
{
	char text[512];
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (write(STDOUT_FILENO, text, (size_t)length) != length)
		_exit(92);
}

// The program's own mistake, or the machine's: exit code 99 says so to the test.
__attribute__((unused)) static void guest_check(int condition, const char *what)
{
	if (condition)
		return;
	if (write(STDERR_FILENO, what, strlen(what)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		_exit(98);
	_exit(99);
}

// A block of its own size that lives on, and one that is freed at once.
__attribute__((unused, noinline)) static void *guest_keep(size_t size)
{
	void *ptr = malloc(size);

	guest_check(ptr != NULL, "malloc failed");
	memset(ptr, 0x5a, size);
	return ptr;
}

__attribute__((unused, noinline)) static void guest_pair(size_t size)
{
	void *volatile ptr = guest_keep(size);

	free(ptr);
}

// The peak of the program's own resident memory, in KiB.
static inline long guest_peak_kib(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t got = read(fd, text, sizeof(text) - 1);
	char *at;

	guest_check(fd >= 0 && got > 0, "/proc/self/status");
	close(fd);
	text[got] = '\0';
	at = strstr(text, "VmHWM:");
	guest_check(at != NULL, "VmHWM");
	return strtol(at + 6, NULL, 10);
}

// /proc/self/maps, into a file of that name.
__attribute__((unused)) static void guest_copy_maps(const char *path)
{
	static char bytes[1 << 20];
	int in = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	size_t length = 0;
	ssize_t got;

	while ((got = read(in, bytes + length, sizeof bytes - length)) > 0)
		length += (size_t)got;
	guest_check(write(out, bytes, length) == (ssize_t)length, "write");
	close(in);
	close(out);
}
