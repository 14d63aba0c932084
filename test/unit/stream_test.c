// A lane's items, and the places in it that notes spoke of.
#include "collect/stream.h"
#include "test/test.h"
#include "test/unit/fake_guest.h"

#include <stdlib.h>

enum { RING_BYTES = 64 << 10 };

static struct lane_shared shared[1];
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

	lane_reader_init(&stream->reader, ring, RING_BYTES, NULL, NULL, false);
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
