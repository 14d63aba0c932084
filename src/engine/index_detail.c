#include "base/mem.h"
#include "engine/index_scan.h"
#include "os/thread.h"

#include <stdlib.h>
#include <string.h>

enum {
	LIFETIMES_SHARE =
		16, // of the memory, for those kept at once to be sorted by each of two threads
	BINS = 4096,
};

// One of the two lifetimes that are asked of a group: it lies in [low, low + BINS << shift), and
// `rank` shorter ones of these come before it.
struct target {
	uint64_t low, rank;
	unsigned shift;
	uint32_t *bins;
	bool found;
};

struct group_state {
	struct window_detail *detail;
	struct heap_amount level;
	uint64_t *lifetimes;
	size_t lifetimes_capacity;
	struct target targets[2];
};

struct detailing {
	struct index *index;
	struct index_clock *clock;
	struct group_state *states;
	uint32_t *state_of; // by group: number + 1
	size_t total;       // lifetimes kept
	bool too_many;      // to keep
	bool counting;      // bins
	struct err *err;
	bool failed;
};

static bool lifetime_of(struct detailing *detailing, const struct index_scan_step *step,
			uint64_t *lifetime_ns)
{
	uint64_t begin_ns;

	if (!index_clock_time(detailing->clock, detailing->index, step->begin, &begin_ns,
			      detailing->err)) {
		detailing->failed = true;
		return false;
	}
	*lifetime_ns = step->time_ns - begin_ns;
	return true;
}

static void keep_lifetime(struct detailing *detailing, struct group_state *state,
			  uint64_t lifetime_ns)
{
	uint64_t at = state->detail->lifetimes++;

	if (detailing->too_many)
		return;
	detailing->too_many = ++detailing->total >
			      index_room(detailing->index, LIFETIMES_SHARE, sizeof(uint64_t));
	state->lifetimes = mem_grow(state->lifetimes, &state->lifetimes_capacity, (size_t)at + 1,
				    sizeof *state->lifetimes);
	state->lifetimes[at] = lifetime_ns;
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
	if (state->level.bytes > detail->peak_bytes) {
		detail->peak_bytes = state->level.bytes;
		detail->peak_edge = step->step + 1;
	}
	if (state->level.count > detail->peak_count)
		detail->peak_count = state->level.count;
	if (detail->first_ns == UINT64_MAX)
		detail->first_ns = step->time_ns;
	detail->last_ns = step->time_ns;
}

static bool detail_step(void *context, const struct index_scan_step *step)
{
	struct detailing *detailing = context;
	struct group_state *state;
	uint64_t lifetime_ns;

	state = &detailing->states[detailing->state_of[step->group] - 1];
	if (!detailing->counting)
		move_level(state, step);
	if (step->up || step->exit || step->begin == 0)
		return true;
	if (!lifetime_of(detailing, step, &lifetime_ns))
		return false;
	if (!detailing->counting) {
		keep_lifetime(detailing, state, lifetime_ns);
		return true;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct target *target = &state->targets[i];

		if (!target->found && lifetime_ns >= target->low &&
		    (lifetime_ns - target->low) >> target->shift < BINS)
			target->bins[(lifetime_ns - target->low) >> target->shift]++;
	}
	return true;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sort_lifetimes(struct group_state *state)
{
	struct window_detail *detail = state->detail;
	size_t count = (size_t)detail->lifetimes;

	if (count == 0)
		return;
	qsort(state->lifetimes, count, sizeof *state->lifetimes, compare_u64);
	detail->lifetime_median_ns = state->lifetimes[(count - 1) / 2];
	detail->lifetime_p99_ns = state->lifetimes[(count - 1) * 99 / 100];
}

// After a pass: the bin that the target lies in is where the next pass looks closer.
static bool narrow(struct target *target)
{
	uint64_t bin = 0;

	while (bin + 1 < BINS && target->rank >= target->bins[bin])
		target->rank -= target->bins[bin++];
	target->low += bin << target->shift;
	target->found = target->shift == 0;
	target->shift = target->shift > 12 ? target->shift - 12 : 0;
	memset(target->bins, 0, BINS * sizeof *target->bins);
	return target->found;
}

// More lifetimes than can be kept: each pass over the window finds twelve bits of those asked for.
static bool count_lifetimes(struct detailing *detailing, size_t count, struct index_scan *scan,
			    struct err *err)
{
	bool ok = true, all = false;

	detailing->counting = true;
	for (size_t i = 0; i < count; i++) {
		struct group_state *state = &detailing->states[i];
		uint64_t last = state->detail->lifetimes ? state->detail->lifetimes - 1 : 0;

		for (unsigned k = 0; k < 2; k++)
			state->targets[k] = (struct target){
				.rank = k ? last * 99 / 100 : last / 2,
				.shift = 52,
				.bins = mem_alloc(BINS, sizeof(uint32_t)),
				.found = state->detail->lifetimes == 0,
			};
	}
	// Lifetimes are shorter than the trace.
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < 2; k++)
			while (detailing->states[i].targets[k].shift > 0 &&
			       (uint64_t)BINS << (detailing->states[i].targets[k].shift - 1) >
				       detailing->index->duration_ns)
				detailing->states[i].targets[k].shift--;
	while (ok && !all) {
		ok = index_scan(scan, err) && !detailing->failed;
		all = true;
		for (size_t i = 0; i < count; i++)
			for (unsigned k = 0; k < 2; k++) {
				struct target *target = &detailing->states[i].targets[k];

				if (!target->found)
					all &= narrow(target);
			}
	}
	for (size_t i = 0; i < count; i++) {
		struct window_detail *detail = detailing->states[i].detail;

		detail->lifetime_median_ns = detail->lifetimes ? detailing->states[i].targets[0].low
							       : 0;
		detail->lifetime_p99_ns = detail->lifetimes ? detailing->states[i].targets[1].low
							    : 0;
		mem_free(detailing->states[i].targets[0].bins);
		mem_free(detailing->states[i].targets[1].bins);
	}
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

static bool begin_half(struct half *half, const struct detailing *whole,
		       const struct index_scan *scan, const struct window_query *query,
		       uint64_t from, uint64_t to, const struct window_detail *details,
		       size_t count, size_t groups_count, struct err *err)
{
	struct heap_amount *levels =
		index_scan_levels(whole->index, query, from, groups_count, err);

	*half = (struct half){ .scan = *scan, .detailing = *whole };
	half->scan.from = from;
	half->scan.to = to;
	half->scan.context = &half->detailing;
	half->detailing.clock = &half->clock;
	half->detailing.err = &half->err;
	half->detailing.states = mem_alloc(count + 1, sizeof *half->detailing.states);
	half->details = mem_alloc(count + 1, sizeof *half->details);
	if (!levels)
		return false;
	memcpy(half->details, details, count * sizeof *details);
	for (size_t i = 0; i < count; i++)
		begin_detail(&half->detailing.states[i], &half->details[i], from, levels);
	mem_free(levels);
	return true;
}

static void end_half(struct half *half, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mem_free(half->detailing.states[i].lifetimes);
	mem_free(half->detailing.states);
	mem_free(half->details);
	index_clock_fini(&half->clock);
}

// What the second half found behind the first. `kept`: all lifetimes were, in both.
static void join_detail(struct group_state *state, const struct group_state *other, bool kept)
{
	struct window_detail *detail = state->detail;
	const struct window_detail *more = other->detail;
	size_t count = (size_t)detail->lifetimes, added = (size_t)more->lifetimes;

	if (more->peak_bytes > detail->peak_bytes) {
		detail->peak_bytes = more->peak_bytes;
		detail->peak_edge = more->peak_edge;
	}
	if (more->peak_count > detail->peak_count)
		detail->peak_count = more->peak_count;
	if (detail->first_ns == UINT64_MAX)
		detail->first_ns = more->first_ns;
	if (more->first_ns != UINT64_MAX)
		detail->last_ns = more->last_ns;
	detail->lifetimes += added;
	if (!kept || added == 0)
		return;
	state->lifetimes = mem_grow(state->lifetimes, &state->lifetimes_capacity, count + added,
				    sizeof *state->lifetimes);
	memcpy(state->lifetimes + count, other->lifetimes, added * sizeof *state->lifetimes);
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
			     size_t count, size_t groups_count, struct err *err)
{
	unsigned log2 = detailing->index->shape.block_log2;
	uint64_t middle = (query->from + (query->to - query->from) / 2) >> log2 << log2;
	struct half halves[2];
	bool ok, kept;

	if (middle < query->from)
		middle = query->from;
	ok = begin_half(&halves[0], detailing, scan, query, query->from, middle, details, count,
			groups_count, err);
	ok = begin_half(&halves[1], detailing, scan, query, middle, query->to, details, count,
			groups_count, err) &&
	     ok && scan_halves(halves, err);
	kept = !halves[0].detailing.too_many && !halves[1].detailing.too_many;
	for (size_t i = 0; ok && i < count; i++) {
		struct group_state *state = &detailing->states[i];

		join_detail(&halves[0].detailing.states[i], &halves[1].detailing.states[i], kept);
		*state = halves[0].detailing.states[i];
		halves[0].detailing.states[i].lifetimes = NULL;
		details[i] = halves[0].details[i];
		state->detail = &details[i];
	}
	detailing->too_many = !kept;
	end_half(&halves[0], count);
	end_half(&halves[1], count);
	return ok;
}

static bool by_scan(struct detailing *detailing, const struct window_query *query,
		    struct window_detail *details, size_t count, size_t groups_count,
		    struct err *err)
{
	struct index_groups groups;
	struct index_scan scan = { .index = detailing->index,
				   .groups = &groups,
				   .from = query->from,
				   .to = query->to,
				   .groups_count = (uint32_t)groups_count,
				   .wanted = detailing->state_of,
				   .lives = !query->peaks_only,
				   .context = detailing,
				   .visit = detail_step };
	bool ok;

	index_groups_init(&groups, detailing->index, query);
	index_scan_prepare(&scan);
	ok = detail_in_halves(detailing, &scan, query, details, count, groups_count, err);
	if (ok && detailing->too_many)
		ok = count_lifetimes(detailing, count, &scan, err);
	for (size_t i = 0; i < count; i++) {
		if (ok && !detailing->too_many)
			sort_lifetimes(&detailing->states[i]);
		if (details[i].first_ns == UINT64_MAX)
			details[i].first_ns = 0;
		mem_free(detailing->states[i].lifetimes);
	}
	// A group that was asked for twice.
	for (size_t i = 0; i < count; i++)
		details[i] = details[detailing->state_of[details[i].group] - 1];
	index_scan_fini(&scan);
	index_groups_fini(&groups);
	return ok;
}

// By postings where that is less, the rest by scan.
static bool by_postings(struct detailing *detailing, const struct window_query *query,
			struct window_detail *details, size_t count, size_t groups_count,
			struct err *err)
{
	bool *done = mem_alloc(count + 1, sizeof *done);
	struct window_detail *rest = mem_alloc(count + 1, sizeof *rest);
	size_t rest_count = 0;
	bool ok = index_peaks(detailing->index, detailing->clock, query, details, count,
			      detailing->state_of, groups_count, done, err);

	for (size_t i = 0; i < count; i++) {
		if (done[i] || detailing->state_of[details[i].group] != i + 1)
			continue;
		rest[rest_count++].group = details[i].group;
		detailing->state_of[details[i].group] = (uint32_t)rest_count;
	}
	if (ok && rest_count > 0) {
		for (size_t i = 0; i < count; i++)
			if (done[i])
				detailing->state_of[details[i].group] = 0;
		ok = by_scan(detailing, query, rest, rest_count, groups_count, err);
	}
	for (size_t i = 0, k = 0; i < count && k < rest_count; i++)
		if (!done[i] && details[i].group == rest[k].group)
			details[i] = rest[k++];
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i && !done[i]; k++)
			if (details[k].group == details[i].group)
				details[i] = details[k];
	mem_free(done);
	mem_free(rest);
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

bool index_detail(struct index *index, struct index_clock *clock, const struct window_query *query,
		  struct window_detail *details, size_t count, struct err *err)
{
	struct detailing detailing = { .index = index, .clock = clock, .err = err };
	struct plain plain = { 0 };
	size_t groups_count = 1;
	bool ok;

	if (query->lifetime_min_ns || query->lifetime_max_ns) {
		ok = index_collect(index, clock, query, &plain, err);
		if (ok)
			plain_detail(&plain, query, details, count);
		plain_fini(&plain);
		return ok;
	}
	if (query->peaks_only && !query->by_size && count == 1 && is_whole(index, query, details))
		return index_peak_of_all(index, clock, query, details, err);
	for (size_t i = 0; i < count; i++)
		if (details[i].group >= groups_count)
			groups_count = details[i].group + (size_t)1;
	detailing.states = mem_alloc(count + 1, sizeof *detailing.states);
	detailing.state_of = mem_alloc(groups_count, sizeof *detailing.state_of);
	for (size_t i = 0; i < count; i++)
		detailing.state_of[details[i].group] = (uint32_t)i + 1;
	ok = query->peaks_only && !query->by_size
		     ? by_postings(&detailing, query, details, count, groups_count, err)
		     : by_scan(&detailing, query, details, count, groups_count, err);
	mem_free(detailing.states);
	mem_free(detailing.state_of);
	return ok;
}
