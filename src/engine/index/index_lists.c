// Each chunk of the index has a directory of the sites that did anything in it, by rising number.
// An entry is three numbers: the distance to the site before, the count of postings with the form
// of their list in its two lowest bits, and the size of the list. For example, after a mark of
// site 7 whose list begins at byte 100,
//
//     0  12   5    site 7, 3 postings in a list of form 0 (one size), in bytes 100 to 105
//     2  21   9    site 9, 5 postings in a list of form 1 (several sizes), in 105 to 114
//     4 162  32    site 13, 40 postings, busy (form 2): in 114 to 146 are its stretches
//
// Sites and places are sums over all entries before, so each 64th entry has a mark with both; from
// one mark to the next entries are packed, column by column. A site is busy where its postings
// would say again what the blocks do: its steps are found there, and the stretches say in which
// blocks.
#include "engine/index/index_lists.h"

#include "base/mem.h"
#include "engine/index/pack.h"

#include <string.h>

bool index_lists_damaged(struct err *err)
{
	return err_set(err, ERR_FORMAT, "the index is damaged: postings");
}

// ---- directories ----

typedef bool visit_entry(void *context, uint32_t number, const struct index_posts *entry,
			 struct err *err);

static bool is_within(const struct index *index, const struct index_posts *entry)
{
	return entry->at <= entry->end && entry->end <= index->files.posts.size;
}

bool index_lists_take(struct index_lists_entries *entries, const struct index *index,
		      const struct index_chunk *chunk, uint32_t number, const uint8_t **at,
		      const uint8_t *end)
{
	const struct index_posts_mark *mark = &index->files.posts_marks[chunk->first_mark + number];
	uint32_t before = number * INDEX_POSTS_MARK, left = chunk->sites_count - before;

	ASSERT(before < chunk->sites_count);
	entries->count = left < INDEX_POSTS_MARK ? left : INDEX_POSTS_MARK;
	entries->next = 0;
	entries->site = mark->site;
	entries->list_at = mark->at;
	for (unsigned i = 0; i < INDEX_POSTS_COLUMNS; i++)
		if (!pack_take_group(at, end, entries->columns[i], entries->count))
			return false;
	return true;
}

static inline bool next_entry(struct index_lists_entries *entries, struct index_posts *entry)
{
	uint32_t i = entries->next++;
	uint64_t count = entries->columns[1][i], size = entries->columns[2][i];

	ASSERT(i < entries->count);
	entries->site += entries->columns[0][i];
	*entry = (struct index_posts){ .count = (uint32_t)(count >> INDEX_POSTS_LOG2),
				       .form = count & ((1 << INDEX_POSTS_LOG2) - 1),
				       .at = entries->list_at,
				       .end = entries->list_at + size };
	entries->list_at += size;
	return size <= UINT32_MAX && count >> INDEX_POSTS_LOG2 <= INT32_MAX &&
	       entry->form <= INDEX_POSTS_BUSY;
}

bool index_lists_next(struct index_lists_entries *entries, struct index_posts *entry)
{
	return next_entry(entries, entry);
}

// The entries of chosen sites in a chunk's directory, which was read. `numbers` has for each site
// of the index what it is called by the caller; 0: it is not asked for. The directory is gone
// through as a whole; at each mark the sums begin again.
static bool visit_entries(struct index *index, const struct index_chunk *chunk,
			  const uint32_t *numbers, const uint8_t *at, const uint8_t *end,
			  visit_entry *visit, void *context, struct err *err)
{
	uint64_t steps = UINT64_C(1) << index->shape.chunk_log2;
	struct index_lists_entries entries;

	for (uint32_t mark = 0; mark * (uint64_t)INDEX_POSTS_MARK < chunk->sites_count; mark++) {
		if (!index_lists_take(&entries, index, chunk, mark, &at, end))
			return index_lists_damaged(err);
		while (entries.next < entries.count) {
			struct index_posts entry;
			uint32_t wanted;

			if (!next_entry(&entries, &entry) ||
			    entries.site >= index->cells.sites_count || !is_within(index, &entry) ||
			    entry.count > steps)
				return index_lists_damaged(err);
			wanted = numbers[entries.site];
			if (wanted && entry.count > 0 && !visit(context, wanted, &entry, err))
				return false;
		}
	}
	return true;
}

// Whether the chunk's marks and bytes are in the files is asked here, since the head has them as it
// found them.
static bool visit_chunk(struct index *index, uint64_t number, const uint32_t *numbers,
			visit_entry *visit, void *context, struct err *err)
{
	const struct index_chunk *chunk = &index->files.chunks[number];
	size_t marks = (chunk->sites_count + (size_t)INDEX_POSTS_MARK - 1) / INDEX_POSTS_MARK;
	uint8_t *bytes;
	bool ok;

	ASSERT(number < index->files.chunks_count);
	if (chunk->first_mark > index->files.posts_marks_count ||
	    marks > index->files.posts_marks_count - chunk->first_mark ||
	    chunk->sites_size > index->files.posts_sites.size)
		return index_lists_damaged(err);
	bytes = mem_resize(NULL, (size_t)chunk->sites_size + PACK_SLACK, 1);
	ok = vault_read(&index->files.posts_sites, chunk->sites_at, bytes,
			(size_t)chunk->sites_size, err) &&
	     visit_entries(index, chunk, numbers, bytes, bytes + chunk->sites_size, visit, context,
			   err);
	mem_free(bytes);
	return ok;
}

static bool add_count(void *context, uint32_t, const struct index_posts *entry, struct err *)
{
	uint64_t *postings = context;

	*postings += entry->count;
	return true;
}

// Of whole chunks, also where [from, to) begins or ends within one. Of 24 chunks each sixth is
// counted: a chunk's directory is as long as there are sites.
bool index_lists_count(struct index *index, const uint32_t *numbers, uint64_t from, uint64_t to,
		       uint64_t *postings, bool *known, struct err *err)
{
	enum { COUNTED = 4 };
	unsigned log2 = index->shape.chunk_log2;
	uint64_t first = from >> log2, chunks, each, counted = 0;

	*postings = 0;
	*known = from < to && (to - 1) >> log2 < index->files.chunks_count;
	if (!*known)
		return true;
	chunks = ((to - 1) >> log2) - first + 1;
	each = (chunks + COUNTED - 1) / COUNTED;
	for (uint64_t chunk = each / 2; chunk < chunks; chunk += each, counted++)
		if (!visit_chunk(index, first + chunk, numbers, add_count, postings, err))
			return false;
	*postings = *postings * chunks / counted;
	return true;
}

// ---- busy sites ----

uint32_t index_stretches_in(const struct index *index, uint64_t chunk)
{
	const struct index_shape *shape = &index->shape;
	uint64_t first = chunk << shape->chunk_log2, size = UINT64_C(1) << shape->chunk_log2;
	uint64_t steps = index->steps_end - first < size ? index->steps_end - first : size;

	ASSERT(first < index->steps_end);
	ASSERT(chunk < UINT64_MAX >> shape->chunk_log2);
	return (uint32_t)((steps - 1) >> shape->stretch_log2) + 1;
}

// One column after the other, in `values`, which has room for one.
static bool take_stretches(const uint8_t *at, const uint8_t *end, struct index_stretch *stretches,
			   uint32_t count, uint64_t *values)
{
	for (unsigned column = 0; column < INDEX_STRETCH_COLUMNS; column++) {
		if (!pack_take(&at, end, values, count))
			return false;
		for (uint32_t i = 0; i < count; i++) {
			struct index_stretch *to = &stretches[i];

			switch (column) {
			case 0:
				to->count = (uint32_t)values[i];
				break;
			case 1:
				to->sums.bytes = (int64_t)bits_unzigzag(values[i]);
				break;
			case 2:
				to->sums.bytes_max = (int64_t)values[i];
				break;
			case 3:
				to->sums.count = (int64_t)bits_unzigzag(values[i]);
				break;
			default:
				to->sums.count_max = (int64_t)values[i];
			}
		}
	}
	return at == end;
}

bool index_stretches_read(struct index *index, uint64_t chunk, const struct index_posts *entry,
			  struct index_stretch *stretches, struct err *err)
{
	uint32_t count = index_stretches_in(index, chunk);
	size_t size = (size_t)(entry->end - entry->at);
	uint64_t *values = mem_resize(NULL, count, sizeof *values);
	uint8_t *bytes = mem_resize(NULL, size + PACK_SLACK, 1);
	bool ok = vault_read(&index->files.posts, entry->at, bytes, size, err);

	memset(stretches, 0, count * sizeof *stretches);
	ok = ok && (take_stretches(bytes, bytes + size, stretches, count, values) ||
		    index_lists_damaged(err));
	MEM_FREE(values, bytes);
	return ok;
}

// ---- lists ----

// Sizes are behind the words of all postings of the run.
void index_list_go_on(struct index_list *list)
{
	const uint8_t *words = list->at;
	bool ok = words <= list->end;

	list->run_left = list->left < list->run ? list->left : list->run;
	list->sizes = (struct bits_sizes){ 0 };
	if (!list->packed)
		return;
	for (uint32_t i = 0; ok && i < list->run_left; i += PACK_GROUP) {
		uint32_t left = list->run_left - i;

		ok = pack_skip_group(&list->at, list->end, left < PACK_GROUP ? left : PACK_GROUP);
	}
	// Without a group there is damage, which the first number says.
	list->words = pack_cursor_open(ok ? words : list->end, list->end, list->run_left);
}

struct loading {
	struct index_lists *lists;
	struct index *index;
	uint64_t chunk;
	uint64_t filled;       // of lists->bytes
	uint8_t *marks;        // NULL, or of blocks from `marked` on
	uint64_t marked, most; // one more than the last of them
};

// A busy site has no list: the stretches in which it did something say it of their blocks. A
// stretch is never longer than a block.
static bool mark_stretches(const struct loading *loading, const struct index_posts *entry,
			   struct err *err)
{
	struct index *index = loading->index;
	const struct index_shape *shape = &index->shape;
	uint32_t count = index_stretches_in(index, loading->chunk);
	struct index_stretch *stretches = mem_resize(NULL, count, sizeof *stretches);
	bool ok = index_stretches_read(index, loading->chunk, entry, stretches, err);

	for (uint32_t i = 0; ok && i < count; i++) {
		uint64_t block = ((loading->chunk << shape->chunk_log2) +
				  ((uint64_t)i << shape->stretch_log2)) >>
				 shape->block_log2;

		if (stretches[i].count > 0 && block >= loading->marked && block < loading->most)
			loading->marks[block - loading->marked] = 1;
	}
	mem_free(stretches);
	return ok;
}

// Read one list; until all are there, its places are offsets, since the bytes move when they grow.
// A list of several runs begins with a table for skipping, which is not needed here.
static bool load_list(void *context, uint32_t number, const struct index_posts *entry,
		      struct err *err)
{
	struct loading *loading = context;
	struct index_lists *lists = loading->lists;
	uint32_t run = 1u << loading->index->shape.skip_log2;
	uint64_t runs = ((uint64_t)entry->count + run - 1) / run;
	uint64_t head = runs > 1 ? runs * sizeof(struct index_skip) : 0;
	uint64_t first = loading->chunk << loading->index->shape.chunk_log2;
	size_t size;

	if (entry->form == INDEX_POSTS_BUSY) {
		lists->busy = true;
		return !loading->marks || mark_stretches(loading, entry, err);
	}
	if (entry->end - entry->at < head)
		return index_lists_damaged(err);
	size = (size_t)(entry->end - entry->at - head);
	lists->bytes = mem_grow(lists->bytes, &lists->bytes_capacity,
				(size_t)loading->filled + size + PACK_SLACK, 1);
	if (!vault_read(&loading->index->files.posts, entry->at + head,
			lists->bytes + loading->filled, size, err))
		return false;
	*MEM_ADD(lists->lists, lists->count, lists->capacity) = (struct index_list){
		.step = loading->filled,
		.size = size,
		.number = number,
		// One more than there are: begin_list takes the first by index_list_next, which
		// counts down.
		.left = entry->count + 1,
		.several = entry->form == INDEX_POSTS_SEVERAL,
		.packed = index_posts_packed(entry->count, run),
		.first = first,
		.last = first + (UINT64_C(1) << loading->index->shape.chunk_log2) - 1,
		.run = run,
	};
	loading->filled += size;
	return true;
}

// To the first posting. Until now `step` was the list's place in the bytes, and `size` its length;
// from here on they are the posting's.
static bool begin_list(struct index_list *list, const uint8_t *bytes, struct err *err)
{
	list->at = bytes + list->step;
	list->end = list->at + list->size;
	list->step = list->first;
	if (!list->several)
		list->size = bits_take_varint(&list->at, list->end);
	return index_list_next(list, err);
}

static bool load_lists(struct loading *loading, const uint32_t *numbers, struct err *err)
{
	struct index_lists *lists = loading->lists;

	lists->count = 0;
	lists->busy = false;
	loading->filled = 0;
	if (!visit_chunk(loading->index, loading->chunk, numbers, load_list, loading, err))
		return false;
	for (size_t i = 0; i < lists->count; i++)
		if (!begin_list(&lists->lists[i], lists->bytes, err))
			return false;
	return true;
}

bool index_lists_load(struct index_lists *lists, struct index *index, const uint32_t *numbers,
		      uint64_t chunk, struct err *err)
{
	struct loading loading = { .lists = lists, .index = index, .chunk = chunk };

	ASSERT(chunk < index->files.chunks_count);
	return load_lists(&loading, numbers, err);
}

void index_lists_fini(struct index_lists *lists)
{
	MEM_FREE(lists->lists, lists->bytes);
	*lists = (struct index_lists){ 0 };
}

// Marks the blocks in which any of the sites has a step from `from` on and before `to`; `marks`
// begins with the block of `from`.
bool index_lists_mark(struct index *index, const uint32_t *numbers, uint64_t from, uint64_t to,
		      uint8_t *marks, struct err *err)
{
	unsigned chunk_log2 = index->shape.chunk_log2, block_log2 = index->shape.block_log2;
	struct index_lists lists = { 0 };
	struct loading loading = { .lists = &lists,
				   .index = index,
				   .marks = marks,
				   .marked = from >> block_log2,
				   .most = ((to - 1) >> block_log2) + 1 };
	bool ok = true;

	ASSERT(from < to);
	for (uint64_t chunk = from >> chunk_log2; ok && chunk << chunk_log2 < to; chunk++) {
		loading.chunk = chunk;
		ok = load_lists(&loading, numbers, err);
		for (size_t i = 0; ok && i < lists.count; i++) {
			struct index_list *list = &lists.lists[i];

			for (; ok && list->left > 0; ok = index_list_next(list, err))
				if (list->step >= from && list->step < to)
					marks[(list->step >> block_log2) - (from >> block_log2)] =
						1;
		}
	}
	index_lists_fini(&lists);
	return ok;
}
