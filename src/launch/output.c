// For example, no -o, the program `app` of pid 42, in a folder that has tidemark.app.42.tide
// already: that name is tried first, is there, and so is the next one with a number,
// tidemark.app.42.1.tide. With -o t.tide the name has no number, and a file that is there is an
// error unless --force was given.
#include "launch/output.h"

#include "launch/pattern.h"
#include "os/file.h"
#include "os/tool.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { NUMBERS_MAX = 100000, HOST_BYTES = 256 };

// Without a pattern: the plain name first, then one with a number.
static const char *pattern_of(const struct output_options *options, uint64_t number)
{
	if (options->pattern)
		return options->pattern;
	return number == 0 ? "tidemark.%e.%p.tide" : "tidemark.%e.%p.%n.tide";
}

static bool is_being_written(const char *path)
{
	int fd = file_look(path) == FILE_IS_REGULAR ? file_open(path, FILE_READ) : -1;
	bool claimed = fd >= 0 && file_is_claimed(fd);

	file_close(fd);
	return claimed;
}

// Whether a trace may be written there.
static bool may_be(const struct output_options *options, const char *path, struct err *err)
{
	bool stream = options->pattern && strcmp(options->pattern, "-") == 0;
	const char *its = NULL;

	if (options->started)
		its = output_is_its(path, options->started, options->args);
	if (!its && options->force && is_being_written(path))
		its = "being written by another recording";
	if (!its)
		its = output_is_waited_for(path);
	if (its || stream)
		err_set(err, ERR_USAGE, "%s cannot be the trace: it is %s (try: another -o)", path,
			its ? its : "no file's name");
	return !its && !stream;
}

// If it cannot be, it is written over.
static void set_aside(const char *path, struct output_made *made)
{
	if (!output_is_plain(path))
		return;
	str_format(&made->aside, "%s.%ld.old", path, (long)tool_own_pid());
	if (!file_rename(path, str_get(&made->aside), false))
		str_clear(&made->aside);
}

// Who could read the file that was there may read the new one. If there is none after all, the old
// one gets its name back at once.
static int open_one(const char *path, bool force, struct output_made *made)
{
	int fd;

	if (force)
		set_aside(path, made);
	fd = output_open(path, force, &made->created);
	if (fd >= 0 && made->aside.length > 0)
		file_let_in(fd, str_get(&made->aside));
	else if (made->aside.length > 0)
		output_undo(made, path);
	return fd;
}

// A pattern without %n is tried once; one with it, and the default, until a name is free. --force
// is for the first kind alone: a name with a number never needs it.
int output_create(const struct output_options *options, struct str *path, struct output_made *made,
		  struct err *err)
{
	char host[HOST_BYTES] = "localhost";
	struct pattern_words words = {
		.program = options->program,
		.host = host,
		.pid = options->pid,
		.time_s = (uint64_t)time(NULL),
	};
	bool numbered = true;
	int fd = -1;

	*made = (struct output_made){ 0 };
	output_host(host, sizeof host);
	for (; words.number < NUMBERS_MAX && numbered; words.number++) {
		str_clear(path);
		if (!pattern_expand(path, pattern_of(options, words.number), &words, &numbered,
				    err))
			return -1;
		numbered = numbered || !options->pattern;
		if (!may_be(options, str_get(path), err))
			return -1;
		fd = open_one(str_get(path), options->force && !numbered, made);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	if (fd >= 0)
		return fd;
	if (errno == EEXIST && file_look(str_get(path)) == FILE_IS_FOLDER)
		err_set(err, ERR_IO, "%s is a folder (try: -o %s/app.tide)", str_get(path),
			str_get(path));
	else if (errno == EEXIST)
		err_set(err, ERR_IO,
			"%s exists already (try: --force to overwrite it, or another -o)",
			str_get(path));
	else
		err_errno(err, errno, "cannot create %s", str_get(path));
	return -1;
}

void output_begun(struct output_made *made)
{
	if (made->aside.length > 0)
		file_remove(str_get(&made->aside));
	str_fini(&made->aside);
}

void output_undo(struct output_made *made, const char *path)
{
	if (made->created)
		file_remove(path);
	if (made->aside.length > 0)
		file_rename(str_get(&made->aside), path, true);
	made->created = false;
	str_fini(&made->aside);
}
