// hook: what all hooks do with the call that they stand in front of: enter the lane, put the event,
// leave.
//
// An allocation is recorded after the real call, a free before it.
#ifndef RECORDER_HOOK_H
#define RECORDER_HOOK_H

#include "recorder/client.h"
#include "recorder/event.h"

// Where the walk of the stack begins: to be taken in the hook itself.
#define HOOK_FRAME ((const uintptr_t *)__builtin_frame_address(0))

// log2 of an alignment, as events have it; 0 for none.
static inline uint8_t hook_log2(size_t alignment)
{
	return alignment ? (uint8_t)(63 - __builtin_clzll(alignment)) : 0;
}

// Where the lane's next event goes.
static inline __attribute__((always_inline)) uint8_t *hook_start(const struct lane *lane)
{
	return lane->ring + (lane->head & lane->mask);
}

// An allocation of `type`, with fields `more` besides the usual ones. Address 0: it failed.
static inline __attribute__((always_inline)) void hook_allocated(uint32_t type, uint32_t more,
								 const struct event_call *call)
{
	struct lane *lane;
	uint8_t *start, *at;

	if (unlikely(client_paused))
		return;
	lane = lane_enter();
	if (unlikely(!lane))
		return;
	start = hook_start(lane);
	if (likely(call->address))
		at = event_put(lane, start, type, EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK | more,
			       call);
	else
		at = event_put(lane, start, LANE_FAILED, EVENT_SIZE | EVENT_STACK, call);
	lane_leave(lane, start, likely(at) ? at : start);
}

// The block at call->address is about to be freed.
static inline __attribute__((always_inline)) void hook_freed(const struct event_call *call)
{
	struct lane *lane = lane_enter();
	uint8_t *start, *at;

	if (unlikely(!lane))
		return;
	start = hook_start(lane);
	if (likely(!lane->free_stacks))
		at = event_put(lane, start, LANE_FREE, EVENT_ADDRESS, call);
	else
		at = event_put(lane, start, LANE_FREE, EVENT_ADDRESS | EVENT_STACK, call);
	lane_leave(lane, start, likely(at) ? at : start);
}

#endif
