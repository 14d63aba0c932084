// Any bytes as events, or as the payload of a block of events (docs/format.md, section 6).
//
// The first byte chooses. As events: three bytes each; what is written of them, addresses predicted
// or not, is read back the same, also out of a block. As a loop of up to nine such events, which
// rows and echoes go on with: the same, where a block has no bytes for what comes again. As a
// payload, whose kinds stand there: reading in runs gives what reading one by one gives.
#include "trace/block.h"
#include "trace/columns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENTS_MAX = 2000, RUN_MAX = 20, LOOP_MAX = 9 };

static void check(bool good)
{
	if (!good)
		abort();
}

static bool same(const struct trace_event *one, const struct trace_event *other)
{
	return one->kind == other->kind && one->thread == other->thread &&
	       one->address == other->address && one->old_address == other->old_address &&
	       one->size == other->size && one->stack == other->stack &&
	       one->number == other->number && one->time_ns == other->time_ns;
}

// Read in runs and one by one: both are the same, to the end or the damage. Returns how many.
static uint32_t read_both(struct bytes_cursor payload, uint32_t count,
			  const struct trace_event *expected)
{
	struct columns_decoder *one = mem_alloc(1, sizeof *one), *many = mem_alloc(1, sizeof *many);
	bool good = columns_decoder_init(one, payload, count, 0, 0);
	enum columns_result result = COLUMNS_EVENT, other = COLUMNS_EVENT;
	struct trace_event event, events[RUN_MAX];
	uint32_t run = 0, at = 0, read = 0;

	check(good == columns_decoder_init(many, payload, count, 0, 0));
	while (good && result == COLUMNS_EVENT) {
		result = columns_next(one, &event);
		if (at == run) {
			at = 0;
			run = columns_run(many, events, 1 + read % RUN_MAX);
			if (run == 0) {
				other = columns_next(many, &events[0]);
				run = 1;
			}
		}
		check(result == other);
		if (result != COLUMNS_EVENT)
			break;
		check(same(&event, &events[at]));
		check(!expected || same(&event, &expected[read]));
		at++;
		read++;
	}
	columns_decoder_fini(one);
	columns_decoder_fini(many);
	mem_free(one);
	mem_free(many);
	return read;
}

// Few addresses, sizes and threads, so that they meet again.
static struct trace_event event_of(const uint8_t *data, uint32_t number)
{
	static const uint8_t kinds[] = { TRACE_MALLOC,        TRACE_FREE,        TRACE_REALLOC,
					 TRACE_CALLOC,        TRACE_ALIGNED,     TRACE_REALLOC_FREE,
					 TRACE_REALLOC_ALLOC, TRACE_REALLOC_UNDO };
	struct trace_event event = {
		.number = number,
		.kind = kinds[data[0] % 8],
		.thread = data[0] >> 3 & 3,
		.address = (uint64_t)data[1] << (data[0] & 0x80 ? 36 : 4),
	};

	if (event.kind == TRACE_REALLOC)
		event.old_address = (uint64_t)(data[2] >> 2) << 4;
	if (event.kind != TRACE_FREE && event.kind != TRACE_REALLOC_FREE)
		event.size = (uint64_t)(data[2] & 31) * 12;
	return event;
}

// Of a block, which is read back.
static void pack_and_read(struct columns_encoder *encoder, const struct trace_event *events)
{
	struct block block = { .type = BLOCK_EVENTS, .events_count = encoder->count };
	struct block_unpacker unpacker = { 0 };
	struct block_packer packer = { 0 };
	struct bytes payload = { 0 }, out = { 0 };
	struct bytes_cursor raw;
	struct err err = { 0 };

	columns_finish(encoder, &payload, &packer);
	block_pack(&packer, &block, payload.data, payload.size, true, &out);
	check(block_unpack(&unpacker, &block, out.data + BLOCK_HEADER_BYTES, &raw, &err));
	check(read_both(raw, block.events_count, events) == block.events_count);
	block_packer_fini(&packer);
	block_unpacker_fini(&unpacker);
	bytes_fini(&payload);
	bytes_fini(&out);
}

// After the events of the loop come pieces of two bytes: how many of its next events are a row, and
// how often that comes again, if it is all of the loop.
static void loop_and_read(const uint8_t *data, size_t size)
{
	struct columns_encoder *encoder = mem_alloc(1, sizeof *encoder);
	struct trace_event *events = mem_alloc(COLUMNS_EVENTS_MAX, sizeof *events);
	uint32_t period = 1 + data[0] % LOOP_MAX, at = 0, count = 0;
	const uint8_t *loop = ++data;

	for (data += (size_t)period * 3, size -= 1 + (size_t)period * 3; size >= 2;
	     data += 2, size -= 2) {
		bool all = data[1] > 0;
		uint32_t long_row = all ? period : 1u + data[0] % COLUMNS_ROW_MAX;
		uint32_t times = all ? 1 + data[0] * (uint32_t)data[1] : 1;
		struct columns_row row = { .free_stacks = true };

		if (long_row * times > COLUMNS_EVENTS_MAX - count)
			break;
		for (uint32_t i = 0; i < long_row; i++, at = (at + 1) % period) {
			struct trace_event event = event_of(loop + (size_t)at * 3, 0);

			event.kind = event.kind == TRACE_REALLOC ? TRACE_MALLOC : event.kind;
			columns_row_push(&row,
					 event.kind == TRACE_REALLOC_UNDO ? TRACE_FREE : event.kind,
					 event.address, event.size, event.thread);
		}
		columns_add_row(encoder, &row);
		columns_add_echo(encoder, &row, times - 1);
		for (uint32_t i = 0; i < times; i++) {
			struct columns_row_walk walk = { 0 };

			for (; columns_row_next(&row, &walk, &events[count]); count++)
				events[count].number = count;
		}
	}
	if (count > 0)
		pack_and_read(encoder, events);
	columns_encoder_fini(encoder);
	mem_free(encoder);
	mem_free(events);
}

static void write_and_read(const uint8_t *data, size_t size, bool predicts)
{
	struct columns_encoder *encoder = mem_alloc(1, sizeof *encoder);
	struct trace_event *events = mem_alloc(EVENTS_MAX, sizeof *events);
	struct bytes payload = { 0 };
	uint32_t count = 0;

	encoder->predicts = predicts;
	for (; size >= 3 && count < EVENTS_MAX; data += 3, size -= 3) {
		events[count] = event_of(data, count);
		columns_add(encoder, &events[count], 0);
		count++;
	}
	columns_finish(encoder, &payload, NULL);
	check(read_both(bytes_cursor(payload.data, payload.size), count, events) == count);
	payload.size = 0;
	for (uint32_t i = 0; i < count; i++)
		columns_add(encoder, &events[i], 0);
	pack_and_read(encoder, events);
	columns_encoder_fini(encoder);
	bytes_fini(&payload);
	mem_free(encoder);
	mem_free(events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	if (data[0] == 'p') {
		read_both(bytes_cursor(data + 3, size - 3), data[1] | (uint32_t)data[2] << 8, NULL);
	} else if (data[0] == 'l' && size >= 2 + 3 * LOOP_MAX) {
		loop_and_read(data + 1, size - 1);
	} else {
		write_and_read(data + 1, size - 1, true);
		write_and_read(data + 1, size - 1, false);
	}
	return 0;
}
