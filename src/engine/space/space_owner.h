// space_owner: whose memory a mapping is, found by the call that made it.
//
// The first rule that fits decides:
//
//     the recorder called, or mapped it                tidemark
//     [stack]; [heap]; [vdso] and its like             main stack; malloc's heap; kernel
//     somebody inside the real malloc or free          by brk: malloc's heap; mmap PROT_NONE: an
//                                                      arena; else a block with its own mapping
//     libc, MAP_STACK                                  thread stack
//     a file, by the dynamic linker or the kernel      library
//     any other file                                   file; library if any of it is executable
//     anonymous, by the dynamic linker, MAP_FIXED;     library: bss
//     or found after a library's data
//     other memory of the dynamic linker, libc         loader, libc
//     anything found that nobody called for            loader, if it was there from the start
//     else                                             program
//
// Heap blocks know better: the mapping around one is the allocator's (space_claim).
#pragma once

#include "engine/space/space.h"

enum space_owner_path {
	SPACE_OWNER_PLAIN,  // a file with a name, or without
	SPACE_OWNER_STACK,  // "[stack]"
	SPACE_OWNER_HEAP,   // "[heap]"
	SPACE_OWNER_KERNEL, // "[vdso]", "[vvar]" …
	SPACE_OWNER_NAMED,  // "[anon:NAME]": not a file at all
};

// What is known of a file.
struct space_owner_file {
	uint8_t path; // enum space_owner_path
	bool code;    // some of it is or was executable
};

// What a path says: nothing yet about code.
struct space_owner_file space_owner_of_path(const char *path);

// Of what `event` maps. `file` is NULL for anonymous memory; `below` the next lower mapping (NULL:
// none), whose owner is `below_owner`.
enum space_owner space_owner_of_event(const struct trace_event *event,
				      const struct space_owner_file *file,
				      const struct range *below, enum space_owner below_owner);

// Whether a heap block at `address` shows that the range is the allocator's, or is already. A
// block that has a mapping of its own is 16 bytes (8 in 32-bit programs) or some whole pages
// into it; further ones show that the mapping is a pool.
bool space_owner_yields(const struct range *range, uint64_t address);
