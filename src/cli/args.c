// For example, `report -an3 --prog=none -- -x.tide` gives the option all-frames, the option rows
// with "3", the option progress with "none" (the only one that begins so), and the operand
// "-x.tide": after "--" all words are operands. Letters may share a word until one of them takes
// the rest of it as its argument.
#include "cli/args.h"

#include "base/mem.h"
#include "base/sink.h"
#include "base/str.h"
#include "cli/absent.h"
#include "cli/args_habits.h"
#include "cli/interrupt.h"
#include "cli/remote.h"
#include "trace/fresh.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// A hundred years: more is a slip.
enum { DAYS_MAX = 36500 };

// Help is laid out for a terminal of 80 columns, whatever the real width is: so it reads the same
// in a pager and in a pipe.
enum { ARGS_HELP_COLUMN = 28, ARGS_HELP_WIDTH = 79, OPTIONS_MAX = 128 };

static const struct option_row args_help_row = { ARGS_EXIT, 'h', "help", NULL, "print this help" };

// Set once, before the command runs. A word is told from one of the command line by which array it
// is in and how far in front: nothing needs to be written to the words themselves.
static char **args_words;        // whose first words come from a file,
static char *const *args_places; // from here
static int args_places_count;

void args_from_file(char **argv, char *const *places, int count)
{
	ASSERT(count >= 0 && (count == 0 || places));
	args_words = argv;
	args_places = places;
	args_places_count = count;
}

void args_init(struct args *args, const struct command *command, int argc, char **argv)
{
	ASSERT(command && argc >= 0);
	memset(args, 0, sizeof(*args));
	args->command = command;
	args->argc = argc;
	args->argv = argv;
}

// `at` is behind the word that is wrong. Where that came from a file its place there is said, since
// the user has not typed it: the words of the file are the first ones.
bool args_mistake(struct args *args, const char *format, ...)
{
	va_list list;

	ASSERT(args->command && format);
	fprintf(stderr, "tidemark %s: ", args->command->name);
	if (args->argv == args_words && args->at > 0 && args->at <= args_places_count)
		fprintf(stderr, "%s: ", args_places[args->at - 1]);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, " (try: tidemark %s --help)\n", args->command->name);
	args->exit_code = EXIT_USAGE;
	return false;
}

// The next of a command's own rows, which may be the beginnings of larger ones.
static const struct option_row *args_row_after(const struct command *command,
					       const struct option_row *row)
{
	size_t stride = command->options_stride;

	// A command may put its rows into larger ones of its own, the row first: `record` has a
	// function beside each. The stride is how far it is from one to the next, in bytes; 0 is a
	// plain array of rows.
	ASSERT(stride == 0 || stride > sizeof *row);
	return stride ? (const void *)((const char *)row + stride) : row + 1;
}

const struct option_row *args_row(const struct command *command, int number)
{
	ASSERT(number >= 0);
	for (const struct option_row *row = command->options; row && row->name;
	     row = args_row_after(command, row))
		if (number-- == 0)
			return row;
	for (const struct option_row *row = command->shared; row && row->name; row++)
		if (number-- == 0)
			return row;
	return number == 0 ? &args_help_row : NULL;
}

// NULL: no row has it. A table is walked each time: 40 rows are read faster than a map is made.
static const struct option_row *args_find_letter(const struct command *command, char letter)
{
	const struct option_row *row;

	for (int i = 0; (row = args_row(command, i)); i++)
		if (row->letter == letter)
			return row;
	return NULL;
}

// The row of that name, or the only one that begins so; *many: several do.
static const struct option_row *args_find_name(const struct command *command, const char *name,
					       size_t length, bool *many)
{
	const struct option_row *found = NULL;
	const struct option_row *row;

	ASSERT(command && name);
	// All rows are gone through although one was found: a second that begins so makes the word
	// ambiguous, and the whole name may be the last in the table. An empty name (`--=x`) begins
	// every one: it is none.
	*many = false;
	for (int i = 0; (row = args_row(command, i)); i++) {
		if (length == 0 || strncmp(row->name, name, length) != 0)
			continue;
		// The whole name wins over longer ones that begin so: --from is not --from-file.
		if (row->name[length] == '\0') {
			*many = false;
			return row;
		}
		*many = found != NULL || *many;
		found = row;
	}
	return *many ? NULL : found;
}

// An option was recognised; give its id, or help.
static int args_found(struct args *args, const struct option_row *row)
{
	ASSERT(row);
	args->row = row;
	if (row != &args_help_row)
		return row->id;
	args_help(args->command, stdout);
	args->exit_code = EXIT_ANSWERED;
	return ARGS_EXIT;
}

// "--leaks" is a habit; "--foce" is near "--force": it is proposed where few letters differ
// (str_nearest).
static void args_suggest(struct args *args, const char *word, size_t length)
{
	const char *names[OPTIONS_MAX + 1] = { NULL };
	const struct option_row *row;
	const char *nearest, *instead = args_habits_instead(args->command, word, length);
	char *name = mem_copy_bytes(word, length);

	ASSERT(word && args->command);
	for (int i = 0; i < OPTIONS_MAX && (row = args_row(args->command, i)); i++)
		names[i] = row->name;
	nearest = str_nearest(name, names);
	if (instead)
		args_mistake(args, "unknown option --%s; here: %s", name, instead);
	else if (nearest)
		args_mistake(args, "unknown option --%s; did you mean --%s?", name, nearest);
	else
		args_mistake(args, "unknown option --%s", name);
	mem_free(name);
}

// `word` is behind the two dashes. "--name=" gives an empty value, which is not the same as none.
static int args_next_long(struct args *args, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	bool many;
	const struct option_row *row = args_find_name(args->command, word, length, &many);

	ASSERT(args->at > 0 && args->at <= args->argc);
	// An unknown name and one that could be several are different mistakes: for the first the
	// nearest name is proposed, for the second no single one could be.
	if (!row) {
		if (many)
			args_mistake(args, "--%.*s could be several options", (int)length, word);
		else
			args_suggest(args, word, length);
		return ARGS_EXIT;
	}
	if (equals && !row->argument) {
		args_mistake(args, "--%s takes no argument", row->name);
		return ARGS_EXIT;
	}
	// The value is in this word after "=", or it is the whole next word, also where that begins
	// with a dash: `--offset -120ms` is a time and no second option.
	args->value = equals ? equals + 1 : NULL;
	if (row->argument && !equals) {
		if (args->at >= args->argc) {
			args_mistake(args, "--%s needs %s", row->name, row->argument);
			return ARGS_EXIT;
		}
		args->value = args->argv[args->at++];
	}
	return args_found(args, row);
}

// The letter at args->cluster, with its argument in the same or in the next word.
static int args_next_letter(struct args *args)
{
	char letter = *args->cluster++;
	const struct option_row *row = args_find_letter(args->command, letter);

	ASSERT(letter != '\0'); // a cluster that has ended is NULL
	if (!row) {
		const char *instead = args_habits_instead(args->command, &letter, 1);

		args_mistake(args, "unknown option -%c%s%s", letter, instead ? "; here: " : "",
			     instead ? instead : "");
		return ARGS_EXIT;
	}
	args->value = NULL;
	if (row->argument) {
		if (*args->cluster != '\0') {
			args->value = args->cluster;
		} else if (args->at < args->argc) {
			args->value = args->argv[args->at++];
		} else {
			args_mistake(args, "-%c needs %s", letter, row->argument);
			return ARGS_EXIT;
		}
		args->cluster = NULL;
	} else if (*args->cluster == '\0') {
		args->cluster = NULL;
	}
	return args_found(args, row);
}

// A trace in a database is a file from here on.
static int args_operand_of(struct args *args, const char *word)
{
	struct err err = { 0 };

	ASSERT(args->command && word);
	args->value = word;
	// A trace that is only read must not be written over by an output of the same command
	// (trace/fresh.h).
	if (!args->command->writes_operand)
		fresh_spare(strcmp(word, "-") == 0 ? "/dev/stdin" : word);
	if (args->command->takes_places || !remote_is(word))
		return ARGS_OPERAND;
	args->value = remote_fetch(word, &err);
	if (args->value)
		return ARGS_OPERAND;
	args->exit_code = args_fail(args->command, &err);
	return ARGS_EXIT;
}

// The row's id says what member of the command's options is set, and of which type:
// ARGS_TEXT(wish, filter) is ARGS_SETS_TEXT and the member's offset. So an option that only sets
// something needs no branch.
static bool args_set(struct args *args, int id)
{
	// The kind is in the number's upper part and the offset in its lower 20 bits. For example a
	// text at offset 16 is 3 * 2^20 + 16 = 3,145,744: what is left by % 2^20 is 16, and the
	// rest is ARGS_SETS_TEXT. A struct of options is below 1 MiB by far.
	void *member = (char *)args->into + id % ARGS_SETS_ONE;

	ASSERT(args->into);
	switch (id - id % ARGS_SETS_ONE) {
	case ARGS_SETS_TEXT:
		*(const char **)member = args->value;
		return true;
	case ARGS_SETS_COUNT:
		return args_count(args, member);
	case ARGS_SETS_BYTES:
		return args_bytes(args, member);
	default:
		*(bool *)member = id < ARGS_SETS_CLEAR;
		return true;
	}
}

// The next id, or one of the values below it, that is not set by its row.
static int args_next_any(struct args *args)
{
	const char *word;

	ASSERT(args->at <= args->argc);
	args->row = NULL;
	args->value = NULL;
	if (args->cluster)
		return args_next_letter(args);
	if (args->at >= args->argc)
		return ARGS_END;
	word = args->argv[args->at];
	if (!args->operands_only && strcmp(word, "--") == 0) {
		args->at++;
		args->operands_only = true;
		return args_next_any(args);
	}
	if (args->operands_only || word[0] != '-' || word[1] == '\0') {
		// `record -n 5 app -n 3`: what follows the program is the program's.
		if (args->stops_at_operand)
			return ARGS_END;
		args->at++;
		return args_operand_of(args, word);
	}
	args->at++;
	if (word[1] == '-')
		return args_next_long(args, word + 2);
	args->cluster = word + 1;
	return args_next_letter(args);
}

// What rows set by themselves is set here; who calls sees the other options, operands and the
// end.
int args_next(struct args *args)
{
	int id = args_next_any(args);

	// A command that has one operand (`operand` is set) never sees it here: the second word
	// that is no option is the mistake "unexpected", with the first one named.
	while (id >= ARGS_SETS_ONE || (id == ARGS_OPERAND && args->operand)) {
		if (!(id >= ARGS_SETS_ONE ? args_set(args, id) : args_operand(args, args->operand)))
			return ARGS_EXIT;
		id = args_next_any(args);
	}
	return id;
}

bool args_count(struct args *args, uint64_t *count)
{
	ASSERT(args->row && args->value); // of an option that has an argument
	if (str_parse_count(args->value, count))
		return true;
	return args_mistake(args, "--%s needs a whole number, not '%s'", args->row->name,
			    args->value);
}

bool args_bytes(struct args *args, uint64_t *bytes)
{
	ASSERT(args->row && args->value);
	if (str_parse_bytes(args->value, bytes))
		return true;
	return args_mistake(args, "--%s needs a size such as 4096, 64K or 1.5MiB, not '%s'",
			    args->row->name, args->value);
}

// strtoul takes "-1" and " 1", too: the first character is looked at.
bool args_days(struct args *args, unsigned *days)
{
	char *end;
	unsigned long value = strtoul(args->value, &end, 10);

	ASSERT(args->row && args->value);
	// A value out of range is ULONG_MAX by strtoul, and so is above DAYS_MAX, too.
	if (value == 0 || value > DAYS_MAX || strcmp(end, "d") != 0 || args->value[0] < '0' ||
	    args->value[0] > '9')
		return args_mistake(args, "--%s %s: a number of days such as 90d expected",
				    args->row->name, args->value);
	*days = (unsigned)value;
	return true;
}

// The words that are allowed are listed in the message.
bool args_word(struct args *args, const char *const *words, int *index)
{
	struct str list = { 0 };

	ASSERT(words && args->row && args->value);
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], args->value) == 0) {
			str_fini(&list);
			*index = i;
			return true;
		}
		str_format(&list, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
	}
	args_mistake(args, "--%s is %s, not '%s'", args->row->name, str_get(&list), args->value);
	str_fini(&list);
	return false;
}

bool args_operand(struct args *args, const char **operand)
{
	ASSERT(args->value);
	if (*operand)
		return args_mistake(args, "unexpected '%s' after '%s'", args->value, *operand);
	*operand = args->value;
	return true;
}

bool args_need(struct args *args, const char *operand, const char *what)
{
	ASSERT(what);
	return operand || args_mistake(args, "needs %s", what);
}

// `text` from `column` on, in lines of at most ARGS_HELP_WIDTH that begin at ARGS_HELP_COLUMN.
static void args_help_wrap(const char *text, int column, FILE *file)
{
	ASSERT(text && column >= 0);
	// Broken at single blanks. The first word is never put on a line of its own: it is beside
	// the option's names, or the caller has begun a new line already. A word that is longer
	// than a line sticks out.
	for (bool first = true; *text != '\0'; first = false) {
		size_t length = strcspn(text, " ");

		if (!first && column + 1 + (int)length > ARGS_HELP_WIDTH) {
			fputc('\n', file);
			column = 0;
		} else if (!first) {
			fputc(' ', file);
			column++;
		}
		if (column < ARGS_HELP_COLUMN)
			column += fprintf(file, "%*s", ARGS_HELP_COLUMN - column, "");
		column += (int)fwrite(text, 1, length, file);
		text += length + (text[length] == ' ');
	}
	fputc('\n', file);
}

// What would be refused here need not be read.
static bool args_lacks(const struct command *command, const struct option_row *row)
{
	struct str word = { 0 };
	bool lacks;

	ASSERT(row->name);
	str_format(&word, "--%s", row->name);
	lacks = command->lacks && command->lacks(str_get(&word)) != NULL;
	str_fini(&word);
	return lacks;
}

// "  -o, --output=FILE       help", the help on a line of its own when the names are long.
static void args_help_row_print(const struct option_row *row, FILE *file)
{
	int column;

	ASSERT(row->name && row->help);
	if (row->letter)
		column = fprintf(file, "  -%c, --%s", row->letter, row->name);
	else
		column = fprintf(file, "      --%s", row->name);
	if (row->argument)
		column += fprintf(file, "=%s", row->argument);
	// Two blanks at least between names and help, or they would read as one.
	if (column + 2 > ARGS_HELP_COLUMN) {
		fputc('\n', file);
		column = 0;
	}
	args_help_wrap(row->help, column, file);
}

// Whole lines behind an empty one, whether or not the last of them ends.
// NULL or empty: nothing at all.
static void args_help_section(const char *text, FILE *file)
{
	size_t length = text ? strlen(text) : 0;

	if (length > 0)
		fprintf(file, "\n%s%s", text, text[length - 1] == '\n' ? "" : "\n");
}

// Examples are written with single quotes, and shown with those of this system's shell.
static void args_help_examples(const char *text, FILE *file)
{
	char *examples = mem_copy_text(text);

	for (char *at = examples; *at != '\0'; at++)
		if (*at == '\'')
			*at = absent_quote;
	fputs("\nExamples", file);
	args_help_section(examples, file);
	mem_free(examples);
}

static const char args_codes_record[] =
	"\nExit codes\n"
	"  the program's own; 125 tidemark failed, 126 not executable, 127 not found;\n"
	"  a signal that ended the program ends tidemark too\n";

static const char args_codes[] =
	"\nExit codes\n"
	"  0 answered, 1 a check failed, 2 usage, 3 unreadable trace, disk or memory,\n"
	"  4 over a budget\n";

// All of it comes from the row, so that a new option cannot be missing here.
void args_help(const struct command *command, FILE *file)
{
	ASSERT(command->name && command->usage && command->brief);
	fprintf(file, "usage: tidemark %s %s\n\n%s.\n", command->name, command->usage,
		command->brief);
	args_help_section(command->text, file);
	// A command's own rows come first, then --help, then the filters that it shares with
	// others, under a title of their own: most users look for the former.
	fprintf(file, "\nOptions\n");
	for (const struct option_row *row = command->options; row && row->name;
	     row = args_row_after(command, row))
		if (!args_lacks(command, row))
			args_help_row_print(row, file);
	args_help_row_print(&args_help_row, file);
	if (command->shared) {
		fprintf(file, "\n%s\n", command->shared_title);
		for (const struct option_row *row = command->shared; row->name; row++)
			args_help_row_print(row, file);
	}
	if (command->examples)
		args_help_examples(command->examples, file);
	if (command->codes)
		fprintf(file, "\nExit codes\n%s", command->codes);
	else
		fputs(command->keeps_signals ? args_codes_record : args_codes, file);
	args_help_section(command->notes, file);
}

// One line, whatever is in it: a trace or a database may have put its own words there.
static void say_line(const char *name, const char *text)
{
	char line[sizeof(struct err)];
	size_t length = 0;

	// Control characters become blanks, one for one; bytes above 0x7f pass, which are UTF-8's.
	// A text that is longer than an error can be is cut.
	ASSERT(name && text);
	for (; text[length] && length + 1 < sizeof line; length++)
		line[length] = (unsigned char)text[length] < ' ' || text[length] == 0x7f
				       ? ' '
				       : text[length];
	line[length] = '\0';
	fprintf(stderr, "tidemark %s: %s\n", name, line);
}

// An index that was damaged is built again, by running the command once more, unless a part of the
// answer is out already.
static bool args_again;

bool args_take_again(void)
{
	static bool taken;
	bool again = args_again && !taken;

	taken = taken || again;
	return again;
}

// A stop by Ctrl-C ends us by the signal itself, so that a shell's loop ends with us; it comes back
// only where the signal is blocked. What was printed until then is flushed first.
int args_fail(const struct command *command, const struct err *err)
{
	bool again = err->kind == ERR_INDEX && !args_again && !sink_has_output();

	if (again) {
		args_again = true;
		args_warn(command, "%s; it is built again", err->text);
		return EXIT_UNREADABLE;
	}
	// ERR_NONE is a failure without a description: it still ends with a code that is not 0.
	say_line(command->name, err->text);
	switch (err->kind) {
	case ERR_NONE:
	case ERR_IO:
	case ERR_FORMAT:
	case ERR_INDEX:
		break;
	case ERR_USAGE:
		return EXIT_USAGE;
	case ERR_LIMIT:
		return EXIT_OVER_BUDGET;
	case ERR_STOPPED:
		fflush(NULL);
		interrupt_end();
		break;
	}
	return EXIT_UNREADABLE;
}

void args_warn(const struct command *command, const char *format, ...)
{
	ASSERT(command && format);
	va_list list;

	fprintf(stderr, "tidemark %s: warning: ", command->name);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
}
