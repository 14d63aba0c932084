// tables: on a single server all is in one database:
//
//     memory          allocations_rows, …, pieces_rows, blocks    rows
//                     allocations, …, pieces                      views of what is whole
//
// Of a cluster each server has that as `memory_shard`, and as `memory` tables of the same names as
// the views that are Distributed over the views of all (and over blocks and pieces_rows, for
// pull): what is whole is known where it lies, and sums are made there.
#include "sql/tables.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

// Versions of ClickHouse: the oldest one that is taken, and the first one whose tables have a TTL.
enum { OLDEST_MAJOR = 18, OLDEST_MINOR = 16, TTL_MAJOR = 19, TTL_MINOR = 6, DAY_S = 86400 };

// What ClickHouse calls the types of columns.
static const char *const tables_types[] = {
	[ROWSET_U32] = "UInt32",  [ROWSET_U64] = "UInt64",         [ROWSET_DOUBLE] = "Float64",
	[ROWSET_TEXT] = "String", [ROWSET_LIST] = "Array(UInt32)",
};

void tables_put_column(struct native *native, const struct rowset_batch *batch, unsigned i,
		       const uint64_t *values)
{
	const struct rowset_column *column = &batch->table->columns[i];

	ASSERT(i < batch->table->columns_count);
	native_head(native, column->name, tables_types[column->type]);
	switch (column->type) {
	case ROWSET_TEXT:
		for (size_t row = 0; row < batch->count; row++) {
			const char *text = batch->texts->texts[values[row]];

			native_text(native, text, strlen(text));
		}
		break;
	// As Native has lists: first where each one ends, counted in items from the batch's first
	// row, then all items.
	case ROWSET_LIST:
		native_numbers(native, values, batch->count, 8);
		native_bytes(native, batch->items, batch->items_count * sizeof *batch->items);
		break;
	default:
		native_numbers(native, values, batch->count, column->type == ROWSET_U32 ? 4 : 8);
	}
}

const char *const tables_orders[] = {
	[ROWSET_ALLOCATIONS] = "begin_ns", [ROWSET_STACKS] = "stack",
	[ROWSET_FRAMES] = "frame",         [ROWSET_PROCESSES] = "process",
	[ROWSET_THREADS] = "thread",       [ROWSET_MODULES] = "module",
	[ROWSET_MARKS] = "event",          [ROWSET_RSS] = "time_ns",
	[ROWSET_LABELS] = "name",          [ROWSET_SITES] = "site",
	[ROWSET_RUNS] = "began_unix_ns",
};

unsigned tables_day(uint64_t unix_ns)
{
	return (unsigned)(unix_ns / 1000000000 / DAY_S);
}

// An example: sent on day 20,000 and kept for 30, allocations have 20,030; sites have 47,481.
unsigned tables_until(enum rowset_table_id id, unsigned day, unsigned keep_days)
{
	bool kept = id == ROWSET_SITES || id == ROWSET_LABELS || id == ROWSET_RUNS;

	ASSERT(id < ROWSET_TABLES);
	return kept || !keep_days || day + keep_days > TABLES_FOR_GOOD ? TABLES_FOR_GOOD
								       : day + keep_days;
}

void tables_tell_no_ages(unsigned keep_days, struct str *line)
{
	ASSERT(keep_days > 0);
	str_format(line,
		   "this ClickHouse has no TTL: after %u days this is not seen, but you must "
		   "delete it (docs/howto/fleet.md)",
		   keep_days);
}

// Asking one server.
// What one step after another needs; `sql` is empty when a step begins.
struct making {
	struct clickhouse *clickhouse;
	const char *database; // that has the rows
	const char *cluster;  // NULL: none
	bool ages;            // it takes rows away that are old
	struct str sql, answer;
};

// False: *err says what is wrong there, and no later step is run.
typedef bool tables_step(struct making *making, struct err *err);

// Runs what is in `sql` and empties it, for the next statement of the step.
static bool run(struct making *making, struct err *err)
{
	bool good;

	ASSERT(making->sql.length > 0);
	str_clear(&making->answer);
	good = clickhouse_run(making->clickhouse, str_get(&making->sql), NULL, false,
			      &making->answer, err);
	str_clear(&making->sql);
	return good;
}

static bool check_version(struct making *making, struct err *err)
{
	unsigned major, minor;

	str_add(&making->sql, "SELECT version()");
	if (!run(making, err))
		return false;
	if (sscanf(str_get(&making->answer), "%u.%u", &major, &minor) != 2)
		return err_set(err, ERR_IO, "what answers there is not ClickHouse");
	if (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR))
		return err_set(err, ERR_IO, "ClickHouse %u.%u is too old: %u.%u or newer", major,
			       minor, OLDEST_MAJOR, OLDEST_MINOR);
	// Older servers refuse a table that has a TTL.
	making->ages = major > TTL_MAJOR || (major == TTL_MAJOR && minor >= TTL_MINOR);
	return true;
}

// ---- rows ----

// Long after they are shown to no reader, whatever the server thinks the time is.
static void add_age(struct making *making)
{
	if (making->ages)
		str_add(&making->sql, " TTL until + INTERVAL 2 DAY");
}

static void add_table(struct making *making, enum rowset_table_id id)
{
	const struct rowset_table *table = &rowset_tables[id];

	ASSERT(id < ROWSET_TABLES);
	str_format(&making->sql, "CREATE TABLE IF NOT EXISTS %s.%s_rows (", making->database,
		   table->name);
	for (unsigned i = 0; i < table->columns_count; i++)
		str_format(&making->sql, "`%s` %s, ", table->columns[i].name,
			   tables_types[table->columns[i].type]);
	// `until` is the last day of a row, `part` the try that has sent it; both are seen by no
	// reader.
	str_format(&making->sql,
		   "until Date, part UInt64) ENGINE = MergeTree() ORDER BY (trace, %s)",
		   tables_orders[id]);
	add_age(making);
}

// Only rows of the recorded part of each block. Numbers of parts are at random and of 64 bits: they
// tell by themselves, several times as fast as with trace and block beside them.
// An example: block 7 of a trace was sent by two pushes, as parts 81 and 12. Both are in `blocks`,
// the rows of both are there, and those of part 12 are seen.
static void add_seen(struct making *making, const char *name)
{
	str_format(&making->sql,
		   " FROM %s.%s_rows WHERE part IN (SELECT min(part) FROM %s.blocks WHERE name = "
		   "'%s' AND until >= today() GROUP BY trace, block)",
		   making->database, name, making->database, name);
}

// The same, and of pictures the newest one. It is one look at `blocks`: so what ended and what is
// open are of one moment.
static void add_seen_now(struct making *making, const char *name)
{
	str_format(&making->sql,
		   " FROM %s.%s_rows WHERE part IN (SELECT if(max(block) < %" PRIu64
		   ", min(part), argMax(part, block)) FROM %s.blocks WHERE name = '%s' AND until "
		   ">= today() GROUP BY trace, if(block < %" PRIu64 ", block, %" PRIu64
		   " + intDiv(block, %" PRIu64 ")))",
		   making->database, name, TABLES_PICTURE, making->database, name, TABLES_PICTURE,
		   TABLES_PICTURE, TABLES_GENERATIONS);
}

static void add_view(struct making *making, enum rowset_table_id id)
{
	const struct rowset_table *table = &rowset_tables[id];

	str_format(&making->sql, "CREATE VIEW IF NOT EXISTS %s.%s AS SELECT ", making->database,
		   table->name);
	for (unsigned i = 0; i < table->columns_count; i++)
		str_format(&making->sql, "%s`%s`", i ? ", " : "", table->columns[i].name);
	add_seen_now(making, table->name);
}

static void add_blocks(struct making *making)
{
	str_format(&making->sql,
		   "CREATE TABLE IF NOT EXISTS %s.blocks (trace String, name String, block UInt64, "
		   "part UInt64, rows UInt64, until Date, schema_version UInt32) "
		   "ENGINE = MergeTree() ORDER BY (trace, name, block)",
		   making->database);
	add_age(making);
}

// A piece is megabytes: each is found by itself.
static void add_pieces(struct making *making)
{
	str_format(&making->sql,
		   "CREATE TABLE IF NOT EXISTS %s.pieces_rows (trace String, file String, "
		   "at UInt64, size UInt64, bytes String, until Date, part UInt64) "
		   "ENGINE = MergeTree() ORDER BY (trace, file, at)",
		   making->database);
	add_age(making);
	str_add(&making->sql, " SETTINGS index_granularity = 1");
}

static void add_pieces_view(struct making *making)
{
	str_format(&making->sql,
		   "CREATE VIEW IF NOT EXISTS %s.pieces AS SELECT trace, file, at, size, bytes",
		   making->database);
	add_seen(making, "pieces");
}

// Tables before the views that read them. Each statement may be run again: a push that broke off
// here leaves nothing half made.
static bool make_rows(struct making *making, struct err *err)
{
	static void (*const others[])(struct making *) = { add_blocks, add_pieces,
							   add_pieces_view };
	bool good;

	// First what is not a table of rows, since the views look at `blocks`.
	str_format(&making->sql, "CREATE DATABASE IF NOT EXISTS %s", making->database);
	good = run(making, err);
	for (size_t i = 0; i < sizeof others / sizeof *others && good; i++) {
		others[i](making);
		good = run(making, err);
	}
	for (enum rowset_table_id id = 0; id < ROWSET_TABLES && good; id++) {
		add_table(making, id);
		good = run(making, err);
		if (!good)
			break;
		add_view(making, id);
		good = run(making, err);
	}
	return good;
}

// ---- over all shards ----

// "AS database.name" takes the columns from the shard's own table, so they need not be listed
// twice.
static bool make_one_over(struct making *making, const char *name, struct err *err)
{
	const char *database = clickhouse_database(making->clickhouse);

	ASSERT(making->cluster);
	str_format(&making->sql,
		   "CREATE TABLE IF NOT EXISTS %s.%s AS %s.%s ENGINE = Distributed('%s', '%s', "
		   "'%s')",
		   database, name, making->database, name, making->cluster, making->database, name);
	return run(making, err);
}

static bool make_over(struct making *making, struct err *err)
{
	static const char *const others[] = { "blocks", "pieces", "pieces_rows" };
	bool good;

	if (!making->cluster)
		return true;
	str_format(&making->sql, "CREATE DATABASE IF NOT EXISTS %s",
		   clickhouse_database(making->clickhouse));
	good = run(making, err);
	for (size_t i = 0; i < sizeof others / sizeof *others && good; i++)
		good = make_one_over(making, others[i], err);
	for (enum rowset_table_id id = 0; id < ROWSET_TABLES && good; id++)
		good = make_one_over(making, rowset_tables[id].name, err);
	return good;
}

// A database that has rows is not spread later, and the other way round: half would be elsewhere.
static bool check_cluster(struct making *making, struct err *err)
{
	const char *database = clickhouse_database(making->clickhouse);
	bool spread;

	str_format(&making->sql,
		   "SELECT engine FROM system.tables WHERE database = '%s' AND name = 'blocks'",
		   database);
	if (!run(making, err))
		return false;
	// An empty answer: nothing was made there yet.
	spread = strcmp(str_get(&making->answer), "Distributed\n") == 0;
	if (!making->answer.length || spread == (making->cluster != NULL))
		return true;
	if (spread)
		return err_set(err, ERR_USAGE,
			       "%s there is spread over a cluster: say --cluster NAME, and a "
			       "server of each shard",
			       database);
	return err_set(err, ERR_USAGE,
		       "%s there has rows that are on this server alone: name another database "
		       "for the cluster",
		       database);
}

// ---- what is there ----

// Only a newer version is refused: it may mean something else by what it wrote.
static bool check_schema(struct making *making, struct err *err)
{
	unsigned version;

	str_format(&making->sql, "SELECT max(schema_version) FROM %s.blocks", making->database);
	if (!run(making, err))
		return false;
	if (sscanf(str_get(&making->answer), "%u", &version) != 1)
		return err_set(err, ERR_IO, "what answers there is not ClickHouse");
	return version <= ROWSET_SCHEMA_VERSION ||
	       err_set(err, ERR_IO,
		       "the tables there are of version %u, which a newer tidemark has made; "
		       "this one knows %d",
		       version, ROWSET_SCHEMA_VERSION);
}

// Views that are missing: nothing was sent there, or by an earlier one.
static bool check_there(struct making *making, struct err *err)
{
	str_format(&making->sql,
		   "SELECT count() FROM system.tables WHERE database = '%s' AND name IN ('pieces', "
		   "'sites')",
		   making->database);
	if (!run(making, err))
		return false;
	if (strcmp(str_get(&making->answer), "2\n") == 0)
		return true;
	return err_set(err, ERR_IO, "no trace was sent to %s there (try: tidemark push)",
		       making->database);
}

// Frees what `making` owns, whether all went well or not.
static bool in_turn(struct making *making, tables_step *const *steps, struct err *err)
{
	bool good = true;

	for (; *steps && good; steps++) {
		str_clear(&making->sql);
		good = (*steps)(making, err);
	}
	STR_FINI(&making->sql, &making->answer);
	return good;
}

bool tables_make(struct shards *shards, bool *ages, struct err *err)
{
	static tables_step *const steps[] = { check_version, check_cluster, make_rows,
					      check_schema,  make_over,     NULL };

	ASSERT(shards_count(shards) > 0);
	if (ages)
		*ages = true;
	// Each server is made ready by itself: nothing is left to the cluster's own replication of
	// statements.
	for (size_t i = 0; i < shards_count(shards); i++) {
		struct making making = {
			.clickhouse = shards_server(shards, i),
			.database = shards_database(shards),
			.cluster = shards_cluster(shards),
		};

		if (!in_turn(&making, steps, err))
			return false;
		if (ages)
			*ages = *ages && making.ages;
	}
	return true;
}

bool tables_check(struct clickhouse *clickhouse, struct err *err)
{
	static tables_step *const steps[] = { check_version, check_there, check_schema, NULL };
	struct making making = {
		.clickhouse = clickhouse,
		.database = clickhouse_database(clickhouse),
	};

	return in_turn(&making, steps, err);
}
