// Any bytes as events, or as the payload of a block of events (docs/format.md, section 6).
//
// The first byte chooses. As events: three bytes each; what is written of them, addresses predicted
// or not, is read back the same. As a payload, whose kinds stand there: reading in runs gives what
// reading one by one gives.
#include "trace/columns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENTS_MAX = 2000, RUN_MAX = 20 };

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
	} else {
		write_and_read(data + 1, size - 1, true);
		write_and_read(data + 1, size - 1, false);
	}
	return 0;
}
