// lives_parts: what a trace says of blocks, in temporary files, so that each share of the addresses
// (lives_share) is followed from a file of its own, and the trace is read for all of them once.
//
//     lives_parts_new
//       lives_parts_add_event, lives_parts_add_note     every item of the trace, in its order
//       lives_parts_next                                of one share after the other, to its end
//     lives_parts_free
//
// An event is in the file of the share whose block it begins or ends: a realloc may be in two, the
// end of a heap or a process is in all. What is needed of other shares is said in the event, as it
// is settled (lives_settle).
//
// For example of two shares, 0x1… and 0x2…:
//
//     malloc 0x1000               first:   malloc 0x1000
//     realloc-free 0x1000         first:   realloc-free 0x1000
//     realloc-alloc 0x2000        second:  realloc-alloc 0x2000, old address 0x1000
//     exit                        both:    exit
//
// It costs 64 KiB a share, and on disk some 12 bytes for each event. One thread.
#pragma once

#include "engine/replay/lives.h"

struct lives_parts;

// Files for the first `count` of the shares. NULL: one could not be made.
struct lives_parts *lives_parts_new(uint32_t count, uint32_t shares, struct err *err);
void lives_parts_free(struct lives_parts *parts); // NULL is allowed

// `item` rises from call to call, and is given back. The event is settled; a note is before the
// event of that number.
void lives_parts_add_event(struct lives_parts *parts, uint64_t item,
			   const struct trace_event *event);
void lives_parts_add_note(struct lives_parts *parts, uint64_t item, uint64_t next_number,
			  const struct trace_note *note);

// One of a share. Of an event there is what lives_add_settled asks for, of a note what
// lives_add_note does.
struct lives_parts_item {
	uint64_t item;
	bool is_note;
	struct trace_event event; // is_note: its number is the next event's
	struct trace_note note;
};

// The next one of a share, whose first one ends the adding. False: there is no more, or it cannot
// be read (lives_parts_ok).
bool lives_parts_next(struct lives_parts *parts, uint32_t share, struct lives_parts_item *item);

// The file of a share is not needed any more.
void lives_parts_drop(struct lives_parts *parts, uint32_t share);

// Whether all that was read is all that was added.
bool lives_parts_ok(const struct lives_parts *parts, struct err *err);

// Add it to the lives of its share.
void lives_parts_give(const struct lives_parts_item *item, struct lives *lives);

// All of a share: for who asks no more than what lives.h gives. lives_finish may follow.
void lives_parts_read(struct lives_parts *parts, uint32_t share, struct lives *lives);
