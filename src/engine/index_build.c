#include "base/mem.h"
#include "base/str.h"
#include "engine/index.h"
#include "engine/index_pair.h"
#include "engine/vm_lives.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	EXPECT_EVENTS = 32,  // read ahead of the pairing, see alive_expect
	LOOK_EVERY = 1 << 9, // batches of those between two looks at the progress bar
	SPACE_NONE = UINT32_MAX,
};

// The first half of a realloc whose second half may still come.
struct half_call {
	bool active;
	uint64_t address;
};

struct build {
	struct index index; // what head will say; files are open for writing
	struct index_store store;
	struct index_feed feed;
	struct index_pair pair;
	struct vm_lives vm;
	struct reader *reader;
	const struct index_wish *wish;
	uint32_t *space_of; // malloc's, by process; SPACE_NONE: not yet
	struct half_call *halves;
	uint32_t processes_count, threads_count;
	struct progress progress;
	size_t destroys_capacity;
};

struct index_shape index_shape_for(uint64_t memory_bytes)
{
	struct index_shape shape = {
		.block_log2 = 16,
		.long_log2 = 17,
		.snapshot_steps = 1 << 18,
		.snapshot_ratio = 4,
		.level_log2 = 8,
		.chunk_log2 = 22,
		.skip_log2 = 10,
		.sparse_log2 = 12,
		.short_steps = 1 << 20,
	};

	// A chunk of postings takes 8 bytes a step, and should take an eighth.
	while (shape.chunk_log2 > shape.block_log2 &&
	       UINT64_C(64) << shape.chunk_log2 > memory_bytes)
		shape.chunk_log2--;
	return shape;
}

static uint32_t space_of(struct build *build, process_id process, heap_id heap)
{
	bool forked = reader_process(build->reader, process)->start == TRACE_START_FORK;

	if (heap != 0)
		return index_pair_space(&build->pair, process, heap, forked);
	if (build->space_of[process] == SPACE_NONE)
		build->space_of[process] = index_pair_space(&build->pair, process, 0, forked);
	return build->space_of[process];
}

static void allocate(struct build *build, uint32_t space, const struct trace_event *event,
		     process_id process)
{
	const struct cells_site site = { .process = process,
					 .thread = event->thread,
					 .stack = event->stack,
					 .heap = event->heap };
	uint32_t cell = cells_add_cell(&build->index.cells,
				       cells_add_site(&build->index.cells, &site), event->size);

	index_pair_alloc(&build->pair, space, event->address, cell);
}

static void destroy(struct build *build, uint32_t space)
{
	uint64_t first, count = index_pair_destroy(&build->pair, space, &first);
	struct index *index = &build->index;

	if (count == 0)
		return;
	index->destroys = mem_grow(index->destroys, &build->destroys_capacity,
				   index->destroys_count + 1, sizeof *index->destroys);
	index->destroys[index->destroys_count++] = (struct index_range){ first, first + count };
}

static void add_event(struct build *build, const struct trace_event *event)
{
	process_id process = reader_thread(build->reader, event->thread)->process;
	struct half_call *half = &build->halves[event->thread];
	struct index_pair *pair = &build->pair;
	uint32_t space = space_of(build, process, event->heap);

	index_pair_at(pair, event->time_ns, event->number);
	vm_lives_add_event(&build->vm, event, index_pair_raw(pair));
	switch (event->kind) {
	case TRACE_MALLOC:
	case TRACE_CALLOC:
	case TRACE_ALIGNED:
	case TRACE_HEAP_ALLOC:
	case TRACE_REALLOC_ALLOC:
		allocate(build, space, event, process);
		break;
	case TRACE_FREE:
	case TRACE_HEAP_FREE:
		index_pair_free(pair, space, event->address, event->thread, false);
		break;
	case TRACE_REALLOC:
		index_pair_free(pair, space, event->old_address, event->thread, false);
		allocate(build, space, event, process);
		break;
	case TRACE_REALLOC_FREE:
		index_pair_free(pair, space, event->address, event->thread, true);
		*half = (struct half_call){ true, event->address };
		return;
	case TRACE_REALLOC_UNDO:
		if (half->active && half->address == event->address)
			index_pair_undo(pair, space, event->address, event->thread);
		else
			index_pair_nothing(pair);
		break;
	case TRACE_HEAP_RESET:
	case TRACE_HEAP_DESTROY:
		destroy(build, space);
		break;
	default:
		index_pair_nothing(pair);
		break;
	}
	half->active = false;
}

static void end_process(struct build *build, const struct trace_note *note)
{
	struct index_exit *exit = &build->index.exits[note->process];
	uint64_t step;

	index_pair_at(&build->pair, note->time_ns, UINT64_MAX);
	step = index_pair_exit(&build->pair, note->process);
	vm_lives_add_note(&build->vm, note, step);
	if (exit->step != WINDOW_NEVER)
		return;
	exit->step = step;
	exit->time_ns = note->time_ns;
	exit->kind = reader_process(build->reader, note->process)->exit == TRACE_EXIT_EXEC
			     ? WINDOW_END_EXEC
			     : WINDOW_END_EXIT;
}

static void add_note(struct build *build, const struct trace_note *note)
{
	struct index *index = &build->index;

	build->index.duration_ns = note->time_ns;
	if (note->kind == TRACE_NOTE_PROCESS_END && note->process < build->processes_count) {
		end_process(build, note);
		return;
	}
	vm_lives_add_note(&build->vm, note, index_pair_raw(&build->pair));
	if (note->kind != TRACE_NOTE_MARK)
		return;
	index->marks = mem_resize(index->marks, index->marks_count + 1, sizeof *index->marks);
	index->marks[index->marks_count++] = (struct window_mark){
		.name = mem_copy_text(note->text),
		.process = note->process,
		.thread = note->thread,
		.time_ns = note->time_ns,
		.edge = index_pair_raw(&build->pair),
	};
}

// Divide the memory that was given: what the kinds of allocations do not need, blocks that live may
// have, up to half of it. False if that is next to nothing.
static bool share_memory(struct build *build, struct err *err)
{
	enum { BATCHES = 12 << 20, OTHER = 8 << 20 }; // and the files' buffers
	uint64_t memory = build->wish->memory_bytes;
	uint64_t fixed = cells_bytes(&build->index.cells) + index_store_bytes(&build->store) +
			 build->index.vm.lives_count * sizeof *build->index.vm.lives + BATCHES +
			 OTHER;
	uint64_t rest = memory > fixed ? memory - fixed : 0;

	if (build->wish->alive_max == 0)
		build->pair.alive_max = rest < memory / 2 ? rest : memory / 2;
	if (rest >= memory / 32)
		return true;
	return err_set(
		err, ERR_LIMIT,
		"the trace has %u kinds of allocations so far, too many for %llu MiB of memory "
		"(try: --memory %lluM)",
		build->index.cells.cells_count, (unsigned long long)(memory >> 20),
		(unsigned long long)((fixed * 2 >> 20) + 1));
}

static void expect(struct build *build, const struct trace_event *event)
{
	process_id process = reader_thread(build->reader, event->thread)->process;
	uint32_t space = build->space_of[process];

	if (space == SPACE_NONE || event->heap != 0 || build->pair.parts)
		return;
	index_pair_expect(&build->pair, space, event->address);
	if (event->kind == TRACE_REALLOC)
		index_pair_expect(&build->pair, space, event->old_address);
}

// Up to EXPECT_EVENTS events; fewer where something else comes first, which is returned. What an
// event of virtual memory borrows lives only until the next is read, so it ends the batch too.
static enum reader_item read_batch(struct build *build, struct trace_event *events, size_t *count,
				   struct trace_note *note)
{
	for (*count = 0; *count < EXPECT_EVENTS;) {
		struct trace_event *event = &events[*count];
		enum reader_item item = reader_next(build->reader, event, note);

		if (item != READER_EVENT)
			return item;
		if (event->thread >= build->threads_count ||
		    reader_thread(build->reader, event->thread)->process >= build->processes_count)
			continue;
		if (event->stack >= reader_stacks_count(build->reader))
			event->stack = 0;
		if (event->heap && event->heap >= reader_heaps_count(build->reader))
			event->heap = 0;
		expect(build, event);
		++*count;
		if (event->vm)
			break;
	}
	return READER_EVENT;
}

static bool allocates(const struct trace_event *event)
{
	return event->kind == TRACE_MALLOC || event->kind == TRACE_CALLOC ||
	       event->kind == TRACE_REALLOC;
}

// Each round fetches what the one before made known.
static void expect_cells(const struct build *build, const struct trace_event *events, size_t count)
{
	enum { LARGE = 1 << 15 }; // sites; what is smaller is in the caches
	const struct cells *cells = &build->index.cells;

	if (cells->sites_count < LARGE)
		return;
	for (size_t i = 0; i < count; i++)
		if (allocates(&events[i]))
			cells_expect_stack(cells, events[i].stack);
	for (size_t i = 0; i < count; i++)
		if (allocates(&events[i]))
			cells_expect_site(cells, events[i].stack);
	for (size_t i = 0; i < count; i++)
		if (allocates(&events[i]))
			cells_expect_slot(cells, events[i].stack, events[i].size);
	for (size_t i = 0; i < count; i++)
		if (allocates(&events[i]))
			cells_expect_cell(cells, events[i].stack, events[i].size);
}

static bool read_trace(struct build *build, struct err *err)
{
	struct trace_event events[EXPECT_EVENTS];
	struct trace_note note;
	enum reader_item item;
	uint32_t batches = 0;
	size_t count;

	reader_rewind(build->reader);
	do {
		item = read_batch(build, events, &count, &note);
		expect_cells(build, events, count);
		for (size_t i = 0; i < count; i++)
			add_event(build, &events[i]);
		if (count)
			build->index.duration_ns = events[count - 1].time_ns;
		if (item == READER_NOTE)
			add_note(build, &note);
		if (++batches % LOOK_EVERY != 0)
			continue;
		progress_update(&build->progress, reader_position(build->reader));
		if (build->wish->stop && build->wish->stop(build->wish->context))
			return err_set(err, ERR_LIMIT, "interrupted");
		if (!share_memory(build, err))
			return false;
	} while (item != READER_END);
	if (reader_end(build->reader) &&
	    reader_end(build->reader)->duration_ns > build->index.duration_ns)
		build->index.duration_ns = reader_end(build->reader)->duration_ns;
	return true;
}

// Raw steps become final: see index_pair.h.
static void finalize(struct build *build)
{
	struct index *index = &build->index;
	const struct index_pair *pair = &build->pair;

	for (size_t i = 0; i < index->exits_count; i++)
		if (index->exits[i].step != WINDOW_NEVER)
			index->exits[i].step = index_pair_final(pair, index->exits[i].step);
	for (size_t i = 0; i < index->destroys_count; i++) {
		struct index_range *range = &index->destroys[i];
		uint64_t count = range->to - range->from;

		range->from = index_pair_final(pair, range->from);
		range->to = range->from + count;
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
}

static bool build_all(struct build *build, struct err *err)
{
	struct index *index = &build->index;
	const struct index_wish *wish = build->wish;
	bool ok;

	progress_begin(&build->progress, wish->progress, "indexing", reader_bytes(build->reader));
	ok = read_trace(build, err) &&
	     index_pair_settle(&build->pair, wish->stop, wish->context, err);
	index_feed_finish(&build->feed);
	progress_end(&build->progress);
	if (!ok)
		return false;
	finalize(build);
	index->steps_end = build->store.step;
	index->peak = build->store.peak;
	index->peak_edge = build->store.peak_edge;
	index_store_over(&build->store);
	cells_drop(&index->cells);
	return index_pair_never(&build->pair, &build->store, wish->memory_bytes / 4, err) &&
	       index_store_finish(&build->store, err) && index_head_write(index, err);
}

static bool open_build(struct build *build, const char *path, struct err *err)
{
	struct index *index = &build->index;
	uint64_t alive_max = build->wish->alive_max;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_errno(err, errno, "cannot make %s", path);
	index->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (index->directory < 0)
		return err_errno(err, errno, "cannot open %s", path);
	unlinkat(index->directory, "head", 0);
	cells_init(&index->cells);
	if (alive_max == 0)
		alive_max = build->wish->memory_bytes / 2;
	if (!index_store_open(&build->store, &index->shape, &index->cells, &index->files,
			      index->directory, true, err))
		return false;
	index_feed_start(&build->feed, &build->store);
	if (!index_pair_open(&build->pair, &build->feed, &index->cells, index->directory, alive_max,
			     err)) {
		index_feed_finish(&build->feed);
		return false;
	}
	build->pair.say = build->wish->say;
	build->pair.say_context = build->wish->context;
	build->pair.trace_bytes = reader_bytes(build->reader);
	return true;
}

bool index_build(const char *path, const struct index_identity *identity, struct reader *reader,
		 const struct index_wish *wish, struct err *err)
{
	struct build build = { .reader = reader, .wish = wish };
	bool ok;

	// Tables that are freed go back to the system, however large: the budget counts them.
	mallopt(M_MMAP_THRESHOLD, 1 << 18);
	build.index.identity = *identity;
	build.index.shape = wish->shape;
	build.index.directory = -1;
	build.processes_count = reader_processes_count(reader);
	build.threads_count = reader_threads_count(reader);
	build.space_of = mem_alloc(build.processes_count + (size_t)1, sizeof *build.space_of);
	build.halves = mem_alloc(build.threads_count + (size_t)1, sizeof *build.halves);
	build.index.exits = mem_alloc(build.processes_count + (size_t)1, sizeof *build.index.exits);
	build.index.exits_count = build.processes_count;
	for (uint32_t i = 0; i < build.processes_count; i++) {
		build.space_of[i] = SPACE_NONE;
		build.index.exits[i].step = WINDOW_NEVER;
	}
	vm_lives_init(&build.vm, &build.index.vm, reader);
	ok = open_build(&build, path, err) && build_all(&build, err);
	vm_lives_fini(&build.vm);
	index_pair_close(&build.pair);
	index_store_close(&build.store);
	index_close(&build.index);
	mem_free(build.space_of);
	mem_free(build.halves);
	return ok || err_wrap(err, "cannot index the trace");
}
