// export: a trace in the formats of other programs.
#include "cli/chosen.h"
#include "cli/filters.h"
#include "cli/interrupt.h"
#include "cli/look.h"

#include "export/export.h"
#include "os/terminal.h"
#include "report/heaplog.h"
#include "trace/fresh.h"

#include <string.h>

enum { EXPORT_FORMAT = 1, EXPORT_OUTPUT, EXPORT_FORCE, EXPORT_VALUE, EXPORT_MEMORY };

static const struct option_row export_options[] = {
	{ EXPORT_FORMAT, 0, "format", "NAME", "one of the formats above" },
	{ EXPORT_OUTPUT, 'o', "output", "FILE", "write to FILE; -, or without it: to stdout" },
	{ EXPORT_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ EXPORT_VALUE, 0, "value", "WHICH",
	  "what a format of one value holds: live (at the end of the window), blocks, allocated, "
	  "allocations, freed, frees, impacting, size, count" },
	{ EXPORT_MEMORY, 'm', "memory", "SIZE", "for the index (256M)" },
	LOOK_ROW_PROGRESS,
	LOOK_ROWS_SYMBOLS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_export = {
	.name = "export",
	.brief = "write a trace in a format for other programs",
	.usage = "FILE --format NAME [-o OUTPUT] [options]",
	.text = "Sums over a window, by stack (--from, --to and all filters apply):\n"
		"  pprof       for `go tool pprof`: alloc and inuse, space and objects\n"
		"  speedscope  for speedscope.app: live, allocated, grown by\n"
		"  folded      a line for each stack, for flame graph tools\n"
		"The events themselves:\n"
		"  heaplog     the allocations and frees of one process in their order, as\n"
		"              records of a fixed layout (docs/heaplog.md)\n"
		"What a format cannot say is said on stderr. docs/formats.md has a section for\n"
		"each: what is kept, what is lost, and how the other program opens it.\n",
	.examples =
		"  tidemark export app.tide --format pprof -o app.pb.gz\n"
		"  tidemark export app.tide --format pprof --from peak --to peak -o peak.pb.gz\n"
		"  tidemark export app.tide --format folded --value impacting --from 10s\n"
		"  tidemark export app.tide --format heaplog --size 40 -o forty.heaplog\n",
	.options = export_options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};

struct export
{
	struct chosen chosen;
	const struct export_format *format; // NULL: heaplog
	bool format_given;
	bool value_given;
	int value;
	struct look look;
	uint64_t memory_bytes;
	struct heaplog_options heaplog;
	process_id process;
};

static bool take_format(struct args *args, struct export *export)
{
	const char *names[32];
	size_t count = 0;
	int index;

	for (; export_formats[count]; count++)
		names[count] = export_formats[count]->name;
	names[count++] = "heaplog";
	names[count] = NULL;
	export->format_given = true;
	if (!args_word(args, names, &index))
		return false;
	export->format = export_formats[index];
	return true;
}

static bool take_option(struct args *args, int id, struct export *export)
{
	enum look_taken taken;

	if (filters_take(args, &export->chosen.words, id))
		return true;
	taken = look_take(args, &export->look, id);
	if (taken != LOOK_NOT_MINE)
		return taken == LOOK_TAKEN;
	switch (id) {
	case ARGS_OPERAND:
		return args_operand(args, &export->chosen.path);
	case EXPORT_FORMAT:
		return take_format(args, export);
	case EXPORT_OUTPUT:
		export->chosen.output = strcmp(args->value, "-") == 0 ? NULL : args->value;
		return true;
	case EXPORT_FORCE:
		export->chosen.force = true;
		return true;
	case EXPORT_VALUE:
		export->value_given = true;
		return args_word(args, samples_values, &export->value);
	case EXPORT_MEMORY:
		return args_bytes(args, &export->memory_bytes);
	default:
		return false;
	}
}

// ---- sums over a window ----

static void say(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "tidemark export: %s\n", text);
}

struct writing {
	const struct export_format *format;
	struct export_source source;
};

static bool write_format(void *context, struct sink *sink, struct err *err)
{
	struct writing *writing = context;

	return export_write(writing->format, &writing->source, sink, err);
}

static bool write_window(struct export *export, struct question *question, struct err *err)
{
	struct writing writing = {
		.format = export->format,
		.source = {
			.question = question,
			.value = export->value_given ? (enum samples_value)export->value
						     : SAMPLES_LIVE,
			.say = say,
		},
	};

	for (size_t i = 0; i < question->warnings_count; i++)
		args_warn(&cmd_export, "%s", question->warnings[i]);
	return question_check_layers(question, false, err) &&
	       chosen_write(&export->chosen, write_format, &writing, err);
}

static bool export_window(struct export *export, struct err *err)
{
	const struct question_options options = {
		.words = &export->chosen.words,
		.symbols = export->look.symbols,
		.memory_bytes = export->memory_bytes,
		.progress = export->look.progress,
		.stop = interrupt_came,
		.say = say,
	};
	struct question question = { 0 };
	bool good;

	if (export->chosen.output && !fresh_check(export->chosen.output, export->chosen.force, err))
		return false;
	interrupt_watch();
	good = question_open(&question, export->chosen.path, &options, err);
	interrupt_leave();
	if (!good)
		return false;
	good = write_window(export, &question, err);
	question_close(&question);
	return good;
}

// ---- events ----

static bool select_events(struct export *export, struct err *err)
{
	struct chosen *chosen = &export->chosen;
	struct heaplog_options *heaplog = &export->heaplog;

	heaplog->reader = chosen->reader;
	if (selection_words_get(&chosen->words, SELECTION_FROM))
		heaplog->from = &chosen->window[0];
	if (selection_words_get(&chosen->words, SELECTION_TO))
		heaplog->to = &chosen->window[1];
	if (query_narrows(&chosen->selection.query)) {
		heaplog->selection = &chosen->selection;
		if (!selection_read_events(&chosen->selection, PROGRESS_AUTO, err))
			return false;
	}
	return heaplog_choose(heaplog, &export->process, err);
}

static bool write_heaplog(void *context, struct sink *sink, struct err *err)
{
	const struct export *export = context;

	heaplog_write(&export->heaplog, export->process, sink);
	return sink_ok(sink, err);
}

static bool export_heaplog(struct export *export, struct err *err)
{
	struct chosen *chosen = &export->chosen;
	bool ok = chosen_open(chosen, err) && select_events(export, err) &&
		  chosen_write(chosen, write_heaplog, export, err);

	if (ok && reader_info(chosen->reader)->sample_bytes)
		args_warn(&cmd_export, "%s is a sampled recording: these are the samples alone",
			  chosen->path);
	chosen_close(chosen, &cmd_export, ok);
	return ok;
}

// Whether the words fit together.
static bool check(struct args *args, const struct export *export)
{
	bool one_value = export->format && export->format->single_value;

	if (!args_need(args, export->chosen.path, "a trace FILE") ||
	    !args_need(args, export->format_given ? "" : NULL, "--format NAME") ||
	    !filters_check(args, &export->chosen.words))
		return false;
	if (export->value_given && !one_value)
		return args_mistake(args, "--value is for formats of one value (folded)");
	if (!export->chosen.output && terminal_is() && !one_value)
		return args_mistake(args, "the format is not for a terminal: say -o FILE");
	return true;
}

static int answer(struct args *args, struct export *export)
{
	struct err err = { 0 };
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (!take_option(args, id, export))
			return args->exit_code;
	if (!check(args, export))
		return args->exit_code;
	if (!(export->format ? export_window(export, &err) : export_heaplog(export, &err)))
		return args_fail(&cmd_export, &err);
	return EXIT_ANSWERED;
}

static int run(int argc, char **argv)
{
	struct export export = { 0 };
	struct args args;
	int code;

	args_init(&args, &cmd_export, argc, argv);
	code = answer(&args, &export);
	selection_words_fini(&export.chosen.words);
	return code;
}
