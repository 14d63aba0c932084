// writer_file: the half of a writer that makes blocks and writes them (trace/writer.h).
//
// Rows, events, definitions and ends of blocks come in the order of the file, with all numbers and
// times given: nothing that is found out here is needed to make the next of them. So it may be
// done later, by another thread (trace/writer_belt.h), and the file is the same to the byte.
//
// Errors are sticky: after one, what comes is counted, and nothing else.
//
// One thread at a time.
#pragma once

#include "trace/chain.h"
#include "trace/columns.h"
#include "trace/predict_when.h"

// Definitions that wait for their DEFS block. { 0 }: none.
struct writer_defs {
	struct bytes records; // in order: all but frames, stacks and names
	// Apart from `records`, since a name must come after its frame and what was reachable after
	// its stacks, and both are written after the records.
	struct bytes names;
	struct trace_frame *frames;
	size_t frames_count, frames_capacity;
	struct trace_stack *stacks;
	size_t stacks_count, stacks_capacity;
	uint64_t notes_first_ns, notes_last_ns;
	// Set when they are put: the time of the last item, the number of the next event, and the
	// id of the first stack.
	uint64_t last_ns, first_event;
	stack_id stacks_first;
};

static inline bool writer_defs_empty(const struct writer_defs *defs)
{
	return defs->records.size + defs->names.size + defs->frames_count + defs->stacks_count == 0;
}

void writer_defs_fini(struct writer_defs *defs); // accepts { 0 }

// A state of the file that can be gone back to.
// `size` in bytes, `events` in whole blocks, `sequence` of the next block.
struct writer_mark {
	uint64_t size;
	uint64_t events;
	uint32_t sequence;
};

struct writer_file {
	struct chain chain; // begun by the writer; its last_ns is that of the last whole block
	struct err err;
	bool failed;              // sticky
	struct writer_mark whole; // before the block of events written last
	struct writer_mark words; // before the end record that a failure wrote
	struct columns_encoder columns;
	struct predict_when when;
	uint64_t events_count; // that came; chain.next_event of them are in whole blocks
};

void writer_file_fini(struct writer_file *file); // accepts { 0 }

// Write definitions and notes as one DEFS block. *defs is empty afterwards, and keeps its memory.
void writer_file_defs(struct writer_file *file, struct writer_defs *defs);

// An event, at `time_ns`; a row; the row that came last, `times` times more. They fit into the
// open block.
void writer_file_event(struct writer_file *file, const struct trace_event *event, uint64_t time_ns);
void writer_file_row(struct writer_file *file, const struct columns_row *row);
void writer_file_echo(struct writer_file *file, const struct columns_row *row, uint32_t times);

// The open block ends, and is written; `last_ns` is the time of the last item before that.
void writer_file_cut(struct writer_file *file, uint64_t last_ns);

// A block without events, with chain.raw as payload.
void writer_file_plain(struct writer_file *file, enum block_type type);

// The end record. `lost`: events that did not even come here.
void writer_file_end(struct writer_file *file, const struct trace_end *end, uint64_t lost);
