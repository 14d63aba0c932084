// Ranges are the distance to the end of the one before, and the length, in pages. For example,
// with pages of 4096 bytes, [0x1000, 0x3000) and [0x5000, 0x6000) are
//
//     1 2 flags    from 0: a page is left out, two follow
//     2 1 flags    from 0x3000: two are left out, one follows
//
// A reader adds, and refuses what would leave 64 bits: whatever the bytes are, ranges rise and do
// not overlap. Of a process with more ranges than there is room for, the last are left out and the
// snapshot says that it was cut.
#include "trace/snapshot.h"

// Behind the PROT_ bits.
enum { SHARED = 1 << 3, PROTECTION = 7 };

// The smallest encodings, so that a count can be held against the bytes that are left.
enum { MAPPING_BYTES_MIN = 14, PAGES_BYTES_MIN = 3 };

static void put_mappings(struct bytes *out, const struct trace_snapshot *snapshot)
{
	uint64_t end = 0;

	bytes_add_varint(out, snapshot->mappings_count);
	for (uint32_t i = 0; i < snapshot->mappings_count; i++) {
		const struct trace_mapping *mapping = &snapshot->mappings[i];

		ASSERT(mapping->start >= end && mapping->end > mapping->start);
		BYTES_ADD_ALL(out, mapping->start - end, mapping->end - mapping->start,
			      (mapping->protection & PROTECTION) | (mapping->shared ? SHARED : 0),
			      mapping->offset, mapping->file, mapping->rss, mapping->pss,
			      mapping->shared_clean, mapping->shared_dirty, mapping->private_clean,
			      mapping->private_dirty, mapping->anonymous, mapping->swap,
			      mapping->locked);
		end = mapping->end;
	}
}

// Returns how many ranges there was room for.
// Cut at 8 MiB, so that a record fits into a block of 16 MiB.
static uint32_t put_pages(struct bytes *out, const struct trace_snapshot *snapshot)
{
	uint64_t end = 0;
	uint32_t i;

	for (i = 0; i < snapshot->pages_count && out->size < SNAPSHOT_PAGES_BYTES_MAX; i++) {
		const struct trace_pages *pages = &snapshot->pages[i];

		ASSERT(pages->start >= end && pages->end > pages->start && pages->flags != 0);
		ASSERT((pages->start | pages->end) % snapshot->page_bytes == 0);
		BYTES_ADD_ALL(out, (pages->start - end) / snapshot->page_bytes,
			      (pages->end - pages->start) / snapshot->page_bytes, pages->flags);
		end = pages->end;
	}
	return i;
}

// Pages are written first, as whether they were cut is in the flags before them.
void snapshot_encode(struct bytes *out, const struct trace_snapshot *snapshot)
{
	struct bytes pages = { 0 };
	uint32_t pages_count = put_pages(&pages, snapshot);
	bool cut = pages_count < snapshot->pages_count;

	ASSERT(snapshot->page_bytes != 0 && snapshot->began <= snapshot->ended);
	BYTES_ADD_ALL(out, snapshot->process, snapshot->reason,
		      snapshot->flags | (cut ? TRACE_SNAPSHOT_CUT : 0), snapshot->time_ns,
		      snapshot->began, snapshot->ended - snapshot->began, snapshot->page_bytes,
		      snapshot->rss_bytes, snapshot->rss_bytes_max, snapshot->cost_ns);
	put_mappings(out, snapshot);
	bytes_add_varint(out, pages_count);
	bytes_add(out, pages.data, pages.size);
	bytes_fini(&pages);
}

// `before` is the end of the mapping before it, 0 for the first. Their sums may not leave 64 bits,
// so mappings rise whatever the bytes say.
static bool take_mapping(struct bytes_cursor *in, uint64_t before, uint32_t files_count,
			 struct trace_mapping *mapping)
{
	uint64_t gap = bytes_next(in), length = bytes_next(in), bits = bytes_next(in);

	*mapping = (struct trace_mapping){
		.protection = (uint32_t)(bits & PROTECTION),
		.shared = (bits & SHARED) != 0,
	};
	mapping->offset = bytes_next(in);
	mapping->file = bytes_next_u32(in);
	BYTES_NEXT_ALL(in, &mapping->rss, &mapping->pss, &mapping->shared_clean,
		       &mapping->shared_dirty, &mapping->private_clean, &mapping->private_dirty,
		       &mapping->anonymous, &mapping->swap, &mapping->locked);
	return !in->bad && length > 0 && mapping->file < files_count &&
	       !__builtin_add_overflow(before, gap, &mapping->start) &&
	       !__builtin_add_overflow(mapping->start, length, &mapping->end);
}

// `whole`: keep them; else they are only checked, which is enough to know that they can be taken
// later.
static bool take_mappings(struct bytes_cursor *in, uint32_t files_count, bool whole,
			  struct trace_snapshot *snapshot)
{
	uint64_t count = bytes_next(in), end = 0;

	if (in->bad || count > bytes_left(in) / MAPPING_BYTES_MIN)
		return false;
	if (whole)
		snapshot->mappings = mem_alloc(count + 1, sizeof *snapshot->mappings);
	for (uint64_t i = 0; i < count; i++) {
		struct trace_mapping mapping;

		if (!take_mapping(in, end, files_count, &mapping))
			return false;
		if (whole)
			snapshot->mappings[i] = mapping;
		end = mapping.end;
	}
	snapshot->mappings_count = (uint32_t)count;
	return true;
}

// Lengths count pages: they are multiplied with a check before they are added.
static bool take_pages(struct bytes_cursor *in, bool whole, struct trace_snapshot *snapshot)
{
	uint64_t count = bytes_next(in), end = 0;

	if (in->bad || count > bytes_left(in) / PAGES_BYTES_MIN)
		return false;
	if (whole)
		snapshot->pages = mem_alloc(count + 1, sizeof *snapshot->pages);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t gap = bytes_next(in), pages = bytes_next(in), flags = bytes_next(in);
		uint64_t start;

		if (in->bad || pages == 0 || flags == 0 || flags > UINT8_MAX ||
		    __builtin_mul_overflow(gap, snapshot->page_bytes, &gap) ||
		    __builtin_mul_overflow(pages, snapshot->page_bytes, &pages) ||
		    __builtin_add_overflow(end, gap, &start) ||
		    __builtin_add_overflow(start, pages, &end))
			return false;
		if (whole)
			snapshot->pages[i] = (struct trace_pages){ .start = start,
								   .end = end,
								   .flags = (uint8_t)flags };
	}
	snapshot->pages_count = (uint32_t)count;
	return true;
}

// A page size that is no power of two is refused here, since all who use ranges shift by it.
bool snapshot_decode(struct bytes_cursor in, uint32_t files_count, bool whole,
		     struct trace_snapshot *snapshot)
{
	uint64_t reason, length;

	*snapshot = (struct trace_snapshot){ 0 };
	snapshot->process = bytes_next_u32(&in);
	reason = bytes_next(&in);
	snapshot->reason = (uint8_t)reason;
	snapshot->flags = bytes_next_u32(&in);
	BYTES_NEXT_ALL(&in, &snapshot->time_ns, &snapshot->began, &length, &snapshot->page_bytes,
		       &snapshot->rss_bytes, &snapshot->rss_bytes_max, &snapshot->cost_ns);
	if (in.bad || reason == 0 || reason > UINT8_MAX ||
	    __builtin_popcountll(snapshot->page_bytes) != 1 ||
	    __builtin_add_overflow(snapshot->began, length, &snapshot->ended))
		return false;
	if (take_mappings(&in, files_count, whole, snapshot) && take_pages(&in, whole, snapshot))
		return true;
	snapshot_fini(snapshot);
	return false;
}

void snapshot_fini(struct trace_snapshot *snapshot)
{
	MEM_FREE(snapshot->mappings, snapshot->pages);
	snapshot->mappings = NULL;
	snapshot->pages = NULL;
}
