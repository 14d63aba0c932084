// debugfile: where on this machine the file of a module and its debug information may be.
//
// Distributions keep debug information apart. A debug file is trusted only if it proves that it
// belongs: by the same build-id, or, where there is none, by the checksum in .gnu_debuglink.
//
// Roots are the user's directories, in their order, then /usr/lib/debug. For /usr/bin/foo with
// build-id 1234… and debug link foo.debug these are tried:
//
//     ROOT/.build-id/12/34….debug
//     /usr/bin/foo.debug  /usr/bin/.debug/foo.debug  ROOT/usr/bin/foo.debug
//     ROOT/usr/bin/foo.debug  ROOT/usr/bin/foo  ROOT/foo.debug  ROOT/foo
//
// and then CACHE/1234…/debuginfo, where CACHE is libdebuginfod's ($DEBUGINFOD_CACHE_PATH).
// The last two of the list only in the user's directories, which may hold plain copies of files.
#pragma once

#include "symbols/object.h"
#include "symbols/search.h"

// The file itself by build-id, where `path` is gone or has changed. The caller closes it.
struct object *debugfile_find_main(const struct search *search, const char *path,
				   const uint8_t *build_id, size_t length);

// The debug information for the module at `path`. `object` is the module's file, or NULL where
// that is not there; then only the build-id leads to a debug file. The caller closes it.
struct object *debugfile_find(const struct search *search, const char *path,
			      const struct object *object, const uint8_t *build_id, size_t length);

// Find the file that `object`'s debug information shares with others (.gnu_debugaltlink), where
// libdw would not find it by itself. The caller closes it after `object`; NULL if none is needed.
struct object *debugfile_find_shared(const struct search *search, const struct object *object);
