// foretell_follow: the state of trace/foretell.h, step by step, and what a reader does with it.
//
// For a block that ends: foretell_follow_ended, foretell_put_ended; for one that begins:
// foretell_follow_begun, foretell_put_begun; for a realloc: both follow, then put_begun, and
// put_ended unless its way was FORETELL_IN_PLACE.
#ifndef TRACE_FORETELL_FOLLOW_H
#define TRACE_FORETELL_FOLLOW_H

#include "base/mem.h"
#include "trace/foretell.h"
#include "wire/compiler.h"

// Sizes are told apart as glibc does: in steps of 16 bytes, eight of which are its own.
enum { FORETELL_CHUNK_LOG2 = 4, FORETELL_CHUNK_HEAD = 8, FORETELL_CHUNKS_MIN = 2 };

static inline uint64_t foretell_chunks(uint64_t size)
{
	uint64_t chunks = (size + FORETELL_CHUNK_HEAD + (1 << FORETELL_CHUNK_LOG2) - 1) >>
			  FORETELL_CHUNK_LOG2;

	return chunks < FORETELL_CHUNKS_MIN ? FORETELL_CHUNKS_MIN : chunks;
}

// Never 0.
static inline uint8_t foretell_class(uint64_t chunks)
{
	uint8_t class = (uint8_t)(chunks % FORETELL_CLASSES);

	return class < FORETELL_CHUNKS_MIN ? FORETELL_CHUNKS_MIN : class;
}

static inline struct foretell_slot *foretell_slot(struct foretell *foretell, uint32_t thread)
{
	return &foretell->slots[thread % FORETELL_SLOTS];
}

// The lists of a thread, one for each class.
static inline uint32_t *foretell_lists(const struct foretell_blocks *blocks, uint32_t thread)
{
	return &blocks->lists[thread % FORETELL_ROWS * FORETELL_CLASSES];
}

// What stands at a place of a list, without those that have left it. 0: nothing.
static inline uint32_t foretell_settle(const struct foretell_blocks *blocks, uint32_t *at)
{
	while (unlikely(*at != 0 && blocks->ended[*at - 1].left))
		*at = blocks->ended[*at - 1].older;
	return *at;
}

// What stands there, and is settled, leaves the list. Returns where it was.
static inline uint64_t foretell_take(const struct foretell_blocks *blocks, uint32_t *at)
{
	struct foretell_place *ended = &blocks->ended[*at - 1];

	*at = ended->older;
	ended->left = true;
	return ended->address;
}

// A block ended, of which there is room for another: a block of its size may begin there next.
// Returns its number. Of class 0 there is a list, too, which nobody asks.
static inline uint32_t foretell_put_ended(struct foretell_blocks *blocks, uint32_t *list,
					  uint64_t address)
{
	uint32_t number = blocks->ended_count++;

	blocks->ended[number] = (struct foretell_place){ address, *list, false };
	*list = number + 1;
	return number;
}

// A block began behind a rest, or where no list told. Then what is behind it goes to the front: the
// rest that it was cut from is gone, or the last one is forgotten.
static inline void foretell_cut(struct foretell_slot *slot, unsigned way, uint64_t behind)
{
	unsigned from = way >= FORETELL_BEHIND ? way - FORETELL_BEHIND : FORETELL_RESTS - 1;

#pragma GCC unroll 3
	for (unsigned i = FORETELL_RESTS - 1; i > 0; i--)
		slot->rest[i] = i <= from ? slot->rest[i - 1] : slot->rest[i];
	slot->rest[0] = behind;
}

// A block began, of which there is room for another. Returns its number.
static inline uint32_t foretell_put_begun(struct foretell_blocks *blocks,
					  struct foretell_slot *slot, unsigned way,
					  uint64_t address, uint64_t chunks)
{
	uint32_t number = blocks->begun_count++;

	blocks->begun[number] = address;
	blocks->begun_class[number] = foretell_class(chunks);
	slot->latest = number + 1;
	if (way != FORETELL_TOP && way < FORETELL_DEEPER)
		foretell_cut(slot, way, address + (chunks << FORETELL_CHUNK_LOG2));
	return number;
}

// A block ended whose difference to the thread's last address was told.
static inline void foretell_note_step(struct foretell_slot *slot, uint64_t difference)
{
	if (difference + FORETELL_STEP_MAX < 2 * FORETELL_STEP_MAX)
		slot->step = difference;
}

// The number of the block that ends, told in any way but FORETELL_FAR and _STEP. False: there is
// none such.
static inline bool foretell_follow_ended(const struct foretell_blocks *blocks,
					 struct foretell_slot *slot, struct foretell_told told,
					 uint32_t *number)
{
	*number = slot->next + told.distance;
	if (told.way == FORETELL_LATEST)
		*number = slot->latest - 1; // none: too large a number
	slot->next = *number + 1;
	return told.way < FORETELL_ENDINGS && *number < blocks->begun_count;
}

// Where the block begins, told in any way but FORETELL_FAR and FORETELL_IN_PLACE; `list` is that of
// its class. False: nowhere.
static inline bool foretell_follow_begun(struct foretell_blocks *blocks, struct foretell_slot *slot,
					 struct foretell_told told, uint32_t *list,
					 uint64_t *address)
{
	uint32_t number;

	if (told.way >= FORETELL_BEHIND && told.way < FORETELL_DEEPER) {
		*address = slot->rest[told.way - FORETELL_BEHIND];
		return true;
	}
	if (told.way == FORETELL_NUMBERED) {
		number = slot->take + told.distance;
		if (number >= blocks->ended_count)
			return false;
		slot->take = number + 1;
		blocks->ended[number].left = true;
		*address = blocks->ended[number].address;
		return true;
	}
	if (unlikely(told.way >= FORETELL_BEGINNINGS))
		return false;
	for (unsigned depth = FORETELL_DEEPER; told.way >= depth; depth++) {
		if (foretell_settle(blocks, list) == 0)
			return false;
		list = &blocks->ended[*list - 1].older;
	}
	if (unlikely(foretell_settle(blocks, list) == 0))
		return false;
	*address = foretell_take(blocks, list);
	return true;
}

#endif
