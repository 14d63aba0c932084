// export: a trace in the format of other programs.
#include "cli/chosen.h"
#include "cli/filters.h"

#include "report/heaplog.h"

#include <stdlib.h>

enum { EXPORT_FORMAT = 1, EXPORT_OUTPUT, EXPORT_FORCE };

static const struct option_row export_options[] = {
	{ EXPORT_FORMAT, 0, "format", "FORMAT",
	  "heaplog: a record of 17 or 13 bytes for each call" },
	{ EXPORT_OUTPUT, 'o', "output", "FILE", "write to FILE" },
	{ EXPORT_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_export = {
	.name = "export",
	.brief = "write a trace in a format for other programs",
	.usage = "FILE --format heaplog -o OUTPUT [options]",
	.text = "heaplog: the allocations and frees of one process in their order, as\n"
		"records of a fixed layout (docs/heaplog.md) that a few lines of any language\n"
		"read: 17 bytes for a block that begins (heap, time, size, address), 13 for one\n"
		"that ends. With filters, of the allocations that they choose alone.\n",
	.examples = "  tidemark export app.tide --format heaplog -o app.heaplog\n"
		    "  tidemark export app.tide --format heaplog --size 40 -o forty.heaplog\n",
	.options = export_options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};

struct export
{
	struct chosen chosen;
	bool format_given;
	struct heaplog_options heaplog;
	process_id process;
};

static bool take_option(struct args *args, int id, struct export *export)
{
	static const char *const formats[] = { "heaplog", NULL };
	int format;

	if (filters_take(args, &export->chosen.words, id))
		return true;
	switch (id) {
	case ARGS_OPERAND:
		return args_operand(args, &export->chosen.path);
	case EXPORT_FORMAT:
		export->format_given = true;
		return args_word(args, formats, &format);
	case EXPORT_OUTPUT:
		export->chosen.output = args->value;
		return true;
	case EXPORT_FORCE:
		export->chosen.force = true;
		return true;
	default:
		return false;
	}
}

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

static bool write(void *context, struct sink *sink, struct err *err)
{
	const struct export *export = context;

	heaplog_write(&export->heaplog, export->process, sink);
	return sink_ok(sink, err);
}

static bool export_trace(struct export *export, struct err *err)
{
	struct chosen *chosen = &export->chosen;
	bool ok = chosen_open(chosen, err) && select_events(export, err) &&
		  chosen_write(chosen, write, export, err);

	if (ok && reader_info(chosen->reader)->sample_bytes)
		args_warn(&cmd_export, "%s is a sampled recording: these are the samples alone",
			  chosen->path);
	chosen_close(chosen, &cmd_export, ok);
	return ok;
}

static int answer(struct args *args, struct export *export)
{
	struct err err = { 0 };
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (!take_option(args, id, export))
			return args->exit_code;
	if (!args_need(args, export->chosen.path, "a trace FILE") ||
	    !args_need(args, export->format_given ? "" : NULL, "--format heaplog") ||
	    !args_need(args, export->chosen.output, "-o FILE") ||
	    !filters_check(args, &export->chosen.words))
		return args->exit_code;
	if (!export_trace(export, &err))
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
