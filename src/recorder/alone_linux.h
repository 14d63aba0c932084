// alone: LD_PRELOAD=libtidemark.so without `tidemark record`: start a collector ourselves.
//
// The collector is double-forked, so that the program's wait() and SIGCHLD never see it.
#ifndef RECORDER_ALONE_LINUX_H
#define RECORDER_ALONE_LINUX_H

#include "wire/compiler.h"

// The name of the session it listens for, or NULL if none could be started.
HIDDEN const char *alone_start(void);

#endif
