// Traces to test with: a random one that remembers what was put in, and a small fixed one.
#pragma once

#include "base/mem.h"
#include "trace/columns.h"
#include "trace/reader.h"
#include "trace/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A small generator, so that a test means the same on each machine.
struct sample_random {
	uint64_t state;
};

static inline uint64_t sample_next(struct sample_random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline uint64_t sample_below(struct sample_random *random, uint64_t limit)
{
	return sample_next(random) % limit;
}

// An item as it was written: an event, or (kind 0) a note.
struct sample_item {
	struct trace_event event;
	struct trace_note note;
	struct trace_vm vm; // what event.vm pointed at
	char text[24];
};

struct sample {
	struct sample_item *items;
	size_t count, capacity;
	uint32_t processes, threads, modules, frames, stacks, heaps, files, snapshots;
	stack_id *parents;
	frame_id *stack_frames;
	uint64_t *frame_pcs;
};

static inline struct trace_info sample_info(void)
{
	return (struct trace_info){
		.recording_id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
		.began_unix_ns = 1700000000000000000,
		.tool = "tidemark 0.1.0",
		.host = "Linux 6.1 x86_64",
		.command = "./app --fast 'two words'",
		.directory = "/home/me",
		.options = "free-stacks",
		.tick_ns = 100000,
	};
}

static inline void sample_fini(struct sample *sample)
{
	mem_free(sample->items);
	mem_free(sample->parents);
	mem_free(sample->stack_frames);
	mem_free(sample->frame_pcs);
	*sample = (struct sample){ 0 };
}

static inline struct sample_item *sample_push(struct sample *sample)
{
	sample->items = mem_grow(sample->items, &sample->capacity, sample->count + 1,
				 sizeof *sample->items);
	memset(&sample->items[sample->count], 0, sizeof *sample->items);
	return &sample->items[sample->count++];
}

static inline void sample_add_process(struct sample *sample, struct writer *writer,
				      struct sample_random *random)
{
	char *args[] = { "app", "", "--size=7" };
	struct trace_process process = {
		.parent = sample->processes ? (process_id)sample_below(random, sample->processes)
					    : TRACE_NONE,
		.pid = 1000 + sample->processes,
		.generation = (uint32_t)sample_below(random, 3),
		.start = sample_below(random, 2) ? TRACE_START_FORK : TRACE_START_EXEC,
		.bits = 64,
		.exe = "/usr/bin/app",
		.args_count = (uint32_t)sample_below(random, 4),
		.args = args,
	};

	if (process.args_count > 3)
		process.args_count = 3;
	writer_add_process(writer, &process);
	sample->processes++;
}

static inline void sample_add_thread(struct sample *sample, struct writer *writer,
				     struct sample_random *random)
{
	writer_add_thread(writer, (process_id)sample_below(random, sample->processes),
			  2000 + sample->threads, sample->threads % 3 ? "worker" : "");
	sample->threads++;
}

static inline void sample_add_module(struct sample *sample, struct writer *writer,
				     struct sample_random *random)
{
	struct trace_module module = {
		.process = (process_id)sample_below(random, sample->processes),
		.start = 0x7f0000000000 + sample->modules * 0x100000ull,
		.file_size = 4096,
		.file_mtime_ns = 1600000000123456789,
		.build_id_length = sample->modules % 2 ? 20 : 0,
		.path = "/usr/lib/libapp.so",
	};

	module.end = module.start + 0x100000;
	module.bias = module.start - 0x1000;
	memset(module.build_id, (int)(sample->modules & 0xff), module.build_id_length);
	writer_add_module(writer, &module);
	sample->modules++;
}

static inline void sample_add_stack(struct sample *sample, struct writer *writer,
				    struct sample_random *random)
{
	uint64_t pc = 0x7f0000000000 + sample_below(random, 1 << 24);
	frame_id frame = sample->frames + 1;

	if (sample->frames == 0 || sample_below(random, 3) == 0) {
		writer_add_frame(writer, (module_id)sample_below(random, sample->modules + 1), pc,
				 sample_below(random, 50) == 0);
		sample->frames++;
	} else {
		frame = 1 + (frame_id)sample_below(random, sample->frames);
	}
	writer_add_stack(writer, (stack_id)sample_below(random, sample->stacks + 1), frame,
			 sample_below(random, 20) == 0 ? TRACE_STACK_INCOMPLETE : 0);
	sample->stacks++;
}

static inline void sample_add_event(struct sample *sample, struct writer *writer,
				    struct sample_random *random, uint64_t time_ns)
{
	struct sample_item *item = sample_push(sample);
	struct trace_event *event = &item->event;

	event->kind = (uint8_t)(1 + sample_below(random, TRACE_FAILED));
	event->time_ns = time_ns;
	event->thread = (thread_id)sample_below(random, sample->threads);
	if (event->kind != TRACE_FAILED)
		event->address = 0x550000000000 +
				 sample_below(random, 1 << 20) * (sample_below(random, 9) ? 16 : 1);
	if (sample_below(random, 200) == 0)
		event->address = event->kind == TRACE_FAILED ? 0 : sample_next(random);
	if (event->kind == TRACE_REALLOC)
		event->old_address = event->address + 16 * sample_below(random, 100);
	if (event->kind != TRACE_FREE && event->kind != TRACE_REALLOC_FREE)
		event->size = sample_next(random) >> sample_below(random, 64);
	if (event->kind == TRACE_ALIGNED)
		event->align_log2 = (uint8_t)sample_below(random, 20);
	event->stack = (stack_id)sample_below(random, sample->stacks + 1);
	writer_event(writer, event);
}

static inline void sample_add_heap(struct sample *sample, struct writer *writer,
				   struct sample_random *random)
{
	struct trace_heap heap = {
		.process = (process_id)sample_below(random, sample->processes),
		.handle = sample->heaps % 2 ? sample_next(random) : 0,
		.name = sample->heaps % 2 ? "" : "a \"pool\"",
	};

	writer_add_heap(writer, &heap);
	sample->heaps++;
}

static inline void sample_add_file(struct sample *sample, struct writer *writer,
				   struct sample_random *random)
{
	struct trace_file file = {
		.device = sample_below(random, 1 << 20),
		.inode = sample_next(random),
		.path = sample->files % 3 ? "/memfd:x (deleted)" : "[heap]",
	};

	writer_add_file(writer, &file);
	sample->files++;
}

static inline void sample_add_snapshot(struct sample *sample, struct writer *writer,
				       struct sample_random *random, uint64_t time_ns)
{
	struct trace_mapping mappings[7];
	struct trace_pages pages[20];
	struct trace_snapshot snapshot = {
		.process = (process_id)sample_below(random, sample->processes),
		.reason = (uint8_t)(1 + sample_below(random, TRACE_SNAPSHOT_ASKED)),
		.time_ns = time_ns,
		.began = writer_events_count(writer),
		.page_bytes = 4096,
		.rss_bytes = sample_next(random),
		.rss_bytes_max = sample_next(random),
		.cost_ns = sample_below(random, 1 << 20),
		.mappings = mappings,
		.pages = pages,
		.mappings_count = (uint32_t)sample_below(random, 8),
		.pages_count = (uint32_t)sample_below(random, 21),
	};
	uint64_t end = 0;

	snapshot.ended = snapshot.began + sample_below(random, 3);
	for (uint32_t i = 0; i < snapshot.mappings_count; i++) {
		mappings[i] = (struct trace_mapping){
			.start = end + sample_below(random, 1 << 20) * 4096,
			.offset = sample_below(random, 2) * 4096,
			.file = (file_id)sample_below(random, sample->files + 1),
			.protection = (uint32_t)sample_below(random, 8),
			.shared = sample_below(random, 2),
			.rss = sample_next(random),
			.pss = sample_below(random, 4),
			.swap = sample_below(random, 4),
		};
		end = mappings[i].end = mappings[i].start + 4096;
	}
	end = 0;
	for (uint32_t i = 0; i < snapshot.pages_count; i++) {
		pages[i].start = end + sample_below(random, 1 << 30) * 4096;
		end = pages[i].end = pages[i].start + 4096 * (1 + sample_below(random, 99));
		pages[i].flags = (uint8_t)(1 + sample_below(random, 7));
	}
	writer_snapshot(writer, &snapshot);
	sample->snapshots++;
}

// A call on virtual memory, or on a heap that is not malloc's, with the fields that it may have.
static inline void sample_add_rare(struct sample *sample, struct writer *writer,
				   struct sample_random *random, uint64_t time_ns)
{
	struct sample_item *item = sample_push(sample);
	struct trace_event *event = &item->event;
	uint64_t columns;

	do
		event->kind = (uint8_t)(TRACE_HEAP_ALLOC +
					sample_below(random, TRACE_UNMAPPED - TRACE_FAILED));
	while (!(columns = columns_of_kind(event->kind)));
	event->time_ns = time_ns;
	event->thread = (thread_id)sample_below(random, sample->threads);
	event->stack = (stack_id)sample_below(random, sample->stacks + 1);
	if (columns >> COLUMN_ADDRESS & 1)
		event->address = sample_next(random) >> sample_below(random, 64);
	if (columns >> COLUMN_OLD_ADDRESS & 1)
		event->old_address = sample_next(random);
	if (columns >> COLUMN_SIZE & 1)
		event->size = sample_next(random) >> sample_below(random, 64);
	if (columns >> COLUMN_HEAP & 1)
		event->heap = 1 + (heap_id)sample_below(random, sample->heaps);
	if (columns >> COLUMN_OLD_SIZE & 1)
		item->vm.old_size = sample_next(random);
	if (columns >> COLUMN_PROTECTION & 1)
		item->vm.protection = (uint32_t)sample_below(random, 9);
	if (columns >> COLUMN_OFFSET & 1)
		item->vm.offset = sample_below(random, 3) << 12;
	if (columns >> COLUMN_ERROR & 1)
		item->vm.error = sample_below(random, 4) ? 0 : (uint32_t)sample_next(random);
	if (columns >> COLUMN_FLAGS & 1)
		item->vm.flags = (uint32_t)sample_next(random) >> sample_below(random, 32);
	if (columns >> COLUMN_FILE & 1)
		item->vm.file = (file_id)sample_below(random, sample->files + 1);
	if (columns >> COLUMN_ORIGIN & 1)
		item->vm.origin = (uint8_t)sample_below(random, TRACE_ORIGIN_KERNEL + 2);
	if (trace_kind_is_vm(event->kind))
		event->vm = &item->vm;
	if (event->kind == TRACE_BRK)
		event->size = event->address > event->old_address
				      ? event->address - event->old_address
				      : event->old_address - event->address;
	writer_event(writer, event);
	event->vm = NULL; // items may move
}

static inline void sample_add_note(struct sample *sample, struct writer *writer,
				   struct sample_random *random, uint64_t time_ns)
{
	struct sample_item *item = sample_push(sample);
	struct trace_note *note = &item->note;

	note->kind = sample_below(random, 2) ? TRACE_NOTE_MARK : TRACE_NOTE_RSS;
	note->process = (process_id)sample_below(random, sample->processes);
	note->thread = note->kind == TRACE_NOTE_MARK
			       ? (thread_id)sample_below(random, sample->threads)
			       : TRACE_NONE;
	note->time_ns = time_ns;
	note->value = note->kind == TRACE_NOTE_RSS ? sample_below(random, 1 << 30) : 0;
	snprintf(item->text, sizeof item->text, "%s",
		 note->kind == TRACE_NOTE_MARK ? "phase \"two\"" : "");
	note->text = item->text;
	writer_note(writer, note);
}

// Write `count` random items, definitions among them. The caller flushes or ends the writer, and
// gives the sample back.
static inline void sample_fill(struct sample *sample, struct writer *writer, uint64_t seed,
			       size_t count)
{
	struct sample_random random = { seed };
	uint64_t time_ns = 0;

	sample_add_process(sample, writer, &random);
	sample_add_thread(sample, writer, &random);
	sample_add_module(sample, writer, &random);
	sample_add_stack(sample, writer, &random);
	sample_add_heap(sample, writer, &random);
	for (size_t i = 0; i < count; i++) {
		uint64_t dice = sample_below(&random, 1000);

		if (dice < 3)
			sample_add_process(sample, writer, &random);
		else if (dice < 10)
			sample_add_thread(sample, writer, &random);
		else if (dice < 14)
			sample_add_module(sample, writer, &random);
		else if (dice < 100)
			sample_add_stack(sample, writer, &random);
		else if (dice < 105)
			sample_add_heap(sample, writer, &random);
		else if (dice < 120)
			sample_add_file(sample, writer, &random);
		else if (dice < 125)
			sample_add_snapshot(sample, writer, &random, time_ns);
		if (dice % 7 == 0)
			time_ns += sample_below(&random, 200000);
		if (dice % 50 == 1)
			sample_add_note(sample, writer, &random, time_ns);
		else if (dice % 10 == 2)
			sample_add_rare(sample, writer, &random, time_ns);
		else
			sample_add_event(sample, writer, &random, time_ns);
		if (dice == 999)
			writer_flush(writer);
	}
}

// A new file to write to.
static inline int sample_create(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

// A whole random trace at `path`.
static inline void sample_write(const char *path, uint64_t seed, size_t count,
				struct sample *sample)
{
	struct trace_info info = sample_info();
	struct trace_end end = { .duration_ns = 5000000000, .tick_median_ns = 100001, .why = "" };
	struct err err = { 0 };
	int fd = sample_create(path);
	struct writer *writer = writer_new(fd, &info, &err);

	ASSERT(writer);
	sample_fill(sample, writer, seed, count);
	writer_end(writer, &end);
	writer_free(writer);
	close(fd);
}

// A whole file in memory; mem_free.
static inline uint8_t *sample_load(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t end = lseek(fd, 0, SEEK_END);
	uint8_t *bytes = mem_alloc((size_t)end + 1, 1);

	ASSERT(fd >= 0 && pread(fd, bytes, (size_t)end, 0) == end);
	*size = (size_t)end;
	close(fd);
	return bytes;
}

static inline void sample_store(const char *path, const void *bytes, size_t size)
{
	int fd = sample_create(path);

	ASSERT(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}
