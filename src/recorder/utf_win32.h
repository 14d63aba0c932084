// utf_win32: the system's texts, UTF-16, as ours.
#pragma once

#include "wire/compiler.h"

#include <stddef.h>
#include <stdint.h>

// As UTF-8 with a NUL, as many whole characters as there is room for. Half a pair becomes what
// stands for such.
HIDDEN void utf_decode(const uint16_t *units, size_t count, char *out, size_t room);
