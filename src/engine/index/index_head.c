// The file "head" of an index: which trace it belongs to, its shape, cells, marks, and where the
// other files' snapshots are. It is written last and renamed into place, so an index with a head is
// whole. It is read as untrusted: each count is checked against what the files can hold.
//
// Numbers are of 64 bits, lists are their count and then the items as they are in memory. Sites and
// cells, of which there may be millions, are packed (pack.h) 128 at a time: a column of each of
// their members after the other, so processes, threads and heaps, which mostly are all alike, take
// a byte each for 128 sites. A count of a million cells in a file of 1 KB is refused before any
// memory is taken for them.
#include "engine/index/index.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "engine/index/index_bits.h"
#include "engine/index/index_io.h"
#include "engine/index/index_tables.h"
#include "engine/index/pack.h"
#include "engine/space/space.h"
#include "os/file.h"
#include "trace/walk.h"

#include <string.h>

_Static_assert(sizeof(struct index_exit) == 24, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_range) == 16, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_identity) == 32, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_shape) == 48, "is on disk as it is in memory");
_Static_assert(sizeof(struct reader_place) == 40, "is on disk as it is in memory");

enum { VERSION = 16 };

// Process, thread, stack, heap, orphans; site, size.
enum { SITE_COLUMNS = 5, CELL_COLUMNS = 2 };

static const char magic[8] = "TIDEIDX\n";

// The headers of all blocks, with the checksums of what is in them, make a trace that differs by a
// bit another one: nothing else of it need be read.
bool index_identify(struct index_identity *identity, const char *trace_path,
		    const struct reader *reader, uint64_t end, struct err *err)
{
	const struct trace_end *last = reader_end(reader);
	struct store store;
	struct walk walk;
	struct block block;
	uint64_t at;

	*identity = (struct index_identity){ 0 };
	memcpy(identity->recording_id, reader_info(reader)->recording_id, 16);
	if (end == UINT64_MAX)
		identity->duration_ns = last ? last->duration_ns : UINT64_MAX;
	if (!store_open(&store, trace_path, err))
		return err_wrap(err, "cannot read %s", trace_path);
	walk_init(&walk);
	while (walk_next(&walk, &store, &block, &at) && at < end) {
		uint64_t words[] = { block.type, block.stored_size, block.first_event,
				     block.payload_crc };

		if (block.type != BLOCK_EVENTS && block.type != BLOCK_DEFS)
			continue;
		identity->headers_crc = crc32c(identity->headers_crc, words, sizeof words);
		identity->blocks++;
	}
	store_close(&store);
	return true;
}

// ---- writing ----

// A file's size, and a checksum for each page of it (VAULT_PAGE bytes, the last one may be short).
static void put_vault(struct index_out *out, const struct vault *vault)
{
	index_out_put_u64(out, vault->size);
	index_out_put_array(out, vault->sums, vault->sums_count, sizeof *vault->sums);
}

static void put_snapshots(struct index_out *out, const struct index_snapshots *snapshots)
{
	index_out_put_array(out, snapshots->list, snapshots->count, sizeof *snapshots->list);
}

// These, and those of cells, marks and moments below, are also what a build that was stopped keeps
// (index_state.c): so they are by themselves, and are taken by the functions beside them.
void index_head_put_tables(struct index_out *out, const struct index_files *files)
{
	index_out_put(out, files->longs_count, sizeof files->longs_count);
	for (size_t i = 0; i < INDEX_LONGS; i++)
		index_out_put_array(out, files->longs_blocks[i].list, files->longs_blocks[i].count,
				    sizeof *files->longs_blocks[i].list);
	for (size_t i = 0; i < INDEX_LEVELS; i++) {
		const struct index_level_blocks *blocks = &files->levels_blocks[i];

		index_out_put_u64(out, blocks->entries);
		index_out_put_array(out, blocks->list, blocks->count, sizeof *blocks->list);
	}
	index_out_put_array(out, files->blocks, files->blocks_count, sizeof *files->blocks);
	index_out_put_array(out, files->chunks, files->chunks_count, sizeof *files->chunks);
	index_out_put_array(out, files->posts_marks, files->posts_marks_count,
			    sizeof *files->posts_marks);
	put_snapshots(out, &files->cells_snapshots);
	put_snapshots(out, &files->sites_snapshots);
	put_snapshots(out, &files->never_snapshots);
	put_snapshots(out, &files->never_sites_snapshots);
	index_out_put_array(out, files->never_blocks, files->never_blocks_count,
			    sizeof *files->never_blocks);
	for (size_t i = 0; i < INDEX_ADDRESSES; i++)
		index_out_put_array(out, files->address_blocks[i].list,
				    files->address_blocks[i].count,
				    sizeof *files->address_blocks[i].list);
}

static void put_vaults(struct index_out *out, const struct index_files *files)
{
	char name[24];

	for (unsigned i = 0; i < INDEX_VAULTS; i++)
		put_vault(out, index_files_vault((struct index_files *)files, i, name));
}

// A group of sites or cells.
struct group {
	uint64_t columns[SITE_COLUMNS][PACK_GROUP];
	uint32_t count;
};

static void put_group(struct index_out *out, struct group *group, unsigned columns)
{
	uint8_t bytes[SITE_COLUMNS * PACK_GROUP_MAX + PACK_SLACK], *at = bytes;

	for (unsigned i = 0; i < columns; i++)
		at = pack_put_group(at, group->columns[i], group->count);
	index_out_put(out, bytes, (size_t)(at - bytes));
	group->count = 0;
}

// In the order of their numbers from 0, so no number is written.
void index_head_put_cells(struct index_out *out, const struct cells *cells)
{
	struct group group = { .count = 0 };

	index_out_put_u64(out, cells->sites_count);
	for (uint32_t i = 0; i < cells->sites_count; i++) {
		const struct cells_site *site = cells_site(cells, i);
		uint32_t at = group.count++;

		group.columns[0][at] = site->process;
		group.columns[1][at] = site->thread;
		group.columns[2][at] = site->stack;
		group.columns[3][at] = site->heap;
		group.columns[4][at] = site->orphans;
		if (group.count == PACK_GROUP || i + 1 == cells->sites_count)
			put_group(out, &group, SITE_COLUMNS);
	}
	index_out_put_u64(out, cells->cells_count);
	for (uint32_t i = 0; i < cells->cells_count; i++) {
		struct cells_cell cell = cells_cell(cells, i);
		uint32_t at = group.count++;

		group.columns[0][at] = cell.site;
		group.columns[1][at] = cell.size;
		if (group.count == PACK_GROUP || i + 1 == cells->cells_count)
			put_group(out, &group, CELL_COLUMNS);
	}
}

// How many there are, in groups of so many columns: each takes a byte at least.
static uint32_t take_count(struct index_in *in, unsigned columns)
{
	uint64_t count = index_in_take_u64(in);

	in->bad |= count > CELLS_MAX || count / PACK_GROUP * columns > (uint64_t)(in->end - in->at);
	return in->bad ? 0 : (uint32_t)count;
}

// The next of `left`. Unpacking looks at some bytes after a group, which other numbers follow.
static void take_group(struct index_in *in, unsigned columns, uint32_t left, struct group *group)
{
	group->count = left < PACK_GROUP ? left : PACK_GROUP;
	in->bad |= in->end - in->at < PACK_SLACK;
	for (unsigned i = 0; i < columns && !in->bad; i++)
		in->bad = !pack_take_group(&in->at, in->end - PACK_SLACK, group->columns[i],
					   group->count);
	if (in->bad)
		group->count = 0;
}

// Ids are held against the trace.
static bool take_site(const struct reader *reader, const struct group *group, uint32_t at,
		      struct cells_site *site)
{
	*site = (struct cells_site){ .process = (process_id)group->columns[0][at],
				     .thread = (thread_id)group->columns[1][at],
				     .stack = (stack_id)group->columns[2][at],
				     .heap = (heap_id)group->columns[3][at],
				     .orphans = group->columns[4][at] != 0 };
	return site->process < reader_processes_count(reader) &&
	       site->thread < reader_threads_count(reader) &&
	       site->stack < reader_stacks_count(reader);
}

// Number 0 is none in both tables, and nothing of it is checked. A site of a process, thread or
// stack that the trace does not have is damage.
void index_head_take_cells(struct index_in *in, const struct reader *reader, struct cells *cells,
			   bool (*add_site)(struct cells *cells, uint32_t id,
					    const struct cells_site *site),
			   bool (*add_cell)(struct cells *cells, uint32_t id,
					    const struct cells_cell *cell))
{
	uint32_t count = take_count(in, SITE_COLUMNS);
	struct group group;

	for (uint32_t id = 0; id < count && !in->bad;) {
		take_group(in, SITE_COLUMNS, count - id, &group);
		for (uint32_t i = 0; i < group.count && !in->bad; i++, id++) {
			struct cells_site site;

			in->bad = (!take_site(reader, &group, i, &site) && id > 0) ||
				  !add_site(cells, id, &site);
		}
	}
	count = take_count(in, CELL_COLUMNS);
	for (uint32_t id = 0; id < count && !in->bad;) {
		take_group(in, CELL_COLUMNS, count - id, &group);
		for (uint32_t i = 0; i < group.count && !in->bad; i++, id++) {
			uint64_t site = group.columns[0][i];
			struct cells_cell cell = { .size = group.columns[1][i],
						   .site = (uint32_t)site };

			in->bad = site >= cells->sites_count || (id > 0 && site == 0) ||
				  !add_cell(cells, id, &cell);
		}
	}
}

void index_head_put_marks(struct index_out *out, const struct index *index)
{
	index_out_put_u64(out, index->marks_count);
	for (size_t i = 0; i < index->marks_count; i++) {
		const struct window_mark *mark = &index->marks[i];

		index_out_put_u64(out, mark->process);
		index_out_put_u64(out, mark->thread);
		index_out_put_u64(out, mark->time_ns);
		index_out_put_u64(out, mark->edge);
		index_out_put_array(out, mark->name, strlen(mark->name), 1);
	}
}

// It is taken in the same order, below. A change here is another VERSION.
static void put_all(struct index_out *out, const struct index *index)
{
	index_out_put(out, magic, sizeof magic);
	index_out_put_u64(out, VERSION);
	index_out_put(out, &index->identity, sizeof index->identity);
	index_out_put(out, &index->shape, sizeof index->shape);
	index_out_put_u64(out, index->steps_end);
	index_out_put_u64(out, index->duration_ns);
	index_out_put_u64(out, index->calls);
	index_out_put_u64(out, index->orphans);
	index_out_put_u64(out, index->inherited);
	index_out_put_u64(out, index->lost);
	index_out_put(out, &index->peak, sizeof index->peak);
	index_out_put_u64(out, index->peak_edge);
	index_out_put_u64(out, index->never_count);
	index_out_put_array(out, index->exits, index->exits_count, sizeof *index->exits);
	index_out_put_array(out, index->destroys, index->destroys_count, sizeof *index->destroys);
	index_head_put_moments(out, index);
	index_head_put_marks(out, index);
	put_vaults(out, &index->files);
	index_head_put_tables(out, &index->files);
	index_head_put_cells(out, &index->cells);
	index_out_put_array(out, index->vm.lives, index->vm.lives_count, sizeof *index->vm.lives);
	index_out_put_array(out, index->vm.cells, index->vm.cells_count, sizeof *index->vm.cells);
}

bool index_head_write(const struct index *index, struct err *err)
{
	struct index_out *out = index_out_new(index->directory, "head");

	put_all(out, index);
	return index_out_end(out, err);
}

// ---- reading ----

// An empty one stays closed. A file of 40,000 bytes has three checksums, of 16 KiB each but the
// last: with fewer some bytes would not be checked, and more would be of nothing.
static bool take_vault(struct index_in *in, struct vault *vault, int directory, const char *name,
		       struct err *err)
{
	uint64_t size = index_in_take_u64(in);
	size_t count;
	uint32_t *sums = index_in_take_array(in, &count, sizeof *sums);

	*vault = (struct vault){ .fd = -1 };
	if (size > (uint64_t)count * VAULT_PAGE ||
	    (count && size <= (count - 1) * (uint64_t)VAULT_PAGE))
		in->bad = true;
	if (in->bad || size == 0) {
		mem_free(sums);
		return true;
	}
	return vault_open(vault, directory, name, size, sums, err);
}

// Where each is in its file, and at which step. Whether it is there is seen when it is read.
static void take_snapshots(struct index_in *in, struct index_snapshots *snapshots)
{
	snapshots->list = index_in_take_array(in, &snapshots->count, sizeof *snapshots->list);
	snapshots->capacity = snapshots->count;
}

void index_head_take_tables(struct index_in *in, struct index_files *files)
{
	index_in_take(in, files->longs_count, sizeof files->longs_count);
	for (size_t i = 0; i < INDEX_LONGS; i++) {
		struct index_long_blocks *blocks = &files->longs_blocks[i];

		blocks->list = index_in_take_array(in, &blocks->count, sizeof *blocks->list);
		blocks->capacity = blocks->count;
	}
	for (size_t i = 0; i < INDEX_LEVELS; i++) {
		struct index_level_blocks *blocks = &files->levels_blocks[i];

		blocks->entries = index_in_take_u64(in);
		blocks->list = index_in_take_array(in, &blocks->count, sizeof *blocks->list);
		blocks->capacity = blocks->count;
	}
	files->blocks = index_in_take_array(in, &files->blocks_count, sizeof *files->blocks);
	files->blocks_capacity = files->blocks_count;
	files->chunks = index_in_take_array(in, &files->chunks_count, sizeof *files->chunks);
	files->chunks_capacity = files->chunks_count;
	files->posts_marks =
		index_in_take_array(in, &files->posts_marks_count, sizeof *files->posts_marks);
	files->posts_marks_capacity = files->posts_marks_count;
	take_snapshots(in, &files->cells_snapshots);
	take_snapshots(in, &files->sites_snapshots);
	take_snapshots(in, &files->never_snapshots);
	take_snapshots(in, &files->never_sites_snapshots);
	files->never_blocks =
		index_in_take_array(in, &files->never_blocks_count, sizeof *files->never_blocks);
	files->never_blocks_capacity = files->never_blocks_count;
	for (size_t i = 0; i < INDEX_ADDRESSES; i++) {
		struct index_address_blocks *blocks = &files->address_blocks[i];

		blocks->list = index_in_take_array(in, &blocks->count, sizeof *blocks->list);
		blocks->capacity = blocks->count;
	}
}

void index_head_put_moments(struct index_out *out, const struct index *index)
{
	index_out_put_array(out, index->undone, index->undone_count, sizeof *index->undone);
	index_out_put_array(out, index->places.list, index->places.count,
			    sizeof *index->places.list);
	index_out_put_u64(out, index->odd);
	index_out_put_u64(out, index->damage.at);
	index_out_put_u64(out, index->damage.missed);
	index_out_put(out, index->damage.why, sizeof index->damage.why);
}

// The reason is printed: so it is plain text that ends.
static void take_damage(struct index_in *in, struct reader_damage *damage)
{
	size_t length;

	damage->at = index_in_take_u64(in);
	damage->missed = index_in_take_u64(in);
	index_in_take(in, damage->why, sizeof damage->why);
	length = strnlen(damage->why, sizeof damage->why);
	in->bad |= length == sizeof damage->why;
	for (size_t i = 0; i < length; i++)
		in->bad |= damage->why[i] < ' ' || damage->why[i] > '~';
	if (in->bad)
		damage->why[0] = '\0';
}

void index_head_take_moments(struct index_in *in, struct index *index)
{
	index->undone = index_in_take_array(in, &index->undone_count, sizeof *index->undone);
	index->places.list =
		index_in_take_array(in, &index->places.count, sizeof *index->places.list);
	index->places.capacity = index->places.count;
	index->odd = index_in_take_u64(in) != 0;
	take_damage(in, &index->damage);
}

// In the order of numbers, as put_vaults has them. `name` is the file's, and what opens it.
static bool take_vaults(struct index_in *in, struct index_files *files, int directory,
			struct err *err)
{
	char name[24];

	for (unsigned i = 0; i < INDEX_VAULTS; i++) {
		struct vault *vault = index_files_vault(files, i, name);

		if (!take_vault(in, vault, directory, name, err))
			return false;
	}
	return true;
}

static bool load_site(struct cells *cells, uint32_t id, const struct cells_site *site)
{
	cells_load_site(cells, id, site);
	return true;
}

static bool load_cell(struct cells *cells, uint32_t id, const struct cells_cell *cell)
{
	cells_load_cell(cells, id, cell);
	return true;
}

// A mark takes at least five numbers of 8 bytes: the fifth is the length of its name. The name has
// its NUL from mem_alloc, which index_in_take_array asks for one byte more. Windows are made of
// their edges, which rise.
void index_head_take_marks(struct index_in *in, struct index *index)
{
	index->marks_count = index_in_take_count(in, 5 * sizeof(uint64_t));
	index->marks = mem_alloc(index->marks_count + 1, sizeof *index->marks);
	for (size_t i = 0; i < index->marks_count; i++) {
		struct window_mark *mark = &index->marks[i];
		size_t length;

		mark->process = (process_id)index_in_take_u64(in);
		mark->thread = (thread_id)index_in_take_u64(in);
		mark->time_ns = index_in_take_u64(in);
		mark->edge = index_in_take_u64(in);
		mark->name = index_in_take_array(in, &length, 1);
		in->bad |= i > 0 && mark->edge < mark[-1].edge;
	}
}

// Lifetimes of virtual memory are few, so all are here, each with the number of its cell in the
// list after it.
static void take_vm(struct index_in *in, struct plain *vm, const struct reader *reader)
{
	vm->lives = index_in_take_array(in, &vm->lives_count, sizeof *vm->lives);
	vm->cells = index_in_take_array(in, &vm->cells_count, sizeof *vm->cells);
	for (size_t i = 0; i < vm->lives_count; i++)
		if (vm->lives[i].cell >= vm->cells_count ||
		    vm->lives[i].end_kind > WINDOW_END_EXEC ||
		    vm->lives[i].exit_kind > WINDOW_END_EXEC)
			in->bad = true;
	for (size_t i = 0; i < vm->cells_count; i++)
		if (vm->cells[i].process >= reader_processes_count(reader) ||
		    vm->cells[i].stack >= reader_stacks_count(reader) ||
		    vm->cells[i].layer != WINDOW_VM || vm->cells[i].owner >= SPACE_OWNERS_COUNT)
			in->bad = true;
}

// How processes ended.
static void take_exits(struct index_in *in, struct index *index)
{
	index->exits = index_in_take_array(in, &index->exits_count, sizeof *index->exits);
	for (size_t i = 0; i < index->exits_count; i++)
		in->bad |= index->exits[i].kind > WINDOW_END_EXEC;
}

// Whether what the head says of itself can be: everything that a later shift, index or loop relies
// on. The shape's numbers are exponents: an unchecked block_log2 of 70 would shift by more than a
// word has. Counts of blocks must be what the counts of their records come to: 10,000 long
// lifetimes with 4,096 in a block are 3 blocks, neither 2 nor 4.
static bool is_sane(const struct index *index)
{
	const struct index_shape *shape = &index->shape;
	uint64_t steps = UINT64_C(1) << (shape->block_log2 & 31);

	if (shape->block_log2 < 4 || shape->block_log2 > 20 || shape->long_log2 < 1 ||
	    shape->long_log2 > 30 || shape->level_log2 < 1 ||
	    shape->level_log2 > shape->block_log2 || shape->chunk_log2 < shape->block_log2 ||
	    shape->chunk_log2 > 28 || shape->skip_log2 > 20 || shape->sparse_log2 > 20 ||
	    shape->stretch_log2 > shape->block_log2 ||
	    shape->chunk_log2 - shape->stretch_log2 > INDEX_STRETCHES_LOG2)
		return false;
	if (index->steps_end == 0 ||
	    index->files.blocks_count != (index->steps_end + steps - 1) / steps)
		return false;
	for (size_t i = 0; i < INDEX_LONGS; i++) {
		uint64_t blocks = index->files.longs_blocks[i].count;
		uint64_t count = index->files.longs_count[i];

		if (count > index->steps_end ||
		    blocks != (count + (1u << shape->sparse_log2) - 1) >> shape->sparse_log2 ||
		    index->files.address_blocks[i].count != blocks)
			return false;
	}
	for (size_t i = 0; i < INDEX_LEVELS; i++) {
		const struct index_level_blocks *blocks = &index->files.levels_blocks[i];

		if (blocks->count !=
		    blocks->entries / PACK_GROUP + (blocks->entries % PACK_GROUP > 0))
			return false;
	}
	for (size_t i = 0; i < index->files.chunks_count; i++) {
		const struct index_chunk *chunk = &index->files.chunks[i];
		uint64_t marks =
			(chunk->sites_count + (uint64_t)INDEX_POSTS_MARK - 1) / INDEX_POSTS_MARK;

		if (chunk->first_mark + marks > index->files.posts_marks_count)
			return false;
	}
	steps = UINT64_C(1) << shape->sparse_log2;
	return index->files.never_blocks_count ==
		       index->never_count / steps + (index->never_count % steps > 0) &&
	       index->files.address_blocks[INDEX_OF_NEVER].count == index->files.never_blocks_count;
}

// Whose it is comes first.
static bool take_identity(struct index_in *in, const struct index_identity *identity,
			  struct err *err)
{
	char found[sizeof magic];
	struct index_identity whose;

	index_in_take(in, found, sizeof found);
	if (memcmp(found, magic, sizeof magic) != 0 || index_in_take_u64(in) != VERSION)
		return err_set(err, ERR_FORMAT, "the index is of another version");
	index_in_take(in, &whose, sizeof whose);
	return memcmp(&whose, identity, sizeof whose) == 0 ||
	       err_set(err, ERR_FORMAT, "the index belongs to another trace");
}

// In the order of put_all. What does not depend on the reader comes first, so that an index of
// another trace is refused before anything of it is taken.
static bool read_head(struct index *index, struct index_in *in,
		      const struct index_identity *identity, const struct reader *reader,
		      struct err *err)
{
	if (!take_identity(in, identity, err))
		return false;
	index->identity = *identity;
	index_in_take(in, &index->shape, sizeof index->shape);
	index->steps_end = index_in_take_u64(in);
	index->duration_ns = index_in_take_u64(in);
	index->calls = index_in_take_u64(in);
	index->orphans = index_in_take_u64(in);
	index->inherited = index_in_take_u64(in);
	index->lost = index_in_take_u64(in);
	index_in_take(in, &index->peak, sizeof index->peak);
	index->peak_edge = index_in_take_u64(in);
	index->never_count = index_in_take_u64(in);
	take_exits(in, index);
	index->destroys = index_in_take_array(in, &index->destroys_count, sizeof *index->destroys);
	index_head_take_moments(in, index);
	index_head_take_marks(in, index);
	if (!take_vaults(in, &index->files, index->directory, err))
		return false;
	index_head_take_tables(in, &index->files);
	cells_init(&index->cells, true);
	cells_drop(&index->cells);
	index_head_take_cells(in, reader, &index->cells, load_site, load_cell);
	if (!in->bad)
		cells_loaded(&index->cells);
	take_vm(in, &index->vm, reader);
	index->vm.duration_ns = index->duration_ns;
	if (in->bad || index->exits_count > reader_processes_count(reader) || !is_sane(index))
		return err_set(err, ERR_FORMAT, "the index is damaged");
	return true;
}

// The head is mapped and read, the other files are opened with it, and read where something of them
// is asked for. After a failure too the caller ends it by index_close.
bool index_open(struct index *index, const char *path, const struct index_identity *identity,
		const struct reader *reader, struct err *err)
{
	struct index_in in;
	bool ok;

	*index = (struct index){ .directory = -1, .tables = index_tables_new() };
	index->directory = file_open_folder(path);
	if (index->directory < 0)
		return err_set(err, ERR_FORMAT, "there is no index");
	if (!index_in_open(&in, index->directory, "head", err))
		return false;
	index->head_bytes = in.view.size;
	ok = read_head(index, &in, identity, reader, err);
	index_in_close(&in);
	return ok;
}

bool index_is_of(const char *path, const struct index_identity *identity)
{
	int directory = file_open_folder(path);
	struct err ignored = { 0 };
	struct index_in in;
	bool is = directory >= 0 && index_in_open(&in, directory, "head", &ignored);

	if (is) {
		is = take_identity(&in, identity, &ignored);
		index_in_close(&in);
	}
	file_close(directory);
	return is;
}

// Names of marks are the index's own; others only borrow them, so they are const.
void index_close(struct index *index)
{
	file_close(index->directory);
	index_files_close(&index->files);
	cells_fini(&index->cells);
	index_tables_free(index->tables);
	plain_fini(&index->vm);
	for (size_t i = 0; i < index->marks_count; i++)
		mem_free((char *)(uintptr_t)index->marks[i].name);
	MEM_FREE(index->marks, index->exits, index->destroys, index->undone, index->places.list);
	*index = (struct index){ .directory = -1 };
}

uint64_t index_bytes(const struct index *index)
{
	uint64_t bytes = index->head_bytes;
	char name[24];

	for (unsigned i = 0; i < INDEX_VAULTS; i++)
		bytes += index_files_vault((struct index_files *)&index->files, i, name)->size;
	return bytes;
}

void index_forget(struct index *index)
{
	if (index->directory >= 0)
		file_remove_in(index->directory, "head");
}
