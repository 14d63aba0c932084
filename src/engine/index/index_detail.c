// Details of rows: their peaks, first and last times, median and 99th percentile of lifetimes.
//
// Sums of a window are differences of two edges; these are not, so each step of the window is
// needed. Rows of few steps are answered from their sites' postings (index_peaks), the others by
// one scan of the window, in two threads. Rows are asked in batches, as many as the memory allows.
//
// Medians and percentiles of lifetimes are found in bounded memory (base/ranks.h): in the same pass
// where they fit, else in one or two more, of those rows alone that need it.
//
// For example, rows of two stacks over a window of 10 million steps. Stack A made 3,000 of them:
// its postings are read, some 3,000 numbers. Stack B made 4 million: the window is scanned, steps
// 0 to 5 million by one thread and the rest by another. The second thread begins with B's level
// at step 5 million, which is two sums. Its peak is the window's if it is higher than the
// first's; at the same height the first's edge stays, as it came earlier.
#include "base/mem.h"
#include "base/ranks.h"
#include "engine/index/index_scan.h"
#include "os/thread.h"

#include <stdlib.h>
#include <string.h>

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
	uint32_t *state_of;  // by group: number + 1
	uint32_t total;      // the same of all groups together, or 0
	struct ranks *ranks; // of lifetimes; NULL: they are not asked for
	unsigned part;       // of those
	bool counting;       // a further pass, for lifetimes alone
	struct err *err;
	bool failed;
};

// Of a block that began before the trace could say when (`since`), the lifetime is 0.
static bool lifetime_of(struct detailing *detailing, const struct index_scan_step *step,
			uint64_t *lifetime_ns)
{
	uint64_t begin_ns;

	ASSERT(step->begin > 0 && step->begin < step->step);
	*lifetime_ns = 0;
	if (step->begin >= step->since)
		return true;
	if (!index_clock_time(detailing->clock, detailing->index, step->begin, &begin_ns,
			      detailing->err)) {
		detailing->failed = true;
		return false;
	}
	*lifetime_ns = step->time_ns - begin_ns;
	return true;
}

static bool take_lifetime(struct detailing *detailing, uint32_t row, uint64_t lifetime_ns)
{
	if (!detailing->counting)
		detailing->states[row].detail->lifetimes++;
	if (!detailing->ranks || ranks_add(detailing->ranks, detailing->part, row, lifetime_ns))
		return true;
	detailing->failed = true;
	return err_set(detailing->err, ERR_FORMAT, "the index is damaged: lifetimes");
}

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

// Where it is written down which detail is a group's, or that of all.
static uint32_t *state_at(struct detailing *detailing, uint32_t group)
{
	return group == WINDOW_SKIP ? &detailing->total : &detailing->state_of[group];
}

static bool detail_step(void *context, const struct index_scan_step *step)
{
	struct detailing *detailing = context;
	uint32_t own = detailing->state_of[step->group], total = detailing->total;
	uint64_t lifetime_ns;

	ASSERT(own > 0 || total > 0);
	if (!detailing->counting) {
		if (own)
			move_level(&detailing->states[own - 1], step);
		if (total)
			move_level(&detailing->states[total - 1], step);
	}
	if (step->up || step->exit || step->begin == 0)
		return true;
	return lifetime_of(detailing, step, &lifetime_ns) &&
	       (!own || take_lifetime(detailing, own - 1, lifetime_ns)) &&
	       (!total || take_lifetime(detailing, total - 1, lifetime_ns));
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
	const uint64_t *lifetimes; // of each at most so many; NULL: they are not asked for
};

// One half of a window, gone through by a thread.
struct half {
	struct index_scan scan;
	struct detailing detailing;
	struct index_clock clock;
	struct window_detail *details;
	struct err err;
	bool ok;
};

static void *scan_half(void *context)
{
	struct half *half = context;

	ASSERT(half->scan.visit == detail_step);
	half->ok = index_scan(&half->scan, &half->err) && !half->detailing.failed;
	return NULL;
}

// `details`: of this half, with their groups.
// Its levels are those at `from`, of the whole, from sums: so a half needs nothing of the other.
static bool begin_half(struct half *half, const struct detailing *whole,
		       const struct index_scan *scan, const struct window_query *query,
		       uint64_t from, uint64_t to, struct window_detail *details, size_t count,
		       struct err *err)
{
	struct heap_amount *levels =
		index_scan_levels(whole->index, query, from, scan->groups_count, err);
	struct heap_amount all = { 0 };

	ASSERT(from <= to && query->from <= from && to <= query->to);
	*half = (struct half){ .scan = *scan, .detailing = *whole, .details = details };
	half->scan.from = from;
	half->scan.to = to;
	half->scan.context = &half->detailing;
	half->detailing.clock = &half->clock;
	half->detailing.err = &half->err;
	half->detailing.states = mem_alloc(count + 1, sizeof *half->detailing.states);
	if (!levels)
		return false;
	for (size_t i = 0; i < scan->groups_count; i++)
		window_add(&all, levels[i]);
	for (size_t i = 0; i < count; i++)
		begin_detail(&half->detailing.states[i], &details[i], from,
			     details[i].group == WINDOW_SKIP ? all : levels[details[i].group]);
	mem_free(levels);
	return true;
}

static void end_half(struct half *half)
{
	mem_free(half->detailing.states);
	index_clock_fini(&half->clock);
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
	detail->lifetimes += more->lifetimes;
}

// Go through both halves at once.
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

// Of those groups alone whose lifetimes are not all known: more passes until they are.
static bool scan_again(struct detailing *detailing, struct index_scan *scan, struct half halves[2],
		       const struct batch *batch, struct err *err)
{
	uint32_t *wanted = mem_alloc(batch->groups_count, sizeof *wanted);
	bool ok = true, all;

	ASSERT(scan->visit == detail_step);
	scan->ends = true;
	scan->wanted = wanted;
	while (ok && !ranks_close(detailing->ranks)) {
		ranks_round(detailing->ranks);
		all = detailing->total && ranks_wants(detailing->ranks, detailing->total - 1);
		for (size_t group = 0; group < batch->groups_count; group++) {
			uint32_t state = detailing->state_of[group];

			wanted[group] = all || (state && ranks_wants(detailing->ranks, state - 1));
		}
		index_scan_fini(scan);
		index_scan_prepare(scan);
		for (int i = 0; i < 2; i++) {
			halves[i].scan.of_cell = scan->of_cell;
			halves[i].scan.ends = halves[i].detailing.counting = true;
		}
		ok = scan_halves(halves, err);
	}
	mem_free(wanted);
	return ok;
}

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
	ok = begin_half(&halves[0], detailing, scan, query, query->from, middle, details,
			batch->count, err);
	ok = begin_half(&halves[1], detailing, scan, query, middle, query->to, behind, batch->count,
			err) &&
	     ok;
	halves[1].detailing.part = 1;
	ok = ok && scan_halves(halves, err) &&
	     (!detailing->ranks || scan_again(detailing, scan, halves, batch, err));
	for (size_t i = 0; ok && i < batch->count; i++)
		join_detail(&details[i], &behind[i]);
	end_half(&halves[0]);
	end_half(&halves[1]);
	mem_free(behind);
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
				   .wanted = detailing->total ? NULL : detailing->state_of,
				   .lives = !query->peaks_only,
				   .context = detailing,
				   .visit = detail_step };
	struct ranks ranks;
	bool ok;

	if (batch->lifetimes) {
		ranks_begin(&ranks, batch->lifetimes, batch->count, index->duration_ns,
			    index_room(index, LIFETIMES_SHARE, sizeof(uint64_t)));
		ranks_round(&ranks);
		detailing->ranks = &ranks;
	}
	index_groups_init(&groups, index, query);
	index_scan_prepare(&scan);
	ok = detail_in_halves(detailing, &scan, query, batch, err);
	for (size_t i = 0; i < batch->count; i++) {
		if (details[i].first_ns == UINT64_MAX)
			details[i].first_ns = 0;
		if (batch->lifetimes) {
			details[i].lifetime_median_ns = ranks_median(&ranks, i);
			details[i].lifetime_p99_ns = ranks_high(&ranks, i);
		}
	}
	for (size_t i = 0; i < batch->count; i++)
		details[i] = details[*state_at(detailing, details[i].group) - 1];
	index_scan_fini(&scan);
	index_groups_fini(&groups);
	if (batch->lifetimes)
		ranks_end(&ranks);
	detailing->ranks = NULL;
	return ok;
}

// By postings where that is less, the rest by scan.
static bool by_postings(struct detailing *detailing, const struct window_query *query,
			const struct batch *batch, struct err *err)
{
	struct window_detail *details = batch->details;
	bool *done = mem_alloc(batch->count + 1, sizeof *done);
	uint32_t *same = mem_alloc(batch->count + 1, sizeof *same); // the last of its group
	struct batch rest = { .details = mem_alloc(batch->count + 1, sizeof *rest.details),
			      .groups_count = batch->groups_count };
	bool ok = index_peaks(detailing->index, detailing->clock, query, details, batch->count,
			      detailing->state_of, batch->groups_count, done, err);

	ASSERT(query->peaks_only && batch->lifetimes == NULL);
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
	ok = ok && (rest.count == 0 || by_scan(detailing, query, &rest, err));
	for (size_t i = 0; ok && i < batch->count; i++)
		if (same[i] == i && !done[i])
			details[i] = rest.details[detailing->state_of[details[i].group] - 1];
	for (size_t i = 0; ok && i < batch->count; i++)
		details[i] = details[same[i]];
	MEM_FREE(same, done, rest.details);
	return ok;
}

// Whether the query's one group is all there is.
static bool is_whole(struct index *index, const struct window_query *query,
		     const struct window_detail *detail)
{
	struct index_groups groups;
	bool whole = true;

	index_groups_init(&groups, index, query);
	for (uint32_t site = 1; whole && site < index->cells.sites_count; site++)
		whole = cells_site(&index->cells, site)->orphans ||
			index_group_of_site(&groups, site) == detail->group;
	index_groups_fini(&groups);
	return whole;
}

// At most how many lifetimes end in each row, if they are asked for, and how many groups there are.
static bool count_ends(struct index *index, const struct window_query *query,
		       const struct window_detail *details, size_t count, uint64_t **ends,
		       size_t *groups_count, struct err *err)
{
	struct window_result result = { 0 };
	bool ok;

	*ends = NULL;
	if (query->peaks_only)
		return true;
	ok = index_ask(index, query, &result, err);
	if (ok)
		*ends = mem_alloc(count + 1, sizeof **ends);
	for (size_t i = 0; ok && i < count; i++)
		if (details[i].group == WINDOW_SKIP)
			(*ends)[i] = window_freed(&result.total).count;
		else if (details[i].group < result.rows_count)
			(*ends)[i] = window_freed(&result.rows[details[i].group]).count;
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

static bool ask_batch(struct detailing *detailing, const struct window_query *query,
		      const struct batch *batch, struct err *err)
{
	bool ok;

	ASSERT(batch->count > 0 && batch->count < UINT32_MAX);
	for (size_t i = 0; i < batch->count; i++)
		*state_at(detailing, batch->details[i].group) = (uint32_t)i + 1;
	ok = query->peaks_only && !query->by_size ? by_postings(detailing, query, batch, err)
						  : by_scan(detailing, query, batch, err);
	for (size_t i = 0; i < batch->count; i++)
		*state_at(detailing, batch->details[i].group) = 0;
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
		ok = ask_batch(detailing, query, &batch, err);
	}
	return ok;
}

bool index_detail(struct index *index, struct index_clock *clock, const struct window_query *query,
		  struct window_detail *details, size_t count, struct err *err)
{
	struct detailing detailing = { .index = index, .clock = clock, .err = err };
	struct batch all = { .details = details, .count = count, .groups_count = 1 };
	uint64_t *ends;
	bool ok;

	ASSERT(query->from <= query->to);
	if (query->peaks_only && !query->by_size && count == 1 && is_whole(index, query, details))
		return index_peak_of_all(index, clock, query, details, err);
	if (count == 0)
		return true;
	ASSERT(details[count - 1].group != WINDOW_SKIP || !query->peaks_only);
	if (!count_ends(index, query, details, count, &ends, &all.groups_count, err))
		return false;
	for (size_t i = 0; i < count; i++)
		if (details[i].group != WINDOW_SKIP && details[i].group >= all.groups_count)
			all.groups_count = details[i].group + (size_t)1;
	all.lifetimes = ends;
	detailing.state_of = mem_alloc(all.groups_count, sizeof *detailing.state_of);
	ok = ask_batches(&detailing, query, &all, err);
	MEM_FREE(detailing.state_of, ends);
	return ok;
}
