// refusal: why a request is not answered, as docs/viewer.md lists it.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum refusal {
	REFUSAL_NONE,
	REFUSAL_USAGE,
	REFUSAL_TOKEN,
	REFUSAL_ORIGIN,
	REFUSAL_PATH,
	REFUSAL_METHOD,
	REFUSAL_NOT_RECORDED,
	REFUSAL_GONE,
	REFUSAL_LIMIT,
	REFUSAL_QUERY,
	REFUSAL_HOST,
	REFUSAL_INTERNAL,
	REFUSAL_DATABASE,
	REFUSAL_BUSY,
	REFUSAL_SUPERSEDED, // BUSY for good: a newer question of its lane came
	REFUSALS,
};

// Of HTTP; 200 for REFUSAL_NONE.
unsigned refusal_status(enum refusal refusal);

// What an error of the floors below is to the page.
enum refusal refusal_of(const struct err *err);

// The answer's body. `text` is one line.
void refusal_write(enum refusal refusal, const char *text, struct str *body);
