// pins: pages of an allocator that cannot go back to the system, because a few small blocks are on
// them.
//
// A page is free if no live block's extent (chunk_extent.h) is on it, *pinned* if the places on it
// have at most a few bytes, else used. The table says by stack how many pinned pages its blocks are
// on, how many of their bytes, and how much could go back if they were not there: pages that they
// pin alone.
//
// With mappings recorded, the pages are those of the allocator's mappings that are committed, and
// free ones are known; without, only pages with blocks are. Where the trace has a snapshot of that
// moment, pages that are not resident are left out.
#pragma once

#include "report/ask/moment_view.h"
#include "report/table/sheet.h"

extern const struct query_context_rules pins_rules;

struct pins_options {
	uint64_t live_max; // a page with at most so many bytes of places is pinned
	uint64_t rows_max; // 0: all
	bool all_frames;
};

// One stack whose blocks keep pages.
struct pins_row {
	stack_id stack;
	uint64_t blocks;     // on pinned pages
	uint64_t live_bytes; // of them, as requested, there
	uint64_t pages;      // pinned pages that they are on
	uint64_t alone;      // pages that they pin alone
	uint64_t last_page;  // private: the last page counted, + 1
};

// The pages of one process at one moment. A page is free, pinned or used, so that pages is the sum
// of the three.
struct pins {
	struct query_context *asked; // borrowed
	const struct pins_options *options;
	process_id process;
	bool mapped;   // mappings are known, and with them free pages
	bool resident; // a snapshot says which pages are
	uint64_t pages, pages_free, pages_pinned, pages_used;
	uint64_t live_bytes;   // on all pages
	uint64_t pinned_bytes; // live ones on pinned pages
	struct pins_row *rows; // most that could go back first
	size_t rows_count, rows_capacity;
};

// `asked` is open. ERR_USAGE: no blocks at that moment.
bool pins_init(struct pins *pins, struct query_context *asked, const struct pins_options *options,
	       struct err *err);
void pins_fini(struct pins *pins);

// The rows alone, at most options->rows_max of them.
void pins_rows(const struct pins *pins, struct sheet *sheet);

// The pages, and the rows.
void pins_write_text(const struct pins *pins, struct paper *paper);
void pins_write_json(const struct pins *pins, struct sink *sink);
