// libdebuginfod brings libcurl and all that this needs. Linking it would load that into each run of
// tidemark, for a question that few users ask. So it is opened by dlopen when --debuginfod is
// given, and its functions are looked up by name. The declarations here are those of its stable
// interface, version 1.
//
// For example, a library with the build-id abcd… that no directory has: find_debuginfo asks each of
// $DEBUGINFOD_URLS for /buildid/abcd…/debuginfo, stores the file in its cache and returns a
// descriptor (closed at once) and the path there, which is what we open.
#include "symbols/debuginfod.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

// The interface of libdebuginfod.so.1. Finders return a descriptor, or minus an errno.
typedef void *begin_function(void);
typedef void end_function(void *client);
typedef int find_function(void *client, const unsigned char *build_id, int length, char **path);

struct debuginfod {
	void *client;
	end_function *end;
	find_function *find_debug_file;
	find_function *find_executable;
};

static bool load(struct debuginfod *debuginfod, struct err *err)
{
	void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	begin_function *begin;

	if (!library)
		return err_set(err, ERR_IO,
			       "debuginfod cannot be asked: libdebuginfod.so.1 is missing "
			       "(package libdebuginfod1)");
	begin = (begin_function *)dlsym(library, "debuginfod_begin");
	debuginfod->end = (end_function *)dlsym(library, "debuginfod_end");
	debuginfod->find_debug_file = (find_function *)dlsym(library, "debuginfod_find_debuginfo");
	debuginfod->find_executable = (find_function *)dlsym(library, "debuginfod_find_executable");
	if (!begin || !debuginfod->end || !debuginfod->find_debug_file ||
	    !debuginfod->find_executable)
		return err_set(err, ERR_IO,
			       "debuginfod cannot be asked: libdebuginfod.so.1 is "
			       "not one that we know");
	debuginfod->client = begin();
	if (!debuginfod->client)
		return err_set(err, ERR_IO, "debuginfod cannot be asked: it does not start");
	return true;
}

struct debuginfod *debuginfod_new(struct err *err)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *debuginfod;

	if (!urls || !*urls) {
		err_set(err, ERR_USAGE,
			"debuginfod cannot be asked: DEBUGINFOD_URLS names no server");
		return NULL;
	}
	debuginfod = mem_alloc(1, sizeof *debuginfod);
	// The library waits 90 seconds by itself. 0: what the user has set stays.
	setenv("DEBUGINFOD_TIMEOUT", "5", 0);
	if (!load(debuginfod, err)) {
		debuginfod_free(debuginfod);
		return NULL;
	}
	return debuginfod;
}

void debuginfod_free(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	if (debuginfod->client)
		debuginfod->end(debuginfod->client);
	// The library stays: it brought others that cannot be unloaded safely.
	mem_free(debuginfod);
}

char *debuginfod_fetch(struct debuginfod *debuginfod, enum debuginfod_kind kind,
		       const uint8_t *build_id, size_t length, struct err *err)
{
	find_function *find = kind == DEBUGINFOD_DEBUG_FILE ? debuginfod->find_debug_file
							    : debuginfod->find_executable;
	char *found = NULL;
	char *path;
	int fd;

	ASSERT(length > 0 && length <= INT_MAX);
	fd = find(debuginfod->client, build_id, (int)length, &found);
	if (fd < 0) {
		err_errno(err, -fd, "debuginfod");
		return NULL;
	}
	// The file is opened again by its path, as any other (object_open): one way for all.
	close(fd);
	path = mem_copy_text(found);
	// From the library's malloc, so not mem_free.
	free(found);
	return path;
}
