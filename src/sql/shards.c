// shards: which of the servers that were named is which shard is asked of themselves: each knows
// its own line of system.clusters (is_local). So the names under which a cluster's servers know
// each other need not be those under which they are reached from here.
//
//     clickhouse://db2:8123,db1:8123/memory --cluster main
//
//     db2: shard_num 2 is local         shards: db1, db2
//     db1: shard_num 1 is local
#include "sql/shards.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { SERVERS_MAX = 256 };

static const char shard_suffix[] = "_shard";

// Of the list; owned by it, with its connection.
struct server {
	struct str url, name;
	unsigned number; // of the shard, from 1
	struct clickhouse *clickhouse;
};

struct shards {
	struct clickhouse_place place; // of each server, but for the URL
	struct server *list;
	size_t count, capacity;
	const char *cluster; // borrowed
	struct str database;
};

// ---- the servers that were named ----

// Makes a URL for one server of the list: scheme, this name, the database of all. It is added
// before it is connected to, so that shards_free frees it in any case.
static bool add_server(struct shards *shards, const char *url, const char *name, size_t length,
		       const char *database, struct err *err)
{
	const char *list = strstr(url, "://") + 3;
	struct clickhouse_place place = shards->place;
	struct server *server;

	if (shards->count == SERVERS_MAX)
		return err_set(err, ERR_USAGE, "more than %d servers", SERVERS_MAX);
	MEM_ROOM(shards->list, shards->capacity, shards->count + 1);
	server = &shards->list[shards->count++];
	*server = (struct server){ 0 };
	str_add_bytes(&server->url, url, (size_t)(list - url));
	str_add_bytes(&server->url, name, length);
	str_add(&server->url, database);
	str_add_bytes(&server->name, name, length);
	place.url = server->url.text;
	server->clickhouse = clickhouse_new(&place, err);
	return server->clickhouse != NULL;
}

// "://a:8123,b:8123/memory" is a URL for each of a and b. The loop ends with the name before the
// slash.
static bool add_servers(struct shards *shards, const char *url, struct err *err)
{
	// The scheme ends in "://", the list of servers at the next slash.
	const char *at = strstr(url, "://");
	const char *database = at ? strchr(at + 3, '/') : NULL;

	if (!database)
		return err_set(err, ERR_USAGE, "a place is clickhouse://HOST:PORT/DATABASE");
	for (at += 3; at <= database;) {
		size_t length = strcspn(at, ",/");

		if (!add_server(shards, url, at, length, database, err))
			return false;
		at += length + 1;
	}
	return shards->cluster || shards->count == 1 ||
	       err_set(err, ERR_USAGE,
		       "several servers are the shards of a cluster: say --cluster NAME");
}

// ---- the cluster ----

// The name goes into SQL between quotes: letters that could end them are refused.
static bool is_cluster(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";

	return *name && !name[strspn(name, letters)];
}

// Which shard this one is, and how many there are.
static bool ask_number(const struct shards *shards, struct server *server, unsigned *all,
		       struct err *err)
{
	struct str sql = { 0 }, answer = { 0 };
	bool good;

	ASSERT(shards->cluster);
	str_format(&sql,
		   "SELECT uniqExact(shard_num), maxIf(shard_num, is_local) FROM system.clusters "
		   "WHERE cluster = '%s'",
		   shards->cluster);
	good = clickhouse_run(server->clickhouse, sql.text, NULL, false, &answer, err);
	// Two columns in a line, as TabSeparated has them.
	if (good && sscanf(str_get(&answer), "%u %u", all, &server->number) != 2)
		good = err_set(err, ERR_IO, "what answers there is not ClickHouse");
	if (good && *all == 0)
		good = err_set(err, ERR_USAGE, "%s knows no cluster %s", server->name.text,
			       shards->cluster);
	if (good && server->number == 0)
		good = err_set(err, ERR_USAGE, "%s is in no shard of cluster %s", server->name.text,
			       shards->cluster);
	STR_FINI(&sql, &answer);
	return good;
}

static int by_number(const void *a, const void *b, void *context)
{
	const struct server *left = a, *right = b;

	(void)context;
	return left->number < right->number ? -1 : left->number > right->number;
}

// Each shard once and none left out: else rows would be counted twice, or be missing, without a
// word. What remains is in the order of the shards' numbers, 1 to all.
static bool order(struct shards *shards, struct err *err)
{
	unsigned all = 0;

	ASSERT(shards->cluster && shards->count > 0);
	for (size_t i = 0; i < shards->count; i++)
		if (!ask_number(shards, &shards->list[i], &all, err))
			return false;
	mem_sort(shards->list, shards->count, sizeof *shards->list, by_number, NULL);
	for (size_t i = 1; i < shards->count; i++)
		if (shards->list[i].number == shards->list[i - 1].number)
			return err_set(err, ERR_USAGE,
				       "%s and %s are of one shard of cluster %s: name one of each",
				       shards->list[i - 1].name.text, shards->list[i].name.text,
				       shards->cluster);
	// The last server's count is that of all: they are of one cluster.
	return all == shards->count || err_set(err, ERR_USAGE,
					       "cluster %s has %u shards: name a server of each, "
					       "clickhouse://A:8123,B:8123/DATABASE",
					       shards->cluster, all);
}

// As far as it goes without asking a server. NULL: *err says why.
static struct shards *name(const struct clickhouse_place *place, const char *cluster,
			   struct err *err)
{
	struct shards *shards = mem_alloc(1, sizeof *shards);
	bool good = true;

	shards->place = *place;
	shards->cluster = cluster;
	if (cluster && !is_cluster(cluster))
		good = err_set(err, ERR_USAGE, "%s cannot be the name of a cluster", cluster);
	if (good && add_servers(shards, place->url, err))
		return shards;
	shards_free(shards);
	return NULL;
}

bool shards_check(const struct clickhouse_place *place, const char *cluster, struct err *err)
{
	struct shards *shards = name(place, cluster, err);

	shards_free(shards);
	return shards != NULL;
}

// With a cluster the rows are in a database of the same name with "_shard" after it.
struct shards *shards_new(const struct clickhouse_place *place, const char *cluster,
			  struct err *err)
{
	struct shards *shards = name(place, cluster, err);

	if (!shards)
		return NULL;
	if (cluster && !order(shards, err)) {
		shards_free(shards);
		return NULL;
	}
	str_format(&shards->database, "%s%s", clickhouse_database(shards->list->clickhouse),
		   cluster ? shard_suffix : "");
	return shards;
}

void shards_free(struct shards *shards)
{
	if (!shards)
		return;
	for (size_t i = 0; i < shards->count; i++) {
		clickhouse_free(shards->list[i].clickhouse);
		STR_FINI(&shards->list[i].url, &shards->list[i].name);
	}
	mem_free(shards->list);
	str_fini(&shards->database);
	mem_free(shards);
}

size_t shards_count(const struct shards *shards)
{
	return shards->count;
}

struct clickhouse *shards_server(struct shards *shards, size_t shard)
{
	ASSERT(shard < shards->count);
	return shards->list[shard].clickhouse;
}

struct clickhouse *shards_connect(const struct shards *shards, size_t shard, struct err *err)
{
	struct clickhouse_place place = shards->place;

	ASSERT(shard < shards->count);
	place.url = shards->list[shard].url.text;
	return clickhouse_new(&place, err);
}

const char *shards_cluster(const struct shards *shards)
{
	return shards->cluster;
}

const char *shards_database(const struct shards *shards)
{
	return str_get(&shards->database);
}
