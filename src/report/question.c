#include "report/question.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/cautions.h"

#include <inttypes.h>
#include <string.h>

void question_warn(struct question *question, const char *format, ...)
{
	struct str text = { 0 };
	va_list args;

	va_start(args, format);
	str_vformat(&text, format, args);
	va_end(args);
	for (size_t i = 0; i < question->warnings_count; i++) {
		if (strcmp(question->warnings[i], str_get(&text)) == 0) {
			str_fini(&text);
			return;
		}
	}
	question->warnings = mem_grow(question->warnings, &question->warnings_capacity,
				      question->warnings_count + 1, sizeof *question->warnings);
	question->warnings[question->warnings_count++] = str_take(&text);
}

static void tell_caution(void *context, const char *text)
{
	question_warn(context, "%s", text);
}

// The engine's edge at a mark: marks stand in one order in both lists.
static bool edge_of_mark(const struct question *question, const struct moment_edge *moment,
			 uint64_t *edge)
{
	size_t count, same = 0;
	const struct window_mark *marks = window_marks(question->window, &count);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(marks[i].name, moment->mark->name) != 0 || ++same < moment->nth)
			continue;
		*edge = marks[i].edge;
		return true;
	}
	return false;
}

// The engine's edge of the peak, of the layer that is asked about.
static uint64_t peak_edge(const struct question *question)
{
	bool heap = question->layers & WINDOW_HEAP;

	return window_facts(question->window)->peak_edge[heap ? WINDOW_HEAP : WINDOW_VM];
}

// Its edge is a step and no event, so it is told by its time; see place.
static bool find_peak(void *context, struct moment_edge *edge, struct err *err)
{
	struct question *question = context;

	(void)err;
	*edge = (struct moment_edge){
		.time_ns = window_edge_time(question->window, peak_edge(question)),
	};
	return true;
}

// The engine's edge for one that was found in the trace, where `word` said.
static uint64_t place(const struct question *question, const struct moment_edge *moment,
		      const char *word)
{
	uint64_t edge;

	if (word && strcmp(word, "peak") == 0)
		return peak_edge(question);
	if (moment->mark && edge_of_mark(question, moment, &edge))
		return edge;
	if (!moment->exact || moment->mark)
		return window_edge_at(question->window, moment->time_ns);
	return moment->number == 0 ? WINDOW_START : window_facts(question->window)->steps_end;
}

static bool find_window(struct question *question, struct err *err)
{
	struct selection *selection = &question->selection;

	if (!selection_window(selection, find_peak, question, err))
		return false;
	question->from = place(question, &selection->window[0],
			       selection_words_get(selection->words, SELECTION_FROM));
	question->to = place(question, &selection->window[1],
			     selection_words_get(selection->words, SELECTION_TO));
	question->from_ns = selection->window[0].time_ns;
	question->to_ns = selection->window[1].time_ns;
	if (question->from > question->to)
		return err_set(err, ERR_USAGE,
			       "--from lies after --to: both at %" PRIu64 " ns, but "
			       "in the other order",
			       question->to_ns);
	return true;
}

static bool check_lifetime(const struct query *query, struct err *err)
{
	return !query->lifetime_given || query->lifetime_ns.most > 0 ||
	       err_set(err, ERR_USAGE, "a lifetime of 0 ns alone cannot be asked for");
}

static bool open_window(struct question *question, struct opened *opened, struct err *err)
{
	const struct question_options *options = question->options;
	const struct window_options window_options = {
		.memory_bytes = options->memory_bytes,
		.plain = options->plain,
		.progress = options->progress,
		.stop = options->stop,
		.say = options->say,
		.context = options->context,
	};

	if (!opened_index(opened, &window_options, err))
		return false;
	question->window = opened->window;
	return true;
}

bool question_open(struct question *question, const char *path,
		   const struct question_options *options, struct err *err)
{
	struct opened *opened = options->opened ? options->opened : &question->own;

	*question = (struct question){ .options = options };
	if (!options->opened && !opened_open(opened, path, &options->symbols, err))
		return false;
	question->reader = opened->reader;
	question->symbols = opened->symbols;
	question->names = opened->names;
	if (!selection_init(&question->selection, options->words, question->reader, question->names,
			    err) ||
	    !check_lifetime(&question->selection.query, err) ||
	    !open_window(question, opened, err)) {
		question_close(question);
		return false;
	}
	question->layers = question->selection.query.layers;
	if (!question->layers)
		question->layers = options->layers_all ? options->layers_all : WINDOW_HEAP;
	if (!find_window(question, err)) {
		question_close(question);
		return false;
	}
	cautions_tell(question->reader, tell_caution, question);
	return true;
}

void question_close(struct question *question)
{
	selection_fini(&question->selection);
	opened_close(&question->own);
	for (size_t i = 0; i < question->warnings_count; i++)
		mem_free(question->warnings[i]);
	mem_free(question->warnings);
	*question = (struct question){ 0 };
}

struct window_query question_query(const struct question *question)
{
	const struct query *query = &question->selection.query;

	return (struct window_query){
		.from = question->from,
		.to = question->to,
		.layers = question->layers,
		.exit_frees = question->options->exit_frees,
		.by_size = query->sizes_count > 0,
		.by_thread = query->threads != NULL,
		.lifetime_min_ns = query->lifetime_given ? query->lifetime_ns.least : 0,
		.lifetime_max_ns = query->lifetime_given ? query->lifetime_ns.most : 0,
	};
}

bool question_selects(const struct question *question, const struct window_cell *cell)
{
	const struct query *query = &question->selection.query;

	if (cell->orphans && (query->stack || query->sizes_count || query->types))
		return false;
	return query_has_process(query, cell->process) && query_has_thread(query, cell->thread) &&
	       (!query->heaps || (cell->layer == WINDOW_HEAP ? query_has_heap(query, cell->heap)
							     : query->heaps_dropped)) &&
	       query_has_owner(query, cell->layer == WINDOW_HEAP, cell->owner) &&
	       query_has_size(query, cell->size) &&
	       (!query->stack || query->stack(query->context, cell->stack));
}

bool question_check_layers(const struct question *question, bool by_layer, struct err *err)
{
	if (question->layers != (WINDOW_HEAP | WINDOW_VM) || by_layer)
		return true;
	return err_set(err, ERR_USAGE,
		       "the layers heap and vm never add up: add layer to --by, or name one");
}

// "14.200 s", "mark:load (3.1 s)", "the beginning".
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

char *question_describe(const struct question *question)
{
	const struct moment_edge *window = question->selection.window;
	const struct selection_words *words = question->options->words;
	char length[24], whole[24];
	struct str text = { 0 };

	describe_edge(&window[0], selection_words_get(words, SELECTION_FROM), true, &text);
	str_add(&text, " to ");
	describe_edge(&window[1], selection_words_get(words, SELECTION_TO), false, &text);
	str_format(&text, ": %s of %s", str_duration(question->to_ns - question->from_ns, length),
		   str_duration(moment_duration(question->reader), whole));
	return str_take(&text);
}
