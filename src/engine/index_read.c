#include "engine/index_read.h"

#include "base/mem.h"
#include "engine/alive.h"

#include <string.h>

// ---- blocks ----

void index_block_fini(struct index_block *block)
{
	mem_free(block->ops);
	mem_free(block->begins);
	mem_free(block->runs);
	mem_free(block->jumps);
	mem_free(block->bytes);
	*block = (struct index_block){ 0 };
}

static bool bad_block(const struct index *index, uint64_t number, struct err *err)
{
	return err_set(err, ERR_FORMAT, "the index is damaged: block %llu of %zu",
		       (unsigned long long)number, index->files.blocks_count);
}

// The steps of the block, and whether all cells are known.
static bool unpack(const struct index *index, struct index_block *block, const uint8_t *packed,
		   uint32_t width)
{
	uint32_t most = 0, mask = (1u << width) - 1;
	size_t bit = 0;

	block->ops = mem_grow(block->ops, &block->ops_capacity, block->count, sizeof *block->ops);
	for (uint32_t i = 0; i < block->count; i++, bit += width) {
		uint32_t op = (uint32_t)(bits_load(packed + bit / 8) >> bit % 8) & mask;

		block->ops[i] = op;
		most = op > most ? op : most;
	}
	return most >> 1 < index->cells.cells_count;
}

static bool take_lives(struct index_block *block, const uint8_t *at, const uint8_t *end)
{
	bool good = true;

	block->begins = mem_grow(block->begins, &block->begins_capacity, block->count,
				 sizeof *block->begins);
	for (uint32_t i = 0; i < block->count; i++) {
		uint64_t life;

		if (!(block->ops[i] & 1)) {
			block->begins[i] = 0;
			continue;
		}
		life = bits_take_varint(&at, end);
		good &= life < block->first + i;
		block->begins[i] = life ? block->first + i - life : 0;
	}
	return good && at <= end;
}

static bool take_jumps(struct index_block *block, const uint8_t *at, const uint8_t *end)
{
	uint64_t count = bits_take_varint(&at, end), expected = 0, step = 0;

	if (count > block->count)
		return false;
	block->jumps = mem_grow(block->jumps, &block->jumps_capacity, (size_t)count + 1,
				sizeof *block->jumps);
	block->jumps_count = (uint32_t)count;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t delta = bits_take_varint(&at, end);

		step += delta;
		expected += delta + bits_unzigzag(bits_take_varint(&at, end));
		if (step >= block->count)
			return false;
		block->jumps[i] = (struct index_run){ (uint32_t)step, expected };
	}
	return at <= end && count > 0;
}

// Sizes stand in the index, which may be damaged: nothing is made room for that cannot be there.
static bool is_within(const struct vault *vault, uint64_t at, uint64_t size)
{
	return at <= vault->size && size <= vault->size - at;
}

static bool is_sound(const struct index *index, const struct index_block_entry *entry)
{
	return entry->events_size >= sizeof(struct bits_head) &&
	       is_within(&index->files.events, entry->events_at, entry->events_size) &&
	       is_within(&index->files.times, entry->times_at, entry->times_size);
}

static bool take_times(struct index *index, const struct index_block_entry *entry,
		       struct index_run **runs, size_t *capacity, uint32_t *runs_count,
		       uint32_t steps, struct err *err)
{
	uint8_t *bytes = mem_resize(NULL, entry->times_size + (size_t)1, 1);
	const uint8_t *at = bytes, *end = bytes + entry->times_size;
	uint64_t count = 0, step = 0, time_ns = entry->time_ns;
	bool ok = vault_read(&index->files.times, entry->times_at, bytes, entry->times_size, err);

	if (ok) {
		count = bits_take_varint(&at, end);
		ok = count < steps;
	}
	if (ok) {
		*runs = mem_grow(*runs, capacity, (size_t)count + 1, sizeof **runs);
		(*runs)[0] = (struct index_run){ 0, time_ns };
	}
	for (uint64_t i = 1; i <= count && ok; i++) {
		step += bits_take_varint(&at, end);
		time_ns += bits_take_varint(&at, end);
		ok = step < steps && at <= end;
		(*runs)[i] = (struct index_run){ (uint32_t)step, time_ns };
	}
	*runs_count = (uint32_t)count + 1;
	mem_free(bytes);
	return ok;
}

bool index_go_on(const struct index *index, struct err *err)
{
	return !index->stop || !index->stop(index->context) ||
	       err_set(err, ERR_STOPPED, "interrupted");
}

static uint32_t steps_of_block(const struct index *index, uint64_t number)
{
	uint64_t first = number << index->shape.block_log2;
	uint64_t left = index->steps_end - first;

	return left >> index->shape.block_log2 ? 1u << index->shape.block_log2 : (uint32_t)left;
}

bool index_block_load(struct index *index, uint64_t number, unsigned what,
		      struct index_block *block, struct err *err)
{
	const struct index_block_entry *entry = &index->files.blocks[number];
	struct bits_head head;
	size_t packed;

	if (!index_go_on(index, err))
		return false;
	if (!is_sound(index, entry))
		return bad_block(index, number, err);
	block->bytes =
		mem_grow(block->bytes, &block->bytes_capacity, entry->events_size + (size_t)8, 1);
	if (!vault_read(&index->files.events, entry->events_at, block->bytes, entry->events_size,
			err))
		return false;
	memcpy(&head, block->bytes, sizeof head);
	block->first = number << index->shape.block_log2;
	block->count = steps_of_block(index, number);
	packed = sizeof head + bits_marks(block->count) * 4;
	if (head.count != block->count || head.width == 0 || head.width > BITS_WIDTH_MAX ||
	    head.lives_at != packed + bits_packed_size(block->count, head.width) ||
	    head.jumps_at < head.lives_at || head.jumps_at > entry->events_size ||
	    !unpack(index, block, block->bytes + packed, head.width))
		return bad_block(index, number, err);
	if (what & INDEX_LIVES &&
	    !take_lives(block, block->bytes + head.lives_at, block->bytes + head.jumps_at))
		return bad_block(index, number, err);
	if (what & INDEX_JUMPS &&
	    !take_jumps(block, block->bytes + head.jumps_at, block->bytes + entry->events_size))
		return bad_block(index, number, err);
	if (what & INDEX_TIMES && !take_times(index, entry, &block->runs, &block->runs_capacity,
					      &block->runs_count, block->count, err))
		return err->kind == ERR_NONE ? bad_block(index, number, err) : false;
	return true;
}

// ---- times ----

enum { COARSE_LOG2 = 8 };

// The runs of a block; coarse[i] is the last run that begins at or before the first of the i-th
// part of the block's steps, so that a time is found with next to no search.
struct index_clock_block {
	uint32_t count;
	uint32_t coarse[(1 << COARSE_LOG2) + 1];
	struct index_run runs[];
};

static void forget_times(struct index_clock *clock)
{
	for (size_t i = 0; i < clock->blocks_count; i++) {
		mem_free(clock->blocks[i]);
		clock->blocks[i] = NULL;
	}
	clock->bytes = 0;
}

void index_clock_fini(struct index_clock *clock)
{
	forget_times(clock);
	mem_free(clock->blocks);
	*clock = (struct index_clock){ 0 };
}

static unsigned coarse_shift(const struct index *index)
{
	return index->shape.block_log2 > COARSE_LOG2 ? index->shape.block_log2 - COARSE_LOG2 : 0;
}

static void fill_coarse(struct index_clock_block *block, unsigned shift)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i <= 1u << COARSE_LOG2; i++) {
		while (run + 1 < block->count && block->runs[run + 1].at <= i << shift)
			run++;
		block->coarse[i] = run;
	}
}

static const struct index_clock_block *times_of(struct index_clock *clock, struct index *index,
						uint64_t number, struct err *err)
{
	struct index_clock_block *kept;
	struct index_run *runs = NULL;
	size_t capacity = 0, size;
	uint32_t count;

	if (!clock->blocks) {
		clock->blocks_count = index->files.blocks_count;
		clock->blocks = mem_alloc(clock->blocks_count + 1, sizeof(void *));
	}
	if (clock->blocks[number])
		return clock->blocks[number];
	if (!is_sound(index, &index->files.blocks[number]) ||
	    !take_times(index, &index->files.blocks[number], &runs, &capacity, &count,
			steps_of_block(index, number), err)) {
		if (err->kind == ERR_NONE)
			bad_block(index, number, err);
		mem_free(runs);
		return NULL;
	}
	size = sizeof *kept + count * sizeof *runs;
	if (clock->bytes + size > (clock->bytes_max ? clock->bytes_max : UINT64_C(16) << 20))
		forget_times(clock);
	kept = mem_resize(NULL, size, 1);
	kept->count = count;
	memcpy(kept->runs, runs, count * sizeof *runs);
	mem_free(runs);
	fill_coarse(kept, coarse_shift(index));
	clock->blocks[number] = kept;
	clock->bytes += size;
	return kept;
}

// The last run that begins at or before a step of the block.
static const struct index_run *find_run(const struct index_clock_block *block, uint32_t at,
					unsigned shift)
{
	uint32_t low = block->coarse[at >> shift], high = block->coarse[(at >> shift) + 1] + 1;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (block->runs[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return &block->runs[low];
}

bool index_clock_time(struct index_clock *clock, struct index *index, uint64_t step,
		      uint64_t *time_ns, struct err *err)
{
	const struct index_clock_block *block;

	if (step >= index->steps_end)
		step = index->steps_end - 1;
	block = times_of(clock, index, step >> index->shape.block_log2, err);
	if (!block)
		return false;
	step &= (UINT64_C(1) << index->shape.block_log2) - 1;
	*time_ns = find_run(block, (uint32_t)step, coarse_shift(index))->value;
	return true;
}

bool index_clock_edge(struct index_clock *clock, struct index *index, uint64_t time_ns,
		      uint64_t *edge, struct err *err)
{
	const struct index_files *files = &index->files;
	const struct index_clock_block *block;
	size_t low = 0, high = files->blocks_count;
	uint32_t first = 0, end;

	// The last block that does not begin later.
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (files->blocks[middle].time_ns <= time_ns)
			low = middle;
		else
			high = middle;
	}
	block = times_of(clock, index, low, err);
	if (!block)
		return false;
	end = block->count;
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (block->runs[middle].value <= time_ns)
			first = middle + 1;
		else
			end = middle;
	}
	*edge = ((uint64_t)low << index->shape.block_log2) +
		(first < block->count ? block->runs[first].at : steps_of_block(index, low));
	if (*edge < WINDOW_START)
		*edge = WINDOW_START;
	return true;
}

bool index_number(struct index *index, uint64_t step, uint64_t *number, struct err *err)
{
	struct index_block block = { 0 };
	bool ok =
		index_block_load(index, step >> index->shape.block_log2, INDEX_JUMPS, &block, err);
	const struct index_run *last = block.jumps;

	for (uint32_t i = 0; ok && i < block.jumps_count && block.jumps[i].at <= step - block.first;
	     i++)
		last = &block.jumps[i];
	// Step 0 is of no event, and the one after it of event 0: as counting on makes it.
	*number = ok ? last->value + (step - block.first - last->at) : UINT64_MAX;
	index_block_fini(&block);
	return ok;
}

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

static bool load_counts(struct vault *vault, const struct index_snapshot *snapshot,
			uint32_t keys_max, struct index_count *counts, struct err *err)
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
		counts[id].begun = (uint32_t)bits_take(piece.here + 1, a);
		counts[id].alive = (uint32_t)bits_take(piece.here + 1 + a, b);
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

static bool load_sums(struct vault *vault, const struct index_snapshot *snapshot, uint32_t keys_max,
		      struct bits_sums *sums, struct err *err)
{
	struct piece piece = begin_piece(vault, snapshot);
	bool ok = snapshot->keys <= keys_max;

	for (uint32_t id = 1; id < snapshot->keys && ok; id++) {
		unsigned bytes = 0;

		if (refill(&piece, err) && piece.here + 1 < piece.stop)
			bytes = take_sums(piece.here, &sums[id]);
		ok = bytes > 0;
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

	memset(counts, 0, index->cells.cells_count * sizeof *counts);
	if (snapshot)
		ok = load_counts(&index->files.cells, snapshot, index->cells.cells_count, counts,
				 err);
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
	enum { AHEAD = 16 };
	const struct index_snapshot *snapshot = nearest(&index->files.sites_snapshots, edge);
	struct way way = way_from(snapshot, edge);
	struct index_block block = { 0 };
	bool ok = true;

	memset(sums, 0, index->cells.sites_count * sizeof *sums);
	if (snapshot)
		ok = load_sums(&index->files.sites, snapshot, index->cells.sites_count, sums, err);
	for (uint64_t number = way.from >> index->shape.block_log2;
	     ok && number << index->shape.block_log2 < way.to; number++) {
		uint32_t i, end;

		ok = index_block_load(index, number, 0, &block, err);
		if (!ok)
			break;
		clip(&block, way.from, way.to, &i, &end);
		for (; i < end; i++) {
			const struct cells_cell *cell =
				cells_cell(&index->cells, block.ops[i] >> 1);
			struct bits_sums *sum = &sums[cell->site];
			uint64_t size = cell->size, one = 1;

			if (i + AHEAD < end)
				__builtin_prefetch(
					cells_cell(&index->cells, block.ops[i + AHEAD] >> 1));
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

enum { RECORDS = 4096 }; // read at once

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
static const struct index_snapshot *never_before(struct index *index, uint64_t before,
						 struct err *err)
{
	const struct index_snapshots *snapshots = &index->files.never_snapshots;
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

static bool never_counts(struct index *index, uint64_t before, uint32_t *counts, struct err *err)
{
	const struct index_visitor visitor = { counts, count_one };
	const struct index_snapshot *snapshot = never_before(index, before, err);
	struct index_count *sums;
	bool more = true, ok = true;

	if (err->kind != ERR_NONE)
		return false;
	if (snapshot) {
		sums = mem_alloc(index->cells.cells_count + (size_t)1, sizeof *sums);
		ok = load_counts(&index->files.never_cells, snapshot, index->cells.cells_count,
				 sums, err);
		for (uint32_t id = 1; ok && id < index->cells.cells_count; id++)
			counts[id] += sums[id].begun;
		mem_free(sums);
	}
	return ok &&
	       visit_never(index, snapshot ? snapshot->step : 0, before, &visitor, &more, err);
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
