// shards: the servers that have the rows of a database: one, or one of each shard of a cluster.
//
// With a cluster rows are in a database of each server beside the one that is asked
// (`memory_shard` beside `memory`), laid out as on a single server: the views there show what is
// whole there. The tables of `memory` are Distributed over these, so that any of the servers can be
// asked as a single one is.
//
// The order of servers is that of the cluster's shards, whatever order they were named in.
#pragma once

#include "sql/clickhouse.h"

struct shards;

// `place->url` may name several servers, with commas: clickhouse://A:8123,B:8123/DATABASE. With a
// cluster (NULL: none) there must be one of each shard.
struct shards *shards_new(const struct clickhouse_place *place, const char *cluster,
			  struct err *err);
// Whether it could be made, without asking any server.
bool shards_check(const struct clickhouse_place *place, const char *cluster, struct err *err);
void shards_free(struct shards *shards); // NULL is allowed

// From 0, in the order of the cluster's shards.
size_t shards_count(const struct shards *shards);
// Its connection, for one thread.
struct clickhouse *shards_server(struct shards *shards, size_t shard);

// Another connection to the server, for a thread of its own.
struct clickhouse *shards_connect(const struct shards *shards, size_t shard, struct err *err);

const char *shards_cluster(const struct shards *shards);  // NULL: none
const char *shards_database(const struct shards *shards); // that has the rows
