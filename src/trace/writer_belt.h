// writer_belt: what a writer puts, carried to a thread that makes blocks of it
// (trace/writer_file.h) and writes them.
//
//     writer_belt_new
//       writer_belt_row, _echo, _event, _defs, _cut    in the order of the file
//       writer_belt_settle                             the file is ours until the next of these
//     writer_belt_free
//
// Items go in chunks, so that the two meet only now and then. There are WRITER_BELT_CHUNKS of them:
// some two blocks of events. Where all are full the caller waits until half of them are empty.
//
// One thread calls it.
#pragma once

#include "trace/writer_file.h"

enum { WRITER_BELT_CHUNKS = 48, WRITER_BELT_CHUNK_BYTES = 64 << 10 };

struct writer_belt;

// *file is the thread's from here on. NULL: no thread can be had.
struct writer_belt *writer_belt_new(struct writer_file *file);

// After all that was put is done. NULL is allowed.
void writer_belt_free(struct writer_belt *belt);

// What writer_file_… does with each, later. Of an event its vm is copied, too. *defs is empty
// afterwards, with other memory.
void writer_belt_event(struct writer_belt *belt, const struct trace_event *event, uint64_t time_ns);
void writer_belt_row(struct writer_belt *belt, const struct columns_row *row);
void writer_belt_echo(struct writer_belt *belt, uint32_t times);
void writer_belt_defs(struct writer_belt *belt, struct writer_defs *defs);
void writer_belt_cut(struct writer_belt *belt, uint64_t last_ns);

// Wait until all that was put is done. The file is the caller's until something is put.
void writer_belt_settle(struct writer_belt *belt);

// Has the file failed, and how many bytes has it, as far as is known here?
bool writer_belt_failed(const struct writer_belt *belt);
uint64_t writer_belt_bytes(const struct writer_belt *belt);
