// kept: who asks for a trace locks its file together with others; who takes it away must have the
// lock alone. The lock goes with the process, however it ends.
//
//     view    holds A.tide          fetch   wants room: B is the oldest and not held: goes
//                                           A is the next: held, stays
#include "sql/kept.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/index/index_disk.h"
#include "os/file.h"

#include <string.h>

enum { DIGITS = 32 };

static const char ending[] = ".tide";

struct trace {
	struct str path;
	uint64_t bytes, asked_ns;
	int fd;
};

struct folder {
	const char *path;
	struct trace *list;
	size_t count, capacity;
	uint64_t bytes;
};

// The file is never closed: its lock lasts as long as the process. That it was asked for now is the
// time of its last change.
bool kept_hold(const char *path)
{
	int fd = file_look(path) == FILE_IS_REGULAR ? file_open(path, FILE_READ) : -1;

	ASSERT(path);
	if (fd < 0)
		return false;
	// Between the two it may have been taken away, and even fetched again.
	if (!file_hold(fd, false) || file_look(path) != FILE_IS_REGULAR) {
		file_close(fd);
		return false;
	}
	file_touch(path);
	return true;
}

// A trace as remote.c calls it; anything else in the folder is somebody's own.
static bool is_trace(const char *name)
{
	size_t length = strlen(name);

	return length > DIGITS + strlen(ending) && name[DIGITS] == '-' &&
	       strspn(name, "0123456789abcdef") == DIGITS && str_ends_with(name, ending);
}

static void index_of(const struct trace *trace, struct str *path)
{
	str_clear(path);
	str_format(path, "%s-index", trace->path.text);
}

// Opened before it is looked at, so that what is locked later is the file that was counted.
static void tell(void *context, const char *name)
{
	struct folder *folder = context;
	struct str index = { 0 };
	struct trace *trace;

	if (!is_trace(name))
		return;
	MEM_ROOM(folder->list, folder->capacity, folder->count + 1);
	trace = &folder->list[folder->count];
	*trace = (struct trace){ 0 };
	// A trace that is locked later is known by this descriptor, whatever its path is by then.
	str_format(&trace->path, "%s/%s", folder->path, name);
	trace->fd = file_look(trace->path.text) == FILE_IS_REGULAR
			    ? file_open(trace->path.text, FILE_READ)
			    : -1;
	if (trace->fd < 0 || !file_is_regular(trace->fd, &trace->bytes)) {
		str_fini(&trace->path);
		return;
	}
	trace->asked_ns = file_changed_ns(trace->fd);
	index_of(trace, &index);
	trace->bytes += index_disk_bytes(index.text);
	str_fini(&index);
	folder->bytes += trace->bytes;
	folder->count++;
}

static int by_age(const void *a, const void *b, void *)
{
	const struct trace *left = a, *right = b;

	return left->asked_ns < right->asked_ns ? -1 : left->asked_ns > right->asked_ns;
}

// False: another process holds it, or it cannot be removed.
static bool take_away(struct folder *folder, const struct trace *trace)
{
	struct str index = { 0 };

	// It is removed while it is locked: who opens it now finds no file, and fetches it again.
	if (!file_hold(trace->fd, true) || !file_remove(trace->path.text))
		return false;
	index_of(trace, &index);
	index_disk_remove(index.text);
	str_fini(&index);
	ASSERT(folder->bytes >= trace->bytes);
	folder->bytes -= trace->bytes;
	return true;
}

// The one that was not asked for longest goes first, until there is room.
unsigned kept_make_room(const char *path, uint64_t bytes, uint64_t bytes_max)
{
	struct folder folder = { .path = path };
	unsigned gone = 0;

	file_list(path, tell, &folder);
	mem_sort(folder.list, folder.count, sizeof *folder.list, by_age, NULL);
	for (size_t i = 0; i < folder.count; i++) {
		// `bytes` more have to fit; the second comparison cannot overflow after the first.
		if (folder.bytes > bytes_max || bytes > bytes_max - folder.bytes)
			gone += take_away(&folder, &folder.list[i]);
		file_close(folder.list[i].fd);
		str_fini(&folder.list[i].path);
	}
	mem_free(folder.list);
	return gone;
}
