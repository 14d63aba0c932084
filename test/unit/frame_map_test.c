// A guest's frames become the trace's, and a forked child goes on with its parent's.
#include "collect/frame_map.h"

#include "base/mem.h"
#include "collect/language.h"
#include "test/test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAMES = 16 };

static struct segment parent_segment, child_segment;
static struct segment_frame parent_frames[FRAMES], child_frames[FRAMES];

static struct writer *new_writer(int *fd)
{
	struct trace_info info = { .tool = (char *)"",
				   .host = (char *)"",
				   .command = (char *)"",
				   .directory = (char *)"",
				   .options = (char *)"" };
	struct writer *writer;
	struct err err;

	*fd = memfd_create("trace", 0);
	writer = writer_new(*fd, &info, &err);
	CHECK(writer != NULL);
	for (uint32_t i = 0; i < FRAMES; i++) {
		parent_frames[i] = (struct segment_frame){ .pc = 0x1000 + i };
		child_frames[i] = (struct segment_frame){ .pc = 0x2000 + i };
	}
	atomic_store(&parent_segment.frames_count, 8);
	atomic_store(&child_segment.frames_count, 12);
	return writer;
}

TEST(frame_map_numbers_a_frame_once)
{
	struct frame_map map;
	struct writer *writer;
	frame_id first;
	int fd;

	writer = new_writer(&fd);
	frame_map_init(&map, writer, &parent_segment, parent_frames);
	first = frame_map_get(&map, 3);
	CHECK_EQ(1, first);
	CHECK_EQ(2, frame_map_get(&map, 7));
	CHECK_EQ(first, frame_map_get(&map, 3));
	frame_map_fini(&map);
	writer_free(writer);
	close(fd);
}

TEST(frame_map_knows_no_frame_that_was_not_published)
{
	struct frame_map map;
	struct writer *writer;
	int fd;

	writer = new_writer(&fd);
	frame_map_init(&map, writer, &parent_segment, parent_frames);
	CHECK_EQ(0, frame_map_get(&map, 8));
	CHECK_EQ(0, frame_map_get(&map, UINT32_MAX));
	CHECK(frame_map_get(&map, 0) != 0); // "unknown" is a frame
	frame_map_fini(&map);
	writer_free(writer);
	close(fd);
}

TEST(frame_map_of_a_forked_child_continues_its_parents)
{
	struct frame_map parent, child;
	struct writer *writer;
	int fd;

	writer = new_writer(&fd);
	frame_map_init(&parent, writer, &parent_segment, parent_frames);
	frame_map_init(&child, writer, &child_segment, child_frames);
	frame_map_get(&parent, 5);
	frame_map_inherit(&child, &parent, 8, 1);
	for (uint32_t id = 1; id < 8; id++)
		CHECK_EQ(frame_map_get(&parent, id), frame_map_get(&child, id));
	CHECK(frame_map_get(&child, 8) > 0);
	CHECK_EQ(0, frame_map_get(&parent, 8));
	frame_map_fini(&parent);
	frame_map_fini(&child);
	writer_free(writer);
	close(fd);
}

TEST(frame_map_of_an_ended_parent_can_still_be_inherited)
{
	struct frame_map parent, child;
	struct writer *writer;
	frame_id third;
	int fd;

	writer = new_writer(&fd);
	frame_map_init(&parent, writer, &parent_segment, parent_frames);
	frame_map_init(&child, writer, &child_segment, child_frames);
	frame_map_detach(&parent);
	frame_map_inherit(&child, &parent, 8, 1);
	third = frame_map_get(&child, 3);
	CHECK(third != 0);
	CHECK_EQ(third, frame_map_get(&parent, 3));
	frame_map_fini(&parent);
	frame_map_fini(&child);
	writer_free(writer);
	close(fd);
}

TEST(frame_map_calls_frames_of_a_lost_parent_unknown)
{
	struct frame_map child;
	struct writer *writer;
	frame_id unknown;
	int fd;

	writer = new_writer(&fd);
	frame_map_init(&child, writer, &child_segment, child_frames);
	frame_map_inherit(&child, NULL, 8, 1);
	unknown = frame_map_get(&child, 0);
	CHECK(unknown != 0);
	CHECK_EQ(unknown, frame_map_get(&child, 7));
	CHECK(frame_map_get(&child, 8) != unknown);
	frame_map_fini(&child);
	writer_free(writer);
	close(fd);
}

// libx.so, mapped at another address in each process, of which frame 1 is at offset 0x10.
static struct trace_module module_of(process_id process, uint64_t bias, uint64_t mtime_ns)
{
	return (struct trace_module){ .process = process,
				      .start = bias + 0x1000,
				      .end = bias + 0x2000,
				      .bias = bias,
				      .file_size = 0x2000,
				      .file_mtime_ns = mtime_ns,
				      .path = (char *)"/lib/libx.so" };
}

// The first frame of a process that has the module.
static frame_id first_frame(struct writer *writer, struct code_table *code,
			    struct language *language, struct trace_module module, uint32_t flags)
{
	struct frame_map map;
	frame_id frame;

	frame_map_init(&map, writer, &parent_segment, parent_frames);
	map.code = code;
	map.language = language;
	module.id = writer_add_module(writer, &module);
	frame_map_add_module(&map, 1, &module);
	parent_frames[1] = (struct segment_frame){ .pc = module.bias + 0x1010,
						   .module = 1,
						   .flags = (uint16_t)flags };
	frame = frame_map_get(&map, 1);
	frame_map_fini(&map);
	return frame;
}

TEST(frame_map_gives_one_frame_to_a_place_in_a_file_of_several_processes)
{
	struct trace_process process = { .parent = TRACE_NONE, .exe = (char *)"" };
	struct language language;
	struct interner interner;
	struct code_table code;
	struct writer *writer;
	frame_id first, unknown;
	int fd;

	writer = new_writer(&fd);
	code = (struct code_table){ .writer = writer };
	interner_init(&interner, writer);
	language_init(&language, &interner, false);
	writer_add_process(writer, &process);
	first = first_frame(writer, &code, NULL, module_of(0, 0x10000, 5), 0);
	CHECK(first != 0);
	CHECK_EQ(first, first_frame(writer, &code, NULL, module_of(0, 0x70000, 5), 0));
	// Another file by that name, and a frame that a signal interrupted.
	CHECK(first_frame(writer, &code, NULL, module_of(0, 0x70000, 6), 0) != first);
	CHECK(first_frame(writer, &code, NULL, module_of(0, 0x10000, 5), SEGMENT_FRAME_EXACT_PC) !=
	      first);
	// What an evaluator is in one process may be none in another.
	CHECK(first_frame(writer, &code, &language, module_of(0, 0x10000, 5),
			  SEGMENT_FRAME_EVALUATOR) != first);
	CHECK_EQ(first, first_frame(writer, &code, &language, module_of(0, 0x30000, 5), 0));
	// Of which file it is not known what it is.
	unknown = first_frame(writer, &code, NULL, module_of(0, 0x10000, 0), 0);
	CHECK(first_frame(writer, &code, NULL, module_of(0, 0x10000, 0), 0) != unknown);
	// No file's: each its own.
	CHECK(first_frame(writer, NULL, NULL, module_of(0, 0x10000, 5), 0) != first);
	language_fini(&language);
	interner_fini(&interner);
	code_table_fini(&code);
	writer_free(writer);
	close(fd);
}

// Line 7 of the function with that number in a process.
static frame_id line_of(struct writer *writer, struct code_table *code, uint32_t number,
			const char *function, const char *file)
{
	struct frame_map map;
	frame_id frame;

	frame_map_init(&map, writer, &parent_segment, parent_frames);
	map.code = code;
	if (function)
		frame_map_add_code(&map, number, mem_copy_text(function), mem_copy_text(file));
	parent_frames[1] = (struct segment_frame){ .pc = (uint64_t)number << 32 | 7,
						   .flags = SEGMENT_FRAME_PYTHON };
	frame = frame_map_get(&map, 1);
	frame_map_fini(&map);
	return frame;
}

TEST(frame_map_gives_one_frame_to_a_line_of_a_program_that_several_processes_interpret)
{
	struct code_table code;
	struct writer *writer;
	frame_id first, unknown;
	int fd;

	writer = new_writer(&fd);
	code = (struct code_table){ .writer = writer };
	first = line_of(writer, &code, 3, "parse", "a.py");
	CHECK(first != 0);
	CHECK_EQ(first, line_of(writer, &code, 5, "parse", "a.py"));
	CHECK(line_of(writer, &code, 3, "parse", "b.py") != first);
	CHECK(line_of(writer, &code, 3, "print", "a.py") != first);
	CHECK(line_of(writer, NULL, 3, "parse", "a.py") != first);
	unknown = line_of(writer, &code, 3, NULL, NULL);
	CHECK(line_of(writer, &code, 3, NULL, NULL) != unknown);
	code_table_fini(&code);
	writer_free(writer);
	close(fd);
}
