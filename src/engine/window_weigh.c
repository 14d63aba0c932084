// Answers about samples. The engine counts blocks, and knows nothing of weights: so a group is
// asked for in parts of which all blocks have one weight, and the parts' answers are multiplied and
// added up.
//
// For example, a question with one group, about a window in which two blocks of 100 bytes were
// recorded as all were, and then three of 100 bytes at a mean distance of 4,096. The engine is
// asked for two parts of the group: the exact ones, and those of 100 bytes at 4,096, of which each
// counts for 41.46 blocks. The group's answer is 2 + 3 * 41.46 = 126 blocks, and its variance is
// that of three samples.
#include "engine/window_weigh.h"

#include "base/index_set.h"
#include "base/mem.h"
#include "engine/replay/weight.h"

// What is asked for in the place of a group.
struct part {
	uint64_t group;
	uint64_t mean_bytes; // 0: all that was recorded as every call was
	uint64_t size;       // of samples; else 0
};

struct weighing {
	const struct window_query *query; // the caller's
	const struct reader *reader;
	struct part *parts;
	size_t count, capacity;
	struct index_set known;
};

static bool is_part(const void *context, uint32_t position, const void *key)
{
	const struct weighing *weighing = context;
	const struct part *part = &weighing->parts[position], *wanted = key;

	return part->group == wanted->group && part->mean_bytes == wanted->mean_bytes &&
	       part->size == wanted->size;
}

// The engine asks for the group of each cell. The caller's group is asked first, without the size
// where it did not ask for sizes. Exact cells of a group are one part, whatever their sizes;
// sampled ones are one for each size, since the weight depends on it.
static uint32_t part_of(void *context, const struct window_cell *cell)
{
	struct weighing *weighing = context;
	const struct window_query *query = weighing->query;
	struct window_cell seen = *cell;
	uint32_t group, found, next = (uint32_t)weighing->count;
	struct part part = { 0 };

	if (!query->by_size)
		seen.size = 0;
	group = query->group ? query->group(query->context, &seen) : 0;
	if (group == WINDOW_SKIP)
		return WINDOW_SKIP;
	part.group = group;
	if (cell->layer == WINDOW_HEAP && !cell->orphans)
		part.mean_bytes = reader_sample_bytes(weighing->reader, cell->stack);
	if (part.mean_bytes > 0)
		part.size = cell->size;
	found = index_set_put(&weighing->known, index_set_hash((const uint64_t *)&part, 3), is_part,
			      weighing, &part, next);
	if (found == next)
		*MEM_ADD(weighing->parts, weighing->count, weighing->capacity) = part;
	return found;
}

// To units.
static void scale(struct heap_amount *amount, const struct weight *weight, bool sampled)
{
	amount->bytes = sampled ? amount->count * weight->bytes : amount->bytes * WEIGHT_UNIT;
	amount->count *= weight->count;
}

static void make_whole(struct heap_amount *amount, bool nearest)
{
	amount->count = nearest ? weight_round(amount->count) : amount->count / WEIGHT_UNIT;
	amount->bytes = nearest ? weight_round(amount->bytes) : amount->bytes / WEIGHT_UNIT;
}

static void scale_rest(struct window_rest *rest, const struct weight *weight, bool sampled)
{
	scale(&rest->by_exit, weight, sampled);
	scale(&rest->by_exec, weight, sampled);
	scale(&rest->by_destroy, weight, sampled);
}

static void make_rest_whole(struct window_rest *rest, bool nearest)
{
	make_whole(&rest->by_exit, nearest);
	make_whole(&rest->by_exec, nearest);
	make_whole(&rest->by_destroy, nearest);
}

// Room for the groups up to this one.
static void make_rows(struct window_result *result, size_t *capacity, size_t *spreads_capacity,
		      uint32_t group)
{
	if (group < result->rows_count)
		return;
	MEM_ROOM(result->rows, *capacity, group + (size_t)1);
	MEM_ROOM(result->spreads, *spreads_capacity, group + (size_t)1);
	for (; result->rows_count <= group; result->rows_count++) {
		result->rows[result->rows_count] = (struct window_row){ 0 };
		result->spreads[result->rows_count] = (struct window_spread){ 0 };
	}
}

// The parts' answer becomes the groups'. No spread at all: no sample is in it.
static void put_together(const struct weighing *weighing, const struct window_result *parts,
			 struct window_result *result)
{
	size_t capacity = 0, rests_capacity = 0, spreads_capacity = 0;
	bool spreads = false, nearest = weighing->query->nearest;

	*result = (struct window_result){ 0 };
	for (uint32_t i = 0; i < parts->rows_count || i < parts->rests_count; i++) {
		const struct part *part = &weighing->parts[i];
		struct weight weight = weight_of(part->mean_bytes, part->size);
		struct window_row row = { 0 };
		struct window_rest rest = window_rest_of(parts, i);
		bool sampled = part->mean_bytes > 0;

		if (i < parts->rows_count)
			row = parts->rows[i];
		make_rows(result, &capacity, &spreads_capacity, (uint32_t)part->group);
		for (int type = 0; type < WINDOW_TYPES; type++) {
			double variance = (double)row.type[type].count * weight.bytes_variance;

			result->spreads[part->group].type[type] += variance;
			result->total_spread.type[type] += variance;
			spreads |= variance > 0;
			scale(&row.type[type], &weight, sampled);
		}
		scale_rest(&rest, &weight, sampled);
		window_add_row(&result->rows[part->group], &row);
		window_add_row(&result->total, &row);
		window_add_rest(&result->total_rest, &rest);
		if (i < parts->rests_count)
			window_add_rest(window_result_make_rest(result, &rests_capacity,
								(uint32_t)part->group),
					&rest);
	}
	for (uint32_t i = 0; i < result->rows_count; i++)
		for (int type = 0; type < WINDOW_TYPES; type++)
			make_whole(&result->rows[i].type[type], nearest);
	for (uint32_t i = 0; i < result->rests_count; i++)
		make_rest_whole(&result->rests[i], nearest);
	for (int type = 0; type < WINDOW_TYPES; type++)
		make_whole(&result->total.type[type], nearest);
	make_rest_whole(&result->total_rest, nearest);
	if (spreads)
		return;
	mem_free(result->spreads);
	result->spreads = NULL;
}

bool window_weigh(const struct reader *reader, const struct window_query *query,
		  bool (*ask)(void *context, const struct window_query *query,
			      struct window_result *result, struct err *err),
		  void *context, struct window_result *result, struct err *err)
{
	struct weighing weighing = { .query = query, .reader = reader };
	struct window_query own = *query;
	struct window_result parts = { 0 };
	bool ok;

	own.by_size = true;
	own.by_size_alone = false;
	own.sizes_count = 0; // a group of one size is one thing, of another another
	own.group = part_of;
	own.context = &weighing;
	ok = ask(context, &own, &parts, err);
	if (ok)
		put_together(&weighing, &parts, result);
	window_result_fini(&parts);
	mem_free(weighing.parts);
	index_set_fini(&weighing.known);
	return ok;
}
