// attach: another name of record -p. Linux.
#include "cli/args.h"

#include "base/mem.h"

#include <string.h>

static int run(int argc, char **argv);

const struct command cmd_attach = {
	.name = "attach",
	.brief = "record a program that runs already (record -p)",
	.usage = "PID [options of tidemark record]",
	.text = "From now on, until the program ends or Ctrl-C is pressed here, which leaves it\n"
		"running. Blocks from before are read from the program's heap, without stacks, if\n"
		"it is one of those that record's page names.\n",
	.examples = "  tidemark attach 4242\n"
		    "  tidemark attach 4242 -o editor.tide --duration 30s\n",
	.codes = "  0 the program ended or Ctrl-C was pressed; 125 tidemark failed, 126 the\n"
		 "  process cannot be recorded, 127 there is none\n",
	.keeps_signals = true,
	.run = run,
};

// The words are record's with -p before them: what record checks is checked there. A missing PID is
// a mistake of a recording, so its exit code is 125.
static int run(int argc, char **argv)
{
	char **words = mem_alloc((size_t)argc + 2, sizeof(*words));
	int code;

	if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
		mem_free(words);
		args_help(&cmd_attach, argc ? stdout : stderr);
		return argc ? EXIT_ANSWERED : EXIT_NOT_RECORDED;
	}
	words[0] = (char *)"-p";
	for (int i = 0; i < argc; i++)
		words[i + 1] = argv[i];
	code = cmd_record.run(argc + 1, words);
	mem_free(words);
	return code;
}
