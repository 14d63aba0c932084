// A row is put together column by column (put…), and end_row gives the batch away when it is full.
//
// For example, the table of stacks of a program in which main calls f, and both allocate: stack 1
// is main (parent 0), stack 2 is f with parent 1. Its two rows are
//
//     stack  parent  depth  frames end at    items
//       1      0       1         1           main
//       2      1       2         3           f main
//
// so the frames of a row are those from where the list of the row before ended, innermost first.
// Two runs number their stacks differently. What is equal in both is a stack's identity: a hash of
// its frames from the root on, once by code (build ID and offset) and once by names, which survive
// a new build.
#include "export/rowset.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/replay/weight.h"
#include "export/events.h"
#include "export/rowset_sites.h"
#include "report/report.h"
#include "trace/label.h"

#include <inttypes.h>
#include <string.h>

// A stack or a frame wherever it is met: by its code, and by its names.
struct identity {
	uint64_t code, names;
};

// A sample of resident memory, kept while the events are read: there are a few in a second.
struct rowset_rss {
	process_id process;
	uint64_t time_ns, bytes;
};

struct rowset {
	const struct export_source *source;
	const struct reader *reader;
	struct names *names;
	const struct rowset_receiver *receiver;
	struct err *err;
	bool good;
	struct string_table texts;
	struct rowset_batch batch;
	unsigned column; // the next one of the row that is being put together
	uint32_t trace;  // in `texts`, as are these:
	uint32_t layer;
	uint32_t kinds[TRACE_BEFORE + 1];
	uint32_t causes[LIVES_RUNNING + 1];
	uint32_t *heaps; // by heap, + 1; 0: not known yet
	size_t heaps_count;
	struct rowset_rss *rss;
	size_t rss_count, rss_capacity;
	bool lives_read; // so that these are known: resident memory, and
	struct rowset_sites sites;
	struct rowset_sites *adding;          // which of them a row of an allocation is added to
	struct identity *of_frame, *of_stack; // by number: so many are known
	uint32_t of_frame_count, of_stack_count;
	bool cut;      // something is missing that the trace does not say
	uint32_t from; // the first number of a table that is wanted
};

// A trace that was made from text may have no id: then it is what is in it.
// The first half is 0, which a random ID does not have, so that the two kinds can be distinguished.
static void make_name(const struct reader *reader, char out[static 33])
{
	const struct reader_stats *stats = reader_stats(reader);
	// The same trace gives the same name each time, so that pushing it again finds it.
	const uint64_t numbers[] = {
		index_set_hash_text(reader_info(reader)->command),
		reader_bytes(reader),
		stats->events,
		stats->last_ns,
		reader_stacks_count(reader),
	};

	snprintf(out, 33, "%016x%016" PRIx64, 0,
		 index_set_hash(numbers, sizeof numbers / sizeof *numbers));
}

void rowset_trace_name(const struct reader *reader, char out[static 33])
{
	const uint8_t *id = reader_info(reader)->recording_id;
	bool known = false;

	for (unsigned i = 0; i < 16; i++) {
		snprintf(out + 2 * i, 3, "%02x", id[i]);
		known = known || id[i];
	}
	if (!known)
		make_name(reader, out);
}

// ---- cells ----

// The number of a text.
// What is not UTF-8 is made so: a table's texts are UTF-8, and names come from anywhere.
static uint32_t number_of(struct rowset *rows, const char *text)
{
	struct str clean = { 0 };
	uint32_t number;

	// NULL is a text that is not known, and is written as the empty one.
	if (text)
		str_add_utf8(&clean, text, strlen(text));
	number = string_table_add(&rows->texts, str_get(&clean));
	str_fini(&clean);
	return number;
}

// The next cell of the row. Columns are in the order of rowset_tables.c.
static inline void put(struct rowset *rows, uint64_t value)
{
	rows->batch.values[rows->column++][rows->batch.count] = value;
}

static inline void put_double(struct rowset *rows, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	put(rows, bits);
}

static void put_text(struct rowset *rows, const char *text)
{
	put(rows, number_of(rows, text));
}

static void put_hex(struct rowset *rows, const uint8_t *bytes, size_t length)
{
	struct str text = { 0 };

	str_add_hex(&text, bytes, length);
	put_text(rows, str_get(&text));
	str_fini(&text);
}

// After a failure batches are dropped, and the receiver is asked no more.
static void flush(struct rowset *rows)
{
	// A batch of 0 rows is not handed on: a writer would make a group of nothing of it.
	if (rows->batch.count > 0 && rows->good)
		rows->good =
			rows->receiver->batch(rows->receiver->context, &rows->batch, rows->err);
	rows->batch.count = rows->batch.items_count = 0;
}

static inline void end_row(struct rowset *rows)
{
	ASSERT(rows->column <= ROWSET_COLUMNS_MAX && rows->batch.count < ROWSET_BATCH);
	rows->column = 0;
	if (++rows->batch.count == ROWSET_BATCH)
		flush(rows);
}

// ---- allocations ----

static uint32_t heap_name(struct rowset *rows, heap_id id)
{
	const struct trace_heap *heap = id ? reader_heap(rows->reader, id) : NULL;
	char text[READER_HEAP_TEXT];

	return number_of(rows, reader_heap_name(heap, text));
}

// Numbers are kept with 1 added, so that 0, which memset writes, is a heap without one yet: a name
// is looked up once for a heap and not for each of its allocations.
static uint32_t heap_of(struct rowset *rows, heap_id id)
{
	if (id >= rows->heaps_count) {
		size_t count = id + 1;

		rows->heaps = mem_resize(rows->heaps, count, sizeof *rows->heaps);
		memset(rows->heaps + rows->heaps_count, 0,
		       (count - rows->heaps_count) * sizeof *rows->heaps);
		rows->heaps_count = count;
	}
	if (!rows->heaps[id])
		rows->heaps[id] = heap_name(rows, id) + 1;
	return rows->heaps[id] - 1;
}

// How many allocations, and bytes, this one stands for. Without sampling that is 1 and its size.
static void put_weight(struct rowset *rows, stack_id stack, uint64_t size)
{
	uint64_t mean_bytes = reader_sample_bytes(rows->reader, stack);
	struct weight weight;

	if (!mean_bytes) {
		put_double(rows, 1);
		put_double(rows, (double)size);
		return;
	}
	weight = weight_of(mean_bytes, size);
	put_double(rows, (double)weight.count / WEIGHT_UNIT);
	put_double(rows, (double)weight.bytes / WEIGHT_UNIT);
}

// Whether the block was there when what is told begins: before an attached process was recorded, or
// before the window that the trace was trimmed to. `sites` counts so, too.
static bool was_before(const struct rowset *rows, const struct lives_block *block)
{
	return block->kind == TRACE_BEFORE || block->number < reader_info(rows->reader)->trimmed;
}

// One that was there before the recording has the time 0, and the size that the allocator says may
// be used of it, which it says of no other; one that still lives, or ended with its
// process, has no time at which it was freed (the largest number).
static void put_allocation(void *context, const struct lives_block *block,
			   const struct lives_end *end)
{
	struct rowset *rows = context;

	ASSERT(rows->column == 0);
	rowset_sites_add(rows->adding, block, end);
	put(rows, rows->trace);
	put(rows, block->process);
	put(rows, block->thread);
	put(rows, rows->layer);
	put(rows, heap_of(rows, block->heap));
	put(rows, rows->kinds[was_before(rows, block)      ? TRACE_BEFORE
			      : block->kind < TRACE_BEFORE ? block->kind
							   : TRACE_NONE_KIND]);
	put(rows, block->address);
	put(rows, block->size);
	put(rows, block->kind == TRACE_BEFORE ? block->size : 0);
	put(rows, block->kind == TRACE_BEFORE ? 0 : block->time_ns);
	put(rows, end->cause < LIVES_EXIT ? end->time_ns : UINT64_MAX);
	put(rows, end->cause < LIVES_RUNNING ? end->time_ns : UINT64_MAX);
	put(rows, block->number);
	put(rows, end->number);
	put(rows, rows->causes[end->cause]);
	put(rows, end->thread);
	put(rows, block->stack);
	put(rows, end->stack);
	put_weight(rows, block->stack, block->size);
	end_row(rows);
}

// Words that come in each row have their numbers from the beginning.
static void name_words(struct rowset *rows)
{
	static const char *const kinds[] = {
		[TRACE_NONE_KIND] = "malloc", [TRACE_MALLOC] = "malloc",
		[TRACE_CALLOC] = "calloc",    [TRACE_ALIGNED] = "aligned",
		[TRACE_REALLOC] = "realloc",  [TRACE_REALLOC_ALLOC] = "realloc",
		[TRACE_HEAP_ALLOC] = "heap",  [TRACE_BEFORE] = "before",
	};
	static const char *const causes[] = {
		[LIVES_FREE] = "free",       [LIVES_REALLOC] = "realloc", [LIVES_LOST] = "lost",
		[LIVES_DESTROY] = "destroy", [LIVES_EXIT] = "exit",       [LIVES_EXEC] = "exec",
		[LIVES_RUNNING] = "running",
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		rows->kinds[i] = kinds[i] ? number_of(rows, kinds[i]) : 0;
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
		rows->causes[i] = number_of(rows, causes[i]);
	rows->layer = number_of(rows, "heap");
}

static void keep_rss(void *context, const struct trace_note *note)
{
	struct rowset *rows = context;

	if (note->kind != TRACE_NOTE_RSS)
		return;
	*MEM_ADD(rows->rss, rows->rss_count, rows->rss_capacity) =
		(struct rowset_rss){ note->process, note->time_ns, note->value };
}

// Events are read once for all tables: what the small ones need of them is collected beside.
static void read_lives(struct rowset *rows,
		       void (*end)(void *, const struct lives_block *, const struct lives_end *))
{
	const struct events_watcher watcher = {
		.end = end,
		.note = keep_rss,
		.context = rows,
		.whole_lives = true,
		.process = TRACE_NONE,
	};

	if (!events_read(rows->source, &watcher, rows->err))
		rows->good = false;
	rows->lives_read = true;
}

static void write_allocations(struct rowset *rows)
{
	read_lives(rows, put_allocation);
}

// ---- stacks and frames ----

static uint64_t text_hash(const char *text)
{
	return index_set_hash_text(text ? text : "");
}

static uint64_t mix(uint64_t before, uint64_t value)
{
	return index_set_hash((const uint64_t[]){ before, value }, 2);
}

// The module by its build ID, since a path says nothing of what is in the file; by its path where
// it has none.
static uint64_t code_of(const struct trace_module *module, uint64_t offset)
{
	uint64_t hash = 0;

	if (!module)
		return mix(0, offset);
	if (!module->build_id_length)
		return mix(text_hash(module->path), offset);
	// Byte by byte: build-ids are mostly 20 bytes, and it is done once for a frame.
	for (unsigned i = 0; i < module->build_id_length; i++)
		hash = mix(hash, module->build_id[i]);
	return mix(hash, offset);
}

// An address that no name is known of is its offset.
static uint64_t names_of(struct names *names, const struct symbol *symbols, size_t count)
{
	struct str place = { 0 };
	uint64_t hash = 0;

	// Inlined functions from the outermost in. Files and lines are left out: they move when a
	// line is added above.
	while (count-- > 0) {
		str_clear(&place);
		names_add_place(names, &symbols[count], &place);
		hash = mix(hash, text_hash(str_get(&place)));
		hash = mix(hash, symbols[count].function ? text_hash(symbols[count].function)
							 : symbols[count].offset);
	}
	str_fini(&place);
	return hash;
}

// By its code a frame is the same in two traces if its file is; by its names also in another build,
// where its address is another one.
static struct identity identity_of(struct rowset *rows, frame_id id)
{
	const struct trace_frame *frame = reader_frame(rows->reader, id);
	const struct trace_module *module = frame ? reader_module(rows->reader, frame->module)
						  : NULL;
	const struct symbol *symbols;
	uint64_t names;
	size_t count;

	ASSERT(id < reader_frames_count(rows->reader));
	if (!frame)
		return (struct identity){ 0 };
	symbols = names_find(rows->names, id, &count);
	names = names_of(rows->names, symbols, count);
	// The code of a script is its line.
	return (struct identity){
		.code = names_is_script(symbols)
				? mix(names, symbols->line)
				: code_of(frame->module ? module : NULL, symbols[0].offset),
		.names = names,
	};
}

// A parent has a smaller number than its child. Where a damaged trace says otherwise the stack is
// cut there, and the loop ends in any case.
static uint64_t put_frames(struct rowset *rows, stack_id id)
{
	struct rowset_batch *batch = &rows->batch;
	uint64_t depth = 0;

	while (id) {
		const struct trace_stack *stack = reader_stack(rows->reader, id);

		if (!stack)
			break;
		*MEM_ADD(batch->items, batch->items_count, batch->items_capacity) = stack->frame;
		depth++;
		id = stack->parent < id ? stack->parent : 0;
	}
	return depth;
}

// The function and the module that a person would name for this stack: wrappers are passed by.
static void put_face(struct rowset *rows, stack_id id)
{
	struct str text = { 0 };

	names_add_function(rows->names, id, false, &text);
	put_text(rows, str_get(&text));
	str_clear(&text);
	names_add_module(rows->names, id, false, &text);
	put_text(rows, str_get(&text));
	str_fini(&text);
}

// Those that were met since the last time, too. Parents come before their children, so one pass
// upwards by number has each parent's identity when a child needs it.
static void identify_stacks(struct rowset *rows)
{
	uint32_t count = reader_stacks_count(rows->reader);
	uint32_t frames = reader_frames_count(rows->reader);
	struct identity *of_frame, *of_stack;

	of_frame = rows->of_frame =
		mem_resize(rows->of_frame, frames + (size_t)1, sizeof *of_frame);
	of_stack = rows->of_stack = mem_resize(rows->of_stack, count + (size_t)1, sizeof *of_stack);
	of_frame[0] = of_stack[0] = (struct identity){ 0 };
	// For example after a second call with 10 more stacks only those are done: a live push asks
	// once for each piece.
	for (frame_id id = rows->of_frame_count; id < frames; id++)
		of_frame[id] = identity_of(rows, id);
	for (stack_id id = rows->of_stack_count; id < count; id++) {
		const struct trace_stack *stack = reader_stack(rows->reader, id);
		frame_id frame = stack->frame < frames ? stack->frame : 0;
		stack_id parent = stack->parent < id ? stack->parent : 0;

		of_stack[id].code = mix(of_stack[parent].code, of_frame[frame].code);
		of_stack[id].names = mix(of_stack[parent].names, of_frame[frame].names);
	}
	rows->of_frame_count = frames > 1 ? frames : 1;
	rows->of_stack_count = count > 1 ? count : 1;
}

static void write_stacks(struct rowset *rows)
{
	uint32_t count = reader_stacks_count(rows->reader);

	identify_stacks(rows);
	for (stack_id id = rows->from; id < count && rows->good; id++) {
		const struct trace_stack *stack = reader_stack(rows->reader, id);
		stack_id parent = stack->parent < id ? stack->parent : 0;

		put(rows, rows->trace);
		put(rows, id);
		put(rows, parent);
		put(rows, put_frames(rows, id));
		put(rows, rows->batch.items_count);
		put_face(rows, id);
		put(rows, rows->of_stack[id].code);
		put(rows, rows->of_stack[id].names);
		put(rows, (stack->flags & TRACE_STACK_INCOMPLETE) != 0);
		end_row(rows);
	}
}

static void put_function(struct rowset *rows, const struct symbol *symbol)
{
	struct str text = { 0 };

	if (symbol->function)
		str_add(&text, symbol->function);
	else
		str_format(&text, "%s+0x%" PRIx64,
			   symbol->module && symbol->module[0] ? str_last_part(symbol->module)
							       : "(no file)",
			   symbol->offset);
	put_text(rows, str_get(&text));
	str_fini(&text);
}

// Inlined functions are rows of one frame, numbered from the innermost.
static void put_frame(struct rowset *rows, const struct trace_frame *frame, size_t position,
		      const struct symbol *symbol)
{
	const struct trace_module *module =
		frame->module ? reader_module(rows->reader, frame->module) : NULL;

	put(rows, rows->trace);
	put(rows, frame->id);
	put(rows, position);
	put(rows, symbol->inlined);
	put_function(rows, symbol);
	put_text(rows, symbol->file);
	put(rows, symbol->line);
	put_text(rows, symbol->module);
	put_hex(rows, module ? module->build_id : NULL, module ? module->build_id_length : 0);
	put(rows, symbol->offset);
	end_row(rows);
}

static void write_frames(struct rowset *rows)
{
	for (frame_id id = rows->from; id < reader_frames_count(rows->reader) && rows->good; id++) {
		const struct trace_frame *frame = reader_frame(rows->reader, id);
		size_t count;
		const struct symbol *symbols = names_find(rows->names, id, &count);

		for (size_t i = 0; i < count; i++)
			put_frame(rows, frame, i, &symbols[i]);
	}
}

// ---- the small ones ----

// The words of a command are joined by spaces as they are: not for a shell to read again.
static void write_processes(struct rowset *rows)
{
	for (process_id id = 0; id < reader_processes_count(rows->reader); id++) {
		const struct trace_process *process = reader_process(rows->reader, id);
		struct str command = { 0 };
		char exit[32];

		for (uint32_t i = 0; i < process->args_count; i++)
			str_format(&command, "%s%s", i ? " " : "", process->args[i]);
		put(rows, rows->trace);
		put(rows, id);
		put(rows, process->parent);
		put(rows, process->pid);
		put(rows, process->generation);
		put(rows, process->bits);
		put_text(rows, process->exe);
		put_text(rows, str_get(&command));
		put(rows, process->began_ns);
		put(rows, process->ended_ns);
		put_text(rows, report_exit(process, exit));
		put(rows, process->rss_max_bytes);
		end_row(rows);
		str_fini(&command);
	}
}

static void write_threads(struct rowset *rows)
{
	for (thread_id id = 0; id < reader_threads_count(rows->reader); id++) {
		const struct trace_thread *thread = reader_thread(rows->reader, id);

		put(rows, rows->trace);
		put(rows, id);
		put(rows, thread->process);
		put(rows, thread->tid);
		put_text(rows, thread->name);
		end_row(rows);
	}
}

static void write_modules(struct rowset *rows)
{
	for (module_id id = rows->from; id < reader_modules_count(rows->reader); id++) {
		const struct trace_module *module = reader_module(rows->reader, id);

		put(rows, rows->trace);
		put(rows, id);
		put(rows, module->process);
		put_text(rows, module->path);
		put_hex(rows, module->build_id, module->build_id_length);
		put(rows, module->start);
		put(rows, module->end);
		put(rows, module->bias);
		end_row(rows);
	}
}

// Marks count from 0 in the list, and `from` from 1.
static void write_marks(struct rowset *rows)
{
	size_t count;
	const struct trace_mark *marks = reader_marks(rows->reader, &count);

	for (size_t i = rows->from - 1; i < count; i++) {
		put(rows, rows->trace);
		put(rows, marks[i].number);
		put(rows, marks[i].time_ns);
		put(rows, marks[i].process);
		put(rows, marks[i].thread);
		put_text(rows, marks[i].name);
		end_row(rows);
	}
}

static void add_to_site(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct rowset *rows = context;

	rowset_sites_add(rows->adding, block, end);
}

// Unless allocations were written, or another small table was.
static void need_lives(struct rowset *rows)
{
	if (!rows->lives_read)
		read_lives(rows, add_to_site);
}

static uint64_t names_identity(void *context, stack_id stack)
{
	const struct rowset *rows = context;

	// Of stacks that were met since identify_stacks there is none yet.
	return stack < rows->of_stack_count ? rows->of_stack[stack].names : 0;
}

// A later one may be asked for with more of them.
static void write_sites(struct rowset *rows)
{
	struct rowset_sites sites;

	need_lives(rows);
	identify_stacks(rows);
	// The sums by stack go on, for who pushes while the trace grows; joined is the copy.
	sites = rowset_sites_copy(rows->adding);
	rowset_sites_join(&sites, names_identity, rows);
	for (size_t i = 0; i < sites.count && rows->good; i++) {
		const struct rowset_site *site = &sites.sites[i];

		put(rows, rows->trace);
		put(rows, site->identity);
		put(rows, site->stack);
		put_face(rows, site->stack);
		put_double(rows, (double)site->count / WEIGHT_UNIT);
		put_double(rows, (double)site->bytes / WEIGHT_UNIT);
		put_double(rows, (double)site->kept_count / WEIGHT_UNIT);
		put_double(rows, (double)site->kept_bytes / WEIGHT_UNIT);
		put_double(rows, (double)site->byte_ns / WEIGHT_UNIT / 1e9);
		end_row(rows);
	}
	rowset_sites_fini(&sites);
}

static void write_rss(struct rowset *rows)
{
	need_lives(rows);
	for (size_t i = 0; i < rows->rss_count; i++) {
		put(rows, rows->trace);
		put(rows, rows->rss[i].process);
		put(rows, rows->rss[i].time_ns);
		put(rows, rows->rss[i].bytes);
		end_row(rows);
	}
	// What was given is not given again, to who asks for the table each time that more was
	// read.
	rows->rss_count = 0;
}

static void write_labels(struct rowset *rows)
{
	const char *text = reader_info(rows->reader)->labels;
	struct label label;

	while (label_next(&text, &label)) {
		char *name = mem_copy_bytes(label.name, label.name_length);
		char *value = mem_copy_bytes(label.value, label.value_length);

		put(rows, rows->trace);
		put_text(rows, name);
		put_text(rows, value);
		end_row(rows);
		MEM_FREE(name, value);
	}
}

// The one row that says what the run was. A trace that is cut, or of which rows were left out, is
// not complete.
static void write_runs(struct rowset *rows)
{
	const struct trace_info *info = reader_info(rows->reader);
	const struct trace_end *end = reader_end(rows->reader);

	put(rows, rows->trace);
	put(rows, ROWSET_SCHEMA_VERSION);
	put_text(rows, info->command);
	put_text(rows, info->directory);
	put_text(rows, info->host);
	put_text(rows, info->tool);
	put_text(rows, info->options);
	put(rows, info->began_unix_ns);
	put(rows, moment_duration(rows->reader) - rows->sites.began_ns);
	put(rows, info->tick_ns);
	// At times: as an older reader of the trace has it.
	put(rows,
	    info->sample_bytes || !reader_is_estimated(rows->reader) ? info->sample_bytes : 1);
	put(rows, end ? end->events_lost : 0);
	put(rows, reader_complete(rows->reader) && !rows->cut);
	end_row(rows);
}

// ---- the whole ----

static void (*const writers[])(struct rowset *rows) = {
	[ROWSET_ALLOCATIONS] = write_allocations,
	[ROWSET_STACKS] = write_stacks,
	[ROWSET_FRAMES] = write_frames,
	[ROWSET_PROCESSES] = write_processes,
	[ROWSET_THREADS] = write_threads,
	[ROWSET_MODULES] = write_modules,
	[ROWSET_MARKS] = write_marks,
	[ROWSET_RSS] = write_rss,
	[ROWSET_SITES] = write_sites,
	[ROWSET_LABELS] = write_labels,
	[ROWSET_RUNS] = write_runs,
};

static bool write_table(struct rowset *rows, enum rowset_table_id id)
{
	const struct rowset_receiver *receiver = rows->receiver;
	const struct rowset_table *table = &rowset_tables[id];

	ASSERT(rows->column == 0 && rows->batch.count == 0);
	rows->batch.table = table;
	// In order: begin, batches of up to ROWSET_BATCH rows, end. A table without rows has a
	// begin and an end.
	rows->good = receiver->begin(receiver->context, table, rows->err);
	if (rows->good)
		writers[id](rows);
	flush(rows);
	return rows->good && (!receiver->end || receiver->end(receiver->context, table, rows->err));
}

// Stacks and frames count from 1: 0 is none, whose identities are 0.
struct rowset *rowset_new(const struct export_source *source,
			  const struct rowset_receiver *receiver)
{
	struct rowset *rows = mem_alloc(1, sizeof *rows);
	char trace[33];

	rows->receiver = receiver;
	rows->good = true;
	rows->from = 1;
	rows->of_frame_count = rows->of_stack_count = 1;
	rowset_source(rows, source);
	rowset_trace_name(rows->reader, trace);
	rows->trace = number_of(rows, trace);
	rows->batch.texts = &rows->texts;
	rows->batch.table = &rowset_tables[ROWSET_ALLOCATIONS];
	rowset_sites_init(&rows->sites, rows->reader);
	rows->adding = &rows->sites;
	name_words(rows);
	for (unsigned i = 0; i < ROWSET_COLUMNS_MAX; i++)
		rows->batch.values[i] = mem_alloc(ROWSET_BATCH, sizeof *rows->batch.values[i]);
	return rows;
}

void rowset_free(struct rowset *rows)
{
	if (!rows)
		return;
	for (unsigned i = 0; i < ROWSET_COLUMNS_MAX; i++)
		mem_free(rows->batch.values[i]);
	MEM_FREE(rows->batch.items, rows->heaps, rows->rss, rows->of_frame, rows->of_stack);
	rowset_sites_fini(&rows->sites);
	string_table_fini(&rows->texts);
	mem_free(rows);
}

void rowset_source(struct rowset *rows, const struct export_source *source)
{
	rows->source = source;
	rows->reader = source->asked->reader;
	rows->names = source->asked->names;
}

void rowset_life(struct rowset *rows, const struct lives_block *block, const struct lives_end *end)
{
	put_allocation(rows, block, end);
}

void rowset_seen(struct rowset *rows, const struct lives_block *block, const struct lives_end *end)
{
	add_to_site(rows, block, end);
}

void rowset_note(struct rowset *rows, const struct trace_note *note)
{
	keep_rss(rows, note);
}

void rowset_aside(struct rowset *rows, struct rowset_sites *sites)
{
	if (sites)
		*sites = rowset_sites_copy(&rows->sites);
	// What is added from here on is the copy's: an epoch that may be sent again, or not.
	rows->adding = sites ? sites : &rows->sites;
}

void rowset_cut(struct rowset *rows)
{
	rows->cut = true;
}

bool rowset_flush(struct rowset *rows, struct err *err)
{
	rows->err = err;
	flush(rows);
	return rows->good;
}

// Afterwards the batch is one of allocations again, since rows of these come at any time.
bool rowset_table(struct rowset *rows, enum rowset_table_id id, uint32_t from, struct err *err)
{
	bool good;

	ASSERT(id != ROWSET_ALLOCATIONS && rows->batch.count == 0);
	rows->err = err;
	rows->from = from;
	// Who pushes live has read the events and told them by rowset_life and rowset_note.
	rows->lives_read = true; // by the caller
	good = write_table(rows, id);
	rows->from = 1;
	rows->batch.table = &rowset_tables[ROWSET_ALLOCATIONS];
	return good;
}

bool rowset_write(const struct export_source *source, unsigned tables,
		  const struct rowset_receiver *receiver, struct err *err)
{
	struct rowset *rows = rowset_new(source, receiver);
	bool good = true;

	ASSERT(tables != 0);
	rows->err = err;
	for (enum rowset_table_id id = 0; id < ROWSET_TABLES && good; id++)
		if (tables & 1u << id)
			good = write_table(rows, id);
	rowset_free(rows);
	return good;
}
