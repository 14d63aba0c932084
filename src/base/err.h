// err: why something failed, in one line a person can act on.
//
// Host functions that can fail return bool and take a `struct err *` last. Messages are lower
// case, have no full stop, and say what to do when we know it. The one who knows the path adds
// the path; the one who knows the offset adds the offset. Only cli/ prints and only cli/ exits.
//
// For example, a function that opens a file says "cannot open a.tide: No such file or directory"
// with err_errno, and one that called it puts "second trace: " before it with err_wrap.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum err_kind {
	// What a zeroed one has.
	ERR_NONE,
	ERR_USAGE,   // the user asked for something we do not do
	ERR_IO,      // the system refused: open, read, write, map
	ERR_FORMAT,  // the trace is damaged, or is not a trace
	ERR_LIMIT,   // a budget the user gave would be exceeded
	ERR_STOPPED, // the user wanted it to stop
	ERR_INDEX,   // an index was damaged, and is forgotten: the same question builds it again
};

// On the caller's stack; nothing is owned. A longer message is cut.
struct err {
	enum err_kind kind;
	char text[512];
};

// Set kind and text. Always false, so that `return err_set(…)` is one line.
// An argument may be the text that is there: it is read before it is written over.
bool err_set(struct err *err, enum err_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// Like err_set, with ": " and the text of `number` (an errno) appended. Kind ERR_IO. Always false.
bool err_errno(struct err *err, int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// The system's text for an errno: in `buffer`, or lasting.
const char *err_text(int number, char *buffer, size_t size);

// Put "context: " before the text already there. Always false.
// The kind stays as it was.
bool err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
