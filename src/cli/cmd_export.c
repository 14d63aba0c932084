// export: a trace in the format of other programs.
#include "cli/args.h"
#include "cli/filters.h"

#include "os/file.h"
#include "report/heaplog.h"
#include "trace/fresh.h"

#include <errno.h>
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
	const char *path, *output;
	bool format_given, force;
	struct selection_words words;
	struct selection selection;
	struct moment_edge window[2];
	struct heaplog_options heaplog;
};

static bool take_option(struct args *args, int id, struct export *export)
{
	static const char *const formats[] = { "heaplog", NULL };
	int format;

	if (filters_take(args, &export->words, id))
		return true;
	switch (id) {
	case ARGS_OPERAND:
		return args_operand(args, &export->path);
	case EXPORT_FORMAT:
		export->format_given = true;
		return args_word(args, formats, &format);
	case EXPORT_OUTPUT:
		export->output = args->value;
		return true;
	case EXPORT_FORCE:
		export->force = true;
		return true;
	default:
		return false;
	}
}

static bool select_events(struct export *export, struct names *names, struct err *err)
{
	const char *from = selection_words_get(&export->words, SELECTION_FROM);
	const char *to = selection_words_get(&export->words, SELECTION_TO);
	struct reader *reader = export->heaplog.reader;

	if (!selection_init(&export->selection, &export->words, reader, names, err) ||
	    !moment_find_window(from, to, reader, NULL, NULL, export->window, err))
		return false;
	export->heaplog.from = from ? &export->window[0] : NULL;
	export->heaplog.to = to ? &export->window[1] : NULL;
	if (!query_narrows(&export->selection.query))
		return true;
	export->heaplog.selection = &export->selection;
	return selection_read_events(&export->selection, PROGRESS_AUTO, err);
}

static bool write_log(const struct export *export, struct err *err)
{
	struct fresh fresh = { .fd = -1 };
	process_id process;
	struct sink sink;
	FILE *file;
	bool ok;

	if (!heaplog_choose(&export->heaplog, &process, err) ||
	    !fresh_open(&fresh, export->output, export->force, err))
		return false;
	file = file_stream_copy(fresh.fd, "w");
	ok = file || err_errno(err, errno, "cannot write %s", export->output);
	if (file) {
		sink = sink_to_file(file);
		heaplog_write(&export->heaplog, process, &sink);
		ok = sink_ok(&sink, err);
		if (fclose(file) != 0 && ok)
			ok = err_errno(err, errno, "cannot write %s", export->output);
	}
	ok = ok && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return ok;
}

static bool export_trace(struct export *export, struct err *err)
{
	struct reader *reader = reader_open(export->path, err);
	struct symbols_options symbols_options = { 0 };
	struct symbols *symbols;
	struct err wrong = { 0 };
	struct names *names;
	bool ok;

	if (!reader)
		return false;
	export->heaplog.reader = reader;
	reader_scan(reader, &wrong);
	symbols = symbols_new(reader, &symbols_options);
	names = names_new(reader, symbols);
	ok = select_events(export, names, err) && write_log(export, err);
	selection_fini(&export->selection);
	names_free(names);
	symbols_free(symbols);
	if (ok && !reader_ok(reader, &wrong))
		args_warn(&cmd_export, "%s is not whole: %s", export->path, wrong.text);
	if (ok && reader_info(reader)->sample_bytes)
		args_warn(&cmd_export, "%s is a sampled recording: these are the samples alone",
			  export->path);
	reader_close(reader);
	return ok;
}

static int answer(struct args *args, struct export *export)
{
	struct err err = { 0 };
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (!take_option(args, id, export))
			return args->exit_code;
	if (!args_need(args, export->path, "a trace FILE") ||
	    !args_need(args, export->format_given ? "" : NULL, "--format heaplog") ||
	    !args_need(args, export->output, "-o FILE") || !filters_check(args, &export->words))
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
	selection_words_fini(&export.words);
	return code;
}
