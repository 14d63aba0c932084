// codemap_win32: the loader's modules, as they come and go.
#ifndef RECORDER_CODEMAP_WIN32_H
#define RECORDER_CODEMAP_WIN32_H

#include "wire/compiler.h"

// Tell of what is loaded, and hear of what will be. In the loader's lock.
HIDDEN void codemap_watch(void);

// Its calls are recorded from here on: let the program find us (client_win32.h), in what is loaded
// and in what will be.
HIDDEN void codemap_reach(void);

#endif
