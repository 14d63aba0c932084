// For example C:\Windows\System32\ntdll.dll, with WINEPREFIX=/p: Wine keeps its drives as symbolic
// links in /p/dosdevices, so the walk starts at /p/dosdevices/c: and goes down part by part. Where
// there is no "Windows" the folder is read for a name that is the same but for case, windows.
#include "symbols/drive.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

// Append the entry of `folder` that is `name` but for case. False: there is none.
static bool add_any_case(struct str *folder, const char *name, size_t length)
{
	DIR *directory = opendir(folder->length ? folder->text : "/");
	const struct dirent *entry;
	bool found = false;

	if (!directory)
		return false;
	while (!found && (entry = readdir(directory))) {
		if (strlen(entry->d_name) != length ||
		    strncasecmp(entry->d_name, name, length) != 0)
			continue;
		str_add_char(folder, '/');
		str_add(folder, entry->d_name);
		found = true;
	}
	closedir(directory);
	return found;
}

// Go from `path` down to `name`, part by part. False: it is not there.
static bool walk(struct str *path, const char *name)
{
	while (*name) {
		size_t length = strcspn(name, "/\\"), before = path->length;

		if (length > 0) {
			str_add_char(path, '/');
			str_add_bytes(path, name, length);
			// The name as it is written first: that is one call, and reading a folder
			// may be thousands of names.
			if (access(path->text, F_OK) != 0) {
				path->length = before;
				path->text[before] = 0;
				if (!add_any_case(path, name, length))
					return false;
			}
		}
		name += length + (name[length] != 0);
	}
	return true;
}

char *drive_find_in(const char *folder, const char *name)
{
	struct str path = { 0 };

	str_add(&path, folder);
	while (path.length > 1 && path.text[path.length - 1] == '/')
		path.text[--path.length] = 0;
	if (walk(&path, name))
		return str_take(&path);
	str_fini(&path);
	return NULL;
}

char *drive_find(const char *path)
{
	const char *prefix = getenv("WINEPREFIX"), *home = getenv("HOME");
	struct str folder = { 0 };
	char *found = NULL;

	if (!str_is_windows_path(path))
		return access(path, F_OK) == 0 ? mem_copy_text(path) : NULL;
	if (path[0] == '\\') // another machine's, or a device
		return NULL;
	// As Wine itself: WINEPREFIX, else .wine in the home.
	if (prefix)
		str_add(&folder, prefix);
	else if (home)
		str_format(&folder, "%s/.wine", home);
	if (folder.length > 0) {
		str_format(&folder, "/dosdevices/%c:", path[0] | 32);
		found = access(folder.text, F_OK) == 0 ? drive_find_in(folder.text, path + 2)
						       : NULL;
	}
	str_fini(&folder);
	if (!found && (path[0] | 32) == 'z')
		// Wine's Z: is the root of this machine, also where no prefix says so.
		found = drive_find_in("", path + 2);
	return found;
}

char drive_separator(void)
{
	return ':';
}
