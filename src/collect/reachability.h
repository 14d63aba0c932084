// reachability: stops a traced process, and finds out which of its blocks are reachable.
//
// A guest asks at its end, when it asks for its last snapshot (rss_snapshots.h), and waits; or
// somebody asks from outside. The process is stopped at once. Then a pass delivers what it had
// published, the trace is written out, and who launched us copies the process (collect_options,
// reach), which goes on, and searches the copy: the collector does not know blocks. The search is
// made in a thread, one at a time, and what it finds goes into the trace. A process that cannot be
// copied is searched while it is stopped.
#pragma once

#include "collect/process_list.h"

struct reachability {
	struct process_list *process_list;     // borrowed
	const struct collect_options *options; // borrowed
	struct reachability_job *jobs;         // copies that are searched, or wait for that
};

// Stop the image's process. False: it cannot be stopped, or is stopped already; a warning says why,
// and the asker is not called.
bool reachability_ask(struct reachability *reachability, struct image *image, uint8_t reason,
		      const struct image_asker *asker);

// "unreachable 1.2 KiB in 3 blocks": in words. Appends.
void reachability_describe(const struct trace_reach *found, struct str *text);

// After a pass: copy or search those that have delivered everything; write what was found.
void reachability_pass(struct reachability *reachability);

// Wait for the searches, and write what they find.
void reachability_finish(struct reachability *reachability);

// All go on, searched or not: nothing can be written any more.
void reachability_cancel(struct reachability *reachability);
