// slow_start: allocates 30 blocks of 7102 bytes, after half a second in the dynamic linker, which
// calls the resolver of a function before anything else of the program runs.
#include "guest.h"

#include <sys/syscall.h>
#include <time.h>

static void keep_all(void)
{
	for (int i = 0; i < 30; i++)
		guest_keep(7102);
}

// Nothing is bound yet, so that it asks the kernel by itself.
static void (*resolve(void))(void)
{
	static const struct timespec half_a_second = { .tv_nsec = 500000000 };
	long result;

#ifdef __x86_64__
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"((long)SYS_nanosleep), "D"(&half_a_second), "S"(NULL)
			 : "rcx", "r11", "memory");
#else
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"((long)SYS_nanosleep), "b"(&half_a_second), "c"(NULL)
			 : "memory");
#endif
	return keep_all;
}

static void keep_all_slowly(void) __attribute__((ifunc("resolve")));

int main(void)
{
	keep_all_slowly();
	return 0;
}
