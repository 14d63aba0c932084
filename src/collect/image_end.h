// image_end: what only the end of an image shows, by its hello and its segment, into the trace.
#pragma once

#include "collect/image.h"
#include "collect/trace_builder.h"

// That it never heard of its recording, that its hooks were taken away, that children of it were
// not invited, that memory of ours counts as its own. `exit` and `value` are how it ended.
void image_end_check(struct trace_builder *trace_builder, const struct image *image,
		     enum trace_exit exit, uint32_t value);

// What the guest has counted itself; events that it has lost are a note of their own.
void image_end_count(struct trace_builder *trace_builder, const struct image *image);
