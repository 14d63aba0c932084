// Cells by lifetime. Sums know nothing of lifetimes, so every end in the window is looked at, and
// everything that lives at its end, by two threads that share the work as it comes.
//
// A lifetime is a difference of times, and times rise with steps. So an end at a time t is of a
// lifetime that is asked for if it began in a stretch of steps, whose edges are those of t less the
// most and t less the least, and they rise with t too. What is compared is steps; no beginning's
// time is looked up, but of those long lifetimes whose blocks do not tell.
//
// For example, a window with `--lifetime 1ms..10ms`. A block is freed at 250 ms: it is counted if
// it began after 240 ms and not after 249 ms. These edges are looked up once for each time that a
// step has, say 81,200 and 88,900, and each end at 250 ms is a comparison: begin >= 81,200 and
// begin < 88,900. The next time is a little later, so its edges are found by going on from these.
//
// The work is a list of jobs, one for a block of steps, a block of a long file, or a stretch of
// `never`. Each thread takes the next job of the list and counts into tables of its own, which
// are added up at the end.
#include "engine/index/index_tally.h"
#include "base/mem.h"
#include "base/rising.h"
#include "engine/index/index_tables.h"
#include "engine/index/live_table.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <string.h>

enum { THREADS = 2, TABLES = 2, RECORDS = 4096, AHEAD = 48 };

enum job_kind { JOB_BLOCK, JOB_LONG, JOB_NEVER };

struct job {
	enum job_kind kind;
	unsigned class;    // JOB_LONG
	uint64_t from, to; // steps of a block, entries; JOB_LONG: `from` is the block of lifetimes
};

// Where what a process had when it ended, or the trace did, must have begun: [from, to).
struct stretch {
	uint64_t from, to;
};

struct work {
	struct index *index;
	const struct window_query *query;
	struct job *jobs;
	size_t jobs_count, jobs_capacity;
	struct stretch *never; // by process; of all others, the last
	size_t processes;
	bool alike; // all of `never` are the same
	atomic_size_t next;
	atomic_bool failed;
};

struct worker {
	struct work *work;
	struct index_tallies *tallies;
	struct index_block block;
	struct index_edges least, most; // of times less the least lifetime, and the most
	struct index_clock clock;
	void *records;
	uint32_t *found; // of a block; see struct finding
	size_t found_capacity;
	struct err err;
};

// ---- counts ----

// Two counts of 32 bits for each cell: of what began before the window, and in it. A count that
// comes round is rare, and noted beside them: 2^32 + 5 allocations are a count of 5 and a wrap.
static void init_tallies(struct index_tallies *tallies, const struct index *index)
{
	uint32_t count = index->cells.cells_count;

	*tallies = (struct index_tallies){ .cells_count = count, .tables = index->tables };
	tallies->ended = index_tables_take(index->tables, count, TABLES * sizeof *tallies->ended);
	tallies->living = tallies->ended + count;
	memset(tallies->ended, 0, (size_t)count * TABLES * sizeof *tallies->ended);
}

void index_tallies_fini(struct index_tallies *tallies)
{
	index_tables_put(tallies->tables, tallies->ended);
	mem_free(tallies->wraps);
	*tallies = (struct index_tallies){ 0 };
}

static void wrap(struct index_tallies *tallies, uint32_t cell, enum window_type type,
		 uint32_t times)
{
	ASSERT(cell < tallies->cells_count && type < WINDOW_TYPES);
	if (!tallies->wraps)
		tallies->wraps = mem_alloc(tallies->cells_count, sizeof *tallies->wraps);
	tallies->wraps[cell][type] += times;
}

static enum window_type type_of(bool ends, bool before)
{
	if (before)
		return ends ? WINDOW_AOFI : WINDOW_AOFO;
	return ends ? WINDOW_AIFI : WINDOW_AIFO;
}

// ---- what ends ----

// Where what ends at a time must have begun.
static bool find_stretch(struct worker *worker, uint64_t time_ns, struct stretch *stretch)
{
	const struct window_query *query = worker->work->query;
	struct index *index = worker->work->index;

	*stretch = (struct stretch){ 0 };
	if (time_ns >= query->lifetime_min_ns &&
	    !index_edges_next(&worker->least, index, time_ns - query->lifetime_min_ns, &stretch->to,
			      &worker->err))
		return false;
	return time_ns <= query->lifetime_max_ns ||
	       index_edges_next(&worker->most, index, time_ns - query->lifetime_max_ns - 1,
				&stretch->from, &worker->err);
}

static inline void count(const struct worker *worker, uint32_t cell, bool before, bool ends)
{
	struct index_tallies *tallies = worker->tallies;
	struct index_tally *tally = &(ends ? tallies->ended : tallies->living)[cell];

	// No branch: which of them it is, nothing predicts.
	if (++tally->count[before] == 0)
		wrap(tallies, cell, type_of(ends, before), 1);
}

// The ends of a block, and how far they are found.
struct finding {
	const struct work *work;
	const struct index_block *block;
	uint32_t near, far; // that come next
	bool behind;        // behind the window, where nothing ended in it
	uint32_t *found;    // cell << 1 | begun before the window
	uint32_t count;
};

// A step, as one of a block: its first at least, and its end at most.
static uint32_t in_block(const struct index_block *block, uint64_t step)
{
	uint64_t at = step > block->first ? step - block->first : 0;

	return at < block->count ? (uint32_t)at : block->count;
}

// Ends before a step of the block, of one time: those that began in a stretch. Nothing predicts
// which did: each is noted at the next free place, and the place is taken by one that did. Of what
// ends behind the window, only that counts which long files do not have.
static void find_of_time(struct finding *finding, struct stretch stretch, uint32_t end)
{
	const struct index_block *block = finding->block;
	uint64_t begin = finding->work->query->from;
	uint32_t from = in_block(block, stretch.from), to = in_block(block, stretch.to);
	uint32_t before = in_block(block, begin), count = finding->count;
	unsigned long_log2 = finding->work->index->shape.long_log2;

	for (; finding->near < block->near_count && block->near[finding->near].at < end;
	     finding->near++) {
		struct index_events_near near = block->near[finding->near];

		finding->found[count] = (block->ops[near.at] & ~1u) | (near.begin < before);
		count += (near.begin >= from) & (near.begin < to);
	}
	for (; finding->far < block->far_count && block->far[finding->far].at < end;
	     finding->far++) {
		const struct index_ended *far = &block->far[finding->far];
		bool is_long = (block->first + far->at - far->begin) >> long_log2 != 0;

		finding->found[count] = far->cell << 1 | (far->begin < begin);
		count += (far->begin >= stretch.from) & (far->begin < stretch.to) &
			 !(finding->behind & is_long);
	}
	finding->count = count;
}

// Those before a step are passed over.
static void pass_over(struct finding *finding, uint32_t at)
{
	const struct index_block *block = finding->block;

	while (finding->near < block->near_count && block->near[finding->near].at < at)
		finding->near++;
	while (finding->far < block->far_count && block->far[finding->far].at < at)
		finding->far++;
}

static bool is_any_before(const struct finding *finding, uint32_t at)
{
	const struct index_block *block = finding->block;

	return (finding->near < block->near_count && block->near[finding->near].at < at) ||
	       (finding->far < block->far_count && block->far[finding->far].at < at);
}

// The ends of a job's steps. Steps of one time are next to each other, so the stretch in which they
// must have begun is found once for all of them. Then what was found is counted.
static bool count_block(struct worker *worker, const struct job *job)
{
	const struct work *work = worker->work;
	struct index_block *block = &worker->block;
	struct finding finding = { .work = work,
				   .block = block,
				   .behind = job->from >= work->query->to };
	const struct index_tally *expected = finding.behind ? worker->tallies->living
							    : worker->tallies->ended;
	uint32_t end;

	if (!index_block_load(work->index, job->from >> work->index->shape.block_log2,
			      INDEX_ENDS | INDEX_TIMES, block, &worker->err))
		return false;
	MEM_ROOM(worker->found, worker->found_capacity, block->count + (size_t)1);
	finding.found = worker->found;
	end = in_block(block, job->to);
	pass_over(&finding, in_block(block, job->from));
	for (uint32_t run = 0; run < block->runs_count && is_any_before(&finding, end); run++) {
		uint32_t next = run + 1 < block->runs_count ? block->runs[run + 1].at : end;
		struct stretch stretch;

		next = next < end ? next : end;
		if (!is_any_before(&finding, next))
			continue;
		if (!find_stretch(worker, block->runs[run].value, &stretch))
			return false;
		if (finding.behind && stretch.to > work->query->to)
			stretch.to = work->query->to;
		find_of_time(&finding, stretch, next);
	}
	for (uint32_t i = 0; i < finding.count; i++) {
		if (i + AHEAD < finding.count)
			mem_expect(&expected[finding.found[i + AHEAD] >> 1]);
		count(worker, finding.found[i] >> 1, finding.found[i] & 1, !finding.behind);
	}
	return true;
}

// ---- what ends later, after many steps ----

// The times that a block's steps may have.
static void bounds_of(const struct index *index, uint64_t step, uint64_t *low, uint64_t *high)
{
	uint64_t number = step >> index->shape.block_log2;

	*low = index->files.blocks[number].time_ns;
	*high = number + 1 < index->files.blocks_count ? index->files.blocks[number + 1].time_ns
						       : UINT64_MAX;
}

// A block of steps has its first step's time, so the lifetime of a record is known within two
// blocks: if both bounds fit, or neither can, that decides. Say block 12 begins at 40 ms, block
// 13 at 42 ms, block 90 at 300 ms and block 91 at 303 ms: what began in block 12 and ended in
// block 90 lived for 258 to 263 ms. For `100ms..1s` that is enough; for `260ms..1s` both times
// are looked up.
static bool is_asked_for(struct worker *worker, uint64_t begin, uint64_t end, bool *asked)
{
	const struct window_query *query = worker->work->query;
	struct index *index = worker->work->index;
	uint64_t begin_low, begin_high, end_low, end_high;

	bounds_of(index, begin, &begin_low, &begin_high);
	bounds_of(index, end, &end_low, &end_high);
	if (begin_high <= end_low && end_low - begin_high >= query->lifetime_min_ns &&
	    end_high - begin_low <= query->lifetime_max_ns) {
		*asked = true;
		return true;
	}
	*asked = false;
	if (end_high - begin_low < query->lifetime_min_ns ||
	    (begin_high <= end_low && end_low - begin_high > query->lifetime_max_ns))
		return true;
	if (!index_clock_time(&worker->clock, index, begin, &begin_low, &worker->err) ||
	    !index_clock_time(&worker->clock, index, end, &end_low, &worker->err))
		return false;
	*asked = end_low - begin_low >= query->lifetime_min_ns &&
		 end_low - begin_low <= query->lifetime_max_ns;
	return true;
}

static bool bad_lifetime(struct worker *worker)
{
	return err_set(&worker->err, ERR_FORMAT, "the index is damaged: a lifetime");
}

// Records of long files have no times: is_asked_for finds out by the blocks of steps, and seldom
// must look at the steps themselves.
static bool count_longs(struct worker *worker, const struct job *job)
{
	const struct work *work = worker->work;
	struct index *index = work->index;
	struct index_long *list = worker->records;
	size_t records = index_longs_in(index, job->class, (size_t)job->from);

	ASSERT(job->class < INDEX_LONGS && records <= (size_t)1 << index->shape.sparse_log2);
	if (!index_longs_read(index, job->class, (size_t)job->from, list, &worker->err))
		return false;
	for (size_t i = 0; i < records; i++) {
		uint64_t begin = live_table_step(list[i].begin);
		uint32_t cell = live_table_cell(list[i].begin);
		bool asked;

		if (i + AHEAD < records &&
		    live_table_cell(list[i + AHEAD].begin) < index->cells.cells_count)
			mem_expect(
				&worker->tallies->living[live_table_cell(list[i + AHEAD].begin)]);
		if (cell >= index->cells.cells_count || begin > list[i].end ||
		    list[i].end >= index->steps_end)
			return bad_lifetime(worker);
		if (list[i].end < work->query->to || begin >= work->query->to)
			continue;
		if (!is_asked_for(worker, begin, list[i].end, &asked))
			return false;
		if (asked)
			count(worker, cell, begin < work->query->from, false);
	}
	return true;
}

// ---- what nothing ends ----

static const struct stretch *stretch_of(const struct work *work, uint32_t cell)
{
	const struct cells *cells = &work->index->cells;
	size_t process = work->processes;

	if (!work->alike)
		process = cells_site(cells, cells_cell(cells, cell).site)->process;
	return &work->never[process < work->processes ? process : work->processes];
}

// What nothing ended is of a lifetime that its process's end, or the trace's, gives it.
static bool count_never(struct worker *worker, const struct job *job)
{
	const struct work *work = worker->work;
	struct index *index = work->index;
	uint64_t *list = worker->records;
	size_t entries = (size_t)(job->to - job->from);

	ASSERT(entries <= RECORDS); // what `records` has room for
	if (!index_never_read(index, job->from, entries, list, &worker->err))
		return false;
	for (size_t i = 0; i < entries; i++) {
		uint64_t begin = live_table_step(list[i]);
		uint32_t cell = live_table_cell(list[i]);
		const struct stretch *stretch;

		if (i + AHEAD < entries &&
		    live_table_cell(list[i + AHEAD]) < index->cells.cells_count)
			mem_expect(&worker->tallies->living[live_table_cell(list[i + AHEAD])]);
		if (cell >= index->cells.cells_count)
			return bad_lifetime(worker);
		stretch = stretch_of(work, cell);
		if (begin < work->query->to && begin >= stretch->from && begin < stretch->to)
			count(worker, cell, begin < work->query->from, false);
	}
	return true;
}

static bool never_stretch(struct work *work, uint64_t time_ns, struct stretch *stretch,
			  struct err *err)
{
	struct worker worker = { .work = work };
	bool ok = find_stretch(&worker, time_ns, stretch);

	if (!ok)
		*err = worker.err;
	index_edges_fini(&worker.least);
	index_edges_fini(&worker.most);
	return ok;
}

// By process: until when what nothing ended is said to have lived.
// A process that has ended takes its blocks at its end; the others' blocks live until the trace
// ends. Mostly there is one process and one answer, and then nothing is looked up by cell.
static bool find_never(struct work *work, struct err *err)
{
	struct index *index = work->index;
	struct stretch *last;
	bool ok;

	work->processes = index->exits_count;
	work->never = mem_alloc(work->processes + 1, sizeof *work->never);
	last = &work->never[work->processes];
	ok = never_stretch(work, index->duration_ns, last, err);
	for (size_t i = 0; ok && i < work->processes; i++) {
		if (index->exits[i].step == WINDOW_NEVER)
			work->never[i] = *last;
		else
			ok = never_stretch(work, index->exits[i].time_ns, &work->never[i], err);
	}
	// Those of no process that is known are none.
	if (ok && work->processes)
		*last = work->never[0];
	work->alike = true;
	for (size_t i = 0; i < work->processes; i++)
		work->alike = work->alike && work->never[i].from == last->from &&
			      work->never[i].to == last->to;
	return ok;
}

// ---- who does what ----

static void add_job(struct work *work, enum job_kind kind, unsigned class, uint64_t from,
		    uint64_t to)
{
	*MEM_ADD(work->jobs, work->jobs_count, work->jobs_capacity) =
		(struct job){ kind, class, from, to };
}

static void add_blocks_of(struct work *work, uint64_t from, uint64_t to)
{
	uint64_t size = UINT64_C(1) << work->index->shape.block_log2;

	for (uint64_t at = from, next; at < to; at = next) {
		next = (at / size + 1) * size;
		next = next < to ? next : to;
		add_job(work, JOB_BLOCK, 0, at, next);
	}
}

// A block is all in the window, or all behind it; one that is both is two jobs.
static void add_blocks(struct work *work)
{
	const struct index *index = work->index;
	uint64_t to = work->query->to, end = to + (UINT64_C(1) << index->shape.long_log2);

	add_blocks_of(work, work->query->from, to);
	add_blocks_of(work, to, end < index->steps_end ? end : index->steps_end);
}

// The first block of lifetimes that does not begin to end before a step.
static size_t longs_at(const struct index_files *files, unsigned class, uint64_t step)
{
	const struct index_long_blocks *blocks = &files->longs_blocks[class];

	return RISING_BELOW(blocks->list, blocks->count, end, step);
}

// Those that began before the window's end, and end in it or behind.
static void add_longs(struct work *work)
{
	const struct index *index = work->index;
	const struct index_files *files = &index->files;

	for (unsigned class = 0; class < INDEX_LONGS; class ++) {
		unsigned log2 = class + index->shape.long_log2 + 1;
		uint64_t to = work->query->to;
		size_t at = longs_at(files, class, to), end = files->longs_blocks[class].count;

		if (class + 1 < INDEX_LONGS && log2 < 63)
			end = longs_at(files, class, to + (UINT64_C(1) << log2));
		for (at -= at > 0; at < end; at++)
			add_job(work, JOB_LONG, class, at, at + 1);
	}
}

// The entries that may have begun in time.
static bool add_never(struct work *work, struct err *err)
{
	struct stretch all = work->never[0];
	uint64_t first, end;

	for (size_t i = 1; i <= work->processes; i++) {
		all.from = work->never[i].from < all.from ? work->never[i].from : all.from;
		all.to = work->never[i].to > all.to ? work->never[i].to : all.to;
	}
	if (all.to > work->query->to)
		all.to = work->query->to;
	if (!index_never_at(work->index, all.from, &first, err) ||
	    !index_never_at(work->index, all.to, &end, err))
		return false;
	for (uint64_t next; first < end; first = next) {
		// Up to a multiple: that is where blocks end.
		next = first - first % RECORDS + RECORDS;
		add_job(work, JOB_NEVER, 0, first, next < end ? next : end);
	}
	return true;
}

static bool do_job(struct worker *worker, const struct job *job)
{
	ASSERT(job->from < job->to);
	switch (job->kind) {
	case JOB_BLOCK:
		return count_block(worker, job);
	case JOB_LONG:
		return index_go_on(worker->work->index, &worker->err) && count_longs(worker, job);
	default:
		return index_go_on(worker->work->index, &worker->err) && count_never(worker, job);
	}
}

// Until there are no more jobs, or one of either thread has failed.
static void *do_jobs(void *context)
{
	struct worker *worker = context;
	struct work *work = worker->work;
	size_t at;

	size_t records = (size_t)1 << work->index->shape.sparse_log2;

	init_tallies(worker->tallies, work->index);
	worker->records =
		mem_resize(NULL, records > RECORDS ? records : RECORDS, sizeof(struct index_long));
	while (!atomic_load(&work->failed) &&
	       (at = atomic_fetch_add(&work->next, 1)) < work->jobs_count)
		if (!do_job(worker, &work->jobs[at]))
			atomic_store(&work->failed, true);
	MEM_FREE(worker->records, worker->found);
	index_block_fini(&worker->block);
	index_edges_fini(&worker->least);
	index_edges_fini(&worker->most);
	index_clock_fini(&worker->clock);
	return NULL;
}

// Adds one thread's counts to the other's. A sum that is smaller than what was added has come
// round.
static void raise_all(struct index_tallies *tallies, struct index_tally *list,
		      const struct index_tally *others, bool ends)
{
	for (uint32_t id = 0; id < tallies->cells_count; id++)
		for (unsigned before = 0; before < 2; before++) {
			list[id].count[before] += others[id].count[before];
			if (list[id].count[before] < others[id].count[before])
				wrap(tallies, id, type_of(ends, before), 1);
		}
}

// The second thread's figures to those of the first.
static void join(struct index_tallies *tallies, const struct index_tallies *others)
{
	ASSERT(tallies->cells_count == others->cells_count);
	raise_all(tallies, tallies->ended, others->ended, true);
	raise_all(tallies, tallies->living, others->living, false);
	for (uint32_t id = 0; others->wraps && id < tallies->cells_count; id++)
		for (unsigned i = 0; i < WINDOW_TYPES; i++)
			if (others->wraps[id][i])
				wrap(tallies, id, i, others->wraps[id][i]);
}

// Jobs are taken from one list, by one thread or two: so neither waits for the other while there
// are any.
static bool do_all(struct work *work, struct index_tallies *tallies, struct err *err)
{
	struct index *index = work->index;
	struct index_tallies others = { 0 };
	struct worker workers[THREADS] = { { .work = work, .tallies = tallies },
					   { .work = work, .tallies = &others } };
	size_t bytes = index->cells.cells_count * TABLES * sizeof *others.ended;
	struct thread *thread = NULL;

	// A second thread needs as much memory again.
	if (work->jobs_count > 1 && bytes < index_room(index, 4, 1))
		thread = thread_start(do_jobs, &workers[1]);
	do_jobs(&workers[0]);
	if (thread)
		thread_join(thread);
	if (thread)
		join(tallies, &others);
	index_tallies_fini(&others);
	for (unsigned i = 0; i < THREADS; i++)
		if (workers[i].err.kind != ERR_NONE)
			*err = workers[i].err;
	return !atomic_load(&work->failed);
}

bool index_tally(struct index *index, const struct window_query *query,
		 struct index_tallies *tallies, struct err *err)
{
	struct work work = { .index = index, .query = query };
	bool ok = find_never(&work, err);

	*tallies = (struct index_tallies){ 0 };
	if (ok) {
		add_blocks(&work);
		add_longs(&work);
		ok = add_never(&work, err) && do_all(&work, tallies, err);
	}
	MEM_FREE(work.jobs, work.never);
	return ok;
}
