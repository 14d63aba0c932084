// summary: all of it goes to stderr, since stdout is the program's that was recorded. Figures come
// from the collector, which counted them while it wrote: the trace is not read again, but for one
// case.
#include "cli/summary.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "engine/replay/heap.h"

#include <stdio.h>

void summary_tell(const char *line)
{
	fprintf(stderr, "tidemark: %s\n", line);
}

static const char *plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

// What a forked process frees of what it inherited is apart from its frees, which takes a look at
// the trace: where that is quickly done.
static const char *summary_frees(const struct launch_result *result, uint64_t *frees)
{
	enum { EVENTS_MAX = 1000000 };
	// A process that forks has the blocks of its parent, and frees some: the collector counts
	// these frees apart from those of its own. Up to a million events the trace is read for the
	// exact number; beyond it the figure has "(inherited blocks too)" after it.
	const struct collect_summary *summary = &result->summary;

	*frees = summary->frees;
	if (summary->forked == 0 ||
	    (summary->events <= EVENTS_MAX && heap_count_frees(str_get(&result->path), frees)))
		return "";
	return " (inherited blocks too)";
}

void summary_print(const struct launch_result *result)
{
	const struct collect_summary *summary = &result->summary;
	const char *inherited;
	uint64_t ended;
	const char *path = str_get(&result->path);
	struct str word = { 0 };

	str_add_shell(&word, path);
	// The collector has said nothing at its end: there are no figures.
	if (!result->closed) {
		fprintf(stderr, "tidemark: trace %s is cut short; next: tidemark report %s\n", path,
			str_get(&word));
		str_fini(&word);
		return;
	}
	inherited = summary_frees(result, &ended);
	fprintf(stderr, "tidemark: %s, %s %s, %s %s%s, %s allocated, %s %s, %s %s lost%s\n",
		STR_DURATION(summary->duration_ns), STR_COUNT(summary->allocations),
		plural(summary->allocations, "allocation", "allocations"), STR_COUNT(ended),
		plural(ended, "free", "frees"), inherited, STR_BYTES(summary->allocated_bytes),
		STR_COUNT(summary->processes), plural(summary->processes, "process", "processes"),
		STR_COUNT(summary->events_lost), plural(summary->events_lost, "event", "events"),
		summary->sampled ? "; these are samples, report estimates the whole" : "");
	if (summary->events_gone > 0)
		fprintf(stderr,
			"tidemark: that is what was seen; the trace has %s of these %s events, and "
			"report counts no others\n",
			STR_COUNT(summary->events),
			STR_COUNT(summary->events + summary->events_gone));
	// Who keeps a trace short reads the line above for what is in the file.
	if (summary->events_left_out > 0)
		fprintf(stderr, "tidemark: that is of the whole run; %s has %s of its %s events\n",
			path, STR_COUNT(summary->events - summary->events_left_out),
			STR_COUNT(summary->events));
	if (result->stood.length > 0)
		fprintf(stderr, "tidemark: its threads stood still for %s\n",
			str_get(&result->stood));
	if (result->indexed)
		fprintf(stderr, "tidemark: its index is ready (%s of CPU, in idle time)\n",
			STR_DURATION(result->index_cpu_ns));
	fprintf(stderr, "tidemark: trace %s (%s); next: tidemark %s %s\n", path,
		STR_BYTES(summary->trace_bytes), summary->processes > 0 ? "report" : "info",
		str_get(&word));
	str_fini(&word);
}

// As shells have it: 127 not found, 126 not to be executed; 125 is ours, for all else.
int summary_failed(const struct launch_result *result, const struct err *err)
{
	ASSERT(result->end != LAUNCH_RAN);
	fprintf(stderr, "tidemark: %s\n", err->text);
	switch (result->end) {
	case LAUNCH_NOT_FOUND:
		return EXIT_NOT_FOUND;
	case LAUNCH_NOT_EXECUTABLE:
		return EXIT_NOT_EXECUTABLE;
	case LAUNCH_RAN:
	case LAUNCH_FAILED:
		break;
	}
	return EXIT_NOT_RECORDED;
}
