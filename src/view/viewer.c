// One trace is opened three times, for questions of three kinds that must not wait for each other;
// what is large (the index, the list of lifetimes) is shared by all. Memory is divided: for
// example of 256 MiB and one trace each of the three queues has a fifth, 51 MiB, and two fifths
// are for names and answers; with a second trace there are four queues and six parts, 42 MiB each.
// The index is built before that, with all there is.
//
// What is found of each stack at once does not follow that division: of 700,000 stacks it is more
// than a queue has. Then curves and replays answer one after the other; sums wait for neither.
#include "view/viewer.h"

#include "base/mem.h"
#include "view/answer.h"

#include <string.h>

enum {
	QUEUES_SHARED = 3, // of the first trace
	// What a question holds of each site and of each kind of allocation, at least.
	SITE_BYTES = 64,
	KIND_BYTES = 8,
};

// What a question may keep at each queue. Two parts are for the program itself, names and
// answers. The queue that is asked while a window is dragged keeps the labels of stacks among the
// names: to find them for each step would take longer than the sums do.
static void divide(struct viewer *viewer, uint64_t memory_bytes)
{
	struct query_queue *queues[] = { &viewer->sums, &viewer->curves, &viewer->replays,
					 &viewer->other };
	const struct window_facts *facts = window_facts(viewer->sums.opened.window);
	unsigned parts = viewer->options.other ? 6 : 5;

	for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
		if (queues[i]->opened.reader)
			query_queue_divide(queues[i], memory_bytes / parts);
	viewer->sums.opened.labels_most = memory_bytes / parts / 2;
	viewer->in_turn = facts->sites * SITE_BYTES + facts->cells * KIND_BYTES >
			  memory_bytes / parts;
	kept_answers_limit(&viewer->kept, memory_bytes / parts / 4);
}

// Whether questions of this queue take turns with those of another.
static bool takes_turns(const struct viewer *viewer, const struct query_queue *queue)
{
	return viewer->in_turn && (queue == &viewer->curves || queue == &viewer->replays);
}

// The queues of the first trace have tables in common. A question that begins or ends at one of
// them changes what these may have: the parts of queues at which nothing is asked are free. For
// example, of three parts of 51 MiB a dragged window has 121 MiB, and 89 while another queue
// answers, too.
static void share_tables(const struct viewer *viewer)
{
	ASSERT(viewer->asked <= QUEUES_SHARED);
	window_tables(viewer->sums.opened.window, viewer->asked, QUEUES_SHARED - viewer->asked);
}

// A question that has its turn at a queue begins to be answered, once memory allows. False: it was
// to stop before that.
static bool begin_answer(struct viewer *viewer, struct query_queue *queue)
{
	bool goes_on = true;

	if (queue == &viewer->other)
		return true;
	pthread_mutex_lock(&viewer->lock);
	while (takes_turns(viewer, queue) && viewer->turn_taken && goes_on) {
		query_queue_wait(&viewer->moved, &viewer->lock);
		goes_on = !query_queue_stops(queue);
	}
	if (goes_on) {
		viewer->turn_taken |= takes_turns(viewer, queue);
		viewer->asked++;
		share_tables(viewer);
	}
	pthread_mutex_unlock(&viewer->lock);
	return goes_on;
}

static void end_answer(struct viewer *viewer, const struct query_queue *queue)
{
	if (queue == &viewer->other)
		return;
	pthread_mutex_lock(&viewer->lock);
	ASSERT(viewer->asked > 0);
	ASSERT(viewer->turn_taken || !takes_turns(viewer, queue));
	viewer->asked--;
	if (takes_turns(viewer, queue))
		viewer->turn_taken = false;
	share_tables(viewer);
	pthread_cond_broadcast(&viewer->moved);
	pthread_mutex_unlock(&viewer->lock);
}

// Two traces share what the larger of them was opened with.
static uint64_t memory_of(const struct viewer *viewer)
{
	uint64_t first = window_facts(viewer->sums.opened.window)->memory_bytes;
	uint64_t other =
		viewer->options.other ? window_facts(viewer->other.opened.window)->memory_bytes : 0;

	return first > other ? first : other;
}

// Those that share first, then the one that owns the index.
static void close_queues(struct viewer *viewer)
{
	query_queue_close(&viewer->curves);
	query_queue_close(&viewer->replays);
	query_queue_close(&viewer->sums);
	query_queue_close(&viewer->other);
}

// The indexes are built with all there is; then each queue has its part.
static bool open_queues(struct viewer *viewer, const struct window_options *window, struct err *err)
{
	const struct viewer_options *options = &viewer->options;

	if (query_queue_open(&viewer->sums, options->path, &options->symbols, window, err) &&
	    query_queue_share(&viewer->curves, &viewer->sums, &options->symbols, err) &&
	    query_queue_share(&viewer->replays, &viewer->sums, &options->symbols, err) &&
	    (!options->other ||
	     query_queue_open(&viewer->other, options->other, &options->symbols, window, err))) {
		divide(viewer, memory_of(viewer));
		return true;
	}
	close_queues(viewer);
	return false;
}

// What a file is known by is taken before it is opened, so that one that is replaced in between is
// noticed with the first question.
bool viewer_open(struct viewer *viewer, const struct viewer_options *options, struct err *err)
{
	ASSERT(options->path);
	*viewer = (struct viewer){ .options = *options };
	viewer->options.window.keep = true;
	pthread_mutex_init(&viewer->lock, NULL);
	pthread_cond_init(&viewer->moved, NULL);
	kept_answers_init(&viewer->kept);
	// From here on threads ask for memory, one for each connection.
	mem_share();
	if (identity_find(&viewer->identities[0], options->path, err) &&
	    (!options->other || identity_find(&viewer->identities[1], options->other, err)) &&
	    open_queues(viewer, &viewer->options.window, err))
		return true;
	viewer_close(viewer);
	return false;
}

// Where there are no queues they are being opened; that is stopped, and opens none.
void viewer_stop(struct viewer *viewer)
{
	pthread_mutex_lock(&viewer->lock);
	viewer->stopping = true;
	if (!viewer->closed) {
		query_queue_stop(&viewer->sums);
		query_queue_stop(&viewer->curves);
		query_queue_stop(&viewer->replays);
		query_queue_stop(&viewer->other);
	}
	pthread_mutex_unlock(&viewer->lock);
}

void viewer_close(struct viewer *viewer)
{
	close_queues(viewer);
	if (viewer->options.path) {
		pthread_cond_destroy(&viewer->moved);
		pthread_mutex_destroy(&viewer->lock);
		kept_answers_fini(&viewer->kept);
	}
	*viewer = (struct viewer){ 0 };
}

// ---- a damaged index ----

// A question comes in. The number is that of the queues which it finds.
static unsigned come_in(struct viewer *viewer)
{
	unsigned opened;

	pthread_mutex_lock(&viewer->lock);
	while (viewer->opening)
		pthread_cond_wait(&viewer->moved, &viewer->lock);
	viewer->inside++;
	opened = viewer->opened;
	pthread_mutex_unlock(&viewer->lock);
	return opened;
}

static void go_out(struct viewer *viewer)
{
	pthread_mutex_lock(&viewer->lock);
	ASSERT(viewer->inside > 0);
	viewer->inside--;
	pthread_cond_broadcast(&viewer->moved);
	pthread_mutex_unlock(&viewer->lock);
}

static bool is_stopping(void *context)
{
	const struct viewer *viewer = context;

	return viewer->stopping;
}

// With no question inside, and the lock, which is given up while it is built.
static void build_again(struct viewer *viewer)
{
	struct window_options window = viewer->options.window;
	struct err err = { 0 };
	bool good;

	window.stop = is_stopping;
	window.context = viewer;
	viewer->closed = true;
	pthread_mutex_unlock(&viewer->lock);
	close_queues(viewer);
	good = open_queues(viewer, &window, &err);
	pthread_mutex_lock(&viewer->lock);
	viewer->closed = !good || viewer->stopping;
	if (!good)
		viewer->lost = err;
	viewer->opened++;
}

// Of several that found it damaged the first has it built. False: that is of no use.
static bool open_again(struct viewer *viewer, unsigned opened)
{
	bool good;

	pthread_mutex_lock(&viewer->lock);
	while (viewer->opening)
		pthread_cond_wait(&viewer->moved, &viewer->lock);
	if (viewer->opened == opened && !viewer->stopping) {
		viewer->opening = true;
		while (viewer->inside > 0)
			pthread_cond_wait(&viewer->moved, &viewer->lock);
		if (!viewer->stopping)
			build_again(viewer);
		viewer->opening = false;
		pthread_cond_broadcast(&viewer->moved);
	}
	good = viewer->opened != opened && !viewer->stopping;
	pthread_mutex_unlock(&viewer->lock);
	return good;
}

void viewer_reply_fini(struct viewer_reply *reply)
{
	str_fini(&reply->body);
	*reply = (struct viewer_reply){ 0 };
}

// ---- the table ----

// Which queue a question goes to: AT_LEVELS and AT_WINDOWS depend on its parameters, AT_NONE is
// none.
enum place { AT_SUMS, AT_CURVES, AT_REPLAYS, AT_OTHER, AT_LEVELS, AT_WINDOWS, AT_NONE };

static const struct endpoint {
	const char *path;
	enum place place;
	answer_function *give;
} endpoints[] = {
	{ "/api/info", AT_REPLAYS, answer_trace_info },
	{ "/api/view", AT_SUMS, answer_trace_view },
	{ "/api/marks", AT_SUMS, answer_trace_marks },
	{ "/api/progress", AT_NONE, answer_trace_progress },
	{ "/api/timeline", AT_LEVELS, answer_levels_timeline },
	{ "/api/window", AT_WINDOWS, answer_window },
	{ "/api/tree", AT_SUMS, answer_window_tree },
	{ "/api/histogram", AT_SUMS, answer_sizes_histogram },
	{ "/api/sizelife", AT_CURVES, answer_sizes_life },
	{ "/api/findings", AT_REPLAYS, answer_findings_all },
	{ "/api/growth", AT_REPLAYS, answer_findings_growth },
	{ "/api/transients", AT_REPLAYS, answer_findings_transients },
	{ "/api/peaks", AT_REPLAYS, answer_findings_peaks },
	{ "/api/map", AT_REPLAYS, answer_moments_map },
	{ "/api/curve", AT_REPLAYS, answer_levels_curve },
	{ "/api/active", AT_REPLAYS, answer_moments_active },
	{ "/api/reconcile", AT_REPLAYS, answer_moments_reconcile },
	{ "/api/diff", AT_REPLAYS, answer_findings_diff },
	{ "/api/diff/timeline", AT_OTHER, answer_levels_timeline },
	{ "/api/source", AT_SUMS, answer_source },
};

static const struct endpoint *find_endpoint(const char *path)
{
	for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
		if (strcmp(endpoints[i].path, path) == 0)
			return &endpoints[i];
	return NULL;
}

static bool is_given(const struct params *params, const char *name, const char *value)
{
	for (size_t i = 0; i < params->count; i++)
		if (strcmp(params->list[i].name, name) == 0 &&
		    (!value || strcmp(params->list[i].value, value) == 0))
			return true;
	return false;
}

// Which queue answers for levels: those of all there is are in the index; with filters, and what
// flows, steps are counted one by one; samples of resident memory stand in the recording.
static struct query_queue *queue_of_levels(struct viewer *viewer, const struct params *params)
{
	static const char *const plain[] = { "layer", "from", "to", "buckets", "lane", NULL };

	if (is_given(params, "layer", "rss"))
		return &viewer->replays;
	if (is_given(params, "layer", "cumulative"))
		return &viewer->curves;
	for (size_t i = 0; i < params->count; i++) {
		bool known = false;

		// `lane` is no filter: it says which part of the page asks.
		for (int j = 0; plain[j]; j++)
			known |= strcmp(params->list[i].name, plain[j]) == 0;
		if (!known)
			return &viewer->curves;
	}
	return &viewer->sums;
}

// Sums at the first queue, and nothing that takes longer: single allocations are looked for where
// others take their time too, and peaks and lifetimes where they are not in the way of either.
static struct query_queue *queue_of_window(struct viewer *viewer, const struct params *params)
{
	for (size_t i = 0; i < params->count; i++)
		if (strcmp(params->list[i].name, "by") == 0 &&
		    strstr(params->list[i].value, "lifetime"))
			return &viewer->replays;
	return is_given(params, "details", "0") ? &viewer->sums : &viewer->curves;
}

// What is at no queue (AT_NONE) is given the first one and does not wait for it.
static struct query_queue *find_queue(struct viewer *viewer, enum place place,
				      const struct params *params)
{
	switch (place) {
	case AT_SUMS:
	case AT_NONE:
		break;
	case AT_CURVES:
		return &viewer->curves;
	case AT_REPLAYS:
		return &viewer->replays;
	case AT_OTHER:
		return &viewer->other;
	case AT_LEVELS:
		return queue_of_levels(viewer, params);
	case AT_WINDOWS:
		return queue_of_window(viewer, params);
	}
	return &viewer->sums;
}

// A lane is a part of the page that wants only its newest answer (query_queue.h). Its name is kept
// to letters, as it may be printed.
static bool take_lane(struct answer *answer, const char **lane, struct err *err)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

	if (!params_take(&answer->params, "lane", lane, err))
		return false;
	return !*lane || (strlen(*lane) <= 32 && (*lane)[strspn(*lane, letters)] == '\0') ||
	       err_set(err, ERR_USAGE,
		       "'%.40s' is not a name of a lane: at most 32 letters, digits and '-'",
		       *lane);
}

// Everything is as it was when the traces were opened.
static bool is_there(const struct viewer *viewer)
{
	return identity_holds(&viewer->identities[0], viewer->options.path) &&
	       (!viewer->options.other ||
		identity_holds(&viewer->identities[1], viewer->options.other));
}

// Refuse what was not answered, or not to the end. True: it was.
static bool is_mine(struct answer *answer, enum query_queue_turn turn, struct err *err)
{
	// What was said of an answer that was not wanted is of no use.
	*err = turn == QUERY_QUEUE_MINE ? *err : (struct err){ 0 };
	switch (turn) {
	case QUERY_QUEUE_SUPERSEDED:
		return answer_refuse(answer, REFUSAL_SUPERSEDED, err,
				     "a newer question of its lane came");
	case QUERY_QUEUE_GONE:
		return answer_refuse(answer, REFUSAL_BUSY, err, "the answer is no longer wanted");
	case QUERY_QUEUE_STOPPED:
		return answer_refuse(answer, REFUSAL_BUSY, err, "the server is being stopped");
	case QUERY_QUEUE_MINE:
		break;
	}
	return true;
}

// What was asked, with all that matters for the answer; the lane was taken before. Lengths
// keep a value with a strange byte in it from looking like two.
static void write_question(const struct endpoint *endpoint, const struct params *params,
			   struct str *question)
{
	str_add(question, endpoint->path);
	for (size_t i = 0; i < params->count; i++) {
		const struct params_one *one = &params->list[i];

		if (!one->taken)
			str_format(question, " %zu %s=%zu %s", strlen(one->name), one->name,
				   strlen(one->value), one->value);
	}
}

// Its turn comes, and goes. The trace is looked at before and after: a file that was replaced while
// it was read gives figures of both. `question` NULL: its answer is not kept.
static bool wait_and_give(struct answer *answer, const struct endpoint *endpoint,
			  const struct query_queue_asker *asker, const char *question,
			  struct err *err)
{
	struct kept_answers *kept = &answer->viewer->kept;
	bool good;

	if (!is_mine(answer, query_queue_enter(answer->query_queue, asker), err))
		return false;
	// Who was in front may have asked the same.
	good = question && kept_answers_find(kept, question, &answer->reply->body);
	if (!good && begin_answer(answer->viewer, answer->query_queue)) {
		good = endpoint->give(answer, err);
		end_answer(answer->viewer, answer->query_queue);
		selection_words_fini(&answer->words);
	}
	// An answer that was overtaken while it was made is thrown away, whatever it is.
	if (!is_mine(answer, query_queue_leave(answer->query_queue), err))
		return false;
	// A trace that was cut short meanwhile reads as a damaged one.
	if (!is_there(answer->viewer))
		return answer_refuse(
			answer, REFUSAL_GONE, err,
			"the trace was deleted, replaced or changed while it was read");
	if (good && question)
		kept_answers_add(kept, question, &answer->reply->body);
	return good;
}

// Answers of the first queue take milliseconds, and each is of another window: they are not kept.
static bool find_or_give(struct answer *answer, const struct endpoint *endpoint,
			 const struct query_queue_asker *asker, struct err *err)
{
	struct str question = { 0 };
	bool good;

	if (answer->query_queue == &answer->viewer->sums)
		return wait_and_give(answer, endpoint, asker, NULL, err);
	write_question(endpoint, &answer->params, &question);
	good = kept_answers_find(&answer->viewer->kept, str_get(&question), &answer->reply->body) ||
	       wait_and_give(answer, endpoint, asker, str_get(&question), err);
	str_fini(&question);
	return good;
}

// To a queue, unless there is none to be asked.
static bool ask(struct answer *answer, const struct endpoint *endpoint,
		struct query_queue_asker *asker, struct err *err)
{
	if (!take_lane(answer, &asker->lane, err))
		return false;
	// Before the queue is entered, so that a trace that is gone is said at once.
	if (!is_there(answer->viewer))
		return answer_refuse(answer, REFUSAL_GONE, err,
				     "the trace was deleted, replaced or changed since it was "
				     "opened: start tidemark view again");
	if (answer->viewer->closed) {
		*err = answer->viewer->lost;
		answer->reply->refusal = REFUSAL_INTERNAL;
		return err_wrap(err, "the index was damaged, and was not built again");
	}
	answer->query_queue = find_queue(answer->viewer, endpoint->place, &answer->params);
	if (!answer->query_queue->opened.reader)
		return answer_refuse(answer, REFUSAL_NOT_RECORDED, err,
				     "there is no second trace (try: tidemark view A --diff B)");
	if (endpoint->place == AT_NONE) // how far the others are: it waits for none
		return endpoint->give(answer, err);
	return find_or_give(answer, endpoint, asker, err);
}

// A page cannot do anything with more, and should not have to.
static bool is_bearable(const struct answer *answer, struct err *err)
{
	uint64_t most = answer->query_queue->window_options.memory_bytes;

	if (most > ANSWER_BYTES_MAX)
		most = ANSWER_BYTES_MAX;
	return answer->reply->body.length <= most ||
	       err_set(err, ERR_LIMIT,
		       "the answer has %zu bytes: narrow the window, the filters or 'n'",
		       answer->reply->body.length);
}

// A reply has a body in any case: the answer, or why there is none.
static void give(struct viewer *viewer, const char *path, const char *query,
		 struct query_queue_asker asker, struct viewer_reply *reply, struct err *err)
{
	const struct endpoint *endpoint = find_endpoint(path);
	struct sink sink = sink_to_str(&reply->body);
	struct answer answer = { .viewer = viewer, .sink = &sink, .reply = reply };
	bool good = false;

	if (!endpoint)
		answer_refuse(&answer, REFUSAL_PATH, err, "there is no such question");
	else if (!params_parse(&answer.params, query, err))
		reply->refusal = err->kind == ERR_LIMIT ? REFUSAL_QUERY : REFUSAL_USAGE;
	else
		good = ask(&answer, endpoint, &asker, err) && is_bearable(&answer, err);
	if (!good) {
		// Who refused has mostly said why; else the kind of the error does.
		if (!reply->refusal)
			reply->refusal = refusal_of(err);
		reply->is_text = false;
		str_clear(&reply->body);
		refusal_write(reply->refusal, err->text, &reply->body);
	}
	params_fini(&answer.params);
	ASSERT(good == (reply->refusal == REFUSAL_NONE));
}

void viewer_answer(struct viewer *viewer, const char *path, const char *query,
		   bool (*gone)(void *context), void *context, struct viewer_reply *reply)
{
	const struct query_queue_asker asker = { .gone = gone, .context = context };
	bool again = false;
	unsigned opened;
	struct err err;

	do {
		err = (struct err){ 0 };
		*reply = (struct viewer_reply){ 0 };
		opened = come_in(viewer);
		give(viewer, path, query, asker, reply, &err);
		go_out(viewer);
		again = !again && err.kind == ERR_INDEX && open_again(viewer, opened);
		if (again)
			viewer_reply_fini(reply);
	} while (again);
}
