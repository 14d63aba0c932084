// Details of rows: their peaks, first and last times, median and 99th percentile of lifetimes.
//
// Sums of a window are differences of two edges; these are not. Peaks of rows of few steps are
// answered from their sites' postings (index_peaks), that of all from levels, the others by one
// scan of the window, in two threads. Lifetimes are another pass, over what ended alone
// (index_ages), in bounded memory (base/ranks.h): where they do not fit, one or two more, of those
// rows that need it. Rows are asked in batches, as many as the memory allows.
//
// For example, rows of two stacks over a window of 10 million steps. Stack A made 3,000 of them:
// its postings are read, some 3,000 numbers. Stack B made 4 million: the window is scanned, steps
// 0 to 5 million by one thread and the rest by another. The second thread begins with B's level
// at step 5 million, which is two sums. Its peak is the window's if it is higher than the
// first's; at the same height the first's edge stays, as it came earlier.
#include "base/mem.h"
#include "base/ranks.h"
#include "engine/index/index_ages.h"
#include "engine/index/index_scan.h"
#include "engine/index/index_sizes.h"
#include "engine/index/index_sorted.h"
#include "engine/index/index_tables.h"
#include "os/thread.h"

// Of the memory: for what is kept of rows, and for lifetimes.
enum { BATCH_SHARE = 8, LIFETIMES_SHARE = 4 };

// A row while the window is gone through: where its level is, and what was found so far.
struct group_state {
	struct window_detail *detail;
	struct heap_amount level;
};

struct detailing {
	struct index *index;
	struct index_clock *clock;
	struct group_state *states;
	uint32_t *state_of; // by group: number + 1
};

// A step of a group that is asked for. `first_ns` is UINT64_MAX until something began.
static void move_level(struct group_state *state, const struct index_scan_step *step)
{
	struct window_detail *detail = state->detail;

	if (!step->up) {
		state->level.count -= step->amount.count;
		state->level.bytes -= step->amount.bytes;
		return;
	}
	state->level.count++;
	state->level.bytes += step->amount.bytes;
	// Later and as high is not a new peak: the edge of the first is kept.
	if (state->level.bytes > detail->peak_bytes) {
		detail->peak_bytes = state->level.bytes;
		detail->peak_count = state->level.count;
		detail->peak_edge = step->step + 1;
	}
	if (state->level.count > detail->most_count)
		detail->most_count = state->level.count;
	if (detail->first_ns == UINT64_MAX)
		detail->first_ns = step->time_ns;
	detail->last_ns = step->time_ns;
}

static bool detail_step(void *context, const struct index_scan_step *step)
{
	struct detailing *detailing = context;

	ASSERT(detailing->state_of[step->group] > 0);
	move_level(&detailing->states[detailing->state_of[step->group] - 1], step);
	return true;
}

static void begin_detail(struct group_state *state, struct window_detail *detail, uint64_t from,
			 struct heap_amount level)
{
	state->detail = detail;
	state->level = level;
	*detail = (struct window_detail){ .group = detail->group,
					  .peak_bytes = state->level.bytes,
					  .peak_count = state->level.count,
					  .most_count = state->level.count,
					  .peak_edge = from,
					  .first_ns = UINT64_MAX };
}

// Rows that are asked for at once.
struct batch {
	struct window_detail *details;
	size_t count, groups_count;
	bool total;                // the last is that of all groups together
	const uint64_t *lifetimes; // of each at most so many; NULL: they are not asked for
};

// One half of a window, gone through by a thread.
struct half {
	struct index_scan scan;
	struct detailing detailing;
	struct window_detail *details;
	struct err err;
	bool ok;
};

static void *scan_half(void *context)
{
	struct half *half = context;

	ASSERT(half->scan.visit == detail_step);
	half->ok = index_scan(&half->scan, &half->err);
	return NULL;
}

// `details`: of this half, with their groups. Its levels are those at `from`, of the whole, from
// sums: so a half needs nothing of the other.
static bool begin_half(struct half *half, const struct detailing *whole,
		       const struct index_scan *scan, uint64_t from, uint64_t to,
		       struct window_detail *details, size_t count, struct err *err)
{
	struct heap_amount *levels = mem_alloc(count + 1, sizeof *levels);
	bool ok;

	ASSERT(from <= to && scan->from <= from && to <= scan->to);
	*half = (struct half){ .scan = *scan, .detailing = *whole, .details = details };
	half->scan.from = from;
	half->scan.to = to;
	half->scan.context = &half->detailing;
	half->detailing.states = mem_alloc(count + 1, sizeof *half->detailing.states);
	ok = index_scan_wanted_levels(scan, from, levels, err);
	for (size_t i = 0; ok && i < count; i++)
		begin_detail(&half->detailing.states[i], &details[i], from,
			     levels[whole->state_of[details[i].group] - 1]);
	mem_free(levels);
	return ok;
}

// What the second half found behind the first.
static void join_detail(struct window_detail *detail, const struct window_detail *more)
{
	ASSERT(more->group == detail->group);
	if (more->peak_bytes > detail->peak_bytes) {
		detail->peak_bytes = more->peak_bytes;
		detail->peak_count = more->peak_count;
		detail->peak_edge = more->peak_edge;
	}
	if (more->most_count > detail->most_count)
		detail->most_count = more->most_count;
	if (detail->first_ns == UINT64_MAX)
		detail->first_ns = more->first_ns;
	if (more->first_ns != UINT64_MAX)
		detail->last_ns = more->last_ns;
}

// Go through both halves at once. Without a thread, one after the other. Of two errors the first
// half's is told.
static bool scan_halves(struct half halves[2], struct err *err)
{
	struct thread *thread;

	thread = thread_start(scan_half, &halves[1]);
	scan_half(&halves[0]);
	if (thread)
		thread_join(thread);
	else
		scan_half(&halves[1]);
	for (int i = 0; i < 2; i++) {
		if (halves[i].ok)
			continue;
		*err = halves[i].err;
		return false;
	}
	return true;
}

// Each half has states and details of its own, which are joined when both are done.
static bool detail_in_halves(struct detailing *detailing, struct index_scan *scan,
			     const struct window_query *query, const struct batch *batch,
			     struct err *err)
{
	unsigned log2 = detailing->index->shape.block_log2;
	uint64_t middle = (query->from + (query->to - query->from) / 2) >> log2 << log2;
	struct window_detail *details = batch->details;
	struct window_detail *behind = mem_alloc(batch->count + 1, sizeof *behind);
	struct half halves[2];
	bool ok;

	// Rounded down to a block, which both halves would have to decode otherwise. A window
	// within one block is all in the second half.
	ASSERT(query->from <= query->to);
	if (middle < query->from)
		middle = query->from;
	for (size_t i = 0; i < batch->count; i++)
		behind[i].group = details[i].group;
	ok = begin_half(&halves[0], detailing, scan, query->from, middle, details, batch->count,
			err);
	ok = begin_half(&halves[1], detailing, scan, middle, query->to, behind, batch->count,
			err) &&
	     ok;
	ok = ok && scan_halves(halves, err);
	for (size_t i = 0; ok && i < batch->count; i++)
		join_detail(&details[i], &behind[i]);
	MEM_FREE(halves[0].detailing.states, halves[1].detailing.states, behind);
	return ok;
}

// `details` of a batch may name a group twice; the last one has the state, and the others get a
// copy of what was found.
static bool by_scan(struct detailing *detailing, const struct window_query *query,
		    const struct batch *batch, struct err *err)
{
	struct window_detail *details = batch->details;
	struct index *index = detailing->index;
	struct index_groups groups;
	struct index_scan scan = { .index = index,
				   .groups = &groups,
				   .from = query->from,
				   .to = query->to,
				   .groups_count = (uint32_t)batch->groups_count,
				   .wanted = detailing->state_of,
				   .context = detailing,
				   .visit = detail_step };
	bool ok;

	index_groups_init(&groups, index, query);
	index_scan_prepare(&scan);
	ok = detail_in_halves(detailing, &scan, query, batch, err);
	for (size_t i = 0; i < batch->count; i++)
		if (details[i].first_ns == UINT64_MAX)
			details[i].first_ns = 0;
	for (size_t i = 0; i < batch->count; i++)
		details[i] = details[detailing->state_of[details[i].group] - 1];
	index_scan_fini(&scan);
	index_groups_fini(&groups);
	return ok;
}

// What is left to be scanned may be one row that has all: its level is kept.
static bool by_levels(struct detailing *detailing, const struct window_query *query,
		      const struct batch *batch, struct err *err)
{
	ASSERT(batch->count > 0);
	if (batch->count == 1 && index_is_all(detailing->index, query, batch->details->group))
		return index_peak_of_all(detailing->index, detailing->clock, query, batch->details,
					 err);
	return by_scan(detailing, query, batch, err);
}

// By postings, or by sums of sizes, where that is less, the rest by levels. Rows get new numbers
// for these, since only the groups that are left have one: `state_of` is cleared for all and set
// for these. A group that is named twice is asked for once, and copied.
static bool by_sums(struct detailing *detailing, const struct window_query *query,
		    const struct batch *batch, struct err *err)
{
	struct window_detail *details = batch->details;
	bool *done = mem_alloc(batch->count + 1, sizeof *done);
	uint32_t *same = mem_alloc(batch->count + 1, sizeof *same); // the last of its group
	struct batch rest = { .details = mem_alloc(batch->count + 1, sizeof *rest.details),
			      .groups_count = batch->groups_count };
	bool ok = query->by_size
			  ? index_size_peaks(detailing->index, query, details, batch->count,
					     detailing->state_of, batch->groups_count, done, err)
			  : index_peaks(detailing->index, detailing->clock, query, details,
					batch->count, detailing->state_of, batch->groups_count,
					done, err);

	for (size_t i = 0; i < batch->count; i++)
		same[i] = detailing->state_of[details[i].group] - 1;
	for (size_t i = 0; i < batch->count; i++) {
		if (same[i] != i)
			continue;
		detailing->state_of[details[i].group] = 0;
		if (!done[i])
			rest.details[rest.count++].group = details[i].group;
	}
	for (size_t i = 0; i < rest.count; i++)
		detailing->state_of[rest.details[i].group] = (uint32_t)i + 1;
	ok = ok && (rest.count == 0 || by_levels(detailing, query, &rest, err));
	for (size_t i = 0; ok && i < batch->count; i++)
		if (same[i] == i && !done[i])
			details[i] = rest.details[detailing->state_of[details[i].group] - 1];
	for (size_t i = 0; ok && i < batch->count; i++)
		details[i] = details[same[i]];
	MEM_FREE(same, done, rest.details);
	return ok;
}

static uint32_t all_as_one(void *context, const struct window_cell *cell)
{
	const struct window_query *query = context;

	return query->group && query->group(query->context, cell) == WINDOW_SKIP ? WINDOW_SKIP : 0;
}

// All groups together are one of another query.
static bool peak_of_total(struct detailing *detailing, struct window_query query,
			  struct window_detail *detail, struct err *err)
{
	struct window_query one = query;
	bool ok;

	ASSERT(detail->group == WINDOW_SKIP);
	one.group = all_as_one;
	one.context = &query;
	one.peaks_only = true;
	detail->group = 0;
	ok = index_detail(detailing->index, detailing->clock, &one, detail, 1, err);
	detail->group = WINDOW_SKIP;
	return ok;
}

// The total is the last of the batch.
static bool find_peaks(struct detailing *detailing, const struct window_query *query,
		       const struct batch *batch, struct err *err)
{
	struct batch rows = *batch;

	rows.count -= batch->total;
	if (rows.count > 0 && !by_sums(detailing, query, &rows, err))
		return false;
	return !batch->total || peak_of_total(detailing, *query, &batch->details[rows.count], err);
}

// ---- lifetimes ----

enum { NO_ROW = UINT32_MAX };

// Where what ended in the window began.
enum { INSIDE, BEFORE, SIDES };

struct aging {
	struct ranks ranks;
	struct index_groups groups;
	struct index_ages ages;
	struct index_sorted *sorted; // in place of ages; NULL: there is none
	// Of what began in the window, and before it: by group its row + 1; by cell its row, or
	// `rows`, if only the total is interested in it. Both are one where no types are asked for.
	uint32_t *row_of[SIDES], *of[SIDES];
	uint32_t rows;
	bool total; // is row `rows`, and wants numbers
	// Of all lifetimes together, as `sorted` has them, and rows that have all need no more. A
	// count of 0: there is none.
	struct index_sorted_total kept;
	const uint64_t *lifetimes; // of the batch
};

// Whether what the row has is known without looking at any lifetime: it has all of the trace.
static bool is_known(const struct aging *aging, size_t row)
{
	return aging->kept.count > 0 && aging->lifetimes[row] == aging->kept.count;
}

static bool take_ages(void *context, unsigned part, const struct index_aged *aged)
{
	const struct aging *aging = context;

	return ranks_add_each(&aging->ranks, part, aged->of, aged->ns, aged->count, aging->rows) &&
	       (!aging->total ||
		ranks_add_all(&aging->ranks, part, aging->rows, aged->ns, aged->count));
}

static bool take_run(void *context, unsigned part, const struct index_sorted_run *run)
{
	const struct aging *aging = context;

	if (run->of < aging->rows &&
	    !(ranks_add_same(&aging->ranks, part, run->of, 0, run->none) &&
	      ranks_add_rising(&aging->ranks, part, run->of, run->ns, run->count)))
		return false;
	return !aging->total ||
	       (ranks_add_same(&aging->ranks, part, aging->rows, 0, run->none) &&
		ranks_add_rising(&aging->ranks, part, aging->rows, run->ns, run->count));
}

// Whether lifetimes of what began there are asked for.
static bool wants_side(const struct window_detail *detail, int side)
{
	return !detail->types || detail->types >> (side == INSIDE ? WINDOW_AIFI : WINDOW_AOFI) & 1;
}

// Rows of types have lists of both sides, as two of them may be of one group.
static void begin_sides(struct aging *aging, const struct detailing *detailing,
			const struct batch *batch)
{
	size_t cells = detailing->index->cells.cells_count;
	bool typed = false;

	index_tables_empty(detailing->index->tables);
	for (size_t i = 0; i < batch->count; i++)
		typed |= batch->details[i].types != 0;
	for (int side = 0; side < (typed ? SIDES : 1); side++) {
		aging->of[side] = mem_alloc_table(cells, sizeof *aging->of[side]);
		aging->row_of[side] = mem_alloc(batch->groups_count, sizeof *aging->row_of[side]);
		for (uint32_t i = 0; i < aging->rows; i++)
			if (wants_side(&batch->details[i], side))
				aging->row_of[side][batch->details[i].group] = i + 1;
	}
	if (!typed) {
		aging->of[BEFORE] = aging->of[INSIDE];
		aging->row_of[BEFORE] = aging->row_of[INSIDE];
	}
}

static void end_sides(struct aging *aging)
{
	if (aging->of[BEFORE] != aging->of[INSIDE])
		MEM_FREE(aging->of[BEFORE], aging->row_of[BEFORE]);
	MEM_FREE(aging->of[INSIDE], aging->row_of[INSIDE]);
}

// Of which row the lifetimes of a group's cells are, if it wants any.
static uint32_t row_of_group(const struct aging *aging, const struct batch *batch, int side,
			     uint32_t group, bool orphans)
{
	uint32_t row = group < batch->groups_count ? aging->row_of[side][group] : 0;

	if (orphans)
		return NO_ROW;
	if (row && !is_known(aging, row - 1) && ranks_wants(&aging->ranks, row - 1))
		return row - 1;
	return aging->total && group != WINDOW_SKIP ? aging->rows : NO_ROW;
}

// Of which row each cell's are. By site first, where sizes do not matter: these are asked for in
// order, and what is looked up for each cell is small.
static void find_rows(struct aging *aging, const struct cells *cells, const struct batch *batch,
		      int side)
{
	uint32_t *of = aging->of[side], *of_site;

	aging->total = batch->total && !is_known(aging, aging->rows) &&
		       ranks_wants(&aging->ranks, aging->rows);
	of[0] = NO_ROW;
	if (aging->groups.query->by_size) {
		for (uint32_t id = 1; id < cells->cells_count; id++)
			of[id] = row_of_group(
				aging, batch, side, index_group(&aging->groups, id),
				cells_site(cells, cells_cell(cells, id).site)->orphans);
		return;
	}
	of_site = mem_alloc_table(cells->sites_count, sizeof *of_site);
	for (uint32_t site = 1; site < cells->sites_count; site++)
		of_site[site] = row_of_group(aging, batch, side,
					     index_group_of_site(&aging->groups, site),
					     cells_site(cells, site)->orphans);
	for (uint32_t id = 1; id < cells->cells_count; id++)
		of[id] = of_site[cells_packed_number(*cells_packed(cells, id))];
	mem_free(of_site);
}

// A sample, each 16th of the window's blocks where it has many: a guess from it may spare a round
// (ranks.h).
static bool take_sample(struct aging *aging, struct err *err)
{
	enum { BLOCKS_MIN = 32, EVERY = 16 };
	struct index_ages ages = aging->ages;
	bool ok;

	if ((ages.to - ages.from) >> ages.index->shape.block_log2 < BLOCKS_MIN ||
	    !ranks_guessable(&aging->ranks))
		return true;
	ages.every = EVERY;
	ok = index_ages(&ages, err);
	ranks_guess(&aging->ranks);
	return ok;
}

static bool go_rounds(struct aging *aging, const struct detailing *detailing,
		      const struct batch *batch, struct err *err)
{
	ASSERT(batch->lifetimes);
	do {
		ranks_round(&aging->ranks);
		find_rows(aging, &detailing->index->cells, batch, INSIDE);
		if (aging->of[BEFORE] != aging->of[INSIDE])
			find_rows(aging, &detailing->index->cells, batch, BEFORE);
		aging->ages.least_ns = ranks_lowest(&aging->ranks);
		if (aging->sorted ? !index_sorted_each(aging->sorted, aging->of[INSIDE], take_run,
						       aging, err)
				  : !take_sample(aging, err) || !index_ages(&aging->ages, err))
			return err->kind != ERR_NONE ? false
						     : err_set(err, ERR_FORMAT,
							       "the index is damaged: lifetimes");
	} while (!ranks_close(&aging->ranks));
	return true;
}

// Where what is kept turns out to be damaged, the steps have it.
static bool begin_again(struct aging *aging, struct err *err)
{
	if (!aging->sorted || err->kind == ERR_STOPPED)
		return false;
	index_sorted_forget(aging->ages.index);
	index_sorted_close(aging->sorted);
	aging->sorted = NULL;
	aging->kept = (struct index_sorted_total){ 0 };
	*err = (struct err){ 0 };
	return true;
}

static bool any_ends(const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->lifetimes[i] > 0)
			return true;
	return false;
}

// What is known takes no room.
static void begin_ranks(struct aging *aging, const struct batch *batch)
{
	struct index *index = aging->ages.index;
	uint64_t *most = mem_alloc(batch->count + 1, sizeof *most);

	for (size_t i = 0; i < batch->count; i++)
		most[i] = is_known(aging, i) ? 0 : batch->lifetimes[i];
	ranks_begin(&aging->ranks, most, batch->count, index->duration_ns,
		    index_room(index, LIFETIMES_SHARE, sizeof(uint64_t)));
	mem_free(most);
}

static bool all_known(const struct aging *aging, const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->lifetimes[i] > 0 && !is_known(aging, i))
			return false;
	return true;
}

// Which row of `ranks` has a detail's numbers: of those that are the same, the last.
static size_t place_of(const struct aging *aging, const struct window_detail *detail, size_t i)
{
	if (detail->group == WINDOW_SKIP)
		return i;
	for (int side = 0; side < SIDES; side++)
		if (wants_side(detail, side))
			return aging->row_of[side][detail->group] - 1;
	return i;
}

static void tell(const struct aging *aging, size_t i, struct window_detail *detail)
{
	size_t row = place_of(aging, detail, i);

	detail->lifetimes = ranks_count(&aging->ranks, row);
	detail->lifetime_median_ns = ranks_median(&aging->ranks, row);
	detail->lifetime_p99_ns = ranks_high(&aging->ranks, row);
	if (!is_known(aging, i))
		return;
	detail->lifetimes = aging->kept.count;
	detail->lifetime_median_ns = aging->kept.median_ns;
	detail->lifetime_p99_ns = aging->kept.high_ns;
}

// The medians and 99th percentiles of all rows that are asked for. Their lifetimes need not fit in
// memory: each round narrows down where a row's median is, and looks again (ranks.h).
static bool find_lifetimes(const struct detailing *detailing, const struct window_query *query,
			   const struct batch *batch, struct err *err)
{
	struct index *index = detailing->index;
	struct aging aging = { .rows = (uint32_t)(batch->count - batch->total),
			       .lifetimes = batch->lifetimes };
	bool ok;

	if (!any_ends(batch))
		return true;
	begin_sides(&aging, detailing, batch);
	aging.ages = (struct index_ages){ .index = index,
					  .from = query->from,
					  .to = query->to,
					  .of = aging.of[INSIDE],
					  .of_before = aging.of[BEFORE],
					  .context = &aging,
					  .take = take_ages };
	index_groups_init(&aging.groups, index, query);
	aging.sorted = index_sorted_open(index, query, err);
	// The ends of processes, where they count as frees, are no lifetimes.
	if (aging.sorted && !query->exit_frees)
		aging.kept = index_sorted_total(aging.sorted);
	ok = aging.sorted || err->kind == ERR_NONE;
	while (ok) {
		begin_ranks(&aging, batch);
		ok = all_known(&aging, batch) || go_rounds(&aging, detailing, batch, err);
		if (ok || !begin_again(&aging, err))
			break;
		ranks_end(&aging.ranks);
		ok = true;
	}
	for (size_t i = 0; ok && i < batch->count; i++)
		tell(&aging, i, &batch->details[i]);
	index_sorted_close(aging.sorted);
	index_groups_fini(&aging.groups);
	ranks_end(&aging.ranks);
	end_sides(&aging);
	return ok;
}

// ---- all of it ----

// At most how many lifetimes end in each row, if they are asked for, and how many groups there are.
static bool count_ends(struct index *index, const struct window_query *query,
		       const struct window_detail *details, size_t count, uint64_t **ends,
		       size_t *groups_count, struct err *err)
{
	struct window_result result = { 0 };
	bool ok;

	*ends = NULL;
	ASSERT(query->lifetimes_only || details[0].types == 0);
	if (query->peaks_only)
		return true;
	if (query->freed_known) {
		*ends = mem_alloc(count + 1, sizeof **ends);
		for (size_t i = 0; i < count; i++)
			(*ends)[i] = details[i].lifetimes;
		return true;
	}
	ok = index_ask(index, query, &result, err);
	if (ok)
		*ends = mem_alloc(count + 1, sizeof **ends);
	for (size_t i = 0; ok && i < count; i++) {
		struct window_row row = { 0 };

		if (details[i].group == WINDOW_SKIP)
			row = result.total;
		else if (details[i].group < result.rows_count)
			row = result.rows[details[i].group];
		window_keep_types(&row, details[i].types);
		(*ends)[i] = window_freed(&row).count;
	}
	if (result.rows_count > *groups_count)
		*groups_count = result.rows_count;
	window_result_fini(&result);
	return ok;
}

// What is kept of a row, in bytes, while it is asked for.
static uint64_t row_bytes(const struct index *index, const struct batch *batch, size_t i)
{
	uint64_t always = 2 * (sizeof(struct group_state) + sizeof(struct window_detail));

	if (!batch->lifetimes)
		return always;
	return always + sizeof(struct ranks_row) + RANKS_PARTS * RANKS_WANTED * sizeof(uint64_t) +
	       ranks_least(batch->lifetimes[i], index->duration_ns) * sizeof(uint64_t);
}

// `state_of` is made once for all batches and has an entry for each group, so a batch takes its own
// numbers out again. The total is of no group.
static void number_rows(struct detailing *detailing, const struct batch *batch, bool known)
{
	for (size_t i = 0; i < batch->count - batch->total; i++)
		detailing->state_of[batch->details[i].group] = known ? (uint32_t)i + 1 : 0;
}

static bool ask_batch(struct detailing *detailing, const struct window_query *query,
		      const struct batch *batch, struct err *err)
{
	bool ok;

	ASSERT(batch->count > 0 && batch->count < UINT32_MAX);
	number_rows(detailing, batch, true);
	if (query->lifetimes_only) {
		for (size_t i = 0; i < batch->count; i++)
			batch->details[i] =
				(struct window_detail){ .group = batch->details[i].group,
							.types = batch->details[i].types };
		ok = true;
	} else {
		ok = find_peaks(detailing, query, batch, err);
	}
	number_rows(detailing, batch, true); // peaks are found of some rows at a time
	ok = ok && (!batch->lifetimes || find_lifetimes(detailing, query, batch, err));
	number_rows(detailing, batch, false);
	return ok;
}

// So many rows at a time as there is memory for; the first always.
static bool ask_batches(struct detailing *detailing, const struct window_query *query,
			const struct batch *all, struct err *err)
{
	uint64_t room = index_room(detailing->index, BATCH_SHARE, 1);
	size_t begin, end;
	bool ok = true;

	for (begin = 0; ok && begin < all->count; begin = end) {
		struct batch batch = { .details = all->details + begin,
				       .groups_count = all->groups_count,
				       .lifetimes = all->lifetimes ? all->lifetimes + begin
								   : NULL };
		uint64_t bytes = row_bytes(detailing->index, all, begin);

		for (end = begin + 1; end < all->count; end++) {
			bytes += row_bytes(detailing->index, all, end);
			if (bytes > room)
				break;
		}
		ASSERT(end > begin && end <= all->count);
		batch.count = end - begin;
		batch.total = all->total && end == all->count;
		ok = ask_batch(detailing, query, &batch, err);
	}
	return ok;
}

// The peak of all alone is answered without reading a step. Else rows are asked in batches that fit
// in memory, after a question of how many lifetimes each has.
bool index_detail(struct index *index, struct index_clock *clock, const struct window_query *query,
		  struct window_detail *details, size_t count, struct err *err)
{
	struct detailing detailing = { .index = index, .clock = clock };
	struct batch all = { .details = details, .count = count, .groups_count = 1 };
	uint64_t *ends;
	bool ok;

	ASSERT(query->from <= query->to);
	if (query->peaks_only && count == 1 && index_is_all(index, query, details->group))
		return index_peak_of_all(index, clock, query, details, err);
	if (count == 0)
		return true;
	all.total = details[count - 1].group == WINDOW_SKIP;
	if (!count_ends(index, query, details, count, &ends, &all.groups_count, err))
		return false;
	for (size_t i = 0; i < count - all.total; i++)
		if (details[i].group >= all.groups_count)
			all.groups_count = details[i].group + (size_t)1;
	all.lifetimes = ends;
	detailing.state_of = mem_alloc(all.groups_count, sizeof *detailing.state_of);
	ok = ask_batches(&detailing, query, &all, err);
	MEM_FREE(detailing.state_of, ends);
	return ok;
}
