// rss_breakdown: the resident memory of a process at one snapshot, divided up among those who hold
// it.
//
// A snapshot (trace.h) says which pages were present. Summed up from below they tell, for any two
// addresses, how many bytes between them were resident: exact to the byte for blocks smaller than
// a page, and nothing is counted twice. With the blocks and mappings that the trace knows at that
// moment, each resident byte falls into one line:
//
//     live       of a live block, as far as it was asked for
//     rounding   of a live block's place beyond that: header and rounding up
//     free       else, in an allocator's mapping: what it keeps for later. Distinguished as far as
//                addresses do: the end of glibc's main heap after the last block (its top), the
//                ends of its other arenas, between blocks (bins and caches, which no address tells
//                apart), and in mappings of other kinds
//     stacks, files, program, libc, kernel, tidemark    by the owner of the mapping
//     unexplained    in no mapping that the trace knows
//
// A snapshot at the peak is taken just before memory is given back, or at the end, when what it was
// for may be freed already. So the blocks are those of the moment when most were alive since memory
// was given back last (engine/replay/plateau.h): resident memory did not fall in between.
//
// One line says by how much the kernel's sums (smaps) differ from its own page map, so that
// all of them add up to smaps. (Where smaps was not read, the mappings' sums are those of the
// pages.) Beside them: what is live and was never touched.
//
// A block's place is found by report/find/chunk_extent.h.
#pragma once

#include "base/map.h"
#include "engine/replay/plateau.h"
#include "report/ask/moment_view.h"

enum rss_breakdown_line {
	RSS_BREAKDOWN_LIVE,
	RSS_BREAKDOWN_ROUNDING,
	RSS_BREAKDOWN_FREE,
	RSS_BREAKDOWN_STACKS,
	RSS_BREAKDOWN_FILES,
	RSS_BREAKDOWN_PROGRAM,
	RSS_BREAKDOWN_LIBC,
	RSS_BREAKDOWN_KERNEL,
	RSS_BREAKDOWN_TIDEMARK,
	RSS_BREAKDOWN_UNEXPLAINED,
	RSS_BREAKDOWN_LINES,
	RSS_BREAKDOWN_UNTOUCHED = RSS_BREAKDOWN_LINES, // in rows: live blocks that are not resident
	RSS_BREAKDOWN_PURGED, // in rows: what was given back by advice until then
};

// "live", "rounding" …: the key in JSON; and for people.
const char *rss_breakdown_key(enum rss_breakdown_line line);
const char *rss_breakdown_title(enum rss_breakdown_line line);

// Who has how much of a line, or of what is in none: a stack of the process, or where there is none
// the file that was mapped. `count` is of blocks or of mappings.
struct rss_breakdown_row {
	uint8_t line;
	stack_id stack;
	file_id file; // where there is no stack
	uint64_t count;
	uint64_t bytes;
};

// What an allocator keeps free, by where it is.
enum rss_breakdown_free {
	RSS_BREAKDOWN_FREE_TOP,    // after the last block of the main heap
	RSS_BREAKDOWN_FREE_TOPS,   // after the last blocks of other arenas' heaps
	RSS_BREAKDOWN_FREE_MAIN,   // between blocks of the main heap
	RSS_BREAKDOWN_FREE_ARENAS, // between blocks of other arenas
	RSS_BREAKDOWN_FREE_OTHER,  // in other mappings
	RSS_BREAKDOWN_FREES,
};

// "top" …
const char *rss_breakdown_free_key(enum rss_breakdown_free part);
const char *rss_breakdown_free_title(enum rss_breakdown_free part);

// Events of the process between a snapshot's two marks: each may be in it or not.
struct rss_breakdown_between {
	uint64_t allocations, allocated_bytes; // a realloc is one of these and one of those
	uint64_t frees;
	uint64_t calls, calls_bytes; // on virtual memory, that succeeded
};

extern const struct query_context_rules rss_breakdown_rules;

struct rss_breakdown {
	struct query_context *asked;         // borrowed
	const struct trace_snapshot *header; // borrowed from the reader: the snapshot in short
	uint64_t lines[RSS_BREAKDOWN_LINES]; // bytes
	int64_t difference;                  // smaps less pages
	uint64_t smaps_bytes;                // the sum that the lines and the difference make
	uint64_t frees[RSS_BREAKDOWN_FREES]; // what line RSS_BREAKDOWN_FREE is made of
	struct plateau plateau;              // whose blocks they are; bytes 0: the snapshot's own
	uint64_t purged, purges;             // bytes given back by advice (madvise); calls
	uint64_t pss_bytes, swap_bytes;      // by smaps: its share of it; swapped out
	uint64_t untouched;                  // bytes of live blocks that are not resident
	uint64_t blocks;                     // live ones
	bool at_peak;                        // the snapshot was not asked for by its moment
	bool glibc;                          // places are glibc's
	struct rss_breakdown_between between;
	uint64_t rss_max_bytes; // the highest of the whole process, as far as it is recorded
	struct rss_breakdown_row *rows; // by line, the largest first
	size_t rows_count, rows_capacity;
	struct map
		numbers; // private, as this: the plateau's blocks; NULL: there is none, or not yet
	struct chunk_extent *of_plateau;
};

enum rss_breakdown_at {
	RSS_BREAKDOWN_AT_PEAK,   // the snapshot with the most resident memory
	RSS_BREAKDOWN_AT_EXIT,   // of those at ends of processes, that with the most
	RSS_BREAKDOWN_AT_MOMENT, // the last one before the context's moment
};

// Sets the context's moment to the snapshot's and reads it. ERR_USAGE: no such snapshot.
bool rss_breakdown_init(struct rss_breakdown *rss_breakdown, struct query_context *asked,
			enum rss_breakdown_at at, struct err *err);
void rss_breakdown_fini(struct rss_breakdown *rss_breakdown);

// At most `rows_max` rows a line (0: all).
void rss_breakdown_write_text(const struct rss_breakdown *rss_breakdown, struct paper *paper,
			      uint64_t rows_max, bool all_frames);
void rss_breakdown_write_json(const struct rss_breakdown *rss_breakdown, struct sink *sink,
			      uint64_t rows_max);
