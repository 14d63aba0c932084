#include "report/balance.h"

#include "base/mem.h"
#include "report/berths.h"
#include "report/pages.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *key, *title;
} words[BALANCE_LINES] = {
	[BALANCE_LIVE] = { "live", "live heap blocks" },
	[BALANCE_ROUNDING] = { "rounding", "headers and rounding" },
	[BALANCE_FREE] = { "free", "free, kept by the allocator" },
	[BALANCE_STACKS] = { "stacks", "stacks" },
	[BALANCE_FILES] = { "files", "code and files" },
	[BALANCE_PROGRAM] = { "program", "the program's own mappings" },
	[BALANCE_LIBC] = { "libc", "libc and the dynamic linker" },
	[BALANCE_KERNEL] = { "kernel", "the kernel's (vdso)" },
	[BALANCE_TIDEMARK] = { "tidemark", "tidemark itself" },
	[BALANCE_UNEXPLAINED] = { "unexplained", "unexplained" },
};

static const uint8_t line_of_owner[SPACE_OWNERS_COUNT] = {
	[SPACE_PROGRAM] = BALANCE_PROGRAM,   [SPACE_MALLOC_HEAP] = BALANCE_FREE,
	[SPACE_MALLOC_ARENA] = BALANCE_FREE, [SPACE_MALLOC_LARGE] = BALANCE_FREE,
	[SPACE_ALLOCATOR] = BALANCE_FREE,    [SPACE_THREAD_STACK] = BALANCE_STACKS,
	[SPACE_MAIN_STACK] = BALANCE_STACKS, [SPACE_LIBRARY] = BALANCE_FILES,
	[SPACE_FILE] = BALANCE_FILES,        [SPACE_LIBC] = BALANCE_LIBC,
	[SPACE_LOADER] = BALANCE_LIBC,       [SPACE_KERNEL] = BALANCE_KERNEL,
	[SPACE_TIDEMARK] = BALANCE_TIDEMARK,
};

const char *balance_key(enum balance_line line)
{
	return words[line].key;
}

const char *balance_title(enum balance_line line)
{
	return words[line].title;
}

static void add(struct balance *balance, uint8_t line, stack_id stack, file_id file, uint64_t bytes)
{
	uint64_t who = stack ? stack : (UINT64_C(1) << 32) + file;
	uint64_t *number;
	bool added;

	if (line < BALANCE_LINES)
		balance->lines[line] += bytes;
	else
		balance->untouched += bytes;
	if (!bytes)
		return;
	number = map_put(&balance->numbers, (uint64_t)line << 40 | who, &added);
	if (added) {
		*number = balance->rows_count;
		balance->rows = mem_grow(balance->rows, &balance->rows_capacity,
					 balance->rows_count + 1, sizeof *balance->rows);
		balance->rows[balance->rows_count++] = (struct balance_row){
			.line = line,
			.stack = stack,
			.file = stack ? 0 : file,
		};
	}
	balance->rows[*number].count++;
	balance->rows[*number].bytes += bytes;
}

static void add_blocks(struct balance *balance, const struct berths *berths,
		       const struct pages *pages)
{
	for (size_t i = 0; i < berths->count; i++) {
		const struct present_block *block = &berths->blocks[i];
		uint64_t end = block->address + block->size;
		uint64_t live, whole;

		if (end > berths->ends[i])
			end = berths->ends[i];
		live = pages_between(pages, block->address, end);
		whole = pages_between(pages, berths->starts[i], berths->ends[i]);
		add(balance, BALANCE_LIVE, block->stack, 0, live);
		add(balance, BALANCE_ROUNDING, block->stack, 0, whole - live);
		add(balance, BALANCE_LINES, block->stack, 0, block->size - live);
	}
}

// What of a mapping is resident and no block's.
static void add_mapping(struct balance *balance, const struct range *range,
			const struct berths *berths, size_t *first, const struct pages *pages)
{
	const struct space *space = present_space(balance->sight->present);
	uint64_t bytes = pages_between(pages, range->start, range->end);

	while (*first < berths->count && berths->ends[*first] <= range->start)
		++*first;
	for (size_t i = *first; i < berths->count && berths->starts[i] < range->end; i++) {
		uint64_t from = berths->starts[i] > range->start ? berths->starts[i] : range->start;
		uint64_t to = berths->ends[i] < range->end ? berths->ends[i] : range->end;

		bytes -= pages_between(pages, from, to);
	}
	add(balance, line_of_owner[space_owner(space, range)], range->stack, range->file, bytes);
}

static int by_line_then_largest(const void *a, const void *b)
{
	const struct balance_row *x = a;
	const struct balance_row *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

static void divide(struct balance *balance, const struct trace_snapshot *snapshot)
{
	const struct reader *reader = balance->sight->reader;
	const struct ranges *ranges =
		space_ranges(present_space(balance->sight->present), snapshot->process);
	struct pages pages;
	struct berths berths;
	const struct range *range;
	uint64_t known = 0;
	size_t first = 0;

	pages_init(&pages, snapshot);
	berths_init(&berths, balance->sight->present, snapshot->process,
		    reader_process(reader, snapshot->process)->bits);
	balance->glibc = berths.glibc;
	balance->blocks = berths.count;
	add_blocks(balance, &berths, &pages);
	for (uint64_t at = 0; (range = ranges_from(ranges, at)); at = range->end)
		add_mapping(balance, range, &berths, &first, &pages);
	for (int line = 0; line < BALANCE_LINES; line++)
		known += balance->lines[line];
	// A heap block in no known mapping is live all the same, so that this may be less than
	// what lies outside of mappings.
	balance->lines[BALANCE_UNEXPLAINED] = pages.total > known ? pages.total - known : 0;
	for (uint32_t i = 0; i < snapshot->mappings_count; i++)
		balance->smaps_bytes += snapshot->mappings[i].rss;
	balance->difference = (int64_t)(balance->smaps_bytes - pages.total);
	if (balance->rows_count)
		qsort(balance->rows, balance->rows_count, sizeof *balance->rows,
		      by_line_then_largest);
	berths_fini(&berths);
	pages_fini(&pages);
}

// The snapshot that is asked for, of the selected processes; UINT32_MAX: there is none.
static uint32_t choose(const struct sight *sight, bool peak)
{
	uint32_t best = UINT32_MAX;
	uint64_t most = 0;

	for (uint32_t i = 0; i < reader_snapshots_count(sight->reader); i++) {
		const struct trace_snapshot *each = reader_snapshot(sight->reader, i);

		if (!query_has_process(&sight->selection.query, each->process) ||
		    (!peak && each->reason != TRACE_SNAPSHOT_EXIT))
			continue;
		if (best == UINT32_MAX || each->rss_bytes > most) {
			best = i;
			most = each->rss_bytes;
		}
	}
	return best;
}

// Divide what the snapshot saw up among what the trace knows at the sight's moment.
static void weigh(struct balance *balance, const struct trace_snapshot *snapshot)
{
	struct present_options more = { .inherits = snapshot->process };

	sight_read(balance->sight, &more);
	divide(balance, snapshot);
}

static void forget(struct balance *balance)
{
	struct sight *sight = balance->sight;
	const struct trace_snapshot *header = balance->header;

	balance_fini(balance);
	*balance = (struct balance){ .sight = sight, .header = header };
}

// Other threads' events of the snapshot's tick may have happened before it, though they stand
// behind it. If the moment behind the tick explains more, it is taken.
static void weigh_again(struct balance *balance, const struct trace_snapshot *snapshot)
{
	struct sight *sight = balance->sight;
	struct moment_edge edge = sight->edge;
	uint64_t unexplained = balance->lines[BALANCE_UNEXPLAINED];

	forget(balance);
	present_free(sight->present);
	sight->edge = (struct moment_edge){ .time_ns = edge.time_ns };
	weigh(balance, snapshot);
	if (balance->lines[BALANCE_UNEXPLAINED] < unexplained)
		return;
	forget(balance);
	present_free(sight->present);
	sight->edge = edge;
	weigh(balance, snapshot);
}

bool balance_init(struct balance *balance, struct sight *sight, bool peak, struct err *err)
{
	struct trace_snapshot snapshot = { 0 };
	uint32_t index;

	*balance = (struct balance){ .sight = sight };
	index = choose(sight, peak);
	if (index == UINT32_MAX)
		return err_set(err, ERR_USAGE, "the trace has no snapshot of resident memory%s",
			       peak ? "" : " at the end of a process (try --at peak)");
	balance->header = reader_snapshot(sight->reader, index);
	if (balance->header->flags & TRACE_SNAPSHOT_NO_PAGES)
		return err_set(err, ERR_USAGE,
			       "the snapshot does not say which pages were resident: the kernel "
			       "did not let the collector look");
	if (!reader_snapshot_load(sight->reader, index, &snapshot))
		return err_set(err, ERR_FORMAT, "the snapshot cannot be read");
	if (balance->header->flags & TRACE_SNAPSHOT_CUT)
		sight_warn(sight, "the snapshot's list of pages is cut; what lies behind is in no "
				  "line");
	sight->at_exit = false;
	sight->edge = (struct moment_edge){
		.time_ns = balance->header->time_ns,
		.number = balance->header->ended,
		.exact = true,
	};
	weigh(balance, &snapshot);
	if (balance->lines[BALANCE_UNEXPLAINED])
		weigh_again(balance, &snapshot);
	sight_warn_of_space(sight);
	snapshot_fini(&snapshot);
	return true;
}

void balance_fini(struct balance *balance)
{
	map_fini(&balance->numbers);
	mem_free(balance->rows);
	*balance = (struct balance){ 0 };
}
