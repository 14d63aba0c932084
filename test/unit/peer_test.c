// What the kernel says about another process, and nothing where it says nothing.
#include "base/mem.h"
#include "collect/peer.h"
#include "test/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

TEST(peer_knows_our_parent_and_our_arguments)
{
	uint32_t count;
	char **args;

	CHECK_EQ(getppid(), peer_parent((uint32_t)getpid()));
	args = peer_args((uint32_t)getpid(), &count);
	CHECK(count >= 1);
	CHECK_CONTAINS("peer", args[0]);
	mem_free(args);
	CHECK(peer_resident((uint32_t)getpid()) > 100000);
}

TEST(peer_knows_the_parent_with_a_pidfd_and_without)
{
	pid_t pid = fork();
	int fd;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	fd = pidfd_of(pid);
	CHECK_EQ(getpid(), peer_parent_of(fd, (uint32_t)pid));
	CHECK_EQ(getpid(), peer_parent_of(-1, (uint32_t)pid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

TEST(peer_knows_what_a_process_may_map_each_time_anew)
{
	static const rlim_t limits[] = { 48 << 20, 80 << 20, RLIM_INFINITY };
	struct peer_space space, before = { 0 };

	for (size_t i = 0; i < 3; i++) {
		int tube[2];
		pid_t pid;
		char byte;

		CHECK_EQ(0, pipe(tube));
		pid = fork();
		if (pid == 0) {
			setrlimit(RLIMIT_DATA, &(struct rlimit){ limits[i], RLIM_INFINITY });
			close(tube[1]);
			pause();
			_exit(0);
		}
		close(tube[1]);
		CHECK_EQ(0, read(tube[0], &byte, 1)); // its end: the limit is set
		// By itself, and twice as a child of one image: asked for, and remembered.
		peer_space((uint32_t)pid, -1, 64, i > 0 ? 7 : 0, &space);
		CHECK_EQ(limits[i] == RLIM_INFINITY ? 0 : limits[i], space.data_limit);
		CHECK_EQ(0, space.mapped_limit);
		CHECK(space.low > 0 && space.low < space.end);
		CHECK(i == 0 || (space.group_limit == before.group_limit &&
				 space.group_kills == before.group_kills &&
				 space.group_counts_inner == before.group_counts_inner &&
				 space.group_around_kills == before.group_around_kills));
		if (i > 0)
			CHECK_STR(before.group_events, space.group_events);
		before = space;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(tube[0]);
	}
}

TEST(peer_knows_a_thread_by_its_name)
{
	char name[16] = "";

	prctl(PR_SET_NAME, "a (b) c");
	CHECK(peer_thread_name((uint32_t)getpid(), (uint32_t)gettid(), name));
	CHECK_STR("a (b) c", name);
	CHECK_EQ(getppid(), peer_parent((uint32_t)getpid()));
}

TEST(peer_knows_how_a_process_ended_before_anybody_reaped_it)
{
	siginfo_t info;
	enum trace_exit exit = TRACE_EXIT_UNKNOWN;
	uint32_t value = 0;
	int status = 0;
	pid_t pid = fork();
	int fd;

	if (pid == 0)
		_exit(42);
	fd = pidfd_of(pid);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	CHECK(peer_exit(fd, (uint32_t)pid, &exit, &value));
	CHECK_EQ(TRACE_EXIT_CODE, exit);
	CHECK_EQ(42, value);
	waitpid(pid, &status, 0);
	close(fd);
}

TEST(peer_knows_the_signal_that_ended_a_process)
{
	enum trace_exit exit = TRACE_EXIT_UNKNOWN;
	uint32_t value = 0;
	siginfo_t info;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		pause();
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	CHECK(peer_exit(-1, (uint32_t)pid, &exit, &value));
	CHECK_EQ(TRACE_EXIT_SIGNAL, exit);
	CHECK_EQ(SIGKILL, value);
	waitpid(pid, &status, 0);
}

TEST(peer_says_nothing_of_a_process_that_is_gone)
{
	uint32_t count = 7;
	char name[16];
	enum trace_exit exit;
	uint32_t value;
	int status;
	char **args;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, &status, 0);
	CHECK(!peer_exit(-1, (uint32_t)pid, &exit, &value));
	CHECK_EQ(0, peer_parent((uint32_t)pid));
	CHECK_EQ(0, peer_resident((uint32_t)pid));
	CHECK(!peer_thread_name((uint32_t)pid, (uint32_t)pid, name));
	args = peer_args((uint32_t)pid, &count);
	CHECK_EQ(0, count);
	mem_free(args);
}

TEST(peer_file_has_its_size_and_time)
{
	uint64_t size, mtime_ns;
	struct str path = { 0 };

	peer_file((uint32_t)getpid(), "/proc/self/exe", &path, &size, &mtime_ns);
	CHECK_STR("/proc/self/exe", str_get(&path));
	CHECK(size > 1000);
	CHECK(mtime_ns > 1000000000ull * 1000000000);
	peer_file((uint32_t)getpid(), "/no/such/file", &path, &size, &mtime_ns);
	CHECK_STR("/no/such/file", str_get(&path));
	CHECK_EQ(0, size);
	str_fini(&path);
}
