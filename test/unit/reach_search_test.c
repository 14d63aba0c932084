// Which blocks reach_search.h finds, in memory that is made up, and beside a search that is
// as plain as can be.
#include "test/test.h"

#include "base/mem.h"
#include "engine/replay/reach_search.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 8, BLOCKS_MAX = 64, ROOT_AT = 0x500000 };

// A heap of few words in one piece of memory, which begins at address `at`.
struct heap {
	uint64_t at;
	uint8_t bytes[1 << 16];
	struct trace_reach_block blocks[BLOCKS_MAX];
	size_t count;
};

static void put(struct heap *heap, uint64_t at, uint64_t value)
{
	memcpy(heap->bytes + (at - heap->at), &value, sizeof value);
}

static void find(struct heap *heap, const uint64_t *roots, size_t roots_count, bool beginnings_only)
{
	struct reach_search *search = reach_search_new(heap->blocks, heap->count, WORD);
	uint64_t start, end;

	reach_search_root(search, roots, roots_count * WORD, ROOT_AT, TRACE_REACH_GLOBAL,
			  beginnings_only);
	while (reach_search_next(search, &start, &end)) {
		CHECK(start >= heap->at && end <= heap->at + sizeof heap->bytes && start < end);
		reach_search_take(search, heap->bytes + (start - heap->at));
	}
	reach_search_finish(search);
	reach_search_free(search);
}

TEST(reach_search_follows_beginnings_insides_and_circles)
{
	static struct heap heap = { .at = 0x10000,
				    .blocks = { { .address = 0x10000, .size = 32 },
						{ .address = 0x10020, .size = 16 },
						{ .address = 0x10040, .size = 64 },
						{ .address = 0x10080, .size = 8 },
						{ .address = 0x100a0, .size = 8 },
						{ .address = 0x100c0, .size = 8 },
						{ .address = 0x100e0, .size = 0 } },
				    .count = 7 };
	const uint64_t roots[] = { 1, 0x10000, 0x100e0, 0x10030 };

	put(&heap, 0x10018, 0x10020); // the last word of one holds the next
	put(&heap, 0x10028, 0x10041); // and that the inside of a third
	put(&heap, 0x10078, 0x10080);
	put(&heap, 0x100a0, 0x100c0); // a circle
	put(&heap, 0x100c0, 0x100a0);
	find(&heap, roots, 4, false);
	CHECK_EQ(TRACE_REACH_REACHABLE, heap.blocks[0].state);
	CHECK_EQ(TRACE_REACH_GLOBAL, heap.blocks[0].place);
	CHECK_EQ(ROOT_AT + 8, heap.blocks[0].at);
	CHECK_EQ(TRACE_REACH_REACHABLE, heap.blocks[1].state);
	CHECK_EQ(TRACE_REACH_BLOCK, heap.blocks[1].place);
	CHECK_EQ(0x10018, heap.blocks[1].at);
	CHECK_EQ(TRACE_REACH_INSIDE, heap.blocks[2].state);
	CHECK_EQ(0x10028, heap.blocks[2].at);
	CHECK_EQ(TRACE_REACH_INSIDE, heap.blocks[3].state);
	CHECK_EQ(TRACE_REACH_UNREACHABLE, heap.blocks[4].state);
	CHECK_EQ(TRACE_REACH_HELD, heap.blocks[5].state);
	CHECK_EQ(0x100a0, heap.blocks[5].at);
	CHECK_EQ(TRACE_REACH_REACHABLE, heap.blocks[6].state);
}

TEST(reach_search_takes_no_inside_where_beginnings_are_asked_for)
{
	static struct heap heap = { .at = 0x10000,
				    .blocks = { { .address = 0x10000, .size = 32 } },
				    .count = 1 };
	const uint64_t roots[] = { 0x10008 };

	find(&heap, roots, 1, true);
	CHECK_EQ(TRACE_REACH_UNREACHABLE, heap.blocks[0].state);
	find(&heap, roots, 1, false);
	CHECK_EQ(TRACE_REACH_INSIDE, heap.blocks[0].state);
}

TEST(reach_search_takes_what_is_behind_the_number_of_an_empty_array_for_its_block)
{
	static struct heap heap = { .at = 0x10000,
				    .blocks = { { .address = 0x10000, .size = 8 },
						{ .address = 0x10020, .size = 16 } },
				    .count = 2 };
	const uint64_t roots[] = { 0x10008, 0x10030 };

	find(&heap, roots, 2, false);
	CHECK_EQ(TRACE_REACH_INSIDE, heap.blocks[0].state);
	CHECK_EQ(TRACE_REACH_UNREACHABLE, heap.blocks[1].state);
}

// A large block is looked for by itself; what lies right before it does not hide where it begins.
TEST(reach_search_finds_the_beginning_of_a_large_block_that_follows_right_after_another)
{
	enum { LARGE = 1 << 20 };
	static const uint8_t nothing[REACH_SEARCH_PART];
	struct trace_reach_block blocks[] = { { .address = 0x10000, .size = 8 },
					      { .address = 0x10008, .size = LARGE } };
	const uint64_t roots[] = { 0x10000, 0x10008 };
	struct reach_search *search = reach_search_new(blocks, 2, WORD);
	uint64_t start, end;

	reach_search_root(search, roots, sizeof roots, ROOT_AT, TRACE_REACH_GLOBAL, false);
	while (reach_search_next(search, &start, &end))
		reach_search_take(search, nothing);
	reach_search_finish(search);
	reach_search_free(search);
	CHECK_EQ(TRACE_REACH_REACHABLE, blocks[0].state);
	CHECK_EQ(TRACE_REACH_REACHABLE, blocks[1].state);
}

// An edge may be many words after the one before it.
TEST(reach_search_says_where_pointers_are_that_are_far_apart)
{
	enum { WORDS = 8000 };
	static const size_t places[] = { 0, 254, 509, 764, 1020, 7999 };
	static struct heap heap = { .at = 0x10000,
				    .blocks = { { .address = 0x10000, .size = WORDS * WORD } },
				    .count = 1 };
	const uint64_t root = 0x10000;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		heap.blocks[heap.count] =
			(struct trace_reach_block){ .address = 0x10000 + WORDS * WORD + i * 32,
						    .size = 16 };
		put(&heap, 0x10000 + places[i] * WORD, heap.blocks[heap.count++].address);
	}
	find(&heap, &root, 1, false);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		CHECK_EQ(TRACE_REACH_REACHABLE, heap.blocks[i + 1].state);
		CHECK_EQ(0x10000 + places[i] * WORD, heap.blocks[i + 1].at);
	}
}

// One that holds an unreachable block which was found first takes it over.
TEST(reach_search_finds_who_holds_whom_in_any_order)
{
	static struct heap heap = { .at = 0x10000,
				    .blocks = { { .address = 0x10000, .size = 8 },
						{ .address = 0x10020, .size = 8 } },
				    .count = 2 };

	put(&heap, 0x10020, 0x10000);
	find(&heap, NULL, 0, false);
	CHECK_EQ(TRACE_REACH_HELD, heap.blocks[0].state);
	CHECK_EQ(TRACE_REACH_UNREACHABLE, heap.blocks[1].state);
}

// ---- beside the plain search ----

static uint64_t random_next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static int find_plainly(const struct heap *heap, uint64_t value, bool *inside)
{
	int at = -1;

	for (size_t i = 0; i < heap->count; i++) {
		uint64_t address = heap->blocks[i].address, size = heap->blocks[i].size;

		*inside = value != address;
		if (value == address)
			return (int)i;
		if (value > address && value < address + size + (size == 8))
			at = (int)i;
	}
	*inside = true;
	return at;
}

static void check_plainly(const struct heap *heap, uint64_t root)
{
	uint8_t best[BLOCKS_MAX] = { 0 }; // 2: beginnings alone, 1: insides
	bool inside, changed = true;
	int first = find_plainly(heap, root, &inside);

	if (first >= 0)
		best[first] = inside ? 1 : 2;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < heap->count; i++) {
			uint64_t at = (heap->blocks[i].address + 7) & ~(uint64_t)7;

			for (; best[i] && at + 8 <= heap->blocks[i].address + heap->blocks[i].size;
			     at += 8) {
				uint64_t value;
				uint8_t got;
				int to;

				memcpy(&value, heap->bytes + (at - heap->at), 8);
				to = find_plainly(heap, value, &inside);
				got = inside ? 1 : best[i];
				if (to >= 0 && best[to] < got) {
					best[to] = got;
					changed = true;
				}
			}
		}
	}
	for (size_t i = 0; i < heap->count; i++)
		CHECK_EQ(best[i], heap->blocks[i].state == TRACE_REACH_REACHABLE ? 2
				  : heap->blocks[i].state == TRACE_REACH_INSIDE  ? 1
										 : 0);
}

TEST(reach_search_agrees_with_the_plain_one)
{
	static struct heap heap;
	uint64_t state = 1;

	for (int round = 0; round < 300; round++) {
		uint64_t at = 0x10000, root;

		memset(&heap, 0, sizeof heap);
		heap.at = at;
		heap.count = 1 + random_next(&state) % (BLOCKS_MAX - 1);
		for (size_t i = 0; i < heap.count; i++) {
			heap.blocks[i].address = at;
			heap.blocks[i].size = random_next(&state) % 300;
			at += heap.blocks[i].size + 1 + random_next(&state) % 40;
		}
		for (size_t i = 0; i < 2 * heap.count; i++) {
			const struct trace_reach_block *to =
				&heap.blocks[random_next(&state) % heap.count];
			uint64_t offset = random_next(&state) % 3 ? 0 : random_next(&state) % 40;

			put(&heap, 0x10000 + random_next(&state) % ((at - 0x10000) / 8) * 8,
			    to->address + offset);
		}
		root = heap.blocks[random_next(&state) % heap.count].address;
		find(&heap, &root, 1, false);
		check_plainly(&heap, root);
	}
}
