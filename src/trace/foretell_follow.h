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
#include "wire/varint.h"

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

static inline uint32_t *foretell_list(struct foretell *foretell, uint32_t thread, uint8_t class)
{
	return &foretell->lists[thread % FORETELL_ROWS][class];
}

// What stands at a place of a list, without those that were taken in another way. 0: nothing.
static inline uint32_t foretell_settle(const struct foretell *foretell, uint32_t *at)
{
	while (unlikely(*at != 0 && foretell->ended[*at - 1].class == 0))
		*at = foretell->ended[*at - 1].link;
	return *at;
}

// Take what stands there.
static inline uint64_t foretell_take(struct foretell *foretell, uint32_t *at)
{
	struct foretell_place *ended = &foretell->ended[*at - 1];

	*at = ended->link;
	ended->class = 0;
	return ended->address;
}

// A block ended: a block of its size may begin there next. Returns its number.
static inline uint32_t foretell_put_ended(struct foretell *foretell, uint32_t thread,
					  uint64_t address, uint8_t class)
{
	uint32_t number = foretell->ended_count++;
	uint32_t *list = foretell_list(foretell, thread, class);

	ASSERT(number < foretell->room);
	foretell->ended[number] = (struct foretell_place){ address, *list, class };
	*list = number + 1; // of class 0 there is a list, too, which nobody asks
	return number;
}

// A block began. Returns its number. The rest that it was cut from goes to the front, as what is
// behind it; where it was cut from none, the last one is forgotten.
static inline uint32_t foretell_put_begun(struct foretell *foretell, struct foretell_slot *slot,
					  uint8_t way, uint64_t address, uint64_t chunks)
{
	uint32_t number = foretell->begun_count++;
	unsigned from = FORETELL_RESTS - 1;

	ASSERT(number < foretell->room);
	foretell->begun[number] = (struct foretell_place){ address, 0, foretell_class(chunks) };
	slot->latest = number + 1;
	if (way == FORETELL_TOP || way >= FORETELL_DEEPER)
		return number;
	if (way >= FORETELL_BEHIND)
		from = way - FORETELL_BEHIND;
	for (; from > 0; from--)
		slot->rest[from] = slot->rest[from - 1];
	slot->rest[0] = address + (chunks << FORETELL_CHUNK_LOG2);
	return number;
}

// A block ended whose difference to the thread's last address was told.
static inline void foretell_note_step(struct foretell_slot *slot, uint64_t difference)
{
	if (difference + FORETELL_STEP_MAX < 2 * FORETELL_STEP_MAX)
		slot->step = difference;
}

// The block that ends, told in any way but FORETELL_FAR and _STEP. NULL: there is none such.
static inline const struct foretell_place *foretell_follow_ended(const struct foretell *foretell,
								 struct foretell_slot *slot,
								 struct foretell_told told)
{
	uint32_t number = slot->next;

	if (told.way == FORETELL_LATEST)
		number = slot->latest - 1; // none: too large a number
	if (told.way == FORETELL_NUMBERED)
		number += (uint32_t)varint_unzigzag(told.number);
	if (unlikely(told.way >= FORETELL_ENDINGS || number >= foretell->begun_count))
		return NULL;
	slot->next = number + 1;
	return &foretell->begun[number];
}

// Where the block begins, told in any way but FORETELL_FAR and FORETELL_IN_PLACE. False: nowhere.
static inline bool foretell_follow_begun(struct foretell *foretell, uint32_t thread,
					 struct foretell_slot *slot, struct foretell_told told,
					 uint64_t chunks, uint64_t *address)
{
	uint32_t *at = foretell_list(foretell, thread, foretell_class(chunks));
	uint32_t number;

	if (told.way >= FORETELL_BEHIND && told.way < FORETELL_DEEPER) {
		*address = slot->rest[told.way - FORETELL_BEHIND];
		return true;
	}
	if (told.way == FORETELL_NUMBERED) {
		number = slot->take + (uint32_t)varint_unzigzag(told.number);
		if (number >= foretell->ended_count)
			return false;
		slot->take = number + 1;
		foretell->ended[number].class = 0;
		*address = foretell->ended[number].address;
		return true;
	}
	if (unlikely(told.way >= FORETELL_BEGINNINGS))
		return false;
	for (unsigned depth = FORETELL_DEEPER - 1; told.way > depth; depth++) {
		if (foretell_settle(foretell, at) == 0)
			return false;
		at = &foretell->ended[*at - 1].link;
	}
	if (unlikely(foretell_settle(foretell, at) == 0))
		return false;
	*address = foretell_take(foretell, at);
	return true;
}

#endif
