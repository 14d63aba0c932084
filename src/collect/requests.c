// For example, `tidemark ctl PID mark loaded` is heard at 2,000,150 ns of the clock, while the
// order has come to 1,900,000. The request waits. A later pass has looked at all lanes up to
// 2,100,000 and delivered what they had: whatever the process did before it was asked is in the
// trace by then, and the mark is the next item. Only then is it answered, so that who asked can
// go on and rely on it.
#include "collect/requests.h"

#include "base/mem.h"
#include "base/str.h"
#include "collect/generated_code.h"
#include "collect/overhead.h"
#include "collect/process_list.h"
#include "collect/reachability.h"
#include "collect/trace_builder.h"

#include <string.h>

// Somebody who waits until a process was searched.
struct searcher {
	struct door *door;
	struct door_event event;
};

static void answer_searcher(void *context, const struct trace_reach *found)
{
	struct searcher *searcher = context;
	struct str text = { 0 };

	if (found != NULL)
		reachability_describe(found, &text);
	else
		str_add(&text, "it was not searched (the trace has a warning that says why)");
	door_answer(searcher->door, &searcher->event,
		    found != NULL ? CONTROL_DONE : CONTROL_REFUSED, str_get(&text));
	str_fini(&text);
	mem_free(searcher);
}

static void ask_for_reachability(struct requests *requests, struct image *image,
				 const struct door_event *event, uint8_t reason)
{
	struct searcher *searcher = mem_alloc(1, sizeof *searcher);
	const struct image_asker asker = { .found = answer_searcher, .context = searcher };

	ASSERT(image && event->kind == DOOR_CONTROL);
	*searcher = (struct searcher){ requests->door, *event };
	if (reachability_ask(requests->reachability, image, reason, &asker))
		return;
	mem_free(searcher);
	door_answer(requests->door, event, CONTROL_REFUSED,
		    "it cannot be stopped and searched now");
}

// From `tidemark ctl`. A mark, a pause and a resume are notes at the place that the order has
// reached; what the answer says is sent when that is so.
static void answer(struct requests *requests, const struct door_event *event)
{
	struct image *image = process_list_find(requests->process_list, event->request.pid);
	struct trace_builder *trace_builder = requests->process_list->trace_builder;
	enum trace_note_kind kind = TRACE_NOTE_MARK;
	char text[CONTROL_TEXT_MAX];
	bool good;

	if (image == NULL) {
		door_answer(requests->door, event, CONTROL_UNKNOWN, "");
		return;
	}
	switch (event->request.verb) {
	case CONTROL_MARK:
		break;
	case CONTROL_STOP:
		kind = TRACE_NOTE_PAUSE;
		image->quiet = true;
		break;
	case CONTROL_START:
		kind = TRACE_NOTE_RESUME;
		image->quiet = false;
		// A pause that began in the program itself ends with its next allocation.
		atomic_fetch_add(&image->share.segment->resumes, 1);
		break;
	case CONTROL_SAVE:
	case CONTROL_WHERE:
		if (event->request.verb == CONTROL_SAVE)
			writer_flush(trace_builder->writer);
		door_answer(requests->door, event,
			    control_where(requests->options->output_fd, text) ? CONTROL_DONE
									      : CONTROL_REFUSED,
			    text);
		return;
	case CONTROL_SAMPLE:
		trace_builder_time(trace_builder, event->time_ns);
		good = overhead_ask(requests->overhead, event->request.value, text);
		door_answer(requests->door, event, good ? CONTROL_DONE : CONTROL_REFUSED, text);
		return;
	case CONTROL_REACHABILITY:
		ask_for_reachability(requests, image, event, TRACE_SNAPSHOT_ASKED);
		return;
	case CONTROL_DETACH:
		door_answer(requests->door, event, CONTROL_DONE, "");
		requests->leave(requests->context);
		return;
	default:
		door_answer(requests->door, event, CONTROL_REFUSED, "an unknown request");
		return;
	}
	trace_builder_time(trace_builder, event->time_ns);
	trace_builder_note(trace_builder, kind, image->process, TRACE_NONE, 0,
			   kind == TRACE_NOTE_MARK ? event->request.text : "");
	if (kind == TRACE_NOTE_MARK) // for who watches it
		generated_code_name(image, requests->process_list->tick->clock->began_ns, false);
	if (kind == TRACE_NOTE_MARK && requests->options->reach_mark &&
	    strcmp(event->request.text, requests->options->reach_mark) == 0) {
		ask_for_reachability(requests, image, event, TRACE_SNAPSHOT_MARK);
		return;
	}
	door_answer(requests->door, event, CONTROL_DONE, "");
}

void requests_put(struct requests *requests, struct door_event *event)
{
	struct door_event **link = &requests->first;

	ASSERT(event->kind == DOOR_CONTROL && event->next == NULL);
	while (*link)
		link = &(*link)->next;
	*link = event;
}

void requests_pass(struct requests *requests, uint64_t last_ns)
{
	struct door_event *event;

	while ((event = requests->first) != NULL && event->time_ns <= last_ns) {
		requests->first = event->next;
		answer(requests, event);
		mem_free(event);
	}
}

void requests_fini(struct requests *requests)
{
	while (requests->first != NULL) {
		struct door_event *event = requests->first;

		requests->first = event->next;
		// Every collector is asked for any process.
		if (process_list_find(requests->process_list, event->request.pid))
			door_answer(requests->door, event, CONTROL_REFUSED,
				    "its recording has ended");
		else
			door_answer(requests->door, event, CONTROL_UNKNOWN, "");
		mem_free(event);
	}
}
