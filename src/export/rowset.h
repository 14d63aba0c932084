// rowset: a trace as tables, of which docs/schema/rows.md says what each column means: allocations
// with their ends, and what these name.
//
// They come in batches of at most ROWSET_BATCH rows, column by column. A number is itself, a double
// its bits, a text its number in `texts`, a list where it ends in `items`. A column says what is
// usual of its values, so that a writer knows how to store them.
//
//     rowset_write          for each table that is wanted, in the order of `rowset_tables`:
//       begin
//       batch             until all rows were given; none for a table without rows
//       end
//
// Memory: a batch, the blocks that live at one time, and the texts, which grow with the program.
#pragma once

#include "engine/replay/lives.h"
#include "export/export.h"
#include "export/string_table.h"

enum { ROWSET_BATCH = 1 << 18, ROWSET_COLUMNS_MAX = 24, ROWSET_SCHEMA_VERSION = 1 };

// What a value of 64 bits is.
enum rowset_type {
	ROWSET_U32,
	ROWSET_U64,
	ROWSET_DOUBLE,
	ROWSET_TEXT,
	ROWSET_LIST, // of numbers of 32 bits
};

enum rowset_usual {
	ROWSET_FEW,    // few different values
	ROWSET_NEAR,   // near the value before
	ROWSET_RANDOM, // anything
};

struct rowset_column {
	const char *name;
	enum rowset_type type;
	enum rowset_usual usual;
};

struct rowset_table {
	const char *name;
	const struct rowset_column *columns;
	unsigned columns_count;
};

// Rows as columns. Valid during the call; what is kept has to be copied.
struct rowset_batch {
	const struct rowset_table *table;
	const struct string_table *texts; // borrowed
	size_t count;
	uint64_t *values[ROWSET_COLUMNS_MAX];
	uint32_t *items; // of the lists: only one column of a table is one
	size_t items_count, items_capacity;
};

enum rowset_table_id {
	ROWSET_ALLOCATIONS,
	ROWSET_STACKS,
	ROWSET_FRAMES,
	ROWSET_PROCESSES,
	ROWSET_THREADS,
	ROWSET_MODULES,
	ROWSET_MARKS,
	ROWSET_RSS,
	ROWSET_SITES,
	ROWSET_LABELS,
	ROWSET_RUNS,
	ROWSET_TABLES,
};

extern const struct rowset_table rowset_tables[ROWSET_TABLES];

// The table of this name; ROWSET_TABLES: there is none.
enum rowset_table_id rowset_find(const char *name);

// Who takes the rows. False with *err ends the writing.
struct rowset_receiver {
	bool (*begin)(void *context, const struct rowset_table *table, struct err *err);
	bool (*batch)(void *context, const struct rowset_batch *batch, struct err *err);
	bool (*end)(void *context, const struct rowset_table *table, struct err *err); // or NULL
	void *context;
};

// `tables` is a set of 1 << enum rowset_table_id. Filters and windows choose allocations; the other
// tables are whole. The question must be one that events_prepare has prepared.
bool rowset_write(const struct export_source *source, unsigned tables,
		  const struct rowset_receiver *receiver, struct err *err);

// The same for one who reads the trace by himself, as it grows, and begins again with some tables:
//
//     rowset_new
//       rowset_life       a row of `allocations`
//       rowset_flush      those that were not given to the receiver yet; before
//       rowset_table      any other table
//     rowset_free
//
// Rows of allocations that do not fill a batch are not given before rowset_flush, and `begin` and
// `end` are not called for that table.
struct rowset;
struct rowset_sites;

struct rowset *rowset_new(const struct export_source *source,
			  const struct rowset_receiver *receiver);
void rowset_free(struct rowset *rowset); // NULL is allowed

// The same recording from here on, in another file.
void rowset_source(struct rowset *rowset, const struct export_source *source);

// A row of `allocations`.
void rowset_life(struct rowset *rowset, const struct lives_block *block,
		 const struct lives_end *end);

// It is no row, but a part of what the table `sites` adds up.
void rowset_seen(struct rowset *rowset, const struct lives_block *block,
		 const struct lives_end *end);

// Rows of the table `rss` are made of notes, and are forgotten once they were given.
void rowset_note(struct rowset *rowset, const struct trace_note *note);

// From now on rows are added to a copy of the sums, which `sites` is (rowset_sites_fini ends it):
// so that rows of what still lives can be given, and the sums with them. NULL: no more.
void rowset_aside(struct rowset *rowset, struct rowset_sites *sites);

// Rows are missing: the table `runs` is to say so.
void rowset_cut(struct rowset *rowset);

// Give the receiver what it was not given yet. False: it refused a batch, now or before.
bool rowset_flush(struct rowset *rowset, struct err *err);

// Of `stacks`, `frames`, `modules` and `marks` the rows from number `from` on; they count from 1.
bool rowset_table(struct rowset *rowset, enum rowset_table_id id, uint32_t from, struct err *err);

// What `trace` is in all rows of a trace: 32 hexadecimal digits.
void rowset_trace_name(const struct reader *reader, char out[static 33]);
