// index_store: writes the files of a window index, from steps in their order.
//
//     index_store_open
//       index_store_add       batches of steps, one after the other
//       index_store_over      there are no more
//       index_store_never     what nothing ended, in order of beginning
//     index_store_finish
//     index_store_close
//
// An index is a directory of append-only files (vaults) and a file `head` that says what they
// are, written last (index_head.c). What the files hold:
//
//     events     blocks of 2^block_log2 steps: what each step did, `cell << 1 | ends`, but of those
//                that end what began in the same 2^stretch_log2 steps, which says it; the
//                lifetime in steps of each that ends; the events' numbers where they do not
//                simply count on (index_events.c). Cell 0 is a step that does nothing.
//     times      for each block, where the time changes
//     cells      full counts by cell, now and then: how many began, how many live
//     sites      the same by site, with bytes: what is asked by site needs no cells
//     long0 ..   lifetimes of 2^long_log2 steps and more, a file for each power of two, in order of
//                their ends: which of them span a window is close together; 2^sparse_log2 are
//                packed at a time (index_longs.c)
//     never      what nothing ended, in order of beginning, in blocks of 2^sparse_log2; and
//                counts by cell and site, now and then
//     addresses  where those of `long` and `never` were, 2^sparse_log2 of one file at a time: with
//                these, what lived at a moment is known but for the last 2^long_log2 steps,
//                which are read from the trace (index_moment.h)
//     calls      the calls on virtual memory, and those that failed, and the beginnings and ends of
//                processes (engine/space/vm_calls.h)
//     levels0 .. the level of each 256 steps: highest, lowest and last, bytes and count, and the
//                time; each further file sums up 4 entries of the one before. PACK_GROUP
//                entries are packed at a time (index_levels.c)
//     sizes      for each block and size of allocations in it: what it did there, so that the peak
//                of all blocks of one size is found without the steps (index_sizes.h)
//     posts      for chunks of steps and each site in them: its steps, with sums for each 1024 of
//                them, so that the peak of one site costs what that site did; or the sums alone,
//                of a site that is in nearly each group of steps
//
// An exit takes the blocks of a process off the levels and is a step that does nothing else.
#pragma once

#include "engine/index/cells.h"
#include "engine/index/index_io.h"
#include "engine/index/pack.h"
#include "engine/index/vault.h"

// What sizes things have. Tests make them small, so that every path is taken.
struct index_shape {
	uint32_t block_log2;     // steps in a block: 16
	uint32_t long_log2;      // shortest lifetime in the long files: 17
	uint32_t snapshot_steps; // at least so many between two snapshots: 2^18
	uint32_t snapshot_ratio; // and so many times the number of keys: 2; of sites, thrice that
	uint32_t level_log2;     // steps in an entry of levels0: 8
	uint32_t chunk_log2;     // steps in a chunk of postings: 22
	uint32_t skip_log2;      // postings between two sums: 10
	uint32_t stretch_log2;   // steps in a stretch of a busy site: 15; at most a block's
	uint32_t busy_log2;      // a site is busy in a chunk if it has one step in 2^busy_log2: 7
	uint32_t sparse_log2;    // long lifetimes, and endless ones, between two entries of their
				 // index: 12
	uint64_t short_steps;    // a window up to this is answered from its own steps: 2^20
};

// What follows a change, at a step of a batch.
struct index_run {
	uint32_t at;
	uint64_t value;
};

// The steps of one block.
struct index_batch {
	uint64_t first; // step
	uint32_t count;
	unsigned stretch_log2;   // of the shape
	uint32_t *ops;           // cell << 1 | ends
	uint64_t *begins;        // where ops ends: the step that began it; 0: an orphan
	uint64_t *addresses;     // of lifetimes of 2^long_log2 steps and more that end, one by one
	struct index_run *runs;  // times, beginning at 0
	struct index_run *jumps; // events' numbers that are not one more; the first is at 0
	struct index_run *exits; // processes that end
	uint32_t runs_count, jumps_count, exits_count, addresses_count;
	size_t exits_capacity, addresses_capacity;
};

void index_batch_init(struct index_batch *batch, const struct index_shape *shape);
void index_batch_fini(struct index_batch *batch);

// Of one block of steps, in the order of steps.
struct index_block_entry {
	uint64_t events_at, times_at; // in the vaults
	uint64_t time_ns;             // of the first step
	uint32_t events_size, times_size;
	uint64_t sizes_at; // up to the next block's
};

// Groups of keys (index_bits.h), from key 0 on. By cell: how many began, how many live. By site
// also their bytes, less what they were if all had the size of the site's first cell, as zigzag;
// and after those, marks: where keys BITS_MARK * n begin (u32, from `at`).
struct index_snapshot {
	uint64_t step; // counts of all steps before it; of `never`: of so many entries
	uint64_t at, size;
	uint32_t keys; // cells or sites, with 0
	uint32_t padding;
};

struct index_snapshots {
	struct index_snapshot *list;
	size_t count, capacity;
};

// Levels are those after events: the level between the two steps of a realloc was never there. An
// entry whose last step is the first of such two has the second one too (`over`), and the next
// entry begins a step later.
struct index_level {
	uint64_t time_ns; // of the last step
	uint64_t bytes_max, bytes_min, bytes_end;
	uint64_t count_max;
	uint64_t over : 1, count_end : 63;
};

struct index_chunk {
	uint64_t lists_at, lists_size; // postings, one site after the other
	uint64_t sites_at, sites_size; // directory, see struct index_posts
	uint32_t sites_count;
	uint32_t first_mark; // in files->posts_marks: of each INDEX_POSTS_MARK entries
};

// Where entries of a directory begin. The first has a distance of 0.
struct index_posts_mark {
	uint32_t site;
	uint32_t sites_at; // from the chunk's
	uint64_t at;       // of its list, in the vault
};

// The directory has, of the sites that did anything, by rising site, INDEX_POSTS_MARK at a time
// (the last may be fewer), three columns (pack.h): the distance to the site before,
// `count << INDEX_POSTS_LOG2 | form`, and the size of the list.
//
// The postings of one site in one chunk: `count` of them from byte `at` of the vault on.
//
// The site is busy: no postings, since they would say again what the blocks do, step for step. For
// each stretch of 2^stretch_log2 steps of the chunk what the site did there, in columns (pack.h):
// how many postings, and as struct index_skip has them bytes and count (zigzag), bytes_max and
// count_max.
//
// It is not: first, if there are more than 2^skip_log2, one struct index_skip for each run of so
// many. If all have the same size, a varint of it. Then the runs: a column (pack.h), of each
// posting `steps since the one before << 1 | ends`. If they have several sizes, it is `(steps since
// the one before << BITS_SIZES_LOG2 | place) << 1 | ends`, and after the column of a run there is a
// varint of the size of each whose `place` is 0 (struct bits_sizes, which begins again with each
// run). A list of one run that has fewer than INDEX_POSTS_PACKED has varints in place of the
// column, each followed by its size, if there is one.
enum index_posts_form { INDEX_POSTS_SINGLE, INDEX_POSTS_SEVERAL, INDEX_POSTS_BUSY };
enum { INDEX_POSTS_LOG2 = 2, INDEX_POSTS_PACKED = 32 };

// Whether a list of so many is columns.
static inline bool index_posts_packed(uint32_t count, uint32_t run)
{
	return count >= INDEX_POSTS_PACKED || count > run;
}

struct index_posts {
	uint32_t count;
	enum index_posts_form form;
	uint64_t at, end;
};

enum { INDEX_POSTS_MARK = 64, INDEX_POSTS_COLUMNS = 3 };

struct index_skip {
	uint32_t at;              // where the run begins: bytes from after the skips
	uint32_t step;            // of the chunk, of the posting before it
	int64_t bytes, bytes_max; // change over the postings, and its highest prefix
	int64_t count, count_max;
};

// What a busy site did in a stretch of steps.
enum { INDEX_STRETCH_COLUMNS = 5, INDEX_STRETCHES_LOG2 = 12 }; // of a chunk, at most
struct index_stretch {
	uint32_t count; // of postings
	struct index_skip sums;
};

// What nothing ended, 2^sparse_log2 at a time (the last block may have fewer): a column of cells
// (pack.h), and one of how many steps they began after the one before; the first is 0.
struct index_never_block {
	uint64_t at;   // in the vault
	uint64_t step; // that the first one began
};

// Where so many addresses are packed in `addresses`: 2^sparse_log2 of one file, or what is left.
// index_addresses.c says how.
struct index_addresses {
	uint64_t at;
	uint32_t size, count;
};

struct index_address_blocks {
	struct index_addresses *list;
	size_t count, capacity;
};

// 2^sparse_log2 long lifetimes of one file, or what is left.
struct index_long_block {
	uint64_t end; // the step that ended the first of them
	uint64_t at;  // in the vault
};

struct index_long_blocks {
	struct index_long_block *list;
	size_t count, capacity;
};

enum { INDEX_LONGS = 24, INDEX_LEVELS = 9, INDEX_LEVEL_STEP_LOG2 = 2 };

// The entries of one file of levels, and where each PACK_GROUP of them are packed
// (index_levels.c).
struct index_level_blocks {
	uint64_t *list;
	size_t count, capacity;
	uint64_t entries; // with those that wait for their block
};

// The blocks of addresses of each of `long`, and of `never`.
enum { INDEX_OF_NEVER = INDEX_LONGS, INDEX_ADDRESSES };

// All that is on disk, and what is known of it in memory.
struct index_files {
	struct vault events, times, cells, sites, never, never_cells, never_sites, posts,
		posts_sites, addresses, calls, sizes;
	struct vault longs[INDEX_LONGS], levels[INDEX_LEVELS];
	struct index_block_entry *blocks;
	size_t blocks_count, blocks_capacity;
	struct index_snapshots cells_snapshots, sites_snapshots;
	struct index_snapshots never_snapshots, never_sites_snapshots;
	struct index_long_blocks longs_blocks[INDEX_LONGS];
	uint64_t longs_count[INDEX_LONGS]; // lifetimes, with those that wait for their block
	struct index_level_blocks levels_blocks[INDEX_LEVELS];
	struct index_chunk *chunks;
	size_t chunks_count, chunks_capacity;
	struct index_posts_mark *posts_marks;
	size_t posts_marks_count, posts_marks_capacity;
	struct index_never_block *never_blocks;
	size_t never_blocks_count, never_blocks_capacity;
	struct index_address_blocks address_blocks[INDEX_ADDRESSES];
};

// A long lifetime.
struct index_long {
	uint64_t end;
	uint64_t begin; // live_table_value(step, cell)
};

struct index_store {
	struct index_shape shape;
	const struct cells *table; // borrowed: all that batches speak of is in it
	struct index_files *files; // borrowed
	int directory;             // borrowed
	bool posts;                // keep postings
	uint64_t step;             // to come
	uint64_t ended;            // the event of the last step, + 1, if that ended a block; else 0
	struct heap_amount level;
	struct heap_amount peak;
	uint64_t peak_edge;
	struct heap_amount *of_process;
	size_t processes_capacity;
	struct index_count *counts; // by cell
	size_t counts_capacity;
	struct mem_area counts_area;
	uint64_t cells_next, sites_next; // steps of the next snapshots
	struct index_level building[INDEX_LEVELS];
	uint32_t building_count[INDEX_LEVELS];
	struct index_level *levels[INDEX_LEVELS]; // of blocks that are not yet written
	uint8_t *bytes;                           // scratch
	size_t bytes_capacity;
	struct index_events_work *work;
	struct index_postings *postings; // the chunk that is being filled
	uint32_t *sites;                 // of the steps of a batch
	struct index_sizes *sizes;       // of a batch
	struct index_count *never_counts;
	uint64_t *never_values; // of a block that is not yet written
	uint64_t never_count, never_next, never_counted;
	struct index_long *longs[INDEX_LONGS]; // of blocks that are not yet written
	uint64_t *addresses[INDEX_ADDRESSES];
	struct err err; // the first failure
};

// How many of a cell began, and how many of them live.
struct index_count {
	uint32_t begun, alive;
};

// `create`: new, empty files; else the caller opens those that are there.
bool index_store_open(struct index_store *store, const struct index_shape *shape,
		      const struct cells *cells, struct index_files *files, int directory,
		      bool posts, bool create, struct err *err);
// After index_store_finish or in place of it: what was not written is lost. The files stay open.
void index_store_close(struct index_store *store);

// Batches follow each other; all but the last are full.
void index_store_add(struct index_store *store, const struct index_batch *batch);

// After the last batch. Then what nothing ended: live_table_value(step, cell), rising.
void index_store_over(struct index_store *store);
void index_store_never(struct index_store *store, uint64_t value, uint64_t address);

// Room for counts by so many cells.
void index_store_counts(struct index_store *store, size_t cells);

// Write what is left. False if anything went wrong since index_store_open.
bool index_store_finish(struct index_store *store, struct err *err);

// Bytes of memory used now.
uint64_t index_store_bytes(const struct index_store *store);

// Postings (index_posts.c): one chunk at a time. `sites`: of each step of the batch.
struct index_postings *index_postings_new(const struct index_shape *shape);
void index_postings_free(struct index_postings *postings);
void index_postings_add(struct index_postings *postings, const struct index_batch *batch,
			const uint32_t *sites);
bool index_postings_full(const struct index_postings *postings);
void index_postings_write(struct index_postings *postings, const struct cells *cells,
			  struct index_files *files);

// What is in the postings' chunk now, and into one that is empty. False: it cannot be.
void index_postings_save(const struct index_postings *postings, struct index_out *out);
bool index_postings_load(struct index_postings *postings, struct index_in *in,
			 const struct cells *cells);

// A block of what nothing ended (index_never.c): live_table_value(step, cell), rising, at least
// one.
void index_never_write(struct index_files *files, const uint64_t *values, uint32_t count);

// A block of addresses (index_addresses.c), at least one: `of` a file of long lifetimes, or of
// INDEX_OF_NEVER.
void index_addresses_write(struct index_files *files, unsigned of, const uint64_t *addresses,
			   uint32_t count);

// A block of long lifetimes (index_longs.c), at least one.
void index_longs_write(struct index_files *files, unsigned class, const struct index_long *list,
		       uint32_t count);

// A block of levels (index_levels.c), at least one and at most PACK_GROUP.
void index_levels_write(struct index_files *files, unsigned file, const struct index_level *list,
			uint32_t count);

// How many lifetimes of a file, or of INDEX_OF_NEVER, wait for their block to be full.
uint32_t index_store_waiting(const struct index_store *store, unsigned of);

// Close all files. Accepts { 0 }.
void index_files_close(struct index_files *files);

// All vaults one after the other, and what their files are called. Those that must be there from
// the beginning come first.
enum { INDEX_VAULTS_FIRST = 13, INDEX_VAULTS = 12 + INDEX_LEVELS + INDEX_LONGS };
struct vault *index_files_vault(struct index_files *files, unsigned i, char name[24]);
