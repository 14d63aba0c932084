// otlp_push: a trace as profiles for a collector of OpenTelemetry's, while it is written or once.
//
// A trace is read from its beginning, as it grows. At the end of each period, every so many
// seconds, four profiles of each process are sent (export/otlp.c): what was allocated in the period
// and what lives at its end, in blocks and in bytes. Of a process that ended in the period it is
// what lived at its end. A finished trace is one period: what is sent is what `tidemark export
// --format otlp` writes.
//
//     --|---------------|---------------|----------
//       a  b   -a       c  -b           -c
//
// The first profile has two allocated blocks, a and b, and one that lives, b; the second has c and
// c; the third nothing. What did not come through is a part of the next period, so each block is
// counted once as allocated.
//
// The trace may be cut while it is written (record --max-size, --keep): reading goes on in the
// new file, and what was counted is not counted again. Memory: what lives, and some 150 bytes for
// each process, thread, stack and size of it.
#pragma once

#include "sql/otlp_send.h"
#include "symbols/symbols.h"

struct otlp_push_options {
	const char *path;
	struct symbols_options symbols;
	uint64_t every_ns;           // how long a period is, at least
	bool (*stop)(void *context); // of NULL
	void (*say)(const char *line);
};

struct otlp_push_result {
	uint64_t messages, bytes;
};

// False: nothing, or not all, was taken.
bool otlp_push_run(struct otlp_send *send, const struct otlp_push_options *options,
		   struct otlp_push_result *result, struct err *err);
