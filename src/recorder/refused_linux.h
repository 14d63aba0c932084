// refused: calls on memory that fail under a limit to which the recorder's mappings count.
//
// A program with little room below a limit (RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK) may fail under
// record alone. So when a call of its is refused, it is looked whether it would have been without
// what is mapped for us; if not, that is said once in a process, with what to do.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

// A call that takes `size` more bytes, or locks them (`locks`; 0: all that there is), has failed
// with this error. No lane is held.
HIDDEN void refused_look(uint32_t error, uint64_t size, bool locks);
