// What launching has in common on all systems: finding the program, creating the output, and what
// the result says once the collector has closed the trace.
#include "launch/launch_own.h"

#include "base/mem.h"
#include "launch/output.h"
#include "launch/program.h"
#include "os/file.h"

#include <stdarg.h>
#include <string.h>

// `tell` is the caller's: a line without a break, and the command line decides where it is shown.
void launch_tell(const struct launch_options *options, const char *format, ...)
{
	struct str line = { 0 };
	va_list list;

	va_start(list, format);
	str_vformat(&line, format, list);
	va_end(list);
	options->tell(str_get(&line));
	str_fini(&line);
}

void launch_begin(struct launch_result *result)
{
	memset(result, 0, sizeof *result);
	// What it is until something better, or worse, is known: each step sets it where it fails.
	result->end = LAUNCH_FAILED;
	result->whole = true;
}

bool launch_find(const struct launch_options *options, struct launch_result *result,
		 const char *search, struct str *program, struct err *err)
{
	ASSERT(options->argv[0] != NULL && program->length == 0);
	switch (program_find(options->argv[0], search, program, err)) {
	case PROGRAM_MISSING:
		result->end = LAUNCH_NOT_FOUND;
		return false;
	case PROGRAM_REFUSED:
		result->end = LAUNCH_NOT_EXECUTABLE;
		return false;
	case PROGRAM_FOUND:
		break;
	}
	return true;
}

int launch_create_output(const struct launch_options *options, struct launch_result *result,
			 const char *program, uint64_t pid, struct output_made *made,
			 struct err *err)
{
	struct output_options output = {
		.pattern = options->output_pattern,
		.program = file_name(program),
		.pid = pid,
		.force = options->force,
		// Only a program that we start has our standard streams.
		.started = options->attach_pid == 0 ? program : NULL,
		.args = options->argv,
	};
	// `made` says whether the file is new, which decides whether it is removed when the start
	// fails.
	int fd = output_create(&output, &result->path, made, err);

	ASSERT(fd >= 0 || !made->created);
	if (fd < 0)
		str_clear(&result->path);
	return fd;
}

void launch_describe_options(const struct launch_options *options, struct trace_info *info)
{
	info->tool = (char *)options->tool;
	info->options = (char *)options->options_text;
	info->labels = (char *)options->labels;
	info->sample_bytes = options->sample_bytes;
}

void launch_close(struct launch_result *result, const struct collect_message *message)
{
	ASSERT(message->kind == COLLECT_DONE && !result->closed);
	result->closed = true;
	result->summary = message->summary;
	// A trace may be closed in order and lack events: --strict asks for both.
	if (!message->summary.complete || message->summary.events_lost > 0)
		result->whole = false;
}

void launch_result_fini(struct launch_result *result)
{
	str_fini(&result->path);
	str_fini(&result->stood);
}
