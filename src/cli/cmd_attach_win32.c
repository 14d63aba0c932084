// attach: records a program that runs already. Windows.
#include "cli/args.h"
#include "cli/summary.h"

#include "launch/launch.h"
#include "wire/segment.h"

#include <stdlib.h>

#ifndef TIDEMARK_VERSION
#define TIDEMARK_VERSION "0.1.0"
#endif

enum { ATTACH_OUTPUT = 1, ATTACH_FORCE, ATTACH_FREE_STACKS, ATTACH_NO_FOLLOW, ATTACH_QUIET };

static const struct option_row attach_options[] = {
	{ ATTACH_OUTPUT, 'o', "output", "FILE", "write the trace to FILE, named as record does" },
	{ ATTACH_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ ATTACH_FREE_STACKS, 0, "free-stacks", NULL, "record the stack of every free as well" },
	{ ATTACH_NO_FOLLOW, 0, "no-follow", NULL, "do not record the program's children" },
	{ ATTACH_QUIET, 'q', "quiet", NULL, "print no summary at the end" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_attach = {
	.name = "attach",
	.brief = "record a program that runs already",
	.usage = "PID [options]",
	.text = "From now on, until the program ends or Ctrl-C is pressed here, which leaves it\n"
		"running. Blocks from before are not known: their frees are counted as such. No\n"
		"administrator is needed for programs of the same user. A program can be attached\n"
		"to once in its life.\n",
	.examples = "  tidemark attach 4242\n"
		    "  tidemark attach 4242 -o editor.tide\n",
	.options = attach_options,
	.codes = "  0 the program ended or Ctrl-C was pressed; 125 tidemark failed, 126 the\n"
		 "  process cannot be recorded, 127 there is none\n",
	.keeps_signals = true,
	.run = run,
};

// The operand as a process id; 0: it was told that it is none.
static uint32_t pid_of(struct args *args, const char *word)
{
	char *end;
	unsigned long long pid = strtoull(word, &end, 10);

	if (*word >= '0' && *word <= '9' && *end == 0 && pid > 0 && pid <= UINT32_MAX)
		return (uint32_t)pid;
	args_mistake(args, "'%s' is not a process id", word);
	return 0;
}

// False: return args->exit_code.
static bool parse(struct args *args, struct launch_options *launch, bool *quiet)
{
	const char *pid = NULL;
	int id;

	// Who reads the trace has to know whether frees have stacks, and children are in it.
	static const char *const texts[] = { "", "free-stacks", "no-follow",
					     "free-stacks no-follow" };
	unsigned text = 0;

	while ((id = args_next(args)) != ARGS_END) {
		switch (id) {
		case ARGS_EXIT:
			return false;
		case ARGS_OPERAND:
			if (!args_operand(args, &pid))
				return false;
			break;
		case ATTACH_OUTPUT:
			launch->output_pattern = args->value;
			break;
		case ATTACH_FORCE:
			launch->force = true;
			break;
		case ATTACH_FREE_STACKS:
			launch->segment_options |= SEGMENT_FREE_STACKS;
			text |= 1;
			break;
		case ATTACH_NO_FOLLOW:
			launch->segment_options |= SEGMENT_NO_FOLLOW;
			text |= 2;
			break;
		case ATTACH_QUIET:
			*quiet = true;
			break;
		}
	}
	launch->options_text = texts[text];
	return args_need(args, pid, "a PID") && (launch->attach_pid = pid_of(args, pid)) != 0;
}

static int run(int argc, char **argv)
{
	struct launch_options launch = { .options_text = "",
					 .tool = "tidemark " TIDEMARK_VERSION,
					 .tell = summary_tell };
	struct launch_result result;
	struct err err = { 0 };
	struct args args;
	bool quiet = false;
	int code = EXIT_ANSWERED;

	args_init(&args, &cmd_attach, argc, argv);
	// A mistake of the command line is 125 here, as in record: 2 may be a program's own.
	if (!parse(&args, &launch, &quiet))
		return args.exit_code == EXIT_USAGE ? EXIT_NOT_RECORDED : args.exit_code;
	launch_run(&launch, &result, &err);
	if (result.end != LAUNCH_RAN)
		code = summary_failed(&result, &err);
	else if (!quiet)
		summary_print(&result);
	launch_result_fini(&result);
	return code;
}
