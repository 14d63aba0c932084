// Slots to segments: the picture, the curve, and the table of who is in the way.
#include "report/draw/address_map.h"

#include "base/mem.h"
#include "base/sort.h"
#include "report/ask/own_heap.h"

#include <stdlib.h>
#include <string.h>

const struct query_context_rules address_map_rules = {
	.about = QUERY_CONTEXT_MOMENT,
	.layers = QUERY_VM,
	.refused = ~(SELECTION_BIT(PROCESS) | SELECTION_BIT(MODULE) | SELECTION_BIT(FRAME) |
		     SELECTION_BIT(NOT_FRAME) | SELECTION_BIT(ROW)),
	.refusal = "does not apply to an address space: --process chooses it, and --frame, "
		   "--not-frame, --module and --row the mappers that are listed",
};

enum {
	FREE_SLOTS_MAX = 64,   // free ones in a row that are drawn, where the space is 64 bits wide
	ALIKE_SLOTS_MAX = 512, // mapped ones in a row that are all alike
	MAP_SHARED_BIT = 1,
};

#define HIGH_32 (UINT64_C(1) << 32)

// ---- what the pass over the trace gathers ----

// So many points have been begun: a stretch of time begins with what the one before it ended with.
static void begin_points(struct address_map *address_map, unsigned count)
{
	ASSERT(count <= ADDRESS_MAP_POINTS);
	while (address_map->now_points < count)
		address_map->points[address_map->now_points++] = address_map->now;
}

// Extremes of a stretch of time, and not its last values: a hole that was small for a moment is
// what matters. Before the first event all is as it is after that.
static void add_point(struct address_map *address_map, const struct space *space, uint64_t time_ns)
{
	const struct space_totals *totals = space_process(space, address_map->process);
	struct ranges_holes holes = ranges_holes(space_ranges(space, address_map->process),
						 address_map->low, address_map->high);
	const struct address_map_point now = {
		.free_min = holes.bytes,
		.largest_min = holes.largest,
		.reserved_max = totals->reserved_bytes + totals->inherited_bytes,
		.committed_max = totals->committed_bytes,
		.holes_max = holes.count,
	};
	uint64_t length = address_map->points_end_ns ? address_map->points_end_ns : 1;
	uint64_t at = (uint64_t)((double)time_ns / (double)length * ADDRESS_MAP_POINTS);
	struct address_map_point *point;

	if (at >= ADDRESS_MAP_POINTS)
		at = ADDRESS_MAP_POINTS - 1;
	if (address_map->now_points == 0)
		address_map->now = now;
	begin_points(address_map, (unsigned)at + 1);
	address_map->now = now;
	point = &address_map->points[at];
	if (now.free_min < point->free_min)
		point->free_min = now.free_min;
	if (now.largest_min < point->largest_min)
		point->largest_min = now.largest_min;
	if (now.holes_max > point->holes_max)
		point->holes_max = now.holes_max;
	if (now.reserved_max > point->reserved_max)
		point->reserved_max = now.reserved_max;
	if (now.committed_max > point->committed_max)
		point->committed_max = now.committed_max;
}

// What fails is weighed before the event, as it changes nothing; the curve is measured after it.
static void before_event(void *context, const struct space *space, const struct trace_event *event)
{
	struct address_map *address_map = context;

	failures_before(&address_map->failures, space, event);
}

static void on_note(void *context, const struct space *space, const struct trace_note *note)
{
	struct address_map *address_map = context;

	failures_noted(&address_map->failures, space, note);
}

static void after_event(void *context, const struct space *space, const struct trace_event *event)
{
	struct address_map *address_map = context;
	const struct trace_thread *thread =
		reader_thread(address_map->asked->reader, event->thread);

	if (thread && thread->process == address_map->process)
		add_point(address_map, space, event->time_ns);
}

// The part that was asked for; else all that the process can have.
static void set_part(struct address_map *address_map)
{
	const struct reader *reader = address_map->asked->reader;

	address_map->low = address_map->options->low;
	address_map->high = address_map->options->high;
	if (address_map->high)
		return;
	address_map->low = reader_process(reader, address_map->process)->address_low;
	address_map->high =
		space_end(present_space(address_map->asked->present), reader, address_map->process);
}

// The whole trace, for the curve and the failures. After the last event nothing changes.
static void read_whole(struct address_map *address_map)
{
	const struct present_options options = {
		.at_exit = true,
		.inherits = TRACE_NONE,
		.before = before_event,
		.after = after_event,
		.noted = on_note,
		.context = address_map,
	};

	address_map->failures = (struct failures){
		.asked = address_map->asked,
		.process = address_map->process,
		.low = address_map->low,
		.high = address_map->high,
		.most = ADDRESS_MAP_FAILURES_MAX,
	};
	address_map->points_end_ns = moment_duration(address_map->asked->reader);
	address_map->points = mem_alloc(ADDRESS_MAP_POINTS, sizeof *address_map->points);
	moment_view_calls(address_map->asked, &options, "drawing");
	begin_points(address_map, ADDRESS_MAP_POINTS);
}

// ---- the map ----

// The owner of most bytes gives the colour; `fill` is the mapped part in 255ths, rounded so that
// 255 is a slot that is mapped whole and nothing else.
struct address_map_cell address_map_cell(const struct address_map *address_map, uint64_t address)
{
	const struct space *space = present_space(address_map->asked->present);
	const struct ranges *ranges = space_ranges(space, address_map->process);
	uint64_t slot = address - address % address_map->granularity;
	uint64_t end = slot + address_map->granularity;
	uint64_t owners[SPACE_OWNERS_COUNT] = { 0 };
	struct address_map_cell cell = { .owner = ADDRESS_MAP_FREE, .reserved = true };
	uint64_t mapped = 0;
	const struct range *range;

	for (uint64_t at = slot; (range = ranges_from(ranges, at)) && range->start < end;
	     at = range->end) {
		uint64_t from = range->start > slot ? range->start : slot;
		uint64_t to = range->end < end ? range->end : end;

		owners[space_owner(space, range)] += to - from;
		mapped += to - from;
		if (range->commit || range->protection)
			cell.reserved = false;
		if (range->end >= end)
			break;
	}
	if (!mapped)
		return (struct address_map_cell){ .owner = ADDRESS_MAP_FREE };
	for (int i = 0; i < SPACE_OWNERS_COUNT; i++)
		if (cell.owner == ADDRESS_MAP_FREE ? owners[i] : owners[i] > owners[cell.owner])
			cell.owner = (uint8_t)i;
	cell.fill = (uint8_t)(mapped / ((address_map->granularity + 254) / 255));
	if (mapped == address_map->granularity)
		cell.fill = 255;
	else if (cell.fill == 0)
		cell.fill = 1;
	return cell;
}

// Joins it to the last one where they touch, so that a space without gaps is one segment.
static void add_segment(struct address_map *address_map, uint64_t start, uint64_t end,
			uint64_t skipped, uint8_t owner, bool reserved)
{
	struct address_map_segment *last =
		address_map->segments_count
			? &address_map->segments[address_map->segments_count - 1]
			: NULL;

	ASSERT(owner <= ADDRESS_MAP_FREE);
	if (last && last->end >= start && !skipped) {
		if (end > last->end)
			last->end = end;
		return;
	}
	*MEM_ADD(address_map->segments, address_map->segments_count,
		 address_map->segments_capacity) = (struct address_map_segment){
		.start = start,
		.end = end,
		.skipped = skipped,
		.skipped_owner = owner,
		.skipped_reserved = reserved,
	};
}

// [start, end) is all of one kind and begins and ends at slots: draw it, or its beginning and its
// end. Of a long free one nothing is drawn: an empty segment says how much was skipped, and what is
// mapped next extends it (add_segment).
static void add_stretch(struct address_map *address_map, uint64_t start, uint64_t end,
			uint8_t owner, bool reserved, uint64_t slots_max)
{
	uint64_t side = slots_max / 2 * address_map->granularity;

	ASSERT(start <= end && address_map->granularity > 0);
	if (end - start <= slots_max * address_map->granularity) {
		add_segment(address_map, start, end, 0, 0, false);
		return;
	}
	if (owner != ADDRESS_MAP_FREE) {
		add_segment(address_map, start, start + side, 0, 0, false);
		add_segment(address_map, end - side, end, end - start - 2 * side, owner, reserved);
	} else if (address_map->segments_count == 0) {
		add_segment(address_map, end, end, end - start, owner, reserved);
	} else if (end < address_map->high) {
		add_segment(address_map, end, end, end - start, owner, reserved);
	}
}

static uint64_t slot_down(const struct address_map *address_map, uint64_t address)
{
	ASSERT(address_map->granularity > 0);
	return address - address % address_map->granularity;
}

static uint64_t slot_up(const struct address_map *address_map, uint64_t address)
{
	return slot_down(address_map, address + address_map->granularity - 1);
}

// Goes from slot to slot: free stretches and mappings in turn. Several ranges in one slot are drawn
// once, as `at` is past the slot by then.
static void lay_out_used(struct address_map *address_map)
{
	const struct space *space = present_space(address_map->asked->present);
	const struct ranges *ranges = space_ranges(space, address_map->process);
	uint64_t at = slot_down(address_map, address_map->low);
	const struct range *range = ranges_from(ranges, address_map->low);

	while (range && range->start < address_map->high) {
		uint64_t end = range->end < address_map->high ? range->end : address_map->high;
		uint64_t from = slot_down(address_map, range->start);

		if (from > at) {
			add_stretch(address_map, at, from, ADDRESS_MAP_FREE, false, FREE_SLOTS_MAX);
			at = from;
		}
		if (slot_up(address_map, end) > at) {
			add_stretch(address_map, at, slot_up(address_map, end),
				    (uint8_t)space_owner(space, range),
				    !range->commit && !range->protection, ALIKE_SLOTS_MAX);
			at = slot_up(address_map, end);
		}
		range = ranges_from(ranges, range->end);
	}
}

static uint64_t cells_of(const struct address_map *address_map)
{
	uint64_t cells = 0;

	for (size_t i = 0; i < address_map->segments_count; i++)
		cells += (address_map->segments[i].end - address_map->segments[i].start) /
			 address_map->granularity;
	return cells;
}

// Slots are doubled until the picture has at most 65,536 cells: a program that has mapped 16 GiB in
// pieces of one page each is drawn coarser, and not larger.
static void lay_out(struct address_map *address_map)
{
	bool whole = address_map->high - address_map->low <= HIGH_32;

	for (;; address_map->granularity *= 2) {
		address_map->segments_count = 0;
		if (whole)
			add_segment(address_map, slot_down(address_map, address_map->low),
				    slot_up(address_map, address_map->high), 0, 0, false);
		else
			lay_out_used(address_map);
		if (cells_of(address_map) <= ADDRESS_MAP_CELLS_MAX)
			break;
	}
}

// ---- figures ----

// Whole free slots, the most of them in a row, and by the rest how many free bytes are of no use.
// For example a hole from 0x11000 to 0x45000 in slots of 64 KiB: it has the two slots 0x20000 and
// 0x30000, and of its 208 KiB 80 are of no use.
static void count_slots(struct address_map *address_map)
{
	const struct ranges *ranges =
		space_ranges(present_space(address_map->asked->present), address_map->process);
	uint64_t granularity = address_map->options->granularity;
	uint64_t at = address_map->low;

	while (at < address_map->high) {
		const struct range *range = ranges_from(ranges, at);
		uint64_t stop = range && range->start < address_map->high ? range->start
									  : address_map->high;
		uint64_t first = at + mappers_rest(at, granularity);

		if (stop > first) {
			uint64_t slots = (stop - first) / granularity;

			address_map->slots_free += slots;
			if (slots > address_map->largest_slots)
				address_map->largest_slots = slots;
		}
		if (!range)
			break;
		at = range->end;
	}
	address_map->unusable = address_map->holes.bytes - address_map->slots_free * granularity;
}

// A range that reaches out of the part that is shown counts with what is inside of it.
static void count_owners(struct address_map *address_map)
{
	const struct space *space = present_space(address_map->asked->present);
	const struct ranges *ranges = space_ranges(space, address_map->process);
	const struct range *range;

	for (uint64_t at = address_map->low;
	     (range = ranges_from(ranges, at)) && range->start < address_map->high;
	     at = range->end) {
		uint64_t from = range->start > address_map->low ? range->start : address_map->low;
		uint64_t to = range->end < address_map->high ? range->end : address_map->high;

		address_map->owners[space_owner(space, range)] += to - from;
		address_map->reserved += to - from;
		if (range->commit)
			address_map->committed += to - from;
	}
}

SORT_ORDER(most_in_the_way_first, struct mapper, SORT_FALLS(largest_without), SORT_FALLS(waste),
	   SORT_FALLS(bytes), SORT_RISES(stack), SORT_RISES(file), SORT_RISES(owner))

static bool group_selected(const struct address_map *address_map, const struct mapper *group)
{
	const struct query *query = &address_map->asked->selection.query;

	return !mappers_is_fixture(group->owner) &&
	       (!query->stack || query->stack(query->context, group->stack));
}

// A group that could not widen the largest hole is shown with that hole.
static void make_table(struct address_map *address_map)
{
	struct mappers mappers = {
		.space = present_space(address_map->asked->present),
		.process = address_map->process,
		.low = address_map->low,
		.high = address_map->high,
		.granularity = address_map->options->granularity,
		.now_ns = present_time(address_map->asked->present, address_map->process),
	};

	mappers_take(&mappers);
	for (size_t i = 0; i < mappers.count; i++) {
		struct mapper *group = &mappers.list[i];

		if (group->largest_without < address_map->holes.largest)
			group->largest_without = address_map->holes.largest;
		if (!group_selected(address_map, group))
			continue;
		*MEM_ADD(address_map->groups, address_map->groups_count,
			 address_map->groups_capacity) = *group;
	}
	if (address_map->groups_count)
		qsort(address_map->groups, address_map->groups_count, sizeof *address_map->groups,
		      most_in_the_way_first);
	else if (address_map->asked->selection.query.stack)
		query_context_warn(address_map->asked, "no mapper passes the filters");
	mappers_fini(&mappers);
}

bool address_map_set_granularity(struct address_map_options *options, uint64_t bytes,
				 struct err *err)
{
	options->granularity = bytes;
	return (bytes >= SPACE_PAGE && bytes <= UINT64_C(1) << 40 && !(bytes & (bytes - 1))) ||
	       err_set(err, ERR_USAGE, "granularity is a power of two from 4K to 1T");
}

// Two numbers in hexadecimal, with 0x or without, both multiples of a page.
static bool parse_range(const char *text, uint64_t *low, uint64_t *high)
{
	const char *dots = strstr(text, "..");
	char *end;

	if (!dots)
		return false;
	*low = strtoull(text, &end, 16);
	if (end != dots || end == text)
		return false;
	*high = strtoull(dots + 2, &end, 16);
	return *end == 0 && end != dots + 2 && *low < *high && *low % SPACE_PAGE == 0 &&
	       *high % SPACE_PAGE == 0;
}

bool address_map_set_range(struct address_map_options *options, const char *text, struct err *err)
{
	return parse_range(text, &options->low, &options->high) ||
	       err_set(err, ERR_USAGE,
		       "range needs two addresses of pages, as in 0x40000000..0x80000000");
}

// Two readings: the space as it is at the moment, for the map, the figures and the table; then the
// whole trace (read_whole), for the curves and for what failed at any time.
bool address_map_init(struct address_map *address_map, struct query_context *asked,
		      const struct address_map_options *options, struct err *err)
{
	const struct present_options spaces = {
		.inherits = TRACE_NONE,
		.undated = true,
		.spaces_only = true,
	};

	*address_map = (struct address_map){
		.asked = asked,
		.options = options,
		.granularity = options->granularity,
	};
	moment_view_read(asked, &spaces);
	moment_view_warn_of_space(asked);
	if (!moment_view_choose(asked, &address_map->process, err))
		return false;
	set_part(address_map);
	address_map->holes =
		ranges_holes(space_ranges(present_space(asked->present), address_map->process),
			     address_map->low, address_map->high);
	count_slots(address_map);
	count_owners(address_map);
	make_table(address_map);
	lay_out(address_map);
	read_whole(address_map);
	return true;
}

void address_map_fini(struct address_map *address_map)
{
	MEM_FREE(address_map->segments, address_map->groups, address_map->points);
	failures_fini(&address_map->failures);
	*address_map = (struct address_map){ 0 };
}

const char *address_map_heap(const struct address_map *address_map, const struct mapper *group)
{
	const struct query_context *asked = address_map->asked;

	if (group->owner != SPACE_PROGRAM)
		return NULL;
	return own_heap_mapped(asked->names, reader_process(asked->reader, address_map->process),
			       group->stack);
}

void address_map_describe_type(const struct mapper *group, struct str *text)
{
	str_add(text, group->flags & MAP_SHARED_BIT ? "shared" : "private");
	for (unsigned protection = 0; protection < 8; protection++)
		if (group->protections & 1 << protection)
			str_format(text, " %c%c%c", protection & 1 ? 'r' : '-',
				   protection & 2 ? 'w' : '-', protection & 4 ? 'x' : '-');
}

// From the palette of Okabe and Ito, with lighter and darker ones of the same hue for what belongs
// together.
const char *address_map_colour(uint8_t owner)
{
	static const char *const colours[SPACE_OWNERS_COUNT + 1] = {
		[SPACE_PROGRAM] = "#d55e00",      [SPACE_MALLOC_HEAP] = "#0072b2",
		[SPACE_MALLOC_ARENA] = "#56b4e9", [SPACE_MALLOC_LARGE] = "#003f66",
		[SPACE_ALLOCATOR] = "#8fb8de",    [SPACE_THREAD_STACK] = "#009e73",
		[SPACE_MAIN_STACK] = "#00573f",   [SPACE_LIBRARY] = "#e69f00",
		[SPACE_FILE] = "#f0e442",         [SPACE_LIBC] = "#cc79a7",
		[SPACE_LOADER] = "#7d3f64",       [SPACE_KERNEL] = "#999999",
		[SPACE_TIDEMARK] = "#4d4d4d",     [ADDRESS_MAP_FREE] = "#f4f4f4",
	};

	ASSERT(owner <= ADDRESS_MAP_FREE);
	return colours[owner];
}
