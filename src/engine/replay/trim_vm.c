// Which calls on virtual memory make the address spaces of a moment. Two passes over them find out:
// backwards, which of them are not undone by later ones; forwards, which munmaps are needed since a
// needed call has mapped what they unmap. For example, of one process:
//
//     1  mmap    [0, 8)       needed: [4, 8) of it is there at the moment
//     2  mmap    [16, 20)     not: 4 has unmapped all of it
//     3  munmap  [0, 4)       needed: it unmaps a part of what 1 mapped
//     4  munmap  [16, 20)     not: nothing that is needed has mapped it
//
// Backwards, what later calls have mapped anew or unmapped is a set of addresses, per process; a
// call whose span the set holds is over. Forwards, what needed calls have mapped is another. Sets
// are spans that rise and do not touch. For example [0, 4) and [8, 12):
//
//     add [4, 8)       touches both: one span, [0, 12)
//     remove [2, 3)    [0, 2) and [3, 12)
//     holds [4, 9)?    yes, as [3, 12) does
//     hit by [2, 3)?   no
#include "engine/replay/trim_vm.h"

#include "base/map.h"
#include "base/mem.h"
#include "engine/space/space.h"

#include <string.h>

enum { HUGE_ROOM = 2 << 20, REMAP_DONTUNMAP = 4, FLAG_HUGETLB = 0x40000 };

// ---- sets of addresses ----

struct span {
	uint64_t low, high;
};

// Rising, and none touches the next.
struct spans {
	struct span *spans;
	size_t count, capacity;
};

// The first one that ends at `address` or after.
static size_t spans_from(const struct spans *set, uint64_t address)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (set->spans[middle].high < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// low + 1: a span that only ends where this one begins has nothing of it.
static bool spans_hold(const struct spans *set, struct span span)
{
	size_t at = spans_from(set, span.low + 1);

	return at < set->count && set->spans[at].low <= span.low &&
	       set->spans[at].high >= span.high;
}

static bool spans_hit(const struct spans *set, struct span span)
{
	size_t at = spans_from(set, span.low + 1);

	return at < set->count && set->spans[at].low < span.high;
}

// `parts` in place of those from `at` to `to`.
static void spans_replace(struct spans *set, size_t at, size_t to, const struct span *parts,
			  size_t count)
{
	ASSERT(at <= to && to <= set->count && count <= 2);
	MEM_ROOM(set->spans, set->capacity, set->count + 2);
	memmove(set->spans + at + count, set->spans + to, (set->count - to) * sizeof *set->spans);
	memcpy(set->spans + at, parts, count * sizeof *parts);
	set->count = set->count - (to - at) + count;
}

// From `low` itself on: spans that touch become one.
static void spans_add(struct spans *set, struct span span)
{
	size_t at = spans_from(set, span.low), to = at;

	for (; to < set->count && set->spans[to].low <= span.high; to++) {
		if (set->spans[to].low < span.low)
			span.low = set->spans[to].low;
		if (set->spans[to].high > span.high)
			span.high = set->spans[to].high;
	}
	spans_replace(set, at, to, &span, 1);
}

// Of those that are hit at most two pieces stay: one below, of the first, and one above, of the
// last.
static void spans_remove(struct spans *set, struct span span)
{
	size_t at = spans_from(set, span.low + 1), to = at, count = 0;
	struct span rest[2];

	for (; to < set->count && set->spans[to].low < span.high; to++) {
		if (set->spans[to].low < span.low)
			rest[count++] = (struct span){ set->spans[to].low, span.low };
		if (set->spans[to].high > span.high)
			rest[count++] = (struct span){ span.high, set->spans[to].high };
	}
	if (to > at)
		spans_replace(set, at, to, rest, count);
}

// ---- calls ----

enum act { ACT_MAP, ACT_FILL, ACT_UNMAP, ACT_MOVE, ACT_PROTECT, ACT_OTHER };

struct call {
	uint64_t number;
	struct span span, old; // old: ACT_MOVE
	process_id process;
	uint8_t act;
	bool stays; // ACT_MOVE: the old range stays mapped
	bool needed;
};

struct process_calls {
	uint64_t pinned; // calls of smaller numbers are kept
	bool ended;
	struct spans over;      // backwards: what later calls made anew
	struct spans protected; // the same, or protected
	struct spans mapped;    // forwards: by calls that are needed
};

// A child was forked before the event of that number.
struct fork {
	uint64_t number;
	process_id child, parent;
};

struct trim_vm {
	const struct reader *reader;
	struct space *space;
	struct process_calls *processes;
	size_t processes_count;
	struct call *calls;
	size_t count, capacity;
	struct fork *forks;
	size_t forks_count, forks_capacity;
	struct map commits; // numbers of the calls that what is committed began with
	uint64_t next_number;
	bool windows;
};

struct trim_vm *trim_vm_new(const struct reader *reader)
{
	struct trim_vm *trim = mem_alloc(1, sizeof *trim);

	trim->reader = reader;
	trim->space = space_new(NULL);
	trim->processes_count = reader_processes_count(reader);
	trim->processes = mem_alloc(trim->processes_count + 1, sizeof *trim->processes);
	trim->windows = reader_is_windows(reader);
	return trim;
}

void trim_vm_free(struct trim_vm *trim)
{
	for (size_t i = 0; i < trim->processes_count; i++) {
		MEM_FREE(trim->processes[i].over.spans, trim->processes[i].protected.spans,
			 trim->processes[i].mapped.spans);
	}
	space_free(trim->space);
	map_fini(&trim->commits);
	MEM_FREE(trim->processes, trim->calls, trim->forks, trim);
}

static struct span span_of(uint64_t address, uint64_t size, uint32_t flags)
{
	uint64_t page = flags & FLAG_HUGETLB ? HUGE_ROOM : SPACE_PAGE;
	uint64_t high = address + size;

	if (high < address || high > UINT64_MAX - page)
		high = UINT64_MAX - page;
	return (struct span){ address, (high + page - 1) & ~(page - 1) };
}

// What the call does to what is mapped. False: nothing that is asked of a moment.
static bool describe(const struct trace_event *event, struct call *call)
{
	const struct trace_vm *vm = event->vm;

	call->span = span_of(event->address, event->size, 0);
	switch (event->kind) {
	case TRACE_MMAP:
	case TRACE_SHMAT:
		call->span = span_of(event->address, event->size,
				     event->kind == TRACE_MMAP ? vm->flags : 0);
		call->act = ACT_MAP;
		return true;
	case TRACE_MAPPED:
		call->act = ACT_FILL;
		return true;
	case TRACE_MUNMAP:
	case TRACE_SHMDT:
	case TRACE_UNMAPPED:
		call->act = ACT_UNMAP;
		return true;
	case TRACE_MREMAP:
		call->act = vm->old_size ? ACT_MOVE : ACT_OTHER;
		call->old = span_of(event->old_address, vm->old_size, 0);
		call->stays = vm->flags & REMAP_DONTUNMAP;
		return true;
	case TRACE_BRK:
		call->act = event->address > event->old_address ? ACT_MAP : ACT_UNMAP;
		call->span =
			event->address > event->old_address
				? span_of(event->old_address, event->address - event->old_address,
					  0)
				: span_of(event->address, event->old_address - event->address, 0);
		call->span.low = (call->span.low + SPACE_PAGE - 1) & ~(uint64_t)(SPACE_PAGE - 1);
		return event->old_address != 0 && call->span.low < call->span.high;
	case TRACE_MPROTECT:
		call->act = ACT_PROTECT;
		return event->size > 0;
	case TRACE_MADVISE:
	case TRACE_MLOCK:
		return false;
	default:
		call->act = ACT_OTHER;
		return true;
	}
}

// On Windows all calls are kept; else those that failed, or changed nothing, are not.
void trim_vm_add_event(struct trim_vm *trim, const struct trace_event *event)
{
	struct call call = { .number = event->number };

	trim->next_number = event->number + 1;
	space_learn(trim->space, trim->reader);
	if (!event->vm)
		return;
	space_add_event(trim->space, event);
	call.process = reader_thread(trim->reader, event->thread)->process;
	if (trim->windows)
		call.act = ACT_OTHER; // parts are reserved, committed, given back: all is kept
	else if (event->vm->error || !describe(event, &call))
		return;
	*MEM_ADD(trim->calls, trim->count, trim->capacity) = call;
}

// A fork is noted with the number of the next event: what the parent had called before is in the
// child.
void trim_vm_add_note(struct trim_vm *trim, const struct trace_note *note)
{
	const struct trace_process *process;

	space_learn(trim->space, trim->reader);
	space_add_note(trim->space, note);
	if (note->process == TRACE_NONE || note->process >= trim->processes_count)
		return;
	process = reader_process(trim->reader, note->process);
	if (note->kind == TRACE_NOTE_PROCESS_END)
		trim->processes[note->process].ended = true;
	if (note->kind != TRACE_NOTE_PROCESS_START || process->start != TRACE_START_FORK ||
	    process->parent == TRACE_NONE)
		return;
	*MEM_ADD(trim->forks, trim->forks_count, trim->forks_capacity) =
		(struct fork){ trim->next_number, note->process, process->parent };
}

// ---- which are needed ----

// What a process had when a child was forked that lives, or of which one does.
static void pin_parents(struct trim_vm *trim)
{
	for (size_t i = trim->forks_count; i-- > 0;) {
		const struct fork *fork = &trim->forks[i];
		struct process_calls *parent = &trim->processes[fork->parent];
		const struct process_calls *child = &trim->processes[fork->child];

		if ((!child->ended || child->pinned) && parent->pinned < fork->number)
			parent->pinned = fork->number;
	}
}

// A commit has the stack of the call that made its memory writable. That may be an mprotect, which
// is needed for its stack though a later one has changed the protection since.
static void find_commits(struct trim_vm *trim)
{
	for (process_id id = 0; id < trim->processes_count; id++) {
		const struct ranges *ranges = space_ranges(trim->space, id);
		const struct range *range = ranges ? ranges_from(ranges, 0) : NULL;

		for (; range; range = ranges_from(ranges, range->end)) {
			const struct space_commit *commit = space_commit(trim->space, range);
			bool added;

			if (commit)
				map_put(&trim->commits, commit->number, &added);
		}
	}
}

// A call, looked at after all that come later. What unmaps is decided forwards.
static void go_back(struct trim_vm *trim, struct call *call)
{
	struct process_calls *process = &trim->processes[call->process];

	if (call->act == ACT_OTHER || call->number < process->pinned) {
		call->needed = true;
		return;
	}
	if (process->ended)
		return;
	switch (call->act) {
	case ACT_MAP:
	case ACT_MOVE:
		call->needed = !spans_hold(&process->over, call->span);
		spans_add(&process->over, call->span);
		spans_add(&process->protected, call->span);
		break;
	case ACT_FILL:
		call->needed = !spans_hold(&process->over, call->span);
		break;
	case ACT_UNMAP:
		spans_add(&process->over, call->span);
		spans_add(&process->protected, call->span);
		break;
	case ACT_PROTECT:
		call->needed = !spans_hold(&process->protected, call->span) ||
			       map_find(&trim->commits, call->number);
		spans_add(&process->protected, call->span);
		break;
	}
	if (call->act == ACT_MOVE && call->needed) {
		spans_remove(&process->over, call->old);
		spans_remove(&process->protected, call->old);
	}
}

// A call, looked at after all that come before. An unmapping is needed only for what a needed call
// has mapped; a move also for where it takes pages from.
static void go_on(struct trim_vm *trim, struct call *call)
{
	struct process_calls *process = &trim->processes[call->process];

	if (call->act == ACT_UNMAP || call->act == ACT_MOVE)
		call->needed |=
			spans_hit(&process->mapped, call->act == ACT_MOVE ? call->old : call->span);
	if (!call->needed)
		return;
	if (call->act == ACT_UNMAP)
		spans_remove(&process->mapped, call->span);
	if (call->act == ACT_MOVE && !call->stays)
		spans_remove(&process->mapped, call->old);
	if (call->act == ACT_MAP || call->act == ACT_FILL || call->act == ACT_MOVE)
		spans_add(&process->mapped, call->span);
}

// `give` hears of needed calls in their order.
void trim_vm_each(struct trim_vm *trim, void (*give)(void *context, uint64_t number), void *context)
{
	pin_parents(trim);
	find_commits(trim);
	for (size_t i = trim->count; i-- > 0;)
		go_back(trim, &trim->calls[i]);
	for (size_t i = 0; i < trim->count; i++) {
		go_on(trim, &trim->calls[i]);
		if (trim->calls[i].needed)
			give(context, trim->calls[i].number);
	}
}
