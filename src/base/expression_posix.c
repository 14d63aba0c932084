// By the C library's own regular expressions, so an expression means what it means to grep -E
// (expression_win32.cpp has those of the C++ library). For example "^std::" matches what begins so,
// and "alloc" every text that has it anywhere; case matters.
#include "base/expression.h"

#include "base/mem.h"

#include <regex.h>

struct expression {
	regex_t regex;
};

struct expression *expression_new(const char *text, char *why, size_t size)
{
	struct expression *expression = mem_alloc(1, sizeof *expression);
	int number = regcomp(&expression->regex, text, REG_EXTENDED | REG_NOSUB);

	if (number == 0)
		return expression;
	regerror(number, &expression->regex, why, size);
	mem_free(expression);
	return NULL;
}

void expression_free(struct expression *expression)
{
	if (!expression)
		return;
	regfree(&expression->regex);
	mem_free(expression);
}

bool expression_matches(const struct expression *expression, const char *text)
{
	// Only whether it matches: REG_NOSUB spares the places.
	return regexec(&expression->regex, text, 0, NULL, 0) == 0;
}
