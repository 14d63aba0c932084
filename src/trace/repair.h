// repair: makes a whole trace of a cut or damaged one.
//
// Blocks that are whole are copied as they are, also of types this version does not know; what
// was lost in between is said by a note where it was, and the reason by the END block. Nothing
// that can be read is changed.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// `events_lost` counts what numbers say is missing: at the end of a cut trace nothing says how many
// there were.
struct repair_result {
	uint64_t blocks;      // copied
	uint64_t blocks_lost; // known to be missing
	uint64_t events;      // copied
	uint64_t events_lost; // known to be missing by their numbers
	uint64_t bytes_lost;  // of the file that could not be used
	char why[200];        // what was wrong; "" if nothing was
};

// Read the trace at `path` and write a whole one into the empty file `fd`.
bool repair_trace(const char *path, int fd, struct repair_result *result, struct err *err);

// The same of a recording that goes on: what is there by now, which is not called damaged.
bool repair_copy(const char *path, int fd, struct repair_result *result, struct err *err);
