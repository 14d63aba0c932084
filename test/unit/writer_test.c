// What trace/writer.h promises: what was put in can be read, and every failure is told.
#include "os/file.h"
#include "test/test.h"
#include "test/unit/sample_trace.h"
#include "trace/columns.h"
#include "trace/out.h"
#include "trace/predict_when.h"

#include <errno.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void check_event(const struct sample_item *item, const struct trace_event *event)
{
	const struct trace_event *expected = &item->event;

	CHECK_EQ(expected->kind, event->kind);
	CHECK_EQ(expected->time_ns, event->time_ns);
	CHECK_EQ(expected->thread, event->thread);
	CHECK_EQ(expected->address, event->address);
	CHECK_EQ(expected->old_address, event->old_address);
	CHECK_EQ(expected->size, event->size);
	CHECK_EQ(expected->stack, event->stack);
	CHECK_EQ(expected->align_log2, event->align_log2);
	CHECK_EQ(expected->heap, event->heap);
	CHECK_EQ(trace_kind_is_vm(event->kind), event->vm != NULL);
	if (event->vm) {
		CHECK_EQ(item->vm.old_size, event->vm->old_size);
		CHECK_EQ(item->vm.offset, event->vm->offset);
		CHECK_EQ(item->vm.protection, event->vm->protection);
		CHECK_EQ(item->vm.flags, event->vm->flags);
		CHECK_EQ(item->vm.file, event->vm->file);
		CHECK_EQ(item->vm.error, event->vm->error);
		CHECK_EQ(item->vm.origin, event->vm->origin);
	}
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

// Read to the end: the items of the sample must come in their order. Returns how many came before
// one was missing. When events at the end are missing, notes that stood among them still come.
static size_t check_items(struct reader *reader, const struct sample *sample)
{
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	size_t whole = SIZE_MAX;
	uint64_t number = 0;
	size_t at = 0;

	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		CHECK(at < sample->count);
		if (item == READER_NOTE && sample->items[at].note.kind == 0 && whole == SIZE_MAX)
			whole = at;
		while (item == READER_NOTE && sample->items[at].note.kind == 0)
			CHECK(++at < sample->count);
		CHECK(item == READER_NOTE || whole == SIZE_MAX);
		CHECK_EQ(sample->items[at].note.kind == 0, item == READER_EVENT);
		if (item == READER_EVENT) {
			CHECK_EQ(number++, event.number);
			check_event(&sample->items[at], &event);
		} else {
			check_note(&sample->items[at], &note);
		}
		at++;
	}
	return whole < at ? whole : at;
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
	CHECK_EQ(sample.heaps + 1, reader_heaps_count(reader));
	CHECK_EQ(sample.files + 1, reader_files_count(reader));
	CHECK_EQ(sample.snapshots, reader_snapshots_count(reader));
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

// Every write that can fail, one after the other.
static struct {
	int nth;      // which call fails, from 1; 0: the system's own are called
	int calls;    // so far
	int number;   // errno
	ssize_t part; // bytes that arrive before the failure
} fault;

// The linker puts these in the place of those of os/file.h, for this program: --wrap.
ptrdiff_t __real_file_write_some(int fd, const void *bytes, size_t size);
bool __real_file_reserve(int fd, uint64_t at, uint64_t size);
ptrdiff_t __wrap_file_write_some(int fd, const void *bytes, size_t size);
bool __wrap_file_reserve(int fd, uint64_t at, uint64_t size);

ptrdiff_t __wrap_file_write_some(int fd, const void *bytes, size_t size)
{
	if (!fault.nth)
		return __real_file_write_some(fd, bytes, size);
	if (++fault.calls != fault.nth)
		return write(fd, bytes, size);
	if (fault.part > 0 && (size_t)fault.part < size) {
		fault.nth++; // the rest fails
		return write(fd, bytes, (size_t)fault.part);
	}
	errno = fault.number;
	return -1;
}

bool __wrap_file_reserve(int fd, uint64_t at, uint64_t size)
{
	if (!fault.nth)
		return __real_file_reserve(fd, at, size);
	errno = EOPNOTSUPP;
	return false;
}

// Write a trace while the nth write fails. True if none was left to fail.
static bool write_with_fault(const char *path, int nth, int number, ssize_t part,
			     struct sample *sample)
{
	struct trace_info info = sample_info();
	struct err err = { 0 };
	int fd = sample_create(path);
	struct writer *writer;
	bool fired;

	fault.nth = nth;
	fault.calls = 0;
	fault.number = number;
	fault.part = part;
	writer = writer_new(fd, &info, &err);
	if (writer) {
		sample_fill(sample, writer, 3, 3000);
		writer_end(writer, &(struct trace_end){ .why = "", .waited_ns = 77 });
		fired = !writer_ok(writer, &err);
	} else {
		fired = true;
	}
	if (fired) {
		CHECK_EQ(ERR_IO, err.kind);
		CHECK_CONTAINS("cannot write the trace", err.text);
	}
	writer_free(writer);
	fault.nth = 0;
	close(fd);
	return !fired;
}

static void check_faults(int number, ssize_t part)
{
	const char *path = test_temp_path("fault.tide");

	for (int nth = 1;; nth++) {
		struct sample sample = { 0 };
		struct err err = { 0 };
		bool done = write_with_fault(path, nth, number, part, &sample);
		struct reader *reader = reader_open(path, &err);

		// What arrived is a trace, and says why it is short.
		if (reader) {
			size_t items = check_items(reader, &sample);

			CHECK_EQ(done, reader_ok(reader, &err));
			CHECK(!done || items == sample.count);
			CHECK(done || reader_end(reader) != NULL);
			if (!done) {
				CHECK_CONTAINS(strerror(number), reader_end(reader)->why);
				// The first two writes are writer_new's, which then fails.
				CHECK_EQ(nth > 2 ? 77 : 0, reader_end(reader)->waited_ns);
				CHECK(nth <= 2 || items == sample.count ||
				      reader_end(reader)->events_lost > 0);
			}
			CHECK_EQ(0, reader_skipped(reader));
		} else {
			CHECK(nth <= 2);
		}
		reader_close(reader);
		sample_fini(&sample);
		if (done)
			break;
		CHECK(nth < 1000);
	}
}

TEST(writer_tells_of_every_write_that_can_fail_and_leaves_a_trace)
{
	check_faults(ENOSPC, 0);
	check_faults(EIO, 0);
}

TEST(writer_cuts_back_what_arrived_in_part)
{
	check_faults(ENOSPC, 30);
}

TEST(writer_to_a_pipe_stops_at_a_broken_one)
{
	struct trace_info info = sample_info();
	struct sample sample = { 0 };
	struct err err = { 0 };
	struct writer *writer;
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(0, pipe(ends));
	writer = writer_new(ends[1], &info, &err);
	CHECK(writer != NULL);
	close(ends[0]);
	sample_fill(&sample, writer, 1, 1000);
	writer_end(writer, &(struct trace_end){ .why = "" });
	CHECK(!writer_ok(writer, &err));
	CHECK_CONTAINS("Broken pipe", err.text);
	writer_free(writer);
	close(ends[1]);
	sample_fini(&sample);
}

// What does not fit is written by the caller, beside a thread that knows of it from nothing else.
static void check_full_by_bundle(const char *way)
{
	enum { SIZE = 20 << 20 };
	const char *path = test_temp_path("bundle-limit.tide"), *old_way = getenv("TIDEMARK_APART");
	char *before = mem_copy_text(old_way ? old_way : "");
	uint8_t *bytes = mem_alloc(SIZE, 1), id[20] = { 0 };
	struct sample_random random = { 3 };
	struct trace_info info = sample_info();
	struct rlimit old, limit;
	struct err err = { 0 };
	struct writer *writer;
	struct reader *reader;
	int fd = sample_create(path);

	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)sample_next(&random);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
	limit = (struct rlimit){ .rlim_cur = 1 << 20, .rlim_max = old.rlim_max };
	CHECK_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
	CHECK_EQ(0, setenv("TIDEMARK_APART", way, 1));
	writer = writer_new(fd, &info, &err);
	writer_bundle(writer, id, sizeof id, bytes, SIZE);
	CHECK(!writer_ok(writer, &err));
	CHECK_CONTAINS("File too large", err.text);
	CHECK_EQ(0, setrlimit(RLIMIT_FSIZE, &old));
	writer_bundle(writer, id, sizeof id, bytes, 1000); // counts for nothing
	writer_end(writer, &(struct trace_end){ .why = "" });
	CHECK(!writer_ok(writer, &err));
	writer_free(writer);
	close(fd);
	CHECK_EQ(0, setenv("TIDEMARK_APART", before, 1));
	reader = reader_open(path, &err);
	reader_scan(reader);
	CHECK(!reader_ok(reader, &err));
	CHECK_CONTAINS("the recording ended early: cannot write the trace: File too large",
		       err.text);
	reader_close(reader);
	MEM_FREE(bytes, before);
}

TEST(writer_hears_of_a_bundle_that_did_not_fit)
{
	check_full_by_bundle("never");
	check_full_by_bundle("always");
}

TEST(writer_says_in_the_trace_that_a_size_limit_was_reached)
{
	const char *path = test_temp_path("limit.tide");
	struct rlimit old, limit;
	struct sample sample = { 0 };
	struct trace_info info = sample_info();
	struct err err = { 0 };
	struct writer *writer;
	struct reader *reader;
	struct stat stat;
	int fd = sample_create(path);

	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
	limit = (struct rlimit){ .rlim_cur = 1 << 20, .rlim_max = old.rlim_max };
	CHECK_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
	writer = writer_new(fd, &info, &err);
	sample_fill(&sample, writer, 2, 300000);
	writer_end(writer, &(struct trace_end){ .why = "" });
	CHECK_EQ(0, setrlimit(RLIMIT_FSIZE, &old));
	CHECK(!writer_ok(writer, &err));
	CHECK_CONTAINS("File too large", err.text);
	writer_free(writer);
	CHECK_EQ(0, fstat(fd, &stat));
	CHECK(stat.st_size <= 1 << 20);
	close(fd);
	reader = reader_open(path, &err);
	CHECK(check_items(reader, &sample) > 1000);
	CHECK(!reader_ok(reader, &err));
	CHECK_CONTAINS("the recording ended early: cannot write the trace: File too large",
		       err.text);
	reader_close(reader);
	sample_fini(&sample);
}

// On a file system of 2 MiB that is our own.
static void check_full_disk(const char *directory)
{
	char path[300];
	struct sample sample = { 0 };
	struct trace_info info = sample_info();
	struct err err = { 0 };
	struct writer *writer;
	struct reader *reader;
	uint64_t events;
	int fd;

	snprintf(path, sizeof path, "%s/full.tide", directory);
	fd = sample_create(path);
	CHECK(fd >= 0);
	writer = writer_new(fd, &info, &err);
	CHECK(writer != NULL);
	sample_fill(&sample, writer, 2, 400000);
	events = writer_events_count(writer);
	writer_end(writer, &(struct trace_end){ .why = "", .events_lost = 5 });
	CHECK(!writer_ok(writer, &err));
	writer_free(writer);
	close(fd);
	reader = reader_open(path, &err);
	CHECK(check_items(reader, &sample) > 1000);
	CHECK(!reader_ok(reader, &err));
	CHECK_CONTAINS("No space left on device", err.text);
	CHECK_EQ(0, reader_skipped(reader));
	// All that was given to the writer is in the trace or counted as lost.
	CHECK(reader_end(reader)->events + reader_end(reader)->events_lost >= events + 5);
	reader_close(reader);
	sample_fini(&sample);
}

TEST(writer_leaves_a_trace_that_explains_itself_on_a_full_disk)
{
	const char *directory = test_temp_path("small");

	CHECK_EQ(0, mkdir(directory, 0700));
	if (mount("none", directory, "tmpfs", 0, "size=2m") != 0)
		SKIP("needs root, to mount a small file system");
	check_full_disk(directory);
	CHECK_EQ(0, umount2(directory, MNT_DETACH));
}

TEST(writer_raises_times_that_fall)
{
	const char *path = test_temp_path("times.tide");
	struct trace_info info = sample_info();
	struct trace_process process = { .parent = TRACE_NONE, .exe = "" };
	struct trace_event event = { .kind = TRACE_MALLOC, .address = 16, .size = 1 };
	struct err err = { 0 };
	int fd = sample_create(path);
	struct writer *writer = writer_new(fd, &info, &err);
	struct trace_note note;
	struct reader *reader;

	writer_add_process(writer, &process);
	writer_add_thread(writer, 0, 1, "main");
	event.time_ns = 500;
	writer_event(writer, &event);
	event.time_ns = 400;
	writer_event(writer, &event);
	writer_free(writer); // no end, and nothing flushed: a cut trace without events
	reader = reader_open(path, &err);
	CHECK_EQ(READER_END, reader_next(reader, &event, &note));
	CHECK(!reader_complete(reader));
	reader_close(reader);

	CHECK_EQ(0, ftruncate(fd, 0));
	CHECK_EQ(0, lseek(fd, 0, SEEK_SET));
	writer = writer_new(fd, &info, &err);
	writer_add_process(writer, &process);
	writer_add_thread(writer, 0, 1, "main");
	event.time_ns = 500;
	writer_event(writer, &event);
	event.time_ns = 400;
	writer_event(writer, &event);
	writer_flush(writer);
	writer_free(writer);
	close(fd);
	reader = reader_open(path, &err);
	CHECK_EQ(READER_EVENT, reader_next(reader, &event, &note));
	CHECK_EQ(READER_EVENT, reader_next(reader, &event, &note));
	CHECK_EQ(500, event.time_ns);
	reader_close(reader);
}

// A block of 24 bytes that is one of few and lies far from the last, as places that a program keeps
// coming back to do.
static uint64_t far_place(struct sample_random *random)
{
	return (sample_next(random) % 4000 * UINT64_C(0x123457) << 4) + 0x10000;
}

TEST(writer_predicts_addresses_where_that_pays)
{
	enum { EVENTS = (PREDICT_WHEN_BEFORE + 8) * COLUMNS_EVENTS_MAX, EVENT_NS = 1000 };
	const char *path = test_temp_path("predicted.tide");
	struct trace_info info = sample_info();
	struct trace_process process = { .parent = TRACE_NONE, .exe = "" };
	struct sample_random random = { 3 };
	struct err err = { 0 };
	int fd = sample_create(path);
	struct writer *writer = writer_new(fd, &info, &err);
	uint64_t *address = mem_alloc(EVENTS, sizeof *address), number = 0;
	struct trace_event event, run[100];
	struct trace_note note;
	struct reader *reader;

	writer_add_process(writer, &process);
	writer_add_thread(writer, 0, 1, "main");
	for (size_t i = 0; i < EVENTS; i++) {
		// Each block is freed by its turn, and its place taken again.
		address[i] = i % 2 ? address[i - 1] : far_place(&random);
		event = (struct trace_event){ .kind = i % 2 ? TRACE_FREE : TRACE_MALLOC,
					      .address = address[i],
					      .size = i % 2 ? 0 : 24,
					      .time_ns = i * EVENT_NS };
		writer_event(writer, &event);
	}
	writer_end(writer, &(struct trace_end){ .why = "" });
	// Three bytes for each second event as a difference; a number of a block now.
	CHECK(writer_bytes(writer) < EVENTS * 2);
	writer_free(writer);
	close(fd);
	reader = reader_open(path, &err);
	while (number < EVENTS) {
		uint32_t count = reader_run(reader, run, 100);

		if (count == 0)
			CHECK_EQ(READER_EVENT, reader_next(reader, &run[0], &note));
		for (uint32_t i = 0; i < (count ? count : 1); i++, number++) {
			CHECK_EQ(number, run[i].number);
			CHECK_EQ(address[number], run[i].address);
		}
	}
	CHECK_EQ(READER_END, reader_next(reader, &event, &note));
	CHECK(reader_complete(reader));
	// From the middle, and from the beginning once more.
	CHECK(reader_seek(reader, UINT64_C(3) * COLUMNS_EVENTS_MAX * EVENT_NS, &err));
	CHECK_EQ(READER_EVENT, reader_next(reader, &event, &note));
	CHECK(event.number > 0);
	CHECK_EQ(address[event.number], event.address);
	reader_rewind(reader);
	CHECK_EQ(READER_EVENT, reader_next(reader, &event, &note));
	CHECK_EQ(address[0], event.address);
	reader_close(reader);
	mem_free(address);
}

TEST(writer_bundles_files_of_any_size)
{
	const char *path = test_temp_path("bundle.tide");
	size_t sizes[] = { 0, 1, 1000, (8 << 20) + 77 };
	struct trace_info info = sample_info();
	struct err err = { 0 };
	int fd = sample_create(path);
	struct writer *writer = writer_new(fd, &info, &err);
	struct sample_random random = { 1 };
	uint8_t *bytes = mem_alloc(sizes[3], 1);
	struct reader *reader;
	uint8_t id[20] = { 0 };
	size_t size;

	for (size_t i = 0; i < sizes[3]; i++)
		bytes[i] = (uint8_t)sample_next(&random);
	for (uint8_t i = 0; i < 4; i++) {
		id[7] = i;
		writer_bundle(writer, id, sizeof id, bytes, sizes[i]);
	}
	writer_end(writer, &(struct trace_end){ .why = "" });
	CHECK(writer_ok(writer, &err));
	writer_free(writer);
	close(fd);
	reader = reader_open(path, &err);
	reader_scan(reader);
	for (uint8_t i = 0; i < 4; i++) {
		const void *found;

		id[7] = i;
		found = reader_bundle(reader, id, sizeof id, &size);
		CHECK(found != NULL);
		CHECK_EQ(sizes[i], size);
		CHECK_EQ(0, memcmp(found, bytes, size));
		CHECK(reader_bundle(reader, id, sizeof id, &size) == found);
	}
	id[7] = 9;
	CHECK(reader_bundle(reader, id, sizeof id, &size) == NULL);
	CHECK(reader_bundle(reader, id, 19, &size) == NULL);
	CHECK(reader_complete(reader));
	reader_close(reader);
	mem_free(bytes);
}

// Rows and echoes of them, of two threads and two heaps, with a stack now and then.
static void put_rows(struct writer *writer, struct sample_random *random)
{
	struct columns_row row = { 0 };
	uint64_t count = 1 + sample_next(random) % COLUMNS_ROW_MAX;

	row.thread = (thread_id)(sample_next(random) % 2);
	row.time_ns = writer_events_count(writer) * 100;
	row.free_stacks = sample_next(random) % 4 == 0;
	row.heap = writer_events_count(writer) > 200000 && sample_next(random) % 8 == 0;
	for (uint64_t i = 0; i < count; i++) {
		bool ends = i % 3 == 1 || i + 1 == count;

		columns_row_push(&row, ends ? TRACE_FREE : TRACE_CALLOC, 0x10000 + i / 2 * 64,
				 16 + i,
				 ends && !row.free_stacks ? 0 : writer_counts(writer)->stacks - 1);
	}
	if (sample_next(random) % 4 == 0)
		writer_add_stack(writer, 0, 0, 0);
	writer_row(writer, &row);
	writer_echo(writer, &row, (uint32_t)(1 + sample_next(random) % 50));
}

static void write_rows(const char *path)
{
	struct trace_info info = sample_info();
	struct trace_process process = { .parent = TRACE_NONE, .exe = "" };
	struct sample_random random = { 5 };
	struct err err = { 0 };
	int fd = sample_create(path);
	struct writer *writer = writer_new(fd, &info, &err);

	writer_add_process(writer, &process);
	writer_add_thread(writer, 0, 1, "one");
	writer_add_thread(writer, 0, 2, "two");
	writer_add_heap(writer, &(struct trace_heap){ .handle = 7, .name = "" });
	while (writer_events_count(writer) < 1000000) {
		put_rows(writer, &random);
		if (sample_next(&random) % 100 == 0)
			writer_flush(writer);
	}
	writer_end(writer, &(struct trace_end){ .why = "" });
	CHECK(writer_ok(writer, &err));
	writer_free(writer);
	close(fd);
}

// Writes by `write` once without and once with a thread, and compares.
static void check_same_apart(void (*write)(const char *path))
{
	static const char *const ways[] = { "never", "always" };
	const char *old = getenv("TIDEMARK_APART");
	char *before = mem_copy_text(old ? old : "");
	uint8_t *bytes[2];
	size_t size[2];

	for (int i = 0; i < 2; i++) {
		const char *path = test_temp_path(ways[i]);

		CHECK_EQ(0, setenv("TIDEMARK_APART", ways[i], 1));
		write(path);
		bytes[i] = sample_load(path, &size[i]);
	}
	CHECK_EQ(0, setenv("TIDEMARK_APART", before, 1));
	CHECK_EQ(size[0], size[1]);
	CHECK_EQ(0, memcmp(bytes[0], bytes[1], size[0]));
	MEM_FREE(bytes[0], bytes[1], before);
}

static void write_sample(const char *path)
{
	struct sample sample = { 0 };

	sample_write(path, 9, 300000, &sample);
	sample_fini(&sample);
}

TEST(writer_with_a_thread_writes_the_same_bytes)
{
	check_same_apart(write_sample);
	check_same_apart(write_rows);
}
