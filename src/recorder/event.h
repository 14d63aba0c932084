// event: one call on memory, encoded into the lane (wire/lane_event.h). The hot path.
//
// An event is appended in one of two ways. The short one (event_short) is for what nearly all
// are: same tick, a small block on a page whose owner this lane is, room in the ring, and the
// stack of the event before. It calls no function. Everything else goes by
// event_put, which can say a new time, an owner, a new stack, an alignment.
//
// For example malloc(24) = 0x5030 after an event on 0x5010: the difference is 0x20, zigzag 0x40,
// one byte; the size is one byte. The record is 11 01 40 18: type 1 with one byte of each, then
// these. Eight bytes are stored each time and the end is moved by as many as count, since that
// needs no branch; LANE_ROOM is kept free in the ring for it.
#pragma once

#include "recorder/client.h"
#include "recorder/lane.h"
#include "recorder/order.h"
#include "recorder/python.h"

// Which fields an event has, as bits of `fields`. Constants at each place where they are given,
// so that the compiler leaves out what an event has not.
enum {
	EVENT_ADDRESS = 1, // has one
	EVENT_SIZE = 2,    // has one
	EVENT_ALIGN = 4,   // has one
	EVENT_STACK = 8,   // has one
};

// A call that is to be recorded. What `fields` does not name is not looked at.
struct event_call {
	uint64_t address;
	uint64_t size;          // that was asked for, in bytes
	uint8_t align_log2;     // of EVENT_ALIGN; 0: none was asked for
	const uintptr_t *frame; // of the hook
};

// Eight bytes at any address, of which as many count as the caller says: what is after them is
// overwritten by what comes next. All eight must be the ring's: LANE_ROOM sees to that.
static inline void event_store(uint8_t *at, uint64_t value)
{
	__builtin_memcpy(at, &value, 8);
}

// Bytes that hold `value`, 1 to 8: for 0 it is 1 as well, which saves a branch. It is what the head
// says of a field (LANE_ADDRESS_SHIFT, LANE_SIZE_SHIFT).
static inline uint32_t event_bytes(uint64_t value)
{
	return ((63 ^ (uint32_t)__builtin_clzll(value | 1)) + 8) / 8;
}

// The frames that are new in the lane's stack. Returns where the next field goes; may wait for
// room, with `start` and all after it staying where they are. NULL: no room, ever. capture_take
// must have found that the stack is another one. Where the edit has a number already
// it is two bytes.
HIDDEN uint8_t *event_put_stack(struct lane *lane, const uint8_t *start, uint8_t *at);

// Where the event goes on after its time: its head is at head_at, its fields at `at`. With four
// bytes between head and fields the event has LANE_TIME. `at` NULL: the recording has ended.
struct event_time {
	uint8_t *head_at;
	uint8_t *at;
};

// The recording was stopped from outside: nothing more from this process.
HIDDEN void event_stopped(struct lane *lane);

// The tick is another one than the lane's last: put the time, if it is later. This reads the clock.
HIDDEN struct event_time event_put_time(struct lane *lane, uint8_t *start);

// A large block begins or ends: the same, with a time of its own where threads can meet. The slot
// of `address` is noted as having a large block, or none any more.
HIDDEN struct event_time event_put_mark(struct lane *lane, uint8_t *start, uint32_t type,
					uint64_t address);

// An edit was put (SEGMENT_VERIFY): a reader follows it.
HIDDEN void event_follow(struct lane *lane, const uint8_t *edit);

// The stack just taken is walked again and compared (SEGMENT_VERIFY).
HIDDEN void event_verify(struct lane *lane, const uintptr_t *frame);

// The same with what a reader has who follows the edits. Differences are counted in the segment
// (mismatched); nothing else happens to the program.
HIDDEN void event_verify_edit(const struct lane *lane);

// What an aligned operator new was asked for, while it asks aligned_alloc for a rounded size: the
// size that is recorded is the program's own. Of the calling thread; a size of 0: it is in none.
struct event_new {
	uint64_t size;
	uint64_t alignment;
};
HIDDEN extern __thread struct event_new event_new;

// The size that the program asked for, when aligned_alloc was given this alignment (a power of two)
// and size: that of the operator new around it, if they are those of its rounded request, which is
// answered once; else `size`.
static inline uint64_t event_new_size(uint64_t alignment, uint64_t size)
{
	uint64_t asked = event_new.size;

	if (likely(!asked) || event_new.alignment != alignment ||
	    size != ((asked + alignment - 1) & ~(alignment - 1)))
		return size;
	event_new.size = 0;
	return asked;
}

// Whether a large block (ORDER_LARGE_BYTES) begins or ends with this event. A free has no size: the
// slot of its address knows.
static inline bool event_is_large(const struct lane *lane, uint32_t fields,
				  const struct event_call *call)
{
	return fields & EVENT_SIZE ? call->size >= ORDER_LARGE_BYTES
				   : order_is_large(lane, call->address);
}

// Append one event of `type` with the fields in `fields`; the lane was entered and stays busy.
// The lane's last address and stack become this event's. Returns where the next one goes;
// lane_leave publishes. NULL: nothing was written, as the recording has ended.
static inline __attribute__((always_inline)) uint8_t *event_put(struct lane *lane, uint8_t *start,
								uint32_t type, uint32_t fields,
								const struct event_call *call)
{
	uint8_t *head_at = start;
	uint8_t *at = start + 2;
	uint64_t delta, seq, stack;
	uint32_t head = type;
	bool large = (fields & EVENT_ADDRESS) && event_is_large(lane, fields, call);

	// The time comes first, as it may need a record of its own: then the event's head is after
	// that.
	if (unlikely(large) ||
	    unlikely(__atomic_load_n(lane->tick, __ATOMIC_RELAXED) != lane->time_ns)) {
		struct event_time time = large ? event_put_mark(lane, start, type, call->address)
					       : event_put_time(lane, start);

		if (!time.at)
			return NULL;
		head_at = time.head_at;
		at = time.at;
		head |= at == head_at + 6 ? LANE_TIME : 0;
	}
	if (fields & EVENT_ADDRESS) {
		if (unlikely(order_touch(lane, call->address, &seq))) {
			event_store(at, seq);
			at += 8;
			head |= LANE_OWNER;
		}
		// Zigzag: a small distance is a small number, up or down.
		delta = call->address - lane->address;
		delta = (delta << 1) ^ (uint64_t)((int64_t)delta >> 63);
		lane->address = call->address;
		event_store(at, delta);
		at += event_bytes(delta);
		head |= event_bytes(delta) << LANE_ADDRESS_SHIFT;
	}
	if (fields & EVENT_SIZE) {
		event_store(at, call->size);
		at += event_bytes(call->size);
		head |= event_bytes(call->size) << LANE_SIZE_SHIFT;
	}
	if (fields & EVENT_ALIGN)
		*at++ = call->align_log2;
	if (fields & EVENT_STACK) {
		// What costs least first: another place in the same function, the same stack, a
		// walk.
		if ((stack = capture_switch(&lane->capture, call->frame)) != 0) {
			head |= LANE_STACK;
			event_store(at, stack);
			if (unlikely(lane->verify != NULL))
				event_follow(lane, at);
			at += 8;
		} else if (unlikely(lane->verify != NULL) &&
			   capture_is_same(&lane->capture, call->frame)) {
			// As in the short way, which is verified by that.
		} else if (capture_take(&lane->capture, call->frame)) {
			const uint8_t *edit = at;

			head |= LANE_STACK;
			at = event_put_stack(lane, start, at);
			if (unlikely(!at))
				return NULL;
			if (unlikely(lane->verify != NULL))
				event_follow(lane, edit);
		}
	}
	if ((fields & EVENT_STACK) && unlikely(lane->verify != NULL)) {
		event_verify(lane, call->frame);
		event_verify_edit(lane);
	}
	head_at[0] = (uint8_t)head;
	head_at[1] = (uint8_t)(head >> 8);
	return at;
}

// EVENT_STACK, unless the stack is proven to be the last one.
static inline __attribute__((always_inline)) uint32_t event_stack(const struct lane *lane,
								  const uintptr_t *frame)
{
	bool same = likely(!lane->verify) && capture_is_same(&lane->capture, frame);

	return same ? 0 : EVENT_STACK;
}

// In a lane that was entered: append one event, and leave the lane. A free has a stack where the
// lane's frees have one.
static inline __attribute__((always_inline)) void
event_append(struct lane *lane, uint32_t type, uint32_t fields, const struct event_call *call)
{
	uint8_t *start, *at;

	if (type == LANE_FREE && lane->free_stacks)
		fields |= EVENT_STACK;
	if (unlikely(client_state) && python_on && (fields & EVENT_STACK))
		python_write(lane);
	start = lane_at(lane, lane->head);
	at = event_put(lane, start, type, fields, call);
	lane_leave(lane, start, likely(at) ? at : start);
}

// In a busy lane: publish that its next event is a sample, drawn at a mean distance of 2^turn
// bytes. May wait for room. False: there is none, ever, and the lane is busy yet.
HIDDEN bool event_put_sample(struct lane *lane, uint32_t turn);

// The same as event_record for an allocation that is a sample: both records, or neither.
HIDDEN void event_sample(uint32_t turn, uint32_t type, uint32_t fields,
			 const struct event_call *call);

// Enter the lane, append one event, leave. What cannot be recorded is counted. It may wait for the
// collector. `frame` is not looked at without EVENT_STACK.
HIDDEN void event_record(uint32_t type, uint32_t fields, uint64_t address, uint64_t size,
			 uint8_t align_log2, const uintptr_t *frame);

// ---- The short way --------------------------------------------------------------------------

// What is done about the stack in the short way.
enum event_short {
	EVENT_SHORT_SAME,    // only if the stack is the last one: then no function is called
	EVENT_SHORT_CHANGED, // it is taken
};

// The edit that turns the lane's stack into that of `frame`, with LANE_STACK in *head. NULL: no
// room, ever.
static inline __attribute__((always_inline)) uint8_t *event_short_stack(struct lane *lane,
									uint8_t *start, uint8_t *at,
									uint32_t *head,
									const uintptr_t *frame)
{
	uint64_t edit = lane->capture.over ? 0 : capture_switch(&lane->capture, frame);
	uint32_t taken;

	if (edit) {
		*head |= LANE_STACK;
		event_store(at, edit);
		return at + 8;
	}
	taken = capture_take(&lane->capture, frame);
	if (unlikely(taken == CAPTURE_SAME))
		return at;
	*head |= LANE_STACK;
	if (taken >= LANE_KEEP_AGAIN) {
		__builtin_memcpy(at, &taken, 2);
		return at + 2;
	}
	return event_put_stack(lane, start, at);
}

_Static_assert(ORDER_LARGE_BYTES <= 1 << 15, "a size of two bytes, at most");

// Append and publish the event if nothing is special: the lane has room and its owner, it is still
// the same tick, the block is not large, and the address's page was ours. False: nothing was done.
// Afterwards the lane is not busy, in either case.
static inline __attribute__((always_inline)) bool event_short(enum event_short way, uint32_t type,
							      uint32_t fields, uint64_t address,
							      uint64_t size, const uintptr_t *frame)
{
	struct lane *lane = lane_get_mine();
	uint64_t limit, head, delta;
	uint32_t length, bytes;
	uint8_t *start, *at;

	if ((fields & EVENT_SIZE) && unlikely(size >= ORDER_LARGE_BYTES))
		return false;
	// The last stack was a memo's, as most likely the next one is: there is nothing to compare.
	if (way == EVENT_SHORT_SAME && (fields & EVENT_STACK) && lane->capture.joinable == 0)
		return false;
	limit = lane->limit;
	lane->limit = 0; // a signal handler's events must not come between
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	head = lane->head; // after those of a handler that came before
	if (unlikely(head + LANE_ROOM > limit))
		goto special;
	if (unlikely(atomic_load_explicit(lane->tick, memory_order_relaxed) != lane->time_ns))
		goto special;
	if (unlikely(!order_is_mine(lane, address)))
		goto special;
	if (way == EVENT_SHORT_SAME && (fields & EVENT_STACK) &&
	    unlikely(!capture_is_same(&lane->capture, frame)))
		goto special;
	// From here on the event is written, as event_put would, unless there is no room for its
	// stack.
	start = lane_at(lane, head);
	delta = address - lane->address;
	delta = (delta << 1) ^ (uint64_t)((int64_t)delta >> 63);
	lane->address = address;
	event_store(start + 2, delta);
	length = event_bytes(delta);
	type |= length << LANE_ADDRESS_SHIFT;
	length += 2;
	if (fields & EVENT_SIZE) {
		event_store(start + length, size);
		bytes = (uint32_t)(size + 0xff00) >> 15; // 1 below 256, 2 below ORDER_LARGE_BYTES
		length += bytes;
		type |= bytes << LANE_SIZE_SHIFT;
	}
	if (way == EVENT_SHORT_CHANGED && (fields & EVENT_STACK)) {
		at = event_short_stack(lane, start, start + length, &type, frame);
		length = likely(at) ? (uint32_t)(at - start) : 0;
	}
	// A stack that could not be written leaves nothing: the head does not move.
	__builtin_memcpy(start, &type, 2);
	head += length;
	lane->head = head;
	__atomic_store_n(&lane->shared->head, head, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lane->limit = way == EVENT_SHORT_SAME ? limit : lane->open_limit;
	return true;
special:
	lane->limit = limit;
	return false;
}

// An event from the last stack, or of a type that has none. False: it is to be recorded otherwise.
static inline __attribute__((always_inline)) bool
event_quick(uint32_t type, uint32_t fields, uint64_t address, uint64_t size, const uintptr_t *frame)
{
	return event_short(EVENT_SHORT_SAME, type, fields, address, size, frame);
}

// An allocation that event_quick could not append; address, size and stack are all it has. Its
// stack is most likely another one. What the short way does not take goes by event_record.
// Returns `address`.
HIDDEN uint64_t event_changed(uint32_t type, uint64_t address, uint64_t size,
			      const uintptr_t *frame);
