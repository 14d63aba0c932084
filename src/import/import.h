// import: recordings of other programs as traces.
//
// A format is a row of a table: a name, how its beginning looks, and what reads it. Input is read
// once and as a stream; memory grows with what is defined and what lives, not with the events.
#pragma once

#include "base/str.h"
#include "import/intake.h"
#include "import/series.h"
#include "import/source.h"

#include <stdio.h>

// What a format's reader works with.
// Made for each import; `source` is another one for each input, all else is one for the trace.
struct import_work {
	struct source *source;
	struct intake *intake;
	struct str *remarks; // lines for the user: what was left out, or assumed
	const struct import_options *options;
	struct series *series; // of formats of snapshots
	size_t input;          // which of the options' is read
	int fd;                // of the trace
	bool cut;              // the input ended within a line, or a record
	uint64_t read;         // bytes, if not those that the source has read
};

// `is` sees at most SOURCE_HEAD_BYTES, unpacked, with a NUL after them. Formats are asked in the
// order of import_formats, so a sign that is vague comes late.
struct import_format {
	const char *name;
	bool snapshots; // of sums: several inputs are a series

	// Whether input that begins so is of this format.
	bool (*is)(const char *head, size_t length);

	// Reads all of it. A failure says why, without the line.
	// True also where the user stopped it, or where the input was cut and that was said
	// (`cut`).
	bool (*read)(struct import_work *work, struct err *err);
};

// A stream at its beginning, open for reading; it is the caller's to close. Pipes are good.
struct import_input {
	FILE *file;
	const char *path; // for messages
};

// All is borrowed until import_trace returns. `stopped` and `progress` have the same `context`, and
// are asked every few thousand lines.
struct import_options {
	const struct import_input *inputs; // several only of snapshots
	size_t inputs_count;
	const struct import_format *format; // NULL: the beginning says
	bool (*stopped)(void *context);     // may be NULL
	void (*progress)(void *context, uint64_t read);
	void *context;
};

struct import_result {
	const struct import_format *format;
	uint64_t events, bytes; // bytes as they were read
	char *remarks;          // lines; owned by the caller (mem_free); may be ""
};

// For `--format NAME` and for the help.
extern const struct import_format *const import_formats[]; // ends with NULL

// Make a trace in the file of the descriptor. False: nothing in it is of use.
bool import_trace(const struct import_options *options, int fd, struct import_result *result,
		  struct err *err);

// For readers: the next line; false at the end and where the user stopped it.
// `line` has a NUL in place of its end, and may be written to; it is valid until the next one.
bool import_line(struct import_work *work, char **line, size_t *length);

// For readers: the line could not be read, as *err says. True: it is the last one and has no end,
// so the input was cut there, and what is before it counts.
bool import_was_cut(struct import_work *work, struct err *err);

// The same for input that is no lines: it ends within a record; what is before it counts.
void import_end_here(struct import_work *work);

// For readers that need all of it at once: up to 1 GiB, or what came before the user stopped it.
bool import_content(struct import_work *work, struct str *content, struct err *err);

// For readers of no lines, now and then: tells the progress; whether the user stopped it.
bool import_was_stopped(const struct import_work *work);
