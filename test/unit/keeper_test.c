// A trace that is kept short: what is written, or not yet written, when the new file takes the
// place of the old one is in the new one.
#include "launch/keep_wishes.h"
#include "launch/keeper_linux.h"
#include "os/now.h"
#include "test/test.h"
#include "test/unit/fake_guest.h"
#include "test/unit/fake_session.h"
#include "trace/writer.h"

#include <stdatomic.h>

enum {
	WAIT_US = 500,
	PASSES_HELD = 20, // so often the collector had the time to do what it should not
};

// ---- What is stopped before it read to the end ----------------------------------------------

struct trace_of_events {
	struct writer *writer;
	process_id process;
	thread_id thread;
	uint64_t count;
	int fd;
};

static void add_events(struct trace_of_events *trace, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++, trace->count++)
		writer_event(trace->writer, &(struct trace_event){
						    .kind = TRACE_MALLOC,
						    .thread = trace->thread,
						    .time_ns = trace->count * 1000,
						    .address = 0x10000 + 32 * trace->count,
						    .size = 24,
					    });
	writer_flush(trace->writer);
}

static struct trace_of_events begin_trace(void)
{
	struct trace_info info = { .tool = (char *)"test",
				   .host = (char *)"",
				   .command = (char *)"",
				   .directory = (char *)"/",
				   .options = (char *)"" };
	struct trace_of_events trace = { 0 };
	struct err err;

	trace.fd =
		open(test_temp_path("keeper.tide"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(trace.fd >= 0);
	trace.writer = writer_new(trace.fd, &info, &err);
	CHECK(trace.writer != NULL);
	trace.process = writer_add_process(trace.writer,
					   &(struct trace_process){ .parent = TRACE_NONE,
								    .exe = (char *)"/bin/fake" });
	trace.thread = writer_add_thread(trace.writer, trace.process, 1, "main");
	for (int i = 0; i < 10; i++)
		add_events(&trace, 1000);
	return trace;
}

TEST(keeper_that_is_stopped_before_it_read_to_the_end_has_nothing_to_take)
{
	const struct keep_wishes wishes = { .keep_ns = 1000 };
	struct trace_of_events trace = begin_trace();
	void *keep = keeper_calls.begin(&wishes, trace.fd);
	enum collect_keep_wish wish;

	// It has read what there is, and waits for what comes.
	do {
		wish = keeper_calls.wish(keep, writer_bytes(trace.writer), trace.count * 1000);
		usleep(WAIT_US);
	} while (wish != COLLECT_KEEP_FLUSH && wish != COLLECT_KEEP_HOLD);
	add_events(&trace, 1000);
	CHECK(!keeper_calls.stop(keep));
	keeper_calls.end(keep);
	writer_free(trace.writer);
	close(trace.fd);
}

// ---- What comes while the collector holds ---------------------------------------------------

// A keeper that is slow where it has read to the end, until it is let go.
struct slow_keeper {
	void *keep;
	bool holds;
	atomic_bool go;
	atomic_uint passes_held;
	atomic_uint taken;
} slow;

static void *slow_begin(const void *wishes, int output_fd)
{
	slow.keep = keeper_calls.begin(wishes, output_fd);
	return &slow;
}

static enum collect_keep_wish slow_wish(void *keep, uint64_t trace_bytes, uint64_t now_ns)
{
	enum collect_keep_wish wish;

	(void)keep;
	if (slow.holds && !slow.go) {
		slow.passes_held++;
		return COLLECT_KEEP_NOTHING;
	}
	wish = keeper_calls.wish(slow.keep, trace_bytes, now_ns);
	slow.holds |= wish == COLLECT_KEEP_HOLD;
	return wish;
}

static void slow_flushed(void *keep)
{
	(void)keep;
	keeper_calls.flushed(slow.keep);
}

static bool slow_ends(void *keep)
{
	(void)keep;
	return keeper_calls.ends(slow.keep);
}

static struct writer *slow_take(void *keep)
{
	(void)keep;
	slow.taken++;
	slow.holds = false;
	return keeper_calls.take(slow.keep);
}

static void slow_taken(void *keep)
{
	(void)keep;
	keeper_calls.taken(slow.keep);
}

static const char *slow_text(void *keep)
{
	(void)keep;
	return keeper_calls.text(slow.keep);
}

static bool slow_stop(void *keep)
{
	(void)keep;
	return keeper_calls.stop(slow.keep);
}

static void slow_end(void *keep)
{
	(void)keep;
	keeper_calls.end(slow.keep);
}

static const struct collect_keep slow_calls = {
	.begin = slow_begin,
	.wish = slow_wish,
	.flushed = slow_flushed,
	.ends = slow_ends,
	.take = slow_take,
	.taken = slow_taken,
	.text = slow_text,
	.stop = slow_stop,
	.end = slow_end,
};

// Events until the collector has held for a while, with a mark from outside in between.
static void allocate_until_held(struct fake_session *session, struct fake_lane *lane)
{
	struct collect_message mark = { .kind = COLLECT_MARK, .text = "meanwhile" };
	uint64_t address = 0;

	while (slow.passes_held == 0) {
		for (int i = 0; i < 100; i++)
			fake_record(lane, &(struct fake_event){ .type = LANE_MALLOC,
								.address = 64 * ++address,
								.size = 24 });
		usleep(WAIT_US);
	}
	send(session->launcher_fd, &mark, sizeof mark, MSG_NOSIGNAL);
	for (unsigned from = slow.passes_held; slow.passes_held < from + PASSES_HELD;)
		usleep(WAIT_US);
	slow.go = true;
	while (slow.taken == 0)
		usleep(WAIT_US);
}

static bool has_mark(const char *path)
{
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	struct err err;
	struct reader *reader = reader_open(path, &err);
	bool found = false;

	CHECK(reader != NULL);
	while ((item = reader_next(reader, &event, &note)) != READER_END)
		found |= item == READER_NOTE && note.kind == TRACE_NOTE_MARK &&
			 strcmp(note.text, "meanwhile") == 0;
	CHECK(reader_end(reader) != NULL);
	reader_close(reader);
	return found;
}

TEST(keeper_has_what_comes_while_the_collector_holds)
{
	const struct keep_wishes wishes = { .keep_ns = 20000000 };
	struct segment_hello hello = { 0 };
	struct fake_session session;
	struct fake_guest guest;
	struct fake_lane lane;

	fake_session_open_kept(&session, 0, &slow_calls, &wishes);
	CHECK(fake_join(&guest, session.socket_name, &hello));
	fake_lane_open(&lane, &guest, 1);
	allocate_until_held(&session, &lane);
	fake_session_say(&session, COLLECT_STOP, 0, 0);
	pthread_join(session.thread, NULL);
	CHECK(session.good);
	CHECK_EQ(0, session.summary.events_lost);
	CHECK(has_mark(session.path));
	close(session.launcher_fd);
	close(session.options.output_fd);
	fake_lane_close(&lane);
	fake_leave(&guest);
}
