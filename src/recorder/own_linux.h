// own: the addresses that are the recorder's.
//
// Programs give away memory that they do not know: a sandbox or the restorer of a checkpoint goes
// through /proc/self/maps and unmaps what is not its own. What we need is kept out of such calls
// (vm_linux.c). So each mapping of ours is noted here, and our file's own.
//
// The list is asked before each call that could take memory away, by any thread and without a lock.
// It stays over fork, as the mappings do.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct own_range {
	uintptr_t start, end;
};

// Note the pages of a mapping, and forget one that begins there. More than some ten thousand are
// not noted.
HIDDEN void own_add(uintptr_t start, uintptr_t bytes);
HIDDEN void own_remove(uintptr_t start);

// How many bytes all of them have.
HIDDEN uint64_t own_bytes(void);

// The lowest of ours that has an address in the range, into `found`. False: there is none.
HIDDEN bool own_find(uintptr_t start, uintptr_t end, struct own_range *found);
