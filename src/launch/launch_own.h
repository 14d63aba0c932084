// launch, between its parts: what does not depend on the system (launch.c).
#pragma once

#include "launch/launch.h"
#include "launch/output.h"

#define LAUNCH_WAITING                                                      \
	"the program has ended; waiting for processes of it that live on, " \
	"or for the trace to be written (Ctrl-C ends the recording)"

// A line for the user, now, by options->tell. Without the line's end.
void launch_tell(const struct launch_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

// Nothing is known to be missing yet, and nothing was started.
void launch_begin(struct launch_result *result);

// The file that options->argv[0] stands for, into `program`. False: result->end and *err say why.
bool launch_find(const struct launch_options *options, struct launch_result *result,
		 const char *search, struct str *program, struct err *err);

// Create the output of a program that has that pid; its name becomes result->path. A descriptor,
// or -1.
int launch_create_output(const struct launch_options *options, struct launch_result *result,
			 const char *program, uint64_t pid, struct output_made *made,
			 struct err *err);

// What the trace says of our options: tool, options and labels. The texts are borrowed from
// `options`.
void launch_describe_options(const struct launch_options *options, struct trace_info *info);

// The collector has closed the trace: `message` is its COLLECT_DONE, of which the summary is
// copied.
void launch_close(struct launch_result *result, const struct collect_message *message);
