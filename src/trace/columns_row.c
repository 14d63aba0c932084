#include "trace/columns.h"

#include "wire/compiler.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// Write a number where there is room for VARINT_BYTES_MAX bytes. Returns its length. Without a
// branch but for numbers of more than 56 bits.
static inline __attribute__((always_inline)) size_t put_number(uint64_t value, uint8_t *out)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
	size_t length = (bits * 9 + 64) / 64; // bits by 7, rounded up

	if (unlikely(length > 8))
		return varint_encode(value, out);
	// Groups of seven bits come apart: fours, then pairs, then each.
	value = (value & UINT64_C(0x000000000fffffff)) | (value & UINT64_C(0x00fffffff0000000))
								 << 4;
	value = (value & UINT64_C(0x00003fff00003fff)) | (value & UINT64_C(0x0fffc0000fffc000))
								 << 2;
	value = (value & UINT64_C(0x007f007f007f007f)) | (value & UINT64_C(0x3f803f803f803f80))
								 << 1;
	value |= UINT64_C(0x8080808080808080) & ((UINT64_C(1) << (8 * length - 8)) - 1);
	memcpy(out, &value, sizeof value);
	return length;
}

static inline __attribute__((always_inline)) uint8_t *put_numbers(const uint64_t *value,
								  size_t count, uint8_t *out)
{
	size_t i = 0;

	for (; i + 8 <= count; i += 8) {
		uint64_t all = value[i] | value[i + 1] | value[i + 2] | value[i + 3] |
			       value[i + 4] | value[i + 5] | value[i + 6] | value[i + 7];

		if (all < 0x80) {
			for (size_t j = 0; j < 8; j++)
				*out++ = (uint8_t)value[i + j];
			continue;
		}
		for (size_t j = 0; j < 8; j++)
			out += put_number(value[i + j], out);
	}
	for (; i < count; i++)
		out += put_number(value[i], out);
	return out;
}

static uint8_t *put_numbers_anywhere(const uint64_t *value, size_t count, uint8_t *out)
{
	return put_numbers(value, count, out);
}

#if defined(__x86_64__)

// The older instruction for leading zeros is slow on some processors.
__attribute__((target("lzcnt"))) static uint8_t *put_numbers_lzcnt(const uint64_t *value,
								   size_t count, uint8_t *out)
{
	return put_numbers(value, count, out);
}

// Not every compiler's __builtin_cpu_supports knows the word.
static bool has_lzcnt(void)
{
	static int known; // 1: it has, -1: it has not
	unsigned a, b, c = 0, d;

	if (known == 0)
		known = __get_cpuid(0x80000001, &a, &b, &c, &d) && c >> 5 & 1 ? 1 : -1;
	return known > 0;
}

#endif

// `all`: the values or'ed. All zeros are one byte each, as other small numbers are.
static void pack(struct columns_encoder *encoder, enum column column, const uint64_t *value,
		 size_t count, uint64_t all)
{
	struct bytes *bytes = &encoder->column[column];
	uint8_t *end = bytes->data + bytes->size; // there is room: see columns_open_row

	encoder->columns_used |= (uint64_t)(all != 0) << column;
	if (all < 0x80) {
		for (size_t i = 0; i < count; i++)
			end[i] = (uint8_t)value[i];
		bytes->size += count;
		return;
	}
#if defined(__x86_64__)
	if (has_lzcnt())
		end = put_numbers_lzcnt(value, count, end);
	else
#endif
		end = put_numbers_anywhere(value, count, end);
	bytes->size = (size_t)(end - bytes->data);
}

static void put_addresses(struct columns_encoder *encoder, const struct columns_row *row)
{
	uint64_t *slot = &encoder->previous[row->thread % COLUMNS_SLOTS];
	struct bytes *bytes = &encoder->column[COLUMN_ADDRESS_LOW];
	uint8_t *low = bytes->data + bytes->size;
	uint64_t previous = *slot, lows = 0, highs = 0;
	uint64_t high[COLUMNS_ROW_MAX];

	for (size_t i = 0; i < row->count; i++) {
		uint64_t delta = row->address[i] - previous;

		previous = row->address[i];
		low[i] = delta & 15;
		lows |= delta & 15;
		high[i] = varint_zigzag((int64_t)delta >> 4);
		highs |= high[i];
	}
	*slot = previous;
	bytes->size += row->count;
	encoder->columns_used |= (uint64_t)(lows != 0) << COLUMN_ADDRESS_LOW;
	pack(encoder, COLUMN_ADDRESS, high, row->count, highs);
}

// Sizes and stacks, each to the column where the kind has it.
static void put_fields(struct columns_encoder *encoder, const struct columns_row *row)
{
	uint64_t size[COLUMNS_ROW_MAX], stack[COLUMNS_ROW_MAX], free_stack[COLUMNS_ROW_MAX];
	uint64_t sizes = 0, stacks = 0, free_stacks = 0, kinds = 0;
	size_t begun = 0, ended = 0;

	for (size_t i = 0; i < row->count; i++) {
		bool begins = columns_row_begins(row->kind[i]);
		uint64_t mask = -(uint64_t)begins;

		kinds |= UINT64_C(1) << row->kind[i];
		size[begun] = row->size[i];
		stack[begun] = row->stack[i];
		free_stack[ended] = row->stack[i];
		sizes |= row->size[i] & mask;
		stacks |= row->stack[i] & mask;
		free_stacks |= row->stack[i] & ~mask;
		begun += begins;
		ended += !begins;
	}
	encoder->kinds_used |= kinds;
	pack(encoder, COLUMN_SIZE, size, begun, sizes);
	pack(encoder, COLUMN_STACK, stack, begun, stacks);
	pack(encoder, COLUMN_FREE_STACK, free_stack, ended, free_stacks);
	if (unlikely(encoder->heaps)) {
		for (size_t i = 0; i < row->count; i++)
			size[i] = row->heap;
		pack(encoder, COLUMN_HEAP, size, row->count, row->heap);
	}
}

void columns_add_row(struct columns_encoder *encoder, const struct columns_row *row)
{
	struct bytes *kinds = &encoder->column[COLUMN_KIND];

	ASSERT(row->count <= COLUMNS_ROW_MAX);
	if (row->count == 0)
		return;
	columns_open_row(encoder, row->thread, row->time_ns, row->count);
	encoder->count += row->count;
	encoder->run_ns_count += row->count;
	encoder->run_thread_count += row->count;
	memcpy(kinds->data + kinds->size, row->kind, row->count);
	kinds->size += row->count;
	put_addresses(encoder, row);
	put_fields(encoder, row);
}

// What stands in a column from `from` on, `times` times more.
static void repeat(struct bytes *bytes, size_t from, uint32_t times)
{
	size_t part = bytes->size - from;
	size_t want = part * times;
	uint8_t *out = bytes_reserve(bytes, want + VARINT_BYTES_MAX);
	size_t done = 0;

	// What is written is the pattern for the next step.
	while (done < want) {
		size_t size = part + done < want - done ? part + done : want - done;

		memcpy(out + done, bytes->data + from, size);
		done += size;
	}
	bytes->size += want;
}

void columns_add_echo(struct columns_encoder *encoder, const struct columns_row *row,
		      uint32_t times)
{
	size_t from[COLUMNS_COUNT];
	uint32_t more = row->count * (times - 1);

	if (times == 0)
		return;
	ASSERT(row->count <= COLUMNS_ROW_MAX && times <= COLUMNS_EVENTS_MAX &&
	       row->count * times <= COLUMNS_EVENTS_MAX - encoder->count);
	for (int column = COLUMN_KIND; column < COLUMNS_COUNT; column++)
		from[column] = encoder->column[column].size;
	columns_add_row(encoder, row);
	encoder->count += more;
	encoder->run_ns_count += more;
	encoder->run_thread_count += more;
	repeat(&encoder->column[COLUMN_KIND], from[COLUMN_KIND], times - 1);
	for (int column = COLUMN_ADDRESS; column < COLUMNS_COUNT; column++)
		repeat(&encoder->column[column], from[column], times - 1);
	encoder->roomy = encoder->count; // room for rows was reserved for before
}
