// The trace's order agrees with what happened, whatever the threads did to each other.
//
// Real threads allocate, hand over, resize and free simulated blocks, and record them as the
// recorder does. The truth comes from outside the scheme: each address has a generation number,
// which only its owner touches; it is recorded as the block's size. In the trace an address must
// be begun and ended in turn, with generations that count up. Each rule of the protocol, left out,
// must show.
#include "base/map.h"
#include "base/mem.h"
#include "collect/session.h"
#include "test/test.h"
#include "test/unit/fake_guest.h"
#include "test/unit/fake_session.h"
#include "wire/counter.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum mutation {
	AS_IT_SHOULD_BE,
	FREE_RECORDED_AFTERWARDS,
	OWNER_READ_TOO_EARLY,
	PUBLISHED_TOO_LATE,
	OWNER_STORED_NOT_EXCHANGED,
	FAILED_REALLOC_NOT_UNDONE,
	OWNER_NOT_RECORDED,
	TIME_READ_TOO_EARLY,
};

enum { THREADS = 4, LANES = 6, BLOCKS = 96, SHELF = 32, HELD_MAX = 12 };

// Further than the four bytes of a time reach.
static const uint64_t REST_NS = 5000000000;

struct world {
	enum mutation mutation;
	struct fake_guest guest;
	struct fake_lane lanes[LANES];
	pthread_mutex_t lanes_lock;
	bool lane_taken[LANES];
	_Atomic uint64_t own[LANE_SLOTS];
	_Atomic int taken[BLOCKS];        // by a thread, from the allocator
	uint64_t generation[BLOCKS];      // the owner's
	_Atomic int bundle_reader[SHELF]; // blocks that change hands: number + 1, or 0
	uint32_t operations;
	bool hasty; // threads raise the tick, every few events
};

struct worker {
	struct world *world;
	struct fake_lane *lane;
	uint64_t random;
	int held[HELD_MAX];
	int held_count;
	int unpublished;
	uint64_t last_ns; // time of the event before
};

// Four blocks to a page, and every eighth page at a distance of the table's size, so that slots are
// shared in both ways.
static uint64_t address_of(int block)
{
	uint64_t page = (uint64_t)block / 4;

	return 0x7f0000000000 + page % 12 * LANE_SLOT_BYTES +
	       page / 12 * (LANE_SLOTS * (uint64_t)LANE_SLOT_BYTES) + (uint64_t)block % 4 * 64;
}

static uint64_t next_random(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return worker->random;
}

// Now and then something else runs, at the worst of times.
static void dither(struct worker *worker)
{
	uint64_t random = next_random(worker) % 64;

	if (random == 0)
		sched_yield();
	else if (random < 8)
		for (uint64_t i = 0; i < random * 16; i++)
			__builtin_ia32_pause();
}

static uint64_t load_owner(struct worker *worker, int block)
{
	return atomic_load(&worker->world->own[lane_slot(address_of(block))]);
}

static void pass_time(struct world *world, uint64_t ns)
{
	counter_raise(world->guest.clock, fake_now(&world->guest) + ns);
}

static void record(struct worker *worker, uint32_t type, int block, uint64_t size, uint64_t word)
{
	struct world *world = worker->world;
	struct fake_lane *lane = worker->lane;
	_Atomic uint64_t *own = &world->own[lane_slot(address_of(block))];
	struct fake_event event = { .type = type, .address = address_of(block), .size = size };

	if (world->hasty && next_random(worker) % 8 == 0)
		pass_time(world, 1 + next_random(worker) % 3);
	event.time_ns = fake_now(&world->guest);
	if (world->mutation == TIME_READ_TOO_EARLY) {
		uint64_t now_ns = event.time_ns;

		event.time_ns = worker->last_ns;
		worker->last_ns = now_ns;
	}
	if ((word & 0xffff) != lane->number) {
		uint64_t mine;

		dither(worker);
		do {
			mine = ((word >> 16) + 1) << 16 | lane->number;
			if (world->mutation == OWNER_STORED_NOT_EXCHANGED) {
				atomic_store(own, mine);
				break;
			}
		} while (!atomic_compare_exchange_weak(own, &word, mine));
		if (world->mutation != OWNER_NOT_RECORDED)
			event.owner = mine >> 16;
		dither(worker);
	}
	fake_write(lane, &event);
	if (world->mutation == PUBLISHED_TOO_LATE && ++worker->unpublished % 8 != 0)
		return;
	fake_publish(lane);
}

static void check_and_record(struct worker *worker, uint32_t type, int block, uint64_t size)
{
	uint64_t word = load_owner(worker, block);

	dither(worker);
	record(worker, type, block, size, word);
	dither(worker);
}

// The real malloc: any block that is free. -1: none.
static int allocate(struct worker *worker)
{
	for (int i = 0; i < 8; i++) {
		int block = (int)(next_random(worker) % BLOCKS);
		int none = 0;

		if (atomic_load_explicit(&worker->world->taken[block], memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_strong(&worker->world->taken[block], &none, 1))
			return block;
	}
	return -1;
}

static void release(struct worker *worker, int block)
{
	dither(worker);
	atomic_store_explicit(&worker->world->taken[block], 0, memory_order_release);
}

static void do_malloc(struct worker *worker)
{
	struct world *world = worker->world;
	int guess = (int)(next_random(worker) % BLOCKS);
	uint64_t early = load_owner(worker, guess);
	int block;

	if (worker->held_count == HELD_MAX)
		return;
	if (world->mutation == OWNER_READ_TOO_EARLY) {
		int none = 0;

		dither(worker);
		if (!atomic_compare_exchange_strong(&world->taken[guess], &none, 1))
			return;
		world->generation[guess]++;
		record(worker, LANE_MALLOC, guess, world->generation[guess], early);
		worker->held[worker->held_count++] = guess;
		return;
	}
	block = allocate(worker);
	if (block < 0)
		return;
	world->generation[block]++;
	dither(worker);
	check_and_record(worker, LANE_MALLOC, block, world->generation[block]);
	worker->held[worker->held_count++] = block;
}

static void do_free(struct worker *worker)
{
	int block;

	if (worker->held_count == 0)
		return;
	block = worker->held[--worker->held_count];
	if (worker->world->mutation == FREE_RECORDED_AFTERWARDS) {
		release(worker, block);
		dither(worker);
		check_and_record(worker, LANE_FREE, block, 0);
		return;
	}
	check_and_record(worker, LANE_FREE, block, 0);
	release(worker, block);
}

static void do_realloc(struct worker *worker)
{
	struct world *world = worker->world;
	uint64_t chance = next_random(worker) % 4;
	int old, block;

	if (worker->held_count == 0)
		return;
	old = worker->held[worker->held_count - 1];
	check_and_record(worker, LANE_REALLOC_FREE, old, 0);
	block = chance == 0 ? old : chance == 1 ? -1 : allocate(worker);
	if (block < 0) { // failed
		if (world->mutation != FAILED_REALLOC_NOT_UNDONE)
			check_and_record(worker, LANE_REALLOC_UNDO, old, 12345);
		return;
	}
	if (block != old)
		release(worker, old);
	world->generation[block]++;
	check_and_record(worker, LANE_REALLOC_ALLOC, block, world->generation[block]);
	worker->held[worker->held_count - 1] = block;
}

// Put a block on the bundle reader, and take what lay there.
static void do_exchange(struct worker *worker)
{
	_Atomic int *place = &worker->world->bundle_reader[next_random(worker) % SHELF];
	int given = 0, taken;

	if (worker->held_count == HELD_MAX)
		return;
	if (worker->held_count > 0)
		given = worker->held[--worker->held_count] + 1;
	taken = atomic_exchange(place, given);
	if (taken != 0)
		worker->held[worker->held_count++] = taken - 1;
}

static struct fake_lane *take_lane(struct world *world)
{
	struct fake_lane *lane = NULL;

	pthread_mutex_lock(&world->lanes_lock);
	for (int i = 0; lane == NULL; i = (i + 1) % LANES)
		if (!world->lane_taken[i] && rand() % 2) {
			world->lane_taken[i] = true;
			lane = &world->lanes[i];
		}
	pthread_mutex_unlock(&world->lanes_lock);
	return lane;
}

static void return_lane(struct world *world, struct fake_lane *lane)
{
	pthread_mutex_lock(&world->lanes_lock);
	world->lane_taken[lane - world->lanes] = false;
	pthread_mutex_unlock(&world->lanes_lock);
}

// One thread, one life: it takes a lane, works, frees what it holds, and gives the lane back.
static void *work(void *argument)
{
	struct worker *worker = argument;

	worker->lane = take_lane(worker->world);
	fake_thread(worker->lane, (uint32_t)(1000 + worker->random % 100000), "worker");
	for (uint32_t i = 0; i < worker->world->operations; i++) {
		switch (next_random(worker) % 8) {
		case 0:
		case 1:
		case 2:
			do_malloc(worker);
			break;
		case 3:
		case 4:
			do_free(worker);
			break;
		case 5:
			do_realloc(worker);
			break;
		default:
			do_exchange(worker);
		}
	}
	while (worker->held_count > 0)
		do_free(worker);
	fake_publish(worker->lane);
	return_lane(worker->world, worker->lane);
	return NULL;
}

struct verdict {
	uint64_t events;
	uint64_t changed_hands; // another thread than the one before on the same address
	uint64_t wrong;
	uint64_t folded;
};

struct block_state {
	uint64_t generation;
	thread_id thread;
	bool live;
};

static void begins(struct block_state *state, uint64_t generation, struct verdict *verdict)
{
	verdict->wrong += state->live || generation != state->generation + 1;
	state->live = true;
	state->generation = generation;
}

static void ends(struct block_state *state, struct verdict *verdict)
{
	verdict->wrong += !state->live;
	state->live = false;
}

static struct block_state *state_of(struct block_state *states, uint64_t address)
{
	for (int block = 0; block < BLOCKS; block++)
		if (address_of(block) == address)
			return &states[block];
	return NULL;
}

static void judge_event(struct block_state *states, const struct trace_event *event,
			struct verdict *verdict)
{
	struct block_state *state = state_of(states, event->address);

	CHECK(state != NULL);
	verdict->events++;
	verdict->changed_hands += state->thread != event->thread;
	state->thread = event->thread;
	switch (event->kind) {
	case TRACE_REALLOC:
		verdict->folded++;
		ends(state_of(states, event->old_address), verdict);
		begins(state, event->size, verdict);
		break;
	case TRACE_MALLOC:
	case TRACE_REALLOC_ALLOC:
		begins(state, event->size, verdict);
		break;
	case TRACE_FREE:
	case TRACE_REALLOC_FREE:
		ends(state, verdict);
		break;
	case TRACE_REALLOC_UNDO:
		verdict->wrong += state->live;
		state->live = true;
		break;
	case TRACE_REALLOC_FAILED:
		verdict->folded++;
		verdict->wrong += !state->live;
		break;
	default:
		verdict->wrong++;
	}
}

static struct verdict judge(const char *path)
{
	struct block_state states[BLOCKS] = { 0 };
	struct verdict verdict = { 0 };
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t last_ns = 0;
	struct err err;
	struct reader *reader = reader_open(path, &err);

	CHECK(reader != NULL);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		if (item != READER_EVENT)
			continue;
		CHECK(event.time_ns >= last_ns);
		last_ns = event.time_ns;
		judge_event(states, &event, &verdict);
	}
	CHECK(reader_end(reader) != NULL);
	CHECK_EQ(0, reader_skipped(reader));
	reader_close(reader);
	return verdict;
}

enum replay_ticks { TICKS_AS_LONG_AS_A_PASS, TICKS_SHORT };

static struct verdict replay(enum mutation mutation, enum replay_ticks ticks, int lives,
			     uint32_t operations, struct fake_session *session)
{
	struct world *world = mem_alloc(1, sizeof *world);
	struct segment_hello hello = { 0 };
	struct verdict verdict;

	fake_session_open(session, 0);
	CHECK(fake_join(&world->guest, session->socket_name, &hello));
	world->mutation = mutation;
	world->operations = operations;
	world->hasty = ticks == TICKS_SHORT;
	pthread_mutex_init(&world->lanes_lock, NULL);
	for (uint32_t i = 0; i < LANES; i++)
		fake_lane_open(&world->lanes[i], &world->guest, i + 1);
	for (int life = 0; life < lives; life++) {
		struct worker workers[THREADS] = { 0 };
		pthread_t threads[THREADS];

		for (int i = 0; i < THREADS; i++) {
			workers[i].world = world;
			workers[i].random =
				(uint64_t)(life * THREADS + i + 1) * 0x9e3779b97f4a7c15u;
			pthread_create(&threads[i], NULL, work, &workers[i]);
		}
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		// Some lanes rest for long.
		pass_time(world, REST_NS);
	}
	for (uint32_t i = 0; i < LANES; i++)
		fake_lane_close(&world->lanes[i]);
	fake_leave(&world->guest);
	fake_session_close(session, COLLECT_STOP);
	verdict = judge(session->path);
	mem_free(world);
	return verdict;
}

static void check_order(enum replay_ticks ticks)
{
	struct fake_session session;
	struct verdict verdict;

	// The time is set ahead here, which a thread that keeps it would take back.
	if (!session_counter_is_trusted())
		SKIP("the processor's counter is not trusted here");
	verdict = replay(AS_IT_SHOULD_BE, ticks, 10, 15000, &session);

	CHECK(verdict.events > 100000);
	CHECK(verdict.changed_hands > 1000);
	CHECK(verdict.folded > 1000);
	CHECK_EQ(0, verdict.wrong);
	CHECK_EQ(0, session.summary.order_breaks);
	CHECK_EQ(0, session.summary.events_lost);
}

TEST(merge_shows_no_address_owned_twice_and_none_freed_twice)
{
	check_order(TICKS_AS_LONG_AS_A_PASS);
}

TEST(merge_shows_no_address_owned_twice_where_ticks_are_short)
{
	check_order(TICKS_SHORT);
}

// A rule that is not kept shows, sooner or later.
static void check_caught(enum mutation mutation)
{
	struct verdict verdict = { 0 };
	uint64_t breaks = 0;

	for (int i = 0; i < 8 && verdict.wrong + breaks == 0; i++) {
		struct fake_session session;

		verdict = replay(mutation, i % 2 ? TICKS_SHORT : TICKS_AS_LONG_AS_A_PASS, 4, 20000,
				 &session);
		breaks = session.summary.order_breaks;
	}
	CHECK(verdict.wrong + breaks > 0);
}

TEST(merge_needs_frees_recorded_before_they_happen)
{
	check_caught(FREE_RECORDED_AFTERWARDS);
}

TEST(merge_needs_the_owner_read_after_malloc)
{
	check_caught(OWNER_READ_TOO_EARLY);
}

TEST(merge_needs_each_event_published_before_the_next_call)
{
	check_caught(PUBLISHED_TOO_LATE);
}

TEST(merge_needs_the_owner_exchanged_not_stored)
{
	check_caught(OWNER_STORED_NOT_EXCHANGED);
}

TEST(merge_needs_failed_reallocs_undone)
{
	check_caught(FAILED_REALLOC_NOT_UNDONE);
}

TEST(merge_needs_every_change_of_owner_recorded)
{
	check_caught(OWNER_NOT_RECORDED);
}

TEST(merge_needs_the_time_read_after_malloc)
{
	check_caught(TIME_READ_TOO_EARLY);
}

// ---- Small cases, by hand -------------------------------------------------------------------

struct table {
	struct fake_session session;
	struct fake_guest guest;
	struct fake_lane lanes[3]; // 1 and 2 are used
	struct trace_event events[16];
	size_t count;
};

static void lay(struct table *table, uint32_t segment_options)
{
	struct segment_hello hello = { 0 };

	memset(table, 0, sizeof *table);
	fake_session_open(&table->session, segment_options);
	CHECK(fake_join(&table->guest, table->session.socket_name, &hello));
	for (uint32_t i = 1; i < 3; i++)
		fake_lane_open(&table->lanes[i], &table->guest, i);
}

static void clear(struct table *table)
{
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	struct reader *reader;
	struct err err;

	for (uint32_t i = 1; i < 3; i++) {
		fake_publish(&table->lanes[i]);
		fake_lane_close(&table->lanes[i]);
	}
	fake_leave(&table->guest);
	fake_session_close(&table->session, COLLECT_STOP);
	reader = reader_open(table->session.path, &err);
	CHECK(reader != NULL);
	while ((item = reader_next(reader, &event, &note)) != READER_END)
		if (item == READER_EVENT && table->count < 16)
			table->events[table->count++] = event;
	reader_close(reader);
}

TEST(merge_puts_the_earlier_owner_first_within_a_tick)
{
	struct table table;

	lay(&table, 0);
	fake_write(
		&table.lanes[2],
		&(struct fake_event){ .type = LANE_FREE, .address = 64, .owner = 1, .time_ns = 9 });
	fake_write(
		&table.lanes[1],
		&(struct fake_event){
			.type = LANE_MALLOC, .address = 64, .size = 2, .owner = 2, .time_ns = 9 });
	fake_publish(&table.lanes[2]);
	clear(&table);
	CHECK_EQ(2, table.count);
	CHECK_EQ(TRACE_FREE, table.events[0].kind);
	CHECK_EQ(TRACE_MALLOC, table.events[1].kind);
}

// Three blocks of a page go to and fro; whole rows may go at once, and none too far.
TEST(merge_takes_turns_within_a_tick)
{
	static const uint8_t lanes[] = { 1, 2, 1, 2 };
	static const uint8_t types[] = { LANE_MALLOC, LANE_FREE, LANE_CALLOC, LANE_FREE };
	struct table table;

	lay(&table, 0);
	for (uint64_t i = 0; i < 12; i++)
		fake_write(&table.lanes[lanes[i / 3]],
			   &(struct fake_event){ .type = types[i / 3],
						 .address = 64 * (i % 3 + 1),
						 .size = types[i / 3] == LANE_FREE ? 0 : i + 1,
						 .owner = i % 3 == 0 ? i / 3 + 1 : 0,
						 .time_ns = i == 0 || i == 3 ? 9 : 0 });
	fake_publish(&table.lanes[2]);
	clear(&table);
	CHECK_EQ(12, table.count);
	for (uint64_t i = 0; i < 12; i++) {
		CHECK_EQ(64 * (i % 3 + 1), table.events[i].address);
		CHECK_EQ(i / 3 % 2 == 0, table.events[i].size == i + 1);
	}
}

// A realloc's halves are one event of a row only where nothing has to come between them.
TEST(merge_leaves_a_realloc_out_of_a_row_where_another_thread_comes_between)
{
	struct table table;

	lay(&table, 0);
	fake_write(
		&table.lanes[1],
		&(struct fake_event){
			.type = LANE_MALLOC, .address = 64, .size = 1, .owner = 1, .time_ns = 9 });
	fake_write(&table.lanes[1],
		   &(struct fake_event){ .type = LANE_REALLOC_FREE, .address = 64 });
	fake_write(&table.lanes[1],
		   &(struct fake_event){
			   .type = LANE_REALLOC_ALLOC, .address = 128, .size = 5, .owner = 3 });
	fake_write(&table.lanes[2],
		   &(struct fake_event){
			   .type = LANE_FREE, .address = 128, .owner = 2, .time_ns = 9 });
	fake_publish(&table.lanes[2]);
	clear(&table);
	CHECK_EQ(4, table.count);
	CHECK_EQ(TRACE_MALLOC, table.events[0].kind);
	CHECK_EQ(TRACE_REALLOC_FREE, table.events[1].kind);
	CHECK_EQ(TRACE_FREE, table.events[2].kind);
	CHECK_EQ(TRACE_REALLOC_ALLOC, table.events[3].kind);
}

// Where all share one tick that cannot be; where each event has its own time it can, by a little.
TEST(merge_puts_the_earlier_owner_first_even_with_a_later_time)
{
	struct table table;

	lay(&table, SEGMENT_CLOCK_NS);
	// Later than the note that the image begins.
	fake_write(&table.lanes[2],
		   &(struct fake_event){
			   .type = LANE_FREE, .address = 64, .owner = 1, .time_ns = 1000000012 });
	fake_write(&table.lanes[1], &(struct fake_event){ .type = LANE_MALLOC,
							  .address = 64,
							  .size = 2,
							  .owner = 2,
							  .time_ns = 1000000009 });
	fake_publish(&table.lanes[2]);
	clear(&table);
	CHECK_EQ(TRACE_FREE, table.events[0].kind);
	CHECK_EQ(1000000012, table.events[0].time_ns);
	CHECK_EQ(TRACE_MALLOC, table.events[1].kind);
	CHECK_EQ(1000000012, table.events[1].time_ns);
}

TEST(merge_orders_other_pages_by_time)
{
	struct table table;
	uint64_t from_ns;

	lay(&table, 0);
	// Before their time nothing is delivered: one lane is published after the other.
	from_ns = fake_now(&table.guest) + REST_NS;
	for (uint64_t i = 0; i < 4; i++) {
		fake_write(&table.lanes[1 + i % 2],
			   &(struct fake_event){ .type = LANE_MALLOC,
						 .address = LANE_SLOT_BYTES * (i + 1),
						 .size = i,
						 .owner = 1,
						 .time_ns = from_ns + 10 * (i + 1) });
	}
	clear(&table);
	CHECK_EQ(4, table.count);
	for (uint64_t i = 0; i < 4; i++)
		CHECK_EQ(i, table.events[i].size);
}

TEST(merge_tells_both_halves_of_a_realloc_as_one)
{
	struct table table;

	lay(&table, 0);
	fake_write(&table.lanes[1],
		   &(struct fake_event){ .type = LANE_REALLOC_FREE, .address = 64, .owner = 1 });
	fake_write(&table.lanes[1],
		   &(struct fake_event){
			   .type = LANE_REALLOC_ALLOC, .address = 8192, .size = 5, .owner = 1 });
	fake_write(&table.lanes[1],
		   &(struct fake_event){ .type = LANE_REALLOC_FREE, .address = 8192 });
	fake_write(&table.lanes[1],
		   &(struct fake_event){ .type = LANE_REALLOC_UNDO, .address = 8192, .size = 99 });
	clear(&table);
	CHECK_EQ(2, table.count);
	CHECK_EQ(TRACE_REALLOC, table.events[0].kind);
	CHECK_EQ(64, table.events[0].old_address);
	CHECK_EQ(8192, table.events[0].address);
	CHECK_EQ(5, table.events[0].size);
	CHECK_EQ(TRACE_REALLOC_FAILED, table.events[1].kind);
	CHECK_EQ(8192, table.events[1].address);
	CHECK_EQ(99, table.events[1].size);
}

// The old block goes to another thread before the new one comes, which was that thread's.
TEST(merge_tells_the_halves_apart_where_another_thread_comes_between)
{
	static const uint8_t kinds[] = { TRACE_MALLOC, TRACE_REALLOC_FREE, TRACE_MALLOC, TRACE_FREE,
					 TRACE_REALLOC_ALLOC };
	struct table table;

	lay(&table, 0);
	fake_write(&table.lanes[2], &(struct fake_event){ .type = LANE_MALLOC,
							  .address = 2 * LANE_SLOT_BYTES,
							  .size = 1,
							  .owner = 1,
							  .time_ns = 5 });
	fake_write(&table.lanes[1],
		   &(struct fake_event){
			   .type = LANE_REALLOC_FREE, .address = 64, .owner = 1, .time_ns = 6 });
	fake_write(
		&table.lanes[2],
		&(struct fake_event){
			.type = LANE_MALLOC, .address = 64, .size = 2, .owner = 2, .time_ns = 6 });
	fake_write(&table.lanes[2],
		   &(struct fake_event){ .type = LANE_FREE, .address = 2 * LANE_SLOT_BYTES });
	fake_write(&table.lanes[1], &(struct fake_event){ .type = LANE_REALLOC_ALLOC,
							  .address = 2 * LANE_SLOT_BYTES,
							  .size = 3,
							  .owner = 2,
							  .time_ns = 6 });
	fake_publish(&table.lanes[2]);
	clear(&table);
	CHECK_EQ(5, table.count);
	for (size_t i = 0; i < 5; i++)
		CHECK_EQ(kinds[i], table.events[i].kind);
}

TEST(merge_leaves_a_realloc_to_nothing_as_its_first_half)
{
	struct table table;

	lay(&table, 0);
	fake_write(&table.lanes[1],
		   &(struct fake_event){ .type = LANE_REALLOC_FREE, .address = 64, .owner = 1 });
	fake_write(&table.lanes[1],
		   &(struct fake_event){ .type = LANE_MALLOC, .address = 64, .size = 5 });
	clear(&table);
	CHECK_EQ(2, table.count);
	CHECK_EQ(TRACE_REALLOC_FREE, table.events[0].kind);
	CHECK_EQ(TRACE_MALLOC, table.events[1].kind);
}

// Owners that contradict each other: nothing is lost, and it is told.
TEST(merge_goes_on_where_no_order_is_possible)
{
	struct table table;

	lay(&table, 0);
	fake_write(&table.lanes[1], &(struct fake_event){ .type = LANE_FREE,
							  .address = LANE_SLOT_BYTES,
							  .owner = 2 });
	fake_write(&table.lanes[1], &(struct fake_event){ .type = LANE_FREE,
							  .address = 2 * LANE_SLOT_BYTES,
							  .owner = 1 });
	fake_write(&table.lanes[2], &(struct fake_event){ .type = LANE_FREE,
							  .address = 2 * LANE_SLOT_BYTES,
							  .owner = 2 });
	fake_write(&table.lanes[2], &(struct fake_event){ .type = LANE_FREE,
							  .address = LANE_SLOT_BYTES,
							  .owner = 1 });
	usleep(30000);
	atomic_store(&table.guest.lanes[1].head, table.lanes[1].head);
	atomic_store(&table.guest.lanes[2].head, table.lanes[2].head);
	clear(&table);
	CHECK_EQ(4, table.count);
	CHECK(table.session.summary.order_breaks <= 1);
}
