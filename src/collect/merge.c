// For example, one thread frees a block, and within the same tick another gets its address:
//
//     lane 1   time 10 malloc 0x5000, interval 1 of slot 1      time 20 free 0x5000
//     lane 2   time 20 malloc 0x5000, interval 2 of slot 1      time 20 malloc 0x9000, of slot 2
//
// At time 20 lane 2 may be the first of the heap. Its malloc is of interval 2, and interval 1 of
// the slot has an event that is not delivered yet, the free of lane 1: so lane 1 is the blocker and
// goes on up to its free, then lane 2 does. Had lane 1's free been read after the first look, it
// would be pulled in all the same, with what is before it in its lane and nothing after it.
#include "collect/merge.h"

#include "base/mem.h"
#include "collect/mappings.h"
#include "wire/compiler.h"

#include <string.h>

void merge_init(struct merge *merge, struct trace_builder *trace_builder, merge_special *special,
		void *context)
{
	ASSERT(special != NULL);
	memset(merge, 0, sizeof *merge);
	merge->trace_builder = trace_builder;
	merge->special = special;
	merge->context = context;
}

void merge_fini(struct merge *merge)
{
	MEM_FREE(merge->heap, merge->pulls);
	memset(merge, 0, sizeof *merge);
}

// ---- The heap -------------------------------------------------------------------------------

// The time of the stream's first item, which is not delivered yet. It only rises.
static uint64_t time_of(const struct stream *stream)
{
	ASSERT(stream->first < stream->end);
	return stream->items[stream->first].time_ns;
}

// Whether `a` comes before `b` in the heap. Equal times may come in either order, but for forks.
static bool before(const struct stream *a, const struct stream *b)
{
	uint64_t time_a = time_of(a), time_b = time_of(b);

	if (time_a != time_b)
		return time_a < time_b;
	// Among equals forks come last, so that what a child inherits is there.
	return a->items[a->first].kind != LANE_ITEM_FORK &&
	       b->items[b->first].kind == LANE_ITEM_FORK;
}

// Both sides of a stream's place are kept: the heap has the stream, and the stream has its number,
// so that one in the middle can be taken out.
static void place(struct merge *merge, size_t at, struct stream *stream)
{
	ASSERT(at > 0 && at <= merge->heap_count + 1);
	merge->heap[at] = stream;
	stream->heap_at = at;
}

// The stream at `at` has a time that is earlier than it was, or is new: it goes towards the root.
static void sift_up(struct merge *merge, size_t at)
{
	struct stream *stream = merge->heap[at];

	// The heap is numbered from 1: the parent of 7 is 3, its children are 14 and 15, and 0 says
	// that a stream is not in it.
	while (at > 1 && before(stream, merge->heap[at / 2])) {
		place(merge, at, merge->heap[at / 2]);
		at /= 2;
	}
	place(merge, at, stream);
}

// The same where its time has become later, which is what delivery does.
static void sift_down(struct merge *merge, size_t at)
{
	struct stream *stream = merge->heap[at];

	for (;;) {
		size_t child = at * 2;

		if (child > merge->heap_count)
			break;
		if (child < merge->heap_count && before(merge->heap[child + 1], merge->heap[child]))
			child++;
		if (!before(merge->heap[child], stream))
			break;
		place(merge, at, merge->heap[child]);
		at = child;
	}
	place(merge, at, stream);
}

// Only with something before the first look; a stream without that is not in the heap.
static void heap_push(struct merge *merge, struct stream *stream)
{
	ASSERT(stream->heap_at == 0 && stream->first < stream->inner);
	MEM_ROOM(merge->heap, merge->heap_capacity, merge->heap_count + 2);
	merge->heap[++merge->heap_count] = stream;
	sift_up(merge, merge->heap_count);
}

// The last stream takes its place, and may belong further up or down from there; one of the two
// moves does nothing.
static void heap_remove(struct merge *merge, struct stream *stream)
{
	size_t at = stream->heap_at;
	struct stream *last = merge->heap[merge->heap_count--];

	ASSERT(at > 0 && merge->heap[at] == stream);
	stream->heap_at = 0;
	if (last == stream)
		return;
	place(merge, at, last);
	sift_up(merge, at);
	sift_down(merge, last->heap_at);
}

// The time up to which the first stream of the heap may go on alone.
static uint64_t second_time(const struct merge *merge)
{
	uint64_t time_ns = UINT64_MAX;

	// The second in time is one of the two children of the first.
	for (size_t i = 2; i <= 3 && i <= merge->heap_count; i++)
		if (time_of(merge->heap[i]) < time_ns)
			time_ns = time_of(merge->heap[i]);
	return time_ns;
}

// Those that are in the heap already stay where they are: new items come after their old ones.
void merge_add(struct merge *merge, struct image *image)
{
	for (uint32_t i = 0; i < image->streams_count; i++) {
		struct stream *stream = image->streams[i];

		if (stream != NULL && stream->heap_at == 0 && stream->first < stream->inner)
			heap_push(merge, stream);
	}
}

// ---- Delivery -------------------------------------------------------------------------------

// The first item is delivered: no stream waits for it any more.
//
// If it waited in a run, the run has one event less, and goes when it has none: the next run of the
// slot is the first then. Else, where it took a slot over, the lane's own interval of that slot is
// the new one.
static inline void consume(struct stream *stream)
{
	struct lane_item *item = &stream->items[stream->first];

	if (item->run != 0) {
		struct slots *slots = &stream->image->slots;
		struct slots_run *run = &slots->runs[item->run];

		ASSERT(run->lane == stream->lane && run->inner + run->outer > 0);
		if (stream->first < stream->inner)
			run->inner--;
		else
			run->outer--;
		if (run->inner + run->outer == 0) {
			struct stream_interval *interval = stream_interval_get(stream, run->slot);

			if (interval->run == item->run)
				interval->run = 0;
			slots_remove(slots, item->run);
		}
	} else if (item->owner != 0) {
		stream_interval_get(stream, lane_item_slot(item))->owner = item->owner;
	}
	stream->first++;
	if (stream->inner < stream->first)
		stream->inner = stream->first;
}

// Deliver the first item, and with `fold` the one after it, too. False: held.
//
// The kinds of items in the order of how often they come. Whatever has a thread's own work in it
// marks the stream as stirred, so that its name is asked for again.
static inline bool deliver(struct merge *merge, struct stream *stream, bool fold)
{
	struct lane_item *item = &stream->items[stream->first];

	ASSERT(stream->first < stream->end);
	if (likely(item->kind <= LANE_FAILED)) {
		stream->stirred = true;
		trace_builder_event(merge->trace_builder, stream, fold);
		if (fold) {
			ASSERT(stream->first + 1 < stream->inner);
			consume(stream);
		}
	} else if (item->kind == LANE_VM) {
		stream->stirred = true;
		mappings_event(merge->trace_builder, stream);
	} else if (item->kind == LANE_ITEM_THREAD) {
		char name[16];

		memcpy(name, &item->address, 8);
		memcpy(name + 8, &item->size, 8);
		trace_builder_time(merge->trace_builder, item->time_ns);
		trace_builder_thread(merge->trace_builder, stream, item->tid, name);
	} else if (item->kind == LANE_ITEM_HEAP) {
		trace_builder_heap(stream, item->address, item->detail);
	} else if (item->kind == LANE_ITEM_HEAP_NEW) {
		trace_builder_heap_new(merge->trace_builder, stream, item->address, item->detail);
	} else if (item->kind >= LANE_ITEM_NAME) {
		stream->stirred = true;
		trace_builder_client(merge->trace_builder, stream);
	} else if (!merge->special(merge->context, stream, item)) {
		return false;
	} else if (item->kind == LANE_ITEM_FORK && item->time_ns < merge->last_ns) {
		merge->last_ns = item->time_ns;
	}
	consume(stream);
	return true;
}

// The time up to which a stream may go on. A fork that was delivered meanwhile ends that.
static inline uint64_t at_most(const struct merge *merge, uint64_t limit_ns)
{
	return likely(limit_ns <= merge->last_ns) ? limit_ns : merge->last_ns;
}

// Others come before this item. A fork comes after what has the same time, unless it is the first
// item of all (`count` 0): then the others are forks as well.
static inline bool beyond(const struct lane_item *item, uint64_t limit_ns, size_t count)
{
	return item->time_ns > limit_ns ||
	       (item->time_ns == limit_ns && unlikely(item->kind == LANE_ITEM_FORK) && count > 0);
}

// The second half of the realloc that is the stream's first item, behind what the call asked of the
// kernel in between. NULL: it is not there yet, or not to be told as one with the first.
//
// For example, realloc asks the kernel for memory in between: REALLOC_FREE, VM, REALLOC_ALLOC. The
// VM event is told after the folded realloc then.
static struct lane_item *second_half(const struct merge *merge, struct stream *stream,
				     uint64_t limit_ns)
{
	struct lane_item *first = &stream->items[stream->first];
	struct lane_item *end = &stream->items[stream->inner], *second = first + 1;

	if (likely(first->kind != LANE_REALLOC_FREE))
		return NULL;
	while (second < end && second->kind == LANE_VM)
		second++;
	// Nor is it there for a first half that was pulled in from between the looks.
	if (second >= end || !trace_builder_folds(merge->trace_builder, first, second, limit_ns))
		return NULL;
	// What happened between them may not come from another lane.
	return second->time_ns <= limit_ns || stream->image->mode != IMAGE_TICKS ? second : NULL;
}

// Both halves will be told as one: the second one comes right behind the first.
static void join_halves(struct stream *stream, struct lane_item *second)
{
	struct lane_item *place = &stream->items[stream->first + 1];
	struct lane_item half = *second;

	ASSERT(second >= place && second < &stream->items[stream->end]);
	if (likely(second == place))
		return;
	memmove(place + 1, place, (size_t)(second - place) * sizeof *place);
	*place = half;
}

// ---- A lane alone ---------------------------------------------------------------------------

// Deliver what comes next with times up to `limit_ns` and needs no items. Returns how many items to
// decode behind it.
//
// Each row brings the slots that its lane took over; they are noted here, since no items go through
// consume.
static size_t run_rows(struct merge *merge, struct stream *stream, uint64_t limit_ns)
{
	struct lane_reader_row row;
	size_t count = 0;

	ASSERT(stream->first == stream->inner);
	if (!trace_builder_takes_rows(stream))
		return IMAGE_CHUNK;
	while (image_take_row(stream, limit_ns, &row)) {
		for (size_t i = 0; i < row.owners_count; i++)
			stream_interval_get(stream, row.owners[i].slot)->owner =
				row.owners[i].owner;
		trace_builder_lane_row(merge->trace_builder, stream, &row);
		stream->stirred = true;
		count += row.row.count;
	}
	// Rows stopped at something that needs items: a few will do, since more rows come after
	// them. Where hardly any row was there, items are what the lane consists of.
	return count >= IMAGE_FEW ? IMAGE_FEW : IMAGE_CHUNK;
}

// Deliver the stream's items with times up to `limit_ns`. False: held.
//
// It ends where the time is later than the limit, or the lane has nothing more before the first
// look.
static bool run_alone(struct merge *merge, struct stream *stream, uint64_t limit_ns)
{
	for (size_t count = 0;; count++) {
		struct lane_item *item;
		bool fold = false;
		size_t row;

		limit_ns = at_most(merge, limit_ns);
		if (stream->first == stream->inner &&
		    !image_refill(stream, run_rows(merge, stream, limit_ns)))
			return true;
		row = trace_builder_row(merge->trace_builder, stream, limit_ns);
		stream->first += row;
		count += row;
		stream->stirred |= row > 0;
		if (stream->first == stream->inner)
			continue;
		item = &stream->items[stream->first];
		if (item->kind == LANE_ITEM_ECHO) {
			trace_builder_echo(merge->trace_builder, stream);
			stream->first++;
			continue;
		}
		if (beyond(item, limit_ns, count))
			return true;
		if (unlikely(item->kind == LANE_REALLOC_FREE)) {
			struct lane_item *second = second_half(merge, stream, limit_ns);

			if (second == NULL && image_refill(stream, IMAGE_FEW))
				second = second_half(merge, stream, limit_ns);
			fold = second != NULL;
			if (fold)
				join_halves(stream, second);
		}
		if (!deliver(merge, stream, fold))
			return false;
	}
}

// ---- Lanes that wait for each other ---------------------------------------------------------

// Are both events on the same block? Of a pool, all are: some end all its blocks.
static inline bool same_block(const struct lane_item *one, const struct lane_item *other)
{
	if (lane_item_is_pool(one) || lane_item_is_pool(other))
		return lane_item_is_pool(one) && lane_item_is_pool(other) &&
		       one->pool == other->pool;
	return one->address == other->address;
}

// Does a run have an event on the item's block between the looks? Asked of threads that take turns
// in a slot for thousands of items, so it looks at no more than the run's own stretch of them.
//
// For example, of a run 3 events lie between the looks, at items 40, 52 and 90 of the stream: it
// looks from item 40 on, and is done with the third.
static bool has_outer(const struct stream *stream, uint32_t at, const struct lane_item *item)
{
	const struct slots_run *run = &stream->image->slots.runs[at];
	uint32_t left = run->outer;
	size_t i = stream->inner;

	ASSERT(at != 0);
	// Items are numbered from the stream's beginning; `settled` of them have left the buffer.
	if (left > 0 && run->outer_from > stream->settled + i)
		i = run->outer_from - stream->settled;
	for (; left > 0 && i < stream->end; i++) {
		if (stream->items[i].run != at)
			continue;
		if (same_block(&stream->items[i], item))
			return true;
		left--;
	}
	ASSERT(left == 0);
	return false;
}

// Of two events on one block the later has no earlier time, where times are ticks. So one of a
// later time need not come first; and if it did, what is before it in its lane would come with it,
// a mark perhaps, which is to wait for what other lanes did before.
static inline bool is_later(const struct stream *other, const struct lane_item *item)
{
	return time_of(other) > item->time_ns && other->image->trace_builder->fold_ns > 0;
}

// As blocker, where the slot's first run is another one.
//
// The slot's runs are in the order of their intervals; those before the item's own are gone
// through. A run whose events are all between the looks counts only if one of them is on the same
// block.
static struct stream *find_blocker(struct stream *stream, const struct lane_item *item)
{
	struct slots *slots = &stream->image->slots;
	uint32_t at;

	for (at = slots->first[lane_item_slot(item)]; at != item->run && at != 0;
	     at = slots->runs[at].next) {
		const struct slots_run *run = &slots->runs[at];
		struct stream *other = stream->image->streams[run->lane];

		if (other != stream && !is_later(other, item) &&
		    (run->inner > 0 || has_outer(other, at, item)))
			return other;
	}
	return NULL;
}

// The stream that must go on before `item` of `stream` can be delivered, or NULL.
static inline struct stream *blocker(struct stream *stream, const struct lane_item *item)
{
	if (item->run == 0 || likely(stream->image->slots.first[lane_item_slot(item)] == item->run))
		return NULL;
	return find_blocker(stream, item);
}

// Could the stream's first item, at `now_ns`, be the next one of a row?
static inline bool is_next(struct stream *stream, const struct lane_item *item, uint64_t now_ns)
{
	return trace_builder_is_plain(item, now_ns) && blocker(stream, item) == NULL;
}

// Deliver, as a row, those of the stream's next items that wait for no other stream, up to
// `limit_ns` and to the first look: within a tick any order will do that agrees with the slots'
// owners. False: there is none.
//
// A row is of one stream and one time. The first item that has to wait ends it; with none at all
// the caller makes a step.
static bool run_row(struct merge *merge, struct stream *stream, uint64_t limit_ns)
{
	const struct lane_item *items = &stream->items[stream->first], *item = items;
	const struct lane_item *end = &stream->items[stream->inner];
	uint64_t now_ns = items->time_ns;

	ASSERT(stream->first < stream->end);
	if (now_ns > limit_ns || !trace_builder_takes_rows(stream))
		return false;
	if (end > items + COLUMNS_ROW_MAX)
		end = items + COLUMNS_ROW_MAX;
	while (item < end && is_next(stream, item, now_ns)) {
		if (unlikely(item->kind == LANE_REALLOC_FREE)) {
			const struct lane_item *second = item + 1;

			if (second == end || second->kind != LANE_REALLOC_ALLOC ||
			    !is_next(stream, second, now_ns))
				break;
			consume(stream);
			item = second;
		}
		consume(stream);
		item++;
	}
	if (item == items)
		return false;
	ASSERT(item <= end);
	stream->stirred = true;
	trace_builder_ordered_row(merge->trace_builder, stream, items, (size_t)(item - items));
	return true;
}

// `stream` has to go on before the one that is below it in `pulls`.
static void want(struct merge *merge, struct stream *stream)
{
	ASSERT(!stream->wanted);
	*MEM_ADD(merge->pulls, merge->pulls_count, merge->pulls_capacity) = stream;
	stream->wanted = true;
}

// The innermost wish is fulfilled. Its stream may have another place in the heap now.
//
// What was consumed for the wish has changed its time, or has left it empty.
static void unwant(struct merge *merge)
{
	struct stream *stream = merge->pulls[--merge->pulls_count];

	ASSERT(stream->wanted);
	stream->wanted = false;
	if (merge->pulls_count == 0 || stream->heap_at == 0)
		return;
	if (stream->first == stream->inner)
		heap_remove(merge, stream);
	else
		sift_down(merge, stream->heap_at);
}

static void unwant_all(struct merge *merge)
{
	while (merge->pulls_count > 0)
		unwant(merge);
}

// Streams wait for each other, which no program without a data race on a pointer can bring about
// (or the lanes were overwritten). Count it, and go on with the earliest.
//
// For example, lane 1 waits for lane 2 by slot 5, and lane 2 for lane 1 by slot 9. The one with the
// earlier item goes on without waiting, and the trace has a warning with the count.
static COLD bool break_order(struct merge *merge)
{
	struct stream *earliest = merge->pulls[0];

	ASSERT(merge->pulls_count > 1); // none waits for itself
	for (size_t i = 1; i < merge->pulls_count; i++)
		if (time_of(merge->pulls[i]) < time_of(earliest))
			earliest = merge->pulls[i];
	merge->order_breaks++;
	// The first one is the heap's first and is put right by the caller; so are the others here.
	if (!deliver(merge, earliest, false))
		return false;
	unwant_all(merge);
	return true;
}

// Deliver the next item of `first` or a row, and before it all that it waits for. False: held.
//
// One call delivers one item of `first`, or a row, and as many of other streams as have to be
// before it. It is a loop and not a recursion, as a chain may be as long as there are lanes.
static bool step(struct merge *merge, struct stream *first, uint64_t limit_ns)
{
	bool held = false;

	ASSERT(merge->pulls_count == 0);
	// `pulls` is the way of wishes: first waits for the second, that for the third. The last
	// one goes on; when it has, the one before is asked again, as it may wait for another by
	// now.
	want(merge, first);
	while (merge->pulls_count > 0 && !held) {
		struct stream *stream = merge->pulls[merge->pulls_count - 1];
		struct lane_item *item = &stream->items[stream->first], *second;
		bool fold = false;
		struct stream *other;

		ASSERT(stream->first < stream->end);
		limit_ns = at_most(merge, limit_ns);
		if (run_row(merge, stream, limit_ns)) {
			unwant(merge);
			continue;
		}
		second = second_half(merge, stream, limit_ns);
		other = blocker(stream, item);
		// Halves are told as one only where nothing has to come between them: to wait for
		// that could close a circle through this very item.
		if (other == NULL && second != NULL && blocker(stream, second) == NULL) {
			fold = true;
			join_halves(stream, second);
		}
		if (other == NULL) {
			held = !deliver(merge, stream, fold);
			if (!held)
				unwant(merge);
		} else if (other->wanted) {
			held = !break_order(merge);
		} else {
			want(merge, other);
		}
	}
	unwant_all(merge);
	return !held;
}

// Where any lane may have to wait for any other, each item is a step of its own.
//
// False: held by a special item.
static bool run_together(struct merge *merge, struct stream *stream, uint64_t limit_ns)
{
	// What is pulled on the way changes the heap below us, never to earlier times.
	for (size_t count = 0; stream->first < stream->inner; count++) {
		limit_ns = at_most(merge, limit_ns);
		if (beyond(&stream->items[stream->first], limit_ns, count))
			break;
		if (!step(merge, stream, limit_ns))
			return false;
	}
	return true;
}

// ---- Lanes tick by tick ---------------------------------------------------------------------

// Note the slots that the stream's items touch up to `time_ns`. True if another lane has touched
// one.
//
// touched_add says whether the slot has another lane's mark of this tick; marks of earlier ticks
// are others, so that nothing has to be cleared.
static bool touch(struct image *image, const struct stream *stream, uint64_t time_ns)
{
	uint32_t mark = touched_mark(&image->touched, stream->lane);
	const struct lane_item *item = &stream->items[stream->first];
	const struct lane_item *end = &stream->items[stream->inner];
	bool contested = false;

	ASSERT(stream->first <= stream->inner);
	for (; item < end && item->time_ns <= time_ns; item++)
		if (lane_item_has_slot(item))
			contested |= touched_add(&image->touched, lane_item_slot(item), mark);
	return contested;
}

// What the stream has up to `time_ns` belongs to runs; if asked so, only on slots that two lanes
// touch.
// A run is what one lane does to a slot without another lane in between; only where a run ends
// can there be anything to wait for.
//
// Echoes are expanded before: an echo has events of its own, which runs have to count.
static void add_runs(struct image *image, struct stream *stream, uint64_t time_ns, bool contested)
{
	stream_expand(stream);
	for (size_t i = stream->first; i < stream->inner; i++) {
		const struct lane_item *item = &stream->items[i];

		if (item->time_ns > time_ns)
			return;
		if (lane_item_has_slot(item) && item->run == 0 &&
		    (!contested || touched_is_contested(&image->touched, lane_item_slot(item))))
			stream_add_run(stream, &image->slots, i);
	}
}

// Does the stream have something in the tick `now_ns`?
static bool is_in_tick(const struct stream *stream, uint64_t now_ns)
{
	return stream != NULL && stream->heap_at != 0 && time_of(stream) <= now_ns;
}

// Decode all that the lanes have in the tick; it belongs to runs, as add_runs says.
static void order_tick(struct image *image, bool contested)
{
	ASSERT(image->mode == IMAGE_TICKS);
	image->slots.clashed = false;
	for (uint32_t i = 1; i < image->streams_count; i++) {
		struct stream *stream = image->streams[i];

		if (!is_in_tick(stream, image->tick_ns))
			continue;
		image_refill_past(stream, image->tick_ns);
		add_runs(image, stream, image->tick_ns, contested);
	}
}

// Do two of the lanes that have something in the tick touch one slot there? To find out that they
// do not, which mostly stays so from tick to tick, skimming is enough.
static bool is_contested(struct image *image)
{
	bool contested = false;

	touched_begin(&image->touched);
	for (uint32_t i = 1; i < image->streams_count; i++) {
		struct stream *stream = image->streams[i];

		if (!is_in_tick(stream, image->tick_ns))
			continue;
		if (!image_skim_past(stream, image->tick_ns, &contested))
			image_refill_past(stream, image->tick_ns);
		contested |= touch(image, stream, image->tick_ns);
	}
	return contested;
}

// Of the lanes that have something in the tick `now_ns`, find out whether they have to wait for
// each other there. Where they had to in the tick before, it is not asked first on which slots.
//
// With `clashed` runs were needed for some slot in the last tick: then all slots get runs at once,
// and no question is asked that would be answered by yes.
static void check_tick(struct image *image, uint64_t now_ns)
{
	bool clashed = image->contested && image->slots.clashed;

	ASSERT(image->mode == IMAGE_TICKS);
	image->tick_ns = now_ns;
	image->contested = clashed || is_contested(image);
	if (image->contested)
		order_tick(image, !clashed);
}

// Deliver the first stream's items up to `limit_ns`, the time of the next stream: without care as
// long as it is alone in its tick, or touches nothing in it that others touch. Of two events on one
// address the later has no earlier time, so nothing of a later tick has to come before.
//
// Four cases: an item of the lane of notes; a fork; a tick in which this lane is alone; and a tick
// that several lanes have something in.
static bool run_ticks(struct merge *merge, struct stream *stream, uint64_t limit_ns)
{
	struct image *image = stream->image;
	uint64_t now_ns = time_of(stream);

	ASSERT(image->mode == IMAGE_TICKS);
	if (stream->lane == 0)
		return run_alone(merge, stream, limit_ns);
	if (stream->items[stream->first].kind == LANE_ITEM_FORK) {
		if (!deliver(merge, stream, false))
			return false;
		if (stream->first == stream->inner)
			image_refill(stream, IMAGE_CHUNK);
		return true;
	}
	// Alone up to the next stream's time, and not into it: of a limit of 300 us, up to 299,999
	// ns.
	if (now_ns < limit_ns && now_ns < image->tail_ns)
		return run_alone(merge, stream,
				 (limit_ns < image->tail_ns ? limit_ns : image->tail_ns) - 1);
	if (now_ns < image->tail_ns && image->tick_ns != now_ns)
		check_tick(image, now_ns);
	if (now_ns >= image->tail_ns) {
		image_decode_rest(image);
		merge_add(merge, image);
		return true;
	}
	if (image->contested)
		return run_together(merge, stream, now_ns);
	return run_alone(merge, stream, now_ns);
}

// The heap's first stream goes on as far as the second one's time, so that little is asked of the
// heap where lanes take turns seldom.
bool merge_run(struct merge *merge, uint64_t last_ns)
{
	merge->last_ns = last_ns;
	while (merge->heap_count > 0 && time_of(merge->heap[1]) <= merge->last_ns) {
		struct stream *stream = merge->heap[1];
		uint64_t limit_ns = at_most(merge, second_time(merge));
		bool going;

		ASSERT(stream->heap_at == 1 && stream->first < stream->inner);
		if (stream->image->mode == IMAGE_ALL)
			going = run_together(merge, stream, limit_ns);
		else if (stream->image->mode == IMAGE_TICKS)
			going = run_ticks(merge, stream, limit_ns);
		else
			going = run_alone(merge, stream, limit_ns);
		if (stream->heap_at != 0) {
			if (stream->first == stream->inner)
				heap_remove(merge, stream);
			else
				sift_down(merge, stream->heap_at);
		}
		if (!going)
			return false;
	}
	return true;
}
