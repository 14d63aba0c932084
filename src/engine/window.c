#include "engine/window.h"

#include "base/mem.h"
#include "engine/buckets.h"
#include "engine/plain.h"
#include "engine/window_series.h"

#include <stdlib.h>
#include <string.h>

struct window {
	struct reader *reader; // borrowed
	struct plain heap;     // layer WINDOW_HEAP
	struct plain_steps steps;
	struct window_facts facts;
};

struct window *window_open(const char *trace_path, struct reader *reader,
			   const struct window_options *options, struct err *err)
{
	struct window *window = mem_alloc(1, sizeof *window);
	struct progress progress;
	bool built;

	(void)trace_path;
	window->reader = reader;
	if (!reader_scan(reader, err)) {
		window_close(window);
		return NULL;
	}
	progress_begin(&progress, options->progress, "pairing", reader_bytes(reader));
	built = plain_build(&window->heap, &window->steps, reader, &progress, options->stop,
			    options->context);
	progress_end(&progress);
	if (!built) {
		err_set(err, ERR_LIMIT, "interrupted");
		window_close(window);
		return NULL;
	}
	window->facts = (struct window_facts){
		.steps_end = window->steps.count,
		.duration_ns = window->heap.duration_ns,
		.orphans = window->heap.orphans_count,
		.inherited = window->steps.inherited,
		.lost = window->steps.lost,
		.cells = window->heap.cells_count,
		.sites = window->heap.cells_count,
		.layers = window->heap.cells_count ? WINDOW_HEAP : 0,
	};
	window->facts.peak[WINDOW_HEAP] =
		plain_peak(&window->heap, WINDOW_HEAP, &window->facts.peak_edge[WINDOW_HEAP]);
	return window;
}

void window_close(struct window *window)
{
	if (!window)
		return;
	plain_fini(&window->heap);
	plain_steps_fini(&window->steps);
	mem_free(window);
}

const struct window_facts *window_facts(const struct window *window)
{
	return &window->facts;
}

uint64_t window_edge_at(struct window *window, uint64_t time_ns)
{
	size_t low = 1, high = window->steps.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (window->steps.times_ns[middle] <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t window_edge_time(struct window *window, uint64_t edge)
{
	if (edge == 0)
		return 0;
	if (edge > window->steps.count)
		edge = window->steps.count;
	return window->steps.times_ns[edge - 1];
}

const struct window_mark *window_marks(const struct window *window, size_t *count)
{
	*count = window->steps.marks_count;
	return window->steps.marks;
}

bool window_ask(struct window *window, const struct window_query *query,
		struct window_result *result, struct err *err)
{
	(void)err;
	*result = (struct window_result){ 0 };
	plain_ask(&window->heap, query, result);
	return true;
}

void window_result_fini(struct window_result *result)
{
	mem_free(result->rows);
	*result = (struct window_result){ 0 };
}

bool window_detail(struct window *window, const struct window_query *query,
		   struct window_detail *details, size_t count, struct err *err)
{
	(void)err;
	plain_detail(&window->heap, query, details, count);
	return true;
}

bool window_walk(struct window *window, const struct window_query *query,
		 bool (*each)(void *context, const struct window_allocation *allocation),
		 void *context, struct err *err)
{
	(void)err;
	plain_walk(&window->heap, query, each, context);
	return true;
}

// ---- what only the trace knows ----

// One end of one allocation, and the event that made it.
struct wanted {
	uint64_t number;
	uint64_t time_ns;
	struct window_allocation *allocation;
	bool end;
};

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static void learn_begin(struct window_allocation *allocation, const struct trace_event *event)
{
	allocation->address = event->address;
	allocation->begin_thread = event->thread;
	allocation->reallocated = event->kind == TRACE_REALLOC ||
				  event->kind == TRACE_REALLOC_ALLOC ||
				  event->kind == TRACE_REALLOC_UNDO;
}

static void learn_end(struct window_allocation *allocation, const struct trace_event *event)
{
	allocation->end_thread = event->thread;
	allocation->end_stack = event->stack;
	switch (event->kind) {
	case TRACE_FREE:
	case TRACE_HEAP_FREE:
	case TRACE_HEAP_RESET:
	case TRACE_HEAP_DESTROY:
		break;
	case TRACE_REALLOC:
		allocation->end_kind = event->old_address == allocation->address
					       ? WINDOW_END_REALLOC
					       : WINDOW_END_LOST;
		break;
	case TRACE_REALLOC_FREE:
		allocation->end_kind = WINDOW_END_REALLOC;
		break;
	default:
		if (allocation->end_kind == WINDOW_END_FREE && !trace_kind_is_vm(event->kind))
			allocation->end_kind = WINDOW_END_LOST;
		break;
	}
}

static bool read_wanted(struct reader *reader, const struct wanted *wanted, size_t count,
			struct err *err)
{
	enum { NEAR_EVENTS = 1 << 17 }; // not worth a seek
	struct trace_event event = { .number = UINT64_MAX };
	struct trace_note note;
	enum reader_item item = READER_NOTE;

	for (size_t i = 0; i < count; i++) {
		bool known = item == READER_EVENT;

		if (!known || event.number > wanted[i].number ||
		    wanted[i].number - event.number > NEAR_EVENTS) {
			uint64_t time_ns = wanted[i].time_ns;

			if (!reader_seek(reader, time_ns ? time_ns - 1 : 0, err))
				return false;
			event.number = UINT64_MAX;
			item = READER_NOTE;
		}
		while (item != READER_END &&
		       !(item == READER_EVENT && event.number >= wanted[i].number))
			item = reader_next(reader, &event, &note);
		if (item == READER_END || event.number != wanted[i].number)
			return err_set(err, ERR_FORMAT, "event %llu is not in the trace",
				       (unsigned long long)wanted[i].number);
		if (wanted[i].end)
			learn_end(wanted[i].allocation, &event);
		else
			learn_begin(wanted[i].allocation, &event);
	}
	return true;
}

static void want(const struct window *window, struct wanted *list, size_t *count, uint64_t step,
		 struct window_allocation *allocation, bool end)
{
	if (step >= window->steps.count || window->steps.numbers[step] == UINT64_MAX)
		return;
	list[(*count)++] = (struct wanted){ .number = window->steps.numbers[step],
					    .time_ns = window->steps.times_ns[step],
					    .allocation = allocation,
					    .end = end };
}

bool window_fetch(struct window *window, struct window_allocation *allocations, size_t count,
		  struct err *err)
{
	struct wanted *wanted = mem_alloc(count * 2 + 1, sizeof *wanted);
	size_t wanted_count = 0;
	bool ok;

	for (size_t i = 0; i < count; i++) {
		allocations[i].end_thread = TRACE_NONE;
		want(window, wanted, &wanted_count, allocations[i].begin, &allocations[i], false);
		want(window, wanted, &wanted_count, allocations[i].end, &allocations[i], true);
	}
	if (wanted_count)
		qsort(wanted, wanted_count, sizeof *wanted, compare_wanted);
	ok = read_wanted(window->reader, wanted, wanted_count, err);
	mem_free(wanted);
	return ok;
}

// ---- levels over time ----

uint32_t window_lifetime_class(uint64_t lifetime_ns)
{
	unsigned log2;

	if (lifetime_ns < 8)
		return (uint32_t)lifetime_ns;
	log2 = 63 - (unsigned)__builtin_clzll(lifetime_ns);
	return (log2 - 2) * 8 + (uint32_t)(lifetime_ns >> (log2 - 3) & 7);
}

uint64_t window_lifetime_floor(uint32_t class_number)
{
	if (class_number < 8)
		return class_number;
	return (uint64_t)(8 + class_number % 8) << (class_number / 8 - 1);
}

// The query with the times of its buckets filled in.
static struct window_query with_axis(struct window *window, const struct window_query *query)
{
	struct window_query whole = *query;

	if (whole.from_ns == 0 && whole.to_ns == 0) {
		whole.from_ns = window_edge_time(window, query->from);
		whole.to_ns = window_edge_time(window, query->to);
	}
	return whole;
}

bool window_timeline(struct window *window, const struct window_query *query,
		     struct window_bucket *buckets, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);

	(void)err;
	whole.group = NULL;
	whole.lifetime_min_ns = whole.lifetime_max_ns = 0;
	plain_series(&window->heap, &whole, 1, buckets, count);
	return true;
}

bool window_series(struct window *window, const struct window_query *query, size_t groups_count,
		   struct window_bucket *buckets, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);

	(void)err;
	plain_series(&window->heap, &whole, groups_count, buckets, count);
	return true;
}

bool window_changes(struct window *window, const struct window_query *query,
		    bool (*each)(void *context, const struct window_change *change), void *context,
		    struct err *err)
{
	(void)err;
	plain_changes(&window->heap, query, each, context);
	return true;
}

bool window_flows(struct window *window, const struct window_query *query, size_t groups_count,
		  struct window_flow *flows, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);

	(void)err;
	plain_flows(&window->heap, &whole, groups_count, flows, count);
	return true;
}

bool window_lifetimes(struct window *window, const struct window_query *query, size_t groups_count,
		      struct heap_amount *classes, struct err *err)
{
	(void)err;
	plain_lifetimes(&window->heap, query, groups_count, classes);
	return true;
}
