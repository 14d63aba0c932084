// Windows itself finds files in any case and knows its drives: a path is taken as it is.
#include "symbols/drive.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"

char *drive_find_in(const char *folder, const char *name)
{
	struct str path = { 0 };

	str_format(&path, "%s\\%s", folder, name);
	// A recorded path may have slashes of either kind; a message reads better with one.
	for (size_t i = 0; i < path.length; i++)
		if (path.text[i] == '/')
			path.text[i] = '\\';
	if (file_look(path.text) != FILE_IS_MISSING)
		return str_take(&path);
	str_fini(&path);
	return NULL;
}

char *drive_find(const char *path)
{
	return file_look(path) != FILE_IS_MISSING ? mem_copy_text(path) : NULL;
}

char drive_separator(void)
{
	return ';';
}
