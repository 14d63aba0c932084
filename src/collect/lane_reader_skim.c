// Skimming: which slots of addresses a lane's records touch, and until when, without decoding them.
//
// The merge needs no more than that to find out that no two lanes meet in a tick, after which each
// can be read as rows. So only types, lengths, slots and times are read. A loop writes the same
// bytes again: records are compared with those from an earlier one on (the last but 1, 2, 4, 8 …),
// and what is equal is stepped over: of a loop whose turns are 3 records, all turns but the first
// few.
#include "collect/lane_reader_own.h"
#include "wire/varint.h"

// Types and lengths from 8 on.
enum { LONG = 8 << LANE_ADDRESS_SHIFT | 8 << LANE_SIZE_SHIFT | 8 };

// Types that the order needs no more of than slot and time, as bits.
enum {
	PLAIN = 1 << LANE_MALLOC | 1 << LANE_CALLOC | 1 << LANE_ALIGNED | 1 << LANE_FREE |
		1 << LANE_REALLOC_FREE | 1 << LANE_REALLOC_ALLOC
};

// Programs do the same over and over. So what comes is compared with what came from some earlier
// record on, which is another one after 1, 2, 4, 8 and so on records, up to so many.
enum { PERIOD_MAX = 128 };

struct earlier {
	const uint8_t *in;
	uint64_t address;   // of the lane, before it
	uint32_t age, most; // records since then; until it is another one
};

// The length of the edit at `in`.
static inline size_t edit_length(const uint8_t *in)
{
	uint32_t keep = lane_path_load16(in);
	size_t push = lane_path_load16(in + 2) & LANE_PUSH_MASK;

	if (keep & LANE_KEEP_AGAIN)
		return 2;
	return 4 + 4 * push + (keep & LANE_KEEP_NUMBERED ? 2 : 0);
}

// A record begins at `in`, and the lane's address is `address`. How many bytes from there on are
// the same again as those since an earlier record, and lead back to the same address.
//
// A multiple of the period only: a turn that is there in part is read as usual. With 8 bytes or
// less left nothing is compared.
static inline size_t find_same(struct earlier *earlier, const uint8_t *in, const uint8_t *end,
			       uint64_t address)
{
	size_t period = (size_t)(in - earlier->in);
	size_t same = 0;

	if (earlier->address == address && end - in >= 8 &&
	    lane_reader_load64(in) == lane_reader_load64(earlier->in)) {
		same = lane_reader_same(in, end, period);
		same -= same % period;
	}
	if (earlier->age++ == earlier->most) {
		*earlier = (struct earlier){ in, address, 1, earlier->most * 2 };
		if (earlier->most > PERIOD_MAX)
			earlier->most = PERIOD_MAX;
	}
	return same;
}

// UNSURE is said of everything that this reading does not understand; then the lane is decoded,
// which is always right. Without a change of time within, stepping over repeated bytes loses
// nothing.
enum lane_reader_skimmed lane_reader_skim(const struct lane_reader *reader, uint64_t limit,
					  uint64_t limit_ns, struct touched *touched, uint32_t lane,
					  uint64_t *end_ns)
{
	const uint8_t *wrap = reader->ring + reader->mask + 1;
	const uint8_t *in = reader->ring + (reader->at & reader->mask);
	const uint8_t *end = in + (limit - reader->at);
	uint64_t time_ns = reader->time_ns, address = reader->address;
	uint32_t mark = touched_mark(touched, lane), slot, last = LANE_SLOTS;
	struct earlier earlier = { in, address, 1, 1 };
	bool contested = false;

	if (reader->broken || limit - reader->at > reader->mask + 1)
		return LANE_READER_UNSURE;
	while (in < end && time_ns <= limit_ns) {
		const uint8_t *at;
		uint32_t head;

		if (unlikely(in >= wrap)) {
			in -= reader->mask + 1;
			end -= reader->mask + 1;
			earlier = (struct earlier){ in, address, 1, 1 };
		}
		// A ring is mapped twice, so that what a short record does not have can be read.
		at = in + 2;
		head = lane_path_load16(in);
		if (unlikely((head & LONG) || !(PLAIN >> (head & 7) & 1)))
			return LANE_READER_UNSURE;
		if (unlikely(head & LANE_TIME)) {
			time_ns += lane_reader_load32(at);
			if (time_ns > limit_ns)
				break;
			at += 4;
		}
		at += head & LANE_OWNER ? 8 : 0;
		address += (uint64_t)varint_unzigzag(
			lane_reader_low(at, head >> LANE_ADDRESS_SHIFT & 7));
		at += (head >> LANE_ADDRESS_SHIFT & 7) + (head >> LANE_SIZE_SHIFT & 7);
		at += (head & LANE_TYPE_MASK) == LANE_ALIGNED;
		if (head & LANE_STACK)
			at += edit_length(at);
		if (unlikely(at > end))
			return LANE_READER_UNSURE;
		slot = lane_slot(address);
		if (slot != last)
			contested |= touched_add(touched, slot, mark);
		last = slot;
		in = at;
		if (unlikely(head & LANE_TIME))
			earlier = (struct earlier){ in, address, 1, 1 };
		else
			in += find_same(&earlier, in, end, address);
	}
	*end_ns = time_ns;
	if (contested)
		return LANE_READER_CONTESTED;
	return in < end ? LANE_READER_ALONE : LANE_READER_ALONE_TO_LIMIT;
}
