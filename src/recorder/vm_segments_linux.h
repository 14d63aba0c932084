// vm_segments: sizes of the System V segments that are attached, for when they are detached: shmdt
// is called with the address alone. Kept over fork, as segments are.
#pragma once

#include <stdint.h>

// Is attached at `address`. Of one for which there is no room the size will not be known.
void vm_segments_put(uint64_t address, uint64_t size);

// Will be detached. Its size in bytes; 0: it is not known.
uint64_t vm_segments_take(uint64_t address);
