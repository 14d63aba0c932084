// asm: traces as text, both ways (docs/format.md, section 15).
//
// The text says all that a trace says, one definition or item a line. What asm_dump writes,
// asm_read takes, and dumping the result gives the same text again. People write shorter text by
// hand: labels of their own, stacks as names, no field that has a default.
#pragma once

#include "base/sink.h"
#include "trace/reader.h"

struct asm_options {
	bool definitions; // print the definitions, and the lines about the trace as a whole
	bool items;       // print events and notes
	uint64_t from_ns; // only items at or after this time
	uint64_t to_ns;   // only items at or before this time
	uint64_t count;   // at most this many items

	// Whether to print an event. NULL: all. Notes are printed in any case.
	bool (*wants)(void *context, const struct trace_event *event);
	void *context; // borrowed
};

// Everything.
struct asm_options asm_dump_all(void);

// Write the trace as text. Reads it from its beginning, or from the block where `from_ns` is.
bool asm_dump(struct reader *reader, const struct asm_options *options, struct sink *sink,
	      struct err *err);

// Make a trace from text in the empty file `fd`. False with "line 3, column 14: …".
bool asm_read(const char *text, size_t length, int fd, struct err *err);
