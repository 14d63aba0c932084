// What docs/format.md, section 6.5, promises about addresses that are predicted: whatever a program
// does, they are told exactly, and what allocators mostly do is told in next to nothing.
#include "test/test.h"
#include "trace/columns.h"
#include "trace/predict_follow.h"
#include "trace/predict_when.h"

#include <stdlib.h>

enum { LIVE_MAX = 2000, ADDRESSES = 3000 };

// Programs that are made up.
struct program {
	struct trace_event *event;
	uint32_t count, room;
	uint64_t live[LIVE_MAX], sizes[LIVE_MAX];
	uint32_t live_count;
	uint64_t freed[LIVE_MAX];
	uint32_t freed_count;
	uint64_t top;
};

static struct program *program_new(uint32_t events)
{
	struct program *program = mem_alloc(1, sizeof *program);

	program->event = mem_alloc(events, sizeof *program->event);
	program->room = events;
	program->top = UINT64_C(0x5586583413c0);
	return program;
}

static void program_free(struct program *program)
{
	mem_free(program->event);
	mem_free(program);
}

static void put(struct program *program, uint8_t kind, uint32_t thread, uint64_t address,
		uint64_t old_address, uint64_t size)
{
	bool ends = predict_ends(kind);

	if (program->count == program->room)
		return;
	program->event[program->count] = (struct trace_event){
		.kind = kind,
		.thread = thread,
		.address = address,
		.old_address = kind == TRACE_REALLOC ? old_address : 0,
		.size = ends ? 0 : size,
		.stack = ends ? 0 : 7,
		.time_ns = program->count / 100,
	};
	program->count++;
}

// An address that an allocator may give: one freed before, or behind all others.
static uint64_t place(struct program *program, uint64_t size)
{
	uint64_t address = program->top;

	if (program->freed_count > 0 && rand() % 3) {
		uint32_t at = rand() % 4 ? program->freed_count - 1
					 : (uint32_t)rand() % program->freed_count;

		address = program->freed[at];
		program->freed[at] = program->freed[--program->freed_count];
		return address;
	}
	program->top += (size + 23) / 16 * 16;
	return address;
}

static uint64_t take_live(struct program *program, uint32_t at)
{
	uint64_t address = program->live[at];

	program->live[at] = program->live[--program->live_count];
	return address;
}

static void give_back(struct program *program, uint64_t address)
{
	if (program->freed_count < LIVE_MAX)
		program->freed[program->freed_count++] = address;
}

static void step(struct program *program, uint32_t threads)
{
	uint32_t thread = (uint32_t)rand() % threads;
	uint64_t size = (uint64_t)(rand() % 8) * 24, address;

	if (program->live_count < LIVE_MAX && (program->live_count == 0 || rand() % 2)) {
		address = place(program, size);
		program->live[program->live_count++] = address;
		put(program, rand() % 8 ? TRACE_MALLOC : TRACE_CALLOC, thread, address, 0, size);
		return;
	}
	address = take_live(program, (uint32_t)rand() % program->live_count);
	if (rand() % 5) {
		give_back(program, address);
		put(program, TRACE_FREE, thread, address, 0, 0);
	} else if (rand() % 2) {
		program->live[program->live_count++] = address;
		put(program, TRACE_REALLOC, thread, address, address, size);
	} else {
		uint64_t old = address;

		address = place(program, size);
		give_back(program, old);
		program->live[program->live_count++] = address;
		put(program, TRACE_REALLOC, thread, address, old, size);
	}
}

// Any kind at any address, as no allocator would do it.
static void step_wildly(struct program *program, const uint64_t *addresses)
{
	static const uint8_t kinds[] = {
		TRACE_MALLOC,       TRACE_CALLOC,  TRACE_ALIGNED,       TRACE_FREE,
		TRACE_FREE,         TRACE_REALLOC, TRACE_REALLOC_FREE,  TRACE_REALLOC_ALLOC,
		TRACE_REALLOC_UNDO, TRACE_FAILED,  TRACE_REALLOC_FAILED
	};
	uint8_t kind = kinds[(size_t)rand() % sizeof kinds];
	uint64_t address = kind == TRACE_FAILED ? 0 : addresses[rand() % ADDRESSES];

	put(program, kind, (uint32_t)rand() % 1000, address, addresses[rand() % ADDRESSES],
	    rand() % 4 ? (uint64_t)rand() % 64 : (uint64_t)rand() << 33);
}

static void encode_with(struct columns_encoder *encoder, const struct program *program,
			struct bytes *payload)
{
	for (uint32_t i = 0; i < program->count; i++)
		columns_add(encoder, &program->event[i], program->event[i].time_ns);
	columns_finish(encoder, payload, NULL);
}

static void encode(const struct program *program, bool predicts, struct bytes *payload)
{
	struct columns_encoder *encoder = mem_alloc(1, sizeof *encoder);

	encoder->predicts = predicts;
	encode_with(encoder, program, payload);
	columns_encoder_fini(encoder);
	mem_free(encoder);
}

// Decode in runs, with single events for what they leave, or in single events alone. What is `told`
// has its address's spot.
static void check_decoded(const struct program *program, const struct bytes *payload, bool runs,
			  bool told)
{
	struct columns_decoder *decoder = mem_alloc(1, sizeof *decoder);
	struct columns_spots *spots = mem_alloc(1, sizeof *spots);
	struct trace_event event[64];
	uint32_t at = 0, run;

	spots_begin(&spots->spots);
	decoder->spots = told ? spots : NULL;
	CHECK(columns_decoder_init(decoder, bytes_cursor(payload->data, payload->size),
				   program->count, 0, 0));
	while (at < program->count) {
		run = runs ? columns_run(decoder, event, 1 + (uint32_t)rand() % 64) : 0;
		for (uint32_t i = 0; told && i < run; i++) {
			if (predict_knows(event[i].kind))
				CHECK_EQ(spots_of(&spots->spots, event[i].address), spots->spot[i]);
			if (event[i].kind == TRACE_REALLOC)
				CHECK_EQ(spots_of(&spots->spots, event[i].old_address),
					 spots->old_spot[i]);
		}
		if (run == 0) {
			CHECK_EQ(COLUMNS_EVENT, columns_next(decoder, event));
			run = 1;
		}
		for (uint32_t i = 0; i < run; i++, at++) {
			CHECK_EQ(program->event[at].kind, event[i].kind);
			CHECK_EQ(program->event[at].thread, event[i].thread);
			CHECK_EQ(program->event[at].address, event[i].address);
			CHECK_EQ(program->event[at].old_address, event[i].old_address);
			CHECK_EQ(program->event[at].size, event[i].size);
			CHECK_EQ(program->event[at].stack, event[i].stack);
		}
	}
	CHECK_EQ(COLUMNS_END, columns_next(decoder, event));
	columns_decoder_fini(decoder);
	spots_fini(&spots->spots);
	MEM_FREE(spots, decoder);
}

static void check_program(const struct program *program)
{
	struct bytes plain = { 0 }, told = { 0 };

	encode(program, false, &plain);
	encode(program, true, &told);
	check_decoded(program, &told, false, true);
	check_decoded(program, &told, true, true);
	check_decoded(program, &told, true, false);
	check_decoded(program, &plain, true, false);
	bytes_fini(&plain);
	bytes_fini(&told);
}

TEST(predict_tells_what_programs_do_exactly)
{
	for (uint32_t threads = 1; threads <= 300; threads = threads * 4 + 3) {
		struct program *program = program_new(COLUMNS_EVENTS_MAX);

		srand(threads);
		while (program->count < program->room)
			step(program, threads);
		check_program(program);
		program_free(program);
	}
}

TEST(predict_tells_what_no_program_does_exactly)
{
	static const uint64_t bases[] = { 0, 1, 8, 1 << 20, UINT64_C(1) << 47, UINT64_MAX - 4096 };

	for (unsigned round = 0; round < 12; round++) {
		struct program *program = program_new(round % 2 ? 20000 : COLUMNS_EVENTS_MAX);
		uint64_t addresses[ADDRESSES];

		srand(round);
		for (uint32_t i = 0; i < ADDRESSES; i++)
			addresses[i] = bases[(size_t)rand() % (sizeof bases / sizeof *bases)] +
				       (uint64_t)(rand() % 500) * (round % 3 ? 16 : 1);
		while (program->count < program->room)
			step_wildly(program, addresses);
		check_program(program);
		program_free(program);
	}
}

// An address is forgotten by the writer's table where another takes its place; that may cost bytes,
// and never an address.
TEST(predict_survives_addresses_that_share_a_place)
{
	struct program *program = program_new(8000);

	for (uint64_t i = 0; i < 2000; i++)
		put(program, TRACE_MALLOC, 0, i << 36, 0, 24);
	for (uint64_t i = 2000; i-- > 0;)
		put(program, TRACE_FREE, (uint32_t)i % 2, i * 7 % 2000 << 36, 0, 0);
	for (uint64_t i = 0; i < 2000; i++)
		put(program, TRACE_MALLOC, 1, i * 11 % 2000 << 36, 0, 24);
	check_program(program);
	program_free(program);
}

// What the writer's table has of a block of events says nothing in a later one, however many lie
// between.
TEST(predict_begins_anew_with_each_block)
{
	enum { BLOCKS = 400, EVENTS = 60 };
	struct columns_encoder *encoder = mem_alloc(1, sizeof *encoder);
	struct bytes payload = { 0 };

	srand(5);
	for (uint32_t block = 0; block < BLOCKS; block++) {
		struct program *program = program_new(EVENTS);

		for (uint32_t i = 0; i < EVENTS; i++)
			put(program, rand() % 2 ? TRACE_MALLOC : TRACE_FREE, 0,
			    UINT64_C(0x1000) + (uint64_t)(rand() % (i % 2 ? 40 : 4000)) * 32, 0,
			    24);
		encoder->predicts = rand() % 8 > 0;
		payload.size = 0;
		encode_with(encoder, program, &payload);
		check_decoded(program, &payload, block % 2, encoder->predicts);
		program_free(program);
	}
	columns_encoder_fini(encoder);
	mem_free(encoder);
	bytes_fini(&payload);
}

// The sample of the document.
TEST(predict_takes_the_ways_of_the_document)
{
	static const struct {
		uint8_t kind;
		uint64_t address, size;
		uint8_t way;
		int64_t number;
	} sample[] = {
		{ TRACE_MALLOC, 0x1000, 40, 1, 0 },  { TRACE_MALLOC, 0x1030, 40, 4, 0 },
		{ TRACE_MALLOC, 0x1060, 40, 4, 0 },  { TRACE_FREE, 0x1000, 0, 2, 0 },
		{ TRACE_FREE, 0x1060, 0, 0, 0 },     { TRACE_MALLOC, 0x1060, 40, 0, 0 },
		{ TRACE_MALLOC, 0x1000, 40, 0, 0 },  { TRACE_FREE, 0x1030, 0, 3, -2 },
		{ TRACE_MALLOC, 0x1030, 100, 3, 2 },
	};
	struct predict *predict = predict_renew(NULL, 16, true);
	uint64_t previous = 0;

	for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
		struct predict_row row = { .count = 1,
					   .kind = &sample[i].kind,
					   .address = &sample[i].address,
					   .size = &sample[i].size };
		struct predict_answer answer;

		predict_row(predict, &row, previous, &answer);
		CHECK_EQ(1, answer.ways);
		CHECK_EQ(sample[i].way, answer.way[0]);
		CHECK_EQ(sample[i].way == PREDICT_NUMBERED, answer.numbers);
		if (answer.numbers > 0)
			CHECK_EQ(sample[i].number, varint_unzigzag(answer.number[0]));
		CHECK_EQ(i == 0, answer.far);
		previous = sample[i].address;
	}
	predict_free(predict);
}

static uint32_t entries(const struct program *program, enum column wanted)
{
	struct columns_decoder *decoder = mem_alloc(1, sizeof *decoder);
	struct bytes payload = { 0 };
	uint32_t size;

	encode(program, true, &payload);
	CHECK(columns_decoder_init(decoder, bytes_cursor(payload.data, payload.size),
				   program->count, 0, 0));
	size = (uint32_t)bytes_left(&decoder->column[wanted]);
	columns_decoder_fini(decoder);
	bytes_fini(&payload);
	mem_free(decoder);
	return size;
}

TEST(predict_needs_no_address_for_what_was_freed_last)
{
	struct program *program = program_new(10000);

	// The first three are new; then each is freed by its turn, and comes back.
	for (uint64_t i = 1; i <= 3; i++)
		put(program, TRACE_MALLOC, 0, i << 32, 0, i * 16);
	while (program->count + 6 <= program->room) {
		for (uint64_t i = 1; i <= 3; i++)
			put(program, TRACE_FREE, 0, i << 32, 0, 0);
		for (uint64_t i = 1; i <= 3; i++)
			put(program, TRACE_MALLOC, 0, i << 32, 0, i * 16);
	}
	CHECK_EQ(3 * 2, entries(program, COLUMN_NEAR));
	CHECK_EQ(0, entries(program, COLUMN_NUMBER));
	check_program(program);
	program_free(program);
}

TEST(predict_needs_no_address_for_what_lies_behind_the_last_four)
{
	struct program *program = program_new(8000);
	uint64_t behind[4] = { 1 << 20, 1 << 28, UINT64_C(1) << 36, UINT64_C(1) << 44 };

	while (program->count < program->room) {
		uint64_t size = (uint64_t)rand() % 3000;
		size_t of = (size_t)rand() % 4;

		put(program, TRACE_MALLOC, 0, behind[of], 0, size);
		behind[of] += size < 9 ? 32 : (size + 23) / 16 * 16;
	}
	CHECK_EQ(4 * 2, entries(program, COLUMN_NEAR));
	check_program(program);
	program_free(program);
}

TEST(predict_needs_no_address_for_frees_at_equal_steps)
{
	struct program *program = program_new(2000);

	while (program->count < program->room) {
		uint64_t address = (uint64_t)rand() << 20;

		put(program, TRACE_FREE, 0, address, 0, 0);
		put(program, TRACE_FREE, 0, address + 64, 0, 0);
	}
	// Each first one, and the first step.
	CHECK_EQ((1000 + 1) * 2, entries(program, COLUMN_NEAR));
	check_program(program);
	program_free(program);
}

// Decode a block of one event of `kind` whose ways and numbers are these.
static enum columns_result lie(uint8_t kind, const uint8_t *ways, size_t ways_count,
			       const uint8_t *numbers, size_t numbers_count)
{
	struct columns_decoder *decoder = mem_alloc(1, sizeof *decoder);
	struct bytes payload = { 0 };
	struct trace_event event[4];
	enum columns_result result;

	bytes_add(&payload, (uint8_t[]){ 1, kind }, 2);
	bytes_add_varint(&payload, columns_told(columns_of_kind(kind)));
	bytes_add(&payload, (uint8_t[]){ 5, COLUMN_KIND, 1, COLUMN_THREAD, 1, COLUMN_TIME, 1 }, 7);
	bytes_add(&payload,
		  (uint8_t[]){ COLUMN_WAY, (uint8_t)ways_count, COLUMN_NUMBER,
			       (uint8_t)numbers_count, kind, 0, 0 },
		  7);
	bytes_add(&payload, ways, ways_count);
	bytes_add(&payload, numbers, numbers_count);
	CHECK(columns_decoder_init(decoder, bytes_cursor(payload.data, payload.size), 1, 0, 0));
	CHECK_EQ(0, columns_run(decoder, event, 4));
	result = columns_next(decoder, event);
	columns_decoder_fini(decoder);
	bytes_fini(&payload);
	mem_free(decoder);
	return result;
}

TEST(predict_refuses_ways_that_lead_nowhere)
{
	const uint8_t none[1] = { 0 }, number[] = { 2 };

	// No block began, none ended, no such way.
	for (uint8_t way = 0; way < 255; way++) {
		bool step = way == PREDICT_STEP;
		bool rest = way >= PREDICT_BEHIND && way < PREDICT_DEEPER;

		if (way == PREDICT_FAR)
			continue; // leads anywhere
		CHECK_EQ(step ? COLUMNS_EVENT : COLUMNS_DAMAGED,
			 lie(TRACE_FREE, &way, 1, number, 1));
		CHECK_EQ(rest ? COLUMNS_EVENT : COLUMNS_DAMAGED,
			 lie(TRACE_MALLOC, &way, 1, number, 1));
	}
	// A realloc of which one half is missing, and one where nothing was.
	CHECK_EQ(COLUMNS_DAMAGED, lie(TRACE_REALLOC, (uint8_t[]){ PREDICT_STEP }, 1, none, 0));
	CHECK_EQ(COLUMNS_DAMAGED,
		 lie(TRACE_REALLOC, (uint8_t[]){ PREDICT_NEXT, PREDICT_BEHIND }, 2, none, 0));
	CHECK_EQ(COLUMNS_EVENT,
		 lie(TRACE_REALLOC, (uint8_t[]){ PREDICT_STEP, PREDICT_IN_PLACE }, 2, none, 0));
}

TEST(predict_is_done_where_it_pays)
{
	enum { EVENTS = 65536 };
	const uint64_t slow = UINT64_C(1000000000), fast = UINT64_C(5000000);
	struct predict_when when = { 0 };
	unsigned with = 0;

	// Nor at the beginning.
	for (int i = 1; i < PREDICT_WHEN_BEFORE; i++)
		CHECK(!predict_when(&when, EVENTS, EVENTS * 3, slow));
	// Cheap addresses, fast events, few events: not.
	CHECK(!predict_when(&when, EVENTS, EVENTS, slow));
	CHECK(!predict_when(&when, EVENTS, EVENTS * 3, fast));
	CHECK(!predict_when(&when, 100, 100 * 3, slow));
	// Dear ones: as long as it saves something, but for a block now and then.
	CHECK(predict_when(&when, EVENTS, EVENTS * 3, slow));
	for (int i = 0; i < 330; i++)
		with += predict_when(&when, EVENTS, EVENTS * (when.on ? 1 : 3), slow);
	CHECK_EQ(320, with);
	// Where it saves nothing: ever more seldom.
	with = 0;
	for (int i = 0; i < 1000; i++)
		with += predict_when(&when, EVENTS, EVENTS * 3, slow);
	CHECK(with > 10 && with < 30);
	// Events that come too fast end it.
	when = (struct predict_when){ .on = true, .plain = 3 * PREDICT_WHEN_ONE };
	CHECK(!predict_when(&when, EVENTS, EVENTS, fast));
	// So do blocks that are cheap in any case.
	when = (struct predict_when){ .on = true, .plain = 3 * PREDICT_WHEN_ONE };
	CHECK(!predict_when(&when, EVENTS, EVENTS / 8, slow));
}
