// For example app.tide is written as app.tide.4711.part and gets its name in fresh_keep. If the
// program is ended by a signal in between, quit.h removes the part. An error before that closes and
// removes it.
#include "trace/fresh.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/identity.h"
#include "os/quit.h"
#include "os/tool.h"

#include <errno.h>
#include <string.h>

static bool taken(const char *path, struct err *err)
{
	err_set(err, ERR_IO, "%s exists already (--force overwrites it)", path);
	return true;
}

// One list for the process: what a command reads, no command may overwrite, by whatever path.
static struct {
	const char **paths;
	size_t count, capacity;
} spared;

void fresh_spare(const char *path)
{
	ASSERT(path != NULL);
	*MEM_ADD(spared.paths, spared.count, spared.capacity) = path;
}

// Devices may be read and written.
// By identity (device and inode), not by name: a link or another spelling of the path is the same
// file.
static bool is_read(const char *path, struct err *err)
{
	struct identity identity;
	struct err ignored = { 0 };

	if (file_look(path) != FILE_IS_REGULAR || !identity_find(&identity, path, &ignored))
		return false;
	for (size_t i = 0; i < spared.count; i++) {
		if (!identity_is_same(&identity, spared.paths[i]))
			continue;
		err_set(err, ERR_USAGE, "%s is what is read: it would be lost (give another name)",
			path);
		return true;
	}
	return false;
}

// Where "-" may stand for stdout, a caller that takes it so does not come here.
static bool is_stdout(const char *path, struct err *err)
{
	bool is = strcmp(path, "-") == 0;

	if (is)
		err_set(err, ERR_USAGE, "what is written here is a file, and - is none (try: ./-)");
	return is;
}

// In the folder that it lies in a file can be made.
// That a file may be made there is asked of the folder, and not tried: fresh_check touches nothing.
static bool has_room(const char *path)
{
	size_t before = (size_t)(file_name(path) - path);
	struct str folder = { 0 };
	bool has;

	str_add_bytes(&folder, path, before);
	errno = 0;
	has = file_may_write(before ? str_get(&folder) : ".");
	str_fini(&folder);
	return has;
}

// The answer may be out of date when the file is opened: fresh_open finds that, too. It is here so
// that an hour's work is not done for a name that was never possible.
bool fresh_check(const char *path, bool replace, struct err *err)
{
	enum file_kind kind = file_look(path);

	if (is_stdout(path, err) || is_read(path, err))
		return false;
	if (kind == FILE_IS_FOLDER)
		return err_errno(err, EISDIR, "cannot write %s", path);
	if (kind == FILE_IS_OTHER)
		return file_may_write(path) || err_errno(err, errno, "cannot write %s", path);
	if (kind == FILE_IS_REGULAR && !replace)
		return !taken(path, err);
	return has_room(path) || err_errno(err, errno, "cannot write %s", path);
}

bool fresh_open(struct fresh *fresh, const char *path, bool replace, struct err *err)
{
	return fresh_open_of(fresh, path, replace, path, err);
}

// `alike`: the new file may be read by those who may read `of`. It begins as private, so that there
// is no moment at which others could open it.
bool fresh_open_of(struct fresh *fresh, const char *path, bool replace, const char *of,
		   struct err *err)
{
	enum file_kind kind = file_look(path);
	bool alike = file_look(of) == FILE_IS_REGULAR;

	*fresh = (struct fresh){ .fd = -1, .replace = replace };
	str_add(&fresh->path, path);
	if (is_stdout(path, err) || is_read(path, err))
		return false;
	if (kind == FILE_IS_OTHER || kind == FILE_IS_FOLDER) {
		fresh->fd = file_open(path, FILE_ONLY_WRITE);
	} else {
		if (kind == FILE_IS_REGULAR && !replace && taken(path, err))
			return false;
		str_format(&fresh->temporary, "%s.%ld.part", path, (long)tool_own_pid());
		fresh->fd = file_open(fresh->temporary.text,
				      FILE_WRITE | FILE_NEW | (alike ? FILE_PRIVATE : 0));
		if (fresh->fd >= 0 && alike)
			file_let_in(fresh->fd, of);
		if (fresh->fd >= 0)
			quit_removes(fresh->temporary.text);
	}
	return fresh->fd >= 0 || err_errno(err, errno, "cannot write %s", path);
}

// The descriptor is closed first: on some file systems only that says that the bytes did not fit.
bool fresh_keep(struct fresh *fresh, struct err *err)
{
	const char *path = fresh->path.text;
	int fd = fresh->fd;

	ASSERT(fd >= 0);
	fresh->fd = -1;
	if (!file_close(fd))
		return err_errno(err, errno, "cannot write %s", path);
	if (fresh->temporary.length == 0)
		return true;
	if (!file_rename(fresh->temporary.text, path, fresh->replace))
		return errno == EEXIST ? !taken(path, err)
				       : err_errno(err, errno, "cannot write %s", path);
	quit_keeps(fresh->temporary.text);
	str_clear(&fresh->temporary);
	return true;
}

// Writers do not know the path: their messages begin with "cannot write the", and the path is put
// before them.
bool fresh_name_failure(const struct fresh *fresh, struct err *err)
{
	static const char what[] = "cannot write the ";

	return strncmp(err->text, what, sizeof what - 1) == 0 &&
	       err_wrap(err, "%s", fresh->path.text);
}

void fresh_close(struct fresh *fresh)
{
	file_close(fresh->fd);
	if (fresh->temporary.length > 0) {
		file_remove(fresh->temporary.text);
		quit_keeps(fresh->temporary.text);
	}
	fresh->fd = -1;
	STR_FINI(&fresh->temporary, &fresh->path);
}
