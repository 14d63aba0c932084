// The address space for people: figures, the map in characters, curves, what failed, the table.
//
// The map has a character for some slots of reservation (64 KiB unless --granularity says
// otherwise): as many as keep it within 40 lines of 64 characters, a power of two. With 1 GiB to
// show there are 16,384 slots, so a character is of 8 of them. What is free or alike over a long
// way is one line:
//
//     7f0eb0000000 PPPPPPPPPPPPPPPP…
//                  … 32.0 MiB program
//     7f0eb2400000 PPPPPPPPPPPPPPPP…
//                  … 954.8 GiB free
//     7ffd66ab0000 MMM
//                  each character: 64.0 KiB
//
// A letter is the owner that has most bytes of its slots; a small one says that none of it is
// committed.
#include "report/draw/address_map.h"
#include "report/table/query_write.h"
#include "report/table/stack_text.h"

#include <inttypes.h>

enum { COLUMNS = 64, LINES_MAX = 40, CURVE_COLUMNS = 60, GROUP_COLUMNS = 62 };

// How an owner looks in the map: a letter, small if it is only reserved; or a colour of a terminal.
static const struct {
	char letter;
	unsigned char colour; // of 256
} looks[SPACE_OWNERS_COUNT] = {
	[SPACE_PROGRAM] = { 'P', 166 },     [SPACE_MALLOC_HEAP] = { 'H', 25 },
	[SPACE_MALLOC_ARENA] = { 'A', 74 }, [SPACE_MALLOC_LARGE] = { 'B', 18 },
	[SPACE_ALLOCATOR] = { 'J', 110 },   [SPACE_THREAD_STACK] = { 'S', 36 },
	[SPACE_MAIN_STACK] = { 'M', 22 },   [SPACE_LIBRARY] = { 'L', 214 },
	[SPACE_FILE] = { 'F', 227 },        [SPACE_LIBC] = { 'C', 175 },
	[SPACE_LOADER] = { 'D', 96 },       [SPACE_KERNEL] = { 'K', 246 },
	[SPACE_TIDEMARK] = { 'T', 240 },
};

static void write_label(struct paper *paper, const char *label, uint64_t bytes)
{
	paper_format(paper, PAPER_PLAIN, "  %-9s", label);
	paper_field(paper, PAPER_BOLD, STR_BYTES(bytes), 11, true);
	sink_text(paper->sink, "  ");
}

static void write_figures(const struct address_map *address_map, struct paper *paper)
{
	write_label(paper, "free", address_map->holes.bytes);
	paper_format(paper, PAPER_PLAIN, "in %s hole%s", STR_COUNT(address_map->holes.count),
		     paper_plural(address_map->holes.count));
	if (address_map->options->low || address_map->options->high)
		paper_format(paper, PAPER_PLAIN, " of 0x%" PRIx64 " to 0x%" PRIx64,
			     address_map->low, address_map->high);
	sink_text(paper->sink, "\n");
	write_label(paper, "largest", address_map->holes.largest);
	paper_format(paper, PAPER_PLAIN,
		     "free in one piece, at 0x%" PRIx64 ": %s whole slot%s of %s\n",
		     address_map->holes.largest_at, STR_COUNT(address_map->largest_slots),
		     paper_plural(address_map->largest_slots),
		     STR_BYTES(address_map->options->granularity));
	write_label(paper, "unusable", address_map->unusable);
	paper_format(paper, PAPER_PLAIN, "of the free bytes, in slots that are taken in part\n");
	write_label(paper, "mapped", address_map->reserved);
	paper_format(paper, PAPER_PLAIN, "%s of it committed\n\n",
		     STR_BYTES(address_map->committed));
}

// By letter where there is no colour: also colour-blind readers and files can tell owners by it.
static void write_look(struct paper *paper, uint8_t owner, bool reserved, bool full)
{
	char c;

	ASSERT(owner < SPACE_OWNERS_COUNT);
	c = looks[owner].letter;
	if (paper->colour)
		sink_format(paper->sink, "\033[38;5;%um%s\033[0m", looks[owner].colour,
			    reserved ? "▒"
			    : full   ? "█"
				     : "▄");
	else
		sink_format(paper->sink, "%c", reserved ? c + ('a' - 'A') : c);
}

// Only owners that have something, three on a line, each with the bytes that it has mapped.
static void write_legend(const struct address_map *address_map, struct paper *paper)
{
	unsigned column = 0;

	sink_text(paper->sink, "  ");
	for (uint8_t owner = 0; owner < SPACE_OWNERS_COUNT; owner++) {
		if (!address_map->owners[owner])
			continue;
		if (column == 3) {
			sink_text(paper->sink, "\n  ");
			column = 0;
		}
		write_look(paper, owner, false, true);
		paper_format(paper, PAPER_PLAIN, " %-13s%11s    ",
			     space_owner_word((enum space_owner)owner),
			     STR_BYTES(address_map->owners[owner]));
		column++;
	}
	paper_format(paper, PAPER_DIM, "\n  %s\n\n",
		     paper->colour ? "▒ reserved, not committed   ▄ less than half   · free"
				   : "small letters: reserved, not committed; .: free");
}

// One character for some slots. It is of the owner that fills most of them, and small (or pale)
// only if nothing in them is committed. `fill` of a slot is 0 to 255: for example 8 slots of which
// three are full and one is half full have 893 of 2,040, less than half.
static void write_cell(const struct address_map *address_map, struct paper *paper, uint64_t at,
		       uint64_t slots)
{
	uint64_t owners[SPACE_OWNERS_COUNT] = { 0 };
	uint64_t fill = 0;
	bool reserved = true;
	uint8_t most = ADDRESS_MAP_FREE;

	ASSERT(slots > 0);
	for (uint64_t i = 0; i < slots; i++) {
		struct address_map_cell cell =
			address_map_cell(address_map, at + i * address_map->granularity);

		if (cell.owner == ADDRESS_MAP_FREE)
			continue;
		owners[cell.owner] += cell.fill;
		fill += cell.fill;
		reserved = reserved && cell.reserved;
	}
	for (uint8_t owner = 0; owner < SPACE_OWNERS_COUNT; owner++)
		if (owners[owner] && (most == ADDRESS_MAP_FREE || owners[owner] > owners[most]))
			most = owner;
	if (most == ADDRESS_MAP_FREE)
		paper_text(paper, PAPER_DIM, paper->colour ? "·" : ".");
	else
		write_look(paper, most, reserved, fill * 2 >= slots * 255);
}

static void write_skipped(const struct address_map *, struct paper *paper,
			  const struct address_map_segment *segment)
{
	if (!segment->skipped)
		return;
	paper_format(paper, PAPER_DIM, "%16s … %s %s%s\n", "", STR_BYTES(segment->skipped),
		     segment->skipped_owner == ADDRESS_MAP_FREE
			     ? "free"
			     : space_owner_word((enum space_owner)segment->skipped_owner),
		     segment->skipped_reserved ? ", reserved" : "");
}

// Characters stand for as many slots as are needed to have at most 40 lines of 64 characters. The
// last one of a segment may be of fewer.
static void write_map(const struct address_map *address_map, struct paper *paper)
{
	uint64_t cells = 0;
	uint64_t slots;

	ASSERT(address_map->granularity > 0);
	for (size_t i = 0; i < address_map->segments_count; i++)
		cells += (address_map->segments[i].end - address_map->segments[i].start) /
			 address_map->granularity;
	for (slots = 1; slots * COLUMNS * LINES_MAX < cells;)
		slots *= 2;
	for (size_t i = 0; i < address_map->segments_count; i++) {
		const struct address_map_segment *segment = &address_map->segments[i];
		uint64_t step = slots * address_map->granularity;

		write_skipped(address_map, paper, segment);
		for (uint64_t at = segment->start; at < segment->end;) {
			paper_format(paper, PAPER_DIM, "%16" PRIx64 " ", at);
			for (int column = 0; column < COLUMNS && at < segment->end; column++) {
				uint64_t left = (segment->end - at) / address_map->granularity;

				write_cell(address_map, paper, at, left < slots ? left : slots);
				at += left < slots ? left * address_map->granularity : step;
			}
			sink_text(paper->sink, "\n");
		}
	}
	paper_format(paper, PAPER_DIM, "%16s each character: %s\n\n", "",
		     STR_BYTES(slots * address_map->granularity));
}

// ---- curves ----

static uint64_t free_of(const struct address_map_point *point)
{
	return point->free_min;
}

static uint64_t largest_of(const struct address_map_point *point)
{
	return point->largest_min;
}

static uint64_t committed_of(const struct address_map_point *point)
{
	return point->committed_max;
}

static uint64_t holes_of(const struct address_map_point *point)
{
	return point->holes_max;
}

// A column is four points of the curve; a bar has eight heights, scaled to the highest column.
// `lowest` says whether a column shows the least or the most of its points.
static void write_curve(const struct address_map *address_map, struct paper *paper,
			const char *label, uint64_t (*value)(const struct address_map_point *point),
			bool lowest, bool bytes)
{
	static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	uint64_t columns[CURVE_COLUMNS];
	uint64_t high = 0;
	uint64_t low = UINT64_MAX;

	for (int i = 0; i < CURVE_COLUMNS; i++) {
		columns[i] = lowest ? UINT64_MAX : 0;
		for (int k = i * ADDRESS_MAP_POINTS / CURVE_COLUMNS;
		     k < (i + 1) * ADDRESS_MAP_POINTS / CURVE_COLUMNS; k++) {
			uint64_t each = value(&address_map->points[k]);

			if (lowest ? each < columns[i] : each > columns[i])
				columns[i] = each;
		}
		high = columns[i] > high ? columns[i] : high;
		low = columns[i] < low ? columns[i] : low;
	}
	ASSERT(low <= high);
	paper_format(paper, PAPER_PLAIN, "  %-13s ", label);
	for (int i = 0; i < CURVE_COLUMNS; i++)
		sink_text(paper->sink,
			  bars[high ? (size_t)((double)columns[i] / (double)high * 7.0) : 0]);
	if (bytes)
		paper_format(paper, PAPER_PLAIN, "  %s to %s\n", STR_BYTES(low), STR_BYTES(high));
	else
		paper_format(paper, PAPER_PLAIN, "  %s to %s\n", STR_COUNT(low), STR_COUNT(high));
}

static void write_curves(const struct address_map *address_map, struct paper *paper)
{
	write_curve(address_map, paper, "free", free_of, true, true);
	write_curve(address_map, paper, "largest free", largest_of, true, true);
	write_curve(address_map, paper, "holes", holes_of, false, false);
	write_curve(address_map, paper, "committed", committed_of, false, true);
	paper_format(paper, PAPER_DIM, "  %-13s 0%*s\n\n", "", CURVE_COLUMNS - 1,
		     STR_DURATION(address_map->points_end_ns));
}

// ---- the table ----

static void write_who(const struct address_map *address_map, struct stack_text *stacks,
		      const struct mapper *group)
{
	const struct trace_file *file = reader_file(address_map->asked->reader, group->file);

	if (group->stack == 0 && group->file && file) {
		paper_foreign(stacks->paper, PAPER_PLAIN, file->path,
			      stacks->paper->width - stacks->indent);
		sink_text(stacks->paper->sink, "\n");
	} else if (group->stack == 0) {
		paper_format(stacks->paper, PAPER_DIM, "(%s, without a stack)\n",
			     space_owner_word((enum space_owner)group->owner));
	} else {
		stack_text_write(stacks, address_map->process, group->stack);
	}
}

// Two lines: what it is and who mapped it, then sizes, protections and ages.
static void write_group(const struct address_map *address_map, struct stack_text *stacks,
			const struct mapper *group)
{
	const char *heap = address_map_heap(address_map, group);
	struct paper *paper = stacks->paper;
	struct str line = { 0 };

	ASSERT(group->count > 0 && group->size_min <= group->size_max);
	paper_field(paper,
		    group->largest_without > address_map->holes.largest ? PAPER_BOLD : PAPER_DIM,
		    STR_BYTES(group->largest_without), 10, true);
	paper_field(paper, PAPER_PLAIN, STR_COUNT(group->count), 7, true);
	paper_field(paper, PAPER_PLAIN, STR_BYTES(group->bytes), 11, true);
	paper_field(paper, group->waste ? PAPER_BOLD : PAPER_DIM, STR_BYTES(group->waste), 11,
		    true);
	sink_text(paper->sink, "  ");
	paper_field(paper, PAPER_PLAIN,
		    heap ? heap : space_owner_word((enum space_owner)group->owner),
		    GROUP_COLUMNS - 41, false);
	write_who(address_map, stacks, group);
	str_format(&line, "%*s", 30, "");
	str_add(&line, STR_BYTES(group->size_min));
	if (group->size_max != group->size_min)
		str_format(&line, " to %s", STR_BYTES(group->size_max));
	str_add(&line, " each, ");
	address_map_describe_type(group, &line);
	str_format(&line, ", %s old", STR_DURATION(group->age_min_ns));
	if (group->age_max_ns != group->age_min_ns)
		str_format(&line, " to %s", STR_DURATION(group->age_max_ns));
	paper_foreign(paper, PAPER_DIM, str_get(&line), paper->width);
	sink_text(paper->sink, "\n");
	str_fini(&line);
}

// Rows are in the order of address_map: those first without which the largest hole would be
// largest. What is printed bold would make it larger than it is.
static void write_table(const struct address_map *address_map, struct stack_text *stacks)
{
	struct paper *paper = stacks->paper;
	uint64_t most = address_map->options->rows_max ? address_map->options->rows_max
						       : UINT64_MAX;

	paper_text(paper, PAPER_BOLD, "WHO IS IN THE WAY\n");
	paper_format(paper, PAPER_DIM, "%10s%7s%11s%11s  %-*s%s\n", "largest", "count", "mapped",
		     "waste", GROUP_COLUMNS - 41, "owner", "who mapped it");
	paper_text(paper, PAPER_DIM, "   without\n");
	for (size_t i = 0; i < address_map->groups_count && i < most; i++)
		write_group(address_map, stacks, &address_map->groups[i]);
	if (address_map->groups_count > most)
		paper_more(paper, address_map->groups_count - most);
	sink_text(paper->sink, "\n");
}

// ---- failures ----

// A call that failed though a hole was large enough: was the address space's own limit near? What
// is mapped plus what was asked for says so of RLIMIT_AS. Of RLIMIT_DATA and of memory itself the
// trace knows too little, so there it is a question.
static void write_limits(const struct address_map *address_map, struct paper *paper,
			 const struct failure *failure)
{
	const struct trace_process *process =
		reader_process(address_map->asked->reader, address_map->process);

	if (process->mapped_limit && failure->mapped + failure->size > process->mapped_limit)
		paper_format(paper, PAPER_PLAIN,
			     ", but of a limit: %s were mapped of %s (RLIMIT_AS)\n",
			     STR_BYTES(failure->mapped), STR_BYTES(process->mapped_limit));
	else if (process->data_limit)
		paper_format(paper, PAPER_PLAIN, " (of the limit of %s, RLIMIT_DATA, or memory?)\n",
			     STR_BYTES(process->data_limit));
	else
		sink_text(paper->sink, " (a limit, or memory?)\n");
}

// `largest hole` decides what is said: with one that is large enough it was a limit; else the group
// whose mappings, taken away, would leave the largest hole is named.
static void write_failure(const struct address_map *address_map, struct stack_text *stacks,
			  const struct failure *failure)
{
	struct paper *paper = stacks->paper;
	const char *hole = STR_BYTES(failure->holes.largest);
	int word = failure->need == FAILURE_NEEDS_ANY ? 8 : 13; // columns: MapViewOfFile

	paper_field(paper, PAPER_PLAIN, STR_DURATION(failure->time_ns), 12, true);
	paper_format(paper, PAPER_BOLD, "  %-*s", word, failures_word(failure));
	paper_field(paper, PAPER_BOLD, STR_BYTES(failure->size), 10, true);
	paper_format(paper, PAPER_PLAIN, "%*s", GROUP_COLUMNS - 24 - word, "");
	stack_text_write(stacks, address_map->process, failure->stack);
	if (failure->count > 1)
		paper_format(paper, PAPER_PLAIN, "%14s%s times, the last at %s\n", "",
			     STR_COUNT(failure->count), STR_DURATION(failure->last_ns));
	if (failure->need == FAILURE_NEEDS_ADDRESSES && failure->holes.largest >= failure->size) {
		paper_format(paper, PAPER_PLAIN,
			     "%14slargest hole %s, which was not given: it commits nothing, so "
			     "it lacked no memory\n",
			     "", hole);
		return;
	}
	if (failure->holes.largest >= failure->size) {
		paper_format(paper, PAPER_PLAIN,
			     "%14slargest hole %s: it was not for want of address space", "", hole);
		write_limits(address_map, paper, failure);
		return;
	}
	paper_format(paper, PAPER_PLAIN, "%14slargest hole %s, of %s free in %s holes", "", hole,
		     STR_BYTES(failure->holes.bytes), STR_COUNT(failure->holes.count));
	if (failure->low != address_map->low || failure->high != address_map->high)
		paper_format(paper, PAPER_PLAIN, " from 0x%" PRIx64 " to 0x%" PRIx64, failure->low,
			     failure->high);
	sink_text(paper->sink, "\n");
	if (failure->culprit.count == 0)
		return;
	paper_format(paper, PAPER_PLAIN, "%14s%s without %s mapping%s (%s) of:\n", "",
		     STR_BYTES(failure->culprit.largest_without), STR_COUNT(failure->culprit.count),
		     paper_plural(failure->culprit.count), STR_BYTES(failure->culprit.bytes));
	paper_format(paper, PAPER_PLAIN, "%*s", GROUP_COLUMNS, "");
	write_who(address_map, stacks, &failure->culprit);
}

static void write_failures(const struct address_map *address_map, struct stack_text *stacks)
{
	const struct failures *failures = &address_map->failures;

	if (failures->in_place)
		paper_format(stacks->paper, PAPER_DIM,
			     "%s call%s that may not move the block (HEAP_REALLOC_IN_PLACE_ONLY, "
			     "mremap without\nMREMAP_MAYMOVE) found no room after it; failures "
			     "below are without them\n\n",
			     STR_COUNT(failures->in_place), paper_plural(failures->in_place));
	if (!failures->calls)
		return;
	paper_text(stacks->paper, PAPER_BOLD, "FAILED FOR WANT OF MEMORY\n");
	for (size_t i = 0; i < failures->count; i++)
		write_failure(address_map, stacks, &failures->list[i]);
	if (failures->left_out)
		paper_format(stacks->paper, PAPER_DIM, "  %s more\n",
			     STR_COUNT(failures->left_out));
	sink_text(stacks->paper->sink, "\n");
}

void address_map_write_text(const struct address_map *address_map, struct paper *paper)
{
	struct stack_text stacks = query_write_stacks(address_map->asked, paper, GROUP_COLUMNS, 3,
						      address_map->options->all_frames);

	stacks.several = false; // all are of one process
	moment_view_write_headline(address_map->asked, paper, address_map->process);
	write_figures(address_map, paper);
	write_legend(address_map, paper);
	write_map(address_map, paper);
	write_curves(address_map, paper);
	write_failures(address_map, &stacks);
	write_table(address_map, &stacks);
	query_write_last(address_map->asked, &stacks);
}
