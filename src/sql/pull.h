// pull: a trace of a database as a file again, the same that was sent, with its names in it.
//
//     pull_new          which trace is meant, and what there is of it
//     pull_write
//     pull_free
#pragma once

#include "base/progress.h"
#include "sql/clickhouse.h"

struct pull;

// `wanted` is the beginning of the trace's number; "" is that of the only one. ERR_USAGE: there is
// none such, or there are several, some of which are named.
struct pull *pull_new(struct clickhouse *clickhouse, const char *wanted, struct err *err);
void pull_free(struct pull *pull); // NULL is allowed

const char *pull_trace(const struct pull *pull); // 32 hexadecimal digits
uint64_t pull_bytes(const struct pull *pull);    // of the file and of its names

// Make the file, which appears whole or not at all and takes the place of one that is there.
// *named: it has the names. A trace that was cut has no place for them.
bool pull_write(struct pull *pull, const char *path, enum progress_mode mode, bool *named,
		struct err *err);
