#include "report/sites.h"

#include "base/map.h"
#include "base/mem.h"
#include "report/labels.h"

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
	return questions[question].key;
}

bool sites_by_count(enum sites_question question)
{
	return questions[question].by_count;
}

// ---- rows ----

static void amount_merge(struct heap_amount *sum, const struct heap_amount *amount)
{
	sum->count += amount->count;
	sum->bytes += amount->bytes;
}

static void variances_merge(struct sites_row *row, const struct heap_variance *variance)
{
	row->variances[SITES_LIVE_AT_EXIT] += variance->live_at_exit;
	row->variances[SITES_PEAK] += variance->at_peak;
	row->variances[SITES_BYTES] += variance->allocated;
	row->variances[SITES_CALLS] += variance->allocated_count;
}

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

static int by_process(const void *a, const void *b)
{
	const struct heap_site *left = *(const struct heap_site *const *)a;
	const struct heap_site *right = *(const struct heap_site *const *)b;

	if (left->process != right->process)
		return left->process < right->process ? -1 : 1;
	return left < right ? -1 : left > right;
}

// The sites in order of their processes, so that a row's processes come one after the other.
static const struct heap_site **sort_sites(const struct heap *heap, size_t *count)
{
	const struct heap_site *all = heap_sites(heap, count);
	const struct heap_site **sorted = mem_alloc(*count, sizeof *sorted);

	for (size_t i = 0; i < *count; i++)
		sorted[i] = &all[i];
	qsort(sorted, *count, sizeof *sorted, by_process);
	return sorted;
}

static void merge_rows(struct sites *sites, enum sites_merge merge, struct labels *labels,
		       const struct heap *heap, const struct reader *reader,
		       struct progress *progress)
{
	size_t count;
	const struct heap_site *all = heap_sites(heap, &count);
	const struct heap_site **sorted = sort_sites(heap, &count);
	const struct heap_variance *variances = heap_variances(heap);
	struct map known = { 0 }; // process or executable << 32 | label of the stack -> row

	sites->rows = mem_alloc(count, sizeof *sites->rows);
	for (size_t i = 0; i < count; i++) {
		const struct heap_site *site = sorted[i];
		const struct trace_process *process = reader_process(reader, site->process);
		uint64_t who = site->process;
		struct sites_row *row;
		uint64_t *index;
		bool added;

		if (merge == SITES_AS_SHOWN && process)
			who = labels_text(labels, process->exe);
		index = map_put(&known, who << 32 | labels_stack(labels, site->stack), &added);
		if (added)
			*index = sites->count++;
		row = &sites->rows[*index];
		if (added) {
			row->process = site->process;
			row->stack = site->stack;
		}
		row_merge(row, site);
		if (i % 1024 == 0)
			progress_update(progress, i);
		if (variances)
			variances_merge(row, &variances[site - all]);
	}
	map_fini(&known);
	mem_free(sorted);
}

void sites_init(struct sites *sites, enum sites_merge merge, const struct heap *heap,
		const struct reader *reader, struct names *names, struct progress *progress)
{
	struct labels *labels =
		labels_new(merge == SITES_EXACT ? LABELS_EXACT : LABELS_AS_SHOWN, reader, names);

	*sites = (struct sites){ 0 };
	merge_rows(sites, merge, labels, heap, reader, progress);
	labels_free(labels);
}

void sites_fini(struct sites *sites)
{
	mem_free(sites->rows);
	*sites = (struct sites){ 0 };
}

// ---- lists ----

// Heaviest first; what weighs the same, in the order of processes and stacks.
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct sites_row *left = *(const struct sites_row *const *)a;
	const struct sites_row *right = *(const struct sites_row *const *)b;
	enum sites_question question = *(const enum sites_question *)context;
	struct heap_amount l = left->amounts[question];
	struct heap_amount r = right->amounts[question];

	if (questions[question].by_count) {
		if (l.count != r.count)
			return l.count > r.count ? -1 : 1;
	}
	if (l.bytes != r.bytes)
		return l.bytes > r.bytes ? -1 : 1;
	if (l.count != r.count)
		return l.count > r.count ? -1 : 1;
	if (left->process != right->process)
		return left->process < right->process ? -1 : 1;
	return left->stack < right->stack ? -1 : left->stack > right->stack;
}

struct sites_list sites_list(const struct sites *sites, enum sites_question question,
			     uint64_t rows_max, uint64_t bytes_min)
{
	struct sites_list list = { .rows = mem_alloc(sites->count, sizeof *list.rows) };
	size_t all = 0;

	for (size_t i = 0; i < sites->count; i++) {
		const struct heap_amount *amount = &sites->rows[i].amounts[question];

		if (amount->count == 0)
			continue;
		amount_merge(&list.total, amount);
		list.total_variance += sites->rows[i].variances[question];
		list.rest_count++;
		if (amount->bytes >= bytes_min)
			list.rows[all++] = &sites->rows[i];
	}
	mem_sort(list.rows, all, sizeof *list.rows, compare_rows, &question);
	list.count = rows_max && rows_max < all ? (size_t)rows_max : all;
	list.rest_count -= list.count;
	list.rest = list.total;
	list.rest_variance = list.total_variance;
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

uint64_t sites_error(double variance)
{
	return variance > 0 ? (uint64_t)(sqrt(variance) + 0.5) : 0;
}
