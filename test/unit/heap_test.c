// The heap's one pass says the same as a model that keeps every block that ever lived in a list
// and adds everything up again after each event.
#include "base/mem.h"
#include "engine/replay/heap.h"
#include "test/test.h"
#include "test/unit/window_random.h"
#include "trace/reader_own.h"

#include <stdlib.h>
#include <string.h>

// ---- a feeder with short lines ----

struct feed {
	struct heap *heap;
	uint64_t number;
	uint64_t time_ns;
};

static void feed_event(struct feed *feed, enum trace_kind kind, thread_id thread, uint64_t address,
		       uint64_t size, stack_id stack)
{
	struct trace_event event = {
		.number = feed->number++,
		.time_ns = feed->time_ns += 10,
		.address = address,
		.size = size,
		.thread = thread,
		.stack = stack,
		.kind = (uint8_t)kind,
	};

	heap_add_event(feed->heap, &event);
}

static void feed_realloc(struct feed *feed, thread_id thread, uint64_t old_address,
			 uint64_t address, uint64_t size, stack_id stack)
{
	struct trace_event event = {
		.number = feed->number++,
		.time_ns = feed->time_ns += 10,
		.old_address = old_address,
		.address = address,
		.size = size,
		.thread = thread,
		.stack = stack,
		.kind = TRACE_REALLOC,
	};

	heap_add_event(feed->heap, &event);
}

static void feed_end(struct feed *feed, process_id process)
{
	struct trace_note note = {
		.kind = TRACE_NOTE_PROCESS_END,
		.process = process,
		.time_ns = feed->time_ns += 10,
		.text = "",
	};

	heap_add_note(feed->heap, &note);
}

// One process with two threads.
static struct feed feed_new(const struct query *query)
{
	struct feed feed = { .heap = heap_new(query) };

	heap_add_process(feed.heap, false);
	heap_add_thread(feed.heap, 0);
	heap_add_thread(feed.heap, 0);
	return feed;
}

static const struct heap_counts *feed_finish(struct feed *feed)
{
	heap_finish(feed->heap);
	return &heap_totals(feed->heap)->counts;
}

// ---- what the contract says, one sentence each ----

TEST(heap_of_nothing_is_all_zero)
{
	struct heap *heap = heap_new(NULL);
	size_t count = 7;

	heap_finish(heap);
	CHECK_EQ(0, heap_totals(heap)->counts.allocated.count);
	CHECK_EQ(0, heap_totals(heap)->counts.peak.bytes);
	CHECK_EQ(0, heap_totals(heap)->peak_high_bytes);
	heap_sites(heap, &count);
	CHECK_EQ(0, count);
	CHECK(!heap_process(heap, 0));
	heap_free(heap);
}

TEST(heap_realloc_is_one_event_an_allocation_a_free_and_a_reallocation)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 100, 1);
	feed_realloc(&feed, 0, 0x1000, 0x1000, 250, 2);
	counts = feed_finish(&feed);
	CHECK_EQ(2, heap_totals(feed.heap)->events);
	CHECK_EQ(2, counts->allocated.count);
	CHECK_EQ(350, counts->allocated.bytes);
	CHECK_EQ(1, counts->frees);
	CHECK_EQ(1, counts->reallocations);
	CHECK_EQ(1, counts->temporary.count);
	CHECK_EQ(100, counts->temporary.bytes);
	CHECK_EQ(250, counts->peak.bytes);
	CHECK_EQ(1, counts->peak_number);
	CHECK_EQ(250, counts->live_at_exit.bytes);
	heap_free(feed.heap);
}

TEST(heap_counts_what_was_there_before_apart_and_lets_it_live)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_BEFORE, 0, 0x1000, 100, 1);
	feed_event(&feed, TRACE_BEFORE, 0, 0x2000, 50, 1);
	feed_event(&feed, TRACE_MALLOC, 0, 0x3000, 10, 2);
	feed_event(&feed, TRACE_FREE, 0, 0x2000, 0, 0);
	feed_realloc(&feed, 0, 0x1000, 0x4000, 200, 2);
	counts = feed_finish(&feed);
	CHECK_EQ(3, heap_totals(feed.heap)->events);
	CHECK_EQ(2, counts->before.count);
	CHECK_EQ(150, counts->before.bytes);
	CHECK_EQ(2, counts->allocated.count);
	CHECK_EQ(2, counts->frees);
	CHECK_EQ(0, counts->orphan_frees + counts->inherited_frees + counts->temporary.count);
	CHECK_EQ(2, counts->live_at_exit.count);
	CHECK_EQ(210, counts->live_at_exit.bytes);
	heap_free(feed.heap);
}

TEST(heap_knows_nothing_of_virtual_memory_and_of_other_heaps)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 100, 1);
	for (unsigned kind = TRACE_HEAP_ALLOC; kind <= TRACE_UNMAPPED; kind++)
		if (kind != TRACE_BEFORE)
			feed_event(&feed, kind, 0, 0x1000, 4096, 2);
	feed_event(&feed, TRACE_FREE, 0, 0x1000, 0, 0);
	counts = feed_finish(&feed);
	CHECK_EQ(2, heap_totals(feed.heap)->events);
	CHECK_EQ(2, heap_totals(feed.heap)->events_selected);
	CHECK_EQ(1, counts->allocated.count);
	CHECK_EQ(1, counts->frees);
	CHECK_EQ(1, counts->temporary.count);
	CHECK_EQ(0, counts->lost_frees + counts->orphan_frees + counts->failed);
	CHECK_EQ(100, counts->peak.bytes);
	heap_free(feed.heap);
}

static void feed_in_heap(struct feed *feed, enum trace_kind kind, heap_id heap, uint64_t address,
			 uint64_t size)
{
	struct trace_event event = {
		.number = feed->number++,
		.time_ns = feed->time_ns += 10,
		.address = address,
		.size = size,
		.stack = 1,
		.heap = heap,
		.kind = (uint8_t)kind,
	};

	heap_add_event(feed->heap, &event);
}

// A heap that has a handle is one of malloc's kind: its blocks count, and end with it.
TEST(heap_that_is_destroyed_takes_its_blocks_along_and_no_others)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_in_heap(&feed, TRACE_MALLOC, 0, 0x1000, 1);
	feed_in_heap(&feed, TRACE_MALLOC, 2, 0x2000, 10);
	feed_in_heap(&feed, TRACE_MALLOC, 2, 0x3000, 100);
	feed_in_heap(&feed, TRACE_MALLOC, 3, 0x4000, 1000);
	feed_in_heap(&feed, TRACE_FREE, 2, 0x2000, 0);
	feed_in_heap(&feed, TRACE_HEAP_DESTROY, 2, 0, 0);
	feed_in_heap(&feed, TRACE_HEAP_DESTROY, 2, 0, 0);
	feed_in_heap(&feed, TRACE_HEAP_DESTROY, 77, 0, 0);
	feed_in_heap(&feed, TRACE_MALLOC, 2, 0x3000, 10000);
	counts = feed_finish(&feed);
	CHECK_EQ(5, counts->allocated.count);
	CHECK_EQ(11111, counts->allocated.bytes);
	CHECK_EQ(2, counts->frees);
	CHECK_EQ(0, counts->lost_frees + counts->orphan_frees);
	CHECK_EQ(3, counts->live_at_exit.count);
	CHECK_EQ(11001, counts->live_at_exit.bytes);
	heap_free(feed.heap);
}

TEST(heap_two_halves_of_a_realloc_count_as_the_whole)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 100, 1);
	feed_event(&feed, TRACE_REALLOC_FREE, 0, 0x1000, 0, 0);
	feed_event(&feed, TRACE_MALLOC, 1, 0x1000, 30, 3); // another thread gets the old place
	feed_event(&feed, TRACE_REALLOC_ALLOC, 0, 0x2000, 250, 2);
	counts = feed_finish(&feed);
	CHECK_EQ(3, heap_totals(feed.heap)->events);
	CHECK_EQ(3, counts->allocated.count);
	CHECK_EQ(380, counts->allocated.bytes);
	CHECK_EQ(1, counts->frees);
	CHECK_EQ(1, counts->reallocations);
	CHECK_EQ(0, counts->lost_frees);
	CHECK_EQ(280, counts->live_at_exit.bytes);
	heap_free(feed.heap);
}

TEST(heap_realloc_to_nothing_is_a_free)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 100, 1);
	feed_event(&feed, TRACE_REALLOC_FREE, 0, 0x1000, 0, 0);
	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 1, 1);
	counts = feed_finish(&feed);
	CHECK_EQ(3, heap_totals(feed.heap)->events);
	CHECK_EQ(2, counts->allocated.count);
	CHECK_EQ(1, counts->frees);
	CHECK_EQ(0, counts->reallocations);
	heap_free(feed.heap);
}

TEST(heap_counts_a_block_while_its_realloc_fails)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;
	const struct heap_site *sites;
	size_t count;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 1000, 1);
	feed_event(&feed, TRACE_REALLOC_FREE, 0, 0x1000, 0, 0);
	feed_event(&feed, TRACE_MALLOC, 1, 0x9000, 500, 2);
	feed_event(&feed, TRACE_FREE, 1, 0x9000, 0, 0);
	feed_event(&feed, TRACE_REALLOC_UNDO, 0, 0x1000, 1 << 30, 2);
	counts = feed_finish(&feed);
	CHECK_EQ(1500, counts->peak.bytes);
	CHECK_EQ(2, counts->peak.count);
	CHECK_EQ(2, counts->peak_number);
	sites = heap_sites(feed.heap, &count);
	CHECK_EQ(2, count);
	CHECK_EQ(1000, sites[0].at_peak.bytes);
	CHECK_EQ(500, sites[1].at_peak.bytes);
	CHECK(heap_totals(feed.heap)->peak_high_bytes >= 1500);
	heap_free(feed.heap);
}

TEST(heap_waits_for_no_realloc_for_ever)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 1000, 1);
	feed_event(&feed, TRACE_REALLOC_FREE, 0, 0x1000, 0, 0);
	for (uint64_t i = 1; i <= 100000; i++)
		feed_event(&feed, TRACE_MALLOC, 1, 0x10000 + 16 * i, 1, 2);
	feed_event(&feed, TRACE_REALLOC_UNDO, 0, 0x1000, 1 << 30, 2);
	counts = feed_finish(&feed);
	CHECK_EQ(101000, counts->peak.bytes);
	CHECK_EQ(0, counts->frees);
	CHECK_EQ(1, counts->failed);
	heap_free(feed.heap);
}

TEST(heap_a_realloc_that_failed_changes_nothing_but_failed)
{
	struct feed whole = feed_new(NULL);
	struct feed halves = feed_new(NULL);
	const struct heap_counts *a;
	const struct heap_counts *b;
	size_t count;

	feed_event(&whole, TRACE_MALLOC, 0, 0x1000, 100, 1);
	feed_event(&whole, TRACE_REALLOC_FAILED, 0, 0x1000, 1 << 30, 2);
	feed_event(&halves, TRACE_MALLOC, 0, 0x1000, 100, 1);
	feed_event(&halves, TRACE_REALLOC_FREE, 0, 0x1000, 0, 0);
	feed_event(&halves, TRACE_MALLOC, 1, 0x9000, 5, 3);
	feed_event(&halves, TRACE_REALLOC_UNDO, 0, 0x1000, 1 << 30, 2);
	feed_event(&halves, TRACE_FREE, 1, 0x9000, 0, 0);
	a = feed_finish(&whole);
	b = feed_finish(&halves);
	CHECK_EQ(2, heap_totals(whole.heap)->events);
	CHECK_EQ(4, heap_totals(halves.heap)->events);
	CHECK_EQ(1, a->failed);
	CHECK_EQ(1, b->failed);
	CHECK_EQ(0, a->frees);
	CHECK_EQ(1, b->frees); // of the other thread's block
	CHECK_EQ(0, a->temporary.count);
	CHECK_EQ(1, b->temporary.count);
	CHECK_EQ(100, a->live_at_exit.bytes);
	CHECK_EQ(100, b->live_at_exit.bytes);
	CHECK_EQ(105, b->peak.bytes);
	CHECK_EQ(1, heap_sites(halves.heap, &count)[0].stack);
	CHECK_EQ(100, heap_sites(halves.heap, &count)[0].live_at_exit.bytes);
	heap_free(whole.heap);
	heap_free(halves.heap);
}

TEST(heap_a_block_of_no_bytes_is_a_block_and_a_failed_call_is_not)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 0, 1);
	feed_event(&feed, TRACE_FAILED, 0, 0, 1ull << 60, 1);
	counts = feed_finish(&feed);
	CHECK_EQ(1, counts->allocated.count);
	CHECK_EQ(0, counts->allocated.bytes);
	CHECK_EQ(1, counts->failed);
	CHECK_EQ(1, counts->live_at_exit.count);
	CHECK_EQ(0, counts->peak.bytes);
	heap_free(feed.heap);
}

TEST(heap_temporary_asks_for_the_same_thread_and_nothing_between)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 10, 1); // freed by another thread
	feed_event(&feed, TRACE_FREE, 1, 0x1000, 0, 0);
	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 20, 1); // another allocation between
	feed_event(&feed, TRACE_MALLOC, 0, 0x2000, 30, 1); // this one is temporary
	feed_event(&feed, TRACE_FREE, 0, 0x1000, 0, 0);
	feed_event(&feed, TRACE_FREE, 0, 0x2000, 0, 0);
	feed_event(&feed, TRACE_MALLOC, 0, 0x3000, 40, 1); // and this: the other thread's
	feed_event(&feed, TRACE_MALLOC, 1, 0x4000, 50, 1); // allocation does not count
	feed_event(&feed, TRACE_FREE, 0, 0x3000, 0, 0);
	counts = feed_finish(&feed);
	CHECK_EQ(2, counts->temporary.count);
	CHECK_EQ(70, counts->temporary.bytes);
	heap_free(feed.heap);
}

TEST(heap_an_address_that_changed_hands_is_not_temporary)
{
	struct feed feed = feed_new(NULL);

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 10, 1);
	feed_event(&feed, TRACE_FREE, 1, 0x1000, 0, 0);
	feed_event(&feed, TRACE_MALLOC, 1, 0x1000, 20, 1);
	feed_event(&feed, TRACE_FREE, 0, 0x1000, 0, 0);
	CHECK_EQ(0, feed_finish(&feed)->temporary.count);
	heap_free(feed.heap);
}

TEST(heap_a_second_free_is_an_orphan_and_an_allocation_on_a_live_block_loses_it)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 10, 1);
	feed_event(&feed, TRACE_FREE, 0, 0x1000, 0, 0);
	feed_event(&feed, TRACE_FREE, 0, 0x1000, 0, 0);
	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 20, 1);
	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 30, 1);
	counts = feed_finish(&feed);
	CHECK_EQ(1, counts->orphan_frees);
	CHECK_EQ(1, counts->frees);
	CHECK_EQ(1, counts->lost_frees);
	CHECK_EQ(3, counts->allocated.count);
	CHECK_EQ(1, counts->live_at_exit.count);
	CHECK_EQ(30, counts->live_at_exit.bytes);
	CHECK_EQ(30, counts->peak.bytes);
	heap_free(feed.heap);
}

TEST(heap_a_forked_child_frees_its_parents_block_once_and_apart)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 10, 1);
	heap_add_process(feed.heap, true);
	heap_add_thread(feed.heap, 1);
	feed_event(&feed, TRACE_FREE, 2, 0x1000, 0, 0);    // inherited
	feed_event(&feed, TRACE_FREE, 2, 0x1000, 0, 0);    // a second time: nothing is known there
	feed_event(&feed, TRACE_MALLOC, 2, 0x1000, 30, 1); // the child's own
	feed_event(&feed, TRACE_FREE, 2, 0x1000, 0, 0);
	feed_event(&feed, TRACE_FREE, 0, 0x1000, 0, 0); // the parent's is still there
	counts = feed_finish(&feed);
	CHECK_EQ(1, counts->inherited_frees);
	CHECK_EQ(1, counts->orphan_frees);
	CHECK_EQ(2, counts->allocated.count);
	CHECK_EQ(2, counts->frees);
	CHECK_EQ(40, counts->peak.bytes);
	CHECK_EQ(0, heap_process(feed.heap, 0)->inherited_frees);
	CHECK_EQ(1, heap_process(feed.heap, 1)->inherited_frees);
	heap_free(feed.heap);
}

TEST(heap_a_child_that_reallocs_its_parents_block_allocates_and_frees_apart)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *child;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 10, 1);
	heap_add_process(feed.heap, true);
	heap_add_thread(feed.heap, 1);
	feed_event(&feed, TRACE_REALLOC_FREE, 2, 0x1000, 0, 0);
	feed_event(&feed, TRACE_REALLOC_UNDO, 2, 0x1000, 1ull << 50, 1);
	feed_realloc(&feed, 2, 0x1000, 0x1000, 99, 1);
	feed_finish(&feed);
	child = heap_process(feed.heap, 1);
	CHECK_EQ(1, child->inherited_frees);
	CHECK_EQ(0, child->orphan_frees);
	CHECK_EQ(0, child->frees);
	CHECK_EQ(1, child->failed);
	CHECK_EQ(1, child->allocated.count);
	CHECK_EQ(99, child->live_at_exit.bytes);
	heap_free(feed.heap);
}

TEST(heap_the_level_drops_when_a_process_ends)
{
	struct feed feed = feed_new(NULL);
	const struct heap_counts *counts;
	const struct heap_site *sites;
	size_t count;

	heap_add_process(feed.heap, false);
	heap_add_thread(feed.heap, 1);
	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 100, 1);
	feed_end(&feed, 0);
	feed_event(&feed, TRACE_MALLOC, 2, 0x1000, 120, 2);
	counts = feed_finish(&feed);
	CHECK_EQ(120, counts->peak.bytes);
	CHECK_EQ(1, counts->peak.count);
	CHECK_EQ(220, counts->live_at_exit.bytes);
	CHECK_EQ(100, heap_process(feed.heap, 0)->peak.bytes);
	sites = heap_sites(feed.heap, &count);
	CHECK_EQ(2, count);
	CHECK_EQ(0, sites[0].at_peak.bytes);
	CHECK_EQ(100, sites[0].live_at_exit.bytes);
	CHECK_EQ(120, sites[1].at_peak.bytes);
	heap_free(feed.heap);
}

static bool only_stack_two(void *context, stack_id stack)
{
	(void)context;
	return stack == 2;
}

TEST(heap_a_query_for_a_stack_takes_the_frees_along)
{
	struct query query = { .stack = only_stack_two };
	struct feed feed = feed_new(&query);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 100, 1);
	feed_event(&feed, TRACE_MALLOC, 0, 0x2000, 20, 2);
	feed_event(&feed, TRACE_FREE, 0, 0x1000, 0, 0); // known, though not counted
	feed_event(&feed, TRACE_FREE, 1, 0x2000, 0, 0);
	feed_realloc(&feed, 0, 0x5000, 0x6000, 7, 1);
	feed_realloc(&feed, 0, 0x6000, 0x6000, 9, 2);
	counts = feed_finish(&feed);
	CHECK_EQ(2, counts->allocated.count);
	CHECK_EQ(29, counts->allocated.bytes);
	CHECK_EQ(1, counts->frees);
	CHECK_EQ(1, counts->reallocations);
	CHECK_EQ(0, counts->orphan_frees);
	CHECK_EQ(20, counts->peak.bytes);
	heap_free(feed.heap);
}

TEST(heap_a_query_for_a_thread_counts_its_blocks_whoever_frees_them)
{
	bool threads[] = { false, true };
	struct query query = { .threads = threads, .threads_count = 2 };
	struct feed feed = feed_new(&query);
	const struct heap_counts *counts;

	feed_event(&feed, TRACE_MALLOC, 0, 0x1000, 100, 1);
	feed_event(&feed, TRACE_MALLOC, 1, 0x2000, 20, 1);
	feed_event(&feed, TRACE_FREE, 0, 0x2000, 0, 0);
	feed_event(&feed, TRACE_FREE, 1, 0x1000, 0, 0);
	counts = feed_finish(&feed);
	CHECK_EQ(1, counts->allocated.count);
	CHECK_EQ(1, counts->frees);
	CHECK_EQ(20, counts->allocated.bytes);
	CHECK_EQ(4, heap_totals(feed.heap)->events);
	CHECK_EQ(2, heap_totals(feed.heap)->events_selected);
	heap_free(feed.heap);
}

TEST(heap_absurd_sizes_and_ids_do_no_harm)
{
	struct feed feed = feed_new(NULL);

	feed_event(&feed, TRACE_MALLOC, 0, 0, UINT64_MAX, 1);
	feed_event(&feed, TRACE_MALLOC, 1, UINT64_MAX, UINT64_MAX, 1);
	feed_event(&feed, TRACE_MALLOC, 77, 0x1000, 1, 1);
	feed_event(&feed, TRACE_REALLOC_UNDO, 0, 0x77, 1, 1);
	feed_event(&feed, TRACE_REALLOC_FREE, 0, 0, 0, 0);
	feed_end(&feed, 0);
	feed_event(&feed, TRACE_REALLOC_UNDO, 0, 0, 1, 1);
	feed_end(&feed, 0);
	feed_end(&feed, 99);
	CHECK_EQ(2, feed_finish(&feed)->allocated.count);
	heap_free(feed.heap);
}

// ---- the model ----

enum {
	PROCESSES = 4,
	THREADS = 9,
	STACKS = 12,
	ADDRESSES = 40,
	STEPS = 3000,
	BLOCKS_MAX = STEPS * 2,
};

struct model_block {
	process_id process;
	thread_id thread;
	stack_id stack;
	uint64_t address, size;
	bool alive;
	bool at_exit;
	bool temporary;
};

struct model {
	struct model_block blocks[BLOCKS_MAX];
	int blocks_count;
	int latest[THREADS]; // index of the thread's latest allocation
	int half[THREADS];   // index of the block a realloc's first half ended, or -1
	bool fails[THREADS]; // that realloc will: the block lives on
	bool half_was_temporary[THREADS];
	bool inherited[PROCESSES][ADDRESSES];
	struct heap_counts counts[PROCESSES];
	struct heap_counts total;
	struct heap_amount at_peak[PROCESSES][STACKS];
};

static const process_id process_of[THREADS] = { 0, 0, 0, 1, 1, 2, 2, 3, 3 };
static const bool forked[PROCESSES] = { false, true, false, true };

static int model_find(const struct model *model, process_id process, uint64_t address)
{
	for (int i = 0; i < model->blocks_count; i++)
		if (model->blocks[i].alive && model->blocks[i].process == process &&
		    model->blocks[i].address == address)
			return i;
	return -1;
}

// Add up what lives, and remember it if it was never more.
static void model_look(struct model *model, uint64_t time_ns, uint64_t number)
{
	struct heap_amount level = { 0 };
	struct heap_amount of[PROCESSES] = { 0 };

	for (int i = 0; i < model->blocks_count; i++) {
		struct model_block *block = &model->blocks[i];

		if (!block->alive)
			continue;
		level.count++;
		level.bytes += block->size;
		of[block->process].count++;
		of[block->process].bytes += block->size;
	}
	for (int p = 0; p < PROCESSES; p++)
		if (of[p].bytes > model->counts[p].peak.bytes) {
			model->counts[p].peak = of[p];
			model->counts[p].peak_ns = time_ns;
			model->counts[p].peak_number = number;
		}
	if (level.bytes <= model->total.peak.bytes)
		return;
	model->total.peak = level;
	model->total.peak_ns = time_ns;
	model->total.peak_number = number;
	memset(model->at_peak, 0, sizeof model->at_peak);
	for (int i = 0; i < model->blocks_count; i++) {
		struct model_block *block = &model->blocks[i];

		if (!block->alive)
			continue;
		model->at_peak[block->process][block->stack].count++;
		model->at_peak[block->process][block->stack].bytes += block->size;
	}
}

static void model_allocate(struct model *model, const struct trace_event *event)
{
	process_id process = process_of[event->thread];
	int old = model_find(model, process, event->address);

	if (old >= 0) {
		model->blocks[old].alive = false;
		model->counts[process].lost_frees++;
	}
	model->latest[event->thread] = model->blocks_count;
	model->blocks[model->blocks_count++] = (struct model_block){
		.process = process,
		.thread = event->thread,
		.stack = event->stack,
		.address = event->address,
		.size = event->size,
		.alive = true,
	};
	model->counts[process].allocated.count++;
	model->counts[process].allocated.bytes += event->size;
}

// The index of the block that ended, or -1.
static int model_release(struct model *model, const struct trace_event *event, uint64_t address)
{
	process_id process = process_of[event->thread];
	int i = model_find(model, process, address);
	size_t place = (address - 0x1000) / 16;

	if (i < 0) {
		if (forked[process] && !model->inherited[process][place]) {
			model->inherited[process][place] = true;
			model->counts[process].inherited_frees++;
		} else {
			model->counts[process].orphan_frees++;
		}
		return -1;
	}
	model->blocks[i].alive = false;
	model->blocks[i].temporary = model->latest[event->thread] == i;
	model->counts[process].frees++;
	return i;
}

static void model_event(struct model *model, const struct trace_event *event)
{
	struct heap_counts *counts = &model->counts[process_of[event->thread]];
	int half = model->half[event->thread];

	model->half[event->thread] = -1;
	switch (event->kind) {
	case TRACE_MALLOC:
		model_allocate(model, event);
		break;
	case TRACE_FREE:
		model_release(model, event, event->address);
		break;
	case TRACE_REALLOC:
		model_release(model, event, event->old_address);
		model_allocate(model, event);
		counts->reallocations++;
		break;
	case TRACE_REALLOC_FREE:
		half = model_find(model, process_of[event->thread], event->address);
		model->fails[event->thread] = half >= 0 && rand() % 2;
		if (!model->fails[event->thread])
			half = model_release(model, event, event->address);
		model->half[event->thread] = half;
		break;
	case TRACE_REALLOC_ALLOC:
		model_allocate(model, event);
		counts->reallocations++;
		break;
	case TRACE_REALLOC_UNDO:
		counts->failed++;
		break;
	default:
		counts->failed++;
	}
	model_look(model, event->time_ns, event->number);
}

static void model_end(struct model *model, process_id process)
{
	for (int i = 0; i < model->blocks_count; i++)
		if (model->blocks[i].alive && model->blocks[i].process == process) {
			model->blocks[i].alive = false;
			model->blocks[i].at_exit = true;
		}
}

// Whether a realloc of the process's block there is at work, and will fail; 0: of any.
static bool model_fails(const struct model *model, process_id process, uint64_t address)
{
	for (int t = 0; t < THREADS; t++)
		if (process_of[t] == process && model->half[t] >= 0 && model->fails[t] &&
		    (!address || model->blocks[model->half[t]].address == address))
			return true;
	return false;
}

// Something that could happen next on `thread`; sometimes something that could not.
static struct trace_event random_event(const struct model *model, thread_id thread)
{
	static const uint8_t kinds[] = { TRACE_MALLOC,        TRACE_MALLOC,       TRACE_MALLOC,
					 TRACE_FREE,          TRACE_FREE,         TRACE_FREE,
					 TRACE_REALLOC,       TRACE_REALLOC_FREE, TRACE_FAILED,
					 TRACE_REALLOC_FAILED };
	struct trace_event event = {
		.thread = thread,
		.kind = kinds[(size_t)rand() % sizeof kinds],
		.address = 0x1000 + 16 * ((uint64_t)rand() % ADDRESSES),
		.old_address = 0x1000 + 16 * ((uint64_t)rand() % ADDRESSES),
		.size = (uint64_t)rand() % 1000,
		.stack = (stack_id)(rand() % STACKS),
	};
	int half = model->half[thread];

	// Half of the time a thread frees what it allocated last.
	if (event.kind == TRACE_FREE && rand() % 2 && model->latest[thread] >= 0)
		event.address = model->blocks[model->latest[thread]].address;
	if (half >= 0)
		event.kind = model->fails[thread] ? TRACE_REALLOC_UNDO : TRACE_REALLOC_ALLOC;
	if (event.kind == TRACE_REALLOC_UNDO)
		event.address = model->blocks[half].address;
	// Nobody can be given the place of a block whose realloc fails, or ends it.
	else if (model_fails(model, process_of[thread], event.address) ||
		 model_fails(model, process_of[thread], event.old_address))
		event.kind = TRACE_FAILED;
	return event;
}

static void check_amount(const struct heap_amount *expected, const struct heap_amount *actual)
{
	CHECK_EQ(expected->count, actual->count);
	CHECK_EQ(expected->bytes, actual->bytes);
}

static void check_counts(const struct heap_counts *expected, const struct heap_counts *actual)
{
	check_amount(&expected->allocated, &actual->allocated);
	check_amount(&expected->temporary, &actual->temporary);
	check_amount(&expected->live_at_exit, &actual->live_at_exit);
	check_amount(&expected->peak, &actual->peak);
	CHECK_EQ(expected->frees, actual->frees);
	CHECK_EQ(expected->reallocations, actual->reallocations);
	CHECK_EQ(expected->failed, actual->failed);
	CHECK_EQ(expected->inherited_frees, actual->inherited_frees);
	CHECK_EQ(expected->orphan_frees, actual->orphan_frees);
	CHECK_EQ(expected->lost_frees, actual->lost_frees);
	CHECK_EQ(expected->peak_ns, actual->peak_ns);
	CHECK_EQ(expected->peak_number, actual->peak_number);
}

static void add_amount(struct heap_amount *sum, const struct model_block *block)
{
	sum->count++;
	sum->bytes += block->size;
}

// What the list says about the site of `stack` in `process`.
static struct heap_site model_site(const struct model *model, process_id process, stack_id stack)
{
	struct heap_site site = { .process = process, .stack = stack };

	for (int i = 0; i < model->blocks_count; i++) {
		const struct model_block *block = &model->blocks[i];

		if (block->process != process || block->stack != stack)
			continue;
		add_amount(&site.allocated, block);
		if (block->temporary)
			add_amount(&site.temporary, block);
		if (block->at_exit)
			add_amount(&site.live_at_exit, block);
		if (block->size > site.largest_bytes)
			site.largest_bytes = block->size;
	}
	site.at_peak = model->at_peak[process][stack];
	return site;
}

static void compare(struct model *model, struct heap *heap)
{
	const struct heap_site *sites;
	size_t sites_count;

	for (process_id p = 0; p < PROCESSES; p++) {
		struct heap_counts *counts = &model->counts[p];

		model_end(model, p);
		for (int i = 0; i < model->blocks_count; i++) {
			const struct model_block *block = &model->blocks[i];

			if (block->process != p)
				continue;
			if (block->temporary)
				add_amount(&counts->temporary, block);
			if (block->at_exit)
				add_amount(&counts->live_at_exit, block);
		}
		check_counts(counts, heap_process(heap, p));
		model->total.allocated.count += counts->allocated.count;
		model->total.allocated.bytes += counts->allocated.bytes;
		model->total.temporary.count += counts->temporary.count;
		model->total.temporary.bytes += counts->temporary.bytes;
		model->total.live_at_exit.count += counts->live_at_exit.count;
		model->total.live_at_exit.bytes += counts->live_at_exit.bytes;
		model->total.frees += counts->frees;
		model->total.reallocations += counts->reallocations;
		model->total.failed += counts->failed;
		model->total.inherited_frees += counts->inherited_frees;
		model->total.orphan_frees += counts->orphan_frees;
		model->total.lost_frees += counts->lost_frees;
	}
	check_counts(&model->total, &heap_totals(heap)->counts);
	CHECK(heap_totals(heap)->peak_low_bytes <= model->total.peak.bytes);
	CHECK(heap_totals(heap)->peak_high_bytes >= model->total.peak.bytes);

	sites = heap_sites(heap, &sites_count);
	for (size_t i = 0; i < sites_count; i++) {
		struct heap_site site = model_site(model, sites[i].process, sites[i].stack);

		check_amount(&site.allocated, &sites[i].allocated);
		check_amount(&site.temporary, &sites[i].temporary);
		check_amount(&site.live_at_exit, &sites[i].live_at_exit);
		check_amount(&site.at_peak, &sites[i].at_peak);
		CHECK_EQ(site.largest_bytes, sites[i].largest_bytes);
		model->total.allocated.count -= sites[i].allocated.count;
	}
	CHECK_EQ(0, model->total.allocated.count); // every allocation has its site
}

static void run_model(unsigned seed, uint32_t threads)
{
	struct model *model = mem_alloc(1, sizeof *model);
	struct heap *heap = heap_new(NULL);
	bool ended[PROCESSES] = { false };
	uint64_t time_ns = 0;

	srand(seed);
	for (int p = 0; p < PROCESSES; p++)
		heap_add_process(heap, forked[p]);
	for (int t = 0; t < THREADS; t++) {
		heap_add_thread(heap, process_of[t]);
		model->latest[t] = -1;
		model->half[t] = -1;
	}
	for (uint64_t number = 0; number < STEPS; number++) {
		thread_id thread = (thread_id)rand() % threads;
		process_id process = process_of[thread];
		struct trace_event event;

		if (ended[process])
			continue;
		if (rand() % 1000 == 0 && threads > 1 && !model_fails(model, process, 0)) {
			struct trace_note note = { .kind = TRACE_NOTE_PROCESS_END,
						   .process = process,
						   .time_ns = time_ns,
						   .text = "" };

			ended[process] = true;
			model_end(model, process);
			heap_add_note(heap, &note);
			continue;
		}
		event = random_event(model, thread);
		time_ns += (uint64_t)(rand() % 3) * 100;
		event.time_ns = time_ns;
		event.number = number;
		model_event(model, &event);
		heap_add_event(heap, &event);
	}
	for (thread_id t = 0; t < threads; t++) { // what is at work ends
		struct trace_event event;

		if (model->half[t] < 0 || ended[process_of[t]])
			continue;
		event = random_event(model, t);
		event.time_ns = time_ns;
		event.number = STEPS + t;
		model_event(model, &event);
		heap_add_event(heap, &event);
	}
	heap_finish(heap);
	if (threads == 1) {
		CHECK_EQ(model->total.peak.bytes, heap_totals(heap)->peak_low_bytes);
		CHECK_EQ(model->total.peak.bytes, heap_totals(heap)->peak_high_bytes);
	}
	compare(model, heap);
	heap_free(heap);
	mem_free(model);
}

TEST(heap_agrees_with_the_model_on_many_random_histories)
{
	for (unsigned seed = 1; seed <= 25; seed++)
		run_model(seed, THREADS);
}

TEST(heap_agrees_with_the_model_on_one_thread_and_its_bound_is_the_peak)
{
	for (unsigned seed = 100; seed <= 105; seed++)
		run_model(seed, 1);
}

// ---- many at once ----

static bool not_small(void *context, const struct trace_event *event)
{
	(void)context;
	return event->size > 16;
}

static struct heap *one_by_one(struct reader *reader, const struct query *query)
{
	struct heap *heap = heap_new(query);
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;

	reader_rewind(reader);
	heap_learn(heap, reader);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		heap_learn(heap, reader);
		if (item == READER_EVENT)
			heap_add_event(heap, &event);
		else
			heap_add_note(heap, &note);
	}
	heap_finish(heap);
	return heap;
}

// `ahead`: by calls that have spots; else event by event, as the first blocks of a trace are.
static void check_same(struct reader *reader, const struct query *query, bool ahead)
{
	struct progress progress = { .mode = PROGRESS_NONE };
	struct heap *expected = one_by_one(reader, query), *actual = heap_new(query);
	const struct heap_site *wanted, *found;
	size_t wanted_count, found_count;

	reader_rewind(reader);
	reader->played_alone = ahead ? 0 : UINT32_MAX;
	heap_read(actual, reader, &progress, NULL, NULL);
	CHECK(memcmp(heap_totals(expected), heap_totals(actual), sizeof(struct heap_totals)) == 0);
	CHECK_EQ(heap_unjudged_frees(expected), heap_unjudged_frees(actual));
	for (process_id id = 0; id < reader_processes_count(reader); id++)
		CHECK(memcmp(heap_process(expected, id), heap_process(actual, id),
			     sizeof(struct heap_counts)) == 0);
	wanted = heap_sites(expected, &wanted_count);
	found = heap_sites(actual, &found_count);
	CHECK_EQ(wanted_count, found_count);
	for (size_t i = 0; i < wanted_count && i < found_count; i++) {
		struct heap_site site = found[i];

		site.peak_epoch = wanted[i].peak_epoch;
		CHECK(memcmp(&wanted[i], &site, sizeof site) == 0);
	}
	heap_free(expected);
	heap_free(actual);
}

TEST(heap_counts_many_at_once_as_it_counts_them_one_by_one)
{
	bool threads[] = { true, false, true }, processes[] = { false, true, true };
	const struct query queries[] = {
		{ .event = not_small },
		{ .stack = only_stack_two },
		{ .threads = threads, .threads_count = 3 },
		{ .processes = processes, .processes_count = 3 },
	};

	for (uint64_t seed = 1; seed <= 60; seed++) {
		const struct window_random like = {
			.events = 6000,
			.addresses = (uint32_t)4 << seed % 9,
			.free_share = (uint32_t)(30 + seed % 30),
			.idle_share = (uint32_t)(seed % 4 * 10),
			.one_process = seed % 3 == 0,
			.clean = seed % 2,
			.huge = seed % 5 == 0,
			.late = seed % 7 == 0,
		};
		struct reader *reader = window_random_open(seed, &like, 0);

		check_same(reader, NULL, false);
		check_same(reader, NULL, true);
		for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
			check_same(reader, &queries[i], true);
		reader_close(reader);
	}
}
