// code_lists: the lists of functions that a process writes of its generated code (code_names.h).
//
// They are looked for where the process sees them: its /tmp is held open from its hello on, since
// nobody can ask for it any more when it has ended. A list is read only if it is a regular file of
// the process's user (or root's), no link, and not older than the process.
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Of one process. Descriptors are kept with 1 added, so that { 0 } has none.
struct code_lists {
	int folder; // its /tmp, + 1; 0: it is not known
	int dump;   // its jitdump, + 1; 0: there is none
	uint32_t user;
	uint64_t began_ns; // the process, since 1970
};

// What the process `pid` has in /tmp is of interest.
void code_lists_open(struct code_lists *lists, uint32_t pid);

// The same of one that `parent` forked `age_ns` ago, and whose user is known: it has its parent's
// root.
void code_lists_open_child(struct code_lists *lists, uint32_t pid, const struct code_lists *parent,
			   uint32_t user, uint64_t age_ns);
void code_lists_close(struct code_lists *lists); // accepts { 0 }

// The process has mapped the file at `path`, which may be its jitdump.
void code_lists_mapped(struct code_lists *lists, uint32_t pid, const char *path, size_t length);

enum code_lists_kind { CODE_LISTS_MAP, CODE_LISTS_DUMP };

// The list's bytes, to be freed; `own_pid` is the process's number by its own count. NULL: there is
// none. `why` is added to where one that is there is not read, or not to its end.
char *code_lists_read(const struct code_lists *lists, enum code_lists_kind kind, uint32_t own_pid,
		      size_t *length, struct str *why);
