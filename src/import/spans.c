// For example, [0, 10) and [20, 30) are two spans. With [10, 20) added they are one, [0, 30), since
// spans that touch are joined; with [5, 25) removed from that they are [0, 5) and [25, 30). Both
// ways the spans from the first that is reached to the last are replaced by at most two.
#include "import/spans.h"

#include "base/mem.h"
#include "base/rising.h"

#include <string.h>

void spans_fini(struct spans *spans)
{
	mem_free(spans->items);
	*spans = (struct spans){ 0 };
}

// The first span that ends at or behind `at`.
static size_t find(const struct spans *spans, uint64_t at)
{
	return RISING_BELOW(spans->items, spans->count, end, at);
}

// `count` spans in place of those from `first` to `last`, which is excluded.
// `first` and `last` are positions before the change; what is after `last` moves.
static void replace(struct spans *spans, size_t first, size_t last, const struct span *with,
		    size_t count)
{
	size_t behind = spans->count - last;

	ASSERT(first <= last && last <= spans->count && count <= 2);
	MEM_ROOM(spans->items, spans->capacity, first + count + behind + 1);
	memmove(spans->items + first + count, spans->items + last, behind * sizeof *with);
	for (size_t i = 0; i < count; i++)
		spans->items[first + i] = with[i];
	spans->count = first + count + behind;
}

// A span that ends where the new one begins, or begins where it ends, is joined with it.
void spans_add(struct spans *spans, uint64_t start, uint64_t end)
{
	size_t first = find(spans, start), last = first;
	struct span span = { start, end };

	for (; last < spans->count && spans->items[last].start <= end; last++) {
		if (spans->items[last].start < span.start)
			span.start = spans->items[last].start;
		if (spans->items[last].end > span.end)
			span.end = spans->items[last].end;
	}
	ASSERT(first == 0 || spans->items[first - 1].end < span.start);
	if (start < end)
		replace(spans, first, last, &span, 1);
}

// A span that reaches beyond both ends leaves two parts: [0, 30) without [5, 25) leaves [0, 5) and
// [25, 30).
void spans_remove(struct spans *spans, uint64_t start, uint64_t end)
{
	size_t first = find(spans, start), last = first, count = 0;
	struct span rest[2]; // only the first and the last one reach beyond

	for (; last < spans->count && spans->items[last].start < end; last++) {
		const struct span *span = &spans->items[last];

		if (span->start < start)
			rest[count++] =
				(struct span){ span->start, span->end < start ? span->end : start };
		if (span->end > end)
			rest[count++] = (struct span){ end, span->end };
	}
	if (start < end)
		replace(spans, first, last, rest, count);
}

// For example with [0, 5) and [25, 30): from 3 up to 40 the first gap is at 5, 20 long; from 25 on
// it is at 30, 10 long. *start moves to where the gap begins.
uint64_t spans_gap(const struct spans *spans, uint64_t *start, uint64_t end)
{
	size_t at = find(spans, *start);

	for (; at < spans->count && *start < end && spans->items[at].start <= *start; at++)
		if (spans->items[at].end > *start)
			*start = spans->items[at].end;
	if (*start >= end)
		return 0;
	if (at < spans->count && spans->items[at].start < end)
		end = spans->items[at].start;
	ASSERT(end > *start);
	return end - *start;
}
