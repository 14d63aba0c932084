// How items become events. For example, realloc moves a block of 40 bytes from 0x5010 to 0x9020:
//
//     LANE_REALLOC_FREE   0x5010                } one TRACE_REALLOC: old_address 0x5010,
//     LANE_REALLOC_ALLOC  0x9020, 40, a stack   } address 0x9020, size 40
//
// if both are near enough to each other; else they stay two events, and others may come between.
//
// Most items need no care, and go as rows: arrays that the writer copies into its columns. malloc,
// free and that realloc are three events of which two begin a block and one of these has moved:
// count 3, begun 2, moved 1, and sizes and stacks only of the two. An echo of 1,000 is written as a
// row of its two events and the number 1,000.
#include "collect/trace_builder.h"

#include "base/mem.h"
#include "collect/door.h"
#include "collect/image.h"
#include "trace/columns.h"
#include "wire/compiler.h"

#include <stdio.h>
#include <string.h>

enum { THREAD_AGAIN_NS = 100000000 };

void trace_builder_init(struct trace_builder *trace_builder, struct writer *writer,
			const struct collect_options *options)
{
	ASSERT(writer != NULL && options != NULL);
	memset(trace_builder, 0, sizeof *trace_builder);
	trace_builder->writer = writer;
	trace_builder->options = options;
	trace_builder->free_stacks = options->segment_options & SEGMENT_FREE_STACKS;
	interner_init(&trace_builder->interner, writer);
	language_init(&trace_builder->language, &trace_builder->interner,
		      options->segment_options & SEGMENT_NATIVE);
	trace_builder->scratch = lane_path_scratch_new(&trace_builder->interner);
	trace_builder->scratch->language = &trace_builder->language;
	trace_builder->files = (struct file_table){ .writer = writer };
	trace_builder->code = (struct code_table){ .writer = writer };
}

void trace_builder_fini(struct trace_builder *trace_builder)
{
	lane_path_scratch_free(trace_builder->scratch);
	language_fini(&trace_builder->language);
	interner_fini(&trace_builder->interner);
	file_table_fini(&trace_builder->files);
	code_table_fini(&trace_builder->code);
	map_fini(&trace_builder->hidden);
}

// The trace's time never goes back: an item that is earlier than what was written gets the time of
// that.
uint64_t trace_builder_time(struct trace_builder *trace_builder, uint64_t time_ns)
{
	if (time_ns > trace_builder->now_ns)
		trace_builder->now_ns = time_ns;
	return trace_builder->now_ns;
}

void trace_builder_note(struct trace_builder *trace_builder, enum trace_note_kind kind,
			process_id process, thread_id thread, uint64_t value, const char *text)
{
	struct trace_note note = {
		.kind = (uint8_t)kind,
		.process = process,
		.thread = thread,
		.time_ns = trace_builder->now_ns,
		.value = value,
		.text = text,
	};

	writer_note(trace_builder->writer, &note);
}

bool trace_builder_tell(const struct trace_builder *trace_builder,
			const struct collect_message *message)
{
	return door_tell(trace_builder->options, message);
}

void trace_builder_put(struct trace_builder *trace_builder, const struct trace_event *event)
{
	struct trace_event told = *event;

	ASSERT(event->kind < sizeof trace_builder->kinds / sizeof *trace_builder->kinds);
	trace_builder->kinds[event->kind]++;
	told.stack = interner_tell(&trace_builder->interner, event->stack);
	writer_event(trace_builder->writer, &told);
}

void trace_builder_say(const struct trace_builder *trace_builder, const char *text)
{
	struct collect_message message = { .kind = COLLECT_WARNING };

	snprintf(message.text, sizeof message.text, "%s", text);
	trace_builder_tell(trace_builder, &message);
}

// A warning is a note in the trace, and is said on the terminal as well.
void trace_builder_warn(struct trace_builder *trace_builder, process_id process, const char *text)
{
	trace_builder_note(trace_builder, TRACE_NOTE_MESSAGE, process, TRACE_NONE, 0, text);
	trace_builder_say(trace_builder, text);
}

void trace_builder_unseen(struct trace_builder *trace_builder, process_id process, const char *text)
{
	trace_builder->unseen++;
	trace_builder_note(trace_builder, TRACE_NOTE_EXEC_UNSEEN, process, TRACE_NONE, 0, text);
	trace_builder_say(trace_builder, text);
}

// Is it the thread that was called by this number before? It is if that holds its lane still (a
// signal handler writes into a second one), and if it was seen just now: it lost its lane while
// ending, and allocates once more. The kernel does not use a number again that soon.
//
// The kernel gives thread numbers again, so one number may be two threads; THREAD_AGAIN_NS is a
// tenth of a second.
static bool same_thread(const struct trace_builder *trace_builder, const struct image *image,
			const struct image_thread *thread)
{
	ASSERT(thread->known && thread->lane < SEGMENT_LANES_MAX);
	return atomic_load(&image->share.lanes[thread->lane].tid) == thread->tid ||
	       trace_builder->now_ns - thread->seen_ns < THREAD_AGAIN_NS;
}

// A lane that is taken over by another thread says so by such a record; from there on the stream's
// events are that thread's.
void trace_builder_thread(struct trace_builder *trace_builder, struct stream *stream, uint32_t tid,
			  const char *name)
{
	struct image *image = stream->image;
	struct image_thread *thread = image_thread_put(image, tid);
	char text[16];

	ASSERT(image->process != TRACE_NONE);
	memcpy(text, name, sizeof text);
	text[15] = 0;
	if (!thread->known || !same_thread(trace_builder, image, thread)) {
		thread->id = writer_add_thread(trace_builder->writer, image->process, tid, text);
		thread->known = true;
	} else if (stream->tid == tid && text[0] != 0 && strcmp(stream->name, text) != 0) {
		trace_builder_note(trace_builder, TRACE_NOTE_THREAD_NAME, image->process,
				   thread->id, 0, text);
	}
	thread->lane = stream->lane;
	thread->seen_ns = trace_builder->now_ns;
	ASSERT(thread->known && thread->id != TRACE_NONE);
	stream->thread = thread->id;
	stream->named &= stream->tid == tid;
	stream->tid = tid;
	memcpy(stream->name, text, sizeof text);
}

// Without the lane's own record (it was lost, or comes later) the number in shared memory is taken,
// without a name.
void trace_builder_stream_thread(struct trace_builder *trace_builder, struct stream *stream)
{
	if (likely(stream->thread != TRACE_NONE))
		return;
	trace_builder_thread(trace_builder, stream,
			     atomic_load(&stream->image->share.lanes[stream->lane].tid),
			     (const char[16]){ 0 });
}

static const uint8_t trace_kinds[] = {
	[LANE_MALLOC] = TRACE_MALLOC,
	[LANE_CALLOC] = TRACE_CALLOC,
	[LANE_ALIGNED] = TRACE_ALIGNED,
	[LANE_FREE] = TRACE_FREE,
	[LANE_REALLOC_FREE] = TRACE_REALLOC_FREE,
	[LANE_REALLOC_ALLOC] = TRACE_REALLOC_ALLOC,
	[LANE_REALLOC_UNDO] = TRACE_REALLOC_UNDO,
	[LANE_FAILED] = TRACE_FAILED,
};

// All ones where an event of that kind begins a block of its size.
static const uint64_t gained[16] = {
	[TRACE_MALLOC] = UINT64_MAX,        [TRACE_CALLOC] = UINT64_MAX,
	[TRACE_ALIGNED] = UINT64_MAX,       [TRACE_REALLOC] = UINT64_MAX,
	[TRACE_REALLOC_ALLOC] = UINT64_MAX,
};

// The handle is one of Windows, which has no name, or stands for a heap of a language.
static char *heap_name(const struct stream *stream)
{
	static char names[][16] = { "", "pymem", "pyobject", "zend" };

	return names[stream->handle <= LANE_HEAP_ZEND ? stream->handle : 0];
}

// The heap of the stream's next event. A handle is given again when its heap is gone.
//
// Numbers of heaps are the trace's, from 1 on; `handles` has the one that a handle is now.
static COLD heap_id find_heap(struct trace_builder *trace_builder, struct stream *stream)
{
	struct image *image = stream->image;
	uint64_t *heap = map_put(&image->handles, stream->handle, NULL);

	if (*heap == 0) {
		const struct trace_heap new_one = { .process = image->process,
						    .handle = stream->handle,
						    .name = heap_name(stream) };

		*heap = writer_add_heap(trace_builder->writer, &new_one);
	}
	ASSERT(*heap != 0 && *heap <= UINT32_MAX);
	stream->heaps_gone = image->heaps_gone;
	return (heap_id)*heap;
}

static inline heap_id stream_heap(struct trace_builder *trace_builder, struct stream *stream)
{
	if (likely(stream->handle == 0))
		return 0;
	if (unlikely(stream->heap == 0 || stream->heaps_gone != stream->image->heaps_gone))
		stream->heap = find_heap(trace_builder, stream);
	return stream->heap;
}

// The lane's events are of this heap from here on; `flags` of its calls too.
void trace_builder_heap(struct stream *stream, uint64_t handle, uint32_t flags)
{
	stream->flags = flags;
	if (stream->handle == handle)
		return;
	stream->handle = handle;
	stream->heap = 0;
}

void trace_builder_heap_new(struct trace_builder *trace_builder, struct stream *stream,
			    uint64_t handle, uint32_t flags)
{
	struct image *image = stream->image;
	uint64_t *heap = map_put(&image->handles, handle, NULL);
	const struct trace_heap new_one = { .process = image->process,
					    .handle = handle,
					    .created = true,
					    .flags = flags,
					    .name = (char[1]){ 0 } };

	// Within a tick another thread's first block in it may have come before.
	if (*heap == 0)
		*heap = writer_add_heap(trace_builder->writer, &new_one);
}

// False: the heap was never named, so that it has no blocks and needs no event.
bool trace_builder_heap_gone(struct stream *stream, uint64_t handle, struct trace_event *event)
{
	struct image *image = stream->image;
	uint64_t *heap = map_put(&image->handles, handle, NULL);

	event->heap = (heap_id)*heap;
	*heap = 0;
	image->heaps_gone++;
	if (event->heap == 0)
		return false;
	event->kind = TRACE_HEAP_DESTROY;
	return true;
}

// Can the item go into a row as it is? `ordered`: it is its turn; else it must need no order.
static inline bool is_plain(const struct lane_item *item, uint64_t limit_ns, bool ordered)
{
	return trace_builder_is_plain(item, limit_ns) &&
	       (ordered || (item->run | item->owner) == 0);
}

// Fill `row` with the items from `item` on that are plain and at most of time `limit_ns`. Returns
// their number: the two halves of a realloc are one event. `ordered`: all may come now.
//
// Ends at the first item that is not plain, is later, or has no second half at hand.
static inline size_t fill_row(struct columns_row *row, const struct lane_item *item,
			      const struct lane_item *end, uint64_t limit_ns, bool ordered)
{
	const struct lane_item *first = item;

	for (; row->count < COLUMNS_ROW_MAX && item < end; item++) {
		uint8_t kind;

		if (unlikely(!is_plain(item, limit_ns, ordered)))
			break;
		kind = trace_kinds[item->kind];
		if (unlikely(kind == TRACE_REALLOC_FREE)) {
			const struct lane_item *second = item + 1;

			if (second == end || second->kind != LANE_REALLOC_ALLOC ||
			    !is_plain(second, limit_ns, ordered))
				break;
			kind = TRACE_REALLOC;
			row->old_address[row->moved++] = item->address;
			item = second;
		}
		columns_row_push(row, kind, item->address, item->size, item->stack);
	}
	ASSERT(row->count <= COLUMNS_ROW_MAX && row->begun <= row->count &&
	       row->moved <= row->begun);
	return (size_t)(item - first);
}

// Count what the row has of each kind.
// `counts` has a byte for each kind, as a row has at most 128 events: three mallocs and two frees
// of kinds 1 and 4 are 0x0000000200000300.
static void count_row(struct trace_builder *trace_builder, const struct columns_row *row)
{
	for (unsigned kind = TRACE_MALLOC; kind <= TRACE_REALLOC_ALLOC; kind++)
		trace_builder->kinds[kind] += row->counts >> 8 * kind & 0xff;
	for (uint32_t i = 0; i < row->begun; i++)
		trace_builder->allocated_bytes += row->size[i];
}

// The row is of the stream's next events, at `time_ns`.
static inline void own_row(struct trace_builder *trace_builder, const struct stream *stream,
			   uint64_t time_ns, struct columns_row *row)
{
	row->time_ns = trace_builder_time(trace_builder, time_ns);
	row->thread = stream->thread;
	row->flags = stream->flags;
}

// Its heap is not asked for before it has an event: where the stream's last one is gone, that would
// make a new one, which no call was made on, in the place of the one that is made next.
static inline void put_heap(struct trace_builder *trace_builder, struct stream *stream,
			    struct columns_row *row)
{
	ASSERT(row->count > 0);
	row->heap = stream_heap(trace_builder, stream);
}

bool trace_builder_takes_rows(const struct stream *stream)
{
	return likely(stream->thread != TRACE_NONE && !stream->image->quiet);
}

// The arrays of a row are not cleared: the counts say what of them is used.
static inline void begin_row(struct trace_builder *trace_builder, struct stream *stream,
			     uint64_t time_ns, struct columns_row *row)
{
	row->count = row->begun = row->moved = 0;
	row->counts = 0;
	row->free_stacks = trace_builder->free_stacks;
	own_row(trace_builder, stream, time_ns, row);
}

// Stacks of what is delivered become the trace's.
static inline void tell_stacks(struct trace_builder *trace_builder, stack_id *stacks,
			       uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		stacks[i] = interner_tell(&trace_builder->interner, stacks[i]);
}

static inline void tell_row(struct trace_builder *trace_builder, struct columns_row *row)
{
	if (likely(trace_builder->interner.told == NULL))
		return;
	tell_stacks(trace_builder, row->stack, row->begun);
	if (row->free_stacks)
		tell_stacks(trace_builder, row->free_stack, row->count - row->begun);
}

// An empty row writes nothing, and leaves what was halved as it is.
static void write_row(struct trace_builder *trace_builder, struct stream *stream,
		      struct columns_row *row)
{
	if (row->count == 0)
		return;
	stream->halved = false;
	put_heap(trace_builder, stream, row);
	count_row(trace_builder, row);
	tell_row(trace_builder, row);
	writer_row(trace_builder->writer, row);
}

// Returns the number of items that were taken; 0 leaves the stream's first one for the caller.
size_t trace_builder_row(struct trace_builder *trace_builder, struct stream *stream,
			 uint64_t limit_ns)
{
	const struct lane_item *item = &stream->items[stream->first];
	struct columns_row row;
	size_t items;

	if (!trace_builder_takes_rows(stream) || item->time_ns > limit_ns)
		return 0;
	begin_row(trace_builder, stream, item->time_ns, &row);
	if (row.time_ns < limit_ns)
		limit_ns = row.time_ns;
	items = fill_row(&row, item, &stream->items[stream->inner], limit_ns, false);
	write_row(trace_builder, stream, &row);
	return items;
}

void trace_builder_ordered_row(struct trace_builder *trace_builder, struct stream *stream,
			       const struct lane_item *items, size_t count)
{
	struct columns_row row;
	size_t filled;

	ASSERT(count > 0 && count <= COLUMNS_ROW_MAX);
	begin_row(trace_builder, stream, items->time_ns, &row);
	filled = fill_row(&row, items, items + count, row.time_ns, true);
	ASSERT(filled == count);
	write_row(trace_builder, stream, &row);
}

// Write the last `echoed` events of the row as often as it says.
//
// The row's own copy of the last events, as a row by itself, with the number of times: the writer
// writes both once.
static void echo_row(struct trace_builder *trace_builder, struct stream *stream,
		     const struct lane_reader_row *taken)
{
	const struct columns_row *row = &taken->row;
	struct columns_row_walk walk = { row->count, row->begun, row->moved };
	uint64_t times = taken->echoes;
	struct columns_row part;
	struct trace_event event;

	ASSERT(taken->echoed > 0 && taken->echoed <= row->count && times <= UINT32_MAX);
	while (walk.at > row->count - taken->echoed) {
		uint8_t kind = row->kind[--walk.at];

		walk.begun -= columns_row_begins(kind);
		walk.moved -= kind == TRACE_REALLOC;
	}
	begin_row(trace_builder, stream, row->time_ns, &part);
	while (columns_row_next(row, &walk, &event)) {
		if (event.kind == TRACE_REALLOC)
			part.old_address[part.moved++] = event.old_address;
		columns_row_push(&part, event.kind, event.address, event.size, event.stack);
		trace_builder->kinds[event.kind] += times;
		trace_builder->allocated_bytes += times * event.size;
	}
	put_heap(trace_builder, stream, &part);
	writer_echo(trace_builder->writer, &part, (uint32_t)times);
}

void trace_builder_lane_row(struct trace_builder *trace_builder, struct stream *stream,
			    struct lane_reader_row *row)
{
	ASSERT(row->row.count > 0 && trace_builder_takes_rows(stream));
	own_row(trace_builder, stream, row->row.time_ns, &row->row);
	put_heap(trace_builder, stream, &row->row);
	stream->halved = false;
	count_row(trace_builder, &row->row);
	tell_row(trace_builder, &row->row);
	writer_row(trace_builder->writer, &row->row);
	if (row->echoes > 0)
		echo_row(trace_builder, stream, row);
}

// Is the event one that is left out while its process is quiet? A realloc becomes the end of the
// block that it moved.
//
// True: the event is dropped. While a process is quiet nothing begins, but ends are recorded.
static bool left_out(struct trace_event *event)
{
	if (event->kind == TRACE_REALLOC) {
		event->kind = TRACE_FREE;
		event->address = event->old_address;
		event->old_address = event->size = 0;
		event->stack = 0;
		return false;
	}
	return gained[event->kind] || event->kind == TRACE_FAILED ||
	       event->kind == TRACE_HEAP_ALLOC;
}

// The first time round, a free may end a block that is known; all others end what is left out.
static void quiet_echo(struct trace_builder *trace_builder, struct stream *stream)
{
	const struct lane_item *echo = &stream->items[stream->first];

	for (const struct lane_item *item = echo - 2; item < echo; item++) {
		const struct trace_event event = { .time_ns = trace_builder->now_ns,
						   .address = item->address,
						   .stack = item->stack,
						   .thread = stream->thread,
						   .heap = stream_heap(trace_builder, stream),
						   .kind = TRACE_FREE };

		if (trace_kinds[item->kind] != TRACE_FREE)
			continue;
		trace_builder_put(trace_builder, &event);
	}
}

// An echo repeats the two items before it; both were delivered already, and are still in the
// buffer.
void trace_builder_echo(struct trace_builder *trace_builder, struct stream *stream)
{
	const struct lane_item *echo = &stream->items[stream->first];
	uint64_t times = echo->detail;
	struct columns_row row;

	ASSERT(stream->first >= 2 && echo->kind == LANE_ITEM_ECHO);
	if (unlikely(stream->image->quiet)) {
		quiet_echo(trace_builder, stream);
		return;
	}
	begin_row(trace_builder, stream, trace_builder->now_ns, &row);
	for (const struct lane_item *item = echo - 2; item < echo; item++) {
		uint8_t kind = trace_kinds[item->kind];

		columns_row_push(&row, kind, item->address, item->size, item->stack);
		trace_builder->kinds[kind] += times;
		trace_builder->allocated_bytes += times * (item->size & gained[kind]);
	}
	put_heap(trace_builder, stream, &row);
	tell_row(trace_builder, &row);
	writer_echo(trace_builder->writer, &row, echo->detail);
}

// Does it allocate, or would it have? What failed and asked for nothing is a free.
static bool has_flags(const struct trace_event *event)
{
	bool failed = event->kind == TRACE_REALLOC_UNDO || event->kind == TRACE_REALLOC_FAILED;

	return event->kind != TRACE_FREE && event->kind != TRACE_REALLOC_FREE &&
	       !(failed && event->size == 0);
}

// Its free, which failed, was told before that was known.
static COLD void tell_not_freed(struct trace_builder *trace_builder, const struct stream *stream,
				uint64_t address)
{
	char text[96];

	snprintf(text, sizeof text,
		 "the block at 0x%llx is freed in the trace, but that call failed",
		 (unsigned long long)address);
	trace_builder_warn(trace_builder, stream->image->process, text);
}

// `fold`: this item and the next are one realloc. The halves' addresses are the old and the new
// one; a failed one has only the old.
void trace_builder_event(struct trace_builder *trace_builder, struct stream *stream, bool fold)
{
	const struct lane_item *item = &stream->items[stream->first];
	struct trace_event event = {
		.time_ns = trace_builder_time(trace_builder, item->time_ns),
		.address = item->address,
		.size = item->size,
		.stack = item->stack,
		.kind = trace_kinds[item->kind],
		.align_log2 = item->align_log2,
	};

	ASSERT(item->kind <= LANE_FAILED && stream->first + fold < stream->end);
	trace_builder_stream_thread(trace_builder, stream);
	if (fold) {
		item++;
		event.kind = item->kind == LANE_REALLOC_ALLOC ? TRACE_REALLOC
							      : TRACE_REALLOC_FAILED;
		event.old_address = event.kind == TRACE_REALLOC ? event.address : 0;
		event.address = item->address;
		event.size = item->size;
		event.stack = item->stack;
	}
	event.thread = stream->thread;
	event.heap = stream_heap(trace_builder, stream);
	event.flags = has_flags(&event) ? stream->flags : 0;
	if (unlikely(event.kind == TRACE_REALLOC_UNDO && !stream->halved)) {
		tell_not_freed(trace_builder, stream, event.address);
		event.kind = TRACE_FAILED;
		event.address = 0;
	}
	stream->halved = event.kind == TRACE_REALLOC_FREE;
	if (unlikely(stream->image->quiet) && left_out(&event))
		return;
	trace_builder->allocated_bytes += event.size & gained[event.kind];
	trace_builder_put(trace_builder, &event);
}

static void name_thread(struct trace_builder *trace_builder, struct stream *stream,
			const struct lane_item *item)
{
	char name[16];

	memcpy(name, &item->address, 8);
	memcpy(name + 8, &item->size, 8);
	name[15] = 0;
	memcpy(stream->name, name, sizeof name);
	stream->named = true;
	trace_builder_note(trace_builder, TRACE_NOTE_THREAD_NAME, stream->image->process,
			   stream->thread, 0, name);
}

// Pools are heaps of the trace, which are named when their first event comes.
void trace_builder_client(struct trace_builder *trace_builder, struct stream *stream)
{
	static const uint8_t kinds[] = {
		[LANE_POOL_ALLOC] = TRACE_HEAP_ALLOC,
		[LANE_POOL_FREE] = TRACE_HEAP_FREE,
		[LANE_POOL_RESET] = TRACE_HEAP_RESET,
		[LANE_POOL_DESTROY] = TRACE_HEAP_DESTROY,
	};
	const struct lane_item *item = &stream->items[stream->first];
	struct image *image = stream->image;
	struct trace_event event = {
		.time_ns = trace_builder_time(trace_builder, item->time_ns),
		.address = item->address,
		.size = item->size,
		.stack = item->stack,
	};

	trace_builder_stream_thread(trace_builder, stream);
	ASSERT(item->kind == LANE_ITEM_NAME || lane_item_is_pool(item));
	if (item->kind == LANE_ITEM_NAME) {
		name_thread(trace_builder, stream, item);
		return;
	}
	event.kind = kinds[item->kind - LANE_ITEM_POOL];
	event.thread = stream->thread;
	if (unlikely(image->quiet) && left_out(&event))
		return;
	event.heap = pools_heap(&image->pools, item->pool, image->process, trace_builder->writer);
	trace_builder_put(trace_builder, &event);
}

// A realloc ends one block and begins another; one that failed does neither.
void trace_builder_sum(const struct trace_builder *trace_builder, struct collect_summary *summary)
{
	const uint64_t *kinds = trace_builder->kinds;

	*summary = (struct collect_summary){
		.processes = trace_builder->processes_count,
		.forked = trace_builder->forked_count,
		.allocations = kinds[TRACE_MALLOC] + kinds[TRACE_CALLOC] + kinds[TRACE_ALIGNED] +
			       kinds[TRACE_REALLOC] + kinds[TRACE_REALLOC_ALLOC],
		.frees = kinds[TRACE_FREE] + kinds[TRACE_REALLOC] + kinds[TRACE_REALLOC_FREE] -
			 kinds[TRACE_REALLOC_UNDO],
		.allocated_bytes = trace_builder->allocated_bytes,
	};
	for (size_t i = 0; i < sizeof trace_builder->kinds / sizeof *kinds; i++)
		summary->events += kinds[i];
}
