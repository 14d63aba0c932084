// code_table: places in files of code, each one frame of the trace in whatever process it was met.
//
// Thirty-one runs of one compiler have mostly the same stacks, at other addresses. So a frame is
// known by its file and its offset in there, and belongs to the module of the process that was the
// first to have that file; stacks are made of frames, and are then the same too. For example, of
// libc mapped at 0x7f10000 in process 0, as module 4, and at 0x7f80000 in process 1, as module 9,
// offset 0x123 is the frame 0x7f10123 of module 4 in both. A line of an interpreted program is
// known by the names of its function and its file, and its number.
//
// Files are the same if all that the trace says of them is. One of which it says too little is a
// file of its own each time: without a build-id, and without a size and a time of change.
//
// What all images of a recording share. One thread.
#pragma once

#include "base/index_set.h"
#include "base/map.h"
#include "trace/trace.h"
#include "trace/writer.h"

#include <stddef.h>

// `{ .writer = … }` has none yet.
struct code_table {
	struct writer *writer;      // borrowed
	struct trace_module *files; // as the first process had them; paths are ours
	size_t count, capacity;
	struct index_set known; // those that another module may be
	struct map frames;      // by file, marks and offset

	struct code_function *functions; // of interpreted programs
	size_t functions_count, functions_capacity;
	struct index_set functions_known;
	struct map lines; // function << 32 | line -> frame
};

void code_table_fini(struct code_table *table); // accepts { 0 }

// The number of the module's file, from 0. The module is in the trace, by its id.
uint32_t code_table_file(struct code_table *table, const struct trace_module *module);

// The frame at that offset of the file. `flags` are enum trace_frame_flag; `marks`, below
// CODE_TABLE_MARKS, are the caller's: with others it is another frame.
enum { CODE_TABLE_MARKS = 4 };
frame_id code_table_frame(struct code_table *table, uint32_t file, uint64_t offset, uint32_t flags,
			  uint32_t marks);

// The frame of a line of an interpreted program, which has its name in the trace. Both texts are
// copied.
frame_id code_table_line(struct code_table *table, const char *function, const char *file,
			 uint32_t line);
