// Threads that give back the stack that they stand on, by a system call of their own, and end.
//
//     raw_stack thread | clone
//
// Eight, one after the other: threads of libc that have gone to a stack of their own, or threads
// that the program makes by clone. Each stack has 77 pages. What must be said: each munmap of those
// of libc; the program ends with 0.
#include "guest.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

enum { STACK_BYTES = 77 * 4096, THREADS = 8 };

static char *make_stack(void)
{
	char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	guest_check(stack != MAP_FAILED, "mmap");
	return stack;
}

// From here on there is no stack.
static __attribute__((noreturn)) void leave(char *stack)
{
	__asm__ volatile("mov %[top], %%rsp\n\t"
			 "mov $11, %%eax\n\t"
			 "syscall\n\t"
			 "xor %%edi, %%edi\n\t"
			 "mov $60, %%eax\n\t"
			 "syscall"
			 :
			 : [top] "r"(stack + STACK_BYTES - 512), "D"(stack), "S"(STACK_BYTES)
			 : "rax", "rcx", "r11", "memory");
	__builtin_unreachable();
}

static void *end(void *unused)
{
	(void)unused;
	leave(make_stack());
}

static void clone_one(void)
{
	register char *stack __asm__("r8") = make_stack();
	long thread;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %%r8, %%rdi\n\t"
			 "mov %[bytes], %%esi\n\t"
			 "mov $11, %%eax\n\t"
			 "syscall\n\t"
			 "xor %%edi, %%edi\n\t"
			 "mov $60, %%eax\n\t"
			 "syscall\n"
			 "1:"
			 : "=a"(thread)
			 : "a"(SYS_clone), [bytes] "i"(STACK_BYTES),
			   "D"(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD),
			   "S"(stack + STACK_BYTES - 512), "d"(0), "r"(stack)
			 : "rcx", "r11", "memory");
	guest_check(thread > 0, "clone");
	while (syscall(SYS_tgkill, getpid(), thread, 0) == 0)
		sched_yield();
}

int main(int argc, char **argv)
{
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (argc > 1 && argv[1][0] == 'c') {
			clone_one();
			continue;
		}
		guest_check(pthread_create(&thread, NULL, end, NULL) == 0, "pthread_create");
		pthread_join(thread, NULL);
	}
	return 0;
}
