// config: the file is read by libinih, line by line, and each key becomes a word "--key=value" in
// front of the command line. Sections of other commands are checked as well: a slip in one is told
// at once, not in the night when that command runs. The first mistake counts; what comes after it
// is not looked at.
#include "cli/config.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 128 };

static const char file_name[] = "tidemark.conf";

// While a file is read. `line` is the one that is looked at, from 1.
struct reading {
	struct config *config;
	const struct command *const *commands; // all; NULL at the end
	const struct command *command;         // whose options are wanted
	const char *path;
	FILE *file;
	int line;
	struct err *err;
	bool failed;
};

// "FILE:3: WHAT 'word'; did you mean 'nearest'?" Always false.
static bool fail(struct reading *reading, const char *what, const char *word, const char *nearest)
{
	ASSERT(what && word);
	// The first one is what the user is told; libinih may call once more before it stops.
	if (reading->failed)
		return false;
	reading->failed = true;
	return err_set(reading->err, ERR_USAGE, "%s:%d: %s '%s'%s%s%s", reading->path,
		       reading->line, what, word, nearest ? "; did you mean '" : "",
		       nearest ? nearest : "", nearest ? "'?" : "");
}

// NULL: it was told. Hidden commands have no section.
static const struct command *find_command(struct reading *reading, const char *section)
{
	const char *names[NAMES_MAX + 1] = { NULL };
	int count = 0;

	for (int i = 0; reading->commands[i]; i++) {
		if (reading->commands[i]->hidden)
			continue;
		if (strcmp(reading->commands[i]->name, section) == 0)
			return reading->commands[i];
		if (count < NAMES_MAX)
			names[count++] = reading->commands[i]->name;
	}
	fail(reading, "no command is called", section, str_nearest(section, names));
	return NULL;
}

static const struct option_row *find_option(struct reading *reading, const struct command *command,
					    const char *key)
{
	const char *names[NAMES_MAX + 1] = { NULL };
	const struct option_row *row;
	struct str what = { 0 };

	for (int i = 0; i < NAMES_MAX && (row = args_row(command, i)); i++) {
		names[i] = row->name;
		// Whole names alone: a beginning that is unique today may not be tomorrow. "help"
		// is no setting.
		if (strcmp(row->name, key) == 0 && strcmp(key, "help") != 0)
			return row;
	}
	str_format(&what, "%s has no option", command->name);
	fail(reading, str_get(&what), key, str_nearest(key, names));
	str_fini(&what);
	return NULL;
}

// yes or no, for an option without an argument.
static bool read_switch(struct reading *reading, const char *value, bool *on)
{
	static const char *const words[2][4] = { { "no", "false", "off", "0" },
						 { "yes", "true", "on", "1" } };

	for (int i = 0; i < 8; i++) {
		if (strcmp(value, words[i / 4][i % 4]) == 0) {
			*on = i / 4;
			return true;
		}
	}
	return fail(reading, "yes or no expected, not", value, NULL);
}

// The long name with '=', so that a value may begin with a dash. argv and places grow by one each:
// a file has few keys.
static void add_word(struct reading *reading, const struct option_row *row, const char *value)
{
	struct config *config = reading->config;
	size_t count = (size_t)config->words_count;
	struct str word = { 0 }, place = { 0 };

	ASSERT(row->name && (!row->argument || value));
	str_format(&word, "--%s", row->name);
	if (row->argument)
		str_format(&word, "=%s", value);
	str_format(&place, "%s:%d", reading->path, reading->line);
	config->argv = mem_resize(config->argv, count + 1, sizeof *config->argv);
	config->places = mem_resize(config->places, count + 1, sizeof *config->places);
	config->argv[count] = str_take(&word);
	config->places[count] = str_take(&place);
	config->words_count++;
}

// inih calls it for each key. 0: stop.
static int take(void *context, const char *section, const char *key, const char *value)
{
	struct reading *reading = context;
	const struct command *command = find_command(reading, section);
	const struct option_row *row = command ? find_option(reading, command, key) : NULL;
	bool on = true;

	if (!row || (!row->argument && !read_switch(reading, value, &on)))
		return 0;
	// `key = no` takes nothing away that the command line gives: it is as if the line were not
	// there.
	if (command == reading->command && on)
		add_word(reading, row, value);
	return 1;
}

// inih reads a line before it calls for what is in it: so this one is the last.
static char *next_line(char *line, int size, void *context)
{
	struct reading *reading = context;
	char *got = reading->failed ? NULL : fgets(line, size, reading->file);

	ASSERT(size > 20);
	if (!got)
		return NULL;
	reading->line++;
	// fgets has filled the buffer and has not seen the line's end.
	if (strlen(got) + 1 == (size_t)size && got[size - 2] != '\n')
		fail(reading, "the line is too long at", got + size - 20, NULL);
	return reading->failed ? NULL : got;
}

// ---- which file ----

// A file that someone else left in /tmp must not give options to our commands: they can name files
// to overwrite.
static bool is_trusted(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
	       (status.st_uid == 0 || status.st_uid == geteuid());
}

// In the working directory or above it. False: there is none.
static bool find_file(const struct command *command, struct str *path)
{
	char folder[PATH_MAX];

	if (!getcwd(folder, sizeof folder))
		return false;
	for (;;) {
		char *slash = strrchr(folder, '/');

		str_clear(path);
		str_format(path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, file_name);
		// The nearest one alone counts, also where it is not trusted: what is above it was
		// meant for others.
		if (access(str_get(path), F_OK) == 0) {
			if (is_trusted(str_get(path)))
				return true;
			args_warn(command, "%s is another user's, and is not read", str_get(path));
			return false;
		}
		if (!slash || strcmp(folder, "/") == 0)
			return false;
		// "/home/a" becomes "/home", and "/home" becomes "/".
		slash[slash == folder] = '\0';
	}
}

// False: *err is set.
static bool read_file(struct reading *reading)
{
	int broken;

	reading->file = fopen(reading->path, "re");
	if (!reading->file)
		return err_errno(reading->err, errno, "cannot read %s", reading->path);
	broken = ini_parse_stream(next_line, reading, take, reading);
	fclose(reading->file);
	// A line that libinih itself cannot read; `broken` is its number.
	if (broken != 0 && !reading->failed) {
		reading->line = broken;
		fail(reading, "a line is [COMMAND], OPTION = VALUE or # a comment: see",
		     "tidemark.conf(5)", NULL);
	}
	return !reading->failed;
}

// The words of argv are borrowed, those of the file owned: config_fini frees only the first
// words_count.
bool config_read(struct config *config, const struct command *const *commands,
		 const struct command *command, int argc, char **argv, struct err *err)
{
	const char *given = getenv("TIDEMARK_CONF");
	struct reading reading = {
		.config = config, .commands = commands, .command = command, .err = err
	};
	struct str path = { 0 };
	bool good = true;

	ASSERT(commands && command && argc >= 0);
	*config = (struct config){ 0 };
	// An empty TIDEMARK_CONF is no file at all.
	if (given)
		str_add(&path, given);
	else if (!find_file(command, &path))
		str_clear(&path);
	reading.path = str_get(&path);
	if (*reading.path)
		good = read_file(&reading);
	config->argc = config->words_count + argc;
	config->argv = mem_resize(config->argv, (size_t)config->argc + 1, sizeof *config->argv);
	memcpy(config->argv + config->words_count, argv, (size_t)argc * sizeof *argv);
	config->argv[config->argc] = NULL;
	str_fini(&path);
	return good;
}

void config_fini(struct config *config)
{
	for (int i = 0; i < config->words_count; i++) {
		MEM_FREE(config->argv[i], config->places[i]);
	}
	MEM_FREE(config->argv, config->places);
	*config = (struct config){ 0 };
}
