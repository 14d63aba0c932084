// random: bytes that nobody can guess.
#pragma once

#include "base/err.h"

#include <stddef.h>

// From the system's generator. False: it has none.
bool random_bytes(void *bytes, size_t size, struct err *err);
