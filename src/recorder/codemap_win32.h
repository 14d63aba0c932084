// codemap_win32: the loader's modules, as they come and go.
#pragma once

#include "wire/compiler.h"

#include <stdint.h>

struct fpo_row;

// Tell of what is loaded, and hear of what will be. In the loader's lock.
HIDDEN void codemap_watch(void);

// Its calls are recorded from here on: let the program find us (client_win32.h), in what is loaded
// and in what will be.
HIDDEN void codemap_reach(void);

// What the PDB of the module says of the frame at pc, and where the module is. Its file is looked
// for and read when the module is first asked for. NULL: nothing. The caller holds code_lock.
HIDDEN const struct fpo_row *codemap_frame_data(uintptr_t pc, uintptr_t *base);
