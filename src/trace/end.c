#include "trace/end.h"

static const uint8_t footer_magic[8] = { 'T', 'I', 'D', 'E', 'E', 'N', 'D', 0x0a };

enum { NUMBERS_COUNT = 13, WHY_MAX = 4096 };

_Static_assert(END_FOOTER_BYTES == 2 * sizeof(uint64_t) + sizeof footer_magic,
	       "as end_encode writes it");

// The numbers in the order of the format; a later version adds after them. One list for both
// directions, so that they cannot differ.
static void numbers_of(struct trace_end *end, uint64_t *numbers[static NUMBERS_COUNT])
{
	numbers[0] = &end->duration_ns;
	numbers[1] = &end->events;
	numbers[2] = &end->events_lost;
	numbers[3] = &end->waited_ns;
	numbers[4] = &end->tick_median_ns;
	numbers[5] = &end->tick_worst_ns;
	numbers[6] = &end->guest_bytes_peak;
	numbers[7] = &end->collector_bytes_peak;
	numbers[8] = &end->collector_cpu_ns;
	numbers[9] = &end->stacks_incomplete;
	numbers[10] = &end->stacks_verified;
	numbers[11] = &end->stacks_mismatched;
	numbers[12] = &end->unseen;
}

// The footer is not part of the text before it: it is found from the file's end, and a reader of
// the payload does not look at it.
void end_encode(const struct trace_end *end, const struct end_footer *footer, struct bytes *out)
{
	struct trace_end copy = *end;
	uint64_t *numbers[NUMBERS_COUNT];
	uint8_t tail[END_FOOTER_BYTES];

	numbers_of(&copy, numbers);
	bytes_add_varint(out, NUMBERS_COUNT);
	for (int i = 0; i < NUMBERS_COUNT; i++)
		bytes_add_varint(out, *numbers[i]);
	bytes_add_text(out, end->why, WHY_MAX);
	bytes_put_u64(tail, footer->end_at);
	bytes_put_u64(tail + 8, footer->index_at);
	memcpy(tail + 16, footer_magic, sizeof footer_magic);
	bytes_add(out, tail, sizeof tail);
}

// Numbers that a later version has added are stepped over; those that an earlier one did not have
// are 0.
bool end_decode(struct bytes_cursor payload, struct trace_end *end)
{
	uint64_t *numbers[NUMBERS_COUNT];
	uint64_t count;

	*end = (struct trace_end){ 0 };
	numbers_of(end, numbers);
	count = bytes_next(&payload);
	for (uint64_t i = 0; i < count && !payload.bad; i++) {
		uint64_t number = bytes_next(&payload);

		if (i < NUMBERS_COUNT)
			*numbers[i] = number;
	}
	if (payload.bad)
		return false;
	end->why = bytes_next_text(&payload);
	if (payload.bad) {
		mem_free(end->why);
		end->why = NULL;
	}
	return !payload.bad;
}

bool end_decode_footer(const uint8_t in[static END_FOOTER_BYTES], struct end_footer *footer)
{
	if (memcmp(in + 16, footer_magic, sizeof footer_magic) != 0)
		return false;
	footer->end_at = bytes_get_u64(in);
	footer->index_at = bytes_get_u64(in + 8);
	return true;
}
