#include "sql/push.h"

#include "base/mem.h"
#include "export/parquet_encode.h"
#include "export/protobuf.h"
#include "os/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

enum { PIECE = 1 << 20, LEVEL = 1, OLDEST_MAJOR = 18, OLDEST_MINOR = 16 };

struct push {
	struct clickhouse *clickhouse;
	struct push_result *result;
	char trace[33];
	uint64_t block;   // of the table
	struct str known; // a line for each block that is recorded: "TABLE\tBLOCK\n"
	struct str raw, packed, text, answer;
	ZSTD_CCtx *zstd;
};

static const char *const types[] = {
	[ROWSET_U32] = "UInt32",  [ROWSET_U64] = "UInt64",         [ROWSET_DOUBLE] = "Float64",
	[ROWSET_TEXT] = "String", [ROWSET_LIST] = "Array(UInt32)",
};

// What rows are in the order of, after the trace.
static const char *const orders[] = {
	[ROWSET_ALLOCATIONS] = "begin_ns", [ROWSET_STACKS] = "stack",
	[ROWSET_FRAMES] = "frame",         [ROWSET_PROCESSES] = "process",
	[ROWSET_THREADS] = "thread",       [ROWSET_MODULES] = "module",
	[ROWSET_MARKS] = "event",          [ROWSET_RSS] = "time_ns",
	[ROWSET_RUNS] = "began_unix_ns",
};

// ---- tables ----

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
		str_format(sql, "`%s` %s, ", table->columns[i].name, types[table->columns[i].type]);
	str_format(sql, "block UInt64, part UInt64) ENGINE = MergeTree() ORDER BY (trace, %s)",
		   orders[id]);
}

static void add_view(const char *database, enum rowset_table_id id, struct str *sql)
{
	const struct rowset_table *table = &rowset_tables[id];

	str_format(sql, "CREATE VIEW IF NOT EXISTS %s.%s AS SELECT ", database, table->name);
	for (unsigned i = 0; i < table->columns_count; i++)
		str_format(sql, "%s`%s`", i ? ", " : "", table->columns[i].name);
	str_format(sql,
		   " FROM %s.%s_rows WHERE (trace, block, part) IN (SELECT trace, block, min(part) "
		   "FROM %s.blocks WHERE name = '%s' GROUP BY trace, block)",
		   database, table->name, database, table->name);
}

static bool make_tables(struct clickhouse *clickhouse, struct str *sql, struct str *answer,
			struct err *err)
{
	const char *database = clickhouse_database(clickhouse);
	bool good;

	str_format(sql, "CREATE DATABASE IF NOT EXISTS %s", database);
	good = run(clickhouse, sql, answer, err);
	str_format(sql,
		   "CREATE TABLE IF NOT EXISTS %s.blocks (trace String, name String, block UInt64, "
		   "part UInt64, rows UInt64, schema_version UInt32) ENGINE = MergeTree() "
		   "ORDER BY (trace, name, block)",
		   database);
	good = good && run(clickhouse, sql, answer, err);
	for (enum rowset_table_id id = 0; id < ROWSET_TABLES && good; id++) {
		str_clear(sql);
		add_table(database, id, sql);
		good = run(clickhouse, sql, answer, err);
		add_view(database, id, sql);
		good = good && run(clickhouse, sql, answer, err);
	}
	str_clear(sql);
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
		       "this one writes %d",
		       version, ROWSET_SCHEMA_VERSION);
}

bool push_prepare(struct clickhouse *clickhouse, struct err *err)
{
	struct str sql = { 0 }, answer = { 0 };
	bool good = check_version(clickhouse, &sql, &answer, err) &&
		    make_tables(clickhouse, &sql, &answer, err) &&
		    check_schema(clickhouse, &sql, &answer, err);

	str_fini(&sql);
	str_fini(&answer);
	return good;
}

// ---- a block as bytes ----

// ClickHouse's compressed block: a checksum, which it was asked not to look at, the method, and
// both sizes.
static void pack_piece(struct push *push, const char *bytes, size_t size)
{
	struct {
		uint8_t checksum[16], method, sizes[8];
	} head = { .method = 0x90 };
	size_t room = ZSTD_compressBound(size);
	struct str *out = &push->packed;
	uint32_t both[2];
	size_t packed;

	out->text = mem_grow(out->text, &out->capacity, out->length + sizeof head + room + 1, 1);
	packed = ZSTD_compressCCtx(push->zstd, out->text + out->length + sizeof head, room, bytes,
				   size, LEVEL);
	ASSERT(!ZSTD_isError(packed));
	both[0] = (uint32_t)(packed + 9);
	both[1] = (uint32_t)size;
	memcpy(head.sizes, both, sizeof both);
	memcpy(out->text + out->length, &head, sizeof head);
	out->length += sizeof head + packed;
}

// All whole pieces; at the end also the rest.
static void pack(struct push *push, bool end)
{
	size_t at = 0;

	for (; push->raw.length - at >= PIECE; at += PIECE)
		pack_piece(push, push->raw.text + at, PIECE);
	if (end && push->raw.length > at) {
		pack_piece(push, push->raw.text + at, push->raw.length - at);
		at = push->raw.length;
	}
	if (at > 0) {
		memmove(push->raw.text, push->raw.text + at, push->raw.length - at);
		push->raw.length -= at;
	}
}

static void put_text(struct str *raw, const char *text, size_t length)
{
	protobuf_varint(raw, length);
	str_add_bytes(raw, text, length);
}

static void put_column(struct push *push, const struct rowset_batch *batch, unsigned i)
{
	const struct rowset_column *column = &batch->table->columns[i];
	const uint64_t *values = batch->values[i];
	struct str *raw = &push->raw;

	put_text(raw, column->name, strlen(column->name));
	put_text(raw, types[column->type], strlen(types[column->type]));
	switch (column->type) {
	case ROWSET_TEXT:
		for (size_t row = 0; row < batch->count; row++) {
			const char *text = batch->texts->texts[values[row]];

			put_text(raw, text, strlen(text));
		}
		break;
	case ROWSET_LIST:
		parquet_encode_plain(raw, values, batch->count, 8);
		str_add_bytes(raw, batch->items, batch->items_count * sizeof *batch->items);
		break;
	default:
		parquet_encode_plain(raw, values, batch->count, column->type == ROWSET_U32 ? 4 : 8);
	}
	pack(push, false);
}

static void put_constant(struct push *push, const char *name, uint64_t value, size_t count)
{
	put_text(&push->raw, name, strlen(name));
	put_text(&push->raw, "UInt64", 6);
	for (size_t i = 0; i < count; i++)
		str_add_bytes(&push->raw, &value, sizeof value);
}

// The rows in the format Native.
static void pack_batch(struct push *push, const struct rowset_batch *batch, uint64_t part)
{
	str_clear(&push->raw);
	str_clear(&push->packed);
	protobuf_varint(&push->raw, batch->table->columns_count + 2);
	protobuf_varint(&push->raw, batch->count);
	for (unsigned i = 0; i < batch->table->columns_count; i++)
		put_column(push, batch, i);
	put_constant(push, "block", push->block, batch->count);
	put_constant(push, "part", part, batch->count);
	pack(push, true);
}

// ---- sending ----

static bool record(struct push *push, const struct rowset_batch *batch, uint64_t part,
		   struct err *err)
{
	str_clear(&push->text);
	str_format(&push->text,
		   "INSERT INTO %s.blocks (trace, name, block, part, rows, schema_version) VALUES "
		   "('%s', '%s', %" PRIu64 ", %" PRIu64 ", %zu, %d)",
		   clickhouse_database(push->clickhouse), push->trace, batch->table->name,
		   push->block, part, batch->count, ROWSET_SCHEMA_VERSION);
	str_clear(&push->answer);
	return clickhouse_run(push->clickhouse, push->text.text, NULL, false, &push->answer, err);
}

static bool send(struct push *push, const struct rowset_batch *batch, uint64_t *part,
		 struct err *err)
{
	if (!random_bytes(part, sizeof *part, err))
		return false;
	pack_batch(push, batch, *part);
	str_clear(&push->text);
	str_format(&push->text, "INSERT INTO %s.%s_rows FORMAT Native",
		   clickhouse_database(push->clickhouse), batch->table->name);
	str_clear(&push->answer);
	return clickhouse_run(push->clickhouse, push->text.text, &push->packed, true, &push->answer,
			      err);
}

static bool is_known(const struct push *push, const char *table)
{
	char line[64];
	size_t length =
		(size_t)snprintf(line, sizeof line, "\n%s\t%" PRIu64 "\n", table, push->block);

	return mem_search(str_get(&push->known), push->known.length, line, length) != NULL;
}

static bool begin_table(void *context, const struct rowset_table *table, struct err *err)
{
	struct push *push = context;

	(void)table;
	(void)err;
	push->block = 0;
	return true;
}

static bool add_batch(void *context, const struct rowset_batch *batch, struct err *err)
{
	struct push *push = context;
	uint64_t part = 0;
	unsigned tries = 0;
	bool good = true;

	if (is_known(push, batch->table->name)) {
		push->result->rows_known += batch->count;
		push->block++;
		return true;
	}
	while (!(good = send(push, batch, &part, err)) && clickhouse_may_retry(push->clickhouse) &&
	       clickhouse_wait(push->clickhouse, ++tries))
		push->result->tries_again++;
	push->result->rows_sent += batch->count;
	push->result->bytes_sent += push->packed.length;
	good = good && record(push, batch, part, err);
	push->block++;
	return good;
}

static bool end_table(void *context, const struct rowset_table *table, struct err *err)
{
	(void)context;
	(void)table;
	(void)err;
	return true;
}

static bool find_known(struct push *push, struct err *err)
{
	str_format(&push->text,
		   "SELECT name, block FROM %s.blocks WHERE trace = '%s' GROUP BY name, block",
		   clickhouse_database(push->clickhouse), push->trace);
	str_add_char(&push->known, '\n');
	return run(push->clickhouse, &push->text, &push->answer, err) &&
	       (str_add(&push->known, str_get(&push->answer)), true);
}

bool push_trace(struct clickhouse *clickhouse, const struct export_source *source,
		struct push_result *result, struct err *err)
{
	struct push push = {
		.clickhouse = clickhouse,
		.result = result,
		.zstd = ZSTD_createCCtx(),
	};
	const struct rowset_receiver receiver = { begin_table, add_batch, end_table, &push };
	bool good;

	if (!push.zstd)
		mem_none(1, PIECE);
	rowset_trace_name(source->asked->reader, push.trace);
	good = find_known(&push, err) &&
	       rowset_write(source, (1u << ROWSET_TABLES) - 1, &receiver, err);
	ZSTD_freeCCtx(push.zstd);
	str_fini(&push.known);
	str_fini(&push.raw);
	str_fini(&push.packed);
	str_fini(&push.text);
	str_fini(&push.answer);
	return good;
}
