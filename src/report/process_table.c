// The processes of a recording as a tree, with what each allocated:
//
//     PROCESSES                          allocations      bytes    at exit  ended
//       15209  f                                   1  976.6 KiB  976.6 KiB  exit 0
//       ├─ 15212  f (forked)                       1   97.7 KiB   97.7 KiB  exit 0
//       └─ 15213  f (forked)                       1  195.3 KiB  195.3 KiB  exit 0
//
// A build has thousands. Then the 20 that allocated most are shown, each with all that it descends
// from, so the tree has no loose ends; the last line sums up the others.
#include "report/process_table.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/ask/cxxname.h"
#include "report/ask/names.h"
#include "report/process_tree.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	PROCESSES_MAX = 20, // in the tree, unless -n 0
	WIDTH_PEAK = 91,    // from here on it has a column for peaks
	WIDTH_FREES = 110,  // and for frees
};

// Each process's own. An import of sums may not tell them.
static bool has_peaks(const struct report *report, const struct paper *paper)
{
	return paper->width >= WIDTH_PEAK && report_knows(report, SITES_PEAK);
}

// Program and arguments as one line.
static void describe_process(const struct trace_process *process, struct str *text)
{
	str_format(text, "%" PRIu32 "  ", process->pid);
	if (process->title || process->args_count == 0)
		str_add(text, names_process_word(process));
	for (uint32_t i = 0; i < process->args_count && !process->title; i++)
		str_format(text, "%s%s", i ? " " : "",
			   i ? process->args[i] : names_process_word(process));
	if (process->start == TRACE_START_FORK)
		str_add(text, " (forked)");
	if (process->start == TRACE_START_ATTACH)
		str_add(text, " (attached)");
}

// The command takes what the lines of the tree leave of the column, ten characters at least. Where
// the query names processes there are no lines: the parents may not be shown.
static void write_process(struct report *report, struct paper *paper,
			  const struct process_tree *tree, size_t index, unsigned columns)
{
	process_id id = tree->nodes[index].process;
	const struct trace_process *process = reader_process(report->asked->reader, id);
	const struct heap_counts *counts = heap_process(report->heap, id);
	struct str lines = { 0 };
	struct str text = { 0 };
	struct str cut = { 0 };
	struct sink sink = sink_to_str(&cut);
	struct paper strip = { .sink = &sink };
	char ended[48];
	size_t used;

	if (!report->asked->selection.query.processes)
		process_tree_lines(tree, index, &lines);
	describe_process(process, &text);
	used = cxxname_columns(str_get(&lines));
	paper_foreign(&strip, PAPER_PLAIN, str_get(&text),
		      used + 10 < columns ? columns - (unsigned)used : 10);
	sink_text(paper->sink, "  ");
	paper_text(paper, PAPER_DIM, str_get(&lines));
	paper_field(paper, PAPER_PLAIN, str_get(&cut),
		    columns > used ? columns - (unsigned)used : 0, false);
	paper_field(paper, PAPER_PLAIN, STR_COUNT(counts->allocated.count), 13, true);
	if (paper->width >= WIDTH_FREES)
		paper_field(paper, PAPER_PLAIN, STR_COUNT(counts->frees), 13, true);
	paper_field(paper, PAPER_PLAIN, STR_BYTES(counts->allocated.bytes), 11, true);
	if (has_peaks(report, paper))
		paper_field(paper, PAPER_PLAIN, STR_BYTES(counts->peak.bytes), 11, true);
	paper_field(paper, PAPER_PLAIN, STR_BYTES(counts->live_at_exit.bytes), 11, true);
	paper_format(paper, PAPER_DIM, "  %s\n", report_ending(report->asked->reader, id, ended));
	STR_FINI(&lines, &text, &cut);
}

// `context` points at the report's heap. Ids break ties, so the order is one.
static int by_bytes(const void *a, const void *b, void *context)
{
	const struct heap *heap = *(const struct heap *const *)context;
	process_id left = *(const process_id *)a;
	process_id right = *(const process_id *)b;
	uint64_t l = heap_process(heap, left)->allocated.bytes;
	uint64_t r = heap_process(heap, right)->allocated.bytes;

	if (l != r)
		return l > r ? -1 : 1;
	return left < right ? -1 : left > right;
}

// By process id, whether it is in the tree: the heaviest ones, and those they descend from.
static bool *choose_processes(const struct report *report)
{
	const struct reader *reader = report->asked->reader;
	uint32_t count = reader_processes_count(reader);
	bool all = report->options->rows_max == 0 || count <= PROCESSES_MAX;
	bool *chosen = mem_alloc(count, sizeof *chosen);
	process_id *order = mem_alloc(count, sizeof *order);

	for (process_id id = 0; id < count; id++)
		order[id] = id;
	mem_sort(order, count, sizeof *order, by_bytes, (void *)&report->heap);
	for (uint32_t i = 0; i < count && (all || i < PROCESSES_MAX); i++) {
		process_id id = order[i];

		if (!query_has_process(&report->asked->selection.query, id))
			continue;
		while (id < count && !chosen[id]) {
			process_id parent = reader_process(reader, id)->parent;

			chosen[id] = true;
			// With --process the ancestors were not asked for. A parent has a lower
			// number; else it has none.
			if (report->asked->selection.query.processes || parent >= id)
				break;
			id = parent;
		}
	}
	mem_free(order);
	return chosen;
}

// Widths: what the columns to the right take is subtracted, 16 is that of the ending. A terminal
// has 80 columns at least (print_options.c), so `columns` is 27 or more.
void process_table_write(struct report *report, struct paper *paper)
{
	static const char *const words[] = { "at exit", "at end", "at cut" }; // by QUERY_LAST_…
	struct process_tree tree;
	bool *chosen;
	unsigned wide = paper->width >= WIDTH_FREES ? 13 : 0;
	unsigned peak = has_peaks(report, paper) ? 11 : 0;
	unsigned columns = paper->width - 2 - 13 - wide - 11 - peak - 11 - 16;
	struct heap_amount hidden = { 0 };
	size_t hidden_count = 0;

	paper_text(paper, PAPER_BOLD, "PROCESSES");
	paper_field(paper, PAPER_DIM, "", columns + 2 - 9, false);
	paper_field(paper, PAPER_DIM, "allocations", 13, true);
	if (wide)
		paper_field(paper, PAPER_DIM, "frees", 13, true);
	paper_field(paper, PAPER_DIM, "bytes", 11, true);
	if (peak)
		paper_field(paper, PAPER_DIM, "peak", 11, true);
	paper_field(paper, PAPER_DIM, words[query_context_last(report->asked)], 11, true);
	paper_text(paper, PAPER_DIM, "  ended\n");
	process_tree_init(&tree, report->asked->reader);
	chosen = choose_processes(report);
	for (size_t i = 0; i < tree.count; i++) {
		process_id id = tree.nodes[i].process;

		if (chosen[id]) {
			write_process(report, paper, &tree, i, columns);
		} else if (query_has_process(&report->asked->selection.query, id)) {
			hidden_count++;
			hidden.count += heap_process(report->heap, id)->allocated.count;
			hidden.bytes += heap_process(report->heap, id)->allocated.bytes;
		}
	}
	if (hidden_count)
		paper_format(paper, PAPER_DIM,
			     "  … %zu more with %s allocations of %s (-n 0 shows all)\n",
			     hidden_count, STR_COUNT(hidden.count), STR_BYTES(hidden.bytes));
	sink_text(paper->sink, "\n");
	mem_free(chosen);
	process_tree_fini(&tree);
}
