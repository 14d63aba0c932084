// predict_follow: the state of trace/predict.h, step by step, and what a reader does with it.
//
// For a block that ends: predict_follow_ended, predict_put_ended; for one that begins:
// predict_follow_begun, predict_put_begun; for a realloc: both follow, then put_begun, and
// put_ended unless its way was PREDICT_IN_PLACE.
//
// Writer and reader both call these, with the same numbers in the same order. That is all that
// keeps them in step: whatever one of them does at an event, the other must do, down to which
// element leaves which list. So what changes the state is here, once.
//
// A realloc whose block moves, as a reader has it:
//
//     predict_follow_ended(blocks, slot, ending, &number)      old = blocks->begun[number]
//     predict_follow_begun(blocks, slot, beginning, list, &at)
//     predict_put_begun(blocks, slot, beginning.way, at, chunks)
//     predict_put_ended(blocks, list_of_old, old)
#pragma once

#include "base/mem.h"
#include "trace/predict.h"
#include "wire/compiler.h"

// Sizes are distinguished as glibc does: in steps of 16 bytes, eight of which are its own.
// For example sizes 25 to 40 are 3 chunks (48 bytes), 41 is 4 chunks, and 0 to 24 are 2, the least.
// Other allocators have other classes: then blocks of one size may wait in the wrong list, which
// costs bytes and no truth.
#define PREDICT_NONE UINT32_MAX // no number
enum { PREDICT_CHUNK_LOG2 = 4, PREDICT_CHUNK_HEAD = 8, PREDICT_CHUNKS_MIN = 2 };

static inline uint64_t predict_chunks(uint64_t size)
{
	uint64_t chunks = (size + PREDICT_CHUNK_HEAD + (1 << PREDICT_CHUNK_LOG2) - 1) >>
			  PREDICT_CHUNK_LOG2;

	return chunks < PREDICT_CHUNKS_MIN ? PREDICT_CHUNKS_MIN : chunks;
}

// Never 0.
// 256 chunks, 4 KiB, share a class with 512 and so on. Class 0 means "not known", and is used for
// nothing that begins; so are remainders 0 and 1 made 2.
static inline uint8_t predict_class(uint64_t chunks)
{
	uint8_t class = (uint8_t)(chunks % PREDICT_CLASSES);

	return class < PREDICT_CHUNKS_MIN ? PREDICT_CHUNKS_MIN : class;
}

// The state of a thread. Two threads whose ids have the same remainder share one: they predict
// worse, and the reader shares it in the same way.
static inline struct predict_slot *predict_slot(struct predict *predict, uint32_t thread)
{
	return &predict->slots[thread % PREDICT_SLOTS];
}

// The lists of a thread, one for each class. Threads whose ids have the same remainder share them,
// as they do a slot.
static inline uint32_t *predict_lists(const struct predict_blocks *blocks, uint32_t thread)
{
	return &blocks->lists[thread % PREDICT_ROWS * PREDICT_CLASSES];
}

// What is at a place of a list, without those that have left it. 0: nothing. Those that have left
// are taken out on the way, so that each costs once.
static inline uint32_t predict_settle(const struct predict_blocks *blocks, uint32_t *at)
{
	while (unlikely(*at != 0 && blocks->ended[*at - 1].left))
		*at = blocks->ended[*at - 1].older;
	return *at;
}

// What is there, and is settled, leaves the list. Returns where it was. *at is not 0.
static inline uint64_t predict_take(const struct predict_blocks *blocks, uint32_t *at)
{
	struct predict_place *ended = &blocks->ended[*at - 1];

	*at = ended->older;
	ended->left = true;
	return ended->address;
}

// A block ended, of which there is room for another: a block of its size may begin there next.
// Returns its number. Of class 0 there is a list, too, which nobody asks.
static inline uint32_t predict_put_ended(struct predict_blocks *blocks, uint32_t *list,
					 uint64_t address)
{
	uint32_t number = blocks->ended_count++;

	blocks->ended[number] = (struct predict_place){ address, *list, false, 0 };
	*list = number + 1;
	return number;
}

// A block began after a rest, or where no list predicted. Then what is after it goes to the front:
// the rest that it was cut from is gone, or the last one is forgotten.
// For example the rests a, b, c, d. A block that was cut off c (way PREDICT_BEHIND + 2) ends at e:
// now they are e, a, b, d. Where no rest was met, d is forgotten: e, a, b, c.
static inline void predict_cut(struct predict_slot *slot, unsigned way, uint64_t behind)
{
	unsigned from = way >= PREDICT_BEHIND ? way - PREDICT_BEHIND : PREDICT_RESTS - 1;

#pragma GCC unroll 3
	for (unsigned i = PREDICT_RESTS - 1; i > 0; i--)
		slot->rest[i] = i <= from ? slot->rest[i - 1] : slot->rest[i];
	slot->rest[0] = behind;
}

// A block began, of which there is room for another. Returns its number. Where a list predicted it
// (PREDICT_TOP, PREDICT_DEEPER and on), rests stay as they are.
static inline uint32_t predict_put_begun(struct predict_blocks *blocks, struct predict_slot *slot,
					 unsigned way, uint64_t address, uint64_t chunks)
{
	uint32_t number = blocks->begun_count++;

	blocks->begun[number] = address;
	blocks->begun_class[number] = predict_class(chunks);
	slot->latest = number + 1;
	if (way != PREDICT_TOP && way < PREDICT_DEEPER)
		predict_cut(slot, way, address + (chunks << PREDICT_CHUNK_LOG2));
	return number;
}

// A block ended whose difference to the thread's last address was written. The sum is modulo 2^64,
// so one comparison says that the difference is from -65,536 to 65,535. A longer one is not
// remembered: the last short one stays.
static inline void predict_note_step(struct predict_slot *slot, uint64_t difference)
{
	if (difference + PREDICT_STEP_MAX < 2 * PREDICT_STEP_MAX)
		slot->step = difference;
}

// The number of the block that ends, coded in any way but PREDICT_FAR and _STEP. False: there is
// none such. `slot` goes on also where it is false: the block of events is given up then.
static inline bool predict_follow_ended(const struct predict_blocks *blocks,
					struct predict_slot *slot, struct predict_told told,
					uint32_t *number)
{
	*number = slot->next + told.distance;
	if (told.way == PREDICT_LATEST)
		*number = slot->latest - 1; // none: too large a number
	slot->next = *number + 1;
	return told.way < PREDICT_ENDINGS && *number < blocks->begun_count;
}

// Where the block begins, coded in any way but PREDICT_FAR and PREDICT_IN_PLACE; `list` is that of
// its class. *from is the block that ended there, PREDICT_NONE at a rest. False: nowhere.
static inline bool predict_follow_begun(struct predict_blocks *blocks, struct predict_slot *slot,
					struct predict_told told, uint32_t *list, uint64_t *address,
					uint32_t *from)
{
	// A rest is given as it is, even one that was never set: an address of 0 is what the writer
	// meant, or the trace is hostile, and then any address is as good.
	uint32_t number;

	*from = PREDICT_NONE;
	if (told.way >= PREDICT_BEHIND && told.way < PREDICT_DEEPER) {
		*address = slot->rest[told.way - PREDICT_BEHIND];
		return true;
	}
	if (told.way == PREDICT_NUMBERED) {
		number = slot->take + told.distance;
		if (number >= blocks->ended_count)
			return false;
		slot->take = number + 1;
		*from = number;
		blocks->ended[number].left = true;
		*address = blocks->ended[number].address;
		return true;
	}
	if (unlikely(told.way >= PREDICT_BEGINNINGS))
		return false;
	for (unsigned depth = PREDICT_DEEPER; told.way >= depth; depth++) {
		if (predict_settle(blocks, list) == 0)
			return false;
		list = &blocks->ended[*list - 1].older;
	}
	if (unlikely(predict_settle(blocks, list) == 0))
		return false;
	*from = *list - 1;
	*address = predict_take(blocks, list);
	return true;
}
