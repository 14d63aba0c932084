// csv: the blocks of the heaps as lines of CSV or JSON, for scripts and data frames.
//
// A line for each beginning and each end (`op` is alloc or free, `call` what did it; a realloc is
// an end and a beginning), or, with --lifetimes, one for each block with both. A column is declared
// where its cell is written: the heading of CSV is a line whose cells write their names. Stacks are
// written as folded ones, outermost first, and each is put together once.
#include "export/events.h"
#include "export/locations.h"

#include "base/json.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

struct rows {
	const struct export_source *source;
	const struct reader *reader;
	struct sink *sink;
	struct str line;
	bool json, heading, any; // `any`: the line has a cell
	struct locations locations;
	struct str stacks;    // texts as they are written, a NUL behind each
	struct map stacks_at; // by stack: where, + 1
};

// ---- cells ----

static void begin_cell(struct rows *rows, const char *name)
{
	if (rows->json) {
		str_add(&rows->line, rows->any ? ",\"" : "{\"");
		str_add(&rows->line, name);
		str_add(&rows->line, "\":");
	} else {
		if (rows->any)
			str_add_char(&rows->line, ',');
		if (rows->heading)
			str_add(&rows->line, name);
	}
	rows->any = true;
}

// A number that may not be known.
static void cell_u64(struct rows *rows, const char *name, bool known, uint64_t value)
{
	begin_cell(rows, name);
	if (known && !rows->heading)
		str_add_digits(&rows->line, value, 10);
	else if (rows->json)
		str_add(&rows->line, "null");
}

static void cell_address(struct rows *rows, const char *name, bool known, uint64_t value)
{
	const char *quote = rows->json ? "\"" : "";

	if (!known) {
		cell_u64(rows, name, false, 0);
		return;
	}
	begin_cell(rows, name);
	if (rows->heading)
		return;
	str_add(&rows->line, quote);
	str_add(&rows->line, "0x");
	str_add_digits(&rows->line, value, 16);
	str_add(&rows->line, quote);
}

// Append a text as the format wants it.
static void quote(const struct rows *rows, const char *text, struct str *out)
{
	struct sink sink = sink_to_str(out);
	struct json json;

	if (rows->json) {
		json_init(&json, &sink, false);
		json_string(&json, text);
	} else if (!text[strcspn(text, ",\"\r\n")]) {
		str_add(out, text);
	} else {
		str_add_char(out, '"');
		for (; *text; text++) {
			if (*text == '"')
				str_add_char(out, '"');
			str_add_char(out, *text);
		}
		str_add_char(out, '"');
	}
}

static void cell_text(struct rows *rows, const char *name, const char *text)
{
	begin_cell(rows, name);
	if (!rows->heading)
		quote(rows, text, &rows->line);
}

static void cell_stack(struct rows *rows, const char *name, stack_id stack)
{
	struct str folded = { 0 };
	uint64_t *at;
	bool added;

	begin_cell(rows, name);
	if (rows->heading)
		return;
	at = map_put(&rows->stacks_at, stack, &added);
	if (added) {
		*at = rows->stacks.length + 1;
		if (stack)
			locations_fold(&rows->locations, stack, &folded);
		quote(rows, str_get(&folded), &rows->stacks);
		str_add_bytes(&rows->stacks, "", 1);
		str_fini(&folded);
	}
	str_add(&rows->line, rows->stacks.text + *at - 1);
}

static void cell_thread(struct rows *rows, const char *name, thread_id id)
{
	const struct trace_thread *thread = reader_thread(rows->reader, id);

	cell_u64(rows, name, thread != NULL, thread ? thread->tid : 0);
}

// ---- lines ----

static void end_line(struct rows *rows)
{
	str_add(&rows->line, rows->json ? "}\n" : "\n");
	sink_write(rows->sink, rows->line.text, rows->line.length);
	str_clear(&rows->line);
	rows->any = false;
}

static void cell_heap(struct rows *rows, heap_id id)
{
	const struct trace_heap *heap = id ? reader_heap(rows->reader, id) : NULL;

	if (!heap)
		cell_text(rows, "heap", "malloc");
	else if (heap->handle)
		cell_address(rows, "heap", true, heap->handle);
	else
		cell_text(rows, "heap", heap->name);
}

// What both kinds of lines have.
static void cells_of_block(struct rows *rows, const struct lives_block *block)
{
	const struct trace_process *process = reader_process(rows->reader, block->process);

	cell_address(rows, "address", true, block->address);
	cell_u64(rows, "size", block->origin == LIVES_BEGUN, block->size);
	cell_address(rows, "old_address", block->moved && block->old_address, block->old_address);
	cell_heap(rows, block->heap);
	cell_u64(rows, "process_id", true, block->process);
	cell_u64(rows, "pid", process != NULL, process ? process->pid : 0);
}

static void write_event(struct rows *rows, const struct lives_block *block, const char *op,
			const char *call, const struct lives_end *end)
{
	cell_u64(rows, "time_ns", true, end ? end->time_ns : block->time_ns);
	cell_text(rows, "op", op);
	cell_text(rows, "call", call);
	cells_of_block(rows, block);
	cell_thread(rows, "thread", end ? end->thread : block->thread);
	cell_stack(rows, "stack", end ? end->stack : block->stack);
	end_line(rows);
}

static const char *const causes[] = {
	[LIVES_FREE] = "free",       [LIVES_REALLOC] = "realloc", [LIVES_LOST] = "lost",
	[LIVES_DESTROY] = "destroy", [LIVES_EXIT] = "exit",       [LIVES_EXEC] = "exec",
	[LIVES_RUNNING] = "running",
};

static void write_begin(void *context, const struct lives_block *block)
{
	write_event(context, block, "alloc", block->moved ? "realloc" : "malloc", NULL);
}

static void write_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	if (end->cause < LIVES_EXIT)
		write_event(context, block, "free", causes[end->cause], end);
}

static const char *class_name(enum query_type type)
{
	return type == QUERY_AIFI   ? "AIFI"
	       : type == QUERY_AIFO ? "AIFO"
	       : type == QUERY_AOFI ? "AOFI"
				    : "AOFO";
}

static void write_life(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct rows *rows = context;

	cell_u64(rows, "begin_ns", true, block->time_ns);
	cell_u64(rows, "end_ns", end->cause != LIVES_RUNNING, end->time_ns);
	cell_text(rows, "end", causes[end->cause]);
	cell_text(rows, "class", class_name(events_class(rows->source, block, end)));
	cells_of_block(rows, block);
	cell_thread(rows, "thread", block->thread);
	cell_thread(rows, "end_thread", end->thread);
	cell_stack(rows, "stack", block->stack);
	end_line(rows);
}

// ---- the whole ----

static void write_heading(struct rows *rows)
{
	const struct lives_block block = { .moved = true, .old_address = 1 };
	const struct lives_end end = { 0 };

	rows->heading = true;
	if (rows->source->lifetimes)
		write_life(rows, &block, &end);
	else
		write_begin(rows, &block);
	rows->heading = false;
}

static bool write(const struct export_source *source, struct sink *sink, bool json)
{
	struct rows rows = {
		.source = source,
		.reader = source->asked->reader,
		.sink = sink,
		.json = json,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};
	const struct events_watcher watcher = {
		.begin = source->lifetimes ? NULL : write_begin,
		.end = source->lifetimes ? write_life : write_end,
		.context = &rows,
		.whole_lives = source->lifetimes,
		.process = TRACE_NONE,
	};

	if (!json)
		write_heading(&rows);
	events_read(source, &watcher);
	locations_fini(&rows.locations);
	map_fini(&rows.stacks_at);
	str_fini(&rows.stacks);
	str_fini(&rows.line);
	return true;
}

static bool write_csv(const struct export_source *source, struct sink *sink, struct err *err)
{
	(void)err;
	return write(source, sink, false);
}

static bool write_jsonl(const struct export_source *source, struct sink *sink, struct err *err)
{
	(void)err;
	return write(source, sink, true);
}

const struct export_format csv_format = {
	.name = "csv",
	.brief = "a line for each event, or for each block",
	.is_text = true,
	.has_lifetimes = true,
	.write = write_csv,
};

const struct export_format csv_jsonl_format = {
	.name = "jsonl",
	.brief = "the same as JSON, an object a line",
	.is_text = true,
	.has_lifetimes = true,
	.write = write_jsonl,
};
