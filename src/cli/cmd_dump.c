// dump: a trace as text, and text as a trace.
//
// What asm_dump writes, asm_read reads: dump, edit, assemble gives a trace again, so a case that is
// hard to record is written by hand. Filters choose among events; definitions
// are printed as they are there.
#include "cli/query_options.h"

#include "base/mem.h"
#include "os/file.h"
#include "trace/asm.h"
#include "trace/fresh.h"

// What is asked, what is open meanwhile, and what was found.
struct dump {
	struct query_options query;
	struct query_context asked;
	bool assemble;
	struct asm_options options;
	bool filtered;    // by more than the time
	uint64_t matched; // events
};

static const struct option_row dump_options[] = {
	{ QUERY_OPTIONS_OUTPUT, 'o', "output", "FILE", "write to FILE instead of standard output" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ ARGS_FLAG(dump, assemble), 'a', "assemble", NULL,
	  "the other way: FILE is text, make a trace of it" },
	{ ARGS_COUNT(dump, options.count), 'n', "count", "N", "only the first N events and notes" },
	{ ARGS_CLEAR(dump, options.definitions), 0, "items", NULL,
	  "events and notes alone, no definitions" },
	{ ARGS_CLEAR(dump, options.items), 0, "definitions", NULL,
	  "definitions alone: processes, threads, modules, frames, stacks" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_dump = {
	.name = "dump",
	.brief = "print a trace as text, or make a trace of such text",
	.usage = "FILE [options]",
	.text = "Prints everything that is in a trace, one definition or event a line. The\n"
		"text can be edited and assembled to a trace again. With filters, of the events\n"
		"only those that begin or end a selected allocation, and failed calls; --from and\n"
		"--to themselves are part of what they limit.",
	.examples = "  tidemark dump app.tide | less\n"
		    "  tidemark dump app.tide --items --from 2s --to 2.001s\n"
		    "  tidemark dump app.tide --items --size 40 --frame '^parse_'\n"
		    "  tidemark dump --assemble small.txt -o small.tide\n",
	.options = dump_options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};

// A mistake in the text names the text and its line, one of writing the file.
static bool assemble(const struct dump *dump, struct err *err)
{
	struct file_view text = { 0 };
	struct fresh fresh = { .fd = -1 };
	bool ok = file_view_open(&text, dump->query.path, err) ||
		  err_wrap(err, "%s", dump->query.path);

	ASSERT(dump->query.path && dump->query.output);
	if (ok && fresh_open(&fresh, dump->query.output, dump->query.force, err)) {
		ok = asm_read((const char *)text.bytes, text.size, fresh.fd, err) ||
		     (err->kind == ERR_IO ? fresh_name_failure(&fresh, err)
					  : err_wrap(err, "%s", dump->query.path));
		ok = ok && fresh_keep(&fresh, err);
	} else {
		ok = false;
	}
	fresh_close(&fresh);
	file_view_close(&text);
	return ok;
}

// Called by asm_dump for each event in the time that was asked for. A moment that is exact (a mark)
// cuts by the event's number, since several events may have its time.
static bool wants(void *context, const struct trace_event *event)
{
	struct dump *dump = context;
	const struct selection *selection = &dump->asked.selection;

	// Times are compared already; marks stand between two events.
	if (selection->window[0].exact && event->number < selection->window[0].number)
		return false;
	// The first event at the mark itself is not before it.
	if (selection->window[1].exact && event->number >= selection->window[1].number)
		return false;
	if (dump->filtered && !selection_has_event(selection, event))
		return false;
	dump->matched++;
	return true;
}

// What the filters make of this trace.
static bool select_events(struct dump *dump, struct err *err)
{
	const struct query_context *asked = &dump->asked;
	// Times are compared by asm_dump, event numbers and filters by wants(). What is filtered
	// beyond the time takes a reading of the trace first, for the end of a block is selected by
	// its beginning.
	const struct query *query = &asked->selection.query;

	dump->options.from_ns = asked->from_ns;
	dump->options.to_ns = asked->to_given ? asked->to_ns : UINT64_MAX;
	dump->options.wants = wants;
	dump->options.context = dump;
	dump->filtered = query_narrows(query) || query->layers;
	return !dump->filtered || query_context_select_events(&dump->asked, err);
}

static bool write(void *context, struct sink *sink, struct err *err)
{
	struct dump *dump = context;

	ASSERT(dump->options.wants == wants); // by select_events
	reader_rewind(dump->asked.reader);
	return asm_dump(dump->asked.reader, &dump->options, sink, err);
}

// The trace is read twice where filters are given: first for what they select, then to be printed.
static bool disassemble(struct dump *dump, struct err *err)
{
	const struct query_context_options context =
		query_options_context(&cmd_dump, &dump->query, &query_context_events_rules);
	bool ok;

	if (!query_options_can_write(&dump->query, err) ||
	    !query_options_open(&context, &dump->asked, err))
		return false;
	ok = select_events(dump, err) && query_options_write(&dump->query, write, dump, err);
	if (ok) {
		query_context_caution(&dump->asked, false);
		query_context_matched(&dump->asked, dump->matched);
		query_options_warn(&cmd_dump, &dump->asked, NULL);
	}
	query_context_close(&dump->asked);
	return ok;
}

static int answer(struct args *args, struct dump *dump)
{
	struct err err = { 0 };
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (query_options_take(args, &dump->query, id) != PRINT_OPTIONS_TAKEN)
			return args->exit_code;
	if (!args_need(args, dump->query.path,
		       dump->assemble ? "a FILE of text" : "a trace FILE") ||
	    !filters_check(args, &dump->query.words))
		return args->exit_code;
	if (dump->assemble && !dump->query.output) {
		args_mistake(args, "--assemble needs -o FILE: the trace to make");
		return args->exit_code;
	}
	if (dump->assemble ? !assemble(dump, &err) : !disassemble(dump, &err))
		return args_fail(&cmd_dump, &err);
	return EXIT_ANSWERED;
}

static int run(int argc, char **argv)
{
	struct dump dump = { .options = asm_dump_all() };
	struct args args;
	int code;

	args_init(&args, &cmd_dump, argc, argv);
	args.into = &dump;
	code = answer(&args, &dump);
	query_options_fini(&dump.query);
	return code;
}
