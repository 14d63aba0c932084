// Whatever way lanes take through the collector, fast or careful, the trace says what the threads
// did: each call with its fields and stack, each thread in its order, each address in turn.
//
// The threads are simulated, one step at a time: a call takes its block, reads the clock, looks who
// owns the page, records, and goes on, and anything may happen to the others in between. What they
// record is kept in plain words, and the trace is compared with that.
#include "test/test.h"
#include "test/unit/fake_pipeline.h"
#include "trace/reader.h"

enum { FRAMES = 40, DEPTH_MAX = 12, BLOCKS = 200, EXPECTED_MAX = 400000 };

// One call, in plain words.
struct expected {
	uint8_t type; // enum lane_type
	uint8_t align_log2;
	uint8_t depth;
	uint8_t flags;
	uint64_t address, size, time_ns;
	uint8_t frames[DEPTH_MAX]; // outermost first
};

struct thread {
	struct fake_lane *lane;
	uint32_t stack[DEPTH_MAX];
	uint32_t depth;
	uint32_t flags; // enum lane_push_flag
	bool written;   // the lane has had a stack
	int stage;
	int block; // that the call in progress is about
	uint32_t type;
	uint64_t time_ns;
	struct expected *calls;
	size_t count, seen;
};

struct world {
	struct pipeline pipeline;
	struct thread threads[PIPELINE_LANES_MAX];
	uint32_t threads_count;
	bool free_stacks;
	uint64_t random, now_ns;
	uint64_t own[LANE_SLOTS];
	int state[BLOCKS]; // 0: free, 1: in a call, 2: live
	uint64_t generation[BLOCKS];
};

static uint64_t draw(struct world *world, uint64_t below)
{
	world->random ^= world->random << 13;
	world->random ^= world->random >> 7;
	world->random ^= world->random << 17;
	return (world->random >> 11) % below;
}

static uint64_t address_of(int block)
{
	return 0x7f0000000000 + (uint64_t)block / 8 * LANE_SLOT_BYTES + (uint64_t)block % 8 * 48;
}

// Change the thread's stack at random. True if it changed.
static bool walk(struct world *world, struct thread *thread, struct fake_event *event,
		 uint32_t frames[DEPTH_MAX])
{
	uint32_t keep, push;

	if (thread->written && draw(world, 3) != 0)
		return false;
	keep = (uint32_t)draw(world, thread->depth + 1);
	push = (uint32_t)draw(world, DEPTH_MAX - keep + 1);
	if (draw(world, 50) == 0)
		thread->flags = draw(world, 2) ? LANE_PUSH_CUT : 0;
	for (uint32_t i = 0; i < push; i++)
		frames[i] = thread->stack[keep + i] = 1 + (uint32_t)draw(world, FRAMES);
	thread->depth = keep + push;
	thread->written = true;
	event->edit = true;
	event->keep = keep;
	event->push = push;
	event->push_flags = thread->flags;
	event->frames = frames;
	return true;
}

static bool has_stack(const struct world *world, uint32_t type)
{
	return type == LANE_FREE ? world->free_stacks : type != LANE_REALLOC_FREE;
}

// Write a record and remember it.
static void record(struct world *world, struct thread *thread, struct fake_event event)
{
	struct expected *call = &thread->calls[thread->count++];
	uint32_t frames[DEPTH_MAX];

	CHECK(thread->count <= EXPECTED_MAX);
	if (has_stack(world, event.type))
		walk(world, thread, &event, frames);
	fake_write(thread->lane, &event);
	fake_publish(thread->lane);
	*call = (struct expected){
		.type = (uint8_t)event.type,
		.align_log2 = event.type == LANE_ALIGNED ? event.align_log2 : 0,
		.address = event.type == LANE_FAILED ? 0 : event.address,
		.size = event.type == LANE_FREE || event.type == LANE_REALLOC_FREE ? 0 : event.size,
		.time_ns = thread->lane->time_ns,
	};
	if (has_stack(world, event.type)) {
		call->depth = (uint8_t)thread->depth;
		call->flags = thread->flags != 0 && thread->depth > 0 ? TRACE_STACK_CUT : 0;
		for (uint32_t i = 0; i < thread->depth; i++)
			call->frames[i] = (uint8_t)thread->stack[i];
	}
}

// Who owned the block's page last? 0: this thread did.
static uint64_t take_page(struct world *world, struct thread *thread, uint64_t address)
{
	uint64_t *own = &world->own[lane_slot(address)];

	if ((*own & 0xffff) == thread->lane->number)
		return 0;
	*own = ((*own >> 16) + 1) << 16 | thread->lane->number;
	return *own >> 16;
}

// A tight loop over one block, as many programs have one somewhere.
static void spin(struct world *world, struct thread *thread, int block)
{
	uint64_t address = address_of(block), rounds = draw(world, 300);
	uint32_t type = draw(world, 2) ? LANE_MALLOC : LANE_CALLOC;

	for (uint64_t i = 0; i < rounds; i++) {
		struct expected *call;

		for (int half = 0; half < 2; half++) {
			struct fake_event event = { .type = half ? LANE_FREE : type,
						    .address = address,
						    .size = half ? 0 : 24,
						    .time_ns = world->now_ns };

			event.owner = take_page(world, thread, address);
			call = &thread->calls[thread->count++];
			fake_write(thread->lane, &event);
			*call = (struct expected){ .type = (uint8_t)event.type,
						   .address = address,
						   .size = event.size,
						   .time_ns = thread->lane->time_ns };
			if (half && !world->free_stacks)
				continue;
			call->depth = (uint8_t)thread->depth;
			call->flags = thread->flags && thread->depth ? TRACE_STACK_CUT : 0;
			for (uint32_t k = 0; k < thread->depth; k++)
				call->frames[k] = (uint8_t)thread->stack[k];
		}
		if (draw(world, 100) == 0)
			world->now_ns += draw(world, 100000);
	}
	fake_publish(thread->lane);
}

// What is no call on memory, and must not disturb those that are.
static void interject(struct world *world, struct thread *thread)
{
	struct fake_lane *lane = thread->lane;

	switch (draw(world, 3)) {
	case 0:
		fake_begin(lane, 64);
		fake_put(lane, LANE_EXTRA, 2);
		fake_put(lane, 0x7777, 2);
		fake_put(lane, 5, 2);
		fake_put(lane, 0xdeadbeef, 5);
		fake_end(lane);
		break;
	case 1:
		fake_begin(lane, 64);
		fake_put(lane, LANE_TIME64, 2);
		fake_put(lane, world->now_ns, 8);
		fake_end(lane);
		lane->time_ns = world->now_ns > lane->time_ns ? world->now_ns : lane->time_ns;
		break;
	default:
		fake_thread(lane, 1000 + lane->number, "simulated");
		break;
	}
	fake_publish(lane);
}

static int find_block(struct world *world, int state)
{
	for (int i = 0; i < 8; i++) {
		int block = (int)draw(world, BLOCKS);

		if (world->state[block] == state)
			return block;
	}
	return -1;
}

static void begin_call(struct world *world, struct thread *thread)
{
	static const uint8_t types[] = { LANE_MALLOC, LANE_MALLOC, LANE_CALLOC, LANE_ALIGNED,
					 LANE_FREE,   LANE_FREE,   LANE_FREE,   LANE_REALLOC_FREE };
	bool ends;

	if (draw(world, 200) == 0)
		interject(world, thread);
	thread->type = types[draw(world, sizeof types)];
	ends = thread->type == LANE_FREE || thread->type == LANE_REALLOC_FREE;
	thread->block = find_block(world, ends ? 2 : 0);
	if (thread->block < 0)
		return;
	world->state[thread->block] = 1;
	if (!ends)
		world->generation[thread->block]++;
	if (!ends && draw(world, 40) == 0)
		spin(world, thread, thread->block);
	thread->stage = 1;
}

// The record is written: the call goes on.
static void end_call(struct world *world, struct thread *thread)
{
	thread->stage = 0;
	if (thread->type == LANE_FREE) {
		world->state[thread->block] = 0;
	} else if (thread->type == LANE_REALLOC_FREE) {
		// In place, or failed.
		thread->type = draw(world, 4) ? LANE_REALLOC_ALLOC : LANE_REALLOC_UNDO;
		if (thread->type == LANE_REALLOC_ALLOC)
			world->generation[thread->block]++;
		thread->stage = 1;
	} else {
		world->state[thread->block] = 2;
	}
}

// One step of one thread.
static void step(struct world *world)
{
	struct thread *thread = &world->threads[draw(world, world->threads_count)];
	uint64_t address = address_of(thread->block >= 0 ? thread->block : 0);
	struct fake_event event;

	if (draw(world, 100) == 0)
		world->now_ns += draw(world, 2) ? 100000 : draw(world, 1000000);
	switch (thread->stage) {
	case 0:
		begin_call(world, thread);
		return;
	case 1:
		thread->time_ns = world->now_ns;
		thread->stage = 2;
		return;
	case 2:
		event = (struct fake_event){ .type = thread->type,
					     .address = address,
					     .size = world->generation[thread->block],
					     .align_log2 = 6,
					     .time_ns = thread->time_ns };
		event.owner = take_page(world, thread, address);
		thread->stage = 3;
		// Between here and its publication others may take the page.
		record(world, thread, event);
		return;
	default:
		end_call(world, thread);
		return;
	}
}

// ---- The trace, compared --------------------------------------------------------------------

static void check_stack(struct reader *reader, stack_id stack, const struct expected *call)
{
	for (uint32_t depth = call->depth; depth > 0; depth--) {
		const struct trace_stack *node = reader_stack(reader, stack);

		CHECK(stack != 0 && node != NULL);
		CHECK_EQ(0x400000 + 16 * (uint64_t)call->frames[depth - 1],
			 reader_frame(reader, node->frame)->pc);
		CHECK_EQ(call->flags, node->flags);
		stack = node->parent;
	}
	CHECK_EQ(0, stack);
}

// The event says what the thread's next call was. Of a realloc, `second` is its second half.
static void check_call(struct reader *reader, struct thread *thread,
		       const struct trace_event *event, bool second)
{
	static const uint8_t kinds[] = { [LANE_MALLOC] = TRACE_MALLOC,
					 [LANE_CALLOC] = TRACE_CALLOC,
					 [LANE_ALIGNED] = TRACE_ALIGNED,
					 [LANE_FREE] = TRACE_FREE,
					 [LANE_REALLOC_FREE] = TRACE_REALLOC_FREE,
					 [LANE_REALLOC_ALLOC] = TRACE_REALLOC_ALLOC,
					 [LANE_REALLOC_UNDO] = TRACE_REALLOC_UNDO };
	const struct expected *call = &thread->calls[thread->seen++];
	uint8_t kind = event->kind;

	CHECK(thread->seen <= thread->count);
	if (kind == TRACE_REALLOC || kind == TRACE_REALLOC_FAILED) {
		if (!second) {
			CHECK_EQ(LANE_REALLOC_FREE, call->type);
			CHECK_EQ(event->address, call->address);
			CHECK(event->time_ns >= call->time_ns);
			return;
		}
		kind = kind == TRACE_REALLOC ? TRACE_REALLOC_ALLOC : TRACE_REALLOC_UNDO;
	}
	CHECK_EQ(kinds[call->type], kind);
	CHECK_EQ(call->address, event->address);
	CHECK_EQ(call->size, event->size);
	CHECK_EQ(call->align_log2, event->align_log2);
	CHECK(event->time_ns >= call->time_ns || second);
	check_stack(reader, event->stack, call);
}

// An address is begun and ended in turn.
static void check_turn(bool live[BLOCKS], const struct trace_event *event)
{
	uint64_t at = event->address - 0x7f0000000000;
	size_t block = at / LANE_SLOT_BYTES * 8 + at % LANE_SLOT_BYTES / 48;

	CHECK(block < BLOCKS);
	switch (event->kind) {
	case TRACE_FREE:
	case TRACE_REALLOC_FREE:
		CHECK(live[block]);
		live[block] = false;
		break;
	case TRACE_REALLOC:
	case TRACE_REALLOC_FAILED:
		CHECK(live[block]);
		break;
	default:
		CHECK(!live[block]);
		live[block] = true;
		break;
	}
}

static void check_trace(struct world *world)
{
	struct trace_event event;
	struct trace_note note;
	struct reader *reader;
	bool live[BLOCKS] = { 0 };
	char path[64];
	struct err err;
	enum reader_item item;

	snprintf(path, sizeof path, "/proc/self/fd/%d", world->pipeline.output_fd);
	reader = reader_open(path, &err);
	CHECK(reader != NULL);
	reader_scan(reader);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		struct thread *thread;
		uint32_t lane;

		if (item == READER_NOTE)
			continue;
		lane = reader_thread(reader, event.thread)->tid - 1000;
		CHECK(lane >= 1 && lane <= world->threads_count);
		thread = &world->threads[lane - 1];
		check_turn(live, &event);
		check_call(reader, thread, &event, false);
		if (event.kind == TRACE_REALLOC || event.kind == TRACE_REALLOC_FAILED)
			check_call(reader, thread, &event, true);
	}
	CHECK(reader_ok(reader, &err));
	for (uint32_t i = 0; i < world->threads_count; i++)
		CHECK_EQ(world->threads[i].count, world->threads[i].seen);
	reader_close(reader);
}

// Let `threads_count` threads run for `rounds` rounds of at most `steps_max` steps, and look at
// their lanes after each.
static void run(uint32_t threads_count, int rounds, uint64_t steps_max, bool free_stacks,
		uint64_t seed)
{
	struct world *world = mem_alloc(1, sizeof *world);

	pipeline_open(&world->pipeline, threads_count, FRAMES,
		      free_stacks ? SEGMENT_FREE_STACKS : 0);
	world->threads_count = threads_count;
	world->free_stacks = free_stacks;
	world->random = seed * 0x9e3779b97f4a7c15 | 1;
	world->now_ns = 1000000000;
	for (uint32_t i = 0; i < threads_count; i++) {
		struct thread *thread = &world->threads[i];

		thread->lane = &world->pipeline.lanes[i + 1];
		thread->calls = mem_alloc(EXPECTED_MAX, sizeof *thread->calls);
		thread->block = -1;
		fake_thread(thread->lane, 1000 + thread->lane->number, "simulated");
	}
	for (int round = 0; round < rounds; round++) {
		for (uint64_t left = draw(world, steps_max); left > 0; left--)
			step(world);
		// Both looks can be taken anew.
		for (uint64_t looks = 1 + draw(world, 3) / 2; looks > 0; looks--) {
			image_look(world->pipeline.image);
			for (uint64_t left = draw(world, 2) ? draw(world, 50) : 0; left > 0; left--)
				step(world);
			image_look_again(world->pipeline.image);
		}
		pipeline_deliver(&world->pipeline);
	}
	for (int i = 0; i < 2; i++)
		pipeline_collect(&world->pipeline);
	CHECK_EQ(0, world->pipeline.merge.order_breaks);
	CHECK(!world->pipeline.image->streams[1]->reader.broken);
	pipeline_close(&world->pipeline);
	check_trace(world);
	close(world->pipeline.output_fd);
	for (uint32_t i = 0; i < threads_count; i++)
		mem_free(world->threads[i].calls);
	mem_free(world);
}

TEST(pipeline_tells_what_one_thread_did)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		run(1, 40, 2000, seed % 2, seed);
}

TEST(pipeline_tells_what_one_thread_did_when_it_is_looked_at_all_the_time)
{
	run(1, 10000, 8, false, 11);
}

TEST(pipeline_tells_what_threads_did_to_each_other)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		run(2 + (uint32_t)seed, 40, 3000, seed % 2, seed);
}

TEST(pipeline_tells_what_threads_did_when_they_are_looked_at_all_the_time)
{
	run(4, 10000, 16, false, 12);
}

// ---- Rows ------------------------------------------------------------------------------------

enum { ROW_CALLS = 300, MARKED = 100 };

static struct reader *open_trace(const struct pipeline *pipeline)
{
	struct reader *reader;
	char path[64];
	struct err err;

	snprintf(path, sizeof path, "/proc/self/fd/%d", pipeline->output_fd);
	reader = reader_open(path, &err);
	CHECK(reader != NULL);
	return reader;
}

static void put(struct pipeline *pipeline, uint32_t lane, uint32_t type, uint64_t address,
		uint64_t owner)
{
	fake_record(&pipeline->lanes[lane], &(struct fake_event){ .type = type,
								  .address = address,
								  .size = 8,
								  .owner = owner,
								  .time_ns = 100000 });
}

// A mark stands where it was made, and of a quiet process blocks end and do not begin, although all
// could be read in one go.
TEST(pipeline_keeps_marks_in_their_places_and_quiet_processes_quiet)
{
	struct pipeline *pipeline = mem_alloc(1, sizeof *pipeline);
	uint64_t begun = 0, ended = 0, marked = 0;
	struct trace_event event;
	struct trace_note note;
	struct reader *reader;
	enum reader_item item;

	pipeline_open(pipeline, 1, FRAMES, 0);
	fake_thread(&pipeline->lanes[1], 1001, "x");
	for (uint64_t i = 0; i < ROW_CALLS; i++) {
		if (i == MARKED)
			fake_place(&pipeline->lanes[0], NOTE_MARK, 100000, &pipeline->lanes[1],
				   "here");
		put(pipeline, 1, LANE_MALLOC, 0x10000 + 64 * i, i == 0);
	}
	pipeline_collect(pipeline);
	pipeline->image->quiet = true;
	for (uint64_t i = 0; i < ROW_CALLS; i++) {
		put(pipeline, 1, LANE_FREE, 0x10000 + 64 * i, 0);
		put(pipeline, 1, LANE_MALLOC, 0x10000 + 64 * i, 0);
	}
	pipeline_collect(pipeline);
	pipeline_close(pipeline);
	reader = open_trace(pipeline);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		if (item == READER_NOTE && note.kind == TRACE_NOTE_MARK)
			marked = begun;
		if (item != READER_EVENT)
			continue;
		CHECK_EQ(0x10000 + 64 * (event.kind == TRACE_FREE ? ended++ : begun++),
			 event.address);
	}
	CHECK_EQ(MARKED, marked);
	CHECK_EQ(ROW_CALLS, begun);
	CHECK_EQ(ROW_CALLS, ended);
	reader_close(reader);
	close(pipeline->output_fd);
	mem_free(pipeline);
}

// Thread 1 takes a page that thread 2 had, in the midst of much else, and later frees a block there
// that thread 2 was slow to publish.
TEST(pipeline_remembers_which_pages_were_taken)
{
	enum { PAGE = 0x50000000, BLOCK = PAGE + 0x100 };
	struct pipeline *pipeline = mem_alloc(1, sizeof *pipeline);
	struct trace_event event;
	struct trace_note note;
	struct reader *reader;
	enum reader_item item;
	uint32_t seen = 0;

	pipeline_open(pipeline, 2, FRAMES, 0);
	for (uint32_t lane = 1; lane <= 2; lane++)
		fake_thread(&pipeline->lanes[lane], 1000 + lane, "x");
	put(pipeline, 1, LANE_MALLOC, PAGE, 1);
	pipeline_collect(pipeline);
	for (uint64_t i = 0; i < ROW_CALLS; i++)
		put(pipeline, 1, LANE_MALLOC, i == MARKED ? PAGE + 0x200 : 0x10000 + 64 * i,
		    i == MARKED ? 3 : i == 0);
	pipeline_collect(pipeline);
	put(pipeline, 1, LANE_FREE, BLOCK, 0);
	put(pipeline, 2, LANE_MALLOC, BLOCK, 2);
	for (int i = 0; i < 2; i++)
		pipeline_collect(pipeline);
	pipeline_close(pipeline);
	reader = open_trace(pipeline);
	while ((item = reader_next(reader, &event, &note)) != READER_END)
		if (item == READER_EVENT && event.address == BLOCK)
			CHECK_EQ(seen++ == 0 ? TRACE_MALLOC : TRACE_FREE, event.kind);
	CHECK_EQ(2, seen);
	reader_close(reader);
	close(pipeline->output_fd);
	mem_free(pipeline);
}

// A loop of several calls is told call by call, and counted.
TEST(pipeline_tells_each_turn_of_a_loop)
{
	enum { TURNS = 500, CALLS = 5, A = 0x10000, B = 0x20000, C = 0x30000 };
	static const struct fake_event calls[] = {
		{ .type = LANE_MALLOC, .address = A, .size = 10 },
		{ .type = LANE_REALLOC_FREE, .address = A },
		{ .type = LANE_REALLOC_ALLOC, .address = B, .size = 20 },
		{ .type = LANE_CALLOC, .address = C, .size = 30 },
		{ .type = LANE_FREE, .address = B },
		{ .type = LANE_FREE, .address = C },
	};
	static const struct trace_event turn[] = {
		{ .kind = TRACE_MALLOC, .address = A, .size = 10 },
		{ .kind = TRACE_REALLOC, .address = B, .old_address = A, .size = 20 },
		{ .kind = TRACE_CALLOC, .address = C, .size = 30 },
		{ .kind = TRACE_FREE, .address = B },
		{ .kind = TRACE_FREE, .address = C },
	};
	struct pipeline *pipeline = mem_alloc(1, sizeof *pipeline);
	struct fake_lane *lane = &pipeline->lanes[1];
	uint64_t *kinds = pipeline->trace_builder.kinds;
	struct trace_event event;
	struct trace_note note;
	struct reader *reader;
	enum reader_item item;
	uint64_t count = 0;
	uint32_t frame = 1;

	pipeline_open(pipeline, 1, FRAMES, 0);
	fake_thread(lane, 1001, "x");
	fake_record(lane, &(struct fake_event){ .type = LANE_ALIGNED,
						.address = 0x40000,
						.size = 8,
						.edit = true,
						.push = 1,
						.frames = &frame });
	for (uint64_t i = 0; i < TURNS; i++)
		for (size_t call = 0; call < sizeof calls / sizeof *calls; call++)
			fake_write(lane, &calls[call]);
	fake_publish(lane);
	pipeline_collect(pipeline);
	CHECK_EQ(TURNS, kinds[TRACE_MALLOC]);
	CHECK_EQ(TURNS, kinds[TRACE_CALLOC]);
	CHECK_EQ(TURNS, kinds[TRACE_REALLOC]);
	CHECK_EQ(2 * TURNS, kinds[TRACE_FREE]);
	CHECK_EQ(8 + 60 * TURNS, pipeline->trace_builder.allocated_bytes);
	pipeline_close(pipeline);
	reader = open_trace(pipeline);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		const struct trace_event *wanted = &turn[count % CALLS];

		if (item != READER_EVENT || event.kind == TRACE_ALIGNED)
			continue;
		CHECK_EQ(wanted->kind, event.kind);
		CHECK_EQ(wanted->address, event.address);
		CHECK_EQ(wanted->old_address, event.old_address);
		CHECK_EQ(wanted->size, event.size);
		CHECK_EQ(wanted->size > 0, event.stack > 0);
		count++;
	}
	CHECK_EQ(TURNS * CALLS, count);
	reader_close(reader);
	close(pipeline->output_fd);
	mem_free(pipeline);
}
