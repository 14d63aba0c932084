// Two ways to the same figures. A row of more than 2^18 steps is asked of the index by itself,
// since that costs the same however long it is. Shorter ones are too, unless there are so many of
// them that one pass costs less: then all allocations of their time go by once, and each counts
// for the rows that are open. What a site adds to a spike is what it had more at the top than at
// the beginning: a site that gave back 5 MiB and took 8 adds 3, and one that gave back more than
// it took is no part of it.
#include "report/find/spike_sites.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"

#include <stdlib.h>

enum { SHORT_STEPS = 1 << 18 }; // that a short row has at most

// Equals by where they are: which number a place has hangs on what was asked before.
static int heavier(const void *a, const void *b, void *context)
{
	const struct spikes_maker *left = a, *right = b;
	const struct query_context *asked = context;
	const struct query_context_place *l = &asked->places[left->place];
	const struct query_context_place *r = &asked->places[right->place];

	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return trace_compare_places(l->process, l->stack, r->process, r->stack);
}

// `makers`: of positive bytes, in any order.
// Sorts the makers of a row and keeps the first ten; the others become a sum.
static void settle(struct query_context *asked, struct spikes_row *row,
		   struct spikes_maker *spike_sites, size_t count)
{
	mem_sort(spike_sites, count, sizeof *spike_sites, heavier, asked);
	for (size_t i = 0; i < count; i++) {
		if (i < SPIKES_MAKERS) {
			row->spike_sites[row->spike_sites_count++] = spike_sites[i];
		} else {
			row->spike_sites_rest++;
			row->rest_bytes += spike_sites[i].bytes;
			row->rest_count += spike_sites[i].count;
		}
	}
}

// ---- one row ----

// Asks the index for the difference between two edges: what was begun between them and lives at the
// body (AIFO) less what was there before and ended (AOFI).
static bool ask_row(struct query_context *asked, struct spikes_row *row, struct err *err)
{
	struct window_query query = query_context_query(asked, QUERY_CONTEXT_BY_PLACE,
							row->begin_edge, row->hill.body_edge);
	struct window_result result;
	struct spikes_maker *spike_sites;
	size_t count = 0;

	query.as_it_is = true; // as the curve is
	query.edges_only = true;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	spike_sites = mem_alloc(result.rows_count + (size_t)1, sizeof *spike_sites);
	for (uint32_t g = 0; g < result.rows_count; g++) {
		const struct window_row *from = &result.rows[g];
		const struct spikes_maker maker = {
			.place = g,
			.bytes = window_impact(from),
			.count = (int64_t)(from->type[WINDOW_AIFO].count -
					   from->type[WINDOW_AOFI].count),
		};

		if (maker.bytes > 0)
			spike_sites[count++] = maker;
	}
	settle(asked, row, spike_sites, count);
	mem_free(spike_sites);
	window_result_fini(&result);
	return true;
}

// ---- many rows, in one pass ----

// A row that has begun and not yet reached its body.
struct open_row {
	struct spikes_row *row;
	struct map numbers; // place -> index of its maker + 1
	struct spikes_maker *spike_sites;
	size_t count, capacity;
};

// The one pass for many short rows. Both lists are in the order of their beginnings; each row is
// open from its beginning to its body.
struct passing {
	struct query_context *asked;
	struct spikes_row **rows; // the short ones, as they begin
	size_t count, next;
	struct open_row *open;
	size_t open_count;
};

static uint64_t steps_of(const struct spikes_row *row)
{
	return row->hill.body_edge - row->begin_edge;
}

SORT_ORDER(begins_earlier, struct spikes_row *const,
	   SORT_BY((*one)->begin_edge, (*other)->begin_edge), SORT_BY(*one, *other))

// The row has reached its body: its sums are final. Places that gave back more than they took are
// left out here, as ask_row does it.
static void close_row(struct query_context *asked, struct open_row *open)
{
	size_t kept = 0;

	for (size_t i = 0; i < open->count; i++)
		if (open->spike_sites[i].bytes > 0)
			open->spike_sites[kept++] = open->spike_sites[i];
	ASSERT(kept <= open->count);
	settle(asked, open->row, open->spike_sites, kept);
	map_fini(&open->numbers);
	mem_free(open->spike_sites);
}

// One block more or less, of a place. `numbers` has index + 1, since 0 is what a new entry holds.
static void add_change(struct open_row *open, const struct window_change *change)
{
	uint64_t *number = map_put(&open->numbers, change->group, NULL);
	struct spikes_maker *maker;

	if (*number == 0) {
		*MEM_ADD(open->spike_sites, open->count, open->capacity) =
			(struct spikes_maker){ .place = change->group };
		*number = open->count;
	}
	ASSERT(*number > 0 && *number <= open->count);
	maker = &open->spike_sites[*number - 1];
	maker->bytes += change->up ? (int64_t)change->bytes : -(int64_t)change->bytes;
	maker->count += change->up ? 1 : -1;
}

// Closes the rows that end before this change, opens those that begin before it, and counts the
// change for all that are open. A row can be opened and be over before its first change of this
// kind of filter: such a one is left out, as it has no maker.
static bool pass_change(void *context, const struct window_change *change)
{
	struct passing *passing = context;
	size_t kept = 0;

	for (size_t i = 0; i < passing->open_count; i++) {
		struct open_row *open = &passing->open[i];

		if (open->row->hill.body_edge < change->edge)
			close_row(passing->asked, open);
		else
			passing->open[kept++] = *open;
	}
	passing->open_count = kept;
	for (; passing->next < passing->count &&
	       passing->rows[passing->next]->begin_edge < change->edge;
	     passing->next++)
		if (passing->rows[passing->next]->hill.body_edge >= change->edge)
			passing->open[passing->open_count++] =
				(struct open_row){ .row = passing->rows[passing->next] };
	ASSERT(passing->open_count <= passing->count && passing->next <= passing->count);
	for (size_t i = 0; i < passing->open_count; i++)
		add_change(&passing->open[i], change);
	return passing->open_count > 0 || passing->next < passing->count;
}

// Goes once from the first beginning to the last body. `rows` are in the order of their beginnings,
// and there is at least one.
static bool pass_rows(struct query_context *asked, struct spikes_row **rows, size_t count,
		      struct err *err)
{
	struct passing passing = { .asked = asked,
				   .rows = rows,
				   .count = count,
				   .open = mem_alloc(count + 1, sizeof *passing.open) };
	struct window_query query;
	uint64_t to = 0;
	bool ok;

	ASSERT(count > 0);
	for (size_t i = 0; i < count; i++)
		if (rows[i]->hill.body_edge > to)
			to = rows[i]->hill.body_edge;
	query = query_context_query(asked, QUERY_CONTEXT_BY_PLACE, rows[0]->begin_edge, to);
	ok = window_changes(asked->window, &query, pass_change, &passing, err);
	for (size_t i = 0; i < passing.open_count; i++)
		close_row(asked, &passing.open[i]);
	mem_free(passing.open);
	return ok;
}

// A question goes to all stacks at two edges, a pass to all steps between the first and the last
// row.
static bool pass_is_less(const struct query_context *asked, uint64_t questions)
{
	return questions * reader_stacks_count(asked->reader) > asked->to - asked->from;
}

bool spike_sites_find(struct query_context *asked, struct spikes_row *rows, size_t count,
		      struct err *err)
{
	struct spikes_row **passed = mem_alloc(count + 1, sizeof *passed);
	size_t passed_count = 0;
	bool ok = true, pass;

	for (size_t i = 0; i < count; i++)
		if (steps_of(&rows[i]) <= SHORT_STEPS)
			passed[passed_count++] = &rows[i];
	pass = pass_is_less(asked, passed_count);
	for (size_t i = 0; ok && i < count; i++)
		if (!pass || steps_of(&rows[i]) > SHORT_STEPS)
			ok = ask_row(asked, &rows[i], err);
	if (ok && pass) {
		qsort(passed, passed_count, sizeof(struct spikes_row *), begins_earlier);
		ok = pass_rows(asked, passed, passed_count, err);
	}
	mem_free(passed);
	return ok;
}
