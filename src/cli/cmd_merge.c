// merge: several traces side by side in one.
//
// For example `merge client.tide server.tide --offset -120ms`: the option belongs to the FILE
// before it, whose events are moved to 120 ms earlier. Without it traces are as far apart as their
// wall clocks said; with --together all begin at 0.
#include "cli/args.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/interrupt.h"
#include "engine/moment.h"
#include "trace/fresh.h"
#include "trace/rewrite.h"

enum {
	MERGE_OFFSET = 1,
};

struct merge {
	struct rewrite_input *inputs;
	size_t count, capacity;
	const char *output;
	bool force, together;
};

static const struct option_row merge_options[] = {
	{ ARGS_TEXT(merge, output), 'o', "output", "OUT", "the trace to make" },
	{ ARGS_FLAG(merge, force), 'f', "force", NULL, "overwrite OUT" },
	{ MERGE_OFFSET, 0, "offset", "TIME",
	  "move the clock of the FILE before it by so much (-1.5s: it was ahead)" },
	{ ARGS_FLAG(merge, together), 0, "together", NULL,
	  "let all begin at one time, whatever their clocks say" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_merge = {
	.name = "merge",
	.brief = "put traces of several machines or runs side by side, or rotated files in one",
	.usage = "FILE... -o OUT [options]",
	.text = "Processes, stacks and items of all are in OUT, by time: as far apart as their\n"
		"clocks say. Within each trace the order stays as it is; between two it is as\n"
		"good as those clocks.\n"
		"The files of one recording (record --rotate), given together, are joined: OUT\n"
		"is the recording as it would be in one file.\n",
	.examples = "  tidemark merge client.tide server.tide --offset -120ms -o both.tide\n"
		    "  tidemark merge app.*.tide app.tide -o whole.tide\n"
		    "  tidemark merge monday.tide tuesday.tide --together -o days.tide\n",
	.options = merge_options,
	.run = run,
};

static bool take_option(struct args *args, int id, struct merge *merge)
{
	switch (id) {
	case MERGE_OFFSET:
		// Times in `--offset` are signed ns: -120ms is -120,000,000.
		if (merge->count == 0)
			return args_mistake(args, "--offset comes after the FILE that it is of");
		return moment_parse_duration(args->value,
					     &merge->inputs[merge->count - 1].offset_ns) ||
		       args_mistake(args, "\"%s\" is not a time (try: 120ms, -1.5s)", args->value);
	case ARGS_OPERAND:
		*MEM_ADD(merge->inputs, merge->count, merge->capacity) =
			(struct rewrite_input){ .path = args->value };
		return true;
	default:
		return false;
	}
}

// Who may read the first input may read the output; it takes its name when it is whole.
static bool write_merged(const struct merge *merge, struct rewrite_result *result, struct err *err)
{
	const struct rewrite_options options = {
		.inputs = merge->inputs,
		.inputs_count = merge->count,
		.by_wall_clock = !merge->together,
		.stopped = interrupt_came,
	};
	struct fresh fresh = { .fd = -1 };
	bool ok = fresh_open_of(&fresh, merge->output, merge->force, merge->inputs[0].path, err);

	ASSERT(merge->count > 1 && merge->output);
	interrupt_watch();
	ok = ok &&
	     (rewrite_traces(&options, fresh.fd, result, err) || fresh_name_failure(&fresh, err));
	interrupt_leave();
	ok = ok && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return ok;
}

static void tell(const struct merge *merge, const struct rewrite_result *result)
{
	ASSERT(merge->count > 1);
	if (result->no_clock)
		args_warn(&cmd_merge,
			  "a trace does not say when it began: it begins with the first");
	if (result->damaged)
		args_warn(&cmd_merge, "a trace is not complete: what is whole of it is there");
	if (result->labels_differ)
		args_warn(&cmd_merge,
			  "labels differ: those of the new trace have the values of all, and do "
			  "not say which process has which (to keep them apart, push each trace)");
	if (result->parts_from_ns)
		args_warn(&cmd_merge,
			  "the first parts of the recording are missing: what came before %s is in "
			  "no file, of it the calls that began what lived then alone",
			  STR_DURATION(result->parts_from_ns));
	if (result->parts_go_on)
		args_warn(&cmd_merge,
			  "the recording goes on in a file beside these that was not given");
	printf("%s: %s events of %zu traces\n", merge->output, STR_COUNT(result->events),
	       merge->count);
}

static int answer(struct args *args, struct merge *merge)
{
	struct rewrite_result result;
	struct err err = { 0 };
	bool ok;
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (!take_option(args, id, merge))
			return args->exit_code;
	// The second FILE is asked for, since one alone is no merge.
	if (!args_need(args, merge->count > 1 ? merge->inputs[1].path : NULL,
		       "two FILEs or more") ||
	    !args_need(args, merge->output, "-o OUT: the trace to make"))
		return args->exit_code;
	ok = write_merged(merge, &result, &err);
	if (ok)
		tell(merge, &result);
	if (!ok && err.kind == ERR_STOPPED)
		interrupt_end();
	return ok ? EXIT_ANSWERED : args_fail(&cmd_merge, &err);
}

static int run(int argc, char **argv)
{
	struct merge merge = { 0 };
	struct args args;
	int code;

	args_init(&args, &cmd_merge, argc, argv);
	args.into = &merge;
	code = answer(&args, &merge);
	mem_free(merge.inputs);
	return code;
}
