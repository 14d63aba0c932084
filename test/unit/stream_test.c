// A lane's items, and the places in it that notes spoke of.
#include "collect/stream.h"
#include "test/test.h"
#include "test/unit/fake_guest.h"

#include <stdlib.h>

enum { RING_BYTES = 64 << 10 };

static struct lane_shared shared[1];
static struct frame_map frames;
static struct lane_path_scratch scratch; // no stacks
static uint8_t ring[2 * RING_BYTES];

static void put_free(struct fake_lane *lane, uint64_t address, uint64_t time_ns)
{
	fake_write(lane, &(struct fake_event){
				 .type = LANE_FREE, .address = address, .time_ns = time_ns });
}

TEST(stream_puts_a_note_between_the_records_around_its_place_and_keeps_their_times)
{
	struct fake_guest guest = { .lanes = shared };
	struct fake_lane lane = { .guest = &guest, .ring = ring, .ring_bytes = RING_BYTES };
	struct stream *stream = stream_new(NULL, 1);
	static const uint64_t times[] = { 100, 150, 200, 200, 900 };
	static const uint8_t kinds[] = { LANE_FREE, LANE_ITEM_MARK, LANE_FREE, LANE_ITEM_FORK,
					 LANE_FREE };

	lane_reader_init(&stream->reader, ring, RING_BYTES, &frames, &scratch, false);
	put_free(&lane, 16, 100);
	stream_add_barrier(stream, LANE_ITEM_MARK, lane.head, 150, 7);
	put_free(&lane, 32, 200);
	stream_add_barrier(stream, LANE_ITEM_FORK, lane.head, 190, 8); // older than the lane is
	put_free(&lane, 48, 900);
	CHECK(!stream_fill(stream, lane.head, 100));
	CHECK_EQ(5, stream->end);
	for (size_t i = 0; i < 5; i++) {
		CHECK_EQ(kinds[i], stream->items[i].kind);
		CHECK_EQ(times[i], stream->items[i].time_ns);
	}
	CHECK_EQ(7, stream->items[1].detail);
	CHECK_EQ(8, stream->items[3].detail);
	stream_free(stream);
}

static void put_block(struct fake_lane *lane, uint8_t type, uint64_t address, uint64_t time_ns)
{
	fake_write(lane,
		   &(struct fake_event){ .type = type, .address = address, .time_ns = time_ns });
}

// What a stream makes of a free, and of another that failed, after `before` records.
static void check_mended(size_t before, bool echoes, bool later)
{
	struct fake_guest guest = { .lanes = shared };
	struct fake_lane lane = { .guest = &guest, .ring = ring, .ring_bytes = RING_BYTES };
	struct stream *stream = stream_new(NULL, 1);
	size_t freed = 0, failed = 0;

	lane_reader_init(&stream->reader, ring, RING_BYTES, &frames, &scratch, true);
	stream->reader.echoes = echoes;
	for (size_t i = 0; i < before; i++) {
		put_block(&lane, LANE_MALLOC, 4096, 100);
		put_block(&lane, LANE_FREE, 4096, 100);
	}
	if (later)
		stream_fill(stream, lane.head, 1000);
	put_block(&lane, LANE_REALLOC_UNDO, 4096, 100);
	while (stream_fill(stream, lane.head, 1 + before / 3))
		;
	stream->inner = stream->end;
	stream_expand(stream);
	for (size_t i = stream->first; i < stream->end; i++) {
		const struct lane_item *item = &stream->items[i];

		freed += item->kind == LANE_FREE;
		if (item->kind != LANE_REALLOC_UNDO)
			continue;
		CHECK_EQ(LANE_REALLOC_FREE, item[-1].kind);
		CHECK_EQ(4096, item[-1].address);
		failed++;
	}
	CHECK_EQ(before - 1, freed);
	CHECK_EQ(1, failed);
	CHECK_EQ(stream->first + 2 * before + 1, stream->end);
	stream_free(stream);
}

TEST(stream_takes_back_a_free_that_failed_wherever_it_stands)
{
	for (size_t before = 1; before < 200; before++)
		for (int i = 0; i < 4; i++)
			check_mended(before, i & 1, i & 2);
}

TEST(stream_never_parts_a_free_from_what_takes_it_back)
{
	struct fake_guest guest = { .lanes = shared };

	for (size_t max = 1; max < 8; max++) {
		struct fake_lane lane = { .guest = &guest, .ring = ring, .ring_bytes = RING_BYTES };
		struct stream *stream = stream_new(NULL, 1);

		lane_reader_init(&stream->reader, ring, RING_BYTES, &frames, &scratch, true);
		for (int i = 0; i < 20; i++) {
			put_block(&lane, LANE_FREE, 4096, 100);
			put_block(&lane, LANE_REALLOC_UNDO, 4096, 100);
		}
		while (stream_fill(stream, lane.head, max)) {
			for (size_t i = stream->first; i < stream->end; i++)
				CHECK(stream->items[i].kind != LANE_FREE);
			stream->first = stream->inner = stream->end;
		}
		stream_free(stream);
	}
}
