// dump: a trace as text, and text as a trace.
#include "cli/chosen.h"
#include "cli/filters.h"

#include "os/file.h"
#include "trace/asm.h"
#include "trace/fresh.h"

#include <stdlib.h>
#include <string.h>

enum {
	DUMP_ASSEMBLE = 1,
	DUMP_OUTPUT,
	DUMP_FORCE,
	DUMP_COUNT,
	DUMP_ITEMS,
	DUMP_DEFINITIONS,
};

static const struct option_row dump_options[] = {
	{ DUMP_OUTPUT, 'o', "output", "FILE", "write to FILE instead of standard output" },
	{ DUMP_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ DUMP_ASSEMBLE, 'a', "assemble", NULL, "the other way: FILE is text, make a trace of it" },
	{ DUMP_COUNT, 'n', "count", "N", "only the first N events and notes" },
	{ DUMP_ITEMS, 0, "items", NULL, "events and notes alone, no definitions" },
	{ DUMP_DEFINITIONS, 0, "definitions", NULL,
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

struct dump {
	struct chosen chosen;
	bool assemble;
	struct asm_options options;
	bool filtered; // by more than the time
};

static bool take_option(struct args *args, int id, struct dump *dump)
{
	if (filters_take(args, &dump->chosen.words, id))
		return true;
	switch (id) {
	case ARGS_OPERAND:
		return args_operand(args, &dump->chosen.path);
	case DUMP_ASSEMBLE:
		dump->assemble = true;
		return true;
	case DUMP_OUTPUT:
		dump->chosen.output = args->value;
		return true;
	case DUMP_FORCE:
		dump->chosen.force = true;
		return true;
	case DUMP_COUNT:
		return args_count(args, &dump->options.count);
	case DUMP_ITEMS:
		dump->options.definitions = false;
		return true;
	case DUMP_DEFINITIONS:
		dump->options.items = false;
		return true;
	default:
		return false;
	}
}

static bool assemble(const struct dump *dump, struct err *err)
{
	struct file_view text = { 0 };
	struct fresh fresh = { .fd = -1 };
	bool ok = file_view_open(&text, dump->chosen.path, err) ||
		  err_wrap(err, "%s", dump->chosen.path);

	if (ok && fresh_open(&fresh, dump->chosen.output, dump->chosen.force, err)) {
		ok = asm_read((const char *)text.bytes, text.size, fresh.fd, err) ||
		     err_wrap(err, "%s", dump->chosen.path);
		ok = ok && fresh_keep(&fresh, err);
	} else {
		ok = false;
	}
	fresh_close(&fresh);
	file_view_close(&text);
	return ok;
}

static bool wants(void *context, const struct trace_event *event)
{
	const struct dump *dump = context;

	// Times are compared already; marks stand between two events.
	if (dump->chosen.window[0].exact && event->number < dump->chosen.window[0].number)
		return false;
	if (dump->chosen.window[1].exact && event->number >= dump->chosen.window[1].number)
		return false;
	return !dump->filtered || selection_has_event(&dump->chosen.selection, event);
}

// What the filters make of this trace.
static bool select_events(struct dump *dump, struct err *err)
{
	struct selection *selection = &dump->chosen.selection;

	dump->options.from_ns = dump->chosen.window[0].time_ns;
	dump->options.to_ns = selection_words_get(&dump->chosen.words, SELECTION_TO)
				      ? dump->chosen.window[1].time_ns
				      : UINT64_MAX;
	dump->options.wants = wants;
	dump->options.context = dump;
	dump->filtered = query_narrows(&selection->query) || selection->query.layers;
	return !dump->filtered || selection_read_events(selection, PROGRESS_AUTO, err);
}

static bool write(void *context, struct sink *sink, struct err *err)
{
	struct dump *dump = context;

	return asm_dump(dump->chosen.reader, &dump->options, sink, err);
}

static bool disassemble(struct dump *dump, struct err *err)
{
	struct chosen *chosen = &dump->chosen;
	bool ok = chosen_open(chosen, err) && select_events(dump, err) &&
		  chosen_write(chosen, write, dump, err);

	chosen_close(chosen, &cmd_dump, ok);
	return ok;
}

static int answer(struct args *args, struct dump *dump)
{
	struct err err = { 0 };
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (!take_option(args, id, dump))
			return args->exit_code;
	if (!args_need(args, dump->chosen.path,
		       dump->assemble ? "a FILE of text" : "a trace FILE") ||
	    !filters_check(args, &dump->chosen.words))
		return args->exit_code;
	if (dump->assemble && !dump->chosen.output) {
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
	code = answer(&args, &dump);
	selection_words_fini(&dump.chosen.words);
	return code;
}
