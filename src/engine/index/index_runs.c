// Finds what a site did in some steps: the directory of each chunk has an entry for those sites
// that did anything in it, and every 64th entry a mark, so that one is found by a search and a few
// bytes.
//
// For example, site 12 has 2,100 postings in a chunk where 32,768 make a site busy: three runs, of
// 1,024, 1,024 and 52, each with its sums. In the next chunk it has 50,000: 128 stretches with sums
// and no postings. What it did in one of them is found by going through the 32,768 steps of it.
#include "engine/index/index_runs.h"

#include "base/mem.h"
#include "base/rising.h"
#include "engine/index/index_lists.h"
#include "engine/index/pack.h"

// ---- finding a site's postings ----

// The entry of a site in a chunk. False without an error: it has none. What the mark says is held
// against the chunk's size, as the index is a file that anybody may have changed.
static bool find_entry(struct index *index, const struct index_chunk *chunk, uint32_t site,
		       struct index_posts *entry, struct err *err)
{
	enum { BYTES_MAX = INDEX_POSTS_COLUMNS * PACK_GROUP_MAX };
	uint8_t bytes[BYTES_MAX + PACK_SLACK];
	const uint8_t *at = bytes;
	const struct index_posts_mark *marks = index->files.posts_marks + chunk->first_mark;
	uint32_t all = (chunk->sites_count + INDEX_POSTS_MARK - 1) / INDEX_POSTS_MARK;
	uint32_t low = (uint32_t)RISING_UPTO(marks, all, site, site);
	struct index_lists_entries entries;
	uint64_t begin, end;

	ASSERT(site > 0 && site < index->cells.sites_count);
	if (low == 0)
		return false;
	begin = marks[low - 1].sites_at;
	end = low < all ? marks[low].sites_at : chunk->sites_size;
	if (begin > end || end - begin > BYTES_MAX)
		return index_lists_damaged(err);
	if (!vault_read(&index->files.posts_sites, chunk->sites_at + begin, bytes,
			(size_t)(end - begin), err))
		return false;
	if (!index_lists_take(&entries, index, chunk, low - 1, &at, bytes + (end - begin)))
		return index_lists_damaged(err);
	do {
		if (entries.next == entries.count)
			return false;
		if (!index_lists_next(&entries, entry))
			return index_lists_damaged(err);
	} while (entries.site < site);
	if (entries.site > site)
		return false;
	if (entry->at < chunk->lists_at || entry->at > chunk->lists_at + chunk->lists_size ||
	    entry->end > chunk->lists_at + chunk->lists_size)
		return index_lists_damaged(err);
	return true;
}

static struct site_run *push_run(struct site_runs *runs, struct site_run run)
{
	ASSERT(run.count > 0);
	MEM_ROOM(runs->list, runs->capacity, runs->count + 1);
	runs->list[runs->count] = run;
	runs->postings += run.count;
	return &runs->list[runs->count++];
}

// The size that all postings of a list have, in front of them: a varint of at most ten bytes. The
// run's bytes then begin after it.
static bool take_single(struct index *index, struct site_run *run, struct err *err)
{
	uint8_t bytes[10] = { 0 };
	const uint8_t *at = bytes;
	size_t size = run->size < sizeof bytes ? run->size : sizeof bytes;

	if (run->several)
		return true;
	if (!vault_read(&index->files.posts, run->at, bytes, size, err))
		return false;
	run->single = bits_take_varint(&at, bytes + size);
	if (at > bytes + size)
		return index_lists_damaged(err);
	run->at += (uint64_t)(at - bytes);
	run->size -= (uint32_t)(at - bytes);
	return true;
}

// The stretches of a busy site with steps in [from, to). The sums of a stretch are exact, so a
// window of whole stretches needs no step of it.
static bool add_stretches(struct index *index, uint64_t number, uint32_t site,
			  const struct index_posts *entry, uint64_t from, uint64_t to,
			  struct site_runs *runs, struct err *err)
{
	uint64_t first = number << index->shape.chunk_log2;
	uint32_t count = index_stretches_in(index, number);
	struct index_stretch *stretches = mem_resize(NULL, count, sizeof *stretches);
	bool ok = index_stretches_read(index, number, entry, stretches, err);
	unsigned log2 = index->shape.stretch_log2;

	ASSERT(entry->form == INDEX_POSTS_BUSY);
	for (uint32_t i = 0; ok && i < count; i++) {
		uint64_t begin = first + ((uint64_t)i << log2), end = begin + (1u << log2);
		struct site_run run = { .chunk = first,
					.count = stretches[i].count,
					.after = begin - (begin > 0),
					.until = end - 1,
					.summed = true,
					.busy = true,
					.site = site,
					.skip = stretches[i].sums };

		if (run.count > 1u << log2)
			ok = index_lists_damaged(err);
		else if (run.count > 0 && end > from && begin < to)
			push_run(runs, run);
	}
	mem_free(stretches);
	return ok;
}

// Bounds of each run are checked before it is kept, since its bytes are read later without another
// look.
static bool add_runs(struct index *index, uint64_t chunk, const struct index_posts *entry,
		     uint64_t from, uint64_t to, struct site_runs *runs, struct err *err)
{
	uint32_t count = entry->count, run_size = 1u << index->shape.skip_log2;
	uint32_t summed = (count + run_size - 1) / run_size;
	uint64_t chunk_end = chunk + (UINT64_C(1) << index->shape.chunk_log2) - 1, head = 0;
	struct index_skip *skips = NULL;
	struct site_run run = { .chunk = chunk,
				.at = entry->at,
				.count = count,
				.after = chunk,
				.until = chunk_end,
				.several = entry->form == INDEX_POSTS_SEVERAL,
				.packed = index_posts_packed(count, run_size) };
	bool ok = count > 0 && entry->end - entry->at <= UINT32_MAX;

	ASSERT(entry->form != INDEX_POSTS_BUSY);
	if (summed > 1) {
		head = summed * sizeof *skips;
		ok = ok && entry->end - entry->at >= head;
		skips = mem_resize(NULL, summed, sizeof *skips);
		ok = ok && vault_read(&index->files.posts, entry->at, skips, head, err);
	}
	if (!ok) {
		mem_free(skips);
		return err->kind == ERR_NONE ? index_lists_damaged(err) : false;
	}
	run.at += head;
	run.size = (uint32_t)(entry->end - run.at);
	if (!take_single(index, &run, err)) {
		mem_free(skips);
		return false;
	}
	if (!skips) {
		// Postings of step 0 of a chunk have a distance of 0 to its beginning.
		run.after = chunk - (chunk > 0);
		push_run(runs, run);
		return true;
	}
	for (uint32_t i = 0; i < summed && ok; i++) {
		struct site_run part = run;

		part.summed = true;
		part.skip = skips[i];
		part.after = i ? chunk + skips[i].step : chunk - (chunk > 0);
		part.until = i + 1 < summed ? chunk + skips[i + 1].step : chunk_end;
		part.count = i + 1 < summed ? run_size : count - i * run_size;
		part.at = entry->at + head + skips[i].at;
		ok = part.at <= entry->end &&
		     (i + 1 == summed || (skips[i + 1].at >= skips[i].at &&
					  entry->at + head + skips[i + 1].at <= entry->end));
		if (!ok)
			break;
		part.size = (uint32_t)((i + 1 < summed ? entry->at + head + skips[i + 1].at
						       : entry->end) -
				       part.at);
		if (part.until >= from && part.after < to)
			push_run(runs, part);
	}
	mem_free(skips);
	return ok || index_lists_damaged(err);
}

// Chunk by chunk; a chunk in which the site did nothing costs a search in its marks.
bool index_runs_find(struct index *index, uint32_t site, uint64_t from, uint64_t to,
		     struct site_runs *runs, struct err *err)
{
	ASSERT(from <= to && runs->count == 0);
	for (uint64_t number = from >> index->shape.chunk_log2;
	     number < index->files.chunks_count && number << index->shape.chunk_log2 < to;
	     number++) {
		struct index_posts entry;
		bool ok;

		if (!find_entry(index, &index->files.chunks[number], site, &entry, err))
			ok = err->kind == ERR_NONE;
		else if (entry.form == INDEX_POSTS_BUSY)
			ok = add_stretches(index, number, site, &entry, from, to, runs, err);
		else
			ok = add_runs(index, number << index->shape.chunk_log2, &entry, from, to,
				      runs, err);
		if (!ok)
			return false;
	}
	return true;
}

// ---- reading postings ----

// What a busy site did in a stretch, from the block of steps. The stretch is decoded once for all
// sites that ask for it one after the other.
static bool read_stretch(struct site_reading *reading, const struct site_run *run,
			 struct site_posting *list, struct err *err)
{
	struct index *index = reading->index;
	struct index_block *stretch = &reading->stretch;
	uint64_t size = UINT64_C(1) << index->shape.stretch_log2;
	uint64_t first = run->until + 1 - size, left = index->steps_end - first;
	uint32_t found = 0;

	ASSERT(run->busy && run->until + 1 >= UINT64_C(1) << index->shape.stretch_log2);
	if (stretch->count == 0 || stretch->first != first) {
		stretch->count = 0;
		if (!index_block_part(index, first, (uint32_t)(left < size ? left : size), stretch,
				      err))
			return false;
	}
	for (uint32_t i = 0; i < stretch->count; i++) {
		struct cells_cell cell = cells_cell(&index->cells, stretch->ops[i] >> 1);

		if (cell.site != run->site)
			continue;
		if (found == run->count)
			return index_lists_damaged(err);
		list[found++] = (struct site_posting){ .step = first + i,
						       .size = cell.size,
						       .ends = stretch->ops[i] & 1 };
	}
	return found == run->count || index_lists_damaged(err);
}

// The first step is a distance to that of the posting before the run, which the run's skip has.
static bool read_list(struct index *index, const struct site_run *run, struct site_posting *list,
		      struct err *err)
{
	uint8_t *bytes = mem_resize(NULL, run->size + (size_t)PACK_SLACK, 1);
	struct index_list at = {
		.at = bytes,
		.end = bytes + run->size,
		.step = run->summed && run->skip.step ? run->chunk + run->skip.step : run->chunk,
		.size = run->single,
		.left = run->count + 1,
		.several = run->several,
		.packed = run->packed,
		.last = UINT64_MAX,
		.run = run->count,
	};
	bool ok = vault_read(&index->files.posts, run->at, bytes, run->size, err);

	ASSERT(!run->busy && run->count > 0);
	for (uint32_t i = 0; ok && i < run->count; i++) {
		ok = index_list_next(&at, err);
		list[i].step = at.step;
		list[i].size = at.size;
		list[i].ends = at.ends;
	}
	mem_free(bytes);
	return ok;
}

bool index_runs_read(struct site_reading *reading, const struct site_run *run,
		     struct site_posting *list, struct err *err)
{
	if (run->busy)
		return read_stretch(reading, run, list, err);
	return read_list(reading->index, run, list, err);
}
