// before: what a process had allocated before it was attached to, as items of the trace.
//
// They come right after its beginning and before any call. They are of a thread called
// "before", since nobody knows which ones allocated them, and of a stack that only has a name. At
// the mark TRACE_BEFORE_MARK they end and the recording begins: windows begin there unless they are
// given another beginning.
#pragma once

#include "collect/image.h"

// Begins a text that says of which allocators they are: "with glibc, jemalloc", and after "; " of
// which one they are not, and why.
#define BEFORE_WITH TRACE_BEFORE_WITH

// From the file `fd`. `text`: which they are (BEFORE_WITH), or why nothing is known of them.
void before_place(struct image *image, int fd, const char *text);
