// What docs/format.md section 6 promises about blocks of events.
#include "test/test.h"
#include "trace/block.h"
#include "trace/columns.h"

#include <stdlib.h>

static void check_vm(const struct trace_vm *expected, const struct trace_vm *vm)
{
	CHECK_EQ(expected->old_size, vm->old_size);
	CHECK_EQ(expected->offset, vm->offset);
	CHECK_EQ(expected->protection, vm->protection);
	CHECK_EQ(expected->flags, vm->flags);
	CHECK_EQ(expected->file, vm->file);
	CHECK_EQ(expected->error, vm->error);
	CHECK_EQ(expected->origin, vm->origin);
}

// What columns_run gives, with columns_next for what it leaves, is what columns_next gives alone,
// and ends in the same way.
static void check_runs(const uint8_t *payload, size_t size, uint32_t count, uint64_t first_number,
		       uint64_t first_ns)
{
	enum { ROOM = 50 };
	struct columns_decoder *one = mem_alloc(1, sizeof *one), *many = mem_alloc(1, sizeof *many);
	enum columns_result result, other = COLUMNS_EVENT;
	struct trace_event event, events[ROOM];
	uint32_t run = 0, at = 0;
	bool good = columns_decoder_init(one, bytes_cursor(payload, size), count, first_number,
					 first_ns);

	CHECK_EQ(good, columns_decoder_init(many, bytes_cursor(payload, size), count, first_number,
					    first_ns));
	while (good) {
		result = columns_next(one, &event);
		if (at == run) {
			at = 0;
			run = columns_run(many, events, 1 + (uint32_t)rand() % ROOM);
			if (run == 0) {
				other = columns_next(many, &events[0]);
				run = 1;
			}
		}
		CHECK_EQ(result, other);
		if (result != COLUMNS_EVENT)
			break;
		CHECK_EQ(event.number, events[at].number);
		CHECK_EQ(event.time_ns, events[at].time_ns);
		CHECK_EQ(event.thread, events[at].thread);
		CHECK_EQ(event.kind, events[at].kind);
		CHECK_EQ(event.address, events[at].address);
		CHECK_EQ(event.old_address, events[at].old_address);
		CHECK_EQ(event.size, events[at].size);
		CHECK_EQ(event.stack, events[at].stack);
		CHECK_EQ(event.align_log2, events[at].align_log2);
		CHECK_EQ(event.heap, events[at].heap);
		CHECK_EQ(event.flags, events[at].flags);
		CHECK_EQ(event.vm != NULL, events[at].vm != NULL);
		at++;
	}
	columns_decoder_fini(one);
	columns_decoder_fini(many);
	mem_free(one);
	mem_free(many);
}

// Encode `count` events, their addresses predicted or not, decode them from memory that ends where
// they end, and compare.
static void check_encoding(const struct trace_event *events, uint32_t count, uint64_t first_number,
			   bool predicts)
{
	struct columns_encoder *encoder = mem_alloc(1, sizeof *encoder);
	struct columns_decoder *decoder = mem_alloc(1, sizeof *decoder);
	struct bytes payload = { 0 };
	struct trace_event event;
	uint8_t *copy;

	// Twice: an encoder begins anew with each block.
	for (int round = 0; round < 2; round++) {
		payload.size = 0;
		encoder->predicts = predicts;
		for (uint32_t i = 0; i < count; i++)
			columns_add(encoder, &events[i], events[i].time_ns);
		columns_finish(encoder, &payload, NULL);
	}
	copy = test_guarded_copy(payload.data, payload.size);
	CHECK(columns_decoder_init(decoder, bytes_cursor(copy, payload.size), count, first_number,
				   count ? events[0].time_ns : 0));
	for (uint32_t i = 0; i < count; i++) {
		CHECK_EQ(COLUMNS_EVENT, columns_next(decoder, &event));
		CHECK_EQ(first_number + i, event.number);
		CHECK_EQ(events[i].kind, event.kind);
		CHECK_EQ(events[i].time_ns, event.time_ns);
		CHECK_EQ(events[i].thread, event.thread);
		CHECK_EQ(events[i].address, event.address);
		CHECK_EQ(events[i].old_address, event.old_address);
		CHECK_EQ(events[i].size, event.size);
		CHECK_EQ(events[i].stack, event.stack);
		CHECK_EQ(events[i].align_log2, event.align_log2);
		CHECK_EQ(events[i].heap, event.heap);
		CHECK_EQ(trace_kind_is_vm(event.kind), event.vm != NULL);
		if (event.vm)
			check_vm(events[i].vm, event.vm);
	}
	CHECK_EQ(COLUMNS_END, columns_next(decoder, &event));
	check_runs(copy, payload.size, count, first_number, count ? events[0].time_ns : 0);
	// A payload that ends early gives a prefix, or nothing, and never more than was there.
	for (size_t cut = 0; cut < payload.size; cut++) {
		const uint8_t *part = test_guarded_copy(payload.data, cut);
		uint32_t got = 0;

		if (!columns_decoder_init(decoder, bytes_cursor(part, cut), count, first_number, 0))
			continue;
		while (columns_next(decoder, &event) == COLUMNS_EVENT)
			got++;
		CHECK(got <= count);
		check_runs(part, cut, count, first_number, 0);
	}
	for (int flip = 0; flip < 100 && payload.size > 0; flip++) {
		payload.data[(size_t)rand() % payload.size] ^= (uint8_t)(1 << rand() % 8);
		check_runs(test_guarded_copy(payload.data, payload.size), payload.size, count,
			   first_number, 0);
	}
	columns_encoder_fini(encoder);
	columns_decoder_fini(decoder);
	bytes_fini(&payload);
	mem_free(encoder);
	mem_free(decoder);
}

static void check_events(const struct trace_event *events, uint32_t count, uint64_t first_number)
{
	check_encoding(events, count, first_number, false);
	check_encoding(events, count, first_number, true);
}

// A row of random events, with frees' stacks or without.
static void fill_row(struct columns_row *row, bool heaps)
{
	static const uint8_t kinds[] = { TRACE_MALLOC,        TRACE_CALLOC,       TRACE_FREE,
					 TRACE_REALLOC_ALLOC, TRACE_REALLOC_FREE, TRACE_REALLOC };
	uint32_t count = (uint32_t)random() % (COLUMNS_ROW_MAX + 1);
	int width = (int)(random() % 64);

	row->count = row->begun = row->moved = 0;
	row->counts = 0;
	row->thread = (uint32_t)random() % 3;
	row->time_ns += random() % 2 ? 0 : (uint64_t)random();
	row->heap = heaps ? (heap_id)random() % 200 : 0;
	row->flags = heaps ? (uint32_t)random() % 3 : 0;
	row->free_stacks = random() % 2;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t kind = kinds[(size_t)random() % sizeof kinds];
		uint64_t address = (uint64_t)random() * (uint64_t)random() >> width;
		bool stacked = row->free_stacks || columns_row_begins(kind);

		if (kind == TRACE_REALLOC)
			row->old_address[row->moved++] = address - (uint64_t)random() % 4096 * 16;
		columns_row_push(row, kind, random() % 16 ? address : ~address,
				 (uint64_t)random() * 4294967311u >> random() % 64,
				 stacked && random() % 8 ? (stack_id)random() >> width % 31 : 0);
	}
}

// Rows, and rows repeated, are written byte for byte as the same events one by one.
TEST(columns_of_rows_are_those_of_their_events)
{
	struct columns_encoder *one = mem_alloc(1, sizeof *one), *two = mem_alloc(1, sizeof *two);
	struct bytes single = { 0 }, rows = { 0 };
	struct columns_row row = { .time_ns = 5 };

	srandom(3);
	for (int round = 0; round < 3000; round++) {
		uint32_t times = random() % 4 ? 0 : (uint32_t)random() % 50;

		fill_row(&row, one->heaps);
		if (row.count == 0)
			times = 0;
		if (one->count + row.count * (times + 1) > COLUMNS_EVENTS_MAX) {
			single.size = rows.size = 0;
			columns_finish(one, &single, NULL);
			columns_finish(two, &rows, NULL);
			CHECK_EQ(single.size, rows.size);
			CHECK_BYTES(single.data, rows.data, single.size);
			one->heaps = two->heaps = random() % 2;
			one->predicts = two->predicts = random() % 2;
			row.heap = row.flags = 0;
		}
		for (uint32_t i = 0; i <= times; i++) {
			struct columns_row_walk walk = { 0 };
			struct trace_event event;
			uint32_t count = 0, begun = 0, moved = 0;

			for (; columns_row_next(&row, &walk, &event); count++) {
				bool begins = columns_row_begins(event.kind);

				CHECK_EQ(row.kind[count], event.kind);
				CHECK_EQ(row.address[count], event.address);
				CHECK_EQ(begins ? row.size[begun] : 0, event.size);
				if (event.kind == TRACE_REALLOC)
					CHECK_EQ(row.old_address[moved++], event.old_address);
				begun += begins;
				columns_add(one, &event, row.time_ns);
			}
			CHECK_EQ(row.count, count);
			CHECK_EQ(row.begun, begun);
		}
		columns_add_row(two, &row);
		columns_add_echo(two, &row, times);
		CHECK_EQ(one->count, two->count);
	}
	columns_encoder_fini(one);
	columns_encoder_fini(two);
	bytes_fini(&single);
	bytes_fini(&rows);
	mem_free(one);
	mem_free(two);
}

// A loop of some calls, which comes by in pieces.
struct turning {
	struct trace_event event[9];
	uint32_t count, at; // at: the next one
};

static void turning_begin(struct turning *turning)
{
	turning->count = 1 + (uint32_t)random() % 9;
	turning->at = 0;
	for (uint32_t i = 0; i < turning->count; i++)
		turning->event[i] = (struct trace_event){
			.kind = random() % 2 ? TRACE_MALLOC : TRACE_FREE,
			.address = 0x5000 + (uint64_t)random() % 3 * (uint64_t)random() % 9999 * 8,
			.size = (uint64_t)random() % 300,
			.stack = (stack_id)random() % 200,
		};
}

static void turning_row(struct turning *turning, struct columns_row *row, uint32_t count)
{
	memset(row, 0, sizeof *row);
	row->free_stacks = true;
	for (; count > 0; count--) {
		const struct trace_event *event = &turning->event[turning->at];

		columns_row_push(row, event->kind, event->address, event->size, event->stack);
		turning->at = (turning->at + 1) % turning->count;
	}
}

static void add_times(struct columns_encoder *encoder, const struct columns_row *row,
		      uint32_t times)
{
	for (; times > 0; times--) {
		struct columns_row_walk walk = { 0 };
		struct trace_event event;

		while (columns_row_next(row, &walk, &event))
			columns_add(encoder, &event, row->time_ns);
	}
}

// `two` has left out of its block what comes again. Returns whether it was packed so.
static bool check_same_block(struct columns_encoder *one, struct columns_encoder *two)
{
	struct block block = { .type = BLOCK_EVENTS, .events_count = one->count };
	struct bytes wanted = { 0 }, raw = { 0 }, out = { 0 };
	struct block_unpacker unpacker = { 0 };
	struct block_packer packer = { 0 };
	struct bytes_cursor payload;
	struct err err = { 0 };
	bool gaps;

	CHECK_EQ(one->count, two->count);
	columns_finish(one, &wanted, NULL);
	columns_finish(two, &raw, &packer);
	gaps = packer.gaps_count > 0;
	CHECK(gaps || raw.size == wanted.size);
	block_pack(&packer, &block, raw.data, raw.size, true, &out);
	CHECK_EQ(wanted.size, block.raw_size);
	CHECK(block_unpack(&unpacker, &block, out.data + BLOCK_HEADER_BYTES, &payload, &err));
	CHECK_EQ(wanted.size, bytes_left(&payload));
	CHECK_BYTES(wanted.data, payload.at, wanted.size);
	block_packer_fini(&packer);
	block_unpacker_fini(&unpacker);
	bytes_fini(&wanted);
	bytes_fini(&raw);
	bytes_fini(&out);
	return gaps;
}

// Rows, few calls and echoes, from anywhere in the loop on, now and then with another call between:
// a block is the same whether what comes again is left out of it or not, and it mostly is.
TEST(columns_of_a_loop_are_the_same_when_what_comes_again_is_left_out)
{
	struct columns_encoder *one = mem_alloc(1, sizeof *one), *two = mem_alloc(1, sizeof *two);
	struct columns_row row;
	struct turning turning;
	int gaps = 0, full = 0;

	srandom(4);
	for (int block = 0; block < 300; block++) {
		uint64_t time_ns = 0;
		bool broken = random() % 3 == 0;

		turning_begin(&turning);
		for (int piece = 0; piece < 60; piece++) {
			uint32_t times = 1, left = COLUMNS_EVENTS_MAX - one->count;

			bool echo = piece > 0 && random() % 3 == 0;

			turning_row(&turning, &row,
				    echo ? turning.count : 1 + (uint32_t)random() % 100);
			if (echo)
				times += (uint32_t)random() % 3000;
			else if (broken && random() % 20 == 0)
				columns_row_push(&row, TRACE_MALLOC, 0x5000, 77777, 3);
			if (row.count * times > left)
				break;
			row.time_ns = time_ns += (uint64_t)random() % 2 * 100000;
			add_times(one, &row, times);
			columns_add_row(two, &row);
			columns_add_echo(two, &row, times - 1);
		}
		if (check_same_block(one, two))
			gaps++;
		else
			full++;
	}
	CHECK(gaps > 100 && full > 30);
	columns_encoder_fini(one);
	columns_encoder_fini(two);
	mem_free(one);
	mem_free(two);
}

TEST(columns_tell_heap_and_flags_of_calls_on_blocks_where_they_are_to)
{
	struct columns_encoder *encoder = mem_alloc(1, sizeof *encoder);
	struct columns_decoder *decoder = mem_alloc(1, sizeof *decoder);
	struct bytes payload = { 0 };
	struct trace_event event;

	for (int heaps = 0; heaps < 2; heaps++) {
		payload.size = 0;
		encoder->heaps = heaps;
		for (uint8_t kind = TRACE_MALLOC; kind <= TRACE_HEAP_FREE; kind++)
			columns_add(encoder,
				    &(struct trace_event){
					    .kind = kind, .heap = kind, .flags = 100u + kind },
				    0);
		columns_finish(encoder, &payload, NULL);
		CHECK(columns_decoder_init(decoder, bytes_cursor(payload.data, payload.size),
					   TRACE_HEAP_FREE, 0, 0));
		for (uint8_t kind = TRACE_MALLOC; kind <= TRACE_HEAP_FREE; kind++) {
			CHECK_EQ(COLUMNS_EVENT, columns_next(decoder, &event));
			CHECK_EQ(heaps || kind >= TRACE_HEAP_ALLOC ? kind : 0, event.heap);
			CHECK_EQ(heaps && kind <= TRACE_FAILED && kind != TRACE_FREE &&
						 kind != TRACE_REALLOC_FREE
					 ? 100u + kind
					 : 0,
				 event.flags);
		}
		CHECK_EQ(COLUMNS_END, columns_next(decoder, &event));
	}
	columns_encoder_fini(encoder);
	columns_decoder_fini(decoder);
	bytes_fini(&payload);
	mem_free(encoder);
	mem_free(decoder);
}

// A program that waits for a processor is no slower for it, and the next block begins anew.
TEST(columns_know_how_long_events_came_without_pauses)
{
	static const uint64_t times_ns[] = { 1000, 101000, 101000, UINT64_C(10000000000),
					     UINT64_C(10000300000) };
	struct columns_encoder *encoder = mem_alloc(1, sizeof *encoder);
	struct bytes payload = { 0 };

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(times_ns) / sizeof(*times_ns); i++) {
			struct trace_event event = { .kind = TRACE_FREE, .address = 16 };

			columns_add(encoder, &event, times_ns[i]);
		}
		CHECK_EQ(100000 + COLUMNS_PAUSE_NS + 300000, encoder->busy_ns);
		columns_finish(encoder, &payload, NULL);
	}
	columns_encoder_fini(encoder);
	bytes_fini(&payload);
	mem_free(encoder);
}

TEST(columns_hold_no_events)
{
	check_events(NULL, 0, 17);
}

TEST(columns_hold_the_extremes_of_each_field)
{
	const struct trace_event events[] = {
		{ .kind = TRACE_MALLOC,
		  .address = UINT64_MAX,
		  .size = UINT64_MAX,
		  .stack = UINT32_MAX,
		  .thread = UINT32_MAX - 1,
		  .time_ns = 0 },
		{ .kind = TRACE_CALLOC, .address = 0, .size = 0 },
		{ .kind = TRACE_ALIGNED, .address = 1, .align_log2 = 255 },
		{ .kind = TRACE_REALLOC, .address = UINT64_MAX, .old_address = 0, .size = 1 },
		{ .kind = TRACE_REALLOC, .address = 0, .old_address = UINT64_MAX },
		{ .kind = TRACE_FREE, .address = 0x8000000000000000, .stack = UINT32_MAX },
		{ .kind = TRACE_REALLOC_FREE, .address = 0x7fffffffffffffff },
		{ .kind = TRACE_REALLOC_ALLOC, .address = 15, .size = 1 },
		{ .kind = TRACE_REALLOC_UNDO, .address = 16, .size = UINT64_MAX },
		{ .kind = TRACE_REALLOC_FAILED, .address = 17, .stack = 1 },
		{ .kind = TRACE_FAILED,
		  .size = UINT64_MAX,
		  .stack = 7,
		  .time_ns = (UINT64_C(1) << 63) - 1 },
	};
	struct trace_event timed[sizeof events / sizeof *events];

	memcpy(timed, events, sizeof events);
	for (size_t i = 1; i + 1 < sizeof timed / sizeof *timed; i++)
		timed[i].time_ns = i / 3;
	check_events(timed, sizeof timed / sizeof *timed, UINT64_MAX - 2000000);
}

// Numbers of each length beside those of each other, up to four bytes and of any.
TEST(columns_hold_numbers_of_each_length_beside_each_other)
{
	static const uint64_t edges[] = { 0,
					  1,
					  0x7f,
					  0x80,
					  0x3fff,
					  0x4000,
					  0x1fffff,
					  0x200000,
					  0xfffffff,
					  0x10000000,
					  UINT32_MAX,
					  UINT64_C(1) << 35,
					  UINT64_C(1) << 56,
					  UINT64_MAX };
	enum { EDGES = sizeof edges / sizeof *edges, SHORT = 9, COUNT = 600 };
	static struct trace_event events[COUNT];

	srandom(7);
	for (size_t i = 0; i < COUNT; i++) {
		size_t some = i < COUNT / 2 ? SHORT : EDGES;

		events[i] = (struct trace_event){
			.kind = TRACE_MALLOC,
			.address = edges[(size_t)random() % some] * 16,
			.size = edges[(size_t)random() % some],
			.stack = (stack_id)edges[(size_t)random() % SHORT],
		};
	}
	check_events(events, COUNT, 0);
}

TEST(columns_hold_calls_on_virtual_memory_between_calls_on_the_heap)
{
	static const struct trace_vm extremes = { .old_size = UINT64_MAX,
						  .offset = UINT64_MAX,
						  .protection = UINT32_MAX,
						  .flags = UINT32_MAX,
						  .file = UINT32_MAX,
						  .error = UINT32_MAX,
						  .origin = UINT8_MAX },
				     plain = { .protection = 3,
					       .flags = 0x22,
					       .origin = TRACE_ORIGIN_LIBC },
				     shrinks = { .old_size = 8192, .flags = 1 }, nothing;
	const struct trace_event events[] = {
		{ .kind = TRACE_MALLOC, .address = 4096, .size = 7, .stack = 1 },
		{ .kind = TRACE_MMAP, .address = 1 << 20, .size = 4096, .stack = 2, .vm = &plain },
		{ .kind = TRACE_FREE, .address = 4096 },
		{ .kind = TRACE_MREMAP,
		  .old_address = UINT64_MAX,
		  .address = 1 << 20,
		  .size = 4096,
		  .vm = &shrinks },
		{ .kind = TRACE_BRK,
		  .old_address = 100,
		  .address = 40,
		  .size = 60,
		  .vm = &nothing },
		{ .kind = TRACE_HEAP_ALLOC,
		  .heap = UINT32_MAX,
		  .address = 3,
		  .size = 1,
		  .stack = 5 },
		{ .kind = TRACE_HEAP_FREE, .heap = 2, .address = 3, .stack = 5 },
		{ .kind = TRACE_HEAP_DESTROY, .heap = 2 },
		{ .kind = TRACE_HEAP_RESET, .heap = 0, .stack = 9 },
	};
	struct trace_event each[TRACE_UNMAPPED];
	uint32_t count = 0;

	check_events(events, sizeof events / sizeof *events, 0);
	// Each kind keeps what the document gives it.
	for (uint8_t kind = TRACE_MMAP; kind <= TRACE_UNMAPPED; kind++) {
		static struct trace_vm kept[TRACE_UNMAPPED];
		uint64_t columns = columns_of_kind(kind);
		struct trace_vm *vm = &kept[count];

		if (columns >> COLUMN_OLD_SIZE & 1)
			vm->old_size = extremes.old_size;
		if (columns >> COLUMN_OFFSET & 1)
			vm->offset = extremes.offset;
		if (columns >> COLUMN_PROTECTION & 1)
			vm->protection = extremes.protection;
		if (columns >> COLUMN_FLAGS & 1)
			vm->flags = extremes.flags;
		if (columns >> COLUMN_FILE & 1)
			vm->file = extremes.file;
		if (columns >> COLUMN_ERROR & 1)
			vm->error = extremes.error;
		vm->origin = extremes.origin;
		each[count++] = (struct trace_event){ .kind = kind, .stack = UINT32_MAX, .vm = vm };
	}
	CHECK_EQ(12, count);
	check_events(each, count, 0);
}

TEST(columns_of_one_site_take_next_to_nothing)
{
	struct columns_encoder *encoder = mem_alloc(1, sizeof *encoder);
	struct bytes payload = { 0 };

	for (int i = 0; i < 10000; i++)
		columns_add(encoder, &(struct trace_event){ .kind = TRACE_FREE, .address = 4096 },
			    0);
	columns_finish(encoder, &payload, NULL);
	// A byte for the kind and one for the address; no size, no stack, no low bits.
	CHECK(payload.size < 20100);
	columns_encoder_fini(encoder);
	bytes_fini(&payload);
	mem_free(encoder);
}

static bool opens(const uint8_t *bytes, size_t size, uint32_t count)
{
	struct columns_decoder *decoder = mem_alloc(1, sizeof *decoder);
	bool ok = columns_decoder_init(decoder, bytes_cursor(test_guarded_copy(bytes, size), size),
				       count, 0, 0);

	columns_decoder_fini(decoder);
	mem_free(decoder);
	return ok;
}

TEST(columns_that_lie_are_refused)
{
	// A free without its address, kind 0, columns that fall, a column longer than the rest, no
	// column of threads.
	CHECK(opens((const uint8_t[]){ 1, 4, 0xb0, 8, 3, 1, 0, 2, 0, 3, 0 }, 11, 0));
	CHECK(!opens((const uint8_t[]){ 1, 4, 0, 3, 1, 0, 2, 0, 3, 0 }, 10, 0));
	CHECK(!opens((const uint8_t[]){ 1, 0, 0xb0, 8, 3, 1, 0, 2, 0, 3, 0 }, 11, 0));
	CHECK(!opens((const uint8_t[]){ 0, 3, 1, 0, 3, 0, 2, 0 }, 8, 0));
	CHECK(!opens((const uint8_t[]){ 0, 3, 1, 0, 2, 0, 3, 1 }, 8, 0));
	CHECK(!opens((const uint8_t[]){ 0, 2, 1, 0, 3, 0 }, 6, 0));
	CHECK(!opens((const uint8_t[]){ 0, 65 }, 2, 0));
	// A free whose address is predicted, one with both ways to tell it, one without either, a
	// failed call with one, and one of a kind that we do not know.
	CHECK(opens((const uint8_t[]){ 1, 4, 0x80, 0x88, 0x40, 3, 1, 0, 2, 0, 3, 0 }, 12, 0));
	CHECK(!opens((const uint8_t[]){ 1, 4, 0xb0, 0x88, 0x40, 3, 1, 0, 2, 0, 3, 0 }, 12, 0));
	CHECK(!opens((const uint8_t[]){ 1, 4, 0x80, 8, 3, 1, 0, 2, 0, 3, 0 }, 11, 0));
	CHECK(!opens((const uint8_t[]){ 1, 10, 0x80, 0x83, 0x40, 3, 1, 0, 2, 0, 3, 0 }, 12, 0));
	CHECK(!opens((const uint8_t[]){ 1, 99, 0x80, 0x88, 0x40, 3, 1, 0, 2, 0, 3, 0 }, 12, 0));
}
