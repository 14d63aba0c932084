// The driver knows blocks by slots, and a slot is used again once its block is freed: so it needs
// as many as are live at one time.
//
// For example, malloc A, malloc B, free A, malloc C are the records alloc 0, alloc 1, free 0, alloc
// 0: two slots for three blocks. A realloc in two halves, with another thread's events between
// them, is one record where its second half is; what the block had is not live in between, as its
// address may be given to another thread by then. One that fails changes nothing, and which do is
// known beforehand. A thread gets a number of the driver's at its first call, and gives it back
// after its last one, which the first reading of the trace has found.
#include "replay/replay_plan.h"

#include "base/mem.h"
#include "engine/replay/blocks.h"
#include "engine/replay/lives.h"
#include "trace/reader_pass.h"

enum {
	SAMPLES_BY_TIME = 400,
	SAMPLES_BY_EVENT = 400,
	SAMPLES_BY_SNAPSHOT = 200,
};

// The first half of a realloc whose second half may come: its block has no address now.
struct half {
	bool open;
	uint32_t slot;
	uint64_t size;
};

// One pass over the trace. `live_bytes` and `live_count` are at the event that is being read.
struct reading {
	struct replay_plan *plan;
	bool first;           // it finds out what must be known before
	replay_plan_put *put; // NULL: records are not given
	void *context;
	bool stopped;
	struct blocks blocks; // `site` is the slot
	uint32_t *spare;      // slots to use again
	size_t spare_count, spare_capacity;
	uint32_t slots;
	struct half *halves; // by thread
	uint16_t *numbers;   // of the driver's threads, to use again
	size_t numbers_count;
	uint16_t numbers_used;
	uint64_t live_bytes, live_count, number;
	uint64_t next_ns, next_number;
	uint32_t samples;
	uint32_t snapshot; // of the recording, that comes next
};

// The slot that was freed last, since its memory is still near.
static uint32_t take_slot(struct reading *reading)
{
	ASSERT(reading->spare_count <= reading->slots);
	if (reading->spare_count)
		return reading->spare[--reading->spare_count];
	return reading->slots++;
}

static void give_slot(struct reading *reading, uint32_t slot)
{
	ASSERT(slot < reading->slots);
	*MEM_ADD(reading->spare, reading->spare_count, reading->spare_capacity) = slot;
}

// ---- records ----

static void put(struct reading *reading, const struct replay_ring_record *record)
{
	if (reading->put && !reading->stopped)
		reading->stopped = !reading->put(reading->context, record);
}

// Numbers of threads that have ended are used again, so the driver needs as many as run at one
// time.
static uint16_t number_of(struct reading *reading, thread_id id)
{
	struct replay_plan_thread *thread = &reading->plan->threads[id];

	ASSERT(id < reading->plan->threads_count);
	if (!reading->put || reading->plan->one_thread)
		return 0;
	if (!thread->running) {
		thread->running = true;
		thread->number = reading->numbers_count ? reading->numbers[--reading->numbers_count]
							: reading->numbers_used++;
	}
	return thread->number;
}

// Calls are counted in the first reading alone, whatever is read after it.
static void put_call(struct reading *reading, const struct trace_event *event, uint8_t op,
		     uint32_t slot, uint64_t size)
{
	const struct replay_ring_record record = {
		.slot = slot,
		.thread = number_of(reading, event->thread),
		.op = op,
		.align_log2 = event->align_log2,
		.size = size,
	};

	reading->plan->calls += reading->first;
	put(reading, &record);
}

// The first reading notes the last call of each thread; the second ends the thread there. The
// thread that the driver began with, number 0, stays.
static void end_thread(struct reading *reading, const struct trace_event *event)
{
	struct replay_plan_thread *thread = &reading->plan->threads[event->thread];

	if (reading->first) {
		thread->last = event->number + 1;
		return;
	}
	if (event->number + 1 < thread->last || !thread->running || thread->number == 0 ||
	    reading->plan->one_thread)
		return;
	put(reading,
	    &(struct replay_ring_record){ .op = REPLAY_RING_THREAD_END, .thread = thread->number });
	thread->running = false;
	ASSERT(thread->number < reading->numbers_used);
	ASSERT(reading->numbers_count < reading->plan->threads_count);
	reading->numbers[reading->numbers_count++] = thread->number;
}

// ---- blocks ----

static void raise(struct reading *reading, uint64_t bytes)
{
	struct replay_plan *plan = reading->plan;

	reading->live_bytes += bytes;
	reading->live_count++;
	if (!reading->first || reading->live_bytes <= plan->peak_bytes)
		return;
	plan->peak_bytes = reading->live_bytes;
	plan->peak_count = reading->live_count;
	plan->peak_number = reading->number;
}

// Bytes may be wrong where a trace is damaged, so only the count is asserted.
static void lower(struct reading *reading, uint64_t bytes)
{
	ASSERT(reading->live_count > 0); // sums of bytes may run over
	reading->live_bytes -= bytes;
	reading->live_count--;
}

// Two blocks cannot be at one address: one that is there was freed in a way that the trace does not
// have, and is freed now.
static void place(struct reading *reading, const struct trace_event *event, uint64_t address,
		  uint32_t slot, uint64_t size)
{
	bool added;
	struct block *block = blocks_put(&reading->blocks, address, &added);

	// One that is there was freed unseen.
	if (!added) {
		uint32_t lost = block->site;

		lower(reading, blocks_size(&reading->blocks, block));
		put_call(reading, event, REPLAY_RING_FREE, lost, 0);
		give_slot(reading, lost);
	}
	block->site = slot;
	block->owner = 1;
	blocks_set_size(&reading->blocks, block, size);
	raise(reading, size);
}

// A block takes a slot before its call is put, as the call says where it goes.
static void begin(struct reading *reading, const struct trace_event *event, uint8_t op)
{
	uint32_t slot = take_slot(reading);

	place(reading, event, event->address, slot, event->size);
	put_call(reading, event, op, slot, event->size);
}

// A block that is not known was inherited, or allocated before the recording: there is nothing in
// the driver to free, so the call is left out and counted.
static void end(struct reading *reading, const struct trace_event *event)
{
	struct block block;
	uint64_t size;

	if (!blocks_take(&reading->blocks, event->address, &block, &size)) {
		reading->plan->unknown_frees += reading->first;
		return;
	}
	lower(reading, size);
	put_call(reading, event, REPLAY_RING_FREE, block.site, size);
	give_slot(reading, block.site);
}

// Keeps its slot: the driver reallocs what is in it.
static void resize(struct reading *reading, const struct trace_event *event)
{
	struct block block;
	uint64_t size;

	if (!blocks_take(&reading->blocks, event->old_address, &block, &size)) {
		reading->plan->unknown_frees += reading->first;
		begin(reading, event, REPLAY_RING_ALLOC);
		return;
	}
	ASSERT(block.site < reading->slots);
	lower(reading, size);
	place(reading, event, event->address, block.site, event->size);
	put_call(reading, event, REPLAY_RING_REALLOC, block.site, event->size);
}

// The first half: the call comes with the second, and the address may be another's until then.
static void open_half(struct reading *reading, const struct trace_event *event)
{
	struct half *half = &reading->halves[event->thread];
	struct block block;

	if (map_find(&reading->plan->undone, event->number))
		return;
	half->open = blocks_take(&reading->blocks, event->address, &block, &half->size);
	if (!half->open) {
		reading->plan->unknown_frees += reading->first;
		return;
	}
	half->slot = block.site;
	lower(reading, half->size);
}

static void close_half(struct reading *reading, const struct trace_event *event)
{
	struct half *half = &reading->halves[event->thread];

	ASSERT(!half->open || half->slot < reading->slots);
	if (half->open) {
		place(reading, event, event->address, half->slot, event->size);
		put_call(reading, event, REPLAY_RING_REALLOC, half->slot, event->size);
	} else {
		begin(reading, event, REPLAY_RING_ALLOC);
	}
	half->open = false;
}

// A first half without a second was a realloc that freed.
static void drop_half(struct reading *reading, const struct trace_event *event)
{
	struct half *half = &reading->halves[event->thread];

	if (!half->open)
		return;
	half->open = false;
	put_call(reading, event, REPLAY_RING_FREE, half->slot, half->size);
	give_slot(reading, half->slot);
}

// Calls that failed are not made: another allocator, or another moment, would not fail. A thread's
// first half that is not followed by its second was a realloc that freed.
static void add_event(struct reading *reading, const struct trace_event *event)
{
	if (event->kind != TRACE_REALLOC_ALLOC)
		drop_half(reading, event);
	switch (event->kind) {
	case TRACE_MALLOC:
	case TRACE_BEFORE:
		begin(reading, event, REPLAY_RING_ALLOC);
		break;
	case TRACE_CALLOC:
		begin(reading, event, REPLAY_RING_CALLOC);
		break;
	case TRACE_ALIGNED:
		begin(reading, event, REPLAY_RING_ALIGNED);
		break;
	case TRACE_FREE:
		end(reading, event);
		break;
	case TRACE_REALLOC:
		resize(reading, event);
		break;
	case TRACE_REALLOC_FREE:
		open_half(reading, event);
		break;
	case TRACE_REALLOC_ALLOC:
		close_half(reading, event);
		break;
	default:
		reading->plan->failed += reading->first;
	}
}

// ---- samples ----

// What lives at a sample is kept in the plan, and the driver is told when to look: its answer has
// the same number.
static void put_sample(struct reading *reading, uint64_t time_ns, uint64_t number)
{
	struct replay_plan *plan = reading->plan;

	if (reading->samples >= REPLAY_RING_SAMPLES)
		return;
	plan->samples[reading->samples] = (struct replay_plan_sample){
		.time_ns = time_ns,
		.number = number,
		.live_bytes = reading->live_bytes,
		.live_count = reading->live_count,
	};
	put(reading,
	    &(struct replay_ring_record){ .op = REPLAY_RING_SAMPLE, .slot = reading->samples++ });
	plan->samples_count = reading->samples;
	ASSERT(plan->samples_count <= REPLAY_RING_SAMPLES);
}

// How many events were over at a snapshot of the recording. One that was taken before memory was
// given back was taken inside of a free, which stands before it and was not over.
static uint64_t events_before(const struct trace_snapshot *snapshot)
{
	bool inside = snapshot->reason == TRACE_SNAPSHOT_RELEASE;

	return snapshot->began > inside ? snapshot->began - inside : 0;
}

// Where the recording has a snapshot of resident memory before this event, a sample is taken too,
// so that both can be compared. Of more than SAMPLES_BY_SNAPSHOT snapshots some are passed over: of
// a thousand each sixth is taken.
static void sample_with_snapshots(struct reading *reading, const struct trace_event *event)
{
	const struct reader *reader = reading->plan->reader;
	uint32_t count = reader_snapshots_count(reader);
	uint32_t step = count / SAMPLES_BY_SNAPSHOT + 1;

	if (reading->first)
		return;
	for (; reading->snapshot < count; reading->snapshot += step) {
		const struct trace_snapshot *snapshot = reader_snapshot(reader, reading->snapshot);

		uint64_t before = events_before(snapshot);

		if (snapshot->process != reading->plan->process || before == 0)
			continue;
		if (before > event->number)
			return;
		put_sample(reading, snapshot->time_ns, before - 1);
	}
}

// Spread by time and by events, so that a burst and a long pause both have some; the peak has one
// in any case, and so has the end.
static void sample(struct reading *reading, const struct trace_event *event)
{
	struct replay_plan *plan = reading->plan;
	uint64_t span_ns = plan->last_ns - plan->first_ns;

	if (reading->first && reading->samples++ == 0)
		put(reading, &(struct replay_ring_record){ .op = REPLAY_RING_SAMPLE });
	if (reading->first)
		return;
	if (event->time_ns < reading->next_ns && event->number < reading->next_number &&
	    event->number != plan->peak_number && event->number + 1 < plan->last_number)
		return;
	if (event->time_ns >= reading->next_ns)
		reading->next_ns = event->time_ns + span_ns / SAMPLES_BY_TIME + 1;
	if (event->number >= reading->next_number)
		reading->next_number = event->number + plan->last_number / SAMPLES_BY_EVENT + 1;
	put_sample(reading, event->time_ns, event->number);
}

// ---- reading ----

static bool is_mine(const struct reading *reading, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(reading->plan->reader, event->thread);

	return thread && event->thread < reading->plan->threads_count &&
	       thread->process == reading->plan->process &&
	       ((event->kind >= TRACE_MALLOC && event->kind <= TRACE_FAILED) ||
		event->kind == TRACE_BEFORE);
}

// Begin to fetch from memory what these events will begin and end.
static void expect(const struct reading *reading, const struct trace_event *events, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		blocks_expect(&reading->blocks, events[i].address);
		if (events[i].kind == TRACE_REALLOC)
			blocks_expect(&reading->blocks, events[i].old_address);
	}
}

// The first reading also finds the span of time and of numbers, which the second needs from its
// beginning to spread its samples.
static void take_event(struct reading *reading, const struct trace_event *event)
{
	struct replay_plan *plan = reading->plan;

	reading->number = event->number;
	if (reading->first) {
		if (!plan->last_number)
			plan->first_ns = event->time_ns;
		plan->last_ns = event->time_ns;
		plan->last_number = event->number + 1;
	}
	sample_with_snapshots(reading, event);
	add_event(reading, event);
	sample(reading, event);
	end_thread(reading, event);
}

static void read_events(struct reading *reading, struct progress *progress)
{
	struct replay_plan *plan = reading->plan;
	struct reader_runs runs = { .reader = plan->reader, .progress = progress };

	reader_rewind(plan->reader);
	while (!reading->stopped && reader_runs_next(&runs) != READER_END) {
		if (runs.count == 0 || !is_mine(reading, runs.events))
			continue;
		expect(reading, runs.events, runs.count);
		for (uint32_t i = 0; i < runs.count; i++)
			take_event(reading, &runs.events[i]);
	}
}

static void clean_up(struct reading *reading)
{
	blocks_fini(&reading->blocks);
	MEM_FREE(reading->spare, reading->halves, reading->numbers);
}

// Both readings begin with the same state, so they come to the same slots and numbers.
static struct reading begin_reading(struct replay_plan *plan, replay_plan_put *given, void *context)
{
	for (size_t i = 0; i < plan->threads_count; i++)
		plan->threads[i].running = false;
	return (struct reading){
		.plan = plan,
		.put = given,
		.context = context,
		.halves = mem_alloc(plan->threads_count + 1, sizeof(struct half)),
		.numbers = mem_alloc(plan->threads_count + 1, sizeof(uint16_t)),
		.next_ns = plan->first_ns,
	};
}

// How many threads make calls at one time, by their first and last ones.
static bool count_put(void *context, const struct replay_ring_record *record)
{
	uint32_t *most = context;

	if (record->thread >= *most)
		*most = record->thread + 1u;
	return *most <= REPLAY_RING_THREADS;
}

// Threads without numbers that could be given back: a stack of the driver's each.
enum { AT_ONCE_THREADS = 64 };

void replay_plan_init(struct replay_plan *plan, struct reader *reader, process_id process,
		      bool one_thread)
{
	*plan = (struct replay_plan){
		.reader = reader,
		.process = process,
		.one_thread = one_thread,
		.threads_count = reader_threads_count(reader),
	};
	plan->threads = mem_alloc(plan->threads_count + 1, sizeof *plan->threads);
}

void replay_plan_fini(struct replay_plan *plan)
{
	mem_free(plan->threads);
	map_fini(&plan->undone);
	*plan = (struct replay_plan){ 0 };
}

// The end is a record, too, so the driver always gets one.
static bool read_all(struct replay_plan *plan, bool first, replay_plan_put *given, void *context,
		     struct progress *progress)
{
	struct reading reading = begin_reading(plan, given, context);
	bool stopped;

	reading.first = first;
	if (first)
		lives_find_undone(plan->reader, &plan->undone, progress);
	read_events(&reading, progress);
	put(&reading, &(struct replay_ring_record){ .op = REPLAY_RING_END });
	stopped = reading.stopped;
	clean_up(&reading);
	plan->looked_ahead |= !stopped;
	return !stopped;
}

bool replay_plan_is_simple(const struct replay_plan *plan)
{
	return plan->one_thread || plan->threads_count <= AT_ONCE_THREADS;
}

bool replay_plan_look_ahead(struct replay_plan *plan, struct progress *progress, struct err *err)
{
	if (!plan->looked_ahead)
		read_all(plan, true, NULL, NULL, progress);
	if (plan->calls == 0)
		return err_set(err, ERR_FORMAT, "the process made no calls on malloc");
	if (plan->one_thread || plan->threads_count < REPLAY_RING_THREADS)
		return true;
	return replay_plan_read(plan, count_put, &plan->threads_most, NULL) ||
	       err_set(err, ERR_LIMIT,
		       "more than %d threads make calls at one time (try: --threads one)",
		       REPLAY_RING_THREADS);
}

bool replay_plan_read(struct replay_plan *plan, replay_plan_put *given, void *context,
		      struct progress *progress)
{
	ASSERT(plan->looked_ahead || replay_plan_is_simple(plan));
	return read_all(plan, !plan->looked_ahead, given, context, progress);
}
