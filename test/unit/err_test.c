// base/err.h: a failure is one line that a person can act on.
#include "base/err.h"
#include "test/test.h"

#include <errno.h>
#include <string.h>

TEST(err_set_returns_false_and_keeps_kind_and_text)
{
	struct err err = { 0 };

	CHECK(!err_set(&err, ERR_FORMAT, "block %d at byte %d", 17, 1048576));
	CHECK_EQ(ERR_FORMAT, err.kind);
	CHECK_STR("block 17 at byte 1048576", err.text);
}

TEST(err_errno_says_what_the_system_said)
{
	struct err err = { 0 };

	CHECK(!err_errno(&err, ENOENT, "cannot open %s", "app.tide"));
	CHECK_EQ(ERR_IO, err.kind);
	CHECK_STR("cannot open app.tide: No such file or directory", err.text);
}

#ifndef _WIN32
TEST(err_errno_says_which_limit_to_change)
{
	struct err err = { 0 };

	err_errno(&err, EMFILE, "cannot make a pipe");
	CHECK_STR("cannot make a pipe: Too many open files (ulimit -n)", err.text);
	err_errno(&err, EAGAIN, "cannot start a process");
	CHECK(strstr(err.text, "ulimit -u, pids.max") != NULL);
}
#endif

TEST(err_wrap_puts_the_context_in_front_and_keeps_the_kind)
{
	struct err err = { 0 };

	err_set(&err, ERR_FORMAT, "checksum differs");
	CHECK(!err_wrap(&err, "block %d", 17));
	CHECK(!err_wrap(&err, "cannot read %s", "app.tide"));
	CHECK_EQ(ERR_FORMAT, err.kind);
	CHECK_STR("cannot read app.tide: block 17: checksum differs", err.text);
}

TEST(err_texts_may_refer_to_themselves)
{
	struct err err = { 0 };

	err_set(&err, ERR_IO, "inner");
	err_set(&err, ERR_USAGE, "outer (%s)", err.text);
	CHECK_STR("outer (inner)", err.text);
}

TEST(err_cuts_what_does_not_fit_and_stays_terminated)
{
	struct err err = { 0 };
	char longer[2000];

	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	err_set(&err, ERR_IO, "%s", longer);
	CHECK_EQ(sizeof err.text - 1, strlen(err.text));
	err_wrap(&err, "%s", longer);
	CHECK_EQ(sizeof err.text - 1, strlen(err.text));
	err_errno(&err, EIO, "%s", longer);
	CHECK_EQ(sizeof err.text - 1, strlen(err.text));
	err_set(&err, ERR_IO, "short again");
	CHECK_STR("short again", err.text);
}
