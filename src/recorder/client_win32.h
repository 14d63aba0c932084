// client_win32: how a program on Windows finds the functions of tidemark.h: each of its modules has
// places for their address in a section of its own, and we fill them.
#pragma once

#include "wire/compiler.h"

#include <stdint.h>

// Fill the places of the module at `base`, if it has any. Before its own code runs.
HIDDEN void client_reach(uint8_t *base, uint32_t bytes);
