// Details of rows: their peaks, first and last times, median and 99th percentile of lifetimes.
//
// Sums of a window are differences of two edges; these are not, so each step of the window is
// needed. Rows of few steps are answered from their sites' postings (index_peaks), the others by
// one scan of the window, in two threads. Rows are asked in batches, as many as the memory allows.
//
// Lifetimes are kept and sorted where they fit. Where not, each pass over the window counts them in
// 16,384 bins and then looks into the one bin that the percentile falls in; if no more than 16,384
// are in it, the next pass keeps them, and the answer is exact. In a trace of 100 s the bins are
// 8 ms wide (2^23 ns), then 512 ns, then 1 ns. The first of these passes is the one that all
// rows need: so mostly there are two, of some 18 million lifetimes of one row, too.
#include "base/mem.h"
#include "base/sort.h"
#include "engine/index/index_scan.h"
#include "os/thread.h"

#include <stdlib.h>
#include <string.h>

enum {
	BATCH_SHARE = 8, // of the memory, for what is kept of rows that are asked at once
	BINS_LOG2 = 14,
	BINS = 1 << BINS_LOG2,
	KEPT_BITS = 32,        // of a lifetime that is kept in place of a bin
	BINNED_MIN = 2 * BINS, // lifetimes of a row that bins take less memory than
};

// One of the two lifetimes that are asked of a group: it lies in [low, low + BINS << shift), and
// `rank` shorter ones of these come before it; where they are kept, in [low, low + (1 << shift)).
struct target {
	uint64_t low, rank;
	unsigned shift;
	uint32_t *bins;
	uint32_t kept; // where it is keeping: so many are in `bins`, each less `low`
	bool keeping;  // what is there fits into the bins
	bool found;
};

struct group_state {
	struct window_detail *detail;
	struct heap_amount level;
	uint64_t *lifetimes;    // NULL: they are not kept
	uint64_t room;          // for so many
	struct target *targets; // two, or NULL
	uint32_t *bins;         // of the first pass, if lifetimes are not kept
};

struct detailing {
	struct index *index;
	struct index_clock *clock;
	struct group_state *states;
	uint32_t *state_of; // by group: number + 1
	bool backwards;     // lifetimes are put at the end of their room
	bool counting;      // bins
	bool binned;        // the first pass counts those of rows whose lifetimes are not kept
	unsigned shift;     // of these
	uint64_t keep_max;  // lifetimes in place of bins
	struct err *err;
	bool failed;
};

static bool lifetime_of(struct detailing *detailing, const struct index_scan_step *step,
			uint64_t *lifetime_ns)
{
	uint64_t begin_ns;

	ASSERT(step->begin > 0 && step->begin < step->step);
	if (!index_clock_time(detailing->clock, detailing->index, step->begin, &begin_ns,
			      detailing->err)) {
		detailing->failed = true;
		return false;
	}
	*lifetime_ns = step->time_ns - begin_ns;
	return true;
}

static bool keep_lifetime(struct detailing *detailing, struct group_state *state,
			  uint64_t lifetime_ns)
{
	uint64_t at = state->detail->lifetimes++;

	ASSERT(state->detail);
	if (state->bins && lifetime_ns >> detailing->shift < BINS)
		state->bins[lifetime_ns >> detailing->shift]++;
	if (!state->lifetimes)
		return true;
	if (at >= state->room) {
		detailing->failed = true;
		return err_set(detailing->err, ERR_FORMAT, "the index is damaged: lifetimes");
	}
	state->lifetimes[detailing->backwards ? state->room - 1 - at : at] = lifetime_ns;
	return true;
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

// `above`: by how much it is longer than the target's lowest.
static void put_into(struct target *target, uint64_t above)
{
	ASSERT(!target->found);
	if (!target->keeping && above >> target->shift < BINS)
		target->bins[above >> target->shift]++;
	else if (target->keeping && above >> target->shift == 0 && target->kept < BINS)
		target->bins[target->kept++] = (uint32_t)above;
}

static bool detail_step(void *context, const struct index_scan_step *step)
{
	struct detailing *detailing = context;
	struct group_state *state;
	uint64_t lifetime_ns;

	ASSERT(detailing->state_of[step->group] > 0);
	state = &detailing->states[detailing->state_of[step->group] - 1];
	if (!detailing->counting)
		move_level(state, step);
	if (step->up || step->exit || step->begin == 0 || (detailing->counting && !state->targets))
		return true;
	if (!lifetime_of(detailing, step, &lifetime_ns))
		return false;
	if (!detailing->counting)
		return keep_lifetime(detailing, state, lifetime_ns);
	for (unsigned i = 0; i < 2; i++) {
		struct target *target = &state->targets[i];

		if (!target->found && lifetime_ns >= target->low)
			put_into(target, lifetime_ns - target->low);
	}
	return true;
}

static void sort_lifetimes(struct window_detail *detail, uint64_t *lifetimes)
{
	size_t count = (size_t)detail->lifetimes;

	if (count == 0)
		return;
	qsort(lifetimes, count, sizeof *lifetimes, mem_compare_u64);
	// Nearest rank, from 0: of 4 lifetimes the median is the second (3 / 2), of 100 the 99th
	// percentile is number 98 (99 * 99 / 100). begin_counting asks for the same ranks.
	detail->lifetime_median_ns = lifetimes[(count - 1) / 2];
	detail->lifetime_p99_ns = lifetimes[(count - 1) * 99 / 100];
}

SORT_ORDER(compare_kept, uint32_t, SORT_BY(*one, *other))

// After a pass: the bin that the target lies in is where the next pass looks closer.
static bool narrow(struct target *target, uint64_t keep_max)
{
	uint64_t bin = 0;

	ASSERT(target->bins && !target->found);
	if (target->keeping) {
		qsort(target->bins, target->kept, sizeof *target->bins, compare_kept);
		target->low += target->rank < target->kept ? target->bins[target->rank] : 0;
		return target->found = true;
	}
	// The rank is made relative to the bin: with 5, 7 and 9 lifetimes in the first bins, rank
	// 10 is number 5 of bin 1.
	while (bin + 1 < BINS && target->rank >= target->bins[bin])
		target->rank -= target->bins[bin++];
	target->low += bin << target->shift;
	target->found = target->shift == 0;
	target->keeping = target->shift <= KEPT_BITS && target->bins[bin] <= keep_max;
	if (!target->keeping)
		target->shift = target->shift > BINS_LOG2 ? target->shift - BINS_LOG2 : 0;
	memset(target->bins, 0, BINS * sizeof *target->bins);
	return target->found;
}

// Lifetimes are shorter than the trace.
static unsigned first_shift(const struct index *index)
{
	unsigned shift = 63 - BINS_LOG2;

	while (shift > 0 && (uint64_t)BINS << (shift - 1) > index->duration_ns)
		shift--;
	return shift;
}

static uint32_t *copy_bins(const uint32_t *bins)
{
	uint32_t *copy = mem_resize(NULL, BINS, sizeof *copy);

	return memcpy(copy, bins, BINS * sizeof *copy);
}

// At most so many lifetimes take the place of bins.
static uint64_t keep_max(const struct index *index)
{
	uint64_t room = index_room(index, BATCH_SHARE, sizeof(uint32_t));

	return room < BINS ? room : BINS;
}

// Of a row whose first bins are counted, which are the target's from now on. True: it is found.
static bool begin_target(struct target *target, uint32_t *bins, const struct detailing *detailing,
			 uint64_t rank)
{
	*target = (struct target){ .rank = rank, .shift = detailing->shift, .bins = bins };
	return narrow(target, detailing->keep_max);
}

// False: there is nothing left to count.
static bool begin_counting(const struct detailing *detailing, struct window_detail *details,
			   size_t count)
{
	bool found = true;

	ASSERT(detailing->counting);
	for (size_t i = 0; i < count; i++) {
		struct group_state *state = &detailing->states[i];
		uint64_t last = details[i].lifetimes - 1;

		if (!state->bins || details[i].lifetimes == 0)
			continue;
		state->targets = mem_alloc(2, sizeof *state->targets);
		found &= begin_target(&state->targets[0], copy_bins(state->bins), detailing,
				      last / 2);
		found &= begin_target(&state->targets[1], state->bins, detailing, last * 99 / 100);
		state->bins = NULL;
	}
	return !found;
}

static void end_counting(const struct detailing *detailing, struct window_detail *details,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct target *targets = detailing->states[i].targets;

		if (!targets)
			continue;
		details[i].lifetime_median_ns = targets[0].low;
		details[i].lifetime_p99_ns = targets[1].low;
		MEM_FREE(targets[0].bins, targets[1].bins, targets);
	}
}

// More lifetimes than can be kept: each pass over the window finds fourteen bits of those asked
// for, or all.
static bool count_lifetimes(struct detailing *detailing, struct window_detail *details,
			    size_t count, struct index_scan *scan, struct err *err)
{
	bool ok = true, all;

	ASSERT(scan->visit == detail_step);
	detailing->counting = true;
	all = !begin_counting(detailing, details, count);
	while (ok && !all) {
		ok = index_scan(scan, err) && !detailing->failed;
		all = true;
		for (size_t i = 0; i < count; i++) {
			struct target *targets = detailing->states[i].targets;

			for (unsigned k = 0; targets && k < 2; k++)
				if (!targets[k].found)
					all &= narrow(&targets[k], detailing->keep_max);
		}
	}
	end_counting(detailing, details, count);
	return ok;
}

static void begin_detail(struct group_state *state, struct window_detail *detail, uint64_t from,
			 const struct heap_amount *levels)
{
	state->detail = detail;
	state->level = levels[detail->group];
	*detail = (struct window_detail){ .group = detail->group,
					  .peak_bytes = state->level.bytes,
					  .peak_count = state->level.count,
					  .most_count = state->level.count,
					  .peak_edge = from,
					  .first_ns = UINT64_MAX };
}

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

	half->ok = index_scan(&half->scan, &half->err) && !half->detailing.failed;
	return NULL;
}

// `details`: of this half, with their groups.
static bool begin_half(struct half *half, const struct detailing *whole,
		       const struct index_scan *scan, const struct window_query *query,
		       uint64_t from, uint64_t to, struct window_detail *details, size_t count,
		       struct err *err)
{
	struct heap_amount *levels =
		index_scan_levels(whole->index, query, from, scan->groups_count, err);

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
	for (size_t i = 0; i < count; i++) {
		half->detailing.states[i] = whole->states[i];
		if (whole->binned && !whole->states[i].lifetimes &&
		    whole->state_of[details[i].group] == i + 1)
			half->detailing.states[i].bins = mem_alloc(BINS, sizeof(uint32_t));
		begin_detail(&half->detailing.states[i], &details[i], from, levels);
	}
	mem_free(levels);
	return true;
}

static void end_half(struct half *half, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mem_free(half->detailing.states[i].bins);
	mem_free(half->detailing.states);
	index_clock_fini(&half->clock);
}

// What the second half found behind the first. Its lifetimes lie at the end of their room.
static bool join_detail(const struct group_state *state, struct window_detail *detail,
			const struct window_detail *more, struct err *err)
{
	uint64_t count = detail->lifetimes, added = more->lifetimes;

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
	detail->lifetimes += added;
	if (!state->lifetimes)
		return true;
	if (detail->lifetimes > state->room)
		return err_set(err, ERR_FORMAT, "the index is damaged: lifetimes");
	memmove(state->lifetimes + count, state->lifetimes + state->room - added,
		added * sizeof *state->lifetimes);
	return true;
}

// Of a row whose lifetimes are not kept.
static void join_bins(struct group_state *state, struct group_state *first,
		      const struct group_state *second)
{
	for (size_t bin = 0; first->bins && bin < BINS; bin++)
		first->bins[bin] += second->bins[bin];
	state->bins = first->bins;
	first->bins = NULL;
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

static bool detail_in_halves(struct detailing *detailing, const struct index_scan *scan,
			     const struct window_query *query, struct window_detail *details,
			     size_t count, struct err *err)
{
	unsigned log2 = detailing->index->shape.block_log2;
	uint64_t middle = (query->from + (query->to - query->from) / 2) >> log2 << log2;
	struct window_detail *behind = mem_alloc(count + 1, sizeof *behind);
	struct half halves[2];
	bool ok;

	ASSERT(query->from <= query->to);
	// Rounded down to a block, which both halves would have to decode otherwise. A window
	// within one block is all in the second half.
	if (middle < query->from)
		middle = query->from;
	for (size_t i = 0; i < count; i++)
		behind[i].group = details[i].group;
	ok = begin_half(&halves[0], detailing, scan, query, query->from, middle, details, count,
			err);
	detailing->backwards = true;
	ok = begin_half(&halves[1], detailing, scan, query, middle, query->to, behind, count,
			err) &&
	     ok && scan_halves(halves, err);
	detailing->backwards = false;
	for (size_t i = 0; ok && i < count; i++)
		ok = join_detail(&detailing->states[i], &details[i], &behind[i], err);
	for (size_t i = 0; ok && i < count; i++)
		join_bins(&detailing->states[i], &halves[0].detailing.states[i],
			  &halves[1].detailing.states[i]);
	end_half(&halves[0], count);
	end_half(&halves[1], count);
	mem_free(behind);
	return ok;
}

// Give each row room for its lifetimes, of which there are at most `lifetimes`. The room is the
// caller's; NULL: there are none. *binned: there are rows whose lifetimes are not kept.
static uint64_t *give_room(struct detailing *detailing, const struct window_detail *details,
			   size_t count, const uint64_t *lifetimes, uint64_t kept_max, bool *binned)
{
	uint64_t all = 0;
	uint64_t *room;

	*binned = false;
	for (size_t i = 0; i < count; i++)
		all += lifetimes[i] <= kept_max ? lifetimes[i] : 0;
	room = mem_alloc((size_t)all + 1, sizeof *room);
	all = 0;
	for (size_t i = 0; i < count; i++) {
		struct group_state *state = &detailing->states[i];

		// Of a group that was asked for twice only the last is told anything.
		if (detailing->state_of[details[i].group] != i + 1)
			continue;
		*binned |= lifetimes[i] > kept_max;
		if (lifetimes[i] > kept_max)
			continue;
		state->lifetimes = room + all;
		state->room = lifetimes[i];
		all += lifetimes[i];
	}
	return room;
}

// Rows that are asked for at once.
struct batch {
	struct window_detail *details;
	size_t count, groups_count;
	const uint64_t *lifetimes; // of each at most so many; NULL: they are not asked for
	uint64_t kept_max;         // of rows that have more they are not kept
};

static bool by_scan(struct detailing *detailing, const struct window_query *query,
		    const struct batch *batch, struct err *err)
{
	struct window_detail *details = batch->details;
	struct index_groups groups;
	struct index_scan scan = { .index = detailing->index,
				   .groups = &groups,
				   .from = query->from,
				   .to = query->to,
				   .groups_count = (uint32_t)batch->groups_count,
				   .wanted = detailing->state_of,
				   .lives = !query->peaks_only,
				   .context = detailing,
				   .visit = detail_step };
	uint64_t *room = NULL;
	bool ok, binned = false;

	detailing->states = mem_alloc(batch->count + 1, sizeof *detailing->states);
	if (batch->lifetimes)
		room = give_room(detailing, details, batch->count, batch->lifetimes,
				 batch->kept_max, &binned);
	detailing->binned = binned;
	detailing->shift = first_shift(detailing->index);
	detailing->keep_max = keep_max(detailing->index);
	index_groups_init(&groups, detailing->index, query);
	index_scan_prepare(&scan);
	ok = detail_in_halves(detailing, &scan, query, details, batch->count, err);
	for (size_t i = 0; ok && i < batch->count; i++)
		if (detailing->states[i].lifetimes)
			sort_lifetimes(&details[i], detailing->states[i].lifetimes);
	if (ok && binned)
		ok = count_lifetimes(detailing, details, batch->count, &scan, err);
	detailing->counting = false;
	for (size_t i = 0; i < batch->count; i++)
		if (details[i].first_ns == UINT64_MAX)
			details[i].first_ns = 0;
	for (size_t i = 0; i < batch->count; i++)
		details[i] = details[detailing->state_of[details[i].group] - 1];
	for (size_t i = 0; i < batch->count; i++)
		mem_free(detailing->states[i].bins);
	index_scan_fini(&scan);
	index_groups_fini(&groups);
	MEM_FREE(detailing->states, room);
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

// At most how many lifetimes end in each row, if they are asked for.
static bool count_ends(struct index *index, const struct window_query *query,
		       const struct window_detail *details, size_t count, uint64_t **ends,
		       struct err *err)
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
		if (details[i].group < result.rows_count)
			(*ends)[i] = window_freed(&result.rows[details[i].group]).count;
	window_result_fini(&result);
	return ok;
}

// What is kept of a row, in bytes, while it is asked for.
static uint64_t row_bytes(const struct batch *batch, size_t i)
{
	enum {
		ALWAYS = 3 * sizeof(struct group_state) + 2 * sizeof(struct window_detail),
		BINNED = 2 * (sizeof(struct target) + BINS * sizeof(uint32_t)),
	};

	if (!batch->lifetimes)
		return ALWAYS;
	return ALWAYS + (batch->lifetimes[i] > batch->kept_max
				 ? BINNED
				 : batch->lifetimes[i] * sizeof *batch->lifetimes);
}

static bool ask_batch(struct detailing *detailing, const struct window_query *query,
		      const struct batch *batch, struct err *err)
{
	bool ok;

	ASSERT(batch->count > 0 && batch->count < UINT32_MAX);
	for (size_t i = 0; i < batch->count; i++)
		detailing->state_of[batch->details[i].group] = (uint32_t)i + 1;
	ok = query->peaks_only && !query->by_size ? by_postings(detailing, query, batch, err)
						  : by_scan(detailing, query, batch, err);
	for (size_t i = 0; i < batch->count; i++)
		detailing->state_of[batch->details[i].group] = 0;
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
				       .lifetimes = all->lifetimes ? all->lifetimes + begin : NULL,
				       .kept_max = all->kept_max };
		uint64_t bytes = row_bytes(all, begin);

		for (end = begin + 1; end < all->count; end++) {
			bytes += row_bytes(all, end);
			if (bytes > room)
				break;
		}
		ASSERT(end > begin && end <= all->count);
		batch.count = end - begin;
		ok = ask_batch(detailing, query, &batch, err);
	}
	return ok;
}

// All lifetimes are kept if they fit; else those of rows of which they take less than bins. The
// counts of a damaged index may be of any size, as may their sum.
static uint64_t kept_max(const struct index *index, const uint64_t *lifetimes, size_t count)
{
	uint64_t room = index_room(index, BATCH_SHARE, sizeof *lifetimes), all = 0;

	for (size_t i = 0; lifetimes && i < count; i++) {
		if (lifetimes[i] > room - all)
			return room < BINNED_MIN ? room : BINNED_MIN;
		all += lifetimes[i];
	}
	return UINT64_MAX;
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
	if (!count_ends(index, query, details, count, &ends, err))
		return false;
	for (size_t i = 0; i < count; i++)
		if (details[i].group >= all.groups_count)
			all.groups_count = details[i].group + (size_t)1;
	all.lifetimes = ends;
	all.kept_max = kept_max(index, ends, count);
	detailing.state_of = mem_alloc(all.groups_count, sizeof *detailing.state_of);
	ok = ask_batches(&detailing, query, &all, err);
	MEM_FREE(detailing.state_of, ends);
	return ok;
}
