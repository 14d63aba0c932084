// generated_code: frames of generated code get the names that their process has written down.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct image;

// Name what the image's stacks have used since it was called last. The recording began at
// `began_ns` of CLOCK_MONOTONIC. `last`: the image is over, or the recording: what was not read, or
// is not sure, is a message in the trace.
void generated_code_name(struct image *image, uint64_t began_ns, bool last);
