// A process is stopped first, and searched when all that it did before is in the trace: which
// blocks there are is read from the trace itself. So reachability_ask only stops it, and a later
// pass, after which the image's lanes are drained, flushes the writer and searches. For example,
// 1,000 blocks live, and 3 of them are in no register, no stack, no global and no block that is
// reached: of these three, the one that nothing points to is unreachable, and two that it points to
// are held by it.
#include "collect/reachability.h"

#include "base/mem.h"
#include "base/str.h"
#include "trace/reach.h"

static void warn(struct image *image, const char *what, const struct err *err)
{
	struct str text = { 0 };

	str_format(&text, "reachability of process %u is not known: %s: %s", image->pid, what,
		   err->text);
	trace_builder_warn(image->trace_builder, image->process, str_get(&text));
	str_fini(&text);
}

bool reachability_ask(struct reachability *reachability, struct image *image, uint8_t reason,
		      void (*then)(void *context, const struct trace_reach *found), void *context)
{
	const struct collect_reach *reach = reachability->options->reach;
	struct err err = { .kind = ERR_NONE };

	ASSERT(then != NULL && image->begun);
	if (reach == NULL || image->reach_stopped != NULL)
		return false;
	image->reach_stopped = reach->stop(image->pid, &err);
	if (image->reach_stopped == NULL) {
		warn(image, "it cannot be stopped", &err);
		return false;
	}
	image->reach_reason = reason;
	image->reach_then = then;
	image->reach_context = context;
	return true;
}

// It goes on. Who waits for that hears of it first: a guest must not wait for what is over.
static void let_go(const struct reachability *reachability, struct image *image, bool done,
		   struct trace_reach *found)
{
	uint64_t stopped_ns;

	ASSERT(image->reach_stopped != NULL && (found != NULL || !done));
	stopped_ns = reachability->options->reach->release(image->reach_stopped);
	image->reach_stopped = NULL;
	if (done) {
		found->stopped_ns = stopped_ns;
		writer_reach(image->trace_builder->writer, found);
	}
	image->reach_then(image->reach_context, done ? found : NULL);
}

static void search(const struct reachability *reachability, struct image *image)
{
	const struct collect_options *options = reachability->options;
	struct writer *writer = image->trace_builder->writer;
	struct err err = { .kind = ERR_NONE };
	struct trace_reach found = {
		.process = image->process,
		.reason = image->reach_reason,
		.time_ns = image->trace_builder->now_ns,
	};
	bool done;

	writer_flush(writer);
	found.number = writer_events_count(writer);
	done = options->reach->read(image->reach_stopped, options->output_fd, image->process,
				    &found, &err);
	if (!done)
		warn(image, "its memory was not searched", &err);
	let_go(reachability, image, done, &found);
	reach_fini(&found);
}

void reachability_pass(struct reachability *reachability)
{
	struct image *image = reachability->process_list->images;

	for (; image != NULL; image = image->next)
		if (image->reach_stopped != NULL && image_drained(image))
			search(reachability, image);
}

void reachability_cancel(struct reachability *reachability)
{
	struct image *image = reachability->process_list->images;

	for (; image != NULL; image = image->next)
		if (image->reach_stopped != NULL)
			let_go(reachability, image, false, NULL);
}

void reachability_describe(const struct trace_reach *found, struct str *text)
{
	uint64_t counts[TRACE_REACH_STATES_COUNT] = { 0 }, bytes[TRACE_REACH_STATES_COUNT] = { 0 };
	char size[16], count[28], time[24];

	for (uint64_t i = 0; i < found->count; i++) {
		ASSERT(found->blocks[i].state < TRACE_REACH_STATES_COUNT);
		counts[found->blocks[i].state]++;
		bytes[found->blocks[i].state] += found->blocks[i].size;
	}
	str_format(text, "unreachable %s",
		   str_bytes(bytes[TRACE_REACH_UNREACHABLE] + bytes[TRACE_REACH_HELD], size));
	str_format(text, " in %s blocks",
		   str_count(counts[TRACE_REACH_UNREACHABLE] + counts[TRACE_REACH_HELD], count));
	str_format(text, ", of %s that are live; it was stopped for %s",
		   str_count(found->count, count), str_duration(found->stopped_ns, time));
}
