// reachability: stops a traced process while it is found out which of its blocks are reachable.
//
// A guest asks at its end, when it asks for its last snapshot (rss_snapshots.h), and waits; or
// somebody asks from outside. The process is stopped at once. Then a pass delivers what it had
// published, the trace is written out, and who launched us searches (collect_options, reach): the
// collector does not know blocks. What that finds goes into the trace, and the process goes on.
#ifndef COLLECT_REACHABILITY_H
#define COLLECT_REACHABILITY_H

#include "collect/process_list.h"

struct reachability {
	struct process_list *process_list;     // borrowed
	const struct collect_options *options; // borrowed
};

// Stop the image's process. `then` is called when it has gone on, with what was found, or NULL.
// False: it cannot be stopped, or is stopped already; a warning says why, and `then` is not called.
bool reachability_ask(struct reachability *reachability, struct image *image, uint8_t reason,
		      void (*then)(void *context, const struct trace_reach *found), void *context);

// "unreachable 1.2 KiB in 3 blocks": in words. Appends.
void reachability_describe(const struct trace_reach *found, struct str *text);

// After a pass: search those that have delivered everything.
void reachability_pass(struct reachability *reachability);

// All go on, searched or not: nothing can be written any more.
void reachability_cancel(struct reachability *reachability);

#endif
