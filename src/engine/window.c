// The front of three machines: a list of lifetimes (plain.c), an index, and for virtual memory
// always a list, since a program maps far less often than it allocates.
//
// Which of them there are is window_open.c's. Whatever answers, a question has edges that are in
// the trace and layers; heap figures and those of virtual memory add up (ask_sums), but for peaks
// of one group that has both, whose sum is the best there is (merge_detail).
//
// For example, levels by stack in 100 buckets of a trace of ten million events, of all layers:
//
//     begin        edges into the trace; no filter by lifetime: the index answers
//     index_series fills items[group * 100 + bucket] for the heap
//     plain_series fills a second array of the same form from the list of mappings
//     ask_sums     adds the second to the first, number by number
//
// With --lifetime the index has no sums that help: begin collects the lifetimes of the window into
// a list first, and plain_series is asked for both.
//
// A damaged index is found out by a question. It is marked as unusable, the question ends with
// ERR_INDEX, and the next opening builds it anew: a command is run once more (cli/main.c).
#include "engine/window_own.h"

#include "base/mem.h"
#include "base/rising.h"
#include "engine/index/index_lives.h"
#include "engine/index/index_moment.h"
#include "engine/index/index_plateau.h"
#include "engine/index/index_sorted.h"
#include "engine/index/index_tables.h"
#include "engine/index/spill.h"
#include "engine/window_series.h"
#include "engine/window_source.h"
#include "engine/window_weigh.h"

#include <string.h>

_Static_assert(sizeof(struct window_bucket) % sizeof(uint64_t) == 0,
	       "sums are added number by number");
_Static_assert(sizeof(struct window_flow) % sizeof(uint64_t) == 0, "the same");
_Static_assert(sizeof(struct heap_amount) == 2 * sizeof(uint64_t), "the same");

const struct window_facts *window_facts(const struct window *window)
{
	return &window->facts;
}

// A folder that cannot be written to, or is of another user, is no reason to refuse an answer.
bool window_spill(const struct window *window, struct spill *spill, size_t buffer_bytes,
		  struct err *err)
{
	struct err ignored = { 0 };

	return (window->index.directory > 0 &&
		spill_open(spill, window->index.directory, buffer_bytes, &ignored)) ||
	       spill_open_anywhere(spill, buffer_bytes, err);
}

// A question failed. An index that is damaged is not to be used again.
static bool failed(struct window *window, struct err *err)
{
	if (err->kind != ERR_FORMAT || !window->index_path)
		return false;
	index_forget(&window->index);
	err_wrap(err, "the index %s", window->index_path);
	err->kind = ERR_INDEX;
	return false;
}

// ---- moments ----

// NULL without an error of its own: the caller reads the trace instead. If that is because the
// index is damaged, the next opening builds it again.
struct present *window_source_moment(struct window *window, const struct present_options *options)
{
	struct err err = { 0 };
	struct present *present;

	if (window->plain || !index_moment_knows(&window->index, window->reader, options))
		return NULL;
	present = index_moment(&window->index, window->reader, options, &err);
	if (!present)
		failed(window, &err);
	return present;
}

bool window_source_calls(struct window *window, const struct present_options *options)
{
	struct err err = { 0 };

	if (window->plain || !index_moment_knows(&window->index, window->reader, options))
		return false;
	return index_moment_calls(&window->index, window->reader, options, &err) ||
	       failed(window, &err);
}

bool window_source_plateau(struct window *window, process_id process, uint64_t number,
			   struct plateau *plateau)
{
	struct err err = { 0 };

	return !window->plain && (index_plateau(&window->index, &window->clock, window->reader,
						process, number, plateau, &err) ||
				  failed(window, &err));
}

// True with *known false: nothing was asked, and the caller reads the trace. False: it was asked,
// and failed.
bool window_source_lives(struct window *window, const struct lives_watcher *watcher,
			 void (*over)(void *context, process_id process), struct progress *progress,
			 bool *known, struct err *err)
{
	*known = !window->plain && index_lives_knows(&window->index);
	return !*known ||
	       index_lives(&window->index, window->reader, watcher, over, progress, err) ||
	       failed(window, err);
}

bool window_source_go(struct window *window, uint64_t number)
{
	return !window->plain && index_moment_go(&window->index, window->reader, number);
}

bool window_source_is_exact(const struct window *window)
{
	return !window->plain && !window->index.odd && window->index.undone_count == 0;
}

bool window_source_edge(struct window *window, const struct moment_edge *moment, uint64_t *edge,
			uint64_t *number, struct err *err)
{
	ASSERT(!window->plain);
	return index_moment_edge(&window->index, moment, edge, number, err) || failed(window, err);
}

// Whether places could be found so far.
static bool is_sound(struct window *window, struct err *err)
{
	if (window->err.kind == ERR_NONE)
		return true;
	*err = window->err;
	return failed(window, err);
}

// ---- places ----

uint64_t window_edge_at(struct window *window, uint64_t time_ns)
{
	if (!window->plain) {
		uint64_t edge = WINDOW_START;

		// Whatever is wrong with the index, the next question says.
		index_clock_edge(&window->clock, &window->index, time_ns, &edge, &window->err);
		return edge;
	}
	// The baseline is the first step, at any time.
	return 1 + rising_upto(window->steps.times_ns + 1, window->steps.count - 1, time_ns);
}

// The time of an edge is that of the step before it; edge 0 is before all.
uint64_t window_edge_time(struct window *window, uint64_t edge)
{
	uint64_t time_ns = 0;

	ASSERT(window->facts.steps_end > 0);
	if (edge == 0)
		return 0;
	if (edge > window->facts.steps_end)
		edge = window->facts.steps_end;
	if (window->plain)
		return window->steps.times_ns[edge - 1];
	index_clock_time(&window->clock, &window->index, edge - 1, &time_ns, &window->err);
	return time_ns;
}

const struct window_mark *window_marks(const struct window *window, size_t *count)
{
	*count = window->plain ? window->steps.marks_count : window->index.marks_count;
	return window->plain ? window->steps.marks : window->index.marks;
}

bool window_source_number(struct window *window, uint64_t step, uint64_t *number, struct err *err)
{
	ASSERT(step < window->facts.steps_end);
	if (!window->plain)
		return index_number(&window->index, &window->numbers, step, number, err) ||
		       failed(window, err);
	*number = window->steps.numbers[step];
	return true;
}

bool window_edge_splits(struct window *window, uint64_t edge)
{
	uint64_t before, after;

	return edge > 0 && edge < window->facts.steps_end &&
	       window_source_number(window, edge - 1, &before, &window->err) &&
	       window_source_number(window, edge, &after, &window->err) && before == after &&
	       before != UINT64_MAX;
}

struct reader *window_source_reader(struct window *window)
{
	return window->reader;
}

static bool asks(const struct window_query *query, enum window_layer layer)
{
	return ((query->layers ? query->layers : WINDOW_HEAP) & layer) != 0;
}

// The query, with edges that are in the trace.
static struct window_query tidy(const struct window *window, const struct window_query *query)
{
	struct window_query whole = *query;

	if (whole.to > window->facts.steps_end)
		whole.to = window->facts.steps_end;
	if (whole.from > whole.to)
		whole.from = whole.to;
	return whole;
}

// What answers about heaps: a list of lifetimes, or the index (NULL). What is by lifetime the index
// cannot sum up, so that a list is made for it.
struct heaps {
	const struct plain *list;
	struct plain made;
};

// Begin a question: its edges are put into the trace, and what will answer about heaps is found: a
// list, if `listed`. False: it cannot be asked.
static bool begin(struct window *window, const struct window_query *query, bool listed,
		  struct window_query *whole, struct heaps *heaps, struct err *err)
{
	*whole = tidy(window, query);
	*heaps = (struct heaps){ .list = window->plain ? &window->heap : NULL };
	if (!is_sound(window, err))
		return false;
	if (window->plain || !asks(query, WINDOW_HEAP) || !listed)
		return true;
	heaps->list = &heaps->made;
	if (index_collect(&window->index, &window->clock, whole, &heaps->made, err))
		return true;
	plain_fini(&heaps->made);
	return failed(window, err);
}

static bool ask(void *context, const struct window_query *query, struct window_result *result,
		struct err *err)
{
	struct window *window = context;
	struct window_query whole = tidy(window, query);
	bool ok = true;

	if (window->plain)
		plain_ask(&window->heap, &whole, result);
	else if (asks(query, WINDOW_HEAP))
		ok = index_ask(&window->index, &whole, result, err) || failed(window, err);
	if (ok && asks(query, WINDOW_VM))
		plain_ask(window->vm, &whole, result);
	if (!ok)
		window_result_fini(result);
	return ok;
}

bool window_ask(struct window *window, const struct window_query *query,
		struct window_result *result, struct err *err)
{
	const struct reader *reader = window->reader;

	*result = (struct window_result){ 0 };
	if (!is_sound(window, err))
		return false;
	if (reader_is_estimated(reader) && !query->as_it_is)
		return window_weigh(reader, query, ask, window, result, err);
	return ask(window, query, result, err);
}

void window_result_fini(struct window_result *result)
{
	index_tables_put(result->home, result->rows);
	MEM_FREE(result->rests, result->spreads);
	*result = (struct window_result){ 0 };
}

struct window_rest *window_result_make_rest(struct window_result *result, size_t *capacity,
					    uint32_t group)
{
	size_t count = group + (size_t)1;

	ASSERT(group != WINDOW_SKIP);
	if (group >= result->rests_count) {
		MEM_ROOM(result->rests, *capacity, count);
		memset(result->rests + result->rests_count, 0,
		       (count - result->rests_count) * sizeof *result->rests);
		result->rests_count = group + 1;
	}
	return &result->rests[group];
}

// Both layers in one group are not meant to be; then the sum of peaks is the best there is.
static void merge_detail(struct window_detail *detail, const struct window_detail *other)
{
	if (other->peak_bytes > detail->peak_bytes)
		detail->peak_edge = other->peak_edge;
	detail->peak_bytes += other->peak_bytes;
	detail->peak_count += other->peak_count;
	detail->most_count += other->most_count;
	if (other->first_ns && (!detail->first_ns || other->first_ns < detail->first_ns))
		detail->first_ns = other->first_ns;
	if (other->last_ns > detail->last_ns)
		detail->last_ns = other->last_ns;
	if (other->lifetimes > detail->lifetimes) {
		detail->lifetime_median_ns = other->lifetime_median_ns;
		detail->lifetime_p99_ns = other->lifetime_p99_ns;
	}
	detail->lifetimes += other->lifetimes;
}

// The heap's details, then those of virtual memory, which are always in memory; a group that has
// both gets one of both (merge_detail).
bool window_detail(struct window *window, const struct window_query *query,
		   struct window_detail *details, size_t count, struct err *err)
{
	struct window_query whole;
	struct window_detail *vm;
	struct heaps heaps;
	bool ok = true;

	if (!begin(window, query, window_by_lifetime(query), &whole, &heaps, err))
		return false;
	if (heaps.list)
		plain_detail(heaps.list, &whole, details, count);
	else if (asks(query, WINDOW_HEAP))
		ok = index_detail(&window->index, &window->clock, &whole, details, count, err) ||
		     failed(window, err);
	plain_fini(&heaps.made);
	if (!ok || !asks(query, WINDOW_VM))
		return ok;
	vm = mem_alloc(count + 1, sizeof *vm);
	for (size_t i = 0; i < count; i++)
		vm[i] = (struct window_detail){ .group = details[i].group,
						.types = details[i].types };
	plain_detail(window->vm, &whole, vm, count);
	for (size_t i = 0; i < count; i++) {
		if (asks(query, WINDOW_HEAP))
			merge_detail(&details[i], &vm[i]);
		else
			details[i] = vm[i];
	}
	mem_free(vm);
	return true;
}

// First the heap, then virtual memory; `each` may end either.
bool window_walk(struct window *window, const struct window_query *query,
		 bool (*each)(void *context, const struct window_allocation *allocation),
		 void *context, struct err *err)
{
	struct window_query whole = tidy(window, query);
	bool stopped = false;

	ASSERT(each);
	if (!is_sound(window, err))
		return false;
	if (asks(query, WINDOW_VM))
		whole.enough = NULL; // it comes last, in another order
	if (window->plain) {
		if (!plain_walk(&window->heap, &whole, each, context))
			return true;
	} else if (asks(query, WINDOW_HEAP) && !index_walk(&window->index, &window->clock, &whole,
							   each, context, &stopped, err)) {
		return failed(window, err);
	}
	if (!stopped && asks(query, WINDOW_VM))
		plain_walk(window->vm, &whole, each, context);
	return true;
}

bool window_lived(struct window *window, const struct window_query *query,
		  void (*each)(void *context, unsigned part, const struct window_lived *lived),
		  void *context, bool *known, struct err *err)
{
	struct window_query whole = tidy(window, query);

	*known = false;
	if (!is_sound(window, err))
		return false;
	if (window->plain || asks(query, WINDOW_VM) || window_by_lifetime(query))
		return true;
	return index_lived(&window->index, &whole, each, context, known, err) ||
	       failed(window, err);
}

// ---- changes, one by one ----

// Stretches are offered (`whole`) by the index alone; without one, and for virtual memory, each
// change is shown.
bool window_curve(struct window *window, const struct window_query *query,
		  bool (*whole)(void *context, const struct window_stretch *stretch),
		  bool (*each)(void *context, const struct window_change *change), void *context,
		  struct err *err)
{
	struct window_query all;
	struct heaps heaps;
	bool ok = true;

	ASSERT(each);
	if (!begin(window, query, window_by_lifetime(query), &all, &heaps, err))
		return false;
	if (!asks(query, WINDOW_HEAP))
		plain_changes(window->vm, &all, each, context);
	else if (heaps.list)
		plain_changes(heaps.list, &all, each, context);
	else if (whole)
		ok = index_curve(&window->index, &all, whole, each, context, err);
	else
		ok = index_changes(&window->index, &all, each, context, err);
	plain_fini(&heaps.made);
	return ok || failed(window, err);
}

bool window_changes(struct window *window, const struct window_query *query,
		    bool (*each)(void *context, const struct window_change *change), void *context,
		    struct err *err)
{
	return window_curve(window, query, NULL, each, context, err);
}

// ---- sums by group ----

// The three questions that have sums for an answer: who answers each, and how many numbers an item
// of its answer is.
static const struct sums_question {
	void (*plain)(const struct plain *plain, const struct window_query *query,
		      const struct window_sums *to);
	bool (*index)(struct index *index, struct index_clock *clock,
		      const struct window_query *query, const struct window_sums *to,
		      struct err *err);
	size_t numbers;
	bool listed; // the index does not select by lifetime
} series_question = { plain_series, index_series, sizeof(struct window_bucket) / 8, true },
  flows_question = { plain_flows, index_flows, sizeof(struct window_flow) / 8, true },
  lifetimes_question = { plain_lifetimes, index_lifetimes, sizeof(struct heap_amount) / 8, false };

// Of the heaps, into `to`; of virtual memory into a second one of the same form, which is added.
static bool ask_sums(struct window *window, const struct sums_question *question,
		     const struct window_query *query, const struct window_sums *to,
		     struct err *err)
{
	size_t count = to->groups_count * to->count * question->numbers;
	struct window_sums vm = *to;
	struct window_query whole;
	struct heaps heaps;
	bool ok = true;

	ASSERT(to->count > 0);
	ASSERT(question->numbers > 0);
	if (!begin(window, query, question->listed && window_by_lifetime(query), &whole, &heaps,
		   err))
		return false;
	memset(to->numbers, 0, count * sizeof *to->numbers);
	if (heaps.list)
		question->plain(heaps.list, &whole, to);
	else if (asks(query, WINDOW_HEAP))
		ok = question->index(&window->index, &window->clock, &whole, to, err);
	plain_fini(&heaps.made);
	if (!ok)
		return failed(window, err);
	// It was asked of the places of steps, too.
	if (!is_sound(window, err))
		return false;
	if (!asks(query, WINDOW_VM))
		return true;
	vm.numbers = mem_alloc(count + 1, sizeof *vm.numbers);
	question->plain(window->vm, &whole, &vm);
	for (size_t i = 0; i < count; i++)
		to->numbers[i] += vm.numbers[i];
	mem_free(vm.numbers);
	return true;
}

// The query with the times of its buckets filled in.
static struct window_query with_axis(struct window *window, const struct window_query *query)
{
	struct window_query whole = tidy(window, query);

	if (whole.from_ns == 0 && whole.to_ns == 0) {
		whole.from_ns = window_edge_time(window, whole.from);
		whole.to_ns = window_edge_time(window, whole.to);
	}
	return whole;
}

bool window_series(struct window *window, const struct window_query *query, size_t groups_count,
		   struct window_bucket *buckets, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);
	const struct window_sums to = { groups_count, count, .buckets = buckets, .window = window };

	return ask_sums(window, &series_question, &whole, &to, err);
}

bool window_flows(struct window *window, const struct window_query *query, size_t groups_count,
		  struct window_flow *flows, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);
	const struct window_sums to = { groups_count, count, .flows = flows };

	return ask_sums(window, &flows_question, &whole, &to, err);
}

bool window_lifetimes(struct window *window, const struct window_query *query, size_t groups_count,
		      struct heap_amount *classes, struct err *err)
{
	const struct window_sums to = { groups_count, WINDOW_LIFETIME_CLASSES, .classes = classes };

	return ask_sums(window, &lifetimes_question, query, &to, err);
}

// One level of all, so neither groups nor lifetimes are looked at: the files of levels have it. A
// list has no such files, and answers as for a series of one group.
bool window_timeline(struct window *window, const struct window_query *query,
		     struct window_bucket *buckets, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);
	const struct window_sums to = { 1, count, .buckets = buckets, .window = window };

	if (!is_sound(window, err))
		return false;
	whole.group = NULL;
	whole.lifetime_min_ns = whole.lifetime_max_ns = 0;
	if (window->plain || !asks(query, WINDOW_HEAP))
		return window_series(window, &whole, 1, buckets, count, err);
	return (index_timeline(&window->index, &whole, &to, err) || failed(window, err)) &&
	       is_sound(window, err);
}
