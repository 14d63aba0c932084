// Two looks at a lane's head. For example, a lane was read up to byte 4,000. The first look finds
// the head at 4,096, the second, a moment later, at 4,200:
//
//     4,000 .. 4,096    to be delivered in this pass
//     4,096 .. 4,200    in the next one, unless something of this pass has to wait for it
//
// With IMAGE_TICKS the second part is not even decoded. Its time is what its first record says
// (note_tail), 7,300 ns for example: up to there nothing in it can matter, and lanes go on tick by
// tick. Where the order comes to that time, all that was seen is decoded (image_decode_rest).
//
// A ring holds the last so many bytes. A head that is further than that from what was read was
// written by a guest that has overwritten itself, or its memory: the lane is given up, and its tail
// follows its head, so that no thread waits for room.
#include "collect/image.h"

#include "base/mem.h"
#include "collect/notes_reader.h"
#include "collect/peer.h"
#include "trace/snapshot.h"
#include "wire/compiler.h"

#include <string.h>

enum { LANES_USUAL = 16 };
static const uint64_t TITLE_NS = 10000000000; // between two looks, at most

// The arrival is the image's from here on.
struct image *image_new(struct door_arrival *arrival, struct trace_builder *trace_builder)
{
	struct image *image = mem_alloc(1, sizeof *image);

	image->id = arrival->image;
	image->pid = arrival->pid;
	image->pid_unsure = arrival->pid_unsure;
	image->process = TRACE_NONE;
	image->trace_builder = trace_builder;
	image->arrival = arrival;
	image->share = arrival->share;
	frame_map_init(&image->frames, trace_builder->writer, image->share.segment,
		       image->share.frames);
	image->frames.code = &trace_builder->code;
	image->frames.language = &trace_builder->language;
	image->frames.now_ns = &trace_builder->now_ns;
	image->frames.tag = edit_cache_tag(&trace_builder->scratch->edits);
	return image;
}

static void free_streams(struct image *image)
{
	for (uint32_t i = 0; i < image->streams_count; i++) {
		if (image->streams[i] == NULL)
			continue;
		share_unmap_ring(image->streams[i]->ring, i);
		stream_free(image->streams[i]);
	}
	mem_free(image->streams);
	image->streams = NULL;
	image->streams_count = 0;
}

// Names of marks are the image's own.
static void free_events(struct image *image)
{
	for (size_t i = 0; i < image->events_count; i++)
		mem_free(image->events[i].name);
	mem_free(image->events);
	image->events = NULL;
	image->events_count = 0;
}

// Nothing writes to its segment any more. One that was looked for in vain had ended, if its number
// was known.
static bool is_surely_over(const struct image *image)
{
	return image->exited && (!image->pid_unsure || image->arrival->hello.pid != 0);
}

// Rings of `share` for the lanes that are read, mapped twice where the others are or where there
// is no plain one. False: one cannot be mapped.
static bool map_rings(const struct image *image, const struct share *share, const uint8_t **rings)
{
	for (uint32_t i = 0; i < image->streams_count; i++) {
		const struct stream *stream = image->streams[i];

		if (stream == NULL || (stream->ring == NULL && share_plain_ring(share, i) != NULL))
			continue;
		rings[i] = share_map_ring(share, i);
		if (rings[i] == NULL)
			return false;
	}
	return true;
}

// All that points into the spare points into the copy from then on.
bool image_leave_spare(struct image *image)
{
	const uint8_t **rings;
	struct share copy;
	struct err err;

	ASSERT(image->arrival->spare != NULL && !image->left_spare);
	if (image->spares == NULL || !is_surely_over(image) ||
	    !share_copy(&copy, &image->share, &err))
		return false;
	rings = mem_alloc(image->streams_count + 1, sizeof *rings);
	image->left_spare = map_rings(image, &copy, rings);
	for (uint32_t i = 0; i < image->streams_count; i++) {
		struct stream *stream = image->streams[i];

		if (!image->left_spare || stream == NULL) {
			share_unmap_ring(rings[i], i);
			continue;
		}
		share_unmap_ring(stream->ring, i);
		stream->ring = rings[i];
		stream->reader.ring = rings[i] != NULL ? rings[i] : share_plain_ring(&copy, i);
	}
	mem_free(rings);
	if (!image->left_spare) {
		share_close(&copy);
		return false;
	}
	frame_map_move(&image->frames, copy.segment, copy.frames);
	spares_release(image->spares, image->arrival->spare, true);
	image->arrival->spare = NULL;
	image->arrival->share = image->share = copy;
	return true;
}

// What a late child may inherit stays: numbers of frames, modules and pools. Lanes, memory and
// descriptors go.
void image_close(struct image *image)
{
	if (image->arrival == NULL)
		return;
	if (image->begun)
		frame_map_detach(&image->frames);
	free_streams(image);
	free_events(image);
	code_lists_close(&image->code_lists);
	hidden_allocator_fini(&image->hidden);
	slots_fini(&image->slots);
	touched_fini(&image->touched);
	str_fini(&image->title);
	mem_free(image->threads);
	image->threads = NULL;
	mem_free(image->files);
	image->files = NULL;
	for (size_t i = 0; i < image->lists_count; i++)
		str_fini(&image->lists[i].text);
	mem_free(image->lists);
	image->lists = NULL;
	image->lists_count = image->lists_capacity = 0;
	mem_free(image->own);
	image->own = NULL;
	image->own_count = image->own_capacity = 0;
	snapshot_fini(&image->look);
	image->look_open = false;
	MEM_FREE(image->exec.path, image->vfork_exec.path);
	if (image->arrival->spare != NULL && image->spares != NULL) {
		spares_release(image->spares, image->arrival->spare, is_surely_over(image));
		memset(&image->arrival->share, 0, sizeof image->arrival->share);
	}
	memset(&image->share, 0, sizeof image->share);
	door_arrival_free(image->arrival);
	image->arrival = NULL;
}

void image_free(struct image *image)
{
	if (image == NULL)
		return;
	image->begun = false;
	image_close(image);
	frame_map_fini(&image->frames);
	pools_fini(&image->pools);
	map_fini(&image->handles);
	mem_free(image);
}

// The lane's reader goes on in a ring that is mapped twice. False: it cannot be mapped (no memory,
// or addresses).
static bool map_twice(struct stream *stream)
{
	ASSERT(stream->ring == NULL);
	stream->ring = share_map_ring(&stream->image->share, stream->lane);
	if (stream->ring == NULL)
		return false;
	stream->reader.ring = stream->ring;
	return true;
}

// NULL: its ring cannot be mapped; it is tried again the next time.
struct stream *image_stream(struct image *image, uint32_t lane)
{
	const uint8_t *plain;
	struct stream *stream;

	ASSERT(lane < SEGMENT_LANES_MAX);
	if (lane >= image->streams_count) {
		uint32_t before = image->streams_count;
		uint32_t count = before > 0 ? before : LANES_USUAL;

		while (count <= lane)
			count *= 2;
		image->streams = mem_resize(image->streams, count, sizeof *image->streams);
		memset(image->streams + before, 0, (count - before) * sizeof *image->streams);
		image->streams_count = count;
	}
	ASSERT(lane < image->streams_count);
	stream = image->streams[lane];
	if (stream != NULL)
		return stream;
	stream = stream_new(image, lane);
	plain = share_plain_ring(&image->share, lane);
	lane_reader_init(&stream->reader, plain, segment_ring_bytes(lane), &image->frames,
			 image->trace_builder->scratch, image->trace_builder->free_stacks);
	if (plain == NULL && !map_twice(stream)) {
		stream_free(stream);
		return NULL;
	}
	image->streams[lane] = stream;
	return stream;
}

// What was delivered of it stays. At least one event is lost, which makes the trace incomplete; how
// many there were cannot be known, so one is counted.
void image_break_lane(struct stream *stream)
{
	struct trace_builder *trace_builder = stream->image->trace_builder;

	stream->reader.broken = true;
	stream->mourned = true;
	trace_builder->events_lost++;
	trace_builder_note(trace_builder, TRACE_NOTE_LOSS, stream->image->process, stream->thread,
			   1, "a thread's lane was overwritten: its further events are lost");
}

// From here on the thread may write over what was read.
static void publish_tail(struct stream *stream, uint64_t tail)
{
	atomic_store_explicit(&stream->image->share.lanes[stream->lane].tail, tail,
			      memory_order_release);
}

// The lane's head. In a broken lane everything is read at once, so that no writer waits for room.
//
// A distance of more than the ring from what was read cannot come about: a thread waits before
// that.
static uint64_t look_at(struct stream *stream)
{
	struct lane_shared *lane = &stream->image->share.lanes[stream->lane];
	uint64_t head = atomic_load_explicit(&lane->head, memory_order_acquire);

	if (likely(!stream->reader.broken) &&
	    unlikely(head - stream->reader.at > segment_ring_bytes(stream->lane)))
		image_break_lane(stream);
	if (unlikely(stream->reader.broken)) {
		publish_tail(stream, head);
		return stream->reader.at;
	}
	// Beyond the end of the ring for the first time. If it cannot be mapped now, nothing new is
	// seen, and it is tried again at the next look.
	if (unlikely(head > segment_ring_bytes(stream->lane) && stream->ring == NULL) &&
	    !map_twice(stream))
		return stream->reader.at;
	return head;
}

// The guest's number, and so checked: it may write anything there.
static uint32_t lanes_used(const struct image *image)
{
	uint32_t count =
		atomic_load_explicit(&image->share.segment->lanes_count, memory_order_acquire);

	return count < SEGMENT_LANES_MAX ? count : SEGMENT_LANES_MAX;
}

// Lane `lane`'s stream, if the lane was ever used.
//
// A lane that nothing was written to yet costs no mapping.
static struct stream *used_stream(struct image *image, uint32_t lane)
{
	struct stream *stream = lane < image->streams_count ? image->streams[lane] : NULL;

	if (stream == NULL &&
	    atomic_load_explicit(&image->share.lanes[lane].head, memory_order_relaxed) != 0)
		stream = image_stream(image, lane);
	return stream;
}

void image_look_at_notes(struct image *image)
{
	image->noted = atomic_load_explicit(&image->share.lanes[0].head, memory_order_acquire);
	image->late = false;
}

// The first look: what is before `cut` is for this pass.
void image_look(struct image *image)
{
	uint32_t count = lanes_used(image);

	for (uint32_t i = 1; i < count; i++) {
		struct stream *stream = used_stream(image, i);

		if (stream != NULL)
			stream->cut = look_at(stream);
	}
}

// A lane that is alone needs no order at all; with two busy ones it is asked tick by tick, or for
// all events where each has a time of its own.
uint64_t image_look_again(struct image *image)
{
	uint32_t count = lanes_used(image);
	uint32_t busy = 0;
	uint64_t between = 0;

	for (uint32_t i = 1; i < count; i++) {
		struct stream *stream = used_stream(image, i);

		if (stream == NULL)
			continue;
		stream->seen = look_at(stream);
		if (stream->cut > stream->seen) // it cannot be read any more, or not now
			stream->cut = stream->seen;
		if (stream->cut < stream->reader.at)
			stream->cut = stream->reader.at;
		between += stream->seen - stream->cut;
		busy += stream->seen != stream->reader.at || stream->first != stream->end;
	}
	// Where each event has its own time, two readings can be out of order by a little.
	image->mode = IMAGE_ALONE;
	if (busy > 1)
		image->mode = image->trace_builder->fold_ns > 0 ? IMAGE_TICKS : IMAGE_ALL;
	image->tail_ns = image->tick_ns = UINT64_MAX;
	// What the lanes refer to was noted before, so it is seen after.
	image_read_notes(image);
	return between;
}

// They are read in full each time, before any event that needs them.
void image_read_notes(struct image *image)
{
	struct stream *notes = image_stream(image, 0);

	image->notes_read = true;
	if (notes == NULL)
		return;
	stream_settle(notes);
	notes_reader_read(image, notes, look_at(notes));
	publish_tail(notes, notes->reader.at);
}

// Decode up to `limit`.
static void fill(struct stream *stream, uint64_t limit, size_t max)
{
	stream_fill(stream, limit, max);
	if (unlikely(stream->reader.broken && !stream->mourned))
		image_break_lane(stream);
}

// The lane's time at the cut is `time_ns`: what it has between the looks may have to come before
// what others have before them.
//
// Only the first record between the looks is read, for its time.
static void note_tail(struct stream *stream, uint64_t time_ns)
{
	struct image *image = stream->image;
	uint64_t next_ns;

	if (stream->seen == stream->cut || stream->reader.broken)
		return;
	next_ns = lane_reader_time_at(&stream->reader, stream->cut, time_ns);
	if (next_ns < image->tail_ns)
		image->tail_ns = next_ns;
}

// Decode the next part up to the cut, behind what there is. False: there was nothing.
//
// Echoes only here: where items need runs, each event has to be an item.
static bool fill_on(struct stream *stream, size_t max)
{
	size_t before = stream->end;

	ASSERT(stream->image->mode != IMAGE_ALL && stream->lane != 0);
	stream->reader.echoes = true;
	fill(stream, stream->cut, max);
	stream->reader.echoes = false;
	stream->inner = stream->end;
	publish_tail(stream, stream->reader.at);
	if (stream->end > before)
		return true;
	note_tail(stream, stream->reader.time_ns);
	return false;
}

// The lane of notes is read by image_read_notes, never here.
bool image_refill(struct stream *stream, size_t max)
{
	if (stream->image->mode == IMAGE_ALL || stream->lane == 0)
		return false;
	stream_settle(stream);
	return fill_on(stream, max);
}

// Only with no items in the stream: a row comes after them in the lane.
bool image_take_row(struct stream *stream, uint64_t limit_ns, struct lane_reader_row *row)
{
	struct lane_reader *reader = &stream->reader;
	bool taken;

	if (stream->image->mode == IMAGE_ALL || stream->lane == 0 || stream->first != stream->end)
		return false;
	taken = stream_take_row(stream, stream->cut, limit_ns, row);
	if (unlikely(reader->broken && !stream->mourned))
		image_break_lane(stream);
	publish_tail(stream, reader->at);
	return taken;
}

void image_refill_past(struct stream *stream, uint64_t time_ns)
{
	ASSERT(stream->image->mode == IMAGE_TICKS && stream->first < stream->end);
	// Tick behind tick would otherwise get a place of its own in memory.
	if (stream->first >= IMAGE_CHUNK)
		stream_settle(stream);
	while (stream->items[stream->end - 1].time_ns <= time_ns)
		if (!fill_on(stream, IMAGE_CHUNK))
			return;
}

// Barriers (a fork, a mark at a byte of the lane) are items, so that a lane with one is decoded.
bool image_skim_past(struct stream *stream, uint64_t time_ns, bool *contested)
{
	enum lane_reader_skimmed skimmed;
	uint64_t end_ns;

	ASSERT(stream->image->mode == IMAGE_TICKS && stream->first < stream->end);
	if (stream->items[stream->end - 1].time_ns > time_ns)
		return true;
	if (stream->barriers != NULL || stream->lane == 0)
		return false;
	skimmed = lane_reader_skim(&stream->reader, stream->cut, time_ns, &stream->image->touched,
				   stream->lane, &end_ns);
	if (skimmed == LANE_READER_ALONE_TO_LIMIT)
		note_tail(stream, end_ns);
	*contested |= skimmed == LANE_READER_CONTESTED;
	return skimmed != LANE_READER_UNSURE;
}

// Everything that was seen, and which of it waits for what.
//
// Three stretches: what is left from before, up to the first look, and between the looks. Only the
// last is `outer` to runs.
static void decode_all(struct image *image, struct stream *stream)
{
	size_t from;

	ASSERT(image->mode == IMAGE_ALL && stream->lane != 0);
	stream_expand(stream);
	stream_add_runs(stream, &image->slots, stream->first, true);
	from = stream->end;
	fill(stream, stream->cut, SIZE_MAX / 2);
	stream_add_runs(stream, &image->slots, from, true);
	stream->inner = from = stream->end;
	fill(stream, stream->seen, SIZE_MAX / 2);
	stream_add_runs(stream, &image->slots, from, false);
	publish_tail(stream, stream->reader.at);
}

void image_decode_rest(struct image *image)
{
	ASSERT(image->mode == IMAGE_TICKS);
	image->mode = IMAGE_ALL;
	for (uint32_t i = 1; i < image->streams_count; i++) {
		struct stream *stream = image->streams[i];

		if (stream != NULL)
			decode_all(image, stream);
	}
}

// In the two cheaper modes a few items are enough to begin with: the merge asks for more
// (image_refill, image_take_row).
void image_decode(struct image *image)
{
	for (uint32_t i = 1; i < image->streams_count; i++) {
		struct stream *stream = image->streams[i];

		if (stream == NULL)
			continue;
		stream_settle(stream);
		// What was seen of a lane alone beyond the first look stays: another lane may have
		// published what comes before it just after it was looked at for the second time.
		// So does what is for this pass because the image was late.
		stream_promote(stream, &image->slots);
		if (image->mode == IMAGE_ALL) {
			decode_all(image, stream);
			continue;
		}
		// A run that reaches into later ticks would pull the lane through them.
		stream_drop_runs(stream, &image->slots);
		if (stream->first == stream->end)
			image_refill(stream, IMAGE_FEW);
	}
}

bool image_lanes_drained(const struct image *image)
{
	for (uint32_t i = 1; i < image->streams_count; i++) {
		const struct stream *stream = image->streams[i];

		if (stream == NULL)
			continue;
		if (stream->first != stream->end)
			return false;
		if (!stream->reader.broken && stream->reader.at != stream->seen)
			return false;
	}
	return true;
}

// An exec is announced before it is made, and taken back where it fails. One into a program that is
// not recorded is followed by no hello: the process goes on for hours, with another's memory.
bool image_is_there(const struct image *image)
{
	return !image->final && !image->replaced && image->exec.path == NULL;
}

// Of lanes too that were never looked at.
bool image_lanes_read_out(const struct image *image)
{
	uint32_t count = lanes_used(image);

	for (uint32_t i = 0; i < count; i++) {
		const struct stream *stream = i < image->streams_count ? image->streams[i] : NULL;
		uint64_t head =
			atomic_load_explicit(&image->share.lanes[i].head, memory_order_acquire);

		if (stream == NULL ? head != 0
				   : !stream->reader.broken && stream->reader.at != head)
			return false;
	}
	return image_lanes_drained(image);
}

bool image_drained(const struct image *image)
{
	const struct stream *notes = image->streams_count > 0 ? image->streams[0] : NULL;

	return image_lanes_drained(image) && (notes == NULL || notes->first == notes->end);
}

// Open addressing by the thread's number (Knuth's multiplier); at most half full.
static struct image_thread *thread_place(struct image_thread *threads, size_t capacity,
					 uint32_t tid)
{
	size_t at = tid * 2654435761u & (capacity - 1);

	while (threads[at].tid != 0 && threads[at].tid != tid)
		at = (at + 1) & (capacity - 1);
	return &threads[at];
}

static void grow_threads(struct image *image)
{
	size_t capacity = image->threads_capacity > 0 ? image->threads_capacity * 2 : 16;
	struct image_thread *threads = mem_alloc(capacity, sizeof *threads);

	ASSERT(capacity > image->threads_count && (capacity & (capacity - 1)) == 0);
	for (size_t i = 0; i < image->threads_capacity; i++)
		if (image->threads[i].tid != 0)
			*thread_place(threads, capacity, image->threads[i].tid) = image->threads[i];
	mem_free(image->threads);
	image->threads = threads;
	image->threads_capacity = capacity;
}

struct image_thread *image_thread_put(struct image *image, uint32_t tid)
{
	struct image_thread *thread;

	if (tid == 0) // garbage, or a lane that was left: a number that no thread has
		tid = UINT32_MAX;
	if (image->threads_count * 2 >= image->threads_capacity)
		grow_threads(image);
	thread = thread_place(image->threads, image->threads_capacity, tid);
	if (thread->tid == 0) {
		thread->tid = tid;
		image->threads_count++;
	}
	ASSERT(thread->tid == tid && image->threads_count < image->threads_capacity);
	return thread;
}

// One that is of a lane becomes a barrier there, and is an item when the lane has been read up to
// `head`. One of lane 0, or of a lane that cannot be mapped, is an item of the notes.
struct image_event *image_event_add(struct image *image, uint8_t kind, uint64_t time_ns,
				    uint32_t tid, uint32_t lane, uint64_t head)
{
	uint32_t detail = (uint32_t)image->events_count;
	struct image_event *event;
	struct stream *stream;

	event = MEM_ADD(image->events, image->events_count, image->events_capacity);
	*event = (struct image_event){ .tid = tid, .lane = lane, .head = head };
	image->events_waiting++;
	ASSERT(image->events_waiting <= image->events_count);
	stream = image_stream(image, 0);
	image->late |= stream != NULL && stream->reader.at >= image->noted;
	stream = lane < SEGMENT_LANES_MAX ? image_stream(image, lane) : NULL;
	if (lane != 0 && stream != NULL) {
		stream_add_barrier(stream, kind, head, time_ns, detail);
	} else {
		struct lane_item *item;

		stream = image_stream(image, 0);
		if (stream == NULL)
			return event;
		item = stream_push(stream);
		item->kind = kind;
		item->detail = detail;
		item->time_ns = time_ns;
		stream->inner = stream->end;
	}
	return event;
}

// The end is an item too, so that it comes in the order of time among the others' events.
void image_place_end(struct image *image, uint64_t time_ns)
{
	struct stream *stream = image_stream(image, 0);
	struct lane_item *item;

	ASSERT(!image->end_placed && image->exited);
	image->end_placed = true;
	if (stream == NULL)
		return;
	item = stream_push(stream);
	item->kind = LANE_ITEM_END;
	item->time_ns = time_ns;
	stream->inner = stream->end;
}

void image_event_pass(struct image *image, struct image_event *event)
{
	ASSERT(!event->passed && image->events_waiting > 0);
	ASSERT(event >= image->events && event < image->events + image->events_count);
	event->passed = true;
	mem_free(event->name);
	event->name = NULL;
	if (--image->events_waiting == 0)
		image->events_count = 0;
}

static void add_args(struct str *text, char *const *args, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		str_format(text, "%s%s", i ? " " : "", args[i]);
	// nginx fills the rest of them with blanks, others with NULs.
	while (text->length > 0 && text->text[text->length - 1] == ' ')
		text->text[--text->length] = '\0';
}

static void note_title(struct image *image)
{
	ASSERT(image->begun);
	if (image->title_new)
		trace_builder_note(image->trace_builder, TRACE_NOTE_TITLE, image->process,
				   TRACE_NONE, 0, str_get(&image->title));
	image->title_new = false;
}

// One whose number is not sure has another's arguments. None at all has a process that has ended.
static void read_title(struct image *image)
{
	struct str text = { 0 };
	uint32_t count;
	char **args;

	if (image->pid_unsure)
		return;
	args = peer_args(image->pid, &count);
	add_args(&text, args, count);
	mem_free(args);
	if (image->title.length == 0)
		add_args(&image->title, image->arrival->args, image->arrival->args_count);
	if (text.length == 0 || strcmp(str_get(&text), str_get(&image->title)) == 0) {
		str_fini(&text);
		return;
	}
	str_fini(&image->title);
	image->title = text;
	image->title_new = true;
}

// For example at 0.1 s after its beginning, 0.2, 0.4 and so on, and each 10 s in the end.
void image_look_title(struct image *image, uint64_t now_ns)
{
	uint64_t age_ns = now_ns - image->arrival->time_ns;

	note_title(image);
	if (now_ns < image->title_ns)
		return;
	image->title_ns = now_ns + (age_ns < TITLE_NS ? age_ns : TITLE_NS);
	read_title(image);
}

void image_end_title(struct image *image, bool running)
{
	if (running)
		read_title(image);
	note_title(image);
}

// A thread number is exchanged only if it is still the one that was asked about.
bool image_sweep(struct image *image)
{
	struct segment *segment = image->share.segment;
	uint32_t count;

	if (segment == NULL || atomic_load(&segment->sweep) == 0)
		return false;
	count = atomic_load(&segment->lanes_count);
	// In another namespace its threads have other numbers.
	for (uint32_t i = 1; i < count && i < SEGMENT_LANES_MAX; i++) {
		_Atomic uint32_t *tid = &image->share.lanes[i].tid;
		uint32_t was = atomic_load(tid);

		if (image->pid == image->arrival->hello.pid && was != 0 && was != INT32_MAX &&
		    !peer_thread_lives(image->pid, was))
			atomic_compare_exchange_strong(tid, &was, 0);
	}
	atomic_store(&segment->sweep, 0);
	return true;
}
