// Runs of both sides, one after the other, into one list of rows.
//
// A row's number is that of its program and of what its stack reads as, which is the same in all
// runs (stack_match.h). For example, three runs before and three after: a row has six values of
// each figure, those of a run in which it is not are 0, and what is shown is the difference of the
// two means. Whether it is called a change says engine/significance.h, from the six values of all
// rows together.
//
// Processes are matched apart from stacks, by their program and by the process that started them,
// in the order in which they were started: the second gcc of make on one side is the second gcc of
// make on the other.
#include "report/find/diff.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/replay/temporary.h"
#include "engine/significance.h"
#include "report/find/stack_match.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const diff_order_words[] = { "live", "peak", "allocated", "count", "temporary", NULL };
_Static_assert(sizeof diff_order_words / sizeof *diff_order_words == DIFF_ORDERS + 1,
	       "a word each, and the end");

int64_t diff_bytes(const struct diff_pair *pair)
{
	return (int64_t)(pair->side[1].bytes - pair->side[0].bytes);
}

int64_t diff_count(const struct diff_pair *pair)
{
	return (int64_t)(pair->side[1].count - pair->side[0].count);
}

// Bytes; a quarter of them is for rows and texts of stacks, the rest for the index of the run that
// is read.
enum { MEMORY_DEFAULT = 256 << 20, MEMORY_SHARE = 4 };

#define NOT_YET UINT32_MAX

// While runs are read, one after the other. `run` counts those of both sides, `run_of_side` those
// of this one. What is of one run (row_of, process_of) is thrown away after it.
struct comparing {
	struct diff *diff;
	struct stack_match *stack_match;
	struct query_context *asked; // of the run that is being read
	int side;
	uint32_t run, run_of_side;

	struct diff_row *rows;
	size_t rows_count, rows_capacity;
	struct map numbers; // program << 32 | stack -> row
	uint64_t bytes_max; // of rows, their amounts and twins
	bool over;          // which are more
	uint32_t *row_of;   // by place of this side: row + 1; 0: not yet known
	size_t row_of_capacity;

	struct diff_process *processes;
	size_t processes_count, processes_capacity;
	uint32_t *process_of; // by process id of this side -> processes; NOT_YET

	// Processes of the runs before this one that may be the same as one of it.
	struct map children;   // parent's number + 1 (0: none) << 32 | program -> the first's, + 1
	struct map programs;   // program -> the first's number + 1
	uint32_t *next_child;  // by process: the next of the same parent and program, + 1
	uint32_t *next_of_one; // the same of the same program
	bool *taken;           // by process: it has its pair in this run
};

// ---- figures of each run ----

static uint32_t runs_total(const struct diff *diff)
{
	return diff->runs[0] + diff->runs[1];
}

// Points at the first of DIFF_FIGURES amounts; holds until the next add_amounts.
static struct heap_amount *amount_at(const struct diff *diff, const struct diff_amounts *amounts,
				     size_t number, uint32_t run)
{
	ASSERT(run < runs_total(diff));
	ASSERT((number + 1) * runs_total(diff) * DIFF_FIGURES <= amounts->count);
	return amounts->at + (number * runs_total(diff) + run) * DIFF_FIGURES;
}

// One more row of them.
static void add_amounts(const struct diff *diff, struct diff_amounts *amounts)
{
	size_t more = runs_total(diff) * (size_t)DIFF_FIGURES;

	MEM_ROOM(amounts->at, amounts->capacity, amounts->count + more);
	memset(amounts->at + amounts->count, 0, more * sizeof *amounts->at);
	amounts->count += more;
}

// The mean of runs, to the nearest whole.
static uint64_t mean_of(uint64_t sum, uint32_t runs)
{
	ASSERT(runs > 0);
	return sum / runs + (sum % runs * 2 >= runs && runs > 1);
}

// The figure of a side is the mean of its runs, rounded to the nearest; a run that does not have
// the row counts as 0.
static void set_means(const struct diff *diff, const struct diff_amounts *amounts, size_t number,
		      struct diff_pair figures[DIFF_FIGURES])
{
	for (int figure = 0; figure < DIFF_FIGURES; figure++)
		for (uint32_t side = 0, run = 0; side < 2; side++) {
			struct heap_amount sum = { 0 };

			for (uint32_t end = run + diff->runs[side]; run < end; run++)
				sum = window_sum(sum,
						 amount_at(diff, amounts, number, run)[figure]);
			figures[figure].side[side].bytes = mean_of(sum.bytes, diff->runs[side]);
			figures[figure].side[side].count = mean_of(sum.count, diff->runs[side]);
		}
}

// One figure in each run, those of A first: what a test of significance looks at.
static void set_values(const struct diff *diff, const struct diff_amounts *amounts, size_t number,
		       enum diff_figure figure, bool by_count, double *values)
{
	for (uint32_t run = 0; run < runs_total(diff); run++) {
		const struct heap_amount *amount = amount_at(diff, amounts, number, run) + figure;

		values[run] = (double)(by_count ? amount->count : amount->bytes);
	}
}

// With a run each every difference is a change, and the interval is the difference itself. With
// several the verdict is by all ways to share the runs out (significance.h).
struct diff_verdict diff_judge(const struct diff *diff, const struct diff_amounts *amounts,
			       size_t number, enum diff_figure figure, bool by_count)
{
	double values[SIGNIFICANCE_RUNS_MAX];
	struct significance_verdict verdict;

	ASSERT(figure < DIFF_FIGURES);
	set_values(diff, amounts, number, figure, by_count, values);
	if (!diff->significance)
		return (struct diff_verdict){ values[1] - values[0], values[1] - values[0],
					      values[1] != values[0] };
	verdict = significance_judge(diff->significance, values);
	return (struct diff_verdict){
		verdict.bounded ? verdict.low : -INFINITY,
		verdict.bounded ? verdict.high : INFINITY,
		verdict.changed,
	};
}

// All figures of all rows are one family: the more there are, the more a single one must differ to
// be called changed.
static void add_figures(struct diff *diff, const struct diff_amounts *amounts)
{
	size_t rows = amounts->count / (runs_total(diff) * (size_t)DIFF_FIGURES);
	double values[SIGNIFICANCE_RUNS_MAX];

	for (size_t number = 0; number < rows; number++)
		for (int figure = 0; figure < 2 * DIFF_FIGURES; figure++) {
			set_values(diff, amounts, number, (enum diff_figure)(figure / 2),
				   figure % 2, values);
			significance_add(diff->significance, values);
		}
}

// All was read: what must a change exceed?
static void settle(struct diff *diff)
{
	ASSERT(diff->runs[0] > 0 && diff->runs[1] > 0);
	if (runs_total(diff) == 2)
		return;
	diff->significance = significance_new(diff->runs[0], diff->runs[1], false);
	add_figures(diff, &diff->total_amounts);
	add_figures(diff, &diff->process_amounts);
	add_figures(diff, &diff->row_amounts);
	significance_settle(diff->significance);
}

// ---- processes ----

// Its number. It has no place on either side until set_process.
static uint32_t new_process(struct comparing *comparing, uint32_t parent, uint32_t program)
{
	ASSERT(parent <= comparing->processes_count);
	MEM_ROOM(comparing->processes, comparing->processes_capacity,
		 comparing->processes_count + 1);
	comparing->processes[comparing->processes_count] = (struct diff_process){
		.place = { { 0, TRACE_NONE, 0 }, { 0, TRACE_NONE, 0 } },
		.program = program,
		.parent = parent,
	};
	add_amounts(comparing->diff, &comparing->diff->process_amounts);
	return (uint32_t)comparing->processes_count++;
}

static void set_process(struct comparing *comparing, process_id id, uint32_t number)
{
	struct diff_place *place = &comparing->processes[number].place[comparing->side];

	ASSERT(number < comparing->processes_count);
	ASSERT(comparing->process_of[id] == NOT_YET);
	if (place->process == TRACE_NONE)
		*place = (struct diff_place){ comparing->run_of_side, id, 0 };
	comparing->process_of[id] = number;
}

// The nearest parent that is selected, by its number + 1; 0: none. False: it is not known yet which
// process of earlier runs that is.
static bool parent_of(const struct comparing *comparing, process_id id, uint32_t *number)
{
	const struct reader *reader = comparing->asked->reader;
	process_id parent = reader_process(reader, id)->parent, child = id;

	*number = 0;
	while (parent < child && !query_has_process(&comparing->asked->selection.query, parent)) {
		child = parent;
		parent = reader_process(reader, parent)->parent;
	}
	if (parent < child) { // which comes first in the list; else there is none
		if (comparing->process_of[parent] == NOT_YET)
			return false;
		*number = comparing->process_of[parent] + 1;
	}
	return true;
}

static uint64_t place_key(uint32_t parent, uint32_t program)
{
	return (uint64_t)parent << 32 | program;
}

// What the earlier runs have: each can be found by its place and by its program. It goes from the
// last number to the first, so that each list rises.
static void list_processes(struct comparing *comparing)
{
	size_t numbers = comparing->processes_count;
	uint64_t *first;

	MAP_FINI(&comparing->children, &comparing->programs);
	comparing->next_child = mem_alloc(numbers + 1, sizeof(uint32_t));
	comparing->next_of_one = mem_alloc(numbers + 1, sizeof(uint32_t));
	comparing->taken = mem_alloc(numbers + 1, sizeof(bool));
	for (uint32_t number = (uint32_t)numbers; number-- > 0;) {
		const struct diff_process *process = &comparing->processes[number];

		first = map_put(&comparing->children, place_key(process->parent, process->program),
				NULL);
		comparing->next_child[number] = (uint32_t)*first;
		*first = number + 1;
		first = map_put(&comparing->programs, process->program, NULL);
		comparing->next_of_one[number] = (uint32_t)*first;
		*first = number + 1;
	}
}

// The first of a list that has no partner in this run yet is that of `id`.
static bool pair_with(struct comparing *comparing, process_id id, uint64_t *first,
		      const uint32_t *next)
{
	while (first && *first && comparing->taken[*first - 1])
		*first = next[*first - 1];
	if (!first || !*first)
		return false;
	comparing->taken[*first - 1] = true;
	ASSERT(*first <= comparing->processes_count);
	set_process(comparing, id, (uint32_t)*first - 1);
	return true;
}

// False: no process of the earlier runs is in its place, or it is not known yet.
static bool pair_by_place(struct comparing *comparing, process_id id)
{
	uint32_t program = stack_match_program(comparing->stack_match, id), parent;

	return parent_of(comparing, id, &parent) &&
	       pair_with(comparing, id, map_find(&comparing->children, place_key(parent, program)),
			 comparing->next_child);
}

// Those that are in the same place first. The second round asks for the place once more: a parent
// that it has paired by program alone, or made new, has a number then, and its children come after
// it. What is left is paired by program, and else is a new process.
static void pair_processes(struct comparing *comparing, uint32_t count)
{
	const struct query *query = &comparing->asked->selection.query;

	for (process_id id = 0; id < count; id++)
		if (query_has_process(query, id))
			pair_by_place(comparing, id);
	for (process_id id = 0; id < count; id++) {
		uint32_t program = stack_match_program(comparing->stack_match, id), parent = 0;

		if (query_has_process(query, id) && comparing->process_of[id] == NOT_YET &&
		    !pair_by_place(comparing, id) &&
		    !pair_with(comparing, id, map_find(&comparing->programs, program),
			       comparing->next_of_one)) {
			parent_of(comparing, id, &parent);
			set_process(comparing, id, new_process(comparing, parent, program));
		}
	}
}

static void add_processes(struct comparing *comparing)
{
	uint32_t count = reader_processes_count(comparing->asked->reader);

	comparing->process_of = mem_alloc(count + (size_t)1, sizeof *comparing->process_of);
	memset(comparing->process_of, 0xff, count * sizeof *comparing->process_of);
	list_processes(comparing);
	pair_processes(comparing, count);
	MEM_FREE(comparing->next_child, comparing->next_of_one, comparing->taken);
}

// ---- the figures of one run, by place ----

static uint64_t bytes_used(const struct comparing *comparing)
{
	return comparing->rows_count * sizeof *comparing->rows + map_bytes(&comparing->numbers) +
	       comparing->diff->row_amounts.count * sizeof(struct heap_amount) +
	       stack_match_bytes(comparing->stack_match);
}

// Makes the row where it is new. The place of a row is the first that was met on each side: names
// are shown from there.
static uint32_t find_row(struct comparing *comparing, process_id process, stack_id stack)
{
	uint32_t program = comparing->processes[comparing->process_of[process]].program;
	uint32_t twin = stack_match_stack(comparing->stack_match, process, stack);
	bool added;
	uint64_t *number = map_put(&comparing->numbers, (uint64_t)program << 32 | twin, &added);
	struct diff_row *row;

	ASSERT(comparing->process_of[process] < comparing->processes_count);
	if (added) {
		*number = comparing->rows_count;
		MEM_ROOM(comparing->rows, comparing->rows_capacity, comparing->rows_count + 1);
		comparing->rows[comparing->rows_count] = (struct diff_row){
			.place = { { 0, TRACE_NONE, 0 }, { 0, TRACE_NONE, 0 } },
			.program = program,
			.number = (uint32_t)comparing->rows_count,
			.twin = twin,
		};
		comparing->rows_count++;
		add_amounts(comparing->diff, &comparing->diff->row_amounts);
		comparing->over |= bytes_used(comparing) > comparing->bytes_max;
	}
	ASSERT(*number < comparing->rows_count);
	row = &comparing->rows[*number];
	if (row->place[comparing->side].process == TRACE_NONE)
		row->place[comparing->side] =
			(struct diff_place){ comparing->run_of_side, process, stack };
	return (uint32_t)*number;
}

// Each place of the run is looked up once: reading what a stack says is expensive.
static uint32_t row_of(struct comparing *comparing, uint32_t place)
{
	uint32_t *row = MEM_REACH(comparing->row_of, comparing->row_of_capacity, place);

	ASSERT(place < comparing->asked->places_count);
	if (!*row)
		*row = find_row(comparing, comparing->asked->places[place].process,
				comparing->asked->places[place].stack) +
		       1;
	return *row - 1;
}

// To the row, to its process and to the total, of the run that is read. row_of comes first, since
// it may make room, which moves the amounts.
static void add_amount(struct comparing *comparing, enum diff_figure figure, uint32_t place,
		       struct heap_amount amount)
{
	process_id process = comparing->asked->places[place].process;
	struct diff *diff = comparing->diff;
	uint32_t row = row_of(comparing, place), run = comparing->run;
	struct heap_amount *sums[] = {
		amount_at(diff, &diff->row_amounts, row, run) + figure,
		amount_at(diff, &diff->process_amounts, comparing->process_of[process], run) +
			figure,
		amount_at(diff, &diff->total_amounts, 0, run) + figure,
	};

	ASSERT(figure < DIFF_FIGURES);
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		*sums[i] = window_sum(*sums[i], amount);
}

static bool too_many(const struct comparing *comparing, struct err *err)
{
	return err_set(err, ERR_LIMIT,
		       "what more than %s stacks read as does not fit in a quarter of the memory: "
		       "choose fewer with filters, or raise --memory over %s",
		       STR_COUNT(comparing->rows_count),
		       STR_BYTES(comparing->bytes_max * MEMORY_SHARE));
}

// What was allocated in a window, or what lives at its end, of all places.
static void add_rows(struct comparing *comparing, enum diff_figure figure,
		     const struct window_result *result)
{
	for (uint32_t g = 0; g < result->rows_count && !comparing->over; g++) {
		const struct window_row *row = &result->rows[g];
		struct heap_amount amount =
			figure == DIFF_ALLOCATED
				? window_allocated(row)
				: window_sum(row->type[WINDOW_AIFO], row->type[WINDOW_AOFO]);

		if (amount.count)
			add_amount(comparing, figure, g, amount);
	}
}

// From an edge to itself is what lives there: of DIFF_LIVE and DIFF_PEAK.
static bool add_level(struct comparing *comparing, enum diff_figure figure, uint64_t edge,
		      bool exit_frees, struct err *err)
{
	struct query_context *asked = comparing->asked;
	struct window_query query = query_context_query(asked, QUERY_CONTEXT_BY_PLACE, edge, edge);
	struct window_result result;

	ASSERT(figure == DIFF_LIVE || figure == DIFF_PEAK);
	query.exit_frees = exit_frees;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	add_rows(comparing, figure, &result);
	window_result_fini(&result);
	return !comparing->over || too_many(comparing, err);
}

// What was allocated in the window, and what lives at its end. Estimates of both are rounded apart,
// so what lives is asked for by itself then.
static bool add_window(struct comparing *comparing, struct err *err)
{
	struct query_context *asked = comparing->asked;
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_BY_PLACE, asked->from, asked->to);
	struct window_result result;
	bool exact;

	query.exit_frees = false;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	exact = result.spreads == NULL;
	add_rows(comparing, DIFF_ALLOCATED, &result);
	if (exact)
		add_rows(comparing, DIFF_LIVE, &result);
	window_result_fini(&result);
	if (comparing->over)
		return too_many(comparing, err);
	return exact || add_level(comparing, DIFF_LIVE, asked->to, false, err);
}

// A realloc that failed takes back what was counted: minus one, in whole numbers that wrap around.
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

// With no filter, what the whole trace adds up to has them, and may be kept from before.
static void add_whole_temporaries(struct comparing *comparing)
{
	struct whole whole;
	struct whole_walk walk;

	query_context_whole(comparing->asked, &whole, true, NULL, NULL);
	walk = whole_walk(&whole, 1 << WHOLE_PLACE | 1 << WHOLE_TEMPORARY);
	while (!comparing->over && whole_walk_next(&walk))
		if (walk.site->temporary.count)
			add_amount(comparing, DIFF_TEMPORARY,
				   query_context_place(comparing->asked, walk.site->process,
						       walk.site->stack),
				   walk.site->temporary);
	whole_fini(&whole);
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
	if (!query_context_select(asked, err))
		return false;
	if (!query_narrows(&asked->selection.query)) {
		add_whole_temporaries(comparing);
		return !comparing->over || too_many(comparing, err);
	}
	reader_rewind(asked->reader);
	progress_begin(&progress, mode, "reading", reader_bytes(asked->reader));
	temporary_read(asked->reader, &asked->selection.query, &visitor, &progress);
	progress_end(&progress);
	return !comparing->over || too_many(comparing, err);
}

// The four figures of one run. The index is left at the end, so that the next one has the memory.
static bool read_run(struct comparing *comparing, struct query_context *asked,
		     enum progress_mode mode, struct err *err)
{
	struct query_context_peak peak;
	bool ok;

	ASSERT(!comparing->process_of && !comparing->row_of);
	comparing->asked = asked;
	stack_match_turn(comparing->stack_match, asked->names, asked->reader);
	add_processes(comparing);
	// At the peak, blocks of processes that had ended are gone, as for the peak itself.
	ok = query_context_match(asked, err) && add_window(comparing, err) &&
	     query_context_peak(asked, asked->from, asked->to, &peak, err) &&
	     add_level(comparing, DIFF_PEAK, peak.edge, true, err) &&
	     add_temporaries(comparing, mode, err);
	MEM_FREE(comparing->process_of, comparing->row_of);
	comparing->process_of = comparing->row_of = NULL;
	comparing->row_of_capacity = 0;
	query_context_leave(asked);
	return ok;
}

// A run of which nothing can be shown, since all it has was met before, needs no names any more.
// What there is to know of it is said of the first.
static void let_go(const struct comparing *comparing, const struct diff_side *side, uint32_t run)
{
	struct query_context *asked = &side->runs[run];

	for (size_t i = 0; i < comparing->rows_count; i++) {
		const struct diff_place *place = &comparing->rows[i].place[comparing->side];

		if (place->process != TRACE_NONE && place->run == run)
			return;
	}
	for (size_t i = 0; i < comparing->processes_count; i++) {
		const struct diff_place *place = &comparing->processes[i].place[comparing->side];

		if (place->process != TRACE_NONE && place->run == run)
			return;
	}
	query_context_close(asked);
	*asked = (struct query_context){ 0 };
}

// The first run speaks for its side: warnings of the others are added to its own, with the names of
// their traces, and it is never closed here.
static bool read_side(struct comparing *comparing, int side_number, const struct diff_side *side,
		      const struct diff_options *options, struct err *err)
{
	comparing->side = side_number;
	for (uint32_t run = 0; run < side->count; run++) {
		struct query_context *asked = &side->runs[run];

		comparing->run_of_side = run;
		if (!options->open(options->context, side_number, run, asked, err) ||
		    !read_run(comparing, asked, options->progress, err))
			return false;
		comparing->run++;
		for (size_t i = 0; run > 0 && i < asked->warnings_count; i++)
			query_context_warn(&side->runs[0], "%s: %s", side->names[run],
					   asked->warnings[i]);
		if (run > 0)
			let_go(comparing, side, run);
	}
	return true;
}

// ---- rows ----

// What each order ranks by.
static const struct {
	enum diff_figure figure;
	bool by_count;
} ranks[DIFF_ORDERS] = {
	[DIFF_BY_LIVE] = { DIFF_LIVE, false },           [DIFF_BY_PEAK] = { DIFF_PEAK, false },
	[DIFF_BY_ALLOCATED] = { DIFF_ALLOCATED, false }, [DIFF_BY_COUNT] = { DIFF_ALLOCATED, true },
	[DIFF_BY_TEMPORARY] = { DIFF_TEMPORARY, true },
};

// The change in what ranks, with its sign.
static int64_t rank_of(const struct diff_row *row, enum diff_order order)
{
	const struct diff_pair *pair = &row->figures[ranks[order].figure];

	ASSERT(order < DIFF_ORDERS);
	return ranks[order].by_count ? diff_count(pair) : diff_bytes(pair);
}

struct diff_verdict diff_judge_rank(const struct diff *diff, const struct diff_row *row)
{
	ASSERT(diff->order < DIFF_ORDERS);
	return diff_judge(diff, &diff->row_amounts, row->number, ranks[diff->order].figure,
			  ranks[diff->order].by_count);
}

// The bytes of the figure that ranks.
static int64_t bytes_of(const struct diff_row *row, enum diff_order order)
{
	ASSERT(order < DIFF_ORDERS);
	return diff_bytes(&row->figures[ranks[order].figure]);
}

// What moved and is as much as it was is ranked after all that changed, by how much that is.
static uint64_t weight_of(const struct diff_row *row, enum diff_order order)
{
	const struct heap_amount *amount = &row->figures[ranks[order].figure].side[1];

	ASSERT(order < DIFF_ORDERS);
	return ranks[order].by_count ? amount->count : amount->bytes;
}

// The largest change first, a rise before an equal fall; then by where they are, so that the order
// is the same each time.
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct diff_row *left = a, *right = b;
	enum diff_order order = *(const enum diff_order *)context;
	int64_t l = rank_of(left, order), r = rank_of(right, order);
	int order_of_places = 0;

	if (diff_magnitude(l) != diff_magnitude(r))
		return diff_magnitude(l) > diff_magnitude(r) ? -1 : 1;
	if (l != r)
		return l > r ? -1 : 1;
	if (l == 0 && weight_of(left, order) != weight_of(right, order))
		return weight_of(left, order) > weight_of(right, order) ? -1 : 1;
	for (int side = 1; side >= 0 && order_of_places == 0; side--)
		order_of_places =
			trace_compare_places(left->place[side].process, left->place[side].stack,
					     right->place[side].process, right->place[side].stack);
	return order_of_places;
}

// In any figure, between any two runs.
static bool differs(const struct diff *diff, const struct diff_row *row)
{
	uint32_t total = runs_total(diff);
	const struct heap_amount *first = amount_at(diff, &diff->row_amounts, row->number, 0);

	for (uint32_t run = 1; run < total; run++)
		if (memcmp(first + run * (size_t)DIFF_FIGURES, first,
			   DIFF_FIGURES * sizeof *first) != 0)
			return true;
	return false;
}

// In any figure, by bytes or by blocks.
static bool has_changed(const struct diff *diff, const struct diff_row *row)
{
	for (int f = 0; f < 2 * DIFF_FIGURES; f++)
		if (diff_judge(diff, &diff->row_amounts, row->number, (enum diff_figure)(f / 2),
			       f % 2)
			    .changed)
			return true;
	return false;
}

// Each row is counted in exactly one of the six.
static void count_row(struct diff *diff, const struct diff_row *row)
{
	bool changed = has_changed(diff, row);

	if (row->moved)
		diff->moved++;
	else if (changed && row->place[0].process == TRACE_NONE)
		diff->appeared++;
	else if (changed && row->place[1].process == TRACE_NONE)
		diff->vanished++;
	else if (changed)
		diff->changed++;
	else if (differs(diff, row))
		diff->varied++;
	else
		diff->same++;
}

// All rows are counted, those that changed in what ranks are kept, in the same array; of no limit
// also those that changed in another figure alone, which are ranked last.
static void choose_rows(struct diff *diff, struct comparing *comparing,
			const struct diff_options *options)
{
	enum diff_order order = options->order;
	size_t kept = 0, ranked = 0;

	for (size_t i = 0; i < comparing->rows_count; i++) {
		const struct diff_row *row = &comparing->rows[i];

		count_row(diff, row);
		if (!diff_judge_rank(diff, row).changed && !(row->moved && weight_of(row, order))) {
			if (!has_changed(diff, row))
				continue;
			if (options->rows_max > 0 || options->bytes_min > 0) {
				diff->rows_elsewhere++;
				continue;
			}
		}
		ranked++;
		if (diff_magnitude(bytes_of(row, order)) >= options->bytes_min)
			comparing->rows[kept++] = *row;
	}
	ASSERT(kept <= ranked && ranked <= comparing->rows_count);
	mem_sort(comparing->rows, kept, sizeof *comparing->rows, compare_rows, &order);
	diff->rows_total = kept;
	diff->rows_count = options->rows_max && options->rows_max < kept ? (size_t)options->rows_max
									 : kept;
	diff->rows_left_out = ranked - diff->rows_count;
	diff->bytes_min = options->bytes_min;
}

// All was read: the figures that are shown, what changed, what moved.
static void conclude(struct diff *diff, struct comparing *comparing,
		     const struct diff_options *options)
{
	set_means(diff, &diff->total_amounts, 0, diff->totals);
	for (size_t i = 0; i < comparing->processes_count; i++)
		set_means(diff, &diff->process_amounts, i, comparing->processes[i].figures);
	for (size_t i = 0; i < comparing->rows_count; i++)
		set_means(diff, &diff->row_amounts, i, comparing->rows[i].figures);
	comparing->rows_count = diff_moves_join(diff, comparing->rows, comparing->rows_count,
						comparing->stack_match);
	settle(diff);
	if (comparing->rows_count)
		choose_rows(diff, comparing, options);
}

// The message names what is enough; 3 and 3 are not (significance_possible).
bool diff_enough_runs(const struct diff_side sides[static 2], struct err *err)
{
	uint32_t a = sides[0].count, b = sides[1].count;

	if (a == 1 && b == 1)
		return true;
	if (a + b > SIGNIFICANCE_RUNS_MAX)
		return err_set(err, ERR_USAGE, "%" PRIu32 " runs: at most %d can be compared",
			       a + b, SIGNIFICANCE_RUNS_MAX);
	return significance_possible(a, b, false) ||
	       err_set(err, ERR_USAGE,
		       "%" PRIu32 " and %" PRIu32 " runs are too few to tell a change from what "
		       "runs differ by anyway: 4 and 4, 3 and 4, 2 and 5, or 1 and 19 are "
		       "enough (try: tidemark bench --runs 5); 1 and 1 are compared exactly",
		       a, b);
}

// The runs of a side are read one after the other and closed again, but for those that the page
// needs names of: so memory is that of what differs, and not that of all runs.
bool diff_find(struct diff *diff, const struct diff_side sides[static 2],
	       const struct diff_options *options, struct err *err)
{
	uint64_t memory = options->memory_bytes ? options->memory_bytes : MEMORY_DEFAULT;
	struct comparing comparing = {
		.diff = diff,
		.stack_match = stack_match_new(),
		.bytes_max = memory / MEMORY_SHARE,
	};
	bool ok = diff_enough_runs(sides, err);

	mem_give_back_early();
	*diff = (struct diff){
		.order = options->order,
		.runs = { sides[0].count, sides[1].count },
	};
	add_amounts(diff, &diff->total_amounts);
	for (int side = 0; ok && side < 2; side++)
		ok = read_side(&comparing, side, &sides[side], options, err);
	diff->temporary = ok && sides[0].runs[0].layers == WINDOW_HEAP;
	if (ok)
		conclude(diff, &comparing, options);
	diff->rows = comparing.rows;
	diff->processes = comparing.processes;
	diff->processes_count = comparing.processes_count;
	MAP_FINI(&comparing.numbers, &comparing.children, &comparing.programs);
	stack_match_free(comparing.stack_match);
	if (!ok)
		diff_fini(diff);
	return ok;
}

void diff_fini(struct diff *diff)
{
	MEM_FREE(diff->rows, diff->processes, diff->total_amounts.at, diff->process_amounts.at,
		 diff->row_amounts.at);
	significance_free(diff->significance);
	*diff = (struct diff){ 0 };
}
