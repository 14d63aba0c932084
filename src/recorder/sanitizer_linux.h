// sanitizer: whether another image has a shared AddressSanitizer, which refuses to start where
// another library was loaded before it.
//
// gcc -fsanitize=address and clang -shared-libasan make such programs, and LD_PRELOAD=libasan.so
// makes one of any program. The other sanitizers have no such check. ASAN_OPTIONS can take it back.
#pragma once

#include "recorder/elf_file.h"

// Whether the file names it among the libraries that it needs.
HIDDEN bool sanitizer_needed(long fd, const struct elf_file *file);

// Whether a list of libraries (LD_PRELOAD) names it.
HIDDEN bool sanitizer_listed(const char *list);

// Whether these options (ASAN_OPTIONS) let another library come first.
HIDDEN bool sanitizer_lets(const char *options);
