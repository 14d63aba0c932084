#include "sql/push.h"

#include "base/mem.h"
#include "export/parquet_encode.h"
#include "export/protobuf.h"
#include "os/file.h"
#include "os/random.h"
#include "sql/pieces.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

enum { PIECE = 1 << 20, LEVEL = 1 };

struct push {
	struct clickhouse *clickhouse;
	struct push_result *result;
	const struct reader *reader;
	char trace[33];
	uint64_t block;   // of the table
	struct str known; // a line for each block that is recorded: "TABLE\tBLOCK\n"
	struct str raw, packed, text, answer;
	ZSTD_CCtx *zstd;
};

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

static void put_head(struct push *push, const char *name, const char *type)
{
	put_text(&push->raw, name, strlen(name));
	put_text(&push->raw, type, strlen(type));
}

static void put_column(struct push *push, const struct rowset_batch *batch, unsigned i)
{
	const struct rowset_column *column = &batch->table->columns[i];
	const uint64_t *values = batch->values[i];
	struct str *raw = &push->raw;

	put_head(push, column->name, tables_types[column->type]);
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
	put_head(push, name, "UInt64");
	for (size_t i = 0; i < count; i++)
		str_add_bytes(&push->raw, &value, sizeof value);
}

// How many rows a block has, and what puts them into push->raw.
struct block {
	const char *table;
	size_t rows;
	void (*put)(struct push *push, const void *what);
	const void *what;
	unsigned columns;
};

static void put_batch(struct push *push, const void *what)
{
	const struct rowset_batch *batch = what;

	for (unsigned i = 0; i < batch->table->columns_count; i++)
		put_column(push, batch, i);
}

// The rows in the format Native.
static void pack_block(struct push *push, const struct block *block, uint64_t part)
{
	str_clear(&push->raw);
	str_clear(&push->packed);
	protobuf_varint(&push->raw, block->columns + 2);
	protobuf_varint(&push->raw, block->rows);
	block->put(push, block->what);
	put_constant(push, "block", push->block, block->rows);
	put_constant(push, "part", part, block->rows);
	pack(push, true);
}

// ---- sending ----

static bool record(struct push *push, const struct block *block, uint64_t part, struct err *err)
{
	str_clear(&push->text);
	str_format(&push->text,
		   "INSERT INTO %s.blocks (trace, name, block, part, rows, schema_version) VALUES "
		   "('%s', '%s', %" PRIu64 ", %" PRIu64 ", %zu, %d)",
		   clickhouse_database(push->clickhouse), push->trace, block->table, push->block,
		   part, block->rows, ROWSET_SCHEMA_VERSION);
	str_clear(&push->answer);
	return clickhouse_run(push->clickhouse, push->text.text, NULL, false, &push->answer, err);
}

static bool send(struct push *push, const struct block *block, uint64_t *part, struct err *err)
{
	if (!random_bytes(part, sizeof *part, err))
		return false;
	pack_block(push, block, *part);
	str_clear(&push->text);
	str_format(&push->text, "INSERT INTO %s.%s_rows FORMAT Native",
		   clickhouse_database(push->clickhouse), block->table);
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

// Unless it is known.
static bool add_block(struct push *push, const struct block *block, struct err *err)
{
	uint64_t part = 0;
	unsigned tries = 0;
	bool good = true;

	if (is_known(push, block->table)) {
		push->result->rows_known += block->rows;
		return true;
	}
	while (!(good = send(push, block, &part, err)) && clickhouse_may_retry(push->clickhouse) &&
	       clickhouse_wait(push->clickhouse, ++tries))
		push->result->tries_again++;
	push->result->rows_sent += block->rows;
	push->result->bytes_sent += push->packed.length;
	return good && record(push, block, part, err);
}

static bool add_batch(void *context, const struct rowset_batch *batch, struct err *err)
{
	struct push *push = context;
	const struct block block = {
		.table = batch->table->name,
		.rows = batch->count,
		.put = put_batch,
		.what = batch,
		.columns = batch->table->columns_count,
	};
	bool good = add_block(push, &block, err);

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

// ---- the file ----

struct piece {
	const char *file; // "": the trace; else what its names are of
	uint64_t at;
	const void *bytes;
	size_t size;
};

static void put_piece(struct push *push, const void *what)
{
	const struct piece *piece = what;

	put_head(push, "trace", "String");
	put_text(&push->raw, push->trace, strlen(push->trace));
	put_head(push, "file", "String");
	put_text(&push->raw, piece->file, strlen(piece->file));
	put_constant(push, "at", piece->at, 1);
	put_constant(push, "size", piece->size, 1);
	put_head(push, "bytes", "String");
	put_text(&push->raw, piece->bytes, piece->size);
	pack(push, false);
}

// The same file has the same pieces in each push, whatever other files there are.
static bool add_pieces(struct push *push, const char *file, const uint8_t *bytes, size_t size,
		       struct err *err)
{
	bool good = true;

	for (size_t at = 0; at < size && good; at += PIECES_SIZE) {
		const struct piece piece = {
			.file = file,
			.at = at,
			.bytes = bytes + at,
			.size = size - at < PIECES_SIZE ? size - at : PIECES_SIZE,
		};
		const struct block block = { "pieces", 1, put_piece, &piece, 5 };
		const uint64_t key[] = { index_set_hash_text(file), at };

		push->block = index_set_hash(key, 2);
		good = add_block(push, &block, err);
	}
	return good;
}

// Names that are in the trace already are in its file.
static bool add_names(void *context, const uint8_t *label, size_t length, const void *bytes,
		      size_t size, struct err *err)
{
	struct push *push = context;
	char file[PIECES_FILE_MAX];
	size_t there_size;
	const void *there = reader_bundle(push->reader, label, length, &there_size);

	if (there && there_size == size && memcmp(there, bytes, size) == 0)
		return true;
	pieces_file(label, length, file);
	return add_pieces(push, file, bytes, size, err);
}

static bool add_file(struct push *push, const struct query_context *asked, struct err *err)
{
	struct file_view view;
	bool good;

	if (!file_view_open(&view, asked->options.path, err))
		return false;
	good = add_pieces(push, "", view.bytes, view.size, err) &&
	       symbols_pack(asked->symbols, add_names, push, err);
	file_view_close(&view);
	return good;
}

static bool find_known(struct push *push, struct err *err)
{
	str_format(&push->text,
		   "SELECT name, block FROM %s.blocks WHERE trace = '%s' GROUP BY name, block",
		   clickhouse_database(push->clickhouse), push->trace);
	str_add_char(&push->known, '\n');
	return clickhouse_run(push->clickhouse, push->text.text, NULL, false, &push->known, err);
}

bool push_trace(struct clickhouse *clickhouse, const struct export_source *source,
		struct push_result *result, struct err *err)
{
	struct push push = {
		.clickhouse = clickhouse,
		.result = result,
		.reader = source->asked->reader,
		.zstd = ZSTD_createCCtx(),
	};
	const struct rowset_receiver receiver = { begin_table, add_batch, end_table, &push };
	bool good;

	if (!push.zstd)
		mem_none(1, PIECE);
	rowset_trace_name(source->asked->reader, push.trace);
	good = find_known(&push, err) && add_file(&push, source->asked, err) &&
	       rowset_write(source, (1u << ROWSET_TABLES) - 1, &receiver, err);
	ZSTD_freeCCtx(push.zstd);
	str_fini(&push.known);
	str_fini(&push.raw);
	str_fini(&push.packed);
	str_fini(&push.text);
	str_fini(&push.answer);
	return good;
}
