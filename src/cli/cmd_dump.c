// dump: a trace as text, and text as a trace.
#include "cli/args.h"

#include "os/file.h"
#include "trace/asm.h"
#include "trace/fresh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DUMP_ASSEMBLE = 1,
	DUMP_OUTPUT,
	DUMP_FORCE,
	DUMP_FROM,
	DUMP_TO,
	DUMP_COUNT,
	DUMP_ITEMS,
	DUMP_DEFINITIONS,
};

static const struct option_row dump_options[] = {
	{ DUMP_OUTPUT, 'o', "output", "FILE", "write to FILE instead of standard output" },
	{ DUMP_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ DUMP_ASSEMBLE, 'a', "assemble", NULL, "the other way: FILE is text, make a trace of it" },
	{ DUMP_FROM, 0, "from", "TIME",
	  "only events and notes at TIME (5s, 1.5ms, 100us) or later" },
	{ DUMP_TO, 0, "to", "TIME", "only events and notes at TIME or earlier" },
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
		"text can be edited and assembled to a trace again.",
	.examples = "  tidemark dump app.tide | less\n"
		    "  tidemark dump app.tide --items --from 2s --to 2.001s\n"
		    "  tidemark dump --assemble small.txt -o small.tide\n",
	.options = dump_options,
	.run = run,
};

struct dump {
	const char *path;
	const char *output; // NULL: standard output
	bool assemble, force;
	struct asm_options options;
};

// "1.5ms" in nanoseconds; without a unit: seconds, as everywhere on the command line.
static bool parse_time(const char *text, uint64_t *time_ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 },     { "us", 1e3 }, { "ms", 1e6 },
		      { "min", 6e10 }, { "s", 1e9 },  { "", 1e9 } };
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno != 0 || !(value >= 0))
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		value *= units[i].ns;
		*time_ns = value < 0x1p63 ? (uint64_t)(value + 0.5) : UINT64_MAX;
		return true;
	}
	return false;
}

static bool take_time(struct args *args, uint64_t *time_ns)
{
	if (parse_time(args->value, time_ns))
		return true;
	return args_mistake(args, "--%s takes a time such as 5s, 1.5ms or 100us, not '%s'",
			    args->row->name, args->value);
}

static bool take_option(struct args *args, int id, struct dump *dump)
{
	switch (id) {
	case ARGS_OPERAND:
		return args_operand(args, &dump->path);
	case DUMP_ASSEMBLE:
		dump->assemble = true;
		return true;
	case DUMP_OUTPUT:
		dump->output = args->value;
		return true;
	case DUMP_FORCE:
		dump->force = true;
		return true;
	case DUMP_FROM:
		return take_time(args, &dump->options.from_ns);
	case DUMP_TO:
		return take_time(args, &dump->options.to_ns);
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
	bool ok = file_view_open(&text, dump->path, err) || err_wrap(err, "%s", dump->path);

	if (ok && fresh_open(&fresh, dump->output, dump->force, err)) {
		ok = asm_read((const char *)text.bytes, text.size, fresh.fd, err) ||
		     err_wrap(err, "%s", dump->path);
		ok = ok && fresh_keep(&fresh, err);
	} else {
		ok = false;
	}
	fresh_close(&fresh);
	file_view_close(&text);
	return ok;
}

static bool dump_to(const struct dump *dump, struct reader *reader, FILE *file, struct err *err)
{
	struct sink sink = sink_to_file(file);

	return asm_dump(reader, &dump->options, &sink, err);
}

static bool dump_to_file(const struct dump *dump, struct reader *reader, struct err *err)
{
	struct fresh fresh = { .fd = -1 };
	FILE *file = NULL;
	bool ok = fresh_open(&fresh, dump->output, dump->force, err);
	int fd = ok ? dup(fresh.fd) : -1;

	if (ok) {
		file = fd >= 0 ? fdopen(fd, "w") : NULL;
		ok = file || err_errno(err, errno, "cannot write %s", dump->output);
	}
	ok = ok && dump_to(dump, reader, file, err);
	if (file && fclose(file) != 0 && ok)
		ok = err_errno(err, errno, "cannot write %s", dump->output);
	ok = ok && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return ok;
}

static bool disassemble(const struct dump *dump, struct err *err)
{
	struct reader *reader = reader_open(dump->path, err);
	struct err wrong = { 0 };
	bool ok;

	if (!reader)
		return false;
	ok = dump->output ? dump_to_file(dump, reader, err) : dump_to(dump, reader, stdout, err);
	if (ok && !reader_ok(reader, &wrong))
		args_warn(&cmd_dump, "%s is not whole: %s", dump->path, wrong.text);
	reader_close(reader);
	return ok;
}

static int run(int argc, char **argv)
{
	struct dump dump = { .options = asm_dump_all() };
	struct err err = { 0 };
	struct args args;
	int id;

	args_init(&args, &cmd_dump, argc, argv);
	while ((id = args_next(&args)) != ARGS_END)
		if (!take_option(&args, id, &dump))
			return args.exit_code;
	if (!args_need(&args, dump.path, dump.assemble ? "a FILE of text" : "a trace FILE"))
		return args.exit_code;
	if (dump.assemble && !dump.output) {
		args_mistake(&args, "--assemble needs -o FILE: the trace to make");
		return args.exit_code;
	}
	if (dump.assemble ? !assemble(&dump, &err) : !disassemble(&dump, &err))
		return args_fail(&cmd_dump, &err);
	return EXIT_ANSWERED;
}
