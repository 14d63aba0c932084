// call_costs: a process is replayed once, when it is first asked about, and its times are kept by
// size class: class n is of sizes from 2^n to below 2^(n+1). A size of 100 bytes has the mean of
// class 6, which is 64 to 127.
#include "cli/call_costs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/interrupt.h"
#include "launch/preload.h"
#include "replay/replay_run.h"

#include <string.h>
#include <unistd.h>

// Of one process.
// `run` and `why` are both set where the replay failed: so it is not tried again.
struct process_costs {
	struct replay_run *run; // NULL: not asked for yet
	char *why;              // not known; NULL: it is
	double scale;           // of the means of calls
};

struct call_costs {
	struct query_context *asked;
	struct process_costs *list; // by process
};

// Nothing is measured yet: most findings need no costs.
struct call_costs *call_costs_new(struct query_context *asked)
{
	struct call_costs *costs = mem_alloc(1, sizeof *costs);

	// One entry more than processes, so that a list of none has an address, too.
	costs->asked = asked;
	costs->list = mem_alloc(reader_processes_count(asked->reader) + 1, sizeof *costs->list);
	return costs;
}

void call_costs_free(struct call_costs *costs)
{
	if (!costs)
		return;
	for (process_id id = 0; id < reader_processes_count(costs->asked->reader); id++) {
		MEM_FREE(costs->list[id].run, costs->list[id].why);
	}
	MEM_FREE(costs->list, costs);
}

// It lies beside the library that is preloaded, wherever the two were installed.
bool call_costs_find_driver(struct str *path, struct err *err)
{
	struct str library = { 0 };
	const char *slash;
	bool found = preload_find_library(&library, err);

	slash = found ? strrchr(str_get(&library), '/') : NULL;
	str_format(path, "%.*stidemark-replay", slash ? (int)(slash + 1 - str_get(&library)) : 0,
		   str_get(&library));
	str_fini(&library);
	// A build has it beside the library; an installation must, too.
	if (found && access(str_get(path), X_OK) != 0)
		return err_set(err, ERR_IO, "%s is not there (it is built with tidemark)",
			       str_get(path));
	return found;
}

// The library to be preloaded: the one that the process had; NULL: the C library's own malloc.
static bool find_library(const struct trace_process *process, const char **library, struct err *err)
{
	const struct trace_allocator *allocator = process->allocators;

	*library = NULL;
	if (process->allocators_count == 0)
		return err_set(err, ERR_IO, "which allocator it had is not known");
	// glibc's malloc is what the driver has without anything preloaded.
	if (strcmp(allocator->name, "glibc") == 0 && allocator->seen == TRACE_SEEN_NAME)
		return true;
	if (allocator->seen != TRACE_SEEN_NAME || !allocator->file ||
	    access(allocator->file, R_OK) != 0)
		return err_set(err, ERR_IO, "its allocator (%s) is not a library that is here",
			       allocator->name);
	*library = allocator->file;
	return true;
}

// Takes as long as the replay, with a line of progress; Ctrl-C ends it with ERR_STOPPED.
static bool measure(struct query_context *asked, process_id id, struct replay_run *run,
		    struct err *err)
{
	const struct trace_process *process = reader_process(asked->reader, id);
	struct replay_run_options options = {
		.touch = REPLAY_RING_NONE,
		.stopped = interrupt_came,
	};
	struct replay_plan plan = { 0 };
	struct str driver = { 0 };
	struct progress progress;
	bool good;

	ASSERT(id < reader_processes_count(asked->reader));
	if (!find_library(process, &options.library, err) ||
	    !call_costs_find_driver(&driver, err)) {
		str_fini(&driver);
		return false;
	}
	// Two passes over the trace: what each call will be (its block's end, so that a slot can be
	// reused), then the calls themselves, in the other process.
	options.driver = str_get(&driver);
	progress_begin(&progress, asked->options.window.progress, "costs of calls",
		       reader_bytes(asked->reader));
	interrupt_watch();
	replay_plan_init(&plan, asked->reader, id, false);
	good = replay_plan_look_ahead(&plan, &progress, err) &&
	       replay_run_play(&plan, &options, run, err);
	interrupt_leave();
	progress_end(&progress);
	replay_plan_fini(&plan);
	str_fini(&driver);
	return good;
}

// The mean of calls that were timed, in ns; 0: none was.
static double mean_of(uint64_t calls, uint64_t ns)
{
	return calls ? (double)ns / (double)calls : 0;
}

// Calls are timed by the clock, and a thread that loses the processor in one of them spoils the
// mean. The processor time of the whole run knows better: what it leaves of the sum of all means.
static double scale_of(const struct replay_run *run)
{
	double sum = 0;

	// For example 1,000 calls of 50 ns and as many frees of 30 ns are 80 us by the clock. If
	// the run took 60 us of processor time, all means are multiplied by .75.
	for (size_t i = 0; i < REPLAY_RING_CLASSES; i++) {
		const struct replay_ring_class *class = &run->classes[i];

		sum += (double)class->count * (mean_of(class->timed, class->timed_ns) +
					       mean_of(class->freed, class->freed_ns));
	}
	return sum > (double)run->cpu_ns ? (double)run->cpu_ns / sum : 1;
}

const char *call_costs_of(void *context, process_id process, uint64_t size, double *begin_ns,
			  double *end_ns)
{
	struct call_costs *costs = context;
	struct process_costs *known = &costs->list[process];
	const struct replay_ring_class *class;
	struct err err = { 0 };
	unsigned log2 = 0;

	ASSERT(process < reader_processes_count(costs->asked->reader));
	// Asked for a process when a finding names it first; a second finding has the answer at
	// once.
	if (!known->run) {
		known->run = mem_alloc(1, sizeof *known->run);
		if (!measure(costs->asked, process, known->run, &err))
			known->why = mem_copy_text(err.text);
		else
			known->scale = scale_of(known->run);
	}
	if (known->why)
		return known->why;
	// The class of the size; the last one has all that is larger.
	while (log2 + 1 < REPLAY_RING_CLASSES && size >> (log2 + 1))
		log2++;
	class = &known->run->classes[log2];
	if (!class->timed || !class->freed)
		return "too few calls of that size were timed in a replay";
	*begin_ns = mean_of(class->timed, class->timed_ns) * known->scale;
	*end_ns = mean_of(class->freed, class->freed_ns) * known->scale;
	return NULL;
}
