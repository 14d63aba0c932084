// The writing half of defs.h.
//
// Each record is made in a buffer of its own first, since its length comes before it. Fields are
// only ever added at the end: a reader steps over what it does not know, and one that is newer
// takes what is missing as 0.
//
// For example a thread of tid 4690, id 0, in process 0, without a name: the fields are 00 00 d2 24
// 00, five bytes, so the record is 03 05 00 00 d2 24 00.
#include "trace/defs.h"

#include "trace/reach.h"
#include "trace/snapshot.h"

void defs_put(struct bytes *out, enum defs_kind kind, struct bytes *content)
{
	BYTES_ADD_ALL(out, kind, content->size);
	bytes_add(out, content->data, content->size);
	bytes_fini(content);
}

// Labels need the distance before them, as fields are known by their order: then it is there as 0.
void defs_put_info(struct bytes *out, const struct trace_info *info)
{
	struct bytes content = { 0 };
	uint64_t sample_bytes = info->sample_bytes;

	bytes_add_varint(&content, info->version_major);
	bytes_add_varint(&content, info->version_minor);
	bytes_add(&content, info->recording_id, sizeof info->recording_id);
	bytes_add_varint(&content, info->began_unix_ns);
	bytes_add_varint(&content, info->tick_ns);
	bytes_add_text(&content, info->tool, DEFS_TEXT_MAX);
	bytes_add_text(&content, info->host, DEFS_TEXT_MAX);
	bytes_add_text(&content, info->command, DEFS_TEXT_MAX);
	bytes_add_text(&content, info->directory, DEFS_TEXT_MAX);
	bytes_add_text(&content, info->options, DEFS_TEXT_MAX);
	// A distance of 1, by which older readers take it for sampled, and all blocks for one each.
	if (defs_option(info->options, TRACE_BUDGET))
		sample_bytes = 1;
	if (sample_bytes > 0 || (info->labels && *info->labels))
		bytes_add_varint(&content, sample_bytes);
	if (info->labels && *info->labels)
		bytes_add_text(&content, info->labels, DEFS_TEXT_MAX);
	defs_put(out, DEFS_INFO, &content);
}

// All arguments together take DEFS_ARGS_MAX bytes at most: the ones after that are empty, their
// number stays right.
void defs_put_process(struct bytes *out, const struct trace_process *process)
{
	struct bytes content = { 0 };
	size_t room = DEFS_ARGS_MAX;

	bytes_add_varint(&content, process->id);
	// One more, so that "none" is 0.
	BYTES_ADD_ALL(&content, (uint32_t)(process->parent + 1), process->pid, process->generation,
		      process->start, process->bits, process->began_ns);
	bytes_add_text(&content, process->exe, DEFS_TEXT_MAX);
	bytes_add_varint(&content, process->args_count);
	for (uint32_t i = 0; i < process->args_count; i++) {
		size_t before = content.size;

		bytes_add_text(&content, process->args[i],
			       room < DEFS_TEXT_MAX ? room : DEFS_TEXT_MAX);
		room -= content.size - before < room ? content.size - before : room;
	}
	defs_put(out, DEFS_PROCESS, &content);
}

void defs_put_thread(struct bytes *out, const struct trace_thread *thread)
{
	struct bytes content = { 0 };

	BYTES_ADD_ALL(&content, thread->id, thread->process, thread->tid);
	bytes_add_text(&content, thread->name, sizeof thread->name - 1);
	defs_put(out, DEFS_THREAD, &content);
}

void defs_put_module(struct bytes *out, const struct trace_module *module)
{
	struct bytes content = { 0 };

	BYTES_ADD_ALL(&content, module->id, module->process, module->start, module->end,
		      module->bias, module->file_size, module->file_mtime_ns,
		      module->build_id_length);
	bytes_add(&content, module->build_id, module->build_id_length);
	bytes_add_text(&content, module->path, DEFS_TEXT_MAX);
	defs_put(out, DEFS_MODULE, &content);
}

// `count` is at least 1. Modules and flags are runs: frames that were met together are of few
// modules.
void defs_put_frames(struct bytes *out, const struct trace_frame *frames, size_t count)
{
	struct bytes content = { 0 };
	uint64_t pc = 0;
	struct bytes_run run = { 0 };

	ASSERT(count > 0);
	bytes_add_varint(&content, frames[0].id);
	bytes_add_varint(&content, count);
	for (size_t i = 0; i < count; i++)
		bytes_run_add(&content, &run, frames[i].module);
	bytes_run_end(&content, &run);
	for (size_t i = 0; i < count; i++)
		bytes_run_add(&content, &run, frames[i].flags);
	bytes_run_end(&content, &run);
	for (size_t i = 0; i < count; i++) {
		bytes_add_signed(&content, (int64_t)(frames[i].pc - pc));
		pc = frames[i].pc;
	}
	defs_put(out, DEFS_FRAMES, &content);
}

// A stack without a parent has its own id for a distance.
void defs_put_stacks(struct bytes *out, stack_id first, const struct trace_stack *stacks,
		     size_t count)
{
	struct bytes content = { 0 };
	int64_t frame = 0;
	struct bytes_run run = { 0 };

	ASSERT(count > 0 && stacks[count - 1].parent < first + count - 1);
	bytes_add_varint(&content, first);
	bytes_add_varint(&content, count);
	for (size_t i = 0; i < count; i++)
		bytes_run_add(&content, &run, stacks[i].flags);
	bytes_run_end(&content, &run);
	// Most new stacks stand on the one before: a distance of 1.
	for (size_t i = 0; i < count; i++)
		bytes_add_varint(&content, first + i - stacks[i].parent);
	for (size_t i = 0; i < count; i++) {
		bytes_add_signed(&content, (int64_t)stacks[i].frame - frame);
		frame = stacks[i].frame;
	}
	defs_put(out, DEFS_STACKS, &content);
}

void defs_put_note(struct bytes *out, const struct trace_note *note, uint64_t number)
{
	struct bytes content = { 0 };

	BYTES_ADD_ALL(&content, note->kind, number, note->time_ns, (uint32_t)(note->process + 1),
		      (uint32_t)(note->thread + 1), note->value);
	bytes_add_text(&content, note->text, DEFS_TEXT_MAX);
	defs_put(out, DEFS_NOTE, &content);
}

// Innermost first, as all lists of names at one frame.
void defs_put_name(struct bytes *out, frame_id frame, const struct trace_name *names, size_t count)
{
	struct bytes content = { 0 };

	ASSERT(count <= DEFS_NAMES_MAX);
	bytes_add_varint(&content, frame);
	bytes_add_varint(&content, count);
	for (size_t i = 0; i < count; i++) {
		bytes_add_varint(&content, names[i].line);
		bytes_add_text(&content, names[i].function, DEFS_TEXT_MAX);
		bytes_add_text(&content, names[i].file, DEFS_TEXT_MAX);
	}
	defs_put(out, DEFS_NAME, &content);
}

// Only of a heap that was made while it was recorded there is a number after the name: its flags +
// 1.
void defs_put_heap(struct bytes *out, const struct trace_heap *heap)
{
	struct bytes content = { 0 };

	BYTES_ADD_ALL(&content, heap->id, heap->process, heap->handle);
	bytes_add_text(&content, heap->name, DEFS_TEXT_MAX);
	if (heap->created)
		bytes_add_varint(&content, (uint64_t)heap->flags + 1);
	defs_put(out, DEFS_HEAP, &content);
}

void defs_put_file(struct bytes *out, const struct trace_file *file)
{
	struct bytes content = { 0 };

	BYTES_ADD_ALL(&content, file->id, file->device, file->inode);
	bytes_add_text(&content, file->path, DEFS_TEXT_MAX);
	defs_put(out, DEFS_FILE, &content);
}

void defs_put_snapshot(struct bytes *out, const struct trace_snapshot *snapshot)
{
	struct bytes content = { 0 };

	snapshot_encode(&content, snapshot);
	defs_put(out, DEFS_SNAPSHOT, &content);
}

// `skip` and `count` say which of the blocks go into this record.
void defs_put_reach(struct bytes *out, const struct trace_reach *reach, uint64_t skip,
		    uint64_t count)
{
	struct bytes content = { 0 };

	reach_encode(&content, reach, skip, count);
	defs_put(out, DEFS_REACH, &content);
}
