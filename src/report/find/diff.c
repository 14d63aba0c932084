#include "report/find/diff.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/replay/temporary.h"
#include "report/find/stack_match.h"

#include <stdlib.h>
#include <string.h>

const char *const diff_order_words[] = { "live", "peak", "allocated", "count", "temporary", NULL };

int64_t diff_bytes(const struct diff_pair *pair)
{
	return (int64_t)(pair->side[1].bytes - pair->side[0].bytes);
}

int64_t diff_count(const struct diff_pair *pair)
{
	return (int64_t)(pair->side[1].count - pair->side[0].count);
}

// ---- the figures of one side, by place ----

enum { MEMORY_DEFAULT = 256 << 20, MEMORY_SHARE = 4 };

#define NOT_YET UINT32_MAX

struct comparing {
	struct diff *diff;
	struct stack_match *stack_match;
	struct query_context *asked; // of the side that is being read
	int side;

	struct diff_row *rows;
	size_t rows_count, rows_capacity;
	struct map numbers; // program << 32 | stack -> row
	uint64_t bytes_max; // of rows and twins
	bool over;          // which are more
	uint32_t *row_of;   // by place of this side: row + 1; 0: not yet known
	size_t row_of_capacity;

	struct diff_process *processes;
	size_t processes_count, processes_capacity;
	uint32_t *process_of; // by process id of this side -> processes; NOT_YET

	// Of the first side's processes, those that may be the same as one of the second.
	struct map children;   // parent's number + 1 (0: none) << 32 | program -> the first's, + 1
	struct map programs;   // program -> the first's number + 1
	uint32_t *next_child;  // by process: the next of the same parent and program, + 1
	uint32_t *next_of_one; // the same of the same program
};

static uint32_t new_process(struct comparing *comparing, uint32_t program)
{
	comparing->processes = mem_grow(comparing->processes, &comparing->processes_capacity,
					comparing->processes_count + 1,
					sizeof *comparing->processes);
	comparing->processes[comparing->processes_count] = (struct diff_process){
		.process = { TRACE_NONE, TRACE_NONE },
		.program = program,
	};
	return (uint32_t)comparing->processes_count++;
}

static void set_process(struct comparing *comparing, process_id id, uint32_t number)
{
	comparing->processes[number].process[comparing->side] = id;
	comparing->process_of[id] = number;
}

// Where a process stands: its nearest parent that is selected, and its program. False: it is not
// known yet which process of the first side that parent is.
static bool place_of(const struct comparing *comparing, process_id id, uint64_t *place)
{
	const struct reader *reader = comparing->asked->reader;
	process_id parent = reader_process(reader, id)->parent, child = id;
	uint32_t number = 0;

	while (parent < child && !query_has_process(&comparing->asked->selection.query, parent)) {
		child = parent;
		parent = reader_process(reader, parent)->parent;
	}
	if (parent < child) { // which comes first in the list; else there is none
		if (comparing->process_of[parent] == NOT_YET)
			return false;
		number = comparing->process_of[parent] + 1;
	}
	*place = (uint64_t)number << 32 | stack_match_program(comparing->stack_match, id);
	return true;
}

// The first side: each is by itself, and can be found by its place and by its program.
static void list_processes(struct comparing *comparing, uint32_t count)
{
	size_t numbers;
	uint64_t place = 0, *first;

	for (process_id id = 0; id < count; id++)
		if (query_has_process(&comparing->asked->selection.query, id))
			set_process(comparing, id,
				    new_process(comparing,
						stack_match_program(comparing->stack_match, id)));
	numbers = comparing->processes_count;
	comparing->next_child = mem_alloc(numbers + 1, sizeof(uint32_t));
	comparing->next_of_one = mem_alloc(numbers + 1, sizeof(uint32_t));
	for (uint32_t number = (uint32_t)numbers; number-- > 0;) {
		place_of(comparing, comparing->processes[number].process[0], &place);
		first = map_put(&comparing->children, place, NULL);
		comparing->next_child[number] = (uint32_t)*first;
		*first = number + 1;
		first = map_put(&comparing->programs, comparing->processes[number].program, NULL);
		comparing->next_of_one[number] = (uint32_t)*first;
		*first = number + 1;
	}
}

// The first of a list that has no partner yet is that of `id`.
static bool pair_with(struct comparing *comparing, process_id id, uint64_t *first,
		      const uint32_t *next)
{
	while (first && *first &&
	       comparing->processes[*first - 1].process[comparing->side] != TRACE_NONE)
		*first = next[*first - 1];
	if (!first || !*first)
		return false;
	set_process(comparing, id, (uint32_t)*first - 1);
	return true;
}

static bool pair_by_place(struct comparing *comparing, process_id id)
{
	uint64_t place;

	return place_of(comparing, id, &place) &&
	       pair_with(comparing, id, map_find(&comparing->children, place),
			 comparing->next_child);
}

// The second side: those that stand in the same place first.
static void pair_processes(struct comparing *comparing, uint32_t count)
{
	const struct query *query = &comparing->asked->selection.query;

	for (process_id id = 0; id < count; id++)
		if (query_has_process(query, id))
			pair_by_place(comparing, id);
	for (process_id id = 0; id < count; id++) {
		uint32_t program = stack_match_program(comparing->stack_match, id);

		if (query_has_process(query, id) && comparing->process_of[id] == NOT_YET &&
		    !pair_by_place(comparing, id) &&
		    !pair_with(comparing, id, map_find(&comparing->programs, program),
			       comparing->next_of_one))
			set_process(comparing, id, new_process(comparing, program));
	}
}

static void add_processes(struct comparing *comparing)
{
	uint32_t count = reader_processes_count(comparing->asked->reader);

	comparing->process_of = mem_alloc(count + (size_t)1, sizeof *comparing->process_of);
	memset(comparing->process_of, 0xff, count * sizeof *comparing->process_of);
	if (comparing->side == 0)
		list_processes(comparing, count);
	else
		pair_processes(comparing, count);
}

static uint64_t bytes_used(const struct comparing *comparing)
{
	return comparing->rows_count * sizeof *comparing->rows + map_bytes(&comparing->numbers) +
	       stack_match_bytes(comparing->stack_match);
}

static uint32_t find_row(struct comparing *comparing, process_id process, stack_id stack)
{
	uint32_t program = comparing->processes[comparing->process_of[process]].program;
	uint32_t twin = stack_match_stack(comparing->stack_match, process, stack);
	bool added;
	uint64_t *number = map_put(&comparing->numbers, (uint64_t)program << 32 | twin, &added);
	struct diff_row *row;

	if (added) {
		*number = comparing->rows_count;
		comparing->rows = mem_grow(comparing->rows, &comparing->rows_capacity,
					   comparing->rows_count + 1, sizeof *comparing->rows);
		comparing->rows[comparing->rows_count++] = (struct diff_row){
			.place = { { TRACE_NONE, 0 }, { TRACE_NONE, 0 } },
			.program = program,
		};
		comparing->over |= bytes_used(comparing) > comparing->bytes_max;
	}
	row = &comparing->rows[*number];
	if (row->place[comparing->side].process == TRACE_NONE) {
		row->place[comparing->side].process = process;
		row->place[comparing->side].stack = stack;
	}
	return (uint32_t)*number;
}

static struct diff_row *row_of(struct comparing *comparing, uint32_t place)
{
	size_t before = comparing->row_of_capacity;
	uint32_t *row;

	if (place >= before) {
		comparing->row_of = mem_grow(comparing->row_of, &comparing->row_of_capacity,
					     place + (size_t)1, sizeof *comparing->row_of);
		memset(comparing->row_of + before, 0,
		       (comparing->row_of_capacity - before) * sizeof *comparing->row_of);
	}
	row = &comparing->row_of[place];
	if (!*row)
		*row = find_row(comparing, comparing->asked->places[place].process,
				comparing->asked->places[place].stack) +
		       1;
	return &comparing->rows[*row - 1];
}

static void add_amount(struct comparing *comparing, enum diff_figure figure, uint32_t place,
		       struct heap_amount amount)
{
	process_id process = comparing->asked->places[place].process;
	int side = comparing->side;
	struct diff_row *row = row_of(comparing, place);
	struct diff_process *owner = &comparing->processes[comparing->process_of[process]];
	struct diff_pair *pairs[] = { &row->figures[figure], &owner->figures[figure],
				      &comparing->diff->totals[figure] };

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		pairs[i]->side[side] = window_sum(pairs[i]->side[side], amount);
}

static bool too_many(const struct comparing *comparing, struct err *err)
{
	char count[28], bytes[16];

	return err_set(err, ERR_LIMIT,
		       "what more than %s stacks read as does not fit in a quarter of the memory: "
		       "choose fewer with filters, or raise --memory over %s",
		       str_count(comparing->rows_count, count),
		       str_bytes(comparing->bytes_max * MEMORY_SHARE, bytes));
}

// One figure of all places: what lives at an edge, or what was allocated in a window.
static bool add_figure(struct comparing *comparing, enum diff_figure figure, uint64_t from,
		       uint64_t to, bool exit_frees, struct err *err)
{
	struct query_context *asked = comparing->asked;
	struct window_query query = query_context_query(asked, QUERY_CONTEXT_BY_PLACE, from, to);
	struct window_result result;

	query.exit_frees = exit_frees;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	for (uint32_t g = 0; g < result.rows_count && !comparing->over; g++) {
		struct heap_amount amount = figure == DIFF_ALLOCATED
						    ? window_allocated(&result.rows[g])
						    : window_present(&result.rows[g]);

		if (amount.count)
			add_amount(comparing, figure, g, amount);
	}
	window_result_fini(&result);
	return !comparing->over || too_many(comparing, err);
}

static void add_temporary(void *context, process_id process, stack_id stack, uint64_t size,
			  bool undone)
{
	struct comparing *comparing = context;
	struct heap_amount amount = { 1, size };

	if (undone)
		amount = window_less((struct heap_amount){ 0 }, amount);
	add_amount(comparing, DIFF_TEMPORARY, query_context_place(comparing->asked, process, stack),
		   amount);
}

// What the freeing thread and its next allocation say, only a pass over the events knows.
static bool add_temporaries(struct comparing *comparing, enum progress_mode mode, struct err *err)
{
	struct query_context *asked = comparing->asked;
	const struct temporary_visitor visitor = { comparing, add_temporary };
	struct progress progress;

	if (asked->layers != WINDOW_HEAP)
		return true;
	reader_rewind(asked->reader);
	if (!selection_read(&asked->selection, mode, err))
		return false;
	reader_rewind(asked->reader);
	progress_begin(&progress, mode, "reading", reader_bytes(asked->reader));
	temporary_read(asked->reader, &asked->selection.query, &visitor, &progress);
	progress_end(&progress);
	return !comparing->over || too_many(comparing, err);
}

static bool read_side(struct comparing *comparing, struct query_context *asked, int side,
		      enum progress_mode mode, struct err *err)
{
	struct query_context_peak peak;
	bool ok;

	comparing->asked = asked;
	comparing->side = side;
	stack_match_turn(comparing->stack_match, asked->names, asked->reader);
	add_processes(comparing);
	ok = query_context_match(asked, err) &&
	     add_figure(comparing, DIFF_ALLOCATED, asked->from, asked->to, false, err) &&
	     add_figure(comparing, DIFF_LIVE, asked->to, asked->to, false, err) &&
	     query_context_peak(asked, asked->from, asked->to, &peak, err) &&
	     add_figure(comparing, DIFF_PEAK, peak.edge, peak.edge, true, err) &&
	     add_temporaries(comparing, mode, err);
	mem_free(comparing->process_of);
	mem_free(comparing->row_of);
	comparing->process_of = comparing->row_of = NULL;
	comparing->row_of_capacity = 0;
	query_context_leave(asked);
	return ok;
}

// ---- rows ----

static int64_t rank_of(const struct diff_row *row, enum diff_order order)
{
	switch (order) {
	case DIFF_BY_LIVE:
		return diff_bytes(&row->figures[DIFF_LIVE]);
	case DIFF_BY_PEAK:
		return diff_bytes(&row->figures[DIFF_PEAK]);
	case DIFF_BY_ALLOCATED:
		return diff_bytes(&row->figures[DIFF_ALLOCATED]);
	case DIFF_BY_COUNT:
		return diff_count(&row->figures[DIFF_ALLOCATED]);
	default:
		return diff_count(&row->figures[DIFF_TEMPORARY]);
	}
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

// The bytes of the figure that ranks.
static int64_t bytes_of(const struct diff_row *row, enum diff_order order)
{
	return order == DIFF_BY_COUNT       ? diff_bytes(&row->figures[DIFF_ALLOCATED])
	       : order == DIFF_BY_TEMPORARY ? diff_bytes(&row->figures[DIFF_TEMPORARY])
					    : rank_of(row, order);
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct diff_row *left = a, *right = b;
	enum diff_order order = *(const enum diff_order *)context;
	int64_t l = rank_of(left, order), r = rank_of(right, order);
	int order_of_places = 0;

	if (magnitude(l) != magnitude(r))
		return magnitude(l) > magnitude(r) ? -1 : 1;
	if (l != r)
		return l > r ? -1 : 1;
	for (int side = 1; side >= 0 && order_of_places == 0; side--)
		order_of_places =
			trace_compare_places(left->place[side].process, left->place[side].stack,
					     right->place[side].process, right->place[side].stack);
	return order_of_places;
}

static bool has_changed(const struct diff_row *row)
{
	for (int f = 0; f < DIFF_FIGURES; f++)
		if (diff_bytes(&row->figures[f]) || diff_count(&row->figures[f]))
			return true;
	return false;
}

static void count_row(struct diff *diff, const struct diff_row *row)
{
	if (row->place[0].process == TRACE_NONE)
		diff->appeared++;
	else if (row->place[1].process == TRACE_NONE)
		diff->vanished++;
	else if (has_changed(row))
		diff->changed++;
	else
		diff->same++;
}

static void choose_rows(struct diff *diff, struct comparing *comparing,
			const struct diff_options *options)
{
	enum diff_order order = options->order;
	size_t kept = 0, ranked = 0;

	for (size_t i = 0; i < comparing->rows_count; i++) {
		const struct diff_row *row = &comparing->rows[i];

		count_row(diff, row);
		if (rank_of(row, order) == 0)
			continue;
		ranked++;
		if (magnitude(bytes_of(row, order)) >= options->bytes_min)
			comparing->rows[kept++] = *row;
	}
	mem_sort(comparing->rows, kept, sizeof *comparing->rows, compare_rows, &order);
	diff->rows = comparing->rows;
	diff->rows_total = kept;
	diff->rows_count = options->rows_max && options->rows_max < kept ? (size_t)options->rows_max
									 : kept;
	diff->rows_left_out = ranked - diff->rows_count;
}

bool diff_find(struct diff *diff, struct query_context *sides[static 2],
	       const struct diff_options *options, struct err *err)
{
	uint64_t memory = options->memory_bytes ? options->memory_bytes : MEMORY_DEFAULT;
	struct comparing comparing = {
		.diff = diff,
		.stack_match = stack_match_new(),
		.bytes_max = memory / MEMORY_SHARE,
	};
	bool ok = true;

	mem_give_back_early();
	*diff = (struct diff){ .order = options->order };
	for (int side = 0; ok && side < 2; side++)
		ok = options->open(options->context, side, sides[side], err) &&
		     read_side(&comparing, sides[side], side, options->progress, err);
	diff->temporary = sides[0]->layers == WINDOW_HEAP;
	if (comparing.rows_count)
		choose_rows(diff, &comparing, options);
	diff->processes = comparing.processes;
	diff->processes_count = comparing.processes_count;
	map_fini(&comparing.numbers);
	map_fini(&comparing.children);
	map_fini(&comparing.programs);
	mem_free(comparing.next_child);
	mem_free(comparing.next_of_one);
	stack_match_free(comparing.stack_match);
	if (!ok)
		diff_fini(diff);
	return ok;
}

void diff_fini(struct diff *diff)
{
	mem_free(diff->rows);
	mem_free(diff->processes);
	*diff = (struct diff){ 0 };
}
