// A guest's frames become the trace's, and a forked child goes on with its parent's.
#include "collect/frame_map.h"
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
