// The report for people: what ran, how much, and who.
//
// A page is: the headline (command, duration, events), cautions, totals, processes, then a list for
// each question. For example, of test/golden/family.txt:
//
//     LIVE AT EXIT  1.4 MiB in 9 blocks, from 4 sites
//           1.4 MiB  99.5 %           4   build_tree(tree_code)  tree.cc:400  [cc1, 2 …]  #1
//                                         compile_file()  toplev.cc:460
//     AT THE PEAK  1.1 MiB in 7 blocks, from 3 sites
//           1.1 MiB  99.0 %           2   build_tree(tree_code)  tree.cc:400  …  see #1
//
// A row that was listed before is only referred to by its number. What a list leaves out is one
// line at its end, so that what is shown and what is not add up to the total.
#include "report/ask/own_heap.h"
#include "report/report.h"

#include "base/mem.h"
#include "report/ask/cautions.h"
#include "report/process_table.h"
#include "report/table/query_write.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	// columns of the terminal, and for the last two what makes temporaries worth a line
	ENDING_COLUMNS_MAX = 200,
	FIGURES_COLUMNS = 36, // in front of a stack
	WIDTH_MIN = 80,
	FINDING_CALLS = 10000, // temporaries of one site that are worth a word, as in findings.c
	FINDING_PART = 50,     // of all allocations: the same
};

static const char *const titles[SITES_QUESTIONS_COUNT] = {
	[SITES_LIVE_AT_EXIT] = "LIVE AT EXIT", [SITES_PEAK] = "AT THE PEAK",
	[SITES_BYTES] = "MOST BYTES",          [SITES_CALLS] = "MOST CALLS",
	[SITES_TEMPORARY] = "TEMPORARY",
};

// A page in the making.
struct page {
	struct report *report;
	struct paper paper;
	struct stack_text stacks;
	bool several; // more than one process is in it
	bool parts;   // of the allocations of a process some are left out
};

// All figures of a sampled recording are estimates.
// Also where it was sampled at times only.
static bool sampled(const struct page *page)
{
	return reader_is_estimated(page->report->asked->reader);
}

// `mean_bytes` 0: it was sampled at times (--max-overhead), so the share of the time in which it
// was not is said.
static void write_sampled(struct page *page, uint64_t mean_bytes)
{
	uint64_t duration_ns = heap_totals(page->report->heap)->duration_ns;
	uint64_t exact_ns = cautions_exact_ns(page->report->asked->reader, duration_ns);
	struct str text = { 0 };

	if (mean_bytes == 0)
		str_format(&text,
			   "at times: %.1f %% of the time each call is in the trace; figures of "
			   "what was allocated in the rest are estimates, ± their standard error",
			   paper_percent(exact_ns, duration_ns));
	else
		str_format(&text,
			   "one allocation in %s is in the trace; figures are estimates of the "
			   "whole, ± their standard error",
			   STR_BYTES(mean_bytes));
	paper_paragraph(&page->paper, PAPER_PLAIN, "sampled", str_get(&text));
	str_fini(&text);
}

// Of what lives at the last event: the trace was cut there, the processes still ran, or they had
// ended.
static const char *live_label(const struct page *page, const char *cut, const char *end,
			      const char *exit)
{
	switch (query_context_last(page->report->asked)) {
	case QUERY_LAST_CUT:
		return cut;
	case QUERY_LAST_END:
		return end;
	default:
		return exit;
	}
}

// Two lines, then all that makes figures doubtful, before the first figure.
static void write_headline(struct page *page)
{
	const struct heap_totals *totals = heap_totals(page->report->heap);
	const struct trace_info *info = reader_info(page->report->asked->reader);
	uint32_t processes = reader_processes_count(page->report->asked->reader);
	uint64_t end_ns;
	char text[48];

	paper_foreign(&page->paper, PAPER_BOLD, *info->command ? info->command : "(no command)",
		      page->paper.width);
	sink_text(page->paper.sink, "\n");
	paper_format(&page->paper, PAPER_DIM, "%s, %s events", STR_DURATION(totals->duration_ns),
		     STR_COUNT(totals->events));
	if (reader_lacks_events(page->report->asked->reader, &end_ns))
		paper_format(&page->paper, PAPER_DIM, " up to %s", STR_DURATION(end_ns));
	if (processes == 1)
		paper_format(&page->paper, PAPER_DIM, ", process %" PRIu32 ", %s",
			     reader_process(page->report->asked->reader, 0)->pid,
			     report_ending(page->report->asked->reader, 0, text));
	else
		paper_format(&page->paper, PAPER_DIM, ", %" PRIu32 " processes", processes);
	sink_text(page->paper.sink, "\n");
	if (sampled(page))
		write_sampled(page, info->sample_bytes);
	for (size_t i = 0; i < page->report->asked->warnings_count; i++)
		paper_paragraph(&page->paper, PAPER_WARNING, "warning",
				page->report->asked->warnings[i]);
	if (query_narrows(&page->report->asked->selection.query))
		paper_paragraph(&page->paper, PAPER_PLAIN, "filtered",
				"the figures below are those of the selected allocations only");
	sink_text(page->paper.sink, "\n");
}

// ---- totals ----

// "  label      1.2 MiB   "; the caller ends the line.
static void write_label(struct page *page, const char *label, const char *figure)
{
	paper_format(&page->paper, PAPER_PLAIN, "  %-14s", label);
	paper_field(&page->paper, PAPER_BOLD, figure, 11, true);
	sink_text(page->paper.sink, "  ");
}

// "2.4 MiB … 2.9 MiB" where threads overlap within a tick.
static void write_bound(struct page *page)
{
	const struct heap_totals *totals = heap_totals(page->report->heap);
	const char *low = STR_BYTES(totals->peak_low_bytes);
	const char *high = STR_BYTES(totals->peak_high_bytes);

	// A few bytes are no bound that could be read.
	if (strcmp(low, high) == 0)
		return;
	paper_format(&page->paper, PAPER_DIM,
		     "  %-27sbetween %s and %s: threads overlap within a tick of the clock\n", "",
		     low, high);
}

// Whose memory may be in the peak although it was gone.
static void write_late(struct page *page)
{
	uint32_t late, count = report_peak_processes(page->report, &late);

	if (count > 1 && late)
		paper_format(&page->paper, PAPER_DIM,
			     "  %-27sof %" PRIu32 " processes; %" PRIu32
			     " of them may have ended some milliseconds before\n",
			     "", count, late);
}

// Counts that are 0 in an ordinary run. Those of "before" are two: frees of blocks that an attached
// process had, which are no inherited ones here, and the blocks themselves.
static void write_exceptions(struct page *page, const struct heap_counts *counts)
{
	uint64_t before = report_before(page->report, TRACE_NONE);
	bool trimmed = moment_is_trimmed(page->report->asked->reader);
	const struct {
		const char *label;
		uint64_t count;
		const char *meaning;
	} rows[] = {
		{ "failed", counts->failed, "calls that returned no memory" },
		{ "refused", counts->refused_frees,
		  "frees of what is not a block of the heap that was asked to free it" },
		{ "inherited", counts->inherited_frees - before,
		  "frees by a forked child of its parent's blocks" },
		{ "before", before, "frees of blocks allocated before it was attached to" },
		{ "before", counts->before.count,
		  trimmed ? "blocks lived when the window begins to which it was trimmed"
			  : "blocks were there when it was attached to; figures have them, too" },
		{ "orphans", counts->orphan_frees,
		  "frees of addresses where nothing was known to live" },
		{ "lost frees", counts->lost_frees,
		  "blocks whose address was given out again before a free was seen" },
		{ "left out", heap_unjudged_frees(page->report->heap),
		  "frees of inherited or unknown blocks, which the filters cannot judge" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].count == 0)
			continue;
		write_label(page, rows[i].label, STR_COUNT(rows[i].count));
		paper_format(&page->paper, PAPER_PLAIN, "%s\n", rows[i].meaning);
	}
}

// "± 1.2 %" between two texts, after an estimate of bytes or of calls. Nothing where it is not
// known.
static void write_error(struct page *page, enum sites_question question, uint64_t figure,
			const char *before, const char *after)
{
	double variance;

	ASSERT(question < SITES_QUESTIONS_COUNT);
	variance = page->report->sites.sums[question].variance;
	if (sampled(page) && figure > 0 && variance > 0)
		paper_format(&page->paper, PAPER_PLAIN, "%s± %.1f %%%s", before,
			     paper_percent(sites_error(variance), figure), after);
}

// Whether the peak is one of estimates. Each is as often too low as too high, and the highest of
// many is mostly one of those that are too high: the more so the fewer samples there are, as in a
// run of a second.
static bool is_high(const struct page *page)
{
	return sampled(page) && page->report->sites.sums[SITES_PEAK].variance > 0;
}

// What the heap is a part of: mapped memory, and what of it was resident.
static void write_memory(struct page *page)
{
	const struct space_totals *totals = &page->report->whole.vm;
	const struct trace_process *process =
		reader_process(page->report->asked->reader, page->report->rss_peak);

	if (totals->committed_peak_bytes) {
		write_label(page, "committed", STR_BYTES(totals->committed_peak_bytes));
		paper_format(&page->paper, PAPER_PLAIN,
			     "of writable mappings at their peak, at %s\n",
			     STR_DURATION(totals->committed_peak_ns));
	}
	if (page->report->rss_peak_bytes) {
		write_label(page, "resident", STR_BYTES(page->report->rss_peak_bytes));
		paper_text(&page->paper, PAPER_PLAIN, "at most");
		if (page->several && process)
			paper_format(&page->paper, PAPER_PLAIN, ", of process %" PRIu32,
				     process->pid);
		paper_text(&page->paper, PAPER_PLAIN, ", by the kernel's count\n");
	}
}

// What of it nothing pointed to any more.
static void write_reached(struct page *page)
{
	const struct reached *reached = &page->report->reached;
	struct heap_amount lost = reached_lost(reached->states);
	const struct heap_amount *inside = &reached->states[TRACE_REACH_INSIDE];

	if (!reached->known)
		return;
	write_label(page, "unreachable", STR_BYTES(lost.bytes));
	paper_format(&page->paper, PAPER_PLAIN, "of it in %s block%s: nothing points to them\n",
		     STR_COUNT(lost.count), paper_plural(lost.count));
	if (inside->count == 0)
		return;
	write_label(page, "inside only", STR_BYTES(inside->bytes));
	paper_format(&page->paper, PAPER_PLAIN,
		     "of it in %s block%s: reachable only by a pointer to the inside of a block\n",
		     STR_COUNT(inside->count), paper_plural(inside->count));
}

static void write_own_heap(void *context, const struct report_own_heap *heap)
{
	struct page *page = context;

	paper_paragraph(&page->paper, PAPER_DIM, heap->outside ? "  outside" : "  own heap",
			heap->text);
}

// A figure that imported sums do not have.
static void write_unknown(struct page *page, const char *label, const char *what)
{
	paper_format(&page->paper, PAPER_PLAIN,
		     "  %-14s  not known: what was imported does not tell %s\n", label, what);
}

// A line for each figure of the heap as a whole. What was not measured has no line, and what would
// be an estimate of nothing (temporary, in samples) has none either.
static void write_totals(struct page *page)
{
	const struct heap_totals *totals = heap_totals(page->report->heap);
	const struct heap_counts *counts = &totals->counts;
	const struct trace_info *info = reader_info(page->report->asked->reader);
	bool snapshots = cautions_lacks(info, "snapshots") && !cautions_lacks(info, "totals");

	write_label(page, "allocated", STR_BYTES(counts->allocated.bytes));
	write_error(page, SITES_BYTES, counts->allocated.bytes, "", ", ");
	paper_format(&page->paper, PAPER_PLAIN, "in %s block%s", STR_COUNT(counts->allocated.count),
		     paper_plural(counts->allocated.count));
	write_error(page, SITES_CALLS, counts->allocated.count, " ", "");
	if (counts->reallocations)
		paper_format(&page->paper, PAPER_PLAIN, ", %s of them by realloc",
			     STR_COUNT(counts->reallocations));
	paper_text(&page->paper, PAPER_PLAIN, snapshots ? ", at least\n" : "\n");

	if (!report_knows(page->report, SITES_PEAK)) {
		write_unknown(page, "peak", "what lived at one time");
	} else if (counts->peak.bytes) {
		write_label(page, "peak", STR_BYTES(counts->peak.bytes));
		write_error(page, SITES_PEAK, counts->peak.bytes, "", ", ");
		paper_format(&page->paper, PAPER_PLAIN, "in %s block%s",
			     STR_COUNT(counts->peak.count), paper_plural(counts->peak.count));
		paper_format(&page->paper, PAPER_PLAIN, ", at %s%s\n",
			     STR_DURATION(counts->peak_ns),
			     snapshots ? ", the highest of the snapshots"
			     : is_high(page)
				     ? ", the highest of estimates: too high rather than too low"
				     : "");
		write_bound(page);
		write_late(page);
	}

	write_label(page, live_label(page, "live at cut", "live at end", "live at exit"),
		    STR_BYTES(counts->live_at_exit.bytes));
	write_error(page, SITES_LIVE_AT_EXIT, counts->live_at_exit.bytes, "", ", ");
	paper_format(&page->paper, PAPER_PLAIN, "in %s block%s",
		     STR_COUNT(counts->live_at_exit.count),
		     paper_plural(counts->live_at_exit.count));
	// Children that come one after the other have little at any moment, and much in the sum.
	if (page->several && report_knows(page->report, SITES_PEAK) &&
	    counts->live_at_exit.bytes > counts->peak.bytes)
		paper_text(&page->paper, PAPER_DIM,
			   ", of each process at its own end: not at one time");
	sink_text(page->paper.sink, "\n");

	write_reached(page);
	if (!sampled(page) && !report_knows(page->report, SITES_TEMPORARY)) {
		write_unknown(page, "temporary", "how long blocks lived");
	} else if (!sampled(page)) {
		write_label(page, "temporary", STR_BYTES(counts->temporary.bytes));
		paper_format(&page->paper, PAPER_PLAIN, "in %s block%s, %.1f %% of all\n",
			     STR_COUNT(counts->temporary.count),
			     paper_plural(counts->temporary.count),
			     paper_percent(counts->temporary.count, counts->allocated.count));
	}
	write_exceptions(page, counts);
	// With filters, what processes have as a whole is a section of its own (write_unfiltered).
	if (!page->parts)
		write_memory(page);
	if (own_heap_languages(page->report->asked) == OWN_HEAP_NOT_RECORDED)
		paper_paragraph(
			&page->paper, PAPER_DIM, "  python",
			reader_is_windows(page->report->asked->reader)
				? "objects of up to 512 bytes are in arenas that the interpreter "
				  "maps, and in no figure of the heap, unless PYTHONMALLOC=malloc "
				  "was set (on Windows that alone has each)"
				: "objects of up to 512 bytes are in arenas that the interpreter "
				  "maps, unless PYTHONMALLOC=malloc was set, and in no figure of "
				  "the heap (record --language-heaps has each)");
	report_own_heaps(page->report, write_own_heap, page);
	sink_text(page->paper.sink, "\n");
}

// What no filter of allocations can leave anything out of.
static void write_unfiltered(struct page *page)
{
	if (!page->parts ||
	    (!page->report->whole.vm.committed_peak_bytes && !page->report->rss_peak_bytes))
		return;
	paper_text(&page->paper, PAPER_BOLD, "NOT FILTERED");
	paper_text(&page->paper, PAPER_DIM, "  memory that processes have as a whole\n");
	write_memory(page);
	sink_text(page->paper.sink, "\n");
}

// Whether the filters leave out anything but whole processes: memory that a process has as a whole
// can be said of whole processes alone.
static bool selects_parts(const struct report *report)
{
	struct query query = report->asked->selection.query;

	query.processes = NULL;
	return query_narrows(&query);
}

// ---- sites ----

// Of the rows that are listed: what no program frees is no leak of this one.
//
// For example: runtime: 71.0 KiB is libstdc++'s reserve for exceptions, 4.0 KiB is the buffer of a
// stream: the runtime's own, which no program frees.
static void write_runtime(struct page *page, const struct sites_list *list)
{
	struct str text = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		struct names_stack stack =
			names_stack(page->report->asked->names, list->rows[i]->stack);
		const char *part = names_runtime(&stack);

		if (part)
			str_format(&text, "%s%s is %s", text.length ? ", " : "",
				   STR_BYTES(list->rows[i]->amounts[SITES_LIVE_AT_EXIT].bytes),
				   part);
	}
	if (text.length > 0) {
		str_add(&text, ": the runtime's own, which no program frees");
		paper_paragraph(&page->paper, PAPER_DIM, "  runtime", str_get(&text));
	}
	str_fini(&text);
}

// Of the rows that are listed: what CPython has of its own. For example 256 KiB of PyList_New below
// Py_InitializeFromConfig are the interpreter's, 10 KiB of `_call_with_frames_removed` are of a
// module that is loaded, and a list that app.py keeps is neither. Both stay until the process ends,
// so a reader who looks for leaks passes them by; what a script keeps is not told of, since all of
// its rows are leaks or meant.
static void write_interpreter(struct page *page, const struct sites_list *list)
{
	static const char *const whats[] = {
		[OWN_HEAP_INTERPRETER] = "the interpreter asked for itself, with no line of a "
					 "script in the stack (tables of its allocator, built-in "
					 "types, interned strings, caches)",
		[OWN_HEAP_IMPORT] = "it asked for to load modules (their code and constants)",
	};
	struct heap_amount own[OWN_HEAP_SCRIPT + 1] = { 0 };
	struct str text = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		enum own_heap_asker asker =
			own_heap_asker(page->report->asked->reader, list->rows[i]->stack);

		own[asker].bytes += list->rows[i]->amounts[SITES_LIVE_AT_EXIT].bytes;
		own[asker].count += list->rows[i]->amounts[SITES_LIVE_AT_EXIT].count;
	}
	for (size_t i = OWN_HEAP_INTERPRETER; i <= OWN_HEAP_IMPORT; i++)
		if (own[i].count)
			str_format(&text, "%s%s in %s block%s %s",
				   text.length ? ", " : "of what is listed, ",
				   STR_BYTES(own[i].bytes), STR_COUNT(own[i].count),
				   paper_plural(own[i].count), whats[i]);
	if (text.length > 0) {
		str_add(&text, ": CPython keeps such to its end, and does not free all of it "
			       "then. It is a leak only if it grows");
		paper_paragraph(&page->paper, PAPER_DIM, "  python", str_get(&text));
	}
	str_fini(&text);
}

// Title, what all of it is, the rows, and one line for the rest: rows and rest add up to the total.
static void write_question(struct page *page, enum sites_question question)
{
	struct sites_list list = sites_list(&page->report->sites, question);
	struct sheet sheet;
	bool by_count = sites_by_count(question);
	char sites[28], error[24] = "";

	ASSERT(question < SITES_QUESTIONS_COUNT);
	paper_text(&page->paper, PAPER_BOLD,
		   question == SITES_LIVE_AT_EXIT ? live_label(page, "LIVE AT THE CUT",
							       "LIVE AT THE END", titles[question])
						  : titles[question]);
	if (list.total.count == 0 && sampled(page) && question == SITES_TEMPORARY) {
		paper_text(&page->paper, PAPER_DIM, "  samples cannot tell\n\n");
		sites_list_fini(&list);
		return;
	}
	if (!report_knows(page->report, question)) {
		paper_text(&page->paper, PAPER_DIM, "  not known\n\n");
		sites_list_fini(&list);
		return;
	}
	if (list.total.count == 0) {
		paper_text(&page->paper, PAPER_DIM, "  nothing\n\n");
		sites_list_fini(&list);
		return;
	}
	str_count(list.count + list.rest_count, sites);
	if (list.total_variance > 0)
		snprintf(error, sizeof error, " ± %.1f %%",
			 paper_percent(sites_error(list.total_variance),
				       by_count ? list.total.count : list.total.bytes));
	paper_format(&page->paper, PAPER_DIM, "  %s%s in %s block%s%s, from %s site%s\n",
		     STR_BYTES(list.total.bytes), by_count ? "" : error,
		     STR_COUNT(list.total.count), paper_plural(list.total.count),
		     by_count ? error : "", sites, paper_plural(list.count + list.rest_count));
	sheet = sheet_in_text(&page->stacks, 3);
	report_rows(page->report, question, question + 1, &sheet);
	if (question == SITES_LIVE_AT_EXIT) {
		write_runtime(page, &list);
		write_interpreter(page, &list);
	}
	sink_text(page->paper.sink, "\n");
	sites_list_fini(&list);
}

// ---- pools ----

// What the program named through tidemark.h, a line each.
static void write_pools(struct page *page)
{
	const struct report *report = page->report;
	const struct trace_heap *pool = report_next_pool(report, 0);
	struct paper *paper = &page->paper;

	if (!pool)
		return;
	paper_text(paper, PAPER_BOLD, "POOLS");
	paper_text(paper, PAPER_DIM, "  who took from them: tidemark window --by heap,stack\n");
	for (; pool; pool = report_next_pool(report, pool->id)) {
		const struct pool_total *total = pool_totals_get(report->whole.pools, pool->id);
		const struct trace_process *process =
			reader_process(report->asked->reader, pool->process);

		paper_field(paper, PAPER_BOLD, STR_BYTES(total->allocated.bytes), 13, true);
		paper_field(paper, PAPER_PLAIN, STR_COUNT(total->allocated.count), 20, true);
		sink_text(paper->sink, "   ");
		paper_foreign(paper, PAPER_BOLD, pool->name, ENDING_COLUMNS_MAX);
		if (page->several && process)
			paper_format(paper, PAPER_PLAIN, "  [%" PRIu32 "]", process->pid);
		paper_format(paper, PAPER_PLAIN, ": peak %s", STR_BYTES(total->peak.bytes));
		paper_format(paper, PAPER_PLAIN, ", at the end %s in %s block%s",
			     STR_BYTES(total->live.bytes), STR_COUNT(total->live.count),
			     paper_plural(total->live.count));
		if (total->resets)
			paper_format(paper, PAPER_PLAIN, ", %s reset%s", STR_COUNT(total->resets),
				     paper_plural(total->resets));
		if (total->unknown_frees)
			paper_format(paper, PAPER_PLAIN, ", %s free%s of nothing known",
				     STR_COUNT(total->unknown_frees),
				     paper_plural(total->unknown_frees));
		sink_text(paper->sink, "\n");
	}
	sink_text(paper->sink, "\n");
}

// ---- virtual memory ----

// Calls of the selected processes, of libc and of the dynamic linker; tidemark's own left out.
static void write_calls(struct page *page)
{
	const struct space_totals *totals = &page->report->whole.vm;
	struct paper *paper = &page->paper;
	uint64_t all = 0;

	for (int call = 0; call < SPACE_CALLS_COUNT; call++)
		all += totals->calls[call].count;
	if (all == 0)
		return;
	paper_text(paper, PAPER_BOLD, "VIRTUAL MEMORY");
	paper_format(paper, PAPER_DIM, "  %s call%s; who made them: tidemark window --layer vm\n",
		     STR_COUNT(all), paper_plural(all));
	for (int call = 0; call < SPACE_CALLS_COUNT; call++) {
		const struct space_count *each = &totals->calls[call];

		if (each->count == 0)
			continue;
		paper_field(paper, PAPER_BOLD, STR_COUNT(each->count), 13, true);
		paper_field(paper, PAPER_PLAIN, STR_BYTES(each->bytes), 20, true);
		paper_format(paper, PAPER_PLAIN, "   %s", space_call_word((enum space_call)call));
		if (each->failed)
			paper_format(paper, PAPER_PLAIN, ", %s failed", STR_COUNT(each->failed));
		sink_text(paper->sink, "\n");
	}
	if (totals->purges) {
		paper_field(paper, PAPER_BOLD, STR_COUNT(totals->purges), 13, true);
		paper_field(paper, PAPER_PLAIN, STR_BYTES(totals->purged_bytes), 20, true);
		paper_text(paper, PAPER_PLAIN,
			   "   of these madvise calls gave back what was resident (purges)\n");
	}
	sink_text(paper->sink, "\n");
}

// What this pass knows of what `tidemark findings` looks for, and where the rest is.
static void write_findings(struct page *page)
{
	const struct heap_counts *counts = &heap_totals(page->report->heap)->counts;
	struct sites_list list = sites_list(&page->report->sites, SITES_TEMPORARY);
	uint64_t part = counts->allocated.count / FINDING_PART, most = 0;
	bool lost = page->report->reached.known &&
		    reached_lost(page->report->reached.states).count > 0;
	bool temporaries;

	if (list.count)
		most = list.rows[0]->amounts[SITES_TEMPORARY].count;
	temporaries = most >= FINDING_CALLS && most >= part;
	sites_list_fini(&list);
	paper_text(&page->paper, PAPER_BOLD, "FINDINGS");
	paper_text(&page->paper, PAPER_DIM,
		   "  tidemark findings FILE: what is wrong, what could be cheaper, what to do\n");
	if (counts->failed)
		paper_format(&page->paper, PAPER_PLAIN, "  failed: %s call%s returned no memory\n",
			     STR_COUNT(counts->failed), counts->failed == 1 ? "" : "s");
	if (counts->refused_frees)
		paper_format(&page->paper, PAPER_PLAIN,
			     "  freed-wrong: %s free%s that a heap refused\n",
			     STR_COUNT(counts->refused_frees), paper_plural(counts->refused_frees));
	if (lost)
		paper_text(&page->paper, PAPER_PLAIN,
			   "  unreachable: blocks that nothing points to any more\n");
	if (temporaries)
		paper_format(&page->paper, PAPER_PLAIN,
			     "  temporaries: one site makes %s of them\n", STR_COUNT(most));
	if (!counts->failed && !counts->refused_frees && !lost && !temporaries)
		paper_text(
			&page->paper, PAPER_DIM,
			"  no call failed, and no one site makes many temporaries; the others are "
			"looked for there\n");
	sink_text(page->paper.sink, "\n");
}

// Lines are at least 80 columns wide: narrower ones would leave no room for a stack. The notes on
// names come last, since names that are missing are counted while lines are written.
void report_text(struct report *report, struct sink *sink)
{
	struct page page = {
		.report = report,
		.paper = { .sink = sink,
			   .colour = report->options->colour,
			   .width = report->options->width < WIDTH_MIN ? WIDTH_MIN
								       : report->options->width },
		.parts = selects_parts(report),
		.several = reader_processes_count(report->asked->reader) > 1,
	};

	page.stacks =
		query_write_stacks(report->asked, &page.paper,
				   FIGURES_COLUMNS + (sampled(&page) ? REPORT_ERROR_COLUMNS : 0), 0,
				   report->options->all_frames);
	write_headline(&page);
	write_totals(&page);
	if (page.several)
		process_table_write(report, &page.paper);
	if (heap_totals(report->heap)->counts.allocated.count == 0)
		paper_text(
			&page.paper, PAPER_PLAIN,
			sampled(&page) ? "No allocation was a sample.\n"
			: reader_complete(report->asked->reader)
				? (query_narrows(&report->asked->selection.query)
					   ? "Nothing that was allocated is as the filters say.\n"
					   : "Nothing was allocated.\n")
				: "No allocation is in the trace, which is not whole.\n");
	else
		for (int i = 0; i < SITES_QUESTIONS_COUNT; i++)
			write_question(&page, (enum sites_question)i);
	write_pools(&page);
	write_unfiltered(&page);
	write_calls(&page);
	if (heap_totals(report->heap)->counts.allocated.count)
		write_findings(&page);
	query_write_last(report->asked, &page.stacks);
}
