// For example a program that gives back its first block before it goes on:
//
//     0   malloc  1,000,000 bytes                1,000,000 alive
//     1   malloc        500                      1,000,500: the most of the first plateau
//     2   free    1,000,000                            500
//     3   munmap  1,003,520: memory is given back      500 the second plateau begins
//     4   malloc      2,000                          2,500: its most
//     5   free        2,000                            500
//
// Up to event 3 the edge is 2, right after event 1, with 1,000,500 bytes then and 500 at its end.
// Up to event 6 it is edge 5, with 2,500 and 500, and from_ns is the time of event 3.
#include "engine/replay/plateau.h"

#include "engine/replay/lives.h"
#include "trace/reader_pass.h"

// Less than this given back changes little.
enum { RELEASE_MIN = 64 << 10 };

// Pools are inside of memory that was allocated otherwise.
static uint64_t bytes_of(const struct lives_block *block)
{
	return block->kind == TRACE_HEAP_ALLOC ? 0 : block->size;
}

static void begin(void *context, const struct lives_block *block)
{
	uint64_t *live_bytes = context;

	*live_bytes += bytes_of(block);
}

static void end(void *context, const struct lives_block *block, const struct lives_end *)
{
	uint64_t *live_bytes = context;

	*live_bytes -= bytes_of(block);
}

static void undo(void *context, const struct lives_block *block, const struct lives_end *)
{
	begin(context, block);
}

// Bytes that the call gives back.
static uint64_t released(const struct trace_event *event)
{
	enum { DONTNEED = 4, FREE = 8, REMOVE = 9, PAGEOUT = 21, DONTNEED_LOCKED = 24 };
	uint32_t advice = event->vm->flags;

	if (event->vm->error)
		return 0;
	switch (event->kind) {
	case TRACE_MUNMAP:
	case TRACE_SHMDT:
	case TRACE_UNMAPPED:
		return event->size;
	case TRACE_BRK:
		return event->address < event->old_address ? event->size : 0;
	case TRACE_MREMAP:
		return event->vm->old_size > event->size ? event->vm->old_size - event->size : 0;
	case TRACE_MADVISE:
		return advice == DONTNEED || advice == FREE || advice == REMOVE ||
				       advice == PAGEOUT || advice == DONTNEED_LOCKED
			       ? event->size
			       : 0;
	default:
		return 0;
	}
}

bool plateau_begins_with(const struct trace_event *event)
{
	return released(event) >= RELEASE_MIN;
}

static void set(struct plateau *plateau, uint64_t live_bytes, const struct trace_event *event)
{
	plateau->bytes = live_bytes;
	plateau->edge = (struct moment_edge){
		.time_ns = event->time_ns,
		.number = event->number + 1,
		.exact = true,
	};
}

// Two things make the plateau anew: a higher level, and a release of memory, after which what was
// resident before says nothing any more.
void plateau_find(struct plateau *plateau, struct reader *reader, process_id process,
		  uint64_t number)
{
	uint64_t live_bytes = 0;
	const struct lives_watcher watcher = {
		.begin = begin, .end = end, .undo = undo, .context = &live_bytes
	};
	struct lives *lives = lives_new(reader, &watcher, NULL);
	struct reader_pass pass = reader_pass_begin(reader, NULL);

	*plateau = (struct plateau){ .edge = { .exact = true } };
	while (reader_pass_next(&pass) != READER_END) {
		const struct trace_event *event = &pass.event;
		const struct trace_thread *thread;

		if (pass.item == READER_NOTE)
			continue;
		if (event->number >= number)
			break;
		thread = reader_thread(reader, event->thread);
		if (!thread || thread->process != process)
			continue;
		if (!trace_kind_is_vm(event->kind)) {
			lives_add_event(lives, event);
			if (live_bytes > plateau->bytes)
				set(plateau, live_bytes, event);
		} else if (plateau_begins_with(event)) {
			set(plateau, live_bytes, event);
			plateau->from_ns = event->time_ns;
		}
	}
	plateau->bytes_end = live_bytes;
	reader_rewind(reader);
	lives_free(lives);
}
