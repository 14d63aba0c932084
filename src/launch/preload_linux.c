// "$LIB" in LD_PRELOAD is what each linker makes of it, "lib/x86_64-linux-gnu" in a process of 64
// bits and "lib/i386-linux-gnu" in one of 32: so one entry loads either library, if both are in
// folders so named next to each other. Where they are not, only programs of 64 bits are recorded.
#include "launch/preload.h"

#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

// Where the library lies, seen from the folder of this program: in the build, and installed.
static const char *const preload_places[] = {
	"libtidemark.so",
	"../lib/tidemark/libtidemark.so",
	"../lib/libtidemark.so",
	NULL,
};

bool preload_session(char name[static PRELOAD_SESSION_BYTES], struct err *err)
{
	// 128 random bits: a socket of that name cannot be guessed, nor met by two recordings.
	uint64_t bits[2];

	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return err_errno(err, errno, "cannot get random bytes");
	snprintf(name, PRELOAD_SESSION_BYTES, "tidemark-%016llx%016llx",
		 (unsigned long long)bits[0], (unsigned long long)bits[1]);
	return true;
}

// The loader splits LD_PRELOAD at blanks and colons, and knows no way to quote them.
static bool preload_check_path(const char *path, struct err *err)
{
	if (strpbrk(path, " :") == NULL)
		return true;
	return err_set(err, ERR_USAGE,
		       "the loader cannot preload '%s': a blank or a colon is in its path "
		       "(try: a copy elsewhere, named by TIDEMARK_LIBRARY)",
		       path);
}

// The real path: LD_PRELOAD is read again by each program that is started, in whatever folder that
// is.
static bool preload_try(const char *path, struct str *found)
{
	char absolute[PATH_MAX];

	// Read and not executed: the loader maps it.
	if (access(path, R_OK) != 0 || !realpath(path, absolute))
		return false;
	str_clear(found);
	str_add(found, absolute);
	return true;
}

// Where TIDEMARK_LIBRARY names one, no other is tried.
bool preload_find_library(struct str *path, struct err *err)
{
	const char *named = getenv("TIDEMARK_LIBRARY");
	char self[PATH_MAX];
	struct str place = { 0 };
	bool found = false;
	ssize_t length;

	if (named && named[0] != '\0') {
		if (!preload_try(named, path))
			return err_errno(err, errno, "cannot read TIDEMARK_LIBRARY %s", named);
		return preload_check_path(str_get(path), err);
	}
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length <= 0)
		return err_errno(err, errno, "cannot find where this program is (/proc)");
	self[length] = '\0';
	*(strrchr(self, '/') + 1) = '\0';
	for (int i = 0; preload_places[i] && !found; i++) {
		str_clear(&place);
		str_format(&place, "%s%s", self, preload_places[i]);
		found = preload_try(str_get(&place), path);
	}
	str_fini(&place);
	if (!found)
		return err_set(err, ERR_IO,
			       "cannot find libtidemark.so near %s (try: TIDEMARK_LIBRARY=path)",
			       self);
	return preload_check_path(str_get(path), err);
}

// What "$LIB" is for programs of 64 bits, and for those of 32 in either packaging.
static const char *const preload_classes[] = { "lib/x86_64-linux-gnu", "lib32",
					       "lib/i386-linux-gnu" };

// The library in that folder beside `library`. False: it is not there.
static bool preload_find_class(const char *library, const char *class, struct str *path)
{
	const char *name = strrchr(library, '/');

	str_clear(path);
	str_format(path, "%.*spreload/%s/libtidemark.so", name ? (int)(name + 1 - library) : 0,
		   library, class);
	return access(str_get(path), R_OK) == 0;
}

void preload_find_either(const char *library, struct str *path)
{
	// Either library has to be there, or the entry would be an error message in each program of
	// the class that lacks it.
	bool found = preload_find_class(library, preload_classes[0], path) &&
		     (preload_find_class(library, preload_classes[1], path) ||
		      preload_find_class(library, preload_classes[2], path));

	preload_find_class(library, "$LIB", path); // which is no folder's name
	if (!found)
		str_clear(path);
}

bool preload_find_narrow(struct str *library)
{
	struct str path = { 0 };
	bool found = (preload_find_class(str_get(library), preload_classes[1], &path) ||
		      preload_find_class(str_get(library), preload_classes[2], &path)) &&
		     preload_try(str_get(&path), library);

	str_fini(&path);
	return found;
}

bool preload_find_musl(struct str *library)
{
	const char *name = strrchr(str_get(library), '/');
	struct str path = { 0 };
	bool found;

	str_format(&path, "%.*slibtidemark-musl.so", name ? (int)(name + 1 - str_get(library)) : 0,
		   str_get(library));
	found = preload_try(str_get(&path), library);
	str_fini(&path);
	return found;
}

static bool preload_is(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static char *preload_entry(const char *name, const char *value, const char *rest)
{
	struct str entry = { 0 };

	str_format(&entry, "%s=%s%s%s", name, value, rest[0] ? ":" : "", rest);
	return str_take(&entry);
}

char **preload_environment(char *const *environment, const char *library, const char *session)
{
	size_t count = 0;
	size_t used = 0;
	const char *had = "";
	char **result;

	while (environment[count])
		count++;
	// For example { "HOME=/root", "LD_PRELOAD=a.so" } becomes "HOME=/root",
	// "LD_PRELOAD=libtidemark.so:a.so" and "TIDEMARK_SESSION=…": ours is first, so that its
	// malloc is found before that of a.so.
	result = mem_alloc(count + 3, sizeof(*result));
	for (size_t i = 0; i < count; i++) {
		// A recording within a recording: the inner one has the program.
		if (preload_is(environment[i], "TIDEMARK_SESSION"))
			continue;
		if (library && preload_is(environment[i], "LD_PRELOAD")) {
			had = environment[i] + strlen("LD_PRELOAD=");
			continue;
		}
		result[used++] = mem_copy_text(environment[i]);
	}
	if (library)
		result[used++] = preload_entry("LD_PRELOAD", library, had);
	result[used++] = preload_entry("TIDEMARK_SESSION", session, "");
	ASSERT(used <= count + 2 && result[used] == NULL);
	return result;
}

void preload_free_environment(char **environment)
{
	for (size_t i = 0; environment && environment[i]; i++)
		mem_free(environment[i]);
	mem_free(environment);
}
