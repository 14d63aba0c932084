// opened: a trace that is open to be asked: its reader, its names and its index.
//
//     opened_open          the trace and its definitions, and what its frames are called
//       opened_index       its index, built where there is none; needed for windows
//       query_context_open with this in their options borrow it: any number, one after the other
//     opened_close
//
// Whoever asks once (a command) has no use for it by itself: a query context opens one of its own.
// Whoever asks often (the viewer) keeps one, and with it the names that were looked
// up and the pages of the index that were read. One thread at a time.
#pragma once

#include "engine/window.h"
#include "report/ask/labels.h"

// All but the path are owned.
struct opened {
	const char *path; // borrowed
	struct reader *reader;
	struct symbols *symbols;
	struct names *names;
	struct window *window; // NULL before opened_index
	struct labels *labels; // of the last question, for the next one
	uint64_t labels_most;  // bytes of them; more are not kept. The owner sets it
};

// `path` is borrowed. False on a trace that cannot be read; a damaged tail is none of that.
bool opened_open(struct opened *opened, const char *path, const struct symbols_options *symbols,
		 struct err *err);

// Does nothing where the index is open.
bool opened_index(struct opened *opened, const struct window_options *options, struct err *err);

// Open the index if there is one; else `window` stays NULL.
void opened_existing_index(struct opened *opened, const struct window_options *options);

// The same trace once more, for another thread, with the index of `from`, which is open and is
// borrowed: close it last.
bool opened_share(struct opened *opened, const struct opened *from,
		  const struct symbols_options *symbols, struct err *err);

// From now on long work on it asks `stop` now and then: once that says true, questions fail, or
// what they find is not to be believed. What is opened later does not ask.
void opened_stop(struct opened *opened, bool (*stop)(void *context), void *context);

// Labels of its stacks, in which nothing was asked for yet: those that a question has given back,
// or new ones. Given back they are freed, or kept for the next question.
struct labels *opened_labels(struct opened *opened, enum labels_kind kind);
void opened_labels_back(struct opened *opened, struct labels *labels); // NULL is allowed

void opened_close(struct opened *opened); // accepts { 0 }
