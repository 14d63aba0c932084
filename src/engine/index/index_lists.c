#include "engine/index/index_lists.h"

#include "base/mem.h"

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

bool index_lists_entry(uint64_t *site, uint64_t *list_at, const uint8_t **at, const uint8_t *end,
		       struct index_posts *entry)
{
	uint64_t count, size;

	*site += bits_take_varint(at, end);
	count = bits_take_varint(at, end);
	size = bits_take_varint(at, end);
	*entry = (struct index_posts){ .count = (uint32_t)(count >> 1),
				       .several = count & 1,
				       .at = *list_at,
				       .end = *list_at + size };
	*list_at += size;
	return *at <= end && size <= UINT32_MAX && count >> 1 <= INT32_MAX;
}

// The entries of chosen sites in a chunk's directory, which was read.
static bool visit_entries(struct index *index, const struct index_chunk *chunk,
			  const uint32_t *numbers, const uint8_t *at, const uint8_t *end,
			  visit_entry *visit, void *context, struct err *err)
{
	uint64_t site = 0, list_at = chunk->lists_at;

	for (uint32_t i = 0; i < chunk->sites_count; i++) {
		struct index_posts entry;

		if (i % INDEX_POSTS_MARK == 0) {
			const struct index_posts_mark *mark =
				&index->files.posts_marks[chunk->first_mark + i / INDEX_POSTS_MARK];

			site = mark->site;
			list_at = mark->at;
		}
		if (!index_lists_entry(&site, &list_at, &at, end, &entry) ||
		    site >= index->cells.sites_count || !is_within(index, &entry) ||
		    entry.count > UINT64_C(1) << index->shape.chunk_log2)
			return index_lists_damaged(err);
		if (numbers[site] && entry.count > 0 && !visit(context, numbers[site], &entry, err))
			return false;
	}
	return true;
}

static bool visit_chunk(struct index *index, uint64_t number, const uint32_t *numbers,
			visit_entry *visit, void *context, struct err *err)
{
	const struct index_chunk *chunk = &index->files.chunks[number];
	size_t marks = (chunk->sites_count + (size_t)INDEX_POSTS_MARK - 1) / INDEX_POSTS_MARK;
	uint8_t *bytes;
	bool ok;

	if (chunk->first_mark > index->files.posts_marks_count ||
	    marks > index->files.posts_marks_count - chunk->first_mark ||
	    chunk->sites_size > index->files.posts_sites.size)
		return index_lists_damaged(err);
	bytes = mem_resize(NULL, (size_t)chunk->sites_size + 1, 1);
	ok = vault_read(&index->files.posts_sites, chunk->sites_at, bytes,
			(size_t)chunk->sites_size, err) &&
	     visit_entries(index, chunk, numbers, bytes, bytes + chunk->sites_size, visit, context,
			   err);
	mem_free(bytes);
	return ok;
}

static bool add_count(void *context, uint32_t number, const struct index_posts *entry,
		      struct err *err)
{
	uint64_t *postings = context;

	(void)number;
	(void)err;
	*postings += entry->count;
	return true;
}

bool index_lists_count(struct index *index, const uint32_t *numbers, uint64_t from, uint64_t to,
		       uint64_t *postings, bool *known, struct err *err)
{
	unsigned log2 = index->shape.chunk_log2;

	*postings = 0;
	*known = from < to && (to - 1) >> log2 < index->files.chunks_count;
	for (uint64_t chunk = from >> log2; *known && chunk << log2 < to; chunk++)
		if (!visit_chunk(index, chunk, numbers, add_count, postings, err))
			return false;
	return true;
}

// ---- lists ----

struct loading {
	struct index_lists *lists;
	struct index *index;
	uint64_t filled; // of lists->bytes
	uint64_t first;  // step of the chunk
};

// Read one list; until all are there, its places are offsets.
static bool load_list(void *context, uint32_t number, const struct index_posts *entry,
		      struct err *err)
{
	struct loading *loading = context;
	struct index_lists *lists = loading->lists;
	uint32_t run = 1u << loading->index->shape.skip_log2;
	uint64_t runs = ((uint64_t)entry->count + run - 1) / run;
	uint64_t head = runs > 1 ? runs * sizeof(struct index_skip) : 0;
	size_t size;

	if (entry->end - entry->at < head)
		return index_lists_damaged(err);
	size = (size_t)(entry->end - entry->at - head);
	lists->bytes = mem_grow(lists->bytes, &lists->bytes_capacity,
				(size_t)loading->filled + size + 1, 1);
	if (!vault_read(&loading->index->files.posts, entry->at + head,
			lists->bytes + loading->filled, size, err))
		return false;
	*MEM_ADD(lists->lists, lists->count, lists->capacity) = (struct index_list){
		.step = loading->filled,
		.size = size,
		.number = number,
		.left = entry->count + 1,
		.several = entry->several,
		.first = loading->first,
		.last = loading->first + (UINT64_C(1) << loading->index->shape.chunk_log2) - 1,
		.run = run,
	};
	loading->filled += size;
	return true;
}

// To the first posting.
static bool begin_list(struct index_list *list, const uint8_t *bytes, struct err *err)
{
	list->at = bytes + list->step;
	list->end = list->at + list->size;
	list->step = list->first;
	if (!list->several)
		list->size = bits_take_varint(&list->at, list->end);
	return index_list_next(list, err);
}

bool index_lists_load(struct index_lists *lists, struct index *index, const uint32_t *numbers,
		      uint64_t chunk, struct err *err)
{
	struct loading loading = { .lists = lists,
				   .index = index,
				   .first = chunk << index->shape.chunk_log2 };

	lists->count = 0;
	if (!visit_chunk(index, chunk, numbers, load_list, &loading, err))
		return false;
	for (size_t i = 0; i < lists->count; i++)
		if (!begin_list(&lists->lists[i], lists->bytes, err))
			return false;
	return true;
}

void index_lists_fini(struct index_lists *lists)
{
	mem_free(lists->lists);
	mem_free(lists->bytes);
	*lists = (struct index_lists){ 0 };
}

bool index_lists_mark(struct index *index, const uint32_t *numbers, uint64_t from, uint64_t to,
		      uint8_t *marks, struct err *err)
{
	unsigned chunk_log2 = index->shape.chunk_log2, block_log2 = index->shape.block_log2;
	struct index_lists lists = { 0 };
	bool ok = true;

	for (uint64_t chunk = from >> chunk_log2; ok && chunk << chunk_log2 < to; chunk++) {
		ok = index_lists_load(&lists, index, numbers, chunk, err);
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
