// base/progress.h: short work shows nothing, long work shows how far it is.
#include "base/progress.h"
#include "test/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char shown[4096];

// Run `body` and keep what it writes to stderr in `shown`.
static void capture(void (*body)(void))
{
	int saved = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	size_t length;

	CHECK(saved >= 0 && file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	body();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	length = fread(shown, 1, sizeof shown - 1, file);
	shown[length] = '\0';
	fclose(file);
}

// As if the work had begun a minute ago: no test waits.
static void make_old(struct progress *progress)
{
	progress->began_ns -= UINT64_C(60000000000);
	progress->shown_ns = 0;
}

static void work_shortly(void)
{
	struct progress progress;

	progress_begin(&progress, PROGRESS_PLAIN, "reading", 100);
	for (uint64_t done = 0; done <= 100; done++)
		progress_update(&progress, done);
	progress_end(&progress);
}

TEST(progress_of_short_work_shows_nothing)
{
	capture(work_shortly);
	CHECK_STR("", shown);
}

static void work_long_in_lines(void)
{
	struct progress progress;

	progress_begin(&progress, PROGRESS_PLAIN, "reading", 200);
	make_old(&progress);
	progress_update(&progress, 50);
	progress_update(&progress, 60); // within the same second
	make_old(&progress);
	progress_update(&progress, 300);
	progress_end(&progress);
	progress_update(&progress, 100); // it is over
}

TEST(progress_in_plain_lines_is_a_line_per_second)
{
	capture(work_long_in_lines);
	CHECK_STR("reading: 25 %\nreading: 100 %\n", shown);
}

static void work_long_with_a_bar(void)
{
	struct progress progress;

	progress_begin(&progress, PROGRESS_BAR, "reading", 200);
	make_old(&progress);
	progress_update(&progress, 100);
	progress_end(&progress);
}

TEST(progress_as_a_bar_wipes_itself_away)
{
	capture(work_long_with_a_bar);
	CHECK_STR("\rreading [###############...............]  50 %\033[K\r\033[K", shown);
}

static void work_into_a_file(void)
{
	struct progress progress;

	progress_begin(&progress, PROGRESS_AUTO, "reading", 0);
	make_old(&progress);
	progress_update(&progress, 0);
	progress_end(&progress);
}

TEST(progress_is_silent_where_stderr_is_no_terminal)
{
	capture(work_into_a_file);
	CHECK_STR("", shown);
}
