// writer: puts a trace into a file, block by block.
//
// Items are buffered into blocks; a block is written whole, with its checksum, when it is full or
// when writer_flush is called, and never touched again. Definitions made since the last block
// are written before it. So what is in the file is always readable up to its last whole block.
//
// Errors are sticky: after one, every call does nothing and returns quickly; ask writer_ok. When
// the disk is full the writer cuts the file back to the last whole block and writes the end
// record into room it had kept free for it: the trace says itself why it is short.
//
// One thread calls it. After writer_apart, another one makes the blocks and writes them.
#pragma once

#include "base/err.h"
#include "trace/trace.h"

#include <stddef.h>

struct columns_row;
struct writer;

// Write to descriptor `fd` (an empty regular file, or a pipe), which stays the caller's. Strings
// in `info` are copied, `info->version_*` is ignored. NULL on error.
// Writes the preamble and the INFO record at once, so that the file is a trace from its first
// moment.
struct writer *writer_new(int fd, const struct trace_info *info, struct err *err);

// Without writer_end before it: leaves the file as a cut trace. NULL is allowed.
void writer_free(struct writer *writer);

// Definitions. Each returns the new id. Strings and arrays are copied. Threads' and modules'
// processes, frames' modules and stacks' parents must have been defined.
// `process->id`, exit and ended_ns are ignored.
process_id writer_add_process(struct writer *writer, const struct trace_process *process);
thread_id writer_add_thread(struct writer *writer, process_id process, uint32_t tid,
			    const char *name);
module_id writer_add_module(struct writer *writer, const struct trace_module *module);
frame_id writer_add_frame(struct writer *writer, module_id module, uint64_t pc, uint32_t flags);
stack_id writer_add_stack(struct writer *writer, stack_id parent, frame_id frame, uint8_t flags);

// Give a frame names of its own: the functions at it, innermost first, `count` of at most 256.
// For traces made from text; a recorder has none to give.
void writer_add_name(struct writer *writer, frame_id frame, const struct trace_name *names,
		     size_t count);

// `heap->id` and `file->id` are ignored. Ids count from 1. A heap's process must have been defined.
heap_id writer_add_heap(struct writer *writer, const struct trace_heap *heap);
file_id writer_add_file(struct writer *writer, const struct trace_file *file);

// Its process and files must have been defined; its marks may be of events still to come.
void writer_snapshot(struct writer *writer, const struct trace_snapshot *snapshot);

// What was reachable, in as many parts as it takes. Its process, threads and stacks must have been
// defined.
void writer_reach(struct writer *writer, const struct trace_reach *reach);

// Pack the symbol file of a build-id into the trace. What is buffered is written first.
// At most 1 GiB, and a build-id of at most 32 bytes. It goes in parts of 8 MiB, each a block.
void writer_bundle(struct writer *writer, const uint8_t *build_id, size_t build_id_length,
		   const void *bytes, size_t size);

// Append an event. `event->number` is ignored: numbers are given here, in the order of the calls.
// Times must not fall; one that would is raised to the item before it.
void writer_event(struct writer *writer, const struct trace_event *event);

// Append a row of events. Its time may be raised in the same manner.
void writer_row(struct writer *writer, struct columns_row *row);

// Append a row `times` times over. After its last event the address must be what it was before its
// first.
void writer_echo(struct writer *writer, struct columns_row *row, uint32_t times);

// Append a note. For TRACE_NOTE_PROCESS_END, `exit` and `exit_value` say how.
void writer_note(struct writer *writer, const struct trace_note *note);
void writer_process_end(struct writer *writer, process_id process, uint64_t time_ns,
			enum trace_exit exit, uint32_t exit_value);

// From here on full blocks are made and written by a thread of the writer's own. Up to 3 MB of
// items are on their way to it. The file is the same to the byte, and an error is found a little
// later; writer_flush waits until all is in the file. Where no thread can be had, nothing changes.
// A second call does nothing.
void writer_apart(struct writer *writer);

// Write what is buffered as a (short) block. Call it about once a second, so that a reader of the
// unfinished file, or of one whose collector was killed, sees all but the last second.
void writer_flush(struct writer *writer);

// The end record: the trace is complete. Nothing may be added after it.
// `end->events` and, after a failure, `end->why` and events_lost are the writer's own.
void writer_end(struct writer *writer, const struct trace_end *end);

// Go on with the file of another writer: the descriptor leads there from now on. `other` is freed,
// and its descriptor stays the caller's. Both have the same definitions.
void writer_become(struct writer *writer, struct writer *other);

// The ids that the next definitions will have.
struct writer_counts {
	uint32_t processes, threads, modules, frames, stacks, heaps, files;
};
const struct writer_counts *writer_counts(const struct writer *writer);

uint64_t writer_events_count(const struct writer *writer);
uint64_t writer_events_kept(const struct writer *writer); // those that the file holds so far
uint64_t writer_bytes(const struct writer *writer);       // written so far, as far as is known

// False, and why, once anything has failed.
bool writer_ok(const struct writer *writer, struct err *err);
