#include "report/find/outside.h"

#include "base/map.h"
#include "report/ask/moment_view.h"
#include "report/ask/own_heap.h"

enum { OUTSIDE_LEAST = 8 << 20 };

// The runtime's heap that has most. `places`: by stack, bytes; what several stacks of a runtime
// have is added up. The name is a constant text of own_heap.h, so its address is the key.
static void find_runtime(const struct query_context *asked, process_id process,
			 const struct map *places, struct outside *outside)
{
	const struct trace_process *whose = reader_process(asked->reader, process);
	uint64_t stack, bytes;
	struct map sums = { 0 }; // by the text's place

	for (size_t at = 0; map_next(places, &at, &stack, &bytes);) {
		const char *heap = own_heap_mapped(asked->names, whose, (stack_id)stack);
		uint64_t *sum = heap ? map_put(&sums, (uintptr_t)heap, NULL) : NULL;

		if (!sum)
			continue;
		*sum += bytes;
		if (*sum > outside->runtime_bytes) {
			outside->runtime_bytes = *sum;
			outside->heap = heap;
		}
	}
	map_fini(&sums);
}

// Commits of the program itself, and those of allocators that are seen, at the moment when most was
// committed. What the call at the peak committed is left out: if it is a block's, the block comes
// after it.
static void add_outside(const struct query_context *asked, process_id process,
			const struct present *present, uint64_t peak_number,
			struct outside *outside)
{
	const struct space *space = present_space(present);
	const struct ranges *ranges = space_ranges(space, process);
	struct map places = { 0 };

	for (struct range *range = ranges_from(ranges, 0); range;
	     range = ranges_from(ranges, range->end)) {
		uint64_t bytes = range->end - range->start, *sum;
		const struct space_commit *commit = space_commit(space, range);
		enum space_owner owner = space_owner(space, range);

		if (!commit || range->file || commit->number == peak_number)
			continue;
		if (owner >= SPACE_MALLOC_HEAP && owner <= SPACE_ALLOCATOR)
			outside->heap_bytes += bytes;
		if (owner != SPACE_PROGRAM || range->baseline)
			continue; // whose a mapping of before an attach was is not known
		outside->bytes += bytes;
		sum = map_put(&places, range->stack, NULL);
		*sum += bytes;
		if (range->stack && *sum > outside->most) {
			outside->most = *sum;
			outside->stack = range->stack;
		}
	}
	find_runtime(asked, process, &places, outside);
	map_fini(&places);
}

void outside_find(struct query_context *asked, const struct space_totals *totals,
		  void (*tell)(void *context, process_id process, const struct outside *outside),
		  void *context)
{
	const struct present_options options = {
		.query = &asked->selection.query,
		.edge = { .exact = true, .number = totals->committed_peak_number + 1 },
		.inherits = TRACE_NONE,
		.undated = true,
		.spaces_only = true,
	};
	struct present *present;

	if (totals->committed_peak_bytes < OUTSIDE_LEAST)
		return;
	present = moment_view_find(asked, &options);
	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		const struct ranges *ranges = space_ranges(present_space(present), id);
		struct outside outside = { 0 };

		if (!ranges || !query_has_process(&asked->selection.query, id))
			continue;
		add_outside(asked, id, present, totals->committed_peak_number, &outside);
		if (outside.bytes >= OUTSIDE_LEAST && outside.bytes > outside.heap_bytes)
			tell(context, id, &outside);
	}
	present_free(present);
}
