// What the answers share.
#include "view/answer.h"

bool answer_refuse(struct answer *answer, enum refusal refusal, struct err *err, const char *text)
{
	answer->reply->refusal = refusal;
	return err_set(err, ERR_USAGE, "%s", text);
}

bool answer_rows(struct answer *answer, uint64_t rows_default, uint64_t *rows, struct err *err)
{
	*rows = rows_default;
	if (!params_take_number(&answer->params, "n", 0, ANSWER_ROWS_MAX, rows, err))
		return false;
	if (*rows == 0)
		*rows = ANSWER_ROWS_MAX;
	return true;
}

bool answer_inquire(struct answer *answer, struct inquiry *inquiry, struct err *err)
{
	struct inquiry_options options = {
		.words = &answer->words,
		.opened = &answer->desk->opened,
		.window = answer->desk->window_options,
	};

	return params_take_filters(&answer->params, 0, &answer->words, err) &&
	       params_check_taken(&answer->params, err) && inquiry_open(inquiry, &options, err);
}
