// Allocates, comes under a system-call filter, and goes on allocating.
//
//     sandboxed ACTION CALLS THREADS ROUNDS [PROGRAM ARGUMENT ...]
//
// ACTION: kill, trap, eperm, enosys for the calls that are named in CALLS (by commas); or
// only-kill, only-trap for all calls but those, and the few that the program needs itself; strict:
// SECCOMP_MODE_STRICT, in which CALLS is not looked at; dup: as enosys, installed by syscall().
//
// Before, 100 blocks of 7801 bytes. Then, in THREADS threads that are started under the filter
// (0: in the main thread), ROUNDS pairs of 7802 bytes each; with a + at the end of THREADS each of
// them lives until all have allocated. With an f before it, THREADS is how many children there are,
// each forked by the one before, after which they do the same; with an s, they are all its own, one
// after the other, and end with 1, 2 and so on. A call that is trapped is counted by
// a handler of SIGSYS, and the count written to standard output behind "trapped ". With PROGRAM,
// that is executed then; with a v at the end of ROUNDS in three children, started by vfork one
// after the other, and filters that cannot be read are asked for before.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS_MAX = 128, BEFORE = 100, CANNOT = 77 };

static const struct {
	const char *name;
	int number;
} calls[] = {
	{ "socket", SYS_socket },
	{ "connect", SYS_connect },
	{ "recvmsg", SYS_recvmsg },
	{ "madvise", SYS_madvise },
	{ "mremap", SYS_mremap },
	{ "rt_sigprocmask", SYS_rt_sigprocmask },
	{ "gettid", SYS_gettid },
	{ "getpid", SYS_getpid },
	{ "tgkill", SYS_tgkill },
	{ "futex", SYS_futex },
	{ "nanosleep", SYS_nanosleep },
	{ "getrusage", SYS_getrusage },
	{ "mincore", SYS_mincore },
	{ "prctl", SYS_prctl },
	{ "kill", SYS_kill },
	{ "openat", SYS_openat },
	// What malloc and an end need.
	{ "write", SYS_write },
	{ "brk", SYS_brk },
	{ "mmap", SYS_mmap },
	{ "munmap", SYS_munmap },
	{ "exit_group", SYS_exit_group },
	{ "exit", SYS_exit },
	{ "rt_sigreturn", SYS_rt_sigreturn },
};

enum { NEEDED = 7, CALLS = sizeof calls / sizeof *calls };

static volatile sig_atomic_t trapped;
static long rounds;
static int together; // so many threads end at one time
static atomic_int done;

static void on_trap(int number)
{
	(void)number;
	trapped++;
}

static int named(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
		if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ','))
			return 1;
	return 0;
}

static unsigned action_of(const char *word)
{
	if (strcmp(word, "kill") == 0)
		return SECCOMP_RET_KILL_PROCESS;
	if (strcmp(word, "trap") == 0)
		return SECCOMP_RET_TRAP;
	return SECCOMP_RET_ERRNO | (strcmp(word, "eperm") == 0 ? EPERM : ENOSYS);
}

// Programs ask so what the kernel has: it refuses, and nothing else happens.
static int is_refused(void)
{
	const struct sock_fprog no_steps = { .len = 5, .filter = (void *)-8 };
	const void *const filters[] = { NULL, (void *)8, (void *)-8, (void *)-4096, &no_steps };

	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filters[i]) == 0)
			return 0;
	return 1;
}

static void install(const char *word, const char *list)
{
	struct sock_filter steps[STEPS_MAX];
	struct sock_fprog program = { .filter = steps };
	int only = strncmp(word, "only-", 5) == 0;
	unsigned action = action_of(only ? word + 5 : word);
	unsigned short count = 0;

	if (strcmp(word, "strict") == 0) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
			exit(CANNOT);
		return;
	}
	steps[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						      offsetof(struct seccomp_data, nr));
	for (int i = 0; i < CALLS; i++) {
		if (!named(list, calls[i].name) && !(only && i >= CALLS - NEEDED))
			continue;
		steps[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							      (unsigned)calls[i].number, 0, 1);
		steps[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							      only ? SECCOMP_RET_ALLOW : action);
	}
	steps[count++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, only ? action : SECCOMP_RET_ALLOW);
	program.len = count;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		exit(CANNOT);
	if (strcmp(word, "dup") == 0 ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					       SECCOMP_FILTER_FLAG_TSYNC, &program) != 0
				     : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		exit(CANNOT);
}

static void *work(void *unused)
{
	for (long i = 0; i < rounds; i++)
		free(malloc(7802));
	atomic_fetch_add(&done, 1);
	while (together && done < together)
		sched_yield();
	return unused;
}

// A line of children, each of which waits for its own.
static void work_in_children(int count)
{
	pid_t pid;
	int status;

	work(NULL);
	if (count == 0)
		return;
	pid = fork();
	if (pid == 0) {
		work_in_children(count - 1);
		syscall(SYS_exit_group, 0);
	}
	if (pid < 0 || wait4(pid, &status, 0, NULL) != pid || status != 0)
		syscall(SYS_exit_group, 1);
}

// Each has ended before the next one begins.
static void work_one_by_one(int count)
{
	int status;

	for (int i = 1; i <= count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			work(NULL);
			syscall(SYS_exit_group, i);
		}
		if (pid < 0 || wait4(pid, &status, 0, NULL) != pid || WEXITSTATUS(status) != i)
			syscall(SYS_exit_group, 1);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[256];
	char line[64];
	int count;

	if (argc < 5)
		return CANNOT;
	signal(SIGSYS, on_trap);
	count = atoi(argv[3]);
	together = strchr(argv[3], '+') ? count : 0;
	rounds = atol(argv[4]);
	for (int i = 0; i < BEFORE; i++)
		(void)malloc(7801);
	if (strchr(argv[4], 'v') && !is_refused())
		return 1;
	install(argv[1], argv[2]);
	if (argv[3][0] == 'f')
		work_in_children(atoi(argv[3] + 1));
	else if (argv[3][0] == 's')
		work_one_by_one(atoi(argv[3] + 1));
	else if (count == 0)
		work(NULL);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	count = snprintf(line, sizeof line, "trapped %d\n", (int)trapped);
	if (write(STDOUT_FILENO, line, (size_t)count) != count)
		return 1;
	for (int i = 0; i < 3 && strchr(argv[4], 'v'); i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			execv(argv[5], argv + 5);
			_exit(1);
		}
		wait4(pid, &count, 0, NULL);
		work(NULL);
	}
	if (argc > 5 && !strchr(argv[4], 'v')) {
		execv(argv[5], argv + 5);
		return 1;
	}
	syscall(SYS_exit, 0);
	return 0;
}
