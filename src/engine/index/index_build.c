// The build of an index: from the trace to the files, in one pass.
//
// One thread reads ahead (index_ahead), this one gives each event to the pairing (index_pair), a
// third writes (index_feed). Here is what joins them: the memory is divided among the kinds of
// allocations, the table of live blocks and the postings; every now and then the state is saved
// (index_work), so that a build that is killed goes on from there; a trace that is still being
// written is waited for. At the end the raw numbers of steps become final.
//
// With 256 MiB and 100,000 stacks of two sizes each, what asking takes (index_memory_suffices) is
// set aside first. Of the rest, live blocks may have up to half, at 16 bytes each; when there are
// more, pairing goes through temporary files.
#include "base/mem.h"
#include "engine/index/index_work.h"
#include "engine/replay/lives.h"
#include "os/file.h"
#include "os/now.h"
#include "trace/effect.h"

#include <errno.h>
#include <stdio.h>

enum {
	EXPECT_EVENTS = 24, // ahead of the pairing, see live_table_expect
	BATCH_EVENTS = 1 << 10,
	LOOK_EVERY = 1 << 4, // batches between two looks at the progress bar
	SPACE_NONE = UINT32_MAX,
};

struct index_shape index_shape_for(uint64_t memory_bytes)
{
	struct index_shape shape = {
		.block_log2 = 16,
		.long_log2 = 17,
		.snapshot_steps = 1 << 18,
		.snapshot_ratio = 2,
		.level_log2 = 8,
		.chunk_log2 = 22,
		.skip_log2 = 10,
		.stretch_log2 = 15,
		.busy_log2 = 7,
		.sparse_log2 = 12,
		.short_steps = 1 << 20,
	};

	// A chunk of postings takes 8 bytes a step, and should take less than a seventh.
	while (shape.chunk_log2 > shape.block_log2 &&
	       UINT64_C(64) << shape.chunk_log2 > memory_bytes)
		shape.chunk_log2--;
	ASSERT(shape.chunk_log2 >= shape.block_log2 && shape.long_log2 >= shape.block_log2);
	return shape;
}

const struct index_shape index_shape_tiny = {
	.block_log2 = 6,
	.long_log2 = 5,
	.snapshot_steps = 200,
	.snapshot_ratio = 1,
	.level_log2 = 3,
	.chunk_log2 = 9,
	.skip_log2 = 2,
	.stretch_log2 = 4,
	.busy_log2 = 5,
	.sparse_log2 = 2,
	.short_steps = 100,
};

enum half_state { HALF_NONE, HALF_ENDED, HALF_UNDONE };

// The first half of a realloc: of one that will fail, nothing happens.
// A realloc of two events: the first half frees the old address, the second allocates the new one
// or says that nothing came of it. Which it will be is known only then; a build that knows
// already (begin_knowing) leaves the first half of a failed one out.
static void add_half(struct index_work *work, const struct trace_event *event, uint32_t space)
{
	bool undone = map_find(&work->undone, event->number) != NULL;
	uint64_t step = index_pair_raw(&work->pair);

	ASSERT(event->thread < work->threads_count);
	if (undone)
		index_pair_nothing(&work->pair);
	else
		index_pair_free(&work->pair, space, event->address, event->thread);
	work->halves[event->thread] = (struct index_half_call){
		.address = event->address,
		.state = undone ? HALF_UNDONE : HALF_ENDED,
		.step = step,
	};
}

// The second half of one that failed.
static void undo(struct index_work *work, const struct trace_event *event)
{
	struct index_half_call *half = &work->halves[event->thread];
	struct index *index = &work->index;

	ASSERT(event->thread < work->threads_count);
	// A half that ended its block at once, in a pass that does not know which reallocs fail:
	// the block is gone from the table. The build begins again and knows then (begin_knowing).
	work->missed |= half->state == HALF_ENDED && half->address == event->address;
	if (half->state == HALF_UNDONE) {
		MEM_ROOM(index->undone, work->undone_capacity, index->undone_count + 1);
		index->undone[index->undone_count++] =
			(struct index_range){ half->step, index_pair_raw(&work->pair) };
	}
	index_pair_nothing(&work->pair);
}

// A heap that the trace has not described, or that is another process's, is odd: moments are
// asked of the trace then.
static uint32_t space_of_heap(struct index_work *work, const struct index_ahead_run *run,
			      heap_id id)
{
	size_t before = work->pair.spaces_count;
	uint32_t space = index_pair_space(&work->pair, run->process, id, run->forked);

	if (work->pair.spaces_count > before) {
		const struct trace_heap *heap;

		index_ahead_rest(&work->ahead);
		heap = reader_heap(work->reader, id);
		work->index.odd |= !heap || heap->process != run->process;
	}
	return space;
}

// Looked up once for each process.
static uint32_t space_of(struct index_work *work, const struct index_ahead_run *run)
{
	uint32_t *space = &work->space_of[run->process];

	ASSERT(run->process < work->processes_count);
	if (*space == SPACE_NONE)
		*space = index_pair_space(&work->pair, run->process, 0, run->forked);
	return *space;
}

static void destroy(struct index_work *work, uint32_t space)
{
	uint64_t first, count = index_pair_destroy(&work->pair, space, &first);
	struct index *index = &work->index;

	if (count == 0)
		return;
	*MEM_ADD(index->destroys, index->destroys_count, work->destroys_capacity) =
		(struct index_range){ first, first + count };
}

// An event that is not plain.
// The order is that of all who follow lives of blocks (trace/effect.h): what ends, what begins,
// what is undone.
static void add_event(struct index_work *work, const struct index_ahead_run *run,
		      const struct trace_event *event, uint32_t cell)
{
	struct index_half_call *half = &work->halves[run->thread];
	struct index_pair *pair = &work->pair;
	uint32_t space = event->heap ? space_of_heap(work, run, event->heap) : space_of(work, run);
	unsigned effect = effect_of(event->kind);

	vm_lives_add_event(&work->vm, event, run->process, index_pair_raw(pair));
	work->index.calls += trace_kind_is_call(event->kind);
	if (trace_kind_is_pool(event->kind))
		work->index.odd |= event->heap == 0;
	if (effect & EFFECT_HALF) {
		add_half(work, event, space);
		return;
	}
	if (effect & EFFECT_ENDS)
		index_pair_free(pair, space, effect_ended(event), event->thread);
	if (effect & EFFECT_BEGINS)
		index_pair_alloc(pair, space, event->address, cell);
	if (effect & EFFECT_UNDOES)
		undo(work, event);
	else if (effect & EFFECT_DESTROYS)
		destroy(work, space);
	else if (!(effect & (EFFECT_ENDS | EFFECT_BEGINS)))
		index_pair_nothing(pair);
	if (effect & EFFECT_CALL)
		half->state = HALF_NONE;
}

// A block of malloc begins or ends.
static void add_plain(struct index_work *work, const struct index_ahead_run *run, uint64_t number,
		      const struct index_ahead_event *event)
{
	struct index_pair *pair = &work->pair;
	uint32_t space = space_of(work, run);

	work->index.calls++;
	if (event->what == INDEX_AHEAD_BEGINS) {
		vm_lives_add_begin(&work->vm, number, event->address, run->process,
				   index_pair_raw(pair));
		index_pair_alloc(pair, space, event->address, event->cell);
	} else {
		index_pair_free(pair, space, event->address, run->thread);
	}
	work->halves[run->thread].state = HALF_NONE;
}

// A process that ends twice is damage: the first end counts, and moments are asked of the trace.
static void end_process(struct index_work *work, const struct trace_note *note)
{
	struct index_exit *exit = &work->index.exits[note->process];
	uint64_t step;

	ASSERT(note->process < work->processes_count);
	index_pair_at(&work->pair, note->time_ns, UINT64_MAX);
	step = index_pair_exit(&work->pair, note->process);
	vm_lives_add_note(&work->vm, note, step);
	work->index.odd |= exit->step != WINDOW_NEVER;
	if (exit->step != WINDOW_NEVER)
		return;
	exit->step = step;
	exit->time_ns = note->time_ns;
	exit->kind = reader_process(work->reader, note->process)->exit == TRACE_EXIT_EXEC
			     ? WINDOW_END_EXEC
			     : WINDOW_END_EXIT;
}

// Marks get raw edges, which finalize makes final.
static void add_note(struct index_work *work, const struct trace_note *note)
{
	struct index *index = &work->index;

	work->index.duration_ns = note->time_ns;
	if (note->kind == TRACE_NOTE_PROCESS_END && note->process < work->processes_count) {
		end_process(work, note);
		return;
	}
	vm_lives_add_note(&work->vm, note, index_pair_raw(&work->pair));
	if (note->kind != TRACE_NOTE_MARK)
		return;
	index->marks = mem_resize(index->marks, index->marks_count + 1, sizeof *index->marks);
	index->marks[index->marks_count++] = (struct window_mark){
		.name = mem_copy_text(note->text),
		.process = note->process,
		.thread = note->thread,
		.time_ns = note->time_ns,
		.edge = index_pair_raw(&work->pair),
	};
}

// ---- memory ----

// Measured: 28 MiB of buffers, 64 bytes a stack, 72 a site, 64 a row, and 44 a kind. 700,000 stacks
// that all allocate, with 2,000,000 kinds, need 28 + 134 + 84 = 246 MiB, just within 256. Of a
// compiler's 1,200,000 stacks 167,000 allocate, of 195,000 kinds: 28 + 73 + 22 + 8 = 131. Of 97
// processes that share 543,000 stacks there are 1,210,000 sites and as many rows, of 1,850,000
// kinds: 28 + 33 + 157 + 78 = 296 (up to 276 were seen with rows by stack).
uint64_t index_memory_need(uint64_t stacks, uint64_t sites, bool one_process, uint64_t kinds)
{
	enum {
		BASE = 28 << 20,
		STACK_BYTES = 64,
		SITE_BYTES = 72,
		ROW_BYTES = 64,
		KIND_BYTES = 44
	};

	// A stack of several threads is several sites but one row; one of several processes is
	// several rows.
	uint64_t rows = one_process && sites > stacks ? stacks : sites;

	return BASE + stacks * STACK_BYTES + sites * SITE_BYTES + rows * ROW_BYTES +
	       kinds * KIND_BYTES;
}

bool index_memory_refuse(uint64_t memory_bytes, uint64_t need_bytes, uint64_t stacks,
			 uint64_t kinds, struct err *err)
{
	return err_set(err, ERR_LIMIT,
		       "the trace has %llu stacks and %llu kinds of allocations, too many for "
		       "%llu MiB of memory (try: --memory %lluM)",
		       (unsigned long long)stacks, (unsigned long long)kinds,
		       (unsigned long long)(memory_bytes >> 20),
		       (unsigned long long)(need_bytes >> 20) + 1);
}

static uint64_t need_of(const struct index_ahead_batch *batch)
{
	return index_memory_need(batch->stacks_count, batch->sites_count, batch->one_process,
				 batch->kinds_count);
}

// The rest of the trace is gone through for its kinds alone, so that the figure that is asked for
// is enough, and the same when the index is there; as far as half of the machine's memory goes.
// The last batch; NULL: somebody stopped it.
static const struct index_ahead_batch *count_rest(struct index_work *work,
						  const struct index_ahead_batch *batch)
{
	const struct index_wish *wish = work->wish;
	uint64_t most = mem_of_machine() / 2;

	ASSERT(batch);
	while (batch->item != READER_END && (most == 0 || batch->memory_bytes < most)) {
		if (wish->stop && wish->stop(wish->context))
			return NULL;
		batch = index_ahead_next(&work->ahead);
		progress_update(&work->progress, batch->position);
	}
	index_ahead_rest(&work->ahead);
	return batch;
}

// Divide the memory that there is: what the kinds of allocations do not need, blocks that live may
// have, up to half of it. False if that is next to nothing, or if asking would need more.
// Asked now and then, as the kinds of allocations grow with the trace: by the counts of the batch,
// as who reads ahead finds more meanwhile.
static bool share_memory(struct index_work *work, const struct index_ahead_batch *batch,
			 struct err *err)
{
	enum { BATCHES = 12 << 20, OTHER = 8 << 20 }; // and the files' buffers
	uint64_t memory = work->wish->memory_most;
	uint64_t others = index_feed_bytes(&work->feed) +
			  work->index.vm.lives_count * sizeof *work->index.vm.lives + BATCHES +
			  OTHER;
	uint64_t fixed = batch->memory_bytes + others;
	uint64_t rest = memory > fixed ? memory - fixed : 0;
	uint64_t need;

	if (rest < work->pair.alive_max)
		work->pair.alive_max = rest;
	// Of 256 MiB, with 250 taken by the batch and the counts, 6 are left: less than a
	// thirty-second.
	if (rest >= memory / 32 && need_of(batch) <= memory)
		return true;
	batch = count_rest(work, batch);
	if (!batch)
		return err_set(err, ERR_STOPPED, "interrupted");
	// What the counts may still grow to is not known: as much again is enough. A sixteenth on
	// top is more than the thirty-second that has to be left.
	fixed = batch->memory_bytes + 2 * others;
	fixed += fixed / 16;
	need = need_of(batch);
	ASSERT(need > memory || fixed > memory);
	return index_memory_refuse(memory, need > fixed ? need : fixed, batch->stacks_count,
				   batch->kinds_count, err);
}

// ---- events ----

// The table's slots of the next 24 events are fetched while one is paired: a slot that is not in a
// cache costs some 80 ns, an event that finds it there 10.
struct soon {
	size_t run, event; // that is expected next
	uint32_t done;     // of the run
};

// Begin to fetch what an event some places ahead will need of the table of what lives.
static void expect(const struct index_work *work, const struct index_ahead_batch *batch,
		   struct soon *soon)
{
	const struct index_ahead_run *run = &batch->runs[soon->run];
	const struct index_ahead_event *event = &batch->events[soon->event++];
	uint32_t space = work->space_of[run->process];

	ASSERT(run->process < work->processes_count);
	if (space != SPACE_NONE) {
		index_pair_expect(&work->pair, space, event->address);
		if (event->what >= INDEX_AHEAD_OTHERS &&
		    batch->others[event->what - INDEX_AHEAD_OTHERS].kind == TRACE_REALLOC)
			index_pair_expect(
				&work->pair, space,
				batch->others[event->what - INDEX_AHEAD_OTHERS].old_address);
	}
	if (++soon->done < run->count)
		return;
	soon->done = 0;
	soon->run++;
}

// Where the trace can be read from again.
// One place for each block of the trace: `items` is 0, so going there decodes nothing.
static void add_place(struct index_work *work, const struct reader_place *place)
{
	struct index_places *places = &work->index.places;

	if (places->count > 0 && places->list[places->count - 1].at == place->at)
		return;
	MEM_ROOM(places->list, places->capacity, places->count + 1);
	places->list[places->count] = *place;
	places->list[places->count++].items = 0;
}

// What will be looked up is expected ahead of what is paired, over the borders of runs.
static void add_run(struct index_work *work, const struct index_ahead_batch *batch,
		    const struct index_ahead_run *run, size_t first, struct soon *soon)
{
	// Events of a process that has ended: the trace is damaged, or its processes were numbered
	// wrongly. They are paired all the same, and moments are asked of the trace itself.
	work->index.odd |= work->index.exits[run->process].step != WINDOW_NEVER;
	ASSERT(run->process < work->processes_count && run->thread < work->threads_count);
	ASSERT(first + run->count <= batch->count);
	for (uint32_t i = 0; i < run->count; i++) {
		const struct index_ahead_event *event = &batch->events[first + i];

		while (soon->event < batch->count && soon->event < first + i + EXPECT_EVENTS)
			expect(work, batch, soon);
		index_pair_at(&work->pair, run->time_ns, run->number + i);
		if (event->what < INDEX_AHEAD_OTHERS)
			add_plain(work, run, run->number + i, event);
		else
			add_event(work, run, &batch->others[event->what - INDEX_AHEAD_OTHERS],
				  event->cell);
	}
	work->vm.events = run->number + run->count;
	work->index.duration_ns = run->time_ns;
}

static void add_events(struct index_work *work, const struct index_ahead_batch *batch)
{
	struct soon soon = { 0 };
	size_t first = 0;

	ASSERT(batch->count <= BATCH_EVENTS);
	add_place(work, &batch->place);
	for (size_t i = 0; i < batch->runs_count; i++) {
		add_run(work, batch, &batch->runs[i], first, &soon);
		first += batch->runs[i].count;
	}
}

// Arrays by process and thread, for those that the reader has met.
// Called again after each wait for a growing trace, which may have defined more.
static void make_room(struct index_work *work)
{
	uint32_t processes = reader_processes_count(work->reader);
	uint32_t threads = reader_threads_count(work->reader);

	work->space_of = mem_resize(work->space_of, processes + (size_t)1, sizeof *work->space_of);
	work->index.exits =
		mem_resize(work->index.exits, processes + (size_t)1, sizeof *work->index.exits);
	for (uint32_t i = work->processes_count; i < processes; i++) {
		work->space_of[i] = SPACE_NONE;
		work->index.exits[i] = (struct index_exit){ .step = WINDOW_NEVER };
	}
	work->halves = mem_resize(work->halves, threads + (size_t)1, sizeof *work->halves);
	for (uint32_t i = work->threads_count; i < threads; i++)
		work->halves[i] = (struct index_half_call){ 0 };
	work->processes_count = work->ahead.processes_count = processes;
	work->index.exits_count = processes;
	work->threads_count = work->ahead.threads_count = threads;
}

// Whether a trace that is being written has more, or its recorder is done.
// When the recorder is done, the reader is told so, and reads the rest to its end.
static bool wait_for_more(struct index_work *work)
{
	const struct index_wish *wish = work->wish;

	if (!wish->more || work->whole)
		return false;
	if (!wish->more(wish->context)) {
		work->whole = true;
		reader_follow(work->reader, false);
	}
	reader_grown(work->reader);
	make_room(work);
	return true;
}

// Writing the state may take a hundredth of the time.
static void save_now_and_then(struct index_work *work, bool now)
{
	enum { LEAST_NS = 2000000000, SHARE = 100 };
	uint64_t began_ns = now_steady_ns();

	// The state of a build with 2 million live blocks takes 0.3 s to write: then the next is
	// due after 2 + 30 s.
	if (work->due_ns == 0)
		work->due_ns = began_ns + LEAST_NS;
	else
		now |= began_ns >= work->due_ns;
	if (!now)
		return;
	index_work_save(work);
	work->due_ns = now_steady_ns() + LEAST_NS + SHARE * (now_steady_ns() - began_ns);
}

// Between two batches: is there room, is there time?
// A build that was stopped keeps its state, unless it has temporary files, which no state can hold.
static bool look_around(struct index_work *work, const struct index_ahead_batch *batch,
			struct err *err)
{
	const struct index_wish *wish = work->wish;

	progress_update(&work->progress, batch->position);
	if (wish->stop && wish->stop(wish->context)) {
		save_now_and_then(work, true);
		return err_set(err, ERR_STOPPED, "interrupted%s",
			       work->pair.parts ? ""
						: " (what is done is kept: the next question "
						  "goes on from there)");
	}
	save_now_and_then(work, false);
	return share_memory(work, batch, err);
}

// False without an error where the build must begin again (`missed`).
static bool read_trace(struct index_work *work, struct err *err)
{
	uint32_t batches = 0;
	const struct index_ahead_batch *batch;
	bool more;

	do {
		batch = index_ahead_next(&work->ahead);
		add_events(work, batch);
		if (work->missed && !work->knows_undone)
			return false; // begin_knowing
		if (batch->item == READER_NOTE)
			add_note(work, &batch->note);
		more = batch->item != READER_END || wait_for_more(work);
		if ((++batches % LOOK_EVERY == 0 || (more && batch->item == READER_END)) &&
		    !look_around(work, batch, err))
			return false;
	} while (more);
	if (reader_end(work->reader) &&
	    reader_end(work->reader)->duration_ns > work->index.duration_ns)
		work->index.duration_ns = reader_end(work->reader)->duration_ns;
	return true;
}

// Raw steps become final: see index_pair.h.
// Everything that was numbered while blocks that ended unseen could still be found is moved by
// their number. What the pairing fed was final from the start.
static void finalize(struct index_work *work)
{
	struct index *index = &work->index;
	const struct index_pair *pair = &work->pair;

	ASSERT(index->undone_count == 0 || index->undone);
	for (size_t i = 0; i < index->exits_count; i++)
		if (index->exits[i].step != WINDOW_NEVER)
			index->exits[i].step = index_pair_final(pair, index->exits[i].step);
	for (size_t i = 0; i < index->destroys_count; i++) {
		struct index_range *range = &index->destroys[i];
		uint64_t count = range->to - range->from;

		range->from = index_pair_final(pair, range->from);
		range->to = range->from + count;
	}
	for (size_t i = 0; i < index->undone_count; i++) {
		index->undone[i].from = index_pair_final(pair, index->undone[i].from);
		index->undone[i].to = index_pair_final(pair, index->undone[i].to);
	}
	for (size_t i = 0; i < index->marks_count; i++)
		index->marks[i].edge = index_pair_final_edge(pair, index->marks[i].edge);
	for (size_t i = 0; i < index->vm.lives_count; i++) {
		struct plain_life *life = &index->vm.lives[i];

		life->begin = index_pair_final(pair, life->begin);
		if (life->end != WINDOW_NEVER)
			life->end = index_pair_final(pair, life->end);
		if (life->exit != WINDOW_NEVER)
			life->exit = index_pair_final(pair, life->exit);
	}
	index->orphans = pair->orphans;
	index->inherited = pair->inherited;
	index->lost = pair->lost;
	index->never_count = pair->never_count;
	// What is known of damage hangs on how far a trace was read.
	index->odd |= reader_skipped(work->reader) > 0 || reader_unknown(work->reader) > 0 ||
		      (reader_end(work->reader) && !reader_sound(work->reader));
}

// The index is of what was read: who writes the trace may have written more since.
static bool identify_read(struct index_work *work, struct err *err)
{
	const struct reader *reader = work->reader;
	struct index_identity *identity = &work->index.identity;

	if (reader_end(reader))
		return index_identify(identity, work->trace_path, reader, UINT64_MAX, err);
	if (!index_identify(identity, work->trace_path, reader, reader_position(reader), err))
		return false;
	identity->duration_ns = UINT64_MAX;
	return true;
}

// `head` is written last: an index without it is none, whatever was written before.
static bool build_all(struct index_work *work, struct err *err)
{
	struct index *index = &work->index;
	const struct index_wish *wish = work->wish;
	bool ok;

	ASSERT(work->reader && work->trace_path);
	progress_begin(&work->progress, wish->progress, "indexing", reader_bytes(work->reader));
	index_ahead_start(&work->ahead, work->reader, &index->cells, BATCH_EVENTS);
	make_room(work);
	ok = read_trace(work, err);
	index_ahead_finish(&work->ahead);
	ok = ok && index_pair_settle(&work->pair, wish->stop, wish->context, err);
	index_feed_finish(&work->feed);
	progress_end(&work->progress);
	if (!ok)
		return false;
	finalize(work);
	reader_damage(work->reader, &index->damage);
	index->steps_end = work->store.step;
	index->peak = work->store.peak;
	index->peak_edge = work->store.peak_edge;
	index_store_over(&work->store);
	cells_drop(&index->cells);
	ok = index_pair_never(&work->pair, &work->store, wish->memory_bytes / 3, err) &&
	     index_store_finish(&work->store, err) && identify_read(work, err) &&
	     index_head_write(index, err);
	if (ok)
		file_remove_in(index->directory, "state");
	return ok;
}

// With empty files, or those of a state.
// Blocks that live may have half of the memory at first; share_memory takes from it what the kinds
// need.
static bool open_store(struct index_work *work, bool create, struct err *err)
{
	struct index *index = &work->index;
	enum { LARGE_PAGES_FROM = 128 << 20 }; // bytes that may be used: less is counted finely

	cells_init(&index->cells, work->wish->memory_bytes >= LARGE_PAGES_FROM);
	if (!index_store_open(&work->store, &index->shape, &index->cells, &index->files,
			      index->directory, true, create, err))
		return false;
	index_feed_start(&work->feed, &work->store);
	if (!index_pair_open(&work->pair, &work->feed, &index->cells, index->directory,
			     work->wish->memory_bytes / 2, err))
		return false;
	work->pair.ahead = &work->ahead;
	work->pair.say = work->wish->say;
	work->pair.say_context = work->wish->context;
	work->pair.trace_bytes = reader_bytes(work->reader);
	vm_lives_init(&work->vm, &index->vm, work->reader);
	make_room(work);
	return true;
}

// All but what is the caller's.
static void release(struct index_work *work)
{
	index_ahead_finish(&work->ahead);
	if (work->feed.store)
		index_feed_finish(&work->feed);
	vm_lives_fini(&work->vm);
	index_pair_close(&work->pair);
	index_store_close(&work->store);
	index_close(&work->index);
	MEM_FREE(work->space_of, work->halves);
	map_fini(&work->undone);
	*work = (struct index_work){ .index = { .directory = -1 },
				     .reader = work->reader,
				     .trace_path = work->trace_path,
				     .wish = work->wish };
}

static bool open_directory(struct index_work *work, const char *path, struct err *err)
{
	struct index *index = &work->index;

	index->shape = work->wish->shape;
	index->directory = file_open_folder(path);
	return index->directory >= 0 || err_errno(err, errno, "cannot open %s", path);
}

// From where an earlier build was stopped, if it was one of this trace.
// False, with nothing left open: then the build begins at the beginning.
static bool resume(struct index_work *work, const char *path, struct err *err)
{
	char text[80];

	if (work->wish->anew || !open_directory(work, path, err) || !open_store(work, false, err) ||
	    !index_work_load(work, err)) {
		release(work);
		return false;
	}
	snprintf(text, sizeof text, "going on with the index where it was left, at %u %%",
		 (unsigned)(reader_position(work->reader) * 100 / reader_bytes(work->reader)));
	if (work->wish->say)
		work->wish->say(work->wish->context, text);
	vm_lives_keep(&work->vm, &work->index.files.calls);
	return true;
}

// Step 0 does nothing: it is what was there when the recording began.
static bool begin(struct index_work *work, const char *path, struct err *err)
{
	*err = (struct err){ 0 };
	if (!file_make_folder(path, true) && errno != EEXIST)
		return err_errno(err, errno, "cannot make %s", path);
	file_share_folder(path, work->trace_path);
	if (!open_directory(work, path, err))
		return false;
	file_remove_in(work->index.directory, "head");
	file_remove_in(work->index.directory, "state");
	if (!open_store(work, true, err))
		return false;
	reader_rewind(work->reader);
	index_feed_at(&work->feed, 0, UINT64_MAX);
	index_feed_nothing(&work->feed);
	vm_lives_keep(&work->vm, &work->index.files.calls);
	return true;
}

// Begin anew, and know all reallocs that failed: those to come too, so that this is done once.
static bool begin_knowing(struct index_work *work, const char *path, struct err *err)
{
	const struct index_wish *wish = work->wish;
	struct progress progress;

	release(work);
	while (wish->more && wish->more(wish->context)) {
		if (wish->stop && wish->stop(wish->context))
			return err_set(err, ERR_STOPPED, "interrupted");
		reader_grown(work->reader);
	}
	reader_follow(work->reader, false);
	work->whole = true;
	progress_begin(&progress, wish->progress, "reading", reader_bytes(work->reader));
	lives_find_undone(work->reader, &work->undone, &progress);
	progress_end(&progress);
	work->knows_undone = true;
	return begin(work, path, err);
}

// A realloc whose halves are apart and that failed is met in few traces: only then is it built
// twice.
bool index_build(const char *path, const char *trace_path, struct reader *reader,
		 const struct index_wish *wish, struct index_identity *identity, struct err *err)
{
	struct index_work work = { .reader = reader, .trace_path = trace_path, .wish = wish };
	bool ok;

	// Tables that are freed go back to the system, however large: the budget counts them.
	mem_give_back_early();
	work.index.directory = -1;
	reader_follow(reader, wish->more != NULL);
	ok = (resume(&work, path, err) || begin(&work, path, err)) && build_all(&work, err);
	if (work.missed && !work.knows_undone)
		ok = begin_knowing(&work, path, err) && build_all(&work, err);
	reader_follow(reader, false);
	*identity = work.index.identity;
	release(&work);
	return ok || err_wrap(err, "cannot index the trace");
}
