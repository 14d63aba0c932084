// heaplog: the calls on a process's heaps as a row of small records, for programs that read them
// (docs/heaplog.md is the layout).
//
// A file begins with a header: magic, version, the process, and the handles of its heaps. Then come
// records of 17 bytes for a block that begins, and of 13 for one that ends. A realloc is both, the
// end first; one that failed is neither. Blocks that end with their heap have records of their own;
// those that end with the process have none.
#ifndef REPORT_HEAPLOG_H
#define REPORT_HEAPLOG_H

#include "base/progress.h"
#include "base/sink.h"
#include "report/selection.h"

struct heaplog_options {
	struct reader *reader;               // scanned; it is read once more
	const struct selection *selection;   // NULL: everything
	const struct moment_edge *from, *to; // the window; NULL: without an edge
	enum progress_mode progress;
};

// Which process: the only one, or the only one that the filters leave. ERR_USAGE if it is not one.
bool heaplog_choose(const struct heaplog_options *options, process_id *process, struct err *err);

// Write all of it.
void heaplog_write(const struct heaplog_options *options, process_id process, struct sink *sink);

#endif
