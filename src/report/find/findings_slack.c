// Findings about what blocks take beside what they hold: sizes just over a size class, and aligned
// blocks. The size that an allocator gave is not recorded. It is seen where blocks of one size are
// next to each other, by the distance between them: for example, jemalloc has no class between
// 1,024 and 1,280 bytes, so blocks of 1,040 are 1,280 apart, and nothing is ever allocated between.
// A second pass looks for what was: where blocks of a loop are apart because a temporary was
// allocated between them and freed, the room is not wasted, only free.
//
// glibc's classes are 16 bytes apart and need no distances: a block of 57 takes 80, one of 56 takes
// 64. There, distances tell of alignment: the pieces that memalign cuts off and that stay unused.
#include "report/find/findings_own.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "engine/replay/lives.h"
#include "report/find/chunk_extent.h"

#include <stdlib.h>
#include <string.h>

enum {
	BLOCKS_MIN = 64, // of one size, before distances say anything
	PART = 8,        // of its size that a block takes in vain
	SMALL_PART = 4,  // the same of glibc's classes
	CLASS = 16,      // bytes between glibc's
	OVER_MAX = 3,    // bytes that a size is over one
	ALIGNED = 64,    // what no block is by itself
	USED_PART = 20,  // of the rooms between blocks that may have been used
};

// What blocks of one size in a process are like.
struct slack_size {
	uint64_t count, aligned;
	uint64_t distance; // that most of them are from the next block, if most are equally far
	uint64_t votes;    // for it, less those against it
	uint64_t equal;    // blocks with just that
};

enum slack_way { SLACK_CLASS, SLACK_APART, SLACK_ALIGNED, SLACK_WAYS };

// Blocks of one line of the program.
struct slack_line {
	process_id process;
	uint32_t line;
	enum slack_way way;
	stack_id stack; // of the largest of them
	uint64_t largest, count, bytes, more, rooms, used;
	uint64_t all; // its blocks, with those that are not so
};

// Blocks of one process, while they are looked at: twice, since there may be a million lines in
// it, of which few waste as much as matters. First what each wastes is summed up, then those few
// are looked at as a whole.
struct slack_process {
	struct slack *slack;
	struct chunk_extent extent;
	struct map places;        // size -> its place in `sizes`
	struct slack_size *sizes; // owned
	size_t sizes_count, sizes_capacity;
	uint32_t (*more)[SLACK_WAYS]; // bytes, by line, this many or more; owned
	size_t more_count;            // lines in it
	uint32_t most;                // of any
	bool glibc;
	unsigned bits;
};

// Between two blocks.
struct slack_room {
	uint64_t start, end;
	process_id process;
	uint32_t line;
};

struct slack {
	struct findings *findings;
	struct slack_line *lines;
	size_t lines_count, lines_capacity;
	struct map known; // process, line and way -> row
	struct slack_room *rooms;
	size_t rooms_count, rooms_capacity;
};

// The number of a row by process, line and way; made, if it is new. A line's number takes 32 bits
// and a way 2, so the key has no overlap.
static uint32_t row_of(struct slack *slack, process_id process, uint32_t line, enum slack_way way)
{
	bool added;
	uint64_t *at = map_put(&slack->known,
			       ((uint64_t)process << 34) | ((uint64_t)line << 2) | way, &added);

	ASSERT(way < SLACK_WAYS);
	if (added) {
		*at = slack->lines_count;
		*MEM_ADD(slack->lines, slack->lines_count, slack->lines_capacity) =
			(struct slack_line){ .process = process, .line = line, .way = way };
	}
	ASSERT(*at < slack->lines_count);
	return (uint32_t)*at;
}

// A block that takes `more` bytes than it holds. The stack of the largest block is shown.
static void add(struct slack_line *line, const struct chunk_block *block, uint64_t more)
{
	line->count++;
	line->bytes += block->size;
	line->more += more;
	if (block->size >= line->largest) {
		line->largest = block->size;
		line->stack = block->stack;
	}
}

// The bytes between a block's end, as its size would have it, and the next block.
static void add_room(struct slack *slack, process_id process, uint32_t line, uint64_t start,
		     uint64_t end)
{
	ASSERT(line < slack->lines_count);
	MEM_ROOM(slack->rooms, slack->rooms_capacity, slack->rooms_count + 1);
	slack->rooms[slack->rooms_count++] = (struct slack_room){ start, end, process, line };
	slack->lines[line].rooms++;
}

// ---- sizes ----

// The last block has no next one: a distance that no vote wins.
static uint64_t distance_at(const struct chunk_extent *extent, size_t i)
{
	return i + 1 < extent->count ? extent->blocks[i + 1].address - extent->blocks[i].address
				     : UINT64_MAX;
}

// The distance of more than half of a size's blocks, if there is one, wins the vote.
// Majority by votes, in one pass and without a list of distances: a vote for another distance takes
// one away, so what has more than half is left at the end. The second loop counts how many agree
// with it, since what was left may have no majority.
static void measure(struct slack_process *in)
{
	const struct chunk_extent *extent = &in->extent;

	for (size_t i = 0; i < extent->count; i++) {
		const struct chunk_block *block = &extent->blocks[i];
		uint64_t distance = distance_at(extent, i);
		bool added;
		uint64_t *at = map_put(&in->places, block->size, &added);
		struct slack_size *size;

		if (added) {
			*at = in->sizes_count;
			*MEM_ADD(in->sizes, in->sizes_count, in->sizes_capacity) =
				(struct slack_size){ 0 };
		}
		size = &in->sizes[*at];
		size->count++;
		size->aligned += block->address % ALIGNED == 0;
		if (size->votes == 0)
			size->distance = distance;
		size->votes += distance == size->distance ? 1 : UINT64_MAX;
	}
	for (size_t i = 0; i < extent->count; i++) {
		struct slack_size *size =
			&in->sizes[*map_find(&in->places, extent->blocks[i].size)];

		size->equal += distance_at(extent, i) == size->distance;
	}
}

// Whether distances say what a block of the size takes, and that it is much more than `chunk`.
static bool is_apart(const struct slack_size *size, uint64_t bytes, uint64_t chunk, bool glibc)
{
	return size->count >= BLOCKS_MIN && size->equal >= size->count / 2 &&
	       size->distance < 2 * chunk + SPACE_PAGE && size->distance >= chunk + bytes / PART &&
	       size->distance > chunk && (!glibc || size->aligned == size->count);
}

// What a block takes and does not hold, and which way: whether it is far from the next, as all of
// its size are, or just over a class of glibc. In a process of 64 bits 57 bytes and a header of 8
// are 65: 1 over 64, and the chunk has 80. `room`: what it wastes is between `start` and `end`.
struct slack_waste {
	enum slack_way way; // SLACK_WAYS: none
	uint64_t more;
	bool room;
	uint64_t start, end;
};

static struct slack_waste waste_of(const struct slack_process *in, size_t i)
{
	const struct chunk_extent *extent = &in->extent;
	const struct chunk_block *block = &extent->blocks[i];
	const struct slack_size *size = &in->sizes[*map_find(&in->places, block->size)];
	uint64_t header = !in->glibc ? 0 : in->bits == 32 ? 4 : 8;
	uint64_t chunk = (block->size + header + CLASS - 1) & ~(uint64_t)(CLASS - 1);
	uint64_t over = (block->size + header) % CLASS;

	ASSERT(i < extent->count);
	if (is_apart(size, block->size, chunk, in->glibc))
		return (struct slack_waste){
			.way = in->glibc ? SLACK_ALIGNED : SLACK_APART,
			.more = size->distance - block->size,
			.room = distance_at(extent, i) == size->distance,
			.start = block->address - header + chunk,
			.end = block->address - header + size->distance,
		};
	// The smallest chunk has no class below it that a byte less would fit into.
	if (in->glibc && over >= 1 && over <= OVER_MAX && chunk > (in->bits == 32 ? 16 : 32))
		return (struct slack_waste){ .way = SLACK_CLASS, .more = CLASS };
	return (struct slack_waste){ .way = SLACK_WAYS };
}

// The line of a block that counts; 0: it does not, or has none.
static uint32_t line_that_counts(const struct slack_process *in, size_t i)
{
	const struct chunk_block *block = &in->extent.blocks[i];

	return block->selected && block->size ? findings_line(in->slack->findings, block->stack)
					      : 0;
}

// What does not fit into 32 bits may be as much as matters.
static bool is_much(const struct slack_process *in, uint32_t more)
{
	return more == UINT32_MAX || more >= findings_bytes_min(in->slack->findings);
}

// Lines that waste less than matters are left out; which these are, sum_up has found.
static void look_at(struct slack_process *in, size_t i)
{
	struct slack *slack = in->slack;
	uint32_t line = line_that_counts(in, i);
	struct slack_waste waste;

	for (int way = SLACK_CLASS; line && line < in->more_count && way < SLACK_WAYS; way++) {
		uint32_t at;

		if (!is_much(in, in->more[line][way]))
			continue;
		at = row_of(slack, in->extent.process, line, (enum slack_way)way);
		slack->lines[at].all++;
		waste = waste_of(in, i);
		if (waste.way != (enum slack_way)way)
			continue;
		add(&slack->lines[at], &in->extent.blocks[i], waste.more);
		if (waste.room)
			add_room(slack, in->extent.process, at, waste.start, waste.end);
	}
}

// Lines come up while blocks are looked at.
static uint32_t *more_of(struct slack_process *in, uint32_t line)
{
	size_t count = in->more_count;

	if (line >= count) {
		in->more_count = count + count / 2 + line + 1;
		in->more = mem_resize(in->more, in->more_count, sizeof *in->more);
		memset(in->more + count, 0, (in->more_count - count) * sizeof *in->more);
	}
	return in->more[line];
}

// How much each line of the program wastes, in each way, before any of it is told.
static void sum_up(struct slack_process *in)
{
	for (size_t i = 0; i < in->extent.count; i++) {
		uint32_t line = line_that_counts(in, i);
		struct slack_waste waste = { .way = SLACK_WAYS };
		uint32_t *more;

		if (line)
			waste = waste_of(in, i);
		if (waste.way == SLACK_WAYS)
			continue;
		more = &more_of(in, line)[waste.way];
		*more = waste.more < UINT32_MAX - *more ? *more + (uint32_t)waste.more : UINT32_MAX;
		in->most = *more > in->most ? *more : in->most;
	}
}

// What sizes the allocator has is seen first, by all blocks of the process; then each block is held
// against it.
static void look_at_process(struct slack *slack, struct present *present, process_id process)
{
	const struct reader *reader = slack->findings->asked->reader;
	struct slack_process in = { .slack = slack, .bits = reader_process(reader, process)->bits };

	chunk_extent_init(&in.extent, present, reader, process);
	in.glibc = in.extent.glibc && findings_is_glibc(slack->findings, process);
	in.more_count = reader_frames_count(reader);
	in.more = mem_alloc_table(in.more_count, sizeof *in.more);
	measure(&in);
	sum_up(&in);
	for (size_t i = 0; is_much(&in, in.most) && i < in.extent.count; i++)
		look_at(&in, i);
	MEM_FREE(in.sizes, in.more);
	map_fini(&in.places);
	chunk_extent_fini(&in.extent);
}

// ---- what was between ----

// A line counts if the waste is a part of its bytes, the rooms were never used, and three in four
// of its blocks are so. Line 0 is what has no frame of the program's.
static bool matters(struct findings *findings, const struct slack_line *line)
{
	uint64_t part = line->way == SLACK_CLASS ? SMALL_PART : PART;

	return line->line && line->more >= findings_bytes_min(findings) &&
	       line->more >= line->bytes / part && line->used <= line->rooms / USED_PART &&
	       line->count >= line->all / 4 * 3;
}

SORT_ORDER(by_place, struct slack_room, SORT_RISES(process), SORT_RISES(start))

// The block was in a room, or over it.
// Rooms are in the order of processes and addresses, and do not overlap; the first that ends after
// the block's address is the only one that it can begin in or reach.
static void on_begin(void *context, const struct lives_block *block)
{
	struct slack *slack = context;
	uint64_t end = block->address + (block->size ? block->size : 1);
	size_t low = 0, high = slack->rooms_count;

	if (block->heap && !reader_heap(slack->findings->asked->reader, block->heap)->handle)
		return; // a pool's, which lies in one of malloc's
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct slack_room *room = &slack->rooms[middle];

		if (room->process < block->process ||
		    (room->process == block->process && room->end <= block->address))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < slack->rooms_count && slack->rooms[low].process == block->process &&
	    slack->rooms[low].start < end)
		slack->lines[slack->rooms[low].line].used++;
}

// The pass costs as much as the trace is long: only for what would be told.
static bool asks_between(const struct slack *slack)
{
	for (size_t i = 0; i < slack->lines_count; i++)
		if (slack->lines[i].rooms > 0 && matters(slack->findings, &slack->lines[i]))
			return true;
	return false;
}

// Each block that the trace ever began is tried against the rooms.
static void look_between(struct slack *slack)
{
	const struct lives_watcher watcher = { .begin = on_begin, .context = slack };
	struct reader *reader = slack->findings->asked->reader;
	struct lives *lives;
	struct progress progress;

	if (!asks_between(slack))
		return;
	qsort(slack->rooms, slack->rooms_count, sizeof *slack->rooms, by_place);
	lives = lives_new(reader, &watcher, NULL);
	progress_begin(&progress, slack->findings->asked->options.window.progress, "between blocks",
		       reader_bytes(reader));
	lives_read(lives, reader, &progress);
	progress_end(&progress);
	lives_free(lives);
}

// ---- telling ----

// A way of losing bytes each: a size just over one that glibc has, blocks that lie further apart
// than they are large, an alignment.
static void say_what(struct findings *findings, struct finding *finding,
		     const struct slack_line *line)
{
	const char *function = findings_function(findings, line->stack);

	switch (line->way) {
	case SLACK_CLASS:
		findings_say(&finding->what,
			     "%s blocks of %s, of %s in the mean, are one to three bytes over a "
			     "size that glibc has: together they take %s more.",
			     STR_COUNT(line->count), function, STR_BYTES(line->bytes / line->count),
			     STR_BYTES(line->more));
		findings_say(&finding->why, "by glibc's rules, which the addresses of the blocks "
					    "agree with, at the peak");
		findings_say(&finding->advice,
			     "make them smaller by so much: each then takes 16 bytes less");
		break;
	case SLACK_APART:
		findings_say(&finding->what,
			     "%s blocks of %s hold %s each in the mean and take %s.",
			     STR_COUNT(line->count), function, STR_BYTES(line->bytes / line->count),
			     STR_BYTES((line->bytes + line->more) / line->count));
		findings_say(&finding->why,
			     "by the distances between their addresses at the peak; nothing was "
			     "ever allocated between them");
		findings_say(&finding->advice, "a size that the allocator has, or several of them "
					       "in one block");
		break;
	case SLACK_ALIGNED:
		findings_say(&finding->what,
			     "%s aligned blocks of %s hold %s each in the mean and take %s.",
			     STR_COUNT(line->count), function, STR_BYTES(line->bytes / line->count),
			     STR_BYTES((line->bytes + line->more) / line->count));
		findings_say(&finding->why, "their addresses are multiples of 64, and nothing was "
					    "ever allocated in what is between them");
		findings_say(&finding->advice,
			     "a smaller alignment, or an array that is aligned once");
		break;
	default:
		break;
	}
}

static void tell(struct findings *findings, const struct findings_kind *kind,
		 const struct slack_line *line)
{
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_LIKELY, line->process, line->stack);

	say_what(findings, finding, line);
	findings_figure(finding, "count", "blocks", FINDINGS_COUNT, line->count);
	findings_figure(finding, "bytes", "hold", FINDINGS_BYTES, line->bytes);
	findings_figure(finding, "slack_bytes", "more", FINDINGS_BYTES, line->more);
	finding->saves_bytes = line->more;
	findings_command(findings, finding, "active", "--at peak", false, true);
}

bool findings_slack(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct heap_counts *counts = &heap_totals(findings->facts->heap)->counts;
	struct slack slack = { .findings = findings };
	struct present *present;

	if (counts->peak.bytes < findings_bytes_min(findings))
		return true;
	present = findings_present(findings, counts->peak_number + 1, false);
	for (process_id id = 0; id < reader_processes_count(findings->asked->reader); id++)
		look_at_process(&slack, present, id);
	present_free(present);
	look_between(&slack);
	for (size_t i = 0; i < slack.lines_count; i++)
		if (matters(findings, &slack.lines[i]))
			tell(findings, kind, &slack.lines[i]);
	MEM_FREE(slack.rooms, slack.lines);
	map_fini(&slack.known);
	return true;
}
