// How large the allocations of a window are, and how long they live.
//
// Sizes and lifetimes are in octaves (octave.h). For example three blocks of 100 bytes that lived
// 3, 5 and 6 ns: one cell of sizes 65 to 128 and lifetimes 3 to 4 ns has one, another of 5 to 8 ns
// two.
#include "view/answer.h"

#include "base/json.h"
#include "base/mem.h"
#include "view/octave.h"

#include <string.h>

static void write_amount(struct json *json, const char *key, struct heap_amount amount)
{
	json_kv_object(json, key);
	json_kv_u64(json, "count", amount.count);
	json_kv_u64(json, "bytes", amount.bytes);
	json_object_end(json);
}

static void write_octave(struct json *json, uint32_t octave)
{
	json_kv_u64(json, "size_min", octave_least(octave));
	json_kv_u64(json, "size_max", octave_most(octave));
}

// ---- histogram ----

// The bin of an allocation; frees of nothing known have no size.
static uint32_t by_octave(void *context, const struct window_cell *cell)
{
	if (cell->orphans || !query_context_selects(context, cell))
		return WINDOW_SKIP;
	return octave_of(cell->size);
}

// What --impact leaves of a type.
static struct heap_amount kept(const struct query_context *asked, const struct window_row *row,
			       enum window_type type)
{
	unsigned types = asked->selection.query.types;

	return types && !(types >> type & 1) ? (struct heap_amount){ 0 } : row->type[type];
}

// A bin of a size has four parts, as allocations have: the page stacks them.
static void write_bins(const struct query_context *asked, const struct window_result *result,
		       struct json *json)
{
	ASSERT(result->rows_count <= OCTAVES);
	for (uint32_t i = 0; i < result->rows_count; i++) {
		const struct window_row *row = &result->rows[i];
		const struct heap_amount parts[] = {
			kept(asked, row, WINDOW_AIFO),
			kept(asked, row, WINDOW_AOFI),
			kept(asked, row, WINDOW_AIFI),
			kept(asked, row, WINDOW_AOFO),
		};

		if (parts[0].count + parts[1].count + parts[2].count + parts[3].count == 0)
			continue;
		json_object_begin(json);
		write_octave(json, i);
		write_amount(json, "impacting", parts[0]);
		write_amount(json, "freed_before", parts[1]);
		write_amount(json, "transient", parts[2]);
		write_amount(json, "persistent", parts[3]);
		json_object_end(json);
	}
}

// Whether the end of a process ends its blocks is the page's to choose (`exit-frees`). With it,
// what lived when its process ended in the window goes from impacting to transient, or from
// persistent to freed_before.
bool answer_sizes_histogram(struct answer *answer, struct err *err)
{
	struct query_context_options options = answer_options(answer, &query_context_window_rules);
	struct window_result result;
	struct window_query query;
	struct query_context asked;
	struct json json;
	bool good;

	if (!params_take_flag(&answer->params, "exit-frees", &options.exit_frees, err) ||
	    !params_take_filters(&answer->params, 0, &answer->words, err) ||
	    !params_check_taken(&answer->params, err) || !query_context_open(&asked, &options, err))
		return false;
	query = query_context_query(&asked, QUERY_CONTEXT_ALL, asked.from, asked.to);
	query.by_size = true;
	query.group = by_octave;
	query.context = &asked;
	good = query_context_check_layers(&asked, false, err) &&
	       window_ask(asked.window, &query, &result, err);
	if (good) {
		json_begin(&json, answer->sink, false, "tidemark-view-histogram-1");
		json_kv_u64(&json, "from_ns", asked.from_ns);
		json_kv_u64(&json, "to_ns", asked.to_ns);
		json_kv_array(&json, "bins");
		write_bins(&asked, &result, &json);
		json_array_end(&json);
		json_end(&json);
		window_result_fini(&result);
	}
	query_context_close(&asked);
	return good;
}

// ---- sizes and lifetimes ----

// By octave of size: what lived, by octave of lifetime, and what never ended.
struct life_sums {
	struct heap_amount cells[OCTAVES][OCTAVES], never[OCTAVES];
};

struct life {
	struct query_context asked;
	struct life_sums *sums; // WINDOW_LIVED_PARTS of them; the first has all in the end
};

static void add_alike(struct heap_amount *amount, uint64_t count, uint64_t size)
{
	amount->count += count;
	amount->bytes += count * size;
}

static void take_lived(void *context, unsigned part, const struct window_lived *lived)
{
	struct life_sums *sums = &((struct life *)context)->sums[part];
	struct heap_amount *cells = sums->cells[lived->group];

	ASSERT(lived->group < OCTAVES && part < WINDOW_LIVED_PARTS);
	add_alike(&sums->never[lived->group], lived->never, lived->size);
	add_alike(&cells[octave_of(0)], lived->none, lived->size);
	for (size_t i = 0; i < lived->count; i++)
		add_alike(&cells[octave_of(lived->ns[i])], 1, lived->size);
}

// Counts an allocation by its size and how long it lived. One that only the end of its process
// ended has no lifetime that the program chose: it is as one that never ended. A heap that was
// destroyed did end its blocks, by a call.
static bool take_allocation(void *context, const struct window_allocation *allocation)
{
	struct life *life = context;
	struct heap_amount *amount;
	bool called = allocation->end_kind != WINDOW_END_NEVER &&
		      allocation->end_kind != WINDOW_END_EXIT &&
		      allocation->end_kind != WINDOW_END_EXEC;

	ASSERT(allocation->group < OCTAVES);
	// What was there before the window has no lifetime that began in it.
	if (allocation->begin < life->asked.from || allocation->begin >= life->asked.to)
		return true;
	if (called)
		amount = &life->sums->cells[allocation->group]
					   [octave_of(allocation->end_ns - allocation->begin_ns)];
	else
		amount = &life->sums->never[allocation->group];
	amount->count++;
	amount->bytes += allocation->cell.size;
	return true;
}

static uint32_t by_octave_of_life(void *context, const struct window_cell *cell)
{
	const struct life *life = context;

	return !cell->orphans && query_context_selects(&life->asked, cell) ? octave_of(cell->size)
									   : WINDOW_SKIP;
}

// Of 66 times 66 cells most are empty and left out. What never ended has a row of its own.
static void write_cells(const struct life *life, struct json *json)
{
	json_kv_array(json, "cells");
	for (uint32_t size = 0; size < OCTAVES; size++) {
		for (uint32_t time = 0; time < OCTAVES; time++) {
			const struct heap_amount *amount = &life->sums->cells[size][time];

			if (amount->count == 0)
				continue;
			json_object_begin(json);
			write_octave(json, size);
			json_kv_u64(json, "lifetime_min_ns", octave_least(time));
			json_kv_u64(json, "lifetime_max_ns", octave_most(time));
			json_kv_u64(json, "count", amount->count);
			json_kv_u64(json, "bytes", amount->bytes);
			json_object_end(json);
		}
	}
	json_array_end(json);
	json_kv_array(json, "never");
	for (uint32_t size = 0; size < OCTAVES; size++) {
		if (life->sums->never[size].count == 0)
			continue;
		json_object_begin(json);
		write_octave(json, size);
		json_kv_u64(json, "count", life->sums->never[size].count);
		json_kv_u64(json, "bytes", life->sums->never[size].bytes);
		json_object_end(json);
	}
	json_array_end(json);
}

// Of the whole trace lifetimes may be kept. Classes of a window have none, so its single
// allocations are walked and counted here. The walk gives also those of before the window, which
// take_allocation passes over.
static bool count_lives(struct life *life, const struct window_query *query, struct err *err)
{
	struct window *window = life->asked.window;
	bool known;

	if (!window_lived(window, query, take_lived, life, &known, err))
		return false;
	if (!known) {
		memset(life->sums, 0, WINDOW_LIVED_PARTS * sizeof *life->sums);
		return window_walk(window, query, take_allocation, life, err);
	}
	for (unsigned size = 0; size < OCTAVES; size++) {
		for (unsigned time = 0; time < OCTAVES; time++)
			window_add(&life->sums[0].cells[size][time],
				   life->sums[1].cells[size][time]);
		window_add(&life->sums[0].never[size], life->sums[1].never[size]);
	}
	return true;
}

bool answer_sizes_life(struct answer *answer, struct err *err)
{
	struct life life = { 0 };
	struct window_query query;
	struct json json;
	bool good;

	if (!answer_ask(answer, &query_context_findings_rules, &life.asked, err))
		return false;
	life.sums = mem_alloc(WINDOW_LIVED_PARTS, sizeof *life.sums);
	query = query_context_query(&life.asked, QUERY_CONTEXT_ALL, life.asked.from, life.asked.to);
	query.by_size = true;
	query.group = by_octave_of_life;
	query.context = &life;
	good = count_lives(&life, &query, err);
	if (good) {
		json_begin(&json, answer->sink, false, "tidemark-view-sizelife-1");
		json_kv_u64(&json, "from_ns", life.asked.from_ns);
		json_kv_u64(&json, "to_ns", life.asked.to_ns);
		write_cells(&life, &json);
		json_end(&json);
	}
	mem_free(life.sums);
	query_context_close(&life.asked);
	return good;
}
