// Postings: for each chunk of steps, which of them each site made.
//
// A chunk is 2^22 steps. When it is full its steps are sorted by site (counting sort), and each
// site's list is written: differences of steps, packed, with sizes where they differ. Before
// each run of 1024 is a *skip*: the sums of the run, so that a reader can step over it.
//
// If site 7 made steps 3, 10 and 12 of a chunk, all blocks of 64 bytes, its list is "64" once, then
// the numbers 3, 7, 2, each with a bit for beginning or end.
//
// A *busy* site, which has one step in 128 and more, has no such list: the blocks of steps tell as
// much, and are read as fast. Of it there are sums for each stretch of 2^15 steps: a site of five
// million steps in a hundred million has 3,052 stretches, and its level at any edge costs the sums
// before it and at most one stretch of steps.
#include "engine/index/index_bits.h"
#include "engine/index/index_store.h"

#include "base/mem.h"
#include "os/thread.h"

#include <pthread.h>
#include <string.h>

enum { PIECES_LOG2 = 6 }; // that a chunk is written in, about

// The chunk that is being filled.
struct index_postings {
	uint32_t size;                               // steps that a chunk has
	uint32_t filled;                             // steps that it has now
	uint32_t skip_log2, stretch_log2, busy_log2; // see index_shape
	uint32_t sites;                              // one more than the highest that it has
	uint32_t *ops;                               // by step of the chunk
	uint32_t *order;                             // steps << 1 | ends, by site
	// starts[site + 2] is how many steps a site has; once they are sorted, starts[site] is
	// where they begin in `order`.
	uint32_t *starts;
	size_t starts_capacity;
};

struct index_postings *index_postings_new(const struct index_shape *shape)
{
	struct index_postings *postings = mem_alloc(1, sizeof *postings);

	postings->size = 1u << shape->chunk_log2;
	postings->skip_log2 = shape->skip_log2;
	postings->stretch_log2 = shape->stretch_log2;
	postings->busy_log2 = shape->busy_log2;
	postings->sites = 1;
	postings->ops = mem_alloc_table(postings->size, sizeof *postings->ops);
	postings->order = mem_alloc_table(postings->size, sizeof *postings->order);
	(void)MEM_REACH(postings->starts, postings->starts_capacity, 2);
	return postings;
}

void index_postings_free(struct index_postings *postings)
{
	if (!postings)
		return;
	MEM_FREE(postings->ops, postings->order, postings->starts, postings);
}

// Counted while steps come in, so that sorting needs no pass for it.
static void count_site(struct index_postings *postings, uint32_t site)
{
	if (site >= postings->sites) {
		postings->sites = site + 1;
		(void)MEM_REACH(postings->starts, postings->starts_capacity, site + (size_t)2);
	}
	postings->starts[site + 2]++;
}

void index_postings_add(struct index_postings *postings, const struct index_batch *batch,
			const uint32_t *sites)
{
	ASSERT(postings->filled + batch->count <= postings->size);
	memcpy(postings->ops + postings->filled, batch->ops, batch->count * sizeof *batch->ops);
	postings->filled += batch->count;
	for (uint32_t i = 0; i < batch->count; i++)
		count_site(postings, sites[i]);
}

bool index_postings_full(const struct index_postings *postings)
{
	return postings->filled == postings->size;
}

// Sort the chunk's steps by site.
static void sort_steps(struct index_postings *postings, const struct cells *cells)
{
	enum { AHEAD = 32, STARTS_AHEAD = 16 };
	const uint32_t *ops = postings->ops;
	uint32_t *starts = postings->starts, sum = 0;

	for (uint32_t site = 0; site < postings->sites + 2; site++) {
		sum += starts[site];
		starts[site] = sum;
	}
	// starts[site + 1] is where it begins, and moves to where it ends: where the next begins.
	for (uint32_t i = 0; i < postings->filled; i++) {
		uint32_t *to = &starts[cells_cell(cells, ops[i] >> 1).site + 1];

		if (i + AHEAD < postings->filled) {
			uint32_t soon = cells_cell(cells, ops[i + STARTS_AHEAD] >> 1).site;

			cells_expect(cells, ops[i + AHEAD] >> 1);
			mem_expect(&starts[soon + 1]);
		}
		postings->order[(*to)++] = i << 1 | (ops[i] & 1);
	}
}

// ---- lists ----

// What a list is, in front of its chunk's directory.
struct entry {
	uint32_t site;
	uint32_t word; // count << INDEX_POSTS_LOG2 | form
	uint64_t size; // bytes
};

// The lists of a chunk are written in pieces, by two threads: who has written one waits until those
// before it are in the files.
struct writing {
	struct index_postings *postings;
	const struct cells *cells;
	struct index_files *files;
	struct index_chunk *chunk;
	uint32_t last;    // site of the entry before
	uint32_t waiting; // entries that are not in the directory yet, by columns
	uint64_t columns[INDEX_POSTS_COLUMNS][INDEX_POSTS_MARK];

	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t next;         // site that is not taken
	unsigned taken, given; // pieces, and those in the files
};

// Who writes pieces.
struct scribe {
	struct writing *writing;
	uint32_t first, end; // sites of the piece
	unsigned number;     // of the piece
	uint8_t *bytes;      // lists
	size_t filled, capacity;
	struct entry *entries;
	size_t entries_count, entries_capacity;
	uint64_t *sizes;   // of a run of postings
	uint64_t *words;   // the same
	uint64_t *columns; // of a busy site
};

static void add_to_skip(struct index_skip *skip, bool ends, uint64_t size)
{
	skip->bytes += ends ? -(int64_t)size : (int64_t)size;
	skip->count += ends ? -1 : 1;
	if (skip->bytes > skip->bytes_max)
		skip->bytes_max = skip->bytes;
	if (skip->count > skip->count_max)
		skip->count_max = skip->count;
}

static uint64_t size_at(const struct writing *writing, uint32_t at)
{
	const struct index_postings *postings = writing->postings;

	return cells_cell(writing->cells, postings->ops[postings->order[at] >> 1] >> 1).size;
}

// The sizes of some postings, in `scribe->sizes`; whether any is not `single`. What those behind
// them need is asked for from memory.
static bool gather(struct scribe *scribe, uint32_t first, uint32_t count, uint64_t single)
{
	enum { STEPS_AHEAD = 48, CELLS_AHEAD = 24 };
	const struct writing *writing = scribe->writing;
	const struct index_postings *postings = writing->postings;
	const uint32_t *order = postings->order + first, *ops = postings->ops;
	uint64_t others = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (first + i + STEPS_AHEAD < postings->filled) {
			mem_expect(&ops[order[i + STEPS_AHEAD] >> 1]);
			cells_expect(writing->cells, ops[order[i + CELLS_AHEAD] >> 1] >> 1);
		}
		scribe->sizes[i] = size_at(writing, first + i);
		others |= scribe->sizes[i] ^ single;
	}
	return others != 0;
}

// The sums of a run, of which `skip` has where it begins.
static void put_skip(const struct scribe *scribe, const uint32_t *order, uint32_t count,
		     struct index_skip skip, uint8_t *out)
{
	for (uint32_t i = 0; i < count; i++)
		add_to_skip(&skip, order[i] & 1, scribe->sizes[i]);
	memcpy(out, &skip, sizeof skip);
}

// The words of a run, and after each or after all the sizes that are written out: those of place 0
// in a list of `several`. `*last`: the step before, and then the last one. Returns the end.
static uint8_t *put_run(uint8_t *at, struct scribe *scribe, const uint32_t *order, uint32_t count,
			bool several, bool packed, uint32_t *last)
{
	struct bits_sizes recent = { 0 };
	uint32_t others = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t step = order[i] >> 1;
		uint64_t word = step - *last, size = scribe->sizes[i];
		unsigned place = several ? bits_sizes_put(&recent, size) : 1;

		if (several)
			word = word << BITS_SIZES_LOG2 | place;
		word = word << 1 | (order[i] & 1);
		*last = step;
		scribe->words[i] = word;
		if (packed && place == 0)
			scribe->sizes[others++] = size; // over those that were looked at
		if (packed)
			continue;
		at += bits_put_varint(at, word);
		if (place == 0)
			at += bits_put_varint(at, size);
	}
	if (packed)
		at = pack_put(at, scribe->words, count);
	for (uint32_t i = 0; i < others; i++)
		at += bits_put_varint(at, scribe->sizes[i]);
	return at;
}

// The postings `first` and so on, as a list. False where several sizes are met and `several` is not
// set: nothing is written.
static bool put_list(struct scribe *scribe, uint32_t first, uint32_t count, bool several)
{
	enum { SIZE_MAX_BYTES = 10 };
	const uint32_t *order = scribe->writing->postings->order + first;
	uint32_t run = 1u << scribe->writing->postings->skip_log2, last = 0;
	size_t runs = ((size_t)count + run - 1) / run;
	size_t skips = runs > 1 ? runs * sizeof(struct index_skip) : 0;
	bool packed = index_posts_packed(count, run);
	uint64_t single = size_at(scribe->writing, first);
	uint8_t *skip, *out, *at;

	ASSERT(count > 0 && first + count <= scribe->writing->postings->filled);
	scribe->bytes = mem_grow(scribe->bytes, &scribe->capacity,
				 scribe->filled + skips + SIZE_MAX_BYTES * ((size_t)count + 1) +
					 runs * pack_bytes_max(count < run ? count : run),
				 1);
	skip = scribe->bytes + scribe->filled;
	out = at = skip + skips;
	if (!several)
		at += bits_put_varint(at, single);
	for (uint32_t i = 0; i < count; i += run) {
		uint32_t some = count - i < run ? count - i : run;

		if (gather(scribe, first + i, some, single) && !several)
			return false;
		if (skips)
			put_skip(scribe, order + i, some,
				 (struct index_skip){ .at = (uint32_t)(at - out), .step = last },
				 skip + i / run * sizeof(struct index_skip));
		at = put_run(at, scribe, order + i, some, several, packed, &last);
	}
	scribe->filled = (size_t)(at - scribe->bytes);
	ASSERT(scribe->filled <= scribe->capacity);
	return true;
}

// ---- busy sites ----

// What the site of some postings did before a step of the chunk. *first is moved on to the first
// posting that is not before it, or to `end`.
static struct index_stretch sum_stretch(struct scribe *scribe, uint32_t *first, uint32_t end,
					uint32_t before)
{
	const struct index_postings *postings = scribe->writing->postings;
	uint32_t most = 1u << postings->skip_log2;
	struct index_stretch stretch = { 0 };

	while (*first < end && postings->order[*first] >> 1 < before) {
		uint32_t some = 0;

		while (some<most && * first + some<end && postings->order[*first + some]>> 1 <
		       before)
			some++;
		gather(scribe, *first, some, 0);
		for (uint32_t i = 0; i < some; i++)
			add_to_skip(&stretch.sums, postings->order[*first + i] & 1,
				    scribe->sizes[i]);
		stretch.count += some;
		*first += some;
	}
	return stretch;
}

// Five columns, each packed by itself: of each stretch how many steps the site made, then the sums
// of these and the most that they reached, in bytes and in count.
static void put_stretches(struct scribe *scribe, uint32_t first, uint32_t count)
{
	const struct index_postings *postings = scribe->writing->postings;
	uint32_t stretches = ((postings->filled - 1) >> postings->stretch_log2) + 1;
	uint64_t *to = scribe->columns;

	for (uint32_t i = 0, end = first + count; i < stretches; i++, to++) {
		struct index_stretch stretch =
			sum_stretch(scribe, &first, end, (i + 1) << postings->stretch_log2);

		to[0 * stretches] = stretch.count;
		to[1 * stretches] = bits_zigzag((uint64_t)stretch.sums.bytes);
		to[2 * stretches] = (uint64_t)stretch.sums.bytes_max;
		to[3 * stretches] = bits_zigzag((uint64_t)stretch.sums.count);
		to[4 * stretches] = (uint64_t)stretch.sums.count_max;
	}
	scribe->bytes = mem_grow(scribe->bytes, &scribe->capacity,
				 scribe->filled + INDEX_STRETCH_COLUMNS * pack_bytes_max(stretches),
				 1);
	for (uint32_t i = 0; i < INDEX_STRETCH_COLUMNS; i++) {
		uint8_t *at = scribe->bytes + scribe->filled;

		scribe->filled +=
			(size_t)(pack_put(at, scribe->columns + i * (size_t)stretches, stretches) -
				 at);
	}
}

// ---- pieces ----

// The next sites that no worker has taken.
static bool take_piece(struct scribe *scribe)
{
	struct writing *writing = scribe->writing;
	const struct index_postings *postings = writing->postings;
	uint32_t least = postings->size >> PIECES_LOG2;

	pthread_mutex_lock(&writing->lock);
	scribe->first = scribe->end = writing->next;
	while (scribe->end < postings->sites &&
	       postings->starts[scribe->end] - postings->starts[scribe->first] < least)
		scribe->end++;
	writing->next = scribe->end;
	scribe->number = writing->taken++;
	pthread_mutex_unlock(&writing->lock);
	return scribe->first < scribe->end;
}

// Most sites have blocks of one size. So a list is tried as one of a single size first, and
// written again with sizes where that turns out to be wrong.
static void put_piece(struct scribe *scribe)
{
	const struct writing *writing = scribe->writing;
	const uint32_t *starts = writing->postings->starts;

	scribe->filled = scribe->entries_count = 0;
	for (uint32_t site = scribe->first; site < scribe->end; site++) {
		uint32_t count = starts[site + 1] - starts[site];
		size_t before = scribe->filled;
		enum index_posts_form form = INDEX_POSTS_SINGLE;

		if (count == 0 || cells_site(writing->cells, site)->orphans)
			continue;
		if ((uint64_t)count << writing->postings->busy_log2 >= writing->postings->filled) {
			form = INDEX_POSTS_BUSY;
			put_stretches(scribe, starts[site], count);
		} else if (!put_list(scribe, starts[site], count, false)) {
			form = INDEX_POSTS_SEVERAL;
			put_list(scribe, starts[site], count, true);
		}
		*MEM_ADD(scribe->entries, scribe->entries_count, scribe->entries_capacity) =
			(struct entry){ .site = site,
					.word = count << INDEX_POSTS_LOG2 | form,
					.size = scribe->filled - before };
	}
}

static void add_mark(struct index_files *files, const struct index_chunk *chunk, uint32_t site,
		     uint64_t at)
{
	*MEM_ADD(files->posts_marks, files->posts_marks_count, files->posts_marks_capacity) =
		(struct index_posts_mark){
			.site = site,
			.sites_at = (uint32_t)(files->posts_sites.size - chunk->sites_at),
			.at = at,
		};
}

// Entries that are waiting into the directory.
static void put_entries(struct writing *writing)
{
	uint8_t bytes[INDEX_POSTS_COLUMNS * PACK_GROUP_MAX + PACK_SLACK], *to = bytes;

	for (unsigned i = 0; writing->waiting && i < INDEX_POSTS_COLUMNS; i++)
		to = pack_put_group(to, writing->columns[i], writing->waiting);
	vault_append(&writing->files->posts_sites, bytes, (size_t)(to - bytes));
	writing->waiting = 0;
}

// A piece into the files, in its turn.
static void give_piece(const struct scribe *scribe)
{
	struct writing *writing = scribe->writing;
	struct index_files *files = writing->files;
	struct index_chunk *chunk = writing->chunk;
	uint64_t at = files->posts.size;

	ASSERT(writing->given == scribe->number);
	for (size_t i = 0; i < scribe->entries_count; i++) {
		const struct entry *entry = &scribe->entries[i];
		uint32_t to = writing->waiting++;

		if (chunk->sites_count++ % INDEX_POSTS_MARK == 0) {
			add_mark(files, chunk, entry->site, at);
			writing->last = entry->site;
		}
		ASSERT(entry->site >= writing->last); // sites are in order
		writing->columns[0][to] = entry->site - writing->last;
		writing->columns[1][to] = entry->word;
		writing->columns[2][to] = entry->size;
		if (writing->waiting == INDEX_POSTS_MARK)
			put_entries(writing);
		writing->last = entry->site;
		at += entry->size;
	}
	ASSERT(at == files->posts.size + scribe->filled);
	vault_append(&files->posts, scribe->bytes, scribe->filled);
}

// Pieces of the chunk are made by two threads side by side, and given to the files in their order:
// who is ready early waits for its turn.
static void *write_pieces(void *context)
{
	struct writing *writing = context;
	struct scribe scribe = { .writing = writing };

	scribe.sizes = mem_alloc((size_t)1 << writing->postings->skip_log2, sizeof *scribe.sizes);
	scribe.words = mem_alloc((size_t)1 << writing->postings->skip_log2, sizeof *scribe.words);
	scribe.columns =
		mem_alloc(((size_t)writing->postings->size >> writing->postings->stretch_log2) *
				  INDEX_STRETCH_COLUMNS,
			  sizeof *scribe.columns);
	while (take_piece(&scribe)) {
		put_piece(&scribe);
		pthread_mutex_lock(&writing->lock);
		while (writing->given != scribe.number)
			pthread_cond_wait(&writing->changed, &writing->lock);
		pthread_mutex_unlock(&writing->lock);
		give_piece(&scribe);
		pthread_mutex_lock(&writing->lock);
		writing->given++;
		pthread_cond_broadcast(&writing->changed);
		pthread_mutex_unlock(&writing->lock);
	}
	MEM_FREE(scribe.bytes, scribe.entries, scribe.sizes, scribe.words, scribe.columns);
	return NULL;
}

// Sorts the steps of the chunk by site and writes them; the next chunk begins empty.
void index_postings_write(struct index_postings *postings, const struct cells *cells,
			  struct index_files *files)
{
	struct writing writing = { .postings = postings, .cells = cells, .files = files };
	struct index_chunk *chunk;
	struct thread *thread;

	if (postings->filled == 0)
		return;
	sort_steps(postings, cells);
	chunk = MEM_ADD(files->chunks, files->chunks_count, files->chunks_capacity);
	*chunk = (struct index_chunk){ .lists_at = files->posts.size,
				       .sites_at = files->posts_sites.size,
				       .first_mark = (uint32_t)files->posts_marks_count };
	writing.chunk = chunk;
	writing.next = 1;
	pthread_mutex_init(&writing.lock, NULL);
	pthread_cond_init(&writing.changed, NULL);
	thread = thread_start(write_pieces, &writing);
	write_pieces(&writing);
	thread_join(thread);
	ASSERT(writing.next == postings->sites); // all were taken
	pthread_mutex_destroy(&writing.lock);
	pthread_cond_destroy(&writing.changed);
	put_entries(&writing);
	chunk->sites_size = files->posts_sites.size - chunk->sites_at;
	chunk->lists_size = files->posts.size - chunk->lists_at;
	memset(postings->starts, 0, (postings->sites + (size_t)2) * sizeof *postings->starts);
	postings->filled = 0;
	postings->sites = 1;
}

void index_postings_save(const struct index_postings *postings, struct index_out *out)
{
	index_out_put_array(out, postings->ops, postings->filled, sizeof *postings->ops);
}

// A chunk that was being filled when a build was stopped: it is read as untrusted, as all of a
// state is.
bool index_postings_load(struct index_postings *postings, struct index_in *in,
			 const struct cells *cells)
{
	size_t count = index_in_take_count(in, sizeof *postings->ops);

	if (in->bad || count >= postings->size)
		return false;
	index_in_take(in, postings->ops, count * sizeof *postings->ops);
	postings->filled = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		if (postings->ops[i] >> 1 >= cells->cells_count)
			return false;
		count_site(postings, cells_cell(cells, postings->ops[i] >> 1).site);
	}
	return !in->bad;
}
