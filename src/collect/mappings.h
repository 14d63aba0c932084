// mappings: calls on virtual memory on their way from a lane into the trace.
//
// A call that gives memory back is two records in its lane (wire/lane_event.h). The first one has
// the place in the order; where the second has not been written yet, the call is in the kernel at
// this moment, and the order waits for it: for microseconds as a rule, and never long.
#pragma once

#include "collect/image.h"

// Write the stream's first item, which is a LANE_VM.
void mappings_event(struct trace_builder *trace_builder, struct stream *stream);

// A file that the image mapped has this number from here on.
void mappings_file(struct image *image, uint32_t number, uint64_t device, uint64_t inode,
		   const char *path, size_t length);

// A part of the list of the image's mappings that has this number.
void mappings_list(struct image *image, uint32_t number, const char *text, size_t length);
