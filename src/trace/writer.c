// Definitions before the events that use them, and a file that is whole at any moment.
//
// What is defined waits as records, and frames and stacks as lists; events wait in columns. Before
// a block of events is written, all that waits is, as one DEFS block, so a reader never meets an id
// that it does not know. For example, 70,000 events with 300 stacks among them make
//
//     DEFS     what runs, and the first definitions   (when the writer was made)
//     DEFS     the 300 stacks, their frames, and notes
//     EVENTS   65,536 events
//     EVENTS   the rest, at the next flush
//
// Notes are records too: each has the number of the event that it is before, and so it may be in
// the file before events that came earlier.
//
// Here items get their numbers and times, and definitions wait. What makes blocks of it, and all
// that may fail, is in writer_file.h: it hears of rows, events, definitions and the ends of blocks
// in their order, from here or, after writer_apart, in a thread of its own (writer_belt.h).
#include "trace/writer.h"

#include "base/mem.h"
#include "os/file.h"
#include "trace/bundle_reader.h"
#include "trace/defs.h"
#include "trace/reach.h"
#include "trace/writer_belt.h"
#include "wire/compiler.h"

#include <stdlib.h>

// Definitions are written when this many bytes (or DEFS_RUN_MAX frames or stacks) have piled up,
// also when no block of events is full yet.
enum { DEFS_BYTES_MAX = 256 << 10 };

struct writer {
	struct writer_file file;
	struct writer_belt *belt; // to the thread that has `file`; NULL: there is none
	bool ended;
	bool heaps;    // blocks of events tell heaps from here on
	uint64_t lost; // events given to a writer that had failed or ended

	struct writer_counts counts;
	struct writer_defs defs; // since the last DEFS block
	uint64_t events_count;   // given numbers so far
	uint32_t waiting;        // of those: in the open block
	uint64_t last_ns;        // of the last item
};

// Nothing more can be written. A thread that has just failed is heard of a little later; what it
// was given meanwhile is counted all the same.
static inline bool unable(const struct writer *writer)
{
	if (writer->ended)
		return true;
	return writer->belt != NULL ? writer_belt_failed(writer->belt) : writer->file.failed;
}

// Definitions and notes since the last time, as one DEFS block.
static void put_defs(struct writer *writer)
{
	struct writer_defs *defs = &writer->defs;

	ASSERT(!writer->ended);
	ASSERT(defs->stacks_count < writer->counts.stacks &&
	       defs->frames_count < writer->counts.frames);
	if (writer_defs_empty(defs))
		return;
	defs->last_ns = writer->last_ns;
	defs->first_event = writer->events_count;
	defs->stacks_first = writer->counts.stacks - (stack_id)defs->stacks_count;
	if (writer->belt != NULL)
		writer_belt_defs(writer->belt, defs);
	else
		writer_file_defs(&writer->file, defs);
	defs->notes_first_ns = defs->notes_last_ns = writer->last_ns;
}

static void put_events(struct writer *writer)
{
	if (writer->waiting == 0)
		return;
	writer->waiting = 0;
	if (writer->belt != NULL)
		writer_belt_cut(writer->belt, writer->last_ns);
	else
		writer_file_cut(&writer->file, writer->last_ns);
}

// The open block is full, or ends here.
static void put(struct writer *writer)
{
	if (unable(writer))
		return;
	put_defs(writer);
	if (!unable(writer))
		put_events(writer);
}

// Until all that was put is in the file, or has failed; `file` is ours then.
static void settle(const struct writer *writer)
{
	if (writer->belt != NULL)
		writer_belt_settle(writer->belt);
}

void writer_flush(struct writer *writer)
{
	put(writer);
	settle(writer);
}

// For tests: whether any writer, or none, has a thread of its own. Empty: as it is asked for.
static const char *apart_wish(void)
{
	const char *word = getenv("TIDEMARK_APART");

	return word != NULL ? word : "";
}

void writer_apart(struct writer *writer)
{
	if (writer->belt == NULL && !unable(writer) && strcmp(apart_wish(), "never") != 0)
		writer->belt = writer_belt_new(&writer->file);
}

// What there is on the way is written first.
static void end_belt(struct writer *writer)
{
	writer_belt_free(writer->belt);
	writer->belt = NULL;
}

// A definition was added: write them out before they become many.
// Called after each definition, also by a writer that has failed: then nothing has grown.
static void defs_grew(struct writer *writer)
{
	const struct writer_defs *defs = &writer->defs;

	if (defs->records.size + defs->names.size < DEFS_BYTES_MAX &&
	    defs->frames_count < DEFS_RUN_MAX && defs->stacks_count < DEFS_RUN_MAX)
		return;
	if (!unable(writer))
		put_defs(writer);
}

// The beginning of the trace is written at once, so that who follows the file knows what it is of
// before the first event.
struct writer *writer_new(int fd, const struct trace_info *info, struct err *err)
{
	struct writer *writer = mem_alloc(1, sizeof *writer);
	struct trace_info stamped = *info;
	uint8_t preamble[BLOCK_PREAMBLE_BYTES];
	struct block_preamble head = {
		.version_major = BLOCK_VERSION_MAJOR,
		.version_minor = BLOCK_VERSION_MINOR,
		.began_unix_ns = info->began_unix_ns,
	};

	memcpy(head.recording_id, info->recording_id, sizeof head.recording_id);
	stamped.version_major = BLOCK_VERSION_MAJOR;
	stamped.version_minor = BLOCK_VERSION_MINOR;
	chain_init(&writer->file.chain, fd);
	writer->counts.modules = writer->counts.frames = writer->counts.stacks = 1;
	writer->counts.heaps = writer->counts.files = 1;
	block_preamble_encode(&head, preamble);
	if (!out_write(&writer->file.chain.out, preamble, sizeof preamble, false, err)) {
		writer_free(writer);
		return NULL;
	}
	defs_put_info(&writer->defs.records, &stamped);
	put_defs(writer);
	if (writer->file.failed) {
		*err = writer->file.err;
		writer_free(writer);
		return NULL;
	}
	if (strcmp(apart_wish(), "always") == 0)
		writer_apart(writer);
	return writer;
}

static void writer_fini(struct writer *writer)
{
	end_belt(writer);
	writer_file_fini(&writer->file);
	writer_defs_fini(&writer->defs);
}

void writer_free(struct writer *writer)
{
	if (!writer)
		return;
	writer_fini(writer);
	mem_free(writer);
}

// The other file was written beside this one and holds what is kept of the recording: from here on
// it is the trace.
void writer_become(struct writer *writer, struct writer *other)
{
	int fd = writer->file.chain.out.fd;

	writer_flush(other);
	end_belt(other);
	ASSERT(writer->counts.processes == other->counts.processes);
	ASSERT(writer->counts.threads == other->counts.threads);
	ASSERT(writer->counts.modules == other->counts.modules);
	ASSERT(writer->counts.frames == other->counts.frames);
	ASSERT(writer->counts.stacks == other->counts.stacks);
	ASSERT(writer->counts.heaps == other->counts.heaps);
	ASSERT(writer->counts.files == other->counts.files);
	writer_fini(writer);
	*writer = *other;
	writer->file.chain.out.fd = fd;
	file_become(fd, other->file.chain.out.fd);
	mem_free(other);
}

// A writer that has failed still gives numbers, so that its caller needs no second way.
process_id writer_add_process(struct writer *writer, const struct trace_process *process)
{
	struct trace_process numbered = *process;

	ASSERT(process->parent == TRACE_NONE || process->parent < writer->counts.processes);
	numbered.id = writer->counts.processes++;
	if (!unable(writer))
		defs_put_process(&writer->defs.records, &numbered);
	defs_grew(writer);
	return numbered.id;
}

thread_id writer_add_thread(struct writer *writer, process_id process, uint32_t tid,
			    const char *name)
{
	struct trace_thread thread = {
		.id = writer->counts.threads++,
		.process = process,
		.tid = tid,
	};

	ASSERT(process < writer->counts.processes);
	if (name)
		memcpy(thread.name, name, strnlen(name, sizeof thread.name - 1));
	if (!unable(writer))
		defs_put_thread(&writer->defs.records, &thread);
	defs_grew(writer);
	return thread.id;
}

module_id writer_add_module(struct writer *writer, const struct trace_module *module)
{
	struct trace_module numbered = *module;

	ASSERT(module->process < writer->counts.processes);
	ASSERT(module->build_id_length <= sizeof module->build_id);
	numbered.id = writer->counts.modules++;
	if (!unable(writer))
		defs_put_module(&writer->defs.records, &numbered);
	defs_grew(writer);
	return numbered.id;
}

frame_id writer_add_frame(struct writer *writer, module_id module, uint64_t pc, uint32_t flags)
{
	frame_id id = writer->counts.frames++;

	ASSERT(module < writer->counts.modules);
	if (unable(writer))
		return id;
	*MEM_ADD(writer->defs.frames, writer->defs.frames_count, writer->defs.frames_capacity) =
		(struct trace_frame){ .id = id, .module = module, .pc = pc, .flags = flags };
	defs_grew(writer);
	return id;
}

void writer_add_name(struct writer *writer, frame_id frame, const struct trace_name *names,
		     size_t count)
{
	ASSERT(frame > 0 && frame < writer->counts.frames && count <= DEFS_NAMES_MAX);
	if (!unable(writer))
		defs_put_name(&writer->defs.names, frame, names, count);
	defs_grew(writer);
}

stack_id writer_add_stack(struct writer *writer, stack_id parent, frame_id frame, uint8_t flags)
{
	stack_id id = writer->counts.stacks++;

	ASSERT(parent < id && frame < writer->counts.frames);
	if (unable(writer))
		return id;
	*MEM_ADD(writer->defs.stacks, writer->defs.stacks_count, writer->defs.stacks_capacity) =
		(struct trace_stack){ .parent = parent, .frame = frame, .flags = flags };
	defs_grew(writer);
	return id;
}

heap_id writer_add_heap(struct writer *writer, const struct trace_heap *heap)
{
	struct trace_heap numbered = *heap;

	ASSERT(heap->process < writer->counts.processes);
	numbered.id = writer->counts.heaps++;
	if (!unable(writer))
		defs_put_heap(&writer->defs.records, &numbered);
	defs_grew(writer);
	return numbered.id;
}

file_id writer_add_file(struct writer *writer, const struct trace_file *file)
{
	struct trace_file numbered = *file;

	numbered.id = writer->counts.files++;
	if (!unable(writer))
		defs_put_file(&writer->defs.records, &numbered);
	defs_grew(writer);
	return numbered.id;
}

void writer_snapshot(struct writer *writer, const struct trace_snapshot *snapshot)
{
	ASSERT(snapshot->process < writer->counts.processes);
	if (!unable(writer))
		defs_put_snapshot(&writer->defs.records, snapshot);
	defs_grew(writer);
}

// A record of nothing is written, too: that nothing was alive is a finding.
void writer_reach(struct writer *writer, const struct trace_reach *reach)
{
	uint64_t skip = 0;

	ASSERT(reach->process < writer->counts.processes);
	do {
		uint64_t count = reach->count - skip;

		count = count < REACH_BLOCKS_MAX ? count : REACH_BLOCKS_MAX;
		if (!unable(writer))
			defs_put_reach(&writer->defs.names, reach, skip, count);
		defs_grew(writer);
		skip += count;
	} while (skip < reach->count);
}

// Calls on blocks of a heap that has a handle come: from here on blocks of events tell the heap.
// Most traces have no other heap than malloc's, and then no event has an entry for it. The first
// call on one begins a block of events whose events all have one, and so have those after it.
static inline void tell_heap(struct writer *writer, heap_id heap)
{
	if (heap == 0 || writer->heaps)
		return;
	put(writer);
	writer->heaps = true;
}

// So many events were put into the open block.
static inline void grew(struct writer *writer, uint32_t count)
{
	writer->events_count += count;
	writer->waiting += count;
	if (writer->waiting == COLUMNS_EVENTS_MAX)
		put(writer);
}

// A time that would fall is raised to that of the item before it.
void writer_event(struct writer *writer, const struct trace_event *event)
{
	ASSERT(event->thread < writer->counts.threads && event->stack < writer->counts.stacks);
	if (unable(writer)) {
		writer->lost++;
		return;
	}
	if (event->time_ns > writer->last_ns)
		writer->last_ns = event->time_ns;
	if (event->kind <= TRACE_FAILED)
		tell_heap(writer, event->heap);
	if (unlikely(writer->belt != NULL))
		writer_belt_event(writer->belt, event, writer->last_ns);
	else
		writer_file_event(&writer->file, event, writer->last_ns);
	grew(writer, 1);
}

// Rows do not go across the end of a block.
// The block fills up in the middle of the row and is written there.
static COLD void add_singly(struct writer *writer, const struct columns_row *row)
{
	struct columns_row_walk walk = { 0 };
	struct trace_event event;

	while (columns_row_next(row, &walk, &event))
		writer_event(writer, &event);
}

// `row` is not const: its time is raised in place, as it would be for each of its events.
void writer_row(struct writer *writer, struct columns_row *row)
{
	ASSERT(row->thread < writer->counts.threads);
	if (unable(writer)) {
		writer->lost += row->count;
		return;
	}
	if (row->count > COLUMNS_EVENTS_MAX - writer->waiting) {
		add_singly(writer, row);
		return;
	}
	ASSERT(row->heap < writer->counts.heaps);
	if (row->time_ns < writer->last_ns)
		row->time_ns = writer->last_ns;
	writer->last_ns = row->time_ns;
	tell_heap(writer, row->heap);
	if (unlikely(writer->belt != NULL))
		writer_belt_row(writer->belt, row);
	else
		writer_file_row(&writer->file, row);
	grew(writer, row->count);
}

// For example a row of 100 events 1,000 times, in a block that has 65,000 events. 536 events fit,
// which is five rows: one is added as a row, since the address before it may be another, and four
// as an echo. The sixth row crosses the end of the block and goes event by event. Then a new block
// begins, and so on.
void writer_echo(struct writer *writer, struct columns_row *row, uint32_t times)
{
	ASSERT(row->count > 0);
	while (times > 0) {
		uint32_t fit = (COLUMNS_EVENTS_MAX - writer->waiting) / row->count;

		// The first one in a block, or across its end, begins from another address.
		writer_row(writer, row);
		times--;
		if (unable(writer)) {
			writer->lost += (uint64_t)row->count * times;
			return;
		}
		if (fit < 2)
			continue;
		fit = fit - 1 < times ? fit - 1 : times;
		if (writer->belt != NULL)
			writer_belt_echo(writer->belt, fit);
		else
			writer_file_echo(&writer->file, row, fit);
		grew(writer, row->count * fit);
		times -= fit;
	}
}

// It waits among the records and has the number of the next event. Its place in the file may be
// before events that come earlier; a reader puts it in order.
void writer_note(struct writer *writer, const struct trace_note *note)
{
	struct trace_note timed = *note;

	if (unable(writer))
		return;
	ASSERT(note->process == TRACE_NONE || note->process < writer->counts.processes);
	if (timed.time_ns < writer->last_ns)
		timed.time_ns = writer->last_ns;
	writer->last_ns = timed.time_ns;
	writer->defs.notes_last_ns = timed.time_ns;
	defs_put_note(&writer->defs.records, &timed, writer->events_count);
	defs_grew(writer);
}

void writer_process_end(struct writer *writer, process_id process, uint64_t time_ns,
			enum trace_exit exit, uint32_t exit_value)
{
	ASSERT(process < writer->counts.processes);
	writer_note(writer, &(struct trace_note){
				    .kind = TRACE_NOTE_PROCESS_END,
				    .process = process,
				    .thread = TRACE_NONE,
				    .time_ns = time_ns,
				    .value = (uint64_t)exit_value << 8 | exit,
			    });
}

// What waits is written first, so that definitions and events keep their order in the file. The
// blocks are made here, so that one that does not fit is not heard of from the other thread: where
// one has failed there is nothing left to do for that.
void writer_bundle(struct writer *writer, const uint8_t *build_id, size_t build_id_length,
		   const void *bytes, size_t size)
{
	size_t at = 0;

	ASSERT(build_id_length <= BUNDLE_READER_LABEL_MAX && size <= BUNDLE_READER_FILE_MAX);
	writer_flush(writer);
	do {
		size_t part = size - at < BLOCK_BUNDLE_PART_MAX ? size - at : BLOCK_BUNDLE_PART_MAX;
		struct bundle_reader_part bundle_reader_part = {
			.build_id_length = build_id_length,
			.file_size = size,
			.at = at,
			.size = part,
		};

		memcpy(bundle_reader_part.build_id, build_id, build_id_length);
		if (unable(writer))
			return;
		bundle_reader_encode(&writer->file.chain.raw, &bundle_reader_part,
				     (const uint8_t *)bytes + at);
		writer->file.chain.last_ns = writer->last_ns;
		writer_file_plain(&writer->file, BLOCK_BUNDLE);
		if (writer->file.failed)
			end_belt(writer);
		at += part;
	} while (at < size);
}

// After a failure the end record is there already, with what the writer knew; the caller's figures
// replace it. A second call does nothing.
void writer_end(struct writer *writer, const struct trace_end *end)
{
	writer_flush(writer);
	if (writer->ended)
		return;
	writer->ended = true;
	end_belt(writer);
	writer->file.chain.last_ns = writer->last_ns;
	writer_file_end(&writer->file, end, writer->lost);
}

const struct writer_counts *writer_counts(const struct writer *writer)
{
	return &writer->counts;
}

uint64_t writer_events_count(const struct writer *writer)
{
	return writer->events_count;
}

uint64_t writer_events_kept(const struct writer *writer)
{
	settle(writer);
	return writer->file.chain.next_event;
}

uint64_t writer_bytes(const struct writer *writer)
{
	return writer->belt != NULL ? writer_belt_bytes(writer->belt) : writer->file.chain.out.size;
}

bool writer_ok(const struct writer *writer, struct err *err)
{
	if (writer->belt != NULL && !writer_belt_failed(writer->belt))
		return true;
	settle(writer);
	if (writer->file.failed)
		*err = writer->file.err;
	return !writer->file.failed;
}
