// indexer: builds the window index of a recording while it is being written (record --index).
//
//     indexer_open      behind the collector: it reads the trace as it grows
//     indexer_whole     nothing will be added: it finishes, at usual priority
//       indexer_stop      or leaves off; what is done is kept for the first question
//     indexer_close     how it ended
//
// A process of its own with idle priority: it takes only what nobody else wants of the processors
// and the disk, and nothing that happens to it can touch the recording. When we are gone, it leaves
// off.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct indexer {
	pid_t pid; // 0: none
	int fd;    // becomes readable when it is done; -1: closed
};

enum indexer_end {
	INDEXER_READY,   // the index is there
	INDEXER_STOPPED, // half of it
	INDEXER_FAILED,  // err says why
};

// Whether the trace is whole already: then it is not idle priority that it has, and it goes on with
// what another one left.
bool indexer_open(struct indexer *indexer, const char *trace_path, bool whole, struct err *err);

// A message to it. One that has ended does not hear it, which is no harm.
// False: it may not have another priority than idle, and leaves off (one that is opened now may).
bool indexer_whole(const struct indexer *indexer);
void indexer_stop(const struct indexer *indexer);

// Waits for its end. What it took is added to *cpu_ns. Only of one that is open.
enum indexer_end indexer_close(struct indexer *indexer, uint64_t *cpu_ns, struct err *err);
