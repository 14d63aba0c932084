#include "base/mem.h"
#include "engine/index_scan.h"

#include <stdlib.h>
#include <string.h>

enum {
	COLLECT_MAX = 1 << 20,   // lifetimes of a question by lifetime
	LIFETIMES_MAX = 1 << 21, // kept at once to be sorted
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
	detailing->too_many = ++detailing->total > LIFETIMES_MAX;
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

	if (!detailing->state_of[step->group])
		return true;
	state = &detailing->states[detailing->state_of[step->group] - 1];
	if (!detailing->counting)
		move_level(state, step);
	if (step->up || step->exit)
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

static void begin_detail(struct group_state *state, struct window_detail *detail,
			 const struct window_query *query, const struct heap_amount *levels)
{
	state->detail = detail;
	state->level = levels[detail->group];
	*detail = (struct window_detail){ .group = detail->group,
					  .peak_bytes = state->level.bytes,
					  .peak_count = state->level.count,
					  .peak_edge = query->from,
					  .first_ns = UINT64_MAX };
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
				   .lives = true,
				   .context = detailing,
				   .visit = detail_step };
	struct heap_amount *levels = index_scan_levels(detailing->index, detailing->clock, query,
						       query->from, groups_count, err);
	bool ok;

	if (!levels)
		return false;
	index_groups_init(&groups, detailing->index, query);
	for (size_t i = 0; i < count; i++)
		begin_detail(&detailing->states[i], &details[i], query, levels);
	mem_free(levels);
	ok = index_scan(&scan, err) && !detailing->failed;
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
	index_groups_fini(&groups);
	return ok;
}

bool index_detail(struct index *index, struct index_clock *clock, const struct window_query *query,
		  struct window_detail *details, size_t count, struct err *err)
{
	struct detailing detailing = { .index = index, .clock = clock, .err = err };
	struct plain plain = { 0 };
	size_t groups_count = 1;
	bool ok;

	if (query->lifetime_min_ns || query->lifetime_max_ns) {
		ok = index_collect(index, clock, query, COLLECT_MAX, &plain, err);
		if (ok)
			plain_detail(&plain, query, details, count);
		plain_fini(&plain);
		return ok;
	}
	for (size_t i = 0; i < count; i++)
		if (details[i].group >= groups_count)
			groups_count = details[i].group + (size_t)1;
	detailing.states = mem_alloc(count + 1, sizeof *detailing.states);
	detailing.state_of = mem_alloc(groups_count, sizeof *detailing.state_of);
	for (size_t i = 0; i < count; i++)
		detailing.state_of[details[i].group] = (uint32_t)i + 1;
	ok = by_scan(&detailing, query, details, count, groups_count, err);
	mem_free(detailing.states);
	mem_free(detailing.state_of);
	return ok;
}
