// lane_reader_own: what the files of lane_reader share among themselves.
#pragma once

#include "collect/lane_reader.h"
#include "wire/compiler.h"

#include <string.h>

// Edits of a batch that were decoded and wait to be looked up.
struct lane_reader_edits {
	size_t parts;    // in scratch->part; 0: none waits
	size_t first;    // the item with the first; from there on stacks number them from 1
	size_t numbered; // items up to the last one whose edit was given a number
};

// Numbers at any address. Of bytes that the guest may write to meanwhile each is loaded once, and
// what was loaded is what is checked and used.
static inline uint32_t lane_reader_load32(const uint8_t *in)
{
	uint32_t value;

	memcpy(&value, in, sizeof value);
	return value;
}

static inline uint64_t lane_reader_load64(const uint8_t *in)
{
	uint64_t value;

	memcpy(&value, in, sizeof value);
	return value;
}

// The lower `count` bytes, at most 8, of what is at `in`, where 8 can be read.
static inline uint64_t lane_reader_low(const uint8_t *in, uint32_t count)
{
	static const uint64_t low[9] = {
		0,
		0xff,
		0xffff,
		0xffffff,
		0xffffffff,
		0xffffffffff,
		0xffffffffffff,
		0xffffffffffffff,
		0xffffffffffffffff,
	};

	return lane_reader_load64(in) & low[count];
}

// Take the edit at `in`, of `record` and the item with number `item`, apart: one that is not known
// as a whole, or is after such. `*current` becomes its stack, or the number of its last part.
// Returns where it ends, or NULL.
const uint8_t *lane_reader_edit(struct lane_reader *reader, struct lane_reader_edits *edits,
				size_t item, const uint8_t *record, const uint8_t *in,
				const uint8_t *end, uint32_t *current);

// How many bytes from `in` on, up to `end`, are those that are `period` bytes before. `period`
// bytes before `in` can be read. n times `period` are n more turns of a loop.
size_t lane_reader_same(const uint8_t *in, const uint8_t *end, size_t period);

// Take an edit of the list of an interpreted language's frames, `length` bytes at `in`. False: it
// cannot be. Lists go to reader->lists by depth. Without a language to put them into it is only
// checked.
bool lane_reader_take_frames(struct lane_reader *reader, const uint8_t *in, uint64_t length);
