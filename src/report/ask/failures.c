// What failed to what was in its way.
//
// For example, of 32 bits, with a page in the middle of each 16 MiB: 50 calls of mmap for 16 MiB
// from one place are one failure, whose largest hole had 16 MiB less a page, and whose culprit is
// the stack that mapped the pages.
#include "report/ask/failures.h"

#include "base/mem.h"
#include "trace/effect.h"

enum {
	MAP_32BIT_BIT = 0x40,
	MREMAP_MAYMOVE_BIT = 1,
	ENOMEM_NUMBER = 12,
	MEM_COMMIT_BIT = 0x1000, // of a Windows program's flags
	MEM_RESERVE_BIT = 0x2000,
};

#define LOW_32BIT (UINT64_C(1) << 30) // where MAP_32BIT puts things
#define HIGH_32BIT (UINT64_C(1) << 31)
#define HIGH_32 (UINT64_C(1) << 32)

// What Linux gives no call that leaves the address to it: a gap below a stack that grows
// (stack_guard_gap, 256 pages), and the lowest addresses (vm.mmap_min_addr, mostly 64 KiB).
#define STACK_GAP (UINT64_C(1) << 20)
#define LOWEST_GIVEN (UINT64_C(1) << 16)

// Where the process says what it may map (Windows), that; else what Linux gives by itself.
static uint64_t lowest_given(const struct failures *failures, process_id id)
{
	const struct trace_process *process = reader_process(failures->asked->reader, id);

	return process->address_end ? process->address_low : LOWEST_GIVEN;
}

// What was free for a call that failed, and who was in its way.
static void weigh(const struct failures *failures, const struct space *space,
		  struct failure *failure)
{
	const bool windows = reader_is_windows(failures->asked->reader);
	const struct ranges *ranges = space_ranges(space, failure->process);
	const struct space_totals *totals = space_process(space, failure->process);
	struct mappers mappers = {
		.space = space,
		.process = failure->process,
		.low = lowest_given(failures, failure->process),
		.high = failure->high,
		.granularity = windows ? SPACE_SLOT : 0,
		.now_ns = failure->time_ns,
		.align = windows ? SPACE_SLOT : 0,
		.stack_gap = STACK_GAP,
	};

	if (!ranges || !totals)
		return;
	failure->mapped = totals->reserved_bytes + totals->inherited_bytes;
	failure->culprit = (struct mapper){ 0 };
	failure->unusable = 0;
	if (mappers.low < failure->low)
		mappers.low = failure->low;
	failure->holes = ranges_holes(ranges, failure->low, failure->high);
	mappers_take(&mappers);
	// What could be given: less than what is free, by alignment and by the gap below a stack.
	failure->holes.largest = mappers.largest;
	for (size_t i = 0; i < mappers.count; i++) {
		const struct mapper *mapper = &mappers.list[i];

		failure->unusable += mapper->waste;
		if (!mappers_is_fixture(mapper->owner) &&
		    mapper->largest_without > failure->holes.largest &&
		    mapper->largest_without > failure->culprit.largest_without)
			failure->culprit = *mapper;
	}
	mappers_fini(&mappers);
}

// Weigh again what waited for a walk of the process, which is over.
static void settle(struct failures *failures, const struct space *space, process_id process)
{
	for (size_t i = 0; failures->open && i < failures->count; i++) {
		struct failure *failure = &failures->list[i];

		if (!failure->open || failure->process != process)
			continue;
		if (failure->walked)
			weigh(failures, space, failure);
		failure->open = false;
		failures->open--;
	}
}

// A walk has found something that no call said.
static void note_walk(struct failures *failures, process_id process)
{
	for (size_t i = 0; failures->open && i < failures->count; i++)
		failures->list[i].walked |= failures->list[i].process == process;
}

// Whether it is counted with a failure: of the same place, kind and size.
static bool same_call(const struct failure *failure, const struct trace_event *event,
		      process_id process)
{
	return failure->process == process && failure->stack == event->stack &&
	       failure->size == event->size && failure->kind == event->kind &&
	       failure->flags == (event->vm ? event->vm->flags : 0);
}

// The failure that a call is counted with, or a new one, to be filled.
//
// That is one of its stack, kind and size. NULL: as many as are kept are others. Keys are hashes:
// one that is taken by another failure moves on.
static struct failure *find(struct failures *failures, const struct trace_event *event,
			    process_id process, bool *added)
{
	uint64_t key = event->stack;
	uint64_t *place;

	key = (key ^ event->size) * UINT64_C(0x9e3779b97f4a7c15) ^ process;
	key = (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15) ^ event->kind;
	for (*added = false; (place = map_find(&failures->places, key)); key++)
		if (same_call(&failures->list[*place], event, process))
			return &failures->list[*place];
	if (failures->count >= failures->most)
		return NULL;
	*added = true;
	*map_put(&failures->places, key, NULL) = failures->count;
	return MEM_ADD(failures->list, failures->count, failures->capacity);
}

// By what the call was. A view of a section has no MEM_RESERVE: its flags are MapViewOfFile's.
static enum failure_need need_of(const struct reader *reader, const struct trace_event *event)
{
	if (!reader_is_windows(reader))
		return FAILURE_NEEDS_ANY;
	if (!event->vm)
		return FAILURE_NEEDS_HEAP;
	if (event->kind == TRACE_MPROTECT)
		return FAILURE_NEEDS_COMMIT;
	if (!(event->vm->flags & MEM_RESERVE_BIT))
		return FAILURE_NEEDS_VIEW;
	return event->vm->flags & MEM_COMMIT_BIT ? FAILURE_NEEDS_BOTH : FAILURE_NEEDS_ADDRESSES;
}

// A call that failed, first or again.
//
// A mapping with MAP_32BIT is weighed only in the part where Linux puts such.
static void add(struct failures *failures, const struct space *space,
		const struct trace_event *event, process_id process)
{
	const struct reader *reader = failures->asked->reader;
	bool low_only = event->vm && event->kind == TRACE_MMAP &&
			event->vm->flags & MAP_32BIT_BIT && !reader_is_windows(reader);
	struct failure *failure;
	bool added;

	failures->calls++;
	failure = find(failures, event, process, &added);
	if (!failure) {
		failures->left_out++;
		return;
	}
	if (!added) {
		failure->count++;
		failure->last_ns = event->time_ns;
		return;
	}
	*failure = (struct failure){
		.process = process,
		.number = event->number,
		.time_ns = event->time_ns,
		.last_ns = event->time_ns,
		.count = 1,
		.kind = event->kind,
		.origin = event->vm ? event->vm->origin : (uint8_t)TRACE_ORIGIN_PROGRAM,
		.error = event->vm ? event->vm->error : ENOMEM_NUMBER,
		.flags = event->vm ? event->vm->flags : 0,
		.need = need_of(reader, event),
		.size = event->size,
		.thread = event->thread,
		.stack = event->stack,
		.low = failures->high ? failures->low : lowest_given(failures, process),
		.high = failures->high ? failures->high : space_end(space, reader, process),
		.open = reader_is_windows(reader),
	};
	ASSERT(failures->count <= failures->most);
	failures->open += failure->open;
	if (low_only) {
		failure->low = LOW_32BIT;
		failure->high = HIGH_32BIT;
	}
	weigh(failures, space, failure);
}

// Whether it may not move what it would enlarge, and found no room after it.
static bool stays(const struct trace_event *event)
{
	return effect_stays(event) || (event->kind == TRACE_MREMAP && event->vm->error &&
				       !(event->vm->flags & MREMAP_MAYMOVE_BIT));
}

// A commit of what is reserved already: it needs memory, and no addresses.
static bool is_commit(const struct reader *reader, const struct trace_event *event)
{
	return event->kind == TRACE_MPROTECT &&
	       event->vm->protection & TRACE_PROTECTION_COMMITTED && reader_is_windows(reader);
}

// Allocations that returned nothing, and calls on virtual memory that had none. The recorder's own
// are in no figure.
static bool is_failure(const struct failures *failures, const struct trace_event *event)
{
	if (effect_of(event->kind) & EFFECT_FAILS)
		return effect_lacks(event);
	return event->vm && event->vm->error == ENOMEM_NUMBER && !stays(event) &&
	       event->vm->origin != TRACE_ORIGIN_RECORDER &&
	       !(failures->no_allocators && event->vm->origin == TRACE_ORIGIN_ALLOCATOR) &&
	       (event->kind == TRACE_MMAP || event->kind == TRACE_MREMAP ||
		event->kind == TRACE_BRK || event->kind == TRACE_SHMAT ||
		is_commit(failures->asked->reader, event));
}

// What ends a walk settles what waited for it, also if the filters leave it out: the space is that
// of all. Then the call itself is counted, if it is one that counts.
void failures_before(struct failures *failures, const struct space *space,
		     const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(failures->asked->reader, event->thread);
	const struct query *query = failures->query;

	if (!thread || (failures->process != TRACE_NONE && thread->process != failures->process))
		return;
	if (event->kind == TRACE_MAPPED || event->kind == TRACE_UNMAPPED)
		note_walk(failures, thread->process);
	else if (event->vm && !event->vm->error)
		settle(failures, space, thread->process);
	if (query &&
	    !(query_has_process(query, thread->process) && query_has_thread(query, event->thread) &&
	      query_has_stack(query, event->stack) && query_has_event(query, event)))
		return;
	failures->in_place += stays(event);
	if (is_failure(failures, event))
		add(failures, space, event, thread->process);
}

// What a note is of (a fork, an end) comes after a walk, too.
void failures_noted(struct failures *failures, const struct space *space,
		    const struct trace_note *note)
{
	settle(failures, space, note->process);
}

void failures_fini(struct failures *failures)
{
	map_fini(&failures->places);
	mem_free(failures->list);
}

// Of 64 bits only what had to be put into a part of 32: a terabyte that fails is no want of room.
// Where nothing is known to be mapped, nothing is known of holes.
bool failures_lacks_room(const struct failures *failures, const struct failure *failure)
{
	ASSERT(failure->count > 0 && failure->low <= failure->high);
	return failure->holes.largest < failure->size && failure->mapped &&
	       failure->kind != TRACE_MPROTECT &&
	       (failure->high <= HIGH_32 ||
		reader_process(failures->asked->reader, failure->process)->bits == 32);
}

// Of an allocation that failed the trace has no more than whether it was a realloc.
const char *failures_word(const struct failure *failure)
{
	switch (failure->kind) {
	case TRACE_MMAP:
		if (failure->need == FAILURE_NEEDS_VIEW)
			return "MapViewOfFile";
		return failure->need == FAILURE_NEEDS_ANY ? "mmap" : "VirtualAlloc";
	case TRACE_MREMAP:
		return "mremap";
	case TRACE_BRK:
		return "brk";
	case TRACE_SHMAT:
		return "shmat";
	case TRACE_MPROTECT:
		return "commit";
	case TRACE_REALLOC_FAILED:
	case TRACE_REALLOC_UNDO:
		return "realloc";
	default:
		return "malloc";
	}
}
