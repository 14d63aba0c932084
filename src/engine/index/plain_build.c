// Builds the list of all lifetimes of a trace in memory, in the simplest way there is.
//
// For small traces it answers at once, and for all others it is what the tests hold the index
// against: so it has one hash table from address to lifetime for each heap, and no other
// cleverness. malloc at step 5 adds lifetime 0 and maps its address to it; free at step 9 ends
// lifetime 0 at 9 and takes the address out. A realloc at step 12 ends one and begins another.
#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "engine/index/plain.h"
#include "engine/replay/lives.h"
#include "engine/space/vm_lives.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

#include <stdlib.h>

// The addresses where blocks live, of one heap of one process: to the index of the life.
struct space_table {
	process_id process;
	heap_id heap;
	struct map live;
};

struct build {
	struct plain *plain;
	struct plain_steps *steps;
	struct reader *reader;
	struct space_table *tables;
	size_t tables_count, tables_capacity;
	struct map table_of;   // process << 32 | heap: table + 1
	struct map *inherited; // by process: addresses of inherited blocks that were freed
	struct map undone;     // first halves of reallocs that failed (lives_find_undone)
	struct vm_lives vm;
};

// Steps begin with 1: step 0 is the edge before all. UINT64_MAX as number: the step is of no
// event.
static uint64_t add_step(struct build *build, uint64_t time_ns, uint64_t number)
{
	struct plain_steps *steps = build->steps;
	size_t before = steps->capacity;

	MEM_ROOM(steps->times_ns, steps->capacity, steps->count + 1);
	if (steps->capacity != before)
		steps->numbers =
			mem_resize(steps->numbers, steps->capacity, sizeof *steps->numbers);
	steps->times_ns[steps->count] = time_ns;
	steps->numbers[steps->count] = number;
	return steps->count++;
}

// Valid until the next call, which may move the tables.
static struct map *table_of(struct build *build, process_id process, heap_id heap)
{
	bool added;
	uint64_t *at = map_put(&build->table_of, (uint64_t)process << 32 | heap, &added);

	if (added) {
		*MEM_ADD(build->tables, build->tables_count, build->tables_capacity) =
			(struct space_table){ .process = process, .heap = heap };
		*at = build->tables_count;
	}
	return &build->tables[*at - 1].live;
}

static process_id process_of(const struct build *build, const struct trace_event *event)
{
	return reader_thread(build->reader, event->thread)->process;
}

// `index`: of the list of lifetimes, which tables have as their values.
static void end_life(struct build *build, size_t index, uint64_t step, uint64_t time_ns,
		     enum window_end kind)
{
	struct plain_life *life = &build->plain->lives[index];

	ASSERT(life->end == WINDOW_NEVER && step > life->begin); // what lives, has not ended
	life->end = step;
	life->end_ns = time_ns;
	life->end_kind = (uint8_t)kind;
}

// A block begins; one that lives there was freed without our seeing it.
static void begin_block(struct build *build, const struct trace_event *event, uint32_t cell)
{
	struct map *live = table_of(build, process_of(build, event), event->heap);
	struct plain_life life = {
		.end = WINDOW_NEVER, .exit = WINDOW_NEVER, .begin_ns = event->time_ns, .cell = cell
	};
	bool added;
	uint64_t *place = map_put(live, event->address, &added);

	if (!added) {
		end_life(build, *place, add_step(build, event->time_ns, event->number),
			 event->time_ns, WINDOW_END_FREE);
		build->steps->lost++;
	}
	life.begin = add_step(build, event->time_ns, event->number);
	*place = plain_add(build->plain, &life);
}

static struct window_cell cell_of(const struct build *build, const struct trace_event *event)
{
	return (struct window_cell){ .process = process_of(build, event),
				     .thread = event->thread,
				     .stack = event->stack,
				     .heap = event->heap,
				     .layer = WINDOW_HEAP };
}

static void allocate(struct build *build, const struct trace_event *event)
{
	struct window_cell cell = cell_of(build, event);

	cell.size = event->size;
	begin_block(build, event, plain_cell(build->plain, &cell));
}

// A free of an address where nothing lives. In a process that was forked it may be a block of its
// parent's, of which the trace has the beginning elsewhere: the first such free of an address is
// counted as inherited, a second one as an orphan. Elsewhere all are orphans.
static void release_unknown(struct build *build, const struct trace_event *event, uint64_t address)
{
	process_id process = process_of(build, event);
	uint64_t step = add_step(build, event->time_ns, event->number);
	struct window_cell cell = cell_of(build, event);
	bool inherited = false;

	if (trace_start_inherits(reader_process(build->reader, process)->start))
		map_put(&build->inherited[process], address, &inherited);
	if (inherited) {
		build->steps->inherited++;
		return;
	}
	cell.orphans = true;
	cell.stack = 0;
	plain_add_orphan(build->plain, step, plain_cell(build->plain, &cell));
}

// `address`: of the block, which for a realloc is the old one.
static void release(struct build *build, const struct trace_event *event, uint64_t address)
{
	struct map *live = table_of(build, process_of(build, event), event->heap);
	uint64_t *place = map_find(live, address);

	if (!place) {
		release_unknown(build, event, address);
		return;
	}
	end_life(build, *place, add_step(build, event->time_ns, event->number), event->time_ns,
		 WINDOW_END_FREE);
	map_remove(live, address);
}

SORT_ORDER(compare_lives, size_t, SORT_BY(*one, *other))

// All blocks of a heap end, in the order in which they began.
static void destroy(struct build *build, const struct trace_event *event)
{
	struct map *live = table_of(build, process_of(build, event), event->heap);
	size_t *list = mem_alloc(live->count + 1, sizeof *list);
	uint64_t address, life;
	size_t at = 0, count = 0;

	while (map_next(live, &at, &address, &life))
		list[count++] = life;
	qsort(list, count, sizeof *list, compare_lives);
	for (size_t i = 0; i < count; i++)
		end_life(build, list[i], add_step(build, event->time_ns, event->number),
			 event->time_ns, WINDOW_END_DESTROY);
	if (count == 0)
		add_step(build, event->time_ns, event->number);
	map_clear(live);
	mem_free(list);
}

// A realloc that is one event both ends and begins: two steps. A realloc in two halves that will
// fail does nothing: its first half would take a block away that goes on living.
static void add_event(struct build *build, const struct trace_event *event)
{
	unsigned effect = effect_of(event->kind);

	build->steps->calls += trace_kind_is_call(event->kind);
	if (effect & EFFECT_HALF && map_find(&build->undone, event->number))
		effect = 0;
	if (effect & EFFECT_ENDS)
		release(build, event, effect_ended(event));
	if (effect & EFFECT_BEGINS)
		allocate(build, event);
	if (effect & EFFECT_DESTROYS)
		destroy(build, event);
	if (!(effect & (EFFECT_ENDS | EFFECT_BEGINS | EFFECT_DESTROYS)))
		add_step(build, event->time_ns, event->number);
}

// What lives in a process now, lives until its end.
static void end_process(struct build *build, const struct trace_note *note)
{
	const struct trace_process *process = reader_process(build->reader, note->process);
	uint64_t step = add_step(build, note->time_ns, UINT64_MAX);

	ASSERT(note->process < reader_processes_count(build->reader));
	for (size_t i = 0; i < build->tables_count; i++) {
		uint64_t address, index;
		size_t at = 0;

		if (build->tables[i].process != note->process)
			continue;
		while (map_next(&build->tables[i].live, &at, &address, &index)) {
			struct plain_life *life = &build->plain->lives[index];

			life->exit = step;
			life->exit_ns = note->time_ns;
			life->exit_kind = process->exit == TRACE_EXIT_EXEC ? WINDOW_END_EXEC
									   : WINDOW_END_EXIT;
		}
		map_clear(&build->tables[i].live);
	}
	map_clear(&build->inherited[note->process]);
}

// A mark has no step: it is at the edge before the next one.
static void add_mark(struct build *build, const struct trace_note *note)
{
	struct plain_steps *steps = build->steps;

	*MEM_ADD(steps->marks, steps->marks_count, steps->marks_capacity) = (struct window_mark){
		.name = mem_copy_text(note->text),
		.process = note->process,
		.thread = note->thread,
		.time_ns = note->time_ns,
		.edge = steps->count,
	};
}

static void build_fini(struct build *build)
{
	for (size_t i = 0; i < build->tables_count; i++)
		map_fini(&build->tables[i].live);
	for (uint32_t i = 0; i < reader_processes_count(build->reader); i++)
		map_fini(&build->inherited[i]);
	MEM_FREE(build->tables, build->inherited);
	MAP_FINI(&build->undone, &build->table_of);
}

// One pass, in which each lifetime is one entry of a list. Duration is the last time that an item
// has, or what the END says, if that is later.
bool plain_build(struct plain *plain, struct plain *vm, struct plain_steps *steps,
		 struct reader *reader, struct progress *progress, bool (*stop)(void *context),
		 void *context)
{
	struct build build = { .plain = plain, .steps = steps, .reader = reader };
	uint32_t processes = reader_processes_count(reader), threads = reader_threads_count(reader);
	struct reader_pass pass;
	bool stopped = false;

	ASSERT(steps->count == 0);
	build.inherited = mem_alloc(processes + (size_t)1, sizeof *build.inherited);
	vm_lives_init(&build.vm, vm, reader);
	add_step(&build, 0, UINT64_MAX);
	lives_find_undone(reader, &build.undone, progress);
	pass = reader_pass_begin(reader, progress);
	while (!stopped && reader_pass_next(&pass) != READER_END) {
		struct trace_event *event = &pass.event;
		const struct trace_note *note = &pass.note;

		if (pass.item == READER_NOTE) {
			vm_lives_add_note(&build.vm, note, steps->count);
			if (note->kind == TRACE_NOTE_PROCESS_END && note->process < processes)
				end_process(&build, note);
			else if (note->kind == TRACE_NOTE_MARK)
				add_mark(&build, note);
			plain->duration_ns = note->time_ns;
		} else if (event->thread < threads &&
			   reader_thread(reader, event->thread)->process < processes) {
			if (event->stack >= reader_stacks_count(reader))
				event->stack = 0;
			vm_lives_add_event(&build.vm, event,
					   reader_thread(reader, event->thread)->process,
					   steps->count);
			add_event(&build, event);
			plain->duration_ns = event->time_ns;
		}
		if (pass.items % READER_PASS_LOOK_EVERY == 0)
			stopped = stop && stop(context);
	}
	if (reader_end(reader) && reader_end(reader)->duration_ns > plain->duration_ns)
		plain->duration_ns = reader_end(reader)->duration_ns;
	vm->duration_ns = plain->duration_ns;
	vm_lives_fini(&build.vm);
	build_fini(&build);
	return !stopped;
}

void plain_steps_fini(struct plain_steps *steps)
{
	for (size_t i = 0; i < steps->marks_count; i++)
		mem_free((char *)(uintptr_t)steps->marks[i].name);
	MEM_FREE(steps->marks, steps->times_ns, steps->numbers);
	*steps = (struct plain_steps){ 0 };
}
