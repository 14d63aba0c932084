// Passes over lanes whose true order is known: whatever the moments at which the lanes' heads are
// read, the trace's order agrees with it, tick by tick as event by event.
//
// A small machine runs threads and a collector step by step, one at a time, by dice that a seed
// throws: to take a block, to read the tick, to look at the owner, to exchange it, to publish, to
// give the block back, to look at one lane's head are steps of their own. So what takes luck
// between real threads (merge_test.c) takes a seed here: a thread that is held up for many ticks
// between its time and its owner, a collector that is held up between two heads, lanes that are
// left and taken again, rest, or are full, a mark that is noted between two looks.
//
// The truth: each address has a number that its owner raises; it is recorded as the block's size.
// The last few blocks have none: loops take and free them over and over, in the same bytes. Of a
// mark it is known which numbers were told before it, and which were given by its end.
#include "base/mem.h"
#include "collect/door.h"
#include "collect/image.h"
#include "collect/merge.h"
#include "test/test.h"
#include "test/unit/fake_guest.h"
#include "trace/reader.h"
#include "trace/writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	THREADS_MAX = 6,
	LANES_MAX = 8,
	BLOCKS = 96,
	PLAIN_BLOCKS = 88, // the others are those of loops
	SHELF = 16,
	HELD_MAX = 12,
	LOOP_SIZE = 7,
};

// Further than the four bytes of a time reach.
static const uint64_t REST_NS = 5000000000;

enum mutation { AS_IT_SHOULD_BE, TIME_OF_THE_EVENT_BEFORE };

// What a thread does next.
enum stage {
	IDLE,       // nothing: choose
	READ_TIME,  // of the event
	READ_OWNER, // of its address's page
	EXCHANGE,   // the owner
	PUBLISH,
	RETURNED, // from the recorder, to the rest of the call
	MARK,     // has its time, and is to be noted
};

// Whatever was told before a mark is before it, and what begins after its end is behind it.
struct mark {
	uint64_t told[PLAIN_BLOCKS], given[PLAIN_BLOCKS];
};

struct thread {
	int lane; // 0: it has none, and begins anew
	uint32_t calls_left;
	enum stage stage;
	uint32_t type;
	int block;
	uint32_t loop_left; // calls on the loop's block
	struct fake_event event;
	uint64_t last_ns; // the time of the event before
	uint64_t mark_ns;
	size_t mark;
	int held[HELD_MAX];
	int held_count;
};

struct machine {
	uint64_t random;
	uint64_t tick_ns;
	struct segment_clock clock;
	struct fake_guest guest;
	struct fake_lane lanes[LANES_MAX + 1];
	uint64_t published[LANES_MAX + 1]; // what a look at the head would see
	bool lane_taken[LANES_MAX + 1];
	uint32_t lanes_count; // from 1 on
	struct thread threads[THREADS_MAX];
	uint32_t threads_count;
	uint64_t own[LANE_SLOTS];
	bool taken[BLOCKS];
	uint64_t generation[BLOCKS], told[BLOCKS];
	int bundle_reader[SHELF]; // number + 1, or 0
	uint64_t written;         // events
	struct mark *marks;
	size_t marks_count, marks_capacity, marks_noted, marks_passed;
	enum mutation mutation;

	// How the dice fall.
	uint32_t burst;      // steps that one thread does at a time, on average
	uint32_t tick_steps; // steps to a tick, on average
	uint32_t look_steps; // between two steps of the collector, on average
	uint32_t pages;      // that the blocks lie in
	uint32_t life;       // calls of a thread
	uint32_t mark_steps; // between two marks; 0: none

	// The collector.
	enum image_mode mode; // IMAGE_TICKS: what image_look_again chooses
	uint32_t phase, look_at;
	uint64_t noted, told_ns, cut[LANES_MAX + 1], seen[LANES_MAX + 1];
	struct collect_options options;
	struct trace_builder trace_builder;
	struct image *image;
	struct merge merge;
	uint64_t passes, by_ticks;
};

static uint64_t dice(struct machine *machine)
{
	machine->random ^= machine->random << 13;
	machine->random ^= machine->random >> 7;
	machine->random ^= machine->random << 17;
	return machine->random * 0x2545f4914f6cdd1du >> 16;
}

static bool one_in(struct machine *machine, uint32_t count)
{
	return dice(machine) % count == 0;
}

static uint64_t address_of(const struct machine *machine, int block)
{
	return 0x7f0000000000 + (uint64_t)block % machine->pages * LANE_SLOT_BYTES +
	       (uint64_t)block / machine->pages * 32;
}

// ---- Threads --------------------------------------------------------------------------------

static void begin_event(struct machine *machine, struct thread *thread, uint32_t type, int block)
{
	thread->type = type;
	thread->event = (struct fake_event){ .type = type, .address = address_of(machine, block) };
	thread->block = block;
	if (type == LANE_MALLOC || type == LANE_REALLOC_ALLOC)
		thread->event.size = block < PLAIN_BLOCKS ? ++machine->generation[block]
							  : LOOP_SIZE;
	if (type == LANE_REALLOC_UNDO)
		thread->event.size = 12345;
	thread->stage = READ_TIME;
}

// The real malloc. -1: nothing was free.
static int take_block(struct machine *machine)
{
	for (int i = 0; i < 8; i++) {
		int block = (int)(dice(machine) % PLAIN_BLOCKS);

		if (!machine->taken[block]) {
			machine->taken[block] = true;
			return block;
		}
	}
	return -1;
}

static bool begin_loop(struct machine *machine, struct thread *thread)
{
	int block = PLAIN_BLOCKS + (int)(dice(machine) % (BLOCKS - PLAIN_BLOCKS));

	if (machine->taken[block] || thread->held_count == HELD_MAX)
		return false;
	machine->taken[block] = true;
	thread->loop_left = 1 + 2 * (uint32_t)(dice(machine) % 60);
	begin_event(machine, thread, LANE_MALLOC, block);
	return true;
}

// A new life: a lane that nobody has.
static void be_born(struct machine *machine, struct thread *thread)
{
	uint32_t lane = 1 + (uint32_t)(dice(machine) % machine->lanes_count);

	if (machine->lane_taken[lane])
		return;
	machine->lane_taken[lane] = true;
	thread->lane = (int)lane;
	thread->calls_left = 1 + (uint32_t)(dice(machine) % (2 * machine->life));
	fake_thread(&machine->lanes[lane], 1000 + (uint32_t)(dice(machine) % 100000), "thread");
	machine->published[lane] = machine->lanes[lane].head;
}

static void exchange_blocks(struct machine *machine, struct thread *thread)
{
	int *place = &machine->bundle_reader[dice(machine) % SHELF];
	int taken = *place;

	*place = thread->held_count > 0 ? thread->held[--thread->held_count] + 1 : 0;
	if (taken != 0)
		thread->held[thread->held_count++] = taken - 1;
}

static void choose(struct machine *machine, struct thread *thread)
{
	uint64_t what = dice(machine) % 8;
	int block;

	if (thread->lane == 0) {
		be_born(machine, thread);
		return;
	}
	if (machine->lanes[thread->lane].head - machine->image->share.lanes[thread->lane].tail >
	    segment_ring_bytes((uint32_t)thread->lane) - 1024)
		return; // full: wait
	if (thread->calls_left == 0 && thread->held_count == 0) {
		machine->lane_taken[thread->lane] = false;
		thread->lane = 0;
		return;
	}
	if (thread->calls_left == 0)
		what = 3;
	else
		thread->calls_left--;
	if (what == 7 && one_in(machine, 8) && begin_loop(machine, thread))
		return;
	if (what < 3 && thread->held_count < HELD_MAX && (block = take_block(machine)) >= 0) {
		begin_event(machine, thread, LANE_MALLOC, block);
	} else if (what < 5 && thread->held_count > 0) {
		begin_event(machine, thread, LANE_FREE, thread->held[--thread->held_count]);
	} else if (what == 5 && thread->held_count > 0) {
		begin_event(machine, thread, LANE_REALLOC_FREE, thread->held[--thread->held_count]);
	} else if (thread->held_count < HELD_MAX) {
		exchange_blocks(machine, thread);
	}
}

// The recorder has returned: the rest of the call.
static void go_on(struct machine *machine, struct thread *thread)
{
	int block = thread->block, old;

	thread->stage = IDLE;
	if (thread->loop_left > 0) { // the block stays the thread's until the last free
		thread->loop_left--;
		begin_event(machine, thread, thread->type == LANE_FREE ? LANE_MALLOC : LANE_FREE,
			    block);
		return;
	}
	if (thread->type == LANE_FREE) {
		machine->taken[block] = false;
		return;
	}
	if (thread->type != LANE_REALLOC_FREE) {
		thread->held[thread->held_count++] = block;
		return;
	}
	old = block;
	switch (dice(machine) % 4) {
	case 0: // it failed
		begin_event(machine, thread, LANE_REALLOC_UNDO, old);
		return;
	case 1: // it stays
		begin_event(machine, thread, LANE_REALLOC_ALLOC, old);
		return;
	default:
		block = take_block(machine);
		if (block >= 0)
			machine->taken[old] = false;
		begin_event(machine, thread, block < 0 ? LANE_REALLOC_UNDO : LANE_REALLOC_ALLOC,
			    block < 0 ? old : block);
	}
}

// The time of a mark is a tick of its own: what others do once they know of it is of a later one.
static void begin_mark(struct machine *machine, struct thread *thread)
{
	struct mark *mark;

	if (thread->lane == 0 || thread->stage != IDLE)
		return;
	thread->mark = machine->marks_count;
	mark = MEM_ADD(machine->marks, machine->marks_count, machine->marks_capacity);
	memcpy(mark->told, machine->told, sizeof mark->told);
	thread->mark_ns = ++machine->tick_ns;
	thread->stage = MARK;
}

static void note_mark(struct machine *machine, struct thread *thread)
{
	struct mark *mark = &machine->marks[thread->mark];
	char name[32];

	snprintf(name, sizeof name, "%zu", thread->mark);
	fake_place(&machine->lanes[0], NOTE_MARK, thread->mark_ns, &machine->lanes[thread->lane],
		   name);
	machine->tick_ns++;
	memcpy(mark->given, machine->generation, sizeof mark->given);
	machine->marks_noted++;
	thread->stage = IDLE;
}

static void step(struct machine *machine, struct thread *thread)
{
	uint64_t *own = &machine->own[lane_slot(thread->event.address)];

	switch (thread->stage) {
	case IDLE:
		choose(machine, thread);
		break;
	case READ_TIME:
		thread->event.time_ns = machine->mutation == TIME_OF_THE_EVENT_BEFORE
						? thread->last_ns
						: machine->tick_ns;
		thread->last_ns = machine->tick_ns;
		thread->stage = READ_OWNER;
		break;
	case READ_OWNER:
		thread->stage = (*own & 0xffff) == (uint64_t)thread->lane ? PUBLISH : EXCHANGE;
		break;
	case EXCHANGE:
		thread->event.owner = (*own >> 16) + 1;
		*own = thread->event.owner << 16 | (uint64_t)thread->lane;
		thread->stage = PUBLISH;
		break;
	case PUBLISH:
		fake_write(&machine->lanes[thread->lane], &thread->event);
		machine->published[thread->lane] = machine->lanes[thread->lane].head;
		machine->written++;
		if (thread->event.type != LANE_FREE && thread->event.type != LANE_REALLOC_FREE &&
		    thread->event.type != LANE_REALLOC_UNDO)
			machine->told[thread->block] = thread->event.size;
		thread->stage = RETURNED;
		break;
	case RETURNED:
		go_on(machine, thread);
		break;
	case MARK:
		note_mark(machine, thread);
	}
}

// ---- The collector --------------------------------------------------------------------------

static bool pass_mark(void *context, struct stream *stream, const struct lane_item *item)
{
	struct machine *machine = context;
	struct image_event *event = &stream->image->events[item->detail];

	CHECK_EQ(LANE_ITEM_MARK, item->kind);
	trace_builder_time(&machine->trace_builder, item->time_ns);
	trace_builder_note(&machine->trace_builder, TRACE_NOTE_MARK, stream->image->process,
			   TRACE_NONE, 0, event->name);
	image_event_pass(stream->image, event);
	machine->marks_passed++;
	return true;
}

static void show(struct machine *machine, const uint64_t *heads)
{
	for (uint32_t i = 1; i <= machine->lanes_count; i++)
		atomic_store(&machine->image->share.lanes[i].head, heads[i]);
}

static void pass(struct machine *machine)
{
	struct image *image = machine->image;
	uint64_t between = 0;

	atomic_store(&image->share.lanes[0].head, machine->noted);
	image_look_at_notes(image);
	atomic_store(&image->share.lanes[0].head, machine->lanes[0].head);
	show(machine, machine->cut);
	image_look(image);
	show(machine, machine->seen);
	for (uint32_t i = 1; i <= machine->lanes_count; i++)
		between += machine->seen[i] - machine->cut[i];
	CHECK_EQ(between, image_look_again(image));
	if (image->mode == IMAGE_TICKS)
		image->mode = machine->mode;
	machine->by_ticks += image->mode == IMAGE_TICKS;
	image_decode(image);
	merge_add(&machine->merge, image);
	CHECK(merge_run(&machine->merge, image->late ? machine->told_ns : UINT64_MAX));
	machine->passes++;
}

// One head, or, when all were looked at twice, what follows.
static void step_collector(struct machine *machine)
{
	uint64_t *heads = machine->phase == 0 ? machine->cut : machine->seen;

	if (machine->phase == 2) {
		pass(machine);
		machine->phase = 0;
		return;
	}
	if (machine->look_at == 0) {
		machine->look_at = 1;
		if (machine->phase == 0) {
			machine->told_ns = machine->tick_ns;
			machine->noted = machine->lanes[0].head;
		}
	}
	heads[machine->look_at] = machine->published[machine->look_at];
	if (++machine->look_at > machine->lanes_count) {
		machine->look_at = 0;
		machine->phase++;
	}
}

static void open_collector(struct machine *machine, uint32_t lanes_count, enum image_mode mode,
			   int fd)
{
	struct door_arrival *arrival = mem_alloc(1, sizeof *arrival);
	struct trace_process process = { .parent = TRACE_NONE, .pid = 1, .exe = (char *)"x" };
	struct trace_info info = { .tool = (char *)"test",
				   .host = (char *)"",
				   .command = (char *)"",
				   .directory = (char *)"",
				   .options = (char *)"",
				   .tick_ns = 100000 };
	struct err err;

	machine->mode = mode;
	machine->lanes_count = lanes_count;
	arrival->pidfd = -1;
	CHECK(share_open(&arrival->share, 1, 0, 0, &err));
	machine->options.info = info;
	machine->options.report_fd = -1;
	trace_builder_init(&machine->trace_builder, writer_new(fd, &info, &err), &machine->options);
	CHECK(machine->trace_builder.writer != NULL);
	machine->trace_builder.fold_ns = 200000;
	merge_init(&machine->merge, &machine->trace_builder, pass_mark, machine);
	machine->image = image_new(arrival, &machine->trace_builder);
	machine->image->begun = true;
	machine->image->process = writer_add_process(machine->trace_builder.writer, &process);
	machine->guest = (struct fake_guest){ .clock = &machine->clock,
					      .segment = machine->image->share.segment,
					      .lanes = machine->image->share.lanes,
					      .segment_fd = machine->image->share.fd };
	for (uint32_t i = 0; i <= lanes_count; i++)
		fake_lane_open(&machine->lanes[i], &machine->guest, i);
}

static void close_collector(struct machine *machine)
{
	struct trace_end end = { .events = writer_events_count(machine->trace_builder.writer) };

	for (uint32_t i = 0; i <= machine->lanes_count; i++)
		fake_lane_close(&machine->lanes[i]);
	writer_end(machine->trace_builder.writer, &end);
	merge_fini(&machine->merge);
	image_free(machine->image);
	trace_builder_fini(&machine->trace_builder);
	writer_free(machine->trace_builder.writer);
}

// ---- A run ----------------------------------------------------------------------------------

static uint32_t pick(struct machine *machine, const uint32_t *choices, uint32_t count)
{
	return choices[dice(machine) % count];
}

static void start(struct machine *machine, uint64_t seed)
{
	static const uint32_t bursts[] = { 1, 3, 20, 200 };
	static const uint32_t ticks[] = { 5, 30, 300, 3000, 30000 };
	static const uint32_t looks[] = { 1, 10, 100, 400 };
	static const uint32_t pages[] = { 1, 3, 12, 48 };
	static const uint32_t lives[] = { 20, 200, 5000 };
	static const uint32_t marks[] = { 0, 0, 0, 3000, 400 };

	memset(machine, 0, sizeof *machine);
	machine->random = (seed + 1) * 0x9e3779b97f4a7c15u;
	for (int i = 0; i < 8; i++)
		dice(machine);
	machine->tick_ns = 100000;
	machine->threads_count = 2 + (uint32_t)(dice(machine) % (THREADS_MAX - 1));
	machine->burst = pick(machine, bursts, 4);
	machine->tick_steps = pick(machine, ticks, 5);
	machine->look_steps = pick(machine, looks, 4);
	machine->pages = pick(machine, pages, 4);
	machine->life = pick(machine, lives, 3);
	machine->mark_steps = pick(machine, marks, 5);
}

static void run(struct machine *machine, uint32_t steps)
{
	struct thread *thread = &machine->threads[0];

	for (uint32_t i = 0; i < steps; i++) {
		if (one_in(machine, machine->burst))
			thread = &machine->threads[dice(machine) % machine->threads_count];
		if (one_in(machine, machine->tick_steps))
			machine->tick_ns += one_in(machine, 500) ? REST_NS : 100000;
		step(machine, thread);
		if (machine->mark_steps > 0 && one_in(machine, machine->mark_steps))
			begin_mark(machine, thread);
		if (one_in(machine, machine->look_steps))
			step_collector(machine);
	}
	for (int i = 0; i < 3; i++) {
		memcpy(machine->cut, machine->published, sizeof machine->cut);
		memcpy(machine->seen, machine->published, sizeof machine->seen);
		machine->noted = machine->lanes[0].head;
		pass(machine);
	}
	CHECK(image_lanes_drained(machine->image));
	CHECK_EQ(machine->marks_noted, machine->marks_passed);
}

// ---- The verdict ----------------------------------------------------------------------------

struct state {
	uint64_t generation;
	bool live, looped; // looped: it has no numbers
	bool resized;      // by a realloc, which is at one place: that of its beginning
};

struct verdict {
	uint64_t halves, wrong, misplaced;
};

static struct state *state_of(const struct machine *machine, struct state *states, uint64_t address)
{
	for (int block = 0; block < BLOCKS; block++)
		if (address_of(machine, block) == address)
			return &states[block];
	return NULL;
}

static void begins(struct state *state, uint64_t generation, struct verdict *verdict)
{
	verdict->wrong += state->live || (generation != state->generation + 1 && !state->looped);
	state->live = true;
	state->resized = false;
	state->generation = generation;
}

static void judge_event(const struct machine *machine, struct state *states,
			const struct trace_event *event, struct verdict *verdict)
{
	struct state *state = state_of(machine, states, event->address);
	struct state *old;

	CHECK(state != NULL);
	verdict->halves++;
	switch (event->kind) {
	case TRACE_REALLOC:
		verdict->halves++;
		old = state_of(machine, states, event->old_address);
		verdict->wrong += !old->live;
		old->live = false;
		begins(state, event->size, verdict);
		state->resized = true;
		break;
	case TRACE_MALLOC:
	case TRACE_REALLOC_ALLOC:
		begins(state, event->size, verdict);
		break;
	case TRACE_FREE:
	case TRACE_REALLOC_FREE:
		verdict->wrong += !state->live;
		state->live = false;
		break;
	case TRACE_REALLOC_UNDO:
		verdict->wrong += state->live;
		state->live = true;
		break;
	case TRACE_REALLOC_FAILED:
		verdict->halves++;
		verdict->wrong += !state->live;
		break;
	default:
		verdict->wrong++;
	}
}

// A mark stands where `states` are what was made of all that is before it.
static void judge_mark(const struct mark *mark, const struct state *states, struct verdict *verdict)
{
	bool right = true;

	for (int block = 0; block < PLAIN_BLOCKS; block++)
		right &= states[block].generation >= mark->told[block] &&
			 (states[block].generation <= mark->given[block] || states[block].resized);
	verdict->misplaced += !right;
}

static void judge(const struct machine *machine, const char *path, struct verdict *verdict)
{
	struct state states[BLOCKS] = { 0 };
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	struct err err;
	struct reader *reader = reader_open(path, &err);

	CHECK(reader != NULL);
	verdict->halves = verdict->misplaced = 0;
	for (int block = PLAIN_BLOCKS; block < BLOCKS; block++)
		states[block].looped = true;
	while ((item = reader_next(reader, &event, &note)) != READER_END)
		if (item == READER_EVENT)
			judge_event(machine, states, &event, verdict);
		else if (note.kind == TRACE_NOTE_MARK)
			judge_mark(&machine->marks[strtoul(note.text, NULL, 10)], states, verdict);
	reader_close(reader);
	verdict->wrong += verdict->halves != machine->written;
}

// Run the machine with each of the seeds. Returns how many of them show what cannot have happened.
static uint32_t runs(enum mutation mutation, enum image_mode mode, uint64_t first, uint32_t count,
		     uint32_t steps, uint64_t *passes)
{
	struct machine *machine = mem_alloc(1, sizeof *machine);
	const char *path = test_temp_path("image.tide");
	uint32_t wrong = 0;

	for (uint64_t seed = first; seed < first + count; seed++) {
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		struct verdict verdict;

		start(machine, seed);
		machine->mutation = mutation;
		open_collector(machine, machine->threads_count + (uint32_t)(dice(machine) % 3),
			       mode, fd);
		run(machine, steps);
		*passes += mode == IMAGE_TICKS ? machine->by_ticks : machine->passes;
		verdict.wrong = machine->merge.order_breaks;
		close_collector(machine);
		close(fd);
		judge(machine, path, &verdict);
		if (verdict.wrong > 0 && mutation == AS_IT_SHOULD_BE)
			fprintf(stderr, "seed %llu: %llu of %llu events\n",
				(unsigned long long)seed, (unsigned long long)verdict.wrong,
				(unsigned long long)machine->written);
		if (verdict.misplaced > 0 && mutation == AS_IT_SHOULD_BE)
			fprintf(stderr, "seed %llu: %llu of %zu marks\n", (unsigned long long)seed,
				(unsigned long long)verdict.misplaced, machine->marks_noted);
		wrong += verdict.wrong > 0 || verdict.misplaced > 0;
		mem_free(machine->marks);
	}
	mem_free(machine);
	return wrong;
}

TEST(image_orders_event_by_event)
{
	uint64_t passes = 0;

	CHECK_EQ(0, runs(AS_IT_SHOULD_BE, IMAGE_ALL, 1, 100, 20000, &passes));
	CHECK(passes > 1000);
}

TEST(image_orders_tick_by_tick)
{
	uint64_t passes = 0;

	CHECK_EQ(0, runs(AS_IT_SHOULD_BE, IMAGE_TICKS, 1, 300, 20000, &passes));
	CHECK(passes > 1000);
}

// A thread that reads the time before malloc has returned.
TEST(image_needs_the_right_time_tick_by_tick)
{
	uint64_t passes = 0;

	CHECK(runs(TIME_OF_THE_EVENT_BEFORE, IMAGE_TICKS, 1, 20, 20000, &passes) > 0);
}

// ---- By hand --------------------------------------------------------------------------------

static void put(struct machine *machine, uint32_t lane, uint32_t type, uint64_t address,
		uint64_t owner, uint64_t tick)
{
	struct fake_event event = { .type = type,
				    .address = address,
				    .size = type == LANE_MALLOC ? LOOP_SIZE : 0,
				    .owner = owner,
				    .time_ns = tick * 100000 };

	fake_write(&machine->lanes[lane], &event);
}

static void copy_heads(const struct machine *machine, uint64_t *heads)
{
	for (uint32_t i = 1; i <= machine->lanes_count; i++)
		heads[i] = machine->lanes[i].head;
}

// Lane 3 has owned a page since interval 1, and waits between the looks with a block of tick 5 on
// it. Lane 1 was held up after it had read tick 4, and took the page as interval 2. What lane 3 has
// there need not come first, since it is of a later tick; if it did, lane 3's other block would
// come with it, before lane 2 has given that up in tick 4.
TEST(image_takes_no_lane_through_ticks_that_others_have_not_reached)
{
	enum { PAGE = 0x1000, BLOCK = 0x9000 };
	struct machine *machine = mem_alloc(1, sizeof *machine);
	const char *path = test_temp_path("image.tide");
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct trace_event event, last = { 0 };
	struct trace_note note;
	enum reader_item item;
	struct reader *reader;
	uint64_t count = 0;
	struct err err;

	open_collector(machine, 5, IMAGE_TICKS, fd);
	put(machine, 3, LANE_MALLOC, PAGE, 1, 1);
	put(machine, 2, LANE_MALLOC, BLOCK, 1, 1);
	put(machine, 4, LANE_MALLOC, 0x5000, 1, 5);
	copy_heads(machine, machine->cut);
	put(machine, 3, LANE_MALLOC, BLOCK, 2, 5);
	put(machine, 3, LANE_MALLOC, PAGE + 64, 0, 5);
	copy_heads(machine, machine->seen);
	pass(machine);
	CHECK_EQ(IMAGE_ALL, machine->image->mode);
	put(machine, 2, LANE_FREE, BLOCK, 0, 4); // it was looked at before this
	put(machine, 1, LANE_MALLOC, PAGE + 128, 2, 4);
	put(machine, 5, LANE_MALLOC, PAGE + 192, 3, 4);
	copy_heads(machine, machine->cut);
	copy_heads(machine, machine->seen);
	pass(machine);
	CHECK_EQ(IMAGE_TICKS, machine->image->mode);
	close_collector(machine);
	close(fd);
	reader = reader_open(path, &err);
	CHECK(reader != NULL);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		if (item != READER_EVENT)
			continue;
		count++;
		if (event.address != BLOCK)
			continue;
		CHECK((event.kind == TRACE_FREE) == (last.kind == TRACE_MALLOC));
		last = event;
	}
	CHECK_EQ(8, count);
	CHECK_EQ(TRACE_MALLOC, last.kind);
	reader_close(reader);
	mem_free(machine);
}
