// crc32c: the checksum of blocks in a trace (Castagnoli polynomial, as in iSCSI and ext4).
//
// Finds every burst of up to 32 flipped bits. About 8 GB/s where the processor has the
// instruction for it (SSE 4.2), about 1.5 GB/s elsewhere.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The checksum of what `crc` is the checksum of, followed by `size` more bytes. Begin with 0.
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);

// The same, never with the processor's own instruction.
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t size);
