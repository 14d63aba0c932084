// How large the allocations of a window are, and how long they live.
#include "view/answer.h"

#include "base/json.h"
#include "base/mem.h"
#include "engine/window_series.h"
#include "report/table.h"
#include "view/octave.h"

static void write_amount(struct json *json, const char *key, struct heap_amount amount)
{
	json_key(json, key);
	json_object_begin(json);
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

static uint32_t by_octave(void *context, const struct window_cell *cell)
{
	if (cell->orphans || !question_selects(context, cell))
		return WINDOW_SKIP;
	return octave_of(cell->size);
}

// What --impact leaves of a type.
static struct heap_amount kept(const struct question *question, const struct window_row *row,
			       enum window_type type)
{
	unsigned types = question->selection.query.types;

	return types && !(types >> type & 1) ? (struct heap_amount){ 0 } : row->type[type];
}

static void write_bins(const struct question *question, const struct window_result *result,
		       struct json *json)
{
	for (uint32_t i = 0; i < result->rows_count; i++) {
		const struct window_row *row = &result->rows[i];
		const struct heap_amount parts[] = {
			kept(question, row, WINDOW_AIFO),
			kept(question, row, WINDOW_AOFI),
			kept(question, row, WINDOW_AIFI),
			kept(question, row, WINDOW_AOFO),
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

bool answer_sizes_histogram(struct answer *answer, struct err *err)
{
	struct question_options options = {
		.words = &answer->words,
		.opened = &answer->desk->opened,
	};
	struct window_result result;
	struct window_query query;
	struct question question;
	struct json json;
	bool good;

	if (!params_take_flag(&answer->params, "exit-frees", &options.exit_frees, err) ||
	    !params_take_filters(&answer->params, 0, &answer->words, err) ||
	    !params_check_taken(&answer->params, err) ||
	    !question_open(&question, answer->desk->opened.path, &options, err))
		return false;
	query = question_query(&question);
	query.by_size = true;
	query.group = by_octave;
	query.context = &question;
	good = question_check_layers(&question, false, err) &&
	       window_ask(question.window, &query, &result, err);
	if (good) {
		json_init(&json, answer->sink, false);
		json_object_begin(&json);
		json_kv_string(&json, "schema", "tidemark-view-histogram-1");
		json_kv_u64(&json, "from_ns", question.from_ns);
		json_kv_u64(&json, "to_ns", question.to_ns);
		json_key(&json, "bins");
		json_array_begin(&json);
		write_bins(&question, &result, &json);
		json_array_end(&json);
		json_object_end(&json);
		sink_text(answer->sink, "\n");
		window_result_fini(&result);
	}
	question_close(&question);
	return good;
}

// ---- sizes and lifetimes ----

struct life {
	struct inquiry inquiry;
	struct heap_amount (*cells)[OCTAVES]; // by octave of size, then of lifetime
	struct heap_amount *never;            // by octave of size
};

static bool take_allocation(void *context, const struct window_allocation *allocation)
{
	struct life *life = context;
	struct heap_amount *amount;
	bool called = allocation->end_kind != WINDOW_END_NEVER &&
		      allocation->end_kind != WINDOW_END_EXIT &&
		      allocation->end_kind != WINDOW_END_EXEC;

	if (allocation->begin < life->inquiry.from || allocation->begin >= life->inquiry.to)
		return true;
	if (called)
		amount = &life->cells[allocation->group]
				     [octave_of(allocation->end_ns - allocation->begin_ns)];
	else
		amount = &life->never[allocation->group];
	amount->count++;
	amount->bytes += allocation->cell.size;
	return true;
}

static uint32_t by_octave_of_inquiry(void *context, const struct window_cell *cell)
{
	const struct life *life = context;

	return inquiry_selects(&life->inquiry, cell) ? octave_of(cell->size) : WINDOW_SKIP;
}

static void write_cells(const struct life *life, struct json *json)
{
	json_key(json, "cells");
	json_array_begin(json);
	for (uint32_t size = 0; size < OCTAVES; size++) {
		for (uint32_t time = 0; time < OCTAVES; time++) {
			const struct heap_amount *amount = &life->cells[size][time];

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
	json_key(json, "never");
	json_array_begin(json);
	for (uint32_t size = 0; size < OCTAVES; size++) {
		if (life->never[size].count == 0)
			continue;
		json_object_begin(json);
		write_octave(json, size);
		json_kv_u64(json, "count", life->never[size].count);
		json_kv_u64(json, "bytes", life->never[size].bytes);
		json_object_end(json);
	}
	json_array_end(json);
}

bool answer_sizes_life(struct answer *answer, struct err *err)
{
	struct life life = { 0 };
	struct window_query query;
	struct json json;
	bool good;

	if (!answer_inquire(answer, &life.inquiry, err))
		return false;
	life.cells = mem_alloc(OCTAVES, sizeof *life.cells);
	life.never = mem_alloc(OCTAVES, sizeof *life.never);
	query = inquiry_query(&life.inquiry, INQUIRY_ALL, life.inquiry.from, life.inquiry.to);
	query.by_size = true;
	query.group = by_octave_of_inquiry;
	query.context = &life;
	good = window_walk(life.inquiry.window, &query, take_allocation, &life, err);
	if (good) {
		json_init(&json, answer->sink, false);
		json_object_begin(&json);
		json_kv_string(&json, "schema", "tidemark-view-sizelife-1");
		json_kv_u64(&json, "from_ns", life.inquiry.from_ns);
		json_kv_u64(&json, "to_ns", life.inquiry.to_ns);
		write_cells(&life, &json);
		json_object_end(&json);
		sink_text(answer->sink, "\n");
	}
	mem_free(life.cells);
	mem_free(life.never);
	inquiry_close(&life.inquiry);
	return good;
}
