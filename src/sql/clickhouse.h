// clickhouse: a ClickHouse server over HTTP, from 18.16 on.
//
// A place is clickhouse://HOST[:PORT]/DATABASE (clickhouses:// with TLS). User and password are
// never in it: they come from $TIDEMARK_CLICKHOUSE_USER and $TIDEMARK_CLICKHOUSE_PASSWORD, or from
// a file for its owner alone ($TIDEMARK_CLICKHOUSE_CREDENTIALS). No message has them.
//
// With TLS the server's certificate is always looked at: by the system's, or by those in the file
// that $TIDEMARK_CLICKHOUSE_CA names.
//
// What does not come through is tried again, some times, with pauses that grow: no connection, a
// server that is too busy. Who must not do a thing twice says so by a name of its own (push.h).
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>

struct clickhouse;

struct clickhouse_place {
	const char *url;
	const char *credentials; // a file of two lines, user and password; NULL: the environment
	unsigned tries;          // 0: eight, some twelve seconds
	bool (*stop)(void *context); // asked while one waits for the server; NULL: never
	void *stop_context;
};

// Whether the word is such a place at all.
bool clickhouse_is(const char *word);

// Nothing is asked of the server yet. ERR_USAGE: a place that makes no sense, or has a password in
// it; a file that others may read.
struct clickhouse *clickhouse_new(const struct clickhouse_place *place, struct err *err);
void clickhouse_free(struct clickhouse *clickhouse); // NULL is allowed

// The name of the database, quoted.
const char *clickhouse_database(const struct clickhouse *clickhouse);

// A statement, and the bytes of an INSERT (compressed blocks; NULL: none). What the server answers
// is appended. Tried once if `once`.
bool clickhouse_run(struct clickhouse *clickhouse, const char *sql, const struct str *bytes,
		    bool once, struct str *answer, struct err *err);

// Whether it is worth another try: the last clickhouse_run found no server, or a busy one.
bool clickhouse_may_retry(const struct clickhouse *clickhouse);

// Wait before try number `tries`, from 1. False: that was the last one, or `stop` says so. (A
// request that `stop` ends has ERR_STOPPED.)
bool clickhouse_wait(const struct clickhouse *clickhouse, unsigned tries);
