#include "engine/index_bits.h"
#include "engine/index_store.h"

#include "base/mem.h"

#include <string.h>

// The chunk that is being filled.
struct index_postings {
	uint32_t size;      // steps that a chunk has
	uint32_t filled;    // steps that it has now
	uint32_t skip_log2; // see index_shape
	uint32_t *ops;      // by step of the chunk
	uint32_t *order;    // steps << 1 | ends, by site
	uint32_t *starts;   // by site: where its steps begin in `order`
	size_t starts_capacity;
	struct index_skip *skips;
	size_t skips_capacity;
	uint8_t *bytes; // of one list
	size_t bytes_capacity;
};

static void need_starts(struct index_postings *postings, size_t need)
{
	size_t before = postings->starts_capacity;

	postings->starts = mem_grow(postings->starts, &postings->starts_capacity, need,
				    sizeof *postings->starts);
	memset(postings->starts + before, 0,
	       (postings->starts_capacity - before) * sizeof *postings->starts);
}

struct index_postings *index_postings_new(const struct index_shape *shape)
{
	struct index_postings *postings = mem_alloc(1, sizeof *postings);

	postings->size = 1u << shape->chunk_log2;
	postings->skip_log2 = shape->skip_log2;
	postings->ops = mem_alloc_table(postings->size, sizeof *postings->ops);
	postings->order = mem_alloc_table(postings->size, sizeof *postings->order);
	need_starts(postings, 3);
	return postings;
}

void index_postings_free(struct index_postings *postings)
{
	if (!postings)
		return;
	mem_free(postings->ops);
	mem_free(postings->order);
	mem_free(postings->starts);
	mem_free(postings->skips);
	mem_free(postings->bytes);
	mem_free(postings);
}

void index_postings_add(struct index_postings *postings, const struct index_batch *batch)
{
	memcpy(postings->ops + postings->filled, batch->ops, batch->count * sizeof *batch->ops);
	postings->filled += batch->count;
}

bool index_postings_full(const struct index_postings *postings)
{
	return postings->filled == postings->size;
}

static void prefetch_cell(const struct cells *cells, const struct index_postings *postings,
			  uint32_t i)
{
	if (i < postings->filled)
		cells_expect(cells, postings->ops[i] >> 1);
}

static uint32_t site_of(const struct cells *cells, const struct index_postings *postings,
			uint32_t i)
{
	return cells_cell(cells, postings->ops[i] >> 1).site;
}

// Sort the chunk's steps by site. Returns one more than the highest site.
static uint32_t sort_steps(struct index_postings *postings, const struct cells *cells)
{
	enum { AHEAD = 16 };
	uint32_t sites = 1, sum = 0;

	memset(postings->starts, 0, postings->starts_capacity * sizeof *postings->starts);
	for (uint32_t i = 0; i < postings->filled; i++) {
		uint32_t site = site_of(cells, postings, i);

		prefetch_cell(cells, postings, i + AHEAD);
		if (site >= sites) {
			sites = site + 1;
			need_starts(postings, sites + (size_t)2);
		}
		postings->starts[site + 2]++;
	}
	for (uint32_t site = 0; site < sites + 2; site++) {
		sum += postings->starts[site];
		postings->starts[site] = sum;
	}
	// starts[site + 1] is where it begins, and moves to where it ends: where the next begins.
	for (uint32_t i = 0; i < postings->filled; i++) {
		uint32_t *to = &postings->starts[site_of(cells, postings, i) + 1];

		prefetch_cell(cells, postings, i + AHEAD);
		postings->order[(*to)++] = i << 1 | (postings->ops[i] & 1);
	}
	return sites;
}

static void add_to_skip(struct index_skip *skip, bool ends, uint64_t size)
{
	skip->bytes += ends ? -(int64_t)size : (int64_t)size;
	skip->count += ends ? -1 : 1;
	if (skip->bytes > skip->bytes_max)
		skip->bytes_max = skip->bytes;
	if (skip->count > skip->count_max)
		skip->count_max = skip->count;
}

// Whether the steps of a list are not all of one cell. Goes through all of it, and asks for what
// the lists behind it need from memory.
static bool has_several(const struct index_postings *postings, const struct cells *cells,
			uint32_t at, uint32_t count)
{
	enum { STEPS_AHEAD = 48, CELLS_AHEAD = 24 };
	const uint32_t *order = postings->order, *ops = postings->ops;
	uint32_t first = ops[order[at] >> 1] >> 1, others = 0;

	for (uint32_t end = at + count; at < end; at++) {
		if (at + STEPS_AHEAD < postings->filled) {
			uint32_t soon = ops[order[at + CELLS_AHEAD] >> 1];

			mem_expect(&ops[order[at + STEPS_AHEAD] >> 1]);
			cells_expect(cells, soon >> 1);
		}
		others |= (ops[order[at] >> 1] >> 1) ^ first;
	}
	return others != 0;
}

// Returns whether each has its size.
static bool write_list(struct index_postings *postings, const struct cells *cells, uint32_t site,
		       struct vault *vault)
{
	const uint32_t *order = postings->order + postings->starts[site];
	uint32_t count = postings->starts[site + 1] - postings->starts[site], last = 0;
	size_t runs = ((size_t)count + (1u << postings->skip_log2) - 1) >> postings->skip_log2;
	bool several = has_several(postings, cells, postings->starts[site], count);
	uint8_t *at;

	postings->bytes =
		mem_grow(postings->bytes, &postings->bytes_capacity, count * (size_t)15 + 16, 1);
	postings->skips =
		mem_grow(postings->skips, &postings->skips_capacity, runs, sizeof *postings->skips);
	at = postings->bytes;
	if (!several)
		at += bits_put_varint(at,
				      cells_cell(cells, postings->ops[order[0] >> 1] >> 1).size);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t step = order[i] >> 1;
		struct index_skip *skip = &postings->skips[i >> postings->skip_log2];
		uint64_t size = cells_cell(cells, postings->ops[step] >> 1).size;

		if (i % (1u << postings->skip_log2) == 0)
			*skip = (struct index_skip){ .at = (uint32_t)(at - postings->bytes),
						     .step = last };
		add_to_skip(skip, order[i] & 1, size);
		at += bits_put_varint(at, (uint64_t)(step - last) << 1 | (order[i] & 1));
		if (several)
			at += bits_put_varint(at, size);
		last = step;
	}
	if (runs > 1)
		vault_append(vault, postings->skips, runs * sizeof *postings->skips);
	vault_append(vault, postings->bytes, (size_t)(at - postings->bytes));
	return several;
}

static void add_mark(struct index_files *files, const struct index_chunk *chunk, uint32_t site)
{
	files->posts_marks = mem_grow(files->posts_marks, &files->posts_marks_capacity,
				      files->posts_marks_count + 1, sizeof *files->posts_marks);
	files->posts_marks[files->posts_marks_count++] = (struct index_posts_mark){
		.site = site,
		.sites_at = (uint32_t)(files->posts_sites.size - chunk->sites_at),
		.at = files->posts.size,
	};
}

void index_postings_write(struct index_postings *postings, const struct cells *cells,
			  struct index_files *files)
{
	struct index_chunk *chunk;
	uint32_t sites, last = 0;

	if (postings->filled == 0)
		return;
	sites = sort_steps(postings, cells);
	files->chunks = mem_grow(files->chunks, &files->chunks_capacity, files->chunks_count + 1,
				 sizeof *files->chunks);
	chunk = &files->chunks[files->chunks_count++];
	*chunk = (struct index_chunk){ .lists_at = files->posts.size,
				       .sites_at = files->posts_sites.size,
				       .first_mark = (uint32_t)files->posts_marks_count };
	for (uint32_t site = 1; site < sites; site++) {
		uint32_t count = postings->starts[site + 1] - postings->starts[site];
		uint64_t at = files->posts.size;
		uint8_t entry[30], *to = entry;
		bool several;

		if (count == 0 || cells_site(cells, site)->orphans)
			continue;
		if (chunk->sites_count % INDEX_POSTS_MARK == 0) {
			add_mark(files, chunk, site);
			last = site;
		}
		several = write_list(postings, cells, site, &files->posts);
		to += bits_put_varint(to, site - last);
		to += bits_put_varint(to, (uint64_t)count << 1 | several);
		to += bits_put_varint(to, files->posts.size - at);
		vault_append(&files->posts_sites, entry, (size_t)(to - entry));
		chunk->sites_count++;
		last = site;
	}
	chunk->sites_size = files->posts_sites.size - chunk->sites_at;
	chunk->lists_size = files->posts.size - chunk->lists_at;
	postings->filled = 0;
}

void index_postings_save(const struct index_postings *postings, struct index_out *out)
{
	index_out_put_array(out, postings->ops, postings->filled, sizeof *postings->ops);
}

bool index_postings_load(struct index_postings *postings, struct index_in *in, uint32_t cells)
{
	size_t count = index_in_take_count(in, sizeof *postings->ops);

	if (in->bad || count >= postings->size)
		return false;
	index_in_take(in, postings->ops, count * sizeof *postings->ops);
	postings->filled = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		if (postings->ops[i] >> 1 >= cells)
			return false;
	return !in->bad;
}
