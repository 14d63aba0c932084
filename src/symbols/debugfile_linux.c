// Where the debug file of a module may be, in the order in which it is looked for; the first that
// proves to belong to it is taken. For example, for /usr/bin/app with the build-id abcd12… and a
// .gnu_debuglink that says app.dbg, in a directory /d of the user's:
//
//     /d/.build-id/ab/cd12….debug
//     /d/usr/bin/app.dbg             by the link's name
//     /d/usr/bin/app.debug           by its own name
//     /d/usr/bin/app                 a copy that was not stripped
//     /d/app.dbg, /d/app.debug, /d/app
//
// Then /usr/lib/debug by build-id, what is beside the module, /usr/lib/debug by name, what
// debuginfod has fetched before, and debuginfod. Where both files have a build-id, that alone
// proves that they belong together. Where one of them has none, a debug file belongs by the CRC
// that the module's link states.
#include "symbols/debugfile.h"

#include "base/mem.h"
#include "base/str.h"

#include <elfutils/libdwelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEBUG_ROOT "/usr/lib/debug"

// What proves that a file belongs to the module.
struct proof {
	const uint8_t *build_id;
	size_t length;    // 0: the module has no build-id
	const char *link; // name in .gnu_debuglink; NULL: it has none
	uint32_t crc;     // of the file it means
};

// A search under way. The candidates' paths are put together in `path`.
struct hunt {
	const struct search *search;
	const char *module; // path of the module
	struct proof proof;
	bool want_debug; // a debug file; else the module's own file
	struct str path;
};

// A file without any proof is refused, even at exactly the right path: a wrong name is worse than
// none, because no reader doubts it.
static bool belongs(const struct hunt *hunt, const struct object *object)
{
	uint32_t crc;

	if (hunt->proof.length > 0 && object->build_id_length > 0)
		return object_is(object, hunt->proof.build_id, hunt->proof.length);
	return hunt->want_debug && hunt->proof.link && object_crc(object->path, &crc) &&
	       crc == hunt->proof.crc;
}

// Open the file at hunt->path if there is one that fits.
static struct object *try_path(struct hunt *hunt)
{
	const char *path = str_get(&hunt->path);
	struct object *object;
	struct err err;

	if (access(path, F_OK) != 0)
		return NULL;
	object = object_open(path, &err);
	if (!object) {
		remarks_add(hunt->search->remarks, "%s", err.text);
		return NULL;
	}
	// A stripped copy is whole and says nothing: the search goes on for one that does.
	if (hunt->want_debug && !(object->dwarf || object_find_section(object, ".symtab"))) {
		object_close(object);
		return NULL;
	}
	if (!belongs(hunt, object)) {
		// A module whose link names the module itself: that X does not belong to X helps no
		// reader.
		if (strcmp(path, hunt->module) != 0)
			remarks_add(hunt->search->remarks, "%s does not belong to %s: not used",
				    path, hunt->module);
		object_close(object);
		return NULL;
	}
	return object;
}

static void add_build_id_path(struct str *path, const uint8_t *build_id, size_t length)
{
	// The first byte is the folder, so that no folder has more than 1/256 of the files.
	str_format(path, "/.build-id/%02x/", build_id[0]);
	str_add_hex(path, build_id + 1, length - 1);
}

static struct object *try_build_id(struct hunt *hunt, const char *root, size_t root_length)
{
	if (hunt->proof.length == 0)
		return NULL;
	str_clear(&hunt->path);
	str_add_bytes(&hunt->path, root, root_length);
	add_build_id_path(&hunt->path, hunt->proof.build_id, hunt->proof.length);
	if (hunt->want_debug)
		str_add(&hunt->path, ".debug");
	return try_path(hunt);
}

// Below `root`: the module's own path, or (`flat`) just its name.
static struct object *try_names(struct hunt *hunt, const char *root, size_t root_length, bool flat)
{
	const char *module = flat ? str_last_part(hunt->module) : hunt->module;
	int directory_length = (int)(str_last_part(module) - module);
	struct object *object = NULL;

	for (int i = 0; i < 3 && !object; i++) {
		str_clear(&hunt->path);
		str_add_bytes(&hunt->path, root, root_length);
		if (flat)
			str_add_char(&hunt->path, '/');
		if (i == 0 && hunt->want_debug && hunt->proof.link)
			str_format(&hunt->path, "%.*s%s", directory_length, module,
				   hunt->proof.link);
		else if (i == 1 && hunt->want_debug)
			str_format(&hunt->path, "%s.debug", module);
		else if (i == 2)
			str_add(&hunt->path, module);
		else
			continue;
		object = try_path(hunt);
	}
	return object;
}

// All names below one directory, the surest first: a build-id cannot mean another file, a full path
// seldom, a bare name often.
static struct object *try_root(struct hunt *hunt, const char *root, size_t root_length, bool flat)
{
	struct object *object = try_build_id(hunt, root, root_length);

	if (!object && hunt->module[0] == '/')
		object = try_names(hunt, root, root_length, false);
	if (!object && flat)
		object = try_names(hunt, root, root_length, true);
	return object;
}

// The user's directories, one after the other. Start with *at = the whole list.
static bool next_directory(const char **at, const char **directory, size_t *length)
{
	while (*at && **at) {
		*directory = *at;
		*length = strcspn(*at, ":");
		*at += *length;
		if (**at == ':')
			(*at)++;
		if (*length > 0)
			return true;
	}
	return false;
}

static struct object *try_user_directories(struct hunt *hunt)
{
	const char *at = hunt->search->directories;
	const char *directory;
	struct object *object;
	size_t length;

	while (next_directory(&at, &directory, &length)) {
		object = try_root(hunt, directory, length, true);
		if (object)
			return object;
	}
	return NULL;
}

// Beside the module: what its debug link names.
static struct object *try_beside(struct hunt *hunt)
{
	int directory_length = (int)(str_last_part(hunt->module) - hunt->module);
	struct object *object;

	if (!hunt->proof.link)
		return NULL;
	str_clear(&hunt->path);
	str_format(&hunt->path, "%.*s%s", directory_length, hunt->module, hunt->proof.link);
	object = try_path(hunt);
	if (object)
		return object;
	str_clear(&hunt->path);
	str_format(&hunt->path, "%.*s.debug/%s", directory_length, hunt->module, hunt->proof.link);
	return try_path(hunt);
}

// Where libdebuginfod keeps what it has fetched, by the rules that it has. False: nowhere.
static bool add_cache(struct str *path)
{
	const char *home = getenv("HOME"), *cache = getenv("DEBUGINFOD_CACHE_PATH");

	if (cache && *cache) {
		str_add(path, cache);
		return true;
	}
	if (home && *home) {
		str_format(path, "%s/.debuginfod_client_cache", home);
		if (access(str_get(path), F_OK) == 0)
			return true;
		str_clear(path);
	}
	cache = getenv("XDG_CACHE_HOME");
	if (cache && *cache)
		str_format(path, "%s/debuginfod_client", cache);
	else if (home && *home)
		str_format(path, "%s/.cache/debuginfod_client", home);
	return path->length > 0;
}

// What gdb and others have fetched is on the disk: no server is asked. An empty file is the cache's
// note that no server had it.
static struct object *try_cache(struct hunt *hunt)
{
	struct stat status;

	str_clear(&hunt->path);
	if (hunt->proof.length == 0 || !add_cache(&hunt->path))
		return NULL;
	str_add_char(&hunt->path, '/');
	str_add_hex(&hunt->path, hunt->proof.build_id, hunt->proof.length);
	str_add(&hunt->path, hunt->want_debug ? "/debuginfo" : "/executable");
	if (stat(str_get(&hunt->path), &status) != 0 || status.st_size == 0)
		return NULL;
	return try_path(hunt);
}

// A server is asked by build-id, and knows no other name. What it sends must prove itself as any
// other file.
static struct object *try_debuginfod(struct hunt *hunt)
{
	struct object *object;
	struct err err = { 0 };
	char *path;

	if (!hunt->search->debuginfod || hunt->proof.length == 0)
		return NULL;
	path = debuginfod_fetch(hunt->search->debuginfod,
				hunt->want_debug ? DEBUGINFOD_DEBUG_FILE : DEBUGINFOD_EXECUTABLE,
				hunt->proof.build_id, hunt->proof.length, &err);
	if (!path) {
		remarks_add(hunt->search->remarks, "%s: %s", hunt->module, err.text);
		return NULL;
	}
	str_clear(&hunt->path);
	str_add(&hunt->path, path);
	mem_free(path);
	object = try_path(hunt);
	return object;
}

// Without a build-id there is no proof: a file of that name may be any version of it.
struct object *debugfile_find_main(const struct search *search, const char *path,
				   const uint8_t *build_id, size_t length)
{
	struct hunt hunt = {
		.search = search,
		.module = path,
		.proof = { .build_id = build_id, .length = length },
	};
	struct object *object = NULL;

	if (length > 0) {
		object = try_user_directories(&hunt);
		if (!object)
			object = try_cache(&hunt);
		if (!object)
			object = try_debuginfod(&hunt);
	}
	str_fini(&hunt.path);
	return object;
}

struct object *debugfile_find(const struct search *search, const char *path,
			      const struct object *object, const uint8_t *build_id, size_t length)
{
	struct hunt hunt = {
		.search = search,
		.module = path,
		.proof = { .build_id = build_id, .length = length },
		.want_debug = true,
	};
	struct object *found;
	GElf_Word crc;

	if (object) {
		hunt.proof.link = dwelf_elf_gnu_debuglink(object->elf, &crc);
		hunt.proof.crc = hunt.proof.link ? crc : 0;
		// It names a file in a directory, not a way through directories.
		if (hunt.proof.link && (!*hunt.proof.link || strchr(hunt.proof.link, '/')))
			hunt.proof.link = NULL;
	}
	found = try_user_directories(&hunt);
	if (!found)
		found = try_build_id(&hunt, DEBUG_ROOT, strlen(DEBUG_ROOT));
	if (!found)
		found = try_beside(&hunt);
	if (!found)
		found = try_root(&hunt, DEBUG_ROOT, strlen(DEBUG_ROOT), false);
	if (!found)
		found = try_cache(&hunt);
	if (!found)
		found = try_debuginfod(&hunt);
	str_fini(&hunt.path);
	return found;
}

// The link has a name, which counts from the folder of the file that has the link, and the build-id
// of the file that it means.
struct object *debugfile_find_shared(const struct search *search, const struct object *object)
{
	const char *name;
	const void *build_id;
	ssize_t length =
		object->dwarf ? dwelf_dwarf_gnu_debugaltlink(object->dwarf, &name, &build_id) : 0;
	struct hunt hunt = { .search = search, .module = object->path, .want_debug = true };
	struct object *found;

	if (length <= 0)
		return NULL;
	hunt.proof.build_id = build_id;
	hunt.proof.length = (size_t)length;
	str_clear(&hunt.path);
	if (*name != '/')
		str_format(&hunt.path, "%.*s", (int)(str_last_part(object->path) - object->path),
			   object->path);
	str_add(&hunt.path, name);
	found = try_path(&hunt);
	if (!found)
		found = try_user_directories(&hunt);
	if (!found)
		found = try_build_id(&hunt, DEBUG_ROOT, strlen(DEBUG_ROOT));
	if (!found && *name)
		remarks_add(
			search->remarks,
			"%s: %s, which has a part of its debug information (dwz), cannot be found: "
			"names from there are missing",
			object->path, name);
	str_fini(&hunt.path);
	return found;
}
