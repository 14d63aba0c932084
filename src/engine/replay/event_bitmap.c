// For example a query asks for blocks that lived for at least 5 ns:
//
//     0   malloc  A   at  1 ns
//     1   malloc  B   at  2
//     2   free    A   at  4        it lived for 3 ns: neither bit is set
//     3   realloc B, to C, at 9    B lived for 7: its beginning is event 1, its end event 3
//     -   the trace ends at 20     C lived for 11: event 3 is its beginning, and it has no end
//
// The bits of beginnings are 0 1 0 1, those of ends 0 0 0 1.
#include "engine/replay/event_bitmap.h"

#include "base/mem.h"
#include "engine/replay/lives_parts.h"
#include "trace/reader_pass.h"

#include <string.h>

struct bits {
	uint8_t *bytes;
	size_t size, capacity;
};

struct event_bitmap {
	struct bits begins, ends;

	// While reading.
	const struct query *query;
	const struct moment_edge *window;
};

static void set_bit(struct bits *bits, uint64_t number)
{
	size_t at = (size_t)(number / 8);

	if (at >= bits->size) {
		bits->bytes = mem_grow(bits->bytes, &bits->capacity, at + 1, 1);
		memset(bits->bytes + bits->size, 0, bits->capacity - bits->size);
		bits->size = bits->capacity;
	}
	ASSERT(at < bits->size && bits->size <= bits->capacity);
	bits->bytes[at] |= (uint8_t)(1u << number % 8);
}

static bool has_bit(const struct bits *bits, uint64_t number)
{
	return number / 8 < bits->size && bits->bytes[number / 8] >> number % 8 & 1;
}

bool event_bitmap_begin(const struct event_bitmap *event_bitmap, uint64_t number)
{
	return has_bit(&event_bitmap->begins, number);
}

bool event_bitmap_end(const struct event_bitmap *event_bitmap, uint64_t number)
{
	return has_bit(&event_bitmap->ends, number);
}

// Whether a call ended it; what lived until its process's end, or the trace's, was not freed.
static bool was_freed(const struct lives_end *end)
{
	return end->cause < LIVES_EXIT;
}

// What the block was to the window.
static enum query_type classify(const struct event_bitmap *event_bitmap,
				const struct lives_block *block, const struct lives_end *end)
{
	bool late = moment_passed(&event_bitmap->window[0], block->number, block->time_ns);
	bool ended = was_freed(end) &&
		     !moment_passed(&event_bitmap->window[1], end->number, end->time_ns);

	if (late)
		return ended ? QUERY_AIFI : QUERY_AIFO;
	return ended ? QUERY_AOFI : QUERY_AOFO;
}

// Whether it was there for some part of the window at all.
static bool in_window(const struct event_bitmap *event_bitmap, const struct lives_block *block,
		      const struct lives_end *end)
{
	return !moment_passed(&event_bitmap->window[1], block->number, block->time_ns) &&
	       (!was_freed(end) ||
		moment_passed(&event_bitmap->window[0], end->number, end->time_ns));
}

// All is known of a block.
static void end_block(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct event_bitmap *event_bitmap = context;
	const struct query *query = event_bitmap->query;

	if (block->origin != LIVES_BEGUN || !lives_selects(query, block) ||
	    !query_has_heap(query, block->heap) || !query_has_size(query, block->size) ||
	    !query_has_lifetime(query, end->time_ns - block->time_ns) ||
	    (query->types && !(in_window(event_bitmap, block, end) &&
			       (query->types & classify(event_bitmap, block, end)))))
		return;
	set_bit(&event_bitmap->begins, block->number);
	if (was_freed(end))
		set_bit(&event_bitmap->ends, end->number);
}

// What does not fit in memory at once is paired share by share. Bits are set in any order, so what
// shares say need not be put together.
struct shares {
	struct reader *reader;
	const struct lives_watcher *watcher;
	struct map undone;
	uint32_t count;
	struct progress *progress;
};

// All items go by; which of them are in whose file is lives_parts.h's.
static void fill_parts(struct lives_parts *parts, const struct shares *shares)
{
	struct reader_pass pass = reader_pass_begin(shares->reader, shares->progress);
	struct lives_halves halves = { .reader = shares->reader, .undone = &shares->undone };
	uint64_t next_number = 0;

	while (reader_pass_next(&pass) != READER_END) {
		if (pass.item == READER_EVENT) {
			struct trace_event settled = lives_settle(&halves, &pass.event);

			lives_parts_add_event(parts, pass.items, &settled);
			next_number = settled.number + 1;
		} else {
			lives_parts_add_note(parts, pass.items, next_number, &pass.note);
		}
	}
	lives_halves_fini(&halves);
	reader_rewind(shares->reader);
}

// By temporary files. False: these cannot be had, or are not whole.
static bool pair_by_files(const struct shares *shares)
{
	struct err err;
	struct lives_parts *parts = lives_parts_new(shares->count, shares->count, &err);
	bool good;

	if (!parts)
		return false;
	fill_parts(parts, shares);
	for (uint32_t share = 0; share < shares->count; share++) {
		struct lives *lives = lives_new(shares->reader, shares->watcher, &shares->undone);

		lives_share(lives, share, shares->count);
		lives_parts_read(parts, share, lives);
		lives_finish(lives, moment_duration(shares->reader));
		lives_free(lives);
	}
	good = lives_parts_ok(parts, &err);
	lives_parts_free(parts);
	return good;
}

// By the trace alone, once for each share.
static void pair_by_reading(const struct shares *shares)
{
	for (uint32_t share = 0; share < shares->count; share++) {
		struct lives *lives = lives_new(shares->reader, shares->watcher, &shares->undone);

		lives_share(lives, share, shares->count);
		lives_read(lives, shares->reader, shares->progress);
		lives_free(lives);
	}
}

static void forget(struct bits *bits)
{
	mem_free(bits->bytes);
	*bits = (struct bits){ 0 };
}

// Files that a full disk cut say of some blocks that they never ended: then it is all done again.
struct event_bitmap *event_bitmap_new(struct reader *reader, const struct query *query,
				      const struct moment_edge window[2], uint64_t memory_bytes,
				      struct progress *progress)
{
	struct event_bitmap *event_bitmap = mem_alloc(1, sizeof *event_bitmap);
	const struct lives_watcher watcher = { .end = end_block, .context = event_bitmap };
	struct shares shares = { .reader = reader, .watcher = &watcher, .progress = progress };

	event_bitmap->query = query;
	event_bitmap->window = window;
	shares.count = lives_find_shares(reader, &shares.undone, memory_bytes, progress);
	if (shares.count == 1 || !pair_by_files(&shares)) {
		forget(&event_bitmap->begins);
		forget(&event_bitmap->ends);
		pair_by_reading(&shares);
	}
	map_fini(&shares.undone);
	return event_bitmap;
}

void event_bitmap_free(struct event_bitmap *event_bitmap)
{
	if (!event_bitmap)
		return;
	MEM_FREE(event_bitmap->begins.bytes, event_bitmap->ends.bytes, event_bitmap);
}
