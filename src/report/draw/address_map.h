// address_map: the address space of one process at one moment, drawn and weighed.
//
// The space is looked at in *slots* (64 KiB, unless said otherwise). A slot is free, or somebody's.
// What is free in a slot that is somebody's in part is *unusable* to all who reserve whole slots,
// as Windows does: it is the waste of the mapping below it in the slot, or else of the one above.
//
// Three things come of it:
//
//     the map       segments of slots. 32 bits: all 4 GiB in one. 64 bits: the neighbourhoods that
//                   are used; long stretches that are all alike are skipped, and said so, so that
//                   the picture's size follows what is mapped and not how far apart it is
//     the curve     total free and the largest free block (lowest in each stretch of time),
//                   reserved, committed and holes (highest), over the whole trace
//     the table     by who mapped it (stack and owner): how much, how much waste, and how large the
//                   largest free block were without it
//
// and the calls that failed for want of memory, with what was free just then and who was in the
// way. Figures of free memory are of the part [low, high), in bytes, not rounded to slots.
#pragma once

#include "report/ask/failures.h"
#include "report/ask/moment_view.h"

enum {
	ADDRESS_MAP_POINTS = 240,              // of the curve
	ADDRESS_MAP_FAILURES_MAX = 20,         // that are kept, the first: by stack, kind and size
	ADDRESS_MAP_FREE = SPACE_OWNERS_COUNT, // owner of a cell where nothing is
	ADDRESS_MAP_CELLS_MAX = 1 << 16,
};

extern const struct query_context_rules address_map_rules;

// `= { .granularity = SPACE_SLOT }` is the whole space.
struct address_map_options {
	uint64_t granularity; // of a slot; a power of two from 4 KiB on
	uint64_t low, high;   // the part that is looked at; high 0: all
	uint64_t rows_max;    // of the table; 0: all
	bool all_frames;
};

// A slot in the picture.
struct address_map_cell {
	uint8_t owner; // who has most of it; ADDRESS_MAP_FREE
	uint8_t fill;  // how much of it is mapped, 0 to 255; never 0 if anything is
	bool reserved; // nothing of it is committed
};

// Slots that are drawn, one after the other.
struct address_map_segment {
	uint64_t start, end;
	uint64_t skipped; // bytes since the segment before that are not drawn: all of one kind
	uint8_t skipped_owner;
	bool skipped_reserved;
};

// A stretch of time: a 240th of the recording. Bytes, and how many holes.
struct address_map_point {
	uint64_t free_min, largest_min;
	uint64_t reserved_max, committed_max, holes_max;
};

struct address_map {
	struct query_context *asked; // borrowed
	const struct address_map_options *options;
	process_id process;
	uint64_t low, high;
	uint64_t granularity; // of the picture: coarser than asked if it would be too large
	struct ranges_holes holes;
	uint64_t slots_free;                 // whole slots that are free
	uint64_t largest_slots;              // the most of them in a row
	uint64_t unusable;                   // bytes, of free ones
	uint64_t reserved, committed;        // bytes mapped, and committed, tidemark's and all
	uint64_t owners[SPACE_OWNERS_COUNT]; // bytes mapped
	struct address_map_segment *segments;
	size_t segments_count, segments_capacity;
	struct mapper *groups; // the table: most in the way first
	size_t groups_count, groups_capacity;
	struct address_map_point *points; // ADDRESS_MAP_POINTS, over the whole trace
	struct address_map_point now;     // private: as it was after the last event that was read,
	unsigned now_points;              // private: and how many points have been begun
	// the time that the points divide into equal parts, from 0
	uint64_t points_end_ns;
	struct failures failures; // of the whole trace
};

// From words: a power of two from 4 KiB to 1 TiB; "0x40000000..0x80000000". ERR_USAGE.
bool address_map_set_granularity(struct address_map_options *options, uint64_t bytes,
				 struct err *err);
bool address_map_set_range(struct address_map_options *options, const char *text, struct err *err);

// Reads the trace, once or twice. ERR_USAGE: nothing is mapped at that moment.
bool address_map_init(struct address_map *address_map, struct query_context *asked,
		      const struct address_map_options *options, struct err *err);
void address_map_fini(struct address_map *address_map);

// "#0072b2": an owner's colour; of ADDRESS_MAP_FREE too. Distinguished also by people who see fewer
// colours.
const char *address_map_colour(uint8_t owner);

// The slot at `address`.
struct address_map_cell address_map_cell(const struct address_map *address_map, uint64_t address);

// One or more forms.
void address_map_write_text(const struct address_map *address_map, struct paper *paper);
void address_map_write_json(const struct address_map *address_map, struct sink *sink);
void address_map_write_svg(const struct address_map *address_map, struct sink *sink);

// "V8 heap": the runtime's that mapped it; NULL: it is none's that is known.
const char *address_map_heap(const struct address_map *address_map, const struct mapper *group);

// "private rw- ---": type, and the protections that are among them.
void address_map_describe_type(const struct mapper *group, struct str *text);
