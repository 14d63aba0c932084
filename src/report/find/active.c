// The blocks of one moment, by size, and whose they are.
//
// Millions may live, of which a few rows are shown. For example, with rows_max 10: rows are added
// until 4,106 (ROWS_MORE and 10) have come since the last sort; then they are sorted and the ten
// largest stay. From then on a block that comes after the tenth is counted, and no row is made for
// it. So there are never more than 4,116 rows.
#include "report/find/active.h"

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "report/table/query_write.h"
#include "report/table/stack_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct query_context_rules active_rules = { .about = QUERY_CONTEXT_MOMENT };

// glibc's stdio takes its buffers from malloc, here. Its debug information knows it by the name
// with which libc calls itself.
static const char *const stdio_functions[] = { "_IO_file_doallocate", "__GI__IO_file_doallocate" };

// For each stack whether stdio is in it.
enum { STDIO_UNKNOWN, STDIO_NO, STDIO_YES };

enum { ROWS_MORE = 4096 }; // than are shown, before they are sorted

SORT_ORDER(largest_first, struct active_row, SORT_FALLS(size), SORT_RISES(process),
	   SORT_RISES(address), SORT_RISES(heap))

// So many rows as are asked for are known that come before it.
static bool comes_too_late(const struct active *active, const struct active_row *row)
{
	uint64_t most = active->options->rows_max;

	ASSERT(active->sorted <= active->kept);
	return most && active->sorted >= most && largest_first(row, &active->rows[most - 1]) > 0;
}

static void sort_rows(struct active *active)
{
	uint64_t most = active->options->rows_max;

	if (active->kept)
		qsort(active->rows, active->kept, sizeof *active->rows, largest_first);
	if (most && active->kept > most)
		active->kept = (size_t)most;
	active->sorted = active->kept;
	ASSERT(active->kept <= active->count);
}

// Of millions of blocks a few are shown: now and then what cannot be among them goes.
static void add_row(struct active *active, const struct active_row *row)
{
	size_t fresh = active->kept - active->sorted;

	ASSERT(active->sorted <= active->kept);
	if (row->size < active->options->bytes_min)
		return;
	active->count++;
	if (comes_too_late(active, row))
		return;
	if (active->options->rows_max && fresh >= ROWS_MORE &&
	    fresh - ROWS_MORE >= active->options->rows_max)
		sort_rows(active);
	*MEM_ADD(active->rows, active->kept, active->capacity) = *row;
}

// Whether it is glibc's function that takes the buffer of a stream: such a block is stdio's, and
// not its caller's.
static bool frame_is_stdio(const struct query_context *asked, frame_id frame)
{
	size_t count;
	const struct symbol *symbols = names_find(asked->names, frame, &count);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < sizeof stdio_functions / sizeof *stdio_functions; k++)
			if (symbols[i].function &&
			    strcmp(symbols[i].function, stdio_functions[k]) == 0)
				return true;
	return false;
}

// Walks up to the first stack that is known, and leaves an answer at all that were passed.
static bool is_stdio(const struct query_context *asked, uint8_t *known, stack_id stack)
{
	uint32_t count = reader_stacks_count(asked->reader);
	uint8_t answer = STDIO_NO;
	stack_id at = stack;

	while (at && at < count) {
		const struct trace_stack *node = reader_stack(asked->reader, at);

		if (known[at] != STDIO_UNKNOWN) {
			answer = known[at];
			break;
		}
		if (frame_is_stdio(asked, node->frame)) {
			answer = STDIO_YES;
			break;
		}
		// Each stack is passed once in all: 700,000 stacks of depth 40 are 700,000 steps,
		// since a walk stops at the first that is known.
		at = node->parent < at ? node->parent : 0;
	}
	for (stack_id passed = stack; passed && passed < count && passed != at;) {
		stack_id parent = reader_stack(asked->reader, passed)->parent;

		known[passed] = answer;
		passed = parent < passed ? parent : 0;
	}
	if (at && at < count)
		known[at] = answer;
	return answer == STDIO_YES;
}

// Whether the blocks of that thread are those that the process had when it was attached to. The
// thread that they are of is none of the process's.
static bool is_before(const struct reader *reader, process_id process, thread_id thread)
{
	const struct trace_thread *who = reader_thread(reader, thread);

	return reader_process(reader, process)->start == TRACE_START_ATTACH && who && who->tid == 0;
}

// What one walk through the blocks of a process needs. `now` is ns, and `stdio` by stack.
struct adding {
	struct active *active;
	process_id process;
	uint8_t *stdio;
	uint64_t now;
};

// Whose it is, is found only for rows that are kept: it names frames and looks for the mapping.
static void add_block(void *context, const struct present_block *block)
{
	const struct adding *adding = context;
	struct active *active = adding->active;
	const struct query_context *asked = active->asked;
	const struct space *space = present_space(asked->present);
	const struct range *range;
	// Parts of other blocks: a layer of its own.
	bool pool = reader_heap_is_pool(reader_heap(asked->reader, block->heap));
	struct heap_amount *amount = pool ? &active->pools : &active->heap;
	struct active_row row = {
		.address = block->address,
		.size = block->size,
		.age_ns = adding->now > block->time_ns ? adding->now - block->time_ns : 0,
		.owner = "malloc",
		.process = adding->process,
		.thread = block->thread,
		.stack = block->stack,
		.heap = block->heap,
		.before = is_before(asked->reader, adding->process, block->thread),
	};

	if (!block->selected || block->inherited)
		return;
	amount->count++;
	amount->bytes += block->size;
	if (block->size < active->options->bytes_min)
		return;
	if (comes_too_late(active, &row)) {
		active->count++;
		return;
	}
	range = ranges_find(space_ranges(space, adding->process), block->address);
	if (pool)
		row.owner = "pool";
	else if (is_stdio(asked, adding->stdio, block->stack))
		row.owner = "stdio";
	else if (range)
		row.owner = space_owner_word(space_owner(space, range));
	add_row(active, &row);
}

// Ages of blocks that came without dates (dated_late): those of the rows that are left.
static void date_rows(struct active *active)
{
	const struct present *present = active->asked->present;
	struct present_block *blocks = mem_alloc(active->kept, sizeof *blocks);

	for (size_t i = 0; i < active->kept; i++)
		blocks[i] = (struct present_block){ .address = active->rows[i].address,
						    .process = active->rows[i].process,
						    .time_ns = UINT64_MAX };
	present_date(present, blocks, active->kept);
	for (size_t i = 0; i < active->kept; i++) {
		struct active_row *row = &active->rows[i];
		uint64_t now = present_time(present, row->process);

		if (!row->vm && blocks[i].time_ns != UINT64_MAX)
			row->age_ns = now > blocks[i].time_ns ? now - blocks[i].time_ns : 0;
	}
	mem_free(blocks);
}

// A whole mapping: pieces side by side that one call made.
static void add_mapping(struct active *active, const struct active_row *row, enum space_owner owner)
{
	ASSERT(row->vm);
	if ((active->layers & QUERY_HEAP) && space_is_allocators(owner)) {
		active->left_out.count++;
		active->left_out.bytes += row->size;
		return;
	}
	active->vm.count++;
	active->vm.bytes += row->size;
	active->vm_committed += row->committed;
	add_row(active, row);
}

// What was mapped when the recording began has no thread, so a filter by threads leaves it out.
static bool mapping_selected(const struct active *active, const struct range *range)
{
	const struct query *query = &active->asked->selection.query;

	return range->owner != SPACE_TIDEMARK && !range->inherited &&
	       (query_has_thread(query, range->thread) || range->baseline) &&
	       (!query->threads || !range->baseline) &&
	       (!query->stack || query->stack(query->context, range->stack));
}

// Pieces of one call that lie side by side are one row: mprotect cuts a mapping into ranges, and a
// reader asks for what was mapped.
static void add_mappings(struct active *active, process_id process)
{
	const struct query_context *asked = active->asked;
	const struct query *query = &asked->selection.query;
	const struct space *space = present_space(asked->present);
	const struct ranges *ranges = space_ranges(space, process);
	uint64_t now = present_time(asked->present, process);
	bool attached = reader_process(asked->reader, process)->start == TRACE_START_ATTACH;
	const struct range *range;
	const struct range *next;
	uint64_t at = 0;

	ASSERT(process < reader_processes_count(asked->reader));
	while ((range = ranges_from(ranges, at))) {
		enum space_owner owner = space_owner(space, range);
		struct active_row row = {
			.address = range->start,
			.age_ns = now > range->time_ns ? now - range->time_ns : 0,
			.owner = space_owner_word(owner),
			.process = process,
			.thread = range->thread,
			.stack = range->stack,
			.file = range->file,
			.protection = range->protection,
			.vm = true,
			.before = range->baseline && attached,
		};

		for (next = range; next && next->start == row.address + row.size &&
				   next->number == range->number && next->owner == range->owner &&
				   next->inherited == range->inherited;
		     next = ranges_find(ranges, next->end)) {
			row.size += next->end - next->start;
			if (space_commit(space, next))
				row.committed += next->end - next->start;
		}
		at = row.address + row.size;
		if (mapping_selected(active, range) && query_has_size(query, row.size))
			add_mapping(active, &row, owner);
	}
}

// Sums are of what is selected, whatever its size; rows of what has bytes_min.
bool active_init(struct active *active, struct query_context *asked,
		 const struct active_options *options, struct err *err)
{
	const struct query *query = &asked->selection.query;
	struct adding adding = { .active = active,
				 .stdio = mem_alloc(reader_stacks_count(asked->reader) + 1, 1) };

	*active = (struct active){
		.asked = asked,
		.options = options,
		.layers = query->layers ? query->layers : QUERY_HEAP | QUERY_VM,
	};
	// What becomes of a block, and which heap it is from, is asked of no mapping.
	if (query->lifetime_given || query->types || (query->heaps && !query->heaps_dropped))
		active->layers &= ~(unsigned)QUERY_VM;
	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		if (!query_has_process(query, id))
			continue;
		// Blocks that an exec took away were never freed; mappings are those of the end.
		adding.process = id;
		adding.now = present_time(asked->present, id);
		if (active->layers & QUERY_HEAP)
			present_each_block(asked->present, id, PRESENT_ALL, add_block, &adding);
		if ((active->layers & QUERY_VM) && !moment_view_passes_over(asked, id))
			add_mappings(active, id);
	}
	mem_free(adding.stdio);
	query_context_matched(asked, active->heap.count + active->pools.count + active->vm.count +
					     active->left_out.count);
	sort_rows(active);
	if (options->rows_max)
		date_rows(active);
	active->shown = active->kept;
	return present_ok(asked->present, err);
}

void active_fini(struct active *active)
{
	mem_free(active->rows);
	*active = (struct active){ 0 };
}

// ---- rows ----

static const char *heap_name(const struct active *active, const struct active_row *row)
{
	const struct trace_heap *heap = reader_heap(active->asked->reader, row->heap);

	return row->heap && heap ? heap->name : "malloc";
}

// What get_part gives: columns that need more than a field of the row.
enum part { LAYER, AGE, THREAD, HEAP, COMMITTED, PROTECTION, FILE_PATH, LIBRARY };

// What does not apply is unknown, and not 0 or an empty text: a heap's block has no protection, a
// mapping no heap.
static struct sheet_cell get_part(const struct sheet_at *at)
{
	const struct active *active = at->sheet->context;
	const struct reader *reader = active->asked->reader;
	const struct active_row *row = at->row;
	const struct trace_thread *thread = reader_thread(reader, row->thread);
	const struct trace_file *file = reader_file(reader, row->file);
	struct sheet_cell module;

	switch ((enum part)at->column->at) {
	case LAYER:
		return sheet_text(row->vm ? "vm" : "heap");
	case AGE:
		return sheet_u64(!row->before, row->age_ns);
	case THREAD:
		return sheet_u64(thread && !row->before, thread ? thread->tid : 0);
	case HEAP:
		return sheet_text(row->vm ? NULL : heap_name(active, row));
	case COMMITTED:
		return sheet_u64(row->vm, row->committed);
	case PROTECTION:
		return sheet_u64(row->vm, row->protection);
	case FILE_PATH:
		return sheet_text(row->vm && row->file && file ? file->path : NULL);
	default:
		module = sheet_site(&(struct sheet_at){
			at->sheet, row, &(struct sheet_column){ .at = SHEET_MODULE } });
		return sheet_text(module.unknown ? NULL : str_last_part(module.text));
	}
}

static struct sheet_site site_of(const struct sheet *sheet, const void *of)
{
	const struct active *active = sheet->context;
	const struct active_row *row = of;

	return (struct sheet_site){ active->asked, row->process, row->stack };
}

#define FIELD(member) SHEET_FIELD(struct active_row, member)
#define HEAP_COLUMN(flags)                                                                    \
	{                                                                                     \
		"heap", SHEET_TEXT, flags, get_part, HEAP, .meaning = "malloc, or whose heap" \
	}
static const struct sheet_column columns[] = {
	{ "layer", SHEET_TEXT, 0, get_part, LAYER, .meaning = "heap: a block; vm: a mapping" },
	{ "address", SHEET_HEX, 0, FIELD(address), .meaning = "where it begins",
	  .look = { 3, 16, PAPER_PLAIN, { "address" } } },
	{ "size", SHEET_BYTES, 0, FIELD(size),
	  .meaning = "as requested; of a mapping all its pages",
	  .look = { 1, 10, PAPER_BOLD, { "size" } } },
	{ "age_ns", SHEET_TIME, 0, get_part, AGE,
	  .meaning = "how long it has been there; none: since before the process was attached to",
	  .look = { 2, 12, PAPER_PLAIN, { "age" } }, .absent = "before" },
	{ "owner", SHEET_TEXT, 0, FIELD(owner), .meaning = "whose memory it is in",
	  .look = { 4, -15, PAPER_PLAIN, { "owner" } } },
	{ "process", SHEET_NUMBER, SHEET_ZERO, sheet_site, SHEET_PROCESS,
	  .meaning = "the process's pid" },
	{ "process_id", SHEET_NUMBER, SHEET_PROGRAMS, sheet_site, SHEET_PROCESS_ID,
	  .meaning = "its place in the list" },
	{ "thread", SHEET_NUMBER, SHEET_ZERO, get_part, THREAD,
	  .meaning = "the thread that asked for it" },
	HEAP_COLUMN(SHEET_FLAT_ONLY),
	{ "committed", SHEET_BYTES, SHEET_ZERO, get_part, COMMITTED,
	  .meaning = "of a mapping: what counts" },
	{ "protection", SHEET_NUMBER, SHEET_JSON_ONLY, get_part, PROTECTION,
	  .meaning = "of a mapping" },
	{ "mapped_file", SHEET_TEXT, SHEET_JSON_ONLY, get_part, FILE_PATH,
	  .meaning = "of a mapping" },
	HEAP_COLUMN(SHEET_JSON_ONLY),
	{ "function", SHEET_TEXT, 0, sheet_site, SHEET_FUNCTION,
	  .meaning = "the function that asked for it" },
	{ "library", SHEET_TEXT, 0, get_part, LIBRARY, .meaning = "the file that has its code" },
	{ .kind = SHEET_OBJECT, .flags = SHEET_JSON_ONLY, .json = sheet_write_frames },
};

// What is smaller than --min-bytes is not counted as left out, since no limit of rows keeps it
// away; JSON counts it.
void active_rows(const struct active *active, struct sheet *sheet)
{
	sheet->context = active;
	sheet->site_of = site_of;
	sheet->left_out = active->count - active->shown;
	sheet_begin(sheet, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < active->shown; i++)
		sheet_row(sheet, &active->rows[i]);
	sheet_end(sheet);
}

// ---- for people ----

// Three layers that do not add up: blocks, blocks of pools, which are parts of others, and
// mappings.
static void write_totals(const struct active *active, struct paper *paper)
{
	if (active->layers & QUERY_HEAP) {
		paper_text(paper, PAPER_PLAIN, "  heap      ");
		paper_field(paper, PAPER_BOLD, STR_BYTES(active->heap.bytes), 11, true);
		paper_format(paper, PAPER_PLAIN, "  in %s block%s\n", STR_COUNT(active->heap.count),
			     paper_plural(active->heap.count));
	}
	if (active->pools.count) {
		paper_text(paper, PAPER_PLAIN, "  pools     ");
		paper_field(paper, PAPER_BOLD, STR_BYTES(active->pools.bytes), 11, true);
		paper_format(paper, PAPER_PLAIN,
			     "  in %s block%s, parts of what the pools have from malloc or mmap\n",
			     STR_COUNT(active->pools.count), paper_plural(active->pools.count));
	}
	if (active->layers & QUERY_VM) {
		paper_text(paper, PAPER_PLAIN, "  mappings  ");
		paper_field(paper, PAPER_BOLD, STR_BYTES(active->vm.bytes), 11, true);
		paper_format(paper, PAPER_PLAIN, "  in %s mapping%s, %s of it committed\n",
			     STR_COUNT(active->vm.count), paper_plural(active->vm.count),
			     STR_BYTES(active->vm_committed));
	}
	if (active->left_out.count)
		paper_format(paper, PAPER_DIM,
			     "  %-10s%11s  in %s mapping%s of malloc, where the blocks are, left "
			     "out here (--layer vm)\n",
			     "", STR_BYTES(active->left_out.bytes),
			     STR_COUNT(active->left_out.count),
			     paper_plural(active->left_out.count));
	sink_text(paper->sink, "\n");
}

// A mapping without a stack is called after its file.
static void name_file(struct sheet *sheet, const void *of)
{
	const struct active *active = sheet->context;
	const struct active_row *row = of;
	const struct trace_file *file = reader_file(active->asked->reader, row->file);

	sheet->instead = row->stack == 0 && row->file && file ? file->path : NULL;
}

static uint64_t rows_count(const struct active *active)
{
	return active->heap.count + active->pools.count + active->vm.count;
}

// What is not listed: behind the last row, and smaller than --min-bytes. With --min-bytes it does
// not advise -n 0, since rows that are too small stay away even then.
static void write_rest(const struct active *active, struct paper *paper)
{
	uint64_t rest = rows_count(active) - active->shown;
	uint64_t bytes = active->heap.bytes + active->pools.bytes + active->vm.bytes;

	ASSERT(active->shown <= active->kept);
	if (rest == 0)
		return;
	for (size_t i = 0; i < active->shown; i++)
		bytes -= active->rows[i].size;
	paper_field(paper, PAPER_DIM, STR_BYTES(bytes), 10, true);
	paper_format(paper, PAPER_DIM, "  in %s more%s\n", STR_COUNT(rest),
		     active->options->bytes_min ? "" : " (-n 0 shows all)");
}

// Figures take 53 columns (the looks above), and four callers of each row are shown.
void active_write_text(const struct active *active, struct paper *paper)
{
	const struct query_context *asked = active->asked;
	struct stack_text stacks =
		query_write_stacks(asked, paper, 53, 4, active->options->all_frames);
	struct sheet sheet = sheet_in_text(&stacks, 0);

	moment_view_write_headline(asked, paper, TRACE_NONE);
	write_totals(active, paper);
	sheet.who = "who asked for it";
	sheet.above = name_file;
	if (active->shown)
		active_rows(active, &sheet);
	write_rest(active, paper);
	sink_text(paper->sink, "\n");
	query_write_last(asked, &stacks);
}

// ---- for programs ----

static void write_amount(struct json *json, const char *key, const struct heap_amount *amount)
{
	json_kv_object(json, key);
	json_kv_u64(json, "count", amount->count);
	json_kv_u64(json, "bytes", amount->bytes);
	json_object_end(json);
}

// The amounts are of all that is selected, whatever is listed. mappings_of_malloc are in none of
// the others: their bytes are those that the blocks are in.
void active_write_json(const struct active *active, struct sink *sink)
{
	struct sheet rows;
	struct json json;

	json_begin(&json, sink, true, "tidemark-active-1");
	json_kv_bool(&json, "complete", active->asked->complete);
	query_write_warnings(active->asked, &json);
	json_kv_u64(&json, "at_ns", moment_view_time(active->asked));
	json_kv_bool(&json, "at_exit", active->asked->at_exit);
	write_amount(&json, "heap", &active->heap);
	write_amount(&json, "pools", &active->pools);
	json_kv_object(&json, "vm");
	json_kv_u64(&json, "count", active->vm.count);
	json_kv_u64(&json, "bytes", active->vm.bytes);
	json_kv_u64(&json, "committed", active->vm_committed);
	json_object_end(&json);
	json_kv_array(&json, "rows");
	rows = sheet_in_json(&json);
	active_rows(active, &rows);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", rows_count(active) - active->shown);
	write_amount(&json, "mappings_of_malloc", &active->left_out);
	query_write_end(active->asked, &json);
}
