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
// Where writing fails, the file is cut back to the last whole block, and the end record, which says
// why, goes into room that was kept for it. Where there was no such room, the last block of events
// makes it (put_last_words), and the events in it are counted as lost.
#include "trace/writer.h"

#include "base/mem.h"
#include "os/file.h"
#include "trace/bundle_reader.h"
#include "trace/chain.h"
#include "trace/columns.h"
#include "trace/defs.h"
#include "trace/predict_when.h"
#include "trace/reach.h"
#include "wire/compiler.h"

// Definitions are written when this many bytes (or DEFS_RUN_MAX frames or stacks) have piled up,
// also when no block of events is full yet.
enum { DEFS_BYTES_MAX = 256 << 10 };

_Static_assert(COLUMNS_EVENTS_MAX <= (int)BLOCK_EVENTS_MAX, "a reader takes our blocks");

// A state of the file that can be gone back to.
// `size` in bytes, `events` in whole blocks, `sequence` of the next block.
struct writer_mark {
	uint64_t size;
	uint64_t events;
	uint32_t sequence;
};

struct writer {
	struct chain chain;
	struct err err;
	bool failed; // sticky
	bool ended;
	struct writer_mark whole; // before the block of events written last
	struct writer_mark words; // before the end record that a failure wrote
	// Only for a writer that has failed: what it is given after that has nowhere to go.
	uint64_t lost; // events given to a writer that had failed

	struct writer_counts counts;
	struct bytes records; // in order: all but frames, stacks and names
	// Apart from `records`, since a name must come after its frame and what was reachable after
	// its stacks, and both are written after the records.
	struct bytes names;
	struct trace_frame *frames; // since the last DEFS block
	size_t frames_new, frames_capacity;
	struct trace_stack *stacks;
	size_t stacks_new, stacks_capacity;
	uint64_t notes_first_ns, notes_last_ns;

	struct columns_encoder columns;
	struct predict_when when;
	// The difference of both is what waits in `columns`.
	uint64_t events_count; // given numbers so far; chain.next_event of them in whole blocks
};

// Go back to an earlier state of the file.
static bool go_back(struct writer *writer, const struct writer_mark *mark)
{
	struct err ignored;

	ASSERT(mark->events <= writer->chain.next_event &&
	       mark->sequence <= writer->chain.sequence);
	writer->chain.seek.count = 0;
	writer->chain.sequence = mark->sequence;
	writer->chain.next_event = mark->events;
	writer->chain.index_at = 0; // what it covered may be gone; a reader does without
	return out_cut(&writer->chain.out, mark->size, &ignored);
}

static struct writer_mark mark_here(const struct writer *writer)
{
	return (struct writer_mark){
		.size = writer->chain.out.size,
		.events = writer->chain.next_event,
		.sequence = writer->chain.sequence,
	};
}

// Write the end record of a recording that a failure cut short, into the room kept for it. Where
// there was none, the last block of events makes room. A second call, with the collector's own
// figures, replaces the first record.
// For example the disk is full while a DEFS block is written, after a block of 65,536 events. The
// DEFS block is cut off again (out.h), and INDEX and END go into the room that out.h has kept free.
// Where the file system keeps none, that may fail; then the block of events is cut off as well, and
// its events are lost and counted.
static void put_last_words(struct writer *writer, const struct trace_end *given)
{
	struct trace_end end = given ? *given
				     : (struct trace_end){ .duration_ns = writer->chain.last_ns };
	struct writer_mark whole = writer->whole;
	struct err ignored;

	ASSERT(writer->failed);
	end.why = writer->err.text;
	if (writer->words.size > 0)
		go_back(writer, &writer->words);
	writer->words = mark_here(writer);
	for (int attempt = 0; attempt < 2; attempt++) {
		end.events = writer->chain.next_event;
		end.events_lost = (given ? given->events_lost : 0) + writer->lost +
				  writer->events_count - writer->chain.next_event;
		if (chain_end(&writer->chain, &end, &ignored))
			break;
		if (attempt == 0 && whole.size > 0 && whole.size < writer->words.size)
			writer->words = whole;
		if (!go_back(writer, &writer->words))
			break;
	}
}

// A pipe cannot be cut back, so nothing more goes into it: its reader sees a cut trace.
static void fail(struct writer *writer)
{
	writer->failed = true;
	if (writer->chain.out.regular)
		put_last_words(writer, NULL);
	out_finish(&writer->chain.out);
}

// Definitions and notes since the last time, as one DEFS block.
// The order is that of reference: records (processes, threads, modules, heaps, files), then frames,
// which name modules, then stacks, which name frames, then names of frames.
static void put_defs(struct writer *writer)
{
	struct block block = {
		.type = BLOCK_DEFS,
		.first_event = writer->events_count,
		.first_ns = writer->notes_first_ns,
		.last_ns = writer->notes_last_ns,
	};

	ASSERT(!writer->failed && !writer->ended);
	ASSERT(writer->stacks_new < writer->counts.stacks &&
	       writer->frames_new < writer->counts.frames);
	bytes_add(&writer->chain.raw, writer->records.data, writer->records.size);
	if (writer->frames_new > 0)
		defs_put_frames(&writer->chain.raw, writer->frames, writer->frames_new);
	if (writer->stacks_new > 0)
		defs_put_stacks(&writer->chain.raw,
				writer->counts.stacks - (stack_id)writer->stacks_new,
				writer->stacks, writer->stacks_new);
	bytes_add(&writer->chain.raw, writer->names.data, writer->names.size);
	if (writer->chain.raw.size == 0)
		return;
	writer->records.size = writer->names.size = 0;
	writer->frames_new = writer->stacks_new = 0;
	writer->notes_first_ns = writer->notes_last_ns = writer->chain.last_ns;
	if (!chain_put(&writer->chain, &block, false, &writer->err))
		fail(writer);
}

// What put_last_words may go back to is the state before a block that is in the file: where it is
// this one that does not fit, the one before it makes room.
static void put_events(struct writer *writer)
{
	struct block block = {
		.type = BLOCK_EVENTS,
		.events_count = writer->columns.count,
		.first_event = writer->chain.next_event,
		.first_ns = writer->columns.first_ns,
		.last_ns = writer->columns.last_ns,
	};

	const struct writer_mark before = mark_here(writer);

	ASSERT(writer->columns.count <= COLUMNS_EVENTS_MAX);
	ASSERT(!writer->failed && !writer->ended);
	if (writer->columns.count == 0)
		return;
	writer->chain.packer.cuts_count =
		columns_finish(&writer->columns, &writer->chain.raw, writer->chain.packer.cuts);
	if (!chain_put(&writer->chain, &block, false, &writer->err)) {
		fail(writer);
		return;
	}
	writer->whole = before;
	writer->columns.predicts = predict_when(&writer->when, block.events_count,
						block.stored_size, writer->columns.busy_ns);
	writer->chain.next_event += block.events_count;
	if (!chain_index(&writer->chain, &writer->err))
		fail(writer);
}

void writer_flush(struct writer *writer)
{
	if (writer->failed || writer->ended)
		return;
	put_defs(writer);
	if (!writer->failed)
		put_events(writer);
}

// A definition was added: write them out before they become many.
// Called after each definition, also by a writer that has failed: then nothing has grown.
static void defs_grew(struct writer *writer)
{
	if (writer->records.size + writer->names.size < DEFS_BYTES_MAX &&
	    writer->frames_new < DEFS_RUN_MAX && writer->stacks_new < DEFS_RUN_MAX)
		return;
	if (!writer->failed && !writer->ended)
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
	chain_init(&writer->chain, fd);
	writer->counts.modules = writer->counts.frames = writer->counts.stacks = 1;
	writer->counts.heaps = writer->counts.files = 1;
	block_preamble_encode(&head, preamble);
	if (!out_write(&writer->chain.out, preamble, sizeof preamble, false, err)) {
		writer_free(writer);
		return NULL;
	}
	defs_put_info(&writer->records, &stamped);
	put_defs(writer);
	if (writer->failed) {
		*err = writer->err;
		writer_free(writer);
		return NULL;
	}
	return writer;
}

static void writer_fini(struct writer *writer)
{
	chain_fini(&writer->chain);
	columns_encoder_fini(&writer->columns);
	bytes_fini(&writer->records);
	bytes_fini(&writer->names);
	MEM_FREE(writer->frames, writer->stacks);
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
	int fd = writer->chain.out.fd;

	ASSERT(writer->counts.processes == other->counts.processes);
	ASSERT(writer->counts.threads == other->counts.threads);
	ASSERT(writer->counts.modules == other->counts.modules);
	ASSERT(writer->counts.frames == other->counts.frames);
	ASSERT(writer->counts.stacks == other->counts.stacks);
	ASSERT(writer->counts.heaps == other->counts.heaps);
	ASSERT(writer->counts.files == other->counts.files);
	writer_fini(writer);
	*writer = *other;
	writer->chain.out.fd = fd;
	file_become(fd, other->chain.out.fd);
	mem_free(other);
}

// A writer that has failed still gives numbers, so that its caller needs no second way.
process_id writer_add_process(struct writer *writer, const struct trace_process *process)
{
	struct trace_process numbered = *process;

	ASSERT(process->parent == TRACE_NONE || process->parent < writer->counts.processes);
	numbered.id = writer->counts.processes++;
	if (!writer->failed)
		defs_put_process(&writer->records, &numbered);
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
	if (!writer->failed)
		defs_put_thread(&writer->records, &thread);
	defs_grew(writer);
	return thread.id;
}

module_id writer_add_module(struct writer *writer, const struct trace_module *module)
{
	struct trace_module numbered = *module;

	ASSERT(module->process < writer->counts.processes);
	ASSERT(module->build_id_length <= sizeof module->build_id);
	numbered.id = writer->counts.modules++;
	if (!writer->failed)
		defs_put_module(&writer->records, &numbered);
	defs_grew(writer);
	return numbered.id;
}

frame_id writer_add_frame(struct writer *writer, module_id module, uint64_t pc, uint32_t flags)
{
	frame_id id = writer->counts.frames++;

	ASSERT(module < writer->counts.modules);
	if (writer->failed)
		return id;
	*MEM_ADD(writer->frames, writer->frames_new, writer->frames_capacity) =
		(struct trace_frame){ .id = id, .module = module, .pc = pc, .flags = flags };
	defs_grew(writer);
	return id;
}

void writer_add_name(struct writer *writer, frame_id frame, const struct trace_name *names,
		     size_t count)
{
	ASSERT(frame > 0 && frame < writer->counts.frames && count <= DEFS_NAMES_MAX);
	if (!writer->failed)
		defs_put_name(&writer->names, frame, names, count);
	defs_grew(writer);
}

stack_id writer_add_stack(struct writer *writer, stack_id parent, frame_id frame, uint8_t flags)
{
	stack_id id = writer->counts.stacks++;

	ASSERT(parent < id && frame < writer->counts.frames);
	if (writer->failed)
		return id;
	*MEM_ADD(writer->stacks, writer->stacks_new, writer->stacks_capacity) =
		(struct trace_stack){ .parent = parent, .frame = frame, .flags = flags };
	defs_grew(writer);
	return id;
}

heap_id writer_add_heap(struct writer *writer, const struct trace_heap *heap)
{
	struct trace_heap numbered = *heap;

	ASSERT(heap->process < writer->counts.processes);
	numbered.id = writer->counts.heaps++;
	if (!writer->failed)
		defs_put_heap(&writer->records, &numbered);
	defs_grew(writer);
	return numbered.id;
}

file_id writer_add_file(struct writer *writer, const struct trace_file *file)
{
	struct trace_file numbered = *file;

	numbered.id = writer->counts.files++;
	if (!writer->failed)
		defs_put_file(&writer->records, &numbered);
	defs_grew(writer);
	return numbered.id;
}

void writer_snapshot(struct writer *writer, const struct trace_snapshot *snapshot)
{
	ASSERT(snapshot->process < writer->counts.processes);
	if (!writer->failed)
		defs_put_snapshot(&writer->records, snapshot);
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
		if (!writer->failed)
			defs_put_reach(&writer->names, reach, skip, count);
		defs_grew(writer);
		skip += count;
	} while (skip < reach->count);
}

// Calls on blocks of a heap that has a handle come: from here on blocks of events tell the heap.
// Most traces have no other heap than malloc's, and then no event has an entry for it. The first
// call on one begins a block of events whose events all have one, and so have those after it.
static inline void tell_heap(struct writer *writer, heap_id heap)
{
	if (heap == 0 || writer->columns.heaps)
		return;
	writer_flush(writer);
	writer->columns.heaps = true;
}

// A time that would fall is raised to that of the item before it.
void writer_event(struct writer *writer, const struct trace_event *event)
{
	ASSERT(event->thread < writer->counts.threads && event->stack < writer->counts.stacks);
	if (writer->failed || writer->ended) {
		writer->lost++;
		return;
	}
	if (event->time_ns > writer->chain.last_ns)
		writer->chain.last_ns = event->time_ns;
	if (event->kind <= TRACE_FAILED)
		tell_heap(writer, event->heap);
	columns_add(&writer->columns, event, writer->chain.last_ns);
	writer->events_count++;
	if (writer->columns.count == COLUMNS_EVENTS_MAX)
		writer_flush(writer);
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
	uint32_t fits = COLUMNS_EVENTS_MAX - writer->columns.count;

	ASSERT(row->thread < writer->counts.threads);
	if (writer->failed || writer->ended) {
		writer->lost += row->count;
		return;
	}
	if (row->count > fits) {
		add_singly(writer, row);
		return;
	}
	ASSERT(row->heap < writer->counts.heaps);
	if (row->time_ns < writer->chain.last_ns)
		row->time_ns = writer->chain.last_ns;
	writer->chain.last_ns = row->time_ns;
	tell_heap(writer, row->heap);
	columns_add_row(&writer->columns, row);
	writer->events_count += row->count;
	if (writer->columns.count == COLUMNS_EVENTS_MAX)
		writer_flush(writer);
}

// For example a row of 100 events 1,000 times, in a block that has 65,000 events. 536 events fit,
// which is five rows: one is added as a row, since the address before it may be another, and four
// as an echo. The sixth row crosses the end of the block and goes event by event. Then a new block
// begins, and so on.
void writer_echo(struct writer *writer, struct columns_row *row, uint32_t times)
{
	ASSERT(row->count > 0);
	while (times > 0) {
		uint32_t fit = (COLUMNS_EVENTS_MAX - writer->columns.count) / row->count;

		// The first one in a block, or across its end, begins from another address.
		writer_row(writer, row);
		times--;
		if (writer->failed || writer->ended) {
			writer->lost += (uint64_t)row->count * times;
			return;
		}
		if (fit < 2)
			continue;
		fit = fit - 1 < times ? fit - 1 : times;
		columns_add_echo(&writer->columns, row, fit);
		writer->events_count += (uint64_t)row->count * fit;
		times -= fit;
		if (writer->columns.count == COLUMNS_EVENTS_MAX)
			writer_flush(writer);
	}
}

// It waits among the records and has the number of the next event. Its place in the file may be
// before events that come earlier; a reader puts it in order.
void writer_note(struct writer *writer, const struct trace_note *note)
{
	struct trace_note timed = *note;

	if (writer->failed || writer->ended)
		return;
	ASSERT(note->process == TRACE_NONE || note->process < writer->counts.processes);
	if (timed.time_ns < writer->chain.last_ns)
		timed.time_ns = writer->chain.last_ns;
	writer->chain.last_ns = timed.time_ns;
	writer->notes_last_ns = timed.time_ns;
	defs_put_note(&writer->records, &timed, writer->events_count);
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

// What waits is written first, so that definitions and events keep their order in the file.
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
		if (writer->failed || writer->ended)
			return;
		bundle_reader_encode(&writer->chain.raw, &bundle_reader_part,
				     (const uint8_t *)bytes + at);
		if (!chain_put_plain(&writer->chain, BLOCK_BUNDLE, false, &writer->err))
			fail(writer);
		at += part;
	} while (at < size);
}

// After a failure the end record is there already, with what the writer knew; the caller's figures
// replace it. A second call does nothing.
void writer_end(struct writer *writer, const struct trace_end *end)
{
	struct trace_end counted = *end;

	writer_flush(writer);
	if (writer->ended)
		return;
	writer->ended = true;
	counted.events = writer->chain.next_event;
	if (!writer->failed && !chain_end(&writer->chain, &counted, &writer->err))
		writer->failed = true;
	if (writer->failed && writer->chain.out.regular)
		put_last_words(writer, end);
	out_finish(&writer->chain.out);
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
	return writer->chain.next_event;
}

uint64_t writer_bytes(const struct writer *writer)
{
	return writer->chain.out.size;
}

bool writer_ok(const struct writer *writer, struct err *err)
{
	if (writer->failed)
		*err = writer->err;
	return !writer->failed;
}
