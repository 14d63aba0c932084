// secret: files that are for their owner alone.
#pragma once

#include "base/err.h"
#include "base/str.h"

// Append what is in the file, at most 64 KiB. ERR_USAGE: others may read it (Windows: not looked
// at).
bool secret_read(const char *path, struct str *text, struct err *err);
