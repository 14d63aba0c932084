// steps: which instructions of a library a piece of work executes, counted one by one.
//
//     steps OUT LIBRARY same DEPTH      pairs of malloc and free, always with the same stack
//     steps OUT LIBRARY random DEPTH    the inner four frames chosen at random for each pair
//     steps OUT LIBRARY turns DEPTH     the inner four frames of four ways in turn
//     steps OUT LIBRARY round DEPTH     the inner four frames of 200 ways in turn
//     steps OUT LIBRARY alike DEPTH     five ways that lead to the same place in turn
//     steps OUT LIBRARY outside DEPTH   four or nine frames in turn, below one that calls them from
//                                       here and there
//     steps OUT LIBRARY realloc DEPTH   a buffer that grows and shrinks
//
// A child does the work often enough that nothing is new in it, and then STEPS_COUNT times more
// between two breakpoints (int3). In between it goes step by step, and for each instruction of the
// file LIBRARY (a part of its path) OUT gets a line: the offset in the file, in hexadecimal, and
// how often it was executed. The processor counts, so the figures are exact and the same each time.
//
// Step by step a program is ten thousand times slower than else, but the clock is not. So it is
// made to stand still: the child may not read the processor's counter, and meanwhile the siblings
// of this process are stopped (under `tidemark record`, that is the collector).
#include "descend.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS_WARM = 20000, STEPS_COUNT = 50 };

// ---- The work -------------------------------------------------------------------------------

static uint64_t chance;

static void pair(void *context)
{
	void *ptr = malloc(48);

	(void)context;
	descend_use(ptr);
	free(ptr);
}

static void same(long count)
{
	for (; count > 0; count--)
		pair(NULL);
}

static void at_random(long count)
{
	chance = 88172645463325252u; // the same ways in both parts
	for (; count > 0; count--)
		descend_go(4, descend_random(&chance), pair, NULL);
}

static void in_turn(long count)
{
	static const uint64_t ways[] = { 0x0123, 0x1032, 0x2301, 0x3210 };

	for (; count > 0; count--)
		descend_go(4, ways[count % 4], pair, NULL);
}

// As a loop of an interpreter, whose rounds all allocate in the same 200 places.
static void all_round(long count)
{
	for (long i = 0; i < count; i++) {
		if (i % 200 == 0)
			chance = 88172645463325252u;
		descend_go(4, descend_random(&chance), pair, NULL);
	}
}

// The same functions in another order: malloc is called from the same place on the stack.
static void alike(long count)
{
	static const uint64_t ways[] = { 03210, 03201, 03120, 03102, 03021 };

	for (; count > 0; count--)
		descend_go(4, ways[count % 5], pair, NULL);
}

// So that two calls are not made one.
static void there(void)
{
	__asm__ volatile("nop");
}

// As a loop of JavaScript that calls shallow functions and deep ones from one line and then from
// the next: of the deep ones the inner frames are those of the last time.
static void outside(long count)
{
	for (long i = 0; i < count; i++) {
		if (i & 2)
			descend_go(i & 1 ? 9 : 4, 0x3210321, pair, NULL);
		else
			descend_go(i & 1 ? 9 : 4, 0x3210321, pair, NULL), there();
	}
}

static void regrow(long count)
{
	void *ptr = NULL;

	for (long i = 0; i < count; i++) {
		ptr = realloc(ptr, 32 + (size_t)(i % 20) * 24);
		descend_use(ptr);
	}
	free(ptr);
}

static void measured(void *context)
{
	void (*work)(long) = *(void (**)(long))context;

	// One call site, so that the stacks of both parts are the same.
	for (volatile int part = 0; part < 2; part++) {
		if (part == 1)
			__asm__ volatile("int3" : : : "memory");
		work(part == 0 ? STEPS_WARM : STEPS_COUNT);
	}
	__asm__ volatile("int3" : : : "memory");
}

static void child(const char *name, int depth)
{
	void (*work)(long) = strcmp(name, "random") == 0    ? at_random
			     : strcmp(name, "turns") == 0   ? in_turn
			     : strcmp(name, "round") == 0   ? all_round
			     : strcmp(name, "alike") == 0   ? alike
			     : strcmp(name, "outside") == 0 ? outside
			     : strcmp(name, "realloc") == 0 ? regrow
							    : same;

	// main, child, the work, its pair, and where there is chance four frames more.
	depth -= work == at_random || work == in_turn || work == all_round ? 9 : 5;
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	descend_go(depth > 0 ? depth : 1, 0x3af5c1e68b7u, measured, &work);
}

// ---- The count ------------------------------------------------------------------------------

static uint64_t from, to, offset; // the library's code
static uint32_t *counts;

static void find(pid_t pid, const char *library)
{
	char name[64], line[4352];
	FILE *file;

	snprintf(name, sizeof name, "/proc/%d/maps", pid);
	file = fopen(name, "r");
	while (file != NULL && fgets(line, sizeof line, file) != NULL) {
		char flags[8];

		if (strstr(line, library) != NULL &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &from, &to, flags,
			   &offset) == 4 &&
		    flags[2] == 'x')
			break;
		from = to = 0;
	}
	if (file != NULL)
		fclose(file);
	counts = calloc(to - from + 1, sizeof *counts);
	if (counts == NULL)
		exit(3);
}

static void signal_siblings(int number)
{
	char name[64];
	FILE *file;
	int pid;

	snprintf(name, sizeof name, "/proc/%d/task/%d/children", getppid(), getppid());
	file = fopen(name, "r");
	while (file != NULL && fscanf(file, "%d", &pid) == 1)
		if (pid != getpid())
			kill(pid, number);
	if (file != NULL)
		fclose(file);
}

static void count(pid_t pid)
{
	uint64_t pc = (uint64_t)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip),
				       NULL);

	if (pc >= from && pc < to)
		counts[pc - from]++;
}

static void write_counts(const char *path)
{
	FILE *out = fopen(path, "w");

	for (uint64_t i = 0; out != NULL && i < to - from; i++)
		if (counts[i] != 0)
			fprintf(out, "%" PRIx64 " %u\n", offset + i, counts[i]);
	if (out == NULL || fclose(out) != 0) {
		perror(path);
		exit(3);
	}
}

// From one breakpoint to the other.
static int trace(pid_t pid, const char *library)
{
	bool stepping = false;
	int status, give = 0;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 3;
	while (ptrace(stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, (void *)(long)give) ==
		       0 &&
	       waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		siginfo_t info = { 0 };

		give = WSTOPSIG(status);
		if (give != SIGTRAP)
			continue;
		give = 0;
		ptrace(PTRACE_GETSIGINFO, pid, NULL, &info);
		if (info.si_code == SI_KERNEL) { // int3
			if (!stepping)
				find(pid, library);
			stepping = !stepping;
			signal_siblings(stepping ? SIGSTOP : SIGCONT);
		}
		if (stepping)
			count(pid);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

// A recorder that were told of the fork would read the counter in this process.
static pid_t fork_unseen(void)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"((long)SYS_fork) : "rcx", "r11", "memory");
	return (pid_t)result;
}

int main(int argc, char **argv)
{
	pid_t pid;
	int code;

	if (argc < 5)
		return 2;
	// The child's recorder finds it so when it begins, and ours does not notice.
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	pid = fork_unseen();
	if (pid == 0) {
		child(argv[3], atoi(argv[4]));
		_exit(0);
	}
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	code = trace(pid, argv[2]);
	write_counts(argv[1]);
	return code;
}
