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
	amount_merge(&row->amounts[SITES_LIVE_AT_EXIT], &site->live_at_exit);
	amount_merge(&row->amounts[SITES_PEAK], &site->at_peak);
	amount_merge(&row->amounts[SITES_BYTES], &site->allocated);
	amount_merge(&row->amounts[SITES_CALLS], &site->allocated);
	amount_merge(&row->amounts[SITES_TEMPORARY], &site->temporary);
	if (site->largest_bytes > row->largest_bytes)
		row->largest_bytes = site->largest_bytes;
	if (site->first_ns < row->first_ns || row->sites_count == 0)
		row->first_ns = site->first_ns;
	if (site->last_ns > row->last_ns)
		row->last_ns = site->last_ns;
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

SORT_ORDER(by_process, struct heap_site *const, SORT_BY((*one)->process, (*other)->process),
	   SORT_BY(*one, *other))

// The sites in order of their processes, so that a row's processes come one after the other. The
// caller frees the list; the sites are the heap's.
static const struct heap_site **sort_sites(const struct heap *heap, size_t *count)
{
	const struct heap_site *all = heap_sites(heap, count);
	const struct heap_site **sorted = mem_alloc(*count, sizeof *sorted);

	bool rises = true; // of one process, mostly

	for (size_t i = 0; i < *count; i++) {
		sorted[i] = &all[i];
		rises &= i == 0 || all[i - 1].process <= all[i].process;
	}
	if (!rises)
		qsort(sorted, *count, sizeof *sorted, by_process);
	return sorted;
}

// Which row a site is merged into.
struct merging {
	const struct heap_site *all;
	const struct heap_site **sorted;
	size_t count;
	uint32_t *row_of; // by place in `sorted`
	struct appearance {
		uint32_t who, stack; // labels
	} * looks;                   // by row
	uint32_t *first;             // by row: place of its first site
	size_t rows_count, looks_capacity, first_capacity;
};

static bool is_look(const void *context, uint32_t position, const void *key)
{
	const struct merging *merging = context;

	return memcmp(&merging->looks[position], key, sizeof *merging->looks) == 0;
}

// Gives each site the number of its row: equal labels of the process and the stack are one row. The
// number is found in one pass; labels are dropped afterwards, as rows keep their first site.
static void number_rows(struct merging *merging, enum sites_merge merge,
			const struct reader *reader, struct names *names, struct progress *progress)
{
	struct labels *labels =
		labels_new(merge == SITES_EXACT ? LABELS_EXACT : LABELS_AS_SHOWN, reader, names);
	struct index_set known = { 0 };

	for (size_t i = 0; i < merging->count; i++) {
		const struct heap_site *site = merging->sorted[i];
		const struct trace_process *process = reader_process(reader, site->process);
		struct appearance look = { site->process, labels_stack(labels, site->stack) };
		uint32_t count = (uint32_t)merging->rows_count;

		if (merge == SITES_AS_SHOWN && process)
			look.who = labels_text(labels, process->exe);
		merging->row_of[i] = index_set_put_by(
			&known, look.stack, index_set_hash((uint64_t[]){ look.who, look.stack }, 2),
			is_look, merging, &look, count);
		ASSERT(merging->row_of[i] <= count);
		if (merging->row_of[i] == count) {
			MEM_ROOM(merging->looks, merging->looks_capacity, count + (size_t)1);
			MEM_ROOM(merging->first, merging->first_capacity, count + (size_t)1);
			merging->looks[count] = look;
			merging->first[count] = (uint32_t)i;
			merging->rows_count++;
		}
		if (i % 1024 == 0)
			progress_update(progress, i);
	}
	index_set_fini(&known);
	labels_free(labels);
}

static struct heap_amount amount_of(const struct heap_site *site, enum sites_question question)
{
	ASSERT(question < SITES_QUESTIONS_COUNT);
	switch (question) {
	case SITES_LIVE_AT_EXIT:
		return site->live_at_exit;
	case SITES_PEAK:
		return site->at_peak;
	case SITES_TEMPORARY:
		return site->temporary;
	default:
		return site->allocated;
	}
}

// What weighs how much for one question.
struct ranking {
	const struct merging *merging;
	enum sites_question question;
	struct heap_amount *amounts; // by row
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
	const struct heap_site *l, *r;

	if (order != 0)
		return order;
	l = merging->sorted[merging->first[left]];
	r = merging->sorted[merging->first[right]];
	return trace_compare_places(l->process, l->stack, r->process, r->stack);
}

// Adds up one question, and marks the rows that answer it. Sums are over all sites, kept or not;
// the rows_max heaviest rows are found by a partial sort, as of a million rows some dozen are
// wanted.
static void choose_rows(struct sites *sites, const struct merging *merging,
			enum sites_question question, bool *chosen)
{
	const struct sites_options *options = &sites->options;
	struct sites_sums *sums = &sites->sums[question];
	struct ranking ranking = {
		.merging = merging,
		.question = question,
		.amounts = mem_alloc(merging->rows_count, sizeof *ranking.amounts),
	};
	uint32_t *ranks = mem_alloc(merging->rows_count, sizeof *ranks);
	size_t count = 0;

	ASSERT(question < SITES_QUESTIONS_COUNT);
	for (size_t i = 0; i < merging->count; i++) {
		struct heap_amount amount = amount_of(merging->sorted[i], question);

		ASSERT(merging->row_of[i] < merging->rows_count);
		amount_merge(&ranking.amounts[merging->row_of[i]], &amount);
	}
	for (uint32_t row = 0; row < merging->rows_count; row++) {
		const struct heap_amount *amount = &ranking.amounts[row];

		amount_merge(&sums->amount, amount);
		sums->rows += amount->count > 0;
		if (amount->count > 0 && amount->bytes >= options->bytes_min)
			ranks[count++] = row;
	}
	ASSERT(count <= merging->rows_count);
	if (options->rows_max && options->rows_max < count) {
		mem_sort_first(ranks, count, (size_t)options->rows_max, sizeof *ranks,
			       compare_ranks, &ranking);
		count = (size_t)options->rows_max;
	}
	for (size_t i = 0; i < count; i++)
		chosen[ranks[i]] = true;
	MEM_FREE(ranks, ranking.amounts);
}

// Makes the rows that were chosen, in a second round over the sites. The variance of what is not
// shown is needed for the totals, so it is added up for all.
static void make_rows(struct sites *sites, const struct merging *merging, const bool *chosen,
		      const struct heap_variance *variances)
{
	uint32_t *places = mem_alloc(merging->rows_count, sizeof *places);
	struct sites_row all = { 0 };

	for (size_t row = 0; row < merging->rows_count; row++)
		if (chosen[row])
			places[row] = (uint32_t)sites->count++;
	sites->rows = mem_alloc(sites->count, sizeof *sites->rows);
	for (size_t i = 0; i < merging->count; i++) {
		const struct heap_site *site = merging->sorted[i];
		// Only looked at where it was chosen; else its place is 0.
		struct sites_row *row = &sites->rows[places[merging->row_of[i]]];

		ASSERT(merging->row_of[i] < merging->rows_count);
		if (variances)
			variances_merge(&all, &variances[site - merging->all]);
		if (!chosen[merging->row_of[i]])
			continue;
		if (row->sites_count == 0) {
			row->process = site->process;
			row->stack = site->stack;
		}
		row_merge(row, site);
		lost_merge(row, sites->options.reached, site);
		if (variances)
			variances_merge(row, &variances[site - merging->all]);
	}
	for (int question = 0; question < SITES_QUESTIONS_COUNT; question++)
		sites->sums[question].variance = all.variances[question];
	mem_free(places);
}

// Three passes over the sites: equal ones get one number of a row, each question chooses its rows
// by sums, then only the chosen rows are made.
void sites_init(struct sites *sites, const struct sites_options *options, const struct heap *heap,
		const struct reader *reader, struct names *names, struct progress *progress)
{
	struct merging merging = { 0 };
	bool *chosen;

	*sites = (struct sites){ .options = *options };
	merging.all = heap_sites(heap, &merging.count);
	merging.sorted = sort_sites(heap, &merging.count);
	merging.row_of = mem_alloc(merging.count, sizeof *merging.row_of);
	number_rows(&merging, options->merge, reader, names, progress);
	chosen = mem_alloc(merging.rows_count, sizeof *chosen);
	for (int question = 0; question < SITES_QUESTIONS_COUNT; question++)
		choose_rows(sites, &merging, (enum sites_question)question, chosen);
	make_rows(sites, &merging, chosen, heap_variances(heap));
	MEM_FREE(chosen, merging.sorted, merging.row_of, merging.looks, merging.first);
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
	const struct sites_sums *sums = &sites->sums[question];
	struct sites_list list = {
		.rows = mem_alloc(sites->count, sizeof *list.rows),
		.total = sums->amount,
		.rest = sums->amount,
		.total_variance = sums->variance,
		.rest_variance = sums->variance,
	};
	size_t all = 0;

	for (size_t i = 0; i < sites->count; i++) {
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
