// For example, a function covers [0, 100), and one that was inlined into it [20, 40), a level
// deeper. The pieces are [0, 20) of the outer one, [20, 40) of the inner one, and [40, 100) of the
// outer one again. A sweep goes from address to address where something begins or ends; the ranges
// that it is in are in a heap, the innermost on top. A range that has ended is taken out when it
// comes to the top, and not before, as nothing asks for it below that.
#include "symbols/nest.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"

#include <stdlib.h>

struct nest_piece {
	uint64_t start, end;
	uint32_t value;
};

// The ranges that contain the address of the sweep, the innermost on top: a binary heap.
struct heap {
	const struct nest_range **items;
	size_t count;
};

// The order of nest_range, as nest.h promises it: a strict order, so that the answer does not
// depend on how the ranges came.
static bool is_inner(const struct nest_range *a, const struct nest_range *b)
{
	if (a->depth != b->depth)
		return a->depth > b->depth;
	if (a->start != b->start)
		return a->start > b->start;
	if (a->end != b->end)
		return a->end < b->end;
	return a->value < b->value;
}

static void heap_push(struct heap *heap, const struct nest_range *range)
{
	size_t at = heap->count++;

	while (at > 0 && is_inner(range, heap->items[(at - 1) / 2])) {
		heap->items[at] = heap->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap->items[at] = range;
}

// The last item sinks from the top: the one that is further inside of two below moves up, until
// neither is further inside than it.
static void heap_pop(struct heap *heap)
{
	const struct nest_range *last;
	size_t at = 0;

	ASSERT(heap->count > 0);
	last = heap->items[--heap->count];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= heap->count)
			break;
		if (child + 1 < heap->count && is_inner(heap->items[child + 1], heap->items[child]))
			child++;
		if (!is_inner(heap->items[child], last))
			break;
		heap->items[at] = heap->items[child];
		at = child;
	}
	heap->items[at] = last;
}

SORT_ORDER(compare_starts, struct nest_range, SORT_RISES(start))

static void add_piece(struct nest *nest, uint64_t start, uint64_t end, uint32_t value)
{
	struct nest_piece *last = nest->count > 0 ? &nest->pieces[nest->count - 1] : NULL;

	ASSERT(start < end && (!last || last->end <= start)); // they rise, and none is empty
	if (last && last->end == start && last->value == value)
		last->end = end;
	else
		nest->pieces[nest->count++] = (struct nest_piece){ start, end, value };
}

void nest_build(struct nest *nest, struct nest_range *ranges, size_t count)
{
	struct heap heap = { 0 };
	uint64_t at = 0;
	size_t next = 0;

	*nest = (struct nest){ 0 };
	if (count == 0)
		return;
	qsort(ranges, count, sizeof *ranges, compare_starts);
	nest->pieces = mem_alloc(count, 2 * sizeof *nest->pieces);
	heap.items = mem_alloc(count, sizeof *heap.items);

	// `at` is where the sweep is. The heap has ranges that begin at or before `at`; those that
	// have ended may linger below the top. Until the next begin, or the end of the top range,
	// nothing changes: that stretch is one piece, with the value of the top.
	// Every turn either ends a range or begins at least one, so there are at most 2 * count.
	for (;;) {
		uint64_t until;

		while (heap.count > 0 && heap.items[0]->end <= at)
			heap_pop(&heap);
		if (heap.count == 0) {
			if (next == count)
				break;
			at = ranges[next].start;
		} else {
			until = heap.items[0]->end;
			if (next < count && ranges[next].start < until)
				until = ranges[next].start;
			if (until > at)
				add_piece(nest, at, until, heap.items[0]->value);
			at = until;
		}
		ASSERT(heap.count <= next);
		for (; next < count && ranges[next].start <= at; next++)
			if (ranges[next].end > ranges[next].start)
				heap_push(&heap, &ranges[next]);
	}
	ASSERT(nest->count <= 2 * count);
	mem_free(heap.items);
}

void nest_fini(struct nest *nest)
{
	mem_free(nest->pieces);
	*nest = (struct nest){ 0 };
}

bool nest_find(const struct nest *nest, uint64_t address, uint32_t *value)
{
	size_t low = RISING_UPTO(nest->pieces, nest->count, end, address);

	ASSERT(value && low <= nest->count);
	if (low == nest->count || nest->pieces[low].start > address)
		return false;
	*value = nest->pieces[low].value;
	return true;
}
