// What becomes of what was read. Memory that the program has broken may look like a heap, of one
// allocator or of the next: what all lists and counts agree with may still be none.
//
// For example blocks were read at 0x1010, of 40 bytes, and at 0x1030, of 24. The first ends at
// 0x1038: they are over each other, so this was no heap, and none of its blocks is recorded. They
// are sorted first, so each is compared with the one before it alone, and the list of mappings is
// gone through once.
#include "launch/glibc_heap_linux.h"

#include "base/mem.h"
#include "base/sort.h"
#include "collect/before.h"
#include "collect/maps_text.h"

#include <stdlib.h>

SORT_ORDER(glibc_heap_compare, struct collect_block, SORT_RISES(address))

// Where the memory ends that `at` is in, up to the first gap; 0: there is none. Called with
// addresses that rise: *line is what was seen last, *next where the list goes on.
static uint64_t glibc_heap_memory_end(const struct objects *objects, uint64_t at,
				      struct maps_line *line, const char **next)
{
	const char *end = objects->text + objects->text_size;

	while (line->end <= at && *next < end) {
		struct maps_line found;

		if (!maps_text_next(next, end, &found))
			continue;
		found.start = found.start == line->end ? line->start : found.start;
		*line = found;
	}
	return at >= line->start && at < line->end ? line->end : 0;
}

// A block may lie across mappings that follow each other without a gap (mprotect splits them).
static bool glibc_heap_is_possible(const struct glibc_heap *heap, const struct objects *objects)
{
	const char *next = objects->text;
	struct maps_line line = { 0 };

	for (size_t i = 0; i < heap->count; i++) {
		const struct collect_block *block = &heap->blocks[i];
		uint64_t end = block->address + block->size, memory;

		if (end < block->address ||
		    (i > 0 && block->address < block[-1].address + block[-1].size))
			return false;
		for (uint64_t at = block->address; at < end; at = memory) {
			memory = glibc_heap_memory_end(objects, at, &line, &next);
			if (!memory)
				return false;
		}
	}
	return true;
}

void glibc_heap_check(struct glibc_heap *heap, const struct objects *objects)
{
	if (heap->count == 0)
		return;
	ASSERT(heap->blocks != NULL && heap->count <= heap->capacity);
	qsort(heap->blocks, heap->count, sizeof(*heap->blocks), glibc_heap_compare);
	if (glibc_heap_is_possible(heap, objects))
		return;
	heap->count = heap->mapped = 0;
	heap->bytes = heap->inexact = 0;
	str_clear(&heap->why);
	str_add(&heap->why, "the blocks of its heap are over each other, or in no memory");
}

void glibc_heap_note(struct glibc_heap *heap, struct str *text)
{
	bool known = heap->why.length == 0;
	char *why = str_take(known ? &heap->but : &heap->why);

	if (known)
		str_format(text, BEFORE_WITH "%s%s%s", str_get(&heap->with), why[0] ? "; " : "",
			   why);
	else
		str_add(text, why);
	if (why[0])
		str_format(&heap->why, "%sknown: %s", known ? "all " : "", why);
	mem_free(why);
}

void glibc_heap_fini(struct glibc_heap *heap)
{
	mem_free(heap->blocks);
	STR_FINI(&heap->why, &heap->with, &heap->but);
	*heap = (struct glibc_heap){ 0 };
}
