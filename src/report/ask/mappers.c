// Slots to mappers, and whose the waste is.
//
// For example, slots of 64 KiB and a mapping of 4 KiB at 0x7f0000010000 with nothing else up to
// 0x7f0000020000: the slot is its owner's, and the 60 KiB after the page are free, but of no use to
// an owner that reserves whole slots. They are the waste of that mapping, which is the one below
// them. Had the page been at the slot's end, the free bytes before it would be its waste too, as
// there is nothing below in the slot.
#include "report/ask/mappers.h"

#include "base/mem.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
	return a ^ a >> 29;
}

// A file tells groups apart only where there is no stack: a program that maps a hundred files in
// one place is in the way by that place.
static bool same_group(const struct mapper *group, const struct range *range, uint8_t owner)
{
	return group->stack == range->stack && group->owner == owner &&
	       (range->stack || group->file == range->file);
}

// The position of a range's group. Keys are hashes: one that is taken by another group moves on.
static size_t group_of(struct mappers *mappers, const struct range *range)
{
	uint8_t owner = (uint8_t)space_owner(mappers->space, range);
	uint64_t key = mix(mix(range->stack, range->stack ? 0 : range->file), owner);
	uint64_t *number;
	bool added;

	for (;; key++) {
		number = map_put(&mappers->numbers, key, &added);
		if (added)
			break;
		if (same_group(&mappers->list[*number], range, owner))
			return *number;
	}
	*number = mappers->count;
	*MEM_ADD(mappers->list, mappers->count, mappers->capacity) = (struct mapper){
		.stack = range->stack,
		.file = range->file,
		.owner = owner,
		.flags = range->flags,
		.size_min = UINT64_MAX,
		.age_min_ns = UINT64_MAX,
	};
	return mappers->count - 1;
}

// Bytes from an address up to the next multiple: of 0x11000 in slots of 64 KiB 0xf000; of 0x20000
// none.
uint64_t mappers_rest(uint64_t address, uint64_t granularity)
{
	ASSERT(granularity > 0);
	return (granularity - address % granularity) % granularity;
}

// The hole [from, to) between two mappings: what of it is in slots that one of them is in. The slot
// at the lower end belongs to the mapping below the hole, that at the upper end to the one above;
// what is between are whole free slots. A hole within one slot is all of the one below. SIZE_MAX:
// nothing is there, and the waste at that end has no owner.
static void share_waste(struct mappers *mappers, uint64_t from, uint64_t to, size_t below,
			size_t above)
{
	uint64_t up = mappers_rest(from, mappers->granularity);
	uint64_t down;

	ASSERT(from <= to && (below == SIZE_MAX || below < mappers->count));
	if (below != SIZE_MAX) {
		if (up > to - from)
			up = to - from;
		mappers->list[below].waste += up;
		from += up;
	}
	down = to % mappers->granularity;
	if (down > to - from)
		down = to - from;
	if (above != SIZE_MAX)
		mappers->list[above].waste += down;
}

// A mapping may be several pieces, of other protections; they are counted as bytes here and as one
// mapping in count_mapping.
static void count_piece(struct mappers *mappers, size_t group, const struct range *range)
{
	struct mapper *into = &mappers->list[group];
	uint64_t age = mappers->now_ns > range->time_ns ? mappers->now_ns - range->time_ns : 0;

	ASSERT(group < mappers->count);
	ASSERT(range->start < range->end);
	into->bytes += range->end - range->start;
	if (range->commit)
		into->committed += range->end - range->start;
	into->protections |= (uint8_t)(1 << (range->protection & 7));
	if (age < into->age_min_ns)
		into->age_min_ns = age;
	if (age > into->age_max_ns)
		into->age_max_ns = age;
}

// A mapping, all its pieces, is over.
static void count_mapping(struct mappers *mappers, size_t group, uint64_t size)
{
	struct mapper *into = &mappers->list[group];

	ASSERT(group < mappers->count);
	into->count++;
	if (size < into->size_min)
		into->size_min = size;
	if (size > into->size_max)
		into->size_max = size;
}

// Taking the group away would make a hole of so many bytes; the largest of these is kept.
static void widen(struct mappers *mappers, size_t group, uint64_t hole)
{
	ASSERT(group < mappers->count);
	if (hole > mappers->list[group].largest_without)
		mappers->list[group].largest_without = hole;
}

// Where the hole below a range of `group` ends, which begins at `from`. A stack that grows keeps a
// gap below it free, which is no hole: Linux gives nothing there.
static uint64_t hole_end(const struct mappers *mappers, size_t group, const struct range *range,
			 uint64_t from)
{
	uint64_t gap;

	ASSERT(group < mappers->count);
	gap = mappers->list[group].owner == SPACE_MAIN_STACK ? mappers->stack_gap : 0;
	if (range->start <= from)
		return range->start;
	return range->start - from > gap ? range->start - gap : from;
}

// The hole [from, to): what of it can be given.
static void count_hole(struct mappers *mappers, uint64_t from, uint64_t to)
{
	if (mappers->align)
		from += mappers_rest(from, mappers->align);
	if (to > from && to - from > mappers->largest)
		mappers->largest = to - from;
}

// Walks the ranges once. Those side by side of one group, with the holes around them, would be one
// hole without the group. For example pieces a, a, hole, b, hole, a: without b there would be one
// hole from the end of the second a to the start of the third. A group that comes again later
// begins a run of its own: taking all of its pieces away would join holes that are far apart, which
// is another question.
void mappers_take(struct mappers *mappers)
{
	const struct ranges *ranges = space_ranges(mappers->space, mappers->process);
	const struct range *range = ranges_from(ranges, mappers->low);
	uint64_t free_from = mappers->low; // where the hole below the present group's run begins
	uint64_t last_end = mappers->low;
	uint64_t number = UINT64_MAX;
	uint64_t began = 0; // of the present mapping
	size_t present = SIZE_MAX;

	for (; range && range->start < mappers->high; range = ranges_from(ranges, last_end)) {
		size_t group = group_of(mappers, range);
		uint64_t end = hole_end(mappers, group, range, last_end);

		if (present != SIZE_MAX)
			widen(mappers, present, end - free_from);
		if (end > last_end)
			count_hole(mappers, last_end, end);
		if (mappers->granularity && range->start > last_end)
			share_waste(mappers, last_end, range->start, present, group);
		if (group != present || range->start != last_end || range->number != number) {
			if (present != SIZE_MAX)
				count_mapping(mappers, present, last_end - began);
			began = range->start;
		}
		if (group != present)
			free_from = last_end;
		count_piece(mappers, group, range);
		present = group;
		number = range->number;
		last_end = range->end;
	}
	if (last_end < mappers->high)
		count_hole(mappers, last_end, mappers->high);
	if (present == SIZE_MAX)
		return;
	count_mapping(mappers, present, last_end - began);
	if (last_end >= mappers->high)
		return;
	widen(mappers, present, mappers->high - free_from);
	if (mappers->granularity)
		share_waste(mappers, last_end, mappers->high, present, SIZE_MAX);
}

void mappers_fini(struct mappers *mappers)
{
	map_fini(&mappers->numbers);
	mem_free(mappers->list);
}

// What every process needs and cannot help having.
bool mappers_is_fixture(uint8_t owner)
{
	return owner == SPACE_TIDEMARK || owner == SPACE_KERNEL || owner == SPACE_MAIN_STACK;
}
