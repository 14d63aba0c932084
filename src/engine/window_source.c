// The folder of an index: where it is, who may write it, and what is said when that fails.
//
// Beside "run/app.tide" it is "run/app.tide-index", and beside "run/app" it is
// "run/app.tide-index". Where the folder of the trace cannot be written to, it is in the user's
// cache, by the recording's id, and there old ones go when they are too many (index_disk.h). Where
// there is no cache either, window.c makes a temporary one.
//
// A build holds a lock on the folder. A second process that wants the index waits for it and then
// finds it; one that is killed lets go of the lock, and the next one builds.
#include "engine/window_source.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/index/index_disk.h"
#include "os/file.h"
#include "os/now.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_NS = 50000000 };

static char *beside(const char *trace_path)
{
	struct str path = { 0 };

	str_add(&path, trace_path);
	// A file that is only called ".tide" keeps its name in front.
	str_add(&path, path.length > strlen(".tide") && str_ends_with(trace_path, ".tide")
			       ? "-index"
			       : ".tide-index");
	return str_take(&path);
}

// Whether the directory that a path lies in can be written to, or the path is there already.
static bool can_write(const char *path)
{
	size_t before = (size_t)(file_name(path) - path);
	char *directory;
	bool can;

	if (file_look(path) != FILE_IS_MISSING)
		return file_may_write(path);
	if (before == 0)
		return file_may_write(".");
	directory = mem_copy_bytes(path, before);
	can = file_may_write(directory);
	mem_free(directory);
	return can;
}

// Beside the trace, if that can be written; else in the cache, by the recording's id, as two traces
// there may have one name.
char *window_source_path(const char *trace_path, const uint8_t recording_id[16], bool *cached)
{
	char *path = beside(trace_path);
	struct str other = { 0 };

	if (!can_write(path))
		file_cache_folder("", &other);
	*cached = other.length > 0;
	if (!*cached)
		return path;
	str_add_char(&other, '/');
	str_add_hex(&other, recording_id, 16);
	str_add(&other, ".tide-index");
	mem_free(path);
	return str_take(&other);
}

// Make the directory and lock it. False and errno.
// Making the folder and locking it are two steps, between which its holder may have removed it
// after a failure. Then it is made once more.
static bool try_lock(const char *path, const char *trace_path, int *lock)
{
	if (file_make_folder(path, true))
		file_share_folder(path, trace_path);
	else if (errno != EEXIST)
		return false;
	*lock = file_lock_folder(path);
	if (*lock < 0 && errno == ENOENT && file_make_folder(path, true)) {
		// Removing it was up to the holder of the lock.
		file_share_folder(path, trace_path);
		*lock = file_lock_folder(path);
	}
	return *lock >= 0;
}

// Looks every 50 ms: a lock of the system that waits could not be interrupted by `stop`.
bool window_source_lock(const char *path, const char *trace_path,
			const struct window_options *options, int *lock, struct err *err)
{
	bool said = false;

	while (!try_lock(path, trace_path, lock)) {
		if (errno != EWOULDBLOCK)
			return err_errno(err, errno, "cannot make %s", path);
		if (!said && options->say)
			options->say(options->context,
				     "the index is being built by another process; waiting");
		said = true;
		if (options->stop && options->stop(options->context))
			return err_set(err, ERR_STOPPED, "interrupted");
		now_sleep(PAUSE_NS);
	}
	return true;
}

// What is left of the index goes. On a full disk the message says how much room it had and, from
// the share that was done (in thousandths), how much it needs: 3 GB at 250 are some 12 GB.
void window_source_fail(const char *path, unsigned share, struct err *err)
{
	uint64_t bytes = index_disk_bytes(path);
	size_t length = strlen(err->text);
	struct str text = { 0 };

	if (err->kind == ERR_STOPPED)
		return;
	index_disk_remove(path);
	if (err->kind != ERR_IO)
		return;
	str_format(&text, "; it is %s", path);
	if (bytes > 0 && share > 0 && share < 1000)
		str_format(&text, ", had %s and needs some %s", STR_BYTES(bytes),
			   STR_BYTES(bytes * 1000 / share));
	else if (bytes > 0) // what is read is not all indexed yet
		str_format(&text, ", had %s and needs more", STR_BYTES(bytes));
	str_add(&text,
		" (TIDEMARK_INDEX=never answers without, from memory, where --memory is enough)");
	snprintf(err->text + length, sizeof err->text - length, "%s", str_get(&text));
	str_fini(&text);
}

void window_source_unlock(int lock)
{
	file_close(lock);
}

// "tiny" is for tests: it makes indexes of the smallest shape, and is not in the message.
bool window_source_wish(enum window_source_wish *wish, struct err *err)
{
	static const char *const words[] = { "auto", "always", "tiny", "never" };
	const char *word = getenv("TIDEMARK_INDEX");

	*wish = WINDOW_SOURCE_AUTO;
	if (!word || !*word)
		return true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strcmp(word, words[i]) == 0) {
			*wish = (enum window_source_wish)i;
			return true;
		}
	}
	return err_set(err, ERR_USAGE, "TIDEMARK_INDEX is '%s', not auto, always or never", word);
}
