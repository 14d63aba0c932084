// A process is awaited until it says hello, is given up, or has ended.
#include "base/mem.h"
#include "collect/pending_exec.h"
#include "test/test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	CHECK(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	siginfo_t information;

	kill(pid, SIGKILL);
	CHECK(waitid(P_PID, (id_t)pid, &information, WEXITED | WNOWAIT) == 0);
}

static void expect_lost(struct pending_exec *pending_exec, const char *path)
{
	process_id parent = 0;
	char *lost = pending_exec_next_lost(pending_exec, 1, &parent);

	CHECK(lost != NULL && strcmp(lost, path) == 0);
	CHECK_EQ(3, parent);
	mem_free(lost);
}

TEST(awaited_is_who_lives_and_has_not_said_hello)
{
	struct pending_exec pending_exec = { 0 };
	pid_t one = sleeper(), other = sleeper();
	process_id parent;

	CHECK(!pending_exec_any(&pending_exec));
	pending_exec_add(&pending_exec, 3, (uint32_t)one, (uint32_t)one, "/bin/one");
	pending_exec_add(&pending_exec, 3, (uint32_t)other, (uint32_t)other, "/bin/other");
	pending_exec_add(&pending_exec, 3, (uint32_t)other, (uint32_t)other, "/usr/bin/other");
	CHECK(pending_exec.count == 2);
	pending_exec_drop(&pending_exec, (uint32_t)one);
	CHECK(pending_exec_any(&pending_exec));
	CHECK(pending_exec.count == 1 && strcmp(pending_exec.all[0].line, "/usr/bin/other") == 0);
	CHECK(pending_exec_next_lost(&pending_exec, 1, &parent) == NULL);
	end(other); // a zombie
	CHECK(pending_exec_next_lost(&pending_exec, 1, &parent) ==
	      NULL); // its hello may be under way
	expect_lost(&pending_exec, "/usr/bin/other");
	CHECK(!pending_exec_any(&pending_exec));
	waitpid(other, NULL, 0);
	pending_exec_add(&pending_exec, 3, (uint32_t)other, (uint32_t)other,
			 "/usr/bin/other");                               // gone
	CHECK(pending_exec_next_lost(&pending_exec, 1, &parent) == NULL); // the same
	expect_lost(&pending_exec, "/usr/bin/other");
	end(one);
	waitpid(one, NULL, 0);
	pending_exec_fini(&pending_exec);
}

TEST(awaited_of_another_namespace_is_given_up)
{
	struct pending_exec pending_exec = { 0 };
	process_id parent = 0;
	char *path;

	pending_exec_add(&pending_exec, 3, 7, 0, "/bin/seven");
	pending_exec_add(&pending_exec, 3, 8, 0, "/bin/eight");
	CHECK(pending_exec_any(&pending_exec));
	pending_exec_drop(&pending_exec, 8);
	path = pending_exec_give_up(&pending_exec, &parent);
	CHECK(path != NULL && strcmp(path, "/bin/seven") == 0);
	CHECK_EQ(3, parent);
	mem_free(path);
	CHECK(pending_exec_give_up(&pending_exec, &parent) == NULL);
	CHECK(!pending_exec_any(&pending_exec));
	pending_exec_fini(&pending_exec);
}

TEST(awaited_is_nobody_whose_hello_came_before_the_word_of_its_exec)
{
	struct pending_exec pending_exec = { 0 };

	pending_exec_add(&pending_exec, 3, 7, 0, "/bin/seven");
	pending_exec_hear(&pending_exec, 7, 1);
	CHECK(!pending_exec_any(&pending_exec));
	pending_exec_hear(&pending_exec, 8, 2);
	pending_exec_hear(&pending_exec, 9, 4);
	// A search along $PATH.
	pending_exec_add(&pending_exec, 3, 8, 0, "/bin/eight");
	pending_exec_drop(&pending_exec, 8);
	pending_exec_add(&pending_exec, 3, 8, 0, "/usr/bin/eight");
	CHECK(!pending_exec_any(&pending_exec));
	pending_exec_forget(&pending_exec, 4);
	pending_exec_add(&pending_exec, 3, 9, 0, "/bin/nine");
	CHECK(!pending_exec_any(&pending_exec));
	// The same pids again, long after.
	pending_exec_add(&pending_exec, 3, 8, 0, "/bin/eight");
	CHECK(pending_exec.count == 1);
	pending_exec_forget(&pending_exec, UINT32_MAX);
	pending_exec_add(&pending_exec, 3, 9, 0, "/bin/nine");
	CHECK(pending_exec.count == 2);
	pending_exec_fini(&pending_exec);
}
