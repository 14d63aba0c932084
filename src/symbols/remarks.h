// remarks: what could not be used and why, one line each, for the reader of a report.
//
// Lines are kept in order and once each. There are at most REMARKS_MAX of them: where there would
// be more, the last one says that there are.
#pragma once

#include <stddef.h>

enum { REMARKS_MAX = 500 };

// Of a file, by its path, that is another one now: what to do is said with it.
#define REMARKS_CHANGED                                                                            \
	"%s has changed since the recording: its names are not used (record --bundle keeps them; " \
	"--symbols names a folder with the old file)"

// { 0 } is an empty list.
// What is in it may be printed as it is: one sentence a line, without a full stop.
struct remarks {
	char **lines; // owned
	size_t count, capacity;
};

void remarks_fini(struct remarks *remarks);

// Add a line, unless it is there already.
void remarks_add(struct remarks *remarks, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
