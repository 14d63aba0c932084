// A snapshot's list of ranges of pages becomes sums of the bytes below each of them. For example
// with 0x1000-0x2000 and 0x3000-0x5000 present: starts 0x1000, 0x3000; sums 0, 0x1000; total
// 0x3000. Below 0x4000 there are 0x1000 + 0x1000 bytes, below 0x1800 0x800; so between 0x1800 and
// 0x4000 0x1800 bytes are resident. Each question is two searches in a sorted list.
#include "report/ask/pages.h"

#include "base/mem.h"
#include "base/rising.h"

// Ranges of a snapshot rise and do not overlap. Those that were swapped out are not present.
void pages_init(struct pages *pages, const struct trace_snapshot *snapshot)
{
	*pages = (struct pages){ 0 };
	pages->starts = mem_alloc(snapshot->pages_count + 1, sizeof *pages->starts);
	pages->ends = mem_alloc(snapshot->pages_count + 1, sizeof *pages->ends);
	pages->sums = mem_alloc(snapshot->pages_count + 1, sizeof *pages->sums);
	for (uint32_t i = 0; i < snapshot->pages_count; i++) {
		const struct trace_pages *each = &snapshot->pages[i];

		if (!(each->flags & TRACE_PAGES_PRESENT))
			continue;
		ASSERT(pages->count <= i);
		pages->starts[pages->count] = each->start;
		pages->ends[pages->count] = each->end;
		pages->sums[pages->count++] = pages->total;
		pages->total += each->end - each->start;
	}
}

void pages_fini(struct pages *pages)
{
	MEM_FREE(pages->starts, pages->ends, pages->sums);
	*pages = (struct pages){ 0 };
}

// Resident bytes below `address`.
static uint64_t below(const struct pages *pages, uint64_t address)
{
	// The first range that does not begin before the address.
	size_t low = rising_below(pages->starts, pages->count, address);

	if (low == 0)
		return 0;
	low--;
	return pages->sums[low] + (address < pages->ends[low] ? address : pages->ends[low]) -
	       pages->starts[low];
}

uint64_t pages_between(const struct pages *pages, uint64_t from, uint64_t to)
{
	return from < to ? below(pages, to) - below(pages, from) : 0;
}
