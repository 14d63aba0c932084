// Sums at an edge: by cell and by site, how many allocations had begun and how many lived.
//
// Snapshots of all counts are in the files, at least 2^18 steps apart. The counts at an edge are
// those of the nearest snapshot and the steps between: for edge 600,000 with snapshots at 524,288
// and 786,432, the 75,712 steps after the first are added; for edge 760,000, the 26,432 steps
// before the second are taken back. A window is a difference of two edges, so its length costs
// nothing.
//
// Lifetimes that span a window are found by their length: long ones in files by powers of two,
// shorter ones because they end within 2^17 steps after the window, endless ones in `never`.
#include "base/mem.h"
#include "base/rising.h"
#include "engine/index/index_read.h"
#include "engine/index/live_table.h"

#include <string.h>

// ---- counts at an edge ----

// A snapshot's bytes, a piece at a time. A group of keys is always whole in it.
struct piece {
	struct vault *vault;
	uint64_t at, end; // in the vault, of what is not loaded
	uint8_t *bytes;
	const uint8_t *here, *stop;
};

enum { PIECE = 1 << 18 };

// At least one whole group is in the piece afterwards, or all that the snapshot has left.
static bool refill(struct piece *piece, struct err *err)
{
	size_t left = (size_t)(piece->stop - piece->here), more;

	ASSERT(piece->here <= piece->stop && left <= PIECE + BITS_GROUP_MAX);
	if (left >= BITS_GROUP_MAX || piece->at == piece->end)
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

// Nothing is read yet. Room for a piece, for what is left of a group before it, and for what
// unpacking looks at beyond the end. The caller frees `bytes`.
static struct piece begin_piece(struct vault *vault, const struct index_snapshot *snapshot)
{
	struct piece piece = { .vault = vault,
			       .at = snapshot->at,
			       .end = snapshot->at + snapshot->size };

	piece.bytes = mem_alloc(PIECE + BITS_GROUP_MAX + BITS_GROUP_SLACK, 1);
	piece.here = piece.stop = piece.bytes;
	return piece;
}

// The last snapshot that is not later than an edge; NULL: none.
static const struct index_snapshot *last_before(const struct index_snapshots *snapshots,
						uint64_t edge)
{
	size_t upto = RISING_UPTO(snapshots->list, snapshots->count, step, edge);

	ASSERT(upto == 0 || snapshots->list[upto - 1].step <= edge);
	return upto ? &snapshots->list[upto - 1] : NULL;
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

// The next group of a snapshot, so many columns of it.
static bool next_group(struct piece *piece, uint64_t columns[][BITS_GROUP], unsigned count,
		       struct err *err)
{
	size_t size = 0;

	if (refill(piece, err))
		size = bits_take_group(piece->here, (size_t)(piece->stop - piece->here), columns,
				       count);
	ASSERT(size <= (size_t)(piece->stop - piece->here));
	piece->here += size;
	return size > 0 || damaged(err, "a snapshot");
}

// Of counts that are so many bytes apart.
static inline void *strided(void *first, uint32_t i, size_t stride)
{
	return (char *)first + i * stride;
}

// Into `counts`, or how many began added to `begun`; either may be NULL. A group is always whole in
// the file: the last one's keys beyond the snapshot's are passed over.
static bool load_counts(struct vault *vault, const struct index_snapshot *snapshot,
			uint32_t keys_max, struct index_count *counts, uint32_t *begun,
			size_t stride, struct err *err)
{
	struct piece piece = begin_piece(vault, snapshot);
	bool ok = snapshot->keys <= keys_max || damaged(err, "a snapshot");
	uint64_t columns[2][BITS_GROUP];

	for (uint32_t first = 0; ok && first < snapshot->keys; first += BITS_GROUP) {
		uint32_t left = snapshot->keys - first,
			 count = left < BITS_GROUP ? left : BITS_GROUP;

		ok = next_group(&piece, columns, 2, err);
		for (uint32_t i = 0; ok && i < count && begun; i++)
			*(uint32_t *)strided(begun, first + i, stride) += (uint32_t)columns[0][i];
		for (uint32_t i = 0; ok && i < count && counts; i++)
			*(struct index_count *)strided(counts, first + i, stride) =
				(struct index_count){ (uint32_t)columns[0][i],
						      (uint32_t)columns[1][i] };
	}
	mem_free(piece.bytes);
	return ok;
}

// The sums of a site as they lie in a group. Bytes are stored as what they differ from count * size
// of the site's first cell: a site of 1,000 blocks of 48 bytes and one of 64 has 1,001 and a
// difference of 16, not 48,064.
static struct bits_sums sums_of(const struct cells *cells, uint32_t site,
				uint64_t columns[][BITS_GROUP], unsigned i)
{
	uint64_t begun = columns[0][i], alive = columns[1][i];
	uint64_t size = cells_first_size(cells, site);

	return (struct bits_sums){ .begun = begun,
				   .alive = alive,
				   .begun_bytes = begun * size + bits_unzigzag(columns[2][i]),
				   .alive_bytes = alive * size + bits_unzigzag(columns[3][i]) };
}

// What began, by site, added to `begun`.
static bool load_begun(struct index *index, struct vault *vault,
		       const struct index_snapshot *snapshot, struct heap_amount *begun,
		       struct err *err)
{
	struct piece piece = begin_piece(vault, snapshot);
	bool ok = snapshot->keys <= index->cells.sites_count || damaged(err, "a snapshot");
	uint64_t columns[BITS_COLUMNS_MAX][BITS_GROUP];

	for (uint32_t first = 0; ok && first < snapshot->keys; first += BITS_GROUP) {
		uint32_t left = snapshot->keys - first,
			 count = left < BITS_GROUP ? left : BITS_GROUP;

		ok = next_group(&piece, columns, BITS_COLUMNS_MAX, err);
		for (uint32_t i = 0; ok && i < count; i++) {
			struct bits_sums one = sums_of(&index->cells, first + i, columns, i);

			begun[first + i].count += one.begun;
			begun[first + i].bytes += one.begun_bytes;
		}
	}
	mem_free(piece.bytes);
	return ok;
}

// One site of a snapshot, without the others: marks at its end say where each BITS_MARK-th key
// begins.
bool index_site_sums(struct index *index, uint32_t site, uint64_t edge, struct bits_sums *sums,
		     uint64_t *step, struct err *err)
{
	enum { BYTES_MAX = BITS_MARK / BITS_GROUP * BITS_GROUP_MAX };
	const struct index_snapshot *snapshot = last_before(&index->files.sites_snapshots, edge);
	uint64_t columns[BITS_COLUMNS_MAX][BITS_GROUP];
	uint32_t marks[2], mark = site / BITS_MARK;
	struct vault *vault = &index->files.sites;
	uint8_t *bytes, *at;
	size_t size, taken = 1;
	bool ok;

	*sums = (struct bits_sums){ 0 };
	*step = snapshot ? snapshot->step : 0;
	if (!snapshot || site >= snapshot->keys)
		return true;
	// Where its keys begin, and where they end: at the next mark, or with the snapshot. No key
	// is at the last mark of a snapshot of 1,024 n keys, and nothing was put there.
	marks[1] = (uint32_t)snapshot->size;
	if (!vault_read(vault, snapshot->at + snapshot->size + mark * sizeof *marks, marks,
			(mark < (snapshot->keys - 1) / BITS_MARK ? 2 : 1) * sizeof *marks, err))
		return false;
	if (marks[1] > snapshot->size || marks[0] > marks[1] || marks[1] - marks[0] > BYTES_MAX)
		return damaged(err, "a snapshot");
	size = marks[1] - marks[0];
	bytes = at = mem_alloc(size + BITS_GROUP_SLACK, 1);
	ok = vault_read(vault, snapshot->at + marks[0], bytes, size, err);
	for (uint32_t i = 0; ok && taken && i <= site % BITS_MARK / BITS_GROUP; i++) {
		taken = bits_take_group(at, (size_t)(bytes + size - at), columns, BITS_COLUMNS_MAX);
		at += taken;
	}
	if (ok && taken)
		*sums = sums_of(&index->cells, site, columns, site % BITS_GROUP);
	mem_free(bytes);
	return (ok && taken) || damaged(err, "a snapshot");
}

// The steps between a snapshot and an edge.
struct way {
	uint64_t from, to;
	bool back;
};

// Without a snapshot from step 0 on, where all counts are 0.
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

// What each cell had done up to an edge: the nearest snapshot, and the steps between it and the
// edge, forwards or back.
bool index_counts(struct index *index, uint64_t edge, struct index_count *counts, size_t stride,
		  struct err *err)
{
	enum { AHEAD = 64 };
	const struct index_snapshot *snapshot = nearest(&index->files.cells_snapshots, edge);
	struct way way = way_from(snapshot, edge);
	struct index_block block = { 0 };
	bool ok = true;

	ASSERT(stride >= sizeof *counts);
	if (snapshot)
		ok = load_counts(&index->files.cells, snapshot, index->cells.cells_count, counts,
				 NULL, stride, err);
	for (uint64_t number = way.from >> index->shape.block_log2;
	     ok && number << index->shape.block_log2 < way.to; number++) {
		uint32_t i, end;

		ok = index_block_load(index, number, 0, &block, err);
		if (!ok)
			break;
		clip(&block, way.from, way.to, &i, &end);
		for (; i < end; i++) {
			struct index_count *count = strided(counts, block.ops[i] >> 1, stride);
			uint32_t ends = block.ops[i] & 1, one = way.back ? UINT32_MAX : 1;

			if (i + AHEAD < end)
				mem_expect(strided(counts, block.ops[i + AHEAD] >> 1, stride));
			count->begun += ends ? 0 : one;
			count->alive += ends ? 0 - one : one;
		}
	}
	index_block_fini(&block);
	counts[0] = (struct index_count){ 0 };
	return ok;
}

// ---- sums at an edge ----

// What steps add to a snapshot's sums, by site. `near` holds it in 32 bits each (16 bytes a site),
// and nearly always is enough: a thousand blocks of 64 KiB are 2^26. What is too large moves to
// `far`, of 64 bits, and `near` begins at 0 again; the sum is both together.
//
// Sums are modulo 2^64, and shifts what is small of them, of either sign.
static uint64_t wide(int32_t shift)
{
	return (uint64_t)(int64_t)shift;
}

static bool is_small(uint64_t sum)
{
	return sum == wide((int32_t)sum);
}

// One that has become too large for its shift.
static void put_far(const struct index *index, struct index_shifts *shifts, uint32_t site)
{
	struct index_shift *shift = &shifts->near[site];
	struct bits_sums *far;

	if (!shifts->far)
		shifts->far = mem_alloc(index->cells.sites_count, sizeof *shifts->far);
	far = &shifts->far[site];
	far->begun_bytes += wide(shift->begun_bytes);
	far->alive_bytes += wide(shift->alive_bytes);
	shift->begun_bytes = shift->alive_bytes = 0;
}

// Bytes that have no room in a shift.
static void shift_far(const struct index *index, struct index_shifts *shifts, uint32_t site,
		      uint64_t alive_bytes, uint64_t begun_bytes)
{
	put_far(index, shifts, site);
	shifts->far[site].alive_bytes += alive_bytes;
	shifts->far[site].begun_bytes += begun_bytes;
}

// One step. Whether it begins or ends something is as good as random, so nothing branches on it.
static inline void shift_step(const struct index *index, struct index_shifts *shifts,
			      struct cells_cell cell, uint32_t ends, bool back)
{
	struct index_shift *shift = &shifts->near[cell.site];
	int32_t one = back ? -1 : 1, begun = ends ? 0 : one, alive = ends ? 0 - one : one;
	uint64_t more_begun = wide(begun) * cell.size, more_alive = wide(alive) * cell.size;
	uint64_t begun_bytes = wide(shift->begun_bytes) + more_begun;
	uint64_t alive_bytes = wide(shift->alive_bytes) + more_alive;

	shift->begun += begun;
	shift->alive += alive;
	if (is_small(alive_bytes) && is_small(begun_bytes)) {
		shift->alive_bytes = (int32_t)alive_bytes;
		shift->begun_bytes = (int32_t)begun_bytes;
	} else {
		shift_far(index, shifts, cell.site, more_alive, more_begun);
	}
}

// A step's cell is fetched from memory first, then its site, then both are looked at.
static void shift_block(const struct index *index, struct index_shifts *shifts,
			const struct index_block *block, uint32_t i, uint32_t end, bool back)
{
	enum { AHEAD = 64 };
	const struct cells *cells = &index->cells;
	struct cells_cell soon[AHEAD];
	uint32_t begin = i;

	for (; i < end + AHEAD; i++) {
		struct cells_cell *cell = &soon[i % AHEAD];

		if (i >= begin + AHEAD)
			shift_step(index, shifts, *cell, block->ops[i - AHEAD] & 1, back);
		if (i >= end)
			continue;
		if (i + AHEAD < end)
			cells_expect(cells, block->ops[i + AHEAD] >> 1);
		*cell = cells_cell(cells, block->ops[i] >> 1);
		mem_expect(&shifts->near[cell->site]);
	}
}

// What each site did between the nearest snapshot and the edge. The snapshot itself stays in its
// file, and is read as the sites are gone through (index_sums_next).
bool index_shifts_load(struct index_shifts *shifts, struct index *index, uint64_t edge,
		       struct index_shift *near, struct err *err)
{
	const struct index_snapshot *snapshot = nearest(&index->files.sites_snapshots, edge);
	struct way way = way_from(snapshot, edge);
	struct index_block block = { 0 };
	bool ok = true;

	*shifts = (struct index_shifts){ .snapshot = snapshot,
					 .near = near,
					 .sites_count = index->cells.sites_count };
	if (way.to - way.from > INT32_MAX)
		return damaged(err, "snapshots");
	memset(near, 0, shifts->sites_count * sizeof *near);
	for (uint64_t number = way.from >> index->shape.block_log2;
	     ok && number << index->shape.block_log2 < way.to; number++) {
		uint32_t first, end;

		ok = index_block_load(index, number, 0, &block, err);
		if (!ok)
			break;
		clip(&block, way.from, way.to, &first, &end);
		shift_block(index, shifts, &block, first, end, way.back);
	}
	index_block_fini(&block);
	shifts->near[0] = (struct index_shift){ 0 };
	return ok;
}

void index_shifts_fini(struct index_shifts *shifts)
{
	mem_free(shifts->far);
	*shifts = (struct index_shifts){ 0 };
}
struct index_sums {
	const struct index_shifts *shifts;
	const struct cells *cells;
	struct piece piece; // of the snapshot
	uint32_t next;      // site; a multiple of BITS_GROUP
};

struct index_sums *index_sums_new(struct index *index, const struct index_shifts *shifts,
				  struct err *err)
{
	const struct index_snapshot *snapshot = shifts->snapshot;
	struct index_sums *sums;

	if (snapshot && snapshot->keys > index->cells.sites_count) {
		damaged(err, "a snapshot");
		return NULL;
	}
	sums = mem_alloc(1, sizeof *sums);
	sums->shifts = shifts;
	sums->cells = &index->cells;
	if (snapshot)
		sums->piece = begin_piece(&index->files.sites, snapshot);
	return sums;
}

void index_sums_free(struct index_sums *sums)
{
	if (sums)
		mem_free(sums->piece.bytes);
	mem_free(sums);
}

static void add_shift(struct bits_sums *sums, const struct index_shifts *shifts, uint32_t site)
{
	const struct index_shift *shift = &shifts->near[site];

	sums->begun += wide(shift->begun);
	sums->alive += wide(shift->alive);
	sums->begun_bytes += wide(shift->begun_bytes);
	sums->alive_bytes += wide(shift->alive_bytes);
	if (!shifts->far)
		return;
	sums->begun_bytes += shifts->far[site].begun_bytes;
	sums->alive_bytes += shifts->far[site].alive_bytes;
}

// Sites that the snapshot does not have were met after it: all that they did is in the shifts.
bool index_sums_next(struct index_sums *sums, struct bits_sums *out, uint32_t count,
		     struct err *err)
{
	const struct index_shifts *shifts = sums->shifts;
	uint32_t keys = shifts->snapshot ? shifts->snapshot->keys : 0;
	uint64_t columns[BITS_COLUMNS_MAX][BITS_GROUP];

	ASSERT(count > 0 && sums->next % BITS_GROUP == 0);
	for (uint32_t at = 0; at < count; at += BITS_GROUP, sums->next += BITS_GROUP) {
		bool there = sums->next < keys;

		if (there && !next_group(&sums->piece, columns, BITS_COLUMNS_MAX, err))
			return false;
		for (uint32_t i = 0; i < BITS_GROUP && at + i < count; i++) {
			out[at + i] = there ? sums_of(sums->cells, sums->next + i, columns, i)
					    : (struct bits_sums){ 0 };
			add_shift(&out[at + i], shifts, sums->next + i);
		}
	}
	return true;
}

// ---- lifetimes ----

// All ends from one step to another whose beginning is known. `marks` says which blocks need be
// looked at, NULL: all.
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
	AHEAD = 32,     // how far ahead cells are fetched from memory
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
	const struct index_long_blocks *blocks = &index->files.longs_blocks[class];
	size_t block = RISING_BELOW(blocks->list, blocks->count, end, from);
	struct index_long *list =
		mem_resize(NULL, (size_t)1 << index->shape.sparse_log2, sizeof *list);
	bool ok = true, over = false;

	ASSERT(class < INDEX_LONGS && block <= blocks->count);
	for (block -= block > 0; block < blocks->count && ok && *more && !over; block++) {
		size_t count = index_longs_in(index, class, block);

		ok = index_longs_read(index, class, block, list, err);
		for (size_t i = 0; ok && i < count && *more; i++) {
			if (i + AHEAD < count)
				expect_cell(index, live_table_cell(list[i + AHEAD].begin));
			over = list[i].end >= to;
			if (over)
				break;
			if (list[i].end < from || live_table_step(list[i].begin) >= before)
				continue;
			if (live_table_cell(list[i].begin) >= index->cells.cells_count) {
				ok = damaged(err, "a lifetime");
				break;
			}
			*more = visitor->visit(visitor->context, live_table_cell(list[i].begin),
					       live_table_step(list[i].begin), list[i].end);
		}
	}
	mem_free(list);
	return ok;
}

// Long lifetimes that span [from, to). A file has the lifetimes of 2^log2 to 2^(log2 + 1) steps.
// One that began before `from` ends before from + 2^(log2 + 1): files whose longest would end
// within the window are passed over, of the others only that stretch is read.
static bool visit_all_longs(struct index *index, uint64_t from, uint64_t to,
			    const struct index_visitor *visitor, bool *more, struct err *err)
{
	for (unsigned class = 0; class < INDEX_LONGS && *more; class ++) {
		unsigned log2 = class + index->shape.long_log2 + 1;
		uint64_t longest = UINT64_MAX;

		if (class + 1 < INDEX_LONGS && log2 < 63)
			longest = from + (UINT64_C(1) << log2);
		if (index->files.longs_count[class] == 0 || longest <= to)
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
	bool *more;
};

// Long lifetimes that end here are told from their files.
static bool visit_short(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	const struct short_filter *filter = context;

	if (begin >= filter->before || (end - begin) >> filter->long_log2)
		return true;
	*filter->more = filter->visitor->visit(filter->visitor->context, cell, begin, end);
	return *filter->more;
}

// Shorter ones: they end soon behind `to`.
static bool visit_shorts(struct index *index, uint64_t from, uint64_t to,
			 const struct index_visitor *visitor, bool *more, struct err *err)
{
	struct short_filter filter = { visitor, from, index->shape.long_log2, more };
	const struct index_visitor inner = { .context = &filter, .visit = visit_short };
	uint64_t end = from + (UINT64_C(1) << index->shape.long_log2);

	if (end > index->steps_end)
		end = index->steps_end;
	return end <= to || index_ending(index, to, end, &inner, err);
}

// `first`: the entry to begin with. They are in the order of their beginnings, so the first that
// began too late ends it.
static bool visit_never(struct index *index, uint64_t first, uint64_t before,
			const struct index_visitor *visitor, bool *more, struct err *err)
{
	uint64_t *list = mem_resize(NULL, RECORDS, sizeof *list);
	bool ok = true, over = false;

	for (uint64_t at = first, end; at < index->never_count && ok && *more && !over; at = end) {
		size_t count;

		// Up to a multiple: that is where blocks end.
		end = at - at % RECORDS + RECORDS;
		if (end > index->never_count)
			end = index->never_count;
		count = (size_t)(end - at);
		ASSERT(count > 0 && count <= RECORDS);
		ok = index_never_read(index, at, count, list, err);
		if (ok && visitor->enough && live_table_step(list[0]) < before)
			*more = !visitor->enough(visitor->context, live_table_step(list[0]));
		for (size_t i = 0; ok && i < count && *more; i++) {
			if (i + AHEAD < count)
				expect_cell(index, live_table_cell(list[i + AHEAD]));
			over = live_table_step(list[i]) >= before;
			if (over)
				break;
			if (live_table_cell(list[i]) >= index->cells.cells_count) {
				ok = damaged(err, "a lifetime");
				break;
			}
			*more = visitor->visit(visitor->context, live_table_cell(list[i]),
					       live_table_step(list[i]), WINDOW_NEVER);
		}
	}
	mem_free(list);
	return ok;
}

bool index_spanning(struct index *index, uint64_t from, uint64_t to,
		    const struct index_visitor *visitor, struct err *err)
{
	bool more = true;

	return visit_shorts(index, from, to, visitor, &more, err) &&
	       visit_all_longs(index, from, to, visitor, &more, err) &&
	       visit_never(index, 0, from, visitor, &more, err);
}

enum { COUNTS_AHEAD = 32 };

// Counts that lie anywhere are fetched while others are met.
struct strided_counts {
	uint32_t *first;
	size_t stride;
	uint32_t *soon[COUNTS_AHEAD]; // to be counted
	uint64_t met;
};

static bool count_one(void *context, uint32_t cell, uint64_t, uint64_t)
{
	struct strided_counts *counts = context;
	uint32_t **soon = &counts->soon[counts->met % COUNTS_AHEAD];

	if (counts->met >= COUNTS_AHEAD)
		++**soon;
	counts->met++;
	*soon = strided(counts->first, cell, counts->stride);
	mem_expect(*soon);
	return true;
}

// Those that still wait.
static void count_rest(const struct strided_counts *counts)
{
	for (uint64_t i = 0; i < counts->met && i < COUNTS_AHEAD; i++)
		++*counts->soon[i];
}

// The last sums of `never` whose entries all began before a step; NULL: none, or damage.
static const struct index_snapshot *never_before(struct index *index,
						 const struct index_snapshots *snapshots,
						 uint64_t before, struct err *err)
{
	uint64_t entries;

	return index_never_at(index, before, &entries, err) ? last_before(snapshots, entries)
							    : NULL;
}

// A snapshot's `step` is a number of entries here: the entries after it are read one by one.
static bool never_counts(struct index *index, uint64_t before, const struct index_visitor *visitor,
			 const struct strided_counts *counts, struct err *err)
{
	const struct index_snapshot *snapshot =
		never_before(index, &index->files.never_snapshots, before, err);
	bool more = true, ok = true;

	if (err->kind != ERR_NONE)
		return false;
	if (snapshot)
		ok = load_counts(&index->files.never_cells, snapshot, index->cells.cells_count,
				 NULL, counts->first, counts->stride, err);
	return ok && visit_never(index, snapshot ? snapshot->step : 0, before, visitor, &more, err);
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
		ok = load_begun(index, &index->files.never_sites, snapshot, sums, err);
	return ok && visit_never(index, snapshot ? snapshot->step : 0, before, visitor, &more, err);
}

bool index_spanning_sums(struct index *index, uint64_t from, uint64_t to, struct heap_amount *sums,
			 const struct index_visitor *visitor, struct err *err)
{
	bool more = true;

	return visit_shorts(index, from, to, visitor, &more, err) &&
	       visit_all_longs(index, from, to, visitor, &more, err) &&
	       never_sums(index, from, sums, visitor, err);
}

bool index_spanning_counts(struct index *index, uint64_t from, uint64_t to, uint32_t *counts,
			   size_t stride, struct err *err)
{
	struct strided_counts strided = { .first = counts, .stride = stride };
	const struct index_visitor visitor = { .context = &strided, .visit = count_one };
	bool more = true, ok;

	ASSERT(from <= to);
	ok = visit_shorts(index, from, to, &visitor, &more, err) &&
	     visit_all_longs(index, from, to, &visitor, &more, err) &&
	     never_counts(index, from, &visitor, &strided, err);
	count_rest(&strided);
	return ok;
}
