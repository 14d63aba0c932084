// tables: what a database of many traces has in it (docs/schema/rows.md), and how each row is seen
// once.
//
// Rows are in TABLE_rows, and bear the number of their part; questions are asked of the views
// TABLE, which show the rows of one part of each block: of those in the table `blocks` the one of
// the least number. Beside the tables of rows there are `pieces`: the traces themselves, as the
// files that they are (push.h).
//
// Each block says until which day it is seen (`blocks.until`). A server that can (19.6 and newer)
// takes its rows away some days later by itself.
#pragma once

#include "export/rowset.h"
#include "sql/native.h"
#include "sql/shards.h"

// Blocks of a number from here on are of pictures (push_live.h): of those that are equal but for
// the generation, their last 48 bits, the greatest is seen.
#define TABLES_PICTURE (UINT64_C(1) << 63)
#define TABLES_GENERATIONS (UINT64_C(1) << 48)

// Append column `i` of the batch with `values`, which are the batch's or the same in another order.
void tables_put_column(struct native *native, const struct rowset_batch *batch, unsigned i,
		       const uint64_t *values);

// The column that rows of a table are in the order of, after the trace; by enum rowset_table_id.
extern const char *const tables_orders[];

// Rows that are kept for good: the 31st of December 2099.
enum { TABLES_FOR_GOOD = 47481 };

// The last day on which rows of a table are seen that are sent on that day, and kept for so many
// (0: for good). What `fleet` asks of is small, and kept.
unsigned tables_day(uint64_t unix_ns);
unsigned tables_until(enum rowset_table_id id, unsigned day, unsigned keep_days);

// That the server takes nothing away by itself.
void tables_tell_no_ages(unsigned keep_days, struct str *line);

// Make the tables where they are missing, on each of the servers. False: one is not ClickHouse, or
// too old, or has tables of another version, or of another cluster. *ages (unless NULL): each of
// them takes rows away that are old.
bool tables_make(struct shards *shards, bool *ages, struct err *err);

// The same for those who ask: false also where there are none.
bool tables_check(struct clickhouse *clickhouse, struct err *err);
