// "4242" is a process if there is no file of that name, and its collector is asked for the file
// that it writes. A mark needs a process, too: the first one of the trace that its collector still
// knows.
#include "cli/running.h"

#include "base/mem.h"
#include "cli/args.h"
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
static bool program_lives(const struct reader *reader)
{
	bool lives = false;

	for (process_id id = 0; id < reader_processes_count(reader) && !lives; id++) {
		const struct trace_process *process = reader_process(reader, id);
		int pidfd = process->exit == TRACE_EXIT_UNKNOWN ? peer_pidfd(-1, process->pid) : -1;

		lives = pidfd >= 0 && !peer_ended(pidfd);
		if (pidfd >= 0)
			peer_close(pidfd);
	}
	return lives;
}

// It may have begun a process that was not in the trace before.
static bool program_lives_in(const char *path)
{
	struct err ignored = { 0 };
	struct reader *reader = reader_open(path, &ignored);
	bool lives = false;

	if (!reader)
		return false;
	reader_scan(reader);
	lives = program_lives(reader);
	reader_close(reader);
	return lives;
}

// Looking through the trace again takes the longer the larger it is: after 100, 300, 700 ms …
bool running_await(const struct command *command, const char *path, const struct reader *reader)
{
	enum { EACH_NS = 5000000, LOOK_NS = 100000000 };
	const uint64_t most_ns = UINT64_C(5000000000);
	uint64_t began = now_steady_ns(), looked = began, between = LOOK_NS;
	bool claimed = true;
	int fd;

	ASSERT(command && path && reader);
	if (!reader_growing(reader) || program_lives(reader))
		return false;
	fd = file_open(path, FILE_READ);
	while (fd >= 0 && (claimed = file_is_claimed(fd)) && now_steady_ns() - began < most_ns) {
		now_sleep(EACH_NS);
		if (now_steady_ns() - looked < between)
			continue;
		if (program_lives_in(path))
			break;
		if (between == LOOK_NS)
			args_warn(
				command,
				"%s is being written, and none of its processes is seen from here "
				"(of another pid namespace?): its end is waited for, up to five "
				"seconds",
				path);
		looked = now_steady_ns();
		between *= 2;
	}
	if (fd >= 0)
		file_close(fd);
	return true;
}
