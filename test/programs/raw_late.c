// A program that makes its calls on virtual memory by code that it makes at run time.
//
//     raw_late
//
// It maps 8 MiB and touches them, and unmaps 5 of 6 MiB that libc's mmap has given it. Without
// --strict-vm nobody sees either, and `reconcile` says so.
#include "guest.h"

#include <sys/syscall.h>

enum { MIB = 1 << 20 };

int main(void)
{
	static const unsigned char code[] = {
		0x48, 0x89, 0xf8,                         // mov %rdi,%rax
		0x48, 0x89, 0xf7,                         // mov %rsi,%rdi
		0x48, 0x89, 0xd6,                         // mov %rdx,%rsi
		0x48, 0x89, 0xca,                         // mov %rcx,%rdx
		0x4d, 0x89, 0xc2,                         // mov %r8,%r10
		0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff, // mov $-1,%r8
		0x4d, 0x31, 0xc9,                         // xor %r9,%r9
		0x0f, 0x05, 0xc3,                         // syscall, ret
	};
	char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *known =
		mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long (*call)(long number, long a, long b, long c, long d) = NULL;
	char *unseen;

	guest_check(made != MAP_FAILED && known != MAP_FAILED, "mmap");
	memcpy(made, code, sizeof code);
	guest_check(mprotect(made, 4096, PROT_READ | PROT_EXEC) == 0, "mprotect");
	memcpy(&call, &made, sizeof call);
	unseen = (char *)call(SYS_mmap, 0, 8 * MIB, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS);
	guest_check((unsigned long)unseen < -4096ul, "mmap of our own");
	memset(unseen, 1, 8 * MIB);
	guest_check(call(SYS_munmap, (long)known, 5 * MIB, 0, 0) == 0, "munmap of our own");
	return 0;
}
