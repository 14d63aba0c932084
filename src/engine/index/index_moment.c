// The blocks that live at a moment are found in three places. Say long lifetimes are those of
// 131,072 steps and more, and the moment is behind step 10,000,000:
//
//     long files, never   what began before step 9,850,000 and ends at 10,000,000 or later, or
//                         never. Anything else that began before is over.
//     the trace           from 9,850,000 to 10,000,000: what begins there and is not ended there.
//                         9,850,000 is where a block of the trace begins, at least 131,072 steps
//                         before the moment.
//
// The trace's events are applied to what the index has put there, as if all before had been read. A
// free of a block that is not there, because it is over anyway, changes nothing.
//
// A realloc in two halves that failed ends its block and lets it begin again; for the index it
// never ended. So where a moment is between the halves, the trace is read from before the first.
#include "engine/index/index_moment.h"

#include "base/mem.h"
#include "base/radix.h"
#include "base/rising.h"
#include "engine/index/live_table.h"
#include "engine/space/vm_calls.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

enum { LOOK_EVERY = 1 << 16 }; // events between two looks at who wants to stop

// One question. `lives` grows with what lives at the moment, and is given to the present at the
// end.
struct asking {
	struct index *index;
	struct reader *reader;
	const struct present_options *options;
	struct present *present;
	uint64_t edge, number; // of the moment
	uint64_t first_step;   // from there on the trace is read
	bool between_halves;   // of a realloc that failed: the trace takes a block that lives
	// What lives, as the index has it: live_table_value and address.
	struct radix_pair *lives;
	size_t count, capacity;
	struct err *err;
};

// ---- numbers of events ----

// Blocks of steps, for the numbers of their events. `= { 0 }` is a valid one.
struct numbers {
	struct index *index;
	struct index_block block;
	uint64_t loaded; // number of the block + 1
	size_t run;      // of it, that was asked for last
	struct err *err;
};

// The block that was loaded last is kept: the next number is mostly in the same one.
static bool load_numbers(struct numbers *numbers, uint64_t block)
{
	ASSERT(block < numbers->index->files.blocks_count);
	if (numbers->loaded == block + 1)
		return true;
	numbers->loaded = numbers->run = 0;
	if (!index_block_jumps(numbers->index, block, &numbers->block, numbers->err))
		return false;
	numbers->loaded = block + 1;
	return true;
}

static uint32_t run_end(const struct index_block *block, uint32_t run)
{
	ASSERT(run < block->jumps_count);
	return run + 1 < block->jumps_count ? block->jumps[run + 1].at : block->count;
}

// A block of steps has its numbers in runs: from step `at` on they count up from `value`. For
// example, the runs { at 0, value 100 } and { at 3, value 110 } of a block of 5 steps say that its
// events are 100, 101, 102, 110 and 111; the last below 110 is step 2.
//
// Where the last event below `number` is in the block, as its step; UINT64_MAX: nowhere.
static uint64_t last_below(const struct index_block *block, uint64_t number)
{
	for (uint32_t i = block->jumps_count; i-- > 0;) {
		uint64_t at = block->jumps[i].at, value = block->jumps[i].value;
		uint64_t count = run_end(block, i) - at;

		if (value == UINT64_MAX) { // of no event; the next one counts on, from 0
			at++;
			count--;
			value = 0;
		}
		if (count == 0 || value >= number)
			continue;
		return block->first + at + (number - value < count ? number - value : count) - 1;
	}
	return UINT64_MAX;
}

// The step after the last event below `number`.
// Numbers rise from block to block but for blocks without any event, so it is a binary search that
// goes back over those.
static bool edge_of_number(struct numbers *numbers, uint64_t number, uint64_t *edge)
{
	uint64_t low = 0, high = numbers->index->files.blocks_count;

	// The last block that has such an event; one without any event is passed over.
	*edge = WINDOW_START;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2, at = middle;
		uint64_t found = UINT64_MAX;

		for (;; at--) {
			if (!load_numbers(numbers, at))
				return false;
			found = last_below(&numbers->block, number);
			if (at == low || last_below(&numbers->block, UINT64_MAX) != UINT64_MAX)
				break;
		}
		if (found == UINT64_MAX) {
			high = at;
			continue;
		}
		if (found + 1 > *edge)
			*edge = found + 1;
		low = middle + 1;
	}
	return true;
}

// The number of the event of a step; UINT64_MAX: it is of none.
static bool number_of(struct numbers *numbers, uint64_t step, uint64_t *number)
{
	const struct index_block *block = &numbers->block;
	uint32_t at;
	size_t run;

	ASSERT(step < numbers->index->steps_end);
	if (!load_numbers(numbers, step >> numbers->index->shape.block_log2))
		return false;
	at = (uint32_t)(step - block->first);
	run = numbers->run;
	// The next that is asked for is mostly in the same run.
	if (block->jumps[run].at > at ||
	    (run + 1 < block->jumps_count && block->jumps[run + 1].at <= at)) {
		run = RISING_UPTO(block->jumps, block->jumps_count, at, at);
		run = run ? run - 1 : 0;
	}
	numbers->run = run;
	*number = block->jumps[run].value + (at - block->jumps[run].at);
	return true;
}

// How many events there are before an edge: the number of the last one, and one more.
// Steps of no event (ends of processes) are passed over backwards.
static bool events_before(struct numbers *numbers, uint64_t edge, uint64_t *events)
{
	ASSERT(edge <= numbers->index->steps_end);
	*events = 0;
	while (edge-- > WINDOW_START) {
		if (!number_of(numbers, edge, events))
			return false;
		++*events;
		if (*events)
			return true;
	}
	return true;
}

// A moment by time is the edge after the last step that is not later; one by number is exact.
static bool find_edge(struct numbers *numbers, const struct moment_edge *moment, uint64_t *edge,
		      uint64_t *events)
{
	struct index *index = numbers->index;
	struct index_clock clock = { 0 };
	uint64_t number = UINT64_MAX;
	bool ok;

	if (!moment->exact) {
		ok = index_clock_edge(&clock, index, moment->time_ns, edge, numbers->err);
		index_clock_fini(&clock);
		return ok && events_before(numbers, *edge, events);
	}
	if (moment->number == UINT64_MAX)
		*edge = index->steps_end;
	else if (!edge_of_number(numbers, moment->number, edge))
		return false;
	if (!events_before(numbers, *edge, events))
		return false;
	// Ends of processes that are here come before an event that is not in the trace.
	while (*events < moment->number && *edge < index->steps_end) {
		if (!number_of(numbers, *edge, &number))
			return false;
		if (number != UINT64_MAX)
			break;
		++*edge;
	}
	return true;
}

bool index_moment_edge(struct index *index, const struct moment_edge *moment, uint64_t *edge,
		       uint64_t *number, struct err *err)
{
	struct numbers numbers = { .index = index, .err = err };
	bool ok = find_edge(&numbers, moment, edge, number);

	index_block_fini(&numbers.block);
	return ok;
}

// ---- what the index knows ----

// First the value, for lives are sorted by when they began.
static void add_live(struct asking *asking, uint64_t value, uint64_t address)
{
	*MEM_ADD(asking->lives, asking->count, asking->capacity) =
		(struct radix_pair){ value, address };
}

static bool is_known(const struct asking *asking, uint64_t value)
{
	return live_table_cell(value) < asking->index->cells.cells_count ||
	       err_set(asking->err, ERR_FORMAT, "the index is damaged: a lifetime");
}

// A block of records of a long file, all of which may be wanted. False: an error, or `over`.
// Addresses of a block are read only if one of its lifetimes is wanted.
static bool take_longs(struct asking *asking, unsigned class, size_t block,
		       const struct index_long *list, uint32_t count, uint64_t *addresses,
		       bool *over, uint64_t until)
{
	bool loaded = false;

	ASSERT(count <= UINT32_C(1) << asking->index->shape.sparse_log2);
	ASSERT(class < INDEX_LONGS);
	for (uint32_t i = 0; i < count; i++) {
		*over = list[i].end >= until;
		if (*over)
			return true;
		if (list[i].end < asking->edge ||
		    live_table_step(list[i].begin) >= asking->first_step)
			continue;
		if (!is_known(asking, list[i].begin))
			return false;
		if (!loaded && !index_addresses_read(asking->index, class, block, count, addresses,
						     asking->err))
			return false;
		loaded = true;
		add_live(asking, list[i].begin, addresses[i]);
	}
	return true;
}

// What lives at the moment of one class. A file's records are in the order of their ends, so
// reading begins at the first block that may end at the moment or later, and it is left where what
// ends is too late to have begun before first_step: with long_log2 17, class 0 has lifetimes of
// 131,072 to 262,143 steps, so what began before step 9,850,000 ends before 9,850,000 + 262,144.
// The last class has no such end.
static bool find_longs_of(struct asking *asking, unsigned class, struct index_long *list,
			  uint64_t *addresses)
{
	struct index *index = asking->index;
	unsigned log2 = class + index->shape.long_log2 + 1;
	uint64_t until = class + 1 < INDEX_LONGS && log2 < 63
				 ? asking->first_step + (UINT64_C(1) << log2)
				 : UINT64_MAX;
	const struct index_long_blocks *blocks = &index->files.longs_blocks[class];
	// Records of a file are in the order of their ends. One that ends at the moment or later
	// and lives for less than 2^(log2 + 1) steps ends before `until`: there the file may be
	// left.
	size_t block = RISING_BELOW(blocks->list, blocks->count, end, asking->edge);
	bool over = false;

	for (block -= block > 0; block < blocks->count && !over; block++) {
		uint32_t count = index_longs_in(index, class, block);

		if (!index_go_on(index, asking->err) ||
		    !index_longs_read(index, class, block, list, asking->err) ||
		    !take_longs(asking, class, block, list, count, addresses, &over, until))
			return false;
	}
	return true;
}

// Each class is a file of its own, from the shortest lifetimes to the longest.
static bool find_longs(struct asking *asking)
{
	size_t size = (size_t)1 << asking->index->shape.sparse_log2;
	struct index_long *list = mem_resize(NULL, size, sizeof *list);
	uint64_t *addresses = mem_resize(NULL, size, sizeof *addresses);
	bool ok = true;

	for (unsigned class = 0; ok && class < INDEX_LONGS; class ++)
		ok = find_longs_of(asking, class, list, addresses);
	MEM_FREE(list, addresses);
	return ok;
}

// In order of beginning: what began where the trace is read from, and later, is left to the trace.
static bool find_never(struct asking *asking)
{
	struct index *index = asking->index;
	uint64_t size = UINT64_C(1) << index->shape.sparse_log2;
	uint64_t *values = mem_resize(NULL, (size_t)size, sizeof *values);
	uint64_t *addresses = mem_resize(NULL, (size_t)size, sizeof *addresses);
	bool ok = true;

	for (size_t block = 0; ok && block < index->files.never_blocks_count &&
			       index->files.never_blocks[block].step < asking->first_step;
	     block++) {
		uint64_t left = index->never_count - block * size;
		uint32_t count = (uint32_t)(left < size ? left : size);

		ok = index_go_on(index, asking->err) &&
		     index_never_read(index, block * size, count, values, asking->err) &&
		     index_addresses_read(index, INDEX_OF_NEVER, block, count, addresses,
					  asking->err);
		for (uint32_t i = 0; ok && i < count; i++) {
			if (live_table_step(values[i]) >= asking->first_step)
				break;
			ok = is_known(asking, values[i]);
			add_live(asking, values[i], addresses[i]);
		}
	}
	MEM_FREE(values, addresses);
	return ok;
}

// ---- putting them together ----

// At a moment, what a process had is gone when it has ended.
static bool has_ended(const struct asking *asking, process_id process)
{
	return !asking->options->at_exit && process < asking->index->exits_count &&
	       asking->index->exits[process].step < asking->edge;
}

static void sort_pairs(struct radix_pair *pairs, size_t count)
{
	struct radix_pair *scratch = mem_alloc_table(count + 1, sizeof *scratch);

	radix_sort_pairs(pairs, scratch, count);
	mem_free(scratch);
}

// When one began.
struct date {
	uint64_t number, time_ns;
};

// Of lives by the steps at which they began, so that each block of steps is read once. Each is put
// where its value says.
static bool find_dates(struct index *index, const struct radix_pair *lives, size_t count,
		       struct date *dates, struct err *err)
{
	struct numbers numbers = { .index = index, .err = err };
	struct index_clock clock = { 0 };
	bool ok = true;

	for (size_t i = 0; ok && i < count; i++) {
		struct date *date = &dates[lives[i].value];
		uint64_t step = live_table_step(lives[i].key);

		ok = number_of(&numbers, step, &date->number) &&
		     index_clock_time(&clock, index, step, &date->time_ns, err);
	}
	index_clock_fini(&clock);
	index_block_fini(&numbers.block);
	return ok;
}

// Whether dates can be found of all that lives: one look at each block of steps that a life began
// in. A block of steps has the dates of all its steps or of none, so what make_blocks asks later,
// when nothing can be said any more, does not fail for damage.
static bool has_dates(struct asking *asking)
{
	struct index *index = asking->index;
	unsigned log2 = index->shape.block_log2;
	uint8_t *marks = mem_alloc(index->files.blocks_count, 1);
	bool ok = true;

	for (size_t i = 0; i < asking->count; i++)
		marks[live_table_step(asking->lives[i].key) >> log2] = 1;
	for (size_t block = 0; ok && block < index->files.blocks_count; block++) {
		const struct radix_pair first = { live_table_value((uint64_t)block << log2, 0), 0 };
		struct date date;

		ok = !marks[block] || find_dates(index, &first, 1, &date, asking->err);
	}
	mem_free(marks);
	return ok;
}

// What blocks are made of, as the present keeps it.
struct making {
	struct index *index;
	bool dated; // by `make`
};

// Dates of some lives, in the order of the list; has_dates has looked at them. NULL: the index went
// away since. They are found by rising step, so that each block of steps is decoded once.
static struct date *date_slice(const struct making *making, const struct radix_pair *list,
			       size_t count, struct err *err)
{
	struct radix_pair *order = mem_alloc_table(count + 1, sizeof *order);
	struct date *dates = mem_alloc_table(count + 1, sizeof *dates);

	for (size_t i = 0; i < count; i++)
		order[i] = (struct radix_pair){ list[i].value, i };
	sort_pairs(order, count);
	if (!find_dates(making->index, order, count, dates, err)) {
		mem_free(dates);
		dates = NULL;
	}
	mem_free(order);
	return dates;
}

enum { AHEAD = 16 };

// A life's cell is asked for in 2 * AHEAD turns, and its site in AHEAD: both are all over memory,
// and where the site is only the cell says.
static inline void expect_live(const struct cells *cells, uint64_t cell_soon, uint64_t site_soon)
{
	cells_expect(cells, live_table_cell(cell_soon));
	mem_expect(cells_site(cells, cells_cell(cells, live_table_cell(site_soon)).site));
}

// What the present asks for, some lives at a time: a block takes 56 bytes, and what it is made of
// 16.
static bool make_blocks(void *context, const struct radix_pair *list, size_t count,
			struct present_block *blocks, struct err *err)
{
	const struct making *making = context;
	const struct cells *cells = &making->index->cells;
	struct date *dates = making->dated ? date_slice(making, list, count, err) : NULL;

	if (making->dated && !dates)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct cells_cell cell;
		const struct cells_site *site;

		ASSERT(live_table_cell(list[i].value) < cells->cells_count); // is_known has looked
		cell = cells_cell(cells, live_table_cell(list[i].value));
		site = cells_site(cells, cell.site);
		if (i + 2 * AHEAD < count)
			expect_live(cells, list[i + 2 * AHEAD].value, list[i + AHEAD].value);
		blocks[i] = (struct present_block){
			.address = list[i].key,
			.size = cell.size,
			.number = dates ? dates[i].number : 0,
			.time_ns = dates ? dates[i].time_ns : 0,
			.process = site->process,
			.thread = site->thread,
			.stack = site->stack,
			.heap = site->heap,
		};
	}
	mem_free(dates);
	return true;
}

// What the present asks for of a few, where make_blocks leaves it out.
static bool date_blocks(void *context, const struct radix_pair *list, size_t count,
			struct present_block *blocks, struct err *err)
{
	struct date *dates = date_slice(context, list, count, err);

	for (size_t i = 0; dates && i < count; i++) {
		blocks[i].number = dates[i].number;
		blocks[i].time_ns = dates[i].time_ns;
	}
	mem_free(dates);
	return dates != NULL;
}

static process_id process_of(const struct asking *asking, const struct radix_pair *live)
{
	const struct cells *cells = &asking->index->cells;

	return cells_site(cells, cells_cell(cells, live_table_cell(live->value)).site)->process;
}

// Lives by process, in the order that they are in, without those of processes that ended. Returns
// where those of each end; the caller frees it. A counting sort, two passes and no comparison: of
// processes with 3, 0 and 2 lives `ends` is first 3, 0, 2, then the beginnings 0, 3, 3, and at last
// 3, 3, 5.
static size_t *part_lives(struct asking *asking)
{
	size_t processes = reader_processes_count(asking->reader), sum = 0;
	size_t *ends = mem_alloc(processes + 1, sizeof *ends);
	struct radix_pair *parted;

	ends[0] = asking->count;
	if (processes == 1) {
		if (has_ended(asking, 0))
			ends[0] = 0;
		return ends;
	}
	ends[0] = 0;
	for (size_t i = 0; i < asking->count; i++)
		ends[process_of(asking, &asking->lives[i])]++;
	for (process_id id = 0; id < processes; id++) {
		size_t count = has_ended(asking, id) ? 0 : ends[id];

		ends[id] = sum;
		sum += count;
	}
	parted = mem_alloc_table(sum + 1, sizeof *parted);
	for (size_t i = 0; i < asking->count; i++) {
		process_id id = process_of(asking, &asking->lives[i]);

		if (!has_ended(asking, id))
			parted[ends[id]++] = asking->lives[i];
	}
	mem_free(asking->lives);
	asking->lives = parted;
	asking->count = sum;
	return ends;
}

static bool has_heaps(const struct cells *cells)
{
	for (uint32_t site = 1; site < cells->sites_count; site++)
		if (cells_site(cells, site)->heap != 0)
			return true;
	return false;
}

// What is known of them as the present wants it. False: the dates of some cannot be read. Slices
// with dates are large, as each goes through the blocks of steps from the first that it needs on;
// others stay in the processor's cache.
static bool make_lean(struct asking *asking, struct present_lean *lean)
{
	enum { SLICE = 1 << 12, SLICE_DATED = 1 << 18 };
	const struct present_options *options = asking->options;
	bool by_event = options->query && options->query->event;
	bool dated = !options->undated || by_event;
	bool heaps = has_heaps(&asking->index->cells);
	// Blocks of several heaps may be at one address: then each is dated as it is made.
	bool late = dated && options->dated_late && !by_event && !heaps && !asking->between_halves;
	struct making *making;

	if (dated && !has_dates(asking))
		return false;
	for (size_t i = 0; i < asking->count; i++)
		asking->lives[i] =
			(struct radix_pair){ asking->lives[i].value, asking->lives[i].key };
	// No two have one address, process and heap: of equal addresses any order is right here.
	radix_sort_pairs_lean(asking->lives, asking->count);
	making = mem_alloc(1, sizeof *making);
	*making = (struct making){ asking->index, dated && !late };
	*lean = (struct present_lean){ .ends = part_lives(asking),
				       .heaps = heaps,
				       .slice = making->dated ? SLICE_DATED : SLICE,
				       .make = make_blocks,
				       .date = late ? date_blocks : NULL,
				       .context = making };
	lean->list = asking->lives;
	asking->lives = NULL;
	asking->count = asking->capacity = 0;
	return true;
}

// The trace takes one of them: so each is put where it can be found.
static bool put_each(struct asking *asking, const struct present_lean *lean)
{
	size_t count = lean->ends[reader_processes_count(asking->reader) - 1];
	struct present_block *blocks = mem_alloc_table(count + 1, sizeof *blocks);
	bool ok = lean->make(lean->context, lean->list, count, blocks, asking->err);

	for (size_t i = 0; ok && i < count; i++)
		present_put(asking->present, &blocks[i]);
	MEM_FREE(blocks, lean->list, lean->ends, lean->context);
	return ok;
}

// In bulk where the trace will not touch them: a present that is given all at once keeps them as
// pairs.
static bool put_lives(struct asking *asking)
{
	struct present_lean lean;

	if (asking->options->spaces_only && !asking->between_halves)
		return true;
	if (asking->count == 0 || reader_processes_count(asking->reader) == 0)
		return true;
	if (!make_lean(asking, &lean))
		return false;
	if (asking->between_halves)
		return put_each(asking, &lean);
	present_put_all(asking->present, &lean);
	return true;
}

// Blocks that are not asked for have a say in whose mappings are: all of them as one, then each.
static void claim_lives(const struct asking *asking,
			void (*claim)(struct present *present, process_id process,
				      uint64_t address))
{
	const struct cells *cells = &asking->index->cells;

	for (size_t i = 0; i < asking->count; i++) {
		const struct radix_pair *live = &asking->lives[i];
		struct cells_cell cell = cells_cell(cells, live_table_cell(live->key));
		const struct cells_site *site = cells_site(cells, cell.site);

		if (i + 2 * AHEAD < asking->count)
			expect_live(cells, live[2 * AHEAD].key, live[AHEAD].key);
		if (site->heap == 0 && !has_ended(asking, site->process))
			claim(asking->present, site->process, live->value);
	}
}

// ---- what the trace knows ----

// The last place that is before an event.
static bool place_before(const struct index *index, uint64_t number, struct reader_place *place)
{
	const struct reader_place *list = index->places.list;
	size_t low = RISING_UPTO(list, index->places.count, next_number, number);

	if (low > 0)
		*place = list[low - 1];
	return low > 0;
}

bool index_moment_go(const struct index *index, struct reader *reader, uint64_t number)
{
	struct reader_place place;

	return !index->odd && place_before(index, number, &place) && reader_go(reader, &place);
}

// From where the trace must be read: the last place that is early enough.
// Where the moment is between the halves of a realloc that failed, the trace is read from before
// the first half.
static bool find_place(struct asking *asking, struct numbers *numbers, struct reader_place *place)
{
	const struct index *index = asking->index;
	uint64_t longest = UINT64_C(1) << index->shape.long_log2, events;
	uint64_t step = asking->edge > longest ? asking->edge - longest : 0;

	for (size_t i = 0; i < index->undone_count; i++) {
		if (index->undone[i].from >= asking->edge || index->undone[i].to < asking->edge)
			continue;
		asking->between_halves = true;
		if (index->undone[i].from < step)
			step = index->undone[i].from;
	}
	if (!events_before(numbers, step, &events))
		return false;
	// Both halves of a realloc that is one event are read again.
	events -= events > 0;
	if (!place_before(index, events, place))
		return err_set(asking->err, ERR_FORMAT, "the index is damaged: places");
	return edge_of_number(numbers, place->next_number, &asking->first_step);
}

// Heaps alone: what is left of a failed call is in the list of calls.
static bool is_of_heap(const struct trace_event *event)
{
	unsigned effect = effect_of(event->kind);

	return effect && (!(effect & EFFECT_FAILS) || effect & EFFECT_UNDOES);
}

// That the last event before the moment was met says that the trace is still the one of the index.
static bool read_tail(struct asking *asking)
{
	struct reader_pass pass = { .reader = asking->reader };
	uint64_t last = 0, events = 0;

	ASSERT(asking->present);
	while (reader_pass_next(&pass) != READER_END) {
		const struct trace_event *event = &pass.event;

		if (pass.item == READER_NOTE)
			continue;
		if (event->number >= asking->number)
			break;
		last = event->number + 1;
		if (is_of_heap(event))
			present_add_event(asking->present, event);
		if (++events % LOOK_EVERY == 0 && !index_go_on(asking->index, asking->err))
			return false;
	}
	return last == asking->number || asking->number == 0 ||
	       err_set(asking->err, ERR_FORMAT, "the index is damaged: an event is missing");
}

static bool add_tail(struct asking *asking)
{
	struct numbers numbers = { .index = asking->index, .err = asking->err };
	struct reader_place place;
	bool ok = find_place(asking, &numbers, &place);

	index_block_fini(&numbers.block);
	return ok &&
	       (reader_go(asking->reader, &place) ||
		err_set(asking->err, ERR_FORMAT, "the index is damaged: a place")) &&
	       find_longs(asking) && find_never(asking) && put_lives(asking) && read_tail(asking);
}

// ---- address spaces ----

// Whether a call is after the moment.
// The same rule as for events of the trace, so that both ways of asking agree.
static bool is_after(const struct present_options *options, const struct vm_call *call)
{
	const struct moment_edge *edge = &options->edge;

	if (options->at_exit)
		return false;
	if (call->what == VM_CALL_EVENT)
		return moment_passed(edge, call->event.number, call->event.time_ns);
	if (!edge->exact)
		return call->note.time_ns > edge->time_ns;
	// Right at an exact edge an end of a process is after it, and its beginning is not.
	return call->events > edge->number ||
	       (call->events == edge->number && call->note.kind == TRACE_NOTE_PROCESS_END);
}

static bool can_be(const struct reader *reader, const struct vm_call *call)
{
	if (call->what == VM_CALL_NOTE)
		return call->note.process < reader_processes_count(reader);
	return call->what != VM_CALL_EVENT || vm_calls_fit(call, reader);
}

static void add_call(struct present *present, const struct vm_call *call)
{
	if (call->what == VM_CALL_EVENT)
		present_add_event(present, &call->event);
	else if (call->what == VM_CALL_NOTE)
		present_add_note(present, &call->note);
}

// Calls are read some at a time: a call that is cut is read again with the next. `present` NULL:
// they are only looked at.
// A call of at most VM_CALLS_BYTES_MAX bytes may be cut by the end of what was read: it is left for
// the next turn.
static bool go_through(struct index *index, struct present *present, const struct reader *reader,
		       const struct present_options *options, struct err *err)
{
	enum { AT_ONCE = 1 << 20 };
	struct vault *vault = &index->files.calls;
	struct vm_calls_last last = { 0 };
	uint8_t *bytes = mem_resize(NULL, AT_ONCE, 1);
	uint64_t from = 0;
	bool ok = true, more = true;

	while (ok && more && from < vault->size) {
		uint64_t left = vault->size - from;
		size_t size = left < AT_ONCE ? (size_t)left : AT_ONCE;
		const uint8_t *at = bytes, *end = bytes + size;
		bool whole = size == left;

		ok = index_go_on(index, err) && vault_read(vault, from, bytes, size, err);
		while (ok && more && at < end && (whole || end - at > VM_CALLS_BYTES_MAX)) {
			struct vm_call call;

			ok = vm_calls_next(&at, end, &last, &call) && can_be(reader, &call);
			more = ok && !is_after(options, &call);
			if (more && present)
				add_call(present, &call);
			if (!ok)
				err_set(err, ERR_FORMAT, "the index is damaged: calls");
		}
		ASSERT(!ok || at > bytes); // each turn takes a call at least
		from += (uint64_t)(at - bytes);
	}
	mem_free(bytes);
	return ok;
}

// A listener hears of a call once: so damage must be found before.
static bool add_calls(struct index *index, struct present *present, const struct reader *reader,
		      const struct present_options *options, struct err *err)
{
	if ((options->before || options->after || options->noted) &&
	    !go_through(index, NULL, reader, options, err))
		return false;
	present_listen(present, options);
	return go_through(index, present, reader, options, err);
}

bool index_moment_knows(const struct index *index, const struct reader *reader,
			const struct present_options *options)
{
	const struct trace_process *process = reader_process(reader, options->inherits);

	return !index->odd && (!process || process->start != TRACE_START_FORK);
}

// Claims come before and after the present is settled: a whole mapping first, then each block.
struct present *index_moment(struct index *index, struct reader *reader,
			     const struct present_options *options, struct err *err)
{
	const struct moment_edge all = { .number = UINT64_MAX, .exact = true };
	struct asking asking = {
		.index = index,
		.reader = reader,
		.options = options,
		.present = present_new(reader, options),
		.err = err,
	};
	bool ok = index_moment_edge(index, options->at_exit ? &all : &options->edge, &asking.edge,
				    &asking.number, err) &&
		  add_tail(&asking) && add_calls(index, asking.present, reader, options, err);

	if (ok) {
		claim_lives(&asking, present_claim_whole);
		present_settle(asking.present, asking.number);
		claim_lives(&asking, present_claim);
	} else {
		present_free(asking.present);
	}
	mem_free(asking.lives);
	return ok ? asking.present : NULL;
}

// No block is needed for that, so neither the trace nor a file of lifetimes is read.
bool index_moment_calls(struct index *index, struct reader *reader,
			const struct present_options *options, struct err *err)
{
	struct present *present = present_new(reader, options);
	bool ok = add_calls(index, present, reader, options, err);

	present_free(present);
	return ok;
}
