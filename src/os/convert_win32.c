#include "os/convert.h"

#include "os/file.h"
#include "os/tool.h"

#include <errno.h>

static bool write_picture(const char *path, const void *svg, size_t size, struct err *err)
{
	int fd = file_open(path, FILE_WRITE | FILE_CREATE | FILE_EMPTY);
	bool good = fd >= 0 ? file_write_all(fd, svg, size, err)
			    : err_errno(err, errno, "cannot create %s", path);

	if (fd >= 0)
		file_close(fd);
	return good;
}

bool convert_svg(const void *svg, size_t size, const char *format, const char *path,
		 struct err *err)
{
	struct str picture = { 0 }, said = { 0 };
	const char *words[] = { "rsvg-convert", "-f", format, "-o", path, NULL, NULL };
	enum tool_result result = TOOL_FAILED;

	str_format(&picture, "%s.%u.svg", path, tool_own_pid());
	words[5] = str_get(&picture);
	if (write_picture(str_get(&picture), svg, size, err))
		result = tool_run(words, &said, err);
	file_remove(str_get(&picture));
	str_fini(&picture);
	str_fini(&said);
	if (result == TOOL_MISSING)
		err_set(err, ERR_IO,
			"rsvg-convert (of librsvg) is needed to write %s; an .svg needs nothing",
			format);
	return result == TOOL_DONE;
}
