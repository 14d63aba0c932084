// watch: every later start of an image is recorded. Windows.
#include "cli/args.h"

#include "launch/watch_win32.h"

#include <stdio.h>

enum { WATCH_OFF = 1, WATCH_OUTPUT };

static const struct option_row watch_options[] = {
	{ WATCH_OUTPUT, 'o', "output", "FILE",
	  "write the traces to FILE; in it %e is the program, %p its pid, %t the time, %n a number "
	  "that makes it new (tidemark.%e.%p.%n.tide, here)" },
	{ WATCH_OFF, 0, "off", NULL, "no longer; leaves nothing in the registry" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_watch = {
	.name = "watch",
	.brief = "record every later start of an image, by any program",
	.usage = "NAME.exe [-o FILE | --off]",
	.text = "For programs that something else starts: a service, a plug-in host, an\n"
		"installer. Written as the image's Debugger under Image File Execution Options,\n"
		"so it needs an administrator and holds for all users, until --off. Without NAME\n"
		"it lists what is watched.\n",
	.examples = "  tidemark watch editor.exe -o C:\\traces\\%e.%p.tide\n"
		    "  tidemark watch\n"
		    "  tidemark watch editor.exe --off\n",
	.options = watch_options,
	.run = run,
};

// `context` counts.
static void list_one(void *context, const char *name, const char *pattern)
{
	*(int *)context += 1;
	printf("%s  %s\n", name, pattern);
}

static int run(int argc, char **argv)
{
	const char *name = NULL, *pattern = NULL;
	struct err err = { 0 };
	struct args args;
	bool off = false, done;
	int id, count = 0;

	args_init(&args, &cmd_watch, argc, argv);
	while ((id = args_next(&args)) != ARGS_END) {
		if (id == ARGS_EXIT || (id == ARGS_OPERAND && !args_operand(&args, &name)))
			return args.exit_code;
		if (id == WATCH_OFF)
			off = true;
		if (id == WATCH_OUTPUT)
			pattern = args.value;
	}
	// Without a name what is watched is listed, and nothing is changed: both options are of
	// one.
	if (!name && (off || pattern)) {
		args_need(&args, NULL, "the NAME of an image");
		return args.exit_code;
	}
	if (off && pattern) {
		args_mistake(&args, "-o and --off make no sense together");
		return args.exit_code;
	}
	if (!name) {
		watch_list(list_one, &count);
		if (count == 0)
			printf("nothing is watched\n");
		return EXIT_ANSWERED;
	}
	done = off ? watch_off(name, &err) : watch_on(name, pattern, &err);
	return done ? EXIT_ANSWERED : args_fail(&cmd_watch, &err);
}
