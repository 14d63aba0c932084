// What the rows of a table need single steps for. The engine tells it of groups of cells; rows of
// one impact or type are found here, from the window's allocations, but for lifetimes alone.
//
// For example a row of two blocks, of 100 bytes from step 3 to 9 and of 50 from step 5 on: changes
// are +100 at 3, +50 at 5 and -100 at 9, so its peak is 150 bytes in 2 blocks at step 5, and the
// edge of that is 6. Its only lifetime is that of the first.
#include "report/table/table.h"

#include "base/mem.h"
#include "base/radix.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

// What is noted of rows while their allocations are gone through: a level that goes up or down,
// or a lifetime.
struct noted {
	uint64_t key; // lifetime; or step, and whether it goes up
	uint64_t size;
	uint32_t at; // in the list of rows
};

struct notes {
	struct noted *list;
	size_t count, capacity;
};

// A row of which nothing ends, but with its process: its last beginning, and the first such end.
struct rising {
	uint64_t last, until;
};

// All rows of one depth and phase, found in one pass over the window's allocations. Two rows of one
// group differ by their type, so each group has a chain of rows.
struct scan {
	struct table *table;
	struct window_query query;
	// Rows of each group, chained.
	uint32_t *first; // by group: index in `rows` + 1
	size_t groups;
	uint32_t *next; // by index in `rows`
	uint8_t *types; // of these, as bits
	const uint32_t *rows;
	size_t rows_count;
	struct notes changes;   // of levels; what is there when the window begins: at step 0
	struct notes lifetimes; // of allocations that a call ended in the window
	size_t *ends;           // by index in `rows`; see by_row
	struct rising *rising;  // by index in `rows`, in place of changes; NULL: they are noted
	bool falls;             // and they must be, for a level falls before it rises again
};

// Whether allocations of the type are in the row, by its own key and those above it.
static bool table_row_in_type(const struct table *table, const struct table_row *row,
			      enum window_type type)
{
	const char *impact = table_impact_word(type == WINDOW_AIFI   ? 1
					       : type == WINDOW_AOFO ? 2
								     : 0);
	unsigned types = table->asked->selection.query.types;

	ASSERT(type < WINDOW_TYPES);
	if (types && !(types >> type & 1))
		return false;
	for (; row->depth > 0; row = &table->rows[row->parent]) {
		enum keys_key key = table_key(table, row);

		if (key == KEYS_TYPE && row->value != type)
			return false;
		// Each word is there once, so that its address is enough.
		if (key == KEYS_IMPACT && table_impact_word(row->value) != impact)
			return false;
	}
	return true;
}

static void note(struct notes *notes, uint32_t at, uint64_t key, uint64_t size)
{
	*MEM_ADD(notes->list, notes->count, notes->capacity) =
		(struct noted){ .key = key, .size = size, .at = at };
}

// Steps are numbers of events, far below 2^63.
static void add_change(struct scan *scan, uint32_t at, uint64_t step, uint64_t size, bool up)
{
	ASSERT(step <= UINT64_MAX >> 1);
	note(&scan->changes, at, step << 1 | up, size);
}

// Lifetimes are of those that a call ended, in the window: what ended with its process lived as
// long as that did.
static void add_times(struct scan *scan, uint32_t at, const struct window_allocation *allocation)
{
	struct window_detail *detail = &scan->table->rows[scan->rows[at]].detail;
	bool by_call = allocation->end_kind != WINDOW_END_NEVER &&
		       allocation->end_kind != WINDOW_END_EXIT &&
		       allocation->end_kind != WINDOW_END_EXEC;

	ASSERT(at < scan->rows_count);
	if (allocation->begin >= scan->query.from) {
		// A row that holds one has an allocation, so 0 is a time too.
		if (allocation->begin_ns < detail->first_ns)
			detail->first_ns = allocation->begin_ns;
		if (allocation->begin_ns > detail->last_ns)
			detail->last_ns = allocation->begin_ns;
	}
	if (!by_call || allocation->end < scan->query.from || allocation->end >= scan->query.to)
		return;
	note(&scan->lifetimes, at, allocation->end_ns - allocation->begin_ns, 0);
}

// What only rises is at its peak with each beginning, and nothing is noted. False: it does not, or
// beginnings do not come in their order. For example blocks of 100 and 50 bytes that begin at steps
// 3 and 5, and live at the end: the peak is 100 at edge 4, then 150 at edge 6. If that process ends
// at step 9, one that another process begins at step 8 is still above both, and one at step 12 is
// not: then it is found from changes.
static bool rise(struct scan *scan, uint32_t at, const struct window_allocation *allocation,
		 uint64_t begin)
{
	struct window_detail *detail = &scan->table->rows[scan->rows[at]].detail;
	struct rising *rising = &scan->rising[at];

	ASSERT(at < scan->rows_count);
	if (begin < rising->last || begin >= rising->until || scan->lifetimes.count > 0)
		return false;
	rising->last = begin;
	if (allocation->end < rising->until)
		rising->until = allocation->end;
	detail->peak_bytes += allocation->cell.size;
	detail->most_count++;
	if (allocation->cell.size > 0 || begin == 0) {
		detail->peak_count = detail->most_count;
		detail->peak_edge = begin + 1;
	}
	return true;
}

// What is there when the window begins goes up at step 0, before all others.
// A million blocks may come by here, of which a row takes those of its types: these were found
// once, as they depend on the keys above it.
static bool take_allocation(void *context, const struct window_allocation *allocation)
{
	struct scan *scan = context;
	enum window_type type = table_type_of(&scan->query, allocation);
	uint32_t at = allocation->group < scan->groups ? scan->first[allocation->group] : 0;

	for (; at; at = scan->next[at - 1]) {
		uint64_t begin = allocation->begin < scan->query.from ? 0 : allocation->begin;

		if (!(scan->types[at - 1] >> type & 1))
			continue;
		add_times(scan, at - 1, allocation);
		// Outstanding still, but of a process that was gone before the window.
		if (allocation->end < scan->query.from)
			continue;
		if (scan->rising) {
			scan->falls = !rise(scan, at - 1, allocation, begin);
			if (scan->falls)
				return false;
			continue;
		}
		add_change(scan, at - 1, begin, allocation->cell.size, true);
		if (allocation->end < scan->query.to)
			add_change(scan, at - 1, allocation->end, allocation->cell.size, false);
	}
	return true;
}

SORT_ORDER(compare_keys, struct radix_pair, SORT_RISES(key))

// Beginnings come in the order of their steps, so that a row without ends is sorted already.
static void sort_keys(struct radix_pair *list, size_t count)
{
	enum { SHORT = 1 << 12 };
	size_t rising = 1;

	while (rising < count && list[rising - 1].key <= list[rising].key)
		rising++;
	if (rising >= count)
		return;
	if (count <= SHORT)
		qsort(list, count, sizeof *list, compare_keys);
	else
		radix_sort_pairs_lean(list, count);
}

// What was noted: the keys and sizes of one row after the other, each row's in the order of keys.
// Where a row's end is in `scan->ends`. The list is the caller's; the notes are freed.
static struct radix_pair *by_row(struct scan *scan, struct notes *notes)
{
	struct radix_pair *list = mem_resize(NULL, notes->count + 1, sizeof *list);
	size_t *ends = scan->ends, sum = 0;

	memset(ends, 0, scan->rows_count * sizeof *ends);
	for (size_t i = 0; i < notes->count; i++)
		ends[notes->list[i].at]++;
	for (size_t at = 0; at < scan->rows_count; at++) {
		size_t here = ends[at];

		ends[at] = sum;
		sum += here;
	}
	// Each row's end is where it begins, until what is noted of it has moved it.
	for (size_t i = 0; i < notes->count; i++)
		list[ends[notes->list[i].at]++] =
			(struct radix_pair){ notes->list[i].key, notes->list[i].size };
	mem_free(notes->list);
	*notes = (struct notes){ 0 };
	for (size_t at = 0; at < scan->rows_count; at++) {
		size_t begin = at > 0 ? ends[at - 1] : 0;

		sort_keys(list + begin, ends[at] - begin);
	}
	return list;
}

// Changes of one step count together: realloc of 100 bytes to 200 is never 300.
static void find_peaks(struct scan *scan)
{
	struct radix_pair *changes = by_row(scan, &scan->changes);
	size_t i = 0;

	for (size_t at = 0; at < scan->rows_count; at++) {
		struct window_detail *detail = &scan->table->rows[scan->rows[at]].detail;
		uint64_t bytes = 0, count = 0;

		for (; i < scan->ends[at]; i++) {
			uint64_t size = changes[i].value, step = changes[i].key >> 1;
			bool up = changes[i].key & 1;

			bytes += up ? size : 0 - size;
			count += up ? 1 : UINT64_MAX;
			if (i + 1 < scan->ends[at] && changes[i + 1].key >> 1 == step)
				continue;
			// The level that the window begins with is the first that counts.
			if (bytes > detail->peak_bytes || step == 0) {
				detail->peak_bytes = bytes;
				detail->peak_count = count;
				detail->peak_edge = step + 1;
			}
			if (count > detail->most_count)
				detail->most_count = count;
		}
	}
	mem_free(changes);
}

// The median of n is number (n - 1) / 2 of the sorted list, from 0; of two the lower one.
static void find_lifetimes(struct scan *scan)
{
	struct radix_pair *lifetimes = by_row(scan, &scan->lifetimes);
	size_t begin = 0;

	for (size_t at = 0; at < scan->rows_count; begin = scan->ends[at++]) {
		struct window_detail *detail = &scan->table->rows[scan->rows[at]].detail;
		size_t n = scan->ends[at] - begin;

		if (n == 0)
			continue;
		detail->lifetimes = n;
		detail->lifetime_median_ns = lifetimes[begin + (n - 1) / 2].key;
		detail->lifetime_p99_ns = lifetimes[begin + (n - 1) * 99 / 100].key;
	}
	mem_free(lifetimes);
}

// The types that a row is of, as bits.
unsigned table_row_types(const struct table *table, const struct table_row *row)
{
	unsigned types = 0;

	for (unsigned type = 0; type < WINDOW_TYPES; type++)
		if (table_row_in_type(table, row, (enum window_type)type))
			types |= 1u << type;
	return types;
}

static uint32_t group_of_rows(void *context, const struct window_cell *cell)
{
	const struct scan *scan = context;
	uint32_t group = scan->query.group(scan->query.context, cell);

	return group < scan->groups && scan->first[group] ? group : WINDOW_SKIP;
}

// Rows are as they are before anything is known of them; nothing is noted. True: of none of them
// anything was freed.
static bool begin_rows(struct scan *scan)
{
	bool rise = true;

	for (size_t i = 0; i < scan->rows_count; i++) {
		struct table_row *row = &scan->table->rows[scan->rows[i]];

		row->detail = (struct window_detail){ .group = row->group,
						      .peak_edge = scan->query.from,
						      .first_ns = UINT64_MAX };
		row->detailed = true;
		rise = rise && window_freed(&row->sums).count == 0;
	}
	scan->changes.count = scan->lifetimes.count = 0;
	return rise;
}

// Rows of a depth and phase, of one type or impact each.
// `first` and `next` chain the rows of each group: next[i] is the row before row i, + 1; 0 ends it.
//
// The engine passes over the groups that none of these rows is of. Where nothing seems to fall,
// changes are noted only if something does.
static bool scan_rows(struct table *table, size_t depth, const struct table_phase *phase,
		      const uint32_t *rows, size_t count, struct err *err)
{
	struct scan scan = {
		.table = table,
		.query = table_query(table, depth, phase),
		.rows = rows,
		.rows_count = count,
		.next = mem_alloc(count, sizeof *scan.next),
		.types = mem_alloc(count, sizeof *scan.types),
		.ends = mem_alloc(count, sizeof *scan.ends),
	};
	struct window_query query;
	bool good;

	ASSERT(depth <= table->options->keys.count);
	for (size_t i = 0; i < count; i++)
		if (table->rows[rows[i]].group >= scan.groups)
			scan.groups = table->rows[rows[i]].group + (size_t)1;
	scan.first = mem_alloc(scan.groups, sizeof *scan.first);
	for (size_t i = 0; i < count; i++) {
		const struct table_row *row = &table->rows[rows[i]];

		scan.next[i] = scan.first[row->group];
		scan.first[row->group] = (uint32_t)i + 1;
		scan.types[i] = (uint8_t)table_row_types(table, row);
		scan.query.walk_types |= scan.types[i];
	}
	query = scan.query;
	query.group = group_of_rows;
	query.context = &scan;
	if (begin_rows(&scan)) {
		scan.rising = mem_alloc(count, sizeof *scan.rising);
		for (size_t i = 0; i < count; i++)
			scan.rising[i].until = UINT64_MAX;
	}
	good = window_walk(table->asked->window, &query, take_allocation, &scan, err);
	if (good && scan.falls) {
		begin_rows(&scan);
		mem_free(scan.rising);
		scan.rising = NULL;
		good = window_walk(table->asked->window, &query, take_allocation, &scan, err);
	}
	if (!scan.rising)
		find_peaks(&scan);
	find_lifetimes(&scan);
	for (size_t i = 0; i < count; i++)
		// No allocation of it began in the window: that the time is not known says
		// table_cell.
		if (table->rows[rows[i]].detail.first_ns == UINT64_MAX)
			table->rows[rows[i]].detail.first_ns = 0;
	MEM_FREE(scan.first, scan.next, scan.types, scan.ends, scan.rising);
	return good;
}

// Whether rows of the depth are of some types only.
static bool is_of_types(const struct table *table, size_t depth)
{
	return table_typed(table, depth) || table->asked->selection.query.types;
}

// Whether lifetimes alone are asked for, of one layer, by an index: what the engine finds by type.
static bool asks_lifetimes(struct table *table)
{
	struct window_query query = table_query(table, 0, NULL);

	return query.lifetimes_only && !(query.layers & WINDOW_VM) && !query.lifetime_min_ns &&
	       !query.lifetime_max_ns && window_facts(table->asked->window)->index_bytes > 0;
}

// Whether the engine is asked for rows of types. It reads all that ended in the window; of what was
// there before, and no more than that, it is less to go through the blocks.
static bool ages_by_type(struct table *table, const uint32_t *rows, size_t count)
{
	uint64_t ended = 0;
	bool transient = false;

	for (size_t i = 0; i < count; i++) {
		transient |= table_row_types(table, &table->rows[rows[i]]) >> WINDOW_AIFI & 1;
		ended += window_freed(&table->rows[rows[i]].sums).count;
	}
	return asks_lifetimes(table) && (transient || ended == 0);
}

// Rows of a depth and phase that are whole groups, of all types or some, or the first row of all:
// it is all of them.
static bool ask_rows(struct table *table, size_t depth, const struct table_phase *phase,
		     const uint32_t *rows, size_t count, struct err *err)
{
	struct window_query query = table_query(table, depth, phase);
	struct window_detail *details = mem_alloc(count, sizeof *details);
	bool typed = is_of_types(table, depth);
	bool good;

	// Estimates are no counts, and virtual memory has none of the heap.
	query.freed_known = !reader_is_estimated(table->asked->reader) &&
			    !(query.layers & WINDOW_VM);
	for (size_t i = 0; i < count; i++) {
		bool all = depth > 0 && table->rows[rows[i]].depth == 0;

		details[i].group = all ? WINDOW_SKIP : table->rows[rows[i]].group;
		details[i].types =
			typed && !all ? (uint8_t)table_row_types(table, &table->rows[rows[i]]) : 0;
		details[i].lifetimes = window_freed(&table->rows[rows[i]].sums).count;
	}
	good = window_detail(table->asked->window, &query, details, count, err);
	for (size_t i = 0; i < count && good; i++) {
		table->rows[rows[i]].detail = details[i];
		table->rows[rows[i]].detailed = true;
	}
	mem_free(details);
	return good;
}

// Whether all changes and lifetimes take about half of the memory at most. Each allocation may have
// two changes and a lifetime. Of rows that are in memory some at a time, beside much else, it is an
// eighth, and all have them or none.
static bool fits(const struct table *table, size_t depth, const uint32_t *rows, size_t count,
		 bool transient)
{
	enum { BYTES_EACH = 64 };
	uint64_t blocks = 0;

	ASSERT(rows || count == 0);
	if (table->spill && depth == table->options->keys.count)
		return table_spill_blocks(table, transient) <= table_memory(table) / 8 / BYTES_EACH;
	for (size_t i = 0; i < count; i++)
		blocks += window_present(&table->rows[rows[i]].sums).count;
	return blocks <= table_memory(table) / 2 / BYTES_EACH;
}

// One allocation: all is known.
void table_tell_single(const struct window_allocation *allocation, struct table_row *row)
{
	bool inside = row->sums.type[WINDOW_AIFI].count || row->sums.type[WINDOW_AIFO].count;
	bool ended = window_freed(&row->sums).count && allocation->end_kind != WINDOW_END_EXIT &&
		     allocation->end_kind != WINDOW_END_EXEC;

	row->detail = (struct window_detail){
		.group = row->group,
		.peak_bytes = allocation->cell.size,
		.peak_count = allocation->cell.size > 0 || !inside, // 0 bytes: before it began
		.most_count = 1,
		.first_ns = inside ? allocation->begin_ns : 0,
		.last_ns = inside ? allocation->begin_ns : 0,
		.lifetimes = ended,
		.lifetime_median_ns = ended ? allocation->end_ns - allocation->begin_ns : 0,
		.lifetime_p99_ns = ended ? allocation->end_ns - allocation->begin_ns : 0,
	};
	row->detailed = true;
}

// Those that hold what both began and ended in the window, or the others: these are few, and soon
// found, where it is long.
static bool scan_some(struct table *table, size_t depth, const struct table_phase *phase,
		      const uint32_t *rows, size_t count, bool transient, struct err *err)
{
	uint32_t *some = mem_alloc(count, sizeof *some);
	size_t some_count = 0;
	bool good = true;

	for (size_t i = 0; i < count; i++)
		if ((table_row_types(table, &table->rows[rows[i]]) >> WINDOW_AIFI & 1) == transient)
			some[some_count++] = rows[i];
	if (some_count > 0 && !fits(table, depth, some, some_count, transient))
		table->details_left_out = true;
	else if (some_count > 0)
		good = scan_rows(table, depth, phase, some, some_count, err);
	mem_free(some);
	return good;
}

// Three ways: of a single allocation all is known; of whole groups the engine is asked, and of
// types for what it tells apart; else the window's allocations are gone through.
static bool detail_some(struct table *table, size_t depth, const struct table_phase *phase,
			const uint32_t *rows, size_t count, struct err *err)
{
	bool single = depth > 0 && table->options->keys.list[depth - 1] == KEYS_LIFETIME;

	if (count == 0)
		return true;
	if (single) {
		for (size_t i = 0; i < count; i++)
			table_tell_single(&table->allocations[table->rows[rows[i]].value],
					  &table->rows[rows[i]]);
		return true;
	}
	if (!is_of_types(table, depth) || ages_by_type(table, rows, count))
		return ask_rows(table, depth, phase, rows, count, err);
	return scan_some(table, depth, phase, rows, count, false, err) &&
	       scan_some(table, depth, phase, rows, count, true, err);
}

// Whether what is asked of all is found in the same passes over the window as what is asked of the
// rows of a depth.
static bool asks_total_with_rows(struct table *table, size_t depth, const uint32_t *rows,
				 size_t count)
{
	const struct keys *keys = &table->options->keys;

	return (depth == 1 || (depth > 0 && asks_lifetimes(table))) && keys->count > 0 &&
	       keys->list[depth - 1] != KEYS_LIFETIME &&
	       (!table_typed(table, depth) || ages_by_type(table, rows, count)) &&
	       !table->asked->selection.query.types && !table->phases_count &&
	       !table->options->peaks_only;
}

// Whether the row has all that ended, so that its lifetimes are those of the total. Phases have
// other windows, and estimates do not count.
static bool ends_as_total(const struct table *table, const struct table_row *row)
{
	return !table->phases_count && !table->estimated &&
	       window_freed(&row->sums).count == window_freed(&table->rows[0].sums).count;
}

// For example the transient row of a whole trace: nothing else in it ended.
static bool copies_total(struct table *table, const uint32_t *rows, size_t count)
{
	bool has_total = false;

	for (size_t i = 0; i < count; i++)
		has_total |= rows[i] == 0;
	return has_total && table->rows[0].group != WINDOW_SKIP && asks_lifetimes(table);
}

// Puts the row of all behind the others, if there are any. Returns how many it are then.
static size_t add_total(const struct table *table, const uint32_t *rows, size_t count,
			uint32_t *some, size_t some_count)
{
	ASSERT(some_count <= table->rows_count);
	for (size_t i = 0; i < count && some_count > 0; i++)
		if (table->rows[rows[i]].depth == 0 && !table->rows[rows[i]].detailed)
			some[some_count++] = rows[i];
	return some_count;
}

bool table_detail(struct table *table, uint32_t *rows, size_t count, struct err *err)
{
	uint32_t *some = mem_alloc(count, sizeof *some);
	bool good = true, copies = copies_total(table, rows, count);

	// That nothing lived is known: it is 0 at most.
	if (table->rows[0].group == WINDOW_SKIP)
		table->rows[0].detailed = true;
	// That of all last.
	for (size_t i = 0; i <= table->options->keys.count && good; i++) {
		size_t depth = i < table->options->keys.count ? i + 1 : 0;

		// Without phases there is one round.
		for (size_t p = 0; p < (table->phases_count ? table->phases_count : 1); p++) {
			const struct table_phase *phase = NULL;
			size_t some_count = 0;

			for (size_t k = 0; k < count; k++) {
				const struct table_row *row = &table->rows[rows[k]];
				const struct table_phase *its = table_phase_of(table, row);

				if (row->depth != depth || row->orphans || row->detailed ||
				    row->group == WINDOW_SKIP ||
				    (its ? its != &table->phases[p] : p > 0) ||
				    (copies && depth > 0 && ends_as_total(table, row)))
					continue;
				phase = its;
				some[some_count++] = rows[k];
			}
			if (asks_total_with_rows(table, depth, some, some_count))
				some_count = add_total(table, rows, count, some, some_count);
			good = good && detail_some(table, depth, phase, some, some_count, err);
		}
	}
	for (size_t i = 0; i < count && good && copies; i++) {
		struct table_row *row = &table->rows[rows[i]];

		if (row->detailed || row->orphans || row->group == WINDOW_SKIP ||
		    !ends_as_total(table, row))
			continue;
		row->detail = table->rows[0].detail;
		row->detailed = true;
	}
	mem_free(some);
	return good;
}
