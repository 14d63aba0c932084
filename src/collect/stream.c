// Where a lane's items are. For example, first 3, inner 7, end 10:
//
//     0 1 2 | 3 4 5 6 | 7 8 9
//     done    before    between the looks
//
// stream_settle moves items 3 to 9 to the front: first 0, inner 4, end 7. stream_promote then says
// that all of them are before the first look of the pass that begins.
//
// An echo stands for repetitions of the two items before it: "malloc, free, echo of 3" are eight
// items, which stream_expand makes of it where lanes have to wait for each other, since then each
// of them needs its own place. Who delivers an echo as it is does so right after those two, and so
// they are still in the array.
#include "collect/stream.h"

#include "base/mem.h"
#include "wire/compiler.h"
#include "wire/segment.h"

#include <string.h>

// Items whose room is kept: the lanes with large rings fill them over and over, and pages that are
// given back cost more than what is done with them. Small rooms of the others go from lane to lane:
// of a thousand threads that each begin with a few hundred events, few do so at one time.
enum { ITEMS_KEPT_MAX = 8192, ITEMS_KEPT_LARGE = 65536, ITEMS_FEW = 1024 };

struct stream *stream_new(struct image *image, uint32_t lane)
{
	struct stream *stream = mem_alloc(1, sizeof *stream);

	ASSERT(lane < SEGMENT_LANES_MAX);
	stream->image = image;
	stream->lane = lane;
	stream->thread = TRACE_NONE;
	return stream;
}

void stream_free(struct stream *stream)
{
	if (stream == NULL)
		return;
	while (stream->barriers != NULL) {
		struct stream_barrier *next = stream->barriers->next;

		mem_free(stream->barriers);
		stream->barriers = next;
	}
	if (stream->chunks != NULL)
		for (size_t i = 0; i < STREAM_CHUNKS; i++)
			mem_free(stream->chunks[i]);
	MEM_FREE(stream->chunks, stream->items);
	lane_reader_fini(&stream->reader);
	mem_free(stream);
}

// The array may move: pointers to items are lost by it.
struct lane_item *stream_push(struct stream *stream)
{
	struct lane_item *item;

	ASSERT(stream->inner <= stream->end && stream->end <= stream->capacity);
	item = MEM_ADD(stream->items, stream->end, stream->capacity);
	memset(item, 0, sizeof *item);
	return item;
}

// Sorted by `head`; what has the same place stays in the order in which it came.
void stream_add_barrier(struct stream *stream, uint8_t kind, uint64_t head, uint64_t time_ns,
			uint32_t detail)
{
	struct stream_barrier *barrier = mem_alloc(1, sizeof *barrier);
	struct stream_barrier **link = &stream->barriers;

	*barrier = (struct stream_barrier){
		.head = head, .time_ns = time_ns, .detail = detail, .kind = kind
	};
	while (*link != NULL && (*link)->head <= head)
		link = &(*link)->next;
	barrier->next = *link;
	*link = barrier;
}

// The lane has reached its first barrier.
static void pass_barrier(struct stream *stream)
{
	struct stream_barrier *barrier = stream->barriers;
	struct lane_item *item = stream_push(stream);

	item->kind = barrier->kind;
	item->detail = barrier->detail;
	// The reader's own time stays as it is: the lane's next event says how much later it is
	// than the lane's last one.
	item->time_ns = stream->reader.time_ns > barrier->time_ns ? stream->reader.time_ns
								  : barrier->time_ns;
	stream->barriers = barrier->next;
	mem_free(barrier);
}

// The last of an echo's items become items again, behind it. It is item `at`.
//
// For example, an echo of 900 becomes one of 899 and two items.
static void shorten_echo(struct stream *stream, size_t at)
{
	struct lane_item *item;

	ASSERT(at >= stream->first + 2 && stream->items[at].kind == LANE_ITEM_ECHO &&
	       stream->items[at].detail > 1);
	stream_push(stream);
	stream_push(stream);
	item = &stream->items[at];
	memmove(item + 3, item + 1, (stream->end - at - 3) * sizeof *item);
	item[1] = item[-2];
	item[2] = item[-1];
	item[1].owner = item[2].owner = 0;
	item[1].run = item[2].run = 0;
	item->detail--;
	if (at < stream->inner)
		stream->inner += 2;
}

// A free that failed was told in two records, as a realloc is that failed: so let it be one. A free
// that has gone into the trace already stays there (trace_builder_event).
//
// Only on Windows a free can fail and be told so.
static COLD void mend_frees(struct stream *stream)
{
	stream->reader.undone = false;
	for (size_t i = stream->first + 1; i < stream->end; i++) {
		size_t before = i - 1;

		if (stream->items[i].kind != LANE_REALLOC_UNDO || stream->items[i].size != 0)
			continue;
		while (before > stream->first && stream->items[before].kind == LANE_VM)
			before--;
		if (stream->items[before].kind == LANE_ITEM_ECHO) {
			shorten_echo(stream, before);
			before += 2;
			i += 2;
		}
		if (stream->items[before].kind == LANE_FREE)
			stream->items[before].kind = LANE_REALLOC_FREE;
	}
}

// Up to the next barrier, then the barrier's item, and on. Returns whether there is more to decode.
bool stream_fill(struct stream *stream, uint64_t limit, size_t max)
{
	struct lane_reader *reader = &stream->reader;
	size_t wanted = stream->end + max;

	for (;;) {
		uint64_t stop = limit;
		size_t room;

		while (stream->barriers != NULL &&
		       (int64_t)(reader->at - stream->barriers->head) >= 0)
			pass_barrier(stream);
		if (stream->barriers != NULL && stream->barriers->head < stop)
			stop = stream->barriers->head;
		if (reader->broken || reader->at >= limit)
			return false;
		// A free and what takes it back stay together.
		if (stream->end >= wanted && lane_reader_undoes_next(reader, stop))
			wanted = stream->end + 1;
		if (stream->end >= wanted)
			return true;
		if (stream->capacity - stream->end < 256)
			MEM_ROOM(stream->items, stream->capacity, stream->end + 256);
		room = stream->capacity - stream->end;
		if (room > wanted - stream->end)
			room = wanted - stream->end;
		ASSERT(room > 0 && stream->end + room <= stream->capacity);
		stream->end += lane_reader_decode(reader, stop, stream->items + stream->end, room);
		if (unlikely(reader->undone))
			mend_frees(stream);
	}
}

bool stream_take_row(struct stream *stream, uint64_t limit, uint64_t limit_ns,
		     struct lane_reader_row *row)
{
	const struct stream_barrier *barrier = stream->barriers;
	uint64_t at = stream->reader.at;

	if (unlikely(barrier != NULL)) {
		if ((int64_t)(at - barrier->head) >= 0)
			return false;
		if (barrier->head < limit)
			limit = barrier->head;
	}
	return at < limit && lane_reader_take_row(&stream->reader, limit, limit_ns, row);
}

static size_t items_kept(const struct stream *stream)
{
	return stream->lane <= SEGMENT_RING_LARGE_LANES ? ITEMS_KEPT_LARGE : ITEMS_KEPT_MAX;
}

static bool items_are_few(const struct stream *stream)
{
	return stream->lane > SEGMENT_RING_LARGE_LANES && stream->capacity <= ITEMS_FEW;
}

// Delivered items leave the buffer, and the rest moves to its beginning. A large buffer that is
// empty is given back.
void stream_settle(struct stream *stream)
{
	size_t count = stream->end - stream->first;

	ASSERT(stream->first <= stream->inner && stream->inner <= stream->end);
	if (stream->first > 0 && count > 0)
		memmove(stream->items, stream->items + stream->first,
			count * sizeof *stream->items);
	stream->inner -= stream->first < stream->inner ? stream->first : stream->inner;
	stream->settled += stream->first;
	stream->end = count;
	stream->first = 0;
	if (count == 0 && stream->items != NULL &&
	    (stream->capacity > items_kept(stream) || items_are_few(stream))) {
		mem_free(stream->items);
		stream->items = NULL;
		stream->capacity = 0;
	}
}

// There are 262,144 slots and a thread touches a few hundred: chunks of them are made when they
// are met.
struct stream_interval *stream_interval_get(struct stream *stream, uint32_t slot)
{
	struct stream_interval **chunk;

	ASSERT(slot < LANE_SLOTS);
	if (unlikely(stream->chunks == NULL))
		stream->chunks = mem_alloc(STREAM_CHUNKS, sizeof *stream->chunks);
	chunk = &stream->chunks[slot / STREAM_CHUNK_SLOTS];
	if (unlikely(*chunk == NULL))
		*chunk = mem_alloc(STREAM_CHUNK_SLOTS, sizeof **chunk);
	return &(*chunk)[slot % STREAM_CHUNK_SLOTS];
}

// A new array: each echo becomes as many pairs of items as it says.
void stream_expand(struct stream *stream)
{
	struct lane_item *old = stream->items;
	size_t more = 0, end = stream->end;

	for (size_t i = stream->first; i < end; i++)
		if (old[i].kind == LANE_ITEM_ECHO)
			more += 2 * (size_t)old[i].detail;
	if (more == 0)
		return;
	ASSERT(stream->inner == end);
	stream->items = NULL;
	stream->capacity = 0;
	stream->items = mem_grow(NULL, &stream->capacity, end + more, sizeof *stream->items);
	stream->end = 0;
	for (size_t i = stream->first; i < end; i++) {
		size_t times = old[i].kind == LANE_ITEM_ECHO ? old[i].detail : 0;

		if (old[i].kind != LANE_ITEM_ECHO)
			stream->items[stream->end++] = old[i];
		ASSERT(times == 0 || i >= stream->first + 2);
		for (; times > 0; times--) {
			stream->items[stream->end++] = old[i - 2];
			stream->items[stream->end++] = old[i - 1];
		}
	}
	stream->first = 0;
	stream->inner = stream->end;
	mem_free(old);
}

// A new interval, or none yet, begins a new run; else the event belongs to the run that the lane
// has in this slot.
static inline void add_run(struct stream *stream, struct slots *slots, struct lane_item *item,
			   bool inner)
{
	uint32_t slot = lane_item_slot(item);
	struct stream_interval *interval = stream_interval_get(stream, slot);
	struct slots_run *run;
	uint32_t after = interval->run;

	ASSERT(item->run == 0 && lane_item_has_slot(item));
	if (item->owner != 0 && item->owner != interval->owner) {
		interval->owner = item->owner;
		interval->run = 0;
	}
	if (interval->run == 0)
		interval->run = slots_add(slots, slot, interval->owner, stream->lane, after);
	item->run = interval->run;
	run = &slots->runs[item->run];
	if (inner)
		run->inner++;
	else if (run->outer++ == 0)
		run->outer_from = stream->settled + (size_t)(item - stream->items);
}

void stream_add_run(struct stream *stream, struct slots *slots, size_t at)
{
	ASSERT(at >= stream->first && at < stream->inner);
	add_run(stream, slots, &stream->items[at], true);
}

void stream_add_runs(struct stream *stream, struct slots *slots, size_t from, bool inner)
{
	ASSERT(from >= stream->first && from <= stream->end);
	for (size_t i = from; i < stream->end; i++) {
		struct lane_item *item = &stream->items[i];

		if (lane_item_has_slot(item) && item->run == 0)
			add_run(stream, slots, item, inner);
	}
}

// From the end back, so that a run loses its items in the reverse of the order in which it got
// them, and its slot's interval is in the end what it was before the first.
void stream_drop_runs(struct stream *stream, struct slots *slots)
{
	for (size_t i = stream->end; i-- > stream->first;) {
		struct lane_item *item = &stream->items[i];
		struct stream_interval *interval;
		struct slots_run *run;

		if (item->run == 0)
			continue;
		run = &slots->runs[item->run];
		ASSERT(run->lane == stream->lane && run->inner + run->outer > 0);
		interval = stream_interval_get(stream, run->slot);
		interval->owner = run->owner;
		interval->run = 0;
		if (i < stream->inner)
			run->inner--;
		else
			run->outer--;
		if (run->inner + run->outer == 0)
			slots_remove(slots, item->run);
		item->run = 0;
	}
}

// What was between the looks of the last pass is before the first look of this one.
void stream_promote(struct stream *stream, struct slots *slots)
{
	for (size_t i = stream->inner; i < stream->end; i++) {
		uint32_t run = stream->items[i].run;

		if (run != 0) {
			ASSERT(slots->runs[run].outer > 0);
			slots->runs[run].outer--;
			slots->runs[run].inner++;
		}
	}
	stream->inner = stream->end;
}
