// index_ahead: reads a trace's events ahead of their pairing, and finds their kinds (cells.h), in a
// thread of its own.
//
//     index_ahead_start
//       index_ahead_next     the next batch, until its item is READER_END and nothing is added
//     index_ahead_finish
//
// The reader and the cells are the thread's. Who has a batch may touch them where the thread has
// nothing to do: as long as the batch holds (what is after its events is a note, an event
// of virtual memory or the trace's end, and may borrow from the reader), and after
// index_ahead_rest. How far the thread is then does not depend on how fast it is, so neither does
// what number a cell gets that is added there.
#pragma once

#include "engine/index/cells.h"
#include "os/worker.h"
#include "trace/reader.h"

enum { INDEX_AHEAD_BATCHES = 16 };

// An event, without what its run says. Most are plain: of a block of malloc that begins or ends,
// and nothing else. Of others all is in `others`. So what one thread hands the other is a fifth of
// what it reads.
enum { INDEX_AHEAD_ENDS, INDEX_AHEAD_BEGINS, INDEX_AHEAD_OTHERS };
struct index_ahead_event {
	uint64_t address;
	uint32_t cell; // of what begins; else 0
	uint32_t what; // one of these; of others, INDEX_AHEAD_OTHERS and the place among them
};

// Events of one thread at one time, whose numbers count on.
struct index_ahead_run {
	uint64_t time_ns, number; // of the first
	process_id process;
	thread_id thread;
	uint32_t count;
	bool forked; // so the process began
};

struct index_ahead_batch {
	struct index_ahead_event *events;
	struct index_ahead_run *runs;
	struct trace_event *others;
	size_t count, runs_count, others_count;
	enum reader_item item; // after them: a note or the end; READER_EVENT: neither
	struct trace_note note;
	bool holds;
	struct reader_place place; // of the first
	uint64_t position;         // in the file, of what follows
	// With this batch: bytes of definitions and cells, and how many there are.
	uint64_t memory_bytes;
	uint32_t stacks_count, sites_count, kinds_count;
	bool one_process; // that these are of
};

struct index_ahead {
	struct reader *reader; // borrowed
	struct cells *cells;   // borrowed
	size_t full;           // events in a batch
	// Processes and threads that are known: events of others are left out. Set while it rests.
	uint32_t processes_count, threads_count;
	struct index_ahead_batch batches[INDEX_AHEAD_BATCHES];

	struct worker worker;
	uint64_t filled, given, done; // batches that were read, were asked for, are done with
	uint64_t wanted;              // who waits for a batch is woken when so many were read
	bool waits;                   // the thread, for room
	bool rests;                   // who has a batch waits until there is no room
	struct index_ahead_round *round;
};

// From where the reader is. The first batch is read when it is asked for.
void index_ahead_start(struct index_ahead *ahead, struct reader *reader, struct cells *cells,
		       size_t batch_events);
void index_ahead_finish(struct index_ahead *ahead); // also of { 0 }

// The next batch; the one before is done with.
const struct index_ahead_batch *index_ahead_next(struct index_ahead *ahead);

// Wait until the thread has nothing to do before the next batch is asked for.
void index_ahead_rest(struct index_ahead *ahead); // also of { 0 }, and after its end

// Where the trace goes on after the batch that was given last; while it rests.
struct reader_place index_ahead_place(const struct index_ahead *ahead);
