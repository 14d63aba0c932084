// A comparison for people: the totals, the processes, and the stacks that explain the change.
#include "report/ask/cxxname.h"
#include "report/find/diff.h"
#include "report/table/query_write.h"
#include "report/table/stack_text.h"

#include <inttypes.h>
#include <string.h>

enum {
	COLUMNS = 4,
	COLUMN_WIDTH = 11,
	FIGURES_COLUMNS = COLUMNS * COLUMN_WIDTH + 2,
	CALLERS_SHOWN = 6,
	PROCESSES_MAX = 20,
};

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

// "+1.5 MiB", "-12 B", "0"; a true minus is as wide as a plus.
static void format_bytes(int64_t value, struct str *out)
{
	char bytes[16];

	str_clear(out);
	if (value)
		str_format(out, "%s%s", value < 0 ? "−" : "+", str_bytes(magnitude(value), bytes));
	else
		str_add(out, "0");
}

static void format_count(int64_t value, struct str *out)
{
	char count[28];

	str_clear(out);
	if (value)
		str_format(out, "%s%s", value < 0 ? "−" : "+", str_count(magnitude(value), count));
	else
		str_add(out, "0");
}

// ---- what is compared ----

static void write_side(const struct diff_page *page, int side, struct paper *paper)
{
	const struct query_context *asked = page->sides[side];
	const struct trace_info *info = reader_info(asked->reader);
	char from[24], to[24], events[28];

	paper_text(paper, PAPER_BOLD, side ? "B  " : "A  ");
	paper_foreign(paper, PAPER_BOLD, page->names[side], paper->width - 3);
	sink_text(paper->sink, "\n   ");
	paper_foreign(paper, PAPER_PLAIN, *info->command ? info->command : "(no command)",
		      paper->width - 3);
	paper_format(paper, PAPER_DIM, "\n   %s, %s events", str_duration(asked->duration_ns, from),
		     str_count(asked->events, events));
	if (asked->from_given || asked->to_given)
		paper_format(paper, PAPER_PLAIN, "; window from %s to %s",
			     str_duration(asked->from_ns, from), str_duration(asked->to_ns, to));
	sink_text(paper->sink, "\n");
	for (size_t i = 0; i < asked->warnings_count; i++)
		paper_paragraph(paper, PAPER_WARNING, "warning", asked->warnings[i]);
}

// "+2.2 %"; nothing where there was nothing before.
static void write_percent(struct paper *paper, uint64_t before, int64_t change)
{
	if (before && change)
		paper_format(paper, PAPER_DIM, "  %s%.1f %%", change < 0 ? "−" : "+",
			     100.0 * (double)magnitude(change) / (double)before);
	sink_text(paper->sink, "\n");
}

static void write_total(struct paper *paper, const char *label, const struct diff_pair *pair,
			bool by_count)
{
	struct str change = { 0 };
	char before[28], after[28];
	int64_t value = by_count ? diff_count(pair) : diff_bytes(pair);

	if (by_count) {
		str_count(pair->side[0].count, before);
		str_count(pair->side[1].count, after);
		format_count(value, &change);
	} else {
		str_bytes(pair->side[0].bytes, before);
		str_bytes(pair->side[1].bytes, after);
		format_bytes(value, &change);
	}
	paper_format(paper, PAPER_PLAIN, "  %-16s", label);
	paper_field(paper, PAPER_PLAIN, before, 14, true);
	paper_field(paper, PAPER_PLAIN, after, 14, true);
	paper_field(paper, value ? PAPER_BOLD : PAPER_PLAIN, str_get(&change), 14, true);
	write_percent(paper, by_count ? pair->side[0].count : pair->side[0].bytes, value);
	str_fini(&change);
}

static void write_totals(const struct diff_page *page, struct paper *paper)
{
	const struct diff *diff = page->diff;
	bool windowed = page->sides[1]->to_given || page->sides[0]->to_given;

	paper_format(paper, PAPER_DIM, "  %-16s%14s%14s%14s\n", "", "A", "B", "change");
	write_total(paper, windowed ? "live at end" : "live at exit", &diff->totals[DIFF_LIVE],
		    false);
	write_total(paper, "  blocks", &diff->totals[DIFF_LIVE], true);
	write_total(paper, "peak", &diff->totals[DIFF_PEAK], false);
	write_total(paper, "allocated", &diff->totals[DIFF_ALLOCATED], false);
	write_total(paper, "  calls", &diff->totals[DIFF_ALLOCATED], true);
	if (diff->temporary)
		write_total(paper, "temporary calls", &diff->totals[DIFF_TEMPORARY], true);
	sink_text(paper->sink, "\n");
}

// ---- processes ----

static void describe_process(const struct diff_page *page, const struct diff_process *row,
			     struct str *text)
{
	const struct trace_process *process[2] = { NULL, NULL };

	for (int side = 0; side < 2; side++)
		if (row->process[side] != TRACE_NONE)
			process[side] =
				reader_process(page->sides[side]->reader, row->process[side]);
	str_add(text, names_file((process[1] ? process[1] : process[0])->exe));
	if (process[0] && process[1])
		str_format(text, "  %" PRIu32 " → %" PRIu32, process[0]->pid, process[1]->pid);
	else
		str_format(text, "  %" PRIu32 "  %s", (process[1] ? process[1] : process[0])->pid,
			   process[1] ? "new" : "gone");
}

static void write_processes(const struct diff_page *page, struct paper *paper)
{
	const struct diff *diff = page->diff;
	struct str figure = { 0 }, text = { 0 };
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
		format_bytes(diff_bytes(&row->figures[DIFF_LIVE]), &figure);
		paper_field(paper, PAPER_PLAIN, str_get(&figure), COLUMN_WIDTH, true);
		format_count(diff_count(&row->figures[DIFF_ALLOCATED]), &figure);
		paper_field(paper, PAPER_PLAIN, str_get(&figure), COLUMN_WIDTH, true);
		format_bytes(diff_bytes(&row->figures[DIFF_ALLOCATED]), &figure);
		paper_field(paper, PAPER_PLAIN, str_get(&figure), COLUMN_WIDTH, true);
		str_clear(&text);
		describe_process(page, row, &text);
		sink_text(paper->sink, "  ");
		paper_foreign(paper, PAPER_PLAIN, str_get(&text), paper->width - 36);
		sink_text(paper->sink, "\n");
	}
	if (more)
		paper_format(paper, PAPER_DIM, "  … %zu more\n", more);
	sink_text(paper->sink, "\n");
	str_fini(&figure);
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

static void choose_columns(enum diff_order order, const struct column *chosen[COLUMNS])
{
	size_t count = 0;

	for (size_t i = 0; i < COLUMNS_ALL; i++)
		if (columns[i].order == order)
			chosen[count++] = &columns[i];
	for (size_t i = 0; i < COLUMNS_ALL && count < COLUMNS; i++)
		if (columns[i].order != order)
			chosen[count++] = &columns[i];
}

static void write_row(const struct diff_page *page, const struct diff_row *row,
		      const struct column *chosen[COLUMNS], struct stack_text *stacks)
{
	int side = row->place[1].process != TRACE_NONE;
	struct stack_text *text = &stacks[side];
	struct str figure = { 0 };

	for (size_t i = 0; i < COLUMNS; i++) {
		const struct diff_pair *pair = &row->figures[chosen[i]->figure];

		if (chosen[i]->by_count)
			format_count(diff_count(pair), &figure);
		else
			format_bytes(diff_bytes(pair), &figure);
		paper_field(text->paper, i == 0 ? PAPER_BOLD : PAPER_PLAIN, str_get(&figure),
			    COLUMN_WIDTH, true);
	}
	sink_text(text->paper->sink, "  ");
	text->remark = side == 0 ? "gone" : row->place[0].process == TRACE_NONE ? "new" : NULL;
	stack_text_write(text, row->place[side].process, row->place[side].stack);
	str_fini(&figure);
	(void)page;
}

static void write_rows(const struct diff_page *page, struct stack_text *stacks)
{
	const struct diff *diff = page->diff;
	const struct column *chosen[COLUMNS];
	struct paper *paper = stacks[0].paper;
	char changed[28], fresh[28], gone[28], same[28];

	choose_columns(diff->order, chosen);
	paper_text(paper, PAPER_BOLD, "STACKS");
	paper_format(paper, PAPER_DIM, "  %s new, %s gone, %s changed, %s the same\n",
		     str_count(diff->appeared, fresh), str_count(diff->vanished, gone),
		     str_count(diff->changed, changed), str_count(diff->same, same));
	if (diff->rows_count == 0) {
		paper_format(paper, PAPER_PLAIN, "  no stack changed in %s%s\n\n", chosen[0]->title,
			     diff->changed + diff->appeared + diff->vanished
				     ? " (--sort ranks by another figure)"
				     : "");
		return;
	}
	for (size_t i = 0; i < COLUMNS; i++)
		paper_field(paper, PAPER_DIM, chosen[i]->title, COLUMN_WIDTH, true);
	sink_text(paper->sink, "\n");
	for (size_t i = 0; i < diff->rows_count; i++)
		write_row(page, &diff->rows[i], chosen, stacks);
	if (diff->rows_left_out)
		paper_format(paper, PAPER_DIM, "  … %s more stack%s%s\n",
			     str_count(diff->rows_left_out, changed),
			     paper_plural(diff->rows_left_out),
			     diff->rows_total > diff->rows_count ? " (-n 0 shows all)" : "");
	sink_text(paper->sink, "\n");
}

void diff_text(const struct diff_page *page, struct sink *sink)
{
	struct paper paper = { .sink = sink, .colour = page->colour, .width = page->width };
	struct stack_text stacks[2];

	for (int side = 0; side < 2; side++) {
		stacks[side] = (struct stack_text){
			.paper = &paper,
			.names = page->sides[side]->names,
			.reader = page->sides[side]->reader,
			.indent = FIGURES_COLUMNS,
			.callers_max = CALLERS_SHOWN,
			.all_frames = page->all_frames,
			.program_only = page->diff->processes_count > 1,
			.once = true,
		};
		write_side(page, side, &paper);
	}
	if (query_narrows(&page->sides[0]->selection.query))
		paper_paragraph(&paper, PAPER_PLAIN, "filtered",
				"the figures below are those of the selected allocations only");
	sink_text(sink, "\n");
	write_totals(page, &paper);
	write_processes(page, &paper);
	write_rows(page, stacks);
	query_write_symbol_notes(page->sides[0], &paper);
	if (strcmp(page->names[0], page->names[1]) != 0)
		query_write_symbol_notes(page->sides[1], &paper);
	stack_text_hint(&stacks[1]);
	stack_text_fini(&stacks[0]);
	stack_text_fini(&stacks[1]);
}
