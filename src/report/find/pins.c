// Pages and the places of blocks are both gone through by rising address, once: `first` is the
// first place that may still reach into the page. For example with --max-live 128, and places of
// 48 bytes by stack a and of 32 by stack b on page 0x1000, and one of 48 by a on page 0x2000:
//
//     0x1000    80 bytes taken: pinned, by a and by b. Neither is alone on it
//     0x2000    48 bytes taken: pinned by a alone: could go back if a's blocks were elsewhere
//     0x3000    nothing taken: free
//
// A place is what the allocator took for a block, so it counts for the page; the bytes of a row
// are the blocks' own.
#include "report/find/pins.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "report/ask/pages.h"
#include "report/find/chunk_extent.h"
#include "report/table/query_write.h"

#include <stdlib.h>

const struct query_context_rules pins_rules = {
	.about = QUERY_CONTEXT_MOMENT,
	.refused = ~SELECTION_BIT(PROCESS),
	.refusal = "does not apply to pages, which any block on them keeps: only --process "
		   "chooses",
};

enum { ROW_COLUMNS = 48 };

// The census in the making.
struct proc_memory {
	struct pins *pins;
	struct chunk_extent chunk_extent;
	struct pages present; // of the snapshot, if there is one
	struct map rows;      // stack -> row
	size_t counted;       // blocks before this one are in their rows, or on no pinned page
};

// Without a snapshot each page counts as resident.
static bool is_there(const struct proc_memory *proc_memory, uint64_t page)
{
	return !proc_memory->pins->resident ||
	       pages_between(&proc_memory->present, page, page + SPACE_PAGE) != 0;
}

// The row of a stack; made, if it is new. Valid until the next call.
static struct pins_row *row_of(struct proc_memory *proc_memory, stack_id stack)
{
	struct pins *pins = proc_memory->pins;
	bool added;
	uint64_t *number = map_put(&proc_memory->rows, stack, &added);

	if (added) {
		*number = pins->rows_count;
		*MEM_ADD(pins->rows, pins->rows_count, pins->rows_capacity) =
			(struct pins_row){ .stack = stack };
	}
	ASSERT(*number < pins->rows_count);
	return &pins->rows[*number];
}

// Bytes of [start, end) on a page.
static uint64_t overlap(uint64_t start, uint64_t end, uint64_t page)
{
	uint64_t from = start > page ? start : page;
	uint64_t to = end < page + SPACE_PAGE ? end : page + SPACE_PAGE;

	return from < to ? to - from : 0;
}

// The blocks [first, last) are on a pinned page. The first may be on the page before, too: it is
// counted once. `last_page` keeps a stack's several blocks on one page from counting the page
// twice; it is page + 1, as 0 is no page yet.
static void count_pinned(struct proc_memory *proc_memory, uint64_t page, size_t first, size_t last)
{
	const struct chunk_block *blocks = proc_memory->chunk_extent.blocks;
	bool alone = true;

	ASSERT(first < last && last <= proc_memory->chunk_extent.count);
	for (size_t i = first; i < last; i++) {
		struct pins_row *row = row_of(proc_memory, blocks[i].stack);
		uint64_t bytes =
			overlap(blocks[i].address, blocks[i].address + blocks[i].size, page);

		row->blocks += i >= proc_memory->counted;
		row->live_bytes += bytes;
		proc_memory->pins->pinned_bytes += bytes;
		if (row->last_page != page + 1)
			row->pages++;
		row->last_page = page + 1;
		alone = alone && blocks[i].stack == blocks[first].stack;
	}
	if (last > proc_memory->counted)
		proc_memory->counted = last;
	if (alone)
		row_of(proc_memory, blocks[first].stack)->alone++;
}

// The pages of [low, high), where `*first` is the first place that may still reach into them.
static void count_pages(struct proc_memory *proc_memory, uint64_t low, uint64_t high, size_t *first)
{
	const struct chunk_extent *chunk_extent = &proc_memory->chunk_extent;
	struct pins *pins = proc_memory->pins;

	ASSERT(low % SPACE_PAGE == 0);
	for (uint64_t page = low; page < high; page += SPACE_PAGE) {
		uint64_t taken = 0;
		size_t last, begin, over;

		while (*first < chunk_extent->count &&
		       chunk_extent_place(chunk_extent, *first).end <= page)
			++*first;
		begin = over = *first;
		for (last = begin; last < chunk_extent->count; last++) {
			struct chunk_place place = chunk_extent_place(chunk_extent, last);

			if (place.start >= page + SPACE_PAGE)
				break;
			taken += overlap(place.start, place.end, page);
			// Those in front that end here are looked at no more.
			if (over == last && place.end <= page + SPACE_PAGE)
				over++;
		}
		*first = over;
		// Asked after its blocks: `first` has to go on over a page that is not resident,
		// too.
		if (!is_there(proc_memory, page))
			continue;
		pins->pages++;
		if (!taken) {
			pins->pages_free++;
		} else if (taken > pins->options->live_max) {
			pins->pages_used++;
		} else {
			pins->pages_pinned++;
			count_pinned(proc_memory, page, begin, last);
		}
	}
}

// Only what is committed: the rest of a reservation has no pages that could go back.
static void count_mapped(struct proc_memory *proc_memory)
{
	const struct space *space = present_space(proc_memory->pins->asked->present);
	const struct ranges *ranges = space_ranges(space, proc_memory->pins->process);
	const struct range *range;
	size_t first = 0;

	for (uint64_t at = 0; (range = ranges_from(ranges, at)); at = range->end)
		if (space_is_allocators(space_owner(space, range)) && range->commit)
			count_pages(proc_memory, range->start, range->end, &first);
}

// Without mappings: the pages that blocks lie on, each once.
static void count_unmapped(struct proc_memory *proc_memory)
{
	const struct chunk_extent *chunk_extent = &proc_memory->chunk_extent;
	uint64_t done = 0;
	size_t first = 0;

	// The blocks before `first` are on pages that were counted.
	for (size_t i = 0; i<chunk_extent->count; i = first> i ? first : i + 1) {
		struct chunk_place place = chunk_extent_place(chunk_extent, i);
		uint64_t low = place.start - place.start % SPACE_PAGE;

		if (low < done)
			low = done;
		if (low >= place.end)
			continue;
		// Up to the end of the last page that the block reaches into.
		done = place.end + (SPACE_PAGE - place.end % SPACE_PAGE) % SPACE_PAGE;
		count_pages(proc_memory, low, done, &first);
	}
}

SORT_ORDER(most_back_first, struct pins_row, SORT_FALLS(alone), SORT_FALLS(pages),
	   SORT_RISES(stack))

// The process with the most blocks, of those that are selected.
static bool choose(struct pins *pins, struct err *err)
{
	const struct query_context *asked = pins->asked;
	size_t most = 0;

	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		size_t count = present_count(asked->present, id, PRESENT_HEAP);

		if (!query_has_process(&asked->selection.query, id) ||
		    moment_view_passes_over(asked, id))
			continue;
		if (count > most) {
			most = count;
			pins->process = id;
		}
	}
	return most || err_set(err, ERR_USAGE, "no blocks are live at that moment");
}

// The snapshot that was taken at the moment: nothing happened while it was read. Of one that took
// longer it is not known whether a page was looked at before or after an event.
static bool find_snapshot(const struct pins *pins, struct trace_snapshot *snapshot)
{
	const struct reader *reader = pins->asked->reader;
	uint64_t events = present_events(pins->asked->present);

	for (uint32_t i = 0; i < reader_snapshots_count(reader); i++) {
		const struct trace_snapshot *each = reader_snapshot(reader, i);
		bool now = pins->asked->at_exit ? each->reason == TRACE_SNAPSHOT_EXIT
						: each->began == events && events == each->ended;

		if (each->process == pins->process && now &&
		    !(each->flags & TRACE_SNAPSHOT_NO_PAGES))
			return reader_snapshot_load(reader, i, snapshot);
	}
	return false;
}

// Blocks are not dated: a table of pages has no ages.
bool pins_init(struct pins *pins, struct query_context *asked, const struct pins_options *options,
	       struct err *err)
{
	const struct present_options undated = { .inherits = TRACE_NONE, .undated = true };
	struct proc_memory proc_memory = { .pins = pins };
	struct trace_snapshot snapshot = { 0 };

	*pins = (struct pins){ .asked = asked, .options = options };
	moment_view_read(asked, &undated);
	moment_view_warn_of_space(asked);
	moment_view_warn_of_samples(asked);
	if (!choose(pins, err))
		return false;
	// Without mappings only pages are seen that have a block.
	pins->mapped = ranges_bytes(space_ranges(present_space(asked->present), pins->process)) !=
		       0;
	pins->resident = find_snapshot(pins, &snapshot);
	if (pins->resident)
		pages_init(&proc_memory.present, &snapshot);
	chunk_extent_init(&proc_memory.chunk_extent, asked->present, asked->reader, pins->process);
	for (size_t i = 0; i < proc_memory.chunk_extent.count; i++)
		pins->live_bytes += proc_memory.chunk_extent.blocks[i].size;
	if (pins->mapped)
		count_mapped(&proc_memory);
	else
		count_unmapped(&proc_memory);
	if (pins->rows_count)
		qsort(pins->rows, pins->rows_count, sizeof *pins->rows, most_back_first);
	chunk_extent_fini(&proc_memory.chunk_extent);
	pages_fini(&proc_memory.present);
	snapshot_fini(&snapshot);
	map_fini(&proc_memory.rows);
	if (present_ok(asked->present, err))
		return true;
	pins_fini(pins);
	return false;
}

void pins_fini(struct pins *pins)
{
	mem_free(pins->rows);
	*pins = (struct pins){ 0 };
}

static void write_figure(struct paper *paper, const char *label, uint64_t pages, const char *what)
{
	paper_format(paper, PAPER_PLAIN, "  %-8s", label);
	paper_field(paper, PAPER_BOLD, STR_BYTES(pages * SPACE_PAGE), 11, true);
	paper_format(paper, PAPER_PLAIN, "  %s page%s %s\n", STR_COUNT(pages),
		     pages == 1 ? "" : "s", what);
}

// ---- rows ----

static struct sheet_cell get_pages(const struct sheet_at *at)
{
	return sheet_u64(true, sheet_field(at).u64 * SPACE_PAGE);
}

static struct sheet_site site_of(const struct sheet *sheet, const void *of)
{
	const struct pins *pins = sheet->context;
	const struct pins_row *row = of;

	return (struct sheet_site){ pins->asked, pins->process, row->stack };
}

#define FIELD(member) SHEET_FIELD(struct pins_row, member)
#define IN_BYTES(member) get_pages, SHEET_AT(struct pins_row, member)
static const struct sheet_column columns[] = {
	{ "blocks", SHEET_COUNT, 0, FIELD(blocks), .meaning = "blocks on pinned pages",
	  .look = { 4, 9, PAPER_DIM, { "blocks" } } },
	{ "live_bytes", SHEET_BYTES, 0, FIELD(live_bytes), .meaning = "their bytes there",
	  .look = { 3, 12, PAPER_PLAIN, { "live there" } } },
	{ "pages", SHEET_COUNT, 0, FIELD(pages), .meaning = "pinned pages that they are on" },
	{ "pages_alone", SHEET_COUNT, 0, FIELD(alone), .meaning = "pages that they pin alone" },
	{ "could_go_back", SHEET_BYTES, 0, IN_BYTES(alone), .meaning = "the same in bytes",
	  .look = { 1, 12, PAPER_BOLD, { "could go", "back" } } },
	{ "on_pinned", SHEET_BYTES, SHEET_FLAT_ONLY, IN_BYTES(pages),
	  .meaning = "the pages that they are on, in bytes",
	  .look = { 2, 12, PAPER_PLAIN, { "on pinned", "pages" } } },
	{ .kind = SHEET_SITE, .flags = SHEET_FLAT_ONLY },
	{ "stack", SHEET_OBJECT, SHEET_JSON_ONLY, .json = sheet_write_frames },
};
#undef FIELD
#undef IN_BYTES

void pins_rows(const struct pins *pins, struct sheet *sheet)
{
	size_t most = pins->options->rows_max ? pins->options->rows_max : SIZE_MAX;

	sheet->context = pins;
	sheet->site_of = site_of;
	sheet->left_out = pins->rows_count > most ? pins->rows_count - most : 0;
	sheet_begin(sheet, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < pins->rows_count && i < most; i++)
		sheet_row(sheet, &pins->rows[i]);
	sheet_end(sheet);
}

// What is free is shown only where mappings are known: without them no page without a block is
// seen. The row of a stack has first what would go back if its blocks alone were elsewhere, then
// all pinned pages that it is on: the second counts a page for each stack on it, so rows do not add
// up to the figure at the top.
void pins_write_text(const struct pins *pins, struct paper *paper)
{
	struct stack_text stacks =
		query_write_stacks(pins->asked, paper, ROW_COLUMNS, 3, pins->options->all_frames);
	struct sheet sheet;

	stacks.several = false; // all are of one process
	moment_view_write_headline(pins->asked, paper, pins->process);
	write_figure(paper, "pinned", pins->pages_pinned, "that a few small blocks keep");
	paper_format(paper, PAPER_PLAIN, "%23s%s live on them: at most %s a page\n", "",
		     STR_BYTES(pins->pinned_bytes), STR_BYTES(pins->options->live_max));
	if (pins->mapped)
		write_figure(paper, "free", pins->pages_free,
			     pins->resident ? "without a block, resident: could go back now"
			     : reader_is_windows(pins->asked->reader)
				     ? "without a block: the heaps keep them committed"
				     : "without a block: could go back now, if resident");
	write_figure(paper, "used", pins->pages_used, "with more on them");
	paper_text(paper, PAPER_DIM, "\n");
	if (pins->rows_count) {
		sheet = sheet_in_text(&stacks, 3);
		sheet.who = "who allocated them";
		paper_text(paper, PAPER_BOLD, "WHO PINS THEM\n");
		pins_rows(pins, &sheet);
		paper_more(paper, sheet.left_out);
	}
	sink_text(paper->sink, "\n");
	query_write_last(pins->asked, &stacks);
}

// `mapped` false: mappings are not known, so no page without a block is seen and pages_free is 0.
// `resident` false: all pages are taken for resident.
void pins_write_json(const struct pins *pins, struct sink *sink)
{
	struct sheet rows;
	struct json json;

	json_begin(&json, sink, true, "tidemark-pins-1");
	json_kv_bool(&json, "complete", pins->asked->complete);
	query_write_warnings(pins->asked, &json);
	json_kv_u64(&json, "process", reader_process(pins->asked->reader, pins->process)->pid);
	json_kv_u64(&json, "process_id", pins->process);
	json_kv_u64(&json, "at_ns", moment_view_time(pins->asked));
	json_kv_bool(&json, "at_exit", pins->asked->at_exit);
	json_kv_u64(&json, "page_bytes", SPACE_PAGE);
	json_kv_u64(&json, "live_max", pins->options->live_max);
	json_kv_bool(&json, "mapped", pins->mapped);
	json_kv_bool(&json, "resident", pins->resident);
	json_kv_u64(&json, "pages", pins->pages);
	json_kv_u64(&json, "pages_free", pins->pages_free);
	json_kv_u64(&json, "pages_pinned", pins->pages_pinned);
	json_kv_u64(&json, "pages_used", pins->pages_used);
	json_kv_u64(&json, "live_bytes", pins->live_bytes);
	json_kv_u64(&json, "pinned_bytes", pins->pinned_bytes);
	json_kv_array(&json, "rows");
	rows = sheet_in_json(&json);
	pins_rows(pins, &rows);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", rows.left_out);
	query_write_end(pins->asked, &json);
}
