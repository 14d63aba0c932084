// snapshot: the memory of a process at one moment, as bytes (docs/format.md, section 5.11).
//
// Mappings and ranges of pages are written as the distance to the end of the one before, so that
// they cannot overlap or fall by writing; a reader refuses what leaves the 64 bits.
#pragma once

#include "trace/bytes.h"
#include "trace/trace.h"

enum {
	SNAPSHOT_PAGES_BYTES_MAX = 8 << 20, // of the ranges, written: further ones are cut
	// Where the sums by mapping and by page differ by more than one part of so many, the
	// process went on between the two readings.
	SNAPSHOT_AGREES_SHARE = 500,
};

// Mappings and ranges MUST rise and not overlap, and ranges are on whole pages.
void snapshot_encode(struct bytes *out, const struct trace_snapshot *snapshot);

// Decode a snapshot; with `whole`, its arrays too, which snapshot_fini gives back. Without, the
// arrays are NULL, and checked all the same. False, with nothing to give back, if it contradicts
// itself or has a file whose id is not below `files_count`.
bool snapshot_decode(struct bytes_cursor in, uint32_t files_count, bool whole,
		     struct trace_snapshot *snapshot);

void snapshot_fini(struct trace_snapshot *snapshot); // accepts { 0 }
