#include "engine/index.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "os/file.h"
#include "trace/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1, HEAD_MAX = 1 << 30 };

static const char magic[8] = "TIDEIDX\n";

bool index_identify(struct index_identity *identity, const char *trace_path,
		    const struct reader *reader, struct err *err)
{
	struct store store;
	struct walk walk;
	struct block block;
	uint64_t at;

	*identity = (struct index_identity){ .trace_bytes = reader_bytes(reader) };
	memcpy(identity->recording_id, reader_info(reader)->recording_id, 16);
	if (!store_open(&store, trace_path, err))
		return err_wrap(err, "cannot read %s", trace_path);
	walk_init(&walk);
	while (walk_next(&walk, &store, &block, &at)) {
		uint64_t words[] = { at, block.type, block.stored_size, block.first_event,
				     block.payload_crc };

		identity->headers_crc = crc32c(identity->headers_crc, words, sizeof words);
		identity->blocks++;
	}
	store_close(&store);
	return true;
}

// ---- writing ----

// What is written of the head: it may be large, so it is not kept.
struct out {
	int fd;
	uint32_t crc;
	uint8_t buffer[1 << 16];
	size_t filled;
	bool ok;
	struct err *err;
};

static void flush(struct out *out)
{
	out->crc = crc32c(out->crc, out->buffer, out->filled);
	out->ok = out->ok && file_write_all(out->fd, out->buffer, out->filled, out->err);
	out->filled = 0;
}

static void put(struct out *out, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	while (size > 0) {
		size_t part = sizeof out->buffer - out->filled;

		part = part < size ? part : size;
		memcpy(out->buffer + out->filled, from, part);
		out->filled += part;
		from += part;
		size -= part;
		if (out->filled == sizeof out->buffer)
			flush(out);
	}
}

static void put_u64(struct out *out, uint64_t value)
{
	put(out, &value, sizeof value);
}

static void put_array(struct out *out, const void *items, size_t count, size_t size)
{
	put_u64(out, count);
	if (count)
		put(out, items, count * size);
}

static void put_vault(struct out *out, const struct vault *vault)
{
	put_u64(out, vault->size);
	put_array(out, vault->sums, vault->sums_count, sizeof *vault->sums);
}

static void put_snapshots(struct out *out, const struct index_snapshots *snapshots)
{
	put_array(out, snapshots->list, snapshots->count, sizeof *snapshots->list);
}

static void put_files(struct out *out, const struct index_files *files)
{
	const struct vault *single[] = { &files->events, &files->times,      &files->cells,
					 &files->sites,  &files->never,      &files->never_cells,
					 &files->posts,  &files->posts_sites };

	for (size_t i = 0; i < sizeof single / sizeof *single; i++)
		put_vault(out, single[i]);
	for (size_t i = 0; i < INDEX_LONGS; i++) {
		put_vault(out, &files->longs[i]);
		put_array(out, files->sparse[i], files->sparse_count[i], sizeof **files->sparse);
	}
	for (size_t i = 0; i < INDEX_LEVELS; i++)
		put_vault(out, &files->levels[i]);
	put_array(out, files->blocks, files->blocks_count, sizeof *files->blocks);
	put_array(out, files->chunks, files->chunks_count, sizeof *files->chunks);
	put_array(out, files->posts_marks, files->posts_marks_count, sizeof *files->posts_marks);
	put_snapshots(out, &files->cells_snapshots);
	put_snapshots(out, &files->sites_snapshots);
	put_snapshots(out, &files->never_snapshots);
}

static void put_cells(struct out *out, const struct cells *cells)
{
	put_u64(out, cells->sites_count);
	for (uint32_t i = 0; i < cells->sites_count; i++)
		put(out, cells_site(cells, i), sizeof(struct cells_site));
	put_u64(out, cells->cells_count);
	for (uint32_t i = 0; i < cells->cells_count; i++)
		put(out, cells_cell(cells, i), sizeof(struct cells_cell));
}

static void put_marks(struct out *out, const struct index *index)
{
	put_u64(out, index->marks_count);
	for (size_t i = 0; i < index->marks_count; i++) {
		const struct window_mark *mark = &index->marks[i];

		put_u64(out, mark->process);
		put_u64(out, mark->thread);
		put_u64(out, mark->time_ns);
		put_u64(out, mark->edge);
		put_array(out, mark->name, strlen(mark->name), 1);
	}
}

static void put_all(struct out *out, const struct index *index)
{
	put(out, magic, sizeof magic);
	put_u64(out, VERSION);
	put(out, &index->identity, sizeof index->identity);
	put(out, &index->shape, sizeof index->shape);
	put_u64(out, index->steps_end);
	put_u64(out, index->duration_ns);
	put_u64(out, index->orphans);
	put_u64(out, index->inherited);
	put_u64(out, index->lost);
	put(out, &index->peak, sizeof index->peak);
	put_u64(out, index->peak_edge);
	put_u64(out, index->never_count);
	put_array(out, index->exits, index->exits_count, sizeof *index->exits);
	put_array(out, index->destroys, index->destroys_count, sizeof *index->destroys);
	put_marks(out, index);
	put_files(out, &index->files);
	put_cells(out, &index->cells);
	put_array(out, index->vm.lives, index->vm.lives_count, sizeof *index->vm.lives);
	put_array(out, index->vm.cells, index->vm.cells_count, sizeof *index->vm.cells);
}

bool index_head_write(const struct index *index, struct err *err)
{
	struct out *out = mem_alloc(1, sizeof *out);
	uint32_t crc;
	bool ok;

	out->fd = openat(index->directory, "head.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			 0666);
	out->ok = out->fd >= 0 || err_errno(err, errno, "cannot create head");
	out->err = err;
	if (out->ok) {
		put_all(out, index);
		flush(out);
		crc = out->crc;
		put(out, &crc, sizeof crc);
		flush(out);
	}
	if (out->fd >= 0 && close(out->fd) < 0 && out->ok)
		out->ok = err_errno(err, errno, "cannot write head");
	if (out->ok && renameat(index->directory, "head.new", index->directory, "head") < 0)
		out->ok = err_errno(err, errno, "cannot rename head");
	ok = out->ok;
	mem_free(out);
	return ok;
}

// ---- reading ----

// What is left of the head. A take that does not fit makes it bad, and gives zeros.
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static void take(struct cursor *cursor, void *out, size_t size)
{
	if ((size_t)(cursor->end - cursor->at) < size)
		cursor->bad = true;
	if (cursor->bad) {
		memset(out, 0, size);
		return;
	}
	memcpy(out, cursor->at, size);
	cursor->at += size;
}

static uint64_t take_u64(struct cursor *cursor)
{
	uint64_t value;

	take(cursor, &value, sizeof value);
	return value;
}

// How many items of a size follow; 0 if there cannot be so many.
static size_t take_count(struct cursor *cursor, size_t size)
{
	uint64_t count = take_u64(cursor);

	if (count > (size_t)(cursor->end - cursor->at) / size)
		cursor->bad = true;
	return cursor->bad ? 0 : (size_t)count;
}

static void *take_array(struct cursor *cursor, size_t *count, size_t size)
{
	void *items;

	*count = take_count(cursor, size);
	items = mem_alloc(*count + 1, size);
	if (*count)
		take(cursor, items, *count * size);
	return items;
}

// An empty one stays closed.
static bool take_vault(struct cursor *cursor, struct vault *vault, int directory, const char *name,
		       struct err *err)
{
	uint64_t size = take_u64(cursor);
	size_t count;
	uint32_t *sums = take_array(cursor, &count, sizeof *sums);

	*vault = (struct vault){ .fd = -1 };
	if (size > (uint64_t)count * VAULT_PAGE ||
	    (count && size <= (count - 1) * (uint64_t)VAULT_PAGE))
		cursor->bad = true;
	if (cursor->bad || size == 0) {
		mem_free(sums);
		return true;
	}
	return vault_open(vault, directory, name, size, sums, err);
}

static void take_snapshots(struct cursor *cursor, struct index_snapshots *snapshots)
{
	snapshots->list = take_array(cursor, &snapshots->count, sizeof *snapshots->list);
}

static bool take_files(struct cursor *cursor, struct index_files *files, int directory,
		       struct err *err)
{
	struct {
		struct vault *vault;
		const char *name;
	} single[] = {
		{ &files->events, "events" }, { &files->times, "times" },
		{ &files->cells, "cells" },   { &files->sites, "sites" },
		{ &files->never, "never" },   { &files->never_cells, "never-cells" },
		{ &files->posts, "posts" },   { &files->posts_sites, "posts-sites" },
	};
	char name[24];
	bool ok = true;

	for (size_t i = 0; i < sizeof single / sizeof *single && ok; i++)
		ok = take_vault(cursor, single[i].vault, directory, single[i].name, err);
	for (unsigned i = 0; i < INDEX_LONGS && ok; i++) {
		snprintf(name, sizeof name, "long%u", i);
		ok = take_vault(cursor, &files->longs[i], directory, name, err);
		files->sparse[i] =
			take_array(cursor, &files->sparse_count[i], sizeof **files->sparse);
	}
	for (unsigned i = 0; i < INDEX_LEVELS && ok; i++) {
		snprintf(name, sizeof name, "levels%u", i);
		ok = take_vault(cursor, &files->levels[i], directory, name, err);
	}
	if (!ok)
		return false;
	files->blocks = take_array(cursor, &files->blocks_count, sizeof *files->blocks);
	files->chunks = take_array(cursor, &files->chunks_count, sizeof *files->chunks);
	files->posts_marks =
		take_array(cursor, &files->posts_marks_count, sizeof *files->posts_marks);
	take_snapshots(cursor, &files->cells_snapshots);
	take_snapshots(cursor, &files->sites_snapshots);
	take_snapshots(cursor, &files->never_snapshots);
	return true;
}

static void take_cells(struct cursor *cursor, struct cells *cells, const struct reader *reader)
{
	size_t sites = take_count(cursor, sizeof(struct cells_site)), count;

	cells_init(cells);
	cells_drop(cells);
	for (uint32_t i = 0; i < sites && i < CELLS_MAX; i++) {
		struct cells_site site;

		take(cursor, &site, sizeof site);
		cells_load_site(cells, i, &site);
		if (i > 0 && (site.process >= reader_processes_count(reader) ||
			      site.thread >= reader_threads_count(reader) ||
			      site.stack >= reader_stacks_count(reader)))
			cursor->bad = true;
	}
	count = take_count(cursor, sizeof(struct cells_cell));
	for (uint32_t i = 0; i < count && i < CELLS_MAX; i++) {
		struct cells_cell cell;

		take(cursor, &cell, sizeof cell);
		cells_load_cell(cells, i, &cell);
		if (cell.site >= cells->sites_count || (i > 0 && cell.site == 0))
			cursor->bad = true;
	}
}

static void take_marks(struct cursor *cursor, struct index *index)
{
	index->marks_count = take_count(cursor, 5 * sizeof(uint64_t));
	index->marks = mem_alloc(index->marks_count + 1, sizeof *index->marks);
	for (size_t i = 0; i < index->marks_count; i++) {
		struct window_mark *mark = &index->marks[i];
		size_t length;

		mark->process = (process_id)take_u64(cursor);
		mark->thread = (thread_id)take_u64(cursor);
		mark->time_ns = take_u64(cursor);
		mark->edge = take_u64(cursor);
		mark->name = take_array(cursor, &length, 1);
	}
}

static void take_vm(struct cursor *cursor, struct plain *vm, const struct reader *reader)
{
	vm->lives = take_array(cursor, &vm->lives_count, sizeof *vm->lives);
	vm->cells = take_array(cursor, &vm->cells_count, sizeof *vm->cells);
	for (size_t i = 0; i < vm->lives_count; i++)
		if (vm->lives[i].cell >= vm->cells_count)
			cursor->bad = true;
	for (size_t i = 0; i < vm->cells_count; i++)
		if (vm->cells[i].process >= reader_processes_count(reader) ||
		    vm->cells[i].stack >= reader_stacks_count(reader) ||
		    vm->cells[i].layer != WINDOW_VM)
			cursor->bad = true;
}

// Whether what the head says of itself can be.
static bool is_sane(const struct index *index)
{
	const struct index_shape *shape = &index->shape;
	uint64_t steps = UINT64_C(1) << (shape->block_log2 & 31);

	if (shape->block_log2 < 4 || shape->block_log2 > 20 || shape->long_log2 < 1 ||
	    shape->long_log2 > 30 || shape->level_log2 < 1 ||
	    shape->level_log2 > shape->block_log2 || shape->chunk_log2 < shape->block_log2 ||
	    shape->chunk_log2 > 28 || shape->skip_log2 > 20 || shape->sparse_log2 > 24)
		return false;
	if (index->steps_end == 0 ||
	    index->files.blocks_count != (index->steps_end + steps - 1) / steps)
		return false;
	for (size_t i = 0; i < INDEX_LONGS; i++) {
		uint64_t records = index->files.longs[i].size / sizeof(struct index_long);

		if (index->files.sparse_count[i] !=
		    (records + (UINT64_C(1) << shape->sparse_log2) - 1) >> shape->sparse_log2)
			return false;
	}
	for (size_t i = 0; i < index->files.chunks_count; i++) {
		const struct index_chunk *chunk = &index->files.chunks[i];
		uint64_t marks =
			(chunk->sites_count + (uint64_t)INDEX_POSTS_MARK - 1) / INDEX_POSTS_MARK;

		if (chunk->first_mark + marks > index->files.posts_marks_count)
			return false;
	}
	return index->files.never.size == index->never_count * sizeof(uint64_t);
}

static bool read_head(struct index *index, struct cursor *cursor,
		      const struct index_identity *identity, const struct reader *reader,
		      struct err *err)
{
	char found[sizeof magic];

	take(cursor, found, sizeof found);
	if (memcmp(found, magic, sizeof magic) != 0 || take_u64(cursor) != VERSION)
		return err_set(err, ERR_FORMAT, "the index is of another version");
	take(cursor, &index->identity, sizeof index->identity);
	if (memcmp(&index->identity, identity, sizeof *identity) != 0)
		return err_set(err, ERR_FORMAT, "the index belongs to another trace");
	take(cursor, &index->shape, sizeof index->shape);
	index->steps_end = take_u64(cursor);
	index->duration_ns = take_u64(cursor);
	index->orphans = take_u64(cursor);
	index->inherited = take_u64(cursor);
	index->lost = take_u64(cursor);
	take(cursor, &index->peak, sizeof index->peak);
	index->peak_edge = take_u64(cursor);
	index->never_count = take_u64(cursor);
	index->exits = take_array(cursor, &index->exits_count, sizeof *index->exits);
	index->destroys = take_array(cursor, &index->destroys_count, sizeof *index->destroys);
	take_marks(cursor, index);
	if (!take_files(cursor, &index->files, index->directory, err))
		return false;
	take_cells(cursor, &index->cells, reader);
	take_vm(cursor, &index->vm, reader);
	index->vm.duration_ns = index->duration_ns;
	if (cursor->bad || index->exits_count > reader_processes_count(reader) || !is_sane(index))
		return err_set(err, ERR_FORMAT, "the index is damaged");
	return true;
}

bool index_open(struct index *index, const char *path, const struct index_identity *identity,
		const struct reader *reader, struct err *err)
{
	struct file_view view = { 0 };
	struct cursor cursor;
	uint32_t crc = 0;
	int fd;
	bool ok;

	*index = (struct index){ .directory = -1 };
	index->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (index->directory < 0)
		return err_set(err, ERR_FORMAT, "there is no index");
	fd = openat(index->directory, "head", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_FORMAT, "the index is not finished");
	ok = file_view_fd(&view, fd, err);
	close(fd);
	if (!ok)
		return false;
	if (view.size < sizeof crc || view.size > HEAD_MAX) {
		file_view_close(&view);
		return err_set(err, ERR_FORMAT, "the index is damaged");
	}
	memcpy(&crc, view.bytes + view.size - sizeof crc, sizeof crc);
	cursor = (struct cursor){ view.bytes, view.bytes + view.size - sizeof crc, false };
	ok = crc == crc32c(0, view.bytes, view.size - sizeof crc)
		     ? read_head(index, &cursor, identity, reader, err)
		     : err_set(err, ERR_FORMAT, "the index is damaged");
	index->head_bytes = view.size;
	file_view_close(&view);
	return ok;
}

void index_close(struct index *index)
{
	if (index->directory >= 0)
		close(index->directory);
	index_files_close(&index->files);
	cells_fini(&index->cells);
	plain_fini(&index->vm);
	for (size_t i = 0; i < index->marks_count; i++)
		mem_free((char *)(uintptr_t)index->marks[i].name);
	mem_free(index->marks);
	mem_free(index->exits);
	mem_free(index->destroys);
	*index = (struct index){ .directory = -1 };
}

uint64_t index_bytes(const struct index *index)
{
	const struct index_files *files = &index->files;
	uint64_t bytes = index->head_bytes + files->events.size + files->times.size +
			 files->cells.size + files->sites.size + files->never.size +
			 files->never_cells.size + files->posts.size + files->posts_sites.size;

	for (unsigned i = 0; i < INDEX_LONGS; i++)
		bytes += files->longs[i].size;
	for (unsigned i = 0; i < INDEX_LEVELS; i++)
		bytes += files->levels[i].size;
	return bytes;
}

void index_forget(struct index *index)
{
	if (index->directory >= 0)
		unlinkat(index->directory, "head", 0);
}
