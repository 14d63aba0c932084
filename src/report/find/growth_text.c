// Growth for people: how fast, since when, who, and what to make of it.
//
// A verdict is a table of its own, with the most alarming first. For example, of
// test/golden/growth.txt:
//
//     GROWING  kept more and more, to the end: leaks, logs, queues
//       1 site, +62.7 KiB, 1.2 KiB/s, 1 GiB in 9.7 days
//            grown       live    blocks
//       ▂▂▂▃▃▃▄▄▅▅▅▆▆▆▇▇▇███  1.2 KiB/s, 1 GiB in 9.7 days, s…
//        +62.7 KiB   71.3 KiB     1,825   leak  leak.c:10  #1
//                                         main  app.c:80
//
// The curve has the lowest level of each of twenty stretches of the window, from 0 to the
// highest: it shows a shape and no size.
#include "base/mem.h"
#include "report/find/growth.h"
#include "report/table/query_write.h"
#include "report/table/stack_text.h"

enum { FIGURES_COLUMNS = 36, CALLERS_SHOWN = 8, CURVE_COLUMNS = 20 };

static const struct {
	const char *title;
	const char *meaning;
} sections[TREND_VERDICTS] = {
	[TREND_GROWS] = { "GROWING", "kept more and more, to the end: leaks, logs, queues" },
	[TREND_RECENT] = { "GROWING LATELY", "only in the last third: record longer to tell" },
	[TREND_LEVELS_OFF] = { "LEVELLING OFF", "grew and stopped: caches, pools" },
	[TREND_STEPS] = { "IN STEPS", "grew in one or two steps: tables, phases" },
};

// The lowest levels as a curve of one line, from 0 to the highest.
static void add_curve(struct str *out, const struct growth_row *row)
{
	static const char *const steps[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	uint64_t most = 1;

	for (size_t i = 0; i < GROWTH_BUCKETS; i++)
		if (row->lows[i] > most)
			most = row->lows[i];
	for (size_t i = 0; i < CURVE_COLUMNS; i++) {
		uint64_t low = row->lows[(i + 1) * GROWTH_BUCKETS / CURVE_COLUMNS - 1];

		str_add(out, steps[(size_t)((double)low / (double)most * 7.999)]);
	}
}

// "4.0 KiB/s"; slow growth by minute, hour or day.
static void add_rate(struct str *out, double bytes_per_s)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = { { "s", 1 }, { "min", 60 }, { "h", 3600 }, { "day", 86400 } };
	size_t at = 0;

	while (at < 3 && bytes_per_s * units[at].seconds < 1024)
		at++;
	str_format(out, "%s/%s", STR_BYTES((uint64_t)(bytes_per_s * units[at].seconds)),
		   units[at].unit);
}

// ", 1 GiB in 3.1 h"; nothing where it would take more than ten years.
static void add_projection(struct str *out, double bytes_per_s)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = { { "years", 365.25 * 86400 },
		      { "days", 86400 },
		      { "h", 3600 },
		      { "min", 60 },
		      { "s", 1 } };
	double seconds = bytes_per_s > 0 ? 1073741824.0 / bytes_per_s : 1e18;
	size_t at = 0;

	if (seconds > 10 * units[0].seconds)
		return;
	while (at < 4 && seconds < 2 * units[at].seconds)
		at++;
	str_format(out, ", 1 GiB in %.*f %s", seconds / units[at].seconds < 10 ? 1 : 0,
		   seconds / units[at].seconds, units[at].unit);
}

// The curve, and the one figure that goes with the verdict: a rate, or a moment.
static void write_headline_of(struct sheet *sheet, const void *of)
{
	const struct growth_row *row = of;
	struct paper *paper = sheet->stacks->paper;
	struct str text = { 0 };

	add_curve(&text, row);
	paper_format(paper, PAPER_PLAIN, "  %s  ", str_get(&text));
	str_clear(&text);
	switch (row->trend.verdict) {
	case TREND_GROWS:
		add_rate(&text, row->slope_per_s);
		add_projection(&text, row->slope_per_s);
		paper_text(paper, PAPER_BOLD, str_get(&text));
		paper_format(paper, PAPER_DIM, row->trend.fit < 0.9 ? ", in bursts" : ", steadily");
		paper_format(paper, PAPER_DIM, " (R² %.3f)", row->trend.fit);
		break;
	case TREND_RECENT:
		paper_format(paper, PAPER_BOLD, "since %s", STR_DURATION(row->since_ns));
		break;
	case TREND_LEVELS_OFF:
		paper_format(paper, PAPER_BOLD, "level since %s", STR_DURATION(row->since_ns));
		break;
	default:
		paper_format(paper, PAPER_BOLD, "largest step at %s", STR_DURATION(row->since_ns));
		break;
	}
	sink_text(paper->sink, "\n");
	str_fini(&text);
}

// Nothing where no site has this verdict. The rate of all together is only said of what grows
// still.
static void write_section(const struct growth_page *page, enum trend_verdict verdict,
			  struct stack_text *stacks)
{
	const struct growth_list *list = &page->growth->lists[verdict];
	struct sheet sheet = sheet_in_text(stacks, 3);
	struct paper *paper = stacks->paper;
	struct str rate = { 0 };

	if (list->total == 0)
		return;
	paper_text(paper, PAPER_BOLD, sections[verdict].title);
	add_rate(&rate, list->slope_per_s);
	if (verdict == TREND_GROWS)
		add_projection(&rate, list->slope_per_s);
	paper_format(paper, PAPER_DIM, "  %s\n", sections[verdict].meaning);
	paper_format(paper, PAPER_PLAIN, "  %s site%s, +%s", STR_COUNT(list->total),
		     paper_plural(list->total), STR_BYTES(list->grown));
	if (verdict == TREND_GROWS)
		paper_format(paper, PAPER_PLAIN, ", %s", str_get(&rate));
	sink_text(paper->sink, "\n");
	sheet.above = write_headline_of;
	growth_rows(page, verdict, verdict + 1, &sheet);
	paper_more(paper, sheet.left_out);
	sink_text(paper->sink, "\n");
	str_fini(&rate);
}

// Why there is nothing, and what was not judged: an empty answer must not look like a clean one.
static void write_summary(const struct growth_page *page, struct paper *paper)
{
	const struct growth *growth = page->growth;
	uint64_t listed = 0;

	for (int v = 0; v < TREND_VERDICTS; v++)
		listed += growth->lists[v].total;
	if (growth->processes == 0)
		paper_text(paper, PAPER_PLAIN,
			   "  nothing lived long enough to be judged: record it for longer while "
			   "it works\n\n");
	else if (listed == 0)
		paper_format(paper, PAPER_PLAIN,
			     "  no site kept %s more than at the beginning; %s live at the end\n\n",
			     STR_BYTES(growth->grown_min), STR_BYTES(growth->live.bytes));
	if (growth->processes == 1)
		paper_format(paper, PAPER_DIM,
			     "  judged from %s to %s; \"live\" is at that end\n\n",
			     STR_DURATION(growth->from_ns), STR_DURATION(growth->to_ns));
	else if (growth->processes)
		paper_text(paper, PAPER_DIM,
			   "  judged without the first tenth and the last twentieth of each "
			   "process; \"live\" is at the end of that\n\n");
	if (growth->brief && growth->processes)
		paper_format(paper, PAPER_DIM, "  %zu process%s ran too briefly to be judged\n\n",
			     growth->brief, growth->brief == 1 ? "" : "es");
	if (growth->skipped)
		paper_format(paper, PAPER_WARNING,
			     "  the %zu processes that hold most were judged, %zu others were not "
			     "(--process chooses)\n\n",
			     growth->processes, growth->skipped);
	if (growth->places_skipped)
		paper_format(paper, PAPER_WARNING, "  %zu sites that grew less were not judged\n\n",
			     growth->places_skipped);
}

void growth_text(const struct growth_page *page, struct sink *sink)
{
	struct paper paper = { .sink = sink, .colour = page->colour, .width = page->width };
	struct stack_text stacks = query_write_stacks(page->asked, &paper, FIGURES_COLUMNS,
						      CALLERS_SHOWN, page->all_frames);

	query_write_headline(page->asked, &paper);
	write_summary(page, &paper);
	for (enum trend_verdict v = TREND_GROWS; v < TREND_VERDICTS; v++)
		write_section(page, v, &stacks);
	query_write_last(page->asked, &stacks);
}
