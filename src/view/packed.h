// packed: bytes as text that a page can unpack by itself: base64 of gzip.
#pragma once

#include "base/err.h"
#include "base/str.h"

// Appends. False: there is no memory for it.
bool packed_add(struct str *out, const void *bytes, size_t size, struct err *err);
