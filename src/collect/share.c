// What a fresh segment has in it before its guest maps it, whatever the system: the words that a
// guest looks at first. All else is zero, and that is a valid beginning: no lane, no frame, nothing
// dropped.
#include "collect/share.h"

#include "base/mem.h"

// What is read behind a record's end, by loads of fixed size, is the next ring's: the last one has
// none behind it.
const uint8_t *share_plain_ring(const struct share *share, uint32_t lane)
{
	if (!share->whole || segment_ring_at(lane + 1) >= share->bytes)
		return NULL;
	return (const uint8_t *)share->segment + segment_ring_at(lane);
}

void share_begin(struct share *share, void *base, uint32_t image, uint32_t options,
		 uint64_t sample_bytes, uint32_t collector_pid)
{
	uint8_t *bytes = base;

	ASSERT(segment_lanes(share->bytes) > 1);
	share->segment = base;
	share->lanes = (struct lane_shared *)(void *)(bytes + SEGMENT_LANES_AT);
	share->frames = (struct segment_frame *)(void *)(bytes + SEGMENT_FRAMES_AT);
	share->segment->magic = SEGMENT_MAGIC;
	share->segment->version = SEGMENT_VERSION;
	share->segment->image = image;
	share->segment->lanes_max = segment_lanes(share->bytes);
	share->segment->options = options;
	share->segment->sample_bytes = sample_bytes;
	share->segment->collector_pid = collector_pid;
	atomic_store(&share->segment->heard, SEGMENT_HEARD);
}
