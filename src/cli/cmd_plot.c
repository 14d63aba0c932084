// tidemark plot: pictures of where memory went, drawn with gnuplot.
#include "cli/absent.h"
#include "cli/query_options.h"

#include "base/str.h"
#include "os/file.h"
#include "os/tool.h"
#include "report/plot.h"
#include "trace/fresh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CURVES_DEFAULT = 7,
	WIDTH_DEFAULT = 1200,
	HEIGHT_DEFAULT = 640,
	PIXELS_MIN = 200,
	PIXELS_MAX = 10000,
	BUCKETS_MIN = 100,
};

enum { OPTION_BY = 1, OPTION_KEEP, OPTION_SIZE };

static const struct option_row rows[] = {
	{ QUERY_OPTIONS_OUTPUT, 'o', "output", "FILE",
	  "write the picture to FILE: .svg, .png or .pdf" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ OPTION_BY, 'b', "by", "KEY",
	  "one curve each: process, heap, thread, owner, module, function or stack" },
	QUERY_OPTIONS_ROW_ROWS("show N curves of a key, and one for the others (7; 0: all)"),
	{ OPTION_KEEP, 0, "keep", NULL, "keep the script and the data: FILE.gnuplot and FILE.dat" },
	{ OPTION_SIZE, 0, "picture", "WxH", "pixels (1200x640); at 100 to an inch in a PDF" },
	QUERY_OPTIONS_ROW_MEMORY("for building and asking the index (256M)"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

struct request {
	struct query_options options;
	struct plot_options plot;
	struct chart_output output;
	const char *kind, *by;
	bool keep;
};

// Where the parts of a picture are while it is made. With --keep two of them stay.
struct plot_files {
	struct str folder; // empty: it could not be made
	struct str script, data, picture;
	bool keep;
};

// ---- the picture ----

static bool write_file(const char *path, const struct chart *chart,
		       const struct chart_output *output, struct err *err)
{
	FILE *file = file_stream(path, "w");
	struct sink sink;
	bool good;

	if (!file)
		return err_errno(err, errno, "cannot write %s", path);
	sink = sink_to_file(file);
	if (output)
		chart_write_script(chart, output, &sink);
	else
		chart_write_data(chart, &sink);
	good = sink_ok(&sink, err);
	if (fclose(file) != 0 && good)
		good = err_errno(err, errno, "cannot write %s", path);
	return good || err_wrap(err, "%s", path);
}

// 'name=value' for gnuplot's -e, the value in its quotes.
static void define(struct str *text, const char *name, const char *value)
{
	str_format(text, "%s='", name);
	for (; *value; value++)
		str_add(text, *value == '\'' ? "'.\"'\".'" : (const char[]){ *value, 0 });
	str_add(text, "'; ");
}

// What it complains of stands in its last lines.
static void complain(struct str *said, struct err *err)
{
	const size_t shown = 300;
	size_t from = said->length > shown ? said->length - shown : 0;

	for (size_t i = 0; i < said->length; i++)
		if (said->text[i] == '\n')
			said->text[i] = ' ';
	if (said->length > 0)
		err_wrap(err, "%s", said->text + from);
}

static bool run_gnuplot(const struct plot_files *files, struct err *err)
{
	struct str settings = { 0 }, said = { 0 };
	const char *arguments[] = { "gnuplot", "-e", NULL, str_get(&files->script), NULL };
	enum tool_result result;

	define(&settings, "data", str_get(&files->data));
	define(&settings, "picture", str_get(&files->picture));
	arguments[2] = str_get(&settings);
	result = tool_run(arguments, &said, err);
	if (result != TOOL_DONE)
		complain(&said, err);
	str_fini(&settings);
	str_fini(&said);
	return result == TOOL_DONE;
}

static bool copy_into(struct fresh *fresh, const char *from, struct err *err)
{
	struct file_view view = { 0 };
	bool good = file_view_open(&view, from, err) &&
		    (file_write_all(fresh->fd, view.bytes, view.size, err) ||
		     err_wrap(err, "%s", str_get(&fresh->path))) &&
		    fresh_keep(fresh, err);

	file_view_close(&view);
	return good;
}

// The picture appears when it is whole, or not at all.
static bool draw(const struct request *request, const struct chart *chart, struct plot_files *files,
		 struct err *err)
{
	struct chart_output output = request->output;
	struct fresh fresh = { .fd = -1 };
	bool good;

	output.data = str_get(&files->data);
	good = write_file(str_get(&files->data), chart, NULL, err) &&
	       write_file(str_get(&files->script), chart, &output, err) &&
	       run_gnuplot(files, err) &&
	       fresh_open(&fresh, request->output.path, request->options.force, err) &&
	       copy_into(&fresh, str_get(&files->picture), err);
	fresh_close(&fresh);
	return good;
}

static bool set_up(const struct request *request, struct plot_files *files, struct err *err)
{
	const char *path = request->output.path;

	files->keep = request->keep;
	if (!tool_folder(&files->folder, err)) {
		str_clear(&files->folder);
		return false;
	}
	str_format(&files->picture, "%s/picture", files->folder.text);
	if (files->keep) {
		str_format(&files->script, "%s.gnuplot", path);
		str_format(&files->data, "%s.dat", path);
		return true;
	}
	str_format(&files->script, "%s/script", files->folder.text);
	str_format(&files->data, "%s/data", files->folder.text);
	return true;
}

static void clear_up(struct plot_files *files)
{
	if (files->folder.length > 0) {
		file_remove(str_get(&files->picture));
		if (!files->keep) {
			file_remove(str_get(&files->script));
			file_remove(str_get(&files->data));
		}
		file_remove_folder(str_get(&files->folder));
	}
	str_fini(&files->folder);
	str_fini(&files->script);
	str_fini(&files->data);
	str_fini(&files->picture);
}

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

static bool answer_into(const struct request *request, struct chart *chart, struct err *err)
{
	const struct query_options *options = &request->options;
	struct plot_options chosen = request->plot;
	const struct query_context_options context =
		query_options_context(&cmd_plot, options, plot_rules(request->plot.kind));
	char *window = window_words(options);
	struct query_context asked;
	bool good = query_options_open(&context, &asked, err);

	if (good) {
		chosen.window = window;
		chosen.layer_given = selection_words_get(&options->words, SELECTION_LAYER) != NULL;
		good = plot_make(chart, &asked, &chosen, err);
		query_options_warn(&cmd_plot, &asked,
				   NULL); // the picture has room for the first alone
		query_context_close(&asked);
	}
	free(window);
	return good;
}

// What would be missing in the end is told before the work.
static bool can_draw(const struct request *request, struct err *err)
{
	static const char *const kept[] = { "", ".gnuplot", ".dat" };
	bool can = tool_find("gnuplot") ||
		   err_set(err, ERR_IO, "gnuplot draws the pictures, and is not there (%s)",
			   absent_gnuplot);

	for (size_t i = 0; i < (request->keep ? 3 : 1) && can; i++) {
		struct str path = { 0 };

		str_format(&path, "%s%s", request->output.path, kept[i]);
		can = fresh_check(str_get(&path), request->options.force, err);
		str_fini(&path);
	}
	return can;
}

static int print(const struct request *request)
{
	struct chart chart = { 0 };
	struct plot_files files = { 0 };
	struct err err = { 0 };
	bool good;

	good = can_draw(request, &err) && answer_into(request, &chart, &err) &&
	       set_up(request, &files, &err) && draw(request, &chart, &files, &err);
	clear_up(&files);
	chart_fini(&chart);
	return good ? EXIT_ANSWERED : args_fail(&cmd_plot, &err);
}

// ---- the command line ----

static bool take_size(struct args *args, struct request *request)
{
	unsigned width, height;
	char more;

	if (sscanf(args->value, "%5ux%5u%c", &width, &height, &more) != 2 || width < PIXELS_MIN ||
	    height < PIXELS_MIN || width > PIXELS_MAX || height > PIXELS_MAX)
		return args_mistake(args, "--picture takes WIDTHxHEIGHT, %d to %d each, not '%s'",
				    PIXELS_MIN, PIXELS_MAX, args->value);
	request->output.width = width;
	request->output.height = height;
	return true;
}

static bool take_operand(struct args *args, struct request *request)
{
	if (!request->options.path)
		request->options.path = args->value;
	else if (!request->kind)
		request->kind = args->value;
	else
		return args_mistake(args, "one trace and one kind, and then '%s'?", args->value);
	return true;
}

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	switch (id) {
	case ARGS_OPERAND:
		return take_operand(args, request);
	case OPTION_KEEP:
		request->keep = true;
		return true;
	case OPTION_BY:
		request->by = args->value;
		return true;
	case OPTION_SIZE:
		return take_size(args, request);
	}
	return query_options_take(args, &request->options, id) == PRINT_OPTIONS_TAKEN;
}

// The index of a word among words; -1: the mistake was told.
static int find_word(struct args *args, const char *what, const char *word,
		     const char *const *words)
{
	const char *nearest = str_nearest(word, words);
	struct str list = { 0 };

	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], word) == 0) {
			str_fini(&list);
			return i;
		}
		str_format(&list, "%s%s", i > 0 ? ", " : "", words[i]);
	}
	if (nearest)
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
	    !args_need(args, request->kind, "a KIND of picture") ||
	    !args_need(args, request->options.output, "-o FILE") ||
	    !query_options_check(args, &request->options))
		return false;
	request->output.path = request->options.output;
	kind = find_word(args, "kind of picture", request->kind, plot_kind_words);
	if (kind >= 0 && request->by)
		key = find_word(args, "key", request->by, plot_key_words);
	if (kind < 0 || key < 0)
		return false;
	if (!chart_can_draw(request->output.path))
		return args_mistake(args, "%s: pictures are .svg, .png or .pdf",
				    request->output.path);
	request->plot.kind = (enum plot_kind)kind;
	request->plot.key = (enum plot_key)key;
	request->plot.curves_max = request->options.rows_max ? request->options.rows_max : SIZE_MAX;
	request->plot.buckets = request->output.width > BUCKETS_MIN ? request->output.width
								    : BUCKETS_MIN;
	return true;
}

static int run(int argc, char **argv)
{
	struct request request = { .options = { .rows_max = CURVES_DEFAULT },
				   .output = { .width = WIDTH_DEFAULT, .height = HEIGHT_DEFAULT } };
	struct args args;
	int id, code = EXIT_ANSWERED;

	args_init(&args, &cmd_plot, argc, argv);
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
