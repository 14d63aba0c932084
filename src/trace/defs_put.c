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

void defs_put(struct bytes *out, enum defs_kind kind, const struct bytes *content)
{
	bytes_add_varint(out, kind);
	bytes_add_varint(out, content->size);
	bytes_add(out, content->data, content->size);
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
	bytes_fini(&content);
}

// All arguments together take DEFS_ARGS_MAX bytes at most: the ones after that are empty, their
// number stays right.
void defs_put_process(struct bytes *out, const struct trace_process *process)
{
	struct bytes content = { 0 };
	size_t room = DEFS_ARGS_MAX;

	bytes_add_varint(&content, process->id);
	// One more, so that "none" is 0.
	bytes_add_varint(&content, (uint32_t)(process->parent + 1));
	bytes_add_varint(&content, process->pid);
	bytes_add_varint(&content, process->generation);
	bytes_add_varint(&content, process->start);
	bytes_add_varint(&content, process->bits);
	bytes_add_varint(&content, process->began_ns);
	bytes_add_text(&content, process->exe, DEFS_TEXT_MAX);
	bytes_add_varint(&content, process->args_count);
	for (uint32_t i = 0; i < process->args_count; i++) {
		size_t before = content.size;

		bytes_add_text(&content, process->args[i],
			       room < DEFS_TEXT_MAX ? room : DEFS_TEXT_MAX);
		room -= content.size - before < room ? content.size - before : room;
	}
	defs_put(out, DEFS_PROCESS, &content);
	bytes_fini(&content);
}

void defs_put_thread(struct bytes *out, const struct trace_thread *thread)
{
	struct bytes content = { 0 };

	bytes_add_varint(&content, thread->id);
	bytes_add_varint(&content, thread->process);
	bytes_add_varint(&content, thread->tid);
	bytes_add_text(&content, thread->name, sizeof thread->name - 1);
	defs_put(out, DEFS_THREAD, &content);
	bytes_fini(&content);
}

void defs_put_module(struct bytes *out, const struct trace_module *module)
{
	struct bytes content = { 0 };

	bytes_add_varint(&content, module->id);
	bytes_add_varint(&content, module->process);
	bytes_add_varint(&content, module->start);
	bytes_add_varint(&content, module->end);
	bytes_add_varint(&content, module->bias);
	bytes_add_varint(&content, module->file_size);
	bytes_add_varint(&content, module->file_mtime_ns);
	bytes_add_varint(&content, module->build_id_length);
	bytes_add(&content, module->build_id, module->build_id_length);
	bytes_add_text(&content, module->path, DEFS_TEXT_MAX);
	defs_put(out, DEFS_MODULE, &content);
	bytes_fini(&content);
}

// A value and how many times it stands there; runs follow each other until `count` are told.
static void put_run(struct bytes *out, uint64_t value, size_t *run)
{
	if (*run > 0) {
		bytes_add_varint(out, value);
		bytes_add_varint(out, *run);
	}
	*run = 0;
}

// `count` is at least 1. Modules and flags are runs: frames that were met together are of few
// modules.
void defs_put_frames(struct bytes *out, const struct trace_frame *frames, size_t count)
{
	struct bytes content = { 0 };
	uint64_t pc = 0;
	size_t run = 0;

	ASSERT(count > 0);
	bytes_add_varint(&content, frames[0].id);
	bytes_add_varint(&content, count);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && frames[i].module != frames[i - 1].module)
			put_run(&content, frames[i - 1].module, &run);
		run++;
	}
	put_run(&content, frames[count - 1].module, &run);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && frames[i].flags != frames[i - 1].flags)
			put_run(&content, frames[i - 1].flags, &run);
		run++;
	}
	put_run(&content, frames[count - 1].flags, &run);
	for (size_t i = 0; i < count; i++) {
		bytes_add_signed(&content, (int64_t)(frames[i].pc - pc));
		pc = frames[i].pc;
	}
	defs_put(out, DEFS_FRAMES, &content);
	bytes_fini(&content);
}

// A stack without a parent has its own id for a distance.
void defs_put_stacks(struct bytes *out, stack_id first, const struct trace_stack *stacks,
		     size_t count)
{
	struct bytes content = { 0 };
	int64_t frame = 0;
	size_t run = 0;

	ASSERT(count > 0 && stacks[count - 1].parent < first + count - 1);
	bytes_add_varint(&content, first);
	bytes_add_varint(&content, count);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && stacks[i].flags != stacks[i - 1].flags)
			put_run(&content, stacks[i - 1].flags, &run);
		run++;
	}
	put_run(&content, stacks[count - 1].flags, &run);
	// Most new stacks stand on the one before: a distance of 1.
	for (size_t i = 0; i < count; i++)
		bytes_add_varint(&content, first + i - stacks[i].parent);
	for (size_t i = 0; i < count; i++) {
		bytes_add_signed(&content, (int64_t)stacks[i].frame - frame);
		frame = stacks[i].frame;
	}
	defs_put(out, DEFS_STACKS, &content);
	bytes_fini(&content);
}

void defs_put_note(struct bytes *out, const struct trace_note *note, uint64_t number)
{
	struct bytes content = { 0 };

	bytes_add_varint(&content, note->kind);
	bytes_add_varint(&content, number);
	bytes_add_varint(&content, note->time_ns);
	bytes_add_varint(&content, (uint32_t)(note->process + 1));
	bytes_add_varint(&content, (uint32_t)(note->thread + 1));
	bytes_add_varint(&content, note->value);
	bytes_add_text(&content, note->text, DEFS_TEXT_MAX);
	defs_put(out, DEFS_NOTE, &content);
	bytes_fini(&content);
}

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
	bytes_fini(&content);
}

void defs_put_heap(struct bytes *out, const struct trace_heap *heap)
{
	struct bytes content = { 0 };

	bytes_add_varint(&content, heap->id);
	bytes_add_varint(&content, heap->process);
	bytes_add_varint(&content, heap->handle);
	bytes_add_text(&content, heap->name, DEFS_TEXT_MAX);
	if (heap->created)
		bytes_add_varint(&content, (uint64_t)heap->flags + 1);
	defs_put(out, DEFS_HEAP, &content);
	bytes_fini(&content);
}

void defs_put_file(struct bytes *out, const struct trace_file *file)
{
	struct bytes content = { 0 };

	bytes_add_varint(&content, file->id);
	bytes_add_varint(&content, file->device);
	bytes_add_varint(&content, file->inode);
	bytes_add_text(&content, file->path, DEFS_TEXT_MAX);
	defs_put(out, DEFS_FILE, &content);
	bytes_fini(&content);
}

void defs_put_snapshot(struct bytes *out, const struct trace_snapshot *snapshot)
{
	struct bytes content = { 0 };

	snapshot_encode(&content, snapshot);
	defs_put(out, DEFS_SNAPSHOT, &content);
	bytes_fini(&content);
}

// `skip` and `count` say which of the blocks go into this record.
void defs_put_reach(struct bytes *out, const struct trace_reach *reach, uint64_t skip,
		    uint64_t count)
{
	struct bytes content = { 0 };

	reach_encode(&content, reach, skip, count);
	defs_put(out, DEFS_REACH, &content);
	bytes_fini(&content);
}
