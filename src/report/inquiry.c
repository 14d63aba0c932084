#include "report/inquiry.h"

#include "base/mem.h"
#include "report/cautions.h"

#include <string.h>

static void tell_caution(void *context, const char *text)
{
	struct inquiry *inquiry = context;

	inquiry->warnings = mem_grow(inquiry->warnings, &inquiry->warnings_capacity,
				     inquiry->warnings_count + 1, sizeof *inquiry->warnings);
	inquiry->warnings[inquiry->warnings_count++] = mem_copy_text(text);
}

// The edge of a moment. The peak's was found in the window already.
static uint64_t edge_of(const struct inquiry *inquiry, const struct moment_edge *moment)
{
	size_t count, nth = 0;
	const struct window_mark *marks = window_marks(inquiry->window, &count);

	if (!moment->exact)
		return window_edge_at(inquiry->window, moment->time_ns);
	for (size_t i = 0; moment->mark && i < count; i++)
		if (strcmp(marks[i].name, moment->mark->name) == 0 && ++nth == moment->nth)
			return marks[i].edge;
	if (moment->number == 0)
		return WINDOW_START;
	if (moment->number == UINT64_MAX)
		return window_facts(inquiry->window)->steps_end;
	return moment->number;
}

// A moment_peak: of what the filters select, in the whole trace.
static bool find_peak(void *context, struct moment_edge *edge, struct err *err)
{
	struct inquiry *inquiry = context;
	uint64_t bytes, number;

	inquiry->from = WINDOW_START;
	inquiry->to = window_facts(inquiry->window)->steps_end;
	if (!inquiry_peak(inquiry, &bytes, &number, err))
		return false;
	*edge = (struct moment_edge){
		.time_ns = window_edge_time(inquiry->window, number),
		.number = number,
		.exact = true,
	};
	return true;
}

static bool find_window(struct inquiry *inquiry, struct err *err)
{
	const struct selection_words *words = inquiry->selection.words;
	const struct moment_edge *moments = inquiry->selection.window;

	if (!selection_window(&inquiry->selection, find_peak, inquiry, err))
		return false;
	inquiry->from_given = selection_words_get(words, SELECTION_FROM) != NULL;
	inquiry->to_given = selection_words_get(words, SELECTION_TO) != NULL;
	inquiry->from = edge_of(inquiry, &moments[0]);
	inquiry->to = edge_of(inquiry, &moments[1]);
	if (inquiry->to < inquiry->from)
		inquiry->to = inquiry->from;
	inquiry->from_ns = moments[0].time_ns;
	inquiry->to_ns = moments[1].time_ns;
	return true;
}

static bool understand(struct inquiry *inquiry, struct err *err)
{
	const struct query *query = &inquiry->selection.query;

	if (query->types)
		return err_set(err, ERR_USAGE,
			       "--impact makes no sense here (try: tidemark window)");
	if (query->layers == (QUERY_HEAP | QUERY_VM))
		return err_set(err, ERR_USAGE, "one --layer at a time: heap and vm do not add up");
	inquiry->layer = query->layers & QUERY_VM ? WINDOW_VM : WINDOW_HEAP;
	return true;
}

bool inquiry_open(struct inquiry *inquiry, const struct inquiry_options *options, struct err *err)
{
	struct opened *opened = options->opened ? options->opened : &inquiry->own;
	bool ok;

	*inquiry = (struct inquiry){ 0 };
	if (!options->opened && !opened_open(opened, options->path, &options->symbols, err))
		return false;
	inquiry->reader = opened->reader;
	inquiry->symbols = opened->symbols;
	inquiry->names = opened->names;
	ok = selection_init(&inquiry->selection, options->words, inquiry->reader, inquiry->names,
			    err) &&
	     understand(inquiry, err) && opened_index(opened, &options->window, err);
	inquiry->window = opened->window;
	if (ok)
		inquiry->duration_ns = window_facts(inquiry->window)->duration_ns;
	if (!ok || !find_window(inquiry, err)) {
		inquiry_close(inquiry);
		return false;
	}
	cautions_tell(inquiry->reader, tell_caution, inquiry);
	return true;
}

void inquiry_leave(struct inquiry *inquiry)
{
	window_close(inquiry->own.window);
	inquiry->own.window = inquiry->window = NULL;
	mem_free(inquiry->places);
	mem_free(inquiry->first_places);
	index_set_fini(&inquiry->place_numbers);
	inquiry->places = NULL;
	inquiry->places_count = inquiry->places_capacity = 0;
	inquiry->first_places = NULL;
	inquiry->place_numbers = (struct index_set){ 0 };
}

void inquiry_close(struct inquiry *inquiry)
{
	inquiry_leave(inquiry);
	selection_fini(&inquiry->selection);
	opened_close(&inquiry->own);
	for (size_t i = 0; i < inquiry->warnings_count; i++)
		mem_free(inquiry->warnings[i]);
	mem_free(inquiry->warnings);
	*inquiry = (struct inquiry){ 0 };
}

// ---- queries ----

bool inquiry_selects(const struct inquiry *inquiry, const struct window_cell *cell)
{
	const struct query *query = &inquiry->selection.query;

	return !cell->orphans && query_has_process(query, cell->process) &&
	       (!query->threads || query_has_thread(query, cell->thread)) &&
	       (!query->sizes || query_has_size(query, cell->size)) &&
	       (!query->heaps || (cell->layer == WINDOW_HEAP ? query_has_heap(query, cell->heap)
							     : query->heaps_dropped)) &&
	       query_has_owner(query, cell->layer == WINDOW_HEAP, cell->owner) &&
	       (!query->stack || query->stack(query->context, cell->stack));
}

static uint32_t add_place(struct inquiry *inquiry, process_id process, stack_id stack)
{
	inquiry->places = mem_grow(inquiry->places, &inquiry->places_capacity,
				   inquiry->places_count + 1, sizeof *inquiry->places);
	inquiry->places[inquiry->places_count] =
		(struct inquiry_place){ .process = process, .stack = stack };
	return (uint32_t)inquiry->places_count++;
}

static bool is_place(const void *context, uint32_t position, const void *key)
{
	const struct inquiry *inquiry = context;
	const struct inquiry_place *place = key;

	return inquiry->places[position].process == place->process &&
	       inquiry->places[position].stack == place->stack;
}

// Most traces are of one process, and every site of the window is asked for in every question.
static uint32_t *first_place(struct inquiry *inquiry, process_id process, stack_id stack)
{
	uint32_t count = reader_stacks_count(inquiry->reader);

	if (!inquiry->first_places) {
		inquiry->first_process = process;
		inquiry->first_places = mem_alloc(count + (size_t)1, sizeof *inquiry->first_places);
	}
	return process == inquiry->first_process && stack <= count ? &inquiry->first_places[stack]
								   : NULL;
}

uint32_t inquiry_place(struct inquiry *inquiry, process_id process, stack_id stack)
{
	const struct inquiry_place place = { .process = process, .stack = stack };
	const uint64_t numbers[] = { process, stack };
	uint32_t *first = first_place(inquiry, process, stack);
	uint32_t count = (uint32_t)inquiry->places_count, found;

	if (first) {
		if (!*first)
			*first = add_place(inquiry, process, stack) + 1;
		return *first - 1;
	}
	found = index_set_put(&inquiry->place_numbers, index_set_hash(numbers, 2), is_place,
			      inquiry, &place, count);
	return found == count ? add_place(inquiry, process, stack) : found;
}

static uint32_t in_one_group(void *context, const struct window_cell *cell)
{
	return inquiry_selects(context, cell) ? 0 : WINDOW_SKIP;
}

static uint32_t by_place(void *context, const struct window_cell *cell)
{
	struct inquiry *inquiry = context;

	if (!inquiry_selects(inquiry, cell))
		return WINDOW_SKIP;
	return inquiry_place(inquiry, cell->process, cell->stack);
}

struct window_query inquiry_query(struct inquiry *inquiry, enum inquiry_grouping grouping,
				  uint64_t from, uint64_t to)
{
	const struct query *query = &inquiry->selection.query;
	struct window_query result = {
		.from = from,
		.to = to,
		.layers = inquiry->layer,
		.exit_frees = true,
		.by_size = query->sizes != NULL,
		.by_thread = query->threads != NULL,
		.group = grouping == INQUIRY_ALL ? in_one_group : by_place,
		.context = inquiry,
	};

	if (query->lifetime_given) {
		result.lifetime_min_ns = query->lifetime_ns.least;
		result.lifetime_max_ns = query->lifetime_ns.most;
	}
	return result;
}

bool inquiry_peak(struct inquiry *inquiry, uint64_t *bytes, uint64_t *edge, struct err *err)
{
	struct window_query query = inquiry_query(inquiry, INQUIRY_ALL, inquiry->from, inquiry->to);
	struct window_detail detail = { 0 };
	struct window_result result;

	query.peaks_only = true;
	if (!window_ask(inquiry->window, &query, &result, err))
		return false;
	window_result_fini(&result);
	if (!window_detail(inquiry->window, &query, &detail, 1, err))
		return false;
	*bytes = detail.peak_bytes;
	*edge = detail.peak_edge;
	return true;
}

bool inquiry_level(struct inquiry *inquiry, uint64_t edge, struct heap_amount *level,
		   struct err *err)
{
	struct window_query query = inquiry_query(inquiry, INQUIRY_ALL, edge, edge);
	struct window_result result;

	if (!window_ask(inquiry->window, &query, &result, err))
		return false;
	*level = window_present(&result.total);
	window_result_fini(&result);
	return true;
}
