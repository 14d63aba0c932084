// A window's table for programs: docs/schema/window.json describes it.
#include "report/table.h"

#include "base/json.h"
#include "report/lines.h"

#include <inttypes.h>
#include <string.h>

static void write_detail(struct json *json, const struct table_row *row, const char *key,
			 uint64_t value, bool known)
{
	json_kv_u64_if(json, key, row->detailed && known, value);
}

// What a row and a total have alike.
static void write_figures(struct json *json, const struct table_row *row)
{
	const struct window_detail *detail = &row->detail;
	bool allocated = window_allocated(&row->sums).count > 0;

	json_kv_u64(json, "count", window_present(&row->sums).count);
	json_kv_u64(json, "size", window_present(&row->sums).bytes);
	json_key(json, "impacting_size");
	json_i64(json, window_impact(&row->sums));
	json_kv_u64(json, "allocated", window_allocated(&row->sums).bytes);
	json_kv_u64(json, "allocated_count", window_allocated(&row->sums).count);
	json_kv_u64(json, "freed", window_freed(&row->sums).bytes);
	json_kv_u64(json, "freed_count", window_freed(&row->sums).count);
	write_detail(json, row, "peak_size", detail->peak_bytes, true);
	write_detail(json, row, "peak_count", detail->peak_count, true);
	write_detail(json, row, "most_count", detail->most_count, true);
	write_detail(json, row, "first_ns", detail->first_ns, allocated);
	write_detail(json, row, "last_ns", detail->last_ns, allocated);
	write_detail(json, row, "lifetime_median_ns", detail->lifetime_median_ns,
		     detail->lifetimes > 0);
	write_detail(json, row, "lifetime_p99_ns", detail->lifetime_p99_ns, detail->lifetimes > 0);
	lines_json_amount(json, "by_exit", row->rest.by_exit);
	lines_json_amount(json, "by_exec", row->rest.by_exec);
	lines_json_amount(json, "by_destroy", row->rest.by_destroy);
	json_kv_u64(json, "orphan_frees", row->rest.orphans);
}

static uint32_t tid_of(const struct table *table, thread_id id)
{
	const struct trace_thread *thread = reader_thread(table->asked->reader, id);

	return thread ? thread->tid : 0;
}

static void write_stack(struct json *json, const struct table *table, const char *key, stack_id id)
{
	struct names_stack stack = names_stack(table->asked->names, id);

	json_key(json, key);
	lines_json(json, &stack);
}

static const char *ending_word(uint8_t kind)
{
	static const char *const words[] = {
		[WINDOW_END_NEVER] = "never",     [WINDOW_END_FREE] = "free",
		[WINDOW_END_REALLOC] = "realloc", [WINDOW_END_LOST] = "lost",
		[WINDOW_END_DESTROY] = "destroy", [WINDOW_END_EXIT] = "exit",
		[WINDOW_END_EXEC] = "exec",
	};

	return words[kind];
}

static void write_allocation(struct json *json, const struct table *table,
			     const struct window_allocation *allocation)
{
	json_key(json, "lifetime");
	json_object_begin(json);
	json_key(json, "address");
	json_hex(json, allocation->address);
	json_kv_u64(json, "size", allocation->cell.size);
	json_kv_u64(json, "begin_ns", allocation->begin_ns);
	json_kv_u64_if(json, "end_ns", allocation->end_kind != WINDOW_END_NEVER,
		       allocation->end_ns);
	json_kv_string(json, "end", ending_word(allocation->end_kind));
	json_kv_bool(json, "reallocated", allocation->reallocated);
	json_kv_u64(json, "thread", tid_of(table, allocation->cell.thread));
	json_key(json, "end_thread");
	if (allocation->end_thread == TRACE_NONE)
		json_null(json);
	else
		json_u64(json, tid_of(table, allocation->end_thread));
	write_stack(json, table, "stack", allocation->cell.stack);
	write_stack(json, table, "end_stack", allocation->end_stack);
	json_object_end(json);
}

static void write_key(struct json *json, const struct table *table, const struct table_row *row)
{
	const struct trace_process *process;
	struct str text = { 0 };
	enum keys_key key = table_key(table, row);

	switch (key) {
	case KEYS_PROCESS:
		process = reader_process(table->asked->reader, (process_id)row->value);
		json_kv_u64(json, "process", process ? process->pid : 0);
		break;
	case KEYS_THREAD:
	case KEYS_SIZE:
		json_kv_u64(json, keys_word(key), row->value);
		break;
	case KEYS_STACK:
		write_stack(json, table, "stack", table_stack(table, row));
		break;
	case KEYS_LIFETIME:
		if (!row->orphans)
			write_allocation(json, table, &table->allocations[row->value]);
		break;
	default:
		table_describe(table, row, &text);
		json_kv_string(json, keys_word(key), str_get(&text));
		break;
	}
	str_fini(&text);
}

// The keys of a row, the outermost first.
static void write_keys(struct json *json, const struct table *table, const struct table_row *row)
{
	const struct table_row *path[KEYS_COUNT];
	const struct table_row *process = NULL, *stack = NULL;
	size_t depth = row->depth;

	for (const struct table_row *at = row; at->depth > 0; at = &table->rows[at->parent])
		path[at->depth - 1] = at;
	json_key(json, "keys");
	json_object_begin(json);
	for (size_t i = 0; i < depth; i++) {
		write_key(json, table, path[i]);
		if (table_key(table, path[i]) == KEYS_PROCESS)
			process = path[i];
		if (table_key(table, path[i]) == KEYS_STACK)
			stack = path[i];
	}
	json_object_end(json);
	if (process)
		json_kv_u64(json, "process_id", process->value);
	if (stack) {
		json_kv_u64(json, "stack_id", table_stack(table, stack));
		json_kv_u64(json, "user_frame",
			    names_stack(table->asked->names, table_stack(table, stack)).user);
	}
}

struct rows {
	struct json *json;
	uint64_t left_out;
};

static void write_row(struct rows *rows, const struct table *table, const struct table_row *row)
{
	json_object_begin(rows->json);
	write_keys(rows->json, table, row);
	write_figures(rows->json, row);
	json_object_end(rows->json);
}

// The leaves in the order of the table.
static void write_leaves(struct rows *rows, const struct table *table)
{
	uint32_t at[KEYS_COUNT + 1] = { 0 };
	const struct table_row *path[KEYS_COUNT + 1] = { &table->rows[0] };
	size_t depth = 0;

	for (;;) {
		const struct table_row *row = path[depth];

		if (at[depth] < row->shown_count) {
			const struct table_row *child = table_child(table, row, at[depth]++);

			if (child->depth == table->options->keys.count || child->orphans) {
				write_row(rows, table, child);
				continue;
			}
			path[++depth] = child;
			at[depth] = 0;
			continue;
		}
		rows->left_out +=
			row->children_count - row->shown_count + table_dropped(table, row, NULL);
		if (depth-- == 0)
			return;
	}
}

static void write_total(struct json *json, const struct table *table)
{
	json_key(json, "total");
	if (table->asked->layers == (WINDOW_HEAP | WINDOW_VM)) {
		// Layers never add up; their rows are their totals.
		json_null(json);
		return;
	}
	json_object_begin(json);
	write_figures(json, &table->rows[0]);
	json_object_end(json);
}

static void write(struct table *table, struct sink *sink)
{
	const struct query_context *asked = table->asked;
	const struct keys *keys = &table->options->keys;
	struct rows rows = { 0 };
	struct json json;

	json_init(&json, sink, true);
	rows.json = &json;
	json_object_begin(&json);
	json_kv_string(&json, "schema", "tidemark-window-1");
	json_kv_u64(&json, "from_ns", asked->from_ns);
	json_kv_u64(&json, "to_ns", asked->to_ns);
	json_kv_bool(&json, "complete", reader_complete(asked->reader));
	json_kv_bool(&json, "sampled", reader_info(asked->reader)->sample_bytes > 0);
	json_kv_bool(&json, "exit_frees", asked->options.exit_frees);
	json_key(&json, "by");
	json_array_begin(&json);
	for (size_t i = 0; i < keys->count; i++)
		json_string(&json, keys_word(keys->list[i]));
	json_array_end(&json);
	json_key(&json, "warnings");
	json_array_begin(&json);
	for (size_t i = 0; i < asked->warnings_count; i++)
		json_string(&json, asked->warnings[i]);
	json_array_end(&json);
	json_key(&json, "rows");
	json_array_begin(&json);
	write_leaves(&rows, table);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", rows.left_out);
	write_total(&json, table);
	json_object_end(&json);
	sink_text(sink, "\n");
}

const struct table_format table_json = {
	.name = "json",
	.labels = LABELS_EXACT,
	.write = write,
};
