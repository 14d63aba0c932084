// tables: what a database of many traces has in it (docs/schema/rows.md), and how each row is seen
// once.
//
// Rows are in TABLE_rows, and bear block and part; questions are asked of the views TABLE, which
// show the rows of one part of each block: of those in the table `blocks` the one of the least
// number. Beside the tables of rows there are `pieces`: the traces themselves, as the files that
// they are (push.h).
#ifndef SQL_TABLES_H
#define SQL_TABLES_H

#include "export/rowset.h"
#include "sql/clickhouse.h"

// What ClickHouse calls the types of columns, by enum rowset_type.
extern const char *const tables_types[];

// Make the tables where they are missing. False: it is not ClickHouse, or too old, or has tables of
// another version.
bool tables_make(struct clickhouse *clickhouse, struct err *err);

// The same for those who ask: false also where there are none.
bool tables_check(struct clickhouse *clickhouse, struct err *err);

#endif
