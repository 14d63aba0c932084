// A window's rows as a sheet: a column for each key, then the figures. JSON has the keys of a row
// as one object, flat forms have a column each. For example `window --by process,stack`, a row in
// both:
//
//     {"keys": {"process": 15209, "stack": [ … ]}, "process_id": 0, … "size": 1000000 …}
//     f 15209,main (/home/f.c:5) < __libc_start_call_main … < _start,1,1000000 …
#include "report/table/table.h"

#include "report/table/lines.h"

#include <inttypes.h>
#include <string.h>

// ---- keys in JSON: one object ----

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

	ASSERT(kind <= WINDOW_END_EXEC);
	return words[kind];
}

// A block that was never freed has no end_ns; one that ended with its process has no end_thread.
static void write_allocation(struct json *json, const struct table *table,
			     const struct window_allocation *allocation)
{
	json_kv_object(json, "lifetime");
	json_kv_hex(json, "address", allocation->address);
	json_kv_u64(json, "size", allocation->cell.size);
	json_kv_u64(json, "begin_ns", allocation->begin_ns);
	json_kv_u64_if(json, "end_ns", allocation->end_kind != WINDOW_END_NEVER,
		       allocation->end_ns);
	json_kv_string(json, "end", ending_word(allocation->end_kind));
	json_kv_bool(json, "reallocated", allocation->reallocated);
	json_kv_u64(json, "thread", tid_of(table, allocation->cell.thread));
	json_kv_u64_if(json, "end_thread", allocation->end_thread != TRACE_NONE,
		       tid_of(table, allocation->end_thread));
	write_stack(json, table, "stack", allocation->cell.stack);
	write_stack(json, table, "end_stack", allocation->end_stack);
	json_object_end(json);
}

// Numbers are written as numbers; what is a text is written as it is shown.
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

// The keys of a row in JSON, the outermost first.
static void write_keys(const struct sheet_at *at)
{
	const struct table *table = at->sheet->context;
	const struct table_row *row = at->row;
	const struct table_row *path[KEYS_COUNT];
	struct json *json = at->sheet->json;
	const struct table_row *process = NULL, *stack = NULL;
	size_t depth = row->depth;

	ASSERT(row->depth <= KEYS_COUNT);
	for (; row->depth > 0; row = &table->rows[row->parent])
		path[row->depth - 1] = row;
	// `row` is the whole table now; the path has the rows on the way, the outermost first.
	json_kv_object(json, "keys");
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

// ---- keys in flat forms ----

// "0x5000 1000 2000": its address, when it began and when it ended.
static struct sheet_cell lifetime_cell(struct sheet *sheet, const struct table_row *row)
{
	const struct table *table = sheet->context;
	const struct window_allocation *allocation = &table->allocations[row->value];

	if (row->orphans)
		return sheet_text(NULL);
	str_format(&sheet->scratch, "0x%" PRIx64 " %" PRIu64 " %" PRIu64, allocation->address,
		   allocation->begin_ns, allocation->end_ns);
	return sheet_text(str_get(&sheet->scratch));
}

// The n-th key is that of the row above at depth n + 1. A text is in the sheet's scratch until the
// next cell is asked for.
static struct sheet_cell get_key(const struct sheet_at *at)
{
	struct sheet *sheet = at->sheet;
	const struct table *table = sheet->context;
	const struct table_row *row = at->row;

	if (row->depth <= at->column->at)
		return sheet_text(NULL);
	while (row->depth > at->column->at + 1)
		row = &table->rows[row->parent];
	str_clear(&sheet->scratch);
	switch (table_key(table, row)) {
	case KEYS_STACK:
		sheet->stack = names_stack(table->asked->names, table_stack(table, row));
		return (struct sheet_cell){ .stack = &sheet->stack };
	case KEYS_THREAD:
	case KEYS_SIZE:
		return sheet_u64(true, row->value);
	case KEYS_LIFETIME:
		return lifetime_cell(sheet, row);
	default:
		table_describe(table, row, &sheet->scratch);
		return sheet_text(str_get(&sheet->scratch));
	}
}

static struct sheet_cell get_total(const struct sheet_at *)
{
	return sheet_text("total");
}

static enum sheet_kind kind_of(enum keys_key key)
{
	return key == KEYS_STACK    ? SHEET_STACK
	       : key == KEYS_THREAD ? SHEET_NUMBER
	       : key == KEYS_SIZE   ? SHEET_BYTES
				    : SHEET_TEXT;
}

// In JSON the keys are one object; in flat forms each is a column. Without keys a flat row says
// "total", so that it has something in front of its figures.
static size_t add_keys(const struct keys *keys, struct sheet_column *columns)
{
	static const struct sheet_column in_json = { "keys", SHEET_OBJECT, SHEET_JSON_ONLY,
						     .json = write_keys };
	static const struct sheet_column total = { "row", SHEET_TEXT, SHEET_FLAT_ONLY,
						   .get = get_total };
	size_t count = 0;

	ASSERT(keys->count <= KEYS_COUNT);
	columns[count++] = in_json;
	if (keys->count == 0)
		columns[count++] = total;
	for (size_t i = 0; i < keys->count; i++)
		columns[count++] = (struct sheet_column){
			keys_word(keys->list[i]),
			kind_of(keys->list[i]),
			SHEET_FLAT_ONLY,
			get_key,
			i,
			.meaning = "what the row is about",
		};
	return count;
}

// ---- rows ----

// The leaves in the order of the table, without recursion: `at` counts the children of each level
// that were written. A row of frees of nothing known has no rows below it, so it is written where
// it is.
static void add_leaves(struct table *table, struct sheet *sheet)
{
	uint32_t at[KEYS_COUNT + 1] = { 0 };
	const struct table_row *path[KEYS_COUNT + 1] = { &table->rows[0] }, *leaf;
	size_t depth = 0;

	for (;;) {
		const struct table_row *row = path[depth];

		while (row->below && (leaf = table_spill_next(table, row)))
			sheet_row(sheet, leaf);

		if (at[depth] < row->shown_count) {
			const struct table_row *child = table_child(table, row, at[depth]++);

			if (child->depth == table->options->keys.count || child->orphans) {
				sheet_row(sheet, child);
				continue;
			}
			ASSERT(depth < KEYS_COUNT);
			path[++depth] = child;
			at[depth] = 0;
			continue;
		}
		sheet->left_out +=
			row->children_count - row->shown_count + table_dropped(table, row, NULL);
		if (depth-- == 0)
			return;
	}
}

// Without keys the only row is the total. A JSON document has that by another key, and then it has
// no rows.
void table_rows(struct table *table, struct sheet *sheet)
{
	const struct keys *keys = &table->options->keys;
	struct sheet_column columns[KEYS_COUNT + 2 + TABLE_FIGURES];
	size_t count = add_keys(keys, columns);

	memcpy(columns + count, table_figures, sizeof table_figures);
	sheet->context = table;
	sheet_begin(sheet, columns, count + TABLE_FIGURES);
	if (keys->count == 0 && !sheet->form->part)
		sheet_row(sheet, &table->rows[0]);
	else
		add_leaves(table, sheet);
	sheet_end(sheet);
}

// The figures alone, through the same columns as the rows.
void table_write_total(struct json *json, const struct table *table)
{
	struct sheet sheet = sheet_in_json(json);

	sheet.context = table;
	sheet_begin(&sheet, table_figures, TABLE_FIGURES);
	sheet_row(&sheet, &table->rows[0]);
	sheet_end(&sheet);
}
