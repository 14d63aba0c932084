// Curves from an index: levels and flows by bucket of time, peaks, changes one by one, lifetimes.
//
// The level of everything comes from files of highs: levels0 has an entry for 256 steps, each
// further file one for 4 entries of the file before. A window of 10^9 steps in 1000 buckets has
// 10^6 steps a bucket; the coarsest file with entries of at most a quarter of that is levels4
// (65,536 steps). So 15,000 entries are read, and the few steps at both ends, in place of 10^9.
// What is filtered or grouped comes from postings, or from a scan of the window.
#include "base/mem.h"
#include "base/progress.h"
#include "engine/index/buckets.h"
#include "engine/index/index_ages.h"
#include "engine/index/index_scan.h"
#include "engine/index/index_tables.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdlib.h>

// ---- a list of the window's lifetimes ----

struct collecting {
	struct plain *plain;
	size_t most;
	bool full;
};

// What its process took has no end of its own in a plain list: `end` is never, and `exit` says
// when.
static bool collect_one(void *context, const struct window_allocation *allocation)
{
	struct collecting *collecting = context;
	bool exits = allocation->end_kind == WINDOW_END_EXIT ||
		     allocation->end_kind == WINDOW_END_EXEC;
	struct plain_life life = {
		.begin = allocation->begin,
		.end = exits ? WINDOW_NEVER : allocation->end,
		.exit = exits ? allocation->end : WINDOW_NEVER,
		.begin_ns = allocation->begin_ns,
		.end_ns = allocation->end_ns,
		.exit_ns = allocation->end_ns,
		.cell = plain_cell(collecting->plain, &allocation->cell),
		.end_kind = exits ? WINDOW_END_NEVER : allocation->end_kind,
		.exit_kind = exits ? allocation->end_kind : WINDOW_END_NEVER,
	};

	if (collecting->plain->lives_count >= collecting->most) {
		collecting->full = true;
		return false;
	}
	plain_add(collecting->plain, &life);
	return true;
}

// The part of the memory that lives may take: a list that grows is there twice for a moment, and
// where stacks and kinds take more than half of all, less is left.
static uint64_t share_of_lives(const struct index *index)
{
	enum { SHARE = 4, SHARE_CROWDED = 8 };
	uint64_t need = index_memory_need(index->cells.sites_count, index->cells.sites_count,
					  cells_of_one_process(&index->cells),
					  index->cells.cells_count);

	return need <= index_room(index, 2, 1) ? SHARE : SHARE_CROWDED;
}

// The lifetimes that a query selects, into memory, so that questions about levels can be answered
// from them: a level by lifetime is in no sum.
bool index_collect(struct index *index, struct index_clock *clock, const struct window_query *query,
		   struct plain *plain, struct err *err)
{
	size_t most = index_room(index, share_of_lives(index), sizeof(struct plain_life));
	struct collecting collecting = { plain, most, false };
	struct window_query all = *query;

	index_tables_empty(index->tables);
	all.walk_types = 0;
	plain->duration_ns = index->duration_ns;
	if (!index_walk(index, clock, &all, collect_one, &collecting, NULL, err))
		return false;
	return !collecting.full ||
	       err_set(err, ERR_LIMIT,
		       "more than %zu allocations of these lifetimes in the window (try: a "
		       "narrower --lifetime, or --from and --to)",
		       most);
}

// ---- series ----

struct series {
	struct window *window;
	pthread_mutex_t *lock; // NULL, or what two threads ask the window under
	struct buckets_axis axis;
	struct buckets_row *rows;
	size_t rows_count;
	size_t at; // the bucket that all rows have got to
	// The last step that was shown, if a block ended there; row NULL: none did.
	uint64_t fall_step, fall_bytes;
	struct buckets_row *fall_row;
};

static void note_fall(struct series *series, uint64_t step, uint64_t bytes, struct buckets_row *row)
{
	series->fall_step = step;
	series->fall_bytes = bytes;
	series->fall_row = row;
}

// A step lifts a level of so many bytes, lower than all of its bucket. Between the two steps of a
// realloc it never was that low, but before the first of them.
static void rise(const struct series *series, uint64_t step, struct buckets_row *row,
		 uint64_t bytes)
{
	if (series->fall_row == row && series->fall_step + 1 == step && series->window) {
		if (series->lock)
			pthread_mutex_lock(series->lock);
		if (window_edge_splits(series->window, step))
			bytes += series->fall_bytes;
		if (series->lock)
			pthread_mutex_unlock(series->lock);
	}
	buckets_fell(row, bytes);
}

// Amounts are unsigned: taking away is adding the two's complement, and the level comes out
// right.
static bool series_step(void *context, const struct index_scan_step *step)
{
	struct series *series = context;
	struct buckets_row *row = &series->rows[step->group];
	struct heap_amount level = row->level;

	buckets_go(row, buckets_find(&series->axis, step->time_ns));
	if (step->up && level.bytes < row->open->bytes_low)
		rise(series, step->step, row, level.bytes);
	level.count += step->up ? step->amount.count : 0 - step->amount.count;
	level.bytes += step->up ? step->amount.bytes : 0 - step->amount.bytes;
	if (step->up)
		buckets_set(row, level);
	else
		row->level = level;
	note_fall(series, step->step, step->amount.bytes, step->up || step->exit ? NULL : row);
	return true;
}

// A step of a run may be the first of a realloc's.
static void note_op(struct series *series, const struct index_scan *scan,
		    const struct index_scan_run *run, uint32_t i)
{
	uint32_t cell = run->ops[i] >> 1, group = index_scan_group(scan, cell);

	if (run->ops[i] & 1 && group != WINDOW_SKIP)
		note_fall(series, run->step + i, cells_cell(&scan->index->cells, cell).size,
			  &series->rows[group]);
}

// The level before a step of a run was lower than all of its bucket.
static __attribute__((noinline)) void note_foot(struct series *series,
						const struct index_scan *scan,
						const struct index_scan_run *run, uint32_t i)
{
	uint32_t cell = run->ops[i] >> 1;
	struct buckets_row *row = &series->rows[index_scan_group(scan, cell)];

	if (i > 0)
		note_op(series, scan, run, i - 1);
	rise(series, run->step + i, row,
	     row->level.bytes - cells_cell(&scan->index->cells, cell).size);
}

// All rows go to the next bucket together: then a step asks for no time. Aligned, as the loop is a
// fifth slower where it begins somewhere in a line of the cache.
static __attribute__((aligned(64))) void series_run(void *context, const struct index_scan *scan,
						    const struct index_scan_run *run)
{
	struct series *series = context;
	const struct cells *cells = &scan->index->cells;
	size_t bucket = buckets_find(&series->axis, run->time_ns);

	for (; series->at < bucket; series->at++)
		for (size_t g = 0; g < series->rows_count; g++)
			buckets_go(&series->rows[g], series->at + 1);
	for (uint32_t i = 0; i < run->count; i++) {
		uint32_t cell = run->ops[i] >> 1, group = index_scan_group(scan, cell);

		if (i < run->ahead)
			index_scan_expect(scan, run->ops[i + INDEX_SCAN_AHEAD] >> 1);
		if (group != WINDOW_SKIP &&
		    buckets_move(&series->rows[group], cells_cell(cells, cell).size,
				 run->ops[i] & 1))
			note_foot(series, scan, run, i);
	}
	// Both steps of a realloc have one time: they are in one run but where a block ends.
	if (!((run->step + run->count) << (64 - scan->index->shape.block_log2)))
		note_op(series, scan, run, run->count - 1);
}

// The steps of some buckets, from `first` on and before `end`, which a thread goes through.
struct part {
	struct series series;
	struct index_scan scan;
	size_t first, end;
	struct err err;
	bool ok;
};

// The level that a later part begins with, as it does not know it yet: so high that nothing brings
// it below zero.
static const struct heap_amount unknown_level = { UINT64_C(1) << 62, UINT64_C(1) << 62 };

static void begin_part(struct part *part, const struct window_sums *to,
		       const struct heap_amount *levels)
{
	struct series *series = &part->series;

	ASSERT(part->first < part->end && part->end <= to->count);
	series->rows = mem_alloc(to->groups_count + 1, sizeof *series->rows);
	series->rows_count = to->groups_count;
	series->at = part->first;
	for (size_t g = 0; g < to->groups_count; g++) {
		buckets_begin(&series->rows[g], to->buckets + g * to->count + part->first,
			      levels ? levels[g] : unknown_level);
		series->rows[g].at = part->first;
	}
}

static void *scan_part(void *context)
{
	struct part *part = context;
	const struct buckets_axis until = { .count = part->end };

	part->scan.context = &part->series;
	part->ok = index_scan(&part->scan, &part->err);
	// A clock that is damaged puts steps behind the part, which are then in no bucket of its.
	for (size_t g = 0; part->ok && g < part->series.rows_count; g++)
		if (part->series.rows[g].at >= part->end)
			part->ok = err_set(&part->err, ERR_FORMAT, "the index is damaged: times");
	for (size_t g = 0; part->ok && g < part->series.rows_count; g++)
		buckets_end(&part->series.rows[g], &until);
	return NULL;
}

// The first part of a window that is worth two ends with the bucket that the middle step is in, or
// before it, if that is the last one. For example 60 buckets over 100 million steps, half of which
// are made by the end of bucket 22: the first part is buckets 0 to 22, the other one the rest. So
// no bucket is of both, and both may write to one list; where one bucket has nearly all steps the
// parts are uneven, and nothing is lost but the second thread.
static bool cut(struct part parts[2], struct index_clock *clock)
{
	enum { BLOCKS_MIN = 4 };
	struct err *err = &parts[1].err; // who goes through the steps meets it again
	struct index_scan *scan = &parts[0].scan;
	const struct buckets_axis *axis = &parts[0].series.axis;
	uint64_t steps = scan->to - scan->from, time_ns, edge;
	size_t bucket;

	if (steps >> scan->index->shape.block_log2 < BLOCKS_MIN || axis->count < 2 ||
	    !index_clock_time(clock, scan->index, scan->from + steps / 2, &time_ns, err))
		return false;
	bucket = buckets_find(axis, time_ns) + 1;
	bucket -= bucket == axis->count;
	// The last time that is not in it yet.
	time_ns =
		(uint64_t)((unsigned __int128)(axis->to_ns - axis->from_ns) * bucket / axis->count);
	if (!index_clock_edge(clock, scan->index, axis->from_ns + time_ns, &edge, err) ||
	    edge <= scan->from || edge >= scan->to)
		return false;
	index_scan_prepare(scan);
	parts[1] = parts[0];
	parts[0].scan.to = parts[1].scan.from = edge;
	parts[0].end = parts[1].first = bucket;
	return true;
}

// The later part's buckets, once it is known what they begin with. All figures of a bucket move
// by the same level, since highest, lowest and last are found by differences alone: a level that
// began at 2^62 and was 2^62 + 100 at most was the true one and 100 at most.
static void lift(const struct part parts[2], const struct window_sums *to)
{
	for (size_t g = 0; g < to->groups_count; g++) {
		struct heap_amount level = parts[0].series.rows[g].level;
		struct window_bucket *buckets = to->buckets + g * to->count;

		level.bytes -= unknown_level.bytes;
		level.count -= unknown_level.count;
		for (size_t i = parts[1].first; i < parts[1].end; i++) {
			buckets[i].bytes_peak += level.bytes;
			buckets[i].bytes_low += level.bytes;
			buckets[i].count_peak += level.count;
			buckets[i].bytes_end += level.bytes;
			buckets[i].count_end += level.count;
		}
	}
}

// Both at once, or the whole, if it was not cut.
static bool scan_parts(struct part parts[2], bool two, const struct window_sums *to,
		       struct err *err)
{
	struct thread *thread = NULL;

	if (two)
		begin_part(&parts[1], to, NULL);
	if (two)
		thread = thread_start(scan_part, &parts[1]);
	scan_part(&parts[0]);
	if (two && !thread)
		scan_part(&parts[1]);
	thread_join(thread);
	for (int i = 0; i <= two; i++) {
		if (parts[i].ok)
			continue;
		*err = parts[i].err;
		return false;
	}
	if (two)
		lift(parts, to);
	return true;
}

// The levels at the window's left edge, and on top of these each step of the window, by the time
// that it has. A group without a step keeps its level in all buckets. Two threads go through a
// window of some length, one of them through the later half, without knowing its levels.
bool index_series(struct index *index, struct index_clock *clock, const struct window_query *query,
		  const struct window_sums *to, struct err *err)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct index_groups groups;
	struct part parts[2] = {
		{ .series = { .window = to->window,
			      .lock = &lock,
			      .axis = { query->from_ns, query->to_ns, to->count } },
		  .scan = { .index = index,
			    .groups = &groups,
			    .from = query->from,
			    .to = query->to,
			    .groups_count = (uint32_t)to->groups_count,
			    .visit = series_step,
			    .visit_run = series_run },
		  .end = to->count }
	};
	struct heap_amount *levels;
	bool ok, two = false;

	ASSERT(to->count > 0);
	ASSERT(query->from <= query->to);
	index_groups_init(&groups, index, query);
	levels = index_scan_levels(index, query, query->from, to->groups_count, err);
	ok = levels != NULL;
	if (ok) {
		two = cut(parts, clock);
		begin_part(&parts[0], to, levels);
		ok = scan_parts(parts, two, to, err);
	}
	if (two)
		index_scan_fini(&parts[0].scan);
	MEM_FREE(levels, parts[0].series.rows, parts[1].series.rows);
	index_groups_fini(&groups);
	return ok;
}

// ---- the level of all ----

// An entry of a levels file goes into the bucket of its time, which is that of its last step. Its
// highest, lowest and last level are set one after the other; in which order they were is not
// known, and only the last stays. All three are levels after events.
static void put_level(struct buckets_row *row, const struct buckets_axis *axis,
		      const struct index_level *level)
{
	struct heap_amount high = { level->count_max, level->bytes_max };

	ASSERT(row->open);
	buckets_go(row, buckets_find(axis, level->time_ns));
	buckets_set(row, high);
	buckets_set(row, (struct heap_amount){ level->count_end, level->bytes_min });
	buckets_set(row, (struct heap_amount){ level->count_end, level->bytes_end });
}

// A row that is being filled from levels and from steps.
struct timeline {
	struct window *window;
	uint64_t edge, to; // so far, and in the end
	struct buckets_axis axis;
	struct buckets_row row;
	struct index_scan scan;
	struct index_block block;
};

// Steps by themselves, of everything, from where the line is: as if they were a series of one
// group. The block that was decoded last is kept, for the steps at the other end may be in it.
static bool put_steps(struct index *index, uint64_t to, struct timeline *line, struct err *err)
{
	struct series series = { .window = line->window, .axis = line->axis, .rows = &line->row };
	struct index_scan *scan = &line->scan;
	bool ok;

	if (line->edge >= to)
		return true;
	scan->index = index;
	scan->all = true;
	scan->visit = series_step;
	scan->kept = &line->block;
	scan->from = line->edge;
	scan->to = to;
	scan->context = &series;
	ok = index_scan(scan, err);
	buckets_set(&line->row, line->row.level);
	line->edge = to;
	return ok;
}

// Where the entry of levels0 ends whose steps are those before a multiple of 2^level_log2: there,
// or a step later. `found` is the entry; before the first of all there is none.
static bool entry_end(struct index *index, uint64_t step, struct index_level *found, uint64_t *edge,
		      struct err *err)
{
	uint64_t entry = step >> index->shape.level_log2;
	struct index_level list[PACK_GROUP];

	*found = (struct index_level){ 0 };
	if (entry > 0) {
		if (!index_levels_read(index, 0, entry - 1, list, err))
			return false;
		*found = list[0];
	}
	*edge = step + found->over;
	return *edge <= index->steps_end || index_levels_damaged(err);
}

// Entries of one file, from step to step, both multiples of what an entry has. One that reaches
// over a whole bucket, because little happens, is looked at more closely.
static bool put_levels(struct index *index, unsigned file, uint64_t from, uint64_t to,
		       struct timeline *line, struct err *err)
{
	unsigned log2 = index->shape.level_log2 + file * INDEX_LEVEL_STEP_LOG2;
	struct index_level *list = mem_resize(NULL, PACK_GROUP, sizeof *list);
	uint64_t at = from >> log2, end = to >> log2;
	uint32_t count;
	bool ok = true;

	ASSERT(file < INDEX_LEVELS);
	for (; at < end && ok; at += count) {
		count = index_levels_read(index, file, at, list, err);
		ok = count > 0;
		for (uint32_t i = 0; ok && i < count && at + i < end; i++) {
			uint64_t step = (at + i) << log2, next = step + (UINT64_C(1) << log2);

			if (next + list[i].over > line->to) {
				ok = index_levels_damaged(err);
			} else if (buckets_find(&line->axis, list[i].time_ns) > line->row.at + 1) {
				ok = file ? put_levels(index, file - 1, step, next, line, err)
					  : put_steps(index, next + list[i].over, line, err);
			} else {
				put_level(&line->row, &line->axis, &list[i]);
				line->edge = next + list[i].over;
			}
		}
	}
	mem_free(list);
	return ok;
}

// The coarsest file whose entries are at most a quarter of a bucket.
static unsigned best_file(const struct index *index, uint64_t steps, size_t count)
{
	unsigned file = 0;

	ASSERT(count > 0);
	while (file + 1 < INDEX_LEVELS && index->files.levels_blocks[file + 1].entries > 0 &&
	       steps / count >> (index->shape.level_log2 + (file + 1) * INDEX_LEVEL_STEP_LOG2) >= 4)
		file++;
	return file;
}

static uint64_t round_up(uint64_t value, unsigned log2)
{
	return (value + (UINT64_C(1) << log2) - 1) >> log2 << log2;
}

// The level at an edge: that of the entry before it, and the steps in between.
static bool level_at(struct index *index, uint64_t edge, struct timeline *line,
		     struct heap_amount *level, struct err *err)
{
	unsigned log2 = index->shape.level_log2;
	uint64_t entries = index->files.levels_blocks[0].entries;
	uint64_t entry = edge >> log2 < entries ? edge >> log2 : entries;
	struct index_level found;
	struct buckets_axis axis = line->axis;
	struct window_bucket bucket;
	bool ok;

	if (!entry_end(index, entry << log2, &found, &line->edge, err) ||
	    // Of an edge between the two steps of a realloc the entry has both.
	    (line->edge > edge && !entry_end(index, (entry - 1) << log2, &found, &line->edge, err)))
		return false;
	line->axis = (struct buckets_axis){ 0, 0, 1 };
	buckets_begin(&line->row, &bucket,
		      (struct heap_amount){ found.count_end, found.bytes_end });
	ok = put_steps(index, edge, line, err);
	line->axis = axis;
	*level = line->row.level;
	return ok;
}

// The multiples of 2^level_log2 between which there are whole entries of levels0 for a window. Its
// last step may be the first of a realloc's, which an entry has with the second one.
static bool find_whole(struct index *index, const struct window_query *query, uint64_t *from,
		       uint64_t *to, struct err *err)
{
	unsigned log2 = index->shape.level_log2;
	uint64_t have = index->files.levels_blocks[0].entries << log2, edge;
	struct index_level found;

	*from = round_up(query->from, log2);
	*to = query->to < have ? query->to >> log2 << log2 : have;
	if (*from >= *to)
		return true;
	if (!entry_end(index, *to, &found, &edge, err))
		return false;
	if (edge > query->to)
		*to -= UINT64_C(1) << log2;
	return true;
}

// Steps, then entries of ever coarser files, then of finer ones, then steps.
static bool put_all(struct index *index, unsigned file, const struct window_query *query,
		    struct timeline *line, struct err *err)
{
	uint64_t up[INDEX_LEVELS], down[INDEX_LEVELS], from, to, edge;
	struct index_level found;
	unsigned files = 0;
	bool ok;

	if (!find_whole(index, query, &from, &to, err))
		return false;
	for (; files <= file && from < to; files++) {
		unsigned size = index->shape.level_log2 + files * INDEX_LEVEL_STEP_LOG2;
		uint64_t have = index->files.levels_blocks[files].entries << size;

		up[files] = round_up(from, size);
		down[files] = to >> size << size;
		if (down[files] > have)
			down[files] = have;
		if (up[files] >= down[files])
			break;
	}
	if (files == 0)
		return put_steps(index, query->to, line, err);
	ok = entry_end(index, up[0], &found, &edge, err) && put_steps(index, edge, line, err);
	for (unsigned i = 0; i + 1 < files && ok; i++)
		ok = put_levels(index, i, up[i], up[i + 1], line, err);
	ok = ok && put_levels(index, files - 1, up[files - 1], down[files - 1], line, err);
	for (unsigned i = files - 1; i-- > 0 && ok;)
		ok = put_levels(index, i, down[i + 1], down[i], line, err);
	return ok && put_steps(index, query->to, line, err);
}

// Short windows are read step by step, longer ones from levels (see the example on top).
bool index_timeline(struct index *index, const struct window_query *query,
		    const struct window_sums *to, struct err *err)
{
	struct timeline line = { .window = to->window,
				 .to = query->to,
				 .axis = { query->from_ns, query->to_ns, to->count } };
	uint64_t steps = query->to - query->from;
	struct heap_amount level;
	bool ok;

	ASSERT(to->count > 0);
	ASSERT(query->from <= query->to);
	ok = level_at(index, query->from, &line, &level, err);
	buckets_begin(&line.row, to->buckets, level);
	if (ok && steps / to->count >> index->shape.level_log2 == 0)
		ok = put_steps(index, query->to, &line, err);
	else if (ok)
		ok = put_all(index, best_file(index, steps, to->count), query, &line, err);
	buckets_end(&line.row, &line.axis);
	index_block_fini(&line.block);
	return ok;
}

// ---- the peak of all ----

// The highest level among the steps of [from, to): a timeline of a single bucket.
static bool high_between(struct index *index, uint64_t from, uint64_t to,
			 struct window_bucket *high, struct err *err)
{
	const struct window_query query = { .from = from, .to = to };
	const struct window_sums sums = { .groups_count = 1, .count = 1, .buckets = high };

	return index_timeline(index, &query, &sums, err);
}

// The first or the last beginning among some steps.
struct beginning {
	uint64_t step;
	bool last;
};

static bool note_beginning(void *context, const struct index_scan_step *step)
{
	struct beginning *found = context;

	if (!step->up)
		return true;
	found->step = step->step;
	return found->last;
}

// The first or the last beginning in a stretch of steps, a block at a time from that side: mostly
// it is in the first block that is looked at.
static bool find_beginning(struct index *index, uint64_t from, uint64_t to, struct beginning *found,
			   struct err *err)
{
	struct index_scan scan = {
		.index = index, .all = true, .context = found, .visit = note_beginning
	};
	uint64_t step = UINT64_C(1) << index->shape.block_log2;

	found->step = WINDOW_NEVER;
	while (from < to && found->step == WINDOW_NEVER) {
		scan.from = found->last && to - from > step ? to - step : from;
		scan.to = !found->last && to - from > step ? from + step : to;
		if (!index_scan(&scan, err))
			return false;
		if (found->last)
			to = scan.from;
		else
			from = scan.to;
	}
	return true;
}

// Whether the level was so high already before an edge; *low and *high, between which is the first
// such edge, come closer.
static bool narrow(struct index *index, uint64_t from, uint64_t edge, uint64_t bytes, uint64_t *low,
		   uint64_t *high, struct err *err)
{
	struct window_bucket part;

	ASSERT(*low <= edge && edge < *high);
	if (!high_between(index, from, edge, &part, err))
		return false;
	if (part.bytes_peak < bytes)
		*low = edge + 1;
	else
		*high = edge;
	return true;
}

// The peak is known from a single bucket over the whole window, its edge is searched: of ever
// shorter windows that all begin where the query does, the shortest that reaches the peak ends
// there. A window of 10^9 steps takes 30 such questions, each of which reads some thousand
// entries of levels and decodes a block at either end; two, where the peak is the whole trace's.
bool index_peak_of_all(struct index *index, struct index_clock *clock,
		       const struct window_query *query, struct window_detail *detail,
		       struct err *err)
{
	struct beginning first = { .last = false }, last = { .last = true };
	struct window_bucket all, part;
	uint64_t low = query->from, high = query->to, known = index->peak_edge;

	if (!high_between(index, low, high, &all, err))
		return false;
	if (known < high && known >= low &&
	    !narrow(index, query->from, known, all.bytes_peak, &low, &high, err))
		return false;
	if (known > low && known == high &&
	    !narrow(index, query->from, known - 1, all.bytes_peak, &low, &high, err))
		return false;
	// The first edge that the peak was reached before.
	while (low < high)
		if (!narrow(index, query->from, low + (high - low) / 2, all.bytes_peak, &low, &high,
			    err))
			return false;
	if (!high_between(index, low, low, &part, err))
		return false;
	*detail = (struct window_detail){ .group = detail->group,
					  .peak_bytes = all.bytes_peak,
					  .peak_count = part.count_peak,
					  .most_count = all.count_peak,
					  .peak_edge = low };
	return find_beginning(index, query->from, query->to, &first, err) &&
	       find_beginning(index, query->from, query->to, &last, err) &&
	       (first.step == WINDOW_NEVER ||
		(index_clock_time(clock, index, first.step, &detail->first_ns, err) &&
		 index_clock_time(clock, index, last.step, &detail->last_ns, err)));
}

// ---- flows ----

struct flowing {
	struct buckets_axis axis;
	const struct window_sums *to;
};

static bool flow_step(void *context, const struct index_scan_step *step)
{
	const struct flowing *flowing = context;
	struct window_flow *flow = &flowing->to->flows[step->group * flowing->to->count +
						       buckets_find(&flowing->axis, step->time_ns)];
	struct heap_amount *amount = step->up ? &flow->allocated : &flow->freed;

	if (step->exit)
		return true;
	amount->count++;
	amount->bytes += step->amount.bytes;
	return true;
}

// What began and what a call ended, in the bucket of its time; the level is not needed.
bool index_flows(struct index *index, struct index_clock *, const struct window_query *query,
		 const struct window_sums *to, struct err *err)
{
	struct flowing flowing = { { query->from_ns, query->to_ns, to->count }, to };
	struct index_groups groups;
	struct index_scan scan = { .index = index,
				   .groups = &groups,
				   .from = query->from,
				   .to = query->to,
				   .groups_count = (uint32_t)to->groups_count,
				   .context = &flowing,
				   .visit = flow_step };
	bool ok;

	ASSERT(to->count > 0);
	index_groups_init(&groups, index, query);
	ok = index_scan(&scan, err);
	index_groups_fini(&groups);
	return ok;
}

// ---- changes ----

struct changing {
	bool (*each)(void *context, const struct window_change *change);
	void *context;
	bool stopped;
};

// Ends of a process are many blocks of one size at a step; each is a change of its own for who
// listens.
static bool change_step(void *context, const struct index_scan_step *step)
{
	struct changing *changing = context;
	struct window_change change = { .edge = step->step + 1,
					.time_ns = step->time_ns,
					.bytes = step->amount.bytes / step->amount.count,
					.group = step->group,
					.up = step->up,
					.exit = step->exit };

	for (uint64_t i = 0; i < step->amount.count; i++) {
		change.last = step->last && i + 1 == step->amount.count;
		changing->stopped = !changing->each(changing->context, &change);
		if (changing->stopped)
			return false;
	}
	return true;
}

// What the end of a process ends is told one kind of allocation at a time (single_exits).
bool index_changes(struct index *index, const struct window_query *query,
		   bool (*each)(void *context, const struct window_change *change), void *context,
		   struct err *err)
{
	struct changing changing = { .each = each, .context = context };
	struct index_groups groups;
	struct index_scan scan = { .index = index,
				   .groups = &groups,
				   .from = query->from,
				   .to = query->to,
				   .groups_count = INDEX_GROUP_UNKNOWN,
				   .single_exits = true,
				   .context = &changing,
				   .visit = change_step };
	bool ok;

	ASSERT(each);
	ASSERT(query->from <= query->to);
	index_groups_init(&groups, index, query);
	ok = index_scan(&scan, err);
	index_groups_fini(&groups);
	return ok;
}

// ---- changes, or the levels of 256 steps ----

struct curve {
	struct changing changing;
	bool (*whole)(void *context, const struct window_stretch *stretch);
	uint64_t edge; // so far
	struct index_scan scan;
	struct index_block block;
	uint64_t *exits; // steps of the window, rising
	size_t exits_count, exit;
};

static void find_exits(struct curve *curve)
{
	const struct index *index = curve->scan.index;

	curve->exits = mem_alloc(index->exits_count + 1, sizeof *curve->exits);
	for (size_t i = 0; i < index->exits_count; i++)
		if (index->exits[i].step >= curve->scan.from &&
		    index->exits[i].step < curve->scan.to)
			curve->exits[curve->exits_count++] = index->exits[i].step;
	qsort(curve->exits, curve->exits_count, sizeof *curve->exits, mem_compare_u64);
}

// Whether a process ends between two steps. Asked in rising order.
static bool has_exit(struct curve *curve, uint64_t from, uint64_t to)
{
	while (curve->exit < curve->exits_count && curve->exits[curve->exit] < from)
		curve->exit++;
	return curve->exit < curve->exits_count && curve->exits[curve->exit] < to;
}

// From where the curve is.
static bool show_changes(struct curve *curve, uint64_t to, struct err *err)
{
	bool ok;

	curve->scan.from = curve->edge;
	curve->scan.to = to;
	curve->scan.context = &curve->changing;
	curve->scan.kept = &curve->block;
	ok = curve->edge >= to || curve->changing.stopped || index_scan(&curve->scan, err);
	curve->edge = to;
	return ok;
}

// Entries of the finest levels, from step to step.
static bool show_levels(struct curve *curve, uint64_t from, uint64_t to, struct err *err)
{
	struct index *index = curve->scan.index;
	unsigned log2 = index->shape.level_log2;
	struct index_level *list = mem_resize(NULL, PACK_GROUP, sizeof *list);
	uint64_t at = from >> log2, end = to >> log2;
	uint32_t count;
	bool ok = true;

	for (; ok && at < end && !curve->changing.stopped; at += count) {
		progress_tell("counting", at - (from >> log2), end - (from >> log2));
		count = index_go_on(index, err) ? index_levels_read(index, 0, at, list, err) : 0;
		ok = count > 0;
		for (uint32_t i = 0; ok && i < count && at + i < end; i++) {
			const struct window_stretch stretch = {
				.from = curve->edge,
				.to = ((at + i + 1) << log2) + list[i].over,
				.bytes_low = list[i].bytes_min,
				.bytes_high = list[i].bytes_max,
				.bytes_end = list[i].bytes_end,
			};

			if (stretch.to > index->steps_end)
				ok = index_levels_damaged(err);
			else if (has_exit(curve, stretch.from, stretch.to) ||
				 !curve->whole(curve->changing.context, &stretch))
				ok = show_changes(curve, stretch.to, err);
			else
				curve->edge = stretch.to;
		}
	}
	mem_free(list);
	return ok;
}

// `whole` is asked of each stretch of 256 steps by its lowest and highest level. Where it says
// no, each change of the stretch is shown. So who looks for the times above a bar reads the
// stretches that cross it, and no others. Levels are of everything: with a filter, or where many
// processes end (each end takes blocks away that no step names), all changes are shown.
bool index_curve(struct index *index, const struct window_query *query,
		 bool (*whole)(void *context, const struct window_stretch *stretch),
		 bool (*each)(void *context, const struct window_change *change), void *context,
		 struct err *err)
{
	enum { EXITS_MAX = 64 }; // what each takes away is found by going through all cells
	uint64_t from, to, edge;
	struct index_level found;
	struct index_groups groups;
	struct curve curve = { .changing = { .each = each, .context = context },
			       .whole = whole,
			       .edge = query->from,
			       .scan = { .index = index,
					 .groups = &groups,
					 .from = query->from,
					 .to = query->to,
					 .groups_count = INDEX_GROUP_UNKNOWN,
					 .single_exits = true,
					 .visit = change_step } };
	bool ok;

	ASSERT(whole && each);
	if (!find_whole(index, query, &from, &to, err))
		return false;
	if (from >= to)
		return index_changes(index, query, each, context, err);
	find_exits(&curve);
	index_groups_init(&groups, index, query);
	curve.scan.all = index_is_all(index, query, 0);
	if (curve.exits_count <= EXITS_MAX && curve.scan.all) {
		ok = entry_end(index, from, &found, &edge, err) &&
		     show_changes(&curve, edge, err) && show_levels(&curve, from, to, err) &&
		     show_changes(&curve, query->to, err);
	} else {
		curve.scan.context = &curve.changing;
		ok = index_scan(&curve.scan, err);
	}
	index_groups_fini(&groups);
	index_block_fini(&curve.block);
	mem_free(curve.exits);
	return ok;
}

// ---- lifetimes ----

struct aging {
	const struct cells *cells;
	const struct window_sums *to;
	uint64_t min_ns, max_ns;
	pthread_mutex_t lock; // of what `to` has
};

// Two threads count. What is far apart in memory is looked at before the lock is held.
static bool age_some(void *context, unsigned, const struct index_aged *aged)
{
	enum { AHEAD = 16 };
	struct aging *aging = context;
	size_t classes[INDEX_AGES_AT_ONCE];
	uint64_t sizes[INDEX_AGES_AT_ONCE];
	uint32_t count = 0;

	for (uint32_t i = 0; i < aged->count; i++) {
		if (i + AHEAD < aged->count)
			cells_expect(aging->cells, aged->cell[i + AHEAD]);
		classes[count] =
			aged->of[i] * aging->to->count + window_lifetime_class(aged->ns[i]);
		sizes[count] = cells_cell(aging->cells, aged->cell[i]).size;
		count += aged->ns[i] >= aging->min_ns && aged->ns[i] <= aging->max_ns;
	}
	pthread_mutex_lock(&aging->lock);
	for (uint32_t i = 0; i < count; i++)
		window_add(&aging->to->classes[classes[i]], (struct heap_amount){ 1, sizes[i] });
	pthread_mutex_unlock(&aging->lock);
	return true;
}

// What the end of a process took was not freed, and has no lifetime here.
bool index_lifetimes(struct index *index, struct index_clock *, const struct window_query *query,
		     const struct window_sums *to, struct err *err)
{
	struct aging aging = { .cells = &index->cells,
			       .to = to,
			       .min_ns = query->lifetime_min_ns,
			       .max_ns = UINT64_MAX };
	struct index_ages ages = { .index = index,
				   .from = query->from,
				   .to = query->to,
				   .least_ns = query->lifetime_min_ns,
				   .context = &aging,
				   .take = age_some };
	struct index_groups groups;
	uint32_t *of = mem_alloc_table(index->cells.cells_count, sizeof *of);
	uint8_t *marks;
	bool ok;

	ASSERT(to->count == WINDOW_LIFETIME_CLASSES);
	index_tables_empty(index->tables);
	if (window_by_lifetime(query))
		aging.max_ns = query->lifetime_max_ns;
	index_groups_init(&groups, index, query);
	ok = index_groups_blocks(&groups, &marks, err);
	for (uint32_t id = 0; id < index->cells.cells_count; id++) {
		of[id] = index_group(&groups, id);
		of[id] = of[id] < to->groups_count ? of[id] : UINT32_MAX;
	}
	index_groups_fini(&groups);
	ages.of = of;
	ages.marks = marks;
	pthread_mutex_init(&aging.lock, NULL);
	ok = ok && index_ages(&ages, err);
	pthread_mutex_destroy(&aging.lock);
	MEM_FREE(of, marks);
	return ok;
}
