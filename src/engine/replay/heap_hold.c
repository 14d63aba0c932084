// The two halves of a realloc that other threads' events come between. Whether the block has ended
// with the first half is known by the second one alone, and so is the level in between, which may
// be the peak. So all events are held until it comes. A realloc that takes very long is not waited
// for: after 65,536 held events it counts as if its block had ended, until the other half says that
// it lives on. For example, with a block of 100 bytes of thread t:
//
//     t  realloc-free        held, for t's next call is waited for
//     u  malloc 50           held
//     u  free                held
//     t  undo (it failed)    the half is marked as undone; all are counted
//
// and the peak is 150. Had the half been counted as it came, the level would have been 0, 50, 0,
// 100.
#include "base/mem.h"
#include "engine/replay/heap_own.h"
#include "trace/effect.h"

enum { HOLD_MAX = 1 << 16 };

// What was held is counted in the order in which it came, whatever it waited for.
void heap_hold_no_more(struct heap *heap)
{
	size_t count = heap->held_count;

	if (count > 0)
		heap_send_far(heap);
	heap->held_count = 0;
	heap->held_waiting = 0;
	for (size_t i = 0; i < count; i++) {
		const struct heap_held *held = &heap->held[i];

		if (held->ends) {
			heap_end_process(heap, held->process, held->event.time_ns);
			continue;
		}
		if (held->event.thread < heap->threads_count)
			heap->threads[held->event.thread].waits = false;
		heap_count_event(heap, &held->event, held->undone, NULL);
	}
}

// The thread goes on: what its realloc did is known, if one is waited for.
static void hold_settle(struct heap *heap, const struct trace_event *event)
{
	struct heap_thread_state *thread = &heap->threads[event->thread];
	unsigned effect = effect_of(event->kind);

	if (thread->waits) {
		struct heap_held *half = &heap->held[thread->held];

		half->undone = effect & EFFECT_UNDOES && event->address == half->event.address;
		thread->waits = false;
		heap->held_waiting--;
	}
	if (effect & EFFECT_HALF) {
		thread->waits = true;
		thread->held = heap->held_count;
		heap->held_waiting++;
	}
}

static void hold(struct heap *heap, struct heap_held held)
{
	*MEM_ADD(heap->held, heap->held_count, heap->held_capacity) = held;
	if (heap->held_count == HOLD_MAX)
		heap_hold_no_more(heap);
}

// A call is settled before it is held: it may be the second half that all wait for, and a new first
// half waits with itself as the first that is held.
void heap_add_at(struct heap *heap, const struct trace_event *event,
		 const struct reader_spots *spots)
{
	ASSERT(!heap->finished);
	if (event->thread < heap->threads_count && effect_of(event->kind) & EFFECT_CALL)
		hold_settle(heap, event);
	if (heap->held_waiting) {
		hold(heap, (struct heap_held){ .event = *event });
		return;
	}
	heap_hold_no_more(heap);
	heap_count_event(heap, event, false, spots);
}

void heap_add_event(struct heap *heap, const struct trace_event *event)
{
	heap_send_far(heap);
	heap_add_at(heap, event, NULL);
}

// A process that ends answers for its threads: no second half will come, so their blocks have
// ended.
void heap_hold_end(struct heap *heap, process_id process, uint64_t time_ns)
{
	for (size_t i = 0; i < heap->threads_count; i++) {
		struct heap_thread_state *thread = &heap->threads[i];

		if (thread->process != process || !thread->waits)
			continue;
		thread->waits = false;
		heap->held_waiting--;
	}
	if (heap->held_waiting) {
		hold(heap, (struct heap_held){
				   .event.time_ns = time_ns, .ends = true, .process = process });
		return;
	}
	heap_hold_no_more(heap);
	heap_end_process(heap, process, time_ns);
}
