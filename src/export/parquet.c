// Row groups of pages, a dictionary where it pays, and the footer that says where all is.
//
// For example, the column `process` of a batch of 100,000 rows with three processes: the three
// numbers are a dictionary page, and the rows are two pages of numbers of 2 bits, 65,536 and 34,464
// of them, that say which. The column `begin_ns` has as many values as rows: they are written as
// differences, in blocks that each have as many bits as their largest needs. Where the table says
// that a column has few values, and a batch has more than DICTIONARY_MAX, it is written without a
// dictionary there.
//
// Offsets are known only as pages are written, so what a reader needs to find them (the schema, and
// for each column of each row group where it is and its least and greatest value) comes last, with
// its length and the four bytes PAR1 after it.
#include "export/parquet.h"

#include "base/mem.h"
#include "export/parquet_encode.h"
#include "export/thrift.h"

#include <string.h>
#include <zstd.h>

enum {
	PAGE_ROWS = 1 << 16,
	DICTIONARY_MAX = 1 << 16, // entries
	SLOTS = 1 << 17,          // of the hash: twice as many
	STATISTIC_MAX = 64,       // bytes of a text as a statistic
	LEVEL = 1,
};

static const char magic[] = "PAR1";

// Numbers as the format has them.
enum parquet_type { TYPE_INT32 = 1, TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTES = 6 };
enum parquet_encoding {
	ENCODING_PLAIN = 0,
	ENCODING_RLE = 3,
	ENCODING_DELTA = 5,
	ENCODING_DICTIONARY = 8
};
enum parquet_page { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { CODEC_ZSTD = 6, REPETITION_REQUIRED = 0, REPETITION_REPEATED = 2 };

static const struct {
	enum parquet_type type;
	int converted; // -1: none
	unsigned width;
} kinds[] = {
	[ROWSET_U32] = { TYPE_INT32, 13, 4 },     [ROWSET_U64] = { TYPE_INT64, 14, 8 },
	[ROWSET_DOUBLE] = { TYPE_DOUBLE, -1, 8 }, [ROWSET_TEXT] = { TYPE_BYTES, 0, 0 },
	[ROWSET_LIST] = { TYPE_INT32, 13, 4 },
};
_Static_assert(sizeof kinds / sizeof *kinds == ROWSET_LIST + 1, "a type each");

struct slot {
	uint64_t key;
	uint32_t number; // + 1; 0: free
};

// One column of a row group, as it is being written.
struct chunk {
	const struct rowset_column *column;
	enum parquet_encoding encoding;
	const uint64_t *values; // what is encoded: the items of lists
	size_t count;
	uint64_t begin; // in the file
	uint64_t dictionary_at, data_at;
	uint64_t plain_bytes; // with headers, before compression
};

// One file. Scratch is kept from column to column: it grows to the largest column of a batch.
struct parquet {
	const struct rowset_table *table;
	struct sink *sink;
	uint64_t at; // in the file
	uint64_t rows;
	size_t groups;
	struct str groups_meta; // of all row groups so far
	ZSTD_CCtx *zstd;
	struct str page, compressed, header;
	struct slot *slots;
	uint64_t *dictionary;
	size_t dictionary_count, dictionary_capacity;
	uint32_t *numbers; // of each value, in the dictionary
	size_t numbers_capacity;
	uint64_t *items;
	size_t items_capacity;
};

// Counts where in the file it is, which the footer needs.
static void emit(struct parquet *parquet, const void *bytes, size_t length)
{
	sink_write(parquet->sink, bytes, length);
	parquet->at += length;
}

// The sink is borrowed; what goes wrong there is known to it.
static struct parquet *begin_file(const struct rowset_table *table, struct sink *sink)
{
	struct parquet *parquet = mem_alloc(1, sizeof *parquet);

	ASSERT(table->columns_count > 0);
	parquet->table = table;
	parquet->sink = sink;
	parquet->zstd = ZSTD_createCCtx();
	parquet->slots = mem_alloc(SLOTS, sizeof *parquet->slots);
	if (!parquet->zstd)
		mem_none(1, 1 << 20);
	emit(parquet, magic, 4);
	return parquet;
}

static void free_file(struct parquet *parquet)
{
	if (!parquet)
		return;
	ZSTD_freeCCtx(parquet->zstd);
	STR_FINI(&parquet->groups_meta, &parquet->page, &parquet->compressed, &parquet->header);
	MEM_FREE(parquet->slots, parquet->dictionary, parquet->numbers, parquet->items, parquet);
}

// ---- dictionaries ----

_Static_assert(SLOTS > DICTIONARY_MAX && (SLOTS & (SLOTS - 1)) == 0, "a search ends");
_Static_assert(PAGE_ROWS * 8 <= INT32_MAX, "a page's bytes are a number of 32 bits");

// The slot of a key, or the free one where it belongs. There are twice as many slots as entries, so
// a search ends.
static inline struct slot *slot_of(struct parquet *parquet, uint64_t key)
{
	// The product's upper bits are the well mixed ones: 24 of them, of which 17 are taken.
	size_t at = (key * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SLOTS;

	while (parquet->slots[at].number && parquet->slots[at].key != key)
		at = (at + 1) % SLOTS;
	return &parquet->slots[at];
}

// The number of a new entry, + 1.
static uint32_t learn(struct parquet *parquet, uint64_t key)
{
	MEM_ROOM(parquet->dictionary, parquet->dictionary_capacity, parquet->dictionary_count + 1);
	parquet->dictionary[parquet->dictionary_count] = key;
	return (uint32_t)++parquet->dictionary_count;
}

// Number the values in the order in which they are met. False: they are too many.
// Values that follow each other are often equal, so the last one is remembered.
static bool number_values(struct parquet *parquet, const struct chunk *chunk)
{
	uint64_t last = 0;
	uint32_t number = 0;

	memset(parquet->slots, 0, SLOTS * sizeof *parquet->slots);
	parquet->dictionary_count = 0;
	MEM_ROOM(parquet->numbers, parquet->numbers_capacity, chunk->count);
	for (size_t i = 0; i < chunk->count; i++) {
		uint64_t value = chunk->values[i];

		// `number` 0: there is no last one yet.
		if (value != last || !number) {
			struct slot *slot = slot_of(parquet, value);

			if (!slot->number) {
				if (parquet->dictionary_count == DICTIONARY_MAX)
					return false;
				*slot = (struct slot){ value, learn(parquet, value) };
			}
			last = value;
			number = slot->number;
		}
		parquet->numbers[i] = number - 1;
	}
	ASSERT(parquet->dictionary_count <= DICTIONARY_MAX);
	return true;
}

static enum parquet_encoding choose(struct parquet *parquet, const struct chunk *chunk)
{
	// Columns that usually have few values are tried with a dictionary; if this batch has too
	// many, they are written as others of their type.
	if (chunk->column->usual == ROWSET_FEW && chunk->count > 0 && number_values(parquet, chunk))
		return ENCODING_DICTIONARY;
	return chunk->column->type == ROWSET_U64 && chunk->column->usual != ROWSET_RANDOM
		       ? ENCODING_DELTA
		       : ENCODING_PLAIN;
}

// ---- pages ----

// A page is a header in Thrift and its bytes, compressed. `count` is how many values it has, with
// the places of empty lists.
static void put_page(struct parquet *parquet, struct chunk *chunk, enum parquet_page type,
		     size_t count)
{
	struct thrift thrift = { .out = &parquet->header };
	size_t room = ZSTD_compressBound(parquet->page.length);
	size_t size;

	// The bound is what zstd may need for bytes that do not shrink: so it cannot fail for want
	// of room.
	parquet->compressed.text =
		mem_grow(parquet->compressed.text, &parquet->compressed.capacity, room + 1, 1);
	size = ZSTD_compressCCtx(parquet->zstd, parquet->compressed.text, room,
				 str_get(&parquet->page), parquet->page.length, LEVEL);
	ASSERT(!ZSTD_isError(size) && size <= room);
	str_clear(&parquet->header);
	// PageHeader: 1 the kind, 2 and 3 bytes before and after compression, then 5 DataPageHeader
	// or 7 DictionaryPageHeader with 1 how many values, 2 how they are written, 3 and 4 how
	// levels are.
	thrift_begin(&thrift, 0);
	thrift_i32(&thrift, 1, type);
	thrift_i32(&thrift, 2, (int32_t)parquet->page.length);
	thrift_i32(&thrift, 3, (int32_t)size);
	thrift_begin(&thrift, type == PAGE_DATA ? 5 : 7);
	thrift_i32(&thrift, 1, (int32_t)count);
	thrift_i32(&thrift, 2, (int32_t)(type == PAGE_DATA ? chunk->encoding : ENCODING_PLAIN));
	if (type == PAGE_DATA) {
		thrift_i32(&thrift, 3, ENCODING_RLE);
		thrift_i32(&thrift, 4, ENCODING_RLE);
	}
	thrift_end(&thrift);
	thrift_end(&thrift);
	chunk->plain_bytes += parquet->header.length + parquet->page.length;
	emit(parquet, parquet->header.text, parquet->header.length);
	emit(parquet, parquet->compressed.text, size);
	str_clear(&parquet->page);
}

// Values one after the other. Those of texts are numbers of the batch's table, which no reader of
// the file has: texts are written out, each after its length.
static void add_plain(struct parquet *parquet, const struct chunk *chunk,
		      const struct rowset_batch *batch, const uint64_t *values, size_t count)
{
	if (chunk->column->type != ROWSET_TEXT) {
		parquet_encode_plain(&parquet->page, values, count,
				     kinds[chunk->column->type].width);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const char *text = batch->texts->texts[values[i]];
		uint32_t length = (uint32_t)strlen(text);

		str_add_bytes(&parquet->page, &length, sizeof length);
		str_add_bytes(&parquet->page, text, length);
	}
}

// In the order of the numbers that data pages have.
static void put_dictionary(struct parquet *parquet, struct chunk *chunk,
			   const struct rowset_batch *batch)
{
	add_plain(parquet, chunk, batch, parquet->dictionary, parquet->dictionary_count);
	chunk->dictionary_at = parquet->at;
	put_page(parquet, chunk, PAGE_DICTIONARY, parquet->dictionary_count);
}

// A page of dictionary numbers begins with their width.
static void add_values(struct parquet *parquet, const struct chunk *chunk,
		       const struct rowset_batch *batch, size_t from, size_t count)
{
	unsigned bits = parquet_encode_bits(parquet->dictionary_count - 1);

	ASSERT(from + count <= chunk->count);
	switch (chunk->encoding) {
	case ENCODING_DICTIONARY:
		str_add_char(&parquet->page, (char)bits);
		parquet_encode_hybrid(&parquet->page, parquet->numbers + from, count, bits);
		break;
	case ENCODING_DELTA:
		parquet_encode_delta(&parquet->page, chunk->values + from, count);
		break;
	default:
		add_plain(parquet, chunk, batch, chunk->values + from, count);
	}
}

// ---- lists ----

// The levels of lists `from` to `to`: whether an item goes on with a list, and whether there is
// one. An empty list has a place, and no item. Returns the places.
// For example lists of 2, 0 and 1 items: places 0 1, 0, 0 of whether an item goes on with a list,
// and 1 1, 0, 1 of whether there is one.
static size_t add_levels(struct str *out, const uint64_t *ends, size_t from, size_t to)
{
	struct str levels = { 0 };
	uint32_t *repeats = NULL, *there = NULL;
	size_t places = 0, room = 0, room_there = 0;
	uint64_t at = from ? ends[from - 1] : 0;

	ASSERT(from <= to);
	for (size_t i = from; i < to; i++) {
		uint64_t begin = at;

		do {
			MEM_ROOM(repeats, room, places + 1);
			MEM_ROOM(there, room_there, places + 1);
			repeats[places] = at > begin;
			there[places++] = at < ends[i];
			at++;
		} while (at < ends[i]);
		at = ends[i];
	}
	for (unsigned i = 0; i < 2; i++) {
		uint32_t length;

		str_clear(&levels);
		parquet_encode_hybrid(&levels, i ? there : repeats, places, 1);
		length = (uint32_t)levels.length;
		str_add_bytes(out, &length, sizeof length);
		str_add_bytes(out, levels.text, levels.length);
	}
	str_fini(&levels);
	MEM_FREE(repeats, there);
	return places;
}

// ---- row groups ----

// Pages begin and end at rows, so that a list is in one page.
static void put_data(struct parquet *parquet, struct chunk *chunk, const struct rowset_batch *batch,
		     const uint64_t *ends)
{
	for (size_t from = 0; from < batch->count; from += PAGE_ROWS) {
		size_t to = from + PAGE_ROWS < batch->count ? from + PAGE_ROWS : batch->count;
		size_t places = to - from;

		if (ends) {
			size_t begin = from ? (size_t)ends[from - 1] : 0;

			ASSERT(begin <= ends[to - 1] && ends[to - 1] <= chunk->count);
			places = add_levels(&parquet->page, ends, from, to);
			add_values(parquet, chunk, batch, begin, (size_t)ends[to - 1] - begin);
		} else {
			add_values(parquet, chunk, batch, from, to - from);
		}
		put_page(parquet, chunk, PAGE_DATA, places);
	}
}

// The least and the greatest number, as bytes.
// Unsigned, as the columns are.
static void put_number_statistics(struct thrift *thrift, const struct chunk *chunk)
{
	unsigned width = kinds[chunk->column->type].width;
	uint64_t least = chunk->values[0], greatest = least;

	// Fields of Statistics: 3 how many are null (none), 5 the greatest, 6 the least.
	ASSERT(chunk->count > 0 && width <= sizeof least);
	for (size_t i = 1; i < chunk->count; i++) {
		least = chunk->values[i] < least ? chunk->values[i] : least;
		greatest = chunk->values[i] > greatest ? chunk->values[i] : greatest;
	}
	thrift_i64(thrift, 3, 0);
	thrift_binary(thrift, 5, &greatest, width);
	thrift_binary(thrift, 6, &least, width);
}

// By bytes, which is the order that the format has for texts. A long one is left out, as statistics
// are read for each row group.
static void put_text_statistics(struct thrift *thrift, const struct parquet *parquet,
				const struct rowset_batch *batch)
{
	const char *least = NULL, *greatest = NULL;

	for (size_t i = 0; i < parquet->dictionary_count; i++) {
		const char *text = batch->texts->texts[parquet->dictionary[i]];

		least = !least || strcmp(text, least) < 0 ? text : least;
		greatest = !greatest || strcmp(text, greatest) > 0 ? text : greatest;
	}
	thrift_i64(thrift, 3, 0);
	if (least && strlen(least) <= STATISTIC_MAX && strlen(greatest) <= STATISTIC_MAX) {
		thrift_text(thrift, 5, greatest);
		thrift_text(thrift, 6, least);
	}
}

// Doubles would need another order, and lists have none.
static void put_statistics(struct thrift *thrift, const struct parquet *parquet,
			   const struct chunk *chunk, const struct rowset_batch *batch)
{
	enum rowset_type type = chunk->column->type;

	if (type == ROWSET_DOUBLE || type == ROWSET_LIST || chunk->count == 0)
		return;
	// Those of texts are of the dictionary's.
	if (type == ROWSET_TEXT && chunk->encoding != ENCODING_DICTIONARY)
		return;
	thrift_begin(thrift, 12);
	if (type == ROWSET_TEXT)
		put_text_statistics(thrift, parquet, batch);
	else
		put_number_statistics(thrift, chunk);
	thrift_end(thrift);
}

static void put_encodings(struct thrift *thrift, const struct chunk *chunk)
{
	bool plain = chunk->dictionary_at || chunk->encoding == ENCODING_PLAIN;
	bool more = chunk->encoding != ENCODING_PLAIN;

	thrift_list(thrift, 2, THRIFT_I32, 1u + plain + more);
	thrift_item_i32(thrift, ENCODING_RLE);
	if (plain)
		thrift_item_i32(thrift, ENCODING_PLAIN);
	if (more)
		thrift_item_i32(thrift, chunk->encoding);
}

static void put_path(struct thrift *thrift, const struct rowset_column *column)
{
	thrift_list(thrift, 3, THRIFT_BINARY, column->type == ROWSET_LIST ? 3 : 1);
	thrift_item_text(thrift, column->name);
	if (column->type == ROWSET_LIST) {
		thrift_item_text(thrift, "list");
		thrift_item_text(thrift, "element");
	}
}

// Fields of ColumnMetaData: 4 how it is compressed, 5 values (of a list its items), 6 bytes before
// and 7 after compression, 9 where its first data page is, and 11 its dictionary.
static void put_chunk_meta(struct thrift *thrift, const struct parquet *parquet,
			   const struct chunk *chunk, const struct rowset_batch *batch,
			   size_t places)
{
	thrift_begin(thrift, 0);
	thrift_i64(thrift, 2, (int64_t)chunk->begin);
	thrift_begin(thrift, 3);
	thrift_i32(thrift, 1, kinds[chunk->column->type].type);
	put_encodings(thrift, chunk);
	put_path(thrift, chunk->column);
	thrift_i32(thrift, 4, CODEC_ZSTD);
	thrift_i64(thrift, 5, (int64_t)places);
	thrift_i64(thrift, 6, (int64_t)chunk->plain_bytes);
	thrift_i64(thrift, 7, (int64_t)(parquet->at - chunk->begin));
	thrift_i64(thrift, 9, (int64_t)chunk->data_at);
	if (chunk->dictionary_at)
		thrift_i64(thrift, 11, (int64_t)chunk->dictionary_at);
	put_statistics(thrift, parquet, chunk, batch);
	thrift_end(thrift);
	thrift_end(thrift);
}

// The items as wide numbers.
static const uint64_t *widen(struct parquet *parquet, const struct rowset_batch *batch)
{
	MEM_ROOM(parquet->items, parquet->items_capacity, batch->items_count + 1);
	for (size_t i = 0; i < batch->items_count; i++)
		parquet->items[i] = batch->items[i];
	return parquet->items;
}

// An empty list has a place too.
static size_t places_of(const struct rowset_batch *batch, const uint64_t *ends)
{
	size_t places = ends ? batch->items_count : batch->count;

	for (size_t i = 0; ends && i < batch->count; i++)
		// For example ends 2, 2, 3: the second list is empty, so 3 items take 4 places.
		places += ends[i] == (i ? ends[i - 1] : 0);
	return places;
}

// Bytes of the column before compression, for the row group's sum.
static uint64_t put_column(struct parquet *parquet, struct thrift *thrift,
			   const struct rowset_batch *batch, unsigned i)
{
	const struct rowset_column *column = &parquet->table->columns[i];
	const uint64_t *ends = column->type == ROWSET_LIST ? batch->values[i] : NULL;
	struct chunk chunk = {
		.column = column,
		.values = ends ? widen(parquet, batch) : batch->values[i],
		.count = ends ? batch->items_count : batch->count,
		.begin = parquet->at,
	};

	ASSERT(column->type < sizeof kinds / sizeof *kinds);
	ASSERT(!ends || batch->count == 0 || ends[batch->count - 1] == batch->items_count);
	chunk.encoding = choose(parquet, &chunk);
	if (chunk.encoding == ENCODING_DICTIONARY)
		put_dictionary(parquet, &chunk, batch);
	chunk.data_at = parquet->at;
	put_data(parquet, &chunk, batch, ends);
	put_chunk_meta(thrift, parquet, &chunk, batch, places_of(batch, ends));
	return chunk.plain_bytes;
}

// A batch of rows, which becomes a row group.
static void add_group(struct parquet *parquet, const struct rowset_batch *batch)
{
	struct thrift thrift = { .out = &parquet->groups_meta };
	uint64_t bytes = 0;

	thrift_begin(&thrift, 0);
	thrift_list(&thrift, 1, THRIFT_STRUCT, parquet->table->columns_count);
	for (unsigned i = 0; i < parquet->table->columns_count; i++)
		bytes += put_column(parquet, &thrift, batch, i);
	thrift_i64(&thrift, 2, (int64_t)bytes);
	thrift_i64(&thrift, 3, (int64_t)batch->count);
	thrift_end(&thrift);
	parquet->rows += batch->count;
	parquet->groups++;
}

// ---- the footer ----

// One element of the schema, with `children` groups below it (0: none).
// -1: it has none.
static void put_element(struct thrift *thrift, const char *name, int type, int repetition,
			int children, int converted)
{
	thrift_begin(thrift, 0);
	if (type >= 0)
		thrift_i32(thrift, 1, type);
	if (repetition >= 0)
		thrift_i32(thrift, 3, repetition);
	thrift_text(thrift, 4, name);
	if (children)
		thrift_i32(thrift, 5, children);
	if (converted >= 0)
		thrift_i32(thrift, 6, converted);
	thrift_end(thrift);
}

// A tree, written in the order of a walk: a list is three elements, column, "list" and "element",
// as readers expect it.
static void put_schema(struct thrift *thrift, const struct rowset_table *table)
{
	enum { CONVERTED_LIST = 3 };
	unsigned lists = 0;

	for (unsigned i = 0; i < table->columns_count; i++)
		lists += table->columns[i].type == ROWSET_LIST;
	thrift_list(thrift, 2, THRIFT_STRUCT, 1 + table->columns_count + 2 * lists);
	put_element(thrift, "schema", -1, -1, (int)table->columns_count, -1);
	for (unsigned i = 0; i < table->columns_count; i++) {
		const struct rowset_column *column = &table->columns[i];
		const char *name = column->name;

		if (column->type == ROWSET_LIST) {
			put_element(thrift, name, -1, REPETITION_REQUIRED, 1, CONVERTED_LIST);
			put_element(thrift, "list", -1, REPETITION_REPEATED, 1, -1);
			name = "element";
		}
		put_element(thrift, name, (int)kinds[column->type].type, REPETITION_REQUIRED, 0,
			    kinds[column->type].converted);
	}
}

// Statistics are in the order of each column's type.
static void put_orders(struct thrift *thrift, const struct rowset_table *table)
{
	thrift_list(thrift, 7, THRIFT_STRUCT, table->columns_count);
	// Each is a union with its first member, TypeDefinedOrder, which is empty.
	for (unsigned i = 0; i < table->columns_count; i++) {
		thrift_begin(thrift, 0);
		thrift_begin(thrift, 1);
		thrift_end(thrift);
		thrift_end(thrift);
	}
}

// The footer.
static void end_file(struct parquet *parquet)
{
	struct str *out = &parquet->page;
	struct thrift thrift = { .out = out };
	uint32_t length;

	str_clear(out);
	thrift_begin(&thrift, 0);
	thrift_i32(&thrift, 1, 1);
	put_schema(&thrift, parquet->table);
	thrift_i64(&thrift, 3, (int64_t)parquet->rows);
	thrift_list(&thrift, 4, THRIFT_STRUCT, parquet->groups);
	str_add_bytes(out, str_get(&parquet->groups_meta), parquet->groups_meta.length);
	thrift_text(&thrift, 6, "tidemark " TIDEMARK_VERSION);
	put_orders(&thrift, parquet->table);
	thrift_end(&thrift);
	ASSERT(thrift.depth == 0 && out->length <= UINT32_MAX);
	length = (uint32_t)out->length;
	emit(parquet, out->text, out->length);
	emit(parquet, &length, sizeof length);
	emit(parquet, magic, 4);
}

// ---- all tables ----

struct writing {
	const struct parquet_files *files;
	struct sink *sink;
	struct parquet *parquet;
};

static bool begin_table(void *context, const struct rowset_table *table, struct err *err)
{
	struct writing *writing = context;

	// NULL: `err` says why, and the table is not begun.
	writing->sink = writing->files->open(writing->files->context, table, err);
	if (writing->sink)
		writing->parquet = begin_file(table, writing->sink);
	return writing->sink != NULL;
}

static bool add_batch(void *context, const struct rowset_batch *batch, struct err *err)
{
	struct writing *writing = context;

	add_group(writing->parquet, batch);
	return sink_ok(writing->sink, err);
}

static bool end_table(void *context, const struct rowset_table *, struct err *err)
{
	struct writing *writing = context;

	end_file(writing->parquet);
	free_file(writing->parquet);
	writing->parquet = NULL;
	return sink_ok(writing->sink, err) && writing->files->close(writing->files->context, err);
}

// After a failure in the middle of a table its file is as it is; the caller removes it.
bool parquet_write(const struct export_source *source, unsigned tables,
		   const struct parquet_files *files, struct err *err)
{
	struct writing writing = { .files = files };
	const struct rowset_receiver receiver = { begin_table, add_batch, end_table, &writing };
	bool good = rowset_write(source, tables, &receiver, err);

	free_file(writing.parquet);
	return good;
}

// ---- as a format ----

static struct sink *same_sink(void *context, const struct rowset_table *, struct err *)
{
	return context;
}

static bool keep_open(void *, struct err *)
{
	return true;
}

static bool write_parquet(const struct export_source *source, struct sink *sink, struct err *err)
{
	const struct parquet_files files = { same_sink, keep_open, sink };

	return parquet_write(source, 1u << source->table, &files, err);
}

const struct export_format parquet_format = {
	.name = "parquet",
	.brief = "allocations with their ends, and what they name, as Parquet files",
	.has_tables = true,
	.write = write_parquet,
};
