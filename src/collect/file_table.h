// file_table: the files that were mapped, each written to the trace once.
//
// A file is what device, inode and path say: the same inode by two names is two files, and a name
// under which another file was put later is another one too. One thread.
#pragma once

#include "base/map.h"
#include "trace/writer.h"

// `{ .writer = … }` has none yet.
struct file_table {
	struct writer *writer; // borrowed
	struct map map;        // hash to index in `files`, + 1; a taken hash moves on by one
	struct trace_file *files;
	size_t count, capacity;
};

void file_table_fini(struct file_table *table); // accepts { 0 }

// The trace's id of a file, which is new if it was not met before. `path` has `length` bytes. An
// empty path and inode 0 are no file: 0.
file_id file_table_put(struct file_table *table, uint64_t device, uint64_t inode, const char *path,
		       size_t length);
