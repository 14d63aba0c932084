// What the tables of a reader have: definitions, names, marks, snapshots, bundled files.
//
// All of it is borrowed from `defs`. An id that is too large has no entry: callers may ask with any
// number that a trace gave them.
#include "trace/reader_own.h"

#include <inttypes.h>
#include <stdio.h>

// How many there are of what a trace defines, and one of them by its id.
#define READER_TABLE(one, many, key, member)                                                  \
	uint32_t reader_##many##_count(const struct reader *reader)                           \
	{                                                                                     \
		return (uint32_t)reader->defs.many##_count;                                   \
	}                                                                                     \
	const struct trace_##one *reader_##one(const struct reader *reader, key id)           \
	{                                                                                     \
		return id < reader->defs.many##_count ? &reader->defs.many[id] member : NULL; \
	}

READER_TABLE(process, processes, process_id, )
READER_TABLE(thread, threads, thread_id, )
READER_TABLE(module, modules, module_id, )
READER_TABLE(frame, frames, frame_id, )
READER_TABLE(stack, stacks, stack_id, )
READER_TABLE(heap, heaps, heap_id, )
READER_TABLE(file, files, file_id, )
READER_TABLE(snapshot, snapshots, uint32_t, .head)
READER_TABLE(reach, reaches, uint32_t, .head)

bool reader_heap_is_language(const struct trace_heap *heap)
{
	return heap && heap->handle && heap->name[0];
}

// Heap 0 is malloc's and has no entry of its own: no pool.
bool reader_heap_is_pool(const struct trace_heap *heap)
{
	return heap && heap->id && !heap->handle;
}

// A handle is a name only where there is no other. NULL is malloc's heap.
const char *reader_heap_name(const struct trace_heap *heap, char text[static READER_HEAP_TEXT])
{
	if (!heap)
		return "malloc";
	if (heap->name[0] || heap->handle == 0)
		return heap->name;
	snprintf(text, READER_HEAP_TEXT, "0x%" PRIx64, heap->handle);
	return text;
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
