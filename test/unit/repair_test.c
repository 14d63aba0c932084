// What trace/repair.h promises: all that can be read is kept, and what is missing is said.
#include "test/test.h"
#include "test/unit/sample_trace.h"
#include "trace/asm.h"
#include "trace/block.h"
#include "trace/repair.h"

static char *dump(const char *path, bool *sound)
{
	struct asm_options options = asm_dump_all();
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct err err = { 0 };
	struct reader *reader = reader_open(path, &err);

	CHECK_STR("", err.text);
	options.definitions = false;
	CHECK(asm_dump(reader, &options, &sink, &err));
	if (sound)
		*sound = reader_sound(reader);
	reader_close(reader);
	return str_take(&text);
}

static struct repair_result repair(const char *from, const char *to)
{
	struct repair_result result;
	struct err err = { 0 };
	int fd = sample_create(to);

	CHECK(repair_trace(from, fd, &result, &err));
	close(fd);
	return result;
}

TEST(repair_keeps_all_items_of_a_file_cut_anywhere)
{
	const char *path = test_temp_path("cut.tide"), *mended = test_temp_path("mended.tide");
	struct sample sample = { 0 };
	uint8_t *bytes;
	size_t size;

	sample_write(path, 4, 400, &sample);
	bytes = sample_load(path, &size);
	for (size_t cut = BLOCK_PREAMBLE_BYTES; cut < size; cut += 7) {
		struct repair_result result;
		char *before, *after;
		bool sound;

		sample_store(path, bytes, cut);
		result = repair(path, mended);
		CHECK_CONTAINS("cut at byte", result.why);
		before = dump(path, NULL);
		after = dump(mended, &sound);
		CHECK(sound);
		CHECK_STR(before, after);
		mem_free(before);
		mem_free(after);
	}
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(repair_survives_any_flipped_byte_and_makes_a_sound_trace)
{
	const char *path = test_temp_path("flip.tide"), *mended = test_temp_path("mended.tide");
	struct sample sample = { 0 };
	uint8_t *bytes;
	size_t size;

	sample_write(path, 4, 400, &sample);
	bytes = sample_load(path, &size);
	for (size_t at = 0; at < size; at += 5) {
		bool sound;

		bytes[at] ^= 0x11;
		sample_store(path, bytes, size);
		bytes[at] ^= 0x11;
		repair(path, mended);
		mem_free(dump(mended, &sound));
		// Where definitions were lost, records that speak of them stay, and stay wrong.
		CHECK(sound || at < size / 2);
	}
	mem_free(bytes);
	sample_fini(&sample);
}

// The offset of the payload of the nth block of events.
static size_t events_payload(const uint8_t *bytes, size_t size, int nth, struct block *block)
{
	size_t at = BLOCK_PREAMBLE_BYTES;

	while (at + BLOCK_HEADER_BYTES <= size && block_header_decode(bytes + at, block)) {
		if (block->type == BLOCK_EVENTS && nth-- == 0)
			return at + BLOCK_HEADER_BYTES;
		at += BLOCK_HEADER_BYTES + block->stored_size;
	}
	CHECK(false);
	return 0;
}

TEST(repair_notes_where_events_are_missing)
{
	const char *path = test_temp_path("torn.tide"), *mended = test_temp_path("mended.tide");
	struct sample sample = { 0 };
	struct repair_result result;
	struct err err = { 0 };
	struct reader *reader;
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	struct block block;
	uint8_t *bytes;
	size_t size;
	uint64_t lost = 0;

	sample_write(path, 9, 12000, &sample);
	bytes = sample_load(path, &size);
	bytes[events_payload(bytes, size, 1, &block) + 3] ^= 1;
	sample_store(path, bytes, size);
	result = repair(path, mended);
	CHECK_EQ(1, result.blocks_lost);
	CHECK_EQ(block.events_count, result.events_lost);
	reader = reader_open(mended, &err);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		if (item != READER_NOTE || note.kind != TRACE_NOTE_LOSS)
			continue;
		lost += note.value;
		CHECK_EQ(READER_EVENT, reader_next(reader, &event, &note));
		CHECK_EQ(block.first_event + block.events_count, event.number);
	}
	CHECK_EQ(block.events_count, lost);
	CHECK(reader_sound(reader));
	CHECK(!reader_complete(reader));
	CHECK_CONTAINS("(repaired)", reader_end(reader)->why);
	CHECK_EQ(block.events_count, reader_end(reader)->events_lost);
	CHECK_EQ(100001, reader_end(reader)->tick_median_ns);
	reader_close(reader);
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(repair_of_a_whole_trace_changes_nothing_that_is_read)
{
	const char *path = test_temp_path("whole.tide"), *mended = test_temp_path("mended.tide");
	struct sample sample = { 0 };
	struct repair_result result;
	char *before, *after;
	bool sound;

	sample_write(path, 6, 100000, &sample);
	result = repair(path, mended);
	CHECK_STR("", result.why);
	CHECK_EQ(0, result.blocks_lost + result.events_lost);
	before = dump(path, NULL);
	after = dump(mended, &sound);
	CHECK(sound);
	CHECK(strcmp(before, after) == 0);
	mem_free(before);
	mem_free(after);
	sample_fini(&sample);
}

TEST(repair_refuses_what_is_no_trace)
{
	const char *path = test_temp_path("other");
	struct repair_result result;
	struct err err = { 0 };
	int fd = sample_create(test_temp_path("out"));

	sample_store(path, "not a trace", 11);
	CHECK(!repair_trace(path, fd, &result, &err));
	CHECK_CONTAINS("is not a tidemark trace", err.text);
	close(fd);
}
