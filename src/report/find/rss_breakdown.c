// Resident bytes between two addresses are a difference of two sums over pages, so that a block is
// charged with exactly the bytes of it that are there. For example with the pages 0x1000 and
// 0x3000 resident, 0x2000 not, a block of 4608 bytes from 0x1f00 to 0x3100:
//
//     live         256 bytes of the first page and 256 of the last: 512
//     untouched    4096: it lives and was never touched
//
// What is left of a mapping after its blocks and their rounding is the allocator's: free. Mappings
// are gone through in the order of their addresses, and so are the places of blocks, once each;
// each line of the answer is kept as rows by stack, or by file where there is none.
#include "report/find/rss_breakdown.h"

#include "base/mem.h"
#include "base/sort.h"
#include "report/ask/pages.h"
#include "report/find/chunk_extent.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"
#include "trace/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	DISTANCE_SHARE =
		8, // of the recording's length: further from a moment a snapshot is not its own
	BETWEEN_MAX = 4096, // calls that are looked at between the marks of one
};

const struct query_context_rules rss_breakdown_rules = {
	.about = QUERY_CONTEXT_MOMENT,
	.refused = ~SELECTION_BIT(PROCESS),
	.refusal = "does not apply to resident memory, which a process has as a whole: only "
		   "--process chooses",
};

static const struct {
	const char *key, *title;
} words[RSS_BREAKDOWN_LINES] = {
	[RSS_BREAKDOWN_LIVE] = { "live", "live heap blocks" },
	[RSS_BREAKDOWN_ROUNDING] = { "rounding", "headers and rounding" },
	[RSS_BREAKDOWN_FREE] = { "free", "free, kept by the allocator" },
	[RSS_BREAKDOWN_STACKS] = { "stacks", "stacks" },
	[RSS_BREAKDOWN_FILES] = { "files", "code and files" },
	[RSS_BREAKDOWN_PROGRAM] = { "program", "the program's own mappings" },
	[RSS_BREAKDOWN_LIBC] = { "libc", "libc and the dynamic linker" },
	[RSS_BREAKDOWN_KERNEL] = { "kernel", "the kernel's (vdso)" },
	[RSS_BREAKDOWN_TIDEMARK] = { "tidemark", "tidemark itself" },
	[RSS_BREAKDOWN_UNEXPLAINED] = { "unexplained", "unexplained" },
};

static const struct {
	const char *key, *title;
} parts[RSS_BREAKDOWN_FREES] = {
	[RSS_BREAKDOWN_FREE_TOP] = { "top", "after the main heap's last block" },
	[RSS_BREAKDOWN_FREE_TOPS] = { "arena_tops", "after arenas' last blocks" },
	[RSS_BREAKDOWN_FREE_MAIN] = { "main_gaps", "between blocks of the main heap" },
	[RSS_BREAKDOWN_FREE_ARENAS] = { "arena_gaps", "between blocks of arenas" },
	[RSS_BREAKDOWN_FREE_OTHER] = { "other", "in other mappings" },
};

// Mappings of an allocator are its free memory as far as no block is in them (add_mapping).
static const uint8_t line_of_owner[SPACE_OWNERS_COUNT] = {
	[SPACE_PROGRAM] = RSS_BREAKDOWN_PROGRAM,   [SPACE_MALLOC_HEAP] = RSS_BREAKDOWN_FREE,
	[SPACE_MALLOC_ARENA] = RSS_BREAKDOWN_FREE, [SPACE_MALLOC_LARGE] = RSS_BREAKDOWN_FREE,
	[SPACE_ALLOCATOR] = RSS_BREAKDOWN_FREE,    [SPACE_THREAD_STACK] = RSS_BREAKDOWN_STACKS,
	[SPACE_MAIN_STACK] = RSS_BREAKDOWN_STACKS, [SPACE_LIBRARY] = RSS_BREAKDOWN_FILES,
	[SPACE_FILE] = RSS_BREAKDOWN_FILES,        [SPACE_LIBC] = RSS_BREAKDOWN_LIBC,
	[SPACE_LOADER] = RSS_BREAKDOWN_LIBC,       [SPACE_KERNEL] = RSS_BREAKDOWN_KERNEL,
	[SPACE_TIDEMARK] = RSS_BREAKDOWN_TIDEMARK,
};

const char *rss_breakdown_key(enum rss_breakdown_line line)
{
	ASSERT(line < RSS_BREAKDOWN_LINES);
	return words[line].key;
}

const char *rss_breakdown_title(enum rss_breakdown_line line)
{
	ASSERT(line < RSS_BREAKDOWN_LINES);
	return words[line].title;
}

const char *rss_breakdown_free_key(enum rss_breakdown_free part)
{
	ASSERT(part < RSS_BREAKDOWN_FREES);
	return parts[part].key;
}

const char *rss_breakdown_free_title(enum rss_breakdown_free part)
{
	ASSERT(part < RSS_BREAKDOWN_FREES);
	return parts[part].title;
}

// Adds bytes to a line and to the row of a stack, or of a file where there is no stack: the key has
// bit 32 set for files. Rows without bytes are not made.
static void add(struct rss_breakdown *rss_breakdown, uint8_t line, stack_id stack, file_id file,
		uint64_t bytes)
{
	uint64_t who = stack ? stack : (UINT64_C(1) << 32) + file;
	uint64_t *number;
	bool added;

	ASSERT(line <= RSS_BREAKDOWN_PURGED);
	if (line < RSS_BREAKDOWN_LINES)
		rss_breakdown->lines[line] += bytes;
	else if (line == RSS_BREAKDOWN_UNTOUCHED)
		rss_breakdown->untouched += bytes;
	else
		rss_breakdown->purged += bytes;
	if (!bytes)
		return;
	number = map_put(&rss_breakdown->numbers, (uint64_t)line << 40 | who, &added);
	if (added) {
		*number = rss_breakdown->rows_count;
		*MEM_ADD(rss_breakdown->rows, rss_breakdown->rows_count,
			 rss_breakdown->rows_capacity) = (struct rss_breakdown_row){
			.line = line,
			.stack = stack,
			.file = stack ? 0 : file,
		};
	}
	rss_breakdown->rows[*number].count++;
	rss_breakdown->rows[*number].bytes += bytes;
}

// What of a block's bytes is resident is live, what of its place around them is rounding, and what
// of its bytes is not resident is untouched, which is in no sum of resident memory.
static void add_blocks(struct rss_breakdown *rss_breakdown, const struct chunk_extent *chunk_extent,
		       const struct pages *pages)
{
	for (size_t i = 0; i < chunk_extent->count; i++) {
		const struct chunk_block *block = &chunk_extent->blocks[i];
		struct chunk_place place = chunk_extent_place(chunk_extent, i);
		uint64_t end = block->address + block->size;
		uint64_t live, whole;

		if (end > place.end)
			end = place.end;
		live = pages_between(pages, block->address, end);
		whole = pages_between(pages, place.start, place.end);
		add(rss_breakdown, RSS_BREAKDOWN_LIVE, block->stack, 0, live);
		add(rss_breakdown, RSS_BREAKDOWN_ROUNDING, block->stack, 0, whole - live);
		add(rss_breakdown, RSS_BREAKDOWN_UNTOUCHED, block->stack, 0, block->size - live);
	}
}

// Of so many bytes of the range that no block has, how many are behind the last block? That block
// is `last` (none: SIZE_MAX); what follows in the same heap has none either.
static void add_free(struct rss_breakdown *rss_breakdown, const struct range *range, size_t last,
		     const struct chunk_extent *chunk_extent, const struct pages *pages,
		     uint64_t bytes)
{
	const struct space *space = present_space(rss_breakdown->asked->present);
	const struct ranges *ranges = space_ranges(space, rss_breakdown->header->process);
	enum space_owner owner = space_owner(space, range);
	const struct range *next = ranges_find(ranges, range->end);
	uint64_t from = range->start, top = 0;
	bool more = next && space_owner(space, next) == owner && last + 1 < chunk_extent->count &&
		    chunk_extent_start(chunk_extent, last + 1) < next->end;

	ASSERT(last == SIZE_MAX || last < chunk_extent->count);
	if (owner != SPACE_MALLOC_HEAP && owner != SPACE_MALLOC_ARENA) {
		rss_breakdown->frees[RSS_BREAKDOWN_FREE_OTHER] += bytes;
		return;
	}
	if (last != SIZE_MAX && chunk_extent_place(chunk_extent, last).end > from)
		from = chunk_extent_place(chunk_extent, last).end;
	if (!more && from < range->end)
		top = pages_between(pages, from, range->end);
	rss_breakdown->frees[owner == SPACE_MALLOC_HEAP ? RSS_BREAKDOWN_FREE_TOP
							: RSS_BREAKDOWN_FREE_TOPS] += top;
	rss_breakdown->frees[owner == SPACE_MALLOC_HEAP ? RSS_BREAKDOWN_FREE_MAIN
							: RSS_BREAKDOWN_FREE_ARENAS] += bytes - top;
}

// Where a range begins. The kernel lets the main thread's stack grow downwards without a call, so
// that is asked of the snapshot's list. `below`: where the range before it ends.
static uint64_t begin_of(const struct range *range, enum space_owner owner,
			 const struct trace_snapshot *snapshot, uint64_t below)
{
	for (uint32_t i = 0; owner == SPACE_MAIN_STACK && i < snapshot->mappings_count; i++) {
		const struct trace_mapping *mapping = &snapshot->mappings[i];

		if (mapping->file == range->file && mapping->start < range->start &&
		    mapping->end > range->start)
			return mapping->start > below ? mapping->start : below;
	}
	return range->start;
}

// What of a mapping is resident and no block's, from `begin` on. `*first` is the first place that
// may reach into it: ranges rise, so it only goes on, but a place that reaches over the end is also
// the next range's.
static void add_mapping(struct rss_breakdown *rss_breakdown, const struct range *range,
			uint64_t begin, const struct chunk_extent *chunk_extent, size_t *first,
			const struct pages *pages)
{
	const struct space *space = present_space(rss_breakdown->asked->present);
	uint64_t bytes = pages_between(pages, begin, range->end);
	enum rss_breakdown_line line = line_of_owner[space_owner(space, range)];
	size_t last = SIZE_MAX;

	while (*first < chunk_extent->count &&
	       chunk_extent_place(chunk_extent, *first).end <= range->start)
		++*first;
	for (size_t i = *first; i < chunk_extent->count; i++) {
		struct chunk_place place = chunk_extent_place(chunk_extent, i);

		if (place.start >= range->end)
			break;
		bytes -= pages_between(pages,
				       place.start > range->start ? place.start : range->start,
				       place.end < range->end ? place.end : range->end);
		last = i;
	}
	if (line == RSS_BREAKDOWN_FREE)
		add_free(rss_breakdown, range, last, chunk_extent, pages, bytes);
	add(rss_breakdown, line, range->stack, range->file, bytes);
}

SORT_ORDER(by_line_then_largest, struct rss_breakdown_row, SORT_RISES(line), SORT_FALLS(bytes),
	   SORT_RISES(stack), SORT_RISES(file))

// Whose blocks they are: the plateau's, or those of the snapshot's moment. Blocks of a plateau are
// claimed first: mappings that were made for them since count as the allocator's.
static void divide(struct rss_breakdown *rss_breakdown, const struct trace_snapshot *snapshot)
{
	const struct space *space = present_space(rss_breakdown->asked->present);
	const struct ranges *ranges = space_ranges(space, snapshot->process);
	struct pages pages;
	struct chunk_extent own = { 0 }, *chunk_extent = rss_breakdown->of_plateau;
	const struct range *range;
	uint64_t known = 0;
	size_t first = 0;

	pages_init(&pages, snapshot);
	for (size_t i = 0; chunk_extent && i < chunk_extent->count; i++)
		present_claim(rss_breakdown->asked->present, snapshot->process,
			      chunk_extent->blocks[i].address);
	if (!chunk_extent) {
		chunk_extent = &own;
		chunk_extent_init(&own, rss_breakdown->asked->present, rss_breakdown->asked->reader,
				  snapshot->process);
	}
	rss_breakdown->glibc = chunk_extent->glibc;
	rss_breakdown->blocks = chunk_extent->count;
	add_blocks(rss_breakdown, chunk_extent, &pages);
	for (uint64_t at = 0; (range = ranges_from(ranges, at)); at = range->end)
		add_mapping(rss_breakdown, range,
			    begin_of(range, space_owner(space, range), snapshot, at), chunk_extent,
			    &first, &pages);
	for (int line = 0; line < RSS_BREAKDOWN_LINES; line++)
		known += rss_breakdown->lines[line];
	// A heap block in no known mapping is live all the same, so that this may be less than
	// what lies outside of mappings.
	rss_breakdown->lines[RSS_BREAKDOWN_UNEXPLAINED] = pages.total > known ? pages.total - known
									      : 0;
	for (uint32_t i = 0; i < snapshot->mappings_count; i++) {
		rss_breakdown->smaps_bytes += snapshot->mappings[i].rss;
		rss_breakdown->pss_bytes += snapshot->mappings[i].pss;
		rss_breakdown->swap_bytes += snapshot->mappings[i].swap;
	}
	rss_breakdown->difference = (int64_t)(rss_breakdown->smaps_bytes - pages.total);
	if (rss_breakdown->rows_count)
		qsort(rss_breakdown->rows, rss_breakdown->rows_count, sizeof *rss_breakdown->rows,
		      by_line_then_largest);
	chunk_extent_fini(&own);
	pages_fini(&pages);
}

// Whether a snapshot was over at the moment that is asked for.
static bool is_before(const struct trace_snapshot *snapshot, const struct moment_edge *edge)
{
	return edge->exact ? snapshot->ended <= edge->number : snapshot->time_ns <= edge->time_ns;
}

// The snapshot that is asked for, of the selected processes; UINT32_MAX: there is none. At a moment
// the last one before it counts, whatever its size; else the one with most memory.
static uint32_t choose(const struct query_context *asked, enum rss_breakdown_at at)
{
	uint32_t best = UINT32_MAX;
	uint64_t most = 0;

	ASSERT(at <= RSS_BREAKDOWN_AT_MOMENT);
	for (uint32_t i = 0; i < reader_snapshots_count(asked->reader); i++) {
		const struct trace_snapshot *each = reader_snapshot(asked->reader, i);

		if (!query_has_process(&asked->selection.query, each->process) ||
		    (at == RSS_BREAKDOWN_AT_EXIT && each->reason != TRACE_SNAPSHOT_EXIT) ||
		    (at == RSS_BREAKDOWN_AT_MOMENT && !is_before(each, &asked->edge)))
			continue;
		if (best == UINT32_MAX || at == RSS_BREAKDOWN_AT_MOMENT || each->rss_bytes > most) {
			best = i;
			most = each->rss_bytes;
		}
	}
	return best;
}

// What advice gives back, by who asked for it (present_options.after); the numbers of advice are
// Linux's. It counts whole pages that were asked for, whether they were resident or not.
static void take_purge(void *context, const struct space *, const struct trace_event *event)
{
	enum { DONTNEED = 4, FREE = 8, REMOVE = 9, DONTNEED_LOCKED = 24 };
	struct rss_breakdown *rss_breakdown = context;
	const struct reader *reader = rss_breakdown->asked->reader;
	uint32_t advice = event->kind == TRACE_MADVISE ? event->vm->flags : 0;

	if ((advice != DONTNEED && advice != FREE && advice != REMOVE &&
	     advice != DONTNEED_LOCKED) ||
	    event->vm->error || event->size > UINT64_MAX / 2 ||
	    reader_thread(reader, event->thread)->process != rss_breakdown->header->process)
		return;
	rss_breakdown->purges++;
	add(rss_breakdown, RSS_BREAKDOWN_PURGED, event->stack, 0,
	    (event->size + SPACE_PAGE - 1) & ~(uint64_t)(SPACE_PAGE - 1));
}

// The blocks that were there on the plateau, once.
static void find_blocks(struct rss_breakdown *rss_breakdown)
{
	const struct present_options undated = { .inherits = rss_breakdown->header->process,
						 .undated = true };
	struct query_context *asked = rss_breakdown->asked;
	struct moment_edge edge = asked->edge;

	asked->edge = rss_breakdown->plateau.edge;
	moment_view_read(asked, &undated);
	rss_breakdown->of_plateau = mem_alloc(1, sizeof *rss_breakdown->of_plateau);
	chunk_extent_init(rss_breakdown->of_plateau, asked->present, asked->reader,
			  rss_breakdown->header->process);
	present_free(asked->present);
	asked->present = NULL;
	asked->edge = edge;
}

// Divide what the snapshot saw up among what the trace knows at the context's moment.
static void weigh(struct rss_breakdown *rss_breakdown, const struct trace_snapshot *snapshot)
{
	struct present_options more = {
		.inherits = snapshot->process,
		.undated = true,
		.after = take_purge,
		.context = rss_breakdown,
	};

	if (rss_breakdown->plateau.bytes && !rss_breakdown->of_plateau)
		find_blocks(rss_breakdown);
	more.spaces_only = rss_breakdown->of_plateau != NULL;
	moment_view_read(rss_breakdown->asked, &more);
	divide(rss_breakdown, snapshot);
}

// Keeps what was found about the snapshot itself, for a second weighing.
static void forget(struct rss_breakdown *rss_breakdown)
{
	struct rss_breakdown kept = {
		.asked = rss_breakdown->asked,
		.header = rss_breakdown->header,
		.plateau = rss_breakdown->plateau,
		.of_plateau = rss_breakdown->of_plateau,
		.between = rss_breakdown->between,
		.rss_max_bytes = rss_breakdown->rss_max_bytes,
	};

	rss_breakdown->of_plateau = NULL;
	rss_breakdown_fini(rss_breakdown);
	*rss_breakdown = kept;
}

// An event that another one undoes counts for nothing.
static void count_between(struct rss_breakdown_between *between, const struct trace_event *event)
{
	unsigned effect = effect_of(event->kind);

	if (trace_kind_is_vm(event->kind) && !event->vm->error) {
		between->calls++;
		between->calls_bytes += event->size;
	}
	if (!(effect & EFFECT_CALL))
		return;
	if (effect & EFFECT_BEGINS) {
		between->allocations++;
		between->allocated_bytes += event->size;
	}
	between->frees += (effect & EFFECT_ENDS) != 0;
	between->frees -= (effect & EFFECT_UNDOES) != 0;
}

// What stands between the marks, and how high resident memory ever was. Where no index says that
// the trace is sound, all of it is read.
static void read_around(struct rss_breakdown *rss_breakdown)
{
	struct reader *reader = rss_breakdown->asked->reader;
	const struct trace_snapshot *header = rss_breakdown->header;
	struct reader_pass pass = { .reader = reader };
	bool sound = moment_view_go(rss_breakdown->asked, header->began);

	while (reader_pass_next(&pass) != READER_END) {
		const struct trace_event *event = &pass.event;

		if (pass.item == READER_NOTE)
			continue;
		if (sound && event->number >= header->ended)
			break;
		if (event->number >= header->began && event->number < header->ended &&
		    reader_thread(reader, event->thread)->process == header->process)
			count_between(&rss_breakdown->between, event);
	}
	rss_breakdown->rss_max_bytes = reader_process(reader, header->process)->rss_max_bytes;
}

// The mappings before each call on virtual memory between the marks.
struct between {
	const struct trace_snapshot *header;
	const struct pages *pages;
	const struct reader *reader;
	struct moment_edge edge; // before the call where least was in no mapping
	uint64_t least;
	unsigned calls;
};

static void take_between(void *context, const struct space *space, const struct trace_event *event)
{
	struct between *between = context;
	const struct trace_snapshot *header = between->header;
	const struct range *range;
	uint64_t outside = between->pages->total;

	if (event->number < header->began || event->number >= header->ended ||
	    reader_thread(between->reader, event->thread)->process != header->process ||
	    between->calls++ >= BETWEEN_MAX)
		return;
	for (uint64_t at = 0; (range = ranges_from(space_ranges(space, header->process), at));
	     at = range->end)
		outside -= pages_between(between->pages, range->start, range->end);
	if (outside >= between->least)
		return;
	between->least = outside;
	between->edge = (struct moment_edge){
		.time_ns = event->time_ns,
		.number = event->number,
		.exact = true,
	};
}

// Where between the marks are most of the resident pages mapped? False: nowhere more than at the
// end. What is asked is not kept: a pass over all calls makes an address space of its own.
static bool find_between(struct rss_breakdown *rss_breakdown, const struct trace_snapshot *snapshot,
			 struct moment_edge *edge)
{
	struct query_context *asked = rss_breakdown->asked;
	struct pages pages;
	struct between between = {
		.header = rss_breakdown->header,
		.pages = &pages,
		.reader = asked->reader,
		.least = rss_breakdown->lines[RSS_BREAKDOWN_UNEXPLAINED],
	};
	const struct present_options options = {
		.query = &asked->selection.query,
		.at_exit = true,
		.inherits = TRACE_NONE,
		.undated = true,
		.spaces_only = true,
		.before = take_between,
		.context = &between,
	};

	if (rss_breakdown->between.calls == 0)
		return false;
	pages_init(&pages, snapshot);
	moment_view_calls(asked, &options, "reading");
	pages_fini(&pages);
	*edge = between.edge;
	return between.edge.exact;
}

static void weigh_at(struct rss_breakdown *rss_breakdown, const struct trace_snapshot *snapshot,
		     const struct moment_edge *edge)
{
	forget(rss_breakdown);
	present_free(rss_breakdown->asked->present);
	rss_breakdown->asked->edge = *edge;
	weigh(rss_breakdown, snapshot);
}

// Other threads' events of the snapshot's tick may have happened before it, though they come after
// it in the trace; and where the process did not wait, those between the marks after it, though
// they come before its end. All these moments are as good by the trace; the one that explains most
// of what was resident is right most often. If none is better the first is made again.
static void weigh_again(struct rss_breakdown *rss_breakdown, const struct trace_snapshot *snapshot)
{
	struct moment_edge edges[] = {
		rss_breakdown->asked->edge,
		{ .time_ns = rss_breakdown->asked->edge.time_ns },
		{ 0 },
	};
	uint64_t least = rss_breakdown->lines[RSS_BREAKDOWN_UNEXPLAINED];
	int count = find_between(rss_breakdown, snapshot, &edges[2]) ? 3 : 2, best = 0;

	for (int i = 1; i < count; i++) {
		weigh_at(rss_breakdown, snapshot, &edges[i]);
		if (rss_breakdown->lines[RSS_BREAKDOWN_UNEXPLAINED] >= least)
			continue;
		least = rss_breakdown->lines[RSS_BREAKDOWN_UNEXPLAINED];
		best = i;
	}
	if (best < count - 1)
		weigh_at(rss_breakdown, snapshot, &edges[best]);
}

// When were most blocks alive that this memory was for? Nothing to tell where it is now.
static void find_plateau(struct rss_breakdown *rss_breakdown)
{
	struct plateau *plateau = &rss_breakdown->plateau;

	moment_view_plateau(rss_breakdown->asked, rss_breakdown->header->process,
			    rss_breakdown->header->began, plateau);
	if (plateau->bytes <= plateau->bytes_end)
		*plateau = (struct plateau){ 0 };
}

// A snapshot that the process did not wait for is read while it goes on: what it maps between the
// two readings is in one of them alone, and may be in no mapping that was known when it began.
static void warn_of_readings(struct rss_breakdown *rss_breakdown)
{
	int64_t difference = rss_breakdown->difference;
	uint64_t bytes = (uint64_t)(difference < 0 ? -difference : difference);

	if (bytes <= rss_breakdown->smaps_bytes / SNAPSHOT_AGREES_SHARE)
		return;
	query_context_warn(rss_breakdown->asked,
			   "the program went on while this snapshot was read: smaps and the page "
			   "map differ by %s, and about as much may be in the wrong line (try "
			   "another moment: --at TIME)",
			   STR_BYTES(bytes));
}

// A list of mappings that is too long for the stop in which a process is attached to comes with its
// first call (ATTACH_LIST). No process is without a page of a file.
static void warn_of_missing_list(const struct rss_breakdown *rss_breakdown)
{
	const struct trace_process *process =
		reader_process(rss_breakdown->asked->reader, rss_breakdown->header->process);

	if (process->start == TRACE_START_ATTACH && !rss_breakdown->lines[RSS_BREAKDOWN_FILES])
		query_context_warn(rss_breakdown->asked,
				   "process %" PRIu32 " had made no call by then, with which the "
				   "list comes of what it had mapped before it was attached to: "
				   "what is unexplained is of that (try a later moment: --at TIME)",
				   process->pid);
}

// A snapshot is taken when memory has grown, so the last one can be long before a moment.
static void warn_of_distance(struct query_context *asked, const struct trace_snapshot *snapshot)
{
	uint64_t at_ns = asked->edge.time_ns;
	uint64_t before_ns = at_ns > snapshot->time_ns ? at_ns - snapshot->time_ns : 0;

	if (before_ns > asked->duration_ns / DISTANCE_SHARE)
		query_context_warn(asked,
				   "the last snapshot is %s before that moment: what has changed "
				   "since is in no line (record --rss-exact takes more of them)",
				   STR_DURATION(before_ns));
}

// Why there is none: `missing` says of which moment.
static bool refuse(const struct query_context *asked, const char *missing, struct err *err)
{
	uint64_t missed = 0;
	bool attached = false;

	if (reader_is_windows(asked->reader))
		return err_set(err, ERR_USAGE,
			       "the trace is of Windows, where which memory is resident is not "
			       "recorded (try tidemark map, and active --layer vm, for what is "
			       "committed)");
	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		const struct trace_process *process = reader_process(asked->reader, id);

		if (!query_has_process(&asked->selection.query, id))
			continue;
		missed += process->snapshots_missed;
		attached |= process->start == TRACE_START_ATTACH;
	}
	if (missed)
		return err_set(
			err, ERR_USAGE,
			"the trace has no snapshot of resident memory%s: %s %s due, and there "
			"was no time (record --rss-exact takes them)",
			missing, STR_COUNT(missed), missed == 1 ? "was" : "were");
	return err_set(
		err, ERR_USAGE,
		"the trace has no snapshot of resident memory%s: one is taken when memory has "
		"grown, and when a program exits; not where it is killed, or ends by a system "
		"call of its own, or where the collector may not look%s",
		missing,
		attached ? "; of one that is attached to when it is known what it had mapped, with "
			   "its first call where that is a long list"
			 : "");
}

// One process of several is shown: how many there are, why this one, and who has no snapshot. For
// example a launcher of 24 MiB that ends last has one, and its ranks of 30 MiB, which end at the
// same time as others do, have none: there was no time. Then the largest of those is named, with
// what the kernel counted for it.
static void warn_of_processes(struct query_context *asked, enum rss_breakdown_at at)
{
	uint32_t count = reader_processes_count(asked->reader), selected = 0, without = 0;
	bool *has = mem_alloc(count + (size_t)1, sizeof *has);
	const struct trace_process *largest = NULL;
	struct str text = { 0 };

	for (uint32_t i = 0; i < reader_snapshots_count(asked->reader); i++)
		has[reader_snapshot(asked->reader, i)->process] = true;
	for (process_id id = 0; id < count; id++) {
		const struct trace_process *process = reader_process(asked->reader, id);

		if (!query_has_process(&asked->selection.query, id))
			continue;
		selected++;
		without += !has[id];
		if (!has[id] && process->rss_max_bytes > (largest ? largest->rss_max_bytes : 0))
			largest = process;
	}
	str_format(&text, "one process of %s is shown: its snapshot %s (--process chooses another)",
		   STR_COUNT(selected),
		   at == RSS_BREAKDOWN_AT_MOMENT ? "is the last one before that moment"
						 : "has the most resident memory");
	if (without > 0)
		str_format(&text, "; %s of them %s no snapshot", STR_COUNT(without),
			   without == 1 ? "has" : "have");
	if (largest)
		str_format(&text, ", such as %" PRIu32 ", which was resident with %s at most",
			   largest->pid, STR_BYTES(largest->rss_max_bytes));
	if (selected > 1)
		query_context_warn(asked, "%s", str_get(&text));
	str_fini(&text);
	mem_free(has);
}

// The snapshot of the moment that is asked for, then what was mapped and alive around it: a
// snapshot takes time, in which the program may go on. If that leaves bytes unexplained, the moment
// after the snapshot's tick is tried, too, and the best one between its marks.
bool rss_breakdown_init(struct rss_breakdown *rss_breakdown, struct query_context *asked,
			enum rss_breakdown_at at, struct err *err)
{
	static const char *const missing[] = {
		[RSS_BREAKDOWN_AT_PEAK] = "",
		[RSS_BREAKDOWN_AT_EXIT] = " at the end of a process (try --at peak)",
		[RSS_BREAKDOWN_AT_MOMENT] = " so early (try --at peak)",
	};
	struct trace_snapshot snapshot = { 0 };
	uint32_t index;

	*rss_breakdown = (struct rss_breakdown){ .asked = asked };
	index = choose(asked, at);
	if (index == UINT32_MAX)
		return refuse(asked, missing[at], err);
	rss_breakdown->header = reader_snapshot(asked->reader, index);
	rss_breakdown->at_peak = at == RSS_BREAKDOWN_AT_PEAK;
	if (rss_breakdown->header->flags & TRACE_SNAPSHOT_NO_PAGES)
		return err_set(err, ERR_USAGE,
			       "the snapshot does not say which pages were resident: the kernel "
			       "did not let the collector look");
	if (!reader_snapshot_load(asked->reader, index, &snapshot))
		return err_set(err, ERR_FORMAT, "the snapshot cannot be read");
	if (rss_breakdown->header->flags & TRACE_SNAPSHOT_CUT)
		query_context_warn(asked,
				   "the snapshot's list of pages is cut; what comes after is in no "
				   "line");
	warn_of_processes(asked, at);
	if (at == RSS_BREAKDOWN_AT_MOMENT)
		warn_of_distance(asked, rss_breakdown->header);
	// From here on the moment is the snapshot's own: when its reading was over.
	asked->at_exit = false;
	asked->edge = (struct moment_edge){
		.time_ns = rss_breakdown->header->time_ns,
		.number = rss_breakdown->header->ended,
		.exact = true,
	};
	read_around(rss_breakdown);
	if (at == RSS_BREAKDOWN_AT_PEAK)
		find_plateau(rss_breakdown);
	weigh(rss_breakdown, &snapshot);
	if (rss_breakdown->lines[RSS_BREAKDOWN_UNEXPLAINED])
		weigh_again(rss_breakdown, &snapshot);
	moment_view_warn_of_space(asked);
	warn_of_readings(rss_breakdown);
	warn_of_missing_list(rss_breakdown);
	moment_view_warn_of_samples(asked);
	snapshot_fini(&snapshot);
	return true;
}

void rss_breakdown_fini(struct rss_breakdown *rss_breakdown)
{
	if (rss_breakdown->of_plateau)
		chunk_extent_fini(rss_breakdown->of_plateau);
	mem_free(rss_breakdown->of_plateau);
	map_fini(&rss_breakdown->numbers);
	mem_free(rss_breakdown->rows);
	*rss_breakdown = (struct rss_breakdown){ 0 };
}
