// A process is stopped first, and searched when all that it did before is in the trace: which
// blocks there are is read from the trace itself. So reachability_ask only stops it, and a later
// pass, after which the image's lanes are drained, flushes the writer, copies the process and has
// the copy searched. For example, 1,000 blocks live, and 3 of them are in no register, no stack, no
// global and no block that is reached: of these three, the one that nothing points to is
// unreachable, and two that it points to are held by it.
//
// Where a trace is kept short (record --keep), events may have other numbers when the search is
// over: there the process is searched while it is stopped.
#include "collect/reachability.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/thread.h"
#include "trace/reach.h"

#include <stdatomic.h>

enum { REACHABILITY_JOBS_MAX = 2 }; // who asks more often than is searched, has to wait

struct reachability_job {
	struct reachability_job *next;
	struct thread *thread; // NULL: it has not begun
	const struct reachability *reachability;
	void *copy;
	uint32_t pid;
	struct trace_reach found;
	struct image_asker asker;
	struct err err;
	bool done;
	_Atomic bool over;
};

static void warn(const struct reachability *reachability, process_id process, uint32_t pid,
		 const char *what, const struct err *err)
{
	struct str text = { 0 };

	str_format(&text, "reachability of process %u is not known: %s: %s", pid, what, err->text);
	trace_builder_warn(reachability->process_list->trace_builder, process, str_get(&text));
	str_fini(&text);
}

// The process stays stopped until it was copied or searched, which a later pass does.
bool reachability_ask(struct reachability *reachability, struct image *image, uint8_t reason,
		      const struct image_asker *asker)
{
	const struct collect_reach *reach = reachability->options->reach;
	struct err err = { .kind = ERR_NONE };

	ASSERT(image->begun);
	image->reach_tried = true;
	if (reach == NULL || image->reach_stopped != NULL)
		return false;
	image->reach_stopped =
		reach->stop(image->pid, atomic_load(&image->share.segment->look_stack), &err);
	if (image->reach_stopped == NULL) {
		warn(reachability, image->process, image->pid, "it cannot be stopped", &err);
		return false;
	}
	image->reach_reason = reason;
	image->reach_asker = *asker;
	return true;
}

static void say_gone_on(const struct image_asker *asker)
{
	if (asker->gone_on)
		asker->gone_on(asker->context);
}

static void say_found(const struct image_asker *asker, const struct trace_reach *found)
{
	if (asker->found)
		asker->found(asker->context, found);
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
	say_gone_on(&image->reach_asker);
	say_found(&image->reach_asker, done ? found : NULL);
}

// ---- a copy ----

static void *search_copy(void *context)
{
	struct reachability_job *job = context;
	const struct collect_options *options = job->reachability->options;

	job->done = options->reach->read(job->copy, options->output_fd, job->found.process,
					 &job->found, &job->err);
	atomic_store(&job->over, true);
	return NULL;
}

// Where there is no thread to be had, it is searched here and now.
static void begin(struct reachability_job *job)
{
	if (job == NULL || job->thread != NULL || job->over)
		return;
	job->thread = thread_start(search_copy, job);
	if (job->thread == NULL)
		search_copy(job);
}

// The first is over: write what it found, unless nothing can be written.
//
// `writes` false: the recording cannot be written any more.
static void end(struct reachability *reachability, bool writes)
{
	struct reachability_job *job = reachability->jobs;

	thread_join(job->thread);
	ASSERT(job->over);
	reachability->options->reach->release(job->copy);
	if (job->done && writes)
		writer_reach(reachability->process_list->trace_builder->writer, &job->found);
	else if (writes)
		warn(reachability, job->found.process, job->pid, "its memory was not searched",
		     &job->err);
	say_found(&job->asker, job->done && writes ? &job->found : NULL);
	reach_fini(&job->found);
	reachability->jobs = job->next;
	mem_free(job);
}

static size_t count_jobs(const struct reachability *reachability)
{
	const struct reachability_job *job = reachability->jobs;
	size_t count = 0;

	for (; job != NULL; job = job->next)
		count++;
	return count;
}

// False: it cannot be copied, and is stopped still.
//
// A fork of the stopped process, made from outside: it goes on at once, and the copy is searched by
// a thread.
static bool copy(struct reachability *reachability, struct image *image, struct trace_reach *found)
{
	struct reachability_job **last = &reachability->jobs, *job;

	if (reachability->options->keep != NULL ||
	    !reachability->options->reach->copy(image->reach_stopped, &found->stopped_ns))
		return false;
	job = mem_alloc(1, sizeof *job);
	*job = (struct reachability_job){
		.reachability = reachability,
		.copy = image->reach_stopped,
		.pid = image->pid,
		.found = *found,
		.asker = image->reach_asker,
		.err = { .kind = ERR_NONE },
	};
	while (*last != NULL)
		last = &(*last)->next;
	*last = job;
	image->reach_stopped = NULL;
	say_gone_on(&job->asker);
	return true;
}

// ---- passes ----

// The trace is flushed first, so that the search knows of every block that the process has. Where
// it can be copied, the process goes on at once and the copy is searched; else it stands still
// meanwhile.
static void search(struct reachability *reachability, struct image *image)
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
	if (copy(reachability, image, &found))
		return;
	done = options->reach->read(image->reach_stopped, options->output_fd, image->process,
				    &found, &err);
	if (!done)
		warn(reachability, image->process, image->pid, "its memory was not searched", &err);
	let_go(reachability, image, done, &found);
	reach_fini(&found);
}

void reachability_pass(struct reachability *reachability)
{
	struct image *image = reachability->process_list->images;

	while (reachability->jobs != NULL && reachability->jobs->over)
		end(reachability, true);
	for (; image != NULL; image = image->next)
		if (image->reach_stopped != NULL && image_drained(image) &&
		    count_jobs(reachability) < REACHABILITY_JOBS_MAX)
			search(reachability, image);
	begin(reachability->jobs);
}

void reachability_finish(struct reachability *reachability)
{
	while (reachability->jobs != NULL) {
		begin(reachability->jobs);
		thread_join(reachability->jobs->thread);
		reachability->jobs->thread = NULL;
		end(reachability, true);
	}
}

// Processes that are stopped go on, searches are told to end, and what they have is thrown away.
void reachability_cancel(struct reachability *reachability)
{
	struct image *image = reachability->process_list->images;

	for (; image != NULL; image = image->next)
		if (image->reach_stopped != NULL)
			let_go(reachability, image, false, NULL);
	for (struct reachability_job *job = reachability->jobs; job != NULL; job = job->next)
		reachability->options->reach->abandon(job->copy);
	while (reachability->jobs != NULL) {
		if (reachability->jobs->thread == NULL)
			reachability->jobs->over = true;
		else
			thread_join(reachability->jobs->thread);
		reachability->jobs->thread = NULL;
		end(reachability, false);
	}
}

void reachability_describe(const struct trace_reach *found, struct str *text)
{
	uint64_t counts[TRACE_REACH_STATES_COUNT] = { 0 }, bytes[TRACE_REACH_STATES_COUNT] = { 0 };

	for (uint64_t i = 0; i < found->count; i++) {
		ASSERT(found->blocks[i].state < TRACE_REACH_STATES_COUNT);
		counts[found->blocks[i].state]++;
		bytes[found->blocks[i].state] += found->blocks[i].size;
	}
	str_format(text, "unreachable %s",
		   STR_BYTES(bytes[TRACE_REACH_UNREACHABLE] + bytes[TRACE_REACH_HELD]));
	str_format(text, " in %s blocks",
		   STR_COUNT(counts[TRACE_REACH_UNREACHABLE] + counts[TRACE_REACH_HELD]));
	str_format(text, ", of %s that are live; it was stopped for %s", STR_COUNT(found->count),
		   STR_DURATION(found->stopped_ns));
}
