// Two files: `sorted`, a vault of pieces, and `sorted-head`, which says where they begin and which
// index they are of. A piece has up to 2^15 lifetimes of cells that follow each other, in three
// columns (pack.h): by cell how many lifetimes are 0, and how many are not; and these, each as its
// distance to the one before it in the cell. For example lifetimes of 0, 0, 5 and 9 ms of cell 7,
// none of cell 8, and 4 ms of cell 9:
//
//     2 0 0     2 0 1     5 4 4
//
// What is 0 is two thirds of a compiler's. A cell with more than fit goes on in the next piece.
//
// Making it: one pass over the ends (index_ages) writes each lifetime that is not 0 as a number,
// its cell above its nanoseconds, into one of some temporary files, each of which has a range of
// cells. How many each cell has is known before, from the counts at the end. A cell that has more
// than a file should have gets several, each with a range of lifetimes: a sample says which. A file
// is then sorted in memory by a thread while the one before is packed, or in parts where it does
// not fit; there are two of each, as two threads write.
//
// The median and 99th percentile of all are in the head, as most questions ask for these, too:
// they are counted in the same pass, and then found among what is in those files, by a thread for
// each of the two.
#include "engine/index/index_sorted.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/radix.h"
#include "base/ranks.h"
#include "engine/index/index_ask.h"
#include "engine/index/index_tables.h"
#include "engine/index/spill.h"
#include "os/relay.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <string.h>

enum {
	VERSION = 2,
	PIECE_LIFETIMES = 1 << 15,
	PIECE_CELLS = 1 << 13,
	SHARES_WANTED = 63, // at most, as if all could be of one size
	SHARES_MAX = 3 * SHARES_WANTED + 1,
	SHARE_BUFFER = 1 << 15,
	MEMORY_SHARE = 4, // of a question's memory, to sort in
	PLACES = 2,       // files that are sorted and not written yet
};

static const char vault_name[] = "sorted", head_name[] = "sorted-head";

// What `sorted-head` begins with. Cells are numbers of this one index.
struct stamp {
	char magic[8];
	uint64_t version;
	struct index_identity identity;
	uint64_t steps_end, duration_ns;
	uint32_t cells_count, events_crc; // of the checksums of `events`
};

struct piece {
	uint64_t at;
	uint32_t size, first, cells, count;
};

struct index_sorted {
	struct index *index;
	struct vault vault;
	struct piece *pieces;
	size_t pieces_count;
	struct index_sorted_total total;
};

static struct stamp stamp_of(const struct index *index)
{
	const struct vault *events = &index->files.events;
	struct stamp stamp;

	memset(&stamp, 0, sizeof stamp); // it is compared and written with what is between
	memcpy(stamp.magic, "TIDESRT", sizeof stamp.magic);
	stamp.version = VERSION;
	stamp.identity = index->identity;
	stamp.steps_end = index->steps_end;
	stamp.duration_ns = index->duration_ns;
	stamp.cells_count = index->cells.cells_count;
	stamp.events_crc = crc32c(0, events->sums, events->sums_count * sizeof *events->sums);
	return stamp;
}

// ---- reading ----

// Pieces follow each other, by their bytes and by their cells. The last cell of one may be the
// first of the next.
static bool are_sound(const struct index_sorted *sorted)
{
	uint64_t at = 0;
	uint32_t cell = 0;

	for (size_t i = 0; i < sorted->pieces_count; i++) {
		const struct piece *piece = &sorted->pieces[i];
		bool goes_on = cell > 0 && piece->first == cell - 1;

		if (piece->at != at || (piece->first != cell && !goes_on) || piece->cells == 0 ||
		    piece->cells > PIECE_CELLS || piece->count > PIECE_LIFETIMES ||
		    piece->cells > sorted->index->cells.cells_count - piece->first)
			return false;
		at += piece->size;
		cell = piece->first + piece->cells;
	}
	return at == sorted->vault.size && cell == sorted->index->cells.cells_count;
}

static bool take_head(struct index_sorted *sorted, struct index_in *in)
{
	struct stamp stamp = stamp_of(sorted->index), found;
	struct err ignored = { 0 };
	uint32_t *sums;
	uint64_t size;
	size_t sums_count;

	index_in_take(in, &found, sizeof found);
	if (memcmp(&found, &stamp, sizeof found) != 0)
		return false;
	size = index_in_take_u64(in);
	sums = index_in_take_array(in, &sums_count, sizeof *sums);
	sorted->pieces = index_in_take_array(in, &sorted->pieces_count, sizeof *sorted->pieces);
	index_in_take(in, &sorted->total, sizeof sorted->total);
	if (in->bad || size / VAULT_PAGE > sums_count ||
	    sums_count != (size + VAULT_PAGE - 1) / VAULT_PAGE) {
		mem_free(sums);
		return false;
	}
	return vault_open(&sorted->vault, sorted->index->directory, vault_name, size, sums,
			  &ignored) &&
	       are_sound(sorted);
}

static struct index_sorted *open_kept(struct index *index)
{
	struct index_sorted *sorted;
	struct index_in in;
	struct err ignored = { 0 };
	bool good;

	if (!index_in_open(&in, index->directory, head_name, &ignored))
		return NULL;
	sorted = mem_alloc(1, sizeof *sorted);
	sorted->index = index;
	sorted->vault.fd = -1;
	good = take_head(sorted, &in);
	index_in_close(&in);
	if (good)
		return sorted;
	index_sorted_close(sorted);
	return NULL;
}

void index_sorted_close(struct index_sorted *sorted)
{
	if (!sorted)
		return;
	vault_close(&sorted->vault);
	MEM_FREE(sorted->pieces, sorted);
}

struct index_sorted_total index_sorted_total(const struct index_sorted *sorted)
{
	return sorted->total;
}

void index_sorted_forget(struct index *index)
{
	file_remove_in(index->directory, head_name);
}

struct reading {
	struct index_sorted *sorted;
	const uint32_t *of;
	bool (*take)(void *context, unsigned part, const struct index_sorted_run *run);
	void *context;
	atomic_size_t next; // piece
	atomic_bool over;
};

struct reader_part {
	struct reading *reading;
	unsigned part;
	uint8_t *bytes;
	size_t bytes_capacity;
	uint64_t none[PIECE_CELLS], counts[PIECE_CELLS], ns[PIECE_LIFETIMES];
	struct err err;
	bool failed;
};

static bool is_asked_for(const struct reading *reading, const struct piece *piece)
{
	for (uint32_t i = 0; i < piece->cells; i++)
		if (reading->of[piece->first + i] != UINT32_MAX)
			return true;
	return false;
}

static bool unpack(struct reader_part *part, const struct piece *piece)
{
	const uint8_t *at, *end;
	uint64_t count = 0;

	part->bytes =
		mem_grow(part->bytes, &part->bytes_capacity, (size_t)piece->size + PACK_SLACK, 1);
	memset(part->bytes + piece->size, 0, PACK_SLACK);
	if (!vault_read(&part->reading->sorted->vault, piece->at, part->bytes, piece->size,
			&part->err))
		return false;
	at = part->bytes;
	end = at + piece->size;
	if (!pack_take(&at, end, part->none, piece->cells) ||
	    !pack_take(&at, end, part->counts, piece->cells) ||
	    !pack_take(&at, end, part->ns, piece->count) || at != end)
		return false;
	for (uint32_t i = 0; i < piece->cells; i++) {
		if (part->counts[i] > piece->count - count)
			return false;
		count += part->counts[i];
	}
	return count == piece->count;
}

static bool take_piece(struct reader_part *part, const struct piece *piece)
{
	const struct reading *reading = part->reading;
	uint64_t *ns = part->ns;

	if (!index_go_on(reading->sorted->index, &part->err))
		return false;
	if (!unpack(part, piece))
		return part->err.kind != ERR_NONE ? false
						  : err_set(&part->err, ERR_FORMAT,
							    "what is kept of lifetimes is damaged");
	for (uint32_t i = 0; i < piece->cells; i++) {
		struct index_sorted_run run = { .none = part->none[i],
						.ns = ns,
						.count = (uint32_t)part->counts[i],
						.of = reading->of[piece->first + i] };

		if (run.of != UINT32_MAX) {
			for (uint32_t k = 1; k < run.count; k++)
				ns[k] += ns[k - 1];
			if (!reading->take(reading->context, part->part, &run))
				return false;
		}
		ns += run.count;
	}
	return true;
}

static void *read_pieces(void *context)
{
	struct reader_part *part = context;
	struct reading *reading = part->reading;
	const struct index_sorted *sorted = reading->sorted;
	size_t number;

	ASSERT(part->part < INDEX_AGES_PARTS);
	while (!atomic_load(&reading->over) &&
	       (number = atomic_fetch_add(&reading->next, 1)) < sorted->pieces_count) {
		if (!is_asked_for(reading, &sorted->pieces[number]) ||
		    take_piece(part, &sorted->pieces[number]))
			continue;
		part->failed = true;
		atomic_store(&reading->over, true);
	}
	return NULL;
}

bool index_sorted_each(struct index_sorted *sorted, const uint32_t *of,
		       bool (*take)(void *context, unsigned part,
				    const struct index_sorted_run *run),
		       void *context, struct err *err)
{
	struct reading reading = { .sorted = sorted, .of = of, .take = take, .context = context };
	struct reader_part *parts = mem_alloc(INDEX_AGES_PARTS, sizeof *parts);
	struct thread *thread = NULL;
	bool ok = true;

	for (unsigned i = 0; i < INDEX_AGES_PARTS; i++) {
		parts[i].reading = &reading;
		parts[i].part = i;
	}
	if (sorted->pieces_count > 1)
		thread = thread_start(read_pieces, &parts[1]);
	read_pieces(&parts[0]);
	thread_join(thread);
	for (unsigned i = 0; i < INDEX_AGES_PARTS; i++) {
		if (parts[i].err.kind != ERR_NONE)
			*err = parts[i].err;
		ok = ok && !parts[i].failed;
		mem_free(parts[i].bytes);
	}
	mem_free(parts);
	return ok;
}

// ---- making ----

// Lifetimes in bins: 64 of a power of two.
enum { BIN_LOG2 = 6, BINS = (64 - BIN_LOG2 + 1) << BIN_LOG2 };

// A cell that has shares of its own, and which one by the bin of a lifetime.
struct large {
	uint32_t first, shares; // of them
	uint32_t sample[INDEX_AGES_PARTS][BINS];
	uint8_t of[BINS];
};

struct making {
	struct index *index;
	unsigned ns_bits; // of a number: below its cell
	uint32_t *ended;  // by cell: how many calls ended
	// By cell; SHARES_MAX and more: a large one; UINT32_MAX: of cells that no call ended.
	uint32_t *share;
	uint32_t shares_count;
	struct large *larges;
	size_t larges_count, larges_capacity;
	struct spill shares[INDEX_AGES_PARTS][SHARES_MAX];
	uint64_t all;                     // that calls ended
	uint64_t given[INDEX_AGES_PARTS]; // lifetimes
	struct ranks ranks;               // of all, until `total` is known
	uint64_t lowest;                  // that these still look at
	struct index_sorted_total total;
	uint64_t *lists[PLACES], *scratch; // to sort in
	size_t room;                       // of each

	// What is written.
	struct vault vault;
	struct piece *pieces;
	size_t pieces_count, pieces_capacity;
	struct piece piece;                    // that is being filled
	uint32_t piece_cells, piece_lifetimes; // at most
	uint64_t none[PIECE_CELLS], counts[PIECE_CELLS], ns[PIECE_LIFETIMES];
	uint32_t cell, cell_all; // the cell that is being filled, and how many it had
	uint64_t last_ns;        // of it
	uint8_t *bytes;
	bool good; // all that was sorted could be put
};

static bool is_of_orphans(const struct cells *cells, uint32_t cell)
{
	return cells_site(cells, cells_cell(cells, cell).site)->orphans;
}

static uint32_t bin_of(uint64_t ns)
{
	unsigned log2;

	if (ns >> BIN_LOG2 == 0)
		return (uint32_t)ns;
	log2 = 63 - (unsigned)__builtin_clzll(ns);
	return (log2 - BIN_LOG2 + 1) << BIN_LOG2 |
	       ((uint32_t)(ns >> (log2 - BIN_LOG2)) & ((1u << BIN_LOG2) - 1));
}

static bool take_sample(void *context, unsigned part, const struct index_aged *aged)
{
	struct making *making = context;

	for (uint32_t i = 0; i < aged->count; i++)
		making->larges[aged->of[i] - SHARES_MAX].sample[part][bin_of(aged->ns[i])]++;
	return true;
}

// About as many of the sample to each share.
static void split_large(struct large *large)
{
	uint64_t all = 0, before = 0;

	ASSERT(large->shares > 0 && large->first + large->shares <= SHARES_MAX);
	for (uint32_t bin = 0; bin < BINS; bin++)
		all += large->sample[0][bin] + (uint64_t)large->sample[1][bin];
	for (uint32_t bin = 0; bin < BINS; bin++) {
		large->of[bin] = (uint8_t)(large->first + before * large->shares / (all + 1));
		before += large->sample[0][bin] + (uint64_t)large->sample[1][bin];
	}
}

// By a sample of some blocks: what it is wrong by makes shares larger or smaller, no more.
static bool split_larges(struct making *making, struct err *err)
{
	enum { SAMPLE_BLOCKS = 128 };
	uint32_t cells = making->index->cells.cells_count;
	uint32_t *of = mem_alloc_table(cells, sizeof *of);
	struct index_ages ages = {
		.index = making->index,
		.from = WINDOW_START,
		.to = making->index->steps_end,
		.every = (unsigned)(making->index->files.blocks_count / SAMPLE_BLOCKS) + 1,
		.of = of,
		.context = making,
		.take = take_sample
	};
	bool ok;

	for (uint32_t cell = 0; cell < cells; cell++)
		of[cell] = making->share[cell] < SHARES_MAX ? UINT32_MAX : making->share[cell];
	ok = index_ages(&ages, err);
	for (size_t i = 0; i < making->larges_count; i++)
		split_large(&making->larges[i]);
	mem_free(of);
	return ok;
}

// Each cell has one of some files, in the order of cells, so that each file has a quarter of
// the lifetimes that fit, or all have about as many. A cell that has more has as many files as that
// takes, for itself: at most so many more are begun early as there are such cells, twice.
static void number_shares(struct making *making)
{
	uint64_t wanted = 4 * making->all / making->room + 1, before = 0, each;

	each = making->all / (wanted < SHARES_WANTED ? wanted : SHARES_WANTED) + 1;
	for (uint32_t cell = 0; cell < making->index->cells.cells_count; cell++) {
		uint32_t ended = making->ended[cell];

		making->share[cell] = ended ? (uint32_t)(before / each) : UINT32_MAX;
		if (ended > each) {
			uint64_t first = (before + each - 1) / each, shares = ended / each + 1;

			making->share[cell] = SHARES_MAX + (uint32_t)making->larges_count;
			*MEM_ADD(making->larges, making->larges_count, making->larges_capacity) =
				(struct large){ .first = (uint32_t)first,
						.shares = (uint32_t)shares };
			before = (first + shares) * each;
		} else {
			before += ended;
		}
	}
	making->shares_count = (uint32_t)(before / each) + 1;
	ASSERT(making->shares_count <= SHARES_MAX);
}

static bool share_out(struct making *making, struct err *err)
{
	uint32_t cells = making->index->cells.cells_count;
	struct index_count *counts = mem_alloc_table(cells, sizeof *counts);
	bool ok =
		index_counts(making->index, making->index->steps_end, counts, sizeof *counts, err);

	making->ended = mem_alloc(cells, sizeof *making->ended);
	making->share = mem_alloc(cells, sizeof *making->share);
	for (uint32_t cell = 0; ok && cell < cells; cell++) {
		if (cell > 0 && !is_of_orphans(&making->index->cells, cell))
			making->ended[cell] = counts[cell].begun - counts[cell].alive;
		making->all += making->ended[cell];
	}
	mem_free(counts);
	if (!ok)
		return false;
	number_shares(making);
	return making->larges_count == 0 || split_larges(making, err);
}

static bool take_aged(void *context, unsigned part, const struct index_aged *aged)
{
	struct making *making = context;
	uint64_t some[INDEX_AGES_AT_ONCE];
	size_t count = 0;

	making->given[part] += aged->count;
	for (uint32_t i = 0; i < aged->count; i++) {
		uint64_t number = (uint64_t)aged->cell[i] << making->ns_bits | aged->ns[i];
		uint32_t share = aged->of[i];

		if (aged->ns[i] >> making->ns_bits)
			return false;
		if (aged->ns[i] == 0)
			continue;
		some[count++] = aged->ns[i];
		if (share >= SHARES_MAX)
			share = making->larges[share - SHARES_MAX].of[bin_of(aged->ns[i])];
		spill_put(&making->shares[part][share], &number, sizeof number);
	}
	return ranks_add_all(&making->ranks, part, 0, some, count);
}

static bool gather(struct making *making, struct err *err)
{
	struct index_ages ages = { .index = making->index,
				   .from = WINDOW_START,
				   .to = making->index->steps_end,
				   .of = making->share,
				   .context = making,
				   .take = take_aged };
	bool ok = true;

	ranks_begin(&making->ranks, &making->all, 1, making->index->duration_ns,
		    index_room(making->index, MEMORY_SHARE, 2 * sizeof(uint64_t)));
	ranks_round(&making->ranks);
	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++)
		for (uint32_t i = 0; ok && i < making->shares_count; i++)
			ok = spill_open(&making->shares[part][i], making->index->directory,
					SHARE_BUFFER, err);
	ok = ok && index_ages(&ages, err);
	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++)
		for (uint32_t i = 0; ok && i < making->shares_count; i++) {
			spill_turn(&making->shares[part][i]);
			ok = spill_ok(&making->shares[part][i], err);
		}
	return ok && making->all == making->given[0] + making->given[1];
}

static void end_piece(struct making *making)
{
	struct piece *piece = &making->piece;
	uint8_t *at = making->bytes;

	at = pack_put(at, making->none, piece->cells);
	at = pack_put(at, making->counts, piece->cells);
	at = pack_put(at, making->ns, piece->count);
	piece->at = making->vault.size;
	piece->size = (uint32_t)(at - making->bytes);
	vault_append(&making->vault, making->bytes, piece->size);
	*MEM_ADD(making->pieces, making->pieces_count, making->pieces_capacity) = *piece;
	*piece = (struct piece){ 0 };
	making->last_ns = 0;
	memset(making->counts, 0, sizeof making->counts);
}

// What it has not was 0.
static void end_cell(struct making *making)
{
	struct piece *piece = &making->piece;

	ASSERT(piece->cells < making->piece_cells);
	making->none[piece->cells++] = making->ended[making->cell] - making->cell_all;
	making->cell++;
	making->cell_all = 0;
	making->last_ns = 0;
	if (piece->cells == making->piece_cells) {
		end_piece(making);
		making->piece.first = making->cell;
	}
}

// Numbers come in rising order. False: a cell has more than were counted.
static bool put_number(struct making *making, uint64_t number)
{
	uint64_t ns = number & ((UINT64_C(1) << making->ns_bits) - 1);
	struct piece *piece = &making->piece;

	while (making->cell < number >> making->ns_bits)
		end_cell(making);
	if (making->cell_all++ >= making->ended[making->cell])
		return false;
	making->ns[piece->count++] = ns - making->last_ns;
	making->counts[piece->cells]++;
	making->last_ns = ns;
	if (piece->count == making->piece_lifetimes) {
		making->none[piece->cells++] = 0;
		end_piece(making);
		piece->first = making->cell;
	}
	return true;
}

// What a file has is given to `each`, some at a time.
static bool each_some(const struct spill *spill,
		      bool (*each)(void *context, const uint64_t *numbers, size_t count),
		      void *context)
{
	enum { AT_ONCE = 1 << 11 };
	uint64_t numbers[AT_ONCE];

	for (uint64_t at = 0; at < spill->size; at += sizeof numbers) {
		uint64_t left = spill->size - at;
		size_t size = left < sizeof numbers ? (size_t)left : sizeof numbers;

		if (!spill_copy(spill, at, numbers, size) ||
		    !each(context, numbers, size / sizeof *numbers))
			return false;
	}
	return true;
}

// Those numbers of a file that are in a range are given to `each`.
struct in_range {
	uint64_t low, high;
	void (*each)(void *context, uint64_t number);
	void *context;
};

static bool choose(void *context, const uint64_t *numbers, size_t count)
{
	const struct in_range *range = context;

	for (size_t i = 0; i < count; i++)
		if (numbers[i] >= range->low && numbers[i] <= range->high)
			range->each(range->context, numbers[i]);
	return true;
}

static bool each_number(struct making *making, uint32_t share, uint64_t low, uint64_t high,
			void (*each)(void *context, uint64_t number), void *context)
{
	struct in_range range = { low, high, each, context };
	bool ok = true;

	for (unsigned part = 0; ok && part < INDEX_AGES_PARTS; part++)
		ok = each_some(&making->shares[part][share], choose, &range);
	return ok;
}

// What one thread has gathered is ranked by one, too.
struct ranking {
	struct making *making;
	unsigned part;
	bool ok;
};

static bool rank_some(void *context, const uint64_t *numbers, size_t count)
{
	const struct ranking *ranking = context;
	struct making *making = ranking->making;
	uint64_t mask = (UINT64_C(1) << making->ns_bits) - 1;
	bool ok = true;

	for (size_t i = 0; ok && i < count; i++)
		ok = (numbers[i] & mask) < making->lowest ||
		     ranks_add(&making->ranks, ranking->part, 0, numbers[i] & mask);
	return ok;
}

static void *rank_part(void *context)
{
	struct ranking *ranking = context;
	const struct making *making = ranking->making;

	ranking->ok = true;
	for (uint32_t i = 0; ranking->ok && i < making->shares_count; i++)
		ranking->ok = each_some(&making->shares[ranking->part][i], rank_some, ranking);
	return NULL;
}

static bool rank_all(struct making *making)
{
	struct ranking first = { .making = making }, second = { .making = making, .part = 1 };
	struct thread *thread = thread_start(rank_part, &second);

	rank_part(&first);
	if (!thread)
		rank_part(&second);
	thread_join(thread);
	return first.ok && second.ok;
}

// All but what is 0 were counted while they were gathered; what is still looked for then is in one
// of the counts.
static bool find_total(struct making *making)
{
	struct ranks *ranks = &making->ranks;
	uint64_t none = making->all;
	bool ok;

	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++)
		for (uint32_t i = 0; i < making->shares_count; i++)
			none -= making->shares[part][i].size / sizeof(uint64_t);
	ok = ranks_add_same(ranks, 0, 0, 0, none);
	while (ok && !ranks_close(ranks)) {
		ranks_round(ranks);
		making->lowest = ranks_lowest(ranks);
		ok = ranks_add_same(ranks, 0, 0, 0, none) && rank_all(making);
	}
	making->total = (struct index_sorted_total){ .count = ranks_count(ranks, 0),
						     .median_ns = ranks_median(ranks, 0),
						     .high_ns = ranks_high(ranks, 0) };
	ranks_end(ranks);
	return ok;
}

struct gathered {
	uint64_t *list;
	size_t count;
};

static void add_number(void *context, uint64_t number)
{
	struct gathered *gathered = context;

	gathered->list[gathered->count++] = number;
}

// `count` of a file's numbers are in the range, and fit.
static bool sort_range(struct making *making, uint32_t share, uint64_t low, uint64_t high,
		       uint64_t count, uint64_t *list)
{
	struct gathered gathered = { .list = list };

	ASSERT(count <= making->room);
	if (!each_number(making, share, low, high, add_number, &gathered) ||
	    gathered.count != count)
		return false;
	radix_sort(list, making->scratch, gathered.count, 0);
	return true;
}

static bool put_list(struct making *making, const uint64_t *list, uint64_t count)
{
	bool ok = true;

	for (uint64_t i = 0; ok && i < count; i++)
		ok = put_number(making, list[i]);
	return ok;
}

static bool write_sorted(struct making *making, uint32_t share, uint64_t low, uint64_t high,
			 uint64_t count)
{
	uint64_t *list = making->lists[0];

	return sort_range(making, share, low, high, count, list) && put_list(making, list, count);
}

// How many numbers have each byte behind what all of the range have alike.
enum { SPAN_LOG2 = 8, SPANS = 1 << SPAN_LOG2 };
struct spans {
	uint64_t counts[SPANS];
	unsigned shift;
};

static void count_number(void *context, uint64_t number)
{
	struct spans *spans = context;

	spans->counts[number >> spans->shift & (SPANS - 1)]++;
}

// Numbers from `low` on, 2^log2 different ones, that do not fit: by their next byte, as many of its
// values at a time as do, and where those of one do not, by the byte after it.
static bool write_span(struct making *making, uint32_t share, uint64_t low, unsigned log2,
		       uint64_t count)
{
	struct spans spans = { 0 };
	uint64_t high;
	unsigned end;
	bool ok = true;

	if (log2 == 0) {
		while (ok && count-- > 0)
			ok = put_number(making, low);
		return ok;
	}
	spans.shift = log2 - SPAN_LOG2;
	high = low + ((UINT64_C(2) << (log2 - 1)) - 1);
	if (!each_number(making, share, low, high, count_number, &spans))
		return false;
	for (unsigned i = 0; ok && i < SPANS; i = end) {
		uint64_t sum = spans.counts[i], from = low + ((uint64_t)i << spans.shift);

		for (end = i + 1; end < SPANS && sum + spans.counts[end] <= making->room; end++)
			sum += spans.counts[end];
		high = from + ((uint64_t)(end - i) << spans.shift) - 1;
		if (sum > making->room)
			ok = write_span(making, share, from, spans.shift, sum);
		else if (sum > 0)
			ok = write_sorted(making, share, from, high, sum);
	}
	return ok;
}

static uint64_t share_size(const struct making *making, uint64_t share)
{
	uint64_t count = 0;

	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++)
		count += making->shares[part][share].size / sizeof(uint64_t);
	return count;
}

// A file that fits is sorted in a thread of its own, while the one before is packed and written.
static bool sort_share(void *context, uint64_t share, unsigned place, struct err *err)
{
	struct making *making = context;
	uint64_t *list = making->lists[place];
	size_t count = 0;

	if (!index_go_on(making->index, err))
		return false;
	if (share_size(making, share) > making->room)
		return true;
	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++) {
		const struct spill *spill = &making->shares[part][share];

		if (!spill_copy(spill, 0, list + count, spill->size))
			return false;
		count += spill->size / sizeof *list;
	}
	radix_sort(list, making->scratch, count, 0);
	return true;
}

static bool write_share(void *context, uint64_t share, unsigned place)
{
	struct making *making = context;
	uint64_t count = share_size(making, share);

	making->good = count > making->room ? write_span(making, (uint32_t)share, 0, 64, count)
					    : put_list(making, making->lists[place], count);
	return making->good;
}

// Of one that does not fit the parts take the first list: while it is written nothing is sorted
// ahead.
static bool write_shares(struct making *making, struct err *err)
{
	struct relay relay = { .make = sort_share,
			       .take = write_share,
			       .make_context = making,
			       .take_context = making,
			       .wake = 1 };
	bool ok = making->good = true;

	for (uint32_t i = 0, end; ok && i < making->shares_count; i = end) {
		bool fits = share_size(making, i) <= making->room;

		for (end = i + 1; end < making->shares_count; end++)
			if ((share_size(making, end) <= making->room) != fits)
				break;
		relay.places = fits ? PLACES : 1;
		ok = relay_run(&relay, i, end, err) && making->good;
	}
	return ok;
}

static bool write_head(struct making *making, struct err *err)
{
	struct index_out *out = index_out_new(making->index->directory, head_name);
	struct stamp stamp = stamp_of(making->index);

	index_out_put(out, &stamp, sizeof stamp);
	index_out_put_u64(out, making->vault.size);
	index_out_put_array(out, making->vault.sums, making->vault.sums_count,
			    sizeof *making->vault.sums);
	index_out_put_array(out, making->pieces, making->pieces_count, sizeof *making->pieces);
	index_out_put(out, &making->total, sizeof making->total);
	return index_out_end(out, err);
}

static bool write_all(struct making *making, struct err *err)
{
	bool ok = vault_create(&making->vault, making->index->directory, vault_name, err);

	index_tables_empty(making->index->tables);
	making->scratch = mem_alloc_table((PLACES + 1) * making->room, sizeof *making->scratch);
	for (unsigned i = 0; i < PLACES; i++)
		making->lists[i] = making->scratch + (i + 1) * making->room;
	making->bytes = mem_resize(
		NULL, 2 * pack_bytes_max(PIECE_CELLS) + pack_bytes_max(PIECE_LIFETIMES), 1);
	ok = ok && write_shares(making, err);
	while (ok && making->cell < making->index->cells.cells_count)
		end_cell(making);
	if (ok && making->piece.cells > 0)
		end_piece(making);
	return ok && vault_finish(&making->vault, err) && write_head(making, err);
}

// Of a small index, which tests have, pieces are small.
static uint32_t piece_limit(const struct index *index, uint32_t most)
{
	uint32_t block = 1u << index->shape.block_log2;

	return block >= 2 * PIECE_LIFETIMES ? most : block / 8;
}

// One at a time in a process; others go without.
static bool make(struct index *index, struct err *err)
{
	static atomic_flag busy = ATOMIC_FLAG_INIT;
	unsigned ns_bits = pack_width(index->duration_ns);
	struct making *making;
	bool ok;

	if (ns_bits == 0 || ns_bits + pack_width(index->cells.cells_count) > 64 ||
	    atomic_flag_test_and_set(&busy))
		return false;
	making = mem_alloc(1, sizeof *making);
	making->index = index;
	making->vault.fd = -1;
	making->ns_bits = ns_bits;
	making->piece_cells = piece_limit(index, PIECE_CELLS);
	making->piece_lifetimes = piece_limit(index, PIECE_LIFETIMES);
	making->room = index_room(index, MEMORY_SHARE, (PLACES + 1) * sizeof(uint64_t));
	ok = share_out(making, err) && gather(making, err) && find_total(making) &&
	     write_all(making, err);
	for (unsigned part = 0; part < INDEX_AGES_PARTS; part++)
		for (uint32_t i = 0; i < making->shares_count; i++)
			spill_close(&making->shares[part][i]);
	vault_close(&making->vault);
	ranks_end(&making->ranks);
	if (!ok)
		file_remove_in(index->directory, vault_name);
	atomic_store(&index->sorted_never, !ok && err->kind != ERR_STOPPED);
	MEM_FREE(making->ended, making->share, making->larges, making->scratch, making->bytes,
		 making->pieces, making);
	atomic_flag_clear(&busy);
	return ok;
}

struct index_sorted *index_sorted_open(struct index *index, const struct window_query *query,
				       struct err *err)
{
	enum { BLOCKS_MIN = 32 };
	struct index_sorted *sorted;
	struct err why = { 0 };

	if (query->from > WINDOW_START || query->to < index->steps_end ||
	    index->files.blocks_count < BLOCKS_MIN)
		return NULL;
	sorted = open_kept(index);
	if (sorted || atomic_load(&index->sorted_never))
		return sorted;
	if (make(index, &why))
		return open_kept(index);
	if (why.kind == ERR_STOPPED)
		*err = why;
	return NULL;
}

// ---- all of them ----

struct living {
	struct index *index;
	struct index_groups groups; // all were asked for
	struct index_count *counts;
	void (*each)(void *context, unsigned part, const struct window_lived *lived);
	void *context;
};

static struct window_lived lived_of(struct living *living, uint32_t cell)
{
	return (struct window_lived){ .group = index_group(&living->groups, cell),
				      .size = cells_cell(&living->index->cells, cell).size };
}

static bool tell_run(void *context, unsigned part, const struct index_sorted_run *run)
{
	struct living *living = context;
	struct window_lived lived = lived_of(living, run->of);

	lived.none = run->none;
	lived.ns = run->ns;
	lived.count = run->count;
	living->each(living->context, part, &lived);
	return true;
}

// What nothing ended comes from the counts, the rest from what is kept.
static bool tell_all(struct living *living, struct index_sorted *sorted, struct err *err)
{
	uint32_t cells = living->index->cells.cells_count;
	uint32_t *of = mem_alloc_table(cells, sizeof *of);
	bool ok = index_counts(living->index, living->index->steps_end, living->counts,
			       sizeof *living->counts, err);

	of[0] = UINT32_MAX;
	for (uint32_t cell = 1; ok && cell < cells; cell++) {
		struct window_lived lived = lived_of(living, cell);
		bool wanted = lived.group != WINDOW_SKIP &&
			      !is_of_orphans(&living->index->cells, cell);

		of[cell] = wanted ? cell : UINT32_MAX;
		lived.never = living->counts[cell].alive;
		if (wanted && lived.never > 0)
			living->each(living->context, 0, &lived);
	}
	ok = ok && index_sorted_each(sorted, of, tell_run, living, err);
	mem_free(of);
	return ok;
}

bool index_lived(struct index *index, const struct window_query *query,
		 void (*each)(void *context, unsigned part, const struct window_lived *lived),
		 void *context, bool *known, struct err *err)
{
	struct index_sorted *sorted = index_sorted_open(index, query, err);
	struct living living = { .index = index, .each = each, .context = context };

	*known = false;
	if (!sorted)
		return err->kind == ERR_NONE;
	index_groups_init(&living.groups, index, query);
	living.counts = mem_alloc_table(index->cells.cells_count, sizeof *living.counts);
	*known = tell_all(&living, sorted, err);
	index_groups_fini(&living.groups);
	mem_free(living.counts);
	index_sorted_close(sorted);
	if (*known || err->kind == ERR_STOPPED)
		return *known;
	index_sorted_forget(index);
	*err = (struct err){ 0 };
	return true;
}
