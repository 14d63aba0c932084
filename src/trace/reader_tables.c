// What the tables of a reader have: definitions, names, marks, snapshots, bundled files.
//
// All of it is borrowed from `defs`. An id that is too large has no entry: callers may ask with any
// number that a trace gave them.
#include "trace/reader_own.h"

#include <inttypes.h>
#include <stdio.h>

uint32_t reader_processes_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.processes_count;
}

uint32_t reader_threads_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.threads_count;
}

uint32_t reader_modules_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.modules_count;
}

uint32_t reader_frames_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.frames_count;
}

uint32_t reader_stacks_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.stacks_count;
}

const struct trace_process *reader_process(const struct reader *reader, process_id id)
{
	return id < reader->defs.processes_count ? &reader->defs.processes[id] : NULL;
}

const struct trace_thread *reader_thread(const struct reader *reader, thread_id id)
{
	return id < reader->defs.threads_count ? &reader->defs.threads[id] : NULL;
}

const struct trace_module *reader_module(const struct reader *reader, module_id id)
{
	return id < reader->defs.modules_count ? &reader->defs.modules[id] : NULL;
}

const struct trace_frame *reader_frame(const struct reader *reader, frame_id id)
{
	return id < reader->defs.frames_count ? &reader->defs.frames[id] : NULL;
}

const struct trace_stack *reader_stack(const struct reader *reader, stack_id id)
{
	return id < reader->defs.stacks_count ? &reader->defs.stacks[id] : NULL;
}

uint32_t reader_heaps_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.heaps_count;
}

uint32_t reader_files_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.files_count;
}

const struct trace_heap *reader_heap(const struct reader *reader, heap_id id)
{
	return id < reader->defs.heaps_count ? &reader->defs.heaps[id] : NULL;
}

bool reader_heap_is_language(const struct trace_heap *heap)
{
	return heap && heap->handle && heap->name[0];
}

// Heap 0 is malloc's and has no entry of its own: no pool.
bool reader_heap_is_pool(const struct trace_heap *heap)
{
	return heap && heap->id && !heap->handle;
}

const char *reader_heap_name(const struct trace_heap *heap, char text[static READER_HEAP_TEXT])
{
	if (!heap)
		return "malloc";
	if (heap->name[0] || heap->handle == 0)
		return heap->name;
	snprintf(text, READER_HEAP_TEXT, "0x%" PRIx64, heap->handle);
	return text;
}

const struct trace_file *reader_file(const struct reader *reader, file_id id)
{
	return id < reader->defs.files_count ? &reader->defs.files[id] : NULL;
}

uint32_t reader_snapshots_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.snapshots_count;
}

const struct trace_snapshot *reader_snapshot(const struct reader *reader, uint32_t index)
{
	return index < reader->defs.snapshots_count ? &reader->defs.snapshots[index].head : NULL;
}

// Snapshots stay as they were in the file, since their arrays are large and few are looked at: each
// is decoded when it is asked for, and was checked when it came.
bool reader_snapshot_load(const struct reader *reader, uint32_t index,
			  struct trace_snapshot *snapshot)
{
	const struct defs *defs = &reader->defs;

	*snapshot = (struct trace_snapshot){ 0 };
	return index < defs->snapshots_count &&
	       snapshot_decode(bytes_cursor(defs->snapshots[index].bytes,
					    defs->snapshots[index].size),
			       (uint32_t)defs->files_count, true, snapshot);
}

uint32_t reader_reaches_count(const struct reader *reader)
{
	return (uint32_t)reader->defs.reaches_count;
}

const struct trace_reach *reader_reach(const struct reader *reader, uint32_t index)
{
	return index < reader->defs.reaches_count ? &reader->defs.reaches[index].head : NULL;
}

bool reader_reach_load(const struct reader *reader, uint32_t index, struct trace_reach *reach)
{
	return defs_load_reach(&reader->defs, index, reach);
}

const struct trace_name *reader_frame_names(const struct reader *reader, frame_id id, size_t *count)
{
	*count = 0;
	if (id >= reader->defs.names_capacity || reader->defs.names[id].count == 0)
		return NULL;
	*count = reader->defs.names[id].count;
	return reader->defs.names[id].names;
}

const struct trace_mark *reader_marks(const struct reader *reader, size_t *count)
{
	*count = reader->marks_count;
	return reader->marks;
}

const struct trace_turn *reader_turns(const struct reader *reader, size_t *count)
{
	*count = reader->turns_count;
	return reader->turns;
}

bool reader_is_estimated(const struct reader *reader)
{
	return reader_info(reader)->sample_bytes > 0 || reader->sampled || reader->defs.sampled;
}

// One distance for all of the trace, or one for each stack where it was sampled at times only.
uint64_t reader_sample_bytes(const struct reader *reader, stack_id stack)
{
	uint64_t mean_bytes = reader_info(reader)->sample_bytes;

	return mean_bytes > 0 ? mean_bytes : trace_stack_sampled(reader_stack(reader, stack));
}

const void *reader_bundle(const struct reader *reader, const uint8_t *build_id,
			  size_t build_id_length, size_t *size)
{
	return bundle_reader_find(reader->bundle_reader, &reader->store, build_id, build_id_length,
				  size);
}
