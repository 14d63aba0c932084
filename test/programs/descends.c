// descends: starts children in every way there is, each of which makes a known number of calls.
//
//     descends HOW
//
// A process keeps `n` blocks of 7100 + its role bytes: role 0, the first process, 10 before and
// 10 after; role 1, a forked child, 20; role 2, a fresh image of this program, 30. Role 1 frees
// the first five blocks of its parent as well: they are inherited, and are the parent's.
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static char self[4096];
static void *kept[10];

static void keep(size_t role, int count)
{
	for (int i = 0; i < count; i++) {
		void *ptr = guest_keep(7100 + role);

		if (role == 0 && i < 10)
			kept[i] = ptr;
	}
}

static void wait_for(pid_t pid)
{
	int status = 0;

	guest_check(pid > 0, "no child");
	while (waitpid(pid, &status, 0) < 0)
		guest_check(errno == EINTR, "waitpid");
	guest_check(status == 0, "the child failed");
}

static void child(void)
{
	for (int i = 0; i < 5; i++)
		free(kept[i]);
	keep(1, 20);
}

static pid_t start(char *const *argv, char *const *envp)
{
	pid_t pid = fork();

	if (pid == 0) {
		execve(argv[0], argv, envp);
		_exit(127);
	}
	return pid;
}

static void run_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		child();
		_exit(0);
	}
	wait_for(pid);
}

// No child, five times, and then one; of errno each fork changes nothing but for its failure.
static void run_fork_fails(void)
{
	struct rlimit limit;
	rlim_t soft;
	pid_t pid;

	guest_check(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0, "setresuid");
	guest_check(getrlimit(RLIMIT_NPROC, &limit) == 0, "getrlimit");
	soft = limit.rlim_cur;
	limit.rlim_cur = 0;
	guest_check(setrlimit(RLIMIT_NPROC, &limit) == 0, "setrlimit");
	for (int i = 0; i < 5; i++) {
		errno = 0;
		guest_check(fork() < 0 && errno == EAGAIN, "a fork that fails");
	}
	limit.rlim_cur = soft;
	guest_check(setrlimit(RLIMIT_NPROC, &limit) == 0, "setrlimit");
	errno = 77;
	pid = fork();
	guest_check(errno == 77, "errno");
	if (pid == 0) {
		child();
		_exit(0);
	}
	wait_for(pid);
}

static void run_fork_exec(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		child();
		execl(self, "descends", "image", NULL);
		_exit(127);
	}
	wait_for(pid);
}

// Most are killed before they have run.
static void run_fork_killed(void)
{
	int status;

	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			pause();
			_exit(0);
		}
		guest_check(pid > 0 && kill(pid, SIGKILL) == 0, "kill");
		guest_check(waitpid(pid, &status, 0) == pid, "waitpid");
	}
}

static void run_exec_self(void)
{
	execl(self, "descends", "image", NULL);
	_exit(127);
}

static void run_exec_fails(void)
{
	execl("/nonexistent/program", "program", NULL);
	guest_check(errno == ENOENT, "exec of nothing");
}

// Environments that cannot be read: the list, a text in it, and what of a list comes on a page
// that is not there.
static void run_exec_unreadable(void)
{
	const size_t last = 4096 / sizeof(char *) - 1;
	char *argv[] = { self, (char *)"image", NULL };
	char *text[] = { (char *)16, NULL };
	char **cut = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *const *lists[] = { (char **)16, text, cut + last };

	cut[last] = (char *)"A=1";
	guest_check(munmap(cut + last + 1, 4096) == 0, "munmap");
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		errno = 0;
		guest_check(execve(self, argv, lists[i]) < 0 && errno == EFAULT, "an environment");
	}
}

static void run_system(void)
{
	char line[5000];

	snprintf(line, sizeof(line), "%s image", self);
	guest_check(system(line) == 0, "system");
}

static void run_popen(void)
{
	char line[5000];
	char text[16] = "";
	FILE *file;

	snprintf(line, sizeof(line), "%s image; echo done", self);
	file = popen(line, "r");
	guest_check(file && fgets(text, sizeof(text), file) && strcmp(text, "done\n") == 0,
		    "popen");
	guest_check(pclose(file) == 0, "pclose");
}

static void run_spawn(void)
{
	char *argv[] = { self, "image", NULL };
	pid_t pid = 0;

	guest_check(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0, "posix_spawn");
	wait_for(pid);
}

// The child is an image of its own long after its parent is gone.
static void run_leave(void)
{
	char path[sizeof(self) + 16];
	char *argv[] = { path, NULL };
	pid_t pid = 0;

	snprintf(path, sizeof(path), "%.*s/slow_start", (int)(strrchr(self, '/') - self), self);
	guest_check(posix_spawn(&pid, path, NULL, NULL, argv, environ) == 0, "posix_spawn");
}

static void run_vfork(void)
{
	char *argv[] = { self, "image", NULL };
	pid_t pid = vfork();

	if (pid == 0) {
		execve(self, argv, environ);
		_exit(127);
	}
	wait_for(pid);
}

#ifdef __GLIBC__
static _Atomic int beside_done;

static int beside(void *unused)
{
	for (int i = 0; i < 20000; i++) {
		void *at = mmap(NULL, 7 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

		munmap(at, 7 * 4096);
	}
	beside_done = 1;
	return unused != NULL;
}

// A child in the same memory, that has the same variables of the thread, maps while the first
// process allocates: 7 pages each time. Of 7101 bytes there are 20 blocks more in the end.
static void run_beside(void)
{
	enum { STACK = 65536 };
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	alarm(60);
	pid = clone(beside, stack + STACK, CLONE_VM | SIGCHLD, NULL);
	for (int i = 0; i < 30000 && !beside_done; i++) {
		guest_pair(7190);
		for (volatile int spin = 0; spin < 500; spin++)
			;
	}
	wait_for(pid);
	keep(1, 20);
}

static int become(void *unused)
{
	char *argv[] = { self, (char *)"image", NULL };
	char *const *volatile unreadable = (char *const *)16;

	(void)unused;
	for (int i = 0; i < 2000; i++)
		execve(self, unreadable, environ);
	execve(self, argv, environ);
	return 127;
}

// Such a child becomes another program after two thousand tries, while the first process maps and
// unmaps seven pages all the time, so often as it prints. Ten of them.
static void run_beside_exec(void)
{
	enum { STACK = 65536 };
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rounds = 0;

	alarm(60);
	for (int i = 0; i < 10; i++) {
		pid_t pid = clone(become, stack + STACK, CLONE_VM | SIGCHLD, NULL);
		int status = 0;

		guest_check(pid > 0, "clone");
		while (waitpid(pid, &status, WNOHANG) == 0) {
			char *at = mmap(NULL, 28672, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			munmap(at, 28672);
			rounds++;
		}
		guest_check(status == 0, "the child failed");
	}
	guest_say("%d\n", rounds);
	keep(1, 20);
}
#else
static void run_beside(void)
{
	keep(1, 20);
}

static void run_beside_exec(void)
{
	for (int i = 0; i < 10; i++)
		run_fork_exec();
	keep(1, 20);
}
#endif

// The child of a vfork may not allocate by the book, but programs do.
static void run_vfork_allocates(void)
{
	char *argv[] = { self, "image", NULL };
	pid_t pid = vfork();

	if (pid == 0) {
		void *volatile ptr = malloc(7101);

		free(ptr);
		execve(self, argv, environ);
		_exit(127);
	}
	wait_for(pid);
}

static void run_vfork_exits(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	wait_for(pid);
}

static void run_sh(void)
{
	char line[5000];
	char *argv[] = { "/bin/sh", "-c", line, NULL };

	snprintf(line, sizeof(line), "%s image && true", self);
	wait_for(start(argv, environ));
}

static void run_env(void)
{
	char *argv[] = { "/usr/bin/env", "X=1", self, "image", NULL };

	wait_for(start(argv, environ));
}

static void run_env_empty(void)
{
	char *argv[] = { "/usr/bin/env", "-i", self, "image", NULL };

	wait_for(start(argv, environ));
}

static void run_no_environment(void)
{
	char *argv[] = { self, "image", NULL };
	char *envp[] = { NULL };

	wait_for(start(argv, envp));
}

// The child works on after its parent ended.
static void run_orphan(void)
{
	pid_t parent = getpid();

	if (fork() == 0) {
		while (getppid() == parent)
			usleep(1000);
		child();
		_exit(0);
	}
	keep(0, 10);
	_exit(0);
}

// 2,000 children, up to four at once, each keeps one block.
static void run_many(void)
{
	int alive = 0;

	for (int i = 0; i < 2000; i++) {
		pid_t pid = fork();

		guest_check(pid >= 0, "fork");
		if (pid == 0) {
			keep(1, 1);
			_exit(0);
		}
		if (++alive == 4) {
			guest_check(wait(NULL) > 0, "wait");
			alive--;
		}
	}
	while (alive-- > 0)
		wait(NULL);
}

// Children while the collector stands still, from `go` to `done`: one that forks, one that is
// killed, and at last one that becomes an image, for which it is waited after that.
static void run_unheard(void)
{
	pid_t last = 0;

	puts("ready");
	fflush(stdout);
	while (access("go", F_OK) != 0)
		usleep(1000);
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();

		guest_check(pid >= 0, "fork");
		if (pid == 0) {
			keep(1, 1);
			if (i == 5 && (pid = fork()) == 0) {
				keep(1, 1);
				_exit(55);
			}
			if (i == 5)
				waitpid(pid, NULL, 0);
			if (i == 6)
				kill(getpid(), SIGKILL);
			if (i == 7)
				execl(self, "descends", "image", NULL);
			_exit(i);
		}
		last = pid;
		if (i < 7)
			guest_check(waitpid(pid, NULL, 0) == pid, "waitpid");
	}
	close(open("done", O_CREAT | O_WRONLY, 0644));
	wait_for(last);
}

// A child of a child of a child.
static void run_chain(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		child();
		pid = fork();
		if (pid == 0) {
			keep(1, 20);
			execl(self, "descends", "image", NULL);
			_exit(127);
		}
		wait_for(pid);
		_exit(0);
	}
	wait_for(pid);
}

// Four threads take and free blocks while the first forks: 50 children keep one block each.
static volatile int stop;

static void *work(void *argument)
{
	while (!stop) {
		for (int i = 0; i < 50; i++)
			guest_pair(7103);
		usleep(200);
	}
	return argument;
}

static void start_threads(pthread_t threads[4])
{
	for (int i = 0; i < 4; i++)
		guest_check(pthread_create(&threads[i], NULL, work, NULL) == 0, "pthread_create");
}

static void run_fork_threads(void)
{
	pthread_t threads[4];

	start_threads(threads);
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			keep(1, 1);
			_exit(0);
		}
		wait_for(pid);
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

// The same threads are in the middle of their work when another program takes over.
static void run_exec_threads(void)
{
	pthread_t threads[4];

	start_threads(threads);
	usleep(10000);
	run_exec_self();
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{ "fork", run_fork },
	{ "fork_exec", run_fork_exec },
	{ "fork_fails", run_fork_fails },
	{ "fork_killed", run_fork_killed },
	{ "exec_self", run_exec_self },
	{ "exec_fails", run_exec_fails },
	{ "exec_unreadable", run_exec_unreadable },
	{ "system", run_system },
	{ "popen", run_popen },
	{ "spawn", run_spawn },
	{ "leave", run_leave },
	{ "vfork", run_vfork },
	{ "vfork_allocates", run_vfork_allocates },
	{ "vfork_exits", run_vfork_exits },
	{ "beside", run_beside },
	{ "beside_exec", run_beside_exec },
	{ "sh", run_sh },
	{ "env", run_env },
	{ "env_empty", run_env_empty },
	{ "no_environment", run_no_environment },
	{ "orphan", run_orphan },
	{ "many", run_many },
	{ "unheard", run_unheard },
	{ "chain", run_chain },
	{ "fork_threads", run_fork_threads },
	{ "exec_threads", run_exec_threads },
};

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "fork";
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	guest_check(length > 0, "readlink");
	if (strcmp(how, "image") == 0) {
		keep(2, 30);
		return 0;
	}
	keep(0, 10);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, how) != 0)
			continue;
		ways[i].run();
		keep(0, 10);
		return 0;
	}
	guest_check(0, "unknown way");
	return 1;
}
