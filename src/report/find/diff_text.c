// A comparison for people: the totals, the processes, and the stacks that explain the change.
//
// The first table is of whole runs, and each line has both figures, the change, and the change in
// percent of A. For example, of test/golden/diff.txt:
//
//                                    A             B        change
//       live at exit           5.9 KiB       4.3 KiB      −1.6 KiB  −26.7 %
//         blocks                    12             6            −6  −50.0 %
//
// Of nothing there is no percentage: a row that is new in B has a change and no share. What a
// filter leaves out is in no figure of either side.
#include "base/mem.h"
#include "base/str.h"
#include "report/find/diff.h"
#include "report/table/query_write.h"
#include "report/table/stack_text.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
	// of figures in front of a stack, and how wide each of them is; with several runs two give
	// way to an interval
	COLUMNS = 4,
	COLUMN_WIDTH = 11,
	FIGURES_COLUMNS = COLUMNS * COLUMN_WIDTH + 2,
	INTERVAL_WIDTH = 24,
	CALLERS_SHOWN = 6,
	PROCESSES_MAX = 20,
};

// "+1.5 MiB", "-12 B", "0"; a true minus is as wide as a plus.
static void format_amount(int64_t value, bool by_count, struct str *out)
{
	str_clear(out);
	if (!value)
		str_add(out, "0");
	else
		str_format(out, "%s%s", value < 0 ? "−" : "+",
			   by_count ? STR_COUNT(diff_magnitude(value))
				    : STR_BYTES(diff_magnitude(value)));
}

// What is shown of a change that runs differ by among themselves.
#define WITHIN_RUNS "≈"

// A change, or that it is none.
static void format_change(int64_t value, bool by_count, const struct diff_verdict *verdict,
			  struct str *out)
{
	format_amount(value, by_count, out);
	if (value && !verdict->changed) {
		str_clear(out);
		str_add(out, WITHIN_RUNS);
	}
}

// "+1.2 to +1.4 MiB"; "exactly" where it is one value; nothing with a run each.
static void format_interval(const struct diff *diff, bool by_count,
			    const struct diff_verdict *verdict, struct str *out)
{
	struct str high = { 0 };

	str_clear(out);
	if (!diff->significance || !(verdict->high < INFINITY))
		return;
	if (llround(verdict->low) == llround(verdict->high)) {
		str_add(out, "exactly");
		return;
	}
	format_amount(llround(verdict->low), by_count, out);
	format_amount(llround(verdict->high), by_count, &high);
	str_format(out, " to %s", str_get(&high));
	str_fini(&high);
}

// The run that a place is of: it is open, since diff_find closes only runs that nothing is shown
// of.
static const struct query_context *run_of(const struct diff_page *page, int side,
					  const struct diff_place *place)
{
	return &page->sides[side].runs[place->run];
}

// ---- what is compared ----

// Of several runs the first speaks for all; its warnings have those of the others.
static void write_side(const struct diff_page *page, int side, struct paper *paper)
{
	const struct diff_side *runs = &page->sides[side];
	const struct query_context *asked = &runs->runs[0];
	const struct trace_info *info = reader_info(asked->reader);

	paper_text(paper, PAPER_BOLD, side ? "B  " : "A  ");
	paper_foreign(paper, PAPER_BOLD, runs->names[0], paper->width - 20);
	if (runs->count > 1)
		paper_format(paper, PAPER_PLAIN, " and %" PRIu32 " more run%s", runs->count - 1,
			     paper_plural(runs->count - 1));
	sink_text(paper->sink, "\n   ");
	paper_foreign(paper, PAPER_PLAIN, *info->command ? info->command : "(no command)",
		      paper->width - 3);
	paper_format(paper, PAPER_DIM, "\n   %s, %s events", STR_DURATION(asked->duration_ns),
		     STR_COUNT(asked->events));
	if (asked->from_given || asked->to_given)
		paper_format(paper, PAPER_PLAIN, "; window from %s to %s",
			     STR_DURATION(asked->from_ns), STR_DURATION(asked->to_ns));
	sink_text(paper->sink, "\n");
	for (size_t i = 0; i < asked->warnings_count; i++)
		paper_paragraph(paper, PAPER_WARNING, "warning", asked->warnings[i]);
}

// "+2.2 %"; nothing where there was nothing before.
static void write_percent(struct paper *paper, uint64_t before, int64_t change)
{
	if (before && change)
		paper_format(paper, PAPER_DIM, "  %s%.1f %%", change < 0 ? "−" : "+",
			     100.0 * (double)diff_magnitude(change) / (double)before);
	sink_text(paper->sink, "\n");
}

// Both means, the change, and with several runs the interval in which it is. A change that runs
// differ by anyway has no percentage.
static void write_total(const struct diff *diff, struct paper *paper, const char *label,
			enum diff_figure figure, bool by_count)
{
	const struct diff_pair *pair = &diff->totals[figure];
	const struct diff_verdict verdict =
		diff_judge(diff, &diff->total_amounts, 0, figure, by_count);
	struct str change = { 0 };
	int64_t value = by_count ? diff_count(pair) : diff_bytes(pair);

	ASSERT(figure < DIFF_FIGURES);
	format_change(value, by_count, &verdict, &change);
	paper_format(paper, PAPER_PLAIN, "  %-16s", label);
	for (int side = 0; side < 2; side++)
		paper_field(paper, PAPER_PLAIN,
			    by_count ? STR_COUNT(pair->side[side].count)
				     : STR_BYTES(pair->side[side].bytes),
			    14, true);
	paper_field(paper, value ? PAPER_BOLD : PAPER_PLAIN, str_get(&change), 14, true);
	if (diff->significance) {
		format_interval(diff, by_count, &verdict, &change);
		paper_field(paper, PAPER_DIM, str_get(&change), INTERVAL_WIDTH + 2, true);
	}
	write_percent(paper, by_count ? pair->side[0].count : pair->side[0].bytes,
		      verdict.changed ? value : 0);
	str_fini(&change);
}

// Of the first run of each side, as `report` says it; at the end, if the two differ.
//
// A run that was closed since, as one of many, is not asked.
static const char *live_label(const struct diff_page *page)
{
	static const char *const labels[] = { "live at exit", "live at end", "live at cut" };
	const struct query_context *a = page->sides[0].runs, *b = page->sides[1].runs;
	enum query_last last = QUERY_LAST_END;

	if (!a->reader || !b->reader)
		return "live at exit";
	if (query_context_last(a) == query_context_last(b))
		last = query_context_last(a);
	return labels[last];
}

// With --to on either side the level there is shown, which need not be an exit. Temporary calls
// have a row only where they are known, and there is an interval only where there are several runs.
static void write_totals(const struct diff_page *page, struct paper *paper)
{
	const struct diff *diff = page->diff;
	bool windowed = page->sides[1].runs->to_given || page->sides[0].runs->to_given;

	paper_format(paper, PAPER_DIM, "  %-16s%14s%14s%14s", "", "A", "B", "change");
	if (diff->significance)
		paper_field(paper, PAPER_DIM, "in this interval", INTERVAL_WIDTH + 2, true);
	sink_text(paper->sink, "\n");
	write_total(diff, paper, windowed ? "live at end" : live_label(page), DIFF_LIVE, false);
	write_total(diff, paper, "  blocks", DIFF_LIVE, true);
	write_total(diff, paper, "peak", DIFF_PEAK, false);
	write_total(diff, paper, "allocated", DIFF_ALLOCATED, false);
	write_total(diff, paper, "  calls", DIFF_ALLOCATED, true);
	if (diff->temporary)
		write_total(diff, paper, "temporary calls", DIFF_TEMPORARY, true);
	if (diff->significance)
		paper_paragraph(
			paper, PAPER_DIM, "means of runs",
			WITHIN_RUNS
			" is a change by no more than runs differ among themselves; of twenty "
			"comparisons of equal programs at most one shows any other change");
	sink_text(paper->sink, "\n");
}

// ---- processes ----

// "cc1  100 → 200", or with one pid "new" or "gone".
static void describe_process(const struct diff_page *page, const struct diff_process *row,
			     struct str *text)
{
	const struct trace_process *process[2] = { NULL, NULL };

	for (int side = 0; side < 2; side++)
		if (row->place[side].process != TRACE_NONE)
			process[side] =
				reader_process(run_of(page, side, &row->place[side])->reader,
					       row->place[side].process);
	ASSERT(process[0] || process[1]);
	str_add(text, defs_program(process[1] ? process[1] : process[0]));
	if (process[0] && process[1])
		str_format(text, "  %" PRIu32 " → %" PRIu32, process[0]->pid, process[1]->pid);
	else
		str_format(text, "  %" PRIu32 "  %s", (process[1] ? process[1] : process[0])->pid,
			   process[1] ? "new" : "gone");
}

static void write_process_figure(const struct diff *diff, size_t number, enum diff_figure figure,
				 bool by_count, struct paper *paper)
{
	const struct diff_pair *pair = &diff->processes[number].figures[figure];
	const struct diff_verdict verdict =
		diff_judge(diff, &diff->process_amounts, number, figure, by_count);
	struct str text = { 0 };

	ASSERT(figure < DIFF_FIGURES);
	format_change(by_count ? diff_count(pair) : diff_bytes(pair), by_count, &verdict, &text);
	paper_field(paper, PAPER_PLAIN, str_get(&text), COLUMN_WIDTH, true);
	str_fini(&text);
}

// Of one process alone the totals above say the same. The first PROCESSES_MAX of diff's order are
// shown, the rest is a number; -n is of stacks.
static void write_processes(const struct diff_page *page, struct paper *paper)
{
	const struct diff *diff = page->diff;
	struct str text = { 0 };
	size_t shown = 0, more = 0;

	if (diff->processes_count < 2)
		return;
	paper_text(paper, PAPER_BOLD, "PROCESSES");
	paper_text(paper, PAPER_DIM, "  by program and place in the tree\n");
	paper_format(paper, PAPER_DIM, "%11s%11s%11s\n", "live", "calls", "allocated");
	for (size_t i = 0; i < diff->processes_count; i++) {
		const struct diff_process *row = &diff->processes[i];

		if (shown == PROCESSES_MAX) {
			more++;
			continue;
		}
		shown++;
		write_process_figure(diff, i, DIFF_LIVE, false, paper);
		write_process_figure(diff, i, DIFF_ALLOCATED, true, paper);
		write_process_figure(diff, i, DIFF_ALLOCATED, false, paper);
		str_clear(&text);
		describe_process(page, row, &text);
		sink_text(paper->sink, "  ");
		paper_foreign(paper, PAPER_PLAIN, str_get(&text), paper->width - 36);
		sink_text(paper->sink, "\n");
	}
	if (more)
		paper_format(paper, PAPER_DIM, "  … %zu more\n", more);
	sink_text(paper->sink, "\n");
	str_fini(&text);
}

// ---- stacks ----

// The columns: what is ranked by stands first.
static const struct column {
	const char *title;
	enum diff_figure figure;
	bool by_count;
	enum diff_order order;
} columns[] = {
	{ "live", DIFF_LIVE, false, DIFF_BY_LIVE },
	{ "peak", DIFF_PEAK, false, DIFF_BY_PEAK },
	{ "calls", DIFF_ALLOCATED, true, DIFF_BY_COUNT },
	{ "allocated", DIFF_ALLOCATED, false, DIFF_BY_ALLOCATED },
	{ "temporary", DIFF_TEMPORARY, true, DIFF_BY_TEMPORARY },
};

enum { COLUMNS_ALL = sizeof columns / sizeof *columns };

// With several runs an interval takes the room of two of them.
static size_t columns_of(const struct diff *diff)
{
	return diff->significance ? COLUMNS - 2 : COLUMNS;
}

static unsigned indent_of(const struct diff *diff)
{
	return FIGURES_COLUMNS - (diff->significance ? 2 * COLUMN_WIDTH - INTERVAL_WIDTH : 0);
}

// The figure that ranks is the first column, and the others follow in their order.
static void choose_columns(enum diff_order order, const struct column *chosen[COLUMNS])
{
	size_t count = 0;

	ASSERT(order < DIFF_ORDERS);
	for (size_t i = 0; i < COLUMNS_ALL; i++)
		if (columns[i].order == order)
			chosen[count++] = &columns[i];
	for (size_t i = 0; i < COLUMNS_ALL && count < COLUMNS; i++)
		if (columns[i].order != order)
			chosen[count++] = &columns[i];
	ASSERT(count == COLUMNS);
}

// Where it was before: the stack of A, with A's names, under that of B. Like that one it begins at
// the program's own innermost frame.
static void write_moved(const struct diff_page *page, const struct diff_row *row,
			struct paper *paper)
{
	const struct diff_place *place = &row->place[0];
	const struct query_context *asked = run_of(page, 0, place);
	struct names_stack stack = names_stack(asked->names, place->stack);
	struct lines lines = {
		.paper = paper,
		.indent = indent_of(page->diff),
		.all_frames = page->all_frames,
		.callers_max = CALLERS_SHOWN,
	};

	ASSERT(row->moved);
	if (stack.count == 0)
		return;
	lines_write_indent(&lines);
	paper_text(paper, PAPER_DIM, "before: ");
	lines.indent += 8;
	lines_write(&lines, stack.lines[page->all_frames ? 0 : stack.user].symbol, PAPER_DIM, "");
	lines_write_callers(&lines, &stack, page->all_frames ? 0 : stack.user);
}

// The stack is B's, where it has the row, and A's otherwise.
static void write_row(const struct diff_page *page, const struct diff_row *row,
		      const struct column *chosen[COLUMNS], struct stack_text *text)
{
	const struct diff *diff = page->diff;
	int side = row->place[1].process != TRACE_NONE;
	const struct query_context *asked = run_of(page, side, &row->place[side]);
	struct str figure = { 0 };

	for (size_t i = 0; i < columns_of(diff); i++) {
		const struct diff_pair *pair = &row->figures[chosen[i]->figure];
		bool by_count = chosen[i]->by_count;
		const struct diff_verdict verdict = diff_judge(
			diff, &diff->row_amounts, row->number, chosen[i]->figure, by_count);

		format_change(by_count ? diff_count(pair) : diff_bytes(pair), by_count, &verdict,
			      &figure);
		paper_field(text->paper, i == 0 ? PAPER_BOLD : PAPER_PLAIN, str_get(&figure),
			    COLUMN_WIDTH, true);
		// The figure that ranks alone has its interval.
		if (i == 0 && diff->significance) {
			format_interval(diff, by_count, &verdict, &figure);
			paper_field(text->paper, PAPER_DIM, str_get(&figure), INTERVAL_WIDTH, true);
		}
	}
	sink_text(text->paper->sink, "  ");
	text->names = asked->names;
	text->reader = asked->reader;
	text->remark = row->moved                            ? "moved"
		       : side == 0                           ? "gone"
		       : row->place[0].process == TRACE_NONE ? "new"
							     : NULL;
	stack_text_write(text, row->place[side].process, row->place[side].stack);
	if (row->moved)
		write_moved(page, row, text->paper);
	str_fini(&figure);
}

// Of all stacks, listed or not.
static void write_counts(const struct diff *diff, struct paper *paper)
{
	paper_text(paper, PAPER_BOLD, "STACKS");
	paper_format(paper, PAPER_DIM, "  %s new, ", STR_COUNT(diff->appeared));
	paper_format(paper, PAPER_DIM, "%s gone, ", STR_COUNT(diff->vanished));
	if (diff->moved)
		paper_format(paper, PAPER_DIM, "%s moved, ", STR_COUNT(diff->moved));
	paper_format(paper, PAPER_DIM, "%s changed, ", STR_COUNT(diff->changed));
	if (diff->significance)
		paper_format(paper, PAPER_DIM, "%s " WITHIN_RUNS ", ", STR_COUNT(diff->varied));
	paper_format(paper, PAPER_DIM, "%s the same\n", STR_COUNT(diff->same));
}

// A stack that is in B is shown as it is there, with B's names; one that is gone as it was in A.
// `stacks` has a writer for each side. The line "more" also counts stacks that changed by less than
// --min-bytes; -n 0 is advised only where it would show more: with --min-bytes, what changed in
// other figures alone stays out.
static void write_rows(const struct diff_page *page, struct stack_text *stacks)
{
	const struct diff *diff = page->diff;
	const struct column *chosen[COLUMNS];
	struct paper *paper = stacks[0].paper;

	choose_columns(diff->order, chosen);
	write_counts(diff, paper);
	if (diff->rows_count == 0)
		paper_format(paper, PAPER_PLAIN, "  no stack changed in %s%s%s%s\n",
			     chosen[0]->title, diff->rows_left_out ? " by " : "",
			     diff->rows_left_out ? STR_BYTES(diff->bytes_min) : "",
			     diff->rows_left_out ? " or more" : "");
	for (size_t i = 0; diff->rows_count > 0 && i < columns_of(diff); i++) {
		paper_field(paper, PAPER_DIM, chosen[i]->title, COLUMN_WIDTH, true);
		if (i == 0 && diff->significance)
			paper_field(paper, PAPER_DIM, "in", INTERVAL_WIDTH, true);
	}
	if (diff->rows_count > 0)
		sink_text(paper->sink, "\n");
	for (size_t i = 0; i < diff->rows_count; i++)
		write_row(page, &diff->rows[i], chosen,
			  &stacks[diff->rows[i].place[1].process != TRACE_NONE]);
	if (diff->rows_left_out)
		paper_format(paper, PAPER_DIM, "  … %s more stack%s%s\n",
			     STR_COUNT(diff->rows_left_out), paper_plural(diff->rows_left_out),
			     diff->rows_total > diff->rows_count ? " (-n 0 shows all)" : "");
	if (diff->rows_elsewhere)
		paper_format(paper, PAPER_DIM,
			     "  … %s%s stack%s changed in other figures alone (--sort ranks by "
			     "another figure%s)\n",
			     STR_COUNT(diff->rows_elsewhere), diff->rows_count ? " more" : "",
			     paper_plural(diff->rows_elsewhere),
			     diff->bytes_min ? "" : ", -n 0 shows all");
	sink_text(paper->sink, "\n");
}

// Both sides may be windows of one file: its notes on symbols are written once then.
void diff_text(const struct diff_page *page, struct sink *sink)
{
	struct paper paper = { .sink = sink, .colour = page->colour, .width = page->width };
	struct stack_text stacks[2];

	for (int side = 0; side < 2; side++) {
		stacks[side] = (struct stack_text){
			.paper = &paper,
			.names = page->sides[side].runs->names,
			.reader = page->sides[side].runs->reader,
			.indent = indent_of(page->diff),
			.callers_max = CALLERS_SHOWN,
			.all_frames = page->all_frames,
			.program_only = page->diff->processes_count > 1,
			.once = true,
		};
		write_side(page, side, &paper);
	}
	if (query_narrows(&page->sides[0].runs->selection.query))
		paper_paragraph(&paper, PAPER_PLAIN, "filtered",
				"the figures below are those of the selected allocations only");
	sink_text(sink, "\n");
	write_totals(page, &paper);
	write_processes(page, &paper);
	write_rows(page, stacks);
	query_write_symbol_notes(page->sides[0].runs, &paper);
	if (strcmp(page->sides[0].names[0], page->sides[1].names[0]) != 0)
		query_write_symbol_notes(page->sides[1].runs, &paper);
	stack_text_hint(&stacks[1]);
	stack_text_fini(&stacks[0]);
	stack_text_fini(&stacks[1]);
}
