// table: the rows of a window, nested as their keys are.
//
//     table_new          asks the engine and sorts; the rows form a tree, the total is its root
//       table_text (or table_json, table_rows)
//     table_free
//
// A row is all allocations alike in the first `depth` keys. Its children are sorted by the sort
// column, the heaviest first; of each row's children the first `rows_max` are shown. The keys
// impact, type and mark are in their own order unless a column was named.
//
// Sums of a row are those of its children, but where a key is `mark`: each phase is a window of
// its own, so what outlives several is in several, and the rows above are the whole window's.
//
// What needs a row's single steps (its peak, times, lifetimes) is found for the rows that are
// shown, or for all where it is sorted by. Rows of one impact or type are found by going through
// the window's allocations, but where lifetimes alone are asked of an index; where they would not
// fit in the engine's memory, they are left out.
//
// Frees of addresses where nothing was known to live are rows of their own, last of their parent.
//
// For example `window --by thread,stack`: each thread is a row of the first level, each of its
// stacks one of the second, and the figures of a thread are the sums of its rows. Rows that are
// not shown (--rows, --min-bytes) are still in the sums, and one row at the end says how many
// they are.
#pragma once

#include "base/index_set.h"
#include "base/sink.h"
#include "report/ask/keys.h"
#include "report/ask/labels.h"
#include "report/ask/query_context.h"
#include "report/ask/tags.h"
#include "report/table/paper.h"
#include "report/table/sheet.h"

enum table_column {
	// bytes at the window's end less those at its beginning
	TABLE_IMPACTING,
	// bytes and blocks of all that lived in the window for some time
	TABLE_SIZE,
	TABLE_COUNT,
	// bytes that were allocated in it, and freed in it
	TABLE_ALLOCATED,
	TABLE_FREED,
	TABLE_PEAK, // from here to TABLE_P99: what needs a row's single steps
	// blocks at the moment of the peak in bytes; the most at any moment
	TABLE_PEAK_COUNT,
	TABLE_MOST_COUNT,
	// ns: when the first and the last allocation were
	TABLE_FIRST,
	TABLE_LAST,
	// ns: lifetimes, of blocks that have ended
	TABLE_MEDIAN,
	TABLE_P99,
	TABLE_ALLOCATED_COUNT,
	TABLE_NAME, // not a column: rows sorted by what they are called
	TABLE_COLUMNS,
	TABLE_FREED_COUNT = TABLE_COLUMNS, // for programs
};

// What a sheet of rows has besides the keys, in its order, as table_columns.c declares it. People
// see those that have a word, in the order of enum table_column.
enum { TABLE_FIGURES = 19 };
extern const struct sheet_column table_figures[TABLE_FIGURES];

// What is asked for. Borrowed by the table until it is freed.
struct table_options {
	struct keys keys;
	enum labels_kind labels; // what is one row: stacks that read equally, or that are equal
	bool sorted;             // `sort` was asked for
	enum table_column sort;
	uint64_t rows_max;                        // of each row's children; 0: all
	uint64_t bytes_min;                       // rows of at least so many bytes (Size)
	bool details;                             // find what needs single steps
	bool peaks_only;                          // but for lifetimes, which cost most
	bool lifetimes_only;                      // but for all others
	bool all_frames;                          // innermost functions, allocator wrappers or not
	const struct tags *tags;                  // borrowed; NULL: there are none
	enum table_column columns[TABLE_COLUMNS]; // of the text
	size_t columns_count;
	bool colour;
	unsigned width;
};

#define TABLE_NONE UINT32_MAX

// One row. `parent` and `children` are places in the table's lists, which may move while rows are
// found, so no pointer to a row is kept before the table is whole.
struct table_row {
	uint32_t parent; // TABLE_NONE: the total
	uint32_t depth;  // keys that it has: 0 is the total
	uint64_t value;  // of its last key: see value_of in table.c
	bool orphans;    // not allocations: frees of nothing known
	bool detailed;
	bool below;     // private: rows below it are in table->spill
	uint32_t group; // private: in the engine's answer
	struct window_row sums;
	struct window_spread spread; // of what is estimated; all 0: it is exact
	struct window_rest rest;
	struct window_detail detail;                    // if `detailed`
	uint32_t children, children_count, shown_count; // in table->order; after sorting
};

struct table {
	struct query_context *asked;         // borrowed
	const struct table_options *options; // borrowed
	struct labels *labels;
	struct table_level *levels; // private: how the engine is asked for each depth
	struct index_set children;  // private: rows that others may be below
	uint32_t *present;          // private: see table_present.c. NULL: all are in the window
	uint32_t present_count, stacks_count;
	bool sums_kept;                // private: of by_stack
	struct window_result by_stack; // private: what the window has of each
	// Private: labels of texts, by stack, + 1.
	uint32_t *functions, *source_lines, *modules, *stack_tags;
	struct table_row *rows; // rows[0] is the total
	size_t rows_count, rows_capacity;
	size_t level_begin, choose_at; // private: see table_rows.c
	size_t *bars;                  // by parent: place of the last row to be shown, + 1; 0: none
	size_t bars_count;
	bool choosing;
	struct table_spill *spill; // private: see table_spill.c. NULL: all rows are in memory
	uint32_t *order;           // children of each row, one after the other
	struct window_allocation *allocations; // rows of key lifetime; value is the index
	struct table_singles *singles;         // private: while they are being collected
	struct table_dropped *dropped;         // private: by row; see table_dropped
	size_t dropped_capacity;
	struct table_phase *phases; // of key mark; value is the index
	size_t phases_count;
	struct window_rest ends[2]; // of heap and vm, where both are asked for
	bool details_left_out;      // they would not fit in memory
	bool estimated;             // the figures, not the single allocations
	// NULL but while rows are added
	const struct window_result *result; // private: the answer that rows are made of
};

// What would be below a row and is no row, since it would not be shown.
struct table_dropped {
	uint64_t rows;
	struct window_row sums;
};

// Values of key impact.
enum { TABLE_IMPACTS, TABLE_TRANSIENT, TABLE_PERSISTENT };

// A stretch between two marks.
// Edges are of the index: what is between two of them is exact, whatever the clock's tick. The name
// is owned.
struct table_phase {
	uint64_t from, to; // edges
	uint64_t from_ns, to_ns;
	char *name; // of the mark that it begins with; "(begin)"
};

// NULL on a key `tag` without tags, an unreadable index, or too little memory for single
// allocations (ERR_LIMIT).
struct table *table_new(struct query_context *asked, const struct table_options *options,
			struct err *err);
void table_free(struct table *table); // NULL is allowed

// For people (LABELS_AS_SHOWN); as JSON (docs/schema/window.json); the innermost rows alone, and
// how many are left out (both LABELS_EXACT).
void table_text(struct table *table, struct sink *sink);
void table_json(struct table *table, struct sink *sink);
void table_rows(struct table *table, struct sheet *sheet);

// Once it is written: false if rows are missing, as they could not be read.
bool table_written(const struct table *table, struct err *err);

// An object of JSON with the figures of the total.
void table_write_total(struct json *json, const struct table *table);

// How many of the row's children are not rows, since they would not be shown; their sums are added
// to *sums, if that is not NULL.
uint64_t table_dropped(const struct table *table, const struct table_row *row,
		       struct window_row *sums);

// Private, for table_new (in table_present.c): find the stacks in the window, so that no others are
// given names; false: the index cannot be read. Whether one is there. Whether the sums of a level
// are in what was found; then they are added up by groups, instead of asking the engine. The last
// level whose sums are there takes them.
bool table_find_present(struct table *table, struct err *err);
bool table_is_present(const struct table *table, stack_id stack);
bool table_has_sums(const struct table *table, size_t depth);
void table_sum_up(struct table *table, size_t depth,
		  uint32_t (*group)(void *context, const struct window_cell *cell), void *context,
		  struct window_result *result);
void table_forget_sums(struct table *table);

// Private, for table_new (in table_rows.c): rows of one level after the other. Between begin and
// end, rows are added below those of the levels before. A level that is not the last is looked in
// by table_find_child (TABLE_NONE: no such row, or not kept).
void table_begin_level(struct table *table, size_t depth);
void table_add_row(struct table *table, const struct table_row *row);
void table_end_level(struct table *table, size_t depth);
uint32_t table_find_child(const struct table *table, uint32_t parent, uint64_t value, bool orphans);
void table_drop(struct table *table, uint32_t parent, uint64_t rows, const struct window_row *sums);

// Private: make room for so many more rows of a level: where they do not fit in memory, those of
// the last level go into a file (ERR_LIMIT: it is another). There are so many bytes.
bool table_make_room(struct table *table, size_t depth, uint64_t rows, struct err *err);
uint64_t table_memory(const struct table *table);

// Private (in table_spill.c), for rows of the last level that do not fit: from here on they go into
// a file, when many wait, or all of them. Once the other levels are sorted they are put in order,
// with their details; then each row's are there for whoever writes them, in the order in which they
// are shown: NULL is the end. Of those the sum of spreads; and, for their details, how many blocks
// the rows have that are in memory at once, at most.
bool table_spill_begin(struct table *table, struct err *err);
void table_spill_rows(struct table *table, bool all);
bool table_spill_sort(struct table *table, struct err *err);
const struct table_row *table_spill_next(struct table *table, const struct table_row *parent);
struct window_spread table_spill_spread(const struct table *table);
uint64_t table_spill_blocks(const struct table *table, bool transient);
void table_spill_free(struct table_spill *spill); // NULL is allowed

// Private, for single allocations (table_singles.c): find those that are shown, of a phase or of
// all the window (ERR_LIMIT: they do not fit in memory); make rows of them. The row that one of a
// group and type is below: TABLE_NONE if it was not kept.
bool table_singles_find(struct table *table, const struct table_phase *phase, struct err *err);
uint32_t table_parent_of(const struct table *table, uint32_t group, const struct table_phase *phase,
			 enum window_type type);
void table_singles_insert(struct table *table);
void table_singles_free(struct table_singles *singles);

// Private: the order in which two rows of a parent are shown; the same by their figures, but for
// their names; and a single allocation's details.
int table_compare_shown(const struct table *table, const struct table_row *left,
			const struct table_row *right);
int table_compare(const struct table_options *options, const struct table_row *left,
		  const struct table_row *right);
void table_tell_single(const struct window_allocation *allocation, struct table_row *row);

// Private, for table_new (in table_order.c): put each row's children one after the other; sort
// them, those that are shown first; the rows that are shown, each after its parent, or all. The
// list is the caller's.
void table_lay_out(struct table *table);
void table_sort(struct table *table);
uint32_t *table_list(const struct table *table, bool all, size_t *count);

// Find the details of rows (in table_detail.c), for table_new.
bool table_detail(struct table *table, uint32_t *rows, size_t count, struct err *err);

// Private: the types that a row is of, as bits.
unsigned table_row_types(const struct table *table, const struct table_row *row);

// Private, for table_detail: the query of a depth and phase, and what an allocation is to it.
struct window_query table_query(struct table *table, size_t depth, const struct table_phase *phase);
enum window_type table_type_of(const struct window_query *query,
			       const struct window_allocation *allocation);
const struct table_phase *table_phase_of(const struct table *table, const struct table_row *row);
void table_find_phases(struct table *table); // fills `phases`; the names are owned
bool table_typed(const struct table *table, size_t depth);

// For others who write figures of rows for people: what is above a table; one column's title,
// one figure, in a field of the column's width.
void table_write_top(const struct table *table, struct paper *paper);
unsigned table_column_width(enum table_column column);
void table_write_head(struct paper *paper, enum table_column column);
void table_write_figure(struct paper *paper, const struct table_row *row, enum table_column column,
			bool first);

// The columns "count,size", or "all"; a column. ERR_USAGE with the nearest.
bool table_parse_columns(const char *text, struct table_options *options, struct err *err);
bool table_parse_sort(const char *text, struct table_options *options, struct err *err);
const char *table_column_word(enum table_column column);

// A line for each column: its word, and what it means.
void table_write_columns(struct sink *sink);

// What it is in a sheet.
const struct sheet_column *table_column_sheet(enum table_column column);

// A row's figure, of columns that are bytes or counts or times; impacting sizes may be negative.
int64_t table_figure(const struct table_row *row, enum table_column column);
struct sheet_cell table_cell(const struct table_row *row, enum table_column column); // if known

// How far a figure in bytes may be off: its standard error. 0: it is exact, or none of the window's
// four sums of bytes.
uint64_t table_error(const struct table_row *row, enum table_column column);
bool table_column_details(enum table_column column); // it needs `detailed`
bool table_column_lifetimes(enum table_column column);

// What the row is called, by its last key; "total". Stacks: their first function. Appends.
void table_describe(const struct table *table, const struct table_row *row, struct str *text);

// What a stack is called: its first function that is no allocator wrapper. Appends.
void table_describe_function(const struct table *table, stack_id stack, struct str *text);

// The stack behind a row of key stack; the process and so on of other keys.
stack_id table_stack(const struct table *table, const struct table_row *row);
enum keys_key table_key(const struct table *table, const struct table_row *row); // depth > 0

// The i-th child of a row.
static inline struct table_row *table_child(const struct table *table, const struct table_row *row,
					    uint32_t i)
{
	return &table->rows[table->order[row->children + i]];
}

// "impacting", "transient", "persistent"; of impacts as values.
const char *table_impact_word(uint64_t impact);
