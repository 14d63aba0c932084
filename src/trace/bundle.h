// bundle: adds symbol files to a trace that is complete, after its end (docs/format.md, 9).
//
// Nothing that is in the file is changed, so an interruption does no harm: the trace ends where
// it ended before, and the bytes after it are ignored.
//
//     bundle_begin
//       bundle_add     once for each file
//     bundle_end
//     bundle_free      also after an error
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct bundle;

// Opens the file for writing. NULL if it is not a complete trace (try: tidemark repair).
struct bundle *bundle_begin(const char *path, struct err *err);

// The symbol file of a build-id (1 to 32 bytes). The bytes are not kept.
bool bundle_add(struct bundle *bundle, const uint8_t *build_id, size_t build_id_length,
		const void *bytes, size_t size, struct err *err);

// The new end of the trace. Without it the additions are not there.
bool bundle_end(struct bundle *bundle, struct err *err);

// Without bundle_end before it: takes the additions away again. NULL is allowed.
void bundle_free(struct bundle *bundle);
