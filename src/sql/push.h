// push: the rows of a trace into ClickHouse, so that each is counted once whatever happens.
//
// A batch of rows is a block of its table: number n of a trace is the same rows in each push. What
// is sent is a part: each try has a number of its own at random, which rows bear. Only when the
// server has all rows of a part it is recorded in the table `blocks`. The views that questions are
// asked of show the rows of one part of each block: the recorded one of the least number. So a try
// that broke off is never seen, a push that broke off goes on where it was, and two pushes at once
// send what is seen once.
//
// The trace itself is sent, too, as the file that it is, in pieces; and the names of its code
// (symbols_pack), so that it reads the same wherever it is fetched to (pull.h). It takes little
// room beside its rows.
#pragma once

#include "export/rowset.h"
#include "sql/tables.h"

struct push_result {
	uint64_t rows_sent, rows_known; // these were there already
	uint64_t bytes_sent;            // compressed
	// how often a server did not answer and was asked another time
	uint64_t tries_again;
};

// After tables_make, of a question as rowset_write takes it. `keep_days` unless 0: so long it is
// seen, but for what `fleet` asks of.
bool push_trace(struct shards *shards, const struct export_source *source, unsigned keep_days,
		struct push_result *result, struct err *err);

// The file alone, with its names: of a trace whose rows were sent otherwise (push_live.h). Seen
// as long as what is sent on that day.
bool push_file(struct shards *shards, const struct query_context *asked, unsigned day,
	       unsigned keep_days, struct push_result *result, struct err *err);
