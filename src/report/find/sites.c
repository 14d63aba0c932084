// Rows of a report. A site of the engine is one stack of one process; a row may be several of
// them. For example make runs cc1 two hundred times: 200 processes with a stack main, parse,
// xmalloc each, of different numbers, since each process has its own addresses. SITES_AS_SHOWN
// makes them one row: they look alike, by the file of the process and the names of the stack.
// SITES_EXACT keeps them apart, for programs that read the figures.
//
// All rows of all questions are one list, since most that allocate most are also among those that
// live at the end: what a question shows of it is sites_list. Which rows are kept is found first
// by sums alone (choose_rows), so that what a row needs besides is made for a few dozen of
// perhaps a million.
#include "report/find/sites.h"

#include "base/index_set.h"
#include "base/mem.h"
#include "base/sort.h"
#include "report/ask/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *key;
	bool by_count;
} questions[SITES_QUESTIONS_COUNT] = {
	[SITES_LIVE_AT_EXIT] = { "live_at_exit", false },
	[SITES_PEAK] = { "peak", false },
	[SITES_BYTES] = { "bytes", false },
	[SITES_CALLS] = { "calls", true },
	[SITES_TEMPORARY] = { "temporary", true },
};

const char *sites_key(enum sites_question question)
{
	ASSERT(question < SITES_QUESTIONS_COUNT);
	return questions[question].key;
}

bool sites_by_count(enum sites_question question)
{
	ASSERT(question < SITES_QUESTIONS_COUNT);
	return questions[question].by_count;
}

// ---- rows ----

static void amount_merge(struct heap_amount *sum, const struct heap_amount *amount)
{
	sum->count += amount->count;
	sum->bytes += amount->bytes;
}

// Of independent samples variances add up, their roots do not.
static void variances_merge(struct sites_row *row, const struct heap_variance *variance)
{
	row->variances[SITES_LIVE_AT_EXIT] += variance->live_at_exit;
	row->variances[SITES_PEAK] += variance->at_peak;
	row->variances[SITES_BYTES] += variance->allocated;
	row->variances[SITES_CALLS] += variance->allocated_count;
}

// Sites come in the order of their processes, so a row that sees another process than the last one
// sees a new one.
static void row_merge(struct sites_row *row, const struct heap_site *site)
{
	const struct heap_amount *const amounts[SITES_QUESTIONS_COUNT] = {
		[SITES_LIVE_AT_EXIT] = &site->live_at_exit, [SITES_PEAK] = &site->at_peak,
		[SITES_BYTES] = &site->allocated,           [SITES_CALLS] = &site->allocated,
		[SITES_TEMPORARY] = &site->temporary,
	};

	for (int question = 0; question < SITES_QUESTIONS_COUNT; question++)
		amount_merge(&row->amounts[question], amounts[question]);
	if (site->largest_bytes > row->largest_bytes)
		row->largest_bytes = site->largest_bytes;
	if (site->first_ns < row->first_ns || row->sites_count == 0)
		row->first_ns = site->first_ns;
	if (site->last_ns > row->last_ns)
		row->last_ns = site->last_ns;
	// A process has a row for each question that its sites have any amount of: three ranks that
	// freed all of their blocks have none that is live at exit.
	for (int question = 0; question < SITES_QUESTIONS_COUNT; question++) {
		uint32_t *count = &row->having_count[question];

		if (amounts[question]->count == 0 ||
		    (*count > 0 && row->having[question] == site->process))
			continue;
		++*count;
		row->having[question] = site->process;
	}
	if (row->sites_count == 0 || site->process != row->process_latest)
		row->processes_count++;
	row->process_latest = site->process;
	row->sites_count++;
}

// What of a site's blocks nothing pointed to when the process ended.
static void lost_merge(struct sites_row *row, const struct reached *reached,
		       const struct heap_site *site)
{
	const struct reached_site *found =
		reached ? reached_site(reached, site->process, site->stack) : NULL;
	struct heap_amount lost;

	if (!found)
		return;
	lost = reached_lost(found->states);
	amount_merge(&row->lost, &lost);
}

// Which row a site is merged into. A place is all that is kept of each site; its figures are walked
// through when they are asked for.
struct merging {
	struct whole *whole;
	struct site_place {
		process_id process;
		stack_id stack;
	} * places;       // by site
	uint32_t *sorted; // sites in order of their processes; NULL: they are in it
	size_t count;
	uint32_t *row_of; // by site
	struct appearance {
		uint32_t who, stack; // labels
	} * looks;                   // by row
	uint32_t *first;             // by row: its first site in order of processes
	size_t rows_count, looks_capacity, first_capacity;
};

static int by_process(const void *a, const void *b, void *context)
{
	const struct merging *merging = context;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	process_id l = merging->places[one].process, r = merging->places[other].process;

	return l != r ? (l > r ? 1 : -1) : (one > other) - (one < other);
}

// Where all sites are, and which comes after which: a row's processes come one after the other.
static void sort_sites(struct merging *merging)
{
	struct whole_walk walk = whole_walk(merging->whole, 1 << WHOLE_PLACE);
	bool rises = true; // of one process, mostly

	merging->count = whole_sites_count(merging->whole);
	merging->places = mem_alloc(merging->count, sizeof *merging->places);
	for (process_id latest = 0; whole_walk_next(&walk); latest = walk.site->process) {
		merging->places[walk.number].process = walk.site->process;
		merging->places[walk.number].stack = walk.site->stack;
		rises &= latest <= walk.site->process;
	}
	if (rises)
		return;
	merging->sorted = mem_alloc(merging->count, sizeof *merging->sorted);
	for (uint32_t i = 0; i < merging->count; i++)
		merging->sorted[i] = i;
	mem_sort(merging->sorted, merging->count, sizeof *merging->sorted, by_process, merging);
}

static bool is_look(const void *context, uint32_t position, const void *key)
{
	const struct merging *merging = context;

	return memcmp(&merging->looks[position], key, sizeof *merging->looks) == 0;
}

// Stacks get their labels in order of their numbers, which their tables have too: in the order of
// sites, which is that of first allocations, each would be looked for all over memory.
static void label_stacks(const struct merging *merging, struct labels *labels,
			 const struct reader *reader)
{
	uint32_t count = reader_stacks_count(reader);
	bool *met = mem_alloc(count, sizeof *met);

	for (size_t i = 0; i < merging->count; i++)
		if (merging->places[i].stack < count)
			met[merging->places[i].stack] = true;
	for (stack_id stack = 1; stack < count; stack++)
		if (met[stack])
			labels_stack(labels, stack);
	mem_free(met);
}

// Gives each site the number of its row: equal labels of the process and the stack are one row. The
// number is found in one pass; labels are dropped afterwards, as rows keep their first site.
static void number_rows(struct merging *merging, enum sites_merge merge,
			const struct reader *reader, struct names *names, struct progress *progress)
{
	struct labels *labels =
		labels_new(merge == SITES_EXACT ? LABELS_EXACT : LABELS_AS_SHOWN, reader, names);
	struct index_set known = { 0 };
	process_id latest = TRACE_NONE;
	uint32_t program = 0; // of the latest process

	label_stacks(merging, labels, reader);
	for (size_t i = 0; i < merging->count; i++) {
		uint32_t number = merging->sorted ? merging->sorted[i] : (uint32_t)i;
		const struct site_place *site = &merging->places[number];
		const struct trace_process *process = reader_process(reader, site->process);
		struct appearance look = { site->process, labels_stack(labels, site->stack) };
		uint32_t count = (uint32_t)merging->rows_count;

		if (merge == SITES_AS_SHOWN && process) {
			if (site->process != latest)
				program = labels_text(labels, process->exe);
			latest = site->process;
			look.who = program;
		}
		merging->row_of[number] = index_set_put_by(
			&known, look.stack, index_set_hash((uint64_t[]){ look.who, look.stack }, 2),
			is_look, merging, &look, count);
		ASSERT(merging->row_of[number] <= count);
		if (merging->row_of[number] == count) {
			MEM_ROOM(merging->looks, merging->looks_capacity, count + (size_t)1);
			MEM_ROOM(merging->first, merging->first_capacity, count + (size_t)1);
			merging->looks[count] = look;
			merging->first[count] = number;
			merging->rows_count++;
		}
		if (i % 1024 == 0)
			progress_update(progress, i);
	}
	index_set_fini(&known);
	labels_free(labels);
}

static const enum whole_part parts[SITES_QUESTIONS_COUNT] = {
	[SITES_LIVE_AT_EXIT] = WHOLE_LIVE_AT_EXIT, [SITES_PEAK] = WHOLE_AT_PEAK,
	[SITES_BYTES] = WHOLE_ALLOCATED,           [SITES_CALLS] = WHOLE_ALLOCATED,
	[SITES_TEMPORARY] = WHOLE_TEMPORARY,
};

static struct heap_amount amount_of(const struct heap_site *site, enum whole_part part)
{
	switch (part) {
	case WHOLE_LIVE_AT_EXIT:
		return site->live_at_exit;
	case WHOLE_AT_PEAK:
		return site->at_peak;
	case WHOLE_TEMPORARY:
		return site->temporary;
	default:
		ASSERT(part == WHOLE_ALLOCATED);
		return site->allocated;
	}
}

// What weighs how much for one question.
struct ranking {
	const struct merging *merging;
	enum sites_question question;
	enum whole_part part;        // which `amounts` are
	struct heap_amount *amounts; // by row
	uint32_t *ranks;             // rows that answer the question
};

// Heaviest first; what weighs the same, in the order of processes and stacks.
static int compare_amounts(enum sites_question question, struct heap_amount l, struct heap_amount r)
{
	ASSERT(question < SITES_QUESTIONS_COUNT);
	if (questions[question].by_count) {
		if (l.count != r.count)
			return l.count > r.count ? -1 : 1;
	}
	if (l.bytes != r.bytes)
		return l.bytes > r.bytes ? -1 : 1;
	return l.count > r.count ? -1 : l.count < r.count;
}

// Equal amounts are common (one block of 64 bytes each): without a second criterion their order
// would change from run to run.
static int compare_ranks(const void *a, const void *b, void *context)
{
	const struct ranking *ranking = context;
	const struct merging *merging = ranking->merging;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order =
		compare_amounts(ranking->question, ranking->amounts[left], ranking->amounts[right]);
	const struct site_place *l, *r;

	if (order != 0)
		return order;
	l = &merging->places[merging->first[left]];
	r = &merging->places[merging->first[right]];
	return trace_compare_places(l->process, l->stack, r->process, r->stack);
}

// Two questions are about what was allocated.
static void add_amounts(struct ranking *ranking, enum whole_part part)
{
	const struct merging *merging = ranking->merging;
	struct whole_walk walk = whole_walk(merging->whole, 1u << part);

	if (part == ranking->part)
		return;
	ranking->part = part;
	memset(ranking->amounts, 0, merging->rows_count * sizeof *ranking->amounts);
	while (whole_walk_next(&walk)) {
		struct heap_amount amount = amount_of(walk.site, part);

		ASSERT(merging->row_of[walk.number] < merging->rows_count);
		amount_merge(&ranking->amounts[merging->row_of[walk.number]], &amount);
	}
}

// Adds up one question, and marks the rows that answer it. Sums are over all sites, kept or not;
// the rows_max heaviest rows are found by a partial sort, as of a million rows some dozen are
// wanted.
static void choose_rows(struct sites *sites, struct ranking *ranking, enum sites_question question,
			bool *chosen)
{
	const struct sites_options *options = &sites->options;
	const struct merging *merging = ranking->merging;
	struct sites_sums *sums = &sites->sums[question];
	size_t count = 0;

	ASSERT(question < SITES_QUESTIONS_COUNT);
	ranking->question = question;
	add_amounts(ranking, parts[question]);
	for (uint32_t row = 0; row < merging->rows_count; row++) {
		const struct heap_amount *amount = &ranking->amounts[row];

		amount_merge(&sums->amount, amount);
		sums->rows += amount->count > 0;
		if (amount->count > 0 && amount->bytes >= options->bytes_min)
			ranking->ranks[count++] = row;
	}
	ASSERT(count <= merging->rows_count);
	if (options->rows_max && options->rows_max < count) {
		mem_sort_first(ranking->ranks, count, (size_t)options->rows_max,
			       sizeof *ranking->ranks, compare_ranks, ranking);
		count = (size_t)options->rows_max;
	}
	for (size_t i = 0; i < count; i++)
		chosen[ranking->ranks[i]] = true;
}

static void choose_all(struct sites *sites, const struct merging *merging, bool *chosen)
{
	struct ranking ranking = {
		.merging = merging,
		.part = WHOLE_PARTS,
		.amounts = mem_alloc(merging->rows_count, sizeof *ranking.amounts),
		.ranks = mem_alloc(merging->rows_count, sizeof *ranking.ranks),
	};

	for (int question = 0; question < SITES_QUESTIONS_COUNT; question++)
		choose_rows(sites, &ranking, (enum sites_question)question, chosen);
	MEM_FREE(ranking.amounts, ranking.ranks);
}

// A site of a row that was chosen.
struct chosen_site {
	uint32_t number;
	struct heap_site site;
};

SORT_ORDER(by_process_of_site, struct chosen_site, SORT_BY(one->site.process, other->site.process),
	   SORT_BY(one->number, other->number))

static void add_site(struct sites *sites, const struct merging *merging, struct sites_row *row,
		     const struct heap_site *site, size_t number)
{
	const struct heap_variance *variances = heap_variances(merging->whole->heap);

	if (row->sites_count == 0) {
		row->process = site->process;
		row->stack = site->stack;
	}
	row_merge(row, site);
	lost_merge(row, sites->options.reached, site);
	if (variances)
		variances_merge(row, &variances[number]);
}

// The variance of what is not shown is needed for the totals, so it is added up for all.
static void add_variances(struct sites *sites, const struct merging *merging)
{
	const struct heap_variance *variances = heap_variances(merging->whole->heap);
	struct sites_row all = { 0 };

	for (size_t i = 0; variances && i < merging->count; i++)
		variances_merge(&all, &variances[merging->sorted ? merging->sorted[i] : i]);
	for (int question = 0; question < SITES_QUESTIONS_COUNT; question++)
		sites->sums[question].variance = all.variances[question];
}

// Makes the rows that were chosen, in another round over the sites; where these do not come in
// order of their processes, from a list of those that count.
static void make_rows(struct sites *sites, const struct merging *merging, const bool *chosen)
{
	struct whole_walk walk = whole_walk(merging->whole, WHOLE_ALL);
	uint32_t *places = mem_alloc(merging->rows_count, sizeof *places);
	struct chosen_site *list = NULL;
	size_t count = 0, capacity = 0;

	for (size_t row = 0; row < merging->rows_count; row++)
		if (chosen[row])
			places[row] = (uint32_t)sites->count++;
	sites->rows = mem_alloc(sites->count, sizeof *sites->rows);
	while (whole_walk_next(&walk)) {
		uint32_t row = merging->row_of[walk.number];

		ASSERT(row < merging->rows_count);
		if (chosen[row] && merging->sorted)
			*MEM_ADD(list, count, capacity) =
				(struct chosen_site){ (uint32_t)walk.number, *walk.site };
		else if (chosen[row])
			add_site(sites, merging, &sites->rows[places[row]], walk.site, walk.number);
	}
	if (count)
		qsort(list, count, sizeof *list, by_process_of_site);
	for (size_t i = 0; i < count; i++)
		add_site(sites, merging, &sites->rows[places[merging->row_of[list[i].number]]],
			 &list[i].site, list[i].number);
	MEM_FREE(places, list);
}

// Passes over the sites: equal ones get one number of a row, each question chooses its rows by
// sums, then only the chosen rows are made.
void sites_init(struct sites *sites, const struct sites_options *options, struct whole *whole,
		const struct reader *reader, struct names *names, struct progress *progress)
{
	struct merging merging = { .whole = whole };
	bool *chosen;

	*sites = (struct sites){ .options = *options };
	sort_sites(&merging);
	merging.row_of = mem_alloc(merging.count, sizeof *merging.row_of);
	number_rows(&merging, options->merge, reader, names, progress);
	mem_free(merging.looks);
	chosen = mem_alloc(merging.rows_count, sizeof *chosen);
	choose_all(sites, &merging, chosen);
	add_variances(sites, &merging);
	make_rows(sites, &merging, chosen);
	MEM_FREE(chosen, merging.places, merging.sorted, merging.row_of, merging.first);
}

void sites_fini(struct sites *sites)
{
	mem_free(sites->rows);
	*sites = (struct sites){ 0 };
}

// ---- lists ----

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct sites_row *left = *(const struct sites_row *const *)a;
	const struct sites_row *right = *(const struct sites_row *const *)b;
	enum sites_question question = *(const enum sites_question *)context;
	int order = compare_amounts(question, left->amounts[question], right->amounts[question]);

	if (order != 0)
		return order;
	return trace_compare_places(left->process, left->stack, right->process, right->stack);
}

// A row that was kept for another question is in this list only if it has something of this one.
// The rest is what the listed rows leave of the totals, so that both add up, also where rows are
// smaller than bytes_min.
struct sites_list sites_list(const struct sites *sites, enum sites_question question)
{
	const struct sites_options *options = &sites->options;
	// What the trace does not tell of has no rows, and no total.
	bool known = !(options->unknown >> question & 1);
	const struct sites_sums *sums = known ? &sites->sums[question] : &(struct sites_sums){ 0 };
	struct sites_list list = {
		.rows = mem_alloc(sites->count, sizeof *list.rows),
		.total = sums->amount,
		.rest = sums->amount,
		.total_variance = sums->variance,
		.rest_variance = sums->variance,
	};
	size_t all = 0;

	for (size_t i = 0; known && i < sites->count; i++) {
		const struct heap_amount *amount = &sites->rows[i].amounts[question];

		if (amount->count > 0 && amount->bytes >= options->bytes_min)
			list.rows[all++] = &sites->rows[i];
	}
	mem_sort(list.rows, all, sizeof *list.rows, compare_rows, &question);
	list.count = options->rows_max && options->rows_max < all ? (size_t)options->rows_max : all;
	ASSERT(list.count <= sums->rows); // the rows that are shown are of those that were added up
	list.rest_count = (size_t)sums->rows - list.count;
	for (size_t i = 0; i < list.count; i++) {
		list.rest.count -= list.rows[i]->amounts[question].count;
		list.rest.bytes -= list.rows[i]->amounts[question].bytes;
		list.rest_variance -= list.rows[i]->variances[question];
	}
	return list;
}

void sites_list_fini(struct sites_list *list)
{
	mem_free(list->rows);
	*list = (struct sites_list){ 0 };
}

// Variances add up, errors do not: two rows of ± 30 and ± 40 have ± 50 together.
uint64_t sites_error(double variance)
{
	return variance > 0 ? (uint64_t)(sqrt(variance) + 0.5) : 0;
}
