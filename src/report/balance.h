// balance: the resident memory of a process at one snapshot, divided up among those who hold it.
//
// A snapshot (trace.h) says which pages were present. Summed up from below they tell, for any two
// addresses, how many bytes between them were resident: exact to the byte for blocks smaller than
// a page, and nothing is counted twice. With the blocks and mappings that the trace knows at that
// moment, each resident byte falls into one line:
//
//     live       of a live block, as far as it was asked for
//     rounding   of a live block's place beyond that: header and rounding up
//     free       else, in an allocator's mapping: what it keeps for later. Told apart as far as
//                addresses do: the end of glibc's main heap behind the last block (its top), the
//                ends of its other arenas, between blocks (bins and caches, which no address tells
//                apart), and in mappings of other kinds
//     stacks, files, program, libc, kernel, tidemark    by the owner of the mapping
//     unexplained    in no mapping that the trace knows
//
// A snapshot at the peak is taken just before memory is given back, or at the end, when what it was
// for may be freed already. So the blocks are those of the moment when most were alive since memory
// was given back last (engine/plateau.h): resident memory did not fall in between.
//
// One line says by how much the kernel's sums (smaps) differ from its own page map, so that
// all of them add up to smaps. (Where smaps was not read, the mappings' sums are those of the
// pages.) Beside them: what is live and was never touched.
//
// A block's place is told by report/chunk_extent.h.
#ifndef REPORT_BALANCE_H
#define REPORT_BALANCE_H

#include "base/map.h"
#include "engine/plateau.h"
#include "report/moment_view.h"

enum balance_line {
	BALANCE_LIVE,
	BALANCE_ROUNDING,
	BALANCE_FREE,
	BALANCE_STACKS,
	BALANCE_FILES,
	BALANCE_PROGRAM,
	BALANCE_LIBC,
	BALANCE_KERNEL,
	BALANCE_TIDEMARK,
	BALANCE_UNEXPLAINED,
	BALANCE_LINES,
	BALANCE_UNTOUCHED = BALANCE_LINES, // in rows: live blocks that are not resident
	BALANCE_PURGED,                    // in rows: what was given back by advice until then
};

// "live", "rounding" …: the key in JSON; and for people.
const char *balance_key(enum balance_line line);
const char *balance_title(enum balance_line line);

// Who has how much of a line, or of what is in none.
struct balance_row {
	uint8_t line;
	stack_id stack;
	file_id file; // where there is no stack
	uint64_t count;
	uint64_t bytes;
};

// What an allocator keeps free, by where it lies.
enum balance_free {
	BALANCE_FREE_TOP,    // behind the last block of the main heap
	BALANCE_FREE_TOPS,   // behind the last blocks of other arenas' heaps
	BALANCE_FREE_MAIN,   // between blocks of the main heap
	BALANCE_FREE_ARENAS, // between blocks of other arenas
	BALANCE_FREE_OTHER,  // in other mappings
	BALANCE_FREES,
};

// "top" …
const char *balance_free_key(enum balance_free part);
const char *balance_free_title(enum balance_free part);

// Events of the process between a snapshot's two marks: each may be in it or not.
struct balance_between {
	uint64_t allocations, allocated_bytes; // a realloc is one of these and one of those
	uint64_t frees;
	uint64_t calls, calls_bytes; // on virtual memory, that succeeded
};

extern const struct query_context_rules balance_rules;

struct balance {
	struct query_context *asked;         // borrowed
	const struct trace_snapshot *header; // borrowed from the reader: the snapshot in short
	uint64_t lines[BALANCE_LINES];       // bytes
	int64_t difference;                  // smaps less pages
	uint64_t smaps_bytes;                // the sum that the lines and the difference make
	uint64_t frees[BALANCE_FREES];       // what line BALANCE_FREE is made of
	struct plateau plateau;              // whose blocks they are; bytes 0: the snapshot's own
	uint64_t purged, purges;             // bytes given back by advice (madvise); calls
	uint64_t pss_bytes, swap_bytes;      // by smaps: its share of it; swapped out
	uint64_t untouched;                  // bytes of live blocks that are not resident
	uint64_t blocks;                     // live ones
	bool glibc;                          // places are glibc's
	struct balance_between between;
	uint64_t rss_max_bytes;   // the highest of the whole process, as far as it is recorded
	struct balance_row *rows; // by line, the largest first
	size_t rows_count, rows_capacity;
	struct map numbers; // private
};

// `peak`: the snapshot with the most resident memory; else the last one at the end of a process.
// Sets the context's moment and reads it. ERR_USAGE: no such snapshot.
bool balance_init(struct balance *balance, struct query_context *asked, bool peak, struct err *err);
void balance_fini(struct balance *balance);

// At most `rows_max` rows a line (0: all).
void balance_write_text(const struct balance *balance, struct paper *paper, uint64_t rows_max,
			bool all_frames);
void balance_write_json(const struct balance *balance, struct sink *sink, uint64_t rows_max);

#endif
