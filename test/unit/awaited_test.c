// A process is awaited until it says hello, is given up, or has ended.
#include "base/mem.h"
#include "collect/awaited.h"
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

static void expect_lost(struct awaited *awaited, const char *path)
{
	process_id parent = 0;
	char *lost = awaited_next_lost(awaited, &parent);

	CHECK(lost != NULL && strcmp(lost, path) == 0);
	CHECK_EQ(3, parent);
	mem_free(lost);
}

TEST(awaited_is_who_lives_and_has_not_said_hello)
{
	struct awaited awaited = { 0 };
	pid_t one = sleeper(), other = sleeper();
	process_id parent;

	CHECK(!awaited_any(&awaited));
	awaited_add(&awaited, 3, (uint32_t)one, (uint32_t)one, "/bin/one");
	awaited_add(&awaited, 3, (uint32_t)other, (uint32_t)other, "/bin/other");
	awaited_add(&awaited, 3, (uint32_t)other, (uint32_t)other, "/usr/bin/other");
	CHECK(awaited.count == 2);
	awaited_drop(&awaited, (uint32_t)one);
	CHECK(awaited_any(&awaited));
	CHECK(awaited.count == 1 && strcmp(awaited.all[0].path, "/usr/bin/other") == 0);
	CHECK(awaited_next_lost(&awaited, &parent) == NULL);
	end(other);                                          // a zombie
	CHECK(awaited_next_lost(&awaited, &parent) == NULL); // its hello may be under way
	expect_lost(&awaited, "/usr/bin/other");
	CHECK(!awaited_any(&awaited));
	waitpid(other, NULL, 0);
	awaited_add(&awaited, 3, (uint32_t)other, (uint32_t)other, "/usr/bin/other"); // gone
	expect_lost(&awaited, "/usr/bin/other");
	end(one);
	waitpid(one, NULL, 0);
	awaited_fini(&awaited);
}

TEST(awaited_of_another_namespace_is_given_up)
{
	struct awaited awaited = { 0 };
	process_id parent = 0;
	char *path;

	awaited_add(&awaited, 3, 7, 0, "/bin/seven");
	awaited_add(&awaited, 3, 8, 0, "/bin/eight");
	CHECK(awaited_any(&awaited));
	awaited_drop(&awaited, 8);
	path = awaited_give_up(&awaited, &parent);
	CHECK(path != NULL && strcmp(path, "/bin/seven") == 0);
	CHECK_EQ(3, parent);
	mem_free(path);
	CHECK(awaited_give_up(&awaited, &parent) == NULL);
	CHECK(!awaited_any(&awaited));
	awaited_fini(&awaited);
}
