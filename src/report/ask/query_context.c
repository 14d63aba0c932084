// What is asked is settled in the order in which the parts need each other: the trace is opened,
// the filters' words become ids in it, then the index is opened if a window or a peak is asked
// for, then times become edges of the index, or moments for those who read events. An edge is
// between two steps and a moment is before an event. For example edge 7 is after step 6; if that
// was event 40, the moment is before event 41, exactly. The beginning of the trace has no event
// before it: there the number is UINT64_MAX, and one more is 0.
//
// A warning is a sentence, and is said once: the list is compared as text.
#include "report/ask/query_context.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/window_source.h"
#include "report/ask/cautions.h"
#include "trace/effect.h"

#include <string.h>

const struct query_context_rules query_context_window_rules = { .about = QUERY_CONTEXT_WINDOW };

const struct query_context_rules query_context_findings_rules = {
	.about = QUERY_CONTEXT_WINDOW,
	.one_layer = true,
	.refused = SELECTION_BIT(IMPACT),
	.refusal = "makes no sense here (try: tidemark window)",
	.exit_frees = true,
};

const struct query_context_rules query_context_events_rules = { .about = QUERY_CONTEXT_EVENTS };

// ---- warnings ----

// Each sentence once, however often it is found out.
void query_context_warn(struct query_context *asked, const char *format, ...)
{
	struct str text = { 0 };
	va_list args;

	va_start(args, format);
	str_vformat(&text, format, args);
	va_end(args);
	for (size_t i = 0; i < asked->warnings_count; i++) {
		if (strcmp(asked->warnings[i], str_get(&text)) == 0) {
			str_fini(&text);
			return;
		}
	}
	*MEM_ADD(asked->warnings, asked->warnings_count, asked->warnings_capacity) =
		str_take(&text);
}

static void tell_caution(void *context, const char *text)
{
	query_context_warn(context, "%s", text);
}

void query_context_caution(struct query_context *asked, bool scaled)
{
	cautions_tell(asked->reader, scaled, tell_caution, asked);
}

// Of several names one may be wrong: the answer is then that of the others.
static void warn_of_unmet(struct query_context *asked)
{
	enum frame_filter_kind kind;
	const char *text;

	while ((text = frame_filter_unmet(asked->selection.filter, &kind)) != NULL)
		query_context_warn(asked, "--%s '%s' matches no %s of the allocations in question",
				   kind == FRAME_FILTER_MODULE ? "module" : "frame", text,
				   kind == FRAME_FILTER_MODULE ? "file" : "function");
}

// Where functions have no names, --frame finds none of them.
static void warn_of_none(struct query_context *asked)
{
	size_t frames = 0, nameless = 0;

	if (asked->selection.filter)
		nameless = frame_filter_nameless(asked->selection.filter, &frames);
	if (nameless == 0 || !selection_words_get(asked->selection.words, SELECTION_FRAME))
		query_context_warn(asked, "no allocation passes the filters");
	else
		query_context_warn(
			asked,
			"no allocation passes the filters (%s of %s frames in question have "
			"no function's name: tidemark symbols says why)",
			STR_COUNT(nameless), STR_COUNT(frames));
}

// Of what was inlined only the last part of a name is known where debug information is little.
static void warn_of_bare(struct query_context *asked)
{
	size_t frames = 0, bare;

	frame_filter_nameless(asked->selection.filter, &frames);
	bare = frame_filter_bare(asked->selection.filter);
	if (bare > 0)
		query_context_warn(asked,
				   "%s of %s frames in question are in inlined functions whose "
				   "namespaces and classes are not known (compiled with -g1): "
				   "--frame may miss them",
				   STR_COUNT(bare), STR_COUNT(frames));
}

void query_context_matched(struct query_context *asked, uint64_t count)
{
	if (asked->selection.filter)
		warn_of_bare(asked);
	if (count == 0 && query_narrows(&asked->selection.query))
		warn_of_none(asked);
	else if (asked->selection.filter)
		warn_of_unmet(asked);
}

// Of snapshots it is known what lives, also where nothing was freed between them.
static void warn_of_frees(struct query_context *asked, uint64_t allocations, uint64_t frees)
{
	const struct trace_info *info = reader_info(asked->reader);

	asked->no_frees = allocations > 0 && frees == 0 && cautions_is_import(info) &&
			  !cautions_lacks(info, "snapshots");
	if (asked->no_frees)
		query_context_warn(asked, "there is no free in what was imported: whatever was "
					  "allocated counts as if it lived to the end");
}

// Whether the trace has any, whatever is selected. Up to the first, which mostly comes soon.
static bool has_frees(const struct query_context *asked)
{
	struct err err = { 0 };
	struct reader *reader = reader_open(asked->opened->path, &err);
	struct trace_event event = { 0 };
	struct trace_note note;
	enum reader_item item;
	bool found = !reader; // it was open before: nothing is said of what is not known

	while (!found && (item = reader_next(reader, &event, &note)) != READER_END)
		found = item == READER_EVENT &&
			(effect_of(event.kind) & (EFFECT_ENDS | EFFECT_DESTROYS)) != 0;
	reader_close(reader);
	return found;
}

// With a window query_context_open has asked. What is selected may have no frees in a trace that
// has some.
void query_context_counted(struct query_context *asked, const struct heap_counts *counts)
{
	query_context_matched(asked, counts->allocated.count);
	if (asked->window || counts->frees > 0 || !cautions_is_import(reader_info(asked->reader)))
		return;
	if (!query_narrows(&asked->selection.query) || !has_frees(asked))
		warn_of_frees(asked, counts->allocated.count, 0);
}

// One question of all that there is, so only of imports.
static bool ask_frees(struct query_context *asked, struct err *err)
{
	const struct window_query query = { .to = window_facts(asked->window)->steps_end };
	struct window_result result;

	if (!cautions_is_import(reader_info(asked->reader)))
		return true;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	warn_of_frees(asked, window_allocated(&result.total).count,
		      window_freed(&result.total).count + result.total_rest.orphans);
	window_result_fini(&result);
	return true;
}

// ---- the peak ----

// The only group, 0, of what is selected. Frees of nothing known have no bytes that were ever live.
static uint32_t in_one_group(void *context, const struct window_cell *cell)
{
	return !cell->orphans && query_context_selects(context, cell) ? 0 : WINDOW_SKIP;
}

// Blocks end with their process here, whatever the rules say: two programs that run one after the
// other do not add up.
bool query_context_peak(struct query_context *asked, uint64_t from, uint64_t to,
			struct query_context_peak *peak, struct err *err)
{
	struct window_query query = query_context_query(asked, QUERY_CONTEXT_ALL, from, to);
	struct window_detail detail = { 0 };

	ASSERT(asked->window && from <= to);
	query.peaks_only = true;
	query.exit_frees = true;
	if (query_context_selects_all(asked))
		query.group = NULL; // one, which is not asked for
	if (!window_detail(asked->window, &query, &detail, 1, err))
		return false;
	*peak = (struct query_context_peak){ detail.peak_bytes, detail.peak_edge };
	return true;
}

// One question more, so only where there are filters.
bool query_context_match(struct query_context *asked, struct err *err)
{
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	struct window_result result;

	ASSERT(asked->window);
	if (!query_narrows(&asked->selection.query))
		return true;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	query_context_matched(asked, window_present(&result.total).count);
	window_result_fini(&result);
	return true;
}

// A filter that selects nothing is refused before an index is made for it.
static bool open_index(struct query_context *asked, struct err *err)
{
	const struct query *query = &asked->selection.query;

	if (query->lifetime_given && query->lifetime_ns.most == 0)
		return err_set(err, ERR_USAGE,
			       "--lifetime 0ns alone does not apply to windows and peaks");
	if (!opened_index(asked->opened, &asked->options.window, err))
		return false;
	asked->window = asked->opened->window;
	return true;
}

// The moment of an edge of the index, for those who read events: exact, if an event is there.
static bool moment_of(struct query_context *asked, uint64_t edge, struct moment_edge *moment,
		      struct err *err)
{
	uint64_t number = UINT64_MAX;

	ASSERT(asked->window);
	if (edge > WINDOW_START && !window_source_number(asked->window, edge - 1, &number, err))
		return false;
	*moment = (struct moment_edge){
		.time_ns = window_edge_time(asked->window, edge),
		.number = number + 1,
		.exact = edge <= WINDOW_START || number != UINT64_MAX,
	};
	return true;
}

// A moment_peak: of what the filters select, in the whole trace. Of both layers the heap's.
// The layers are put back, as the question itself may be about both.
static bool find_peak(void *context, struct moment_edge *moment, struct err *err)
{
	struct query_context *asked = context;
	unsigned layers = asked->layers;
	struct query_context_peak peak;
	bool good;

	if (!open_index(asked, err))
		return false;
	if (layers & WINDOW_HEAP)
		asked->layers = WINDOW_HEAP;
	else if (!(window_facts(asked->window)->layers & WINDOW_VM))
		return err_set(err, ERR_USAGE,
			       "the trace has no calls on virtual memory: there is no peak");
	good = query_context_peak(asked, WINDOW_START, window_facts(asked->window)->steps_end,
				  &peak, err);
	asked->layers = layers;
	if (!good)
		return false;
	if (peak.bytes == 0)
		query_context_warn(asked, "there is no peak: nothing that is asked about was ever "
					  "live; the beginning is used for it");
	asked->peak_edge = peak.edge;
	return moment_of(asked, peak.edge, moment, err);
}

// ---- the window ----

// The engine's edge at a mark: marks stand in one order in both lists.
// The nth mark of one name, from 1. False: the index does not have it.
static bool edge_of_mark(const struct query_context *asked, const struct moment_edge *moment,
			 uint64_t *edge)
{
	size_t count, same = 0;
	const struct window_mark *marks = window_marks(asked->window, &count);

	ASSERT(moment->mark && moment->nth > 0);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(marks[i].name, moment->mark->name) != 0 || ++same < moment->nth)
			continue;
		*edge = marks[i].edge;
		return true;
	}
	return false;
}

// The engine's edge for one that was found in the trace, where `word` said.
// Four ways: the peak, whose edge is known already; a mark; a time, which is the edge after its
// tick; and an exact place, which is the trace's beginning or its end.
static uint64_t edge_of(const struct query_context *asked, const struct moment_edge *moment,
			const char *word)
{
	uint64_t edge;

	if (word && strcmp(word, "peak") == 0)
		return asked->peak_edge;
	if (moment->mark && edge_of_mark(asked, moment, &edge))
		return edge;
	if (!moment->exact || moment->mark)
		return window_edge_at(asked->window, moment->time_ns);
	return moment->number == 0 ? WINDOW_START : window_facts(asked->window)->steps_end;
}

// Edges only where the question is about a window; moments always. What an attached process had
// before is in no window: an edge in front of it is moved to after it.
static bool find_window(struct query_context *asked, struct err *err)
{
	struct selection *selection = &asked->selection;
	const char *from = selection_words_get(selection->words, SELECTION_FROM);
	const char *to = selection_words_get(selection->words, SELECTION_TO);

	ASSERT(asked->options.rules->about != QUERY_CONTEXT_WINDOW || asked->window);
	if (!selection_window(selection, find_peak, asked, err))
		return false;
	if (asked->options.rules->about == QUERY_CONTEXT_WINDOW &&
	    !(moment_skip_before(asked->reader, &selection->window[0], err) &&
	      moment_skip_before(asked->reader, &selection->window[1], err)))
		return false;
	asked->from_given = from != NULL || moment_is_trimmed(asked->reader);
	asked->to_given = to != NULL;
	asked->from_ns = selection->window[0].time_ns;
	asked->to_ns = selection->window[1].time_ns;
	if (asked->options.rules->about != QUERY_CONTEXT_WINDOW)
		return true;
	asked->from = edge_of(asked, &selection->window[0], from);
	asked->to = edge_of(asked, &selection->window[1], to);
	// A time falls behind its tick, and an exact place of that tick is before it.
	if (asked->from > asked->to)
		asked->from = asked->to;
	return true;
}

static bool find_moment(struct query_context *asked, struct err *err)
{
	const char *at = asked->options.at;

	asked->at_exit = !at || strcmp(at, "exit") == 0;
	return asked->at_exit ||
	       (moment_find(at, asked->reader, find_peak, asked, &asked->edge, err) &&
		moment_skip_before(asked->reader, &asked->edge, err)) ||
	       err_wrap(err, "--at");
}

// ---- opening ----

// The first filter that the rules refuse, in the order of the list, is named.
static bool check_filters(const struct query_context *asked, struct err *err)
{
	const struct query_context_rules *rules = asked->options.rules;

	for (int kind = 0; kind < SELECTION_KINDS; kind++)
		if ((rules->refused >> kind & 1) && asked->options.words->lists[kind].count)
			return err_set(err, ERR_USAGE, "--%s %s", selection_names[kind],
				       rules->refusal);
	return true;
}

// The filters' layers go before the caller's, and these before the rules'.
static bool choose_layers(struct query_context *asked, struct err *err)
{
	const struct query_context_options *options = &asked->options;

	asked->layers = asked->selection.query.layers;
	if (!asked->layers)
		asked->layers = options->layers ? options->layers : options->rules->layers;
	if (!asked->layers)
		asked->layers = WINDOW_HEAP;
	ASSERT(asked->layers != 0);
	return !options->rules->one_layer || asked->layers != (WINDOW_HEAP | WINDOW_VM) ||
	       err_set(err, ERR_USAGE, "one --layer at a time: heap and vm do not add up");
}

// Pools of the program's own whose blocks are left out, unless they are asked for. NULL: none; else
// the last one's name.
static const char *find_pools(const struct query_context *asked, unsigned *count)
{
	const struct query *query = &asked->selection.query;
	const char *name = NULL;

	*count = 0;
	if (!(asked->layers & WINDOW_HEAP) || (query->heaps && !query->heaps_dropped))
		return NULL;
	for (heap_id id = 1; id < reader_heaps_count(asked->reader); id++) {
		const struct trace_heap *heap = reader_heap(asked->reader, id);

		if (!reader_heap_is_pool(heap) || !query_has_process(query, heap->process))
			continue;
		name = heap->name;
		(*count)++;
	}
	return name;
}

// The window is found, by the peak of the heap alone where it says so.
static void warn_of_pools(struct query_context *asked)
{
	unsigned count;
	const char *name = find_pools(asked, &count);

	asked->pools_out = name && !asked->options.by_heap;
	if (asked->pools_out)
		query_context_warn(
			asked,
			"blocks of %u pool%s of the program's, parts of others, are left "
			"out (--heap '%s', --by heap)",
			count, count == 1 ? "" : "s", name);
	else if (name)
		query_context_warn(asked,
				   "blocks of the program's pools are parts of others: the total "
				   "has both (--heap malloc: the heap alone)");
}

// `pools_out` is set for all pools first, so that a peak is found without them, and again by
// warn_of_pools, when it is known whether the rows distinguish heaps.
static bool prepare(struct query_context *asked, struct err *err)
{
	const struct query_context_options *options = &asked->options;
	bool window = options->rules->about == QUERY_CONTEXT_WINDOW;
	unsigned pools_count;

	if (!check_filters(asked, err) ||
	    !selection_init(&asked->selection, options->words, asked->reader, asked->names, err) ||
	    !choose_layers(asked, err) || (window && !open_index(asked, err)))
		return false;
	asked->pools_out = find_pools(asked, &pools_count) != NULL;
	if (!find_window(asked, err))
		return false;
	asked->duration_ns = window ? window_facts(asked->window)->duration_ns
				    : moment_duration(asked->reader);
	if (window)
		asked->events = window_facts(asked->window)->calls;
	if (options->rules->about == QUERY_CONTEXT_MOMENT)
		return query_context_select(asked, err) && find_moment(asked, err);
	if (window) // else a damaged tail is known once the events have been read
		query_context_caution(asked, true);
	else
		cautions_tell_origin(asked->reader, tell_caution, asked);
	if (window)
		warn_of_pools(asked);
	return !window || ask_frees(asked, err);
}

static bool open_own(struct query_context *asked, struct err *err)
{
	const struct query_context_options *options = &asked->options;

	if (!opened_open(&asked->own, options->path, &options->symbols, err))
		return false;
	if (!options->await ||
	    !options->await(options->window.context, options->path, asked->own.reader))
		return true;
	opened_close(&asked->own);
	return opened_open(&asked->own, options->path, &options->symbols, err);
}

// What is open already may be shared (findings opens a second context); else it is opened here, and
// closed with the context.
bool query_context_open(struct query_context *asked, const struct query_context_options *options,
			struct err *err)
{
	ASSERT(options->rules);
	*asked = (struct query_context){ .options = *options };
	asked->opened = options->opened ? options->opened : &asked->own;
	if (!options->opened && !open_own(asked, err))
		return false;
	asked->reader = asked->opened->reader;
	asked->symbols = asked->opened->symbols;
	asked->names = asked->opened->names;
	if (prepare(asked, err))
		return true;
	query_context_close(asked);
	return false;
}

// Only an index of its own is closed; one that was borrowed stays open for the next question.
void query_context_leave(struct query_context *asked)
{
	window_close(asked->own.window);
	asked->own.window = asked->window = NULL;
	MEM_FREE(asked->places, asked->first_places);
	index_set_fini(&asked->place_numbers);
	asked->places = NULL;
	asked->places_count = asked->places_capacity = 0;
	asked->first_places = NULL;
	asked->place_numbers = (struct index_set){ 0 };
}

void query_context_close(struct query_context *asked)
{
	query_context_leave(asked);
	present_free(asked->present);
	selection_fini(&asked->selection);
	opened_close(&asked->own);
	for (size_t i = 0; i < asked->warnings_count; i++)
		mem_free(asked->warnings[i]);
	mem_free(asked->warnings);
	*asked = (struct query_context){ 0 };
}

bool query_context_select(struct query_context *asked, struct err *err)
{
	return selection_read(&asked->selection, &asked->options.window, err);
}

bool query_context_select_events(struct query_context *asked, struct err *err)
{
	return selection_read_events(&asked->selection, &asked->options.window, err);
}

void query_context_whole(struct query_context *asked, struct whole *whole, bool walks,
			 void (*on_note)(void *context, const struct trace_note *note),
			 void *context)
{
	const struct whole_wish wish = { .trace_path = asked->opened->path,
					 .query = &asked->selection.query,
					 .window = &asked->options.window,
					 .on_note = on_note,
					 .context = context,
					 .walks = walks };

	if (asked->window) // there may be many sites
		window_drop_tables(asked->window);
	whole_read(whole, asked->reader, &wish);
}

// ---- queries ----

bool query_context_selects_all(const struct query_context *asked)
{
	return !query_narrows(&asked->selection.query) && !asked->pools_out;
}

// A free of nothing known has a process and a thread, but neither a stack of its allocation nor a
// size nor a lifetime.
bool query_context_judges_frees(const struct query_context *asked)
{
	const struct query *query = &asked->selection.query;

	return !(query->stack || query->sizes_count || query->types || query->lifetime_given);
}

// The cheap comparisons come first; the stack's filter, which may have to name frames, last.
bool query_context_selects(const struct query_context *asked, const struct window_cell *cell)
{
	const struct query *query = &asked->selection.query;

	if (cell->orphans && !query_context_judges_frees(asked))
		return false;
	// Parts of other blocks, and a layer of their own (tidemark.h).
	if (asked->pools_out && cell->layer == WINDOW_HEAP &&
	    reader_heap_is_pool(reader_heap(asked->reader, cell->heap)))
		return false;
	return query_has_process(query, cell->process) && query_has_thread(query, cell->thread) &&
	       (!query->heaps || (cell->layer == WINDOW_HEAP ? query_has_heap(query, cell->heap)
							     : query->heaps_dropped)) &&
	       query_has_owner(query, cell->layer == WINDOW_HEAP, cell->owner) &&
	       query_has_size(query, cell->size) &&
	       (!query->stack || query->stack(query->context, cell->stack));
}

bool query_context_check_layers(const struct query_context *asked, bool by_layer, struct err *err)
{
	if (asked->layers != (WINDOW_HEAP | WINDOW_VM) || by_layer)
		return true;
	return err_set(err, ERR_USAGE,
		       "the layers heap and vm never add up: add layer to --by, or name one");
}

// The number of a new place.
static uint32_t add_place(struct query_context *asked, process_id process, stack_id stack)
{
	MEM_ROOM(asked->places, asked->places_capacity, asked->places_count + 1);
	asked->places[asked->places_count] =
		(struct query_context_place){ .process = process, .stack = stack };
	return (uint32_t)asked->places_count++;
}

static bool is_place(const void *context, uint32_t position, const void *key)
{
	const struct query_context *asked = context;
	const struct query_context_place *place = key;

	ASSERT(position < asked->places_count);
	return asked->places[position].process == place->process &&
	       asked->places[position].stack == place->stack;
}

// The slot of a stack in the process that was asked for first; NULL: another process. An array in
// place of a hash table, since most traces are of one process, and each question asks for up to a
// million sites.
static uint32_t *first_place(struct query_context *asked, process_id process, stack_id stack)
{
	uint32_t count = reader_stacks_count(asked->reader);

	if (!asked->first_places) {
		asked->first_process = process;
		asked->first_places = mem_alloc(count + (size_t)1, sizeof *asked->first_places);
	}
	return process == asked->first_process && stack <= count ? &asked->first_places[stack]
								 : NULL;
}

// The number of a place, the same whenever it is asked for; a new one is added at the end.
uint32_t query_context_place(struct query_context *asked, process_id process, stack_id stack)
{
	const struct query_context_place place = { .process = process, .stack = stack };
	const uint64_t numbers[] = { process, stack };
	uint32_t *first = first_place(asked, process, stack);
	uint32_t count = (uint32_t)asked->places_count, found;

	if (first) {
		if (!*first)
			*first = add_place(asked, process, stack) + 1;
		return *first - 1;
	}
	found = index_set_put(&asked->place_numbers, index_set_hash(numbers, 2), is_place, asked,
			      &place, count);
	return found == count ? add_place(asked, process, stack) : found;
}

static uint32_t by_place(void *context, const struct window_cell *cell)
{
	struct query_context *asked = context;

	if (cell->orphans || !query_context_selects(asked, cell))
		return WINDOW_SKIP;
	return query_context_place(asked, cell->process, cell->stack);
}

// Single threads and sizes are kept apart by the index only where a filter asks for them: that
// makes more cells.
struct window_query query_context_query(struct query_context *asked,
					enum query_context_grouping grouping, uint64_t from,
					uint64_t to)
{
	const struct query *query = &asked->selection.query;

	ASSERT(grouping <= QUERY_CONTEXT_BY_PLACE);
	return (struct window_query){
		.from = from,
		.to = to,
		.layers = asked->layers,
		.exit_frees = asked->options.exit_frees || asked->options.rules->exit_frees,
		.by_size = query->sizes_count > 0,
		.by_thread = query->threads != NULL,
		.lifetime_min_ns = query->lifetime_given ? query->lifetime_ns.least : 0,
		.lifetime_max_ns = query->lifetime_given ? query->lifetime_ns.most : 0,
		.group = grouping == QUERY_CONTEXT_ALL ? in_one_group : by_place,
		.context = asked,
	};
}

// The window from an edge to itself: what is present in it is what is live there. Series go on from
// it, so it is as they are.
bool query_context_level(struct query_context *asked, uint64_t edge, struct heap_amount *level,
			 struct err *err)
{
	struct window_query query = query_context_query(asked, QUERY_CONTEXT_ALL, edge, edge);
	struct window_result result;

	ASSERT(level);
	query.as_it_is = true;
	query.exit_frees = true;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	*level = window_present(&result.total);
	window_result_fini(&result);
	return true;
}

// Blocks outlive their process in the types of a window alone: those at an edge are the types' less
// what is live.
static bool count_ended(struct query_context *asked, uint64_t edge, unsigned layer,
			struct heap_amount *ended, struct err *err)
{
	struct window_query query = query_context_query(asked, QUERY_CONTEXT_ALL, edge, edge);
	struct window_result all, live;

	query.layers = layer;
	if (!window_ask(asked->window, &query, &all, err))
		return false;
	query.exit_frees = true;
	if (!window_ask(asked->window, &query, &live, err)) {
		window_result_fini(&all);
		return false;
	}
	*ended = window_less(window_present(&all.total), window_present(&live.total));
	window_result_fini(&all);
	window_result_fini(&live);
	return true;
}

// What one process alone leaves is there from its end on, which is said by the exit's own figure.
bool query_context_warn_of_ended(struct query_context *asked, bool begin, struct err *err)
{
	uint64_t edge = begin ? asked->from : asked->to;

	ASSERT(asked->window);
	if (asked->options.exit_frees || edge == WINDOW_START ||
	    reader_processes_count(asked->reader) < 2)
		return true;
	for (unsigned layer = WINDOW_HEAP; layer <= WINDOW_VM; layer <<= 1) {
		struct heap_amount ended;

		if (!(asked->layers & layer))
			continue;
		if (!count_ended(asked, edge, layer, &ended, err))
			return false;
		if (ended.count > 0)
			query_context_warn(
				asked,
				"of what %s %s, %s in %s %s%s were left by processes that had "
				"ended (--exit-frees leaves them out)",
				begin ? "was there" : "is there",
				begin ? "before the window" : "at its end", STR_BYTES(ended.bytes),
				STR_COUNT(ended.count), layer == WINDOW_HEAP ? "block" : "mapping",
				ended.count == 1 ? "" : "s");
	}
	return true;
}

// ---- in words ----

// "14.200 s", "mark:load (3.1 s)", "the beginning".
// Of a mark that is there several times, which of how many it is.
static void describe_edge(const struct moment_edge *edge, const char *word, bool begin,
			  struct str *text)
{
	char time[24];

	if (!word) {
		str_add(text, begin ? "the beginning" : "the end");
		return;
	}
	str_duration(edge->time_ns, time);
	if (edge->mark && edge->same_count > 1)
		str_format(text, "mark:%s#%zu of %zu (%s)", edge->mark->name, edge->nth,
			   edge->same_count, time);
	else if (edge->exact || strncmp(word, "mark:", 5) == 0 || strcmp(word, "peak") == 0)
		str_format(text, "%s (%s)", word, time);
	else
		str_add(text, time);
}

// For example, three processes of which one has ended: what lives at last is live at exit.
enum query_last query_context_last(const struct query_context *asked)
{
	enum query_last last = QUERY_LAST_EXIT;
	uint64_t end_ns;

	if (reader_lacks_events(asked->reader, &end_ns))
		return QUERY_LAST_CUT;
	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		if (!query_has_process(&asked->selection.query, id))
			continue;
		last = QUERY_LAST_END;
		if (reader_process(asked->reader, id)->exit != TRACE_EXIT_UNKNOWN)
			return QUERY_LAST_EXIT;
	}
	return last;
}

// For example "the beginning to mark:load (3.1 s): 3.1 s of 8.0 s".
char *query_context_describe(const struct query_context *asked)
{
	const struct moment_edge *window = asked->selection.window;
	const struct selection_words *words = asked->options.words;
	struct str text = { 0 };

	describe_edge(&window[0], selection_words_get(words, SELECTION_FROM), true, &text);
	str_add(&text, " to ");
	describe_edge(&window[1], selection_words_get(words, SELECTION_TO), false, &text);
	str_format(&text, ": %s of %s", STR_DURATION(asked->to_ns - asked->from_ns),
		   STR_DURATION(moment_duration(asked->reader)));
	return str_take(&text);
}
