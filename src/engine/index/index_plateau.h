// index_plateau: a plateau of resident memory (engine/replay/plateau.h), from an index.
//
// The last release is in the list of calls on virtual memory, and the highest level after it in
// the files of levels: neither costs what the trace is long. Where other processes allocated too,
// the steps of the plateau are gone through.
#pragma once

#include "engine/index/index_read.h"
#include "engine/replay/plateau.h"

// Whether the index can say it: not of a process with heaps of its own, nor of one whose realloc
// that failed has an edge of the plateau between its halves. Ask the trace then. The reader is
// neither read nor moved. False with *err: the index is damaged or cannot be read, or somebody
// wants to stop.
bool index_plateau(struct index *index, struct index_clock *clock, struct reader *reader,
		   process_id process, uint64_t number, struct plateau *plateau, struct err *err);
