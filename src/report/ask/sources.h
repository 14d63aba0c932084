// sources: where the names of each module come from, and what is missing of them.
//
// The list of the missing has a line for each file, as its path in a store of symbols: whoever has
// a server fetches DIR/that from it, and is done.
#pragma once

#include "report/table/paper.h"
#include "symbols/symbols.h"

// All that the trace has mapped, one line each; the reader was scanned.
void sources_write_text(struct symbols *symbols, struct paper *paper);

// Only what is missing: keys, one a line, each once. Returns how many.
size_t sources_write_missing(struct symbols *symbols, struct sink *sink);

// docs/schema/symbols.json describes it. `complete`: whether the trace is whole.
void sources_write_json(struct symbols *symbols, bool complete, struct sink *sink);
