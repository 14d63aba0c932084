// family: every function that gives or takes memory, 100 times each, each with a size of its own.
//
// The sizes are in the table below; test/guest/family.py knows them. Prints "free_sized" when the
// C library has it. Every block is freed; cfree, which headers no longer know, is asked by name.
#include "guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>

enum { TIMES = 100 };

static void use(void *ptr, size_t alignment)
{
	guest_check(ptr != NULL, "no memory");
	guest_check((uintptr_t)ptr % alignment == 0, "not aligned");
	*(volatile char *)ptr = 1;
}

static void failing_calls(void)
{
	void *ptr = NULL;

	for (int i = 0; i < TIMES; i++) {
		errno = 0;
		guest_check(malloc(GUEST_TOO_MUCH) == NULL && errno == ENOMEM, "malloc failed");
		errno = 0;
		guest_check(calloc(GUEST_ROOT * 256, GUEST_ROOT * 256) == NULL && errno == ENOMEM,
			    "calloc overflowed");
		errno = 77;
		guest_check(posix_memalign(&ptr, 64, GUEST_TOO_MUCH) == ENOMEM, "memalign failed");
	}
}

static void keeps_errno(void)
{
	for (int i = 0; i < TIMES; i++) {
		errno = 77;
		guest_pair(7019);
		guest_check(errno == 77, "errno is kept");
	}
}

int main(void)
{
	void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
	void (*aligned)(void *, size_t, size_t) =
		(void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
	void (*old)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");

	for (int i = 0; i < TIMES; i++) {
		void *ptr[13] = { NULL };

		use(ptr[0] = malloc(7001), 16);
		use(ptr[1] = calloc(7002, 1), 16);
		use(ptr[2] = calloc(2, 3752), 16); // 7504
		use(ptr[3] = realloc(NULL, 7003), 16);
		use(ptr[4] = reallocarray(NULL, 1, 7004), 16);
		guest_check(posix_memalign(&ptr[5], 64, 7005) == 0, "posix_memalign");
		use(ptr[5], 64);
		use(ptr[6] = aligned_alloc(128, 7040), 128);
		use(ptr[7] = memalign(256, 7007), 256);
		use(ptr[8] = valloc(7008), 4096);
		use(ptr[9] = pvalloc(7009), 4096);
		use(ptr[10] = malloc(7010), 16);
		use(ptr[11] = malloc(7011), 16);
		use(ptr[12] = malloc(7012), 16);
		for (int n = 0; n < 10; n++)
			free(ptr[n]);
		free(NULL);
		old ? old(ptr[10]) : free(ptr[10]);
		sized ? sized(ptr[11], 7011) : free(ptr[11]);
		aligned ? aligned(ptr[12], 16, 7012) : free(ptr[12]);
		free(malloc(0));
	}
	failing_calls();
	keeps_errno();
	if (sized)
		guest_say("free_sized\n");
	return 0;
}
