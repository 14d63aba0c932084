// Ends and the times between them and their beginnings.
//
// A tick of the clock holds hundreds of steps, and most blocks live for less: what began at a step
// of the end's own time has a lifetime of 0, and no beginning's time is looked up. For example,
// with a tick each 1,000 steps and lifetimes of 100 it is nine in ten.
//
// Whether lists of long lifetimes will do is a matter of steps, and what is asked for one of time.
// For example, lifetimes of a minute and more of a run of two: a block of steps that is over at
// 90 s can only end what began before 30 s, so if 10 million steps are between, each such lifetime
// is among those of 2^17 steps and more, and even of 2^23. That must hold for each block of the
// window; those of a pause, in which hardly a step was made, may be as long and are in no list.
#include "engine/index/index_ages.h"

#include "base/mem.h"
#include "base/progress.h"
#include "base/rising.h"
#include "engine/index/live_table.h"
#include "os/thread.h"

#include <stdatomic.h>

enum { AHEAD = 16 };

// A block of a list of long lifetimes.
struct piece {
	unsigned class;
	size_t block;
};

struct work {
	const struct index_ages *ages;
	atomic_ullong next; // block, or piece
	atomic_bool over;
	struct piece *pieces; // in place of blocks
	size_t pieces_count, pieces_capacity;
};

struct worker {
	struct work *work;
	unsigned part;
	struct index_block block;
	struct index_clock clock;
	struct index_aged aged;
	struct err err;
	bool failed;
};

// To the one who asked, by the worker's own part, so that two workers need no lock.
static bool hand_over(struct worker *worker)
{
	const struct index_ages *ages = worker->work->ages;
	bool more = ages->take(ages->context, worker->part, &worker->aged);

	worker->aged.count = 0;
	return more;
}

// The caller's value of a cell, for what began at the step.
static const uint32_t *value_of(const struct index_ages *ages, uint32_t cell, uint64_t begin)
{
	return &(begin < ages->from && ages->of_before ? ages->of_before : ages->of)[cell];
}

// How long one lived, if its cell is asked for. What began in the same tick has 0, and its
// beginning is not looked up. *run is the end's time or one before, and moves on to it.
static inline bool take_end(struct worker *worker, struct index_ended ended,
			    const struct index_run **run)
{
	const struct index_ages *ages = worker->work->ages;
	const struct index_block *block = &worker->block;
	uint64_t step = block->first + ended.at, begin_ns;
	uint32_t of = *value_of(ages, ended.cell, ended.begin);
	struct index_aged *aged = &worker->aged;

	if (of == UINT32_MAX || step < ages->from || step >= ages->to)
		return true;
	while (*run + 1 < block->runs + block->runs_count && (*run)[1].at <= ended.at)
		++*run;
	aged->ns[aged->count] = 0;
	if (ended.begin < block->first + (*run)->at) {
		if (!index_clock_time(&worker->clock, ages->index, ended.begin, &begin_ns,
				      &worker->err))
			return false;
		aged->ns[aged->count] = (*run)->value - begin_ns;
	}
	aged->of[aged->count] = of;
	aged->cell[aged->count++] = ended.cell;
	return aged->count < INDEX_AGES_AT_ONCE || hand_over(worker);
}

static struct index_ended near_end(const struct index_block *block, uint32_t i)
{
	struct index_events_near near = block->near[i];

	return (struct index_ended){ block->first + near.begin, near.at, block->ops[near.at] >> 1 };
}

// All that ends in the block.
static bool take_block(struct worker *worker)
{
	const struct index_ages *ages = worker->work->ages;
	const struct index_block *block = &worker->block;
	const struct index_run *run = block->runs;
	struct index_ended soon;

	for (uint32_t i = 0; i < block->near_count; i++) {
		if (i + AHEAD < block->near_count) {
			soon = near_end(block, i + AHEAD);
			mem_expect(value_of(ages, soon.cell, soon.begin));
		}
		if (!take_end(worker, near_end(block, i), &run))
			return false;
	}
	run = block->runs;
	for (uint32_t i = 0; i < block->far_count; i++) {
		if (i + AHEAD < block->far_count)
			mem_expect(value_of(ages, block->far[i + AHEAD].cell,
					    block->far[i + AHEAD].begin));
		if (!take_end(worker, block->far[i], &run))
			return false;
	}
	return true;
}

// One of few blocks is a part of something else.
static void tell_progress(const struct index_ages *ages, uint64_t step)
{
	enum { FEW = 4 };

	if ((ages->to - ages->from) >> ages->index->shape.block_log2 >= FEW)
		progress_tell("counting", step > ages->from ? step - ages->from : 0,
			      ages->to - ages->from);
}

// Blocks are taken as they come, by one thread or two; with `every` only each so manyth, as a
// sample.
static void *do_blocks(void *context)
{
	struct worker *worker = context;
	struct work *work = worker->work;
	const struct index_ages *ages = work->ages;
	unsigned log2 = ages->index->shape.block_log2, every = ages->every ? ages->every : 1;
	uint64_t number;

	while (!atomic_load(&work->over) &&
	       (number = atomic_fetch_add(&work->next, every)) << log2 < ages->to) {
		if (worker->part == 0)
			tell_progress(ages, number << log2);
		if (ages->marks && !ages->marks[number - (ages->from >> log2)])
			continue;
		worker->failed = !index_block_load(ages->index, number, INDEX_ENDS | INDEX_TIMES,
						   &worker->block, &worker->err) ||
				 !take_block(worker);
		if (worker->failed)
			atomic_store(&work->over, true);
	}
	if (!worker->failed && worker->aged.count > 0)
		worker->failed = !hand_over(worker);
	index_block_fini(&worker->block);
	index_clock_fini(&worker->clock);
	return NULL;
}

// ---- long lifetimes ----

// Lists are of the whole trace: what ended outside of the window, or is not asked for, is passed
// over. Times come from the clock, as a list has steps alone.
static bool take_long(struct worker *worker, const struct index_long *one)
{
	const struct index_ages *ages = worker->work->ages;
	struct index *index = ages->index;
	uint32_t cell = live_table_cell(one->begin);
	uint64_t begin = live_table_step(one->begin), begin_ns, end_ns;
	struct index_aged *aged = &worker->aged;
	uint32_t of;

	if (cell >= index->cells.cells_count || begin >= one->end || one->end >= index->steps_end)
		return err_set(&worker->err, ERR_FORMAT, "the index is damaged: lifetimes");
	of = *value_of(ages, cell, begin);
	if (one->end < ages->from || one->end >= ages->to || of == UINT32_MAX)
		return true;
	if (!index_clock_time(&worker->clock, index, begin, &begin_ns, &worker->err) ||
	    !index_clock_time(&worker->clock, index, one->end, &end_ns, &worker->err))
		return false;
	aged->ns[aged->count] = end_ns - begin_ns;
	aged->of[aged->count] = of;
	aged->cell[aged->count++] = cell;
	return aged->count < INDEX_AGES_AT_ONCE || hand_over(worker);
}

static bool take_piece(struct worker *worker, const struct piece *piece, struct index_long *list)
{
	struct index *index = worker->work->ages->index;
	uint32_t count = index_longs_in(index, piece->class, piece->block);

	if (!index_go_on(index, &worker->err) ||
	    !index_longs_read(index, piece->class, piece->block, list, &worker->err))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!take_long(worker, &list[i]))
			return false;
	return true;
}

static void *do_pieces(void *context)
{
	struct worker *worker = context;
	struct work *work = worker->work;
	size_t at_once = (size_t)1 << work->ages->index->shape.sparse_log2;
	struct index_long *list = mem_resize(NULL, at_once, sizeof *list);
	uint64_t number;

	while (!atomic_load(&work->over) &&
	       (number = atomic_fetch_add(&work->next, 1)) < work->pieces_count) {
		worker->failed = !take_piece(worker, &work->pieces[number], list);
		if (worker->failed)
			atomic_store(&work->over, true);
	}
	if (!worker->failed && worker->aged.count > 0)
		worker->failed = !hand_over(worker);
	mem_free(list);
	index_clock_fini(&worker->clock);
	return NULL;
}

// All that lived for as long as is asked for did so for so many steps at least: the fewest over all
// blocks of the window (see above). A block that is over before so much time has passed can end
// none of it.
static uint64_t least_steps(const struct index_ages *ages)
{
	const struct index *index = ages->index;
	const struct index_block_entry *blocks = index->files.blocks;
	unsigned log2 = index->shape.block_log2;
	uint64_t least = UINT64_MAX;
	size_t begins = 0, end = (size_t)((ages->to - 1) >> log2);

	for (size_t at = ages->from >> log2; at <= end; at++) {
		uint64_t over_ns = at + 1 < index->files.blocks_count ? blocks[at + 1].time_ns
								      : index->duration_ns;

		if (over_ns < ages->least_ns)
			continue;
		// It began in one of the blocks before `begins`.
		while (begins < at && blocks[begins].time_ns <= over_ns - ages->least_ns)
			begins++;
		if ((uint64_t)(at - begins) << log2 < least)
			least = (uint64_t)(at - begins) << log2;
	}
	return least;
}

// Which blocks of lists may have what is asked for. False: the lists do not have all of it.
static bool find_pieces(struct work *work)
{
	const struct index_ages *ages = work->ages;
	const struct index_files *files = &ages->index->files;
	uint64_t least = ages->least_ns && ages->from < ages->to ? least_steps(ages) : 0;

	if (least >> ages->index->shape.long_log2 == 0)
		return false;
	for (unsigned class = 0; class < INDEX_LONGS; class ++) {
		const struct index_long_blocks *blocks = &files->longs_blocks[class];
		unsigned log2 = class + ages->index->shape.long_log2 + 1;

		size_t block = RISING_UPTO(blocks->list, blocks->count, end, ages->from);

		if (class + 1 < INDEX_LONGS && log2 < 64 && least >> log2)
			continue;
		for (block -= block > 0;
		     block < blocks->count && blocks->list[block].end < ages->to; block++)
			*MEM_ADD(work->pieces, work->pieces_count, work->pieces_capacity) =
				(struct piece){ class, block };
	}
	return true;
}

// By the lists of long lifetimes where the least that is asked for allows it, else by all ends in
// the window; by a second thread too, if the window is longer than a block.
bool index_ages(const struct index_ages *ages, struct err *err)
{
	struct work work = { .ages = ages, .next = ages->from >> ages->index->shape.block_log2 };
	void *(*run)(void *context) = do_blocks;
	struct worker *workers = mem_alloc(INDEX_AGES_PARTS, sizeof *workers);
	struct thread *thread = NULL;
	bool ok = true;

	ASSERT(ages->from <= ages->to);
	ASSERT(ages->of && ages->take);
	if (find_pieces(&work)) {
		run = do_pieces;
		atomic_store(&work.next, 0);
	}
	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++) {
		workers[part].work = &work;
		workers[part].part = part;
	}
	if ((ages->to - ages->from) >> ages->index->shape.block_log2)
		thread = thread_start(run, &workers[1]);
	run(&workers[0]);
	thread_join(thread);
	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++) {
		if (workers[part].err.kind != ERR_NONE)
			*err = workers[part].err;
		ok = ok && !workers[part].failed;
	}
	MEM_FREE(work.pieces, workers);
	return ok;
}
