// Most words are no pointers, so that this is about saying no quickly: a comparison with the
// lowest and the highest address, then with the span that was hit last, then a search among spans.
// In a span of many blocks a bit for each grain says whether a block begins there, and a number for
// each 64 of them how many blocks begin before; a grain has 16 bytes, or 8 where blocks begin
// between. For example three blocks, at 0x1000 of 32 bytes, at 0x1100 and at 0x1180 of 16:
//
//     bits        0, 16 and 24; blocks before: 0
//     0x1188      grain 24: of the bits up to it three are set, so block 2 is the last that begins
//                 before, and 8 < 16: it points to the inside of block 2
//     0x10f0      grain 15: one is set, block 0, but 0xf0 is after its 32 bytes: no pointer
//     0x1100      grain 16, which is set, and nothing is left over: the beginning of block 1, which
//                 need not be looked at
//
// What is looked at is seldom in a cache, so pointers are followed many at a time: what all of them
// need is asked for before the first is looked at.
//
// Blocks are read in the order of their addresses, and what is near is read at once; what they
// point to is kept as edges, and the walk from the roots on is made over these alone. An edge has
// the block that it leads to, and how many words it is after the edge before it: a block with
// pointers in its words 1 and 4 has edges of 1 and 3 words.
#include "engine/replay/reach_search.h"

#include "base/mem.h"
#include "base/rising.h"

#include <string.h>

enum {
	GRAIN_SHIFT = 4,     // mostly
	GRAIN_SHIFT_MIN = 3, // blocks that begin otherwise are in different spans
	GRAINS = 64,         // of a struct grains
	GAP_MAX = 64 << 10,  // blocks further apart are in different spans
	ALONE_MIN = 1 << 20, // a block so large is a span by itself
	READ_GAP_MAX = 4096, // so much is read between two blocks rather than asked for apart
	BATCH = 128,         // words that are looked up together
	WORDS_MAX = 255,     // an edge that far, or farther, has another before it
	AHEAD = 12,          // blocks, of which what will be needed is asked for
};

#define EDGE_INSIDE (UINT32_C(1) << 31)
#define NONE UINT32_MAX

struct grains {
	uint64_t begins; // a bit for each: whether a block begins there
	uint32_t before; // the first block that does not begin before these
	uint32_t unused;
};

// Blocks that are near each other, and where to look for one.
struct span {
	uint64_t start, end;
	uint32_t first;        // block
	unsigned shift;        // of a grain
	struct grains *grains; // NULL: one block
};

// A pointer in a block. With WORDS_MAX it is none, but `to` says how many words there are up to
// the next edge's own.
struct edge {
	uint32_t to;   // block, and EDGE_INSIDE
	uint8_t words; // from the edge before it, or from the block's first word
} __attribute__((packed));

// A pointer to the inside of a block, in a root.
struct inner {
	uint32_t to;
	uint8_t place;
	uint64_t at;
};

// A word that may be a pointer.
struct word {
	uint64_t value, at;
	uint32_t from; // block; nothing in a root
	uint32_t to;   // NONE: it is no pointer
};

struct reach_search {
	struct trace_reach_block *blocks;
	size_t count;
	unsigned word_bytes;
	struct span *spans;
	size_t spans_count, spans_capacity;
	uint64_t low, high; // all blocks are in there
	size_t latest;      // span
	struct word batch[BATCH];
	size_t batch_count;
	struct edge *edges; // by the block that they are in, each of which knows its first one
	struct mem_area edges_area;
	size_t edges_count;
	uint64_t edge_at; // of the latest
	struct inner *inners;
	size_t inners_count, inners_capacity;
	uint32_t *queue; // of blocks that were found
	size_t queued;
	size_t reading;    // the block that is read, or comes next,
	uint64_t read_end; // and what of it, and of those after it, was asked for
	uint64_t read_start;
	size_t opened; // blocks that know their first edge
};

// ---- where a word points to ----

// Where a C++ program has an array of no elements with destructors, it keeps the address behind
// their number, which is all that the block holds.
enum { COUNT_BYTES = 8 };

// Where a block ends for pointers. One of no bytes has one; one of 8 bytes has a ninth, so that the
// address behind a count of 0 is a pointer to its inside.
static uint64_t end_of(const struct trace_reach_block *block)
{
	uint64_t end =
		block->address + (block->size ? block->size : 1) + (block->size == COUNT_BYTES);

	return end > block->address ? end : UINT64_MAX;
}

// So that all of these begin at the beginning of a grain.
static unsigned shift_of(const struct trace_reach_block *blocks, size_t first, size_t last)
{
	uint64_t low_bits = UINT64_C(1) << GRAIN_SHIFT;

	for (size_t i = first + 1; i <= last; i++)
		low_bits |= blocks[i].address - blocks[first].address;
	return (unsigned)__builtin_ctzll(low_bits);
}

// Blocks [first, last] are a span. One that reaches into the next span by its count of 8 bytes
// (end_of) is cut there, so that spans never overlap.
static void add_span(struct reach_search *search, size_t first, size_t last)
{
	const struct trace_reach_block *blocks = search->blocks;
	struct span span = { .start = blocks[first].address,
			     .end = end_of(&blocks[last]),
			     .first = (uint32_t)first };
	size_t count, at = first;

	ASSERT(first <= last && last < search->count);
	if (last + 1 < search->count && span.end > blocks[last + 1].address)
		span.end = blocks[last + 1].address;
	if (last > first) {
		span.shift = shift_of(blocks, first, last);
		ASSERT(span.shift >= GRAIN_SHIFT_MIN);
		count = (size_t)((span.end - span.start) >> span.shift) / GRAINS + 1;
		span.grains = mem_alloc_table(count, sizeof *span.grains);
		for (size_t i = 0; i < count; i++) {
			struct grains *grains = &span.grains[i];
			uint64_t grain = (uint64_t)i * GRAINS, is;

			grains->before = (uint32_t)at;
			for (; at <= last; at++) {
				is = (blocks[at].address - span.start) >> span.shift;
				if (is - grain >= GRAINS)
					break;
				grains->begins |= UINT64_C(1) << (is - grain);
			}
		}
		ASSERT(at == last + 1);
	}
	*MEM_ADD(search->spans, search->spans_count, search->spans_capacity) = span;
}

// A new span begins where the gap is too wide, where a block is so large that a table of its grains
// would cost more than a search, and where a block does not begin at a multiple of 8 from the
// span's first: all that begin in a span begin at the beginning of a grain.
static void make_spans(struct reach_search *search)
{
	const struct trace_reach_block *blocks = search->blocks;
	size_t first = 0;

	for (size_t i = 1; i <= search->count; i++) {
		ASSERT(i == search->count || blocks[i].address > blocks[i - 1].address);
		if (i < search->count && blocks[i].size < ALONE_MIN &&
		    blocks[i - 1].size < ALONE_MIN &&
		    (blocks[i].address - blocks[first].address) % (1 << GRAIN_SHIFT_MIN) == 0 &&
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

	ASSERT(search->latest < search->spans_count);
	if (value >= latest->start && value < latest->end)
		return latest;
	low = RISING_UPTO(search->spans, search->spans_count, end, value);
	if (low == search->spans_count || value < search->spans[low].start)
		return NULL;
	search->latest = low;
	return &search->spans[low];
}

static const struct grains *grains_of(const struct span *span, uint64_t value)
{
	return &span->grains[(value - span->start) >> span->shift >> 6];
}

// The last block that begins at a word's value or before, in its span, and EDGE_INSIDE if it does
// not begin right there.
static uint32_t last_before(const struct span *span, uint64_t value)
{
	uint64_t offset = value - span->start, bit = offset >> span->shift & (GRAINS - 1);
	const struct grains *grains;
	uint64_t upto;
	uint32_t at;

	if (!span->grains)
		return offset ? span->first | EDGE_INSIDE : span->first;
	grains = grains_of(span, value);
	upto = grains->begins & UINT64_MAX >> (GRAINS - 1 - bit);
	at = grains->before + (uint32_t)__builtin_popcountll(upto) - 1;
	if (upto >> bit && (offset & ((UINT64_C(1) << span->shift) - 1)) == 0)
		return at;
	return at | EDGE_INSIDE;
}

// Find out where the words of a batch point to.
static void look_up(struct reach_search *search)
{
	const struct trace_reach_block *blocks = search->blocks;
	const struct span *spans[BATCH];

	for (size_t i = 0; i < search->batch_count; i++) {
		uint64_t value = search->batch[i].value;

		spans[i] = find_span(search, value);
		if (spans[i] && spans[i]->grains)
			__builtin_prefetch(grains_of(spans[i], value));
	}
	for (size_t i = 0; i < search->batch_count; i++) {
		struct word *word = &search->batch[i];

		word->to = spans[i] ? last_before(spans[i], word->value) : NONE;
		if (word->to != NONE && word->to & EDGE_INSIDE)
			__builtin_prefetch(&blocks[word->to & ~EDGE_INSIDE]);
	}
	for (size_t i = 0; i < search->batch_count; i++) {
		struct word *word = &search->batch[i];

		if (word->to != NONE && word->to & EDGE_INSIDE &&
		    word->value >= end_of(&blocks[word->to & ~EDGE_INSIDE]))
			word->to = NONE;
	}
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
	mem_area_fini(&search->edges_area);
	MEM_FREE(search->spans, search->inners, search->queue, search);
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

// What the words of a batch point to, of a root.
static void reach_batch(struct reach_search *search, enum trace_reach_place place,
			bool beginnings_only)
{
	look_up(search);
	for (size_t i = 0; i < search->batch_count; i++) {
		const struct word *word = &search->batch[i];

		if (word->to == NONE || (word->to & EDGE_INSIDE && beginnings_only))
			continue;
		if (!(word->to & EDGE_INSIDE))
			reach(search, word->to, TRACE_REACH_REACHABLE, place, word->at);
		else
			*MEM_ADD(search->inners, search->inners_count, search->inners_capacity) =
				(struct inner){ word->to & ~EDGE_INSIDE, (uint8_t)place, word->at };
	}
	search->batch_count = 0;
}

// Words are looked at where they are aligned in the process's memory; a register is one word,
// wherever our copy of it is.
void reach_search_root(struct reach_search *search, const void *bytes, size_t size, uint64_t at,
		       enum trace_reach_place place, bool beginnings_only)
{
	uint64_t step = search->word_bytes, low = search->low, high = search->high;
	const uint8_t *byte = bytes;
	bool is_register = place == TRACE_REACH_REGISTER;

	for (uint64_t i = is_register ? 0 : -at & (step - 1); i + step <= size; i += step) {
		uint64_t value = word_at(search, byte + i);

		if (value < low || value >= high)
			continue;
		search->batch[search->batch_count++] =
			(struct word){ .value = value, .at = is_register ? at : at + i };
		if (search->batch_count == BATCH)
			reach_batch(search, place, beginnings_only);
	}
	reach_batch(search, place, beginnings_only);
}

// A part of the process's memory that the caller is to read, for reach_search_take: of one block or
// of several whose gaps are small.
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

// Of a block that does not begin at a multiple of a word, as pointers are looked for only there.
static uint64_t first_word(const struct reach_search *search, size_t block)
{
	uint64_t step = search->word_bytes;

	return (search->blocks[block].address + step - 1) & ~(step - 1);
}

// The first edge of a block; of the number after the last block the end of all edges.
static size_t edges_begin(const struct reach_search *search, size_t block)
{
	const struct trace_reach_block *of = &search->blocks[block];

	return block < search->count ? (size_t)of->own_high << 32 | of->own_low
				     : search->edges_count;
}

// What comes from here on is of this block, or of one after it.
static void open_blocks(struct reach_search *search, size_t upto)
{
	for (; search->opened <= upto; search->opened++) {
		struct trace_reach_block *block = &search->blocks[search->opened];

		block->own_high = (uint16_t)(search->edges_count >> 32);
		block->own_low = (uint32_t)search->edges_count;
		search->edge_at = first_word(search, search->opened);
	}
}

static void put_edge(struct reach_search *search, uint32_t to, uint8_t words)
{
	size_t need = (search->edges_count + 1) * sizeof(struct edge);

	if (need > search->edges_area.size) {
		mem_area_grow(&search->edges_area, need);
		search->edges = search->edges_area.at;
	}
	search->edges[search->edges_count++] = (struct edge){ to, words };
}

// A pointer of a block to itself says nothing, and of the same pointer several times in a row the
// first is enough. Words that are further apart than an edge can say are said by edges before it
// that lead nowhere: 300 words after the one before are an edge {300, WORDS_MAX} and the edge
// itself with 0 words.
static void add_edge(struct reach_search *search, const struct word *word)
{
	uint64_t words;
	bool repeats;

	open_blocks(search, word->from);
	ASSERT(word->from + 1 == search->opened); // edges are listed by the block that they are in
	repeats = search->edges_count > edges_begin(search, word->from) &&
		  search->edges[search->edges_count - 1].to == word->to;
	if (repeats || (word->to & ~EDGE_INSIDE) == word->from)
		return;
	words = (word->at - search->edge_at) / search->word_bytes;
	search->edge_at = word->at;
	for (; words > UINT32_MAX; words -= UINT32_MAX)
		put_edge(search, UINT32_MAX, WORDS_MAX);
	if (words >= WORDS_MAX) {
		put_edge(search, (uint32_t)words, WORDS_MAX);
		words = 0;
	}
	put_edge(search, word->to, (uint8_t)words);
}

static void take_batch(struct reach_search *search)
{
	look_up(search);
	for (size_t i = 0; i < search->batch_count; i++)
		if (search->batch[i].to != NONE)
			add_edge(search, &search->batch[i]);
	search->batch_count = 0;
}

// What of a block is between two addresses.
static void take_block(struct reach_search *search, size_t from, const uint8_t *bytes,
		       uint64_t start, uint64_t end)
{
	uint64_t step = search->word_bytes, low = search->low, high = search->high;

	for (uint64_t at = (start + step - 1) & ~(step - 1); at + step <= end; at += step) {
		uint64_t value = word_at(search, bytes + (at - start));

		if (value < low || value >= high)
			continue;
		search->batch[search->batch_count++] =
			(struct word){ .value = value, .at = at, .from = (uint32_t)from };
		if (search->batch_count == BATCH)
			take_batch(search);
	}
}

// What was read is shared out to the blocks in it. A block that goes on behind the part is gone on
// with in the next.
void reach_search_take(struct reach_search *search, const void *bytes)
{
	uint64_t start = search->read_start, end = search->read_end;

	while (search->reading < search->count) {
		const struct trace_reach_block *block = &search->blocks[search->reading];
		uint64_t block_end = block->address + block->size;
		uint64_t from = block->address > start ? block->address : start;
		uint64_t to = block_end < end ? block_end : end;

		if (block->address >= end)
			break;
		if (from < to)
			take_block(search, search->reading, (const uint8_t *)bytes + (from - start),
				   from, to);
		if (block_end > end)
			break;
		search->reading++;
	}
	take_batch(search);
}

uint64_t reach_search_rest(const struct reach_search *search)
{
	const struct trace_reach_block *block = &search->blocks[search->reading];

	return search->reading < search->count && block->address < search->read_end ? end_of(block)
										    : 0;
}

void reach_search_skip(struct reach_search *search, uint64_t to)
{
	uint64_t end = reach_search_rest(search);

	ASSERT(to >= search->read_end && to <= end);
	search->read_end = to < end ? to & ~(uint64_t)7 : end;
	search->reading += to == end;
}

// ---- what follows ----

// The edges of a block, one by one.
struct following {
	const struct reach_search *search;
	size_t next, end;
	uint64_t word; // where the latest is
};

static struct following edges_of(const struct reach_search *search, uint32_t from)
{
	return (struct following){
		.search = search,
		.next = edges_begin(search, from),
		.end = edges_begin(search, (size_t)from + 1),
		.word = first_word(search, from),
	};
}

// Edges that lead nowhere only move the place on.
static const struct edge *next_edge(struct following *following)
{
	const struct reach_search *search = following->search;

	while (following->next < following->end) {
		const struct edge *edge = &search->edges[following->next++];

		if (edge->words < WORDS_MAX) {
			following->word += (uint64_t)edge->words * search->word_bytes;
			return edge;
		}
		following->word += (uint64_t)edge->to * search->word_bytes;
	}
	return NULL;
}

// Begin to fetch what the blocks of the queue that come soon lead to, in the order in which one
// thing leads to the next.
static void expect(const struct reach_search *search, size_t at)
{
	if (at + 2 * AHEAD < search->queued)
		mem_expect(&search->blocks[search->queue[at + 2 * AHEAD]].address);
	if (at + AHEAD < search->queued) {
		size_t begin = edges_begin(search, search->queue[at + AHEAD]);

		if (begin < search->edges_count)
			mem_expect(&search->edges[begin]);
	}
	if (at + AHEAD / 2 < search->queued) {
		size_t begin = edges_begin(search, search->queue[at + AHEAD / 2]);
		size_t end = edges_begin(search, (size_t)search->queue[at + AHEAD / 2] + 1);

		for (size_t i = begin; i < end && i < begin + AHEAD; i++)
			if (search->edges[i].words < WORDS_MAX)
				mem_expect(&search->blocks[search->edges[i].to & ~EDGE_INSIDE]);
	}
}

// Follow the pointers of a block that was found: to beginnings, to the inside, or both.
static void follow(struct reach_search *search, uint32_t from, bool beginnings, bool insides,
		   enum trace_reach_state state)
{
	struct following following = edges_of(search, from);
	const struct edge *edge;

	while ((edge = next_edge(&following))) {
		bool inside = edge->to & EDGE_INSIDE;

		if (following.next + AHEAD < following.end) {
			size_t ahead = following.next + AHEAD;

			if (search->edges[ahead].words < WORDS_MAX)
				mem_expect(&search->blocks[search->edges[ahead].to & ~EDGE_INSIDE]);
		}
		if (inside ? insides : beginnings)
			reach(search, edge->to & ~EDGE_INSIDE, state, TRACE_REACH_BLOCK,
			      following.word);
	}
}

// From one that nothing reaches: all that it leads to is held by it.
static void hold(struct reach_search *search, uint32_t from)
{
	size_t at = search->queued = 0;

	reach(search, from, TRACE_REACH_UNREACHABLE, TRACE_REACH_NOWHERE, 0);
	for (; at < search->queued; at++) {
		struct following following = edges_of(search, search->queue[at]);
		const struct edge *edge;

		expect(search, at);
		while ((edge = next_edge(&following))) {
			uint32_t to = edge->to & ~EDGE_INSIDE;
			struct trace_reach_block *block = &search->blocks[to];

			if (block->state == TRACE_REACH_UNREACHABLE && to != from) {
				block->state = TRACE_REACH_HELD;
				block->place = TRACE_REACH_BLOCK;
				block->at = following.word;
			}
			reach(search, to, TRACE_REACH_HELD, TRACE_REACH_BLOCK, following.word);
		}
	}
}

// Three walks, each from what the one before has found. First from the roots by pointers to
// beginnings: what is found is reachable. Then pointers to the inside are followed too, those of
// roots and those of all that was found, and from what is found so all pointers. What is left is
// lost: a walk from each of it marks what it leads to as held, also what an earlier walk began
// with, so that what stays unreachable is held by no other block (of a circle one is left).
void reach_search_finish(struct reach_search *search)
{
	size_t at = 0, reachable;

	if (search->count > 0)
		open_blocks(search, search->count - 1);
	for (; at < search->queued; at++) {
		expect(search, at);
		follow(search, search->queue[at], true, false, TRACE_REACH_REACHABLE);
	}
	reachable = search->queued;
	for (size_t i = 0; i < search->inners_count; i++) {
		const struct inner *inner = &search->inners[i];

		reach(search, inner->to, TRACE_REACH_INSIDE, inner->place, inner->at);
	}
	for (at = 0; at < search->queued; at++) {
		expect(search, at);
		follow(search, search->queue[at], at >= reachable, true, TRACE_REACH_INSIDE);
	}
	for (size_t i = 0; i < search->count; i++)
		if (!search->blocks[i].state)
			hold(search, (uint32_t)i);
}
