// Of random calls the latest blocks of threads say the same of temporary ones as the heap, which
// keeps all that lives.
#include "engine/replay/temporary.h"

#include "engine/replay/heap.h"
#include "test/test.h"

#include <string.h>

enum { PROCESSES = 3, THREADS = 6, STACKS = 5, HEAPS = 3, PLACES = 12, EVENTS = 400, ROUNDS = 300 };

struct sums {
	struct heap_amount of[PROCESSES][STACKS];
};

static void add_one(void *context, process_id process, stack_id stack, uint64_t size, bool undone)
{
	struct sums *sums = context;
	struct heap_amount *amount = &sums->of[process][stack];

	amount->count += undone ? UINT64_MAX : 1;
	amount->bytes += undone ? 0 - size : size;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

static struct trace_event random_event(uint64_t *state, uint64_t number)
{
	static const uint8_t kinds[] = {
		TRACE_MALLOC,        TRACE_CALLOC,       TRACE_ALIGNED,        TRACE_FREE,
		TRACE_FREE,          TRACE_FREE,         TRACE_REALLOC,        TRACE_REALLOC_FREE,
		TRACE_REALLOC_ALLOC, TRACE_REALLOC_UNDO, TRACE_REALLOC_FAILED, TRACE_FAILED,
		TRACE_HEAP_DESTROY,  TRACE_MMAP
	};
	heap_id heap = (heap_id)(next_random(state) % HEAPS);
	uint64_t heap_begin = UINT64_C(0x10000) * (heap + UINT64_C(1));

	return (struct trace_event){
		.number = number,
		.time_ns = number * 10,
		.thread = (thread_id)(next_random(state) % (THREADS + 1)),
		.stack = (stack_id)(next_random(state) % STACKS),
		.heap = heap,
		.address = heap_begin + next_random(state) % PLACES * 16,
		.old_address = heap_begin + next_random(state) % PLACES * 16,
		.size = next_random(state) % 1000,
		.kind = kinds[next_random(state) % sizeof kinds],
	};
}

// A realloc's second half belongs to its first; as long as that one is open, nobody gets its place.
static bool join_halves(struct trace_event *event, struct trace_event *half)
{
	bool its = event->thread == half->thread;

	if (half->kind && event->kind == TRACE_REALLOC_UNDO) {
		event->address = half->address;
		event->heap = half->heap;
		event->thread = half->thread;
		its = true;
	} else if (half->kind && event->heap == half->heap &&
		   (event->address == half->address || event->old_address == half->address)) {
		return false;
	}
	if (event->kind == TRACE_REALLOC_FREE && !half->kind)
		*half = *event;
	else if (event->kind == TRACE_REALLOC_FREE)
		return false;
	else if (its && event->kind <= TRACE_FAILED)
		half->kind = 0;
	return true;
}

static bool odd_stack(void *context, stack_id stack)
{
	(void)context;
	return stack & 1;
}

static bool small_event(void *context, const struct trace_event *event)
{
	(void)context;
	return event->size < 700;
}

static void check_round(uint64_t seed, const struct query *query)
{
	struct sums sums = { 0 }, expected = { 0 };
	const struct temporary_visitor visitor = { &sums, add_one };
	struct temporary *temporary = temporary_new(query, &visitor);
	struct heap *heap = heap_new(query);
	struct trace_event half = { 0 };
	const struct heap_site *sites;
	size_t count;

	for (process_id i = 0; i < PROCESSES; i++) {
		temporary_add_process(temporary);
		heap_add_process(heap, i > 0);
	}
	for (thread_id i = 0; i < THREADS; i++) {
		temporary_add_thread(temporary, i % PROCESSES);
		heap_add_thread(heap, i % PROCESSES);
	}
	for (uint64_t number = 0; number < EVENTS; number++) {
		struct trace_event event = random_event(&seed, number);

		if (!join_halves(&event, &half))
			continue;
		temporary_add_event(temporary, &event);
		heap_add_event(heap, &event);
		if (next_random(&seed) % 100 == 0) {
			const struct trace_note note = {
				.kind = TRACE_NOTE_PROCESS_END,
				.process = (process_id)(next_random(&seed) % PROCESSES),
				.text = "",
			};

			temporary_add_note(temporary, &note);
			heap_add_note(heap, &note);
		}
	}
	heap_finish(heap);
	sites = heap_sites(heap, &count);
	for (size_t i = 0; i < count; i++)
		expected.of[sites[i].process][sites[i].stack] = sites[i].temporary;
	for (process_id i = 0; i < PROCESSES; i++)
		for (stack_id k = 0; k < STACKS; k++) {
			CHECK_EQ(expected.of[i][k].count, sums.of[i][k].count);
			CHECK_EQ(expected.of[i][k].bytes, sums.of[i][k].bytes);
		}
	heap_free(heap);
	temporary_free(temporary);
}

TEST(temporary_blocks_are_those_of_the_heap)
{
	for (uint64_t round = 1; round <= ROUNDS; round++)
		check_round(round * 0x9e3779b97f4a7c15u, NULL);
}

TEST(temporary_blocks_of_a_query_are_those_of_the_heap)
{
	bool processes[PROCESSES] = { true, false, true };
	bool threads[THREADS] = { true, true, true, true, false, false };
	const struct query query = {
		.processes = processes,
		.processes_count = PROCESSES,
		.threads = threads,
		.threads_count = THREADS,
		.stack = odd_stack,
		.event = small_event,
	};

	for (uint64_t round = 1; round <= ROUNDS; round++)
		check_round(round * 0x9e3779b97f4a7c15u, &query);
}
