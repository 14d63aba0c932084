// Short work shows nothing: for half a second no bar is drawn, and then ten times a second, or a
// line each second where there is no terminal. Who listens (the viewer) is told of each step at
// once.
#include "base/progress.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BAR_CELLS = 30 };

static const uint64_t delay_ns = 500000000;       // short work shows nothing
static const uint64_t bar_step_ns = 100000000;    // between two looks of a bar
static const uint64_t plain_step_ns = 1000000000; // between two lines

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// One for each thread: a viewer has several questions at a time, each with a meter of its own.
static _Thread_local struct progress_meter *listener;

void progress_listen(struct progress_meter *meter)
{
	// The meter that was listened to before has no work to show any more.
	if (listener)
		atomic_store(&listener->what, NULL);
	listener = meter;
}

// `what` is stored last, so that who reads it sees figures that belong to it or are newer.
void progress_tell(const char *what, uint64_t done, uint64_t total)
{
	if (!listener)
		return;
	// Another work, or the same begun again: then its time begins again, too, from which a page
	// reckons what is left.
	if (atomic_load(&listener->what) != what || done < atomic_load(&listener->done))
		atomic_store(&listener->began_ns, now_ns());
	atomic_store(&listener->done, done);
	atomic_store(&listener->total, total);
	atomic_store(&listener->what, what);
}

// A bar is drawn over itself, which a log file or a dumb terminal cannot show.
static bool terminal_has_bars(void)
{
	const char *term = getenv("TERM");

	return progress_has_terminal() && term && *term && strcmp(term, "dumb") != 0;
}

void progress_begin(struct progress *progress, enum progress_mode mode, const char *what,
		    uint64_t total)
{
	// Without a terminal nothing is shown unless it was asked for (plain).
	if (mode == PROGRESS_AUTO)
		mode = terminal_has_bars() ? PROGRESS_BAR : PROGRESS_NONE;
	*progress = (struct progress){
		.mode = mode,
		.what = what,
		.total = total,
	};
	if (mode != PROGRESS_NONE)
		progress->began_ns = now_ns();
	progress_tell(what, 0, total);
}

static void show_bar(const char *what, int percent)
{
	char cells[BAR_CELLS + 1];
	// For example 50 %: 15 of 30 cells are full.
	int full = percent * BAR_CELLS / 100;

	ASSERT(percent >= 0 && percent <= 100);
	memset(cells, '.', BAR_CELLS);
	memset(cells, '#', (size_t)full);
	cells[BAR_CELLS] = '\0';
	fprintf(stderr, "\r%s [%s] %3d %%\033[K", what, cells, percent);
}

// The order of the questions is by cost: without a bar and a listener it is two comparisons.
void progress_update(struct progress *progress, uint64_t done)
{
	bool bar = progress->mode == PROGRESS_BAR;
	int percent = 0;
	uint64_t now;

	if (listener && progress->what)
		progress_tell(progress->what, done, progress->total);
	if (progress->mode == PROGRESS_NONE)
		return;
	now = now_ns();
	if (now - progress->began_ns < delay_ns)
		return;
	if (progress->visible && now - progress->shown_ns < (bar ? bar_step_ns : plain_step_ns))
		return;
	// Also where the total is 0, by which nothing could be divided.
	if (done >= progress->total)
		percent = 100;
	else
		percent = (int)((double)done / (double)progress->total * 100);
	progress->visible = true;
	progress->shown_ns = now;
	if (bar)
		show_bar(progress->what, percent);
	else
		fprintf(stderr, "%s: %d %%\n", progress->what, percent);
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	// A bar is removed, so that the answer stands where it was; lines of a log stay.
	if (progress->visible && progress->mode == PROGRESS_BAR) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	progress->mode = PROGRESS_NONE;
	progress->visible = false;
	if (listener)
		atomic_store(&listener->what, NULL);
}
