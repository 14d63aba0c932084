// A lane's events are of one heap until it is turned to another. For example, of a thread that
// allocates from Python's objects and then by malloc:
//
//     turn to pyobject     18 bytes: a head of three words, the heap's number in 8, 4 spare. Its
//                          place is remembered, so a later turn to it takes 2
//     the object           an event as ever
//     turn to malloc (0)   the same as before, and malloc's event
//
// While a call on Python's heap lasts, what it asks of malloc is held back. If the block that the
// call gives out lies in that of malloc, it is one block, and Python's: for example malloc(600) =
// 0x1000 for an object of 584 bytes at 0x1010. If not, malloc's was something else, an arena or a
// table, and is recorded as malloc's.
#include "recorder/language_heap.h"

#include "recorder/client.h"
#include "recorder/event.h"
#include "recorder/hook_python_linux.h"
#include "recorder/late_linux.h"
#include "recorder/sample.h"
#include "recorder/scope_linux.h"

enum { LANGUAGE_HEAP_HEAD_MAX = 64 }; // what debugging allocators have before a block

__thread struct language_heap_call language_heap_mine;

static size_t (*language_heap_usable)(void *block); // malloc_usable_size, or NULL

bool language_heap_wanted(void)
{
	return !late_is() && recording_state && (recording_state->options & SEGMENT_LANGUAGE_HEAPS);
}

void language_heap_meet(const struct scope_object *object)
{
	if (!language_heap_wanted())
		return;
	if (!language_heap_usable)
		*(void **)&language_heap_usable = scope_next("malloc_usable_size", NULL);
	hook_python_meet(object);
}

// ---- Events ---------------------------------------------------------------------------------

// In full it is 18 bytes; a number is 2. Numbers are the lane's, in the order in which the heaps
// came.
void language_heap_turn(struct lane *lane, uint64_t heap)
{
	struct lane_heap *known = &lane->heaps[heap % LANE_HEAPS_KNOWN];
	uint16_t head[3] = { LANE_EXTRA, LANE_EXTRA_HEAP, 12 };
	uint8_t *start = lane_at(lane, lane->head);

	if (likely(lane->heap == heap))
		return;
	lane->heap = heap;
	lane->of_languages = true;
	if (likely(known->number)) {
		head[0] = (uint16_t)(LANE_HEAP | known->number << LANE_HEAP_SHIFT);
		__builtin_memcpy(start, head, 2);
		lane_publish(lane, start, start + 2);
		return;
	}
	*known = (struct lane_heap){ heap, 0, ++lane->heaps_count };
	__builtin_memcpy(start, head, sizeof(head));
	__builtin_memcpy(start + sizeof(head), &heap, 8);
	__builtin_memset(start + sizeof(head) + 8, 0, 4);
	lane_publish(lane, start, start + sizeof(head) + 12);
}

// As event_record, of a heap.
static void language_heap_put(uint64_t heap, uint32_t type, uint32_t fields,
			      const struct event_call *call)
{
	struct lane *lane = lane_enter();

	if (unlikely(!lane))
		return;
	language_heap_turn(lane, heap);
	event_append(lane, type, fields, call);
}

// `held` is one block of malloc's that waits for the call's end; a second one means that the first
// was something else, and settles it.
bool language_heap_takes(uint32_t type, uint32_t fields, const struct event_call *call)
{
	struct language_heap_call *mine = &language_heap_mine;

	if (unlikely(mine->heap) && type != LANE_FREE) {
		if (mine->held)
			language_heap_ends(0);
		if (type != LANE_FAILED) {
			mine->held = (uintptr_t)call->address;
			mine->held_size = call->size;
		}
		return true;
	}
	if (likely(!lane_get_mine()->heap))
		return false;
	language_heap_put(0, type, fields, call);
	return true;
}

// A debugging allocator gives out an address some bytes into malloc's block: within 64 bytes, and
// within what is usable of it, it is the same block.
bool language_heap_backs(uintptr_t block)
{
	struct language_heap_call *mine = &language_heap_mine;

	if (likely(!mine->heap))
		return false;
	if (mine->held == block) { // it was got for a moment
		if (sample_mean)
			sample_passed(block);
		mine->held = 0;
		return true;
	}
	if (block == mine->block || !mine->block)
		return block == mine->block;
	return mine->block - block <= LANGUAGE_HEAP_HEAD_MAX && language_heap_usable &&
	       mine->block - block < language_heap_usable((void *)block);
}

bool language_heap_otherwise(uint32_t type, uint32_t fields, uint64_t address, uint64_t size,
			     uint8_t align_log2, const uintptr_t *frame)
{
	struct event_call call = { address, size, align_log2, frame };

	if (unlikely(client_state & CLIENT_PAUSED) && client_stays_paused())
		return true;
	if (likely(!(client_state & CLIENT_LANGUAGE_HEAPS)))
		return false;
	if (unlikely(hook_python_begins))
		hook_python_look(frame[1]);
	if (unlikely(!address))
		return language_heap_takes(LANE_FAILED, EVENT_SIZE | EVENT_STACK, &call);
	return language_heap_takes(type, fields, &call);
}

bool language_heap_frees(uint64_t address, const uintptr_t *frame)
{
	struct event_call call = { address, 0, 0, frame };

	return language_heap_backs((uintptr_t)address) ||
	       (lane_get_mine()->heap && language_heap_takes(LANE_FREE, EVENT_ADDRESS, &call));
}

// ---- Calls ----------------------------------------------------------------------------------

// False: the thread is within such a call already.
bool language_heap_begins(uint64_t heap, uintptr_t block, const uintptr_t *frame)
{
	struct language_heap_call *mine = &language_heap_mine;

	if (unlikely(mine->heap))
		return false;
	mine->heap = heap;
	mine->block = block;
	mine->frame = frame;
	return true;
}

// A block of malloc's that is none of the heap's.
//
// The unsigned difference says with one compare whether `result` is in the held block.
static COLD void language_heap_settle(struct language_heap_call *mine, uintptr_t result)
{
	struct event_call call = { mine->held, mine->held_size, 0, mine->frame };

	mine->held = 0;
	if (result - call.address < call.size || result == call.address) {
		if (sample_mean)
			sample_passed(call.address);
	} else {
		language_heap_put(0, LANE_MALLOC, EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK, &call);
	}
}

void language_heap_ends(uintptr_t result)
{
	struct language_heap_call *mine = &language_heap_mine;

	if (unlikely(mine->held))
		language_heap_settle(mine, result);
}

void language_heap_made(uint64_t heap, uint32_t type, const struct event_call *call)
{
	if (unlikely(client_state & CLIENT_PAUSED) && client_stays_paused())
		return;
	if (unlikely(!call->address))
		language_heap_put(heap, LANE_FAILED, EVENT_SIZE | EVENT_STACK, call);
	else if (likely(!sample_mean) ||
		 (!sample_passes(&sample_way, call->size) && sample_keep(call->address)))
		language_heap_put(heap, type, EVENT_ADDRESS | EVENT_SIZE | EVENT_STACK, call);
}

void language_heap_allocated(uint32_t type, uintptr_t result, uint64_t size)
{
	struct language_heap_call *mine = &language_heap_mine;
	struct event_call call = { result, size, 0, mine->frame };
	uint64_t heap = mine->heap;

	language_heap_ends(result);
	mine->heap = 0;
	language_heap_made(heap, type, &call);
}

void language_heap_freed(uint64_t heap, uintptr_t block, const uintptr_t *frame)
{
	struct event_call call = { block, 0, 0, frame };

	if (unlikely(sample_mean) && sample_passed(block))
		return;
	language_heap_put(heap, LANE_FREE, EVENT_ADDRESS, &call);
}
