// lane_fixture: a lane in plain memory, and what reads it.
#pragma once

#include "collect/lane_reader.h"
#include "test/unit/fake_guest.h"

enum { RING_BYTES = 64 << 10, FRAMES = 64 };

// A lane in plain memory, and a reader of it.
struct fixture {
	struct writer *writer;
	struct interner interner;
	struct lane_path_scratch *scratch;
	struct frame_map frames;
	struct lane_reader reader;
	struct fake_guest guest;
	struct fake_lane lane;
	int fd;
};

static struct segment segment;
static struct segment_frame frames[FRAMES];
static struct lane_shared shared[1];
static uint8_t ring[2 * RING_BYTES];

static inline void begin(struct fixture *fixture, bool free_stacks)
{
	struct trace_info info = { .tool = (char *)"",
				   .host = (char *)"",
				   .command = (char *)"",
				   .directory = (char *)"",
				   .options = (char *)"" };
	struct err err;

	memset(fixture, 0, sizeof *fixture);
	memset(ring, 0, sizeof ring);
	memset(shared, 0, sizeof shared);
	for (uint32_t i = 1; i < FRAMES; i++)
		frames[i] = (struct segment_frame){ .pc = 0x4000 + i };
	atomic_store(&segment.frames_count, FRAMES);
	fixture->fd = memfd_create("trace", 0);
	fixture->writer = writer_new(fixture->fd, &info, &err);
	interner_init(&fixture->interner, fixture->writer);
	fixture->scratch = lane_path_scratch_new(&fixture->interner);
	frame_map_init(&fixture->frames, fixture->writer, &segment, frames);
	fixture->frames.tag = edit_cache_tag(&fixture->scratch->edits);
	lane_reader_init(&fixture->reader, ring, RING_BYTES, &fixture->frames, fixture->scratch,
			 free_stacks);
	fixture->guest.lanes = shared;
	fixture->lane = (struct fake_lane){ .guest = &fixture->guest,
					    .ring = ring,
					    .ring_bytes = RING_BYTES };
}

static inline void end(struct fixture *fixture)
{
	lane_reader_fini(&fixture->reader);
	frame_map_fini(&fixture->frames);
	lane_path_scratch_free(fixture->scratch);
	interner_fini(&fixture->interner);
	writer_free(fixture->writer);
	close(fixture->fd);
}

static inline size_t decode(struct fixture *fixture, struct lane_item *items, size_t max)
{
	return lane_reader_decode(&fixture->reader, fixture->lane.head, items, max);
}
