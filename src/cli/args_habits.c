// args_habits: a table of words, each beside what is typed here. The nearest word by its letters
// would be another one: "print" is near to "pins".
#include "cli/args_habits.h"

#include "base/mem.h"
#include "cli/args.h"

#include <string.h>

// `command` is its name, "" where a command is expected, "*" an option of any command that has the
// option by which `instead` begins. `words` are separated by blanks.
struct habit {
	const char *command, *words, *instead;
};

// clang-format off
static const struct habit habits[] = {
	// What others call a command, or do by their only one.
	{ "", "print show stat stats summary text analyze analyse", "tidemark report FILE" },
	{ "", "leak leaks leak-check memcheck",
	  "tidemark record --reachability PROGRAM, then tidemark findings FILE" },
	{ "", "run start trace profile launch exec", "tidemark record PROGRAM" },
	{ "", "gui ui open web browse browser serve", "tidemark view FILE" },
	{ "", "flamegraph flame-graph flame graph svg",
	  "tidemark view FILE, or tidemark export FILE --format flamegraph -o FILE.svg" },
	{ "", "tree callgraph", "tidemark window FILE --tree callers" },
	{ "", "table list", "tidemark window FILE" },
	{ "", "compare", "tidemark diff BEFORE AFTER" },
	{ "", "convert", "tidemark export FILE --format NAME, or tidemark import FILE -o OUT" },
	{ "", "live monitor", "tidemark top PID" },
	{ "", "stop pause detach mark save",
	  "tidemark ctl PID stop (detach, mark NAME, save FILE)" },
	// Valgrind's and heaptrack's, which come after the name of the tool.
	{ "record", "leak-check leaks show-leak-kinds detect-leaks leak-resolution",
	  "--reachability, then tidemark findings FILE" },
	{ "record", "massif-out-file dhat-out-file log-file out-file outfile", "-o FILE" },
	{ "record", "trace-children follow-fork follow-children",
	  "children are recorded, unless --no-follow is given" },
	{ "record", "record-only r", "record does that alone, and opens nothing" },
	{ "record", "tool", "one recording has peaks, leaks, growth and temporaries" },
	// heaptrack_print's: its sections are asked for one by one.
	{ "report", "leaks print-leaks leak leak-check l",
	  "LIVE AT EXIT is what was not freed; record --reachability says which are lost" },
	{ "report", "peaks peak print-peaks allocators print-allocators print-temporary",
	  "the report has the peak, most calls and temporary blocks" },
	{ "report", "flamegraph print-flamegraph flame F",
	  "tidemark export FILE --format flamegraph -o FILE.svg" },
	{ "report", "histogram print-histogram H", "tidemark window FILE --by size" },
	{ "report", "massif print-massif M", "tidemark export FILE --format massif -o OUT" },
	{ "report", "sort sort-by", "tidemark window FILE --sort COLUMN" },
	// Limits. "Leaked" is either not freed, or out of reach.
	{ "check", "max-leak max-leaks max-leaked fail-on-leak error-exitcode leak-check",
	  "--max-live-at-exit SIZE, or --max-unreachable SIZE of a record --reachability" },
	{ "check", "max-memory max-heap max-size limit budget", "--max-peak SIZE" },
	{ "check", "github github-annotations", "--annotate github" },
	{ "diff", "fail fail-on threshold exit-code",
	  "tidemark check FILE --baseline FILE, which fails where a run takes more" },
	// Options of which one is everywhere, under one name.
	{ "*", "top limit count lines head max-rows", "--rows N" },
	{ "*", "function func symbol filter grep match", "--frame REGEX" },
	{ "*", "lib library dso", "--module REGEX" },
	{ "*", "pid", "--process PID" },
	{ "*", "tid", "--thread TID" },
	{ "*", "since start begin", "--from TIME" },
	{ "*", "until end", "--to TIME" },
	{ "*", "out outfile out-file", "--output FILE" },
	{ "*", "sort-by order order-by", "--sort COLUMN" },
};
// clang-format on

// Whether `word` is one of `words`, as a whole.
static bool args_habits_has_word(const char *words, const char *word, size_t length)
{
	ASSERT(words && word);
	// Up to the blank, or to the end of the text; then past the blank.
	while (*words) {
		size_t here = strcspn(words, " ");

		if (here == length && memcmp(words, word, length) == 0)
			return true;
		words += here + (words[here] == ' ');
	}
	return false;
}

// Whether `command` has the option by which `text` begins: "--frame REGEX".
static bool args_habits_fits(const struct command *command, const char *text)
{
	const struct option_row *row;
	size_t length = strcspn(text + 2, " "); // of "frame"

	ASSERT(strncmp(text, "--", 2) == 0);
	for (int i = 0; (row = args_row(command, i)); i++)
		if (strlen(row->name) == length && memcmp(row->name, text + 2, length) == 0)
			return true;
	return false;
}

// Of an option that many commands have, one that lacks it says nothing: there is none to propose.
const char *args_habits_instead(const struct command *command, const char *word, size_t length)
{
	const char *name = command ? command->name : "";

	ASSERT(name && word);
	// The first row wins: those of a command are in front of those of all.
	for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
		const struct habit *habit = &habits[i];

		if (args_habits_has_word(habit->words, word, length) &&
		    (strcmp(habit->command, name) == 0 ||
		     (command && *habit->command == '*' &&
		      args_habits_fits(command, habit->instead))))
			return habit->instead;
	}
	return NULL;
}
