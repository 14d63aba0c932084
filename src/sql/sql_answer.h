// sql_answer: tables of traces as views of a database, and the answer to a question as text.
//
//     sql_answer_views     where the tables are
//     sql_answer_write     ask
#pragma once

#include "base/sink.h"
#include "sql/duckdb.h"

enum sql_answer_as { SQL_ANSWER_TABLE, SQL_ANSWER_CSV, SQL_ANSWER_JSON };

// Make a view of each table (docs/schema/rows.md) over TABLE.parquet in each of the folders. Two
// folders of the same trace are a mistake: ERR_USAGE.
bool sql_answer_views(struct duckdb *duckdb, const char *const *folders, size_t count,
		      struct err *err);

// Ask one question: a SELECT, or what may be in its place (DESCRIBE, SUMMARIZE, VALUES). ERR_USAGE:
// the database refuses it. JSON is a list of objects.
bool sql_answer_write(struct duckdb *duckdb, const char *question, enum sql_answer_as as,
		      struct sink *sink, struct err *err);

// The same into a Parquet file.
bool sql_answer_parquet(struct duckdb *duckdb, const char *question, const char *path,
			struct err *err);
