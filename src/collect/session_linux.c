// The clock page is memory that all guests map, and the bell a word in it: who rings it raises it,
// and wakes who sleeps on it (a futex). The collector reads the word before it looks for work, and
// sleeps only while the word is what it read: a bell that was rung in between ends the sleep at
// once.
#include "collect/session.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

// A file without a name: the page of the clock, which the recorders map.
bool session_open(struct session *session, struct err *err)
{
	void *page;

	*session = (struct session){ .fd = memfd_create("tidemark-clock",
							MFD_CLOEXEC | MFD_ALLOW_SEALING) };
	if (session->fd < 0)
		return err_errno(err, errno, "cannot make the clock page");
	if (ftruncate(session->fd, PAGE_BYTES) != 0 ||
	    fcntl(session->fd, F_ADD_SEALS, SEGMENT_SEALS) != 0) {
		err_errno(err, errno, "cannot size the clock page");
		close(session->fd);
		return false;
	}
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, session->fd, 0);
	if (page == MAP_FAILED) {
		err_errno(err, errno, "cannot map the clock page");
		close(session->fd);
		return false;
	}
	session->clock = page;
	return true;
}

void session_close(struct session *session)
{
	if (session->clock == NULL)
		return;
	munmap(session->clock, PAGE_BYTES);
	close(session->fd);
	session->clock = NULL;
}

void session_ring(const struct session *session)
{
	ASSERT(session->clock != NULL);
	session_wake(&session->clock->bell);
}

void session_sleep(const struct session *session, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};

	syscall(SYS_futex, &session->clock->bell, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

void session_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// What the kernel itself takes the time from. If it has left the processor's counter for another
// source, it found that the counter is not steady, and then neither do we trust it.
bool session_counter_is_trusted(void)
{
	static const char *const names[] = { "tsc\n", "kvm-clock\n",
					     "hyperv_clocksource_tsc_page\n" };
	char text[64] = "";
	FILE *file =
		fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	bool good = false;

	if (file == NULL)
		return false;
	if (fgets(text, sizeof text, file) != NULL)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			good = good || strcmp(text, names[i]) == 0;
	fclose(file);
	return good;
}

// Timers of this thread may be late by 50 us unless that is changed; it is the thread that raises
// the tick.
void session_be_punctual(void)
{
	prctl(PR_SET_TIMERSLACK, 1);
	prctl(PR_SET_NAME, "tidemark-tick");
}
