// Each event has a step, or two (a realloc): those of its number, which follow one another in the
// order of the trace. So both are gone through once, side by side; where an event is without the
// step that it must have, the index is not this trace's.
#include "engine/index/index_lives.h"

#include "base/mem.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

// The first half of a realloc, until the next call of its thread.
struct half {
	bool open;
	uint64_t address;
};

// Where we are in the index's steps, beside the event that is being read.
struct following {
	struct index *index;
	const struct lives_watcher *watcher;
	struct half *halves; // by thread
	size_t halves_capacity;
	struct index_block block;
	uint64_t block_number; // of the next one
	uint32_t at, run;      // in the block: the next step, and whose number it has
	// The step that was found last.
	uint64_t step, begin;
	uint32_t op;
	struct err *err;
};

bool index_lives_knows(const struct index *index)
{
	return !index->odd && !index->orphans && !index->lost && !index->destroys_count &&
	       !index->undone_count;
}

static bool is_bad(const struct following *follow)
{
	return err_set(follow->err, ERR_FORMAT, "the index is damaged: steps without their events");
}

// Between two blocks who asked may stop it (index_go_on).
static bool load_next(struct following *follow)
{
	ASSERT(follow->block_number <= follow->index->files.blocks_count);
	if (follow->block_number == follow->index->files.blocks_count)
		return is_bad(follow);
	if (!index_go_on(follow->index, follow->err) ||
	    !index_block_load(follow->index, follow->block_number, INDEX_LIVES | INDEX_JUMPS,
			      &follow->block, follow->err))
		return false;
	follow->block_number++;
	follow->at = follow->run = 0;
	return true;
}

// The next step of an event; those of no event are stepped over.
static bool find_step(struct following *follow, uint64_t event)
{
	const struct index_block *block = &follow->block;
	uint64_t number;
	uint32_t at;

	ASSERT(event != UINT64_MAX);
	do {
		if (follow->at == block->count && !load_next(follow))
			return false;
		at = follow->at++;
		while (follow->run + 1 < block->jumps_count &&
		       block->jumps[follow->run + 1].at <= at)
			follow->run++;
		// Step 0 is of no event, and the one after it of event 0: as counting on makes it.
		number = block->jumps[follow->run].value + (at - block->jumps[follow->run].at);
	} while (number < event || number == UINT64_MAX);
	follow->step = block->first + at;
	follow->op = block->ops[at];
	follow->begin = block->begins[at];
	return number == event || is_bad(follow);
}

// What the step says of the block: 0 as `op` is an end of what nothing in the index began (a block
// that a fork left); else the cell that it is of, and the step at which it began. Address and
// thread that end it are the event's.
static bool tell_end(struct following *follow, const struct trace_event *event, unsigned effect)
{
	const struct cells *cells = &follow->index->cells;
	const struct lives_end end = {
		.cause = effect & EFFECT_MOVES ? LIVES_REALLOC : LIVES_FREE,
		.number = event->number,
		.time_ns = event->time_ns,
		.thread = event->thread,
		.stack = event->stack,
	};
	const struct cells_site *site;
	struct lives_block block;
	struct cells_cell cell;

	ASSERT(effect & EFFECT_ENDS);
	if (!find_step(follow, event->number))
		return false;
	if (follow->op == 0)
		return true; // inherited
	if (!(follow->op & 1) || !follow->begin)
		return is_bad(follow);
	cell = cells_cell(cells, follow->op >> 1);
	site = cells_site(cells, cell.site);
	block = (struct lives_block){
		.address = effect_ended(event),
		.size = cell.size,
		.number = follow->begin,
		.process = site->process,
		.thread = site->thread,
		.stack = site->stack,
		.heap = site->heap,
	};
	if (follow->watcher->end)
		follow->watcher->end(follow->watcher->context, &block, &end);
	return true;
}

// A block's number is that of its first step, as with tell_end: so a watcher knows it again.
static bool tell_begin(struct following *follow, const struct trace_event *event, unsigned effect,
		       process_id process, const struct half *half)
{
	struct lives_block block = {
		.address = event->address,
		.size = event->size,
		.time_ns = event->time_ns,
		.process = process,
		.thread = event->thread,
		.stack = event->stack,
		.heap = event->heap,
		.kind = event->kind,
		.moved = effect & EFFECT_MOVES,
	};

	ASSERT(effect & EFFECT_BEGINS);
	if (!find_step(follow, event->number))
		return false;
	if (follow->op < 2 || follow->op & 1)
		return is_bad(follow);
	block.number = follow->step;
	if (effect & EFFECT_ENDS)
		block.old_address = event->old_address;
	else if (block.moved && half->open)
		block.old_address = half->address;
	if (follow->watcher->begin)
		follow->watcher->begin(follow->watcher->context, &block);
	return true;
}

// A realloc ends one block and begins another: its end is told first, as its steps are in that
// order. `half` is remembered until the next call of the thread, whatever that is.
static bool follow_event(struct following *follow, const struct reader *reader,
			 const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(reader, event->thread);
	unsigned effect = effect_of(event->kind);
	struct half *half;

	if (!thread || effect == 0)
		return true;
	half = MEM_REACH(follow->halves, follow->halves_capacity, event->thread);
	if (effect & EFFECT_ENDS && !tell_end(follow, event, effect))
		return false;
	if (effect & EFFECT_BEGINS && !tell_begin(follow, event, effect, thread->process, half))
		return false;
	if (effect & EFFECT_FAILS && follow->watcher->failed)
		follow->watcher->failed(follow->watcher->context, event);
	if (effect & EFFECT_CALL)
		*half = (struct half){ effect & EFFECT_HALF, event->address };
	return true;
}

// The trace is read for what the index does not keep of an event (address, stack, thread), and the
// index says which block each end is of: so no table of what lives is needed.
bool index_lives(struct index *index, struct reader *reader, const struct lives_watcher *watcher,
		 void (*over)(void *context, process_id process), struct progress *progress,
		 struct err *err)
{
	struct following follow = { .index = index, .watcher = watcher, .err = err };
	struct reader_runs runs = { .reader = reader, .progress = progress };
	enum reader_item item = READER_EVENT;
	bool ok = true;

	ASSERT(index_lives_knows(index));
	ASSERT(watcher && over);
	reader_rewind(reader);
	while (ok && item != READER_END) {
		item = reader_runs_next(&runs);
		for (uint32_t i = 0; ok && i < runs.count; i++)
			ok = follow_event(&follow, reader, &runs.events[i]);
		if (item == READER_NOTE && runs.note.kind == TRACE_NOTE_PROCESS_END)
			over(watcher->context, runs.note.process);
	}
	if (ok && !reader_over(reader))
		ok = err_set(err, ERR_STOPPED, "interrupted");
	if (ok)
		over(watcher->context, TRACE_NONE);
	reader_rewind(reader);
	index_block_fini(&follow.block);
	mem_free(follow.halves);
	return ok;
}
