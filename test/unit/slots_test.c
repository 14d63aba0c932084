// The runs of a slot stand in the order of their owners.
#include "collect/slots.h"
#include "test/test.h"

#include <stdlib.h>

TEST(slots_keeps_runs_sorted_by_owner)
{
	struct slots slots = { 0 };
	uint64_t last = 0;
	size_t count = 0;

	srandom(3);
	for (uint32_t i = 0; i < 1000; i++)
		slots_add(&slots, 5, (uint64_t)random() % 500, i, 0);
	for (uint32_t at = slots.first[5]; at != 0; at = slots.runs[at].next, count++) {
		CHECK(slots.runs[at].owner >= last);
		last = slots.runs[at].owner;
	}
	CHECK_EQ(1000, count);
	CHECK_EQ(0, slots.first[6]);
	slots_fini(&slots);
}

TEST(slots_uses_removed_runs_again)
{
	struct slots slots = { 0 };
	uint32_t a = slots_add(&slots, 1, 1, 1, 0);
	uint32_t b = slots_add(&slots, 1, 2, 2, a);
	uint32_t c = slots_add(&slots, 1, 3, 3, a);
	size_t count;

	slots_remove(&slots, b);
	CHECK_EQ(a, slots.first[1]);
	CHECK_EQ(c, slots.runs[a].next);
	count = slots.count;
	CHECK_EQ(b, slots_add(&slots, 9, 1, 1, 0));
	CHECK_EQ(count, slots.count);
	slots_remove(&slots, a);
	slots_remove(&slots, c);
	CHECK_EQ(0, slots.first[1]);
	slots_fini(&slots);
}

// glibc gives a thread an arena of 64 MB. What two threads do in theirs has to wait for nothing.
TEST(slots_of_sixty_four_arenas_are_not_shared)
{
	uint64_t bytes = (uint64_t)LANE_SLOTS * LANE_SLOT_BYTES;

	CHECK(bytes >= UINT64_C(64) * (64 << 20));
	CHECK(lane_slot(0x7f0000000000) != lane_slot(0x7f0000000000 + bytes - LANE_SLOT_BYTES));
	CHECK_EQ(lane_slot(0x7f0000000000), lane_slot(0x7f0000000000 + bytes));
}
