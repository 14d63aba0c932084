// What trace/writer.h promises: what was put in can be read, and every failure is told.
#include "test/test.h"
#include "test/unit/sample_trace.h"
#include "trace/columns.h"
#include "trace/out.h"

#include <errno.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void check_event(const struct trace_event *expected, const struct trace_event *event)
{
	CHECK_EQ(expected->kind, event->kind);
	CHECK_EQ(expected->time_ns, event->time_ns);
	CHECK_EQ(expected->thread, event->thread);
	CHECK_EQ(expected->address, event->address);
	CHECK_EQ(expected->old_address, event->old_address);
	CHECK_EQ(expected->size, event->size);
	CHECK_EQ(expected->stack, event->stack);
	CHECK_EQ(expected->align_log2, event->align_log2);
}

static void check_note(const struct sample_item *expected, const struct trace_note *note)
{
	CHECK_EQ(expected->note.kind, note->kind);
	CHECK_EQ(expected->note.time_ns, note->time_ns);
	CHECK_EQ(expected->note.process, note->process);
	CHECK_EQ(expected->note.thread, note->thread);
	CHECK_EQ(expected->note.value, note->value);
	CHECK_STR(expected->text, note->text);
}

// Read to the end; the first `count` items of the sample must come, and nothing else.
static size_t check_items(struct reader *reader, const struct sample *sample)
{
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t number = 0;
	size_t at = 0;

	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		CHECK(at < sample->count);
		CHECK_EQ(sample->items[at].note.kind == 0, item == READER_EVENT);
		if (item == READER_EVENT) {
			CHECK_EQ(number++, event.number);
			check_event(&sample->items[at].event, &event);
		} else {
			check_note(&sample->items[at], &note);
		}
		at++;
	}
	return at;
}

static void check_round_trip(uint64_t seed, size_t count)
{
	const char *path = test_temp_path("random.tide");
	struct sample sample = { 0 };
	struct err err = { 0 };
	struct reader *reader;

	sample_write(path, seed, count, &sample);
	reader = reader_open(path, &err);
	CHECK_STR("", err.text);
	CHECK(reader != NULL);
	CHECK_EQ(sample.count, check_items(reader, &sample));
	CHECK(reader_ok(reader, &err));
	CHECK(reader_complete(reader));
	CHECK_EQ(sample.processes, reader_processes_count(reader));
	CHECK_EQ(sample.threads, reader_threads_count(reader));
	CHECK_EQ(sample.modules + 1, reader_modules_count(reader));
	CHECK_EQ(sample.frames + 1, reader_frames_count(reader));
	CHECK_EQ(sample.stacks + 1, reader_stacks_count(reader));
	reader_rewind(reader);
	CHECK_EQ(sample.count, check_items(reader, &sample));
	CHECK(reader_ok(reader, &err));
	CHECK_EQ(5000000000, reader_end(reader)->duration_ns);
	CHECK_EQ(0, reader_skipped(reader) + reader_unknown(reader));
	reader_close(reader);
	sample_fini(&sample);
}

TEST(writer_gives_back_random_traces)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		check_round_trip(seed, 3000);
}

TEST(writer_gives_back_a_trace_of_many_blocks)
{
	check_round_trip(77, 400000);
}
