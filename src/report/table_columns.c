// The columns of a table: words, and a row's figures.
#include "report/table.h"

#include "base/mem.h"

#include <string.h>

static const struct {
	const char *word;
	const char *json; // its name in JSON and CSV, which is understood too
	bool details;
} columns[TABLE_COLUMNS] = {
	[TABLE_IMPACTING] = { "impacting", "impacting_size", false },
	[TABLE_SIZE] = { "size", "size", false },
	[TABLE_COUNT] = { "count", "count", false },
	[TABLE_ALLOCATED] = { "allocated", "allocated", false },
	[TABLE_FREED] = { "freed", "freed", false },
	[TABLE_PEAK] = { "peak", "peak_size", true },
	[TABLE_PEAK_COUNT] = { "peak-count", "peak_count", true },
	[TABLE_MOST_COUNT] = { "most-count", "most_count", true },
	[TABLE_FIRST] = { "first", "first_ns", true },
	[TABLE_LAST] = { "last", "last_ns", true },
	[TABLE_MEDIAN] = { "median", "lifetime_median_ns", true },
	[TABLE_P99] = { "p99", "lifetime_p99_ns", true },
	[TABLE_NAME] = { "name", "name", false },
};

const char *table_column_word(enum table_column column)
{
	return columns[column].word;
}

bool table_column_lifetimes(enum table_column column)
{
	return column == TABLE_MEDIAN || column == TABLE_P99;
}

bool table_column_details(enum table_column column)
{
	return columns[column].details;
}

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
	default:
		return 0;
	}
}

// `named` also knows "name".
static bool find_column(const char *word, bool named, enum table_column *column, struct err *err)
{
	const char *words[TABLE_COLUMNS + 1] = { NULL };
	int count = named ? TABLE_COLUMNS : TABLE_NAME;
	const char *nearest;
	struct str list = { 0 };

	for (int i = 0; i < count; i++) {
		if (strcmp(columns[i].word, word) == 0 || strcmp(columns[i].json, word) == 0) {
			*column = (enum table_column)i;
			str_fini(&list);
			return true;
		}
		words[i] = columns[i].word;
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
