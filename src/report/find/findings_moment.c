// Findings about single moments: what lies in memory at the peak, at the snapshot with most
// resident pages, at the end; and what processes and libraries there are.
#include "report/find/findings_own.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "report/ask/pages.h"
#include "report/find/chunk_extent.h"
#include "report/find/pins.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	// Bytes from which on a block can be called untouched.
	LARGE = 256 << 10,
	SETTLED_NS = 1000000000, // old enough to have been touched
	// Of a block: less than so much of it resident is untouched.
	TOUCHED_PART = 4,
	PINNED_MAX = 1024, // bytes of a page, as `tidemark pins` has it
	// Forked processes that must hold the same.
	PROCESSES_MIN = 4,
};

struct present *findings_present(const struct findings *findings, uint64_t events, bool dated)
{
	const struct present_options options = {
		.query = &findings->asked->selection.query,
		.edge = { .number = events, .exact = true },
		.inherits = TRACE_NONE,
		.undated = !dated,
	};

	return moment_view_find(findings->asked, &options);
}

// Blocks of one line of the program at a moment.
struct line {
	process_id process;
	uint32_t number;
	stack_id stack; // the one with most of `more`, if it has more than half of it
	uint64_t count, bytes, more;
	uint64_t lead; // of that stack over all others together, as far as was counted
};

struct lines_list {
	struct line *list;
	size_t count, capacity;
	struct map known;
};

// Blocks of a line of the program are one sum, by whatever stacks they came. The stack that is
// shown is found in one pass, by counting each against the others (Boyer and Moore's vote): it is
// the one with most whenever one has more than half. For example stacks a, b, a, a with 8 bytes
// each: a leads by 8, b takes over with a lead of 0, a takes over again with 8 and leads by 16 at
// the end; it has 24 of 32. Without a majority any of them may be shown, which is good enough for
// an example of a line.
static void add_block(struct findings *findings, struct lines_list *lines, process_id process,
		      stack_id stack, uint64_t size, uint64_t more)
{
	uint32_t number = findings_line(findings, stack);
	struct line *line;
	bool added;
	uint64_t *at = map_put(&lines->known, (uint64_t)process << 32 | number, &added);

	if (added) {
		*at = lines->count;
		*MEM_ADD(lines->list, lines->count, lines->capacity) =
			(struct line){ .process = process, .number = number };
	}
	ASSERT(*at < lines->count);
	line = &lines->list[*at];
	line->count++;
	line->bytes += size;
	line->more += more;
	if (stack == line->stack) {
		line->lead += more;
	} else if (more >= line->lead) {
		line->lead = more - line->lead;
		line->stack = stack;
	} else {
		line->lead -= more;
	}
}

static void lines_list_fini(struct lines_list *lines)
{
	map_fini(&lines->known);
	mem_free(lines->list);
}

// ---- overhead ----

// What the rules of glibc say that a block takes, less what it holds. Where the addresses do not
// agree with those rules it is another allocator's heap and left out.
static void count_overhead(struct findings *findings, struct present *present, process_id process,
			   struct lines_list *lines)
{
	struct chunk_extent extent = { 0 };

	if (!findings_is_glibc(findings, process))
		return;
	chunk_extent_init(&extent, present, findings->asked->reader, process);
	for (size_t i = 0; extent.glibc && i < extent.count; i++) {
		struct chunk_place place = chunk_extent_place(&extent, i);

		if (extent.blocks[i].selected && extent.blocks[i].stack)
			add_block(findings, lines, process, extent.blocks[i].stack,
				  extent.blocks[i].size,
				  place.end - place.start - extent.blocks[i].size);
	}
	chunk_extent_fini(&extent);
}

static void tell_overhead(struct findings *findings, const struct findings_kind *kind,
			  const struct line *line)
{
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_LIKELY, line->process, line->stack);

	ASSERT(line->count > 0);
	findings_say(&finding->what,
		     "%s blocks of %s hold %s each in the mean; headers and rounding take %s.",
		     STR_COUNT(line->count), findings_function(findings, line->stack),
		     STR_BYTES(line->bytes / line->count), STR_BYTES(line->more));
	findings_say(&finding->why, "computed by glibc's rules, which the addresses of the blocks "
				    "agree with, at the peak");
	findings_say(&finding->advice, "an array of them, or a pool that cuts large blocks");
	findings_figure(finding, "count", "blocks", FINDINGS_COUNT, line->count);
	findings_figure(finding, "bytes", "hold", FINDINGS_BYTES, line->bytes);
	findings_figure(finding, "overhead_bytes", "overhead", FINDINGS_BYTES, line->more);
	finding->saves_bytes = line->more;
	findings_command(findings, finding, "active", "--at peak", false, true);
}

// At the peak, as of the step that reached it: `peak_number` counts from 0 and edges after it.
bool findings_overhead(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct heap_counts *counts = &heap_totals(findings->facts->heap)->counts;
	struct lines_list lines = { 0 };
	struct present *present;

	if (counts->peak.bytes < findings_bytes_min(findings))
		return true;
	present = findings_present(findings, counts->peak_number + 1, false);
	for (process_id id = 0; id < reader_processes_count(findings->asked->reader); id++)
		count_overhead(findings, present, id, &lines);
	present_free(present);
	for (size_t i = 0; i < lines.count; i++)
		if (lines.list[i].number && lines.list[i].more >= findings_bytes_min(findings) &&
		    lines.list[i].more >= lines.list[i].bytes)
			tell_overhead(findings, kind, &lines.list[i]);
	lines_list_fini(&lines);
	return true;
}

// ---- untouched ----

// The snapshot with most resident memory, by what the kernel summed up; the first of several that
// are equal. Those without a list of pages are passed over, since blocks are looked up in it.
bool findings_load_largest(const struct findings *findings, struct trace_snapshot *snapshot)
{
	const struct reader *reader = findings->asked->reader;
	const struct query *query = &findings->asked->selection.query;
	uint64_t most = 0;
	uint32_t best = 0;

	for (uint32_t i = 0; i < reader_snapshots_count(reader); i++) {
		const struct trace_snapshot *each = reader_snapshot(reader, i);

		if ((each->flags & TRACE_SNAPSHOT_NO_PAGES) || each->rss_bytes <= most ||
		    !query_has_process(query, each->process))
			continue;
		most = each->rss_bytes;
		best = i;
	}
	return most && reader_snapshot_load(reader, best, snapshot);
}

static void tell_untouched(struct findings *findings, const struct findings_kind *kind,
			   const struct line *line, const struct trace_snapshot *snapshot)
{
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_LIKELY, line->process, line->stack);

	ASSERT(line->count > 0 && line->more <= line->bytes);
	findings_say(&finding->what, "of %s in %s large block%s of %s, %s were not resident at %s.",
		     STR_BYTES(line->bytes), STR_COUNT(line->count), line->count == 1 ? "" : "s",
		     findings_function(findings, line->stack), STR_BYTES(line->more),
		     STR_DURATION(snapshot->time_ns));
	findings_say(&finding->why,
		     "by the kernel's list of pages at that moment; the blocks were older than a "
		     "second. What was swapped out would look the same");
	findings_say(&finding->advice,
		     "ask for less; it costs commit and address space, not memory");
	findings_figure(finding, "bytes", "asked for", FINDINGS_BYTES, line->bytes);
	findings_figure(finding, "untouched_bytes", "not resident", FINDINGS_BYTES, line->more);
	findings_figure(finding, "count", "blocks", FINDINGS_COUNT, line->count);
	findings_figure(finding, "time_ns", "at", FINDINGS_TIME, snapshot->time_ns);
	finding->tab = "resident";
	findings_command(findings, finding, "reconcile", "", false, false);
}

struct touching {
	struct findings *findings;
	struct trace_snapshot snapshot;
	struct pages pages;
	struct lines_list lines;
};

// A block that was allocated within the last second before the snapshot may not have been used yet.
static void look_at(void *context, const struct present_block *block)
{
	struct touching *touching = context;
	uint64_t resident;

	if (!block->selected || block->size < LARGE ||
	    block->time_ns + SETTLED_NS > touching->snapshot.time_ns)
		return;
	resident = pages_between(&touching->pages, block->address, block->address + block->size);
	if (resident < block->size / TOUCHED_PART)
		add_block(touching->findings, &touching->lines, block->process, block->stack,
			  block->size, block->size - resident);
}

// Bytes of a page that is resident are counted for the blocks on it, so a block of 256 KiB with one
// page that was touched has 4 KiB.
bool findings_untouched(struct findings *findings, const struct findings_kind *kind,
			struct err *err)
{
	struct touching touching = { .findings = findings };
	const struct lines_list *lines = &touching.lines;
	struct present *present;
	bool good;

	if (!findings_load_largest(findings, &touching.snapshot))
		return true;
	pages_init(&touching.pages, &touching.snapshot);
	present = findings_present(findings, touching.snapshot.began, true);
	present_each_block(present, touching.snapshot.process, PRESENT_HEAP, look_at, &touching);
	good = present_ok(present, err);
	for (size_t i = 0; good && i < lines->count; i++)
		if (lines->list[i].more >= findings_bytes_min(findings))
			tell_untouched(findings, kind, &lines->list[i], &touching.snapshot);
	present_free(present);
	pages_fini(&touching.pages);
	snapshot_fini(&touching.snapshot);
	lines_list_fini(&touching.lines);
	return good;
}

// ---- pages of the heap ----

static const struct pins_options pins_options = { .live_max = PINNED_MAX };

// The pages of the process with most blocks at one moment.
struct pages_then {
	struct query_context asked; // opened once more on what is open already, without filters
	struct pins pins;
	char at[32]; // as --at has it; "": the end
};

static void pages_then_fini(struct pages_then *then)
{
	pins_fini(&then->pins);
	query_context_close(&then->asked);
}

// False: there are no blocks, and nothing to end.
static bool pages_then_init(const struct findings *findings, struct pages_then *then)
{
	static const struct selection_words no_words;
	const struct query_context_options options = {
		.rules = &pins_rules,
		.path = findings->path,
		.words = &no_words,
		.opened = findings->asked->opened,
		.window = findings->asked->options.window,
		.at = *then->at ? then->at : NULL,
	};
	struct err ignored = { 0 };

	if (!query_context_open(&then->asked, &options, &ignored))
		return false;
	if (pins_init(&then->pins, &then->asked, &pins_options, &ignored))
		return true;
	query_context_close(&then->asked);
	return false;
}

// The process that freed most as the last thing that it did.
static process_id most_cleared(const struct findings_facts *facts)
{
	process_id most = 0;

	for (process_id id = 1; id < facts->lasts_count; id++)
		if (facts->lasts[id].cleared > facts->lasts[most].cleared)
			most = id;
	return most;
}

// Whether a process freed, as the last thing that it did, more than it left: for example 4 MiB of
// 4.3 by its destructors. That pages are free then is expected, and not a mistake.
static bool has_cleared_up(const struct findings *findings, process_id process, uint64_t left)
{
	const struct findings_facts *facts = findings->facts;

	return process < facts->lasts_count && facts->lasts[process].cleared > left;
}

// The pages at the end, or, of a process that has cleared up, as they were before. False: there are
// none, it was brief, or its allocator is one whose own pages look free. True: the caller ends it.
static bool read_pages(struct findings *findings, const struct findings_kind *kind,
		       struct pages_then *then)
{
	bool left = pages_then_init(findings, then);
	process_id id = left ? then->pins.process : most_cleared(findings->facts);

	if (has_cleared_up(findings, id, left ? then->pins.live_bytes : 0)) {
		const struct trace_process *process = reader_process(findings->asked->reader, id);

		if (left)
			pages_then_fini(then);
		str_time(findings_last_part(process) - 1, then->at);
		left = pages_then_init(findings, then);
	}
	if (!left)
		return false;
	id = then->pins.process;
	if (reader_is_windows(findings->asked->reader) || findings_is_glibc(findings, id))
		return true;
	if (findings_lasts(findings, id))
		findings_miss(findings, kind,
			      "the allocator is %s: which pages it uses for itself is not known",
			      findings_allocator(findings, id));
	pages_then_fini(then);
	return false;
}

// The part of all pages that a row must pin to be told: a twentieth, since of 10 GiB of heap 1 MiB
// more or less is nothing; of a brief process, which gives all back soon, two thirds.
static uint64_t pages_least(const struct findings *findings, const struct pins *pins)
{
	return findings_lasts(findings, pins->process) ? pins->pages / 20 : pins->pages / 3 * 2;
}

static void tell_pinned(struct findings *findings, const struct findings_kind *kind,
			const struct pages_then *then, const struct pins_row *row)
{
	const struct pins *pins = &then->pins;
	uint64_t back = row->alone * SPACE_PAGE, at_ns = then->asked.edge.time_ns;
	struct finding *finding = findings_add(findings, kind,
					       pins->resident ? FINDINGS_CERTAIN : FINDINGS_LIKELY,
					       pins->process, row->stack);
	struct str when = { 0 }, option = { 0 };

	str_format(&when, "%s%s", *then->at ? "at " : "at the end",
		   *then->at ? STR_DURATION(at_ns) : "");
	findings_say(&finding->what, "%s of pages stay for %s of small blocks of %s%s%s.",
		     STR_BYTES(back), STR_BYTES(row->live_bytes),
		     findings_function(findings, row->stack), *then->at ? " " : "",
		     *then->at ? str_get(&when) : "");
	findings_say(&finding->why, "nothing else is on these pages%s%s%s",
		     *then->at        ? ", before the process freed most of what it had; "
		     : pins->resident ? ", and "
				      : "; ",
		     pins->resident ? "they were resident "
				    : "whether they were resident is not recorded",
		     pins->resident ? str_get(&when) : "");
	findings_say(&finding->advice,
		     "allocate such blocks early and together, or from a pool of their own");
	findings_figure(finding, "pages_bytes", "pages", FINDINGS_BYTES, back);
	findings_figure(finding, "live_bytes", "live there", FINDINGS_BYTES, row->live_bytes);
	findings_figure(finding, "blocks", "blocks", FINDINGS_COUNT, row->blocks);
	finding->saves_bytes = *then->at ? 0 : back;
	finding->at_end = true;
	finding->tab = "space";
	if (*then->at)
		str_format(&option, "--at %s", then->at);
	findings_command(findings, finding, "pins", str_get(&option), false, false);
	str_fini(&when);
	str_fini(&option);
}

bool findings_pinned(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	struct pages_then then = { 0 };
	uint64_t least;

	if (!read_pages(findings, kind, &then))
		return true;
	least = pages_least(findings, &then.pins);
	for (size_t i = 0; i < then.pins.rows_count; i++) {
		const struct pins_row *row = &then.pins.rows[i];

		if (row->alone * SPACE_PAGE >= findings_bytes_min(findings) && row->alone >= least)
			tell_pinned(findings, kind, &then, row);
	}
	pages_then_fini(&then);
	return true;
}

// On Linux the kernel's list of pages says that a page was resident, and it is certain; on Windows
// only that it was committed is known. Less than a fifth of all pages is not told. It is a note: no
// saving is claimed.
bool findings_free_pages(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	struct pages_then then = { 0 };
	const struct pins *pins = &then.pins;
	bool windows = reader_is_windows(findings->asked->reader);
	uint64_t free_bytes;
	struct finding *finding;

	if (!read_pages(findings, kind, &then))
		return true;
	if (!findings_lasts(findings, pins->process) || *then.at) {
		if (*then.at)
			findings_miss(findings, kind,
				      "the process freed most of what it had just before its end: "
				      "its pages then say nothing of how it ran (tidemark pins "
				      "--at %s shows those before)",
				      then.at);
		pages_then_fini(&then);
		return true;
	}
	free_bytes = pins->pages_free * SPACE_PAGE;
	if ((pins->resident || windows) && free_bytes >= findings_bytes_min(findings) &&
	    pins->pages_free >= pins->pages / 5) {
		finding = findings_add(findings, kind, windows ? FINDINGS_LIKELY : FINDINGS_CERTAIN,
				       pins->process, 0);
		findings_say(&finding->what,
			     "the heap%s %s of %s pages without a block, beside %s that live.",
			     windows ? "s keep" : " keeps", STR_BYTES(free_bytes),
			     windows ? "committed" : "resident", STR_BYTES(pins->live_bytes));
		findings_say(&finding->why, "%s",
			     windows ? "by what the heaps had committed at the end; whether it was "
				       "resident is not recorded"
				     : "by the kernel's list of pages at the end");
		findings_say(&finding->advice, "%s",
			     windows ? "a heap of its own (HeapCreate) for a phase that frees "
				       "much, destroyed after it"
				     : "malloc_trim(0) after a phase that freed much; fewer arenas "
				       "(MALLOC_ARENA_MAX)");
		findings_figure(finding, "free_bytes", "free", FINDINGS_BYTES, free_bytes);
		findings_figure(finding, "live_bytes", "live", FINDINGS_BYTES, pins->live_bytes);
		finding->tab = "resident";
		findings_command(findings, finding, "pins", "", false, false);
	}
	pages_then_fini(&then);
	return true;
}

// ---- processes ----

// What one line of one process held at the peak.
struct held {
	uint32_t line;
	process_id family; // what was started by itself has nothing that could be shared
	process_id process;
	stack_id stack; // the one with most of them, `stack_bytes`
	uint64_t stack_bytes, bytes;
};

// What a line of the source is at one address: it may allocate at several.
struct source {
	const struct symbol *symbols; // innermost first; of names
	size_t count;
	uint32_t line;
};

struct sources {
	struct source *list; // owned
	size_t count, capacity;
	struct index_set set;
};

static bool is_source(const void *context, uint32_t position, const void *key)
{
	const struct sources *sources = context;
	const struct source *one = &sources->list[position], *other = key;

	if (one->count != other->count)
		return false;
	for (size_t i = 0; i < one->count; i++)
		if (one->symbols[i].line != other->symbols[i].line ||
		    strcmp(one->symbols[i].function, other->symbols[i].function) != 0 ||
		    strcmp(one->symbols[i].file, other->symbols[i].file) != 0)
			return false;
	return true;
}

// findings_line, but the same for all addresses of a function that are of one line of its source,
// inline callers included. Where no line is known it is that of the address.
static uint32_t source_line(struct findings *findings, struct sources *sources, stack_id stack)
{
	const struct reader *reader = findings->asked->reader;
	struct source source = { .line = findings_line(findings, stack) };
	uint64_t hash = 0;
	uint32_t at;

	// Beyond frames are scripts' lines, which are by source.
	if (!source.line || source.line >= reader_frames_count(reader))
		return source.line;
	source.symbols = names_find(findings->asked->names, source.line, &source.count);
	for (size_t i = 0; i < source.count; i++) {
		const struct symbol *symbol = &source.symbols[i];

		if (!symbol->function || !symbol->file || !symbol->line)
			return source.line;
		hash = index_set_hash((const uint64_t[]){ hash, symbol->line,
							  index_set_hash_text(symbol->function),
							  index_set_hash_text(symbol->file) },
				      4);
	}
	at = index_set_put(&sources->set, hash, is_source, sources, &source,
			   (uint32_t)sources->count);
	ASSERT(at <= sources->count);
	if (at == sources->count)
		*MEM_ADD(sources->list, sources->count, sources->capacity) = source;
	return sources->list[at].line;
}

SORT_ORDER(by_line, struct held, SORT_RISES(line), SORT_RISES(family), SORT_RISES(process))

// Sums of equal line and process; returns how many.
static size_t merge_held(struct held *list, size_t count)
{
	size_t merged = 0;

	if (count)
		qsort(list, count, sizeof *list, by_line);
	for (size_t i = 0; i < count; i++) {
		struct held *sum = merged ? &list[merged - 1] : NULL;

		if (!sum || by_line(sum, &list[i]) != 0) {
			list[merged++] = list[i];
			continue;
		}
		sum->bytes += list[i].bytes;
		if (list[i].stack_bytes > sum->stack_bytes) {
			sum->stack = list[i].stack;
			sum->stack_bytes = list[i].stack_bytes;
		}
	}
	return merged;
}

// Of [first, last), one line's and family's: those that hold at least half of what the largest
// does. For example 16 workers of which each holds 40 MiB of one line, made after the fork: 640 MiB
// for what could be in shared memory before it. One process that holds all of it is no finding.
// What could be saved is all but the largest, as one copy has to be somewhere.
static void judge_held(struct findings *findings, const struct findings_kind *kind,
		       const struct held *list, size_t first, size_t last)
{
	const struct held *largest = &list[first];
	uint64_t most, sum = 0, count = 0;
	struct finding *finding;

	ASSERT(first < last);
	for (size_t i = first; i < last; i++)
		if (list[i].bytes > largest->bytes)
			largest = &list[i];
	most = largest->bytes;
	for (size_t i = first; i < last; i++) {
		if (list[i].bytes < most / 2)
			continue;
		sum += list[i].bytes;
		count++;
	}
	if (count < PROCESSES_MIN || sum - most < findings_bytes_min(findings))
		return;
	finding = findings_add(findings, kind, FINDINGS_POSSIBLE, largest->process, largest->stack);
	findings_say(&finding->what,
		     "%s forked processes hold %s each at most from %s, %s together.",
		     STR_COUNT(count), STR_BYTES(most), findings_function(findings, largest->stack),
		     STR_BYTES(sum));
	findings_say(&finding->why,
		     "the same line of the program%s, and about equal sizes; whether the contents "
		     "are equal is not recorded",
		     largest->stack_bytes < most ? ", the largest part by this stack" : "");
	findings_say(&finding->advice,
		     "if they are equal, load them before the fork: pages are shared then");
	findings_figure(finding, "processes", "processes", FINDINGS_COUNT, count);
	findings_figure(finding, "bytes", "together", FINDINGS_BYTES, sum);
	finding->saves_bytes = sum - most;
	finding->of_several = true;
	findings_command(findings, finding, "window", "--by process,stack --to peak", false, true);
}

// Only of processes that were forked and ran no other program since: the others have nothing that
// could have been shared.
bool findings_processes(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct reader *reader = findings->asked->reader;
	size_t sites_count, count = 0;
	const struct heap_site *sites = heap_sites(findings->facts->heap, &sites_count);
	struct held *list = mem_alloc(sites_count + 1, sizeof *list);
	struct sources sources = { 0 };

	for (size_t i = 0; i < sites_count; i++) {
		const struct trace_process *process = reader_process(reader, sites[i].process);

		if (!process || process->start != TRACE_START_FORK || !sites[i].at_peak.bytes ||
		    !sites[i].stack)
			continue;
		ASSERT(count <= i);
		list[count++] = (struct held){
			.line = source_line(findings, &sources, sites[i].stack),
			.family = findings_family(reader, sites[i].process),
			.process = sites[i].process,
			.stack = sites[i].stack,
			.stack_bytes = sites[i].at_peak.bytes,
			.bytes = sites[i].at_peak.bytes,
		};
	}
	count = merge_held(list, count);
	for (size_t first = 0, last; first < count; first = last) {
		for (last = first + 1; last < count && list[last].line == list[first].line &&
				       list[last].family == list[first].family;)
			last++;
		judge_held(findings, kind, list, first, last);
	}
	MEM_FREE(list, sources.list);
	index_set_fini(&sources.set);
	return true;
}

// ---- libraries ----

// "libssl" of "/usr/lib/libssl.so.3"; 0: it is no library by its name.
static size_t stem_of(const char *path, const char **stem)
{
	const char *name = str_last_part(path), *end = strstr(name, ".so");

	*stem = name;
	return end && strncmp(name, "lib", 3) == 0 ? (size_t)(end - name) : 0;
}

// libssl.so.3 twice from different folders, with different build ids, mapped at once: two copies
// of one library, of which each has its own state.
static bool are_copies(const struct trace_module *a, const struct trace_module *b)
{
	const char *a_stem, *b_stem;
	size_t length = stem_of(a->path, &a_stem);

	ASSERT(a != b);
	return a->process == b->process && length && length == stem_of(b->path, &b_stem) &&
	       memcmp(a_stem, b_stem, length) == 0 && strcmp(a->path, b->path) != 0 &&
	       (a->build_id_length != b->build_id_length || !a->build_id_length ||
		memcmp(a->build_id, b->build_id, a->build_id_length) != 0) &&
	       (a->start >= b->end || b->start >= a->end);
}

// The next module of the same process and stem, by module; 0: there is none. So a module is
// compared with few others, however many processes and modules there are.
static module_id *next_of_stem(const struct reader *reader)
{
	const module_id count = reader_modules_count(reader);
	module_id *next = mem_alloc(count + 1, sizeof *next);
	struct map first = { 0 };

	for (module_id i = count; i-- > 1;) {
		const struct trace_module *module = reader_module(reader, i);
		const char *stem;
		size_t length = stem_of(module->path, &stem);
		uint64_t key = module->process, *at;

		if (length == 0)
			continue;
		for (size_t j = 0; j < length; j++) // FNV-1a
			key = (key ^ (uint8_t)stem[j]) * UINT64_C(0x100000001b3);
		at = map_put(&first, key, NULL);
		next[i] = (module_id)*at;
		*at = i;
	}
	map_fini(&first);
	return next;
}

// Modules are those that stacks pass through, so that of a copy which allocates nothing there is no
// finding.
bool findings_libraries(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct reader *reader = findings->asked->reader;
	module_id *next = next_of_stem(reader);

	for (module_id i = 1; i < reader_modules_count(reader); i++) {
		const struct trace_module *a = reader_module(reader, i);

		if (!query_has_process(&findings->asked->selection.query, a->process))
			continue;
		for (module_id j = next[i]; j; j = next[j]) {
			const struct trace_module *b = reader_module(reader, j);
			struct finding *finding;

			if (!are_copies(a, b))
				continue;
			finding = findings_add(findings, kind, FINDINGS_CERTAIN, a->process, 0);
			findings_say(&finding->what, "two copies of a library: %s and %s.", a->path,
				     b->path);
			findings_say(&finding->why, "both are on stacks of recorded calls");
			findings_say(&finding->advice,
				     "link everything with one of them; a block of one must not "
				     "be freed by the other");
			findings_command(findings, finding, "window", "--by module", false, false);
		}
	}
	mem_free(next);
	return true;
}
