// The steps of a window, one by one, and the ends of processes among them.
//
// A step in the index says which cell it is about and whether something ends; its group is looked
// up in a table by cell that was made once (index_scan_prepare). The end of a process is a step
// that does nothing else: what the process still had is not in it, and is found here from the
// counts at the very end of the index, where a block that nothing ended is still counted as alive.
// For example, process 7 ends at step 500 with three blocks of group 0 (96 bytes together) and one
// of group 2 (8 bytes). The visitor sees, before step 501:
//
//     step 500, group 0, exit, amount { 3, 96 }, last = false
//     step 500, group 2, exit, amount { 1,  8 }, last = true
//
// so that a level between the two, which never was, is not taken for one.
#include "engine/index/index_scan.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/sort.h"
#include "engine/index/index_lists.h"
#include "engine/index/index_tables.h"
#include "os/relay.h"

#include <stdlib.h>

// ---- what exits take away ----

// The level of a group drops at the end of a process.
struct drop {
	uint64_t step, time_ns;
	struct heap_amount amount;
	uint32_t group;
	bool last;
};

struct drops {
	struct drop *list;
	size_t count, capacity;
};

SORT_ORDER(compare_drops, struct drop, SORT_RISES(step), SORT_RISES(group))

// Counts at the end are read only where a process ends in the window.
static bool any_exit(const struct index *index, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < index->exits_count; i++)
		if (index->exits[i].step >= from && index->exits[i].step < to)
			return true;
	return false;
}

// `all` is the scan without groups: all but frees of what is not known are group 0.
static uint32_t group_of_cell(const struct index_scan *scan, uint32_t cell)
{
	const struct cells *cells = &scan->index->cells;

	ASSERT(scan->all || scan->of_cell);
	if (!scan->all)
		return scan->of_cell[cell];
	return cell == 0 || cells_site(cells, cells_cell(cells, cell).site)->orphans ? WINDOW_SKIP
										     : 0;
}

// With single_exits each cell is a drop of its own, else all of a process and group are one.
static void add_drop(struct drops *drops, struct map *known, const struct index_scan *scan,
		     uint32_t cell, uint64_t count)
{
	const struct index *index = scan->index;
	struct cells_cell entry = cells_cell(&index->cells, cell);
	const struct index_exit *exit =
		&index->exits[cells_site(&index->cells, entry.site)->process];
	uint32_t group = group_of_cell(scan, cell);
	uint64_t fresh = drops->count, *at = &fresh;
	bool added = true;

	ASSERT(count > 0);
	if (group == WINDOW_SKIP)
		return;
	if (!scan->single_exits) {
		at = map_put(known,
			     (uint64_t)cells_site(&index->cells, entry.site)->process << 32 | group,
			     &added);
		if (added)
			*at = drops->count;
	}
	if (added) {
		*MEM_ADD(drops->list, drops->count, drops->capacity) = (struct drop){
			.step = exit->step, .time_ns = exit->time_ns, .group = group
		};
	}
	drops->list[*at].amount.count += count;
	drops->list[*at].amount.bytes += count * entry.size;
}

// What is left at the very end is what processes had when they ended.
static bool find_drops(const struct index_scan *scan, struct drops *drops, struct err *err)
{
	struct index *index = scan->index;
	struct index_count *counts;
	struct map known = { 0 };
	bool ok;

	*drops = (struct drops){ 0 };
	if (!any_exit(index, scan->from, scan->to))
		return true;
	counts = mem_alloc(index->cells.cells_count, sizeof *counts);
	ok = index_counts(index, index->steps_end, counts, sizeof *counts, err);
	for (uint32_t id = 1; ok && id < index->cells.cells_count; id++) {
		const struct cells_site *site =
			cells_site(&index->cells, cells_cell(&index->cells, id).site);

		if (counts[id].alive && !site->orphans && site->process < index->exits_count &&
		    index->exits[site->process].step >= scan->from &&
		    index->exits[site->process].step < scan->to)
			add_drop(drops, &known, scan, id, counts[id].alive);
	}
	map_fini(&known);
	mem_free(counts);
	if (drops->count)
		// Two processes may end at one step only in a damaged trace; `last` is by step,
		// since the visitor looks at a level after a step is over.
		qsort(drops->list, drops->count, sizeof *drops->list, compare_drops);
	for (size_t i = 0; i < drops->count; i++)
		drops->list[i].last = i + 1 == drops->count ||
				      drops->list[i + 1].step != drops->list[i].step;
	return ok;
}

static bool tell_drop(const struct index_scan *scan, const struct drop *drop)
{
	const struct index_scan_step told = {
		.step = drop->step,
		.time_ns = drop->time_ns,
		.amount = drop->amount,
		.group = drop->group,
		.exit = true,
		.last = drop->last,
	};

	return scan->visit(scan->context, &told);
}

// ---- steps ----

static bool is_drop_due(const struct drops *drops, size_t drop, uint64_t step)
{
	return drop < drops->count && drops->list[drop].step <= step;
}

// Of the drops that come before a step, or at it.
static bool tell_drops(const struct index_scan *scan, const struct drops *drops, size_t *drop,
		       uint64_t step)
{
	bool more = true;

	while (more && is_drop_due(drops, *drop, step))
		more = tell_drop(scan, &drops->list[(*drop)++]);
	return more;
}

// The group of a cell, and its size, will be asked for soon: begin to fetch them from memory.
static void expect_cell(const struct index_scan *scan, uint32_t cell)
{
	if (scan->all)
		cells_expect(&scan->index->cells, cell);
	else
		index_scan_expect(scan, cell);
}

// A time at a time, and up to the next drop. What is worth fetching ahead does not fit into the
// caches.
static bool tell_runs(const struct index_scan *scan, const struct index_block *block, uint32_t i,
		      uint32_t end, const struct drops *drops, size_t *drop)
{
	enum { CELLS_MANY = 1 << 14 };
	const struct index_run *run = block->runs, *runs_end = run + block->runs_count;
	uint32_t ahead = scan->index->cells.cells_count > CELLS_MANY && end > INDEX_SCAN_AHEAD
				 ? end - INDEX_SCAN_AHEAD
				 : 0;

	ASSERT(!scan->all);
	while (i < end) {
		struct index_scan_run told = { .step = block->first + i, .ops = block->ops + i };
		uint32_t until = end;

		while (run + 1 < runs_end && run[1].at <= i)
			run++;
		if (run + 1 < runs_end && run[1].at < end)
			until = run[1].at;
		if (!tell_drops(scan, drops, drop, block->first + i))
			return false;
		if (is_drop_due(drops, *drop, block->first + until - 1))
			until = (uint32_t)(drops->list[*drop].step - block->first);
		ASSERT(until > i);
		told.time_ns = run->value;
		told.count = until - i;
		told.ahead = ahead > i ? ahead - i : 0;
		scan->visit_run(scan->context, scan, &told);
		i = until;
	}
	return true;
}

// Tell of the steps of a block, and of drops that lie between them. Groups are fetched 32 steps
// ahead, as the table by cell is larger than the caches.
static bool tell_block(const struct index_scan *scan, const struct index_block *block,
		       const struct drops *drops, size_t *drop)
{
	enum { AHEAD = INDEX_SCAN_AHEAD };
	const struct cells *cells = &scan->index->cells;
	uint32_t i = scan->from > block->first ? (uint32_t)(scan->from - block->first) : 0;
	uint32_t end = scan->to - block->first < block->count ? (uint32_t)(scan->to - block->first)
							      : block->count;
	const struct index_run *run = block->runs, *runs_end = run + block->runs_count;
	struct index_scan_step told = { .last = true };
	bool more = true;

	if (scan->visit_run)
		return tell_runs(scan, block, i, end, drops, drop);
	for (; i < end && more; i++) {
		uint32_t cell = block->ops[i] >> 1;

		if (i + AHEAD < end)
			expect_cell(scan, block->ops[i + AHEAD] >> 1);
		told.group = group_of_cell(scan, cell);
		if (told.group == WINDOW_SKIP && !is_drop_due(drops, *drop, block->first + i))
			continue;
		while (run + 1 < runs_end && run[1].at <= i)
			run++;
		more = tell_drops(scan, drops, drop, block->first + i);
		if (told.group == WINDOW_SKIP || !more)
			continue;
		told.step = block->first + i;
		told.up = !(block->ops[i] & 1);
		told.time_ns = run->value;
		told.amount = (struct heap_amount){ 1, cells_cell(cells, cell).size };
		more = scan->visit(scan->context, &told);
	}
	return more;
}

// A group as the scan has it: WINDOW_SKIP where it is not wanted, and for frees of nothing
// known.
static uint32_t wanted_group(const struct index_scan *scan, uint32_t group, uint32_t site)
{
	if (group >= scan->groups_count || (scan->wanted && !scan->wanted[group]) ||
	    cells_site(&scan->index->cells, site)->orphans)
		return WINDOW_SKIP;
	return group;
}

// Sites in the order of memory first, where sizes are not looked at: cells have theirs anywhere.
static void prepare_by_site(struct index_scan *scan)
{
	const struct cells *cells = &scan->index->cells;
	uint32_t *of_site = mem_resize(NULL, cells->sites_count, sizeof *of_site);

	of_site[0] = WINDOW_SKIP;
	for (uint32_t site = 1; site < cells->sites_count; site++) {
		of_site[site] = wanted_group(scan, index_group_of_site(scan->groups, site), site);
		scan->found |= of_site[site] != WINDOW_SKIP;
	}
	for (uint32_t id = 1; id < cells->cells_count; id++)
		scan->of_cell[id] = of_site[cells_cell(cells, id).site];
	mem_free(of_site);
}

// A size is asked for once, and again where another one had its place in between.
static void prepare_by_size(struct index_scan *scan)
{
	enum { KNOWN = 1 << 10 };
	const struct cells *cells = &scan->index->cells;
	const struct window_query *query = scan->groups->query;
	struct {
		uint64_t size;
		uint32_t group;
	} *known = mem_alloc(KNOWN, sizeof *known), *one;

	ASSERT(query->by_size && !query->sizes_count);
	for (uint32_t i = 0; i < KNOWN; i++)
		known[i].group = INDEX_GROUP_UNKNOWN;
	for (uint32_t id = 1; id < cells->cells_count; id++) {
		struct cells_cell cell = cells_cell(cells, id);

		scan->of_cell[id] = WINDOW_SKIP;
		if (cells_of_orphans(cells, cell.site))
			continue;
		one = &known[cell.size % KNOWN];
		if (one->group == INDEX_GROUP_UNKNOWN || one->size != cell.size) {
			one->size = cell.size;
			one->group = index_group_ask(scan->index, query, cell.site, cell.size);
			one->group = wanted_group(scan, one->group, cell.site);
		}
		scan->found |= one->group != WINDOW_SKIP;
		scan->of_cell[id] = one->group;
	}
	mem_free(known);
}

enum { AHEAD = 16 };

// Once for each cell, in place of questions for each step.
void index_scan_prepare(struct index_scan *scan)
{
	const struct cells *cells = &scan->index->cells;

	index_tables_empty(scan->index->tables);
	scan->of_cell = mem_alloc_table(cells->cells_count, sizeof *scan->of_cell);
	scan->of_cell[0] = WINDOW_SKIP;
	scan->found = false;
	if (!scan->groups->query->by_size) {
		prepare_by_site(scan);
		return;
	}
	if (scan->groups->query->by_size_alone) {
		prepare_by_size(scan);
		return;
	}
	for (uint32_t id = 1; id < cells->cells_count; id++) {
		uint32_t group;

		if (id + AHEAD < cells->cells_count)
			mem_expect(cells_site(cells, cells_cell(cells, id + AHEAD).site));
		group = index_group(scan->groups, id);
		if (group != WINDOW_SKIP)
			group = wanted_group(scan, group, cells_cell(cells, id).site);
		scan->found |= group != WINDOW_SKIP;
		scan->of_cell[id] = group;
	}
}

void index_scan_fini(struct index_scan *scan)
{
	mem_free(scan->of_cell);
	scan->of_cell = NULL;
}

// A block that the caller keeps from scan to scan is not decoded again.
static bool load_block(struct index_scan *scan, uint64_t number, struct index_block *block,
		       struct err *err)
{
	if (scan->kept && scan->kept_number == number + 1)
		return true;
	scan->kept_number = 0;
	if (!index_block_load(scan->index, number, INDEX_TIMES, block, err))
		return false;
	scan->kept_number = number + 1;
	return true;
}

// One of few blocks is a part of something else.
static void tell_progress(const struct index_scan *scan, uint64_t step)
{
	ASSERT(step >> scan->index->shape.block_log2 << scan->index->shape.block_log2 == step);
	if ((scan->to - scan->from) >> scan->index->shape.block_log2 < 4)
		return;
	progress_tell("counting", step > scan->from ? step - scan->from : 0, scan->to - scan->from);
}

static uint64_t first_block(const struct index_scan *scan)
{
	return scan->from >> scan->index->shape.block_log2;
}

// After the last one that has a step of the scan.
static uint64_t end_block(const struct index_scan *scan)
{
	return scan->from == scan->to ? first_block(scan)
				      : ((scan->to - 1) >> scan->index->shape.block_log2) + 1;
}

// Those of the scan from block `first` on and before block `end`. A thread that decodes ahead would
// take as much processor time more as it saves by the clock, where two processors share a core.
static bool by_blocks(struct index_scan *scan, uint64_t first, uint64_t end,
		      const struct drops *drops, size_t *drop, bool *more, struct err *err)
{
	struct index_block own = { 0 }, *block = scan->kept ? scan->kept : &own;
	bool ok = true;

	for (uint64_t number = first; ok && *more && number < end; number++) {
		tell_progress(scan, number << scan->index->shape.block_log2);
		ok = load_block(scan, number, block, err);
		if (ok)
			*more = tell_block(scan, block, drops, drop);
	}
	index_block_fini(&own);
	return ok;
}

// ---- by postings ----

// The allocations of one site that are of one size, or of any (`by_size` of the query).
struct kind {
	uint64_t size;
	uint32_t number, group; // of the site
};

struct kinds {
	struct kind *list; // by number, then by size
	size_t count;
	uint32_t *numbers; // by site, from 1; 0: no group has any of it
	uint32_t *starts;  // by number: its first kind
	uint32_t sites;
};

SORT_ORDER(compare_kinds, struct kind, SORT_RISES(number), SORT_RISES(size))

// False: all that there is is in a group. Sites get numbers from 1 here: 0 is a site of which no
// group has any.
static bool find_kinds(const struct index_scan *scan, struct kinds *kinds)
{
	const struct cells *cells = &scan->index->cells;
	bool by_size = scan->groups->query->by_size;
	size_t capacity = 0, left_out = 0;

	kinds->numbers = mem_alloc(cells->sites_count, sizeof *kinds->numbers);
	for (uint32_t id = 1; id < cells->cells_count; id++)
		left_out += scan->of_cell[id] == WINDOW_SKIP;
	if (left_out == 0)
		return false;
	for (uint32_t id = 1; id < cells->cells_count; id++) {
		struct cells_cell cell = cells_cell(cells, id);
		uint32_t *number = &kinds->numbers[cell.site];

		if (scan->of_cell[id] == WINDOW_SKIP || (*number && !by_size))
			continue;
		if (!*number)
			*number = ++kinds->sites;
		*MEM_ADD(kinds->list, kinds->count, capacity) =
			(struct kind){ cell.size, *number, scan->of_cell[id] };
	}
	if (kinds->count > 1)
		qsort(kinds->list, kinds->count, sizeof *kinds->list, compare_kinds);
	kinds->starts = mem_alloc(kinds->sites + (size_t)2, sizeof *kinds->starts);
	for (size_t i = kinds->count; i-- > 0;)
		kinds->starts[kinds->list[i].number] = (uint32_t)i;
	kinds->starts[kinds->sites + 1] = (uint32_t)kinds->count;
	return true;
}

// By site, or where groups differ by size too, by the size in the list of its kinds.
static uint32_t group_of(const struct kinds *kinds, const struct index_list *list, bool by_size)
{
	uint32_t low = kinds->starts[list->number], high = kinds->starts[list->number + 1];

	ASSERT(list->number > 0 && list->number <= kinds->sites);
	if (!by_size)
		return kinds->list[low].group;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (kinds->list[middle].size == list->size)
			return kinds->list[middle].group;
		if (kinds->list[middle].size < list->size)
			low = middle + 1;
		else
			high = middle;
	}
	return WINDOW_SKIP;
}

// Whether postings say it in fewer words, and are there. Each posting is read, put in its slot and
// taken from there.
static bool are_fewer(const struct index_scan *scan, const struct kinds *kinds, bool *fewer,
		      struct err *err)
{
	enum { FEWER = 2 }; // what a posting costs, in steps of a block
	uint64_t postings;
	bool known;

	ASSERT(scan->from < scan->to);
	if (!index_lists_count(scan->index, kinds->numbers, scan->from, scan->to, &postings, &known,
			       err))
		return false;
	*fewer = known && postings < (scan->to - scan->from) / FEWER;
	return true;
}

// The steps of one block, where they belong.
struct slots {
	struct index_scan_step *list;
	uint64_t *taken; // a bit for each
	size_t words;
};

// Bring the lists up to the end of a block. Lists of several sites are each in the order of steps:
// a slot for each step of the block brings them together without a merge.
static bool fill_slots(const struct index_scan *scan, const struct kinds *kinds,
		       struct index_lists *lists, uint64_t first, uint64_t end, struct slots *slots,
		       struct err *err)
{
	bool by_size = scan->groups->query->by_size;

	ASSERT(first <= end);
	for (size_t i = 0; i < lists->count; i++) {
		struct index_list *list = &lists->lists[i];

		for (; list->left > 0 && list->step < end;) {
			struct index_scan_step step = { .step = list->step,
							.amount = { 1, list->size },
							.up = !list->ends,
							.last = true };
			uint64_t at = list->step - first;

			if (list->step >= scan->from && list->step < scan->to)
				step.group = group_of(kinds, list, by_size);
			else
				step.group = WINDOW_SKIP;
			if (step.group != WINDOW_SKIP) {
				slots->list[at] = step;
				slots->taken[at / 64] |= UINT64_C(1) << at % 64;
			}
			if (!index_list_next(list, err))
				return false;
		}
	}
	return true;
}

static bool tell_slots(const struct index_scan *scan, struct slots *slots,
		       struct index_clock *clock, const struct drops *drops, size_t *drop,
		       bool *more, struct err *err)
{
	for (size_t word = 0; *more && word < slots->words; word++) {
		// Each turn takes the lowest bit: 0b10100 is slots 2 and 4, in the order of their
		// steps. A step of several lists is in its slot once, as no two sites have one
		// step.
		for (uint64_t bits = slots->taken[word]; *more && bits; bits &= bits - 1) {
			struct index_scan_step *step =
				&slots->list[word * 64 + (unsigned)__builtin_ctzll(bits)];

			if (!index_clock_time(clock, scan->index, step->step, &step->time_ns, err))
				return false;
			*more = tell_drops(scan, drops, drop, step->step) &&
				scan->visit(scan->context, step);
		}
		slots->taken[word] = 0;
	}
	return true;
}

// While the lists of a chunk are gone through, those of the next are read.
enum { CHUNKS = 3, LISTED_MANY = 1 << 14 };
struct listing {
	struct index_scan *scan;
	const struct kinds *kinds;
	const struct drops *drops;
	size_t drop;
	struct index_lists lists[CHUNKS];
	struct slots slots;
	struct index_clock clock;
	bool more, ok;
	struct err *err;
};

static bool read_lists(void *context, uint64_t chunk, unsigned place, struct err *err)
{
	struct listing *listing = context;

	return index_lists_load(&listing->lists[place], listing->scan->index,
				listing->kinds->numbers, chunk, err);
}

static void tell_listed(struct listing *listing, struct index_lists *lists, uint64_t block)
{
	struct index_scan *scan = listing->scan;
	unsigned log2 = scan->index->shape.block_log2;
	uint64_t first = block << log2;

	tell_progress(scan, first);
	listing->ok = index_go_on(scan->index, listing->err) &&
		      fill_slots(scan, listing->kinds, lists, first, first + (UINT64_C(1) << log2),
				 &listing->slots, listing->err) &&
		      tell_slots(scan, &listing->slots, &listing->clock, listing->drops,
				 &listing->drop, &listing->more, listing->err);
}

// A busy site has no postings in its chunk: where a wanted one is busy, steps come from the blocks.
static bool tell_lists(void *context, uint64_t chunk, unsigned place)
{
	struct listing *listing = context;
	struct index_scan *scan = listing->scan;
	struct index_lists *lists = &listing->lists[place];
	unsigned log2 = scan->index->shape.chunk_log2 - scan->index->shape.block_log2;
	uint64_t block = first_block(scan), end = end_block(scan), first;

	block = block > chunk << log2 ? block : chunk << log2;
	end = end < (chunk + 1) << log2 ? end : (chunk + 1) << log2;
	if (lists->busy) {
		listing->ok = by_blocks(scan, block, end, listing->drops, &listing->drop,
					&listing->more, listing->err);
		return listing->ok && listing->more;
	}
	// What the chunk has before the window.
	first = block << scan->index->shape.block_log2;
	listing->ok = fill_slots(scan, listing->kinds, lists, first, first, &listing->slots,
				 listing->err);
	for (; listing->ok && listing->more && block < end; block++)
		tell_listed(listing, lists, block);
	return listing->ok && listing->more;
}

// Lists of very many sites are in memory one chunk at a time.
static bool by_lists(struct index_scan *scan, const struct kinds *kinds, const struct drops *drops,
		     bool ahead, struct err *err)
{
	unsigned block_log2 = scan->index->shape.block_log2,
		 chunk_log2 = scan->index->shape.chunk_log2;
	size_t words = ((size_t)1 << block_log2) / 64 + 1;
	struct listing listing = {
		.scan = scan,
		.kinds = kinds,
		.drops = drops,
		.slots = { .list = mem_alloc((size_t)1 << block_log2, sizeof *listing.slots.list),
			   .taken = mem_alloc(words, sizeof *listing.slots.taken),
			   .words = words },
		.more = true,
		.ok = true,
		.err = err,
	};
	const struct relay relay = { read_lists,
				     tell_lists,
				     &listing,
				     &listing,
				     ahead && kinds->sites < LISTED_MANY ? CHUNKS : 1,
				     1 };
	bool ok = relay_run(&relay, scan->from >> chunk_log2, ((scan->to - 1) >> chunk_log2) + 1,
			    err) &&
		  listing.ok;

	if (ok && listing.more)
		tell_drops(scan, drops, &listing.drop, WINDOW_NEVER);
	index_clock_fini(&listing.clock);
	for (unsigned i = 0; i < CHUNKS; i++)
		index_lists_fini(&listing.lists[i]);
	MEM_FREE(listing.slots.list, listing.slots.taken);
	return ok;
}

// Through postings where that is less. `ahead`: a thread reads those that are next.
static bool go_through(struct index_scan *scan, const struct drops *drops, bool ahead,
		       struct err *err)
{
	struct kinds kinds = { 0 };
	bool fewer = false, more = true, ok = true;
	size_t drop = 0;

	if (!scan->all && !scan->kept &&
	    scan->to - scan->from > UINT64_C(1) << scan->index->shape.block_log2 &&
	    find_kinds(scan, &kinds))
		ok = are_fewer(scan, &kinds, &fewer, err);
	if (ok)
		ok = fewer ? by_lists(scan, &kinds, drops, ahead, err)
			   : by_blocks(scan, first_block(scan), end_block(scan), drops, &drop,
				       &more, err);
	MEM_FREE(kinds.list, kinds.numbers, kinds.starts);
	return ok;
}

// Steps and drops come in the order of the trace; the visitor stops it by false, which is no
// failure. Where no group has anything no step is looked at. A scan that was prepared may be one of
// several threads: it gets none of its own.
bool index_scan(struct index_scan *scan, struct err *err)
{
	bool prepared = scan->all || scan->of_cell != NULL, ok = true;
	struct drops drops;

	ASSERT(scan->visit);
	ASSERT(scan->all || scan->groups);
	ASSERT(scan->from <= scan->to);
	if (!prepared)
		index_scan_prepare(scan);
	if (!scan->all && !scan->found)
		drops = (struct drops){ 0 };
	else
		ok = find_drops(scan, &drops, err) && go_through(scan, &drops, !prepared, err);
	if (!prepared)
		index_scan_fini(scan);
	mem_free(drops.list);
	return ok;
}

// A window of no length at the edge: all that it has is what lives there.
struct heap_amount *index_scan_levels(struct index *index, const struct window_query *query,
				      uint64_t edge, size_t groups_count, struct err *err)
{
	struct heap_amount *levels = mem_alloc(groups_count + 1, sizeof *levels);
	struct window_query at = *query;
	struct window_result result = { 0 };
	bool ok;

	ASSERT(groups_count < INDEX_GROUP_UNKNOWN);
	at.from = at.to = edge;
	at.exit_frees = true;
	ok = index_ask(index, &at, &result, err);
	for (size_t i = 0; i < groups_count && i < result.rows_count; i++)
		levels[i] = result.rows[i].type[WINDOW_AOFO];
	window_result_fini(&result);
	if (ok)
		return levels;
	mem_free(levels);
	return NULL;
}

// The scan knows the group of each cell, so a count of each is all that is read.
bool index_scan_wanted_levels(const struct index_scan *scan, uint64_t edge,
			      struct heap_amount *levels, struct err *err)
{
	const struct index *index = scan->index;
	const struct cells *cells = &index->cells;
	struct index_count *counts = mem_alloc_table(cells->cells_count, sizeof *counts);
	bool ok = index_counts(scan->index, edge, counts, sizeof *counts, err);

	ASSERT(scan->of_cell && scan->wanted);
	for (uint32_t id = 1; ok && id < cells->cells_count; id++) {
		uint32_t group = scan->of_cell[id];
		struct cells_cell cell;
		process_id process;

		if (group == WINDOW_SKIP || !counts[id].alive)
			continue;
		cell = cells_cell(cells, id);
		process = cells_site(cells, cell.site)->process;
		if (process < index->exits_count && index->exits[process].step < edge)
			continue;
		levels[scan->wanted[group] - 1].count += counts[id].alive;
		levels[scan->wanted[group] - 1].bytes += counts[id].alive * cell.size;
	}
	mem_free(counts);
	return ok;
}
