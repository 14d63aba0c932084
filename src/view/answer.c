// What the answers share.
//
// An answer is a function from the parameters of a request to a document. For example
// "/api/growth?n=20&from=1s": growth takes `n` by answer_rows, answer_ask takes `from` as a filter,
// finds nothing left over, and opens a query context on the trace that the queue has open.
#include "view/answer.h"
#include "base/mem.h"

bool answer_refuse(struct answer *answer, enum refusal refusal, struct err *err, const char *text)
{
	ASSERT(refusal && text);
	answer->reply->refusal = refusal;
	return err_set(err, ERR_USAGE, "%s", text);
}

// 0 asks for all, which is never more than a page can hold.
bool answer_rows(struct answer *answer, uint64_t rows_default, uint64_t *rows, struct err *err)
{
	*rows = rows_default;
	if (!params_take_number(&answer->params, "n", 0, ANSWER_ROWS_MAX, rows, err))
		return false;
	if (*rows == 0)
		*rows = ANSWER_ROWS_MAX;
	return true;
}

struct query_context_options answer_options(const struct answer *answer,
					    const struct query_context_rules *rules)
{
	return (struct query_context_options){
		.rules = rules,
		.path = answer->query_queue->opened.path,
		.words = &answer->words,
		.opened = &answer->query_queue->opened,
		.window = answer->query_queue->window_options,
	};
}

// Whatever parameter is left by now is a mistake.
bool answer_ask(struct answer *answer, const struct query_context_rules *rules,
		struct query_context *asked, struct err *err)
{
	const struct query_context_options options = answer_options(answer, rules);

	ASSERT(rules);
	return params_take_filters(&answer->params, 0, &answer->words, err) &&
	       params_check_taken(&answer->params, err) && query_context_open(asked, &options, err);
}
