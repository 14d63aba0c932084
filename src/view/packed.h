// packed: bytes as text that a page can unpack by itself: base64 of gzip.
//
// For example a page of JSON that has 30 MB is some MB of text in a <script> element; the browser's
// own DecompressionStream takes it apart.
#pragma once

#include "base/err.h"
#include "base/str.h"

// Appends. False: there is no memory for it.
bool packed_add(struct str *out, const void *bytes, size_t size, struct err *err);
