// held_start: stops itself in the dynamic linker, before anything else of the program runs, as a
// debugger does that sets its breakpoints. Continued, it allocates 30 blocks of 7102 bytes.
#include "guest.h"

#include <signal.h>
#include <sys/syscall.h>

static void keep_all(void)
{
	for (int i = 0; i < 30; i++)
		guest_keep(7102);
}

// Nothing is bound yet, so that it asks the kernel by itself.
static long ask(long number, long first, long second)
{
	long result;

#ifdef __x86_64__
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second)
			 : "rcx", "r11", "memory");
#else
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(first), "c"(second)
			 : "memory");
#endif
	return result;
}

static void (*resolve(void))(void)
{
	ask(SYS_kill, ask(SYS_getpid, 0, 0), SIGSTOP);
	return keep_all;
}

static void keep_all_later(void) __attribute__((ifunc("resolve")));

int main(void)
{
	keep_all_later();
	return 0;
}
