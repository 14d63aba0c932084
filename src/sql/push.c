// push: what is sent, in which order. A batch of rows is put in the order of the server's key
// first, which is cheaper here (numbers, by their digits) than there (rows, by comparing the
// trace's name with itself each time): it cost a third of the server's time.
//
// Blocks go to the shards in turn, beginning with one that hangs on the trace, so that both a large
// trace and many small ones spread. The same block goes to the same shard in each push.
//
// The trace itself follows its rows: those show whether what is there is of the same state of the
// recording, and pieces of two would make a file that is neither.
//
// The row of `runs` is sent when all else is there (lanes_wait): with it a trace is whole.
#include "sql/push.h"

#include "base/mem.h"
#include "base/radix.h"
#include "os/file.h"
#include "os/now.h"
#include "sql/lanes.h"
#include "sql/native.h"
#include "sql/pieces.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN_COLUMNS = 2 }; // until, part

struct push {
	struct shards *shards;
	struct lanes *lanes;
	struct push_result *result;
	const struct query_context *asked;
	const struct reader *reader;
	char trace[33];
	uint64_t trace_hash;
	uint64_t block;          // of the table
	unsigned day, keep_days; // for tables_until
	struct str known;        // a line for each block that is recorded: "TABLE\tBLOCK\tROWS\n"
	struct native native;
	struct radix_pair *order; // of the rows of a batch, and room for as many
	uint64_t *values;         // of a column in that order
	bool ordered;             // the batch is in that order as it is
};

// ---- a block as bytes ----

// How many rows a block has, and what puts their columns.
struct block {
	const char *table;
	size_t rows;
	void (*put)(struct push *push, const void *what);
	const void *what;
	unsigned columns, until;
};

// Of the key after the trace. What has lists is in order as it comes.
static const uint64_t *keys_of(const struct rowset_batch *batch)
{
	const struct rowset_table *table = batch->table;
	const char *name = tables_orders[table - rowset_tables];

	ASSERT(table >= rowset_tables && table < rowset_tables + ROWSET_TABLES);
	for (unsigned i = 0; i < table->columns_count; i++)
		if (strcmp(table->columns[i].name, name) == 0)
			return table->columns[i].type == ROWSET_TEXT ? NULL : batch->values[i];
	return NULL;
}

// Fills `order` with the batch's rows by their key, each with the row that it was. The sort is
// stable, so that rows of one key keep the order of the trace. A batch that is in order already, as
// most are, is only looked at.
static void find_order(struct push *push, const struct rowset_batch *batch)
{
	const uint64_t *keys = keys_of(batch);

	ASSERT(batch->count <= ROWSET_BATCH);
	push->ordered = true;
	if (!keys || batch->items_count > 0)
		return;
	for (size_t row = 0; row < batch->count; row++) {
		push->ordered = push->ordered && (row == 0 || keys[row - 1] <= keys[row]);
		push->order[row] = (struct radix_pair){ keys[row], row };
	}
	if (!push->ordered)
		radix_sort_pairs(push->order, push->order + ROWSET_BATCH, batch->count);
}

// One column in the order that was found. `values` is room of the push that the next column takes
// again: the numbers are packed before this returns.
static void put_column(struct push *push, const struct rowset_batch *batch, unsigned i)
{
	const uint64_t *values = batch->values[i];

	ASSERT(i < batch->table->columns_count && batch->count <= ROWSET_BATCH);
	if (!push->ordered) {
		for (size_t row = 0; row < batch->count; row++)
			push->values[row] = values[push->order[row].value];
		values = push->values;
	}
	tables_put_column(&push->native, batch, i, values);
}

static void put_batch(struct push *push, const void *what)
{
	const struct rowset_batch *batch = what;

	ASSERT(batch->count <= ROWSET_BATCH);
	find_order(push, batch);
	for (unsigned i = 0; i < batch->table->columns_count; i++)
		put_column(push, batch, i);
}

// ---- sending ----

// Of these a trimmed or saved copy has other rows than the whole, or more, as the mark that it is
// trimmed.
static bool tells_copies(const char *table)
{
	return strcmp(table, rowset_tables[ROWSET_ALLOCATIONS].name) == 0 ||
	       strcmp(table, rowset_tables[ROWSET_MARKS].name) == 0 ||
	       strcmp(table, rowset_tables[ROWSET_RSS].name) == 0;
}

// Looked for as text, as the server told it: a trace has one block for each 262,144 rows of a
// table, so the list is short. The newline before and the tab after keep block 1 from being found
// in block 11.
static bool is_known(const struct push *push, const char *table, uint64_t block, uint64_t *rows)
{
	char line[64];
	size_t length = (size_t)snprintf(line, sizeof line, "\n%s\t%" PRIu64 "\t", table, block);
	const char *at = mem_search(str_get(&push->known), push->known.length, line, length);

	*rows = at ? strtoull(at + length, NULL, 10) : 0;
	return at != NULL;
}

// All of a trace is there, and its time to live is not over.
static bool is_whole(const struct push *push)
{
	uint64_t rows;

	return is_known(push, rowset_tables[ROWSET_RUNS].name, 0, &rows) &&
	       is_known(push, rowset_tables[ROWSET_ALLOCATIONS].name, 0, &rows);
}

// The same number is the same rows, unless what was sent is another state of the recording.
static bool find_block(const struct push *push, const struct block *block, bool *known,
		       struct err *err)
{
	uint64_t rows;

	*known = is_known(push, block->table, push->block, &rows);
	return !tells_copies(block->table) || (*known ? rows == block->rows : !is_whole(push)) ||
	       err_set(err, ERR_IO,
		       "the database has another part of this recording, trimmed or saved before "
		       "it ended (try: another database)");
}

// Until all lanes are done with what they have. What the lanes counted is whole sums: they are set
// here, not added.
static bool wait(struct push *push, struct err *err)
{
	struct lanes_result result;
	bool good = lanes_wait(push->lanes, &result, err);

	push->result->rows_sent = result.rows;
	push->result->bytes_sent = result.bytes;
	push->result->tries_again = result.again;
	return good;
}

// Unless it is known.
static bool add_block(struct push *push, const struct block *block, struct err *err)
{
	struct native *native = &push->native;
	bool known;
	struct lanes_block sent = {
		.table = block->table,
		.number = push->block,
		.rows = block->rows,
		.until = block->until,
	};

	ASSERT(shards_count(push->shards) > 0 && block->put);
	if (!find_block(push, block, &known, err))
		return false;
	if (known) {
		push->result->rows_known += block->rows;
		return true;
	}
	native_begin(native, block->columns + OWN_COLUMNS, block->rows);
	block->put(push, block->what);
	native_date(native, "until", block->until, block->rows);
	native_end(native);
	sent.packed = native->packed;
	native->packed = (struct str){ 0 };
	return lanes_send(push->lanes,
			  (push->trace_hash + push->block) % shards_count(push->shards), &sent,
			  err);
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
	struct native *native = &push->native;

	native_head(native, "trace", "String");
	native_text(native, push->trace, strlen(push->trace));
	native_head(native, "file", "String");
	native_text(native, piece->file, strlen(piece->file));
	native_constant(native, "at", piece->at, 1);
	native_constant(native, "size", piece->size, 1);
	native_head(native, "bytes", "String");
	native_text(native, piece->bytes, piece->size);
}

// The same file has the same pieces in each push, whatever other files there are.
// Its block's number is a hash of the file and the offset, where other tables count: pieces of
// several files come in whatever order, and must be known again.
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
		const struct block block = {
			.table = "pieces",
			.rows = 1,
			.put = put_piece,
			.what = &piece,
			.columns = 5,
			.until = tables_until(ROWSET_ALLOCATIONS, push->day, push->keep_days),
		};
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

// ---- all of it ----

// Before the table `runs`, which is the last, all else is sent and waited for: only a trace that is
// whole has its row there.
static bool begin_table(void *context, const struct rowset_table *table, struct err *err)
{
	struct push *push = context;
	bool last = table == &rowset_tables[ROWSET_RUNS];
	bool good = !last || (add_file(push, push->asked, err) && wait(push, err));

	push->block = 0;
	return good;
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
		.until = tables_until((enum rowset_table_id)(batch->table - rowset_tables),
				      push->day, push->keep_days),
	};
	bool good = add_block(push, &block, err);

	push->block++;
	return good;
}

// Asks once for all blocks of this trace. Of a cluster any server knows those of all shards. A
// block that is sent twice at once is counted once: the greatest number of rows.
static bool find_known(struct push *push, struct err *err)
{
	struct clickhouse *clickhouse = shards_server(push->shards, 0);
	struct str sql = { 0 };
	bool good;

	str_format(&sql,
		   "SELECT name, block, max(rows) FROM %s.blocks WHERE trace = '%s' AND until >= "
		   "today() GROUP BY name, block",
		   clickhouse_database(clickhouse), push->trace);
	str_add_char(&push->known, '\n');
	good = clickhouse_run(clickhouse, sql.text, NULL, false, &push->known, err);
	str_fini(&sql);
	return good;
}

// The lanes are waited for in any case, since they use what `push` owns; of two errors the first is
// told.
static bool send_all(struct push *push, const struct export_source *source, struct err *err)
{
	const struct rowset_receiver receiver = { begin_table, add_batch, NULL, push };
	struct err other = { 0 };
	bool good = find_known(push, err) &&
		    rowset_write(source, (1u << ROWSET_TABLES) - 1, &receiver, err);

	return wait(push, good ? err : &other) && good;
}

// False: *err says why. end() is to be called then, too.
static bool begin(struct push *push, struct shards *shards, const struct query_context *asked,
		  struct push_result *result, struct err *err)
{
	*push = (struct push){
		.shards = shards,
		.result = result,
		.asked = asked,
		.reader = asked->reader,
		.order = mem_alloc(2 * ROWSET_BATCH, sizeof *push->order),
		.values = mem_alloc(ROWSET_BATCH, sizeof *push->values),
	};
	rowset_trace_name(asked->reader, push->trace);
	push->trace_hash = index_set_hash_text(push->trace);
	push->lanes = lanes_new(shards, push->trace, err);
	return push->lanes != NULL;
}

static void end(struct push *push)
{
	lanes_free(push->lanes);
	MEM_FREE(push->order, push->values);
	native_fini(&push->native);
	str_fini(&push->known);
}

bool push_trace(struct shards *shards, const struct export_source *source, unsigned keep_days,
		struct push_result *result, struct err *err)
{
	struct push push;
	bool good = begin(&push, shards, source->asked, result, err);

	ASSERT(source->asked);
	push.day = tables_day(now_wall_ns());
	push.keep_days = keep_days;
	good = good && send_all(&push, source, err);
	end(&push);
	return good;
}

bool push_file(struct shards *shards, const struct query_context *asked, unsigned day,
	       unsigned keep_days, struct push_result *result, struct err *err)
{
	struct push_result sent = { 0 };
	struct err other = { 0 };
	struct push push;
	bool good = begin(&push, shards, asked, &sent, err);

	push.day = day;
	push.keep_days = keep_days;
	if (good) {
		good = find_known(&push, err) && add_file(&push, asked, err);
		good = wait(&push, good ? err : &other) && good;
	}
	end(&push);
	result->rows_sent += sent.rows_sent;
	result->rows_known += sent.rows_known;
	result->bytes_sent += sent.bytes_sent;
	result->tries_again += sent.tries_again;
	return good;
}
