#include "engine/window_source.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *beside(const char *trace_path)
{
	size_t length = strlen(trace_path);
	struct str path = { 0 };

	str_add(&path, trace_path);
	str_add(&path, length > 5 && strcmp(trace_path + length - 5, ".tide") == 0 ? "-index"
										   : ".tide-index");
	return str_take(&path);
}

// Whether the directory that a path lies in can be written to, or the path is there already.
static bool can_write(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *directory;
	bool can;

	if (access(path, F_OK) == 0)
		return access(path, W_OK) == 0;
	if (!slash)
		return access(".", W_OK) == 0;
	directory = mem_copy_bytes(path, slash == path ? 1 : (size_t)(slash - path));
	can = access(directory, W_OK) == 0;
	mem_free(directory);
	return can;
}

char *window_source_path(const char *trace_path, const uint8_t recording_id[16])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = beside(trace_path);
	struct str other = { 0 };

	if (can_write(path) || !((cache && *cache) || (home && *home)))
		return path;
	if (cache && *cache) {
		str_add(&other, cache);
	} else {
		str_format(&other, "%s/.cache", home);
		mkdir(str_get(&other), 0700);
	}
	str_add(&other, "/tidemark");
	mkdir(str_get(&other), 0700);
	str_add_char(&other, '/');
	for (int i = 0; i < 16; i++)
		str_format(&other, "%02x", recording_id[i]);
	str_add(&other, ".tide-index");
	mem_free(path);
	return str_take(&other);
}
