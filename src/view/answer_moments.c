// The trace at one moment: what tidemark map, active and reconcile write as JSON.
//
// Each is the command of its name: the same rules, the same function that writes JSON. So a moment
// of the page and one of the command line cannot differ.
#include "view/answer.h"

#include "report/draw/address_map.h"
#include "report/find/active.h"
#include "report/find/rss_breakdown.h"

// A moment is no window.
static const unsigned no_window = SELECTION_BIT(FROM) | SELECTION_BIT(TO);

// An answer's own parameters are taken by now. What is left is filters, and else a mistake.
static bool open_moment(struct answer *answer, const struct query_context_rules *rules,
			const char *at, struct query_context *asked, struct err *err)
{
	struct query_context_options options = answer_options(answer, rules);

	options.at = at;
	return params_take_filters(&answer->params, no_window, &answer->words, err) &&
	       params_check_taken(&answer->params, err) && query_context_open(asked, &options, err);
}

static bool take_at(struct answer *answer, const char **at, struct err *err)
{
	return params_take(&answer->params, "at", at, err) &&
	       (moment_view_check(*at, err) || err_wrap(err, "at"));
}

// The range and the granularity are checked by the command's own functions. A granularity of 0 is
// as if none was given: 64 KiB.
bool answer_moments_map(struct answer *answer, struct err *err)
{
	struct address_map_options options = { .granularity = SPACE_SLOT };
	const char *at, *range;
	uint64_t granularity = 0;
	struct query_context asked;
	struct address_map address_map;
	bool good;

	if (!take_at(answer, &at, err) || !params_take(&answer->params, "range", &range, err) ||
	    !params_take_bytes(&answer->params, "granularity", &granularity, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &options.rows_max, err))
		return false;
	if ((granularity && !address_map_set_granularity(&options, granularity, err)) ||
	    (range && !address_map_set_range(&options, range, err)) ||
	    !open_moment(answer, &address_map_rules, at, &asked, err))
		return false;
	good = address_map_init(&address_map, &asked, &options, err);
	if (good) {
		address_map_write_json(&address_map, answer->sink);
		address_map_fini(&address_map);
	} else if (err->kind == ERR_USAGE) {
		// Nothing is mapped, or there are no snapshots: that is no mistake of the page,
		// which then shows no such tab.
		answer->reply->refusal = REFUSAL_NOT_RECORDED;
	}
	query_context_close(&asked);
	return good;
}

// The context is read here, as active_init asks for one that was read. The others read theirs
// themselves: the map also wants the address space, and reconcile finds its moment first.
bool answer_moments_active(struct answer *answer, struct err *err)
{
	struct active_options options = { 0 };
	struct present_options late = { .inherits = TRACE_NONE };
	struct active active;
	struct query_context asked;
	const char *at;
	bool good;

	if (!take_at(answer, &at, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &options.rows_max, err) ||
	    !params_take_bytes(&answer->params, "min-bytes", &options.bytes_min, err) ||
	    !open_moment(answer, &active_rules, at, &asked, err))
		return false;
	late.dated_late = options.rows_max > 0;
	moment_view_read(&asked, &late);
	moment_view_warn_of_space(&asked);
	good = active_init(&active, &asked, &options, err);
	if (good)
		active_write_json(&active, answer->sink);
	active_fini(&active);
	query_context_close(&asked);
	return good;
}

// Of a snapshot, and so at one of two words and not at any moment; it sets the moment itself. A
// trace without snapshots is as a map without mappings: the page shows no such tab.
bool answer_moments_reconcile(struct answer *answer, struct err *err)
{
	static const char *const moments[] = { "peak", "exit", NULL };
	struct rss_breakdown rss_breakdown;
	struct query_context asked;
	uint64_t rows;
	int moment = 0;
	bool good;

	if (!params_take_word(&answer->params, "at", moments, &moment, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &rows, err) ||
	    !open_moment(answer, &rss_breakdown_rules, NULL, &asked, err))
		return false;
	good = rss_breakdown_init(&rss_breakdown, &asked,
				  moment == 0 ? RSS_BREAKDOWN_AT_PEAK : RSS_BREAKDOWN_AT_EXIT, err);
	if (good) {
		rss_breakdown_write_json(&rss_breakdown, answer->sink, rows);
		rss_breakdown_fini(&rss_breakdown);
	} else if (err->kind == ERR_USAGE) {
		answer->reply->refusal = REFUSAL_NOT_RECORDED;
	}
	query_context_close(&asked);
	return good;
}
