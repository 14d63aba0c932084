// store: the file a reader reads.
//
// Reads by position and copies: the file may grow or shrink underneath without harm, which a
// mapping would not survive.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct store {
	int fd; // ours
	uint64_t size;
	bool written; // another had it open to write when the size was asked for
};

// False if it cannot be opened or is not a regular file. What the file has beyond its size at that
// time is not read until store_grown. No descriptor is left open on failure.
bool store_open(struct store *store, const char *path, struct err *err);
void store_close(struct store *store);

// Ask again how large the file is. Never less than before. `written` is asked again, too.
void store_grown(struct store *store);

// Up to `size` bytes from `at`; returns how many there were. An error reads as an end. Threads may
// read side by side.
size_t store_read(const struct store *store, uint64_t at, void *out, size_t size);
