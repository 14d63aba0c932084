#include "cli/ask.h"

#include "cli/interrupt.h"

#include <stdio.h>

enum look_taken ask_take(struct args *args, struct ask *ask, int id)
{
	if (filters_take(args, &ask->words, id))
		return LOOK_TAKEN;
	switch (id) {
	case ASK_ROWS:
		return args_count(args, &ask->rows_max) ? LOOK_TAKEN : LOOK_MISTAKE;
	case ASK_MIN_BYTES:
		return args_bytes(args, &ask->bytes_min) ? LOOK_TAKEN : LOOK_MISTAKE;
	case ASK_MEMORY:
		return args_bytes(args, &ask->memory_bytes) ? LOOK_TAKEN : LOOK_MISTAKE;
	case ASK_ALL_FRAMES:
		ask->all_frames = true;
		return LOOK_TAKEN;
	}
	return look_take(args, &ask->look, id);
}

bool ask_take_all(struct args *args, struct ask *ask)
{
	int id;

	while ((id = args_next(args)) != ARGS_END) {
		if (id == ARGS_EXIT)
			return false;
		if (id == ARGS_OPERAND ? !args_operand(args, &ask->path)
				       : ask_take(args, ask, id) == LOOK_MISTAKE)
			return false;
	}
	return args_need(args, ask->path, "a trace FILE") && filters_check(args, &ask->words);
}

static void say(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "tidemark: %s\n", text);
}

bool ask_open(const struct ask *ask, const char *path, const struct selection_words *words,
	      struct inquiry *inquiry, struct err *err)
{
	const struct inquiry_options options = {
		.path = path,
		.words = words,
		.symbols = ask->look.symbols,
		.window = {
			.memory_bytes = ask->memory_bytes,
			.progress = ask->look.progress,
			.stop = interrupt_came,
			.say = say,
		},
	};
	bool good;

	interrupt_watch();
	good = inquiry_open(inquiry, &options, err);
	interrupt_leave();
	return good;
}

void ask_warn(const struct command *command, const struct inquiry *inquiry, const char *trace)
{
	for (size_t i = 0; i < inquiry->warnings_count; i++)
		args_warn(command, "%s%s%s", trace ? trace : "", trace ? ": " : "",
			  inquiry->warnings[i]);
}

static int print(const struct command *command, const struct ask *ask,
		 bool (*answer)(const struct ask *ask, struct inquiry *inquiry, struct sink *sink,
				struct err *err))
{
	struct sink sink = sink_to_file(stdout);
	struct inquiry inquiry;
	struct err err = { 0 };
	bool good;

	if (!ask_open(ask, ask->path, &ask->words, &inquiry, &err))
		return args_fail(command, &err);
	good = answer(ask, &inquiry, &sink, &err) && sink_ok(&sink, &err);
	if (good && (ask->look.json || ask->look.csv))
		ask_warn(command, &inquiry, NULL);
	inquiry_close(&inquiry);
	return good ? EXIT_ANSWERED : args_fail(command, &err);
}

int ask_run(const struct command *command, int argc, char **argv,
	    bool (*answer)(const struct ask *ask, struct inquiry *inquiry, struct sink *sink,
			   struct err *err))
{
	struct ask ask = { .rows_max = ASK_ROWS_DEFAULT };
	struct args args;
	int code;

	args_init(&args, command, argc, argv);
	code = ask_take_all(&args, &ask) ? print(command, &ask, answer) : args.exit_code;
	selection_words_fini(&ask.words);
	return code;
}
