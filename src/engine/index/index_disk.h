// index_disk: what indexes take on disk, and what becomes of them there.
//
// Beside its trace an index stays until somebody removes it. Where the folder of a trace cannot be
// written to, its index is with others in the user's cache directory, where nobody would look for
// it: there those go that were not used for longest, while all take more than $TIDEMARK_CACHE says.
#pragma once

#include "base/err.h"

#include <stdint.h>

// Bytes of the index in the directory at `path`, also of one that is unfinished; 0: there is none.
uint64_t index_disk_bytes(const char *path);

// Remove it. What is no index's stays, and the directory with it.
void index_disk_remove(const char *path);

// How much those in a cache directory may take together: $TIDEMARK_CACHE, or 8 GiB. ERR_USAGE: it
// is no size.
bool index_disk_limit(uint64_t *bytes, struct err *err);

// The index at `path` is used now. Remove those beside it that were not for longest, until all take
// at most so many bytes; never this one, nor one that somebody is building.
void index_disk_keep(const char *path, uint64_t bytes_max);
