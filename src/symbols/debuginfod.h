// debuginfod: asks the servers in $DEBUGINFOD_URLS for what is not on this machine.
//
// Only when the user asked for it: a look-up tells a server what runs here. libdebuginfod is
// loaded at run time, so that nothing depends on it. Unless the user set DEBUGINFOD_TIMEOUT, a
// server may be silent for five seconds. What was fetched stays in debuginfod's own cache.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct debuginfod;

// NULL: the library or the servers' addresses are missing, and *err says which.
struct debuginfod *debuginfod_new(struct err *err);
void debuginfod_free(struct debuginfod *debuginfod); // NULL is allowed

enum debuginfod_kind { DEBUGINFOD_DEBUG_FILE, DEBUGINFOD_EXECUTABLE };

// The path of the fetched file; the caller owns it (mem_free). NULL with the reason in *err.
char *debuginfod_fetch(struct debuginfod *debuginfod, enum debuginfod_kind kind,
		       const uint8_t *build_id, size_t length, struct err *err);
