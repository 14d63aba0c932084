// Encodes events, one by one and in rows, into the columns of a block.
//
// Each field is written as a varint to its column. Addresses are differences to the one before: a
// block at 0x5050 after one at 0x5000 is 0x50 = 80; its low four bits, 0, go to one column, the
// rest, 5, in zigzag (10) to another, as one byte. Columns of fields that are alike compress well.
//
// What most events have is staged first, and a column is then packed by four
// varints at a time without a branch (put_four).
#include "trace/columns.h"

#include "base/mem.h"
#include "base/sse2.h"
#include "trace/block.h"
#include "wire/compiler.h"

#define BIT(column) (UINT64_C(1) << (column))

// What most events have. The rest goes straight to its column.
#define STAGED                                                                            \
	(BIT(COLUMN_KIND) | BIT(COLUMN_THREAD) | BIT(COLUMN_TIME) | BIT(COLUMN_ADDRESS) | \
	 BIT(COLUMN_ADDRESS_LOW) | BIT(COLUMN_OLD_ADDRESS) | BIT(COLUMN_SIZE) |           \
	 BIT(COLUMN_STACK) | BIT(COLUMN_FREE_STACK) | BIT(COLUMN_WAY))

#define ADDRESSES (BIT(COLUMN_ADDRESS) | BIT(COLUMN_ADDRESS_LOW) | BIT(COLUMN_OLD_ADDRESS))

enum { RESERVE_EVENTS = 1024, SHORT_ROW = 12 };

// Repetitions that are left out are at least so many events; a block of which no more bytes are
// left is stored as it is, without a search for what is alike.
enum { GAP_EVENTS_MIN = 1024, SPARSE_BYTES = 2048 };

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// Write a number where there is room for VARINT_BYTES_MAX bytes. Returns its length. Without a
// branch but for numbers of more than 56 bits.
// For example 300, 0b1_0010_1100: bits is 9, so length is (81 + 64) / 64 = 2. The groups of seven
// bits come to lie in bytes of their own, 0x2c and 0x02, and all but the last byte get the top bit:
// ac 02. Eight bytes are written each time, of which the next number overwrites six.
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

enum { FOUR_BITS = 28 }; // of each of four numbers that are written at once, in four bytes at most

// Two numbers of 32 bits each, as bytes, of which the first has `bits`. Returns where to go on.
// For example the numbers 0x02ac of 16 bits and 0x05 of 8: both is 0x0502ac, three bytes that
// count.
static inline uint8_t *put_two(uint64_t numbers, uint64_t bits, uint8_t *out)
{
	uint64_t first_bits = (uint32_t)bits;
	uint64_t both = (uint32_t)numbers | numbers >> 32 << first_bits;

	memcpy(out, &both, sizeof both);
	return out + (first_bits + (bits >> 32)) / 8;
}

// As put_number four times, for numbers of at most FOUR_BITS, and without a branch.
// For example a lane with 300: the groups of seven bits are 0x2c and 0x02, so it is 0x022c. It is
// more than 0xff, so there are two bytes, and the first one gets 0x80: 0x02ac, 16 bits. The
// compares give -1 where they hold, so 1 minus their sum is the number of bytes.
static inline uint8_t *put_four(const uint64_t *value, uint8_t *out)
{
	__m128 low = _mm_loadu_ps((const float *)(const void *)value);
	__m128 high = _mm_loadu_ps((const float *)(const void *)(value + 2));
	__m128i all = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
	__m128i second, third, fourth, bits;

	// Groups of seven bits come apart: pairs, then each.
	all = _mm_or_si128(_mm_and_si128(all, _mm_set1_epi32(0x00003fff)),
			   _mm_and_si128(_mm_slli_epi32(all, 2), _mm_set1_epi32(0x3fff0000)));
	all = _mm_or_si128(_mm_and_si128(all, _mm_set1_epi32(0x007f007f)),
			   _mm_and_si128(_mm_slli_epi32(all, 1), _mm_set1_epi32(0x7f007f00)));
	// Which have that many bytes; each such has one more.
	second = _mm_cmpgt_epi32(all, _mm_set1_epi32(0xff));
	third = _mm_cmpgt_epi32(all, _mm_set1_epi32(0xffff));
	fourth = _mm_cmpgt_epi32(all, _mm_set1_epi32(0xffffff));
	bits = _mm_sub_epi32(_mm_set1_epi32(1),
			     _mm_add_epi32(second, _mm_add_epi32(third, fourth)));
	bits = _mm_slli_epi32(bits, 3);
	all = _mm_or_si128(all, _mm_and_si128(second, _mm_set1_epi32(0x80)));
	all = _mm_or_si128(all, _mm_and_si128(third, _mm_set1_epi32(0x8000)));
	all = _mm_or_si128(all, _mm_and_si128(fourth, _mm_set1_epi32(0x800000)));
	out = put_two((uint64_t)_mm_cvtsi128_si64(all), (uint64_t)_mm_cvtsi128_si64(bits), out);
	all = _mm_unpackhi_epi64(all, all);
	bits = _mm_unpackhi_epi64(bits, bits);
	return put_two((uint64_t)_mm_cvtsi128_si64(all), (uint64_t)_mm_cvtsi128_si64(bits), out);
}

// Eight at a time, by the largest of them: bytes alone, four bytes at most, or any. One test for
// eight numbers is predicted well, since a column's numbers are alike.
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
		if (likely(all >> FOUR_BITS == 0)) {
			out = put_four(&value[i], out);
			out = put_four(&value[i + 4], out);
			continue;
		}
		for (size_t j = 0; j < 8; j++)
			out += put_number(value[i + j], out);
	}
	for (; i < count; i++)
		out += put_number(value[i], out);
	return out;
}

// The same code for any processor, and below for those that count leading zeros quickly.
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
// lzcnt is bit 5 of ecx in CPUID's leaf 0x80000001. Threads may race to ask: they get the same
// answer.
static bool has_lzcnt(void)
{
	static _Atomic int known; // 1: it has, -1: it has not
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
	uint8_t *end = bytes->data + bytes->size; // there is room: see reserve_all

	ASSERT(count <= (bytes->capacity - bytes->size) / VARINT_BYTES_MAX);
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

// ---- Runs of times and threads ----------------------------------------------------------------

// A time is a delta, its low bit saying whether a count of events more at the same time follows.
// For example five events 7 ns after those before: 7 << 1 | 1 = 15, then 5 - 2 = 3. One event alone
// is 14. A run of two has count 0, so the number is never wasted.
static void end_time_run(struct columns_encoder *encoder)
{
	struct bytes *out = &encoder->column[COLUMN_TIME];
	uint64_t delta = encoder->run_ns_delta;

	// The top bit of a delta is lost to the flag: 292 years.
	bytes_add_varint(out, delta << 1 | (encoder->run_ns_count > 1));
	if (encoder->run_ns_count > 1)
		bytes_add_varint(out, encoder->run_ns_count - 2);
	encoder->run_ns_count = 0;
}

// A thread is a difference to the thread before, with a count in the same manner.
static void end_thread_run(struct columns_encoder *encoder)
{
	struct bytes *out = &encoder->column[COLUMN_THREAD];
	int64_t delta = (int64_t)encoder->run_thread - (int64_t)encoder->last_thread;

	bytes_add_varint(out, varint_zigzag(delta) << 1 | (encoder->run_thread_count > 1));
	if (encoder->run_thread_count > 1)
		bytes_add_varint(out, encoder->run_thread_count - 2);
	encoder->last_thread = encoder->run_thread;
	encoder->run_thread_count = 0;
}

// Room for the longest entries of events up to `count` and some more, so that adding need not ask
// each time. What is staged has none yet. Numbers are stored as whole words.
static void reserve_all(struct columns_encoder *encoder, uint32_t count)
{
	uint32_t more = count - encoder->count + COLUMNS_ROW_MAX + RESERVE_EVENTS;

	for (int column = COLUMN_KIND; column < COLUMNS_COUNT; column++)
		bytes_reserve(&encoder->column[column], (more + 1) * VARINT_BYTES_MAX);
	encoder->roomy = encoder->count + more - COLUMNS_ROW_MAX;
}

// The block's first time is in its header, so the first delta is 0; the first thread is a
// difference to 0. A block needs no other.
static void begin_block(struct columns_encoder *encoder, thread_id thread, uint64_t time_ns)
{
	encoder->first_ns = encoder->last_ns = time_ns;
	encoder->busy_ns = 0;
	encoder->last_thread = 0;
	encoder->run_thread = thread;
	encoder->run_ns_delta = 0;
	memset(encoder->previous, 0, sizeof encoder->previous);
	if (encoder->predicts)
		columns_late_begin(encoder);
}

// The next events are of `thread` and at `time_ns`: at least one, at most `max`.
// The runs grow by the caller, who knows how many events there are in the end.
static inline void open_row(struct columns_encoder *encoder, thread_id thread, uint64_t time_ns,
			    uint32_t max)
{
	ASSERT(max <= COLUMNS_EVENTS_MAX - encoder->count);
	if (unlikely(encoder->count == 0))
		begin_block(encoder, thread, time_ns);
	if (unlikely(encoder->count + max > encoder->roomy))
		reserve_all(encoder, encoder->count + max);
	if (time_ns != encoder->last_ns) {
		end_time_run(encoder);
		encoder->run_ns_delta = time_ns - encoder->last_ns;
		// A pause counts with its first half millisecond only: see COLUMNS_PAUSE_NS.
		encoder->busy_ns += encoder->run_ns_delta < COLUMNS_PAUSE_NS ? encoder->run_ns_delta
									     : COLUMNS_PAUSE_NS;
		encoder->last_ns = time_ns;
	}
	if (thread != encoder->run_thread) {
		end_thread_run(encoder);
		encoder->run_thread = thread;
	}
}

// ---- Events, one by one ----------------------------------------------------------------------

// The loop is short: what comes by here (heaps, offsets, errors) is rare and mostly small.
static inline void add_number(struct columns_encoder *encoder, enum column column, uint64_t value)
{
	struct bytes *out = &encoder->column[column];
	uint8_t *at = out->data + out->size; // there is room: see reserve_all
	size_t size = 1;

	encoder->columns_used |= (uint64_t)(value != 0) << column;
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
		size++;
	}
	*at = (uint8_t)value;
	out->size += size;
}

static inline void add_byte(struct columns_encoder *encoder, enum column column, uint8_t value)
{
	struct bytes *out = &encoder->column[column];

	out->data[out->size++] = value;
	encoder->columns_used |= (uint64_t)(value != 0) << column;
}

// What aligned blocks, heaps of other kinds and virtual memory have, kept out of the way.
static __attribute__((noinline)) void add_rare(struct columns_encoder *encoder,
					       const struct trace_event *event, uint64_t columns)
{
	static const struct trace_vm nothing;
	const struct trace_vm *vm = event->vm ? event->vm : &nothing;

	if (columns & BIT(COLUMN_ALIGN))
		add_byte(encoder, COLUMN_ALIGN, event->align_log2);
	if (columns & BIT(COLUMN_HEAP))
		add_number(encoder, COLUMN_HEAP, event->heap);
	if (columns & BIT(COLUMN_OLD_SIZE))
		add_number(encoder, COLUMN_OLD_SIZE, vm->old_size);
	if (columns & BIT(COLUMN_PROTECTION))
		add_number(encoder, COLUMN_PROTECTION, vm->protection);
	if (columns & BIT(COLUMN_OFFSET))
		add_number(encoder, COLUMN_OFFSET, vm->offset);
	if (columns & BIT(COLUMN_ERROR))
		add_number(encoder, COLUMN_ERROR, vm->error);
	if (columns & BIT(COLUMN_FLAGS))
		add_number(encoder, COLUMN_FLAGS, event->vm ? vm->flags : event->flags);
	if (columns & BIT(COLUMN_FILE))
		add_number(encoder, COLUMN_FILE, vm->file);
	if (columns & BIT(COLUMN_ORIGIN))
		add_byte(encoder, COLUMN_ORIGIN, vm->origin);
}

// Bytes as they are. `all` is taken along so that a column of zeros is known without another pass.
void columns_append(struct columns_encoder *encoder, enum column column, const uint8_t *value,
		    size_t count)
{
	struct bytes *bytes = &encoder->column[column];
	uint8_t all = 0;

	for (size_t i = 0; i < count; i++)
		all |= value[i];
	ASSERT(count <= bytes->capacity - bytes->size);
	memcpy(bytes->data + bytes->size, value, count);
	bytes->size += count;
	encoder->columns_used |= (uint64_t)(all != 0) << column;
}

void columns_pack(struct columns_encoder *encoder, enum column column, const uint64_t *value,
		  size_t count)
{
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all |= value[i];
	pack(encoder, column, value, count, all);
}

// `value`, `count` times.
static void pack_same(struct columns_encoder *encoder, enum column column, uint64_t value,
		      size_t count)
{
	uint64_t values[COLUMNS_ROW_MAX];

	if (value == 0) {
		struct bytes *bytes = &encoder->column[column];

		memset(bytes->data + bytes->size, 0, count);
		bytes->size += count;
		return;
	}
	for (size_t i = 0; i < count; i++)
		values[i] = value;
	pack(encoder, column, values, count, value);
}

static void pack_staged(struct columns_encoder *encoder, enum column column, const uint64_t *value,
			uint32_t *count)
{
	columns_pack(encoder, column, value, *count);
	*count = 0;
}

// What is staged goes to its columns.
// Events that come one by one are staged, so that they go to each column many at a time: a column
// is then a loop over numbers, and no branch for each field of each event.
static void unstage(struct columns_encoder *encoder)
{
	struct columns_stage *stage = &encoder->stage;

	if (stage->count == 0)
		return;
	columns_append(encoder, COLUMN_KIND, stage->kind, stage->count);
	columns_append(encoder, COLUMN_ADDRESS_LOW, stage->low, stage->addresses);
	pack_staged(encoder, COLUMN_ADDRESS, stage->address, &stage->addresses);
	pack_staged(encoder, COLUMN_OLD_ADDRESS, stage->old_address, &stage->old_addresses);
	pack_staged(encoder, COLUMN_SIZE, stage->size, &stage->sizes);
	pack_staged(encoder, COLUMN_STACK, stage->stack, &stage->stacks);
	pack_staged(encoder, COLUMN_FREE_STACK, stage->free_stack, &stage->free_stacks);
	stage->count = 0;
}

// Each field is stored; whether it counts depends on the kind.
// No branch: each field is stored at its place, and only the count moves on where the kind has
// it.
static inline void stage_event(struct columns_encoder *encoder, uint64_t columns,
			       const struct trace_event *event)
{
	struct columns_stage *stage = &encoder->stage;
	uint64_t *previous = &encoder->previous[event->thread % COLUMNS_SLOTS];

	if (unlikely(stage->count == COLUMNS_ROW_MAX))
		unstage(encoder);
	encoder->kinds_used |= BIT(event->kind);
	stage->kind[stage->count++] = event->kind;
	if (unlikely(encoder->predicts)) {
		if (columns & (ADDRESSES | BIT(COLUMN_WAY)))
			columns_late_add(encoder, event);
		columns &= ~ADDRESSES;
	}
	if (likely(columns & BIT(COLUMN_ADDRESS))) {
		uint64_t delta = event->address - *previous;

		*previous = event->address;
		stage->low[stage->addresses] = delta & 15;
		stage->address[stage->addresses++] = varint_zigzag((int64_t)delta >> 4);
	}
	stage->old_address[stage->old_addresses] =
		varint_zigzag((int64_t)(event->address - event->old_address));
	stage->old_addresses += columns >> COLUMN_OLD_ADDRESS & 1;
	stage->size[stage->sizes] = event->size;
	stage->sizes += columns >> COLUMN_SIZE & 1;
	stage->stack[stage->stacks] = event->stack;
	stage->stacks += columns >> COLUMN_STACK & 1;
	stage->free_stack[stage->free_stacks] = event->stack;
	stage->free_stacks += columns >> COLUMN_FREE_STACK & 1;
}

// The order matters: open_row closes the runs of the time and thread before, and only then is the
// event counted in the new ones.
void columns_add(struct columns_encoder *encoder, const struct trace_event *event, uint64_t time_ns)
{
	uint64_t columns = columns_written(encoder, event->kind);

	ASSERT(encoder->count < COLUMNS_EVENTS_MAX);
	ASSERT(columns != 0);
	open_row(encoder, event->thread, time_ns, 1);
	encoder->run_ns_count++;
	encoder->run_thread_count++;
	encoder->count++;
	stage_event(encoder, columns, event);
	if (unlikely(columns & ~STAGED))
		add_rare(encoder, event, columns);
}

// What waits to be predicted goes to its columns before the runs end; the order of columns in the
// block does not depend on that.
void columns_close(struct columns_encoder *encoder)
{
	if (encoder->count == 0)
		return;
	unstage(encoder);
	if (encoder->predicts)
		columns_late_tell(encoder);
	end_time_run(encoder);
	end_thread_run(encoder);
}

// ---- Rows ------------------------------------------------------------------------------------

// How far an address is from the one before it: the low four bits, and the rest in zigzag.
static inline uint64_t part_address(uint64_t delta, uint8_t *low)
{
	*low = delta & 15;
	return varint_zigzag((int64_t)delta >> 4);
}

// The same for two addresses, each with the one before it. The low bits come in the lower half.
// As part_address does, by sign: zigzag of a negative number n >> 4 is ~(n >> 4) * 2 + 1. SSE2 has
// no arithmetic shift of 64 bits, so the sign is spread first, and xor makes a negative delta its
// complement. For example delta = -0x20: sign is all ones, the complement 0x1f, >> 4 is 1, and 1 +
// 1 - (-1) = 3, which is the zigzag of -2.
static inline __m128i part_two(const uint64_t *address, __m128i *low)
{
	__m128i before = _mm_loadu_si128((const __m128i *)(const void *)(address - 1));
	__m128i here = _mm_loadu_si128((const __m128i *)(const void *)address);
	__m128i delta = _mm_sub_epi64(here, before);
	__m128i sign = _mm_shuffle_epi32(_mm_srai_epi32(delta, 31), _MM_SHUFFLE(3, 3, 1, 1));
	__m128i high = _mm_srli_epi64(_mm_xor_si128(delta, sign), 4);

	*low = _mm_and_si128(_mm_shuffle_epi32(delta, _MM_SHUFFLE(2, 0, 2, 0)), _mm_set1_epi32(15));
	return _mm_sub_epi64(_mm_add_epi64(high, high), sign);
}

// The same for four. Returns the low bits; *all has what is in high[0..4), too.
static inline __m128i part_four(const uint64_t *address, uint64_t *high, __m128i *all)
{
	__m128i low[2], two[2];

	two[0] = part_two(address, &low[0]);
	two[1] = part_two(address + 2, &low[1]);
	_mm_storeu_si128((__m128i *)(void *)high, two[0]);
	_mm_storeu_si128((__m128i *)(void *)(high + 2), two[1]);
	*all = _mm_or_si128(*all, _mm_or_si128(two[0], two[1]));
	return _mm_unpacklo_epi64(low[0], low[1]);
}

// All of them, the first from `previous`. Returns what high[] has, or'ed.
static uint64_t part_addresses(const uint64_t *address, size_t count, uint64_t previous,
			       uint8_t *low, uint64_t *high)
{
	__m128i all = _mm_setzero_si128(), first, second;
	size_t i = 1;
	uint64_t rest;

	rest = high[0] = part_address(address[0] - previous, &low[0]);
	for (; i + 8 <= count; i += 8) {
		first = part_four(&address[i], &high[i], &all);
		second = part_four(&address[i + 4], &high[i + 4], &all);
		first = _mm_packs_epi32(first, second);
		_mm_storel_epi64((__m128i *)(void *)&low[i], _mm_packus_epi16(first, first));
	}
	for (; i < count; i++) {
		high[i] = part_address(address[i] - address[i - 1], &low[i]);
		rest |= high[i];
	}
	all = _mm_or_si128(all, _mm_unpackhi_epi64(all, all));
	return rest | (uint64_t)_mm_cvtsi128_si64(all);
}

// A realloc has two addresses. Its new one is in the row of all addresses; the old one is a
// difference to that, which is 0 where the block grew in place.
static void put_addresses(struct columns_encoder *encoder, const struct columns_row *row)
{
	uint64_t *slot = &encoder->previous[row->thread % COLUMNS_SLOTS];
	uint64_t high[COLUMNS_ROW_MAX], old[COLUMNS_ROW_MAX];
	uint8_t low[COLUMNS_ROW_MAX];
	uint64_t highs = part_addresses(row->address, row->count, *slot, low, high);
	size_t moved = 0;

	*slot = row->address[row->count - 1];
	columns_append(encoder, COLUMN_ADDRESS_LOW, low, row->count);
	pack(encoder, COLUMN_ADDRESS, high, row->count, highs);
	if (likely(row->moved == 0))
		return;
	for (size_t i = 0; i < row->count; i++) {
		if (row->kind[i] != TRACE_REALLOC)
			continue;
		old[moved] = varint_zigzag((int64_t)(row->address[i] - row->old_address[moved]));
		moved++;
	}
	columns_pack(encoder, COLUMN_OLD_ADDRESS, old, moved);
}

// Stacks have 32 bits in a row and 64 where they are packed.
static void pack_stacks(struct columns_encoder *encoder, enum column column, const stack_id *stack,
			size_t count)
{
	uint64_t value[COLUMNS_ROW_MAX], all = 0;

	for (size_t i = 0; i < count; i++) {
		value[i] = stack[i];
		all |= value[i];
	}
	pack(encoder, column, value, count, all);
}

// Sizes and stacks, each to the column where the kind has it.
static void put_fields(struct columns_encoder *encoder, const struct columns_row *row)
{
	size_t ended = row->count - row->begun;

	columns_pack(encoder, COLUMN_SIZE, row->size, row->begun);
	pack_stacks(encoder, COLUMN_STACK, row->stack, row->begun);
	if (row->free_stacks)
		pack_stacks(encoder, COLUMN_FREE_STACK, row->free_stack, ended);
	else
		pack_same(encoder, COLUMN_FREE_STACK, 0, ended);
	if (unlikely(encoder->heaps)) {
		pack_same(encoder, COLUMN_HEAP, row->heap, row->count);
		pack_same(encoder, COLUMN_FLAGS, row->flags, row->begun);
	}
}

// A row's columns are as long as there are events that have such a field: so the three places in
// them go on at their own paces.
bool columns_row_next(const struct columns_row *row, struct columns_row_walk *walk,
		      struct trace_event *event)
{
	uint8_t kind;
	bool begins;

	if (walk->at == row->count)
		return false;
	kind = row->kind[walk->at];
	begins = columns_row_begins(kind);
	*event = (struct trace_event){
		.kind = kind,
		.thread = row->thread,
		.time_ns = row->time_ns,
		.heap = row->heap,
		.address = row->address[walk->at],
	};
	if (begins) {
		event->flags = row->flags;
		event->size = row->size[walk->begun];
		event->stack = row->stack[walk->begun];
	} else if (row->free_stacks) {
		event->stack = row->free_stack[walk->at - walk->begun];
	}
	if (kind == TRACE_REALLOC)
		event->old_address = row->old_address[walk->moved++];
	walk->begun += begins;
	walk->at++;
	return true;
}

// One by one: less work than to go to each column for a few entries.
static void add_short_row(struct columns_encoder *encoder, const struct columns_row *row)
{
	struct columns_row_walk walk = { 0 };
	struct trace_event event;

	while (columns_row_next(row, &walk, &event))
		columns_add(encoder, &event, row->time_ns);
}

// The kinds of a row, as bits.
// Eight counters of a byte each in one word: a row has at most 128 events, so none overflows.
static uint64_t kinds_of(const struct columns_row *row)
{
	uint64_t kinds = 0;

	for (unsigned kind = TRACE_MALLOC; kind <= TRACE_REALLOC_ALLOC; kind++)
		kinds |= (uint64_t)((row->counts >> 8 * kind & 0xff) != 0) << kind;
	return kinds;
}

// The row's fields go to the columns as arrays. The columns that rows never have (alignment, old
// size and so on) get nothing, since no kind of a row has an entry there.
void columns_add_row(struct columns_encoder *encoder, const struct columns_row *row)
{
	struct bytes *kinds = &encoder->column[COLUMN_KIND];

	ASSERT(row->count <= COLUMNS_EVENTS_MAX - encoder->count);
	ASSERT(row->count <= COLUMNS_ROW_MAX);
	if (row->count < SHORT_ROW) {
		add_short_row(encoder, row);
		return;
	}
	unstage(encoder);
	open_row(encoder, row->thread, row->time_ns, row->count);
	encoder->count += row->count;
	encoder->run_ns_count += row->count;
	encoder->run_thread_count += row->count;
	memcpy(kinds->data + kinds->size, row->kind, row->count);
	kinds->size += row->count;
	encoder->kinds_used |= kinds_of(row);
	if (unlikely(encoder->predicts))
		columns_late_add_row(encoder, row);
	else
		put_addresses(encoder, row);
	put_fields(encoder, row);
}

// ---- Echoes ----------------------------------------------------------------------------------

// The bytes [at - period, at) again from `at` on, as often as fits into `size`.
// What is there is doubled until it is enough: 3 bytes, 6, 12, 24, in few large copies.
static void repeat(uint8_t *at, size_t period, size_t size)
{
	// What is written is the pattern for the next step.
	for (size_t done = 0, part; done < size; done += part) {
		part = period + done < size - done ? period + done : size - done;
		memcpy(at + done, at - period, part);
	}
}

// What is missing in the column is written, and what is behind it moves on.
static void fill_gap(struct columns_encoder *encoder, int column)
{
	struct columns_gap *gap = &encoder->gap[column];
	struct bytes *bytes = &encoder->column[column];
	uint8_t *at;

	if (gap->size == 0)
		return;
	ASSERT(gap->period > 0 && gap->period <= gap->at && gap->at <= bytes->size);
	bytes_reserve(bytes, gap->size + VARINT_BYTES_MAX);
	at = bytes->data + gap->at;
	memmove(at + gap->size, at, bytes->size - gap->at);
	repeat(at, gap->period, gap->size);
	bytes->size += gap->size;
	gap->size = 0;
}

void columns_fill(struct columns_encoder *encoder)
{
	for (int column = 0; column < COLUMNS_COUNT; column++)
		fill_gap(encoder, column);
	encoder->gapped = false;
	encoder->roomy = encoder->count; // room for rows was reserved for before
}

// What all events have is written as runs, and repeats nothing.
static inline bool is_run(int column)
{
	return column == COLUMN_THREAD || column == COLUMN_TIME;
}

// Whether what is behind the column's gap goes on as what is missing would: the rest of a period,
// then the period from its beginning on, then each byte as the one a period before it.
static bool goes_on(const struct columns_encoder *encoder, int column)
{
	const struct columns_gap *gap = &encoder->gap[column];
	const struct bytes *bytes = &encoder->column[column];
	const uint8_t *at = bytes->data + gap->at, *pattern = at - gap->period;
	size_t left = bytes->size - gap->at, done, size;

	if (gap->period == 0 || left == 0)
		return left == 0;
	done = gap->size % gap->period;
	size = left < gap->period - done ? left : gap->period - done;
	if (memcmp(at, pattern + done, size) != 0)
		return false;
	at += size;
	left -= size;
	size = left < gap->period ? left : gap->period;
	return memcmp(at, pattern, size) == 0 && memcmp(at + size, at, left - size) == 0;
}

// If what is behind the gaps goes on as they do, and (not NULL) has their periods, it is missing as
// well, and its last period `times` times more.
static bool join(struct columns_encoder *encoder, const size_t *period, uint32_t times)
{
	for (int column = COLUMN_KIND; column < COLUMNS_COUNT; column++)
		if (!is_run(column) &&
		    ((period != NULL && period[column] != encoder->gap[column].period) ||
		     !goes_on(encoder, column)))
			return false;
	for (int column = COLUMN_KIND; column < COLUMNS_COUNT; column++) {
		struct columns_gap *gap = &encoder->gap[column];
		struct bytes *bytes = &encoder->column[column];

		if (is_run(column))
			continue;
		gap->size += bytes->size - gap->at + gap->period * times;
		bytes->size = gap->at;
	}
	return true;
}

// The gap begins as early as it can: behind the first period of what it repeats.
static void widen(struct columns_gap *gap, struct bytes *bytes)
{
	size_t at = gap->at;

	if (gap->size == 0)
		return;
	while (at > gap->period && bytes->data[at - 1] == bytes->data[at - 1 - gap->period])
		at--;
	memmove(bytes->data + at, bytes->data + gap->at, bytes->size - gap->at);
	bytes->size -= gap->at - at;
	gap->size += gap->at - at;
	gap->at = at;
}

bool columns_sparse(struct columns_encoder *encoder)
{
	size_t rest = 0;

	join(encoder, NULL, 0);
	for (int column = 0; column < COLUMNS_COUNT; column++) {
		widen(&encoder->gap[column], &encoder->column[column]);
		if (encoder->gap[column].size < BLOCK_GAP_MIN)
			fill_gap(encoder, column);
		rest += encoder->column[column].size;
	}
	return rest <= SPARSE_BYTES;
}

// What is predicted is not the same each time.
static void add_rows(struct columns_encoder *encoder, const struct columns_row *row, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		columns_add_row(encoder, row);
}

// Each column's last `period` bytes are missing from here on, `times` times.
static void leave_out(struct columns_encoder *encoder, const size_t *period, uint32_t times)
{
	if (encoder->gapped && join(encoder, period, times))
		return;
	columns_fill(encoder);
	for (int column = COLUMN_KIND; column < COLUMNS_COUNT; column++) {
		if (is_run(column))
			continue;
		encoder->gap[column] = (struct columns_gap){
			.at = encoder->column[column].size,
			.period = period[column],
			.size = period[column] * times,
		};
	}
	encoder->gapped = true;
}

// A loop of a program makes the same calls again and again, and the collector hands them on as one
// row and a count. With addresses as differences, each repetition is the same bytes in each column:
// the row ends at the address that was the last before it, so that the first difference is the
// same, too. So it is encoded once. Few repetitions are copied; many are left out, and mostly the
// next tick's row and its repetitions go on as they do, so that in the end a block is a few bytes
// and how often they come (block_pack). Times and threads are runs, which only get longer.
void columns_add_echo(struct columns_encoder *encoder, const struct columns_row *row,
		      uint32_t times)
{
	size_t period[COLUMNS_COUNT] = { 0 };
	uint32_t more = row->count * (times - 1);

	if (times == 0)
		return;
	if (encoder->predicts) {
		add_rows(encoder, row, times);
		return;
	}
	ASSERT(row->count <= COLUMNS_ROW_MAX && times <= COLUMNS_EVENTS_MAX &&
	       row->count * times <= COLUMNS_EVENTS_MAX - encoder->count);
	unstage(encoder);
	for (int column = COLUMN_KIND; column < COLUMNS_COUNT; column++)
		period[column] = encoder->column[column].size;
	columns_add_row(encoder, row);
	unstage(encoder);
	for (int column = COLUMN_KIND; column < COLUMNS_COUNT; column++)
		period[column] = encoder->column[column].size - period[column];
	encoder->count += more;
	encoder->run_ns_count += more;
	encoder->run_thread_count += more;
	if (more >= GAP_EVENTS_MIN) {
		leave_out(encoder, period, times - 1);
		return;
	}
	for (int column = COLUMN_KIND; column < COLUMNS_COUNT; column++) {
		struct bytes *bytes = &encoder->column[column];
		size_t want = is_run(column) ? 0 : period[column] * (times - 1);

		repeat(bytes_reserve(bytes, want + VARINT_BYTES_MAX), period[column], want);
		bytes->size += want;
	}
	encoder->roomy = encoder->count;
}
