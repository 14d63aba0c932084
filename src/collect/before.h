// before: what a process had allocated before it was attached to, as items of the trace.
//
// They come right after its beginning and before any call. They are of a thread called
// "before", since nobody knows which ones allocated them, and of a stack that only has a name. At
// the mark TRACE_BEFORE_MARK they end and the recording begins: windows begin there unless they are
// given another beginning.
#ifndef COLLECT_BEFORE_H
#define COLLECT_BEFORE_H

#include "collect/image.h"

// From the file `fd`. `why`: if not empty, nothing is known of them, and why.
void before_place(struct image *image, int fd, const char *why);

#endif
