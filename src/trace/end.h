// end: the payload of an END block (docs/format.md, section 8): totals, why the recording ended
// if not by itself, and, as the file's last bytes, where the last blocks are.
#pragma once

#include "trace/bytes.h"
#include "trace/trace.h"

enum { END_FOOTER_BYTES = 24 };

// What the last bytes of a whole trace point to.
struct end_footer {
	uint64_t end_at;   // offset of the END block
	uint64_t index_at; // offset of the last INDEX block, 0 for none
};

// Append the payload. The footer is what its last 24 bytes are, so that a reader of a whole file
// finds the END block, and by it the index, without reading all blocks.
void end_encode(const struct trace_end *end, const struct end_footer *footer, struct bytes *out);

// `end->why` is new and the caller's (mem_free). False if it is not well formed.
bool end_decode(struct bytes_cursor payload, struct trace_end *end);
// The last bytes of a file. False: they are no footer, as of a file that was cut; then blocks are
// looked for from the beginning on.
bool end_decode_footer(const uint8_t in[static END_FOOTER_BYTES], struct end_footer *footer);
