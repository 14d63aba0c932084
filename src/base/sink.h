// sink: where a report goes, a file or memory.
//
// Errors are sticky: after one, writing does nothing. Ask sink_ok once, at the end.
//
// For example a report writes a thousand lines with sink_format and asks sink_ok once: false with
// "cannot write standard output: No space left on device", whichever line it was.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdio.h>

struct sink {
	FILE *file;       // borrowed; NULL when `str` is used
	struct str *str;  // borrowed
	int error;        // errno of the first failure, 0 for none
	const char *name; // of the file, for messages; borrowed; NULL: it has none
};

// Borrows the file or string; nothing is to be closed. No other thread may use the file meanwhile.
struct sink sink_to_file(FILE *file);
struct sink sink_to_str(struct str *str);

// The operating system's part: fwrite, without its lock, which costs more than a few bytes.
bool sink_put(FILE *file, const void *bytes, size_t length);

// Its part after a failure: where nobody reads what we write, and no signal has ended us, it does
// not return. That is for standard output alone.
void sink_failed(const FILE *file);

// Write bytes; text up to its NUL; text as printf would.
// None of these returns whether it was written: that is what sink_ok is for.
void sink_write(struct sink *sink, const void *bytes, size_t length);
void sink_text(struct sink *sink, const char *text);
void sink_format(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Whether anything was written to standard output by any sink.
bool sink_has_output(void);

// Write what stands for '<', '>', '&' or '"' in XML and HTML. False: `c` is none of these, and
// nothing is written.
bool sink_entity(struct sink *sink, char c);

// Flush, and say whether everything arrived.
// A sink to memory is always good.
bool sink_ok(struct sink *sink, struct err *err);
