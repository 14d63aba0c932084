// import: a recording of another program as a trace.
//
// For example `ssh box cat malloc.jsonl.gz | tidemark import - -o box.tide`: the stream is unpacked
// and its beginning looked at by each format in turn, the first that knows it reads it, and the
// trace gets its name only when it is whole. With several inputs (snapshots of one program) the
// trace is their series.
#include "cli/args.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/interrupt.h"
#include "cli/print_options.h"
#include "import/import.h"
#include "os/file.h"
#include "trace/fresh.h"

#include <errno.h>
#include <string.h>

enum {
	IMPORT_FORMAT = 1,
};

// Inputs in the order of the command line. Several are a series of snapshots.
struct import {
	struct import_input *inputs;
	size_t inputs_count, inputs_capacity;
	const char *output;
	bool force;
	struct print_options print;
	struct progress progress;
	const struct import_format *format;
};

static const struct option_row import_options[] = {
	{ ARGS_TEXT(import, output), 'o', "output", "OUT", "the trace to make" },
	{ ARGS_FLAG(import, force), 'f', "force", NULL, "overwrite OUT" },
	{ IMPORT_FORMAT, 0, "format", "NAME",
	  "one of the formats above, whatever the input looks like" },
	PRINT_OPTIONS_ROW_PROGRESS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_import = {
	.name = "import",
	.brief = "make a trace of what another program has recorded",
	.usage = "FILE... -o OUT [options]",
	.text = "FILE is - for standard input, and may be packed by gzip or zstd. Its format is\n"
		"recognised by its content:\n"
		"  heaptrack   what heaptrack records, interpreted or raw\n"
		"  etl         VirtualAlloc and heaps, by Windows' own tracing (WPR, xperf)\n"
		"  pprof, heap-profile\n"
		"              what lives (Go, jemalloc, gperftools): several files are a series\n"
		"  massif, dhat, memcheck, lsan, memleak\n"
		"              Valgrind's tools, LeakSanitizer, bcc\n"
		"  perf, lttng probes on malloc, as perf script or babeltrace2 print them\n"
		"  mtrace      what glibc's mtrace(3) logs\n"
		"  memory_tracker, tracefrag, heaplog\n"
		"  csv         events as comma-separated values, with a header\n"
		"  jsonl       events as JSON objects, one a line\n"
		"Columns (or keys) are time_ns (or time_us, time_ms, time_s), op, address, size,\n"
		"old_address, thread, process, stack. What the input does not say is not made up:\n"
		"the trace says that it is absent, and so does every answer. docs/formats.md has\n"
		"a section for each format.\n",
	.examples = "  tidemark import heaptrack.app.4242.zst -o app.tide\n"
		    "  tidemark import malloc.csv -o app.tide\n"
		    "  ssh box cat /tmp/malloc.jsonl.gz | tidemark import - -o box.tide\n",
	.options = import_options,
	.run = run,
};

static bool take_format(struct args *args, struct import *import)
{
	const char *names[32];
	size_t count = 0;
	int index;

	for (; import_formats[count]; count++)
		names[count] = import_formats[count]->name;
	names[count] = NULL;
	if (!args_word(args, names, &index))
		return false;
	import->format = import_formats[index];
	return true;
}

static bool take_option(struct args *args, int id, struct import *import)
{
	switch (id) {
	case IMPORT_FORMAT:
		return take_format(args, import);
	case ARGS_OPERAND:
		*MEM_ADD(import->inputs, import->inputs_count, import->inputs_capacity) =
			(struct import_input){ .path = args->value };
		return true;
	default:
		return print_options_take(args, &import->print, id) == PRINT_OPTIONS_TAKEN;
	}
}

// `read` is in bytes as they lie there, packed or not: the unit of the whole.
static void show_progress(void *context, uint64_t read)
{
	progress_update(context, read);
}

// The lines of what was left out or assumed.
static void warn_lines(char *lines)
{
	char *rest = lines;

	for (char *end; (end = strchr(rest, '\n')) != NULL; rest = end + 1) {
		*end = '\0';
		args_warn(&cmd_import, "%s", rest);
	}
}

// `size` 0: not known (a pipe), and so no progress is shown.
static bool import_streams(struct import *import, uint64_t size, struct import_result *result,
			   struct err *err)
{
	const struct import_options options = {
		.inputs = import->inputs,
		.inputs_count = import->inputs_count,
		.format = import->format,
		.stopped = interrupt_came,
		.progress = size ? show_progress : NULL,
		.context = &import->progress,
	};
	struct fresh fresh = { .fd = -1 };
	bool ok;

	ASSERT(import->inputs_count > 0 && import->output);
	if (!fresh_open(&fresh, import->output, import->force, err))
		return false;
	progress_begin(&import->progress, import->print.progress, "importing", size);
	interrupt_watch();
	ok = import_trace(&options, fresh.fd, result, err) || fresh_name_failure(&fresh, err);
	interrupt_leave();
	progress_end(&import->progress);
	ok = ok && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return ok;
}

// Open one, and add its size, where it has one.
// The stream has a descriptor of its own, so that standard input is left open when it is closed.
static bool open_input(struct import_input *input, uint64_t *size, struct err *err)
{
	bool piped = strcmp(input->path, "-") == 0;
	int fd = piped ? 0 : file_open(input->path, FILE_READ);
	uint64_t own;

	ASSERT(!input->file);
	if (fd < 0)
		return err_errno(err, errno, "%s", input->path);
	if (!piped && file_look(input->path) == FILE_IS_FOLDER)
		err_set(err, ERR_IO, "%s: it is a folder", input->path);
	else if (!(input->file = file_stream_copy(fd, "rb")))
		err_errno(err, errno, "%s", input->path);
	if (file_is_regular(fd, &own))
		*size += own;
	if (!piped)
		file_close(fd);
	return input->file != NULL;
}

// Those that were opened are closed in any case.
static bool import_files(struct import *import, struct import_result *result, struct err *err)
{
	uint64_t size = 0;
	bool ok = true;

	for (size_t i = 0; i < import->inputs_count && ok; i++)
		ok = open_input(&import->inputs[i], &size, err);
	ok = ok && import_streams(import, size, result, err);
	for (size_t i = 0; i < import->inputs_count; i++)
		if (import->inputs[i].file)
			fclose(import->inputs[i].file);
	return ok;
}

static void tell(const struct import *import, const struct import_result *result)
{
	ASSERT(result->format);
	printf("%s: %s events of %s (%s)\n", import->output, STR_COUNT(result->events),
	       result->format->name, STR_BYTES(result->bytes));
}

static int answer(struct args *args, struct import *import)
{
	struct import_result result = { 0 };
	struct err err = { 0 };
	bool ok;
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (!take_option(args, id, import))
			return args->exit_code;
	if (!args_need(args, import->inputs_count ? import->inputs[0].path : NULL, "a FILE") ||
	    !args_need(args, import->output, "-o OUT: the trace to make"))
		return args->exit_code;
	ok = import_files(import, &result, &err);
	if (ok) {
		warn_lines(result.remarks);
		tell(import, &result);
	}
	mem_free(result.remarks);
	// The output has no name yet then (fresh.h), and who called us sees that it was a signal.
	if (!ok && err.kind == ERR_STOPPED)
		interrupt_end();
	return ok ? EXIT_ANSWERED : args_fail(&cmd_import, &err);
}

static int run(int argc, char **argv)
{
	struct import import = { 0 };
	struct args args;
	int code;

	args_init(&args, &cmd_import, argc, argv);
	args.into = &import;
	code = answer(&args, &import);
	mem_free(import.inputs);
	return code;
}
