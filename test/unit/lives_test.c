// Lives are told one by one, and add up to what the heap and the pools count.
#include "engine/replay/lives.h"

#include "base/mem.h"
#include "engine/replay/heap.h"
#include "engine/replay/pool_totals.h"
#include "test/unit/assembled.h"
#include "test/unit/window_random.h"
#include "trace/asm_words.h"
#include "trace/effect.h"

#include <stdio.h>

// ---- what events do ----

TEST(lives_change_by_every_kind_but_those_of_virtual_memory)
{
	for (unsigned kind = 0; kind <= UINT8_MAX; kind++) {
		bool is_one = asm_words_event((uint8_t)kind) != NULL;

		if ((effect_of(kind) != 0) != (is_one && !trace_kind_is_vm(kind)))
			CHECK_STR(is_one ? asm_words_event((uint8_t)kind) : "nothing", "known");
	}
	CHECK(!(effect_of(TRACE_HEAP_FREE) & EFFECT_CALL)); // a pool's is no call on malloc's heap
}

// ---- each of them, in words ----

struct story {
	struct str text;
	struct lives *lives; // whose blocks are tagged with their sizes
};

static void tell_begin(void *context, const struct lives_block *block)
{
	struct story *story = context;

	CHECK(lives_tag(story->lives, block, (uint32_t)block->size, NULL));
	str_format(&story->text, "+%llx,%llu", (unsigned long long)block->address,
		   (unsigned long long)block->size);
	if (block->moved)
		str_format(&story->text, "<%llx", (unsigned long long)block->old_address);
	str_add(&story->text, " ");
}

static void tell_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	static const char *const causes[] = { "free", "realloc", "lost",   "destroy",
					      "exit", "exec",    "running" };
	static const char *const origins[] = { "", ":inherited", ":orphan" };
	struct story *story = context;

	CHECK_EQ(block->origin == LIVES_BEGUN ? block->size : 0, block->tag);
	CHECK(end->cause == LIVES_LOST || !lives_tag(story->lives, block, 1, NULL));
	str_format(&story->text, "-%llx:%s%s ", (unsigned long long)block->address,
		   causes[end->cause], origins[block->origin]);
}

static void tell_undo(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct story *story = context;

	(void)end;
	str_format(&story->text, "!%llx,%llu ", (unsigned long long)block->address,
		   (unsigned long long)block->size);
}

static void read_all(struct reader *reader, struct lives *lives)
{
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;

	reader_rewind(reader);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		if (item == READER_EVENT)
			lives_add_event(lives, &event);
		else
			lives_add_note(lives, &note);
	}
	lives_finish(lives, 0);
}

static void check_story(const char *expected, const char *text, bool foreseen)
{
	struct reader *reader = assembled_open(text);
	struct progress progress = { .mode = PROGRESS_NONE };
	struct story story = { 0 };
	const struct lives_watcher watcher = {
		.begin = tell_begin, .end = tell_end, .undo = tell_undo, .context = &story
	};
	struct map undone = { 0 };
	struct lives *lives;

	if (foreseen)
		lives_find_undone(reader, &undone, &progress);
	story.lives = lives = lives_new(reader, &watcher, foreseen ? &undone : NULL);
	read_all(reader, lives);
	CHECK_STR(expected, str_get(&story.text));
	lives_free(lives);
	map_fini(&undone);
	str_fini(&story.text);
	reader_close(reader);
}

#define ONE "process p pid=1\nthread t p tid=1\nthread u p tid=2\nheap pool p \"pool\"\n"

TEST(lives_begin_and_end)
{
	check_story("+10,1 -10:free -10:free:orphan +20,2 -20:lost +20,3 -20:running ",
		    ONE "+0 t malloc 0x10 1\n+0 t free 0x10\n+0 t free 0x10\n+0 t malloc 0x20 2\n"
			"+0 t malloc 0x20 3\nend\n",
		    false);
}

TEST(lives_move_by_realloc_in_one_piece_or_two)
{
	check_story("+10,1 -10:realloc +10,2<10 -10:realloc +10,3 +20,4<10 -20:realloc "
		    "-10:running ",
		    ONE
		    "+0 t malloc 0x10 1\n+0 t realloc 0x10 -> 0x10 2\n+0 t realloc-free 0x10\n"
		    "+0 u malloc 0x10 3\n+0 t realloc-alloc 0x20 4\n+0 t realloc-free 0x20\nend\n",
		    false);
}

static const char failed[] = ONE
	"+0 t malloc 0x10 1\n+0 t realloc-free 0x10\n+0 u malloc 0x20 2\n"
	"+0 t mmap 0x7f0000000000 4096 prot=rw flags=private|anonymous\n"
	"+0 t realloc-undo 0x10 99\n+0 t realloc-failed 0x10 98\n+0 t free 0x10\nend\n";

TEST(lives_are_not_changed_by_a_realloc_that_failed)
{
	check_story("+10,1 -10:realloc +20,2 !10,1 -10:free -20:running ", failed, false);
}

TEST(lives_know_beforehand_what_would_be_undone)
{
	check_story("+10,1 +20,2 -10:free -20:running ", failed, true);
}

TEST(lives_end_with_their_heap_in_the_order_of_their_beginning)
{
	check_story("+30,1 +10,2 +20,3 -30:destroy -20:destroy -10:running ",
		    ONE
		    "+0 t heap-alloc pool 0x30 1\n+0 t malloc 0x10 2\n+0 t heap-alloc pool 0x20 3\n"
		    "+0 t heap-reset pool\nend\n",
		    false);
}

TEST(lives_end_with_their_process_and_its_children_inherit)
{
	check_story("+10,1 -10:free:inherited -10:free:orphan -10:exit +10,2 -10:exec ",
		    "process p pid=1\nprocess c pid=2 parent=p start=fork\n"
		    "process e pid=3\nthread t p tid=1\nthread k c tid=2\nthread x e tid=3\n"
		    "+0 t malloc 0x10 1\n+0 start c\n+0 k free 0x10\n+0 k free 0x10\n"
		    "+1ms end p exit=0\n"
		    "+0 x malloc 0x10 2\n+1ms end e exec\nend\n",
		    false);
}

// ---- many of them, in figures ----

struct sums {
	struct heap_counts processes[RANDOM_PROCESSES];
	struct pool_total pools[3];
};

static void sum_begin(void *context, const struct lives_block *block)
{
	struct sums *sums = context;
	struct heap_counts *counts = &sums->processes[block->process];
	struct pool_total *pool = &sums->pools[block->heap];
	struct heap_amount *allocated = block->heap ? &pool->allocated : &counts->allocated;
	struct heap_amount *live = block->heap ? &pool->live : &counts->live;

	allocated->count++;
	allocated->bytes += block->size;
	live->count++;
	live->bytes += block->size;
	if (block->heap == 0)
		counts->reallocations += block->moved;
	if (block->heap == 0 && live->bytes > counts->peak.bytes)
		counts->peak = *live;
}

static void sum_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct sums *sums = context;
	struct heap_counts *counts = &sums->processes[block->process];
	struct heap_amount *live = block->heap ? &sums->pools[block->heap].live : &counts->live;

	if (block->origin != LIVES_BEGUN) {
		if (block->heap)
			sums->pools[block->heap].unknown_frees++;
		else if (block->origin == LIVES_INHERITED)
			counts->inherited_frees++;
		else
			counts->orphan_frees++;
		return;
	}
	if (block->heap && end->cause >= LIVES_EXIT)
		return; // a pool's figures are of the whole trace
	live->count--;
	live->bytes -= block->size;
	if (block->heap) {
		sums->pools[block->heap].frees += end->cause == LIVES_FREE;
	} else if (end->cause >= LIVES_EXIT) {
		counts->live_at_exit.count++;
		counts->live_at_exit.bytes += block->size;
	} else {
		counts->frees += end->cause != LIVES_LOST;
		counts->lost_frees += end->cause == LIVES_LOST;
	}
}

static void sum_undo(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct heap_counts *counts = &((struct sums *)context)->processes[block->process];

	(void)end;
	if (block->origin == LIVES_INHERITED)
		counts->inherited_frees--;
	if (block->origin == LIVES_ORPHAN)
		counts->orphan_frees--;
	if (block->origin != LIVES_BEGUN)
		return;
	counts->frees--;
	counts->live.count++;
	counts->live.bytes += block->size;
	if (counts->live.bytes > counts->peak.bytes)
		counts->peak = counts->live;
}

static void check_amount(struct heap_amount expected, struct heap_amount found)
{
	CHECK_EQ(expected.count, found.count);
	CHECK_EQ(expected.bytes, found.bytes);
}

static void check_counts(const struct heap_counts *expected, const struct heap_counts *found)
{
	check_amount(expected->allocated, found->allocated);
	check_amount(expected->live_at_exit, found->live_at_exit);
	check_amount(expected->peak, found->peak);
	CHECK_EQ(expected->frees, found->frees);
	CHECK_EQ(expected->reallocations, found->reallocations);
	CHECK_EQ(expected->inherited_frees, found->inherited_frees);
	CHECK_EQ(expected->orphan_frees, found->orphan_frees);
	CHECK_EQ(expected->lost_frees, found->lost_frees);
}

static void add_pool_call(void *context, const struct trace_event *event)
{
	if (trace_kind_is_pool(event->kind))
		pool_totals_add(context, event);
}

static void check_random(uint64_t seed, const struct window_random *like)
{
	struct reader *reader = window_random_open(seed, like, 0);
	struct progress progress = { .mode = PROGRESS_NONE };
	struct sums sums = { 0 };
	const struct lives_watcher watcher = {
		.begin = sum_begin, .end = sum_end, .undo = sum_undo, .context = &sums
	};
	struct pool_totals *pools = pool_totals_new(reader);
	struct heap *heap = heap_new(NULL);
	struct lives *lives;

	reader_scan(reader);
	heap_on_vm(heap, add_pool_call, pools);
	heap_read(heap, reader, &progress, NULL, NULL);
	lives = lives_new(reader, &watcher, NULL);
	read_all(reader, lives);
	for (process_id id = 0; id < reader_processes_count(reader); id++)
		check_counts(heap_process(heap, id), &sums.processes[id]);
	for (heap_id id = 1; id < 3; id++) {
		const struct pool_total *pool = pool_totals_get(pools, id);

		check_amount(pool->allocated, sums.pools[id].allocated);
		CHECK_EQ(pool->frees, sums.pools[id].frees);
		CHECK_EQ(pool->unknown_frees, sums.pools[id].unknown_frees);
	}
	lives_free(lives);
	heap_free(heap);
	pool_totals_free(pools);
	reader_close(reader);
}

TEST(lives_of_random_histories_add_up_to_what_the_heap_counts)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		const struct window_random like = {
			.events = 3000,
			.addresses = (uint32_t)4 << seed % 9,
			.free_share = (uint32_t)(30 + seed % 40),
			.idle_share = 20,
			.one_process = seed % 3 == 0,
		};

		check_random(seed, &like);
	}
}
