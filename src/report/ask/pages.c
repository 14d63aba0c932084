#include "report/ask/pages.h"

#include "base/mem.h"
#include "base/rising.h"

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
