// What several runs of a program have, without a limit: `tidemark bench`.
#include "report/find/check.h"

#include "base/mem.h"
#include "report/table/paper.h"
#include "report/table/query_write.h"

// The figures of `bench` have no growth, which needs the index; what is not bytes is calls.
static bool is_bytes(enum check_figure figure)
{
	ASSERT(figure < CHECK_FIGURES);
	return figure == CHECK_PEAK || figure == CHECK_LIVE_AT_EXIT || figure == CHECK_UNREACHABLE;
}

static void write_value(struct paper *paper, enum check_figure figure, uint64_t value)
{
	ASSERT(figure < CHECK_FIGURES);
	paper_field(paper, PAPER_PLAIN, is_bytes(figure) ? STR_BYTES(value) : STR_COUNT(value), 14,
		    true);
}

// What is not known is left out here and in JSON, so no zero is taken for a figure. With several
// runs a figure is known only if all of them have it. A refusal (a sampled trace, say) is a warning
// here and no failure: there is no limit that could be missed, and the figures are shown.
void check_figures(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
	struct paper paper = { .sink = sink, .colour = page->colour, .width = page->width };

	query_write_headline(check->asked, &paper);
	paper_format(&paper, PAPER_DIM, "%-14s%14s%14s%14s\n", "", "mean", "least", "most");
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct check_row *row = &check->rows[figure];

		if (!row->known)
			continue;
		paper_format(&paper, PAPER_BOLD, "%-14s", check_names[figure]);
		write_value(&paper, figure, check_runs_mean(&row->runs));
		write_value(&paper, figure, check_runs_least(&row->runs));
		write_value(&paper, figure, check_runs_most(&row->runs));
		paper_format(&paper, PAPER_DIM, "  %s\n",
			     check->runs_count < 2         ? ""
			     : check_runs_vary(&row->runs) ? "differs from run to run"
							   : "the same in each run");
	}
	if (check->refusal)
		paper_paragraph(&paper, PAPER_WARNING, "warning", check->refusal);
}

// `values` are those of the runs in the order of `traces`, so that another program can test them
// itself. A refusal is null where there is none.
void check_figures_json(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
	struct json json;

	json_begin(&json, sink, true, "tidemark-bench-1");
	query_write_trace(check->asked, &json);
	json_kv_u64(&json, "runs", check->runs_count);
	json_kv_string(&json, "refusal", check->refusal);
	json_kv_array(&json, "traces");
	for (size_t i = 0; i < page->paths_count; i++)
		json_string(&json, page->paths[i]);
	json_array_end(&json);
	json_kv_array(&json, "figures");
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct check_row *row = &check->rows[figure];

		if (!row->known)
			continue;
		json_object_begin(&json);
		json_kv_string(&json, "figure", check_names[figure]);
		json_kv_u64(&json, "mean", check_runs_mean(&row->runs));
		json_kv_u64(&json, "least", check_runs_least(&row->runs));
		json_kv_u64(&json, "most", check_runs_most(&row->runs));
		json_kv_bool(&json, "varies", check_runs_vary(&row->runs));
		json_kv_array(&json, "values");
		for (size_t i = 0; i < row->runs.count; i++)
			json_u64(&json, row->runs.values[i]);
		json_array_end(&json);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_end(&json);
}
