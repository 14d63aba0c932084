// Ends and the times between them and their beginnings.
//
// A tick of the clock holds hundreds of steps, and most blocks live for less: what began at a step
// of the end's own time has a lifetime of 0, and no beginning's time is looked up. For example,
// with a tick each 1,000 steps and lifetimes of 100 it is nine in ten.
#include "engine/index/index_ages.h"

#include "base/mem.h"
#include "base/progress.h"
#include "os/thread.h"

#include <stdatomic.h>

enum { AHEAD = 16 };

struct work {
	const struct index_ages *ages;
	atomic_ullong next; // block
	atomic_bool over;
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

static bool hand_over(struct worker *worker)
{
	const struct index_ages *ages = worker->work->ages;
	bool more = ages->take(ages->context, worker->part, &worker->aged);

	worker->aged.count = 0;
	return more;
}

static bool take_block(struct worker *worker)
{
	const struct index_ages *ages = worker->work->ages;
	const struct index_block *block = &worker->block;
	const struct index_run *run = block->runs, *runs_end = run + block->runs_count;
	struct index_aged *aged = &worker->aged;

	for (uint32_t i = 0; i < block->ends_count; i++) {
		const struct index_ended *ended = &block->ends[i];
		uint64_t step = block->first + ended->at, begin_ns;
		uint32_t of = ages->of[ended->cell];

		if (i + AHEAD < block->ends_count)
			mem_expect(&ages->of[ended[AHEAD].cell]);
		if (of == UINT32_MAX || step < ages->from)
			continue;
		if (step >= ages->to)
			break;
		while (run + 1 < runs_end && run[1].at <= ended->at)
			run++;
		aged->ns[aged->count] = 0;
		if (ended->begin < block->first + run->at) {
			if (!index_clock_time(&worker->clock, ages->index, ended->begin, &begin_ns,
					      &worker->err))
				return false;
			aged->ns[aged->count] = run->value - begin_ns;
		}
		aged->of[aged->count] = of;
		aged->cell[aged->count++] = ended->cell;
		if (aged->count == INDEX_AGES_AT_ONCE && !hand_over(worker))
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

static void *do_blocks(void *context)
{
	struct worker *worker = context;
	struct work *work = worker->work;
	const struct index_ages *ages = work->ages;
	unsigned log2 = ages->index->shape.block_log2;
	uint64_t number;

	while (!atomic_load(&work->over) &&
	       (number = atomic_fetch_add(&work->next, 1)) << log2 < ages->to) {
		if (worker->part == 0)
			tell_progress(ages, number << log2);
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

bool index_ages(const struct index_ages *ages, struct err *err)
{
	struct work work = { .ages = ages, .next = ages->from >> ages->index->shape.block_log2 };
	struct worker *workers = mem_alloc(INDEX_AGES_PARTS, sizeof *workers);
	struct thread *thread = NULL;
	bool ok = true;

	ASSERT(ages->from <= ages->to);
	ASSERT(ages->of && ages->take);
	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++) {
		workers[part].work = &work;
		workers[part].part = part;
	}
	if ((ages->to - ages->from) >> ages->index->shape.block_log2)
		thread = thread_start(do_blocks, &workers[1]);
	do_blocks(&workers[0]);
	thread_join(thread);
	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++) {
		if (workers[part].err.kind != ERR_NONE)
			*err = workers[part].err;
		ok = ok && !workers[part].failed;
	}
	mem_free(workers);
	return ok;
}
