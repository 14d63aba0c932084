// For example, "ls" with PATH "/opt/bin:/usr/bin", where /opt/bin/ls is there and not executable:
// it is remembered that one was, and /usr/bin/ls is found. Were that not there, the error would be
// "ls is not executable", not "no such program". An empty entry of PATH means the working
// directory. A folder that may not be searched is not the program's fault: what is in it cannot be
// known, and does not make the program one that is not executable.
#include "launch/program.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// 0, or why it cannot be executed; EXDEV: a folder on the way to it may not be searched.
static int program_try(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return errno == EACCES ? EXDEV : errno;
	if (S_ISDIR(status.st_mode))
		return EISDIR;
	// The effective user's rights, which are those that execve looks at.
	if (!S_ISREG(status.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
		return EACCES;
	return 0;
}

// A whole command line in quotes is one word, and no program's name.
static const char *program_hint(const char *name)
{
	return strchr(name, ' ') ? " (its arguments are words of their own: without the quotes)"
				 : "";
}

static enum program_found program_tell(const char *name, int error, struct err *err)
{
	switch (error) {
	case 0:
		return PROGRAM_FOUND;
	case ENOENT:
	case ENOTDIR:
		err_set(err, ERR_USAGE, "%s: no such program%s", name, program_hint(name));
		return PROGRAM_MISSING;
	case EISDIR:
		err_set(err, ERR_USAGE, "%s is a directory, not a program", name);
		return PROGRAM_REFUSED;
	case EACCES:
		err_set(err, ERR_USAGE, "%s is not executable (try: chmod +x)", name);
		return PROGRAM_REFUSED;
	case EXDEV:
		err_set(err, ERR_USAGE, "%s: a folder on the way to it may not be searched", name);
		return PROGRAM_REFUSED;
	default:
		err_errno(err, error, "%s cannot be executed", name);
		return PROGRAM_REFUSED;
	}
}

// A directory of that name counts as nothing there, as one that is looked for in PATH may be.
enum program_found program_find(const char *name, const char *search, struct str *path,
				struct err *err)
{
	struct str hidden = { 0 }; // the first folder that may not be searched
	int error = ENOENT;

	str_clear(path);
	if (strchr(name, '/')) {
		str_add(path, name);
		return program_tell(name, program_try(name), err);
	}
	if (!search)
		search = "/bin:/usr/bin";
	for (bool more = name[0] != '\0'; more;) {
		size_t length = strcspn(search, ":");
		int problem;

		str_clear(path);
		str_add_bytes(path, length ? search : ".", length ? length : 1);
		str_add_char(path, '/');
		str_add(path, name);
		problem = program_try(str_get(path));
		if (problem == 0) {
			str_fini(&hidden);
			return PROGRAM_FOUND;
		}
		if (problem == EXDEV && hidden.length == 0)
			str_add_bytes(&hidden, length ? search : ".", length ? length : 1);
		if (problem == EACCES)
			error = EACCES; // remembered: a later folder may have a better one
		more = search[length] != '\0';
		// After the last part it is beyond the end, and `more` is false.
		search += length + 1;
	}
	ASSERT(error == ENOENT || error == EACCES);
	if (error == ENOENT && hidden.length > 0)
		err_set(err, ERR_USAGE,
			"%s: no such program in PATH, of which %s may not be searched", name,
			str_get(&hidden));
	else if (error == ENOENT && program_try(name) == 0)
		err_set(err, ERR_USAGE, "%s: no such program in PATH (try: ./%s)", name, name);
	else if (error == ENOENT)
		err_set(err, ERR_USAGE, "%s: no such program in PATH%s", name, program_hint(name));
	str_fini(&hidden);
	if (error == ENOENT)
		return PROGRAM_MISSING;
	return program_tell(name, error, err);
}
