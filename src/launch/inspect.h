// inspect: looks at an executable before it is started, and says what of it cannot be recorded.
//
// Follows `#!` lines to the program that will really run, reads its ELF headers (bounded, nothing
// in the file is believed), its permission bits and its capabilities. Looks at what the dynamic
// loader will look at; whatever cannot be read or is not understood is INSPECT_OK: the program
// decides for itself, we only warn.
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

// What of a program cannot be recorded, if anything.
enum inspect_verdict {
	INSPECT_OK,         // all of it can, as far as is known
	INSPECT_STATIC,     // no dynamic loader, and the recorder cannot be brought in otherwise
	INSPECT_PRIVILEGED, // runs with other rights than ours: the loader ignores LD_PRELOAD
	INSPECT_BITS,       // a program of 32 bits that there may be no recorder for
	INSPECT_MACHINE,    // another processor's
	INSPECT_ASAN,       // AddressSanitizer's shared runtime refuses to come behind us
};

struct inspect {
	enum inspect_verdict verdict;
	uint8_t bits;    // of the program: 64, 32, or 0 (not known)
	bool musl;       // its loader is musl's
	bool enters;     // it is static: the recorder is to be brought in (loader_linux.h)
	struct str file; // what was looked at in the end: an interpreter, or the program
	struct str why;  // one line for a person; empty if there is nothing to say
};

// `path` as program_find gave it, to be started with our environment. With `recorder_32` there is a
// recorder for i386. Never fails. What `inspect` was before does not matter; inspect_fini frees its
// texts.
void inspect_program(struct inspect *inspect, const char *path, bool recorder_32);
void inspect_fini(struct inspect *inspect);
