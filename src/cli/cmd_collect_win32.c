// collect: the collector of a program started with LD_PRELOAD. Windows knows no such thing.
#include "cli/args.h"

#include <stdio.h>

static int run(int argc, char **argv)
{
	(void)argc, (void)argv;
	fprintf(stderr,
		"tidemark: collect: on Windows, programs are recorded by tidemark record\n");
	return EXIT_USAGE;
}

const struct command cmd_collect = {
	.name = "collect",
	.brief = "not on Windows",
	.usage = "",
	.hidden = true,
	.run = run,
};
