// The columns of a table: how they are called, and a row's figures.
//
// A column is a row here: its word for --columns and for headings, its name in CSV and JSON, its
// unit, and a function that gets it from a window_row. To add one: its number in enum table_column
// (table.h), before TABLE_NAME if people are to see it, not between TABLE_PEAK and TABLE_P99 unless
// it is of window_detail, and one more in TABLE_FIGURES; its row here, and its case in
// table_figure, without which it is 0; docs/schema/window.json and the manual page. Every form has
// it then.
#include "report/table/table.h"

#include "base/mem.h"
#include "report/table/lines.h"

#include <math.h>
#include <string.h>

static struct sheet_cell get_figure(const struct sheet_at *at)
{
	const struct table_row *row = at->row;

	// Of frees of nothing known there are no allocations that lived.
	if (at->column->at == TABLE_COUNT)
		return sheet_u64(true, window_present(&row->sums).count);
	return table_cell(row, (enum table_column)at->column->at);
}

// Unknown where a filter asks for what such frees do not have.
static struct sheet_cell get_orphans(const struct sheet_at *at)
{
	const struct table *table = at->sheet->context;
	const struct table_row *row = at->row;

	return sheet_u64(query_context_judges_frees(table->asked), row->rest.orphans);
}

// null of what is exact.
static void write_errors(const struct sheet_at *at)
{
	static const enum table_column columns[] = { TABLE_SIZE, TABLE_IMPACTING, TABLE_ALLOCATED,
						     TABLE_FREED };
	struct json *json = at->sheet->json;

	json_key(json, at->column->name);
	if (table_error(at->row, TABLE_SIZE) == 0) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		json_kv_u64(json, table_column_sheet(columns[i])->name,
			    table_error(at->row, columns[i]));
	json_object_end(json);
}

// `at` is where the amount is in a row; it is copied, as the row's type is not known here.
static void write_amount(const struct sheet_at *at)
{
	struct heap_amount amount;

	memcpy(&amount, (const char *)at->row + at->column->at, sizeof amount);
	lines_json_amount(at->sheet->json, at->column->name, amount);
}

#define FIGURE(called, id, name, kind, flags, says)                                                \
	{                                                                                          \
		name, SHEET_##kind, flags, get_figure, TABLE_##id, .meaning = says, .word = called \
	}
#define AMOUNT(field, says)                                                                 \
	{                                                                                   \
#field, SHEET_OBJECT, SHEET_JSON_ONLY,                                      \
			.json = write_amount, .at = offsetof(struct table_row, rest.field), \
			.meaning = says                                                     \
	}
const struct sheet_column table_figures[TABLE_FIGURES] = {
	FIGURE("count", COUNT, "count", COUNT, 0,
	       "allocations that lived in the window, for any part of it"),
	FIGURE("size", SIZE, "size", BYTES, 0, "the bytes of those"),
	FIGURE("impacting", IMPACTING, "impacting_size", BYTES, SHEET_CHANGE,
	       "bytes that it grew by in the window"),
	FIGURE("allocated", ALLOCATED, "allocated", BYTES, 0, "bytes allocated in it"),
	FIGURE("allocated-count", ALLOCATED_COUNT, "allocated_count", COUNT, 0,
	       "allocations in it"),
	FIGURE("freed", FREED, "freed", BYTES, 0, "bytes freed in it"),
	FIGURE(NULL, FREED_COUNT, "freed_count", COUNT, SHEET_JSON_ONLY, "frees in it"),
	FIGURE("peak", PEAK, "peak_size", BYTES, 0, "the most bytes that were live at once"),
	FIGURE("peak-count", PEAK_COUNT, "peak_count", COUNT, 0,
	       "blocks that were live at that moment"),
	FIGURE("most-count", MOST_COUNT, "most_count", COUNT, 0,
	       "the most blocks that were live at once"),
	FIGURE("first", FIRST, "first_ns", TIME, SHEET_PROGRAMS,
	       "when its first allocation was made"),
	FIGURE("last", LAST, "last_ns", TIME, SHEET_PROGRAMS, "when its last allocation was made"),
	FIGURE("median", MEDIAN, "lifetime_median_ns", TIME, 0,
	       "half of those that ended lived no longer"),
	FIGURE("p99", P99, "lifetime_p99_ns", TIME, SHEET_PROGRAMS,
	       "99 of 100 that ended lived no longer"),
	{ "standard_errors", SHEET_OBJECT, SHEET_JSON_ONLY, .json = write_errors,
	  .meaning = "of the bytes, where samples are among them" },
	AMOUNT(by_exit, "lived when their process exited"),
	AMOUNT(by_exec, "lived when their process called exec"),
	AMOUNT(by_destroy, "were freed with their heap"),
	{ "orphan_frees", SHEET_COUNT, 0, get_orphans,
	  .meaning = "frees of addresses where nothing was known to live" },
};

// There is one for each column but TABLE_NAME; the loop ends at it.
const struct sheet_column *table_column_sheet(enum table_column column)
{
	const struct sheet_column *at = table_figures;

	ASSERT(column < TABLE_NAME);
	while (!at->word || at->at != column)
		at++;
	return at;
}

const char *table_column_word(enum table_column column)
{
	return column == TABLE_NAME ? "name" : table_column_sheet(column)->word;
}

void table_write_columns(struct sink *sink)
{
	for (enum table_column i = 0; i < TABLE_NAME; i++)
		sink_format(sink, "%-16s %s\n", table_column_word(i),
			    table_column_sheet(i)->meaning);
}

bool table_column_lifetimes(enum table_column column)
{
	return column == TABLE_MEDIAN || column == TABLE_P99;
}

bool table_column_details(enum table_column column)
{
	return column >= TABLE_PEAK && column <= TABLE_P99;
}

// Unknown is not 0: a row without allocations in the window has no first one, and one of which
// nothing ended has no lifetimes.
struct sheet_cell table_cell(const struct table_row *row, enum table_column column)
{
	bool known = true;

	if (column == TABLE_FIRST || column == TABLE_LAST)
		known = window_allocated(&row->sums).count > 0;
	if (table_column_lifetimes(column))
		known = row->detail.lifetimes > 0;
	if (table_column_details(column))
		known &= row->detailed;
	return sheet_u64(known, (uint64_t)table_figure(row, column));
}

// A figure is a sum of types, and its variance the sum of theirs. The standard error is rounded to
// the nearest byte.
uint64_t table_error(const struct table_row *row, enum table_column column)
{
	static const unsigned types[TABLE_COLUMNS] = {
		[TABLE_IMPACTING] = 1 << WINDOW_AIFO | 1 << WINDOW_AOFI,
		[TABLE_SIZE] = (1 << WINDOW_TYPES) - 1,
		[TABLE_ALLOCATED] = 1 << WINDOW_AIFI | 1 << WINDOW_AIFO,
		[TABLE_FREED] = 1 << WINDOW_AIFI | 1 << WINDOW_AOFI,
	};
	double variance = 0;

	ASSERT(column < TABLE_COLUMNS);
	for (int type = 0; type < WINDOW_TYPES; type++)
		if (types[column] >> type & 1)
			variance += row->spread.type[type];
	return variance > 0 ? (uint64_t)(sqrt(variance) + 0.5) : 0;
}

// A row of frees of nothing known has no allocations: its count is of those frees. That is for the
// table that people see; in other forms it is 0 there, and the frees have a column (get_figure).
int64_t table_figure(const struct table_row *row, enum table_column column)
{
	switch (column) {
	case TABLE_IMPACTING:
		return window_impact(&row->sums);
	case TABLE_SIZE:
		return (int64_t)window_present(&row->sums).bytes;
	case TABLE_COUNT:
		return (int64_t)(row->orphans ? row->rest.orphans
					      : window_present(&row->sums).count);
	case TABLE_ALLOCATED:
		return (int64_t)window_allocated(&row->sums).bytes;
	case TABLE_FREED:
		return (int64_t)window_freed(&row->sums).bytes;
	case TABLE_PEAK:
		return (int64_t)row->detail.peak_bytes;
	case TABLE_PEAK_COUNT:
		return (int64_t)row->detail.peak_count;
	case TABLE_MOST_COUNT:
		return (int64_t)row->detail.most_count;
	case TABLE_FIRST:
		return (int64_t)row->detail.first_ns;
	case TABLE_LAST:
		return (int64_t)row->detail.last_ns;
	case TABLE_MEDIAN:
		return (int64_t)row->detail.lifetime_median_ns;
	case TABLE_P99:
		return (int64_t)row->detail.lifetime_p99_ns;
	case TABLE_ALLOCATED_COUNT:
		return (int64_t)window_allocated(&row->sums).count;
	case TABLE_FREED_COUNT:
		return (int64_t)window_freed(&row->sums).count;
	case TABLE_NAME: // sorted by its words, and no figure
		return 0;
	}
	ASSERT(!"a column without a case");
	return 0;
}

// By its word ("peak-count") or by its name in CSV ("peak_count"). `named`: "name" is one of them,
// too.
static bool find_column(const char *word, bool named, enum table_column *column, struct err *err)
{
	const char *words[TABLE_NAME + 2] = { NULL };
	int count = named ? TABLE_NAME + 1 : TABLE_NAME;
	const char *nearest;
	struct str list = { 0 };

	for (int i = 0; i < count; i++) {
		words[i] = table_column_word((enum table_column)i);
		if (strcmp(words[i], word) == 0 ||
		    (i < TABLE_NAME &&
		     strcmp(table_column_sheet((enum table_column)i)->name, word) == 0)) {
			*column = (enum table_column)i;
			str_fini(&list);
			return true;
		}
		str_format(&list, "%s%s", i ? ", " : "", words[i]);
	}
	nearest = str_nearest(word, words);
	if (nearest)
		err_set(err, ERR_USAGE, "no column '%s'; did you mean '%s'?", word, nearest);
	else
		err_set(err, ERR_USAGE, "no column '%s' (%s)", word, str_get(&list));
	str_fini(&list);
	return false;
}

bool table_parse_sort(const char *text, struct table_options *options, struct err *err)
{
	options->sorted = true;
	return find_column(text, true, &options->sort, err);
}

// A column may be named twice, up to as many words as there are columns.
bool table_parse_columns(const char *text, struct table_options *options, struct err *err)
{
	bool good = true;

	options->columns_count = 0;
	if (strcmp(text, "all") == 0) {
		for (int i = 0; i < TABLE_NAME; i++)
			options->columns[options->columns_count++] = (enum table_column)i;
		return true;
	}
	while (good && options->columns_count < TABLE_COLUMNS) {
		size_t length = strcspn(text, ",");
		char *word = mem_copy_bytes(text, length);

		good = find_column(word, false, &options->columns[options->columns_count++], err);
		mem_free(word);
		if (text[length] == '\0')
			return good;
		text += length + 1;
	}
	return good ? err_set(err, ERR_USAGE, "too many columns") : false;
}
