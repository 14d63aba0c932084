// strip: a trace without what should not be passed on.
//
// The trace is rewritten, definition by definition, so what was left out is nowhere in the new
// file, and not only out of sight. For example with --addresses the block at 0x55d0c0a012a0 becomes
// the same number wherever it is: equal stays equal, and where things were is gone.
#include "cli/args.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/interrupt.h"
#include "trace/fresh.h"
#include "trace/rewrite.h"

struct strip {
	struct rewrite_options options;
	const char *output;
	bool force;
};

static const struct option_row strip_options[] = {
	{ ARGS_TEXT(strip, output), 'o', "output", "OUT", "the trace to make" },
	{ ARGS_FLAG(strip, force), 'f', "force", NULL, "overwrite OUT" },
	{ ARGS_FLAG(strip, options.arguments), 0, "arguments", NULL, "without command lines" },
	{ ARGS_FLAG(strip, options.paths), 0, "paths", NULL,
	  "files by their names alone; no folder, no host" },
	{ ARGS_FLAG(strip, options.addresses), 0, "addresses", NULL,
	  "blocks by numbers, code by its place in its file; no virtual memory" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_strip = {
	.name = "strip",
	.brief = "a trace without arguments and paths, to be passed on",
	.usage = "FILE -o OUT [--arguments] [--paths] [--addresses]",
	.text = "Without --arguments, --paths or --addresses the first two are left out. What\n"
		"messages tell goes with them. With --addresses equal addresses stay equal, so\n"
		"all figures of heaps stay; map, pins and reconcile have nothing to go by.\n"
		"Names of threads, marks, functions and build-ids stay, and so do bundled\n"
		"symbols: look at tidemark dump OUT before you pass it on.\n",
	.examples = "  tidemark bundle app.tide && tidemark strip app.tide -o public.tide\n",
	.options = strip_options,
	.run = run,
};

// Without a choice what names people and folders goes, and addresses stay.
static bool write_stripped(struct strip *strip, struct rewrite_result *result, struct err *err)
{
	struct rewrite_options *options = &strip->options;
	struct fresh fresh = { .fd = -1 };
	bool ok = fresh_open(&fresh, strip->output, strip->force, err);

	ASSERT(strip->output && options->inputs_count == 1);
	if (!options->arguments && !options->paths && !options->addresses)
		options->arguments = options->paths = true;
	options->stopped = interrupt_came;
	interrupt_watch();
	ok = ok &&
	     (rewrite_traces(options, fresh.fd, result, err) || fresh_name_failure(&fresh, err));
	interrupt_leave();
	ok = ok && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return ok;
}

static int run(int argc, char **argv)
{
	struct rewrite_input input = { 0 };
	struct strip strip = { .options = { .inputs = &input, .inputs_count = 1 } };
	struct rewrite_result result;
	struct err err = { 0 };
	bool ok;
	struct args args;

	args_init(&args, &cmd_strip, argc, argv);
	args.into = &strip;
	args.operand = &input.path;
	if (args_next(&args) != ARGS_END || !args_need(&args, input.path, "a trace FILE") ||
	    !args_need(&args, strip.output, "-o OUT: the trace to make"))
		return args.exit_code;
	// `result` is only looked at where all went well.
	ok = write_stripped(&strip, &result, &err);
	if (!ok && err.kind == ERR_STOPPED)
		interrupt_end();
	if (!ok)
		return args_fail(&cmd_strip, &err);
	if (result.damaged)
		args_warn(&cmd_strip, "the trace is not complete: what is whole of it is there");
	if (result.vm_left_out)
		args_warn(&cmd_strip, "%s calls on virtual memory are left out",
			  STR_COUNT(result.vm_left_out));
	if (strip.options.paths && result.unbundled)
		args_warn(
			&cmd_strip,
			"%s file%s of code %s no symbols in the trace and no path any more: where "
			"they are not known by build-id, functions have no names (before: tidemark "
			"bundle %s)",
			STR_COUNT(result.unbundled), result.unbundled == 1 ? "" : "s",
			result.unbundled == 1 ? "has" : "have", input.path);
	printf("%s: %s events\n", strip.output, STR_COUNT(result.events));
	return EXIT_ANSWERED;
}
