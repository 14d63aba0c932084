// The collector hears of a family out of order: a program says hello, and ends, before its parent
// has its place among the others' events.
#include "test/test.h"
#include "test/unit/fake_guest.h"
#include "test/unit/fake_session.h"

static void note_exec(struct fake_lane *notes)
{
	fake_note(notes, NOTE_EXEC);
	fake_put(notes, NOTE_EXEC_OK, 4);
	fake_put(notes, (uint64_t)getpid(), 4);
	fake_put(notes, 0x6e69622f, 4); // "/bin"
	fake_note_end(notes);
}

static void say_hello_as_child(const char *socket_name, struct fake_lane *notes)
{
	struct segment_hello hello = { .exe_length = 10, .exe = "/bin/child" };
	struct fake_guest guest;

	note_exec(notes);
	fake_join(&guest, socket_name, &hello);
	_exit(0);
}

// A vfork child, which writes into its parent's lanes until it execs. An orphan's parent in between
// is not recorded, and has ended.
static void start_child(const char *socket_name, struct fake_lane *notes, bool orphan)
{
	pid_t self = getpid(), pid;

	if (!orphan)
		say_hello_as_child(socket_name, notes);
	pid = fork();
	if (pid != 0)
		_exit(0);
	while (getppid() == self)
		usleep(1000);
	say_hello_as_child(socket_name, notes);
}

// A forked child that execs, and then starts a program that ends before it does. Behind a fork
// whose child lives and says nothing, so that it waits for its own place all the time.
static void late_parent(const char *socket_name, const struct fake_guest *parent,
			const struct fake_lane *lane, bool orphan)
{
	struct segment_hello fork_hello = {
		.start = SEGMENT_START_FORK,
		.parent_image = parent->welcome.image,
		.fork_lane = lane->number,
		.fork_head = lane->head,
	};
	struct segment_hello hello = { 0 };
	struct fake_guest guest;
	struct fake_lane notes;
	int ends[2];
	pid_t pid;

	CHECK(pipe(ends) == 0);
	fake_join(&guest, socket_name, &fork_hello);
	fake_leave(&guest);
	fake_join(&guest, socket_name, &hello);
	fake_lane_open(&notes, &guest, 0);
	FAKE_PROCESS(pid, start_child(socket_name, &notes, orphan));
	close(ends[1]);
	CHECK(read(ends[0], ends, 1) == 0); // until all others have ended
	waitpid(pid, ends, 0);
	_exit(0);
}

// A child that says no hello and lives until the test closes `ends`.
static void start_silent(const int ends[2])
{
	char byte;
	pid_t pid;

	FAKE_PROCESS(pid, {
		close(ends[1]);
		CHECK(read(ends[0], &byte, 1) == 0);
	});
}

static void fork_late_parent(const char *socket_name, const int ends[2], bool orphan)
{
	struct fake_guest guest;
	struct fake_lane notes, lane;
	struct segment_hello hello = { 0 };
	int status;
	pid_t pid;

	fake_join(&guest, socket_name, &hello);
	fake_lane_open(&notes, &guest, 0);
	fake_lane_open(&lane, &guest, 1);
	start_silent(ends);
	for (int i = 0; i < 2; i++) {
		fake_record(&lane, &(struct fake_event){ .type = LANE_MALLOC, .size = 1 });
		fake_place(&notes, NOTE_FORK, fake_now(&guest), &lane, NULL);
	}
	FAKE_PROCESS(pid, late_parent(socket_name, &guest, &lane, orphan));
	waitpid(pid, &status, 0);
	_exit(0);
}

// Of the notes, how many have the text in them.
static struct reader *read_all(const struct fake_session *session, const char *text, int *found)
{
	struct trace_event event;
	struct trace_note note;
	struct err err;
	struct reader *reader = reader_open(session->path, &err);
	enum reader_item item;

	CHECK(reader != NULL);
	*found = 0;
	while ((item = reader_next(reader, &event, &note)) != READER_END)
		*found += item == READER_NOTE && note.text != NULL &&
			  strstr(note.text, text) != NULL;
	CHECK(reader_end(reader) != NULL);
	return reader;
}

static const struct trace_process *find_child(const struct reader *reader)
{
	for (uint32_t id = 0; id < reader_processes_count(reader); id++)
		if (strcmp(reader_process(reader, id)->exe, "/bin/child") == 0)
			return reader_process(reader, id);
	return NULL;
}

static void check_child(bool orphan)
{
	const struct trace_process *child;
	struct fake_session session;
	struct reader *reader;
	int ends[2], status, late;
	pid_t pid;

	CHECK(pipe(ends) == 0);
	fake_session_open(&session, 0);
	FAKE_PROCESS(pid, fork_late_parent(session.socket_name, ends, orphan));
	waitpid(pid, &status, 0);
	fake_session_close(&session, COLLECT_ENDED);
	close(ends[0]);
	close(ends[1]);
	reader = read_all(&session, "fork has no exact place", &late);
	CHECK_EQ(1, late);
	CHECK_EQ(0, reader_end(reader)->unseen);
	CHECK_EQ(4, reader_processes_count(reader));
	child = find_child(reader);
	CHECK(child != NULL);
	if (!orphan) {
		CHECK(child->parent != TRACE_NONE);
		CHECK_EQ(1, reader_process(reader, child->parent)->generation);
	}
	reader_close(reader);
}

TEST(process_list_gives_a_program_to_a_parent_that_begins_late)
{
	check_child(false);
}

TEST(process_list_knows_an_orphan_of_whose_exec_it_reads_late)
{
	check_child(true);
}

// The same of a fork whose child ended first: nothing is waited for.
static void fork_stillborn(const char *socket_name)
{
	struct segment_hello hello = { 0 };
	struct fake_guest guest;
	struct fake_lane notes, lane;
	int status;
	pid_t pid;

	fake_join(&guest, socket_name, &hello);
	fake_lane_open(&notes, &guest, 0);
	fake_lane_open(&lane, &guest, 1);
	FAKE_PROCESS(pid, _exit(0));
	waitpid(pid, &status, 0);
	fake_record(&lane, &(struct fake_event){ .type = LANE_MALLOC, .size = 1 });
	fake_place(&notes, NOTE_FORK, fake_now(&guest), &lane, NULL);
	fake_record(&lane, &(struct fake_event){ .type = LANE_MALLOC, .size = 1 });
	_exit(0);
}

TEST(process_list_does_not_wait_for_a_child_that_ended_before_it_said_hello)
{
	struct fake_session session;
	struct reader *reader;
	int status, stillborn;
	pid_t pid;

	fake_session_open(&session, 0);
	FAKE_PROCESS(pid, fork_stillborn(session.socket_name));
	waitpid(pid, &status, 0);
	fake_session_close(&session, COLLECT_ENDED);
	reader = read_all(&session, "1 forked child ended before", &stillborn);
	CHECK_EQ(1, stillborn);
	CHECK_EQ(2, reader_end(reader)->events);
	reader_close(reader);
}
