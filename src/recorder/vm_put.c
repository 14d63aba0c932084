// vm_put: one record of a call on memory in a lane, as wire/lane_event.h has it: head, time if it
// is new, the number of the order if the slot was taken over, struct lane_vm, and the edit of the
// stack.
#include "recorder/vm_put.h"

#include "recorder/event.h"
#include "recorder/order.h"
#include "recorder/python.h"
#include "recorder/text.h"

enum { VM_PUT_RECORDS = 3 }; // room that a call needs, in LANE_ROOM

bool vm_put_first(struct lane *lane)
{
	if (python_on)
		python_write(lane);
	return vm_put_room(lane);
}

// Room for the call's records together, so that BEGIN is not written where END would find none.
bool vm_put_room(struct lane *lane)
{
	return lane->head + VM_PUT_RECORDS * LANE_ROOM <= lane->room ||
	       lane_wait_room(lane, (VM_PUT_RECORDS - 1) * LANE_ROOM);
}

// `last` fills in what can only be known when the record has its place in the order (the stack,
// whose call it is). False: nothing was written, as the recording has ended.
bool vm_put(struct lane *lane, struct lane_vm *record, vm_put_last *last, const void *context)
{
	uint8_t *start = lane_at(lane, lane->head);
	uint8_t *head_at = start, *at = start + 2, *body;
	enum vm_put_stack stack;
	uint32_t head = LANE_VM;
	uint64_t seq;

	if (lane->exact)
		clock_set_exact(lane);
	if (__atomic_load_n(lane->tick, __ATOMIC_RELAXED) != lane->time_ns) {
		struct event_time time = event_put_time(lane, start);

		if (!time.at)
			return false;
		head_at = time.head_at;
		at = time.at;
		head |= at == head_at + 6 ? LANE_TIME : 0;
	}
	if (record->part != LANE_VM_END && order_touch(lane, LANE_VM_ADDRESS, &seq)) {
		event_store(at, seq);
		at += 8;
		head |= LANE_OWNER;
	}
	body = at;
	at += sizeof(*record);
	stack = last ? last(lane, record, context) : VM_PUT_NONE;
	memcpy(body, record, sizeof(*record));
	if (stack != VM_PUT_NONE)
		head |= LANE_VM_HAS_STACK;
	if (stack == VM_PUT_DIFFERS) {
		const uint8_t *edit = at;

		head |= LANE_STACK;
		at = event_put_stack(lane, start, at);
		if (!at)
			return false;
		if (lane->verify)
			event_follow(lane, edit);
	}
	// The head is written last: until then it was not known which fields there are.
	head_at[0] = (uint8_t)head;
	head_at[1] = (uint8_t)(head >> 8);
	lane_publish(lane, start, at);
	return true;
}
