// A window's rows as one table (RFC 4180): a column for each key, then the figures.
#include "report/table.h"

#include "report/lines.h"

#include <inttypes.h>

static void write_detail(struct sink *sink, const struct table_row *row, uint64_t value, bool known)
{
	if (row->detailed && known)
		sink_format(sink, ",%" PRIu64, value);
	else
		sink_text(sink, ",");
}

static void write_figures(struct sink *sink, const struct table_row *row)
{
	const struct window_detail *detail = &row->detail;
	bool allocated = window_allocated(&row->sums).count > 0;

	sink_format(sink, ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64,
		    window_present(&row->sums).count, window_present(&row->sums).bytes,
		    window_impact(&row->sums), window_allocated(&row->sums).bytes,
		    window_freed(&row->sums).bytes);
	write_detail(sink, row, detail->peak_bytes, true);
	write_detail(sink, row, detail->peak_count, true);
	write_detail(sink, row, detail->most_count, true);
	write_detail(sink, row, detail->first_ns, allocated);
	write_detail(sink, row, detail->last_ns, allocated);
	write_detail(sink, row, detail->lifetime_median_ns, detail->lifetimes > 0);
	write_detail(sink, row, detail->lifetime_p99_ns, detail->lifetimes > 0);
	sink_format(sink, ",%" PRIu64 "\r\n", row->rest.orphans);
}

static void write_key(struct sink *sink, const struct table *table, const struct table_row *row)
{
	const struct window_allocation *allocation;
	struct names_stack stack;
	struct str text = { 0 };

	switch (table_key(table, row)) {
	case KEYS_STACK:
		stack = names_stack(table->asked->names, table_stack(table, row));
		lines_csv_stack(sink, &stack);
		return;
	case KEYS_THREAD:
	case KEYS_SIZE:
		sink_format(sink, "%" PRIu64, row->value);
		return;
	case KEYS_LIFETIME:
		if (row->orphans)
			return;
		allocation = &table->allocations[row->value];
		sink_format(sink, "0x%" PRIx64 " %" PRIu64 " %" PRIu64, allocation->address,
			    allocation->begin_ns, allocation->end_ns);
		return;
	default:
		table_describe(table, row, &text);
		lines_csv_field(sink, str_get(&text));
		str_fini(&text);
		return;
	}
}

static void write_row(struct sink *sink, const struct table *table, const struct table_row *row)
{
	const struct table_row *path[KEYS_COUNT];

	for (const struct table_row *at = row; at->depth > 0; at = &table->rows[at->parent])
		path[at->depth - 1] = at;
	for (size_t i = 0; i < table->options->keys.count; i++) {
		if (i > 0)
			sink_text(sink, ",");
		if (i < row->depth)
			write_key(sink, table, path[i]);
	}
	if (table->options->keys.count == 0)
		sink_text(sink, "total");
	write_figures(sink, row);
}

static void write_head(struct sink *sink, const struct keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		sink_format(sink, "%s%s", i > 0 ? "," : "", keys_word(keys->list[i]));
	if (keys->count == 0)
		sink_text(sink, "row");
	sink_text(
		sink,
		",count,size,impacting_size,allocated,freed,peak_size,peak_count,"
		"most_count,first_ns,last_ns,lifetime_median_ns,lifetime_p99_ns,orphan_frees\r\n");
}

static void write(struct table *table, struct sink *sink)
{
	uint32_t at[KEYS_COUNT + 1] = { 0 };
	const struct table_row *path[KEYS_COUNT + 1] = { &table->rows[0] };
	size_t depth = 0;

	write_head(sink, &table->options->keys);
	if (table->options->keys.count == 0) {
		write_row(sink, table, &table->rows[0]);
		return;
	}
	for (;;) {
		const struct table_row *row = path[depth];

		if (at[depth] < row->shown_count) {
			const struct table_row *child = table_child(table, row, at[depth]++);

			if (child->depth == table->options->keys.count || child->orphans) {
				write_row(sink, table, child);
				continue;
			}
			path[++depth] = child;
			at[depth] = 0;
			continue;
		}
		table->asked->rows_left_out +=
			row->children_count - row->shown_count + table_dropped(table, row, NULL);
		if (depth-- == 0)
			return;
	}
}

const struct table_format table_csv = {
	.name = "csv",
	.labels = LABELS_EXACT,
	.write = write,
};
