// Spikes for people: when, how high, how long, and who.
//
// For example, of test/golden/transients.txt: the program had 20 MiB, rose by 10 MiB, and was
// back after 110 ms.
//
//       10.0 MiB for 110.000 ms at 31.473 s, up to 30.0 MiB
//          10.0 MiB 100.0 %           1   make_buffer  app.c:9  #1
//                                         work  app.c:40
//
// How long is between the two times at which it was half way up. The shares below are of what was
// allocated during the rise and lived at the top.
#include "base/mem.h"
#include "report/find/transients.h"
#include "report/table/query_write.h"
#include "report/table/stack_text.h"

enum {
	FIGURES_COLUMNS = 36,
	MAKERS_SHOWN = 3,
	CALLERS_SHOWN = 6,
	PART_SHOWN = 100, // of what rose; less says nothing
};

// The frame in which spikes are read: where the level was, and where it went.
static void write_level(const struct transients *t, struct paper *paper)
{
	const struct spikes *spikes = t->spikes;

	paper_format(paper, PAPER_PLAIN,
		     "  %s: %s at the beginning, peak %s at %s, %s at the end\n\n",
		     t->asked->layers == WINDOW_VM ? "committed memory" : "heap",
		     STR_BYTES(spikes->level_from), STR_BYTES(spikes->peak),
		     STR_DURATION(spikes->peak_ns), STR_BYTES(spikes->level_to));
}

// Bytes, their share of `of` (0: none is said), blocks. A count is 0 or more.
static void write_figures(struct paper *paper, int64_t bytes, uint64_t of, int64_t count)
{
	char share[16];

	snprintf(share, sizeof share, "%.1f %%", of ? 100.0 * (double)bytes / (double)of : 100.0);
	paper_field(paper, PAPER_PLAIN, STR_BYTES((uint64_t)bytes), 13, true);
	paper_field(paper, PAPER_PLAIN, of ? share : "", 8, true);
	paper_field(paper, PAPER_PLAIN, STR_COUNT((uint64_t)count), 12, true);
	sink_text(paper->sink, "   ");
}

// The largest is shown in any case, the others while they are a hundredth or more; all that is not
// shown is one line, if it is a hundredth together.
static void write_makers(const struct transients *t, const struct spikes_row *row,
			 struct stack_text *stacks)
{
	int64_t bytes = row->rest_bytes;
	int64_t count = row->rest_count;
	size_t shown = 0;
	size_t more;

	for (; shown < row->spike_sites_count && shown < MAKERS_SHOWN; shown++) {
		size_t i = shown;
		const struct query_context_place *place =
			&t->asked->places[row->spike_sites[i].place];

		if (i > 0 && (uint64_t)row->spike_sites[i].bytes < row->risen / PART_SHOWN)
			break;
		write_figures(stacks->paper, row->spike_sites[i].bytes, row->risen,
			      row->spike_sites[i].count > 0 ? row->spike_sites[i].count : 0);
		stack_text_write(stacks, place->process, place->stack);
	}
	for (size_t i = shown; i < row->spike_sites_count; i++) {
		bytes += row->spike_sites[i].bytes;
		count += row->spike_sites[i].count;
	}
	ASSERT(shown <= row->spike_sites_count);
	more = row->spike_sites_count - shown + row->spike_sites_rest;
	if (!more || (uint64_t)bytes < row->risen / PART_SHOWN)
		return;
	write_figures(stacks->paper, bytes, row->risen, count > 0 ? count : 0);
	paper_format(stacks->paper, PAPER_DIM, "%zu more site%s\n", more, paper_plural(more));
}

// Its height is from the base to the body, which is the plateau that spikes stand on, where there
// is one.
static void write_spike(const struct transients *t, const struct spikes_row *row,
			struct stack_text *stacks)
{
	struct paper *paper = stacks->paper;

	ASSERT(row->hill.body >= row->hill.base);
	paper_format(paper, PAPER_BOLD, "  %s for %s", STR_BYTES(row->hill.body - row->hill.base),
		     spikes_lasted(row, t->asked->reader, (char[64]){ 0 }));
	paper_format(paper, PAPER_PLAIN, " at %s", STR_DURATION(row->half_begin_ns));
	paper_format(paper, PAPER_PLAIN, ", up to %s", STR_BYTES(row->hill.body));
	if (row->hill.spikes > 1)
		paper_format(paper, PAPER_PLAIN, " under %s spikes", STR_COUNT(row->hill.spikes));
	if (row->cut)
		paper_text(paper, PAPER_DIM, ", not over at the end");
	sink_text(paper->sink, "\n");
	write_makers(t, row, stacks);
}

// Rows of one kind; returns how many.
static size_t write_spikes(const struct transients *t, struct stack_text *stacks, bool whole)
{
	size_t count = 0;

	for (size_t i = 0; i < t->spikes->rows_count; i++) {
		if (t->spikes->rows[i].whole != whole)
			continue;
		if (whole && count == 0)
			paper_text(stacks->paper, PAPER_BOLD, "HILLS");
		if (whole && count == 0)
			paper_text(stacks->paper, PAPER_DIM,
				   "  rises and falls that take more than half of the time\n");
		write_spike(t, &t->spikes->rows[i], stacks);
		count++;
	}
	return count;
}

// Short ones first, then those that take more than half of the time: the latter are phases of the
// program rather than spikes.
static void write_all_spikes(const struct transients *t, struct stack_text *stacks)
{
	const struct spikes *spikes = t->spikes;
	struct paper *paper = stacks->paper;

	paper_text(paper, PAPER_BOLD, "SPIKES");
	if (spikes->peak == 0) {
		paper_text(paper, PAPER_DIM, "  none: nothing lived\n\n");
		return;
	}
	if (spikes->rows_total == 0) {
		paper_format(paper, PAPER_DIM, "  none of %s or more\n\n",
			     STR_BYTES(spikes->rise_min));
		return;
	}
	paper_format(paper, PAPER_DIM,
		     "  rises of %s or more that fall back: how high, how long, when, who\n",
		     STR_BYTES(spikes->rise_min));
	if (write_spikes(t, stacks, false) == 0)
		paper_text(paper, PAPER_DIM, "  none shorter than half of the time\n");
	paper_more(paper, spikes->rows_total - spikes->rows_count);
	sink_text(paper->sink, "\n");
	if (write_spikes(t, stacks, true))
		sink_text(paper->sink, "\n");
}

// "every 3.234 s", "every 1.2 s to 4 s".
static void add_range(struct str *out, uint64_t least_ns, uint64_t most_ns, uint64_t mean_ns)
{
	// What varies by less than a tenth is told as one figure.
	if (most_ns - least_ns <= mean_ns / 10)
		str_add(out, STR_DURATION(mean_ns));
	else
		str_format(out, "%s to %s", STR_DURATION(least_ns), STR_DURATION(most_ns));
}

// A series has two buffers or more, so there is a period.
static void write_series(const struct transients *t, const struct spikes_series *series,
			 struct stack_text *stacks)
{
	const struct query_context_place *place = &t->asked->places[series->place];
	struct paper *paper = stacks->paper;
	struct str text = { 0 };

	ASSERT(series->count >= 2);
	str_format(&text, "%s buffers of %s, one at a time, every ", STR_COUNT(series->count),
		   STR_BYTES(series->size));
	add_range(&text, series->period_least_ns, series->period_most_ns,
		  (series->last_ns - series->first_ns) / (series->count - 1));
	if (series->ended) {
		str_add(&text, ", ");
		add_range(&text, series->lived_least_ns, series->lived_most_ns,
			  series->lived_ns / series->ended);
		str_add(&text, " each");
	}
	sink_text(paper->sink, "  ");
	paper_format(paper, PAPER_BOLD, "%s\n", str_get(&text));
	write_figures(paper, (int64_t)(series->size * series->count), 0, (int64_t)series->count);
	stack_text_write(stacks, place->process, place->stack);
	str_fini(&text);
}

static void write_all_series(const struct transients *t, struct stack_text *stacks)
{
	const struct spikes *spikes = t->spikes;
	struct paper *paper = stacks->paper;

	if (spikes->series_total == 0)
		return;
	paper_text(paper, PAPER_BOLD, "ONE AT A TIME");
	paper_text(paper, PAPER_DIM,
		   "  equal buffers of one site that never overlap: allocate once and reuse?\n");
	for (size_t i = 0; i < spikes->series_count; i++)
		write_series(t, &spikes->series[i], stacks);
	paper_more(paper, spikes->series_total - spikes->series_count);
	if (spikes->sizes_dropped)
		paper_text(paper, PAPER_DIM,
			   "  so many different sizes that not all of them were followed\n");
	sink_text(paper->sink, "\n");
}

void transients_text(const struct transients *t, struct sink *sink)
{
	struct paper paper = { .sink = sink, .colour = t->colour, .width = t->width };
	struct stack_text stacks =
		query_write_stacks(t->asked, &paper, FIGURES_COLUMNS, CALLERS_SHOWN, t->all_frames);

	query_write_headline(t->asked, &paper);
	write_level(t, &paper);
	write_all_spikes(t, &stacks);
	write_all_series(t, &stacks);
	query_write_last(t->asked, &stacks);
}
