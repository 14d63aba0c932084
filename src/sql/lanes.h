// lanes: threads that send blocks of rows, so that one block is made while others are on their way.
//
//     lanes_new
//       lanes_send       waits where its lane has one already
//     lanes_wait         all that were sent are there, and recorded
//     lanes_free
//
// Each shard has some lanes, each with a connection of its own. A block that did not come through
// is sent again as another part (push.h) while clickhouse_wait allows it.
#pragma once

#include "sql/shards.h"

#include <stdint.h>

struct lanes;

// A block: all its columns but the last, which is the part's number and is put by the lane.
struct lanes_block {
	const char *table;
	uint64_t number;
	size_t rows;
	unsigned until; // the day after which nobody sees it
	struct str packed;
};

struct lanes_result {
	uint64_t rows, bytes, again;
};

struct lanes *lanes_new(const struct shards *shards, const char *trace, struct err *err);
void lanes_free(struct lanes *lanes); // NULL is allowed; waits for what is on its way

// Takes block->packed. False: an earlier block failed, *err says why.
bool lanes_send(struct lanes *lanes, size_t shard, struct lanes_block *block, struct err *err);

// False: one failed. *result is what came through so far.
bool lanes_wait(struct lanes *lanes, struct lanes_result *result, struct err *err);
