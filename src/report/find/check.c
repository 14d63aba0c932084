// What the figures of `tidemark check` are made of, and when they cannot be judged. For example,
// with --max-live-at-exit 0 --suppressions FILE, and sites that left 4,096 and 64 bytes of which
// the first is suppressed: the figure is 64, `suppressed` is 4,096 in one block, and the check
// fails with the second site as its only row. A trace that lost events is refused: 0 bytes left
// could mean that the allocations are what was lost.
#include "report/find/check.h"
#include "report/ask/own_heap.h"

#include "base/mem.h"
#include "base/sort.h"
#include "report/ask/cautions.h"
#include "report/find/reached.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct query_context_rules check_rules = {
	.about = QUERY_CONTEXT_EVENTS,
};

const struct query_context_rules check_window_rules = {
	.about = QUERY_CONTEXT_WINDOW,
	.one_layer = true,
	.refused = SELECTION_BIT(IMPACT),
	.refusal = "makes no sense where growth is limited",
	.exit_frees = true,
};

const char *const check_names[CHECK_FIGURES] = {
	"peak", "live-at-exit", "allocations", "temporary", "unreachable", "unexpected", "growth",
};

// ---- sites ----

// Valid until the next one is added. `capacity` is the caller's, since it is of no use once the row
// is settled.
static struct check_site *add_site(struct check_row *row, size_t *capacity)
{
	MEM_ROOM(row->sites, *capacity, row->sites_count + 1);
	row->sites[row->sites_count] = (struct check_site){ 0 };
	return &row->sites[row->sites_count++];
}

// What a site has of the figures that sums alone give (those before CHECK_UNREACHABLE).
static struct heap_amount amount_of(const struct heap_site *site, enum check_figure figure)
{
	ASSERT(figure < CHECK_FIGURES);
	switch (figure) {
	case CHECK_PEAK:
		return site->at_peak;
	case CHECK_LIVE_AT_EXIT:
		return site->live_at_exit;
	case CHECK_ALLOCATIONS:
		return site->allocated;
	default:
		return site->temporary;
	}
}

// Whether what the site leaves is meant to be left. It is counted, and so reported beside the
// figure that it is missing from. A suppression for any state of reachability is of use here, since
// live at exit has none.
static bool is_suppressed(struct check *check, const struct heap_site *site,
			  struct suppressions *suppressions)
{
	struct names_stack stack;

	if (!suppressions || !site->live_at_exit.count)
		return false;
	stack = names_stack(check->asked->names, site->stack);
	if (!suppressions_match(suppressions, &stack, SUPPRESSIONS_ALL, site->live_at_exit.count))
		return false;
	check->suppressed.count += site->live_at_exit.count;
	check->suppressed.bytes += site->live_at_exit.bytes;
	check->suppressed_sites++;
	return true;
}

SORT_ORDER(heaviest_first, struct check_site, SORT_FALLS(value),
	   trace_compare_places(one->process, one->stack, other->process, other->stack))

// The heaviest come first, and sites_total says how many there were before the list was cut.
static void settle(struct check_row *row, uint64_t sites_max)
{
	row->sites_total = row->sites_count;
	if (row->sites_count)
		qsort(row->sites, row->sites_count, sizeof *row->sites, heaviest_first);
	if (sites_max && row->sites_count > sites_max)
		row->sites_count = (size_t)sites_max;
}

// Each site is looked at once for all figures. Suppressions are asked first, and for each site with
// something left, since they also count how often they were of use.
static void fill(struct check *check, const struct heap *heap, const struct check_options *options)
{
	bool by_count[CHECK_FIGURES] = { [CHECK_ALLOCATIONS] = true, [CHECK_TEMPORARY] = true };
	size_t count, capacities[CHECK_FIGURES] = { 0 };
	const struct heap_site *sites = heap_sites(heap, &count);

	for (size_t i = 0; i < count; i++) {
		bool meant = is_suppressed(check, &sites[i], options->suppressions);

		for (int figure = 0; figure < CHECK_UNREACHABLE; figure++) {
			struct heap_amount amount = amount_of(&sites[i], figure);
			struct check_site *site;

			// A suppression says that a block may be left: peaks and calls count it all
			// the same.
			if (!amount.count || (meant && figure == CHECK_LIVE_AT_EXIT))
				continue;
			site = add_site(&check->rows[figure], &capacities[figure]);
			site->process = sites[i].process;
			site->stack = sites[i].stack;
			site->value = by_count[figure] ? amount.count : amount.bytes;
			site->count = amount.count;
		}
	}
}

// The first reason is the one that is given.
static void refuse(struct check *check, const char *text)
{
	if (!check->refusal)
		check->refusal = mem_copy_text(text);
}

// What a site lost and is not meant to: each state of its own, as suppressions may name one alone.
static struct heap_amount lost_of(const struct check *check, const struct reached_site *site,
				  struct suppressions *suppressions)
{
	struct names_stack stack = names_stack(check->asked->names, site->stack);
	struct heap_amount states[TRACE_REACH_STATES_COUNT];

	memcpy(states, site->states, sizeof states);
	for (unsigned state = 0; suppressions && state < TRACE_REACH_STATES_COUNT; state++)
		if (states[state].count && suppressions_match(suppressions, &stack, 1u << state, 0))
			states[state] = (struct heap_amount){ 0 };
	return reached_lost(states);
}

// Where it was not recorded the figure is not known: a limit on it is then refused, not kept.
static void fill_unreachable(struct check *check, const struct check_options *options)
{
	struct check_row *row = &check->rows[CHECK_UNREACHABLE];
	struct reached reached;
	size_t capacity = 0;

	reached_read(&reached, check->asked);
	row->known = reached.known;
	if (row->limit.given && !reached.known)
		refuse(check, reached.why);
	for (size_t i = 0; reached.known && i < reached.count; i++) {
		struct heap_amount lost = lost_of(check, &reached.sites[i], options->suppressions);
		struct check_site *site;

		if (!lost.count)
			continue;
		site = add_site(row, &capacity);
		*site = (struct check_site){ reached.sites[i].process, reached.sites[i].stack,
					     lost.bytes, lost.count };
		row->value += lost.bytes;
	}
	reached_fini(&reached);
}

// The slope is in bytes a second and the limit in bytes a minute, rounded to the nearest.
static void fill_growth(struct check_row *row, const struct query_context *asked,
			const struct growth *growth)
{
	const struct growth_list *list = &growth->lists[TREND_GROWS];
	size_t capacity = 0;

	row->known = growth->processes > 0;
	row->value = (uint64_t)(list->slope_per_s * 60 + 0.5);
	for (size_t i = 0; i < list->count; i++) {
		const struct query_context_place *place = &asked->places[list->rows[i].place];
		struct check_site *site = add_site(row, &capacity);

		site->process = place->process;
		site->stack = place->stack;
		site->value = (uint64_t)(list->rows[i].slope_per_s * 60 + 0.5);
		site->count = list->rows[i].live.count;
	}
}

// ---- whether it can be judged ----

// A trace that another tool's sums were made into knows some figures and not the others; those
// that it does not know are no 0.
// A source with snapshots alone has no calls between them; one that has totals too knows those,
// and then only what the other words take away is lost.
static void forget_sums(struct check *check)
{
	enum {
		PEAK = 1 << CHECK_PEAK,
		LIVE = 1 << CHECK_LIVE_AT_EXIT,
		CALLS = 1 << CHECK_ALLOCATIONS | 1 << CHECK_TEMPORARY,
		GROWTH = 1 << CHECK_GROWTH,
	};
	static const struct {
		const char *word;
		unsigned figures;
	} sums[] = {
		{ "snapshots", PEAK | CALLS | GROWTH },
		{ "totals", PEAK | 1 << CHECK_TEMPORARY | GROWTH },
		{ "no-counts", CALLS },
		{ "leaks", PEAK | CALLS | GROWTH },
		{ "estimated", PEAK | LIVE | CALLS | GROWTH },
		{ "parts-of-slots", PEAK | LIVE | CALLS | GROWTH },
		{ "no-clock", GROWTH },
		{ "numbered", GROWTH },
	};
	const struct trace_info *info = reader_info(check->asked->reader);
	bool totals = cautions_lacks(info, "totals");
	unsigned figures = 0;

	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		// The first row is that of snapshots.
		if (cautions_lacks(info, sums[i].word) && (i > 0 || !totals))
			figures |= sums[i].figures;
	if (check->asked->no_frees)
		figures |= PEAK | LIVE | 1 << CHECK_TEMPORARY | GROWTH;
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		struct check_row *row = &check->rows[figure];
		struct str text = { 0 };

		if (!(figures >> figure & 1))
			continue;
		row->known = false;
		row->sites_count = 0;
		str_format(&text,
			   "%s is not known of what was imported (tidemark info says what "
			   "is missing)",
			   check_names[figure]);
		if (row->limit.given)
			refuse(check, str_get(&text));
		str_fini(&text);
	}
}

// Whether filters by function, file or row name something that is in the trace. Only where nothing
// was selected is it looked for, as all stacks have to be.
static bool names_something(const struct check *check, const struct heap_totals *totals)
{
	const struct query *query = &check->asked->selection.query;
	uint32_t count = reader_stacks_count(check->asked->reader);

	if (!query->stack || totals->counts.allocated.count || totals->counts.failed)
		return true;
	for (stack_id stack = 1; stack < count; stack++)
		if (query->stack(query->context, stack))
			return true;
	return false;
}

// What makes any figure meaningless, in the order of how much it says. Lost events alone are named
// only where the trace is otherwise whole, as a cut trace says more.
static void judge_trace(struct check *check, const struct heap_totals *totals)
{
	const struct reader *reader = check->asked->reader;
	struct str text = { 0 };

	cautions_add_wholeness(reader, &text);
	if (text.length)
		refuse(check, str_get(&text));
	if (totals->events_lost && !text.length) {
		str_format(&text, "%s events were lost: the figures are too small",
			   STR_COUNT(totals->events_lost));
		refuse(check, str_get(&text));
	}
	if (reader_is_estimated(reader))
		refuse(check,
		       reader_info(reader)->budget
			       ? "the recording was sampled at times: its figures are estimates"
			       : "the recording is sampled: its figures are estimates");
	if (!names_something(check, totals))
		refuse(check, "no stack of the trace is as --frame, --not-frame, --module, --row "
			      "and --not-row say: they name nothing that is there");
	if (check->rows[CHECK_UNEXPECTED].limit.given && !check->rows[CHECK_UNEXPECTED].known)
		refuse(check, check->asked->selection.within
				      ? "no TIDEMARK_EXPECT_NO_ALLOC was reached between --from "
					"and --to"
				      : "no TIDEMARK_EXPECT_NO_ALLOC was reached");
	if (check->rows[CHECK_GROWTH].limit.given && !check->rows[CHECK_GROWTH].known)
		refuse(check,
		       "no process lived long enough for its growth to be judged (--from and "
		       "--to say when to look)");
	str_fini(&text);
}

// Heap 0 is malloc's; others are pools and language heaps, whose blocks are within it.
static bool check_asked(const struct query_context *asked, struct err *err)
{
	const struct query *query = &asked->selection.query;

	if (query->layers & QUERY_VM)
		return err_set(err, ERR_USAGE, "limits are about the heap, not virtual memory");
	for (heap_id id = 1; id < query->heaps_count; id++)
		if (query->heaps[id])
			return err_set(err, ERR_USAGE, "limits are about malloc's heap");
	return true;
}

// What is suppressed was counted by `fill`, so it comes after that.
static void set_values(struct check *check, const struct heap *heap)
{
	const struct heap_counts *counts = &heap_totals(heap)->counts;
	const uint64_t values[] = {
		[CHECK_PEAK] = counts->peak.bytes,
		[CHECK_LIVE_AT_EXIT] = counts->live_at_exit.bytes - check->suppressed.bytes,
		[CHECK_ALLOCATIONS] = counts->allocated.count,
		[CHECK_TEMPORARY] = counts->temporary.count,
	};

	for (int figure = 0; figure < CHECK_UNREACHABLE; figure++) {
		check->rows[figure].value = values[figure];
		check->rows[figure].known = true;
	}
}

// Only a context with a window has an index to ask; others have no limit of growth.
static bool read_growth(struct check *check, struct err *err)
{
	const struct growth_options options = { 0 };
	struct growth growth;

	if (check->asked->options.rules->about != QUERY_CONTEXT_WINDOW)
		return true;
	if (!growth_find(&growth, check->asked, &options, err))
		return false;
	fill_growth(&check->rows[CHECK_GROWTH], check->asked, &growth);
	growth_fini(&growth);
	return true;
}

// The trace is read once for the sums; growth asks the index. Sums are set after the sites, as what
// is suppressed is known then, and after both what an import does not know is taken back. Whether
// the trace can be judged comes last: it asks which figures are known.
bool check_find(struct check *check, struct query_context *asked,
		const struct check_options *options, struct err *err)
{
	const struct heap *heap;
	struct whole whole;

	*check = (struct check){ .asked = asked, .path = asked->options.path };
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		check->rows[figure] = (struct check_row){
			.figure = figure,
			.limit = options->limits[figure],
			.asked = asked,
			.sources = &options->sources,
		};
	if (!check_asked(asked, err) || !read_growth(check, err) ||
	    !query_context_select(asked, err)) {
		check_fini(check);
		return false;
	}
	query_context_whole(asked, &whole, false, NULL, NULL);
	heap = whole.heap;
	asked->events = heap_totals(heap)->events;
	query_context_caution(asked, true);
	if (own_heap_languages(asked) == OWN_HEAP_NOT_RECORDED)
		query_context_warn(asked,
				   "Python's objects of up to 512 bytes are in no figure, unless "
				   "PYTHONMALLOC=malloc was set%s",
				   reader_is_windows(asked->reader)
					   ? ""
					   : " (record --language-heaps has each)");
	query_context_counted(asked, &heap_totals(heap)->counts);
	fill(check, heap, options);
	fill_unreachable(check, options);
	check_read_expectations(asked, &check->rows[CHECK_UNEXPECTED]);
	set_values(check, heap);
	forget_sums(check);
	judge_trace(check, heap_totals(heap));
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		settle(&check->rows[figure], options->sites_max);
	whole_fini(&whole);
	return true;
}

size_t check_shown(const struct check *check, const struct query_context *shown[CHECK_FIGURES + 1])
{
	size_t count = 0;

	ASSERT(check->asked);
	shown[count++] = check->asked;
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct query_context *asked = check->rows[figure].asked;
		bool known = !asked;

		for (size_t i = 0; i < count && !known; i++)
			known = shown[i] == asked;
		if (!known)
			shown[count++] = asked;
	}
	return count;
}

void check_fini(struct check *check)
{
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		MEM_FREE(check->rows[figure].sites, check->rows[figure].runs.values);
	}
	mem_free(check->refusal);
	*check = (struct check){ 0 };
}
