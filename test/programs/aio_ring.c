// aio_ring: makes contexts of asynchronous input and output, by libc's syscall() and by a call of
// its own, and destroys some: the kernel maps a ring for each.
//
//     aio_ring
//
// In the end it copies /proc/self/maps to the file named by MAPS. What must be said: the same map.
#include "guest.h"

#include <linux/aio_abi.h>
#include <sys/syscall.h>

static long call(long number, long a, void *b)
{
	long result;

#ifdef __x86_64__
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b)
			 : "rcx", "r11", "memory");
#else
	result = syscall(number, a, b);
#endif
	return result;
}

int main(void)
{
	aio_context_t contexts[4] = { 0 };
	char *pages =
		mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	guest_check(pages != MAP_FAILED, "mmap");
	for (int i = 0; i < 4; i++)
		guest_check((i % 2 ? call(SYS_io_setup, 100 << i, &contexts[i])
				   : syscall(SYS_io_setup, 100 << i, &contexts[i])) == 0,
			    "io_setup");
	guest_check(syscall(SYS_io_destroy, contexts[0]) == 0, "io_destroy");
	guest_check(call(SYS_io_destroy, (long)contexts[1], NULL) == 0, "io_destroy by itself");
	guest_check(syscall(SYS_io_destroy, pages) != 0, "io_destroy of what is none");
	guest_copy_maps(getenv("MAPS"));
	return 0;
}
