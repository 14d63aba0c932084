// generated_code: frames of generated code get the names that their process has written down.
#pragma once

#include <stdint.h>

struct image;

// The image is over, or the recording: name what its stacks have used. The recording began at
// `began_ns` of CLOCK_MONOTONIC. What is not read, or not sure, is a message in the trace.
void generated_code_name(struct image *image, uint64_t began_ns);
