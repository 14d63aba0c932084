// push_live: the rows of a trace into ClickHouse while it is written.
//
// What `push` sends of a whole trace (push.h) is sent here bit by bit, in epochs. At the end of
// each a server has recorded, in one statement: the rows of all that ended since the last one, the
// stacks, frames … that came, and a picture of what is not final: the blocks that live, the
// processes, the sums of the sites. The next picture takes the place of the last. So at each moment
// whoever asks sees each allocation once, as it was at the end of an epoch.
//
//     epoch 1      ended: a, b     picture: c, d live
//     epoch 2      ended: c        picture: d, e live        c is no longer in the picture
//     end          ended: d, e     no picture
//
// A block of final rows is numbered by where in the trace it ends: the time (in units of 100 us)
// and a count within it. So who goes on, after whatever, reads the trace from its beginning and
// leaves out the rows before the greatest number that is recorded. That holds as well where the
// trace was cut meanwhile (record --max-size, --keep): times stay what they were. Where it was
// cut beyond what was sent, blocks that began and ended in between are not sent: that is said.
//
// In a cluster a trace that is sent so is on one shard, which hangs on the trace: so an epoch is
// still recorded in one statement. Only what is known at the beginning is asked of all shards.
//
// Of a recording that is rotated each part is a trace (trace/parts.h): when one ends the next is
// gone on with.
#pragma once

#include "sql/push.h"
#include "symbols/symbols.h"

struct push_live_options {
	const char *path;
	struct symbols_options symbols;
	bool follow;                 // until it is no longer written
	uint64_t every_ns;           // how long an epoch is, at least
	unsigned keep_days;          // as for push_trace, counted from when the trace began
	bool (*stop)(void *context); // of NULL
	// A line for the user; and what was not sent, of times of the trace.
	void (*say)(const char *line);
	void (*dropped)(const struct reader *reader, uint64_t from_ns, uint64_t to_ns);
};

// Whether rows of this trace were sent so. False also where that cannot be asked: *err says why.
bool push_live_is(struct shards *shards, const struct reader *reader, bool *is, struct err *err);

// Makes the tables. False: what was sent until then stays, and is gone on with by another.
bool push_live_run(struct shards *shards, const struct push_live_options *options,
		   struct push_result *result, struct err *err);
