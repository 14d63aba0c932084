// kernel: the only way out of the recorder. Raw system calls, Linux on x86-64 and i386.
//
// The recorder runs inside somebody else's malloc: it may not call libc, and errno is not ours to
// touch. So each call here returns what the kernel returned: a value, or a negative errno.
//
// For example, opening a file that is not there gives -2, which is -ENOENT. A call here is never
// seen by our own hooks, as it goes to the kernel and not to the C library.
#pragma once

#include "recorder/kernel_win32.h" // all of it, where that is the system

#include "wire/compiler.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef KERNEL_NT

#include <asm/unistd.h>

#ifdef __x86_64__

// The thread's gate for system calls (strict_linux.h): 1 while what is called outside of libc's
// code is dispatched, which our own calls must not be. `kernel_gate_home` is what the gate goes
// back to after a call of ours: 1 in a thread whose calls are dispatched, 0 in all others.
HIDDEN extern __thread uint8_t kernel_gate, kernel_gate_home;

// For a vfork child about to be another image: the gate is its parent's, and it has none.
static inline long kernel_call6_bare(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	// The instruction itself changes rcx and r11.
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long kernel_call6(long nr, long a, long b, long c, long d, long e, long f)
{
	long result;

	kernel_gate = 0;
	result = kernel_call6_bare(nr, a, b, c, d, e, f);
	kernel_gate = kernel_gate_home;
	return result;
}

// The call itself, with five arguments or six: through the gate, sealed or not. `kernel` and
// `kernel_pass` are what others use.
static inline long kernel_call5(long nr, long a, long b, long c, long d, long e)
{
	return kernel_call6(nr, a, b, c, d, e, 0);
}

#else

// The sixth argument goes where the frame pointer is, which is on the stack meanwhile. A signal's
// handler may leave from there: its unwind rule says that the frame's address (cfa) is 8 above it.
static inline long kernel_call6_bare(long nr, long a, long b, long c, long d, long e, long f)
{
	long rest[2] = { e, f };
	const long *more = rest;
	long result;

	__asm__ volatile("push %%ebp\n\t"
			 ".cfi_remember_state\n\t"
			 ".cfi_escape 0x0f, 5, 0x74, 0, 0x06, 0x23, 8\n\t" // *esp + 8
			 "mov 4(%%edi), %%ebp\n\t"
			 "mov (%%edi), %%edi\n\t"
			 "int $0x80\n\t"
			 "pop %%ebp\n\t"
			 ".cfi_restore_state"
			 : "=a"(result), "+D"(more)
			 : "0"(nr), "b"(a), "c"(b), "d"(c), "S"(d)
			 : "memory");
	return result;
}

static inline long kernel_call6(long nr, long a, long b, long c, long d, long e, long f)
{
	return kernel_call6_bare(nr, a, b, c, d, e, f);
}

static inline long kernel_call5(long nr, long a, long b, long c, long d, long e)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "0"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return result;
}

#endif

// What `kernel` and `kernel_pass` become, by how many arguments they are given, the number of the
// call included: only a call with six arguments of its own goes by kernel_call6. What a call does
// not take is 0.
#define KERNEL_PICK(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define KERNEL_1(n) kernel_call5(n, 0, 0, 0, 0, 0)
#define KERNEL_2(n, a) kernel_call5(n, (long)(a), 0, 0, 0, 0)
#define KERNEL_3(n, a, b) kernel_call5(n, (long)(a), (long)(b), 0, 0, 0)
#define KERNEL_4(n, a, b, c) kernel_call5(n, (long)(a), (long)(b), (long)(c), 0, 0)
#define KERNEL_5(n, a, b, c, d) kernel_call5(n, (long)(a), (long)(b), (long)(c), (long)(d), 0)
#define KERNEL_6(n, a, b, c, d, e) \
	kernel_call5(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))
#define KERNEL_7(n, a, b, c, d, e, f) \
	kernel_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

// The process is under a system-call filter (seccomp), of which nothing is known, unless it is
// KERNEL_OPEN. No call of our own is made from then on: `kernel` fails with ENOSYS.
enum kernel_seal {
	KERNEL_OPEN = 0,          // calls are made
	KERNEL_SEALED = 1,        // none of our own is, but for kernel_let
	KERNEL_SEALED_STRICT = 2, // SECCOMP_MODE_STRICT, in which reading the counter is a fault
};
enum kernel_lets {
	KERNEL_LETS_PID = 1 << 0,    // getpid
	KERNEL_LETS_ACCESS = 1 << 1, // access, whether a file can be read
	KERNEL_LETS_MAP = 1 << 2,    // mmap, mremap and munmap
	KERNEL_LETS_SLEEP = 1 << 3,  // nanosleep
};
HIDDEN extern uint32_t kernel_sealed;        // enum kernel_seal; a forked child inherits it
HIDDEN extern uint32_t kernel_pid;           // of this process, for when it cannot be asked for
HIDDEN extern uint32_t kernel_let;           // enum kernel_lets: what the filters are known to let
HIDDEN extern uintptr_t kernel_tid_at;       // in the thread's block of libc: its id; 0: not known
HIDDEN extern __thread uint32_t kernel_slow; // depth of kernel_block_signals

// kernel(number, arguments…): a call of our own. The arguments may be numbers or pointers; in a
// sealed process they are not evaluated.
#define kernel(...) (unlikely(kernel_sealed) ? -KERNEL_ENOSYS : kernel_pass(__VA_ARGS__))

// The same, made in a sealed process, too, if its filters let these calls (enum kernel_lets).
#define kernel_let_by(lets, ...)                                                     \
	(unlikely(kernel_sealed && (kernel_let & (lets)) != (lets)) ? -KERNEL_ENOSYS \
								    : kernel_pass(__VA_ARGS__))

// kernel_pass(number, arguments…): made in any case: the program's own, passed on.
#define kernel_pass(...)                                                                     \
	KERNEL_PICK(__VA_ARGS__, KERNEL_7, KERNEL_6, KERNEL_5, KERNEL_4, KERNEL_3, KERNEL_2, \
		    KERNEL_1)                                                                \
	(__VA_ARGS__)

// Numbers from the kernel's own headers, spelled out: the libc headers are not for us.
enum {
	// Protections, and flags of mmap (MAP_…), madvise (MADV_…) and mremap (MREMAP_…).
	KERNEL_PROT_NONE = 0,
	KERNEL_PROT_READ = 1,
	KERNEL_PROT_WRITE = 2,
	KERNEL_PROT_EXEC = 4,
	KERNEL_MAP_SHARED = 1,
	KERNEL_MAP_PRIVATE = 2,
	KERNEL_MAP_FIXED = 0x10,
	KERNEL_MAP_ANONYMOUS = 0x20,
	KERNEL_MAP_NORESERVE = 0x4000,         // pages count once they are touched
	KERNEL_MAP_FIXED_NOREPLACE = 0x100000, // fails where something is mapped; since Linux 4.17
	KERNEL_MADV_DONTNEED = 4,              // private pages read as zero from then on
	KERNEL_MADV_HUGEPAGE = 14,
	KERNEL_MADV_NOHUGEPAGE = 15,
	KERNEL_MADV_DONTDUMP = 16,   // is in no core dump
	KERNEL_MADV_WIPEONFORK = 18, // a forked child finds zeros; since Linux 4.14
	KERNEL_MADV_COLLAPSE = 25,   // make huge pages of it now; since Linux 6.1
	KERNEL_MREMAP_MAYMOVE = 1,
	KERNEL_MREMAP_FIXED = 2,
	KERNEL_LIMIT_FILE = 1,        // RLIMIT_FSIZE
	KERNEL_LIMIT_DATA = 2,        // RLIMIT_DATA
	KERNEL_LIMIT_DESCRIPTORS = 7, // RLIMIT_NOFILE
	KERNEL_LIMIT_LOCKED = 8,      // RLIMIT_MEMLOCK
	KERNEL_LIMIT_ADDRESSES = 9,   // RLIMIT_AS
	KERNEL_AT_FDCWD = -100,       // paths begin at the working directory
	KERNEL_ESRCH = 3,             // there is no such process or thread
	KERNEL_EINTR = 4,             // a signal came first: call again
	KERNEL_EFAULT = 14,           // memory cannot be read or written
	KERNEL_ENOSYS = 38,           // there is no such call, or the process is sealed
	KERNEL_PAGE = 4096,           // bytes
};

// Errors are -4095 to -1; any other value, also an address in the upper half, is a result.
static inline int kernel_failed(long result)
{
	return (unsigned long)result > -4096UL;
}

#ifdef __x86_64__
// The number of mmap here, and how many bytes one of its offsets in a file counts for.
enum { KERNEL_NR_MMAP = __NR_mmap, KERNEL_MMAP_UNIT = 1 };
#else
enum { KERNEL_NR_MMAP = __NR_mmap2, KERNEL_MMAP_UNIT = KERNEL_PAGE }; // of an offset in a file
#endif

// mmap. Where, or a negative errno. `at` is the offset in the file, in bytes and whole pages; on
// i386 the kernel takes it in pages.
static inline long kernel_map(uintptr_t near, size_t bytes, int protection, int flags, int fd,
			      uint32_t at)
{
	return kernel(KERNEL_NR_MMAP, near, bytes, protection, flags, fd, at / KERNEL_MMAP_UNIT);
}

// Anonymous private pages, all zero, that count when they are touched. NULL: there are none, or the
// process is sealed.
static inline void *kernel_pages(size_t bytes)
{
	long at = kernel_map(0, bytes, KERNEL_PROT_READ | KERNEL_PROT_WRITE,
			     KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS | KERNEL_MAP_NORESERVE, -1,
			     0);

	return kernel_failed(at) ? NULL : (void *)at;
}

// Which file it is (two names of one file have the same device and inode), and of what kind.
struct kernel_file {
	uint64_t device; // major << 20 | minor
	uint64_t inode;  // of that device
	uint32_t mode;   // S_IFMT and permissions, as stat has them
};

// What the kernel says of an open file. False: it does not say; then *file is all zero.
static inline bool kernel_stat(int fd, struct kernel_file *file)
{
#ifdef __x86_64__
	struct {
		uint64_t device, inode, links;
		uint32_t mode;
		uint8_t rest[256];
	} stat = { 0 };
	long result = kernel(__NR_fstat, fd, &stat);
#else
	struct {
		uint64_t device;
		uint32_t reserved, inode_low, mode;
		uint8_t rest[68];
		uint64_t inode;
		uint8_t more[64];
	} stat = { 0 };
	long result = kernel(__NR_fstat64, fd, &stat);

	_Static_assert(offsetof(typeof(stat), inode) == 88, "struct stat64");
#endif
	file->device = ((stat.device >> 8 & 0xfff) | (stat.device >> 32 & ~0xfffu)) << 20 |
		       (stat.device & 0xff) | (stat.device >> 12 & 0xfff00);
	file->inode = stat.inode;
	file->mode = stat.mode;
	return !kernel_failed(result);
}

#define KERNEL_SIGKILL_BIT (UINT64_C(1) << 8) // of a mask: never blocked

// What the processor itself raises, and SIGSYS, which a filter does that another thread has just
// installed: they kill where they are blocked. SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
#define KERNEL_RAISED_BITS                                                           \
	(UINT64_C(1) << 3 | UINT64_C(1) << 4 | UINT64_C(1) << 6 | UINT64_C(1) << 7 | \
	 UINT64_C(1) << 10 | UINT64_C(1) << 30)

enum { KERNEL_STACK_BYTES = 3072 }; // that our slow paths need, and more

// Here a guard page is hit, while signals still come. The room is in a frame of its own: valgrind
// would report a read below the stack pointer as an error of the program's.
static __attribute__((noinline, unused)) void kernel_touch_stack(void)
{
	volatile char room[KERNEL_STACK_BYTES];

	room[0] = 0;
	(void)room[0];
}

// Block the calling thread's signals, but those that something in the thread itself raises. A stack
// that is about to overflow does so here, where nothing is held. In a sealed process nothing is
// blocked.
static inline uint64_t kernel_mask_signals(void)
{
	uint64_t all = ~KERNEL_RAISED_BITS;
	uint64_t old = 0;

	kernel_touch_stack();
	if (unlikely(kernel_sealed))
		return KERNEL_SIGKILL_BIT;
	kernel_pass(__NR_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &old, sizeof(all));
	return old;
}

static inline void kernel_unmask_signals(uint64_t old)
{
	if (!(old & KERNEL_SIGKILL_BIT))
		kernel_pass(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &old, 0, sizeof(old));
}

// The same on slow paths, before a lock is taken: where another process sends a signal that is not
// blocked, its handler finds kernel_nested. Returns what kernel_restore_signals has to be given;
// the two come in pairs, which may be nested. A system call each.
static inline uint64_t kernel_block_signals(void)
{
	uint64_t old = kernel_mask_signals();

	kernel_slow++;
	return old;
}

// Put back what was there. A signal that was waiting comes before this returns, and its handler may
// leave by a jump: no lock may be held any more.
static inline void kernel_restore_signals(uint64_t old)
{
	kernel_slow--; // before a handler that has waited comes, and may never come back
	kernel_unmask_signals(old);
}

// This is a signal handler that interrupted one of our slow paths, whose locks may be held.
static inline bool kernel_nested(void)
{
	return unlikely(kernel_slow);
}

// The address of what libc keeps of the calling thread, which is its first word.
static inline uintptr_t kernel_thread_block(void)
{
	uintptr_t block;

#ifdef __x86_64__
	__asm__("mov %%fs:0, %0" : "=r"(block));
#else
	__asm__("mov %%gs:0, %0" : "=r"(block));
#endif
	return block;
}

// A thread's block begins with its own address, by each libc. One that is all zeros is a sandbox's,
// for a child that only makes a call or two: what is thread-local may not be touched there. To be
// asked before anything that is declared __thread.
static inline bool kernel_has_no_thread_block(void)
{
	return unlikely(!kernel_thread_block());
}

// The same number for all, where libc does not say it. It makes no call, so that a sealed process
// may ask.
static inline uint32_t kernel_thread_id_told(void)
{
	uint32_t tid = INT32_MAX;

	if (kernel_tid_at)
		__builtin_memcpy(&tid, (const void *)(kernel_thread_block() + kernel_tid_at), 4);
	return tid;
}

// The thread's number for the kernel. In a sealed process it cannot be asked for: libc's copy is
// taken. It is of the thread's own pid namespace.
static inline uint32_t kernel_thread_id(void)
{
	if (unlikely(kernel_sealed))
		return kernel_thread_id_told();
	return (uint32_t)kernel_pass(__NR_gettid);
}

// The process's number. A vfork child has its own, and kernel_pid may be its parent's: so it is
// asked for wherever that is possible.
static inline uint32_t kernel_process_id(void)
{
	if (unlikely(kernel_sealed) && !(kernel_let & KERNEL_LETS_PID))
		return kernel_pid;
	return (uint32_t)kernel_pass(__NR_getpid);
}

enum { KERNEL_PAUSE_NS = 32 }; // of the processor, more or less

// At least so long. In a sealed process that may not sleep the processor is kept busy instead,
// about so long.
static inline void kernel_sleep_ns(long ns)
{
	long duration[2] = { ns / 1000000000, ns % 1000000000 };

	if (likely(!kernel_sealed) || kernel_let & KERNEL_LETS_SLEEP)
		kernel_pass(__NR_nanosleep, duration, 0);
	else
		for (; ns > 0; ns -= KERNEL_PAUSE_NS)
			__builtin_ia32_pause();
}

// CLOCK_MONOTONIC by system call, which takes some 100 ns or more: for slow paths only. 0 in a
// sealed process.
static inline uint64_t kernel_now_ns(void)
{
	long time[2] = { 0, 0 };

	kernel(__NR_clock_gettime, 1, time);
	return (uint64_t)time[0] * 1000000000u + (uint64_t)time[1];
}

// Wake one who sleeps on the word, in any process that has mapped it. Nothing happens in a sealed
// process: there the collector finds what is new at its next look.
static inline void kernel_wake(_Atomic uint32_t *word)
{
	kernel(__NR_futex, word, 1 /* FUTEX_WAKE */, 1);
}

// Whether there is such a thread (signal 0 is sent to it, which does nothing). A thread of ours
// that has no permission is there, too: all but "no such thread" is yes. In a sealed process that
// is the answer for all.
static inline bool kernel_thread_lives(uint32_t pid, uint32_t tid)
{
	return kernel(__NR_tgkill, pid, tid, 0) != -KERNEL_ESRCH;
}

// What a lock is while it is held, and whether its holder has ended: no thread does here, alone and
// while it holds one.
static inline int kernel_lock_word(void)
{
	return 1;
}

static inline bool kernel_lock_is_left(int)
{
	return false;
}

// The calling thread's name, with a NUL. In a sealed process `name` stays what it was.
static inline void kernel_thread_name(char name[16])
{
	kernel(__NR_prctl, 16 /* PR_GET_NAME */, name);
}

// What the process may have of a resource (RLIMIT_…); UINT64_MAX: there is no limit. That is the
// answer in a sealed process too, whatever the limit is.
static inline uint64_t kernel_limit(int which)
{
	uint64_t said[2] = { UINT64_MAX, UINT64_MAX };

	kernel(__NR_prlimit64, 0, which, NULL, said);
	return said[0];
}

// Whether the page can be read. rt_sigprocmask copies the new mask in before it looks at what to do
// with it, and refuses nonsense: EFAULT or EINVAL, and nothing changes. At 0 there is no mask for
// it, which is no mistake; and no page, which it does not see. In a sealed process: false.
static inline bool kernel_can_read(uintptr_t page)
{
	return page && !kernel_sealed &&
	       kernel_pass(__NR_rt_sigprocmask, 12345 /* no such thing to do */, page, 0, 8) !=
		       -KERNEL_EFAULT;
}

#endif
