#include "engine/replay/plateau.h"

#include "base/mem.h"
#include "engine/replay/blocks.h"

#include <string.h>

// Less than this given back changes little.
enum { RELEASE_MIN = 64 << 10 };

// The first half of a realloc, by thread.
struct plateau_half {
	uint64_t address, size;
	bool active;
};

struct plateau_state {
	struct plateau *plateau;
	struct blocks blocks;
	struct plateau_half *halves;
	size_t halves_capacity;
	uint64_t live_bytes;
};

static void begin(struct plateau_state *state, uint64_t address, uint64_t size)
{
	bool added;
	struct block *block = blocks_put(&state->blocks, address, &added);

	if (!added)
		state->live_bytes -= blocks_size(&state->blocks, block);
	blocks_set_size(&state->blocks, block, size);
	block->owner = 1;
	state->live_bytes += size;
}

// The size of the block that ended; 0 if there was none.
static uint64_t end(struct plateau_state *state, uint64_t address)
{
	struct block block;
	uint64_t size = 0;

	blocks_take(&state->blocks, address, &block, &size);
	state->live_bytes -= size;
	return size;
}

static struct plateau_half *half_of(struct plateau_state *state, thread_id thread)
{
	size_t before = state->halves_capacity;

	state->halves = mem_grow(state->halves, &state->halves_capacity, thread + (size_t)1,
				 sizeof *state->halves);
	memset(state->halves + before, 0,
	       (state->halves_capacity - before) * sizeof *state->halves);
	return &state->halves[thread];
}

static void apply(struct plateau_state *state, const struct trace_event *event)
{
	struct plateau_half *half;

	switch (event->kind) {
	case TRACE_REALLOC:
		end(state, event->old_address);
		begin(state, event->address, event->size);
		break;
	case TRACE_MALLOC:
	case TRACE_CALLOC:
	case TRACE_ALIGNED:
	case TRACE_BEFORE:
	case TRACE_REALLOC_ALLOC:
		begin(state, event->address, event->size);
		break;
	case TRACE_FREE:
		end(state, event->address);
		break;
	case TRACE_REALLOC_FREE:
		half = half_of(state, event->thread);
		*half = (struct plateau_half){ .address = event->address, .active = true };
		half->size = end(state, event->address);
		break;
	case TRACE_REALLOC_UNDO:
		half = half_of(state, event->thread);
		if (half->active && half->address == event->address)
			begin(state, half->address, half->size);
		half->active = false;
		break;
	default:
		break;
	}
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

static void set(struct plateau_state *state, const struct trace_event *event)
{
	state->plateau->bytes = state->live_bytes;
	state->plateau->edge = (struct moment_edge){
		.time_ns = event->time_ns,
		.number = event->number + 1,
		.exact = true,
	};
}

void plateau_find(struct plateau *plateau, struct reader *reader, process_id process,
		  uint64_t number)
{
	struct plateau_state state = { .plateau = plateau };
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;

	*plateau = (struct plateau){ .edge = { .exact = true } };
	reader_rewind(reader);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		const struct trace_thread *thread;

		if (item == READER_EVENT && event.number >= number)
			break;
		thread = item == READER_EVENT ? reader_thread(reader, event.thread) : NULL;
		if (!thread || thread->process != process)
			continue;
		if (!trace_kind_is_vm(event.kind)) {
			apply(&state, &event);
			if (state.live_bytes > plateau->bytes)
				set(&state, &event);
		} else if (released(&event) >= RELEASE_MIN) {
			set(&state, &event);
			plateau->from_ns = event.time_ns;
		}
	}
	plateau->bytes_end = state.live_bytes;
	reader_rewind(reader);
	blocks_fini(&state.blocks);
	mem_free(state.halves);
}
