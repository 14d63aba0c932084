// Records to tables, without believing them.
//
// A record names the id that it defines. In order that is the next one; a higher one means that a
// block was lost, and the gap is filled with entries that say "not known": for example, stacks 0 to
// 99 are there and a record defines 150 to 160. Then 100 to 149 are filled, and an event with stack
// 120 has a stack of which nothing is known, instead of none. At most DEFS_GAP_MAX entries are
// filled in a whole trace, so that a record that claims id 4,000,000,000 is refused, and does not
// take the memory.
//
// What an entry refers to must be there before it: a thread's process, a stack's parent. A parent
// has a lower id than its stack, so no walk from a stack outwards goes in circles.
#include "trace/defs.h"

#include "base/str.h"
#include "trace/reach.h"
#include "trace/snapshot.h"

#include <stdlib.h>
#include <string.h>

bool defs_next(struct bytes_cursor *payload, struct defs_record *record)
{
	if (payload->at == payload->end)
		return false;
	record->kind = bytes_next(payload);
	record->content = bytes_next_part(payload);
	return !payload->bad;
}

void defs_init(struct defs *defs)
{
	*defs = (struct defs){ 0 };
	// Texts are there from the start, empty: who prints what the trace says of itself asks for
	// no NULL.
	defs->info.tool = mem_copy_text("");
	defs->info.host = mem_copy_text("");
	defs->info.command = mem_copy_text("");
	defs->info.directory = mem_copy_text("");
	defs->info.options = mem_copy_text("");
	defs->info.labels = mem_copy_text("");
	// Id 0 is "none" in these.
	defs->modules = mem_grow(NULL, &defs->modules_capacity, 1, sizeof *defs->modules);
	defs->modules[0] = (struct trace_module){ .path = mem_copy_text("") };
	defs->frames = mem_grow(NULL, &defs->frames_capacity, 1, sizeof *defs->frames);
	defs->frames[0] = (struct trace_frame){ 0 };
	defs->stacks = mem_grow(NULL, &defs->stacks_capacity, 1, sizeof *defs->stacks);
	defs->stacks[0] = (struct trace_stack){ 0 };
	defs->modules_count = defs->frames_count = defs->stacks_count = 1;
	defs->heaps = mem_grow(NULL, &defs->heaps_capacity, 1, sizeof *defs->heaps);
	defs->heaps[0] = (struct trace_heap){ .name = mem_copy_text("") };
	defs->files = mem_grow(NULL, &defs->files_capacity, 1, sizeof *defs->files);
	defs->files[0] = (struct trace_file){ .path = mem_copy_text("") };
	defs->heaps_count = defs->files_count = 1;
}

// Every text of a definition is owned by the tables, and freed with them.
static void info_fini(struct trace_info *info)
{
	MEM_FREE(info->tool, info->host, info->command, info->directory, info->options,
		 info->labels);
}

static void names_fini(struct defs_names *names)
{
	for (size_t i = 0; i < names->count; i++) {
		MEM_FREE(names->names[i].function, names->names[i].file);
	}
	mem_free(names->names);
}

static void process_fini(struct trace_process *process)
{
	for (uint32_t i = 0; i < process->args_count; i++)
		mem_free(process->args[i]);
	MEM_FREE(process->args, process->exe, process->calls_why, process->before_why,
		 process->before_with, process->interpreter, process->title);
	for (uint32_t i = 0; i < process->allocators_count; i++) {
		MEM_FREE(process->allocators[i].name, process->allocators[i].file);
	}
	mem_free(process->allocators);
}

// names has an entry for each frame up to its capacity, most of them empty.
void defs_fini(struct defs *defs)
{
	info_fini(&defs->info);
	for (size_t i = 0; i < defs->processes_count; i++)
		process_fini(&defs->processes[i]);
	for (size_t i = 0; i < defs->modules_count; i++)
		mem_free(defs->modules[i].path);
	for (size_t i = 0; i < defs->names_capacity; i++)
		names_fini(&defs->names[i]);
	for (size_t i = 0; i < defs->heaps_count; i++)
		mem_free(defs->heaps[i].name);
	for (size_t i = 0; i < defs->files_count; i++)
		mem_free(defs->files[i].path);
	for (size_t i = 0; i < defs->snapshots_count; i++)
		mem_free(defs->snapshots[i].bytes);
	for (size_t i = 0; i < defs->reaches_count; i++)
		mem_free(defs->reaches[i].bytes);
	MEM_FREE(defs->heaps, defs->files, defs->snapshots, defs->reaches, defs->processes,
		 defs->threads, defs->modules, defs->frames, defs->stacks, defs->names);
	*defs = (struct defs){ 0 };
}

// An entry more in one of the tables.
#define ADD(defs, table, entry) \
	(*MEM_ADD((defs)->table, (defs)->table##_count, (defs)->table##_capacity) = (entry))

// May the table be filled with unknown entries from `count` to `first`? One sum for all tables
// together: a trace that is really damaged has few and small gaps. For example with 30 entries left
// to fill, a gap of 20 is allowed and the next one of 20 is not.
static bool gap_allowed(struct defs *defs, uint64_t count, uint64_t first)
{
	ASSERT(defs->gaps <= DEFS_GAP_MAX);
	if (first < count || first - count > DEFS_GAP_MAX - defs->gaps)
		return false;
	defs->gaps += first - count;
	return true;
}

// fill_TABLE: entries of which nothing is known, up to that of id `first`. False: too many.
// The entry is made anew for each id, since some own a text.
#define FILL(table, ...)                                                \
	static bool fill_##table(struct defs *defs, uint64_t first)     \
	{                                                               \
		if (!gap_allowed(defs, defs->table##_count, first))     \
			return false;                                   \
		while (defs->table##_count < first) {                   \
			__typeof__(*defs->table) unknown = __VA_ARGS__; \
                                                                        \
			ADD(defs, table, unknown);                      \
		}                                                       \
		return true;                                            \
	}

FILL(processes, { .id = (process_id)defs->processes_count,
		  .parent = TRACE_NONE,
		  .start = TRACE_START_EXEC,
		  .bits = 64,
		  .ended_ns = UINT64_MAX,
		  .exe = mem_copy_text("") })
FILL(threads, { .id = (thread_id)defs->threads_count })
FILL(modules, { .id = (module_id)defs->modules_count, .path = mem_copy_text("") })
FILL(frames, { .id = (frame_id)defs->frames_count })
FILL(stacks, { .flags = TRACE_STACK_INCOMPLETE })
FILL(heaps, { .id = (heap_id)defs->heaps_count, .name = mem_copy_text("") })
FILL(files, { .id = (file_id)defs->files_count, .path = mem_copy_text("") })

// What follows a word, which is looked for at the beginning or after a space: in "untrimmed=5
// trimmed=12" "trimmed=" is the second word, and "12" follows it. NULL: it is not there. `whole`:
// nothing but a space or the end may follow.
static const char *find_word(const char *options, const char *word, bool whole)
{
	size_t length = strlen(word);

	for (const char *at = options; at && (at = strstr(at, word)) != NULL; at++)
		if ((at == options || at[-1] == ' ') &&
		    (!whole || at[length] == ' ' || !at[length]))
			return at + length;
	return NULL;
}

const char *defs_option(const char *options, const char *word)
{
	return find_word(options, word, false);
}

bool defs_has_word(const char *options, const char *word)
{
	return find_word(options, word, true) != NULL;
}

// The kernel gives a path from the root of its mount, and such a mount has nothing but the file, so
// that it is "/". "crun" of the first argument "/usr/bin/crun" is what people know it by.
const char *defs_program(const struct trace_process *process)
{
	bool nowhere = strcmp(process->exe, "/") == 0 && process->args_count > 0;

	ASSERT(process->args_count == 0 || process->args);
	return str_last_part(nowhere ? process->args[0] : process->exe);
}

// `trimmed=N` among the words of the options.
static uint64_t find_trimmed(const char *options)
{
	const char *number = defs_option(options, "trimmed=");

	return number ? strtoull(number, NULL, 10) : 0;
}

// The first one counts; a later one is stepped over. Fields that an older writer did not have are
// at the end, and are empty where the record ends before them. With TRACE_BUDGET the distance of 1
// is no distance (defs_put_info): it becomes 0, and `budget` says what it meant.
static bool read_info(struct defs *defs, struct bytes_cursor *in)
{
	struct trace_info *info = &defs->info;
	const uint8_t *id;

	if (defs->info_seen)
		return true;
	info_fini(info);
	*info = (struct trace_info){ 0 };
	info->version_major = (uint16_t)bytes_next(in);
	info->version_minor = (uint16_t)bytes_next(in);
	id = bytes_next_raw(in, sizeof info->recording_id);
	if (id)
		memcpy(info->recording_id, id, sizeof info->recording_id);
	info->began_unix_ns = bytes_next(in);
	info->tick_ns = bytes_next(in);
	info->tool = bytes_next_text(in);
	info->host = bytes_next_text(in);
	info->command = bytes_next_text(in);
	info->directory = bytes_next_text(in);
	info->options = bytes_next_text(in);
	info->trimmed = find_trimmed(info->options);
	info->sample_bytes = bytes_left(in) > 0 ? bytes_next(in) : 0;
	info->budget = info->sample_bytes == 1 && defs_option(info->options, TRACE_BUDGET);
	if (info->budget)
		info->sample_bytes = 0;
	info->labels = bytes_left(in) > 0 ? bytes_next_text(in) : mem_copy_text("");
	defs->info_seen = !in->bad;
	return !in->bad;
}

static bool read_args(struct trace_process *process, struct bytes_cursor *in)
{
	uint64_t count = bytes_next(in);

	// An argument has at least the byte that is its length.
	if (in->bad || count > bytes_left(in))
		return false;
	process->args = mem_alloc(count + 1, sizeof *process->args);
	for (uint64_t i = 0; i < count; i++)
		process->args[process->args_count++] = bytes_next_text(in);
	return !in->bad;
}

// One that is there already is passed over: a trace that was continued defines it again. A parent
// must have a lower id: anything else is "not in the trace", so that walks to parents end.
static bool read_process(struct defs *defs, struct bytes_cursor *in)
{
	struct trace_process process = { .ended_ns = UINT64_MAX };
	bool ok;

	process.id = bytes_next_u32(in);
	if (process.id < defs->processes_count)
		return !in->bad;
	// 0 - 1 is TRACE_NONE.
	process.parent = bytes_next_u32(in) - 1;
	process.pid = bytes_next_u32(in);
	process.generation = bytes_next_u32(in);
	process.start = (uint8_t)bytes_next(in);
	process.bits = (uint8_t)bytes_next(in);
	process.began_ns = bytes_next(in);
	process.exe = bytes_next_text(in);
	if (process.parent >= process.id)
		process.parent = TRACE_NONE;
	ASSERT(process.parent == TRACE_NONE || process.parent < process.id);
	ok = read_args(&process, in) && fill_processes(defs, process.id);
	ASSERT(!ok || process.id == defs->processes_count);
	if (ok)
		ADD(defs, processes, process);
	else
		process_fini(&process);
	return ok;
}

// Its process may have been lost with a block: then it is filled in, and the thread is kept.
static bool read_thread(struct defs *defs, struct bytes_cursor *in)
{
	struct trace_thread thread = { 0 };
	struct bytes_cursor name;
	size_t length;

	thread.id = bytes_next_u32(in);
	thread.process = bytes_next_u32(in);
	thread.tid = bytes_next_u32(in);
	name = bytes_next_part(in);
	if (in->bad)
		return false;
	if (thread.id < defs->threads_count)
		return true;
	length = bytes_left(&name) < sizeof thread.name ? bytes_left(&name)
							: sizeof thread.name - 1;
	memcpy(thread.name, name.at, length);
	if (thread.process >= defs->processes_count &&
	    !fill_processes(defs, (uint64_t)thread.process + 1))
		return false;
	if (!fill_threads(defs, thread.id))
		return false;
	ASSERT(thread.id == defs->threads_count && thread.process < defs->processes_count);
	ADD(defs, threads, thread);
	return true;
}

// The path is read last, when nothing else can be refused, because it has to be freed otherwise.
static bool read_module(struct defs *defs, struct bytes_cursor *in)
{
	struct trace_module module = { 0 };
	const uint8_t *build_id;
	uint64_t length;

	module.id = bytes_next_u32(in);
	module.process = bytes_next_u32(in);
	BYTES_NEXT_ALL(in, &module.start, &module.end, &module.bias, &module.file_size,
		       &module.file_mtime_ns, &length);
	build_id = bytes_next_raw(in, length);
	if (in->bad || length > sizeof module.build_id || module.id == 0 ||
	    module.end < module.start)
		return false;
	if (module.id < defs->modules_count)
		return true;
	memcpy(module.build_id, build_id, length);
	module.build_id_length = (uint8_t)length;
	if (module.process >= defs->processes_count &&
	    !fill_processes(defs, (uint64_t)module.process + 1))
		return false;
	if (!fill_modules(defs, module.id))
		return false;
	module.path = bytes_next_text(in);
	ASSERT(module.id == defs->modules_count && module.process < defs->processes_count);
	ADD(defs, modules, module);
	return !in->bad;
}

// Reads runs of (value, how many) as bytes_run_add wrote them.
struct runs {
	struct bytes_cursor at;
	uint64_t value, left;
};

// Place `runs` at the cursor and move the cursor behind them. A column of runs is read twice: here
// to find where it ends, and then value by value, beside the other columns. For example the flags
// of ten frames, 0 ten times, are the two bytes 00 0a.
static struct runs take_runs(struct bytes_cursor *in, uint64_t count)
{
	struct runs runs = { .at = *in };
	uint64_t told = 0;

	while (told < count && !in->bad) {
		uint64_t run;

		bytes_next(in);
		run = bytes_next(in);
		if (run == 0 || run > count - told)
			in->bad = true;
		told += run;
	}
	return runs;
}

// take_runs has seen all of it: there is a value for each that is asked for.
static uint64_t next_of_run(struct runs *runs)
{
	ASSERT(!runs->at.bad);
	if (runs->left == 0) {
		runs->value = bytes_next(&runs->at);
		runs->left = bytes_next(&runs->at);
	}
	runs->left--;
	return runs->value;
}

// Ids are dense from `first` on, and each pc is written as what it differs from the one before:
// frames that were met together lie near each other. A module that is not there is none. Frames
// that are defined already stay as they are, but take part in the differences.
static bool read_frames(struct defs *defs, struct bytes_cursor *in)
{
	uint64_t first = bytes_next(in);
	uint64_t count = bytes_next(in);
	struct runs modules, flags;
	uint64_t pc = 0;

	// A frame takes at least the byte of its pc; ids fit 32 bits.
	if (in->bad || first == 0 || count > bytes_left(in) || first > UINT32_MAX - count)
		return false;
	modules = take_runs(in, count);
	flags = take_runs(in, count);
	if (in->bad || count > bytes_left(in))
		return false;
	if (first > defs->frames_count && !fill_frames(defs, first))
		return false;
	for (uint64_t i = 0; i < count && !in->bad; i++) {
		struct trace_frame frame = { .id = (frame_id)(first + i) };
		uint64_t module = next_of_run(&modules);

		frame.flags = (uint32_t)next_of_run(&flags);
		frame.module = module < defs->modules_count ? (module_id)module : 0;
		pc += (uint64_t)bytes_next_signed(in);
		frame.pc = pc;
		ASSERT(frame.id <= defs->frames_count);
		if (frame.id == defs->frames_count)
			ADD(defs, frames, frame);
	}
	return !in->bad;
}

// For example first = 10 with three stacks: distances 1 1 3 and differences of frames 7 2 -1. Stack
// 10 is frame 7 called from stack 9, stack 11 is frame 9 called from 10, and stack 12 is frame 8
// called from stack 9, too.
static bool read_stacks(struct defs *defs, struct bytes_cursor *in)
{
	uint64_t first = bytes_next(in);
	uint64_t count = bytes_next(in);
	uint64_t frame = 0;
	struct bytes_cursor frames;
	struct runs flags;

	if (in->bad || first == 0 || count > bytes_left(in) || first > UINT32_MAX - count)
		return false;
	flags = take_runs(in, count);
	// Distances and frames are two columns, one after the other: `in` goes through the first,
	// `frames` through the second.
	frames = *in;
	for (uint64_t i = 0; i < count; i++)
		bytes_next(&frames);
	if (in->bad || frames.bad || count > bytes_left(&frames))
		return false;
	if (first > defs->stacks_count && !fill_stacks(defs, first))
		return false;
	for (uint64_t i = 0; i < count && !frames.bad; i++) {
		struct trace_stack stack = { 0 };
		uint64_t distance = bytes_next(in);

		frame += (uint64_t)bytes_next_signed(&frames);
		stack.flags = (uint8_t)next_of_run(&flags);
		if (first + i < defs->stacks_count)
			continue;
		// A parent comes before its child; anything else would be a loop.
		if (distance == 0 || distance > first + i || frame >= defs->frames_count) {
			stack.flags |= TRACE_STACK_INCOMPLETE;
			defs->refused++;
		} else {
			stack.parent = (stack_id)(first + i - distance);
			stack.frame = (frame_id)frame;
		}
		ASSERT(first + i == defs->stacks_count && stack.parent < first + i);
		ADD(defs, stacks, stack);
		defs->sampled |= trace_stack_sampled(&stack) > 0;
	}
	return !frames.bad;
}

// Only the first names of a frame count.
static bool read_name(struct defs *defs, struct bytes_cursor *in)
{
	frame_id frame = bytes_next_u32(in);
	uint64_t count = bytes_next(in);
	struct defs_names *names;

	if (in->bad || count > DEFS_NAMES_MAX || frame == 0 || frame >= defs->frames_count)
		return false;
	names = MEM_REACH(defs->names, defs->names_capacity, frame);
	if (names->count > 0)
		return true;
	names->names = mem_alloc(count + 1, sizeof *names->names);
	for (uint64_t i = 0; i < count; i++) {
		struct trace_name *name = &names->names[names->count++];

		name->line = bytes_next_u32(in);
		name->function = bytes_next_text(in);
		name->file = bytes_next_text(in);
	}
	return !in->bad;
}

// A heap that was made while it was recorded has its flags plus one, so that 0 can say "was there
// before".
static bool read_heap(struct defs *defs, struct bytes_cursor *in)
{
	struct trace_heap heap = { 0 };

	heap.id = bytes_next_u32(in);
	heap.process = bytes_next_u32(in);
	heap.handle = bytes_next(in);
	if (in->bad || heap.id == 0)
		return false;
	if (heap.id < defs->heaps_count)
		return true;
	if (heap.process >= defs->processes_count &&
	    !fill_processes(defs, (uint64_t)heap.process + 1))
		return false;
	if (!fill_heaps(defs, heap.id))
		return false;
	heap.name = bytes_next_text(in);
	if (bytes_left(in) > 0 && !in->bad) {
		uint64_t created = bytes_next(in);

		heap.created = created != 0;
		heap.flags = heap.created ? (uint32_t)(created - 1) : 0;
	}
	ASSERT(heap.id == defs->heaps_count && heap.process < defs->processes_count);
	ADD(defs, heaps, heap);
	return !in->bad;
}

// A file that was mapped, by what the system knows it by (device and inode) and its path then.
static bool read_file(struct defs *defs, struct bytes_cursor *in)
{
	struct trace_file file = { 0 };

	file.id = bytes_next_u32(in);
	file.device = bytes_next(in);
	file.inode = bytes_next(in);
	if (in->bad || file.id == 0)
		return false;
	if (file.id < defs->files_count)
		return true;
	if (!fill_files(defs, file.id))
		return false;
	file.path = bytes_next_text(in);
	ASSERT(file.id == defs->files_count);
	ADD(defs, files, file);
	return !in->bad;
}

// Kept as it is in the file. A snapshot of a large process has thousands of mappings, and most
// who read a trace want the head alone.
static bool read_snapshot(struct defs *defs, struct bytes_cursor *in)
{
	struct defs_snapshot snapshot = { .size = bytes_left(in) };

	if (!snapshot_decode(*in, (uint32_t)defs->files_count, false, &snapshot.head) ||
	    snapshot.head.process >= defs->processes_count)
		return false;
	snapshot.bytes = mem_alloc(snapshot.size, 1);
	memcpy(snapshot.bytes, in->at, snapshot.size);
	*MEM_ADD(defs->snapshots, defs->snapshots_count, defs->snapshots_capacity) = snapshot;
	return true;
}

static struct reach_known reach_known(const struct defs *defs)
{
	return (struct reach_known){
		.processes_count = defs->processes_count,
		.threads_count = defs->threads_count,
		.stacks_count = defs->stacks_count,
	};
}

// As a snapshot: checked to its last block, then kept as bytes.
static bool read_reach(struct defs *defs, struct bytes_cursor *in)
{
	const struct reach_known known = reach_known(defs);
	struct defs_reach reach = { .size = bytes_left(in) };

	if (!reach_decode(*in, &known, false, &reach.head))
		return false;
	reach.bytes = mem_alloc(reach.size, 1);
	memcpy(reach.bytes, in->at, reach.size);
	*MEM_ADD(defs->reaches, defs->reaches_count, defs->reaches_capacity) = reach;
	return true;
}

// It was checked when it came, against tables that have only grown since: it decodes.
bool defs_load_reach(const struct defs *defs, size_t index, struct trace_reach *reach)
{
	const struct reach_known known = reach_known(defs);

	*reach = (struct trace_reach){ 0 };
	return index < defs->reaches_count &&
	       reach_decode(bytes_cursor(defs->reaches[index].bytes, defs->reaches[index].size),
			    &known, true, reach);
}

// Every failure is one record that is refused; the tables are whole after it.
void defs_read(struct defs *defs, struct defs_record *record)
{
	static bool (*const readers[])(struct defs *, struct bytes_cursor *) = {
		[DEFS_INFO] = read_info,     [DEFS_PROCESS] = read_process,
		[DEFS_THREAD] = read_thread, [DEFS_MODULE] = read_module,
		[DEFS_FRAMES] = read_frames, [DEFS_STACKS] = read_stacks,
		[DEFS_NAME] = read_name,     [DEFS_HEAP] = read_heap,
		[DEFS_FILE] = read_file,     [DEFS_SNAPSHOT] = read_snapshot,
		[DEFS_REACH] = read_reach,
	};

	if (record->kind == DEFS_NOTE)
		return;
	if (record->kind >= sizeof readers / sizeof *readers || !readers[record->kind])
		defs->unknown++;
	else if (!readers[record->kind](defs, &record->content))
		defs->refused++;
}

// A process or thread that is not there becomes "none", and who needs one drops the note
// (reader_defs.c). The text ends at its first NUL and gets one of its own.
bool defs_read_note(const struct defs *defs, struct bytes_cursor content, struct trace_note *note,
		    uint64_t *number, struct bytes *text)
{
	struct bytes_cursor part;

	*note = (struct trace_note){ 0 };
	note->kind = (uint8_t)bytes_next(&content);
	*number = bytes_next(&content);
	note->time_ns = bytes_next(&content);
	note->process = bytes_next_u32(&content) - 1;
	note->thread = bytes_next_u32(&content) - 1;
	note->value = bytes_next(&content);
	part = bytes_next_part(&content);
	if (content.bad || note->kind == 0)
		return false;
	if (note->process >= defs->processes_count)
		note->process = TRACE_NONE;
	if (note->thread >= defs->threads_count)
		note->thread = TRACE_NONE;
	text->size = 0;
	bytes_add(text, part.at, strnlen((const char *)part.at, bytes_left(&part)));
	bytes_add(text, "", 1);
	note->text = (const char *)text->data;
	return true;
}

// What is known of a process besides its definition. Figures rise or are given once, so the largest
// is right in whatever order notes come.
static void apply_figure(struct trace_process *process, const struct trace_note *note)
{
	uint64_t *const most[TRACE_NOTES_COUNT] = {
		[TRACE_NOTE_RSS] = &process->rss_max_bytes,
		[TRACE_NOTE_RSS_MAX] = &process->rss_max_bytes,
		[TRACE_NOTE_PSS] = &process->pss_max_bytes,
		[TRACE_NOTE_SWAP] = &process->swap_max_bytes,
		[TRACE_NOTE_MINOR] = &process->minor_faults,
		[TRACE_NOTE_MAJOR] = &process->major_faults,
		[TRACE_NOTE_SNAPSHOTS_MISSED] = &process->snapshots_missed,
		[TRACE_NOTE_ADDRESS_LOW] = &process->address_low,
		[TRACE_NOTE_ADDRESS_END] = &process->address_end,
		[TRACE_NOTE_MAPPED_LIMIT] = &process->mapped_limit,
		[TRACE_NOTE_DATA_LIMIT] = &process->data_limit,
		[TRACE_NOTE_CALLS_ELSEWHERE] = &process->calls_elsewhere,
		[TRACE_NOTE_END_LATE] = &process->end_late,
		[TRACE_NOTE_GROUP_LIMIT] = &process->group_limit,
		[TRACE_NOTE_GROUP_KILLS] = &process->group_kills,
	};

	if (note->kind < TRACE_NOTES_COUNT && most[note->kind] && note->value > *most[note->kind])
		*most[note->kind] = note->value;
	if (note->kind != TRACE_NOTE_CALLS || note->value >= TRACE_CALLS_COUNT)
		return;
	process->calls = (uint8_t)note->value;
	// How the calls are seen may change while a process runs; the last note counts.
	mem_free(process->calls_why);
	process->calls_why = note->text[0] ? mem_copy_text(note->text) : NULL;
}

// Notes may be read more than once. "jemalloc /usr/lib/x.so", or without a path.
static void apply_allocator(struct trace_process *process, const struct trace_note *note)
{
	size_t length = strcspn(note->text, " ");
	const char *file = note->text[length] ? note->text + length + 1 : NULL;
	size_t capacity = process->allocators_count;
	struct trace_allocator *each;

	if (note->kind != TRACE_NOTE_ALLOCATOR || note->value == 0 ||
	    note->value >= TRACE_SEEN_COUNT)
		return;
	for (uint32_t i = 0; i < process->allocators_count; i++) {
		each = &process->allocators[i];
		if (each->seen == note->value && strncmp(each->name, note->text, length) == 0 &&
		    each->name[length] == 0 &&
		    strcmp(each->file ? each->file : "", file ? file : "") == 0)
			return;
	}
	// The same allocator said again adds nothing: a scan and a play each apply the notes.
	process->allocators = mem_grow(process->allocators, &capacity,
				       process->allocators_count + 1u, sizeof *each);
	each = &process->allocators[process->allocators_count++];
	each->seen = (uint8_t)note->value;
	each->name = mem_copy_bytes(note->text, length);
	each->file = file ? mem_copy_text(file) : NULL;
}

// For example "with glibc, jemalloc; mimalloc: no layout is known" gives before_with "glibc,
// jemalloc" and before_why the rest; "the process is stripped" alone gives before_why, and there
// are none.
static void apply_before(struct trace_process *process, const struct trace_note *note)
{
	const char *text = note->text, *why;
	size_t with = sizeof(TRACE_BEFORE_WITH) - 1, length;

	if (note->kind != TRACE_NOTE_BEFORE)
		return;
	// Empty: of glibc's, as the first version of such a note had it.
	if (strncmp(text, TRACE_BEFORE_WITH, with) == 0)
		text += with;
	else if (text[0])
		with = 0;
	process->before = with > 0;
	process->before_count = note->value;
	MEM_FREE(process->before_with, process->before_why);
	why = with ? strstr(text, "; ") : text;
	process->before_why = why ? mem_copy_text(with ? why + 2 : why) : NULL;
	length = why ? (size_t)(why - text) : strlen(text);
	process->before_with = length ? mem_copy_bytes(text, length) : mem_copy_text("glibc");
}

// The first one counts. The value 1 says that the interpreter's own functions are in the stacks.
static void apply_interpreter(struct trace_process *process, const struct trace_note *note)
{
	if (note->kind != TRACE_NOTE_INTERPRETER || process->interpreter)
		return;
	process->interpreter = mem_copy_text(note->text);
	process->interpreter_read = note->value == 1;
}

// The last one counts. It is empty where it was left out of the trace.
static void apply_title(struct trace_process *process, const struct trace_note *note)
{
	if (note->kind != TRACE_NOTE_TITLE || !note->text[0])
		return;
	mem_free(process->title);
	process->title = mem_copy_text(note->text);
}

// Notes may be read more than once: the first and the last of them stay what they are.
static void apply_pause(struct trace_process *process, const struct trace_note *note)
{
	if (note->kind == TRACE_NOTE_RESUME && note->time_ns > process->resumed_last_ns)
		process->resumed_last_ns = note->time_ns;
	if (note->kind != TRACE_NOTE_PAUSE)
		return;
	if (!process->paused || note->time_ns < process->paused_first_ns)
		process->paused_first_ns = note->time_ns;
	if (note->time_ns > process->paused_last_ns)
		process->paused_last_ns = note->time_ns;
	process->paused = true;
}

// May be called more than once for one note, by a scan and by a play: nothing in it counts.
void defs_apply_note(struct defs *defs, const struct trace_note *note)
{
	if (note->process < defs->processes_count)
		apply_figure(&defs->processes[note->process], note);
	if (note->process < defs->processes_count) {
		apply_pause(&defs->processes[note->process], note);
		apply_before(&defs->processes[note->process], note);
		apply_allocator(&defs->processes[note->process], note);
		apply_interpreter(&defs->processes[note->process], note);
		apply_title(&defs->processes[note->process], note);
	}
	if (note->kind == TRACE_NOTE_PROCESS_END && note->process < defs->processes_count) {
		struct trace_process *process = &defs->processes[note->process];

		process->ended_ns = note->time_ns;
		process->exit = (uint8_t)(note->value & 0xff);
		process->exit_value = (uint32_t)(note->value >> 8);
		if (process->exit > TRACE_EXIT_EXEC)
			process->exit = TRACE_EXIT_UNKNOWN;
	}
	if (note->kind == TRACE_NOTE_THREAD_NAME && note->thread < defs->threads_count) {
		struct trace_thread *thread = &defs->threads[note->thread];

		memset(thread->name, 0, sizeof thread->name);
		memcpy(thread->name, note->text, strnlen(note->text, sizeof thread->name - 1));
	}
}
