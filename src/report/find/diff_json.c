// A comparison for programs: docs/schema/diff.json describes the JSON.
//
// A figure is an object with before_bytes, after_bytes, before_count, after_count and the change;
// a side that has no such row has zeros. With several runs on a side bytes_low and bytes_high are
// the bounds within which the change is, and `changed` says whether 0 is outside of them; with
// one run each there are no bounds, and they are null.
#include "report/find/diff.h"
#include "report/table/lines.h"
#include "report/table/query_write.h"

#include <math.h>

static const char *const keys[DIFF_FIGURES] = {
	[DIFF_LIVE] = "live",
	[DIFF_PEAK] = "peak",
	[DIFF_ALLOCATED] = "allocated",
	[DIFF_TEMPORARY] = "temporary",
};

// Where the change is, in whole bytes or blocks; null where nothing can be said: with one run on
// each side, or with so few that a bound is infinite.
static void write_bound(struct json *json, const char *key, bool known, double value)
{
	json_key(json, key);
	if (known && value > -INFINITY && value < INFINITY)
		json_i64(json, (int64_t)llround(value));
	else
		json_null(json);
}

static void write_verdict(struct json *json, const struct diff *diff,
			  const struct diff_verdict verdict[2])
{
	bool several = diff->significance != NULL;

	write_bound(json, "bytes_low", several, verdict[0].low);
	write_bound(json, "bytes_high", several, verdict[0].high);
	write_bound(json, "count_low", several, verdict[1].low);
	write_bound(json, "count_high", several, verdict[1].high);
	json_kv_bool(json, "changed", verdict[0].changed || verdict[1].changed);
}

// `amounts` and `number` say where the runs' own values are, from which diff_judge makes the
// bounds.
static void write_figures(struct json *json, const struct diff *diff,
			  const struct diff_pair figures[DIFF_FIGURES],
			  const struct diff_amounts *amounts, size_t number)
{
	for (int f = 0; f < DIFF_FIGURES; f++) {
		const struct diff_pair *pair = &figures[f];
		const struct diff_verdict verdict[2] = {
			diff_judge(diff, amounts, number, (enum diff_figure)f, false),
			diff_judge(diff, amounts, number, (enum diff_figure)f, true),
		};

		json_key(json, keys[f]);
		if (f == DIFF_TEMPORARY && !diff->temporary) {
			json_null(json);
			continue;
		}
		json_object_begin(json);
		json_line_begin(json);
		json_kv_u64(json, "before_bytes", pair->side[0].bytes);
		json_kv_u64(json, "after_bytes", pair->side[1].bytes);
		json_kv_u64(json, "before_count", pair->side[0].count);
		json_kv_u64(json, "after_count", pair->side[1].count);
		json_kv_i64(json, "bytes", diff_bytes(pair));
		json_kv_i64(json, "count", diff_count(pair));
		write_verdict(json, diff, verdict);
		json_object_end(json);
		json_line_end(json);
	}
}

// The run in which a place is.
static const struct query_context *run_of(const struct diff_page *page, int side,
					  const struct diff_place *place)
{
	return &page->sides[side].runs[place->run];
}

// The name is B's where the process is in both. Ids are of the run that the place is in, and null
// on a side that does not have it.
static void write_process(struct json *json, const struct diff_page *page, size_t number)
{
	const struct diff_process *row = &page->diff->processes[number];
	const struct diff_place *place = row->place;
	int side = place[1].process != TRACE_NONE;
	const struct trace_process *found =
		reader_process(run_of(page, side, &place[side])->reader, place[side].process);

	json_object_begin(json);
	json_kv_text(json, "exe", found ? found->exe : NULL);
	json_kv_u64_if(json, "before_id", place[0].process != TRACE_NONE, place[0].process);
	json_kv_u64_if(json, "after_id", place[1].process != TRACE_NONE, place[1].process);
	write_figures(json, page->diff, row->figures, &page->diff->process_amounts, number);
	json_object_end(json);
}

// ---- rows ----

// A row is shown by its place in B, and in A only where B does not have it.
static struct sheet_site site_of(const struct sheet *sheet, const void *of)
{
	const struct diff_page *page = sheet->context;
	const struct diff_row *row = of;
	int side = row->place[1].process != TRACE_NONE;

	return (struct sheet_site){ run_of(page, side, &row->place[side]), row->place[side].process,
				    row->place[side].stack };
}

static struct sheet_cell get_state(const struct sheet_at *at)
{
	const struct diff_row *row = at->row;

	return sheet_text(row->moved                            ? "moved"
			  : row->place[0].process == TRACE_NONE ? "new"
			  : row->place[1].process == TRACE_NONE ? "gone"
								: "both");
}

// A figure, and which part of it.
enum { BYTES, COUNT, BYTES_BEFORE, COUNT_BEFORE, PARTS };

// A column's `at` is figure * PARTS + part, as PART below packs it.
static struct sheet_cell get_figure(const struct sheet_at *at)
{
	const struct diff_row *row = at->row;
	const struct diff_pair *pair = &row->figures[at->column->at / PARTS];
	const uint64_t parts[PARTS] = {
		[BYTES] = (uint64_t)diff_bytes(pair),
		[COUNT] = (uint64_t)diff_count(pair),
		[BYTES_BEFORE] = pair->side[0].bytes,
		[COUNT_BEFORE] = pair->side[0].count,
	};

	return sheet_u64(true, parts[at->column->at % PARTS]);
}

// Of the figure that ranks. Unknown with a run each, and where the runs are too few for a bound.
static struct sheet_cell get_bound(const struct sheet_at *at)
{
	const struct diff_page *page = at->sheet->context;
	struct diff_verdict verdict = diff_judge_rank(page->diff, at->row);

	return sheet_u64(page->diff->significance != NULL && verdict.high < INFINITY,
			 (uint64_t)llround(at->column->at ? verdict.high : verdict.low));
}

static struct names_stack stack_before(const struct diff_page *page, const struct diff_row *row)
{
	return row->moved ? names_stack(run_of(page, 0, &row->place[0])->names, row->place[0].stack)
			  : (struct names_stack){ 0 };
}

// The sheet reads the stack before it asks for the next cell, so one place to keep it is enough.
static struct sheet_cell get_moved(const struct sheet_at *at)
{
	static const struct names_stack none = { 0 };
	const struct diff_row *row = at->row;
	struct diff_page *page = (struct diff_page *)(uintptr_t)at->sheet->context;

	page->scratch = stack_before(page, row);
	return (struct sheet_cell){ .unknown = !row->moved,
				    .stack = row->moved ? &page->scratch : &none };
}

// In JSON a figure is an object.
static void write_row(const struct sheet_at *at)
{
	const struct diff_page *page = at->sheet->context;
	const struct diff_row *row = at->row;
	struct names_stack stack;

	json_kv_text(at->sheet->json, "exe", at->sheet->process ? at->sheet->process->exe : NULL);
	write_figures(at->sheet->json, page->diff, row->figures, &page->diff->row_amounts,
		      row->number);
	sheet_write_stack(at);
	json_key(at->sheet->json, "moved_from");
	stack = stack_before(page, row);
	if (row->moved)
		lines_json(at->sheet->json, &stack);
	else
		json_null(at->sheet->json);
}

#define PART(figure, part, name, kind, flags, says)                                         \
	{                                                                                   \
		name, kind, SHEET_FLAT_ONLY | (flags), get_figure, (figure)*PARTS + (part), \
			.meaning = says                                                     \
	}
#define FIGURE(figure, name, meaning)                                                          \
	PART(figure, BYTES, name "_bytes", SHEET_BYTES, SHEET_CHANGE, meaning ": the change"), \
		PART(figure, COUNT, name "_count", SHEET_COUNT, SHEET_CHANGE,                  \
		     meaning ": the change"),                                                  \
		PART(figure, BYTES_BEFORE, name "_bytes_before", SHEET_BYTES, 0,               \
		     meaning ", before"),                                                      \
		PART(figure, COUNT_BEFORE, name "_count_before", SHEET_COUNT, 0,               \
		     meaning ", before")
static const struct sheet_column columns[] = {
	{ "state", SHEET_TEXT, 0, get_state, 0,
	  .meaning = "new, gone, both, or moved: where the stack is" },
	FIGURE(DIFF_LIVE, "live", "held at the end"),
	FIGURE(DIFF_PEAK, "peak", "held at the peak"),
	FIGURE(DIFF_ALLOCATED, "allocated", "allocated"),
	FIGURE(DIFF_TEMPORARY, "temporary", "freed before the next allocation"),
	{ "low", SHEET_COUNT, SHEET_FLAT_ONLY | SHEET_CHANGE, get_bound, 0,
	  .meaning = "of several runs: the least that what is sorted by may have changed" },
	{ "high", SHEET_COUNT, SHEET_FLAT_ONLY | SHEET_CHANGE, get_bound, 1,
	  .meaning = "of several runs: the most" },
	{ .kind = SHEET_SITE, .flags = SHEET_FLAT_ONLY },
	{ "moved_from", SHEET_STACK, SHEET_FLAT_ONLY, get_moved, 0,
	  .meaning = "the stack before, of what moved" },
	{ .kind = SHEET_OBJECT, .flags = SHEET_JSON_ONLY, .json = write_row },
};

// What changed by less than --min-bytes is not counted as left out, since no limit of rows keeps it
// away; rows_left_out in JSON counts it.
void diff_rows(const struct diff_page *page, struct sheet *sheet)
{
	const struct diff *diff = page->diff;

	sheet->context = page;
	sheet->site_of = site_of;
	sheet->left_out = diff->rows_total - diff->rows_count;
	sheet_begin(sheet, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < diff->rows_count; i++)
		sheet_row(sheet, &diff->rows[i]);
	sheet_end(sheet);
}

// In `stacks` each stack of either side is counted once, whatever is listed in rows.
void diff_json(const struct diff_page *page, struct sink *sink)
{
	const struct diff *diff = page->diff;
	struct sheet rows;
	struct json json;

	json_begin(&json, sink, true, "tidemark-diff-1");
	query_write_trace_as(page->sides[0].runs, &json, "before");
	query_write_trace_as(page->sides[1].runs, &json, "after");
	json_kv_u64(&json, "before_runs", diff->runs[0]);
	json_kv_u64(&json, "after_runs", diff->runs[1]);
	json_kv_string(&json, "layer", page->sides[0].runs->layers == WINDOW_VM ? "vm" : "heap");
	json_kv_string(&json, "sort", diff_order_words[diff->order]);
	json_kv_object(&json, "total");
	write_figures(&json, diff, diff->totals, &diff->total_amounts, 0);
	json_object_end(&json);
	json_kv_object(&json, "stacks");
	json_kv_u64(&json, "new", diff->appeared);
	json_kv_u64(&json, "gone", diff->vanished);
	json_kv_u64(&json, "moved", diff->moved);
	json_kv_u64(&json, "changed", diff->changed);
	json_kv_u64(&json, "varied", diff->varied);
	json_kv_u64(&json, "same", diff->same);
	json_object_end(&json);
	json_kv_array(&json, "processes");
	for (size_t i = 0; i < diff->processes_count; i++)
		write_process(&json, page, i);
	json_array_end(&json);
	json_kv_u64(&json, "rows_total", diff->rows_total);
	json_kv_array(&json, "rows");
	rows = sheet_in_json(&json);
	diff_rows(page, &rows);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", diff->rows_left_out);
	json_kv_u64(&json, "rows_elsewhere", diff->rows_elsewhere);
	query_write_end_of_two(page->sides[0].runs, page->sides[1].runs, &json);
}
