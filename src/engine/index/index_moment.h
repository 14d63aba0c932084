// index_moment: what is allocated at one moment (present.h), from an index and little of the trace.
//
//     index_moment            the blocks and the address spaces at a moment
//     index_moment_calls      all calls on address spaces, for those who listen
//
// Both give what reading the trace up to the moment gives, to the byte. Which blocks live is known
// from three places: a lifetime of 2^long_log2 steps and more that spans the moment is in the
// long files, or among what nothing ended; any other that lives then began in the steps just
// before it, and those are read from the trace, from the beginning of one of its blocks on.
// Address spaces come of the list of calls on them.
//
// So a moment costs what lives at it, the calls on virtual memory before it, and some 200,000
// events, however long the trace is. Memory: as present.h.
#pragma once

#include "engine/index/index_read.h"
#include "engine/replay/present.h"

// Whether the index can say it: not of traces that are damaged or odd (index.h), and not what a
// forked process has from its parent. Ask the trace then.
bool index_moment_knows(const struct index *index, const struct reader *reader,
			const struct present_options *options);

// NULL: the index is damaged (ERR_FORMAT), cannot be read, or somebody wants to stop. The reader is
// moved.
struct present *index_moment(struct index *index, struct reader *reader,
			     const struct present_options *options, struct err *err);

// As if present_read had been there, for the sake of `before` and `after`.
bool index_moment_calls(struct index *index, struct reader *reader,
			const struct present_options *options, struct err *err);

// Move the reader to before an event, not far. False: nobody knows how.
bool index_moment_go(const struct index *index, struct reader *reader, uint64_t number);

// The edge of a moment: events and ends of processes before it are before the moment. `number`: of
// the last event before it, and one more.
bool index_moment_edge(struct index *index, const struct moment_edge *moment, uint64_t *edge,
		       uint64_t *number, struct err *err);

// A block of addresses of a file of long lifetimes, or of INDEX_OF_NEVER: `count` must be as many
// as it has.
bool index_addresses_read(struct index *index, unsigned of, size_t block, uint32_t count,
			  uint64_t *out, struct err *err);
