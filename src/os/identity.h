// identity: whether a path still leads to the file that it led to, unchanged.
#pragma once

#include "base/err.h"

#include <stdint.h>

// Two files with equal device and number are one, whatever their paths are.
struct identity {
	uint64_t device, number; // of the file
	uint64_t size_bytes;
	int64_t changed_s, changed_ns; // its contents
};

// What the file at `path` is now. False: there is none, or it cannot be asked about.
bool identity_find(struct identity *identity, const char *path, struct err *err);

// Whether `path` leads to the very file, changed or not.
bool identity_is_same(const struct identity *identity, const char *path);

// Whether `path` leads to the very file, as it was then.
bool identity_holds(const struct identity *identity, const char *path);
