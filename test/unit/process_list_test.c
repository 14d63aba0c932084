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
// whose child does not come, so that it waits for its own place all the time.
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

static void fork_late_parent(const char *socket_name, bool orphan)
{
	struct fake_guest guest;
	struct fake_lane notes, lane;
	struct segment_hello hello = { 0 };
	int status;
	pid_t pid;

	fake_join(&guest, socket_name, &hello);
	fake_lane_open(&notes, &guest, 0);
	fake_lane_open(&lane, &guest, 1);
	for (int i = 0; i < 2; i++) {
		fake_record(&lane, &(struct fake_event){ .type = LANE_MALLOC, .size = 1 });
		fake_place(&notes, NOTE_FORK, fake_now(&guest), &lane, NULL);
	}
	FAKE_PROCESS(pid, late_parent(socket_name, &guest, &lane, orphan));
	waitpid(pid, &status, 0);
	_exit(0);
}

static struct reader *read_all(const struct fake_session *session)
{
	struct trace_event event;
	struct trace_note note;
	struct err err;
	struct reader *reader = reader_open(session->path, &err);

	CHECK(reader != NULL);
	while (reader_next(reader, &event, &note) != READER_END)
		;
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
	int status;
	pid_t pid;

	fake_session_open(&session, 0);
	FAKE_PROCESS(pid, fork_late_parent(session.socket_name, orphan));
	waitpid(pid, &status, 0);
	fake_session_close(&session, COLLECT_ENDED);
	reader = read_all(&session);
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
