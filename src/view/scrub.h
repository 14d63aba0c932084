// scrub: takes paths and arguments out of a JSON document.
//
// A string that is a path (the value of exe, file, module, directory …) becomes "path-" and eight
// digits of a keyed hash, with its ending kept (.so.1, .c, .tide); arguments, the command and the
// host become "***"; in all other strings, words with a '/' before a letter, and what begins as a
// path of Windows does, become such paths. The key is new each time, so that equal paths are equal
// within one document and tell nothing outside it. Names of functions, threads and marks stay.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct scrub {
	uint64_t key[2];
};

// False: the system has no random bytes.
bool scrub_init(struct scrub *scrub, struct err *err);

// Append `json`, a whole document as base/json writes it, without its paths.
void scrub_json(const struct scrub *scrub, const char *json, size_t length, struct str *out);

// One string: a path, as it is; words, of which some may be paths, as they are or as JSON has them.
// Append.
void scrub_path(const struct scrub *scrub, const char *path, size_t length, struct str *out);
void scrub_words(const struct scrub *scrub, const char *text, size_t length, struct str *out);
