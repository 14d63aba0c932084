// Reservations are followed through the calls on virtual memory: before a call what lies in its
// area is taken off the reservations there, after it what lies there now is added. For example, a
// reservation of 0x11000 bytes at 0x10000 (number 1) takes one slot of 64 KiB and 0x1000 bytes of
// the next, of which 0xf000 are lost: it is listed. A munmap of its first 0x10000 bytes leaves
// 0x1000 of it; one of the rest leaves 0, and its time is when it was freed. A reservation of
// 0x20000 bytes fills its slots and is not listed.
#include "report/tracefrag.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

const struct query_context_rules tracefrag_rules = {
	.about = QUERY_CONTEXT_MOMENT,
	.layers = QUERY_VM,
	.refused = ~(SELECTION_BIT(PROCESS) | SELECTION_BIT(THREAD) | SELECTION_BIT(SIZE) |
		     SELECTION_BIT(MODULE) | SELECTION_BIT(FRAME) | SELECTION_BIT(NOT_FRAME) |
		     SELECTION_BIT(ROW)),
	.refusal = "cannot be asked of reservations, which are listed over the whole recording",
};

enum {
	MEM_BITS = ~0xfff, // of a Windows program's flags, what are MEM_… bits
	MEM_RESERVED = 0x2000,
	MEM_COMMITTED = 0x1000,
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	AREAS_MAX = 2,
};

struct reservation {
	uint64_t serial; // from 1, over the whole run
	uint64_t address, size;
	uint64_t made_ns;
	uint64_t freed_ns; // 0: not yet
	uint64_t left;     // bytes of it that are mapped
	stack_id stack;
	uint32_t protection;
	uint32_t type;
};

struct list {
	const struct query_context *asked;
	process_id process;
	bool windows; // it says itself what it reserved
	struct reservation *all;
	size_t count, capacity;
	struct map by_number; // of the event that mapped it -> position
	// Where the call at hand may unmap or move something.
	struct {
		uint64_t low, high;
	} areas[AREAS_MAX];
	int areas_count;
	uint64_t *touched; // positions of reservations that lay there before it
	size_t touched_count, touched_capacity;
};

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + SPACE_PAGE - 1) & ~(uint64_t)(SPACE_PAGE - 1);
}

// One that would wrap around is no place, and left out.
static void add_area(struct list *list, uint64_t low, uint64_t size)
{
	ASSERT(list->areas_count < AREAS_MAX);
	if (size == 0 || low > UINT64_MAX - size - SPACE_PAGE)
		return;
	list->areas[list->areas_count].low = low;
	list->areas[list->areas_count++].high = low + whole_pages(size);
}

// mremap has two: where the mapping was, and where it is now. A failed call changes nothing and has
// none; nor have calls that leave mapped what is mapped, such as mprotect. What no call explains
// (TRACE_MAPPED, TRACE_UNMAPPED) is a change like any other.
static void find_areas(struct list *list, const struct trace_event *event)
{
	uint64_t low, high;

	list->areas_count = 0;
	if (!event->vm || event->vm->error)
		return;
	switch (event->kind) {
	case TRACE_MMAP:
	case TRACE_SHMAT:
	case TRACE_MUNMAP:
	case TRACE_SHMDT:
	case TRACE_MAPPED:
	case TRACE_UNMAPPED:
		add_area(list, event->address, event->size);
		break;
	case TRACE_MREMAP:
		add_area(list, event->old_address, event->vm->old_size);
		if (event->address != event->old_address)
			add_area(list, event->address, event->size);
		break;
	case TRACE_BRK:
		// Between the old end and the new one, with the page that each is in.
		low = event->address < event->old_address ? event->address : event->old_address;
		high = event->address < event->old_address ? event->old_address : event->address;
		add_area(list, low & ~(uint64_t)(SPACE_PAGE - 1), high - low + SPACE_PAGE);
		break;
	}
}

static void touch(struct list *list, uint64_t position)
{
	*MEM_ADD(list->touched, list->touched_count, list->touched_capacity) = position;
}

// Add (or take away) what of each reservation lies in the areas. A range has the number of the
// event that mapped it, so one that is of no listed reservation is not found and passed over. To
// take away is to add a negative number, which wraps around.
static void weigh(struct list *list, const struct space *space, bool add)
{
	const struct ranges *ranges = space_ranges(space, list->process);
	const struct range *range;

	for (int i = 0; i < list->areas_count; i++) {
		uint64_t low = list->areas[i].low;
		uint64_t high = list->areas[i].high;

		for (uint64_t at = low; (range = ranges_from(ranges, at)) && range->start < high;
		     at = range->end) {
			uint64_t from = range->start > low ? range->start : low;
			uint64_t to = range->end < high ? range->end : high;
			const uint64_t *position = map_find(&list->by_number, range->number);

			if (!position)
				continue;
			ASSERT(*position < list->count);
			list->all[*position].left += add ? to - from : from - to;
			if (!add)
				touch(list, *position);
		}
	}
}

// `left` loses what lies in the areas now; after_event adds what lies there then.
static void before_event(void *context, const struct space *space, const struct trace_event *event)
{
	struct list *list = context;
	const struct trace_thread *thread = reader_thread(list->asked->reader, event->thread);

	list->areas_count = 0;
	list->touched_count = 0;
	if (!thread || thread->process != list->process)
		return;
	find_areas(list, event);
	weigh(list, space, false);
}

// As tracefrag had it: what was reserved, and leaves a part of its last slot. The filters choose.
static bool is_listed(const struct list *list, const struct trace_event *event)
{
	const struct query *query = &list->asked->selection.query;

	if (event->kind != TRACE_MMAP || event->vm->error ||
	    event->vm->origin == TRACE_ORIGIN_RECORDER ||
	    whole_pages(event->size) % SPACE_SLOT == 0)
		return false;
	if (list->windows && !(event->vm->flags & MEM_RESERVED))
		return false; // a view of a section
	return query_has_thread(query, event->thread) && query_has_size(query, event->size) &&
	       (!query->stack || query->stack(query->context, event->stack));
}

// MEM_RESERVE and MEM_COMMIT of Windows; elsewhere what is writable counts as committed at once.
static uint32_t type_of(const struct list *list, const struct trace_event *event)
{
	if (list->windows)
		return event->vm->flags & (uint32_t)MEM_BITS;
	return event->vm->protection & 2 ? MEM_RESERVED | MEM_COMMITTED : MEM_RESERVED;
}

// Nothing of it is left at first: what lies there is added right after, as of any other.
static void add_reservation(struct list *list, const struct trace_event *event)
{
	bool added;

	*map_put(&list->by_number, event->number, &added) = list->count;
	MEM_ROOM(list->all, list->capacity, list->count + 1);
	list->all[list->count] = (struct reservation){
		.serial = list->count + 1,
		.address = event->address,
		.size = whole_pages(event->size),
		.made_ns = event->time_ns,
		.stack = event->stack,
		.protection = event->vm->protection,
		.type = type_of(list, event),
	};
	list->count++;
}

// Of what lay in the areas before, is anything left?
static void settle(struct list *list, uint64_t time_ns)
{
	for (size_t i = 0; i < list->touched_count; i++) {
		struct reservation *reservation = &list->all[list->touched[i]];

		if (reservation->left == 0 && reservation->freed_ns == 0)
			reservation->freed_ns = time_ns;
	}
}

static void after_event(void *context, const struct space *space, const struct trace_event *event)
{
	struct list *list = context;

	if (list->areas_count == 0)
		return;
	if (is_listed(list, event))
		add_reservation(list, event);
	weigh(list, space, true);
	settle(list, event->time_ns);
}

SORT_ORDER(by_stack, struct reservation, SORT_RISES(stack), SORT_RISES(serial))

// ---- text ----

// PAGE_… of Windows for rwx bits: PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE and so on. What can
// be written can be read.
static uint32_t protection_of(uint32_t protection)
{
	static const uint32_t words[8] = { 0x01, 0x02, 0x04, 0x04, 0x10, 0x20, 0x40, 0x40 };

	return words[protection & 7];
}

// What each line begins with: when it would have been written, which is when the process ended.
static void make_prefix(const struct list *list, struct str *prefix)
{
	const struct reader *reader = list->asked->reader;
	const struct trace_process *process = reader_process(reader, list->process);
	uint64_t end_ns = process->ended_ns == UINT64_MAX ? moment_duration(reader)
							  : process->ended_ns;
	uint64_t ran_ns = end_ns - process->began_ns;
	uint64_t wall_ns = reader_info(reader)->began_unix_ns + end_ns;
	struct tm tm = { 0 };

	str_date(wall_ns / NS_PER_S, &tm);
	str_format(prefix, "%04d%02d%02d%02d%02d%02d%03d %" PRIu32 " %" PRIu64 ".%02" PRIu64,
		   tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		   (int)(wall_ns % NS_PER_S / NS_PER_MS), process->pid, ran_ns / NS_PER_S,
		   ran_ns % NS_PER_S / (NS_PER_S / 100));
	str_format(prefix, ": trcmem%d: ", process->bits == 32 ? 32 : 64);
}

// FNV-1a over the addresses of the frames, innermost first: the same stack has the same hash in
// each run at the same addresses. A parent's number is below its child's; where damage made it
// otherwise the walk ends, here and in write_frames.
static uint32_t hash_of(const struct list *list, stack_id stack)
{
	const struct reader *reader = list->asked->reader;
	uint32_t hash = 2166136261;

	while (stack) {
		const struct trace_stack *node = reader_stack(reader, stack);
		bool known = node && reader_frame(reader, node->frame);
		uint64_t at = known ? reader_address(reader, node->frame, list->process) : 0;

		for (int i = 0; known && i < 64; i += 8)
			hash = (hash ^ (uint8_t)(at >> i)) * 16777619;
		stack = node && node->parent < stack ? node->parent : 0;
	}
	return hash;
}

// A line for each function: those that were inlined into a frame have its address, and numbers of
// their own.
static void write_frames(const struct list *list, struct sink *sink, const char *prefix,
			 stack_id stack)
{
	const struct reader *reader = list->asked->reader;
	unsigned number = 0;

	while (stack) {
		const struct trace_stack *node = reader_stack(reader, stack);
		const struct trace_frame *frame = node ? reader_frame(reader, node->frame) : NULL;
		const struct symbol *symbols;
		uint64_t at;
		size_t count;

		if (!frame)
			break;
		at = reader_address(reader, node->frame, list->process);
		symbols = names_find(list->asked->names, node->frame, &count);
		for (size_t i = 0; i < count; i++) {
			sink_format(sink, "%s  [%u] %" PRIx64 " %s", prefix, number++, at,
				    *symbols[i].module ? str_last_part(symbols[i].module) : "?");
			if (symbols[i].function)
				sink_format(sink, "!%s\n", symbols[i].function);
			else
				sink_format(sink, "+0x%" PRIx64 "\n", symbols[i].offset);
		}
		stack = node->parent < stack ? node->parent : 0;
	}
}

// Milliseconds since the process began.
static uint64_t ticks(const struct list *list, uint64_t time_ns)
{
	uint64_t began_ns = reader_process(list->asked->reader, list->process)->began_ns;

	return time_ns > began_ns ? (time_ns - began_ns) / NS_PER_MS : 0;
}

// The list is in order of stacks, so a stack's head and frames are written where it changes.
static void write_all(const struct list *list, struct sink *sink)
{
	struct str prefix = { 0 };
	uint64_t stacks = 0;

	make_prefix(list, &prefix);
	for (size_t i = 0; i < list->count; i++) {
		const struct reservation *each = &list->all[i];

		if (i == 0 || each->stack != each[-1].stack) {
			sink_format(sink, "%s0x%08" PRIx32 " %" PRIx64 "\n", str_get(&prefix),
				    hash_of(list, each->stack), ++stacks);
			write_frames(list, sink, str_get(&prefix), each->stack);
		}
		sink_format(sink,
			    "%s  #%" PRIu64 " %" PRIx64 " %" PRIu64 " %x %" PRIx32 " %" PRIu64
			    " %" PRIu64 "\n",
			    str_get(&prefix), each->serial, each->address, each->size, each->type,
			    protection_of(each->protection), ticks(list, each->made_ns),
			    each->freed_ns ? ticks(list, each->freed_ns) : 0);
	}
	str_fini(&prefix);
}

// The calls of the whole recording are followed, whatever moment was asked for.
void tracefrag_write(struct query_context *asked, process_id process, struct sink *sink)
{
	struct list list = {
		.asked = asked,
		.process = process,
		.windows = reader_is_windows(asked->reader),
	};
	const struct present_options options = {
		.at_exit = true,
		.inherits = TRACE_NONE,
		.before = before_event,
		.after = after_event,
		.context = &list,
	};

	moment_view_calls(asked, &options, "reading");
	if (list.count)
		qsort(list.all, list.count, sizeof *list.all, by_stack);
	write_all(&list, sink);
	map_fini(&list.by_number);
	MEM_FREE(list.touched, list.all);
}
