// query_options: takes the options that commands share. An option is known by its number alone: a
// command that does not list its row can never get it, so all of them are taken here in one place.
#include "cli/query_options.h"

#include "base/mem.h"
#include "cli/interrupt.h"
#include "cli/running.h"
#include "os/file.h"
#include "report/ask/moment_view.h"
#include "trace/fresh.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_DEFAULT = 10 };

void query_options_fini(struct query_options *options)
{
	selection_words_fini(&options->words);
}

// Filters first, then the options of this file, then those of print_options.
enum print_options_taken query_options_take(struct args *args, struct query_options *options,
					    int id)
{
	bool good = true;

	// Ids of the three do not overlap (1,000, 2,000 and 3,000 on), so the order decides nothing
	// but speed.
	if (filters_take(args, &options->words, id))
		return PRINT_OPTIONS_TAKEN;
	switch (id) {
	case ARGS_OPERAND:
		good = args_operand(args, &options->path);
		break;
	case QUERY_OPTIONS_AT:
		options->at = args->value;
		break;
	case QUERY_OPTIONS_OUTPUT:
		options->output = args->value;
		break;
	case QUERY_OPTIONS_FORCE:
		options->force = true;
		break;
	case QUERY_OPTIONS_ROWS:
		options->rows_given = true;
		// Zero is a wish, too (all rows): so that it was given is kept apart from the
		// number.
		good = args_count(args, &options->rows_max);
		break;
	case QUERY_OPTIONS_MIN_BYTES:
		good = args_bytes(args, &options->bytes_min);
		break;
	case QUERY_OPTIONS_MEMORY:
		good = args_bytes(args, &options->memory_bytes);
		break;
	case QUERY_OPTIONS_ALL_FRAMES:
		options->all_frames = true;
		break;
	default:
		return print_options_take(args, &options->print, id);
	}
	return good ? PRINT_OPTIONS_TAKEN : PRINT_OPTIONS_MISTAKE;
}

bool query_options_take_all(struct args *args, struct query_options *options)
{
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || query_options_take(args, options, id) != PRINT_OPTIONS_TAKEN)
			return false;
	return query_options_check(args, options);
}

bool query_options_check(struct args *args, const struct query_options *options)
{
	struct err err = { 0 };

	if (!args_need(args, options->path, "a trace FILE") ||
	    !filters_check(args, &options->words))
		return false;
	return moment_view_check(options->at, &err) || args_mistake(args, "--at: %s", err.text);
}

// What the building of an index has to say, with the command's name before it.
static void say(void *context, const char *text)
{
	const struct command *command = context;

	fprintf(stderr, "tidemark %s: %s\n", command->name, text);
}

static bool await(void *context, const char *path, const struct reader *reader)
{
	return running_await(context, path, reader);
}

// All is borrowed: `options` must live until the question is closed.
// Rules are the command's: whether it asks about windows, moments or events, which layers and which
// filters it can honour. What the user may choose is in `options`, the rest has the engine's
// defaults.
struct query_context_options query_options_context(const struct command *command,
						   const struct query_options *options,
						   const struct query_context_rules *rules)
{
	ASSERT(command && rules);
	return (struct query_context_options){
		.rules = rules,
		.path = options->path,
		.words = &options->words,
		.symbols = options->print.symbols,
		.at = options->at,
		.await = await,
		.window = {
			.memory_bytes = options->memory_bytes,
			.progress = options->print.progress,
			.stop = interrupt_came,
			.say = say,
			.context = (void *)(uintptr_t)command,
		},
	};
}

// A number that is no file may be a process that is recorded now: its trace is one.
static void name_trace_of_process(const char *word, struct err *err)
{
	struct str path = { 0 };
	struct err ignored = { 0 };

	if (file_look(word) == FILE_IS_MISSING && running_trace(word, &path, &ignored) &&
	    strcmp(str_get(&path), word) != 0)
		err_set(err, err->kind, "there is no file %s; process %s is recorded into %s", word,
			word, str_get(&path));
	str_fini(&path);
}

bool query_options_open(const struct query_context_options *context, struct query_context *asked,
			struct err *err)
{
	bool good;

	ASSERT(context->rules);
	// Opening may build an index, which takes seconds to minutes: Ctrl-C stops it in order,
	// with what is half written removed. After it, until the answer is printed, Ctrl-C ends the
	// process as usual.
	interrupt_watch();
	good = query_context_open(asked, context, err);
	interrupt_leave();
	if (!good)
		name_trace_of_process(context->path, err);
	return good;
}

struct paper query_options_paper(const struct query_options *options, struct sink *sink)
{
	return (struct paper){
		.sink = sink,
		.width = print_options_width(),
		.colour = print_options_colour(&options->print),
	};
}

void query_options_warn(const struct command *command, const struct query_context *asked,
			const char *trace)
{
	query_options_warn_before(command, asked, trace);
	query_options_warn_of_symbols(command, asked, trace);
}

void query_options_warn_before(const struct command *command, const struct query_context *asked,
			       const char *trace)
{
	// `trace` is named where a command has several; of one trace the user knows which it is.
	for (size_t i = 0; i < asked->warnings_count; i++)
		args_warn(command, "%s%s%s", trace ? trace : "", trace ? ": " : "",
			  asked->warnings[i]);
}

void query_options_warn_of_symbols(const struct command *command, const struct query_context *asked,
				   const char *trace)
{
	const char *const *notes;
	size_t count = symbols_notes(asked->symbols, &notes);

	for (size_t i = 0; i < count; i++)
		args_warn(command, "%s%ssymbols: %s", trace ? trace : "", trace ? ": " : "",
			  notes[i]);
}

struct sheet query_options_sheet(const struct command *command, const struct query_options *options,
				 const struct query_context *asked, struct sink *sink)
{
	ASSERT(options->print.form);
	return (struct sheet){
		.form = options->print.form,
		.sink = sink,
		.page = { command->name, { asked }, { options->path } },
	};
}

bool query_options_warns(const struct query_options *options)
{
	// A text or Markdown answer has its warnings on the page, where they are read; the other
	// forms have no place for a sentence, so stderr gets them.
	return options->print.json || (options->print.form && !options->print.form->page);
}

// The context is closed in any case; the answer may have been printed in part when writing fails,
// and the exit code says so.
int query_options_print(const struct command *command, const struct query_options *options,
			const struct query_context_options *context, query_options_answer *answer,
			const void *request)
{
	struct sink sink = sink_to_file(stdout);
	struct query_context asked;
	struct err err = { 0 };
	bool good;

	ASSERT(command && context->rules && answer);
	if (!query_options_open(context, &asked, &err))
		return args_fail(command, &err);
	// How the calls on virtual memory were seen (all of them, or those through libc alone)
	// decides what their figures are worth: this is known only from the trace, so it is added
	// here, for each command.
	if (asked.window && asked.layers & WINDOW_VM)
		moment_view_warn_of_calls(&asked);
	good = answer(request, &asked, &sink, &err) && sink_ok(&sink, &err);
	if (good && query_options_warns(options))
		query_options_warn(command, &asked, NULL);
	query_context_close(&asked);
	return good ? EXIT_ANSWERED : args_fail(command, &err);
}

// For commands that have no options but shared ones: they are the `request` of their answer.
int query_options_run(const struct command *command, int argc, char **argv,
		      const struct query_context_rules *rules, query_options_answer *answer)
{
	struct query_options options = { .rows_max = ROWS_DEFAULT };
	struct query_context_options context;
	struct args args;
	int code;

	ASSERT(command && rules && answer);
	args_init(&args, command, argc, argv);
	if (query_options_take_all(&args, &options)) {
		context = query_options_context(command, &options, rules);
		code = query_options_print(command, &options, &context, answer, &options);
	} else {
		code = args.exit_code;
	}
	query_options_fini(&options);
	return code;
}

bool query_options_can_write(const struct query_options *options, struct err *err)
{
	return !options->output || fresh_check(options->output, options->force, err);
}

// `name` NULL: the standard output, in messages.
static bool write_to(FILE *file, const char *name, query_options_write_function *write,
		     void *context, struct err *err)
{
	struct sink sink = sink_to_file(file);

	sink.name = name;
	return write(context, &sink, err) && sink_ok(&sink, err);
}

bool query_options_write(const struct query_options *options, query_options_write_function *write,
			 void *context, struct err *err)
{
	struct fresh fresh = { .fd = -1 };
	FILE *file;
	bool ok;

	ASSERT(write);
	if (!options->output)
		return write_to(stdout, NULL, write, context, err);
	// The file gets its name when it is whole (trace/fresh.h): a failure or Ctrl-C leaves what
	// was there before, and no half of an answer.
	if (!fresh_open(&fresh, options->output, options->force, err))
		return false;
	// A stream has a buffer and is closed to write it out; the descriptor stays for fresh_keep,
	// which gives the file its name.
	file = file_stream_copy(fresh.fd, "w");
	ok = file || err_errno(err, errno, "cannot write %s", options->output);
	ok = ok && write_to(file, options->output, write, context, err);
	if (file && fclose(file) != 0 && ok)
		ok = err_errno(err, errno, "cannot write %s", options->output);
	ok = ok && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return ok;
}
