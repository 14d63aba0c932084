// tidemark plot: pictures of where memory went, drawn with gnuplot.
//
// The trace is asked for a chart (report/draw/plot.h), which is plain numbers; then it is closed,
// and gnuplot draws. For example `plot app.tide live --picture 800x400`: 800 buckets of time, the
// highest level of each, so that a spike of one event is a pixel and not lost between two.
#include "base/mem.h"
#include "cli/picture.h"
#include "cli/query_options.h"

#include "base/str.h"
#include "report/draw/plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CURVES_DEFAULT = 7,
	PIXELS_MIN = 200,
	PIXELS_MAX = 10000,
};

enum { OPTION_SIZE = 1 };

// `kind` and `by` are words of the command line, until complete() has looked them up.
struct request {
	struct query_options options;
	struct plot_options plot;
	struct picture picture;
	const char *kind, *by;
};

static const struct option_row rows[] = {
	{ QUERY_OPTIONS_OUTPUT, 'o', "output", "FILE",
	  "write the picture to FILE: .svg, .png or .pdf" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ ARGS_TEXT(request, by), 'b', "by", "KEY",
	  "one curve each: process, heap, thread, owner, module, function or stack" },
	QUERY_OPTIONS_ROW_ROWS("show N curves of a key, and one for the others (7; 0: all)"),
	{ ARGS_FLAG(request, picture.keep), 0, "keep", NULL,
	  "keep the script and the data: FILE.gnuplot and FILE.dat" },
	{ OPTION_SIZE, 0, "picture", "WxH", "pixels (1200x640); at 100 to an inch in a PDF" },
	QUERY_OPTIONS_ROW_MEMORY("for building and asking the index (256M)"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

// ---- the question ----

// "mark:a to 50%", as it was asked for, or NULL. Owned by the caller.
static char *window_words(const struct query_options *options)
{
	const char *from = selection_words_get(&options->words, SELECTION_FROM);
	const char *to = selection_words_get(&options->words, SELECTION_TO);
	struct str text = { 0 };

	if (!from && !to)
		return NULL;
	str_format(&text, "%s to %s", from ? from : "the beginning", to ? to : "the end");
	return str_take(&text);
}

// The chart owns what is in it: it outlives the trace, which is closed when gnuplot begins.
static bool answer_into(const struct request *request, struct chart *chart, struct err *err)
{
	const struct query_options *options = &request->options;
	struct plot_options chosen = request->plot;
	struct query_context_options context =
		query_options_context(&cmd_plot, options, plot_rules(request->plot.kind));
	char *window = window_words(options);
	struct query_context asked;
	bool good;

	ASSERT(request->options.path && request->plot.curves_max > 0);
	// By heap, pools have curves of their own; else their blocks, parts of others, are left
	// out.
	context.by_heap = chosen.key == PLOT_BY_HEAP;
	good = query_options_open(&context, &asked, err);
	if (good) {
		chosen.window = window;
		chosen.layer_given = selection_words_get(&options->words, SELECTION_LAYER) != NULL;
		good = plot_make(chart, &asked, &chosen, err);
		if (good) // the picture has room for the first alone
			query_options_warn(&cmd_plot, &asked, NULL);
		query_context_close(&asked);
	}
	free(window);
	return good;
}

static int print(const struct request *request)
{
	struct chart chart = { 0 };
	struct err err = { 0 };
	bool good;

	good = picture_check(&request->picture, &err) && answer_into(request, &chart, &err) &&
	       picture_draw(&request->picture, &chart, &err);
	chart_fini(&chart);
	return good ? EXIT_ANSWERED : args_fail(&cmd_plot, &err);
}

// ---- the command line ----

// "%c" after the two numbers takes what is too much: "1200x640px" is a mistake.
static bool take_size(struct args *args, struct request *request)
{
	unsigned width, height;
	// At most five digits each: more would overflow `unsigned` without a word.
	char more;

	if (sscanf(args->value, "%5ux%5u%c", &width, &height, &more) != 2 || width < PIXELS_MIN ||
	    height < PIXELS_MIN || width > PIXELS_MAX || height > PIXELS_MAX)
		return args_mistake(args, "--picture takes WIDTHxHEIGHT, %d to %d each, not '%s'",
				    PIXELS_MIN, PIXELS_MAX, args->value);
	request->picture.output.width = width;
	request->picture.output.height = height;
	return true;
}

// The trace, then the kind.
static bool take_operand(struct args *args, struct request *request)
{
	if (!request->options.path)
		request->options.path = args->value;
	else if (!request->kind)
		request->kind = args->value;
	else
		return args_mistake(args, "unexpected '%s' after the trace and the kind",
				    args->value);
	return true;
}

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	switch (id) {
	case ARGS_OPERAND:
		return take_operand(args, request);
	case OPTION_SIZE:
		return take_size(args, request);
	}
	return query_options_take(args, &request->options, id) == PRINT_OPTIONS_TAKEN;
}

// The index of a word (NULL: it is not given) among words; -1: the mistake was told.
static int find_word(struct args *args, const char *what, const char *word,
		     const char *const *words)
{
	const char *nearest = word ? str_nearest(word, words) : NULL;
	struct str list = { 0 };

	ASSERT(what && words);
	for (int i = 0; words[i]; i++) {
		if (word && strcmp(words[i], word) == 0) {
			str_fini(&list);
			return i;
		}
		str_format(&list, "%s%s", i > 0 ? ", " : "", words[i]);
	}
	if (!word)
		args_mistake(args, "needs a %s (%s)", what, str_get(&list));
	else if (nearest)
		args_mistake(args, "no %s '%s'; did you mean '%s'?", what, word, nearest);
	else
		args_mistake(args, "no %s '%s' (%s)", what, word, str_get(&list));
	str_fini(&list);
	return -1;
}

// What the words say together. False: return args->exit_code.
static bool complete(struct args *args, struct request *request)
{
	int kind, key = PLOT_BY_NOTHING;

	if (!args_need(args, request->options.path, "a trace FILE") ||
	    (kind = find_word(args, "kind of picture", request->kind, plot_kind_words)) < 0 ||
	    !args_need(args, request->options.output, "-o FILE: an .svg, .png or .pdf") ||
	    !query_options_check(args, &request->options))
		return false;
	request->picture.output.path = request->options.output;
	request->picture.force = request->options.force;
	if (request->by)
		key = find_word(args, "key", request->by, plot_key_words);
	if (key < 0)
		return false;
	if (!chart_can_draw(request->picture.output.path))
		return args_mistake(args, "%s: pictures are .svg, .png or .pdf",
				    request->picture.output.path);
	request->plot.kind = (enum plot_kind)kind;
	request->plot.key = (enum plot_key)key;
	request->plot.curves_max = request->options.rows_max ? request->options.rows_max : SIZE_MAX;
	// A bucket of time for each pixel: fewer would lose spikes, more cannot be seen.
	request->plot.buckets = request->picture.output.width;
	return true;
}

static int run(int argc, char **argv)
{
	struct request request = { .options = { .rows_max = CURVES_DEFAULT },
				   .picture = picture_default };
	struct args args;
	int id, code = EXIT_ANSWERED;

	args_init(&args, &cmd_plot, argc, argv);
	args.into = &request;
	while ((id = args_next(&args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(&args, &request, id))
			break;
	if (id != ARGS_END || !complete(&args, &request))
		code = args.exit_code;
	else
		code = print(&request);
	query_options_fini(&request.options);
	return code;
}

const struct command cmd_plot = {
	.name = "plot",
	.brief = "draw live memory, rates, sizes, lifetimes as SVG, PNG or PDF",
	.usage = "FILE KIND -o PICTURE [options]",
	.text = "Kinds:\n"
		"  live          bytes alive over time; the highest of each moment, so that no\n"
		"                spike is lost\n"
		"  blocks        the same, their number\n"
		"  cumulative    bytes allocated so far\n"
		"  rate          bytes allocated per second\n"
		"  rss           resident memory, its share (PSS) and swap; the live heap\n"
		"  faults        page faults per second, those that read a disk apart\n"
		"  sizes         how many allocations had which size, both axes logarithmic\n"
		"  lifetimes     how long allocations of which size lived, as a heat map\n"
		"  largest-free  the largest hole in the address space\n"
		"  fragmentation what malloc has of the system, and what of it is live\n"
		"\n"
		"Marks of the program (tidemark.h) are lines with their names.\n",
	.examples = "  tidemark plot app.tide live -o live.svg\n"
		    "  tidemark plot app.tide live --by function -n 5 -o live.svg\n"
		    "  tidemark plot app.tide rate --from mark:load --to 50% -o rate.png\n"
		    "  tidemark plot app.tide sizes --keep -o sizes.pdf # and sizes.pdf.gnuplot\n",
	.notes = "Drawn with gnuplot (Debian: gnuplot-nox).\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
