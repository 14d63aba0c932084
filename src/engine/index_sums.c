#include "base/mem.h"
#include "engine/alive.h"
#include "engine/index_read.h"

#include <string.h>

// ---- counts at an edge ----

// A snapshot's bytes, a piece at a time. A key's bytes are always whole in it, and 48 may be read.
struct piece {
	struct vault *vault;
	uint64_t at, end; // in the vault, of what is not loaded
	uint8_t *bytes;
	const uint8_t *here, *stop;
};

enum { PIECE = 1 << 18, KEY_BYTES_MAX = 48 };

static bool refill(struct piece *piece, struct err *err)
{
	size_t left = (size_t)(piece->stop - piece->here), more;

	if (left >= KEY_BYTES_MAX || piece->at == piece->end)
		return true;
	memmove(piece->bytes, piece->here, left);
	more = piece->end - piece->at < PIECE ? (size_t)(piece->end - piece->at) : PIECE;
	if (!vault_read(piece->vault, piece->at, piece->bytes + left, more, err))
		return false;
	piece->at += more;
	piece->here = piece->bytes;
	piece->stop = piece->bytes + left + more;
	return true;
}

static struct piece begin_piece(struct vault *vault, const struct index_snapshot *snapshot)
{
	struct piece piece = { .vault = vault,
			       .at = snapshot->at,
			       .end = snapshot->at + snapshot->size };

	piece.bytes = mem_alloc(PIECE + 2 * KEY_BYTES_MAX, 1);
	piece.here = piece.stop = piece.bytes;
	return piece;
}

// The last snapshot that is not later than an edge; NULL: none.
static const struct index_snapshot *last_before(const struct index_snapshots *snapshots,
						uint64_t edge)
{
	size_t low = 0, high = snapshots->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (snapshots->list[middle].step <= edge)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &snapshots->list[low - 1] : NULL;
}

// The snapshot nearest to an edge; NULL: the beginning of all, where all counts are 0.
static const struct index_snapshot *nearest(const struct index_snapshots *snapshots, uint64_t edge)
{
	const struct index_snapshot *before = last_before(snapshots, edge);
	const struct index_snapshot *after = before ? before + 1 : snapshots->list;

	if (after == snapshots->list + snapshots->count)
		after = NULL;
	if (after && after->step - edge < edge - (before ? before->step : 0))
		return after;
	return before;
}

static bool damaged(struct err *err, const char *what)
{
	return err->kind != ERR_NONE ? false
				     : err_set(err, ERR_FORMAT, "the index is damaged: %s", what);
}

// Into `counts`, or how many began added to `begun`.
static bool load_counts(struct vault *vault, const struct index_snapshot *snapshot,
			uint32_t keys_max, struct index_count *counts, uint32_t *begun,
			struct err *err)
{
	struct piece piece = begin_piece(vault, snapshot);
	bool ok = snapshot->keys <= keys_max;

	for (uint32_t id = 1; id < snapshot->keys && ok; id++) {
		unsigned a, b;

		ok = refill(&piece, err);
		if (!ok || piece.here >= piece.stop) {
			ok = false;
			break;
		}
		a = *piece.here & 15;
		b = *piece.here >> 4;
		if (a > 4 || b > 4) {
			ok = false;
			break;
		}
		if (begun)
			begun[id] += (uint32_t)bits_take(piece.here + 1, a);
		else
			counts[id] = (struct index_count){
				(uint32_t)bits_take(piece.here + 1, a),
				(uint32_t)bits_take(piece.here + 1 + a, b),
			};
		piece.here += 1 + a + b;
	}
	ok = ok && piece.here <= piece.stop;
	mem_free(piece.bytes);
	return ok || damaged(err, "a snapshot");
}

// The sums of one site. Returns how many bytes they have; 0: none can be so.
static unsigned take_sums(const uint8_t *here, struct bits_sums *sums)
{
	unsigned widths = here[0] | (unsigned)here[1] << 8, at = 2;
	uint64_t values[4];

	for (unsigned i = 0; i < 4; i++) {
		unsigned bytes = widths >> 4 * i & 15;

		if (bytes > 8)
			return 0;
		values[i] = bits_take(here + at, bytes);
		at += bytes;
	}
	*sums = (struct bits_sums){ values[0], values[1], values[2], values[3] };
	return at;
}

// Into `sums`, or what began added to `begun`.
static bool load_sums(struct vault *vault, const struct index_snapshot *snapshot, uint32_t keys_max,
		      struct bits_sums *sums, struct heap_amount *begun, struct err *err)
{
	struct piece piece = begin_piece(vault, snapshot);
	bool ok = snapshot->keys <= keys_max;

	for (uint32_t id = 1; id < snapshot->keys && ok; id++) {
		struct bits_sums one = { 0 };
		unsigned bytes = 0;

		if (refill(&piece, err) && piece.here + 1 < piece.stop)
			bytes = take_sums(piece.here, &one);
		ok = bytes > 0;
		if (begun) {
			begun[id].count += one.begun;
			begun[id].bytes += one.begun_bytes;
		} else {
			sums[id] = one;
		}
		piece.here += bytes;
	}
	ok = ok && piece.here <= piece.stop;
	mem_free(piece.bytes);
	return ok || damaged(err, "a snapshot");
}

bool index_site_sums(struct index *index, uint32_t site, uint64_t edge, struct bits_sums *sums,
		     uint64_t *step, struct err *err)
{
	enum { BYTES_MAX = BITS_MARK * 34 };
	const struct index_snapshot *snapshot = last_before(&index->files.sites_snapshots, edge);
	uint8_t *bytes, *at;
	uint32_t mark = 0, id = site >= BITS_MARK ? site / BITS_MARK * BITS_MARK : 1;
	size_t size;
	bool ok;

	*sums = (struct bits_sums){ 0 };
	*step = snapshot ? snapshot->step : 0;
	if (!snapshot || site >= snapshot->keys)
		return true;
	if (site >= BITS_MARK &&
	    !vault_read(&index->files.sites, snapshot->at + snapshot->size + site / BITS_MARK * 4,
			&mark, sizeof mark, err))
		return false;
	if (mark > snapshot->size)
		return damaged(err, "a snapshot");
	size = snapshot->size - mark < BYTES_MAX ? (size_t)(snapshot->size - mark) : BYTES_MAX;
	bytes = at = mem_alloc(size + 64, 1);
	ok = vault_read(&index->files.sites, snapshot->at + mark, bytes, size, err);
	for (; ok && id <= site; id++) {
		unsigned taken = at < bytes + size ? take_sums(at, sums) : 0;

		ok = taken > 0;
		at += taken;
	}
	mem_free(bytes);
	return ok || damaged(err, "a snapshot");
}

// The steps between a snapshot and an edge.
struct way {
	uint64_t from, to;
	bool back;
};

static struct way way_from(const struct index_snapshot *snapshot, uint64_t edge)
{
	uint64_t step = snapshot ? snapshot->step : 0;

	return step > edge ? (struct way){ edge, step, true } : (struct way){ step, edge, false };
}

// The part of a block that lies between two steps.
static void clip(const struct index_block *block, uint64_t from, uint64_t to, uint32_t *first,
		 uint32_t *end)
{
	*first = from > block->first ? (uint32_t)(from - block->first) : 0;
	*end = to < block->first + block->count ? (uint32_t)(to - block->first) : block->count;
}

bool index_counts(struct index *index, uint64_t edge, struct index_count *counts, struct err *err)
{
	const struct index_snapshot *snapshot = nearest(&index->files.cells_snapshots, edge);
	struct way way = way_from(snapshot, edge);
	struct index_block block = { 0 };
	bool ok = true;

	if (snapshot)
		ok = load_counts(&index->files.cells, snapshot, index->cells.cells_count, counts,
				 NULL, err);
	for (uint64_t number = way.from >> index->shape.block_log2;
	     ok && number << index->shape.block_log2 < way.to; number++) {
		uint32_t i, end;

		ok = index_block_load(index, number, 0, &block, err);
		if (!ok)
			break;
		clip(&block, way.from, way.to, &i, &end);
		for (; i < end; i++) {
			struct index_count *count = &counts[block.ops[i] >> 1];
			uint32_t ends = block.ops[i] & 1, one = way.back ? UINT32_MAX : 1;

			count->begun += ends ? 0 : one;
			count->alive += ends ? 0 - one : one;
		}
	}
	index_block_fini(&block);
	counts[0] = (struct index_count){ 0 };
	return ok;
}

bool index_sums(struct index *index, uint64_t edge, struct bits_sums *sums, struct err *err)
{
	enum { AHEAD = 32, SITES_AHEAD = 16 };
	const struct index_snapshot *snapshot = nearest(&index->files.sites_snapshots, edge);
	struct way way = way_from(snapshot, edge);
	struct index_block block = { 0 };
	bool ok = true;

	if (snapshot)
		ok = load_sums(&index->files.sites, snapshot, index->cells.sites_count, sums, NULL,
			       err);
	for (uint64_t number = way.from >> index->shape.block_log2;
	     ok && number << index->shape.block_log2 < way.to; number++) {
		uint32_t i, end;

		ok = index_block_load(index, number, 0, &block, err);
		if (!ok)
			break;
		clip(&block, way.from, way.to, &i, &end);
		for (; i < end; i++) {
			struct cells_cell cell = cells_cell(&index->cells, block.ops[i] >> 1);
			struct bits_sums *sum = &sums[cell.site];
			uint64_t size = cell.size, one = 1;

			if (i + AHEAD < end) {
				uint32_t soon = block.ops[i + SITES_AHEAD] >> 1;

				cells_expect(&index->cells, block.ops[i + AHEAD] >> 1);
				mem_expect(&sums[cells_cell(&index->cells, soon).site]);
			}
			if (way.back) {
				size = 0 - size;
				one = UINT64_MAX;
			}
			if (block.ops[i] & 1) {
				sum->alive -= one;
				sum->alive_bytes -= size;
				continue;
			}
			sum->begun += one;
			sum->begun_bytes += size;
			sum->alive += one;
			sum->alive_bytes += size;
		}
	}
	index_block_fini(&block);
	sums[0] = (struct bits_sums){ 0 };
	return ok;
}

// ---- lifetimes ----

bool index_ending_in(struct index *index, uint64_t from, uint64_t to, const uint8_t *marks,
		     const struct index_visitor *visitor, struct err *err)
{
	struct index_block block = { 0 };
	uint64_t first = from >> index->shape.block_log2;
	bool ok = true, more = true;

	for (uint64_t number = first; ok && more && number << index->shape.block_log2 < to;
	     number++) {
		uint32_t i, end;

		if (marks && !marks[number - first])
			continue;
		ok = index_block_load(index, number, INDEX_LIVES, &block, err);
		if (!ok)
			break;
		clip(&block, from, to, &i, &end);
		for (; i < end && more; i++)
			if (block.ops[i] & 1 && block.begins[i])
				more = visitor->visit(visitor->context, block.ops[i] >> 1,
						      block.begins[i], block.first + i);
	}
	index_block_fini(&block);
	return ok;
}

bool index_ending(struct index *index, uint64_t from, uint64_t to,
		  const struct index_visitor *visitor, struct err *err)
{
	return index_ending_in(index, from, to, NULL, visitor, err);
}

enum {
	RECORDS = 4096, // read at once
	AHEAD = 16,     // how far ahead cells are fetched from memory
};

static void expect_cell(const struct index *index, uint32_t cell)
{
	if (cell < index->cells.cells_count)
		cells_expect(&index->cells, cell);
}

// Records of a long file that end in [from, to) and began before `before`.
static bool visit_longs(struct index *index, unsigned class, uint64_t from, uint64_t to,
			uint64_t before, const struct index_visitor *visitor, bool *more,
			struct err *err)
{
	struct vault *vault = &index->files.longs[class];
	const uint64_t *sparse = index->files.sparse[class];
	size_t low = 0, high = index->files.sparse_count[class];
	uint64_t record, records = vault->size / sizeof(struct index_long);
	struct index_long *list;
	bool ok = true, over = false;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sparse[middle] < from)
			low = middle + 1;
		else
			high = middle;
	}
	record = (uint64_t)(low ? low - 1 : 0) << index->shape.sparse_log2;
	list = mem_resize(NULL, RECORDS, sizeof *list);
	for (; record < records && ok && *more && !over; record += RECORDS) {
		size_t count = records - record < RECORDS ? (size_t)(records - record) : RECORDS;

		ok = vault_read(vault, record * sizeof *list, list, count * sizeof *list, err);
		for (size_t i = 0; ok && i < count && *more; i++) {
			if (i + AHEAD < count)
				expect_cell(index, alive_cell(list[i + AHEAD].begin));
			over = list[i].end >= to;
			if (over)
				break;
			if (list[i].end < from || alive_step(list[i].begin) >= before)
				continue;
			if (alive_cell(list[i].begin) >= index->cells.cells_count) {
				ok = damaged(err, "a lifetime");
				break;
			}
			*more = visitor->visit(visitor->context, alive_cell(list[i].begin),
					       alive_step(list[i].begin), list[i].end);
		}
	}
	mem_free(list);
	return ok;
}

// Long lifetimes that span [from, to).
static bool visit_all_longs(struct index *index, uint64_t from, uint64_t to,
			    const struct index_visitor *visitor, bool *more, struct err *err)
{
	for (unsigned class = 0; class < INDEX_LONGS && *more; class ++) {
		unsigned log2 = class + index->shape.long_log2 + 1;
		uint64_t longest = UINT64_MAX;

		if (class + 1 < INDEX_LONGS && log2 < 63)
			longest = from + (UINT64_C(1) << log2);
		if (index->files.longs[class].size == 0 || longest <= to)
			continue;
		if (!visit_longs(index, class, to, longest, from, visitor, more, err))
			return false;
	}
	return true;
}

struct short_filter {
	const struct index_visitor *visitor;
	uint64_t before;
	unsigned long_log2;
};

static bool visit_short(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	const struct short_filter *filter = context;

	if (begin >= filter->before || (end - begin) >> filter->long_log2)
		return true;
	return filter->visitor->visit(filter->visitor->context, cell, begin, end);
}

// Shorter ones: they end soon behind `to`.
static bool visit_shorts(struct index *index, uint64_t from, uint64_t to,
			 const struct index_visitor *visitor, struct err *err)
{
	struct short_filter filter = { visitor, from, index->shape.long_log2 };
	const struct index_visitor inner = { &filter, visit_short };
	uint64_t end = from + (UINT64_C(1) << index->shape.long_log2);

	if (end > index->steps_end)
		end = index->steps_end;
	return end <= to || index_ending(index, to, end, &inner, err);
}

static bool visit_never(struct index *index, uint64_t first, uint64_t before,
			const struct index_visitor *visitor, bool *more, struct err *err)
{
	uint64_t *list = mem_resize(NULL, RECORDS, sizeof *list);
	bool ok = true, over = false;

	for (uint64_t at = first; at < index->never_count && ok && *more && !over; at += RECORDS) {
		size_t count = index->never_count - at < RECORDS ? (size_t)(index->never_count - at)
								 : RECORDS;

		ok = vault_read(&index->files.never, at * sizeof *list, list, count * sizeof *list,
				err);
		for (size_t i = 0; ok && i < count && *more; i++) {
			if (i + AHEAD < count)
				expect_cell(index, alive_cell(list[i + AHEAD]));
			over = alive_step(list[i]) >= before;
			if (over)
				break;
			if (alive_cell(list[i]) >= index->cells.cells_count) {
				ok = damaged(err, "a lifetime");
				break;
			}
			*more = visitor->visit(visitor->context, alive_cell(list[i]),
					       alive_step(list[i]), WINDOW_NEVER);
		}
	}
	mem_free(list);
	return ok;
}

bool index_spanning(struct index *index, uint64_t from, uint64_t to,
		    const struct index_visitor *visitor, struct err *err)
{
	bool more = true;

	return visit_shorts(index, from, to, visitor, err) &&
	       visit_all_longs(index, from, to, visitor, &more, err) &&
	       visit_never(index, 0, from, visitor, &more, err);
}

static bool count_one(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	uint32_t *counts = context;

	(void)begin;
	(void)end;
	counts[cell]++;
	return true;
}

// The last sums of `never` whose entries all began before a step; NULL: none.
static const struct index_snapshot *never_before(struct index *index,
						 const struct index_snapshots *snapshots,
						 uint64_t before, struct err *err)
{
	size_t low = 0, high = snapshots->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t last = 0, entries = snapshots->list[middle].step;

		if (entries > 0 &&
		    !vault_read(&index->files.never, (entries - 1) * 8, &last, 8, err))
			return NULL;
		if (alive_step(last) < before)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &snapshots->list[low - 1] : NULL;
}

bool index_never_at(struct index *index, uint64_t before, uint64_t *entries, struct err *err)
{
	uint64_t low = 0, high = index->never_count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2, value;

		if (!vault_read(&index->files.never, middle * 8, &value, 8, err))
			return false;
		if (alive_step(value) < before)
			low = middle + 1;
		else
			high = middle;
	}
	*entries = low;
	return true;
}

static bool never_counts(struct index *index, uint64_t before, uint32_t *counts, struct err *err)
{
	const struct index_visitor visitor = { counts, count_one };
	const struct index_snapshot *snapshot =
		never_before(index, &index->files.never_snapshots, before, err);
	bool more = true, ok = true;

	if (err->kind != ERR_NONE)
		return false;
	if (snapshot)
		ok = load_counts(&index->files.never_cells, snapshot, index->cells.cells_count,
				 NULL, counts, err);
	return ok &&
	       visit_never(index, snapshot ? snapshot->step : 0, before, &visitor, &more, err);
}

static bool never_sums(struct index *index, uint64_t before, struct heap_amount *sums,
		       const struct index_visitor *visitor, struct err *err)
{
	const struct index_snapshot *snapshot =
		never_before(index, &index->files.never_sites_snapshots, before, err);
	bool more = true, ok = true;

	if (err->kind != ERR_NONE)
		return false;
	if (snapshot)
		ok = load_sums(&index->files.never_sites, snapshot, index->cells.sites_count, NULL,
			       sums, err);
	return ok && visit_never(index, snapshot ? snapshot->step : 0, before, visitor, &more, err);
}

bool index_spanning_sums(struct index *index, uint64_t from, uint64_t to, struct heap_amount *sums,
			 const struct index_visitor *visitor, struct err *err)
{
	bool more = true;

	return visit_shorts(index, from, to, visitor, err) &&
	       visit_all_longs(index, from, to, visitor, &more, err) &&
	       never_sums(index, from, sums, visitor, err);
}

bool index_spanning_counts(struct index *index, uint64_t from, uint64_t to, uint32_t *counts,
			   struct err *err)
{
	const struct index_visitor visitor = { counts, count_one };
	bool more = true;

	return visit_shorts(index, from, to, &visitor, err) &&
	       visit_all_longs(index, from, to, &visitor, &more, err) &&
	       never_counts(index, from, counts, err);
}
