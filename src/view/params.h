// params: what is after the '?' of a request.
//
//     params_parse
//       params_take, params_take_…    one by one, by name
//     params_check_taken              whatever nobody took is a mistake
//     params_fini
//
// A misspelt filter must not become a wrong answer, so unknown names, and names given twice that
// have one value, are mistakes. Values are bytes, any but NUL.
//
// For example "from=1s&stack=a%2Bb&stack=c" has three: from, and stack twice, which is a filter
// that may come more than once.
#pragma once

#include "report/ask/selection.h"

// More are refused: nobody has so many filters.
enum { PARAMS_MAX = 128 };

struct params {
	struct params_one {
		const char *name, *value; // in `text`
		bool taken;
	} list[PARAMS_MAX];
	// In the order in which they were given.
	size_t count;
	char *text; // owned
};

// `query` as it was sent; NULL and "" are none. Too many: ERR_LIMIT; what is no encoding:
// ERR_USAGE.
bool params_parse(struct params *params, const char *query, struct err *err);
void params_fini(struct params *params); // accepts { 0 }

// The value of a name that may be given once: *value is NULL if it was not given. ERR_USAGE: twice.
bool params_take(struct params *params, const char *name, const char **value, struct err *err);

// The same as a number between bounds, a size, one of some words (NULL-terminated; its index), or
// a flag: "1" or "0". Not given: unchanged.
bool params_take_number(struct params *params, const char *name, uint64_t least, uint64_t most,
			uint64_t *number, struct err *err);
bool params_take_bytes(struct params *params, const char *name, uint64_t *bytes, struct err *err);
bool params_take_word(struct params *params, const char *name, const char *const *words, int *index,
		      struct err *err);
bool params_take_flag(struct params *params, const char *name, bool *flag, struct err *err);

// All filters of the command line, but the kinds in `without` (bits: 1 << enum selection_kind). The
// words borrow from `params`.
bool params_take_filters(struct params *params, unsigned without, struct selection_words *words,
			 struct err *err);

// ERR_USAGE: some name was not taken.
bool params_check_taken(const struct params *params, struct err *err);
