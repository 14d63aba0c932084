// trim: the trace of a window, which knows what lived when it began.
//
// For example `trim app.tide --from 10s --to 20s`: of two million events before 10 s those are kept
// that began one of the, say, 5,000 blocks that live at 10 s, with their old times; all that
// happened from 10 s to 20 s follows. So levels, frees and lifetimes read as in the whole trace,
// and a mark says where the window begins.
#include "cli/query_options.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/interrupt.h"
#include "engine/replay/trim.h"
#include "report/ask/query_context.h"
#include "trace/fresh.h"
#include "trace/rewrite.h"

static const struct option_row trim_options[] = {
	{ QUERY_OPTIONS_OUTPUT, 'o', "output", "OUT", "the trace to make" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "overwrite OUT" },
	{ FILTERS_FIRST + SELECTION_FROM, 0, "from", "TIME",
	  "12.5s, 350ms, 50%, -5s (before the end), peak, peak+1ms, mark:NAME, mark:NAME#2, "
	  "mark:NAME+2s" },
	{ FILTERS_FIRST + SELECTION_TO, 0, "to", "TIME", "the same" },
	QUERY_OPTIONS_ROW_MEMORY("for the index, which --from peak needs (256M)"),
	PRINT_OPTIONS_ROW_PROGRESS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_trim = {
	.name = "trim",
	.brief = "the trace of a window alone",
	.usage = "FILE -o OUT [--from TIME] [--to TIME]",
	.text = "OUT holds what happened in the window. Of the time before it, it holds the calls\n"
		"that began what lives when the window begins, and those on virtual memory that\n"
		"made the address space what it is then, with their own times and stacks: levels,\n"
		"classes and frees are those of FILE.\n"
		"Times stay, too: 12.5s is the same moment in both.\n",
	.examples = "  tidemark trim app.tide --from 10s --to 20s -o part.tide\n"
		    "  tidemark trim app.tide --from mark:load --to mark:loaded -o load.tide\n",
	.options = trim_options,
	.run = run,
};

// `trim` says which earlier events are kept: those are copied by their numbers, the window's by
// time.
static bool write_window(const struct query_options *options, const struct query_context *asked,
			 const struct trim *trim, struct rewrite_result *result, struct err *err)
{
	// An edge is exact where it is a mark or the peak: several events may have its time, so the
	// cut is by the event's number. Elsewhere the time cuts, and a window without an end goes
	// to the last event.
	const struct moment_edge *to = &asked->selection.window[1];
	const struct rewrite_window window = {
		.from_number = trim->from_number,
		.from_ns = asked->from_ns,
		.to_number = to->exact ? to->number : UINT64_MAX,
		.to_ns = asked->to_given ? asked->to_ns : UINT64_MAX,
		.kept = trim->numbers,
		.kept_count = trim->count,
		.mark = MOMENT_TRIMMED,
	};
	const struct rewrite_input input = { .path = options->path };
	const struct rewrite_options rewrite = {
		.inputs = &input,
		.inputs_count = 1,
		.window = &window,
		.stopped = interrupt_came,
	};
	struct fresh fresh = { .fd = -1 };
	bool ok = fresh_open_of(&fresh, options->output, options->force, options->path, err);

	ASSERT(options->output);
	ok = ok &&
	     (rewrite_traces(&rewrite, fresh.fd, result, err) || fresh_name_failure(&fresh, err));
	ok = ok && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return ok;
}

// The trace is read once for what lived at the window's beginning, then once more to be copied.
static bool trim_trace(const struct query_options *options, struct rewrite_result *result,
		       struct trim *trim, struct err *err)
{
	const struct query_context_options context =
		query_options_context(&cmd_trim, options, &query_context_events_rules);
	struct query_context asked = { 0 };
	struct progress progress;
	bool ok;

	// A name that is taken is a mistake that shows before the trace is read, not after.
	if (!query_options_can_write(options, err) || !query_options_open(&context, &asked, err))
		return false;
	interrupt_watch();
	progress_begin(&progress, options->print.progress, "reading", reader_bytes(asked.reader));
	trim_find(asked.reader, &asked.selection.window[0], &progress, trim);
	progress_end(&progress);
	ok = write_window(options, &asked, trim, result, err);
	interrupt_leave();
	query_context_close(&asked);
	return ok;
}

static int answer(struct args *args, struct query_options *options)
{
	struct rewrite_result result = { 0 };
	struct trim trim = { 0 };
	struct err err = { 0 };
	bool ok;

	// The window is checked with the other words; without one the whole trace is copied.
	if (!query_options_take_all(args, options) ||
	    !args_need(args, options->output, "-o OUT: the trace to make"))
		return args->exit_code;
	ok = trim_trace(options, &result, &trim, &err);
	if (ok && result.damaged)
		args_warn(&cmd_trim, "the trace is not complete: what is whole of it is there");
	if (ok)
		printf("%s: %s events, %s of them say what was there before\n", options->output,
		       STR_COUNT(result.events), STR_COUNT(trim.count));
	trim_fini(&trim);
	if (!ok && err.kind == ERR_STOPPED)
		interrupt_end();
	return ok ? EXIT_ANSWERED : args_fail(&cmd_trim, &err);
}

static int run(int argc, char **argv)
{
	struct query_options options = { 0 };
	struct args args;
	int code;

	args_init(&args, &cmd_trim, argc, argv);
	code = answer(&args, &options);
	query_options_fini(&options);
	return code;
}
