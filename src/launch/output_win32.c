#include "launch/output.h"

#include "launch/pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <share.h>
#include <sys/stat.h>
#include <time.h>
#include <windows.h>

enum { OUTPUT_NUMBERS_MAX = 100000, OUTPUT_PATH_MAX = 32768 };

// Without a pattern: the plain name first, then one with a number.
static const char *output_pattern(const struct output_options *options, uint64_t number)
{
	if (options->pattern)
		return options->pattern;
	return number == 0 ? "tidemark.%e.%p.tide" : "tidemark.%e.%p.%n.tide";
}

// Others may read while it grows.
static int output_open(const char *path, bool force, bool *created)
{
	static wchar_t wide[OUTPUT_PATH_MAX]; // the launcher's only thread
	int flags = _O_RDWR | _O_CREAT | _O_BINARY | _O_NOINHERIT;
	int fd;

	if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, OUTPUT_PATH_MAX)) {
		errno = ENOENT;
		return -1;
	}
	fd = _wsopen(wide, flags | _O_EXCL, _SH_DENYNO, _S_IREAD | _S_IWRITE);
	*created = fd >= 0;
	if (fd >= 0 || errno != EEXIST || !force)
		return fd;
	return _wsopen(wide, flags | _O_TRUNC, _SH_DENYNO, _S_IREAD | _S_IWRITE);
}

int output_create(const struct output_options *options, struct str *path, bool *created,
		  struct err *err)
{
	char host[MAX_COMPUTERNAME_LENGTH + 1] = "localhost";
	DWORD host_bytes = sizeof(host);
	struct pattern_words words = {
		.program = options->program,
		.host = host,
		.pid = options->pid,
		.time_s = (uint64_t)time(NULL),
	};
	bool numbered = true;
	int fd = -1;

	GetComputerNameA(host, &host_bytes);
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
