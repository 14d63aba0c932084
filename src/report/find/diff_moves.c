// Which of the rows that are gone are new ones elsewhere: a function was renamed, or is called from
// somewhere else.
//
// Two rows are one that moved if they are of one program, allocated about as often and as much (a
// tenth more or less), and if half of their frames are the same: those from the root on down to
// where they part, and those from the innermost on up. Where several would do, those with equal
// figures come first, then those that share more frames. For example
//
//     gone   200 calls, 12,800 bytes   read < parse     < load < run < main
//     new    200 calls, 12,800 bytes   read < parse_doc < load < run < main     shares 8 of 10
//     new    200 calls, 12,800 bytes   copy < save      < run < main            shares 4 of 9
//
// makes the first two one row, "moved", that changed by nothing; the third stays new.
#include "report/find/diff.h"

#include "base/mem.h"
#include "base/sort.h"
#include "report/find/stack_match.h"

#include <stdlib.h>
#include <string.h>

enum {
	FRAMES_MAX = 512,     // of a stack that are compared, from the innermost on
	LOOKED_AT_MAX = 1000, // new rows of like figures, for each that is gone
};

// Parts: of the lesser figure in the greater, and of frames that two stacks have in common.
#define ALIKE 0.9
#define SHARED 0.5

struct moves {
	struct diff_row *rows; // borrowed
	const struct stack_match *stack_match;
	uint32_t *gone, *fresh; // rows; sorted by program and calls
	size_t gone_count, fresh_count;
	struct pairing *pairings;
	size_t pairings_count, pairings_capacity;
};

// A row that is gone may be one that is new.
struct pairing {
	uint32_t gone, fresh; // rows
	bool equal;           // in all figures
	double shared;        // frames, of both
};

// What it allocated on the side on which it is.
static const struct heap_amount *amount_of(const struct diff_row *row)
{
	return &row->figures[DIFF_ALLOCATED].side[row->place[1].process != TRACE_NONE];
}

// `a` and `b` are numbers of rows. So rows of like figures are next to each other, and look_for
// needs to look at few.
static int compare_by_calls(const void *a, const void *b, void *context)
{
	const struct moves *moves = context;
	const struct diff_row *left = &moves->rows[*(const uint32_t *)a];
	const struct diff_row *right = &moves->rows[*(const uint32_t *)b];

	if (left->program != right->program)
		return left->program < right->program ? -1 : 1;
	if (amount_of(left)->count != amount_of(right)->count)
		return amount_of(left)->count < amount_of(right)->count ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

// 90 and 100 are, 89 and 100 are not; 0 is alike to 0.
static bool alike(uint64_t a, uint64_t b)
{
	return (double)(a < b ? a : b) >= ALIKE * (double)(a < b ? b : a);
}

static bool all_equal(const struct diff_row *gone, const struct diff_row *fresh)
{
	for (int figure = 0; figure < DIFF_FIGURES; figure++) {
		struct heap_amount before = gone->figures[figure].side[0];
		struct heap_amount after = fresh->figures[figure].side[1];

		if (before.count != after.count || before.bytes != after.bytes)
			return false;
	}
	return true;
}

// Part of the frames of two stacks that are in both, from either end.
static double share(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
	size_t least = a_count < b_count ? a_count : b_count, inner = 0, outer = 0;

	while (inner < least && a[inner] == b[inner])
		inner++;
	while (outer < least - inner && a[a_count - 1 - outer] == b[b_count - 1 - outer])
		outer++;
	ASSERT(inner + outer <= least);
	return a_count + b_count ? 2.0 * (double)(inner + outer) / (double)(a_count + b_count) : 0;
}

// The first new row of the program with so many calls or more.
static size_t find_first(const struct moves *moves, uint32_t program, double calls)
{
	size_t low = 0, high = moves->fresh_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct diff_row *row = &moves->rows[moves->fresh[middle]];

		if (row->program < program ||
		    (row->program == program && (double)amount_of(row)->count < calls))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Adds a pairing for each new row that may be this one. A thousand rows of like figures are looked
// at and no more: of stacks that are called once each there may be tens of thousands.
static void look_for(struct moves *moves, uint32_t gone)
{
	const struct diff_row *row = &moves->rows[gone];
	uint32_t frames[2][FRAMES_MAX];
	size_t count, looked_at = 0;

	count = stack_match_frames(moves->stack_match, row->twin, frames[0], FRAMES_MAX);
	for (size_t i = find_first(moves, row->program, ALIKE * (double)amount_of(row)->count);
	     i < moves->fresh_count && looked_at < LOOKED_AT_MAX; i++, looked_at++) {
		const struct diff_row *other = &moves->rows[moves->fresh[i]];
		double shared;

		if (other->program != row->program ||
		    (amount_of(other)->count > amount_of(row)->count &&
		     !alike(amount_of(other)->count, amount_of(row)->count)))
			break;
		if (!alike(amount_of(other)->bytes, amount_of(row)->bytes))
			continue;
		shared = share(frames[0], count, frames[1],
			       stack_match_frames(moves->stack_match, other->twin, frames[1],
						  FRAMES_MAX));
		if (shared < SHARED)
			continue;
		MEM_ROOM(moves->pairings, moves->pairings_capacity, moves->pairings_count + 1);
		moves->pairings[moves->pairings_count++] =
			(struct pairing){ gone, moves->fresh[i], all_equal(row, other), shared };
	}
}

SORT_ORDER(best_first, struct pairing, SORT_FALLS(equal), SORT_FALLS(shared), SORT_RISES(gone),
	   SORT_RISES(fresh))

// The new one takes all that the other had; that one is no row any more.
static void join(struct diff *diff, struct diff_row *gone, struct diff_row *fresh)
{
	size_t each = (diff->runs[0] + diff->runs[1]) * (size_t)DIFF_FIGURES;
	struct heap_amount *from = diff->row_amounts.at + gone->number * each;
	struct heap_amount *to = diff->row_amounts.at + fresh->number * each;

	ASSERT(gone->number != fresh->number && !fresh->moved);
	for (size_t i = 0; i < diff->runs[0] * (size_t)DIFF_FIGURES; i++)
		to[i] = from[i];
	memset(from, 0, each * sizeof *from);
	for (int figure = 0; figure < DIFF_FIGURES; figure++)
		fresh->figures[figure].side[0] = gone->figures[figure].side[0];
	fresh->place[0] = gone->place[0];
	fresh->moved = true;
	gone->place[0].process = TRACE_NONE;
}

// The best pairings of all are taken first, and each row is in one at most. Rows that were joined
// are left out; the others stay in their order.
size_t diff_moves_join(struct diff *diff, struct diff_row *rows, size_t count,
		       const struct stack_match *stack_match)
{
	struct moves moves = { .rows = rows, .stack_match = stack_match };
	size_t kept = 0;

	moves.gone = mem_alloc(count + 1, sizeof *moves.gone);
	moves.fresh = mem_alloc(count + 1, sizeof *moves.fresh);
	// What both sides have has not moved.
	for (size_t i = 0; i < count; i++)
		if (!amount_of(&rows[i])->count)
			continue;
		else if (rows[i].place[1].process == TRACE_NONE)
			moves.gone[moves.gone_count++] = (uint32_t)i;
		else if (rows[i].place[0].process == TRACE_NONE)
			moves.fresh[moves.fresh_count++] = (uint32_t)i;
	mem_sort(moves.fresh, moves.fresh_count, sizeof *moves.fresh, compare_by_calls, &moves);
	for (size_t i = 0; i < moves.gone_count; i++)
		look_for(&moves, moves.gone[i]);
	if (moves.pairings_count)
		qsort(moves.pairings, moves.pairings_count, sizeof *moves.pairings, best_first);
	for (size_t i = 0; i < moves.pairings_count; i++) {
		struct diff_row *gone = &rows[moves.pairings[i].gone];
		struct diff_row *fresh = &rows[moves.pairings[i].fresh];

		if (gone->place[0].process != TRACE_NONE && !fresh->moved)
			join(diff, gone, fresh);
	}
	for (size_t i = 0; i < count; i++)
		if (rows[i].place[0].process != TRACE_NONE ||
		    rows[i].place[1].process != TRACE_NONE)
			rows[kept++] = rows[i];
	ASSERT(kept <= count);
	MEM_FREE(moves.gone, moves.fresh, moves.pairings);
	return kept;
}
