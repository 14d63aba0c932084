// alone: LD_PRELOAD=libtidemark.so without `tidemark record`: start a collector ourselves.
//
// The collector is double-forked, so that the program's wait() and SIGCHLD never see it.
#pragma once

#include "wire/compiler.h"

// The name of the session it listens for, or NULL if none could be started.
HIDDEN const char *alone_start(void);
