// The index knows a block by the steps of its life. So there is first a bit for each step, in any
// order, and then the steps are gone through as they rise, which finds the numbers of their events
// a block of steps at a time.
#include "engine/window_alive.h"

#include "base/mem.h"
#include "engine/window_source.h"

struct steps {
	uint64_t *bits;
	uint64_t from; // all are below it
	bool ended;    // only blocks that end before `to`
	uint64_t to;
};

// One of the index's, which may give others than were asked for.
static bool add_step(void *context, const struct window_allocation *allocation)
{
	const struct steps *steps = context;

	ASSERT(steps->from <= steps->to);
	if (allocation->begin >= steps->from || (steps->ended && allocation->end >= steps->to))
		return true;
	steps->bits[allocation->begin / 64] |= UINT64_C(1) << allocation->begin % 64;
	return true;
}

// The bits of `steps` as those of the events that they are of.
static bool number_steps(struct window_alive *alive, struct window *window,
			 const struct steps *steps, struct err *err)
{
	for (uint64_t word = 0; word * 64 < steps->from; word++)
		for (uint64_t left = steps->bits[word]; left; left &= left - 1) {
			uint64_t step = word * 64 + (unsigned)__builtin_ctzll(left), number;

			if (!window_source_number(window, step, &number, err) ||
			    number >= alive->number)
				return false;
			alive->bits[number / 64] |= UINT64_C(1) << number % 64;
			alive->count++;
		}
	return true;
}

// How many of them live at one time: of all blocks the index knows that; of those that are asked
// about there are no more than were there, and came.
static bool find_most(struct window_alive *alive, struct window *window,
		      const struct window_query *query, bool ended, struct err *err)
{
	struct window_detail detail = { .group = WINDOW_SKIP };
	struct window_query peaks = *query;
	struct window_result result;

	peaks.peaks_only = true;
	if (!window_detail(window, &peaks, &detail, 1, err) ||
	    !window_ask(window, query, &result, err))
		return false;
	alive->most = detail.most_count;
	if (ended && alive->most > alive->count + window_allocated(&result.total).count)
		alive->most = alive->count + window_allocated(&result.total).count;
	window_result_fini(&result);
	return true;
}

// The edges of the wish, as steps.
static bool find_edges(struct window_alive *alive, struct window *window,
		       const struct window_alive_wish *wish, struct window_query *query,
		       struct err *err)
{
	uint64_t number;

	query->from = WINDOW_START;
	query->to = window_facts(window)->steps_end;
	return (!wish->from ||
		window_source_edge(window, wish->from, &query->from, &alive->number, err)) &&
	       (!wish->to || window_source_edge(window, wish->to, &query->to, &number, err)) &&
	       query->from <= query->to;
}

// Walks over lifetimes at the moment, without their dates.
static bool find(struct window_alive *alive, struct window *window,
		 const struct window_alive_wish *wish, struct err *err)
{
	struct window_query query = { .exit_frees = wish->exit_frees,
				      .as_it_is = true,
				      .undated = true };
	struct window_query walk;
	struct steps steps;
	bool good;

	if (!find_edges(alive, window, wish, &query, err))
		return false;
	steps = (struct steps){ .bits = mem_alloc((size_t)(query.from / 64) + 1,
						  sizeof *steps.bits),
				.from = query.from,
				.ended = wish->ended,
				.to = query.to };
	alive->bits = mem_alloc((size_t)(alive->number / 64) + 1, sizeof *alive->bits);
	walk = query;
	walk.walk_types = 1u << WINDOW_AOFI;
	if (!wish->ended)
		walk.to = walk.from; // what lives there
	good = (walk.from == WINDOW_START || window_walk(window, &walk, add_step, &steps, err)) &&
	       number_steps(alive, window, &steps, err) &&
	       find_most(alive, window, &query, wish->ended, err);
	mem_free(steps.bits);
	return good;
}

// What went wrong is not said: who asked then reads the trace, and the next opening of a damaged
// index builds it again.
bool window_alive_find(struct window_alive *alive, struct window *window,
		       const struct window_alive_wish *wish)
{
	struct err err = { 0 };
	bool good;

	*alive = (struct window_alive){ 0 };
	good = window_source_is_exact(window) && find(alive, window, wish, &err);
	if (!good)
		window_alive_fini(alive);
	return good;
}

void window_alive_fini(struct window_alive *alive)
{
	mem_free(alive->bits);
	*alive = (struct window_alive){ 0 };
}

uint64_t window_alive_next(const struct window_alive *alive, uint64_t number)
{
	uint64_t word = number / 64, words = (alive->number + 63) / 64, bits;

	if (number >= alive->number)
		return UINT64_MAX;
	bits = alive->bits[word] & UINT64_MAX << number % 64;
	while (!bits && ++word < words)
		bits = alive->bits[word];
	return bits ? word * 64 + (unsigned)__builtin_ctzll(bits) : alive->number - 1;
}
