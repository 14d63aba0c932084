// Files with names in a folder of our own, since the program writes to a name here. Both are
// removed, also after a failure.
#include "os/convert.h"

#include "os/file.h"
#include "os/tool.h"

#include <errno.h>

static const char program[] = "rsvg-convert";

bool convert_check(const char *format, struct err *err)
{
	return tool_find(program) ||
	       err_set(err, ERR_IO,
		       "rsvg-convert (of librsvg) is needed to write %s; an .svg needs nothing",
		       format);
}

// Into a file that was not there: the folder is new, so what is there is a mistake.
static bool put(const char *path, const void *bytes, size_t size, struct err *err)
{
	int fd = file_open(path, FILE_WRITE | FILE_NEW);
	bool good = fd >= 0 ? file_write_all(fd, bytes, size, err)
			    : err_errno(err, errno, "cannot create %s", path);

	if (fd >= 0)
		file_close(fd);
	return good;
}

static bool get(const char *path, int fd, struct err *err)
{
	struct file_view view = { 0 };
	bool good = file_view_open(&view, path, err) &&
		    file_write_all(fd, view.bytes, view.size, err);

	file_view_close(&view);
	return good;
}

// What the program says is not shown: its exit code alone counts.
bool convert_svg(const void *svg, size_t size, const char *format, int fd, struct err *err)
{
	struct str folder = { 0 }, from = { 0 }, to = { 0 }, said = { 0 };
	// The two names are filled in below, when the folder has its own.
	const char *words[] = { program, "-f", format, "-o", NULL, NULL, NULL };
	bool good = convert_check(format, err) && tool_folder(&folder, err);

	if (good) {
		str_format(&from, "%s/picture.svg", str_get(&folder));
		str_format(&to, "%s/picture", str_get(&folder));
		words[4] = str_get(&to);
		words[5] = str_get(&from);
		good = put(words[5], svg, size, err) && tool_run(words, &said, err) == TOOL_DONE &&
		       get(words[4], fd, err);
		// Removed one by one, since a folder is only left empty.
		file_remove(words[5]);
		file_remove(words[4]);
	}
	tool_folder_leave(&folder);
	STR_FINI(&from, &to, &said);
	return good;
}
