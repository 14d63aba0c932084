// What trace/reader.h promises about files that are cut, damaged, newer or not traces at all.
#include "base/crc32c.h"
#include "test/test.h"
#include "test/unit/sample_trace.h"
#include "trace/block.h"
#include "trace/chain.h"
#include "trace/columns.h"
#include "trace/defs.h"
#include "trace/reader_own.h"

#include <stdio.h>
#include <string.h>

#include <sys/stat.h>

enum {
	EVENTS_MAX = 7, // read at once
	COMPARED = 9,   // of so many files one is read in all ways
};

// What a reading came to.
struct reading {
	bool opened;
	uint64_t events, notes;
	uint64_t first_number, last_number;
	uint32_t sum; // of all items
	bool complete;
	uint64_t skipped, unknown;
	struct err err;
};

static uint32_t add_event(uint32_t sum, struct trace_event event)
{
	if (event.vm)
		sum = crc32c(sum, event.vm, offsetof(struct trace_vm, origin) + 1);
	return crc32c(sum, &event, offsetof(struct trace_event, align_log2) + 1);
}

// As read_next, or a few at once where they can be had so.
static enum reader_item read_some(struct reader *reader, struct trace_event *events,
				  uint32_t *count, struct trace_note *note, bool runs)
{
	*count = runs ? reader_run(reader, events, EVENTS_MAX) : 0;
	if (*count > 0)
		return READER_EVENT;
	*count = 1;
	return reader_next(reader, events, note);
}

// Calls with their spots, each as an event that another way gives.
static bool read_calls(struct reader *reader, struct trace_event *events, uint32_t *count)
{
	static uint64_t address_of[READER_SPOTS], block;
	static uint32_t known;
	struct reader_calls calls;

	if (!reader_calls(reader, &calls, EVENTS_MAX))
		return false;
	known = calls.block == block ? known : 0;
	block = calls.block;
	for (uint32_t i = 0; i < calls.count; i++) {
		const struct reader_call *call = &calls.calls[i];

		events[i] = (struct trace_event){
			.number = calls.number + i,
			.time_ns = calls.time_ns,
			.address = call->address,
			.size = call->size,
			.thread = calls.thread,
			.stack = call->stack,
			.kind = call->kind,
			.align_log2 = call->align_log2,
		};
		if (call->kind == TRACE_REALLOC)
			events[i].old_address = calls.events[i].old_address;
		// In a small trace all have spots; what is between may have taken others.
		CHECK(call->spot < READER_SPOTS);
		for (; known <= call->spot; known++)
			address_of[known] = 0;
		CHECK(address_of[call->spot] == 0 || address_of[call->spot] == call->address);
		address_of[call->spot] = call->address;
	}
	*count = calls.count;
	return true;
}

// The same items, whoever decodes them, one by one and many at once.
static void compare_ways(const char *path, const struct reading *right)
{
	for (int way = 0; way < 6; way++) {
		struct reading reading = { 0 };
		struct reader *reader = reader_open(path, &reading.err);
		struct trace_event events[EVENTS_MAX];
		struct trace_note note;
		enum reader_item item;
		uint32_t count;

		reader->played_alone = way & 1 ? 0 : UINT32_MAX;
		reader_give_spots(reader, way >= 4);
		while ((item = way >= 4 && read_calls(reader, events, &count)
				       ? READER_EVENT
				       : read_some(reader, events, &count, &note,
						   way == 2 || way == 3)) != READER_END) {
			if (item == READER_NOTE) {
				reading.notes++;
				reading.sum = crc32c(reading.sum, &note.time_ns, 8);
				continue;
			}
			for (uint32_t i = 0; i < count; i++)
				reading.sum = add_event(reading.sum, events[i]);
			reading.events += count;
		}
		CHECK_EQ(right->events, reading.events);
		CHECK_EQ(right->notes, reading.notes);
		CHECK_EQ(right->sum, reading.sum);
		CHECK_EQ(right->complete, reader_complete(reader));
		CHECK_EQ(right->skipped, reader_skipped(reader));
		CHECK_EQ(right->unknown, reader_unknown(reader));
		reader_close(reader);
	}
}

// Read all of it and check, item by item, what is promised of any file whatever.
static struct reading read_all(const char *path)
{
	static unsigned calls;
	struct reading reading = { 0 };
	struct reader *reader = reader_open(path, &reading.err);
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t last_ns = 0;

	if (!reader) {
		CHECK(reading.err.text[0] != '\0' && reading.err.kind != ERR_NONE);
		return reading;
	}
	reading.opened = true;
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		uint64_t time_ns = item == READER_EVENT ? event.time_ns : note.time_ns;

		CHECK(time_ns >= last_ns);
		last_ns = time_ns;
		if (item == READER_NOTE) {
			CHECK(note.text != NULL);
			reading.notes++;
			reading.sum = crc32c(reading.sum, &note.time_ns, 8);
			continue;
		}
		reading.sum = add_event(reading.sum, event);
		CHECK(columns_of_kind(event.kind) != 0);
		CHECK(event.heap < reader_heaps_count(reader));
		CHECK_EQ(trace_kind_is_vm(event.kind), event.vm != NULL);
		CHECK(!event.vm || event.vm->file < reader_files_count(reader));
		CHECK(event.thread < reader_threads_count(reader));
		CHECK(event.stack < reader_stacks_count(reader));
		CHECK(reading.events == 0 || event.number > reading.last_number);
		reading.first_number = reading.events == 0 ? event.number : reading.first_number;
		reading.last_number = event.number;
		reading.events++;
	}
	for (thread_id id = 0; id < reader_threads_count(reader); id++)
		CHECK(reader_thread(reader, id)->process < reader_processes_count(reader));
	for (frame_id id = 0; id < reader_frames_count(reader); id++)
		CHECK(reader_frame(reader, id)->module < reader_modules_count(reader));
	for (uint32_t i = 0; i < reader_snapshots_count(reader); i++) {
		struct trace_snapshot snapshot;

		CHECK(reader_snapshot_load(reader, i, &snapshot));
		CHECK(snapshot.process < reader_processes_count(reader));
		snapshot_fini(&snapshot);
	}
	for (stack_id id = 1; id < reader_stacks_count(reader); id++) {
		CHECK(reader_stack(reader, id)->parent < id);
		CHECK(reader_stack(reader, id)->frame < reader_frames_count(reader));
	}
	reading.complete = reader_ok(reader, &reading.err);
	CHECK_EQ(reading.complete, reader_complete(reader));
	reading.skipped = reader_skipped(reader);
	reading.unknown = reader_unknown(reader);
	reader_close(reader);
	if (calls++ % COMPARED == 0)
		compare_ways(path, &reading);
	return reading;
}

static const char *small_trace(struct sample *sample, uint8_t **bytes, size_t *size)
{
	const char *path = test_temp_path("small.tide");

	sample_write(path, 5, 300, sample);
	*bytes = sample_load(path, size);
	return path;
}

TEST(reader_delivers_what_is_whole_from_a_file_cut_at_any_byte)
{
	struct sample sample = { 0 };
	uint64_t events = 0;
	uint8_t *bytes;
	size_t size;
	const char *path = small_trace(&sample, &bytes, &size);

	for (size_t cut = 0; cut < size; cut++) {
		struct reading reading;

		sample_store(path, bytes, cut);
		reading = read_all(path);
		CHECK_EQ(cut >= BLOCK_PREAMBLE_BYTES, reading.opened);
		CHECK(!reading.complete);
		CHECK_EQ(0, reading.skipped);
		// More bytes never mean fewer events, and those that come are the first ones.
		CHECK(reading.events >= events);
		CHECK(reading.events == 0 || reading.last_number == reading.events - 1);
		events = reading.events;
		if (reading.opened)
			CHECK_CONTAINS("cut at byte", reading.err.text);
	}
	sample_store(path, bytes, size);
	CHECK(read_all(path).complete);
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(reader_reads_a_file_that_grows_as_it_was_when_opened)
{
	struct sample sample = { 0 };
	uint8_t *bytes;
	size_t size;
	const char *path = small_trace(&sample, &bytes, &size);

	for (size_t cut = BLOCK_PREAMBLE_BYTES; cut < size; cut += 3) {
		struct err err = { 0 };
		struct reader *reader;
		struct trace_event event;
		struct trace_note note;
		enum reader_item item;
		uint64_t events = 0, expected;
		FILE *file;

		sample_store(path, bytes, cut);
		expected = read_all(path).events;
		reader = reader_open(path, &err);
		CHECK(reader != NULL);
		file = fopen(path, "ab");
		CHECK(file && fwrite(bytes + cut, 1, size - cut, file) == size - cut);
		CHECK_EQ(0, fclose(file));
		while ((item = reader_next(reader, &event, &note)) != READER_END)
			events += item == READER_EVENT;
		CHECK_EQ(expected, events);
		CHECK(!reader_ok(reader, &err));
		reader_close(reader);
	}
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(reader_survives_any_flipped_byte_and_says_so)
{
	struct sample sample = { 0 };
	struct reading whole;
	uint8_t *bytes;
	size_t size;
	const char *path = small_trace(&sample, &bytes, &size);

	whole = read_all(path);
	for (size_t at = 0; at < size; at++) {
		struct reading reading;

		bytes[at] ^= 0x41;
		sample_store(path, bytes, size);
		reading = read_all(path);
		bytes[at] ^= 0x41;
		CHECK(reading.opened);
		CHECK(!reading.complete);
		CHECK(reading.events <= whole.events);
	}
	mem_free(bytes);
	sample_fini(&sample);
}

// Offsets of the blocks of a file, and their headers.
struct layout {
	size_t count;
	size_t at[64];
	struct block blocks[64];
};

static struct layout layout_of(const uint8_t *bytes, size_t size)
{
	struct layout layout = { 0 };
	size_t at = BLOCK_PREAMBLE_BYTES;

	while (at + BLOCK_HEADER_BYTES <= size && layout.count < 64) {
		struct block *block = &layout.blocks[layout.count];

		CHECK(block_header_decode(bytes + at, block));
		layout.at[layout.count++] = at;
		at += BLOCK_HEADER_BYTES + block->stored_size;
	}
	return layout;
}

TEST(reader_goes_on_behind_a_damaged_block)
{
	const char *path = test_temp_path("blocks.tide");
	struct sample sample = { 0 };
	struct reading whole, reading;
	struct layout layout;
	uint8_t *bytes;
	size_t size, tried = 0;

	sample_write(path, 9, 12000, &sample);
	bytes = sample_load(path, &size);
	layout = layout_of(bytes, size);
	whole = read_all(path);
	CHECK(layout.count > 8);
	for (size_t i = 1; i < layout.count; i++) {
		const struct block *block = &layout.blocks[i];

		// The last one but INDEX and END has nothing behind it to go on with.
		if (block->type != BLOCK_EVENTS || i + 3 >= layout.count)
			continue;
		bytes[layout.at[i] + BLOCK_HEADER_BYTES + 10] ^= 1;
		sample_store(path, bytes, size);
		reading = read_all(path);
		bytes[layout.at[i] + BLOCK_HEADER_BYTES + 10] ^= 1;
		CHECK_EQ(1, reading.skipped);
		CHECK_EQ(whole.events - block->events_count, reading.events);
		CHECK_EQ(whole.last_number, reading.last_number);
		CHECK_CONTAINS("checksum differs", reading.err.text);
		tried++;
	}
	CHECK(tried >= 3);
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(reader_finds_the_next_block_when_bytes_are_missing_or_too_many)
{
	const char *path = test_temp_path("holes.tide");
	struct sample sample = { 0 };
	struct layout layout;
	uint8_t *bytes, *torn;
	size_t size, at;

	sample_write(path, 9, 12000, &sample);
	bytes = sample_load(path, &size);
	torn = mem_alloc(size + 100, 1);
	layout = layout_of(bytes, size);
	for (size_t i = 1; i + 2 < layout.count; i++) {
		struct reading reading;

		// 33 bytes are gone from the block.
		at = layout.at[i] + BLOCK_HEADER_BYTES + 5;
		if (layout.blocks[i].stored_size < 50)
			continue;
		memcpy(torn, bytes, at);
		memcpy(torn + at, bytes + at + 33, size - at - 33);
		sample_store(path, torn, size - 33);
		reading = read_all(path);
		CHECK_EQ(1, reading.skipped);
		CHECK(!reading.complete);
		// 100 bytes stand between this block and the one before.
		at = layout.at[i];
		memcpy(torn, bytes, at);
		memset(torn + at, 0x8b, 100);
		memcpy(torn + at + 100, bytes + at, size - at);
		sample_store(path, torn, size + 100);
		reading = read_all(path);
		CHECK_EQ(0, reading.skipped);
		CHECK(!reading.complete);
		CHECK_EQ(sample.count, reading.events + reading.notes);
	}
	mem_free(torn);
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(reader_fills_the_gap_that_lost_definitions_leave)
{
	const char *path = test_temp_path("gap.tide");
	struct sample sample = { 0 };
	struct layout layout;
	uint8_t *bytes;
	size_t size, tried = 0;

	sample_write(path, 11, 6000, &sample);
	bytes = sample_load(path, &size);
	layout = layout_of(bytes, size);
	for (size_t i = 0; i < layout.count; i++) {
		struct reading reading;

		if (layout.blocks[i].type != BLOCK_DEFS)
			continue;
		bytes[layout.at[i] + BLOCK_HEADER_BYTES] ^= 1;
		sample_store(path, bytes, size);
		reading = read_all(path);
		bytes[layout.at[i] + BLOCK_HEADER_BYTES] ^= 1;
		CHECK_EQ(1, reading.skipped);
		CHECK(reading.events > 0);
		tried++;
	}
	CHECK(tried >= 3);
	mem_free(bytes);
	sample_fini(&sample);
}

static void check_refused(const char *path, const char *message)
{
	struct reading reading = read_all(path);

	CHECK(!reading.opened);
	CHECK_CONTAINS(message, reading.err.text);
}

TEST(reader_refuses_what_is_no_trace)
{
	const char *path = test_temp_path("other");
	char foreign[300];

	check_refused(test_temp_path("missing"), "cannot open");
	check_refused(test_temp_dir(), "not a regular file");
	sample_store(path, "", 0);
	check_refused(path, "is empty");
	sample_store(path, "hello", 5);
	check_refused(path, "is not a tidemark trace");
	memset(foreign, 'x', sizeof foreign);
	sample_store(path, foreign, sizeof foreign);
	check_refused(path, "is not a tidemark trace");
	CHECK_EQ(0, mkfifo(test_temp_path("fifo"), 0600));
	check_refused(test_temp_path("fifo"), "not a regular file");
}

// Rewrite the versions in a trace's preamble.
static void store_version(const char *path, uint8_t *bytes, size_t size, uint16_t major,
			  uint16_t minor)
{
	struct block_preamble preamble;

	CHECK_EQ(BLOCK_PREAMBLE_OK, block_preamble_decode(bytes, size, &preamble));
	preamble.version_major = major;
	preamble.version_minor = minor;
	block_preamble_encode(&preamble, bytes);
	sample_store(path, bytes, size);
}

TEST(reader_refuses_a_newer_major_version_and_reads_a_newer_minor_one)
{
	struct sample sample = { 0 };
	uint8_t *bytes;
	size_t size;
	const char *path = small_trace(&sample, &bytes, &size);

	store_version(path, bytes, size, 2, 3);
	check_refused(path, "is a trace of format 2.3, but this tidemark reads format 1");
	store_version(path, bytes, size, 1, 99);
	CHECK(read_all(path).complete);
	mem_free(bytes);
	sample_fini(&sample);
}

// A payload of two events: one malloc, and one of kind 200 with an address and a column 40.
static void put_newer_events(struct bytes *out)
{
	static const uint8_t payload[] = {
		2,
		TRACE_MALLOC,
		0xb0 | 0x80,
		3,
		0xc8,
		0x01,
		0x90,
		0x80,
		0x80,
		0x80,
		0x80,
		0x20,
		// columns: kind 2 bytes, thread 2, time 2, address 3, size 1, number 40 3 bytes
		6,
		1,
		2,
		2,
		2,
		3,
		2,
		4,
		4,
		7,
		1,
		40,
		3,
		TRACE_MALLOC,
		200,
		1,
		0, // thread 0, twice
		1,
		0, // at the first time, twice
		0x80,
		0x04,
		0x80,
		0x04, // 0x1000, 0x2000
		64,
		9,
		9,
		9,
	};

	bytes_add(out, payload, sizeof payload);
}

// A trace with everything that a newer minor version may add.
static void write_newer(const char *path)
{
	struct trace_info info = sample_info();
	struct block_preamble preamble = { .version_major = 1, .version_minor = 9 };
	struct trace_process process = { .parent = TRACE_NONE, .exe = "/bin/app", .bits = 64 };
	struct trace_thread thread = { .tid = 7 };
	struct block events = { .type = BLOCK_EVENTS, .events_count = 2 };
	struct trace_end end = { .why = "" };
	uint8_t head[BLOCK_PREAMBLE_BYTES];
	struct bytes future = { 0 };
	struct chain chain;
	struct err err = { 0 };
	int fd = sample_create(path);

	chain_init(&chain, fd);
	block_preamble_encode(&preamble, head);
	CHECK(out_write(&chain.out, head, sizeof head, false, &err));
	bytes_add(&future, "whatever", 8);
	defs_put_info(&chain.raw, &info);
	defs_put(&chain.raw, (enum defs_kind)77, &future);
	defs_put_process(&chain.raw, &process);
	defs_put_thread(&chain.raw, &thread);
	CHECK(chain_put_plain(&chain, BLOCK_DEFS, false, &err));
	bytes_add(&chain.raw, "a block from the future", 23);
	CHECK(chain_put_plain(&chain, (enum block_type)99, false, &err));
	put_newer_events(&chain.raw);
	CHECK(chain_put(&chain, &events, false, &err));
	chain.next_event = 2;
	CHECK(chain_end(&chain, &end, &err));
	chain_fini(&chain);
	close(fd);
}

TEST(reader_steps_over_what_a_newer_version_adds_and_counts_it)
{
	const char *path = test_temp_path("newer.tide");
	struct reading reading;
	struct trace_event event;
	struct trace_note note;
	struct reader *reader;

	write_newer(path);
	reading = read_all(path);
	CHECK_STR("", reading.err.text);
	CHECK(reading.complete);
	CHECK_EQ(1, reading.events);
	CHECK_EQ(3, reading.unknown); // a record, a block, an event
	reader = reader_open(path, &reading.err);
	CHECK_EQ(READER_EVENT, reader_next(reader, &event, &note));
	CHECK_EQ(TRACE_MALLOC, event.kind);
	CHECK_EQ(0x1000, event.address);
	CHECK_EQ(64, event.size);
	CHECK_EQ(0, event.number);
	reader_close(reader);
}

TEST(reader_seeks_to_the_block_of_a_time)
{
	const char *path = test_temp_path("seek.tide");
	const char *cut = test_temp_path("cut.tide");
	struct sample sample = { 0 };
	uint8_t *bytes;
	size_t size;

	sample_write(path, 21, 200000, &sample);
	bytes = sample_load(path, &size);
	// Without its index, a reader must come to the same place.
	sample_store(cut, bytes, size - 1);
	for (uint64_t step = 0; step <= 20; step++) {
		uint64_t time_ns = sample.items[sample.count - 1].event.time_ns / 20 * step;
		uint64_t numbers[2];

		for (int i = 0; i < 2; i++) {
			struct err err = { 0 };
			struct reader *reader = reader_open(i == 0 ? path : cut, &err);
			struct trace_event event;
			struct trace_note note;

			CHECK(reader_seek(reader, time_ns, &err));
			while (reader_next(reader, &event, &note) != READER_EVENT)
				;
			CHECK(event.time_ns <= time_ns);
			CHECK(event.thread < reader_threads_count(reader));
			CHECK(event.stack < reader_stacks_count(reader));
			numbers[i] = event.number;
			// Blocks are of 65,536 events at most, so the time is not far.
			for (size_t n = 0; n < 65536 && event.time_ns < time_ns; n++)
				while (reader_next(reader, &event, &note) == READER_NOTE)
					;
			CHECK(event.time_ns >= time_ns);
			reader_close(reader);
		}
		CHECK_EQ(numbers[0], numbers[1]);
	}
	mem_free(bytes);
	sample_fini(&sample);
}

// What an item was, in one number.
static uint64_t hash_item(enum reader_item item, const struct trace_event *event,
			  const struct trace_note *note)
{
	if (item == READER_EVENT)
		return event->number * 31 + event->time_ns * 7 + event->address + event->kind;
	return note->time_ns * 7 + note->value + note->kind + strlen(note->text) * 1000003;
}

TEST(reader_comes_back_to_any_place_and_goes_on_the_same)
{
	const char *path = test_temp_path("place.tide");
	struct sample sample = { 0 };
	struct sample_random random = { 4 };
	struct reader_place places[64];
	uint64_t *hashes, at[64], count = 0, kept = 0;
	struct reader *reader;
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	struct err err = { 0 };

	sample_write(path, 23, 150000, &sample);
	hashes = mem_alloc(sample.count + 1, sizeof *hashes);
	reader = reader_open(path, &err);
	reader_scan(reader);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		CHECK(count < sample.count);
		hashes[count++] = hash_item(item, &event, &note);
		if (kept < 64 && sample_below(&random, sample.count / 50) == 0) {
			at[kept] = count;
			places[kept++] = reader_place(reader);
		}
	}
	CHECK(kept > 20);
	reader_close(reader);
	for (uint64_t i = 0; i < kept; i++) {
		reader = reader_open(path, &err);
		reader_scan(reader);
		CHECK(reader_go(reader, &places[i]));
		for (uint64_t k = at[i]; k < count && k < at[i] + 70000; k++) {
			item = reader_next(reader, &event, &note);
			CHECK(item != READER_END);
			CHECK_EQ(hashes[k], hash_item(item, &event, &note));
		}
		reader_close(reader);
	}
	reader = reader_open(path, &err);
	places[0].at = UINT64_MAX;
	CHECK(!reader_go(reader, &places[0]));
	CHECK(reader_next(reader, &event, &note) != READER_END);
	reader_close(reader);
	mem_free(hashes);
	sample_fini(&sample);
}

TEST(reader_follows_a_file_that_grows_item_by_item)
{
	struct sample sample = { 0 };
	struct sample_random random = { 6 };
	uint8_t *bytes;
	size_t size, at = BLOCK_PREAMBLE_BYTES + 1;
	const char *path = small_trace(&sample, &bytes, &size);
	struct reader *whole, *reader;
	struct trace_event event, expected;
	struct trace_note note, expected_note;
	enum reader_item item;
	struct err err = { 0 };
	FILE *file;

	sample_store(test_temp_path("whole.tide"), bytes, size);
	whole = reader_open(test_temp_path("whole.tide"), &err);
	reader_scan(whole);
	sample_store(path, bytes, at);
	reader = reader_open(path, &err);
	reader_follow(reader, true);
	file = fopen(path, "ab");
	for (;;) {
		size_t part = 1 + (size_t)sample_below(&random, 60);

		while ((item = reader_next(reader, &event, &note)) != READER_END) {
			CHECK_EQ(item, reader_next(whole, &expected, &expected_note));
			CHECK_EQ(hash_item(item, &expected, &expected_note),
				 hash_item(item, &event, &note));
		}
		part = part < size - at ? part : size - at;
		if (part == 0)
			break;
		CHECK(file && fwrite(bytes + at, 1, part, file) == part && fflush(file) == 0);
		at += part;
		reader_grown(reader);
	}
	reader_follow(reader, false);
	while ((item = reader_next(reader, &event, &note)) != READER_END)
		CHECK_EQ(item, reader_next(whole, &expected, &expected_note));
	CHECK_EQ(READER_END, reader_next(whole, &expected, &expected_note));
	CHECK(reader_ok(reader, &err));
	CHECK_EQ(reader_stats(whole)->events, reader_stats(reader)->events);
	fclose(file);
	reader_close(reader);
	reader_close(whole);
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(reader_scan_knows_all_definitions_and_stays_where_it_is)
{
	const char *path = test_temp_path("scan.tide");
	struct sample sample = { 0 };
	struct err err = { 0 };
	struct reader *reader;
	struct trace_event event;
	struct trace_note note;
	uint64_t events = 0, number;

	sample_write(path, 33, 100000, &sample);
	reader = reader_open(path, &err);
	while (events < 1000)
		events += reader_next(reader, &event, &note) == READER_EVENT;
	number = event.number;
	CHECK(reader_threads_count(reader) < sample.threads);
	reader_scan(reader);
	CHECK_EQ(sample.threads, reader_threads_count(reader));
	CHECK_EQ(sample.stacks + 1, reader_stacks_count(reader));
	CHECK(reader_complete(reader));
	CHECK(reader_end(reader) != NULL);
	while (reader_next(reader, &event, &note) == READER_NOTE)
		;
	CHECK_EQ(number + 1, event.number);
	reader_close(reader);
	sample_fini(&sample);
}

TEST(reader_tells_how_processes_ended_when_it_comes_there)
{
	const char *path = test_temp_path("ends.tide");
	struct trace_info info = sample_info();
	struct trace_process process = { .parent = TRACE_NONE, .exe = "/bin/app", .bits = 64 };
	struct err err = { 0 };
	int fd = sample_create(path);
	struct writer *writer = writer_new(fd, &info, &err);
	struct trace_event event;
	struct trace_note note;
	struct reader *reader;

	writer_add_process(writer, &process);
	writer_note(writer,
		    &(struct trace_note){ .kind = TRACE_NOTE_PROCESS_START, .thread = TRACE_NONE });
	writer_process_end(writer, 0, 500, TRACE_EXIT_SIGNAL, 11);
	writer_end(writer, &(struct trace_end){ .why = "" });
	writer_free(writer);
	close(fd);
	reader = reader_open(path, &err);
	CHECK_EQ(READER_NOTE, reader_next(reader, &event, &note));
	CHECK_EQ(UINT64_MAX, reader_process(reader, 0)->ended_ns);
	CHECK_EQ(READER_NOTE, reader_next(reader, &event, &note));
	CHECK_EQ(TRACE_NOTE_PROCESS_END, note.kind);
	CHECK_EQ(500, reader_process(reader, 0)->ended_ns);
	CHECK_EQ(TRACE_EXIT_SIGNAL, reader_process(reader, 0)->exit);
	CHECK_EQ(11, reader_process(reader, 0)->exit_value);
	CHECK_EQ(READER_END, reader_next(reader, &event, &note));
	reader_close(reader);
}
