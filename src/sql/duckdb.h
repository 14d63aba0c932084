// duckdb: DuckDB's library, loaded if it is there, with one database in memory.
//
// The library is what $TIDEMARK_DUCKDB names, else libduckdb.so (duckdb.dll) where the system
// looks for libraries. All values come as text. One thread asks; DuckDB has threads of its own.
#pragma once

#include "base/err.h"

#include <stddef.h>

struct duckdb;

// NULL: there is none, and *err says how to get it; or it is not one that we can use.
struct duckdb *duckdb_new(struct err *err);
void duckdb_free(struct duckdb *duckdb); // NULL is allowed

// A statement without an answer. ERR_USAGE: the database refused it; the first line of why.
bool duckdb_run(struct duckdb *duckdb, const char *sql, struct err *err);

// Who is given the rows of an answer: first the names of its columns, then each row. NULL is a
// value that is missing.
struct duckdb_reader {
	void (*columns)(void *context, const char *const *names, size_t count);
	void (*row)(void *context, const char *const *values, size_t count);
	void *context;
};

// Ask. All columns must be of type VARCHAR.
bool duckdb_ask(struct duckdb *duckdb, const char *sql, const struct duckdb_reader *reader,
		struct err *err);
