// mapped: files that are mapped, and that somebody may cut short or rewrite while we read them.
//
// A page of a mapping that is not in the file any more cannot be read: the system sends SIGBUS,
// which ends a program that only wanted to know the name of a function. From mapped_watch on such
// a page reads as zeros instead. Whoever reads files of others checks what is in them anyway.
//
//     mapped_watch        of a mapping of a file, private and only read
//     mapped_forget       before it is unmapped
//
// From any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// `size` bytes from `start` on, until mapped_forget.
void mapped_watch(const void *start, size_t size);

// Returns whether any page of it was gone. What is not watched may be forgotten.
bool mapped_forget(const void *start);
