// refusal: why a request is not answered, as docs/viewer.md lists it.
//
// For example a question about virtual memory, of a trace that has none, is REFUSAL_NOT_RECORDED:
// status 409, and {"error": "the trace has no calls on virtual memory", "kind": "not-recorded", …}.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum refusal {
	// Answered.
	REFUSAL_NONE,
	// The question is wrong: a parameter, a filter.
	REFUSAL_USAGE,
	// The gate's (gate.h), with the two below and HOST.
	REFUSAL_TOKEN,
	REFUSAL_ORIGIN,
	REFUSAL_PATH,
	REFUSAL_METHOD,
	// The trace has nothing of the kind: the page shows no such tab.
	REFUSAL_NOT_RECORDED,
	// The file is another one than when it was opened.
	REFUSAL_GONE,
	// The answer, or the work for it, needs more memory than it may have.
	REFUSAL_LIMIT,
	// Too long, or with too many parameters.
	REFUSAL_QUERY,
	REFUSAL_HOST,
	// The trace is damaged, or could not be read.
	REFUSAL_INTERNAL,
	REFUSAL_DATABASE,
	// It may be asked again.
	REFUSAL_BUSY,
	REFUSAL_SUPERSEDED, // BUSY for good: a newer question of its lane came
	// How many there are.
	REFUSALS,
};

// Of HTTP; 200 for REFUSAL_NONE.
unsigned refusal_status(enum refusal refusal);

// What an error of the floors below is to the page.
// For example ERR_LIMIT is REFUSAL_LIMIT; what is no mistake of who asks is REFUSAL_INTERNAL.
enum refusal refusal_of(const struct err *err);

// The answer's body. `text` is one line.
void refusal_write(enum refusal refusal, const char *text, struct str *body);
