#include "sql/tables.h"

#include <stdio.h>
#include <string.h>

enum { OLDEST_MAJOR = 18, OLDEST_MINOR = 16 };

const char *const tables_types[] = {
	[ROWSET_U32] = "UInt32",  [ROWSET_U64] = "UInt64",         [ROWSET_DOUBLE] = "Float64",
	[ROWSET_TEXT] = "String", [ROWSET_LIST] = "Array(UInt32)",
};

// What rows are in the order of, after the trace.
static const char *const orders[] = {
	[ROWSET_ALLOCATIONS] = "begin_ns", [ROWSET_STACKS] = "stack",
	[ROWSET_FRAMES] = "frame",         [ROWSET_PROCESSES] = "process",
	[ROWSET_THREADS] = "thread",       [ROWSET_MODULES] = "module",
	[ROWSET_MARKS] = "event",          [ROWSET_RSS] = "time_ns",
	[ROWSET_LABELS] = "name",          [ROWSET_SITES] = "site",
	[ROWSET_RUNS] = "began_unix_ns",
};

typedef bool tables_step(struct clickhouse *clickhouse, struct str *sql, struct str *answer,
			 struct err *err);

static bool run(struct clickhouse *clickhouse, struct str *sql, struct str *answer, struct err *err)
{
	bool good;

	str_clear(answer);
	good = clickhouse_run(clickhouse, str_get(sql), NULL, false, answer, err);
	str_clear(sql);
	return good;
}

static bool check_version(struct clickhouse *clickhouse, struct str *sql, struct str *answer,
			  struct err *err)
{
	unsigned major, minor;

	str_add(sql, "SELECT version()");
	if (!run(clickhouse, sql, answer, err))
		return false;
	if (sscanf(str_get(answer), "%u.%u", &major, &minor) != 2)
		return err_set(err, ERR_IO, "what answers there is not ClickHouse");
	if (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR))
		return err_set(err, ERR_IO, "ClickHouse %u.%u is too old: %u.%u or newer", major,
			       minor, OLDEST_MAJOR, OLDEST_MINOR);
	return true;
}

static void add_table(const char *database, enum rowset_table_id id, struct str *sql)
{
	const struct rowset_table *table = &rowset_tables[id];

	str_format(sql, "CREATE TABLE IF NOT EXISTS %s.%s_rows (", database, table->name);
	for (unsigned i = 0; i < table->columns_count; i++)
		str_format(sql, "`%s` %s, ", table->columns[i].name,
			   tables_types[table->columns[i].type]);
	str_format(sql, "block UInt64, part UInt64) ENGINE = MergeTree() ORDER BY (trace, %s)",
		   orders[id]);
}

// Only rows of the recorded part of each block. Numbers of parts are at random and of 64 bits: they
// tell by themselves, several times as fast as with trace and block beside them.
static void add_seen(const char *database, const char *name, struct str *sql)
{
	str_format(sql,
		   " FROM %s.%s_rows WHERE part IN (SELECT min(part) FROM %s.blocks WHERE name = "
		   "'%s' GROUP BY trace, block)",
		   database, name, database, name);
}

static void add_view(const char *database, enum rowset_table_id id, struct str *sql)
{
	const struct rowset_table *table = &rowset_tables[id];

	str_format(sql, "CREATE VIEW IF NOT EXISTS %s.%s AS SELECT ", database, table->name);
	for (unsigned i = 0; i < table->columns_count; i++)
		str_format(sql, "%s`%s`", i ? ", " : "", table->columns[i].name);
	add_seen(database, table->name, sql);
}

static void add_blocks(const char *database, struct str *sql)
{
	str_format(sql,
		   "CREATE TABLE IF NOT EXISTS %s.blocks (trace String, name String, block UInt64, "
		   "part UInt64, rows UInt64, schema_version UInt32) ENGINE = MergeTree() "
		   "ORDER BY (trace, name, block)",
		   database);
}

// A piece is megabytes: each is found by itself.
static void add_pieces(const char *database, struct str *sql)
{
	str_format(sql,
		   "CREATE TABLE IF NOT EXISTS %s.pieces_rows (trace String, file String, "
		   "at UInt64, size UInt64, bytes String, block UInt64, part UInt64) "
		   "ENGINE = MergeTree() ORDER BY (trace, file, at) "
		   "SETTINGS index_granularity = 1",
		   database);
}

static void add_pieces_view(const char *database, struct str *sql)
{
	str_format(sql,
		   "CREATE VIEW IF NOT EXISTS %s.pieces AS SELECT trace, file, at, size, bytes",
		   database);
	add_seen(database, "pieces", sql);
}

static bool make(struct clickhouse *clickhouse, struct str *sql, struct str *answer,
		 struct err *err)
{
	static void (*const others[])(const char *, struct str *) = { add_blocks, add_pieces,
								      add_pieces_view };
	const char *database = clickhouse_database(clickhouse);
	bool good;

	str_format(sql, "CREATE DATABASE IF NOT EXISTS %s", database);
	good = run(clickhouse, sql, answer, err);
	for (size_t i = 0; i < sizeof others / sizeof *others && good; i++) {
		others[i](database, sql);
		good = run(clickhouse, sql, answer, err);
	}
	for (enum rowset_table_id id = 0; id < ROWSET_TABLES && good; id++) {
		add_table(database, id, sql);
		good = run(clickhouse, sql, answer, err);
		if (!good)
			break;
		add_view(database, id, sql);
		good = run(clickhouse, sql, answer, err);
	}
	return good;
}

static bool check_schema(struct clickhouse *clickhouse, struct str *sql, struct str *answer,
			 struct err *err)
{
	unsigned version;

	str_format(sql, "SELECT max(schema_version) FROM %s.blocks",
		   clickhouse_database(clickhouse));
	if (!run(clickhouse, sql, answer, err))
		return false;
	if (sscanf(str_get(answer), "%u", &version) != 1)
		return err_set(err, ERR_IO, "what answers there is not ClickHouse");
	return version <= ROWSET_SCHEMA_VERSION ||
	       err_set(err, ERR_IO,
		       "the tables there are of version %u, which a newer tidemark has made; "
		       "this one knows %d",
		       version, ROWSET_SCHEMA_VERSION);
}

// Views that are missing: nothing was sent there, or by an earlier one.
static bool check_there(struct clickhouse *clickhouse, struct str *sql, struct str *answer,
			struct err *err)
{
	const char *database = clickhouse_database(clickhouse);

	str_format(sql,
		   "SELECT count() FROM system.tables WHERE database = '%s' AND name IN ('pieces', "
		   "'sites')",
		   database);
	if (!run(clickhouse, sql, answer, err))
		return false;
	if (strcmp(str_get(answer), "2\n") == 0)
		return true;
	return err_set(err, ERR_IO, "no trace was sent to %s there (try: tidemark push)", database);
}

static bool in_turn(struct clickhouse *clickhouse, tables_step *const *steps, struct err *err)
{
	struct str sql = { 0 }, answer = { 0 };
	bool good = true;

	for (; *steps && good; steps++) {
		str_clear(&sql);
		good = (*steps)(clickhouse, &sql, &answer, err);
	}
	str_fini(&sql);
	str_fini(&answer);
	return good;
}

bool tables_make(struct clickhouse *clickhouse, struct err *err)
{
	static tables_step *const steps[] = { check_version, make, check_schema, NULL };

	return in_turn(clickhouse, steps, err);
}

bool tables_check(struct clickhouse *clickhouse, struct err *err)
{
	static tables_step *const steps[] = { check_version, check_there, check_schema, NULL };

	return in_turn(clickhouse, steps, err);
}
