// What an attached process had before its recording, put into the trace: a TRACE_BEFORE for each
// block, of a thread and a stack that stand for "before". The launcher has read glibc's (or another
// allocator's) heap while the process was stopped, and left the blocks in a file, 16 bytes each;
// they are read 4,096 at a time, so 10 million of them cost 64 KiB of memory here.
//
// Then comes the note that says how many, or why there are none, and a mark: from there on the
// recording sees everything, and windows that ask for "begin" begin there (moment_skip_before).
#include "collect/before.h"

#include "base/mem.h"
#include "os/file.h"

#include <string.h>

enum { BEFORE_BATCH = 4096 };

// The stack of them all: a frame that is nowhere, with a name.
static stack_id before_stack(struct writer *writer)
{
	const struct trace_name name = { .function = (char *)TRACE_BEFORE_NAME,
					 .file = (char[1]){ 0 } };
	frame_id frame = writer_add_frame(writer, 0, 0, 0);

	writer_add_name(writer, frame, &name, 1);
	return writer_add_stack(writer, 0, frame, 0);
}

// A part of a block at the end of the file, which a launcher that was killed may leave, is not
// taken.
static uint64_t before_put(struct image *image, int fd)
{
	struct trace_builder *trace_builder = image->trace_builder;
	struct collect_block *batch = mem_alloc(BEFORE_BATCH, sizeof(*batch));
	struct trace_event event = {
		.time_ns = trace_builder->now_ns,
		.thread = writer_add_thread(trace_builder->writer, image->process, 0, "before"),
		.stack = before_stack(trace_builder->writer),
		.kind = TRACE_BEFORE,
	};
	uint64_t count = 0;
	uint64_t at = 0;
	ptrdiff_t got;

	ASSERT(image->begun);
	while ((got = file_read_at(fd, batch, BEFORE_BATCH * sizeof(*batch), at)) > 0) {
		size_t blocks = (size_t)got / sizeof(*batch);

		for (size_t i = 0; i < blocks; i++) {
			event.address = batch[i].address;
			event.size = batch[i].size;
			writer_event(trace_builder->writer, &event);
		}
		count += blocks;
		at += (uint64_t)got;
	}
	trace_builder->kinds[TRACE_BEFORE] += count;
	mem_free(batch);
	return count;
}

void before_place(struct image *image, int fd, const char *text)
{
	struct trace_builder *trace_builder = image->trace_builder;
	bool known = strncmp(text, BEFORE_WITH, sizeof(BEFORE_WITH) - 1) == 0;
	uint64_t count = known && fd >= 0 ? before_put(image, fd) : 0;

	trace_builder_note(trace_builder, TRACE_NOTE_BEFORE, image->process, TRACE_NONE, count,
			   text);
	if (known)
		trace_builder_note(trace_builder, TRACE_NOTE_MARK, image->process, TRACE_NONE, 0,
				   TRACE_BEFORE_MARK);
}
