// export: a trace in the formats of other programs.
//
// The formats are a table (export_formats), and this command knows none by itself: it takes the
// options, opens the trace with the rules that a format has, and hands it on. An option that the
// format cannot honour is refused with the ones that can.
#include "cli/query_options.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/rowset_folder.h"
#include "export/events.h"
#include "export/export.h"
#include "os/file.h"
#include "os/terminal.h"
#include "trace/fresh.h"

#include <string.h>

enum { EXPORT_FORMAT = 1, EXPORT_VALUE, EXPORT_LIFETIMES, EXPORT_AGAINST, EXPORT_TABLE };

struct export
{
	struct query_options query;
	struct query_context asked;
	const char *against; // a trace; NULL: none
	struct query_context against_asked;
	const struct export_format *format;
	bool value_given, lifetimes, exit_frees;
	int value;
	enum rowset_table_id table; // ROWSET_TABLES: all of them
};

static const struct option_row export_options[] = {
	{ EXPORT_FORMAT, 0, "format", "NAME",
	  "one of the formats above; without it, by how the name of -o ends: .pb.gz, "
	  ".speedscope.json, .folded, .svg, .csv, .jsonl, .heaplog" },
	{ QUERY_OPTIONS_OUTPUT, 'o', "output", "FILE",
	  "write to FILE; -, or without it: to stdout" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ EXPORT_VALUE, 0, "value", "WHICH",
	  "what a format of one value holds: live (at the end of the window), blocks, allocated, "
	  "allocations, freed, frees, impacting, size, count" },
	{ EXPORT_LIFETIMES, 0, "lifetimes", NULL,
	  "csv and jsonl: a line for each block, with its end, and not for each event" },
	{ EXPORT_TABLE, 0, "table", "NAME",
	  "parquet: this table alone, as one file (docs/schema/rows.md)" },
	{ ARGS_FLAG(export, exit_frees), 0, "exit-frees", NULL,
	  "of sums: the end of a process frees its blocks, instead of leaving them live" },
	{ EXPORT_AGAINST, 0, "against", "FILE",
	  "flamegraph: colour what changed since this other trace (same window, same filters)" },
	QUERY_OPTIONS_ROW_MEMORY("for the index and live blocks (256M)"),
	PRINT_OPTIONS_ROW_PROGRESS,
	PRINT_OPTIONS_ROWS_SYMBOLS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_export = {
	.name = "export",
	.brief = "write a trace in a format for other programs",
	.usage = "FILE --format NAME [-o OUTPUT] [options]",
	.text = "Sums over a window, by stack (--from, --to and all filters apply):\n"
		"  pprof       for `go tool pprof`: alloc and inuse, space and objects\n"
		"  otlp        OpenTelemetry's profiles (v1development)\n"
		"  speedscope  for speedscope.app: live, allocated, grown by\n"
		"  folded      a line for each stack, for flame graph tools\n"
		"  flamegraph  one SVG, with search and zoom\n"
		"  callgrind   for callgrind_annotate and KCachegrind\n"
		"The blocks themselves, one by one:\n"
		"  csv, jsonl  a line for each event; with --lifetimes, for each block\n"
		"  parquet     a folder of tables, for DuckDB and others; allocations have a row\n"
		"              each (docs/schema/rows.md)\n"
		"  heaptrack   one process, for heaptrack_print and heaptrack_gui\n"
		"  firefox     one process, for profiler.firefox.com (native allocations)\n"
		"  perfetto    levels, marks and a heap profile, for ui.perfetto.dev\n"
		"  massif      the level over time and its peak, for ms_print\n"
		"  dhat        by stack, with lifetimes, for Valgrind's dh_view.html\n"
		"  heaplog     the allocations and frees of one process in their order, as\n"
		"              records of a fixed layout (docs/heaplog.md)\n"
		"  memory_tracker  the same as that program's text (ALLOCATION_TRACE)\n"
		"Reservations of one process that leave a 64 KiB slot partly unused:\n"
		"  tracefrag   as `tidemark map --tracefrag` prints them\n"
		"What a format cannot say is said on stderr. docs/formats.md has a section for\n"
		"each: what is kept, what is lost, and how the other program opens it.\n",
	.examples =
		"  tidemark export app.tide --format pprof -o app.pb.gz\n"
		"  tidemark export app.tide --format pprof --from peak --to peak --exit-frees \\\n"
		"      -o peak.pb.gz\n"
		"  tidemark export app.tide --format folded --value impacting --from 10s\n"
		"  tidemark export new.tide --format flamegraph --against old.tide -o change.svg\n"
		"  tidemark export app.tide --format csv --lifetimes --from 10s -o app.csv\n"
		"  tidemark export app.tide --format parquet -o app.rows\n"
		"  tidemark export app.tide --format heaptrack -o heaptrack.app.gz\n"
		"  tidemark export app.tide --format heaplog --size 40 -o forty.heaplog\n",
	.options = export_options,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};

// Room for 31: there are 17 formats.
enum { EXPORT_FORMATS_MAX = 32 };

// The names are those of the formats themselves, so that a new format needs no line here. Ended by
// NULL.
static void list_formats(const char *names[EXPORT_FORMATS_MAX])
{
	size_t count = 0;

	for (; export_formats[count]; count++)
		names[count] = export_formats[count]->name;
	ASSERT(count < EXPORT_FORMATS_MAX);
	names[count] = NULL;
}

static bool take_format(struct args *args, struct export *export)
{
	const char *names[EXPORT_FORMATS_MAX];
	int index;

	list_formats(names);
	if (!args_word(args, names, &index))
		return false;
	export->format = export_formats[index];
	return true;
}

// Without --format: the one whose files end as the output's name does, if that says it. False: the
// mistake was printed.
static bool need_format(struct args *args, struct export *export)
{
	static const struct {
		const char *ending;
		const struct export_format *format;
	} known[] = {
		{ ".pb.gz", &pprof_format },     { ".speedscope.json", &speedscope_format },
		{ ".folded", &folded_format },   { ".svg", &flamegraph_format },
		{ ".csv", &csv_format },         { ".jsonl", &csv_jsonl_format },
		{ ".heaplog", &heaplog_format },
	};
	const char *names[EXPORT_FORMATS_MAX];
	struct str list = { 0 };

	for (size_t i = 0; i < sizeof known / sizeof *known && !export->format; i++)
		if (export->query.output && str_ends_with(export->query.output, known[i].ending))
			export->format = known[i].format;
	if (export->format)
		return true;
	list_formats(names);
	for (int i = 0; names[i]; i++)
		str_format(&list, "%s %s", i > 0 ? "," : "", names[i]);
	args_mistake(args, "needs --format NAME:%s", str_get(&list));
	str_fini(&list);
	return false;
}

static bool take_table(struct args *args, struct export *export)
{
	const char *names[ROWSET_TABLES + 1] = { 0 };
	int index;

	for (enum rowset_table_id id = 0; id < ROWSET_TABLES; id++)
		names[id] = rowset_tables[id].name;
	if (!args_word(args, names, &index))
		return false;
	export->table = (enum rowset_table_id)index;
	return true;
}

static bool take_option(struct args *args, int id, struct export *export)
{
	switch (id) {
	case EXPORT_FORMAT:
		return take_format(args, export);
	case EXPORT_VALUE:
		export->value_given = true;
		return args_word(args, samples_values, &export->value);
	case EXPORT_LIFETIMES:
		export->lifetimes = true;
		return true;
	case EXPORT_TABLE:
		return take_table(args, export);
	case EXPORT_AGAINST:
		// The words of the command line are operands or an option's value: of these args
		// spares operands alone.
		export->against = args->value;
		// So that -o cannot write over the trace that is compared with.
		fresh_spare(export->against);
		return true;
	case QUERY_OPTIONS_OUTPUT:
		// The output is settled here and not by query_options: "-" is the standard output
		// for an export, as it is for tools that read one in a pipe.
		export->query.output = strcmp(args->value, "-") == 0 ? NULL : args->value;
		return true;
	default:
		return query_options_take(args, &export->query, id) == PRINT_OPTIONS_TAKEN;
	}
}

// What the format cannot keep.
static void say(void *, const char *text)
{
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

// Whether the output is a folder of tables, and no file.
static bool is_folder(const struct export *export)
{
	ASSERT(export->format);
	return export->format->has_tables && export->table == ROWSET_TABLES;
}

static bool can_write(const struct export *export, struct err *err)
{
	return is_folder(export)
		       ? rowset_folder_check(export->query.output, export->query.force, err)
		       : query_options_can_write(&export->query, err);
}

// The other program reads a file that is whole or finds none.
static bool write_all(const struct export *export, struct writing *writing, struct err *err)
{
	if (!is_folder(export))
		return query_options_write(&export->query, write_format, writing, err);
	return events_prepare(writing->source.asked, err) &&
	       rowset_folder_write(&writing->source, export->query.output, export->query.force,
				   err);
}

// Whether the figures of what lives at the window's end are in it.
static bool holds_live(const struct writing *writing)
{
	return !writing->format->single_value || writing->source.value == SAMPLES_LIVE ||
	       writing->source.value == SAMPLES_BLOCKS;
}

// Of sums the warnings are told before, since what they are about is known from the index; of
// events after, since only then it is known what was matched.
static bool write_trace(struct export *export, struct err *err)
{
	// A format gets the trace as a source: the query context, which value, which table, and
	// whom to tell of what it cannot keep. It opens nothing and knows no command line.
	struct writing writing = {
		.format = export->format,
		.source = {
			.asked = &export->asked,
			.against_asked = export->against ? &export->against_asked : NULL,
			.value = export->value_given ? (enum samples_value)export->value
						     : SAMPLES_LIVE,
			.table = export->table,
			.lifetimes = export->lifetimes,
			.say = say,
		},
	};
	bool sums = export->format->has_samples;

	// In order: which stacks the filters match (only a format of sums needs to know before),
	// the warnings, then whether the trace has the layer that was asked for, and last the file.
	if ((sums && !query_context_match(&export->asked, err)) ||
	    (export->against && !query_context_match(&export->against_asked, err)) ||
	    (sums && holds_live(&writing) &&
	     !query_context_warn_of_ended(&export->asked, false, err)))
		return false;
	if (sums)
		query_options_warn_before(&cmd_export, &export->asked, NULL);
	if (export->against)
		query_options_warn_before(&cmd_export, &export->against_asked, export->against);
	if ((sums && !query_context_check_layers(&export->asked, false, err)) ||
	    !write_all(export, &writing, err))
		return false;
	// Whatever was said of the trace's events while they were read comes last, when the file is
	// whole; and what was found out about symbols, which are looked for as stacks are written.
	if (!sums) {
		query_context_caution(&export->asked, false);
		query_options_warn_before(&cmd_export, &export->asked, NULL);
	}
	query_options_warn_of_symbols(&cmd_export, &export->asked, NULL);
	if (export->against)
		query_options_warn_of_symbols(&cmd_export, &export->against_asked, export->against);
	return true;
}

// heaptrack_print takes a packed file of another name for an empty one.
static void say_ending(const struct export *export)
{
	const char *ending = export->format->ending, *path = export->query.output;

	if (!ending || !path || file_look(path) == FILE_IS_OTHER || str_ends_with(path, ending))
		return;
	fprintf(stderr,
		"tidemark export: %s_print and %s_gui read it only by a name that ends in %s (try: "
		"-o %s%s)\n",
		export->format->name, export->format->name, ending, path, ending);
}

static bool export_trace(struct export *export, struct err *err)
{
	struct query_context_options context =
		query_options_context(&cmd_export, &export->query, export_rules(export->format));
	bool good;

	ASSERT(export->format && export->query.path);
	context.exit_frees = export->exit_frees;
	if (!can_write(export, err) || !query_options_open(&context, &export->asked, err))
		return false;
	// The other trace is opened with all that the first was opened with, filters and window
	// included: what is compared is alike.
	context.path = export->against;
	good = (!export->against || query_options_open(&context, &export->against_asked, err)) &&
	       write_trace(export, err);
	query_context_close(&export->against_asked);
	query_context_close(&export->asked);
	return good;
}

// Whether the words fit together.
static bool check(struct args *args, struct export *export)
{
	// Formats of one value (folded, flamegraph) are text, too, so that they may go to a
	// terminal.
	bool one_value = export->format && export->format->single_value;

	if (!args_need(args, export->query.path, "a trace FILE") || !need_format(args, export) ||
	    !query_options_check(args, &export->query))
		return false;
	if (export->value_given && !one_value)
		return args_mistake(args,
				    "--value is for formats of one value (folded, flamegraph)");
	if (export->exit_frees && !export->format->has_samples)
		return args_mistake(args, "--exit-frees is for formats of sums by stack");
	if (export->lifetimes && !export->format->has_lifetimes)
		return args_mistake(args, "--lifetimes is for csv and jsonl");
	if (export->table != ROWSET_TABLES && !export->format->has_tables)
		return args_mistake(args, "--table is for parquet");
	if (is_folder(export) && !export->query.output)
		return args_mistake(args, "say -o FOLDER for all tables, or --table NAME for one");
	if (export->against && !export->format->compares)
		return args_mistake(args, "--against is for flamegraph");
	// Bytes that are not text would be read by the terminal as commands to it.
	if (!export->query.output && terminal_is() && !one_value && !export->format->is_text)
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
	if (!export_trace(export, &err))
		return args_fail(&cmd_export, &err);
	say_ending(export);
	return EXIT_ANSWERED;
}

static int run(int argc, char **argv)
{
	struct export export = { .table = ROWSET_TABLES };
	struct args args;
	int code;

	args_init(&args, &cmd_export, argc, argv);
	args.into = &export;
	code = answer(&args, &export);
	query_options_fini(&export.query);
	return code;
}
