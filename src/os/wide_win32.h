// wide_win32: UTF-8, which we speak, and UTF-16, which Windows does.
#pragma once

#include "base/str.h"

#include <stdint.h>

// A copy of `text`, ended by a zero; the caller's (mem_free). What is not UTF-8 becomes U+FFFD.
uint16_t *wide_new(const char *text);

// The same of a path: with backslashes, and with what lets it be longer than 260 characters.
uint16_t *wide_new_path(const char *path);

// Append `count` units as UTF-8.
void wide_add(struct str *out, const uint16_t *units, size_t count);
