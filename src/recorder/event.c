// For example, malloc(64) returns 0x7f0050, and the lane's last address was 0x7f0000; its stack
// keeps the outermost 3 frames of the last one, and then has frame 7:
//
//     11 21          type 1, 1 byte of address, 1 of size, LANE_STACK
//     a0             0x50 as a zigzag number: 2 * 0x50
//     40             64
//     03 00 01 00    keep 3, push 1
//     07 00 00 00    frame 7
//
// 12 bytes. The next malloc(64) from the same place needs no edit: 4 bytes, if its block is near;
// and if the edit of a memo comes again, it is two bytes for its number (event_put_numbered).
//
// What is here is what is seldom: event.h has the way of nearly all events, inline.
#include "recorder/event.h"

#include "recorder/recording.h"

enum {
	EVENT_FRAMES_IN_ROOM = CAPTURE_MEMO_FRAMES,
	EVENT_LANES_ALONE = 2, // lane 0, which no thread has, and one
};

static uint32_t event_load16(const uint8_t *at)
{
	uint16_t value;

	__builtin_memcpy(&value, at, 2);
	return value;
}

// The same for that of a whole stack. False: it is none.
//
// Of SEGMENT_VERIFY: what a reader of the lane makes of the edit at `edit`, kept beside what was
// meant.
static bool event_follow_whole(struct lane_check *check, const uint8_t *edit)
{
	uint32_t head = event_load16(edit), number = head & LANE_KEEP_MASK;
	uint32_t push = event_load16(edit + 2) & LANE_PUSH_MASK;
	struct lane_check_whole *whole;

	if (head & LANE_KEEP_NUMBERED)
		number = event_load16(edit + 4 + 4 * push);
	else if (!(head & LANE_KEEP_AGAIN))
		return false;
	if (number < LANE_EDITS)
		return false;
	whole = &check->wholes[(number - LANE_EDITS) % CAPTURE_WHOLES];
	if (head & LANE_KEEP_NUMBERED) {
		whole->depth = push;
		__builtin_memcpy(whole->ids, edit + 4, 4 * push);
	}
	check->depth = whole->depth;
	__builtin_memcpy(check->ids, whole->ids, sizeof(whole->ids));
	return true;
}

// What the collector will make of an edit, for SEGMENT_VERIFY. An edit is written in full (keep so
// many frames, push these), in full with a number to be known by, or as that number alone. One that
// keeps more frames than there are cannot be applied: depth 0.
COLD void event_follow(struct lane *lane, const uint8_t *edit)
{
	struct lane_check *check = lane->verify;
	struct lane_check_edit *numbered;
	uint32_t head = event_load16(edit), keep = head & LANE_KEEP_MASK;
	uint32_t push = event_load16(edit + 2) & LANE_PUSH_MASK;
	const uint8_t *ids = edit + 4;

	if (event_follow_whole(check, edit))
		return;
	if (head & LANE_KEEP_NUMBERED) {
		numbered = &check->numbered[event_load16(ids + 4 * push) % LANE_EDITS];
		numbered->keep = keep;
		numbered->push = push;
		__builtin_memcpy(numbered->ids, ids, sizeof(numbered->ids));
	} else if (head & LANE_KEEP_AGAIN) {
		numbered = &check->numbered[keep % LANE_EDITS];
		keep = numbered->keep;
		push = numbered->push;
		ids = (const uint8_t *)numbered->ids;
	}
	for (uint32_t i = 0; i < push; i++)
		__builtin_memcpy(&check->ids[keep + i], ids + 4 * i, 4);
	check->depth = keep <= check->depth ? keep + push : 0;
}

// The same for any number of frames, wherever they lie.
//
// More frames than fit into LANE_ROOM: room is waited for, and the ring, which is mapped twice, has
// it in one piece. NULL: the recording has ended meanwhile.
static __attribute__((noinline)) uint8_t *event_put_frames(struct lane *lane, const uint8_t *start,
							   uint8_t *at)
{
	const struct capture *capture = &lane->capture;
	uint32_t push = capture->depth - capture->keep;

	if (push > EVENT_FRAMES_IN_ROOM &&
	    lane->head + (uint64_t)(at - start) + LANE_ROOM + 4 * push > lane->room &&
	    !lane_wait_room(lane, (uint64_t)(at - start) + 4 * push))
		return NULL;
	for (uint32_t i = capture->keep; i < capture->depth; i++, at += 4) {
		uint32_t id = capture_id(capture, i);

		__builtin_memcpy(at, &id, 4);
	}
	return at;
}

_Static_assert((int)CAPTURE_MEMOS <= (int)LANE_EDITS, "each memo has a number");

// The edit that goes by the memo's number: in full the first time, which gives it the number.
//
// In full it is 4 bytes, the frames' ids of 4 each, and 2 of the number; later it is the 2 bytes
// alone.
static __attribute__((noinline)) uint8_t *event_put_numbered(struct lane *lane, uint8_t *at)
{
	const struct capture *capture = &lane->capture;
	struct capture_memo *memo = capture->over;
	uint32_t keep = capture_numbered_keep(memo), push = capture->depth - keep;
	uint32_t words = (push | capture->flags) << 16 | LANE_KEEP_NUMBERED | keep;
	uint16_t number = (uint16_t)(memo - capture->memos);

	if (memo->again) {
		__builtin_memcpy(at, &memo->again, 2);
		return at + 2;
	}
	__builtin_memcpy(at, &words, 4);
	__builtin_memcpy(at + 4, &memo->ids[keep - memo->outer], 4 * LANE_EDIT_FRAMES);
	at += 4 + 4 * push;
	__builtin_memcpy(at, &number, 2);
	memo->again = LANE_KEEP_AGAIN | number;
	return at + 2;
}

// The whole stack: in full the first time, which gives it its number.
static __attribute__((noinline)) uint8_t *event_put_whole(struct lane *lane, const uint8_t *start,
							  uint8_t *at)
{
	struct capture *capture = &lane->capture;
	struct capture_whole *whole = capture->whole;
	uint32_t words = (whole->depth | (uint32_t)whole->flags) << 16 | LANE_KEEP_NUMBERED;
	uint16_t number = (uint16_t)(LANE_EDITS + (whole - capture->wholes));

	if (whole->again) {
		__builtin_memcpy(at, &whole->again, 2);
		return at + 2;
	}
	capture->keep = 0;
	__builtin_memcpy(at, &words, 4);
	at = event_put_frames(lane, start, at + 4);
	if (unlikely(!at))
		return NULL;
	__builtin_memcpy(at, &number, 2);
	whole->again = LANE_KEEP_AGAIN | number;
	return at + 2;
}

uint8_t *event_put_stack(struct lane *lane, const uint8_t *start, uint8_t *at)
{
	const struct capture *capture = &lane->capture;
	const uint32_t *ids = capture_pushed(capture);
	uint32_t push = capture->depth - capture->keep;
	uint32_t words = (push | capture->flags) << 16 | (uint16_t)capture->keep;

	if (unlikely(capture->flags & LANE_PUSH_INCOMPLETE))
		lane_count_incomplete(lane);
	if (unlikely(capture->whole != NULL))
		return event_put_whole(lane, start, at);
	if (capture_is_numbered(capture))
		return event_put_numbered(lane, at);
	__builtin_memcpy(at, &words, 4);
	at += 4;
	// All there can be: how many they are is not known before; one by one, since so they were
	// put there just now.
	if (unlikely(!ids || push > EVENT_FRAMES_IN_ROOM))
		return event_put_frames(lane, start, at);
#pragma GCC unroll 8
	for (uint32_t i = 0; i < EVENT_FRAMES_IN_ROOM; i++)
		__builtin_memcpy(at + 4 * i, &ids[i], 4);
	return at + 4 * push;
}

void event_stopped(struct lane *lane)
{
	recording_stop();
	// Full, for ever: the next event takes the slow way and is refused.
	lane->room = lane->open_limit = 1;
}

// The event's time is `now_ns`.
//
// A time that is not later than the lane's last is not written: the event has that one. Up to 4 s
// later takes 6 bytes with the event's head; more takes a record of its own, of 10 bytes.
static struct event_time event_put_now(struct lane *lane, uint8_t *start, uint64_t now_ns)
{
	uint64_t delta = now_ns - lane->time_ns;
	uint16_t head = LANE_TIME64;

	if (unlikely(now_ns == SEGMENT_CLOCK_STOP)) {
		event_stopped(lane);
		return (struct event_time){ NULL, NULL };
	}
	if (now_ns <= lane->time_ns)
		return (struct event_time){ start, start + 2 };
	lane->time_ns = now_ns;
	if (likely(delta <= UINT32_MAX)) {
		event_store(start + 2, delta);
		return (struct event_time){ start, start + 6 };
	}
	__builtin_memcpy(start, &head, 2); // too far for four bytes: a record of its own
	event_store(start + 2, now_ns);
	return (struct event_time){ start + 10, start + 12 };
}

COLD struct event_time event_put_time(struct lane *lane, uint8_t *start)
{
	return event_put_now(lane, start, clock_turn(lane));
}

// A large block begins or ends (order.h): the event gets a time of its own, so that a peak that
// large blocks of several threads make is known. With one lane its order is known without that.
COLD struct event_time event_put_mark(struct lane *lane, uint8_t *start, uint32_t type,
				      uint64_t address)
{
	order_set_large(lane, address, type != LANE_FREE && type != LANE_REALLOC_FREE);
	if (lane->exact || recording_state->lanes_count <= EVENT_LANES_ALONE)
		return event_put_time(lane, start);
	return event_put_now(lane, start, clock_mark());
}

// Whether a reader of the edits has the stack that was taken.
static bool event_is_followed(const struct lane *lane)
{
	const struct capture *capture = &lane->capture;
	const struct lane_check *check = lane->verify;

	if (check->depth != capture->depth)
		return false;
	for (uint32_t i = 0; i < capture->depth; i++) {
		if (check->ids[i] != capture_id(capture, i))
			return false;
	}
	return true;
}

COLD void event_verify_edit(const struct lane *lane)
{
	if (!event_is_followed(lane))
		__atomic_fetch_add(&recording_state->segment->mismatched, 1, __ATOMIC_RELAXED);
}

COLD void event_verify(struct lane *lane, const uintptr_t *frame)
{
	struct segment *segment = recording_state->segment;

	__atomic_fetch_add(&segment->verified, 1, __ATOMIC_RELAXED);
	if (!capture_verify(&lane->capture, &lane->verify->walked, frame))
		__atomic_fetch_add(&segment->mismatched, 1, __ATOMIC_RELAXED);
}

void event_record(uint32_t type, uint32_t fields, uint64_t address, uint64_t size,
		  uint8_t align_log2, const uintptr_t *frame)
{
	struct event_call call = { address, size, align_log2, frame };
	struct lane *lane = lane_enter();

	if (likely(lane))
		event_append(lane, type, fields, &call);
}

enum { EVENT_SAMPLE_BYTES = 7 };

// Room is made for the event as well, which has to follow at once.
COLD bool event_put_sample(struct lane *lane, uint32_t turn)
{
	const uint16_t head[] = { LANE_EXTRA, LANE_EXTRA_SAMPLE, 1 };
	uint8_t *start;

	if (lane->head + LANE_ROOM + EVENT_SAMPLE_BYTES > lane->room &&
	    !lane_wait_room(lane, EVENT_SAMPLE_BYTES))
		return false;
	start = lane_at(lane, lane->head);
	__builtin_memcpy(start, head, sizeof(head));
	start[sizeof(head)] = (uint8_t)turn;
	lane_publish(lane, start, start + EVENT_SAMPLE_BYTES);
	return true;
}

// An allocation that is a sample: first a record of how it was drawn, then the event. If there is
// no room for both, neither is written.
COLD void event_sample(uint32_t turn, uint32_t type, uint32_t fields, const struct event_call *call)
{
	struct lane *lane = lane_enter();

	if (unlikely(!lane))
		return;
	if (event_put_sample(lane, turn))
		event_append(lane, type, fields, call);
	else
		lane->limit = lane->open_limit;
}

uint64_t event_changed(uint32_t type, uint64_t address, uint64_t size, const uintptr_t *frame)
{
	uint32_t fields = EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK;

	if (unlikely(lane_get_mine()->verify != NULL) ||
	    unlikely(!event_short(EVENT_SHORT_CHANGED, type, fields, address, size, frame)))
		event_record(type, fields, address, size, 0, frame);
	return address;
}
