// "4242" is a process if there is no file of that name, and its collector is asked for the file
// that it writes. A mark needs a process, too: the first one of the trace that its collector still
// knows.
#include "cli/running.h"

#include "base/mem.h"
#include "collect/control.h"
#include "collect/peer.h"
#include "os/file.h"
#include "os/now.h"

#include <stdio.h>
#include <stdlib.h>

bool running_trace(const char *word, struct str *path, struct err *err)
{
	struct control_request request = { .magic = CONTROL_MAGIC, .verb = CONTROL_WHERE };
	char text[CONTROL_TEXT_MAX];
	char *end;
	// A number above 2^31 - 1 is refused below: no process has it.
	unsigned long pid = strtoul(word, &end, 10);

	ASSERT(word && path);
	// A file of that name wins: what is there can be meant, and a process is asked for its
	// number again.
	if (word[0] < '0' || word[0] > '9' || *end || file_look(word) != FILE_IS_MISSING) {
		str_add(path, word);
		return true;
	}
	request.pid = (uint32_t)pid;
	if (pid == 0 || pid > INT32_MAX)
		return err_set(err, ERR_USAGE, "'%s' is not a process id", word);
	if (!control_ask(&request, text, err))
		return err_wrap(err,
				"no recording to watch (try: tidemark record -p %lu, or a trace "
				"FILE)",
				pid);
	str_add(path, text);
	return true;
}

bool running_mark(const struct reader *reader, const char *name)
{
	struct control_request request = { .magic = CONTROL_MAGIC, .verb = CONTROL_MARK };
	char text[CONTROL_TEXT_MAX];
	bool done = false;

	ASSERT(name);
	// A longer name is cut: a mark of ours, which no filter has to find.
	snprintf(request.text, sizeof request.text, "%s", name);
	for (process_id id = 0; id < reader_processes_count(reader) && !done; id++) {
		struct err ignored = { 0 };

		request.pid = reader_process(reader, id)->pid;
		// Those that have ended have no collector that would take a mark for them.
		done = reader_process(reader, id)->exit == TRACE_EXIT_UNKNOWN &&
		       control_ask(&request, text, &ignored);
	}
	return done;
}

// By number: of a trace that somebody writes now, the processes that have not ended have theirs.
static bool program_lives(const char *path)
{
	struct err ignored = { 0 };
	struct reader *reader = reader_open(path, &ignored);
	bool lives = false;

	if (!reader)
		return false;
	reader_scan(reader);
	for (process_id id = 0; id < reader_processes_count(reader) && !lives; id++) {
		int pidfd = peer_pidfd(-1, reader_process(reader, id)->pid);

		lives = pidfd >= 0 && !peer_ended(pidfd);
		if (pidfd >= 0)
			peer_close(pidfd);
	}
	reader_close(reader);
	return lives;
}

void running_await(const char *path)
{
	enum { EACH_NS = 5000000, TIMES = 1000, LOOKS_EACH = 20 }; // five seconds
	int fd = file_open(path, FILE_READ);

	ASSERT(path);
	for (int i = 0; i < TIMES && fd >= 0 && file_is_claimed(fd); i++) {
		if (i % LOOKS_EACH == 0 && program_lives(path))
			break;
		now_sleep(EACH_NS);
	}
	if (fd >= 0)
		file_close(fd);
}
