// Where writing fails, the file is cut back to the last whole block, and the end record, which says
// why, goes into room that was kept for it. Where there was no such room, the last block of events
// makes it (put_last_words), and the events in it are counted as lost.
#include "trace/writer_file.h"

#include "base/mem.h"
#include "trace/defs.h"
#include "wire/compiler.h"

_Static_assert(COLUMNS_EVENTS_MAX <= (int)BLOCK_EVENTS_MAX, "a reader takes our blocks");

// Where events come as quickly as this, to compress what hardly gets smaller takes too much of a
// program's time.
enum { QUICK_EVENT_NS = 100 };

void writer_defs_fini(struct writer_defs *defs)
{
	bytes_fini(&defs->records);
	bytes_fini(&defs->names);
	MEM_FREE(defs->frames, defs->stacks);
	*defs = (struct writer_defs){ 0 };
}

void writer_file_fini(struct writer_file *file)
{
	chain_fini(&file->chain);
	columns_encoder_fini(&file->columns);
}

// Go back to an earlier state of the file.
static bool go_back(struct writer_file *file, const struct writer_mark *mark)
{
	struct err ignored;

	ASSERT(mark->events <= file->chain.next_event && mark->sequence <= file->chain.sequence);
	file->chain.seek.count = 0;
	file->chain.sequence = mark->sequence;
	file->chain.next_event = mark->events;
	file->chain.index_at = 0; // what it covered may be gone; a reader does without
	return out_cut(&file->chain.out, mark->size, &ignored);
}

static struct writer_mark mark_here(const struct writer_file *file)
{
	return (struct writer_mark){
		.size = file->chain.out.size,
		.events = file->chain.next_event,
		.sequence = file->chain.sequence,
	};
}

// Write the end record of a recording that a failure cut short, into the room kept for it. Where
// there was none, the last block of events makes room. A second call, with the collector's own
// figures, replaces the first record.
// For example the disk is full while a DEFS block is written, after a block of 65,536 events. The
// DEFS block is cut off again (out.h), and INDEX and END go into the room that out.h has kept free.
// Where the file system keeps none, that may fail; then the block of events is cut off as well, and
// its events are lost and counted.
static void put_last_words(struct writer_file *file, const struct trace_end *given, uint64_t lost)
{
	struct trace_end end = given ? *given
				     : (struct trace_end){ .duration_ns = file->chain.last_ns };
	struct writer_mark whole = file->whole;
	struct err ignored;

	ASSERT(file->failed);
	end.why = file->err.text;
	if (file->words.size > 0)
		go_back(file, &file->words);
	file->words = mark_here(file);
	for (int attempt = 0; attempt < 2; attempt++) {
		end.events = file->chain.next_event;
		end.events_lost = (given ? given->events_lost : 0) + lost + file->events_count -
				  file->chain.next_event;
		if (chain_end(&file->chain, &end, &ignored))
			break;
		if (attempt == 0 && whole.size > 0 && whole.size < file->words.size)
			file->words = whole;
		if (!go_back(file, &file->words))
			break;
	}
}

// A pipe cannot be cut back, so nothing more goes into it: its reader sees a cut trace.
static void fail(struct writer_file *file)
{
	file->failed = true;
	if (file->chain.out.regular)
		put_last_words(file, NULL, 0);
	out_finish(&file->chain.out);
}

// The order is that of reference: records (processes, threads, modules, heaps, files), then frames,
// which name modules, then stacks, which name frames, then names of frames.
static void put_defs(struct writer_file *file, const struct writer_defs *defs)
{
	struct bytes *raw = &file->chain.raw;
	struct block block = {
		.type = BLOCK_DEFS,
		.first_event = defs->first_event,
		.first_ns = defs->notes_first_ns,
		.last_ns = defs->notes_last_ns,
	};

	ASSERT(!writer_defs_empty(defs));
	file->chain.last_ns = defs->last_ns;
	bytes_add(raw, defs->records.data, defs->records.size);
	if (defs->frames_count > 0)
		defs_put_frames(raw, defs->frames, defs->frames_count);
	if (defs->stacks_count > 0)
		defs_put_stacks(raw, defs->stacks_first, defs->stacks, defs->stacks_count);
	bytes_add(raw, defs->names.data, defs->names.size);
	if (!chain_put(&file->chain, &block, false, &file->err))
		fail(file);
}

void writer_file_defs(struct writer_file *file, struct writer_defs *defs)
{
	if (!file->failed)
		put_defs(file, defs);
	defs->records.size = defs->names.size = 0;
	defs->frames_count = defs->stacks_count = 0;
}

void writer_file_event(struct writer_file *file, const struct trace_event *event, uint64_t time_ns)
{
	file->events_count++;
	if (unlikely(file->failed))
		return;
	if (event->kind <= TRACE_FAILED && event->heap != 0)
		file->columns.heaps = true; // count is 0, or they had it (writer.c, tell_heap)
	columns_add(&file->columns, event, time_ns);
}

void writer_file_row(struct writer_file *file, const struct columns_row *row)
{
	file->events_count += row->count;
	if (unlikely(file->failed))
		return;
	if (row->heap != 0)
		file->columns.heaps = true;
	columns_add_row(&file->columns, row);
}

void writer_file_echo(struct writer_file *file, const struct columns_row *row, uint32_t times)
{
	file->events_count += (uint64_t)row->count * times;
	if (likely(!file->failed))
		columns_add_echo(&file->columns, row, times);
}

// What put_last_words may go back to is the state before a block that is in the file: where it is
// this one that does not fit, the one before it makes room.
void writer_file_cut(struct writer_file *file, uint64_t last_ns)
{
	const struct writer_mark before = mark_here(file);
	struct block block = {
		.type = BLOCK_EVENTS,
		.events_count = file->columns.count,
		.first_event = file->chain.next_event,
		.first_ns = file->columns.first_ns,
		.last_ns = file->columns.last_ns,
	};
	size_t stored;

	if (file->failed)
		return;
	ASSERT(file->columns.count > 0 && file->columns.count <= COLUMNS_EVENTS_MAX);
	file->chain.last_ns = last_ns;
	columns_finish(&file->columns, &file->chain.raw, &file->chain.packer);
	file->chain.packer.quick = file->columns.busy_ns <
				   (uint64_t)block.events_count * QUICK_EVENT_NS;
	if (!chain_put(&file->chain, &block, false, &file->err)) {
		fail(file);
		return;
	}
	file->whole = before;
	// What predicting saves is reckoned of what can be compressed.
	stored = block.stored_size > file->chain.packer.spared
			 ? block.stored_size - file->chain.packer.spared
			 : 0;
	file->columns.predicts =
		predict_when(&file->when, block.events_count, stored, file->columns.busy_ns);
	file->chain.next_event += block.events_count;
	if (!chain_index(&file->chain, &file->err))
		fail(file);
}

void writer_file_plain(struct writer_file *file, enum block_type type)
{
	if (!chain_put_plain(&file->chain, type, false, &file->err))
		fail(file);
}

void writer_file_end(struct writer_file *file, const struct trace_end *end, uint64_t lost)
{
	struct trace_end counted = *end;

	counted.events = file->chain.next_event;
	if (!file->failed && !chain_end(&file->chain, &counted, &file->err))
		file->failed = true;
	if (file->failed && file->chain.out.regular)
		put_last_words(file, end, lost);
	out_finish(&file->chain.out);
}
