// A lifetime has two ends. In the *classes* of a window a block that its process's end took is
// still there, unless the query says that exits free; in the *level* it is gone. For example a
// block that began with step 3 and was never freed, in a process that ended with step 9:
//
//     window [2, 5)       it begins inside; in the classes it has not ended
//     window [5, 12)      present: 3 < 12, and its end (never) is after 5. With exit_frees it ends
//                         inside, at 9
//     level at step 10    without it, either way
//
// Each question goes through the whole list: what a cell's group is, whether the lifetime fits,
// and where its two ends are by the window. Nothing is remembered from one question to the next.
#include "engine/index/plain.h"

#include "base/mem.h"
#include "base/sort.h"
#include "engine/index/buckets.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct plain_life) == 56, "what the header promises of memory");

// ---- the list ----

void plain_fini(struct plain *plain)
{
	MEM_FREE(plain->lives, plain->orphans, plain->cells, plain->table);
	*plain = (struct plain){ 0 };
}

static bool same_cell(const struct window_cell *a, const struct window_cell *b)
{
	return a->process == b->process && a->thread == b->thread && a->stack == b->stack &&
	       a->heap == b->heap && a->layer == b->layer && a->owner == b->owner &&
	       a->orphans == b->orphans && a->size == b->size;
}

// Layer, owner and orphans share a word, in parts that do not overlap.
static uint64_t hash_cell(const struct window_cell *cell)
{
	const uint64_t words[] = { cell->process,
				   cell->thread,
				   cell->stack,
				   cell->heap,
				   cell->layer + cell->owner * 4u + cell->orphans * 1024u,
				   cell->size };
	uint64_t hash = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

// Where the cell is in the table, or would be.
static size_t find_slot(const struct plain *plain, const struct window_cell *cell)
{
	size_t at = hash_cell(cell) & (plain->table_capacity - 1);

	while (plain->table[at] && !same_cell(&plain->cells[plain->table[at] - 1], cell))
		at = (at + 1) & (plain->table_capacity - 1);
	return at;
}

// At most half full (plain_cell), so that a search ends soon. The table has numbers of cells, + 1.
static void grow_table(struct plain *plain)
{
	plain->table_capacity = plain->table_capacity ? plain->table_capacity * 2 : 64;
	mem_free(plain->table);
	plain->table = mem_alloc(plain->table_capacity, sizeof *plain->table);
	for (size_t i = 0; i < plain->cells_count; i++)
		plain->table[find_slot(plain, &plain->cells[i])] = (uint32_t)i + 1;
}

uint32_t plain_cell(struct plain *plain, const struct window_cell *cell)
{
	size_t at;

	if (plain->cells_count * 2 >= plain->table_capacity)
		grow_table(plain);
	at = find_slot(plain, cell);
	if (!plain->table[at]) {
		*MEM_ADD(plain->cells, plain->cells_count, plain->cells_capacity) = *cell;
		plain->table[at] = (uint32_t)plain->cells_count;
	}
	return plain->table[at] - 1;
}

size_t plain_add(struct plain *plain, const struct plain_life *life)
{
	ASSERT(life->cell < plain->cells_count);
	*MEM_ADD(plain->lives, plain->lives_count, plain->lives_capacity) = *life;
	return plain->lives_count - 1;
}

void plain_add_orphan(struct plain *plain, uint64_t step, uint32_t cell)
{
	ASSERT(cell < plain->cells_count);
	*MEM_ADD(plain->orphans, plain->orphans_count, plain->orphans_capacity) =
		(struct plain_orphan){ step, cell };
}

// ---- what a query says of one lifetime ----

// The groups of all cells: WINDOW_SKIP for those that the query leaves out.
static uint32_t *groups_of(const struct plain *plain, const struct window_query *query)
{
	uint32_t *groups = mem_alloc(plain->cells_count + 1, sizeof *groups);
	unsigned layers = query->layers ? query->layers : WINDOW_HEAP;

	for (size_t i = 0; i < plain->cells_count; i++) {
		struct window_cell cell = plain->cells[i];

		groups[i] = WINDOW_SKIP;
		if (!(cell.layer & layers))
			continue;
		if (!query->by_size)
			cell.size = 0;
		groups[i] = query->group ? query->group(query->context, &cell) : 0;
	}
	return groups;
}

// What nothing ended lived until its process ended, or until the trace did.
static uint64_t lifetime_of(const struct plain *plain, const struct plain_life *life)
{
	uint64_t end_ns = plain->duration_ns;

	if (life->end != WINDOW_NEVER)
		end_ns = life->end_ns;
	else if (life->exit != WINDOW_NEVER)
		end_ns = life->exit_ns;
	return end_ns - life->begin_ns;
}

static bool lifetime_fits(const struct plain *plain, const struct window_query *query,
			  const struct plain_life *life)
{
	return window_has_lifetime(query, lifetime_of(plain, life));
}

static bool inside(const struct window_query *query, uint64_t step)
{
	return step >= query->from && step < query->to;
}

// Its end in the classes: a process's end counts only where the query says so.
static uint64_t class_end(const struct window_query *query, const struct plain_life *life)
{
	return life->end == WINDOW_NEVER && query->exit_frees ? life->exit : life->end;
}

// Its end in the level: a process's end always counts.
static uint64_t level_end(const struct plain_life *life)
{
	return life->end == WINDOW_NEVER ? life->exit : life->end;
}

// At a single edge (`from` and `to` are the same) that is what lives there. In a window it is
// what lived at any time in it.
static bool present(const struct window_query *query, const struct plain_life *life)
{
	uint64_t end = class_end(query, life);

	if (query->from == query->to)
		return life->begin < query->from && end >= query->from;
	return life->begin < query->to && end >= query->from;
}

// ---- rows ----

static void add_to(struct heap_amount *amount, uint64_t bytes)
{
	amount->count++;
	amount->bytes += bytes;
}

struct rows {
	struct window_result *result;
	size_t capacity, rests_capacity;
};

// Groups are numbered by the query and come in any order: rows up to this one are made with it.
static void make_row(struct rows *rows, uint32_t group)
{
	struct window_result *result = rows->result;

	if (group < result->rows_count)
		return;
	MEM_ROOM(result->rows, rows->capacity, group + (size_t)1);
	memset(result->rows + result->rows_count, 0,
	       (group + (size_t)1 - result->rows_count) * sizeof *result->rows);
	result->rows_count = group + 1;
}

static void make_rest(struct rows *rows, uint32_t group)
{
	make_row(rows, group);
	window_result_make_rest(rows->result, &rows->rests_capacity, group);
}

static void count_life(const struct window_query *query, const struct plain_life *life,
		       uint64_t size, struct window_row *row)
{
	bool begins = inside(query, life->begin), ends = inside(query, class_end(query, life));

	if (present(query, life))
		add_to(&row->type[begins ? (ends ? WINDOW_AIFI : WINDOW_AIFO)
					 : (ends ? WINDOW_AOFI : WINDOW_AOFO)],
		       size);
}

// What a row says besides of its four classes: what a process's end or a heap's end took.
static bool has_rest(const struct window_query *query, const struct plain_life *life)
{
	return (life->end == WINDOW_NEVER && inside(query, life->exit)) ||
	       (life->end_kind == WINDOW_END_DESTROY && inside(query, life->end));
}

static void count_rest(const struct plain_life *life, uint64_t size, struct window_rest *rest)
{
	if (life->end == WINDOW_NEVER)
		add_to(life->exit_kind == WINDOW_END_EXEC ? &rest->by_exec : &rest->by_exit, size);
	else
		add_to(&rest->by_destroy, size);
}

static bool concerns(const struct window_query *query, const struct plain_life *life)
{
	return present(query, life) || (life->end == WINDOW_NEVER && inside(query, life->exit));
}

// Each lifetime is counted in its group and in the total; what has no place in the four types (an
// end by the process, an orphan) in the rests.
void plain_ask(const struct plain *plain, const struct window_query *query,
	       struct window_result *result)
{
	uint32_t *groups = groups_of(plain, query);
	struct rows rows = { result, window_room(result), result->rests_count };

	ASSERT(query->from <= query->to);
	for (size_t i = 0; i < plain->lives_count; i++) {
		const struct plain_life *life = &plain->lives[i];
		uint32_t group = groups[life->cell];
		uint64_t size = plain->cells[life->cell].size;

		if (group == WINDOW_SKIP || !concerns(query, life) ||
		    !lifetime_fits(plain, query, life))
			continue;
		make_row(&rows, group);
		count_life(query, life, size, &result->rows[group]);
		count_life(query, life, size, &result->total);
		if (!has_rest(query, life))
			continue;
		make_rest(&rows, group);
		count_rest(life, size, &result->rests[group]);
		count_rest(life, size, &result->total_rest);
	}
	for (size_t i = 0; i < plain->orphans_count && !window_by_lifetime(query); i++) {
		uint32_t group = groups[plain->orphans[i].cell];

		if (group == WINDOW_SKIP || !inside(query, plain->orphans[i].step))
			continue;
		make_rest(&rows, group);
		result->rests[group].orphans++;
		result->total_rest.orphans++;
	}
	mem_free(groups);
}

// Threads are not known here; where they are asked for, the caller gets them from the trace.
bool plain_walk(const struct plain *plain, const struct window_query *query,
		bool (*each)(void *context, const struct window_allocation *allocation),
		void *context)
{
	uint32_t *groups = groups_of(plain, query);
	bool more = true;

	for (size_t i = 0; i < plain->lives_count && more; i++) {
		const struct plain_life *life = &plain->lives[i];
		struct window_allocation allocation = {
			.cell = plain->cells[life->cell],
			.group = groups[life->cell],
			.begin = life->begin,
			.end = level_end(life),
			.begin_ns = life->begin_ns,
			.end_ns = life->begin_ns + lifetime_of(plain, life),
			.end_kind = life->end != WINDOW_NEVER    ? life->end_kind
				    : life->exit != WINDOW_NEVER ? life->exit_kind
								 : WINDOW_END_NEVER,
			.begin_thread = TRACE_NONE,
			.end_thread = TRACE_NONE,
		};

		if (allocation.group != WINDOW_SKIP && present(query, life) &&
		    lifetime_fits(plain, query, life))
			more = each(context, &allocation);
	}
	mem_free(groups);
	return more;
}

// ---- levels ----

// The level of a group goes up or down.
struct change {
	uint64_t step;
	uint64_t time_ns;
	uint64_t size;
	uint32_t group;
	bool up, exit;
};

struct changes {
	struct change *list;
	size_t count, capacity;
};

SORT_ORDER(compare_changes, struct change, SORT_RISES(step))

// A lifetime has two changes, and qsort takes as much as it sorts.
uint64_t plain_bytes(const struct plain *plain, const struct plain_steps *steps)
{
	return plain->lives_count * (sizeof *plain->lives + 2 * 2 * sizeof(struct change)) +
	       steps->count * (sizeof *steps->times_ns + sizeof *steps->numbers);
}

// All changes of the level by lifetimes that the query selects, before `to`, in order.
static struct changes changes_of(const struct plain *plain, const struct window_query *query)
{
	uint32_t *groups = groups_of(plain, query);
	struct changes changes = { 0 };

	for (size_t i = 0; i < plain->lives_count; i++) {
		const struct plain_life *life = &plain->lives[i];
		struct change change = { .group = groups[life->cell],
					 .size = plain->cells[life->cell].size };

		if (change.group == WINDOW_SKIP || !lifetime_fits(plain, query, life))
			continue;
		MEM_ROOM(changes.list, changes.capacity, changes.count + 2);
		change.step = life->begin;
		change.time_ns = life->begin_ns;
		change.up = true;
		if (change.step < query->to)
			changes.list[changes.count++] = change;
		change.step = level_end(life);
		change.time_ns = life->begin_ns + lifetime_of(plain, life);
		change.up = false;
		change.exit = life->end == WINDOW_NEVER;
		if (change.step < query->to)
			changes.list[changes.count++] = change;
	}
	mem_free(groups);
	if (changes.count)
		qsort(changes.list, changes.count, sizeof *changes.list, compare_changes);
	return changes;
}

// Added modulo 2^64: UINT64_MAX takes one away.
static void apply(struct heap_amount *level, const struct change *change)
{
	level->count += change->up ? 1 : UINT64_MAX;
	level->bytes += change->up ? change->size : 0 - change->size;
}

// Whether a step is the first of the two of a realloc, and the second is of the same group.
static bool goes_on(const struct changes *changes, size_t i, struct window *window)
{
	const struct change *change = &changes->list[i];

	return window && i + 1 < changes->count && !change->up && !change->exit && change[1].up &&
	       change[1].step == change->step + 1 && change[1].group == change->group &&
	       window_edge_splits(window, change[1].step);
}

static bool step_is_over(const struct changes *changes, size_t i)
{
	return i + 1 == changes->count || changes->list[i + 1].step != changes->list[i].step;
}

// WINDOW_SKIP as the group that is asked for stands for all groups.
static bool is_of(const struct window_detail *detail, uint32_t group)
{
	return group != WINDOW_SKIP && (group == detail->group || detail->group == WINDOW_SKIP);
}

// The peaks of one group. The level counts when a step is over: a realloc that ends 100 bytes and
// begins 200 in one step never was at 300. Before the first change of the window the level is what
// lives at its edge.
static void find_peak(const struct changes *changes, const struct window_query *query,
		      struct window_detail *detail)
{
	struct heap_amount level = { 0 };
	size_t i = 0;

	for (; i < changes->count && changes->list[i].step < query->from; i++)
		if (is_of(detail, changes->list[i].group))
			apply(&level, &changes->list[i]);
	detail->peak_bytes = level.bytes;
	detail->peak_count = detail->most_count = level.count;
	detail->peak_edge = query->from;
	for (; i < changes->count; i++) {
		if (is_of(detail, changes->list[i].group))
			apply(&level, &changes->list[i]);
		if (!step_is_over(changes, i))
			continue;
		if (level.bytes > detail->peak_bytes) {
			detail->peak_bytes = level.bytes;
			detail->peak_count = level.count;
			detail->peak_edge = changes->list[i].step + 1;
		}
		if (level.count > detail->most_count)
			detail->most_count = level.count;
	}
}

// First, last, and lifetimes of one group. Lifetimes are of what ended in the window before its
// process did. The median of an even count is the lower of the two in the middle: of 4, 8, 15 and
// 16 it is 8.
static void find_times(const struct plain *plain, const uint32_t *groups,
		       const struct window_query *query, struct window_detail *detail)
{
	uint64_t *lifetimes = NULL, first = WINDOW_NEVER, last = 0;
	size_t count = 0, capacity = 0;

	detail->first_ns = detail->last_ns = 0;
	for (size_t i = 0; i < plain->lives_count; i++) {
		const struct plain_life *life = &plain->lives[i];
		enum window_type type;

		if (!is_of(detail, groups[life->cell]) || !lifetime_fits(plain, query, life))
			continue;
		if (inside(query, life->begin) && life->begin < first) {
			first = life->begin;
			detail->first_ns = life->begin_ns;
		}
		if (inside(query, life->begin) && life->begin >= last) {
			last = life->begin;
			detail->last_ns = life->begin_ns;
		}
		type = inside(query, life->begin) ? WINDOW_AIFI : WINDOW_AOFI;
		if (!inside(query, life->end) || (detail->types && !(detail->types >> type & 1)))
			continue;
		*MEM_ADD(lifetimes, count, capacity) = life->end_ns - life->begin_ns;
	}
	if (count)
		qsort(lifetimes, count, sizeof *lifetimes, mem_compare_u64);
	detail->lifetimes = count;
	detail->lifetime_median_ns = count ? lifetimes[(count - 1) / 2] : 0;
	detail->lifetime_p99_ns = count ? lifetimes[(count - 1) * 99 / 100] : 0;
	mem_free(lifetimes);
}

// Changes are sorted once, and each detail goes through them again.
void plain_detail(const struct plain *plain, const struct window_query *query,
		  struct window_detail *details, size_t count)
{
	struct changes changes = changes_of(plain, query);
	uint32_t *groups = groups_of(plain, query);

	for (size_t i = 0; i < count; i++) {
		find_peak(&changes, query, &details[i]);
		find_times(plain, groups, query, &details[i]);
	}
	MEM_FREE(groups, changes.list);
}

// A level for each group, followed through all changes; groups that are not asked for have numbers
// past the last.
void plain_series(const struct plain *plain, const struct window_query *query,
		  const struct window_sums *to)
{
	struct buckets_axis axis = { query->from_ns, query->to_ns, to->count };
	size_t groups_count = to->groups_count;
	struct changes changes = changes_of(plain, query);
	struct buckets_row *rows = mem_alloc(groups_count + 1, sizeof *rows);
	size_t i = 0, first;

	ASSERT(to->count > 0);
	for (; i < changes.count && changes.list[i].step < query->from; i++)
		if (changes.list[i].group < groups_count)
			apply(&rows[changes.list[i].group].level, &changes.list[i]);
	for (size_t g = 0; g < groups_count; g++)
		buckets_begin(&rows[g], to->buckets + g * to->count, rows[g].level);
	for (first = i; i < changes.count; i++) {
		struct heap_amount levels = { 0 };

		if (!step_is_over(&changes, i))
			continue;
		// A step that begins and ends several at once shows only its outcome. So does a
		// realloc, whose end is the only change of its step.
		for (size_t k = first; k <= i; k++) {
			if (changes.list[k].group >= groups_count)
				continue;
			buckets_go(&rows[changes.list[k].group],
				   buckets_find(&axis, changes.list[k].time_ns));
			apply(&rows[changes.list[k].group].level, &changes.list[k]);
		}
		for (size_t k = goes_on(&changes, i, to->window) ? i + 1 : first; k <= i; k++) {
			if (changes.list[k].group >= groups_count)
				continue;
			levels = rows[changes.list[k].group].level;
			buckets_set(&rows[changes.list[k].group], levels);
		}
		first = i + 1;
	}
	for (size_t g = 0; g < groups_count; g++)
		buckets_end(&rows[g], &axis);
	MEM_FREE(rows, changes.list);
}

// Changes before the window are passed over.
void plain_changes(const struct plain *plain, const struct window_query *query,
		   bool (*each)(void *context, const struct window_change *change), void *context)
{
	struct changes changes = changes_of(plain, query);
	bool more = true;

	for (size_t i = 0; i < changes.count && more; i++) {
		const struct change *change = &changes.list[i];
		const struct window_change told = {
			.edge = change->step + 1,
			.time_ns = change->time_ns,
			.bytes = change->size,
			.group = change->group,
			.up = change->up,
			.exit = change->exit,
			.last = step_is_over(&changes, i),
		};

		if (change->step >= query->from)
			more = each(context, &told);
	}
	mem_free(changes.list);
}

// Of the whole trace; 0 at WINDOW_START if nothing ever lived.
struct heap_amount plain_peak(const struct plain *plain, enum window_layer layer, uint64_t *edge)
{
	struct window_query query = { .to = WINDOW_NEVER, .layers = layer };
	struct changes changes = changes_of(plain, &query);
	struct heap_amount level = { 0 }, peak = { 0 };

	*edge = WINDOW_START;
	for (size_t i = 0; i < changes.count; i++) {
		apply(&level, &changes.list[i]);
		if (step_is_over(&changes, i) && level.bytes > peak.bytes) {
			peak = level;
			*edge = changes.list[i].step + 1;
		}
	}
	mem_free(changes.list);
	return peak;
}

// What was allocated is in the bucket of its beginning, what was freed in that of its end; a
// process's end frees nothing here.
void plain_flows(const struct plain *plain, const struct window_query *query,
		 const struct window_sums *to)
{
	struct buckets_axis axis = { query->from_ns, query->to_ns, to->count };
	uint32_t *groups = groups_of(plain, query);

	ASSERT(to->count > 0);
	for (size_t i = 0; i < plain->lives_count; i++) {
		const struct plain_life *life = &plain->lives[i];
		uint64_t size = plain->cells[life->cell].size;
		struct window_flow *row;

		if (groups[life->cell] >= to->groups_count || !lifetime_fits(plain, query, life))
			continue;
		row = to->flows + groups[life->cell] * to->count;
		if (inside(query, life->begin))
			add_to(&row[buckets_find(&axis, life->begin_ns)].allocated, size);
		if (inside(query, life->end))
			add_to(&row[buckets_find(&axis, life->end_ns)].freed, size);
	}
	mem_free(groups);
}

// Only what ended before its process did, in the window.
void plain_lifetimes(const struct plain *plain, const struct window_query *query,
		     const struct window_sums *to)
{
	uint32_t *groups = groups_of(plain, query);

	ASSERT(to->count == WINDOW_LIFETIME_CLASSES);
	for (size_t i = 0; i < plain->lives_count; i++) {
		const struct plain_life *life = &plain->lives[i];
		uint32_t group = groups[life->cell];

		if (group >= to->groups_count || !inside(query, life->end) ||
		    !lifetime_fits(plain, query, life))
			continue;
		add_to(&to->classes[group * to->count +
				    window_lifetime_class(life->end_ns - life->begin_ns)],
		       plain->cells[life->cell].size);
	}
	mem_free(groups);
}
