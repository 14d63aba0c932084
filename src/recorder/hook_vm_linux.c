// hook_vm: the functions that ask the kernel for memory, by name, for where their system calls
// cannot be seen (patch_linux.h). What can be seen there is only passed on.
//
// Passing on is a jump: a frame of ours in a stack would say that the call was made within our
// malloc.
#include "recorder/hook_vm_linux.h"

#include "recorder/exec_linux.h"
#include "recorder/filter_linux.h"
#include "recorder/kernel.h"
#include "recorder/patch_linux.h"
#include "recorder/real_linux.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/vm.h"

#define HOOK_FRAME ((const uintptr_t *)__builtin_frame_address(0))

enum {
	HOOK_VM_ENOMEM = 12,
	HOOK_VM_EINVAL = 22,
	HOOK_VM_ENOSYS = 38,
	HOOK_VM_CLONE_VM = 0x100,
	HOOK_VM_CLONE_FS = 0x200,
	HOOK_VM_CLONE_VFORK = 0x4000,
	HOOK_VM_CLONE_THREAD = 0x10000,
	HOOK_VM_CLONE_SETTLS = 0x80000,
	HOOK_VM_SET_SECCOMP = 22, // PR_SET_SECCOMP, and the modes
	HOOK_VM_STRICT = 1,
	HOOK_VM_FILTER = 2,
	HOOK_VM_SET_TSC = 26, // PR_SET_TSC, PR_TSC_SIGSEGV
	HOOK_VM_TSC_SIGSEGV = 2,
	HOOK_VM_HELLO = 3, // descriptors that a child needs: a socket, and two that come
};

// What the kernel said, as the C library's function would say it: -1, and errno set by way of its
// own function. errno's place is the thread's, so it is asked for each time.
static long hook_vm_result(long result)
{
	int *number;

	if (!kernel_failed(result))
		return result;
	number = real.errno_location ? real.errno_location() : NULL;
	if (number)
		*number = (int)-result;
	return -1;
}

// The call, for a hook whose frame is `frame`, as the function would return.
#define HOOK_VM_CALL(number, ...)                                                                 \
	hook_vm_result(vm_call(&(struct vm_ask){ .words = { __VA_ARGS__ }, .frame = HOOK_FRAME }, \
			       number))

// Is it seen by its site, and there to be passed on to?
#define HOOK_VM_PASSES(name, number) (likely(real.name && patch_covers(number)))

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, long offset)
{
	if (HOOK_VM_PASSES(mmap, KERNEL_NR_MMAP))
		return real.mmap(address, size, protection, flags, fd, offset);
	if ((unsigned long)offset % KERNEL_PAGE)
		return (void *)hook_vm_result(-HOOK_VM_EINVAL);
	return (void *)HOOK_VM_CALL(KERNEL_NR_MMAP, (long)address, (long)size, protection, flags,
				    fd, (long)((unsigned long)offset / KERNEL_MMAP_UNIT));
}

// `offset` is in bytes, and the kernel of 32 bits counts in units of KERNEL_MMAP_UNIT: an offset
// that is larger than those can say is refused, as libc does.
EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd, int64_t offset)
{
	if (HOOK_VM_PASSES(mmap64, KERNEL_NR_MMAP))
		return real.mmap64(address, size, protection, flags, fd, offset);
	if ((uint64_t)offset % KERNEL_PAGE || (uint64_t)offset / KERNEL_MMAP_UNIT > UINTPTR_MAX)
		return (void *)hook_vm_result(-HOOK_VM_EINVAL);
	return (void *)HOOK_VM_CALL(KERNEL_NR_MMAP, (long)address, (long)size, protection, flags,
				    fd, (long)((uint64_t)offset / KERNEL_MMAP_UNIT));
}

EXPORT int munmap(void *address, size_t size)
{
	if (HOOK_VM_PASSES(munmap, __NR_munmap))
		return real.munmap(address, size);
	return (int)HOOK_VM_CALL(__NR_munmap, (long)address, (long)size);
}

// Where the linker's own calls are not seen, what it has unmapped is asked of it. An old C library
// has it in a library of its own, which may be loaded later than we look for others.
EXPORT int dlclose(void *handle)
{
	int result;

	if (unlikely(!real.dlclose))
		*(void **)&real.dlclose = scope_next("dlclose", NULL);
	if (unlikely(!real.dlclose))
		return -1;
	if (likely(patch_covers(__NR_munmap)))
		return real.dlclose(handle);
	vm_closes(false);
	result = real.dlclose(handle);
	vm_closes(true);
	return result;
}

// The last argument is there only if the flags say so; a register is read in any case.
EXPORT void *mremap(void *old, size_t old_size, size_t size, int flags, void *address)
{
	if (HOOK_VM_PASSES(mremap, __NR_mremap))
		return real.mremap(old, old_size, size, flags, address);
	return (void *)HOOK_VM_CALL(__NR_mremap, (long)old, (long)old_size, (long)size, flags,
				    (long)address);
}

EXPORT int mprotect(void *address, size_t size, int protection)
{
	if (HOOK_VM_PASSES(mprotect, __NR_mprotect))
		return real.mprotect(address, size, protection);
	return (int)HOOK_VM_CALL(__NR_mprotect, (long)address, (long)size, protection);
}

EXPORT int pkey_mprotect(void *address, size_t size, int protection, int key)
{
	if (HOOK_VM_PASSES(pkey_mprotect, __NR_pkey_mprotect))
		return real.pkey_mprotect(address, size, protection, key);
	return (int)HOOK_VM_CALL(__NR_pkey_mprotect, (long)address, (long)size, protection, key);
}

EXPORT int madvise(void *address, size_t size, int advice)
{
	if (HOOK_VM_PASSES(madvise, __NR_madvise))
		return real.madvise(address, size, advice);
	return (int)HOOK_VM_CALL(__NR_madvise, (long)address, (long)size, advice);
}

// It returns the error, and does nothing where asked to forget (4).
static COLD int hook_vm_posix_madvise(const struct vm_ask *ask)
{
	return ask->words[2] == KERNEL_MADV_DONTNEED ? 0 : (int)-vm_call(ask, __NR_madvise);
}

EXPORT int posix_madvise(void *address, size_t size, int advice)
{
	if (HOOK_VM_PASSES(posix_madvise, PATCH_POSIX_MADVISE))
		return real.posix_madvise(address, size, advice);
	return hook_vm_posix_madvise(&(struct vm_ask){
		.words = { (long)address, (long)size, advice }, .frame = HOOK_FRAME });
}

EXPORT long process_madvise(int fd, const void *vectors, size_t count, int advice, unsigned flags)
{
	if (HOOK_VM_PASSES(process_madvise, __NR_process_madvise))
		return real.process_madvise(fd, vectors, count, advice, flags);
	return HOOK_VM_CALL(__NR_process_madvise, fd, (long)vectors, (long)count, advice,
			    (long)flags);
}

EXPORT int mlock(const void *address, size_t size)
{
	if (HOOK_VM_PASSES(mlock, __NR_mlock))
		return real.mlock(address, size);
	return (int)HOOK_VM_CALL(__NR_mlock, (long)address, (long)size);
}

EXPORT int mlock2(const void *address, size_t size, unsigned flags)
{
	if (HOOK_VM_PASSES(mlock2, __NR_mlock2))
		return real.mlock2(address, size, flags);
	return (int)HOOK_VM_CALL(__NR_mlock2, (long)address, (long)size, (long)flags);
}

EXPORT int munlock(const void *address, size_t size)
{
	if (HOOK_VM_PASSES(munlock, __NR_munlock))
		return real.munlock(address, size);
	return (int)HOOK_VM_CALL(__NR_munlock, (long)address, (long)size);
}

EXPORT int mlockall(int flags)
{
	if (HOOK_VM_PASSES(mlockall, __NR_mlockall))
		return real.mlockall(flags);
	return (int)HOOK_VM_CALL(__NR_mlockall, flags);
}

EXPORT int munlockall(void)
{
	if (HOOK_VM_PASSES(munlockall, __NR_munlockall))
		return real.munlockall();
	return (int)HOOK_VM_CALL(__NR_munlockall, 0);
}

EXPORT void *shmat(int id, const void *address, int flags)
{
	if (HOOK_VM_PASSES(shmat, __NR_shmat))
		return real.shmat(id, address, flags);
	return (void *)HOOK_VM_CALL(__NR_shmat, id, (long)address, flags);
}

EXPORT int shmdt(const void *address)
{
	if (HOOK_VM_PASSES(shmdt, __NR_shmdt))
		return real.shmdt(address);
	return (int)HOOK_VM_CALL(__NR_shmdt, (long)address);
}

EXPORT int remap_file_pages(void *start, size_t size, int protection, size_t page, int flags)
{
	if (HOOK_VM_PASSES(remap_file_pages, __NR_remap_file_pages))
		return real.remap_file_pages(start, size, protection, page, flags);
	return (int)HOOK_VM_CALL(__NR_remap_file_pages, (long)start, (long)size, protection,
				 (long)page, flags);
}

// libc remembers where the break is, so it has to make the call itself.
//
// real.brk sets the C library's own variable as well, from which its sbrk counts. The result is
// asked of the kernel after it, since real.brk returns only whether it succeeded.
static long hook_vm_make_brk(const struct vm_ask *ask)
{
	if (real.brk)
		real.brk((void *)ask->words[0]);
	return kernel_pass(__NR_brk, 0);
}

static COLD int hook_vm_brk(long address, const uintptr_t *frame)
{
	struct vm_ask ask = { .words = { address }, .frame = frame, .make = hook_vm_make_brk };

	return vm_call(&ask, __NR_brk) == address ? 0 : (int)hook_vm_result(-HOOK_VM_ENOMEM);
}

EXPORT int brk(void *address)
{
	if (HOOK_VM_PASSES(brk, __NR_brk))
		return real.brk(address);
	return hook_vm_brk((long)address, HOOK_FRAME);
}

// Returns where the break was, or -1. It is made of brk, so that one place records both.
static COLD void *hook_vm_sbrk(intptr_t more, const uintptr_t *frame)
{
	char *old = real.sbrk ? real.sbrk(0) : (void *)hook_vm_result(-HOOK_VM_ENOMEM);

	if (more == 0 || kernel_failed((long)old))
		return old;
	return hook_vm_brk((long)(old + more), frame) == 0 ? old : (void *)-1;
}

EXPORT void *sbrk(intptr_t more)
{
	if (HOOK_VM_PASSES(sbrk, __NR_brk))
		return real.sbrk(more);
	return hook_vm_sbrk(more, HOOK_FRAME);
}

// A fork that no handler of libc's is told of: the child has memory of its own.
//
// clone3's argument is a struct in memory of the program's: flags at word 0, the stack at word 5.
// With CLONE_VM it is a thread or a vfork, with a stack of its own it is no fork that returns twice
// here.
static bool hook_vm_forks(long number, long first, long second)
{
	// What clone3 is given: flags, four words, the stack.
	const uint64_t *given = (const uint64_t *)first;

	if (number == __NR_clone)
		return !((unsigned long)first & HOOK_VM_CLONE_VM) && !second;
	if (number == __NR_clone3)
		return first && (kernel_sealed || kernel_can_read((uintptr_t)first)) &&
		       !(given[0] & HOOK_VM_CLONE_VM) && !given[5];
	return number == __NR_fork;
}

// Its place is told as fork's is, and the child says hello at once: it may never allocate.
static COLD long hook_vm_fork(long number, long a, long b, long c, long d, long e)
{
	long result;

	recording_before_fork();
	result = kernel_call6(number, a, b, c, d, e, 0);
	recording_after_fork(result);
	return hook_vm_result(result);
}

EXPORT int _Fork(void)
{
	int result;

	recording_before_fork();
	result = real.bare_fork ? real.bare_fork() : (int)hook_vm_result(-HOOK_VM_ENOSYS);
	recording_after_fork(result);
	return result;
}

// ---- Where children may not reach the collector ------------------------------------------------

// A child that shares the root and is no thread: a sandbox's, which moves its maker's root.
//
// A browser's sandbox makes such a child, which then calls chroot: its maker's root is an empty
// folder from then on, and the collector's socket out of reach for all that come after.
static bool hook_vm_shares_root(unsigned long flags)
{
	return (flags & HOOK_VM_CLONE_FS) && !(flags & HOOK_VM_CLONE_THREAD);
}

// One that runs beside its maker in its memory, and has the same thread block: libc thinks that
// both are one thread.
static bool hook_vm_shares_block(unsigned long flags)
{
	return (flags & (HOOK_VM_CLONE_VM | HOOK_VM_CLONE_VFORK | HOOK_VM_CLONE_SETTLS)) ==
	       HOOK_VM_CLONE_VM;
}

// The call by number, after which things may not be where they were.
static bool hook_vm_moves(long number, long first)
{
	static const uint16_t numbers[] = {
		__NR_chroot, __NR_mount, __NR_pivot_root, __NR_setns, __NR_umount2, __NR_unshare,
	};

	if (number == __NR_clone)
		return hook_vm_shares_root((unsigned long)first);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

// A thread without a block of libc's has nothing of ours that could be written to, so the call is
// made bare.
static COLD long hook_vm_move(long number, long a, long b, long c, long d, long e)
{
	if (kernel_has_no_thread_block())
		return hook_vm_result(kernel_call6_bare(number, a, b, c, d, e, 0));
	recording_expect_children();
	return hook_vm_result(kernel_pass(number, a, b, c, d, e));
}

EXPORT int chroot(const char *path)
{
	return (int)hook_vm_move(__NR_chroot, (long)path, 0, 0, 0, 0);
}

EXPORT int mount(const char *from, const char *to, const char *type, unsigned long flags,
		 const void *data)
{
	return (int)hook_vm_move(__NR_mount, (long)from, (long)to, (long)type, (long)flags,
				 (long)data);
}

EXPORT int pivot_root(const char *root, const char *old)
{
	return (int)hook_vm_move(__NR_pivot_root, (long)root, (long)old, 0, 0, 0);
}

EXPORT int setns(int fd, int type)
{
	return (int)hook_vm_move(__NR_setns, fd, type, 0, 0, 0);
}

EXPORT int umount(const char *path)
{
	return (int)hook_vm_move(__NR_umount2, (long)path, 0, 0, 0, 0);
}

EXPORT int umount2(const char *path, int flags)
{
	return (int)hook_vm_move(__NR_umount2, (long)path, flags, 0, 0, 0);
}

EXPORT int unshare(int flags)
{
	return (int)hook_vm_move(__NR_unshare, flags, 0, 0, 0, 0);
}

// A limit of descriptors under which no child can ever say hello. What cannot be read is the
// kernel's to refuse.
//
// `limits` is the program's, and may be anything; both words have to be readable. The maximum
// counts (the second word), since a limit below it can be raised again.
static bool hook_vm_forbids_hello(long number, long first, long second, long third)
{
	bool of_any = number == __NR_prlimit64;
	const uint64_t *limits = (const uint64_t *)(of_any ? third : second); // now, and at most

	return (of_any || (number == __NR_setrlimit && sizeof(long) == sizeof(*limits))) &&
	       (of_any ? second : first) == KERNEL_LIMIT_DESCRIPTORS &&
	       kernel_can_read((uintptr_t)limits) && kernel_can_read((uintptr_t)(limits + 2) - 1) &&
	       limits[1] < HOOK_VM_HELLO;
}

#ifdef __x86_64__
static long hook_vm_limit(int pid, int which, const uint64_t *limits, uint64_t *old)
{
	if (unlikely(hook_vm_forbids_hello(__NR_prlimit64, pid, which, (long)limits)) &&
	    !kernel_has_no_thread_block())
		recording_expect_children();
	return hook_vm_result(kernel_pass(__NR_prlimit64, pid, which, (long)limits, (long)old));
}

EXPORT int setrlimit(int which, const uint64_t *limits)
{
	return (int)hook_vm_limit(0, which, limits, NULL);
}

EXPORT int setrlimit64(int which, const uint64_t *limits)
{
	return (int)hook_vm_limit(0, which, limits, NULL);
}

EXPORT int prlimit(int pid, int which, const uint64_t *limits, uint64_t *old)
{
	return (int)hook_vm_limit(pid, which, limits, old);
}

EXPORT int prlimit64(int pid, int which, const uint64_t *limits, uint64_t *old)
{
	return (int)hook_vm_limit(pid, which, limits, old);
}
#endif

// The child begins on a stack of its own and never comes back here.
EXPORT int clone(int (*function)(void *), void *stack, int flags, void *argument, long a, long b,
		 long c)
{
	if (!real.clone)
		return (int)hook_vm_result(-HOOK_VM_ENOSYS);
	if (hook_vm_shares_root((unsigned long)flags))
		recording_expect_children();
	if (unlikely(hook_vm_shares_block((unsigned long)flags)))
		vm_share();
	return real.clone(function, stack, flags, argument, a, b, c);
}

// enum kernel_lets: what the filter is known to let.
static uint32_t hook_vm_find_lets(const void *filter)
{
	uint32_t lets = 0;

	if (filter_lets(filter, __NR_getpid))
		lets |= KERNEL_LETS_PID;
	if (filter_lets(filter, __NR_access))
		lets |= KERNEL_LETS_ACCESS;
	if (filter_lets(filter, __NR_nanosleep))
		lets |= KERNEL_LETS_SLEEP;
	if (filter_lets(filter, KERNEL_NR_MMAP) && filter_lets(filter, __NR_mremap) &&
	    filter_lets(filter, __NR_munmap))
		lets |= KERNEL_LETS_MAP;
	return lets;
}

// A system-call filter (seccomp) for this thread or all. From before it on no call of ours is made,
// but, where they are let, that for the process's number, by which a vfork child is told from its
// parent, and that for the recorder's file, before an exec in another root.
//
// `lets` is computed from the filter itself before it is set: would it let getpid pass?
// (filter_linux.h)
static COLD long hook_vm_filter(bool strict, long number, const long words[5])
{
	const void *filter = (const void *)words[2];
	uint32_t lets = 0;
	bool sealed;
	long result;

	if (!strict && !filter)
		lets = kernel_let; // only asks whether there are filters, and changes nothing
	if (!strict)
		lets |= hook_vm_find_lets(filter);
	sealed = recording_seal(strict, lets);
	result = kernel_pass(number, words[0], words[1], words[2], words[3], words[4]);
	if (sealed)
		recording_sealed(!kernel_failed(result));
	return hook_vm_result(result);
}

// Before reading the processor's counter becomes a fault.
static void hook_vm_look_at_prctl(long option, long value)
{
	if (option == HOOK_VM_SET_TSC && value == HOOK_VM_TSC_SIGSEGV)
		recording_forbid_counter();
}

EXPORT int prctl(int option, long a, long b, long c, long d)
{
	const long words[5] = { option, a, b, c, d };

	hook_vm_look_at_prctl(option, a);
	if (option == HOOK_VM_SET_SECCOMP && (a == HOOK_VM_STRICT || a == HOOK_VM_FILTER))
		return (int)hook_vm_filter(a == HOOK_VM_STRICT, __NR_prctl, words);
	if (real.prctl)
		return real.prctl(option, a, b, c, d);
	return (int)hook_vm_result(kernel_pass(__NR_prctl, option, a, b, c, d));
}

HIDDEN int hook_vm_prctl(int option, long a, long b, long c, long d)
	__attribute__((alias("prctl")));

// The same by syscall().
static bool hook_vm_filters(long number, long first, long second)
{
	if (number == __NR_prctl)
		return first == HOOK_VM_SET_SECCOMP &&
		       (second == HOOK_VM_STRICT || second == HOOK_VM_FILTER);
	return number == __NR_seccomp && (first == 0 || first == 1); // to set either mode
}

// Of the program's own making: passed on in the same registers and the same place on the stack.
//
// What moves the root or sets a filter is prepared for before the call is made, by either way.
EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (unlikely(number == __NR_prctl))
		hook_vm_look_at_prctl(a, b);
	if (unlikely(hook_vm_moves(number, a) || hook_vm_forbids_hello(number, a, b, c)) &&
	    !kernel_has_no_thread_block())
		recording_expect_children();
	if (unlikely(number == __NR_clone) && hook_vm_shares_block((unsigned long)a))
		vm_share();
	if (real.syscall && !hook_vm_forks(number, a, b) && !hook_vm_filters(number, a, b) &&
	    (patch_covers(PATCH_SYSCALL) || number < 0 || number >= PATCH_NUMBERS ||
	     !(vm_is_call((uint32_t)number) || exec_is_call((uint32_t)number))))
		return real.syscall(number, a, b, c, d, e, f);
	if (hook_vm_filters(number, a, b))
		return hook_vm_filter(number == __NR_prctl ? b == HOOK_VM_STRICT : a == 0, number,
				      (const long[5]){ a, b, c, d, e });
	if (hook_vm_forks(number, a, b))
		return hook_vm_fork(number, a, b, c, d, e);
	if (exec_is_call((uint32_t)number))
		return hook_vm_result(exec_call(number, (const long[6]){ a, b, c, d, e, f }));
	return HOOK_VM_CALL(number, a, b, c, d, e, f);
}

HIDDEN long hook_vm_syscall(long number, long a, long b, long c, long d, long e, long f)
	__attribute__((alias("syscall")));

// The end without destructors.
//
// Without a thread block (a bare clone) only the process's end is made: vm_end would need a lane.
_Noreturn static void hook_vm_exit(int status)
{
	while (kernel_has_no_thread_block())
		kernel_call6_bare(__NR_exit_group, status, 0, 0, 0, 0, 0);
	vm_end();
	for (;;)
		kernel_pass(__NR_exit_group, status);
}

EXPORT _Noreturn void _exit(int status)
{
	hook_vm_exit(status);
}

EXPORT _Noreturn void _Exit(int status)
{
	hook_vm_exit(status);
}
