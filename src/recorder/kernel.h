// kernel: the only way out of the recorder. Raw system calls, x86-64 Linux.
//
// The recorder runs inside somebody else's malloc: it may not call libc, and errno is not ours to
// touch. So each call here returns what the kernel returned: a value, or a negative errno.
#ifndef RECORDER_KERNEL_H
#define RECORDER_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include <asm/unistd.h>

static inline long kernel_call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

#define KERNEL_PICK(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define KERNEL_1(n) kernel_call6(n, 0, 0, 0, 0, 0, 0)
#define KERNEL_2(n, a) kernel_call6(n, (long)(a), 0, 0, 0, 0, 0)
#define KERNEL_3(n, a, b) kernel_call6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define KERNEL_4(n, a, b, c) kernel_call6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define KERNEL_5(n, a, b, c, d) kernel_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define KERNEL_6(n, a, b, c, d, e) \
	kernel_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define KERNEL_7(n, a, b, c, d, e, f) \
	kernel_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

// kernel(number, arguments…)
#define kernel(...)                                                                          \
	KERNEL_PICK(__VA_ARGS__, KERNEL_7, KERNEL_6, KERNEL_5, KERNEL_4, KERNEL_3, KERNEL_2, \
		    KERNEL_1)                                                                \
	(__VA_ARGS__)

// Numbers from the kernel's own headers, spelled out: the libc headers are not for us.
enum {
	KERNEL_PROT_NONE = 0,
	KERNEL_PROT_READ = 1,
	KERNEL_PROT_WRITE = 2,
	KERNEL_PROT_EXEC = 4,
	KERNEL_MAP_SHARED = 1,
	KERNEL_MAP_PRIVATE = 2,
	KERNEL_MAP_FIXED = 0x10,
	KERNEL_MAP_ANONYMOUS = 0x20,
	KERNEL_MAP_NORESERVE = 0x4000,
	KERNEL_MAP_FIXED_NOREPLACE = 0x100000,
	KERNEL_MADV_DONTNEED = 4,
	KERNEL_MADV_HUGEPAGE = 14,
	KERNEL_MADV_DONTDUMP = 16,
	KERNEL_MADV_WIPEONFORK = 18,
	KERNEL_MADV_COLLAPSE = 25,
	KERNEL_MREMAP_MAYMOVE = 1,
	KERNEL_MREMAP_FIXED = 2,
	KERNEL_AT_FDCWD = -100,
	KERNEL_ESRCH = 3,
	KERNEL_EFAULT = 14,
	KERNEL_PAGE = 4096,
};

static inline int kernel_failed(long result)
{
	return (unsigned long)result > -4096UL;
}

// Anonymous private pages, or NULL.
static inline void *kernel_pages(size_t bytes)
{
	long at = kernel(__NR_mmap, 0, bytes, KERNEL_PROT_READ | KERNEL_PROT_WRITE,
			 KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS | KERNEL_MAP_NORESERVE, -1, 0);

	return kernel_failed(at) ? NULL : (void *)at;
}

// Block every signal of the calling thread, and put back what was there.
static inline uint64_t kernel_block_signals(void)
{
	uint64_t all = ~(uint64_t)0;
	uint64_t old = 0;

	kernel(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &old, sizeof(all));
	return old;
}

static inline void kernel_restore_signals(uint64_t old)
{
	kernel(__NR_rt_sigprocmask, 2, &old, 0, sizeof(old));
}

static inline uint32_t kernel_thread_id(void)
{
	return (uint32_t)kernel(__NR_gettid);
}

static inline uint32_t kernel_process_id(void)
{
	return (uint32_t)kernel(__NR_getpid);
}

static inline void kernel_sleep_ns(long ns)
{
	long duration[2] = { ns / 1000000000, ns % 1000000000 };

	kernel(__NR_nanosleep, duration, 0);
}

// CLOCK_MONOTONIC by system call: for slow paths only.
static inline uint64_t kernel_now_ns(void)
{
	long time[2] = { 0, 0 };

	kernel(__NR_clock_gettime, 1, time);
	return (uint64_t)time[0] * 1000000000u + (uint64_t)time[1];
}

#endif
