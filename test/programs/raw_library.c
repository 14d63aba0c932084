// raw_library: the library that raw_opens opens. It maps and unmaps by a system-call instruction
// of its own.
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

void *raw_take(size_t bytes);
long raw_give(void *at, size_t bytes);

void *raw_take(size_t bytes)
{
	register long flags __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS;
	register long fd __asm__("r8") = -1;
	register long offset __asm__("r9") = 0;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_mmap), "D"(NULL), "S"(bytes), "d"(PROT_READ | PROT_WRITE),
			   "r"(flags), "r"(fd), "r"(offset)
			 : "rcx", "r11", "memory");
	return (void *)result;
}

long raw_give(void *at, size_t bytes)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_munmap), "D"(at), "S"(bytes)
			 : "rcx", "r11", "memory");
	return result;
}
