// main: finds the command's row and calls it. Knows nothing else.
//
// In order: words that are no command (help, version), the command's row, then the options of the
// project's file (cli/config.h) put in front of those of the command line. For example with
// "[report]" and "rows = 20" in that file `tidemark report x.tide` runs as `report --rows 20
// x.tide`, and a later option wins. What a command prints is flushed here, once, so that a full
// disk changes the exit code of every command alike.
#include "base/mem.h"
#include "cli/absent.h"
#include "cli/args.h"
#include "cli/args_habits.h"
#include "cli/config.h"

#include "base/str.h"
#include "os/terminal.h"
#include "os/tool.h"

#include <stdio.h>
#include <string.h>

#ifndef TIDEMARK_VERSION
#define TIDEMARK_VERSION "0.1.0"
#endif

// In the order of the help, one a line.
// clang-format off
static const struct command *const commands[] = {
	&cmd_record,
	&cmd_attach,
#ifdef TIDEMARK_WINDOWS
	&cmd_watch,
	&cmd_watched,
#else
	&cmd_top,
	&cmd_bench,
#endif
	&cmd_report,
	&cmd_window,
	&cmd_transients,
	&cmd_findings,
	&cmd_check,
	&cmd_growth,
	&cmd_diff,
	&cmd_active,
	&cmd_map,
	&cmd_plot,
#ifndef TIDEMARK_WINDOWS
	&cmd_replay,
#endif
	&cmd_reconcile,
	&cmd_pins,
#ifdef TIDEMARK_VIEW
	&cmd_view,
#endif
	&cmd_info,
	&cmd_dump,
	&cmd_export,
	&cmd_sql,
	&cmd_push,
	&cmd_fleet,
	&cmd_import,
	&cmd_merge,
	&cmd_strip,
	&cmd_trim,
	&cmd_repair,
	&cmd_bundle,
	&cmd_symbols,
	&cmd_ctl,
	&cmd_collect,
	NULL,
};
// clang-format on

enum { COMMANDS_COUNT = sizeof(commands) / sizeof(commands[0]) - 1 };

// Neither one that is started by ours alone, nor one that would be refused on this system.
static bool is_shown(const struct command *command)
{
	ASSERT(command->name);
	return !command->hidden && !absent_why(command->name);
}

// What is shown without a command.
static void print_synopsis(FILE *file)
{
	fprintf(file, "usage: tidemark COMMAND [options]\n\n"
		      "tidemark records where a program's memory goes, and answers questions "
		      "about it.\n\n");
	for (int i = 0; i < COMMANDS_COUNT; i++)
		if (is_shown(commands[i]))
			fprintf(file, "  %-10s %s\n", commands[i]->name, commands[i]->brief);
	fprintf(file, "\n%s\ntidemark COMMAND --help: options and examples of each.\n",
		absent_first_examples);
}

static const struct command *find_command(const char *name)
{
	ASSERT(name);
	for (int i = 0; i < COMMANDS_COUNT; i++)
		if (strcmp(commands[i]->name, name) == 0 && !absent_why(name))
			return commands[i];
	return NULL;
}

// An option where a command is expected. Other tools record without a command: what was typed is
// then printed as it would be right here.
static void tell_option(char *const *words)
{
	const char *name = words[0] + strspn(words[0], "-");
	const char *instead = args_habits_instead(&cmd_record, name, strcspn(name, "="));
	const struct option_row *row;
	struct str line = { 0 };

	// "--leak-check=full" is of the name "leak-check", "-o" of the letter "o".
	ASSERT(words[0][0] == '-');
	for (int i = 0; (row = args_row(&cmd_record, i)) && line.length == 0; i++)
		if (words[0][1] == '-' ? strlen(row->name) == strcspn(name, "=") &&
						 strncmp(row->name, name, strlen(row->name)) == 0
				       : row->letter && row->letter == *name)
			for (char *const *word = words; *word; word++) {
				str_add_char(&line, ' ');
				str_add_shell(&line, *word);
			}
	if (line.length > 0)
		fprintf(stderr, "tidemark: a command comes first (try: tidemark record%s)\n",
			str_get(&line));
	else if (instead)
		fprintf(stderr, "tidemark: unknown option %s; here, of record: %s\n", words[0],
			instead);
	else
		fprintf(stderr,
			"tidemark: unknown option %s: a command comes first (try: tidemark "
			"--help)\n",
			words[0]);
	str_fini(&line);
}

// One line: that this system lacks it, what it is called here, or what was most likely meant, or
// how to record a program of that name. A trace is there to be read, all else to be run. `words`
// end by NULL.
static int tell_unknown(char *const *words)
{
	const char *word = words[0];
	const char *names[COMMANDS_COUNT + 1] = { NULL };
	const char *nearest, *instead = args_habits_instead(NULL, word, strlen(word));
	int count = 0;

	for (int i = 0; i < COMMANDS_COUNT; i++)
		if (is_shown(commands[i]))
			names[count++] = commands[i]->name;
	nearest = str_nearest(word, names);
	if (absent_why(word) && word[0] != '-')
		fprintf(stderr, "tidemark: %s is not available on %s: %s\n", word, absent_system,
			absent_why(word));
	else if (word[0] == '-')
		tell_option(words);
	else if (str_ends_with(word, ".tide"))
		fprintf(stderr, "tidemark: %s is not a command (try: tidemark report %s)\n", word,
			word);
	else if (instead)
		fprintf(stderr, "tidemark: unknown command '%s'; here: %s\n", word, instead);
	else if (nearest)
		fprintf(stderr, "tidemark: unknown command '%s'; did you mean '%s'?\n", word,
			nearest);
	else
		fprintf(stderr,
			"tidemark: unknown command '%s' (try: tidemark --help; to record a "
			"program: tidemark record %s)\n",
			word, word);
	return EXIT_USAGE;
}

// help [COMMAND], version, and the options of their names; -1: none of them.
static int run_builtin(int argc, char **argv)
{
	const char *word = argv[0];

	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ||
	    strcmp(word, "version") == 0) {
		printf("tidemark %s\n", TIDEMARK_VERSION);
		return EXIT_ANSWERED;
	}
	if (strcmp(word, "--help") != 0 && strcmp(word, "-h") != 0 && strcmp(word, "help") != 0)
		return -1;
	if (argc > 1) {
		const struct command *command = find_command(argv[1]);

		if (!command)
			return tell_unknown(argv + 1);
		args_help(command, stdout);
	} else {
		print_synopsis(stdout);
	}
	return EXIT_ANSWERED;
}

// What was buffered must arrive, or the exit code says that it did not.
static int flush_stdout(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (code == EXIT_ANSWERED)
		fprintf(stderr, "tidemark: cannot write to standard output\n");
	return code == EXIT_ANSWERED ? EXIT_UNREADABLE : code;
}

// With the options of the project's file before those that were given.
static int run(const struct command *command, int argc, char **argv)
{
	struct config config;
	struct err err = { 0 };
	int code;

	// Hidden commands are started by our own programs, which say all that they need: no file of
	// the user's has a say.
	if (command->hidden)
		return command->run(argc, argv);
	if (config_read(&config, commands, command, argc, argv, &err)) {
		args_from_file(config.argv, config.places, config.words_count);
		code = command->run(config.argc, config.argv);
		if (args_take_again())
			code = command->run(config.argc, config.argv);
	} else {
		code = args_fail(command, &err);
		if (command == &cmd_record)
			code = EXIT_NOT_RECORDED;
	}
	config_fini(&config);
	return code;
}

// A program that is recorded must see the signals as our parent left them, and not find our own
// libraries preloaded: commands that start one say so in their row (keeps_signals).
int main(int argc, char **argv)
{
	const struct command *command;
	int code;

	argv = tool_arguments(&argc, argv);
	if (argc < 2) {
		print_synopsis(stdout);
		return flush_stdout(EXIT_ANSWERED);
	}
	// -1 is no exit code of ours: it is what a word that is neither help nor version gives.
	code = run_builtin(argc - 1, argv + 1);
	if (code >= 0)
		return flush_stdout(code);
	command = find_command(argv[1]);
	if (!command)
		return tell_unknown(argv + 1);

	if (command->keeps_signals)
		tool_leave_preloaded(argv);
	// `tidemark report … | head` ends quietly, also where our parent ignored the signal.
	terminal_begin(command->keeps_signals);
	return flush_stdout(run(command, argc - 2, argv + 2));
}
