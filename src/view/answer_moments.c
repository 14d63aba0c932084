// The trace at one moment: what tidemark map, active and reconcile write as JSON.
#include "view/answer.h"

#include "report/active.h"
#include "report/atlas.h"
#include "report/balance.h"

#include <string.h>

// A moment is no window.
static const unsigned no_window = 1u << SELECTION_FROM | 1u << SELECTION_TO;

// `of_mappings`: a peak is that of committed memory.
static bool open_sight(struct answer *answer, const char *at, bool of_mappings, struct sight *sight,
		       struct err *err)
{
	const struct sight_options options = {
		.path = answer->desk->opened.path,
		.words = &answer->words,
		.at = at,
		.of_mappings = of_mappings,
		.opened = &answer->desk->opened,
	};

	return params_take_filters(&answer->params, no_window, &answer->words, err) &&
	       params_check_taken(&answer->params, err) && sight_open(sight, &options, err);
}

static bool take_at(struct answer *answer, const char **at, struct err *err)
{
	return params_take(&answer->params, "at", at, err) &&
	       (sight_check(*at, err) || err_wrap(err, "at"));
}

bool answer_moments_map(struct answer *answer, struct err *err)
{
	struct atlas_options options = { .granularity = SPACE_SLOT };
	const char *at, *range;
	uint64_t granularity = 0;
	struct sight sight;
	struct atlas atlas;
	bool good;

	if (!take_at(answer, &at, err) || !params_take(&answer->params, "range", &range, err) ||
	    !params_take_bytes(&answer->params, "granularity", &granularity, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &options.rows_max, err))
		return false;
	if ((granularity && !atlas_set_granularity(&options, granularity, err)) ||
	    (range && !atlas_set_range(&options, range, err)) ||
	    !open_sight(answer, at, true, &sight, err))
		return false;
	good = atlas_init(&atlas, &sight, &options, err);
	if (good) {
		atlas_write_json(&atlas, answer->sink);
		atlas_fini(&atlas);
	} else if (err->kind == ERR_USAGE) {
		answer->reply->refusal = REFUSAL_NOT_RECORDED;
	}
	sight_close(&sight);
	return good;
}

bool answer_moments_active(struct answer *answer, struct err *err)
{
	struct active_options options = { 0 };
	struct active active;
	struct sight sight;
	const char *at;

	if (!take_at(answer, &at, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &options.rows_max, err) ||
	    !params_take_bytes(&answer->params, "min-bytes", &options.bytes_min, err) ||
	    !open_sight(answer, at, false, &sight, err))
		return false;
	sight_read(&sight, NULL);
	sight_warn_of_space(&sight);
	active_init(&active, &sight, &options);
	active_write_json(&active, answer->sink);
	active_fini(&active);
	sight_close(&sight);
	return true;
}

bool answer_moments_reconcile(struct answer *answer, struct err *err)
{
	static const char *const moments[] = { "peak", "exit", NULL };
	struct balance balance;
	struct sight sight;
	uint64_t rows;
	int moment = 0;
	bool good;

	if (!params_take_word(&answer->params, "at", moments, &moment, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &rows, err) ||
	    !open_sight(answer, NULL, false, &sight, err))
		return false;
	good = balance_init(&balance, &sight, moment == 0, err);
	if (good) {
		balance_write_json(&balance, answer->sink, rows);
		balance_fini(&balance);
	} else if (err->kind == ERR_USAGE) {
		answer->reply->refusal = REFUSAL_NOT_RECORDED;
	}
	sight_close(&sight);
	return good;
}
