// plateau: when most was alive on the plateau of resident memory that ends at a given event.
//
// Resident memory falls only where memory is given back; a snapshot of it is taken just before
// that. By then the program may have freed all that the memory was for: free comes first, and the
// pages go after it. Since the last time that memory was given back the pages have only become
// more, so the moment in between when most blocks were alive tells best what they were for.
#pragma once

#include "engine/moment.h"

struct plateau {
	struct moment_edge edge; // right after the allocation that made it most
	uint64_t bytes;          // alive there, as far as the process allocated them itself
	uint64_t bytes_end;      // alive at the end of the plateau
	uint64_t from_ns;        // when memory was given back last; 0: never
};

// Whether a plateau begins after this call on virtual memory: it gave memory back.
bool plateau_begins_with(const struct trace_event *event);

// Reads the trace up to the event `number` and rewinds the reader.
void plateau_find(struct plateau *plateau, struct reader *reader, process_id process,
		  uint64_t number);
