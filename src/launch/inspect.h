// inspect: looks at an executable before it is started, and says what of it cannot be recorded.
//
// Follows `#!` lines to the program that will really run, reads its ELF headers (bounded, nothing
// in the file is believed), its permission bits and its capabilities. Looks at what the dynamic
// loader will look at; whatever cannot be read or is not understood is INSPECT_OK: the program
// decides for itself, we only warn.
#ifndef LAUNCH_INSPECT_H
#define LAUNCH_INSPECT_H

#include "base/str.h"

#include <stdbool.h>

enum inspect_verdict {
	INSPECT_OK,
	INSPECT_STATIC,     // no dynamic loader: nothing can be preloaded
	INSPECT_PRIVILEGED, // runs with other rights than ours: the loader ignores LD_PRELOAD
	INSPECT_BITS,       // an x86 program of 32 bits
	INSPECT_MACHINE,    // another processor's
};

struct inspect {
	enum inspect_verdict verdict;
	bool own_malloc; // the executable itself defines malloc: its calls never leave it
	struct str file; // what was looked at in the end: an interpreter, or the program
	struct str why;  // one line for a person; empty if there is nothing to say
};

// `path` as program_find gave it. Never fails.
void inspect_program(struct inspect *inspect, const char *path);
void inspect_fini(struct inspect *inspect);

#endif
