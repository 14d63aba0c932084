// Most words are no pointers, so that this is about saying no quickly: a comparison with the
// lowest and the highest address, then with the span that was hit last, then a search among spans.
// In a span of many blocks a table by grains of 256 bytes says where to begin. For example three
// blocks, at 0x1000 of 32 bytes, at 0x1100 and at 0x1180 of 16:
//
//     grains      { 0, 1 }: the first block at or after 0x1000, and at or after 0x1100
//     0x1188      grain 1, so from block 1 on: the last that begins before is block 2, and 8 < 16:
//                 it points to the inside of block 2
//     0x10f0      grain 0, block 0, but 0xf0 is after its 32 bytes: no pointer
//     0x1100      the beginning of block 1
//
// Blocks are read in the order of their addresses, and what is near is read at once; what they
// point to is kept as edges, and the walk from the roots on is made over these alone.
#include "engine/replay/reach_search.h"

#include "base/mem.h"
#include "base/rising.h"

#include <string.h>

enum {
	GRAIN_SHIFT = 8,
	GAP_MAX = 64 << 10,  // blocks further apart are in different spans
	ALONE_MIN = 1 << 20, // a block so large is a span by itself
	READ_GAP_MAX = 4096, // so much is read between two blocks rather than asked for apart
};

#define EDGE_INSIDE (UINT32_C(1) << 31)
#define NONE UINT32_MAX

// Blocks that are near each other, and where to begin to look for one.
struct span {
	uint64_t start, end;
	uint32_t first;   // block
	uint32_t *grains; // by grain: the first block at or after its beginning; NULL: one block
};

// A pointer in a block.
struct edge {
	uint32_t to;   // block, and EDGE_INSIDE
	uint32_t word; // where in the block it is
};

// A pointer to the inside of a block, in a root.
struct inner {
	uint32_t to;
	uint8_t place;
	uint64_t at;
};

struct reach_search {
	struct trace_reach_block *blocks;
	size_t count;
	unsigned word_bytes;
	struct span *spans;
	size_t spans_count, spans_capacity;
	uint64_t low, high; // all blocks are in there
	size_t latest;      // span
	struct edge *edges; // by the block that they are in
	size_t edges_count, edges_capacity;
	size_t *edges_begin; // by block, and one more
	struct inner *inners;
	size_t inners_count, inners_capacity;
	uint32_t *queue; // of blocks that were found
	size_t queued;
	size_t reading;    // the block that is read, or comes next,
	uint64_t read_end; // and what of it, and of those after it, was asked for
	uint64_t read_start;
	size_t opened; // blocks whose edges have a beginning
};

// ---- where a word points to ----

// Where a C++ program has an array of no elements with destructors, it keeps the address behind
// their number, which is all that the block holds.
enum { COUNT_BYTES = 8 };

static uint64_t end_of(const struct trace_reach_block *block)
{
	uint64_t end =
		block->address + (block->size ? block->size : 1) + (block->size == COUNT_BYTES);

	return end > block->address ? end : UINT64_MAX;
}

static void add_span(struct reach_search *search, size_t first, size_t last)
{
	const struct trace_reach_block *blocks = search->blocks;
	struct span span = { .start = blocks[first].address,
			     .end = end_of(&blocks[last]),
			     .first = (uint32_t)first };
	size_t grains, at = first;

	ASSERT(first <= last && last < search->count);
	if (last > first) {
		grains = (size_t)((span.end - span.start) >> GRAIN_SHIFT) + 1;
		span.grains = mem_alloc(grains, sizeof *span.grains);
		for (size_t i = 0; i < grains; i++) {
			while (at <= last &&
			       blocks[at].address < span.start + ((uint64_t)i << GRAIN_SHIFT))
				at++;
			span.grains[i] = (uint32_t)at;
		}
	}
	*MEM_ADD(search->spans, search->spans_count, search->spans_capacity) = span;
}

static void make_spans(struct reach_search *search)
{
	const struct trace_reach_block *blocks = search->blocks;
	size_t first = 0;

	for (size_t i = 1; i <= search->count; i++) {
		if (i < search->count && blocks[i].size < ALONE_MIN &&
		    blocks[i - 1].size < ALONE_MIN &&
		    blocks[i].address - blocks[i - 1].address < GAP_MAX + blocks[i - 1].size)
			continue;
		add_span(search, first, i - 1);
		first = i;
	}
	if (search->count > 0) {
		search->low = blocks[0].address;
		search->high = end_of(&blocks[search->count - 1]);
	}
}

// The span that has the byte at `value`; NULL: none.
static const struct span *find_span(struct reach_search *search, uint64_t value)
{
	const struct span *latest = &search->spans[search->latest];
	size_t low;

	if (value >= latest->start && value < latest->end)
		return latest;
	low = RISING_UPTO(search->spans, search->spans_count, end, value);
	if (low == search->spans_count || value < search->spans[low].start)
		return NULL;
	search->latest = low;
	return &search->spans[low];
}

// The block that a word points to, with EDGE_INSIDE; NONE: it is no pointer.
static uint32_t find(struct reach_search *search, uint64_t value)
{
	const struct trace_reach_block *blocks = search->blocks;
	const struct span *span;
	uint32_t at;

	if (value < search->low || value >= search->high)
		return NONE;
	span = find_span(search, value);
	if (!span)
		return NONE;
	at = span->first;
	if (span->grains) {
		at = span->grains[(value - span->start) >> GRAIN_SHIFT];
		while (at < search->count && blocks[at].address <= value)
			at++;
		at--;
	}
	if (blocks[at].address == value)
		return at;
	return value < end_of(&blocks[at]) ? at | EDGE_INSIDE : NONE;
}

// ---- reading ----

struct reach_search *reach_search_new(struct trace_reach_block *blocks, size_t count,
				      unsigned word_bytes)
{
	struct reach_search *search = mem_alloc(1, sizeof *search);

	ASSERT(count < EDGE_INSIDE && (word_bytes == 4 || word_bytes == 8));
	*search = (struct reach_search){
		.blocks = blocks,
		.count = count,
		.word_bytes = word_bytes,
		.edges_begin = mem_alloc_table(count + 1, sizeof(size_t)),
		.queue = mem_alloc_table(count + 1, sizeof(uint32_t)),
	};
	for (size_t i = 0; i < count; i++) {
		blocks[i].state = 0;
		blocks[i].place = TRACE_REACH_NOWHERE;
		blocks[i].at = 0;
	}
	make_spans(search);
	return search;
}

void reach_search_free(struct reach_search *search)
{
	if (!search)
		return;
	for (size_t i = 0; i < search->spans_count; i++)
		mem_free(search->spans[i].grains);
	MEM_FREE(search->spans, search->edges, search->edges_begin, search->inners, search->queue,
		 search);
}

static uint64_t word_at(const struct reach_search *search, const uint8_t *bytes)
{
	uint64_t wide;
	uint32_t narrow;

	if (search->word_bytes == 8) {
		memcpy(&wide, bytes, sizeof wide);
		return wide;
	}
	memcpy(&narrow, bytes, sizeof narrow);
	return narrow;
}

// A block is found; the first way to it is kept.
static void reach(struct reach_search *search, uint32_t to, enum trace_reach_state state,
		  enum trace_reach_place place, uint64_t at)
{
	struct trace_reach_block *block = &search->blocks[to];

	if (block->state)
		return;
	block->state = (uint8_t)state;
	block->place = (uint8_t)place;
	block->at = at;
	ASSERT(search->queued < search->count); // each block is in it once
	search->queue[search->queued++] = to;
}

void reach_search_root(struct reach_search *search, const void *bytes, size_t size, uint64_t at,
		       enum trace_reach_place place, bool beginnings_only)
{
	uint64_t step = search->word_bytes, low = search->low, high = search->high;
	const uint8_t *byte = bytes;
	bool is_register = place == TRACE_REACH_REGISTER;

	for (uint64_t i = is_register ? 0 : -at & (step - 1); i + step <= size; i += step) {
		uint64_t value = word_at(search, byte + i);
		uint32_t to;

		if (value < low || value >= high)
			continue;
		to = find(search, value);
		if (to == NONE || (to & EDGE_INSIDE && beginnings_only))
			continue;
		if (!(to & EDGE_INSIDE)) {
			reach(search, to, TRACE_REACH_REACHABLE, place, is_register ? at : at + i);
			continue;
		}
		*MEM_ADD(search->inners, search->inners_count, search->inners_capacity) =
			(struct inner){ to & ~EDGE_INSIDE, (uint8_t)place,
					is_register ? at : at + i };
	}
}

bool reach_search_next(struct reach_search *search, uint64_t *start, uint64_t *end)
{
	const struct trace_reach_block *blocks = search->blocks;
	size_t i = search->reading;
	uint64_t limit;

	ASSERT(i <= search->count);
	if (i == search->count)
		return false;
	*start = search->read_end > blocks[i].address ? search->read_end : blocks[i].address;
	limit = (*start + REACH_SEARCH_PART) & ~(uint64_t)7; // so that no word is cut in two
	*end = *start;
	for (; i < search->count && blocks[i].address < limit &&
	       (i == search->reading || blocks[i].address - *end <= READ_GAP_MAX);
	     i++)
		*end = end_of(&blocks[i]);
	if (*end > limit)
		*end = limit;
	search->read_start = *start;
	search->read_end = *end;
	return true;
}

static void add_edge(struct reach_search *search, size_t from, uint32_t to, uint64_t word)
{
	bool repeats = search->edges_count > search->edges_begin[from] &&
		       search->edges[search->edges_count - 1].to == to;

	ASSERT(from + 1 == search->opened); // edges are listed by the block that they are in
	if (repeats || (to & ~EDGE_INSIDE) == from)
		return;
	if (search->edges_count == search->edges_capacity)
		MEM_ROOM(search->edges, search->edges_capacity, search->edges_count + 1);
	search->edges[search->edges_count++] = (struct edge){ to, (uint32_t)word };
}

static uint64_t first_word(const struct reach_search *search, size_t block)
{
	uint64_t step = search->word_bytes;

	return (search->blocks[block].address + step - 1) & ~(step - 1);
}

// What of a block is between two addresses.
static void take_block(struct reach_search *search, size_t from, const uint8_t *bytes,
		       uint64_t start, uint64_t end)
{
	uint64_t step = search->word_bytes, low = search->low, high = search->high;
	uint64_t first = first_word(search, from);

	for (uint64_t at = (start + step - 1) & ~(step - 1); at + step <= end; at += step) {
		uint64_t value = word_at(search, bytes + (at - start));
		uint32_t to;

		if (value < low || value >= high)
			continue;
		to = find(search, value);
		if (to != NONE)
			add_edge(search, from, to, (at - first) / step);
	}
}

void reach_search_take(struct reach_search *search, const void *bytes)
{
	uint64_t start = search->read_start, end = search->read_end;

	while (search->reading < search->count) {
		const struct trace_reach_block *block = &search->blocks[search->reading];
		uint64_t block_end = block->address + block->size;
		uint64_t from = block->address > start ? block->address : start;
		uint64_t to = block_end < end ? block_end : end;

		if (block->address >= end)
			return;
		if (search->opened == search->reading)
			search->edges_begin[search->opened++] = search->edges_count;
		if (from < to)
			take_block(search, search->reading, (const uint8_t *)bytes + (from - start),
				   from, to);
		if (block_end > end)
			return;
		search->reading++;
	}
}

// ---- what follows ----

static size_t edges_end(const struct reach_search *search, size_t from)
{
	return from + 1 < search->count ? search->edges_begin[from + 1] : search->edges_count;
}

static uint64_t edge_at(const struct reach_search *search, uint32_t from, const struct edge *edge)
{
	return first_word(search, from) + (uint64_t)edge->word * search->word_bytes;
}

// Follow the pointers of a block that was found: to beginnings, to the inside, or both.
static void follow(struct reach_search *search, uint32_t from, bool beginnings, bool insides,
		   enum trace_reach_state state)
{
	size_t end = edges_end(search, from);

	for (size_t i = search->edges_begin[from]; i < end; i++) {
		const struct edge *edge = &search->edges[i];
		bool inside = edge->to & EDGE_INSIDE;

		if (inside ? insides : beginnings)
			reach(search, edge->to & ~EDGE_INSIDE, state, TRACE_REACH_BLOCK,
			      edge_at(search, from, edge));
	}
}

// From one that nothing reaches: all that it leads to is held by it.
static void hold(struct reach_search *search, uint32_t from)
{
	size_t at = search->queued = 0;

	reach(search, from, TRACE_REACH_UNREACHABLE, TRACE_REACH_NOWHERE, 0);
	for (; at < search->queued; at++) {
		uint32_t holder = search->queue[at];
		size_t end = edges_end(search, holder);

		for (size_t i = search->edges_begin[holder]; i < end; i++) {
			const struct edge *edge = &search->edges[i];
			uint32_t to = edge->to & ~EDGE_INSIDE;
			struct trace_reach_block *block = &search->blocks[to];

			if (block->state == TRACE_REACH_UNREACHABLE && to != from) {
				block->state = TRACE_REACH_HELD;
				block->place = TRACE_REACH_BLOCK;
				block->at = edge_at(search, holder, edge);
			}
			reach(search, to, TRACE_REACH_HELD, TRACE_REACH_BLOCK,
			      edge_at(search, holder, edge));
		}
	}
}

void reach_search_finish(struct reach_search *search)
{
	size_t at = 0, reachable;

	while (search->opened < search->count)
		search->edges_begin[search->opened++] = search->edges_count;
	ASSERT(search->opened == search->count);
	for (; at < search->queued; at++)
		follow(search, search->queue[at], true, false, TRACE_REACH_REACHABLE);
	reachable = search->queued;
	for (size_t i = 0; i < search->inners_count; i++) {
		const struct inner *inner = &search->inners[i];

		reach(search, inner->to, TRACE_REACH_INSIDE, inner->place, inner->at);
	}
	for (at = 0; at < search->queued; at++)
		follow(search, search->queue[at], at >= reachable, true, TRACE_REACH_INSIDE);
	for (size_t i = 0; i < search->count; i++)
		if (!search->blocks[i].state)
			hold(search, (uint32_t)i);
}
