// Words become conditions when a trace is open: `--process sh` needs its processes, `--frame
// ^parse_` its names. What is written wrongly is refused before that (selection_words_check), so
// that a slip in the command line is reported at once and not after an index was built.
//
// For example `--process sh --size 4K.. --frame ^parse_ --from 2s`: the query has a bit for each
// process whose file is called sh, sizes from 4,096 on, a function that asks the frame filter
// about a stack, and a window from 2 s on. Conditions of one kind widen (two --process: either),
// those of different kinds narrow.
#include "report/ask/selection.h"

#include "base/mem.h"

#include <string.h>

const char *const selection_names[SELECTION_KINDS] = {
	[SELECTION_PROCESS] = "process", [SELECTION_THREAD] = "thread",
	[SELECTION_LAYER] = "layer",     [SELECTION_HEAP] = "heap",
	[SELECTION_SIZE] = "size",       [SELECTION_LIFETIME] = "lifetime",
	[SELECTION_IMPACT] = "impact",   [SELECTION_MODULE] = "module",
	[SELECTION_FRAME] = "frame",     [SELECTION_NOT_FRAME] = "not-frame",
	[SELECTION_ROW] = "row",         [SELECTION_NOT_ROW] = "not-row",
	[SELECTION_FROM] = "from",       [SELECTION_TO] = "to",
};

void selection_words_add(struct selection_words *words, enum selection_kind kind, const char *word)
{
	struct selection_list *list = &words->lists[kind];

	ASSERT(kind < SELECTION_KINDS && word);
	*MEM_ADD(list->words, list->count, list->capacity) = word;
}

void selection_words_fini(struct selection_words *words)
{
	for (int i = 0; i < SELECTION_KINDS; i++)
		mem_free(words->lists[i].words);
	*words = (struct selection_words){ 0 };
}

// A window of its own goes in place of the words, and not after them: the last one counts, but a
// mark that does not exist would be refused all the same.
void selection_words_with_window(struct selection_words *words, const struct selection_words *from,
				 const char *window_from, const char *window_to)
{
	const char *const own[SELECTION_KINDS] = {
		[SELECTION_FROM] = window_from,
		[SELECTION_TO] = window_to,
	};

	for (int kind = 0; kind < SELECTION_KINDS; kind++) {
		const struct selection_list *list = &from->lists[kind];

		for (size_t i = 0; !own[kind] && i < list->count; i++)
			selection_words_add(words, (enum selection_kind)kind, list->words[i]);
		if (own[kind])
			selection_words_add(words, (enum selection_kind)kind, own[kind]);
	}
}

const char *selection_words_get(const struct selection_words *words, enum selection_kind kind)
{
	const struct selection_list *list = &words->lists[kind];

	ASSERT(kind < SELECTION_KINDS);
	return list->count ? list->words[list->count - 1] : NULL;
}

// Takes one word into the selection; a row for each kind.
struct taker {
	// Needs no trace.
	bool (*query)(struct query *query, const char *word, struct err *err);
	// Needs one.
	bool (*ids)(struct query *query, const struct reader *reader, const char *word,
		    struct err *err);
	bool frames;
	enum frame_filter_kind kind;
};

static const struct taker takers[SELECTION_KINDS] = {
	[SELECTION_PROCESS] = { .ids = query_add_process },
	[SELECTION_THREAD] = { .ids = query_add_thread },
	[SELECTION_HEAP] = { .ids = query_add_heap },
	[SELECTION_LAYER] = { .query = query_add_layer },
	[SELECTION_SIZE] = { .query = query_add_size },
	[SELECTION_LIFETIME] = { .query = query_add_lifetime },
	[SELECTION_IMPACT] = { .query = query_add_impact },
	[SELECTION_MODULE] = { .frames = true, .kind = FRAME_FILTER_MODULE },
	[SELECTION_FRAME] = { .frames = true, .kind = FRAME_FILTER_WANTED },
	[SELECTION_NOT_FRAME] = { .frames = true, .kind = FRAME_FILTER_UNWANTED },
};

// Keys of rows that are no stack's.
static const struct row_taker {
	const char *key;
	bool (*keep)(struct query *query, const char *word, struct err *err);
	bool (*drop)(struct query *query, const char *word, struct err *err);
	bool (*drop_ids)(struct query *query, const struct reader *reader, const char *word,
			 struct err *err);
} row_takers[] = {
	{ "owner", query_add_owner, query_drop_owner, NULL },
	{ "size", NULL, query_drop_size, NULL },
	{ "process", NULL, NULL, query_drop_process },
	{ "thread", NULL, NULL, query_drop_thread },
	{ "heap", NULL, NULL, query_drop_heap },
};

// The row's taker, and its value; NULL: it is a stack's, or none.
// `out`: of rows to leave out, where more keys are allowed; a row to keep of a process or a thread
// is written as --process and --thread.
static const struct row_taker *find_row(const char *word, bool out, const char **value)
{
	for (size_t i = 0; i < sizeof row_takers / sizeof *row_takers; i++) {
		const struct row_taker *taker = &row_takers[i];
		size_t length = strlen(taker->key);

		*value = word + length + 1;
		if (strncmp(word, taker->key, length) == 0 && word[length] == ':' &&
		    (out || taker->keep))
			return taker;
	}
	return NULL;
}

// Rows come after the frames, and those to leave out after all else, in the list of kinds.
// Without a reader it is only looked at how the word is written. The row filter is made by the
// first row of a stack; a frame filter that is there already has to let a stack pass as well.
static bool take_row(struct selection *selection, const char *word, bool out, struct err *err)
{
	const char *value;
	const struct row_taker *taker = find_row(word, out, &value);
	struct query *query = &selection->query;

	if (taker && !out)
		return taker->keep(query, value, err);
	if (taker && taker->drop)
		return taker->drop(query, value, err);
	if (taker)
		return !selection->reader || taker->drop_ids(query, selection->reader, value, err);
	if (!selection->reader)
		return row_filter_check(word, err);
	if (!selection->rows) {
		selection->rows = row_filter_new(selection->reader, selection->names);
		if (selection->query.stack)
			row_filter_and(selection->rows, selection->filter);
	}
	selection->query.stack = row_filter_passes;
	selection->query.context = selection->rows;
	return row_filter_add(selection->rows, word, out, err);
}

// Both with a trace and without one: without, what needs its names or its ids is passed over.
static bool take_word(struct selection *selection, enum selection_kind kind, const char *word,
		      struct err *err)
{
	const struct taker *taker = &takers[kind];

	ASSERT(kind < SELECTION_KINDS);
	if (taker->query)
		return taker->query(&selection->query, word, err);
	if (taker->frames) {
		selection->query.stack = frame_filter_passes;
		selection->query.context = selection->filter;
		return frame_filter_add(selection->filter, word, taker->kind, err);
	}
	if (kind == SELECTION_ROW || kind == SELECTION_NOT_ROW)
		return take_row(selection, word, kind == SELECTION_NOT_ROW, err);
	if (taker->ids && selection->reader)
		return taker->ids(&selection->query, selection->reader, word, err);
	if (kind == SELECTION_FROM || kind == SELECTION_TO)
		return moment_check(word, err) ||
		       err_wrap(err, kind == SELECTION_FROM ? "--from" : "--to");
	return true;
}

// A selection of no trace, which is thrown away again.
bool selection_words_check(const struct selection_words *words, struct err *err)
{
	struct selection selection = { 0 };
	bool good = selection_init(&selection, words, NULL, NULL, err);

	if (good)
		selection_fini(&selection);
	return good;
}

// By kind and not in the order of the command line: frames come before rows, as take_row needs.
bool selection_init(struct selection *selection, const struct selection_words *words,
		    struct reader *reader, struct names *names, struct err *err)
{
	*selection = (struct selection){
		.filter = frame_filter_new(reader, names),
		.words = words,
		.reader = reader,
		.names = names,
	};
	for (int kind = 0; kind < SELECTION_KINDS; kind++) {
		const struct selection_list *list = &words->lists[kind];

		for (size_t i = 0; i < list->count; i++) {
			if (take_word(selection, (enum selection_kind)kind, list->words[i], err))
				continue;
			selection_fini(selection);
			return false;
		}
	}
	return true;
}

void selection_fini(struct selection *selection)
{
	query_fini(&selection->query);
	frame_filter_free(selection->filter);
	row_filter_free(selection->rows);
	event_bitmap_free(selection->event_bitmap);
	*selection = (struct selection){ 0 };
}

bool selection_window(struct selection *selection, moment_peak *peak, void *context,
		      struct err *err)
{
	return moment_find_window(selection_words_get(selection->words, SELECTION_FROM),
				  selection_words_get(selection->words, SELECTION_TO),
				  selection->reader, peak, context, selection->window, err);
}

// What can be said of an event by itself.
static bool fits(const struct selection *selection, const struct trace_event *event)
{
	return query_has_size(&selection->query, event->size) &&
	       query_has_heap(&selection->query, event->heap) &&
	       (!selection->within ||
		(moment_passed(&selection->window[0], event->number, event->time_ns) &&
		 !moment_passed(&selection->window[1], event->number, event->time_ns)));
}

// The query's `event`: does the allocation that begins here count?
static bool begins(void *context, const struct trace_event *event)
{
	const struct selection *selection = context;

	return fits(selection, event) &&
	       (!selection->event_bitmap ||
		event_bitmap_begin(selection->event_bitmap, event->number));
}

// Whether a block's end says if its beginning counts: lifetimes and impacts. Then the trace has to
// be read before it is read.
static bool needs_picks(const struct selection *selection)
{
	return selection->query.lifetime_given || selection->query.types;
}

// A bit for each event that begins or ends a selected block.
static void read_picks(struct selection *selection, const struct window_options *options)
{
	struct progress progress;

	progress_begin(&progress, options->progress, "pairing", reader_bytes(selection->reader));
	selection->event_bitmap = event_bitmap_new(selection->reader, &selection->query,
						   selection->window, window_memory_of(options) / 2,
						   &progress);
	progress_end(&progress);
}

// Whose memory a mapping is, is known where pieces of it are counted, and not from its event.
static bool check_owners(const struct selection *selection, struct err *err)
{
	return !selection->query.owners_given ||
	       err_set(err, ERR_USAGE,
		       "rows by owner are for questions about windows (try: tidemark window)");
}

// Where the filters ask for processes, threads and stacks alone, the query has all that is needed,
// and no function is called for each event.
bool selection_read(struct selection *selection, const struct window_options *options,
		    struct err *err)
{
	bool windowed = selection_words_get(selection->words, SELECTION_FROM) ||
			selection_words_get(selection->words, SELECTION_TO);

	if (!check_owners(selection, err))
		return false;
	selection->within = windowed;
	if (needs_picks(selection))
		read_picks(selection, options);
	if (!needs_picks(selection) && !selection->within && !selection->query.sizes &&
	    !selection->query.heaps)
		return true;
	selection->query.event = begins;
	selection->query.event_context = selection;
	return true;
}

// Always reads the trace: whether a free is shown depends on the block that it ends.
bool selection_read_events(struct selection *selection, const struct window_options *options,
			   struct err *err)
{
	if (!check_owners(selection, err))
		return false;
	read_picks(selection, options);
	return true;
}

// The event by itself, where no block says more.
static bool is_as_asked(const struct selection *selection, const struct trace_event *event)
{
	const struct query *query = &selection->query;
	const struct trace_thread *thread = reader_thread(selection->reader, event->thread);

	return thread && query_has_process(query, thread->process) &&
	       query_has_thread(query, event->thread) && query_has_size(query, event->size) &&
	       (!query->stack || query->stack(query->context, event->stack)) &&
	       !needs_picks(selection);
}

// Calls that failed have no lifetime to be selected by, so they are judged by themselves; of the
// others it was found out beforehand which events begin and end what is selected.
bool selection_has_event(const struct selection *selection, const struct trace_event *event)
{
	unsigned layers = selection->query.layers ? selection->query.layers : ~0u;

	if (trace_kind_is_vm(event->kind))
		return (layers & QUERY_VM) &&
		       (!selection->query.heaps || selection->query.heaps_dropped) &&
		       is_as_asked(selection, event);
	if (!(layers & QUERY_HEAP))
		return false;
	if (event->kind == TRACE_FAILED || event->kind == TRACE_REALLOC_FAILED)
		return query_has_heap(&selection->query, event->heap) &&
		       is_as_asked(selection, event);
	return event_bitmap_begin(selection->event_bitmap, event->number) ||
	       event_bitmap_end(selection->event_bitmap, event->number);
}
