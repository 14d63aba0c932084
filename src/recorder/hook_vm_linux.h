// hook_vm: the hooks of what asks the kernel, under the names by which programs call them.
//
// They are for where libc's system calls themselves cannot be seen: where they are seen
// (patch_linux.h), a hook passes on what it is given by a jump, so that no frame of ours is in the
// stack. Not all of them change memory: clone, setns, unshare and the like can put a process out of
// the collector's reach.
#pragma once

#include "wire/compiler.h"

#include <stddef.h>
#include <stdint.h>

// The C library's declarations are not for us: these are the same, and so are results and errno.
// What changes memory is recorded by vm_call (vm.h), with the stack of the caller. Where the C
// library has no such function the call is made all the same.
void *mmap(void *address, size_t size, int protection, int flags, int fd, long offset);
void *mmap64(void *address, size_t size, int protection, int flags, int fd, int64_t offset);
int munmap(void *address, size_t size);
// A library that is closed is unmapped by the linker: where that is not seen, it is asked of it.
int dlclose(void *handle);
void *mremap(void *old, size_t old_size, size_t size, int flags, void *address);
// Made by the C library itself, which remembers where the break is; what is recorded is where the
// kernel says that it is afterwards. sbrk fails with ENOMEM where the C library has none.
int brk(void *address);
void *sbrk(intptr_t more);
int mprotect(void *address, size_t size, int protection);
int pkey_mprotect(void *address, size_t size, int protection, int key);
int madvise(void *address, size_t size, int advice);
// Returns the error, and leaves errno alone. To forget pages it does nothing, as the C library's
// does nothing then.
int posix_madvise(void *address, size_t size, int advice);
// Recorded as a madvise for each range, as far as the result says that it came; what is asked about
// another process is not.
long process_madvise(int fd, const void *vectors, size_t count, int advice, unsigned flags);
int mlock(const void *address, size_t size);
int mlock2(const void *address, size_t size, unsigned flags);
int munlock(const void *address, size_t size);
int mlockall(int flags);
int munlockall(void);
void *shmat(int id, const void *address, int flags);
int shmdt(const void *address);
int remap_file_pages(void *start, size_t size, int protection, size_t page, int flags);
// By number: what has a hook of its own is dealt with as there, a fork that libc does not know of
// is announced, and all else is passed on in the same registers.
long syscall(long number, long a, long b, long c, long d, long e, long f);
// A fork of which no handler hears: the child says hello at once, as it may never allocate.
int _Fork(void);
// Looked at for what it does to us: a system-call filter seals the process before it is set, and is
// read for whether it lets us ask for the process's number; PR_SET_TSC may forbid the counter.
int prctl(int option, long a, long b, long c, long d);

// Two of them by names that lead to nobody else's, where the C library's come first (late_linux.h).
HIDDEN long hook_vm_syscall(long number, long a, long b, long c, long d, long e, long f);
HIDDEN int hook_vm_prctl(int option, long a, long b, long c, long d);

// What may put children out of the collector's reach: segments that they can claim are had before
// the call is made (recording_expect_children). A clone counts if it shares the root and is no
// thread.
int clone(int (*function)(void *), void *stack, int flags, void *argument, long a, long b, long c);
int chroot(const char *path);
int mount(const char *from, const char *to, const char *type, unsigned long flags,
	  const void *data);
int pivot_root(const char *root, const char *old);
int setns(int fd, int type);
int umount(const char *path);
int umount2(const char *path, int flags);
int unshare(int flags);
// A limit of less than three descriptors lets no child say hello: the same is done then.
int setrlimit(int which, const uint64_t *limits); // these four in 64 bits alone
int setrlimit64(int which, const uint64_t *limits);
int prlimit(int pid, int which, const uint64_t *limits, uint64_t *old);
int prlimit64(int pid, int which, const uint64_t *limits, uint64_t *old);
// The end without destructors: the last look at the process's memory (vm_end) comes before it.
_Noreturn void _exit(int status);
_Noreturn void _Exit(int status);
