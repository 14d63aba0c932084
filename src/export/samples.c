// The engine gives sums of cells (process, thread, stack, size); a sample is one of them with its
// four types, of which each value is a sum. For example AIFI 3 blocks of 48 bytes, AIFO 1 of 16,
// others none: allocated 64 bytes in 4 allocations, freed 48, live 16, impacting 16.
#include "export/samples.h"

#include "base/index_set.h"
#include "base/mem.h"
#include "base/sort.h"
#include "engine/replay/weight.h"

#include <stdlib.h>

const char *const samples_values[] = {
	"impacting", "size",  "count", "allocated", "allocations",
	"freed",     "frees", "live",  "blocks",    NULL,
};
_Static_assert(sizeof samples_values / sizeof *samples_values == SAMPLES_VALUES + 1,
	       "a word each, and the end");

const char *samples_unit(enum samples_value value)
{
	switch (value) {
	case SAMPLES_COUNT:
	case SAMPLES_ALLOCATIONS:
	case SAMPLES_FREES:
	case SAMPLES_BLOCKS:
		return "count";
	default:
		return "bytes";
	}
}

// What lives at the end of the window did not end in it: begun in it (AIFO) or before (AOFO).
int64_t samples_value(const struct sample *sample, enum samples_value value)
{
	const struct window_row *row = &sample->row;
	struct heap_amount live = window_sum(row->type[WINDOW_AIFO], row->type[WINDOW_AOFO]);

	switch (value) {
	case SAMPLES_IMPACTING:
		return window_impact(row);
	case SAMPLES_SIZE:
		return (int64_t)window_present(row).bytes;
	case SAMPLES_COUNT:
		return (int64_t)window_present(row).count;
	case SAMPLES_ALLOCATED:
		return (int64_t)window_allocated(row).bytes;
	case SAMPLES_ALLOCATIONS:
		return (int64_t)window_allocated(row).count;
	case SAMPLES_FREED:
		return (int64_t)window_freed(row).bytes;
	case SAMPLES_FREES:
		return (int64_t)window_freed(row).count;
	case SAMPLES_LIVE:
		return (int64_t)live.bytes;
	case SAMPLES_BLOCKS:
		return (int64_t)live.count;
	default:
		return 0;
	}
}

// Samples of one stack are neighbours, as the list is sorted.
bool samples_next_stack(const struct samples *samples, size_t *first, enum samples_value value,
			int64_t *sum)
{
	const struct sample *sample = &samples->list[*first];
	size_t i = *first;

	// At the end of the list `sample` is beyond it and is not looked at: nothing was passed, so
	// false.
	*sum = 0;
	for (; i < samples->count && samples->list[i].process == sample->process &&
	       samples->list[i].stack == sample->stack;
	     i++)
		*sum += samples_value(&samples->list[i], value);
	*first = i;
	return i > (size_t)(sample - samples->list);
}

// ---- while the engine is asked ----

struct making {
	struct samples *samples;
	struct index_set known;
};

static uint64_t hash_sample(const struct sample *sample)
{
	const uint64_t numbers[] = { sample->process, sample->thread, sample->stack, sample->size };

	return index_set_hash(numbers, 4);
}

static bool is_sample(const void *context, uint32_t position, const void *key)
{
	const struct samples *samples = context;
	const struct sample *there = &samples->list[position], *wanted = key;

	ASSERT(position < samples->count);
	return there->process == wanted->process && there->thread == wanted->thread &&
	       there->stack == wanted->stack && there->size == wanted->size;
}

// A group is a sample; sizes are apart only where they are wanted, as there are many.
static uint32_t group(void *context, const struct window_cell *cell)
{
	struct making *making = context;
	struct samples *samples = making->samples;
	const struct sample sample = {
		.process = cell->process,
		.thread = cell->thread,
		.stack = cell->stack,
		.group = (uint32_t)samples->count,
		.size = samples->by_size ? cell->size : 0,
	};
	uint32_t found;

	// Orphans are frees of blocks that were not seen to begin: they have no size to add.
	if (cell->orphans || !query_context_selects(samples->asked, cell))
		return WINDOW_SKIP;
	found = index_set_put(&making->known, hash_sample(&sample), is_sample, samples, &sample,
			      (uint32_t)samples->count);
	if (found == samples->count) {
		*MEM_ADD(samples->list, samples->count, samples->capacity) = sample;
	}
	return found;
}

void samples_scale(struct sample *sample, uint64_t mean_bytes)
{
	struct weight weight = weight_of(mean_bytes, sample->size);

	// For example 3 samples of 512 bytes at one in 512 KiB: each stands for some 1,024 blocks.
	for (int i = 0; i < WINDOW_TYPES; i++) {
		struct heap_amount *amount = &sample->row.type[i];
		uint64_t samples = amount->count;

		amount->count = weight_round(samples * weight.count);
		amount->bytes = weight_round(samples * weight.bytes);
	}
}

static bool is_nothing(const struct sample *sample)
{
	return window_present(&sample->row).count == 0;
}

// Take the rows from the engine's answer; rows without any figure go.
static void fill(struct samples *samples, const struct window_result *result)
{
	unsigned types = samples->asked->selection.query.types;
	size_t kept = 0;

	for (size_t i = 0; i < samples->count; i++) {
		struct sample *sample = &samples->list[i];

		// Groups without a row have no figure.
		if (sample->group >= result->rows_count)
			continue;
		sample->row = result->rows[sample->group];
		window_keep_types(&sample->row, types);
		if (is_nothing(sample))
			continue;
		samples->list[kept++] = *sample;
	}
	ASSERT(kept <= samples->count);
	samples->count = kept;
}

SORT_ORDER(compare_samples, struct sample,
	   trace_compare_places(one->process, one->stack, other->process, other->stack),
	   SORT_RISES(thread), SORT_RISES(size))

void samples_sort(struct samples *samples)
{
	if (samples->count)
		qsort(samples->list, samples->count, sizeof *samples->list, compare_samples);
}

// The engine asks `group` for each cell, which gives a new number to each new combination and makes
// a sample for it; the sums then come back in rows of these numbers.
bool samples_open(struct samples *samples, struct query_context *asked, bool by_size,
		  struct err *err)
{
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	struct making making = { .samples = samples };
	struct window_result result = { 0 };
	bool good;

	*samples = (struct samples){
		.asked = asked,
		.by_size = by_size,
	};
	query.by_size |= samples->by_size;
	query.by_thread = true;
	query.nearest = true;
	query.group = group;
	query.context = &making;
	good = window_ask(asked->window, &query, &result, err);
	if (good)
		fill(samples, &result);
	window_result_fini(&result);
	index_set_fini(&making.known);
	if (good)
		samples_sort(samples);
	else
		samples_close(samples);
	return good;
}

void samples_close(struct samples *samples)
{
	mem_free(samples->list);
	*samples = (struct samples){ 0 };
}
