// xpress: unpacks the plain LZ77 of Microsoft's open specification [MS-XCA], 2.3 and 2.4, with
// which Windows packs the buffers of its event logs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Unpacks what must become exactly `room` bytes. False: it is damaged; what is in `out` is of no
// use then.
bool xpress_unpack(const uint8_t *in, size_t size, uint8_t *out, size_t room);
