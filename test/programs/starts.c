// Starts children and other images in all the ways there are, after something was put in their way.
//
//     starts OBSTACLE ... WAY [PROGRAM ARGUMENT ...]
//
// Obstacles:
//     net              a network of its own, which needs root
//     hidden           nothing of /tmp, which needs root
//     unseen           net and hidden by system calls that nothing of libc makes
//     pids             processes of their own, which needs root: the next child is number 1
//     users            users of their own, and a network
//     fds              all descriptors are in use
//     fds=now          the limit of descriptors is 0
//     fds=never        ... and can be raised by nobody but root
//     env=empty        PROGRAM gets no environment
//     env=nonsense     ... its environment with TIDEMARK_SESSION=nonsense
//     env=other        ... with the name of a recording that there is not
// Ways, where the child allocates 10 blocks of 7701 bytes and frees 9 of them:
//     fork bare raw clone clone3 cloned double, and line: 100 children, one after the other
// Ways to PROGRAM, in this process: execve execveat fexecve memfd raw-execveat; in a child: spawn
// vfork. What cannot be done ends with 77.
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 100, BLOCKS = 10, BLOCK_BYTES = 7701, STACK_BYTES = 256 << 10, CANNOT = 77 };

extern char **environ;

static char **environment;

static void fail(const char *what)
{
	perror(what);
	exit(CANNOT);
}

static void allocate(void)
{
	void *volatile blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(BLOCK_BYTES);
	for (int i = 1; i < BLOCKS; i++)
		free(blocks[i]);
}

static int cloned(void *unused)
{
	(void)unused;
	allocate();
	return 0;
}

static void await(pid_t pid)
{
	int status;

	if (pid < 0)
		fail("child");
	if (waitpid(pid, &status, __WALL) != pid || status != 0)
		exit(1);
}

// The child of a fork that returns here.
static void child_or(pid_t pid)
{
	if (pid == 0) {
		allocate();
		_exit(0);
	}
	await(pid);
}

static void start_double(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		child_or(fork());
		_exit(0);
	}
	await(pid);
}

static void start_clone3(void)
{
	struct clone_args arguments = { .exit_signal = SIGCHLD };

	child_or((pid_t)syscall(SYS_clone3, &arguments, sizeof arguments));
}

static int start_child(const char *way)
{
	if (strcmp(way, "fork") == 0)
		child_or(fork());
	else if (strcmp(way, "bare") == 0)
		child_or(_Fork());
	else if (strcmp(way, "raw") == 0)
		child_or((pid_t)syscall(SYS_fork));
	else if (strcmp(way, "clone") == 0)
		child_or((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	else if (strcmp(way, "clone3") == 0)
		start_clone3();
	else if (strcmp(way, "cloned") == 0)
		await(clone(cloned, (char *)malloc(STACK_BYTES) + STACK_BYTES, SIGCHLD, NULL));
	else if (strcmp(way, "double") == 0)
		start_double();
	else if (strcmp(way, "line") == 0)
		for (int i = 0; i < CHILDREN; i++)
			child_or(fork());
	else
		return 0;
	return 1;
}

static int open_memfd(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("image", MFD_CLOEXEC);
	char bytes[4096];
	ssize_t got;

	if (from < 0 || to < 0)
		fail("memfd");
	while ((got = read(from, bytes, sizeof bytes)) > 0)
		if (write(to, bytes, (size_t)got) != got)
			fail("memfd");
	close(from);
	return to;
}

static void start_vfork(char **argv)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execve(argv[0], argv, environment);
		_exit(CANNOT);
	}
	await(pid);
}

static void start_image(const char *way, char **argv)
{
	pid_t pid;

	if (strcmp(way, "execve") == 0)
		execve(argv[0], argv, environment);
	else if (strcmp(way, "execveat") == 0)
		execveat(AT_FDCWD, argv[0], argv, environment, 0);
	else if (strcmp(way, "fexecve") == 0)
		fexecve(open(argv[0], O_RDONLY | O_CLOEXEC), argv, environment);
	else if (strcmp(way, "memfd") == 0)
		fexecve(open_memfd(argv[0]), argv, environment);
	else if (strcmp(way, "raw-execveat") == 0)
		syscall(SYS_execveat, open(argv[0], O_PATH | O_CLOEXEC), "", argv, environment,
			AT_EMPTY_PATH);
	else if (strcmp(way, "vfork") == 0)
		start_vfork(argv);
	else if (strcmp(way, "spawn") == 0 &&
		 (errno = posix_spawn(&pid, argv[0], NULL, NULL, argv, environment)) == 0)
		await(pid);
	else
		fail(way);
	if (strcmp(way, "vfork") != 0 && strcmp(way, "spawn") != 0)
		fail(way);
}

static void take_descriptors(void)
{
	struct rlimit limit = { .rlim_cur = 64, .rlim_max = 64 };

	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		fail("setrlimit");
	while (open("/dev/null", O_RDONLY) >= 0)
		;
}

static char **with_session(const char *value)
{
	size_t count = 0;
	char **list;

	while (environ[count])
		count++;
	list = calloc(count + 2, sizeof *list);
	for (size_t i = count = 0; environ[i]; i++)
		if (strncmp(environ[i], "TIDEMARK_SESSION=", 17) != 0)
			list[count++] = environ[i];
	list[count] = (char *)(uintptr_t)value;
	return list;
}

// A call of our own.
static long call(long number, long a, long b, long c, long d)
{
	long result;

#ifdef __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = 0;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
#else
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "0"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(0)
			 : "memory");
#endif
	return result;
}

static void hide_unseen(void)
{
	if (call(SYS_unshare, CLONE_NEWNET | CLONE_NEWNS, 0, 0, 0) != 0 ||
	    call(SYS_mount, (long)"none", (long)"/", 0, MS_REC | MS_PRIVATE) != 0 ||
	    call(SYS_mount, (long)"none", (long)"/tmp", (long)"tmpfs", 0) != 0)
		fail("unseen");
}

// No descriptor can be opened: for now, or whatever is closed or asked for.
static void forbid_descriptors(int hard)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		fail("getrlimit");
	limit.rlim_cur = 0;
	if (hard)
		limit.rlim_max = 0;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		fail("setrlimit");
}

static int obstruct(const char *obstacle)
{
	static char *nothing[] = { NULL };

	if (strcmp(obstacle, "net") == 0) {
		if (unshare(CLONE_NEWNET) != 0)
			fail("unshare");
	} else if (strcmp(obstacle, "pids") == 0) {
		if (unshare(CLONE_NEWPID) != 0)
			fail("unshare");
	} else if (strcmp(obstacle, "users") == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
			fail("unshare");
	} else if (strcmp(obstacle, "hidden") == 0) {
		if (unshare(CLONE_NEWNS) != 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", "/tmp", "tmpfs", 0, NULL))
			fail("mount");
	} else if (strcmp(obstacle, "unseen") == 0) {
		hide_unseen();
	} else if (strcmp(obstacle, "fds") == 0) {
		take_descriptors();
	} else if (strcmp(obstacle, "fds=now") == 0 || strcmp(obstacle, "fds=never") == 0) {
		forbid_descriptors(strcmp(obstacle, "fds=never") == 0);
	} else if (strcmp(obstacle, "env=empty") == 0) {
		environment = nothing;
	} else if (strcmp(obstacle, "env=nonsense") == 0) {
		environment = with_session("TIDEMARK_SESSION=nonsense");
	} else if (strcmp(obstacle, "env=other") == 0) {
		environment =
			with_session("TIDEMARK_SESSION=tidemark-0123456789abcdef0123456789abcdef");
	} else {
		return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	environment = environ;
	for (argv++, argc--; argc > 0 && obstruct(argv[0]); argc--)
		argv++;
	if (argc == 0)
		return CANNOT;
	if (!start_child(argv[0]) && argc > 1)
		start_image(argv[0], argv + 1);
	return 0;
}
