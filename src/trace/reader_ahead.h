// reader_ahead: decodes a trace's blocks of events ahead of their reader, in a thread of its own.
//
//     reader_ahead_start       from a block on
//       reader_ahead_next      chunk after chunk, block after block
//     reader_ahead_end
//
// What is in a block of events hangs on nothing outside of it, so it can be read and decoded before
// the reader comes to it; whether ids in it are known, and where notes belong, is the reader's to
// say. The thread walks through the file as the reader does. Where anything is not as it should be
// (a block that cannot be unpacked, a walk that goes another way than the reader's) it has no more,
// and the reader goes on by itself.
//
// Memory: READER_AHEAD_CHUNKS chunks, 1.4 MiB together. Where events are given spots, runs of them
// are calls, and 0.5 MiB more; of their events nearly nothing is written then.
#pragma once

#include "trace/columns.h"
#include "trace/reader.h"
#include "trace/store.h"
#include "trace/walk.h"

enum { READER_AHEAD_CHUNKS = 16, READER_AHEAD_EVENTS = 1024, READER_AHEAD_VMS = 128 };

struct reader_ahead_chunk {
	uint64_t at; // the block's offset in the file
	uint32_t count;
	uint64_t number;            // of the event after these
	uint64_t unknown;           // events of kinds not known in the block so far
	enum columns_result result; // after these; COLUMNS_EVENT: the next chunk goes on
	struct trace_event events[READER_AHEAD_EVENTS];
	// Of each, how many are as columns_run has them together, from it on; 0: none.
	uint16_t runs[READER_AHEAD_EVENTS];
	// With spots, each event's are here; of a run all of it is, and `events` has but the
	// number, time and thread of its first one (whose number is in `first`), and reallocs.
	bool spotted;
	stack_id stacks; // the largest of those of runs
	uint16_t first[READER_AHEAD_EVENTS];
	struct reader_call calls[READER_AHEAD_EVENTS];
	struct trace_vm vms[READER_AHEAD_VMS]; // what events point at
};

struct reader_ahead;

// From the first block of events on that the walk comes to. The file of `store` is
// borrowed, as large as it is now. `spots`: events have them. NULL: there is no thread to be had.
struct reader_ahead *reader_ahead_start(const struct store *store, const struct walk *from,
					bool spots);

// The next chunk, if it is of the block at `at`; the one before is done with. NULL: there is no
// such one, and there will be no more.
const struct reader_ahead_chunk *reader_ahead_next(struct reader_ahead *ahead, uint64_t at);

// The number of an event of a chunk, and all of it.
uint64_t reader_ahead_number(const struct reader_ahead_chunk *chunk, uint32_t at);
void reader_ahead_event(const struct reader_ahead_chunk *chunk, uint32_t at,
			struct trace_event *event);

void reader_ahead_end(struct reader_ahead *ahead); // NULL is allowed
