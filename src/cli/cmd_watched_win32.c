// watched: what a program that is watched is started by (launch/watch_win32.h). Not for people: it
// says nothing but that the program cannot be started.
#include "cli/args.h"
#include "cli/summary.h"

#include "launch/launch.h"
#include "launch/leave.h"

#ifndef TIDEMARK_VERSION
#define TIDEMARK_VERSION "0.1.0"
#endif

static void keep_quiet(const char *)
{
}

// The first word is the pattern of the trace's name, then comes the command line that Windows would
// have started.
static int run(int argc, char **argv)
{
	struct launch_options launch = { .argv = argv + 1,
					 .output_pattern = argv[0],
					 .watched = true,
					 .options_text = "",
					 .tool = "tidemark " TIDEMARK_VERSION,
					 .tell = keep_quiet };
	struct launch_result result;
	struct err err = { 0 };
	int code;

	// Started by hand, most likely: there is no program to run.
	if (argc < 2)
		return EXIT_NOT_RECORDED;
	launch_run(&launch, &result, &err);
	code = result.end == LAUNCH_RAN ? leave_as(result.status) : summary_failed(&result, &err);
	launch_result_fini(&result);
	return code;
}

const struct command cmd_watched = {
	.name = "watched",
	.brief = "what a watched program is started by",
	.usage = "PATTERN PROGRAM [ARGUMENT...]",
	.hidden = true,
	.keeps_signals = true,
	.run = run,
};
