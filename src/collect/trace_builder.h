// trace_builder: what all parts of the collector write into: the trace, and the launcher's ear.
//
// It keeps the time from falling, counts, and turns items into the trace's events. One thread.
#pragma once

#include "collect/code_table.h"
#include "collect/collect_types.h"
#include "collect/file_table.h"
#include "collect/interner.h"
#include "collect/lane_path.h"
#include "collect/language.h"
#include "collect/stream.h"
#include "trace/writer.h"

struct trace_builder {
	struct writer *writer;
	struct interner interner;
	struct language language;
	struct lane_path_scratch *scratch;
	uint64_t now_ns;  // time of the last item
	uint64_t fold_ns; // halves of a realloc this near to each other become one
	const struct collect_options *options; // borrowed
	bool free_stacks;
	struct file_table files;
	struct code_table code;
	struct map hidden;                      // hidden_allocator_look's
	uint64_t kinds[64];                     // events by enum trace_kind
	uint64_t allocated_bytes;               // asked for
	uint64_t processes_count, forked_count; // images; of them, those that a fork made
	uint64_t events_lost;
	uint32_t losses_said; // reasons for which the user knows of some, a bit each
	// From the segments of images that are over: how long their threads waited for room in a
	// lane; stacks that are not proven to reach the root; those that were walked twice, and of
	// them those whose two walks differ.
	uint64_t waited_ns;
	uint64_t stacks_incomplete;
	uint64_t stacks_verified, stacks_mismatched;
	uint64_t unsearched; // processes that a signal has ended before their memory was searched
	uint64_t forks_late; // children whose place in the parent's order is not known
	uint64_t stillborn;  // children that ended before they said hello
	uint64_t unseen;     // programs and processes that began and are not recorded
	uint64_t stopped_ns; // when the recording was ended while programs ran; 0: it was not
	uint64_t unbegun;    // programs that had not said hello by then
};

// `writer` and `options` are borrowed until trace_builder_fini.
void trace_builder_init(struct trace_builder *trace_builder, struct writer *writer,
			const struct collect_options *options);
void trace_builder_fini(struct trace_builder *trace_builder); // the writer stays the caller's

// Time moves on to `time_ns`, if that is later. Returns the time now. An earlier one is the trace's
// as it is: no item has an earlier time than the one before.
uint64_t trace_builder_time(struct trace_builder *trace_builder, uint64_t time_ns);

// A note at the present place. `text` is copied.
void trace_builder_note(struct trace_builder *trace_builder, enum trace_note_kind kind,
			process_id process, thread_id thread, uint64_t value, const char *text);

// Count the event and write it. Its stack is as it was decoded, and becomes the trace's.
void trace_builder_put(struct trace_builder *trace_builder, const struct trace_event *event);

// One line for the user, by a message to the launcher; and the same with a note in the trace.
void trace_builder_say(const struct trace_builder *trace_builder, const char *text);
void trace_builder_warn(struct trace_builder *trace_builder, process_id process, const char *text);

// A program or a process that began below `process` and is not recorded, and why: the trace is not
// complete.
void trace_builder_unseen(struct trace_builder *trace_builder, process_id process,
			  const char *text);

// Tell the launcher something. True if it listens.
bool trace_builder_tell(const struct trace_builder *trace_builder,
			const struct collect_message *message);

// The thread of `stream`'s next events is `tid`, called `name` (16 bytes). A new thread of the
// trace, unless it is known under this number and holds its lane still, or was seen a tenth of a
// second ago: the system gives numbers again.
void trace_builder_thread(struct trace_builder *trace_builder, struct stream *stream, uint32_t tid,
			  const char *name);

// Whose the stream's events are, if that is not known yet: whoever holds the lane now.
void trace_builder_stream_thread(struct trace_builder *trace_builder, struct stream *stream);

// Write the stream's first item, an event. With `fold`, it and the one after it as one.
void trace_builder_event(struct trace_builder *trace_builder, struct stream *stream, bool fold);

// Write as many of the stream's first items as are at most of time `limit_ns` and plain: events
// that begin or end a block, each alone, or both halves of a realloc. Returns their number; they
// stay the stream's.
size_t trace_builder_row(struct trace_builder *trace_builder, struct stream *stream,
			 uint64_t limit_ns);

// What goes into rows, as bits of enum lane_type. A realloc's first half does with its second, if
// that is there.
enum {
	TRACE_BUILDER_ROW_KINDS = 1 << LANE_MALLOC | 1 << LANE_CALLOC | 1 << LANE_FREE |
				  1 << LANE_REALLOC_FREE | 1 << LANE_REALLOC_ALLOC,
};

// Can the item go into a row whose events are at most of time `limit_ns`?
static inline bool trace_builder_is_plain(const struct lane_item *item, uint64_t limit_ns)
{
	return item->time_ns <= limit_ns && item->kind <= LANE_FAILED &&
	       (TRACE_BUILDER_ROW_KINDS >> item->kind & 1) != 0;
}

// Write `count` items of the stream, at most COLUMNS_ROW_MAX, as a row: they are plain, at one
// time, and it is their turn.
void trace_builder_ordered_row(struct trace_builder *trace_builder, struct stream *stream,
			       const struct lane_item *items, size_t count);

// Are the stream's next events written as they come, whatever they are? Then their rows may go
// straight to trace_builder_lane_row.
bool trace_builder_takes_rows(const struct stream *stream);

// Write a row of the stream's next events.
void trace_builder_lane_row(struct trace_builder *trace_builder, struct stream *stream,
			    struct lane_reader_row *row);

// The stream's first item is an echo: write the two items before it as often as it says.
void trace_builder_echo(struct trace_builder *trace_builder, struct stream *stream);

// The stream's first item, which the program itself spoke of: a thread's name, a pool's block.
void trace_builder_client(struct trace_builder *trace_builder, struct stream *stream);

// The stream's events are of the heap with this handle from here on, and those that allocate have
// these flags.
void trace_builder_heap(struct stream *stream, uint64_t handle, uint32_t flags);

// A heap was made, with these flags.
void trace_builder_heap_new(struct trace_builder *trace_builder, struct stream *stream,
			    uint64_t handle, uint32_t flags);

// The heap is destroyed: the event is filled in. False: nothing was ever allocated there.
bool trace_builder_heap_gone(struct stream *stream, uint64_t handle, struct trace_event *event);

// What was delivered, whether the file took it or not: processes, events and blocks, and no more.
void trace_builder_sum(const struct trace_builder *trace_builder, struct collect_summary *summary);

// Is `second` the second half of `first`, and near enough to be written as one?
static inline bool trace_builder_folds(const struct trace_builder *trace_builder,
				       const struct lane_item *first,
				       const struct lane_item *second, uint64_t limit_ns)
{
	return first->kind == LANE_REALLOC_FREE &&
	       (second->kind == LANE_REALLOC_ALLOC || second->kind == LANE_REALLOC_UNDO) &&
	       (second->time_ns <= limit_ns ||
		second->time_ns - first->time_ns <= trace_builder->fold_ns);
}
