#include "launch/output.h"

#include "launch/pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUT_NUMBERS_MAX = 100000 };

// Without a pattern: the plain name first, then one with a number.
static const char *output_pattern(const struct output_options *options, uint64_t number)
{
	if (options->pattern)
		return options->pattern;
	return number == 0 ? "tidemark.%e.%p.tide" : "tidemark.%e.%p.%n.tide";
}

static int output_open(const char *path, bool force, bool *created)
{
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY;
	int fd = open(path, flags | O_EXCL, 0600);

	*created = fd >= 0;
	if (fd >= 0 || errno != EEXIST || !force)
		return fd;
	fd = open(path, flags | O_TRUNC, 0600);
	if (fd < 0 && errno == EACCES) // a pipe or a device that may only be written
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd;
}

int output_create(const struct output_options *options, struct str *path, bool *created,
		  struct err *err)
{
	char host[256] = "localhost";
	struct pattern_words words = {
		.program = options->program,
		.host = host,
		.pid = options->pid,
		.time_s = (uint64_t)time(NULL),
	};
	bool numbered = true;
	int fd = -1;

	gethostname(host, sizeof(host) - 1);
	for (; words.number < OUTPUT_NUMBERS_MAX && numbered; words.number++) {
		str_clear(path);
		if (!pattern_expand(path, output_pattern(options, words.number), &words, &numbered,
				    err))
			return -1;
		numbered = numbered || !options->pattern;
		fd = output_open(str_get(path), options->force && !numbered, created);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	if (fd >= 0)
		return fd;
	if (errno == EEXIST)
		err_set(err, ERR_IO,
			"%s exists already (try: --force to overwrite it, or another -o)",
			str_get(path));
	else
		err_errno(err, errno, "cannot create %s", str_get(path));
	return -1;
}
